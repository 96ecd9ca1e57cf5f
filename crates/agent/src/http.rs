//! HTTP: the same over the local socket and on loopback.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{Extension, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post, put};
use axum::serve::IncomingStream;
use futures_core::Stream;
use quorate_member::{Back, LockError, Member, Namespace, Party, ROLES, SPACE, Status};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::UnixListener;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::WatchStream;
use tracing::warn;

use crate::sessions::{Granted, Heard, How, SessionError, Sessions, Wanted, Which, millis, word};

/// What can be asked of an agent.
pub(crate) fn router(member: Arc<Member>, sessions: Arc<Sessions>) -> Router {
    let roles = crate::roles::router(Arc::clone(&member), Arc::clone(&sessions));
    let sessions = Router::new()
        .route("/v1/sessions", post(open))
        .route("/v1/sessions/{session}", post(ping).delete(end))
        .route("/v1/sessions/{session}/locks", post(lock))
        .route("/v1/sessions/{session}/locks/{name}", get(check).delete(unlock))
        .route("/v1/sessions/{session}/locks/{name}/confirm", post(confirm))
        .route("/v1/sessions/{session}/children/{pid}", put(adopt))
        .with_state(sessions);
    let groups = crate::group::router(Arc::clone(&member));
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/status/watch", get(watch_status))
        .route("/v1/locks", get(locks))
        .route("/v1/locks/{name}", axum::routing::delete(take_back))
        .route("/v1/spaces", get(spaces))
        .route("/v1/spaces/{name}", put(define))
        .route("/v1/openapi.json", get(openapi))
        .with_state(member)
        .merge(sessions)
        .merge(roles)
        .merge(groups)
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
#[derive(Clone, Serialize)]
struct Holder {
    member: String,
    owner: String,
    /// For how long it has, in milliseconds.
    since_ms: u64,
    mode: &'static str,
    place: u32,
    fence: String,
}

/// Who waits for a lock.
#[derive(Clone, Serialize)]
struct Waiting {
    member: String,
    owner: String,
    /// For how long it has, in milliseconds.
    since_ms: u64,
    mode: &'static str,
}

/// A lock that somebody holds or waits for.
#[derive(Serialize, Default)]
pub(crate) struct Lock {
    name: String,
    /// How it is held; if nobody holds it, how it is wanted first.
    mode: Option<&'static str>,
    /// Who has held it the longest, and the fence of that grant; nobody if it is on its way.
    holder: Option<Holder>,
    fence: Option<String>,
    space: String,
    /// All who hold it: several may share it, or have a place each.
    holders: Vec<Holder>,
    /// Who waits for it, the one who has waited the longest first.
    waiting: Vec<Waiting>,
}

/// Every lock of the cluster that somebody holds or waits for.
pub(crate) async fn locks(
    State(member): State<Arc<Member>>,
) -> Result<Json<Vec<Lock>>, SessionError> {
    let mut parties = member.locks().census(CENSUS).await?;
    parties.retain(|party| party.space != ROLES);
    // Who has done so the longest comes first.
    parties.sort_by_key(|party| std::cmp::Reverse(party.since));
    let mut locks: BTreeMap<(String, String), Lock> = BTreeMap::new();
    for party in parties {
        let Party { space, name, member, owner, mode, place, fence, since } = party;
        let key = (name.clone(), space.clone());
        let lock = locks.entry(key).or_insert_with(|| Lock { name, space, ..Lock::default() });
        let since_ms = millis(since);
        match fence.map(|fence| fence.to_string()) {
            Some(fence) => {
                lock.holders.push(Holder { member, owner, since_ms, mode, place, fence });
            }
            None => lock.waiting.push(Waiting { member, owner, since_ms, mode }),
        }
    }
    for lock in locks.values_mut() {
        lock.holder = lock.holders.first().cloned();
        lock.fence = lock.holder.as_ref().map(|holder| holder.fence.clone());
        let wanted = lock.waiting.first().map(|it| it.mode);
        lock.mode = lock.holder.as_ref().map(|it| it.mode).or(wanted);
    }
    Ok(Json(locks.into_values().collect()))
}

/// How a lock is taken back.
#[derive(Deserialize)]
struct TakeBack {
    space: Option<String>,
    /// Only asked for.
    #[serde(default)]
    ask: bool,
}

/// Takes a lock by force: its holder loses it, and nobody gets it before the holder's user has dropped it
/// or its time has passed. Or only asks for it.
async fn take_back(
    State(member): State<Arc<Member>>,
    Path(name): Path<String>,
    Query(TakeBack { space, ask }): Query<TakeBack>,
) -> Result<Json<serde_json::Value>, SessionError> {
    let how = if ask { Back::Asked } else { Back::Forced };
    if !ask {
        warn!(lock = %name, "a lock is taken by force");
    }
    let space = space.as_deref().unwrap_or(SPACE);
    let held = member.locks().revoke_in(space, &name, how, CENSUS).await?;
    Ok(Json(json!({ "held": held })))
}

/// What the locks of a namespace are like.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Space {
    #[serde(default = "home")]
    algorithm: String,
    #[serde(default = "one")]
    permits: u32,
    #[serde(default)]
    lock_delay_ms: u64,
}

fn home() -> String {
    Namespace::default().algorithm
}

const fn one() -> u32 {
    1
}

/// All namespaces, by name.
async fn spaces(
    State(member): State<Arc<Member>>,
) -> Result<Json<BTreeMap<String, Space>>, SessionError> {
    let all = member.locks().spaces()?.into_iter().map(|(name, space)| {
        let Namespace { algorithm, permits, lock_delay } = space;
        (name, Space { algorithm, permits, lock_delay_ms: millis(lock_delay) })
    });
    Ok(Json(all.collect()))
}

/// Sees to it that there is such a namespace.
async fn define(
    State(member): State<Arc<Member>>,
    Path(name): Path<String>,
    Json(Space { algorithm, permits, lock_delay_ms }): Json<Space>,
) -> Result<StatusCode, SessionError> {
    let lock_delay = Duration::from_millis(lock_delay_ms);
    let namespace = Namespace { algorithm, permits, lock_delay };
    member.locks().define(&name, &namespace).await?;
    Ok(StatusCode::NO_CONTENT)
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
            Self::Draining => {
                let sentence = "the agent is about to end: ask another one".to_owned();
                (StatusCode::SERVICE_UNAVAILABLE, "draining", sentence)
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
            Self::Lost(why) => (StatusCode::CONFLICT, word(why), why.to_string()),
            Self::Process(why) => (StatusCode::BAD_REQUEST, "process", why),
            Self::Lock(LockError::Deadlock(circle)) => {
                let sentence = LockError::Deadlock(circle.clone()).to_string();
                let body = json!({ "error": "deadlock", "sentence": sentence, "circle": circle });
                return (StatusCode::CONFLICT, Json(body)).into_response();
            }
            Self::Lock(error) => {
                let (code, word) = match &error {
                    LockError::Timeout => (StatusCode::REQUEST_TIMEOUT, "timeout"),
                    LockError::Taken => (StatusCode::CONFLICT, "taken"),
                    LockError::AlreadyHeld => (StatusCode::CONFLICT, "already held"),
                    LockError::NotPrimary => (StatusCode::SERVICE_UNAVAILABLE, "not primary"),
                    LockError::Excluded => (StatusCode::SERVICE_UNAVAILABLE, "excluded"),
                    LockError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "closed"),
                    _ => (StatusCode::BAD_REQUEST, "refused"),
                };
                (code, word, error.to_string())
            }
        };
        (code, Json(json!({ "error": word, "sentence": sentence }))).into_response()
    }
}

/// The process at the other end of the local socket, as the kernel knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(Option<u32>);

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        let pid = stream.io().peer_cred().ok().and_then(|peer| peer.pid());
        Self(pid.and_then(|pid| u32::try_from(pid).ok()))
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
    peer: Option<Extension<ConnectInfo<Peer>>>,
    Json(Opening { ttl_ms, pid }): Json<Opening>,
) -> Result<impl IntoResponse, SessionError> {
    let peer = peer.and_then(|Extension(ConnectInfo(Peer(peer)))| peer);
    let (session, watched) = sessions.open(Duration::from_millis(ttl_ms), pid, peer)?;
    Ok((StatusCode::CREATED, Json(json!({ "session": session, "watched": watched }))))
}

/// How long something may still be used, in milliseconds.
#[derive(Serialize)]
struct Left {
    left_ms: u64,
}

impl From<Duration> for Left {
    fn from(left: Duration) -> Self {
        Self { left_ms: millis(left) }
    }
}

async fn ping(
    State(sessions): State<Arc<Sessions>>,
    Path(session): Path<u64>,
) -> Result<Json<Heard>, SessionError> {
    sessions.ping(session).map(Json)
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
    /// In which namespace, if not the usual one.
    space: Option<String>,
    /// Together with others who share it.
    #[serde(default)]
    shared: bool,
    /// One of so many places, or of however many there are if that is 0.
    permits: Option<u32>,
    /// Which task of the client it is for, if that has several at a time that want one.
    #[serde(default)]
    task: u32,
    /// How long to wait, in milliseconds; for ever if nothing is said, not at all if that is 0.
    wait_ms: Option<u64>,
}

async fn lock(
    State(sessions): State<Arc<Sessions>>,
    Path(session): Path<u64>,
    Json(wish): Json<Wish>,
) -> Result<impl IntoResponse, SessionError> {
    let Wish { name, owner, space, shared, permits, task, wait_ms } = wish;
    let how = match (shared, permits) {
        (false, None) => How::Exclusive,
        (true, None) => How::Shared,
        (false, Some(0)) => How::Permit,
        (false, Some(permits)) => How::Permits(permits),
        (true, Some(_)) => {
            let why = "a lock is shared or has permits, not both";
            return Err(LockError::Refused(why.into()).into());
        }
    };
    let wait = wait_ms.map(Duration::from_millis);
    let wanted = Wanted { name, owner, space, how, task, wait };
    let Granted { grant, place, fence, left } = sessions.lock(session, wanted).await?;
    let left_ms = millis(left);
    let said = json!({ "grant": grant, "place": place, "fence": fence, "left_ms": left_ms });
    Ok((StatusCode::CREATED, Json(said)))
}

/// Which of the locks of that name, if the session may have several.
#[derive(Deserialize)]
struct More {
    space: Option<String>,
    grant: Option<u64>,
    task: Option<u32>,
}

impl More {
    fn of(self, name: String) -> Which {
        let Self { space, grant, task } = self;
        Which { name, space, grant, task }
    }
}

async fn check(
    State(sessions): State<Arc<Sessions>>,
    Path((session, name)): Path<(u64, String)>,
    Query(more): Query<More>,
) -> Result<Json<Left>, SessionError> {
    sessions.check(session, &more.of(name)).map(|left| Json(left.into()))
}

async fn confirm(
    State(sessions): State<Arc<Sessions>>,
    Path((session, name)): Path<(u64, String)>,
    Query(more): Query<More>,
) -> Result<Json<Left>, SessionError> {
    sessions.confirm(session, &more.of(name)).await.map(|left| Json(left.into()))
}

async fn unlock(
    State(sessions): State<Arc<Sessions>>,
    Path((session, name)): Path<(u64, String)>,
    Query(more): Query<More>,
) -> Result<StatusCode, SessionError> {
    sessions.unlock(session, &more.of(name)).map(|()| StatusCode::NO_CONTENT)
}

async fn adopt(
    State(sessions): State<Arc<Sessions>>,
    Path((session, pid)): Path<(u64, u32)>,
) -> Result<StatusCode, SessionError> {
    sessions.adopt(session, pid).map(|()| StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    /// The routes as they stand in these files, each with one of its methods. What the page of the lab asks is
    /// its own business.
    fn served() -> BTreeSet<(String, String)> {
        let files = [
            include_str!("http.rs"),
            include_str!("operations.rs"),
            include_str!("lab.rs"),
            include_str!("roles.rs"),
            include_str!("group.rs"),
        ];
        files.into_iter().flat_map(routes).filter(|(path, _)| !path.starts_with("/lab/")).collect()
    }

    fn routes(file: &str) -> BTreeSet<(String, String)> {
        let text: String = file.split_whitespace().collect();
        let routes = text.split(".route(\"").skip(1).filter(|route| route.starts_with('/'));
        let methods = |route: &str| {
            let (path, rest) = route.split_once("\",").unwrap();
            let end = rest.find(".with_state").unwrap_or(rest.len());
            let named = ["get", "post", "put", "delete"].into_iter();
            let found = named.filter(|name| rest[..end].contains(&format!("{name}(")));
            found.map(|name| (path.to_owned(), name.to_owned())).collect::<Vec<_>>()
        };
        routes.flat_map(methods).collect()
    }

    fn document() -> Value {
        serde_json::from_str(include_str!("openapi.json")).unwrap()
    }

    #[test]
    fn the_document_names_what_is_served_and_nothing_else() {
        let document = document();
        let paths = document["paths"].as_object().unwrap().iter();
        let named = paths.flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (path.clone(), method.clone()))
        });
        let (named, served): (BTreeSet<_>, _) = (named.collect(), served());
        assert!(served.len() > 10, "{served:?}");
        assert_eq!(named, served);
    }

    #[test]
    fn the_document_refers_to_what_is_in_it_and_has_every_part_of_a_path() {
        let document = document();
        let text = document.to_string();
        for name in text.split("\"#").skip(1) {
            let name = name.split('"').next().unwrap();
            assert!(document.pointer(name).is_some_and(Value::is_object), "{name}");
        }
        // A parameter that several have stands in one place.
        let meant = |it: &Value| match it["$ref"].as_str() {
            Some(name) => document.pointer(&name[1..]).unwrap().clone(),
            None => it.clone(),
        };
        for (path, methods) in document["paths"].as_object().unwrap() {
            let parts: BTreeSet<&str> =
                path.split('{').skip(1).map(|part| part.split('}').next().unwrap()).collect();
            for (method, what) in methods.as_object().unwrap() {
                let list = what["parameters"].as_array().map_or(&[][..], Vec::as_slice);
                let list: Vec<Value> = list.iter().map(meant).collect();
                let named = list.iter().filter(|it| it["in"] == "path");
                let named: BTreeSet<_> = named.map(|it| it["name"].as_str().unwrap()).collect();
                assert_eq!(named, parts, "{method} {path}");
                assert!(what["responses"].is_object(), "{method} {path}");
            }
        }
    }
}
