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
use quorate_client::http::{from_base64, no_text};
use quorate_member::{Asked, LockError, Member, Party, ROLES, Seen};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use crate::sessions::{SessionError, Sessions, Standing, Which, millis};

/// What can be asked of an agent about roles.
pub(crate) fn router(member: Arc<Member>, sessions: Arc<Sessions>) -> Router {
    let sessions = Router::new()
        .route("/v1/sessions/{session}/roles", post(campaign))
        .route("/v1/sessions/{session}/roles/{role}", get(check).delete(resign))
        .route("/v1/sessions/{session}/roles/{role}/asked", get(asked))
        .route("/v1/sessions/{session}/roles/{role}/confirm", post(confirm))
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
        let mut said = json!({
            "term": leader.term.to_string(),
            "member": leader.member,
            "value": String::from_utf8_lossy(&leader.value),
        });
        if let Some(bytes) = no_text(&leader.value) {
            said["value_base64"] = bytes.into();
        }
        said
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
    /// The value instead, if it is no text.
    value_base64: Option<String>,
    /// Which task of the client it is for, if that has several at a time that want one.
    #[serde(default)]
    task: u32,
    /// How long to wait, in milliseconds; for ever if nothing is said, not at all if that is 0.
    wait_ms: Option<u64>,
}

async fn campaign(
    State(sessions): State<Arc<Sessions>>,
    Path(session): Path<u64>,
    Json(stand): Json<Stand>,
) -> Result<impl IntoResponse, SessionError> {
    let Stand { role, owner, priority, value, value_base64, task, wait_ms } = stand;
    let value = match value_base64 {
        None => value.into_bytes(),
        Some(text) => from_base64(&text)
            .ok_or_else(|| LockError::Refused("value_base64 is not base64".into()))?,
    };
    let wait = wait_ms.map(Duration::from_millis);
    let standing = Standing { role, owner, priority, value, task, wait };
    let granted = sessions.campaign(session, standing).await?;
    let left = millis(granted.left);
    let said = json!({ "term": granted.fence, "grant": granted.grant, "left_ms": left });
    Ok((StatusCode::CREATED, Json(said)))
}

/// Which of the leaderships in that role, if the session may have had several.
#[derive(Deserialize)]
struct More {
    grant: Option<u64>,
    task: Option<u32>,
    /// Whom the role is to go to.
    to: Option<String>,
    /// Asked also by better candidates, not only by whoever asks for it.
    #[serde(default)]
    better: bool,
}

impl More {
    fn of(&self, role: String) -> Which {
        Which { name: role, space: None, grant: self.grant, task: self.task }
    }
}

async fn check(
    State(sessions): State<Arc<Sessions>>,
    Path((session, role)): Path<(u64, String)>,
    Query(more): Query<More>,
) -> Result<Json<Value>, SessionError> {
    let left = sessions.check_role(session, &more.of(role))?;
    Ok(Json(json!({ "left_ms": millis(left) })))
}

async fn confirm(
    State(sessions): State<Arc<Sessions>>,
    Path((session, role)): Path<(u64, String)>,
    Query(more): Query<More>,
) -> Result<Json<Value>, SessionError> {
    let left = sessions.confirm_role(session, &more.of(role)).await?;
    Ok(Json(json!({ "left_ms": millis(left) })))
}

async fn resign(
    State(sessions): State<Arc<Sessions>>,
    Path((session, role)): Path<(u64, String)>,
    Query(more): Query<More>,
) -> Result<StatusCode, SessionError> {
    sessions.resign(session, &more.of(role), more.to.as_deref())?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers when a leader is asked to give its role up.
async fn asked(
    State(sessions): State<Arc<Sessions>>,
    Path((session, role)): Path<(u64, String)>,
    Query(more): Query<More>,
) -> Result<Json<Value>, SessionError> {
    let why = match sessions.asked(session, &more.of(role), more.better).await? {
        Asked::Better(priority) => json!({ "why": "better", "priority": priority }),
        Asked::Wanted => json!({ "why": "wanted" }),
    };
    Ok(Json(why))
}
