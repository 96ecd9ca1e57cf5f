//! What whoever runs an agent asks of it: metrics, probes, events, a drain, a diagnosis and a backup.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json};
use axum::routing::{get, post};
use quorate_member::{Member, Note, Spread, Standing, Status};
use quorate_transport::Security;
use serde::{Deserialize, Serialize};
use tracing::info;

use crate::metrics::{self, Observed};
use crate::sessions::Sessions;

/// An agent, as whoever runs it sees it.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) member: Arc<Member>,
    pub(crate) sessions: Arc<Sessions>,
    /// Where it keeps what it must not forget.
    pub(crate) data: PathBuf,
    pub(crate) security: Security,
}

/// What can be asked by anybody who may look: on loopback, too.
pub(crate) fn looks(desk: Desk) -> Router {
    Router::new()
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/v1/events", get(events))
        .with_state(desk)
}

/// What only the user of the agent may ask: on its socket.
pub(crate) fn deeds(desk: Desk) -> Router {
    Router::new()
        .route("/v1/drain", post(drain))
        .route("/v1/diagnosis", get(diagnosis))
        .route("/v1/backup", get(backup))
        .with_state(desk)
}

/// Does it take locks; and the words for why not.
fn readiness(status: &Status, draining: bool) -> Result<(), String> {
    let authority = &status.authority;
    if draining {
        return Err("draining".to_owned());
    }
    if status.standing != Standing::Member {
        return Err(status.standing.as_str().to_owned());
    }
    // A seed whose disk listens only would be missed as a voter if another one ended now.
    if authority.kind == "raft" && !authority.voters.contains(&status.name) {
        return Err("its disk does not vote yet".to_owned());
    }
    Ok(())
}

/// 200 if it is a member whose lease is renewed and, of a seed, whose disk votes; else 503 with the words
/// for what is missing.
async fn ready(State(desk): State<Desk>) -> impl IntoResponse {
    let readiness = readiness(&desk.member.status().borrow(), desk.sessions.is_draining());
    match readiness {
        Ok(()) => (StatusCode::OK, "member\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

async fn metrics(State(desk): State<Desk>) -> impl IntoResponse {
    let (status, draining) = (desk.member.status().borrow().clone(), desk.sessions.is_draining());
    let certificates = desk.certificates();
    let ends = certificates.into_iter().filter_map(|it| Some((it.file, it.ends?)));
    let text = metrics::text(&Observed {
        ready: readiness(&status, draining).is_ok(),
        status: &status,
        figures: &desk.member.figures(),
        counters: desk.member.stats().counters(),
        peers: desk.member.stats().peers(),
        left: desk.member.left(),
        sessions: desk.sessions.census(),
        draining,
        certificates: ends.collect(),
    });
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

async fn events(State(desk): State<Desk>) -> Json<Vec<Note>> {
    Json(desk.member.events())
}

/// How it is to be drained.
#[derive(Deserialize)]
struct Draining {
    /// How long those who hold something have, in milliseconds; for ever if nothing is said.
    limit_ms: Option<u64>,
}

async fn drain(
    State(desk): State<Desk>,
    Json(Draining { limit_ms }): Json<Draining>,
) -> impl IntoResponse {
    info!(?limit_ms, "is told to drain");
    desk.sessions.drain(limit_ms.map(Duration::from_millis));
    let (sessions, busy) = desk.sessions.census();
    (StatusCode::ACCEPTED, Json(serde_json::json!({ "sessions": sessions, "busy": busy })))
}

/// A file with a certificate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Certificate {
    pub(crate) file: String,
    /// When it ends, in seconds since 1970.
    pub(crate) ends: Option<u64>,
    /// How many days are left; none if it is over or cannot be read.
    pub(crate) days: Option<u64>,
    /// What is wrong with it.
    pub(crate) wrong: Option<String>,
}

/// What only the agent itself can look at.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Diagnosis {
    pub(crate) version: String,
    pub(crate) data: PathBuf,
    /// What the file system has left, in bytes.
    pub(crate) free: Option<u64>,
    pub(crate) certificates: Vec<Certificate>,
    /// Are members told from strangers?
    pub(crate) tls: bool,
    pub(crate) disk: Option<Times>,
    pub(crate) slack: Option<Times>,
    pub(crate) leases_lost: u64,
    pub(crate) sessions: usize,
    pub(crate) busy: usize,
    pub(crate) draining: bool,
}

/// How long something takes, in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Times {
    pub(crate) count: u64,
    pub(crate) p1_us: u64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) longest_us: u64,
}

impl Times {
    fn of(spread: &Spread) -> Option<Self> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let at = |percent| spread.percentile(percent).map(micros);
        Some(Self {
            count: spread.total(),
            p1_us: at(1)?,
            p50_us: at(50)?,
            p99_us: at(99)?,
            longest_us: micros(spread.longest),
        })
    }
}

async fn diagnosis(State(desk): State<Desk>) -> Json<Diagnosis> {
    let figures = desk.member.figures();
    let (sessions, busy) = desk.sessions.census();
    let free = rustix::fs::statvfs(&desk.data).ok();
    Json(Diagnosis {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        free: free.map(|it| it.f_bavail.saturating_mul(it.f_frsize)),
        certificates: desk.certificates(),
        tls: matches!(desk.security, Security::Tls(_)),
        disk: figures.syncs.as_ref().and_then(Times::of),
        slack: Times::of(&figures.slack),
        leases_lost: figures.leases_lost,
        sessions,
        busy,
        draining: desk.sessions.is_draining(),
        data: desk.data,
    })
}

async fn backup(State(desk): State<Desk>) -> axum::response::Response {
    match desk.member.backup() {
        Some(backup) => Json(backup).into_response(),
        None => {
            let sentence = "it belongs to no cluster yet: there is nothing to keep";
            let said = serde_json::json!({ "error": "nothing", "sentence": sentence });
            (StatusCode::SERVICE_UNAVAILABLE, Json(said)).into_response()
        }
    }
}

impl Desk {
    /// The certificates that it was given, as they are now.
    fn certificates(&self) -> Vec<Certificate> {
        let Security::Tls(credentials) = &self.security else { return Vec::new() };
        let look = |path: &PathBuf| {
            let file = path.display().to_string();
            match quorate_transport::tls::ends(path) {
                Ok(at) => {
                    let ends = at.duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
                    let days = quorate_transport::tls::days_left(path).ok().flatten();
                    Certificate { file, ends: Some(ends), days, wrong: None }
                }
                Err(error) => {
                    Certificate { file, ends: None, days: None, wrong: Some(error.to_string()) }
                }
            }
        };
        [&credentials.ca, &credentials.certificate].map(look).into()
    }
}

#[cfg(test)]
mod tests {
    use quorate_member::AuthorityStatus;

    use super::*;

    #[test]
    fn a_seed_is_ready_when_its_disk_votes() {
        let authority = |kind: &str, voters: &[&str]| AuthorityStatus {
            kind: kind.into(),
            voters: voters.iter().map(|it| (*it).to_owned()).collect(),
            ..AuthorityStatus::default()
        };
        let status = |standing, authority| Status {
            name: "b".into(),
            standing,
            authority,
            ..Status::default()
        };
        let votes = status(Standing::Member, authority("raft", &["a", "b"]));
        assert_eq!(readiness(&votes, false), Ok(()));
        assert_eq!(readiness(&votes, true), Err("draining".into()));
        let listens = status(Standing::Member, authority("raft", &["a"]));
        assert!(readiness(&listens, false).unwrap_err().contains("does not vote"));
        let client = status(Standing::Member, authority("remote", &["a"]));
        assert_eq!(readiness(&client, false), Ok(()));
        let late = status(Standing::Jeopardy, authority("raft", &["a", "b"]));
        assert_eq!(readiness(&late, false), Err("jeopardy".into()));
    }
}
