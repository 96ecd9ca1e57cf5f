//! HTTP: the same over the local socket and on loopback.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post, put};
use futures_core::Stream;
use quorate_member::{Back, LockError, Member, Party, ROLES, Standing, Status};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::WatchStream;
use tracing::warn;

use crate::sessions::{SessionError, Sessions, Wanted};

/// What can be asked of an agent.
pub(crate) fn router(member: Arc<Member>, sessions: Arc<Sessions>) -> Router {
    let roles = crate::roles::router(Arc::clone(&member), Arc::clone(&sessions));
    let sessions = Router::new()
        .route("/v1/sessions", post(open))
        .route("/v1/sessions/{session}", post(ping).delete(end))
        .route("/v1/sessions/{session}/locks", post(lock))
        .route("/v1/sessions/{session}/locks/{name}", get(check).delete(unlock))
        .route("/v1/sessions/{session}/children/{pid}", put(adopt))
        .with_state(sessions);
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/status/watch", get(watch_status))
        .route("/v1/locks", get(locks))
        .route("/v1/locks/{name}", axum::routing::delete(force))
        .route("/v1/openapi.json", get(openapi))
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .with_state(Arc::clone(&member))
        .merge(sessions)
        .merge(roles)
}

async fn status(State(member): State<Arc<Member>>) -> Json<Status> {
    Json(Status::clone(&member.status().borrow()))
}

/// Every change of the status, as server-sent events.
async fn watch_status(
    State(member): State<Arc<Member>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let told = WatchStream::new(member.status()).map(|status| {
        // A status can always be written as JSON.
        Ok(Event::default().json_data(&*status).unwrap_or_default())
    });
    Sse::new(told).keep_alive(KeepAlive::default())
}

/// How long all may take to say what they hold.
const CENSUS: Duration = Duration::from_secs(5);

/// Who holds a lock.
#[derive(Serialize)]
struct Holder {
    member: String,
    owner: String,
    mode: &'static str,
    fence: String,
}

/// Who waits for a lock.
#[derive(Clone, Serialize)]
struct Waiting {
    member: String,
    owner: String,
    mode: &'static str,
}

/// A lock that somebody holds or waits for.
#[derive(Serialize, Default)]
struct Lock {
    name: String,
    /// Of its first holder, if there is one.
    mode: Option<&'static str>,
    holder: Option<Waiting>,
    fence: Option<String>,
    /// All of them: several may share it.
    holders: Vec<Holder>,
    waiting: Vec<Waiting>,
}

/// Every lock of the cluster that somebody holds or waits for.
async fn locks(State(member): State<Arc<Member>>) -> Result<Json<Vec<Lock>>, SessionError> {
    let parties = member.locks().census(CENSUS).await?;
    let mut locks: BTreeMap<String, Lock> = BTreeMap::new();
    for Party { space, name, member, owner, mode, fence } in parties {
        if space == ROLES {
            continue;
        }
        let lock = locks.entry(name.clone()).or_insert_with(|| Lock { name, ..Lock::default() });
        match fence {
            Some(fence) => {
                let fence = fence.to_string();
                lock.mode.get_or_insert(mode);
                lock.fence.get_or_insert_with(|| fence.clone());
                let first = || Waiting { member: member.clone(), owner: owner.clone(), mode };
                lock.holder.get_or_insert_with(first);
                lock.holders.push(Holder { member, owner, mode, fence });
            }
            None => lock.waiting.push(Waiting { member, owner, mode }),
        }
    }
    Ok(Json(locks.into_values().collect()))
}

/// Takes a lock by force: its holder loses it, and nobody gets it before the holder's user has dropped it
/// or its time has passed.
async fn force(
    State(member): State<Arc<Member>>,
    Path(name): Path<String>,
) -> Result<Json<serde_json::Value>, SessionError> {
    warn!(lock = %name, "a lock is taken by force");
    let held = member.locks().revoke(&name, Back::Forced, CENSUS).await?;
    Ok(Json(json!({ "held": held })))
}

/// 200 if it is a member whose lease is renewed, else 503 with the word for what it is.
async fn ready(State(member): State<Arc<Member>>) -> impl IntoResponse {
    let standing = member.status().borrow().standing;
    let code = match standing {
        Standing::Member => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, format!("{}\n", standing.as_str()))
}

async fn openapi() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], include_str!("openapi.json"))
}

/// What went wrong, as a code and a sentence.
impl IntoResponse for SessionError {
    fn into_response(self) -> Response {
        let (code, word, sentence) = match self {
            Self::Gone => {
                (StatusCode::GONE, "gone", "there is no such session any more".to_owned())
            }
            Self::TooMany(what) => {
                (StatusCode::TOO_MANY_REQUESTS, "too many", format!("there are too many {what}"))
            }
            Self::Ttl => {
                let sentence = "a session may be silent for 300 ms to 300 s".to_owned();
                (StatusCode::BAD_REQUEST, "ttl", sentence)
            }
            Self::NotHeld => {
                (StatusCode::CONFLICT, "not held", "the session does not hold that".to_owned())
            }
            Self::Process(why) => (StatusCode::BAD_REQUEST, "process", why),
            Self::Lock(error) => {
                let (code, word) = match &error {
                    LockError::Timeout => (StatusCode::REQUEST_TIMEOUT, "timeout"),
                    LockError::Taken => (StatusCode::CONFLICT, "taken"),
                    LockError::AlreadyHeld => (StatusCode::CONFLICT, "already held"),
                    LockError::Deadlock(_) => (StatusCode::CONFLICT, "deadlock"),
                    LockError::NotPrimary | LockError::Excluded | LockError::Closed => {
                        (StatusCode::SERVICE_UNAVAILABLE, "not primary")
                    }
                    _ => (StatusCode::BAD_REQUEST, "refused"),
                };
                (code, word, error.to_string())
            }
        };
        (code, Json(json!({ "error": word, "sentence": sentence }))).into_response()
    }
}

/// A session to be.
#[derive(Deserialize)]
struct Opening {
    /// How long it may be silent, in milliseconds.
    ttl_ms: u64,
    /// Its process, if it is on this machine.
    pid: Option<u32>,
}

async fn open(
    State(sessions): State<Arc<Sessions>>,
    Json(Opening { ttl_ms, pid }): Json<Opening>,
) -> Result<impl IntoResponse, SessionError> {
    let session = sessions.open(Duration::from_millis(ttl_ms), pid)?;
    Ok((StatusCode::CREATED, Json(json!({ "session": session }))))
}

/// How long something may still be used, in milliseconds.
#[derive(Serialize)]
struct Left {
    left_ms: u64,
}

impl From<Duration> for Left {
    fn from(left: Duration) -> Self {
        Self { left_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX) }
    }
}

async fn ping(
    State(sessions): State<Arc<Sessions>>,
    Path(session): Path<u64>,
) -> Result<Json<Left>, SessionError> {
    sessions.ping(session).map(|left| Json(left.into()))
}

async fn end(
    State(sessions): State<Arc<Sessions>>,
    Path(session): Path<u64>,
) -> Result<StatusCode, SessionError> {
    sessions.end(session).map(|()| StatusCode::NO_CONTENT)
}

/// A lock that is wanted.
#[derive(Deserialize)]
struct Wish {
    name: String,
    #[serde(default)]
    owner: String,
    #[serde(default)]
    shared: bool,
    /// How long to wait, in milliseconds; for ever if nothing is said.
    wait_ms: Option<u64>,
}

async fn lock(
    State(sessions): State<Arc<Sessions>>,
    Path(session): Path<u64>,
    Json(Wish { name, owner, shared, wait_ms }): Json<Wish>,
) -> Result<impl IntoResponse, SessionError> {
    let wait = wait_ms.map(Duration::from_millis);
    let granted = sessions.lock(session, Wanted { name, owner, shared, wait }).await?;
    let Left { left_ms } = granted.left.into();
    Ok((StatusCode::CREATED, Json(json!({ "fence": granted.fence, "left_ms": left_ms }))))
}

async fn check(
    State(sessions): State<Arc<Sessions>>,
    Path((session, name)): Path<(u64, String)>,
) -> Result<Json<Left>, SessionError> {
    sessions.check(session, &name).map(|left| Json(left.into()))
}

async fn unlock(
    State(sessions): State<Arc<Sessions>>,
    Path((session, name)): Path<(u64, String)>,
) -> Result<StatusCode, SessionError> {
    sessions.unlock(session, &name).map(|()| StatusCode::NO_CONTENT)
}

async fn adopt(
    State(sessions): State<Arc<Sessions>>,
    Path((session, pid)): Path<(u64, u32)>,
) -> Result<StatusCode, SessionError> {
    sessions.adopt(session, pid).map(|()| StatusCode::NO_CONTENT)
}
