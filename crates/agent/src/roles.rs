//! HTTP about roles: who leads, who stands, and sessions that do.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Json};
use axum::routing::{get, post};
use futures_core::Stream;
use quorate_member::{Asked, Member, Party, ROLES, Seen};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use crate::sessions::{SessionError, Sessions, Standing};

/// What can be asked of an agent about roles.
pub(crate) fn router(member: Arc<Member>, sessions: Arc<Sessions>) -> Router {
    let sessions = Router::new()
        .route("/v1/sessions/{session}/roles", post(campaign))
        .route("/v1/sessions/{session}/roles/{role}", get(check).delete(resign))
        .route("/v1/sessions/{session}/roles/{role}/asked", get(asked))
        .with_state(sessions);
    Router::new()
        .route("/v1/roles", get(roles))
        .route("/v1/roles/{role}/watch", get(watch))
        .route("/v1/roles/{role}/yield", post(ask_to_yield))
        .with_state(member)
        .merge(sessions)
}

/// How long all may take to say where they lead and stand.
const CENSUS: Duration = Duration::from_secs(5);

/// Somebody who leads in a role, or stands for it.
#[derive(Clone, Serialize)]
struct Candidate {
    member: String,
    owner: String,
}

/// A role in which somebody leads, or for which somebody stands.
#[derive(Serialize, Default)]
pub(crate) struct Role {
    role: String,
    leader: Option<Candidate>,
    term: Option<String>,
    candidates: Vec<Candidate>,
}

/// Every role of the cluster in which somebody leads or for which somebody stands.
pub(crate) async fn roles(
    State(member): State<Arc<Member>>,
) -> Result<Json<Vec<Role>>, SessionError> {
    let mut roles: BTreeMap<String, Role> = BTreeMap::new();
    for Party { space, name, member, owner, fence, .. } in member.locks().census(CENSUS).await? {
        if space != ROLES {
            continue;
        }
        let new = || Role { role: name.clone(), ..Role::default() };
        let role = roles.entry(name.clone()).or_insert_with(new);
        match fence {
            Some(term) => {
                role.leader = Some(Candidate { member, owner });
                role.term = Some(term.to_string());
            }
            None => role.candidates.push(Candidate { member, owner }),
        }
    }
    Ok(Json(roles.into_values().collect()))
}

/// What is known of a role, as JSON.
fn word(role: &str, seen: &Seen) -> Value {
    let leader = seen.leader().map(|leader| {
        json!({
            "term": leader.term.to_string(),
            "member": leader.member,
            "value": String::from_utf8_lossy(&leader.value),
        })
    });
    json!({ "role": role, "known": *seen != Seen::Unknown, "leader": leader })
}

/// Who leads in a role, and every change of it, as server-sent events.
async fn watch(
    State(member): State<Arc<Member>>,
    Path(role): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, SessionError> {
    let mut observer = member.observe(&role)?;
    let (tell, told) = mpsc::channel(16);
    tokio::spawn(async move {
        loop {
            let seen = tokio::select! {
                seen = observer.changed() => seen,
                () = tell.closed() => return,
            };
            match seen {
                Ok(seen) if tell.send(word(&role, &seen)).await.is_ok() => {}
                _ => return,
            }
        }
    });
    let told = ReceiverStream::new(told).map(|word| {
        // A value is JSON.
        Ok(Event::default().json_data(word).unwrap_or_default())
    });
    Ok(Sse::new(told).keep_alive(KeepAlive::default()))
}

/// Whom a role is to go to.
#[derive(Deserialize)]
struct Successor {
    to: Option<String>,
}

/// Asks whoever leads in a role to give it up.
async fn ask_to_yield(
    State(member): State<Arc<Member>>,
    Path(role): Path<String>,
    Query(Successor { to }): Query<Successor>,
) -> Result<StatusCode, SessionError> {
    member.ask_to_yield(&role, to.as_deref())?;
    Ok(StatusCode::ACCEPTED)
}

/// A role that is stood for.
#[derive(Deserialize)]
struct Stand {
    role: String,
    #[serde(default)]
    owner: String,
    #[serde(default)]
    priority: i32,
    #[serde(default)]
    value: String,
    /// How long to wait, in milliseconds; for ever if nothing is said.
    wait_ms: Option<u64>,
}

async fn campaign(
    State(sessions): State<Arc<Sessions>>,
    Path(session): Path<u64>,
    Json(Stand { role, owner, priority, value, wait_ms }): Json<Stand>,
) -> Result<impl IntoResponse, SessionError> {
    let wait = wait_ms.map(Duration::from_millis);
    let standing = Standing { role, owner, priority, value, wait };
    let granted = sessions.campaign(session, standing).await?;
    let left = u64::try_from(granted.left.as_millis()).unwrap_or(u64::MAX);
    let said = json!({ "term": granted.fence, "grant": granted.grant, "left_ms": left });
    Ok((StatusCode::CREATED, Json(said)))
}

async fn check(
    State(sessions): State<Arc<Sessions>>,
    Path((session, role)): Path<(u64, String)>,
) -> Result<Json<Value>, SessionError> {
    let left = sessions.check_role(session, &role)?;
    let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    Ok(Json(json!({ "left_ms": left })))
}

async fn resign(
    State(sessions): State<Arc<Sessions>>,
    Path((session, role)): Path<(u64, String)>,
    Query(Successor { to }): Query<Successor>,
) -> Result<StatusCode, SessionError> {
    sessions.resign(session, &role, to.as_deref())?;
    Ok(StatusCode::NO_CONTENT)
}

/// By whom the leader is asked.
#[derive(Deserialize)]
struct By {
    /// Also by better candidates, not only by whoever asks for it.
    #[serde(default)]
    better: bool,
}

/// Answers when a leader is asked to give its role up.
async fn asked(
    State(sessions): State<Arc<Sessions>>,
    Path((session, role)): Path<(u64, String)>,
    Query(By { better }): Query<By>,
) -> Result<Json<Value>, SessionError> {
    let why = match sessions.asked(session, &role, better).await? {
        Asked::Better(priority) => json!({ "why": "better", "priority": priority }),
        Asked::Wanted => json!({ "why": "wanted" }),
    };
    Ok(Json(why))
}
