//! The lab page over a running cluster: its files, what happens as it happens, who holds which lock, and who
//! leads in which role.
//!
//! Wherever it is served the page asks for the same, below its own address: `live/feed` (server-sent
//! events), `live/locks` and `live/roles`. The demonstration of `quorate dev` has orders besides (`dev/demo.rs`).

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, put};
use futures_core::Stream;
use quorate_member::{Member, Status};
use quorate_site::{Asset, POLICY};
use quorate_transport::Name;
use serde_json::{Value, json};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::{BroadcastStream, WatchStream};

use crate::http;

/// What a page is served over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Over {
    /// One agent, which only watches.
    Agent,
    /// The cluster of `quorate dev`, whose members may be killed.
    Demo,
}

/// The files of the page, below a path.
pub(crate) fn files(path: &str, over: Over) -> Router {
    let file = move |name: Option<Path<String>>, headers: HeaderMap| async move {
        respond(&name.map_or_else(String::new, |Path(name)| name), over, &headers)
    };
    Router::new()
        .route(&format!("{path}/"), get(file))
        .route(&format!("{path}/{{file}}"), get(file))
        .layer(from_fn(local_only))
}

/// The page over this agent.
pub(crate) fn router(member: Arc<Member>) -> Router {
    Router::new()
        .route("/lab/live/feed", get(feed))
        .route("/lab/live/locks", get(locks))
        .route("/lab/live/roles", get(roles))
        .layer(from_fn(local_only))
        .with_state(member)
        .merge(files("/lab", Over::Agent))
}

/// What happens to this member, for whoever puts the stories of several together.
pub(crate) fn watching(member: Arc<Member>) -> Router {
    Router::new().route("/v1/watch", get(feed)).with_state(member)
}

/// Links that can be cut at this end: for demonstrations only.
pub(crate) fn faults(member: Arc<Member>) -> Router {
    Router::new().route("/v1/cuts/{name}", put(sever).delete(heal)).with_state(member)
}

async fn sever(member: State<Arc<Member>>, name: Path<String>) -> Response {
    cut(member, name, true)
}

async fn heal(member: State<Arc<Member>>, name: Path<String>) -> Response {
    cut(member, name, false)
}

fn cut(State(member): State<Arc<Member>>, Path(name): Path<String>, cut: bool) -> Response {
    match name.parse::<Name>() {
        Ok(name) => {
            member.cut(name, cut);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

/// A page elsewhere may know the address of this machine by a name of its own, and would be let read then:
/// who asks has to say a name of loopback.
pub(crate) async fn local_only(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    if host.is_some_and(is_local) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "ask by a loopback address, such as 127.0.0.1\n").into_response()
}

fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    ["127.0.0.1", "localhost", "[::1]"].contains(&name)
}

fn respond(name: &str, over: Over, headers: &HeaderMap) -> Response {
    let Some(asset) = Asset::at(&format!("/{name}")) else {
        return (StatusCode::NOT_FOUND, "there is no such file\n").into_response();
    };
    let guard = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_TYPE, asset.kind),
    ];
    let known = headers.get(header::IF_NONE_MATCH).and_then(|tag| tag.to_str().ok());
    let accepts = headers.get(header::ACCEPT_ENCODING).and_then(|it| it.to_str().ok());
    let unpacks = accepts.is_some_and(|list| list.split(',').any(|one| one.trim() == "br"));
    if asset.name == "index.html" {
        return match asset.plain() {
            Ok(page) => (guard, told(&String::from_utf8_lossy(&page), over)).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        };
    }
    let tag = [(header::ETAG, asset.tag()), (header::VARY, "accept-encoding".to_owned())];
    if known == Some(&*tag[0].1) {
        return (StatusCode::NOT_MODIFIED, guard, tag).into_response();
    }
    if asset.is_packed && unpacks {
        let packed = [(header::CONTENT_ENCODING, "br")];
        return (guard, tag, packed, asset.bytes).into_response();
    }
    match asset.plain() {
        Ok(plain) => (guard, tag, plain.into_owned()).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The page, told what it is served over.
fn told(page: &str, over: Over) -> String {
    let word = match over {
        Over::Agent => "agent",
        Over::Demo => "demo",
    };
    page.replacen("<head>", &format!("<head><meta name=\"live\" content=\"{word}\">"), 1)
}

/// Facts, a sample of messages, and every change of the status.
async fn feed(
    State(member): State<Arc<Member>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    // Who is too slow misses something, and goes on.
    let facts = BroadcastStream::new(member.watch()).filter_map(Result::ok);
    let facts = facts.map(|told| serde_json::to_string(&*told).unwrap_or_default());
    let status = WatchStream::new(member.status()).map(|status| stamped(&status).to_string());
    let all = status.merge(facts).map(|text| Ok(Event::default().data(text)));
    Sse::new(all).keep_alive(KeepAlive::default())
}

/// A status, with the time of the kernel's clock and without what facts say better.
fn stamped(status: &Status) -> Value {
    let status = Status { events: Vec::new(), ..status.clone() };
    json!({ "is": "status", "t": quorate_transport::reading().0, "status": status })
}

/// Who holds what, and who waits; nothing if that cannot be said now.
async fn locks(member: State<Arc<Member>>) -> Json<Value> {
    let known = http::locks(member).await.ok();
    Json(known.and_then(|Json(locks)| serde_json::to_value(locks).ok()).unwrap_or_default())
}

/// Who leads where, and who stands; nothing if that cannot be said now.
async fn roles(member: State<Arc<Member>>) -> Json<Value> {
    let known = crate::roles::roles(member).await.ok();
    Json(known.and_then(|Json(roles)| serde_json::to_value(roles).ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_loopback_are_answered() {
        for good in ["127.0.0.1", "127.0.0.1:80", "localhost:9", "[::1]:7", "[::1]"] {
            assert!(is_local(good), "{good}");
        }
        for bad in ["", "evil.example", "127.0.0.1.evil.example:80", "10.0.0.1:80", "localhost.x"] {
            assert!(!is_local(bad), "{bad}");
        }
    }

    #[test]
    fn the_page_knows_what_it_is_served_over() {
        let page = Asset::at("/").unwrap().plain().unwrap();
        let page = told(&String::from_utf8_lossy(&page), Over::Demo);
        assert!(page.contains("<meta name=\"live\" content=\"demo\">"));
    }

    #[test]
    fn files_are_packed_for_whom_can_unpack_and_sent_once() {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, "gzip, br".parse().unwrap());
        let answer = respond("lab.js", Over::Agent, &headers);
        assert_eq!(answer.headers()[header::CONTENT_ENCODING], "br");
        headers.insert(header::IF_NONE_MATCH, answer.headers()[header::ETAG].clone());
        assert_eq!(respond("lab.js", Over::Agent, &headers).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(respond("nothing", Over::Agent, &headers).status(), StatusCode::NOT_FOUND);
    }
}
