//! The demonstration: the lab page over the cluster of `quorate dev`, whose reader may kill, pause and
//! restart members and cut links.
//!
//! What members tell is put together here, by the kernel's clock that they share, and kept for a while: a
//! page that is opened later, or anew, sees what was. Orders come with a key that only the address of the
//! page has, so that no other page of the browser can give any.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use futures_core::Stream;
use hyper::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::BroadcastStream;

use super::{Cluster, Started};
use crate::lab::{self, Over};
use crate::{Failure, client};

/// So many facts are kept for pages that are opened later.
const KEPT: usize = 4096;
/// So much is kept for a page that is slow.
const BEHIND: usize = 4096;
/// How often members are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long it is waited before a member is listened to again.
const AGAIN: Duration = Duration::from_millis(100);
/// How long a member may take to say something.
const PATIENCE: Duration = Duration::from_secs(2);
/// Orders that wait, at most.
const ORDERS: usize = 16;
/// What orders have to come with.
const KEY: &str = "x-quorate-key";

/// What is done to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deed {
    Kill,
    Pause,
    Continue,
    Restart,
}

/// What is done to which member, and who wants to hear how it went.
type Order = (String, Deed, oneshot::Sender<Result<(), String>>);

/// The page, as the loop of `quorate dev` has it.
pub(super) struct Demo {
    page: String,
    stage: Arc<Stage>,
    orders: mpsc::Receiver<Order>,
}

/// What the handlers of the page have.
struct Stage {
    key: String,
    sockets: BTreeMap<String, PathBuf>,
    past: Mutex<Past>,
    tell: broadcast::Sender<Arc<str>>,
    orders: mpsc::Sender<Order>,
}

/// What a page is told that is opened now.
#[derive(Default)]
struct Past {
    facts: VecDeque<Arc<str>>,
    statuses: BTreeMap<String, Arc<str>>,
    /// Who may act, as it said last.
    acting: BTreeSet<String>,
    cuts: BTreeSet<(String, String)>,
    /// Name, process and state of every member.
    members: Vec<(String, u32, &'static str)>,
    /// The processes that were killed here.
    killed: BTreeSet<u32>,
}

impl Past {
    /// Who there is and which links are cut.
    fn demo(&self) -> Value {
        let member = |(name, pid, state): &(String, u32, &str)| json!({ "name": name, "pid": pid, "state": state });
        let members: Vec<Value> = self.members.iter().map(member).collect();
        let t = quorate_transport::reading().0;
        json!({ "is": "demo", "t": t, "members": members, "cuts": self.cuts })
    }
}

impl Demo {
    /// Serves the page, and listens to all members.
    pub(super) async fn start(port: u16, cluster: &Cluster) -> Result<Self, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let listener =
            listener.map_err(|error| Failure::input(format!("--lab={port}: {error}")))?;
        let address = listener.local_addr().map_err(Failure::broken)?;
        let key = format!("{:032x}", quorate_transport::nonce());
        let (orders, inbox) = mpsc::channel(ORDERS);
        let sockets = cluster.members.iter().map(|it| (it.name.clone(), it.socket.clone()));
        let stage = Arc::new(Stage {
            key,
            sockets: sockets.collect(),
            past: Mutex::default(),
            tell: broadcast::Sender::new(BEHIND),
            orders,
        });
        for name in stage.sockets.keys().cloned() {
            tokio::spawn(listen(Arc::clone(&stage), name));
        }
        let page = format!("http://{address}/#/live?key={}", stage.key);
        tokio::spawn(axum::serve(listener, router(&stage)).into_future());
        Ok(Self { page, stage, orders: inbox })
    }

    /// Its address, with the key.
    pub(super) fn page(&self) -> &str {
        &self.page
    }

    /// Waits for an order or a little while, and looks after the members.
    pub(super) async fn attend(&mut self, cluster: &mut Cluster) {
        let Self { stage, orders, .. } = self;
        tokio::select! {
            Some((name, deed, done)) = orders.recv() => {
                // Whoever asked may have gone.
                let _ = done.send(stage.act(cluster, &name, deed));
            }
            () = sleep(LOOK) => {}
        }
        stage.look(cluster);
    }
}

fn router(stage: &Arc<Stage>) -> Router {
    Router::new()
        .route("/live/feed", get(feed))
        .route("/live/locks", get(locks))
        .route("/live/roles", get(roles))
        .route("/live/members/{name}/{deed}", post(act))
        .route("/live/links/{one}/{other}/{deed}", post(link))
        .layer(from_fn(lab::local_only))
        .with_state(Arc::clone(stage))
        .merge(lab::files("", Over::Demo))
}

impl Stage {
    fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all pages something, and keeps what later ones have to know.
    fn tell(&self, told: &Value) {
        let text: Arc<str> = told.to_string().into();
        // Under the lock: whoever opens a page meanwhile gets it once.
        let mut past = self.past();
        match told["is"].as_str() {
            Some("status") => {
                let name = told["status"]["name"].as_str().unwrap_or_default();
                past.statuses.insert(name.to_owned(), Arc::clone(&text));
                match told["status"]["standing"].as_str() {
                    Some("member") => past.acting.insert(name.to_owned()),
                    _ => past.acting.remove(name),
                };
            }
            // There are many of them, and the next status says the same.
            Some("fact") if told["fact"] != "until" => {
                if past.facts.len() == KEPT {
                    past.facts.pop_front();
                }
                past.facts.push_back(Arc::clone(&text));
            }
            _ => {}
        }
        // Without pages there is nobody to be told.
        let _ = self.tell.send(text);
    }

    /// Something that was done to a member.
    fn fact(&self, fact: &str, rest: Value) {
        let t = quorate_transport::reading().0;
        let mut told = json!({ "is": "fact", "t": t, "member": "harness", "fact": fact });
        if let (Some(told), Value::Object(rest)) = (told.as_object_mut(), rest) {
            told.extend(rest);
        }
        self.tell(&told);
    }

    fn act(&self, cluster: &mut Cluster, name: &str, deed: Deed) -> Result<(), String> {
        let Cluster { members, plan, .. } = cluster;
        let member = members.iter_mut().find(|it| it.name == name);
        let member = member.ok_or_else(|| format!("there is no member {name}"))?;
        let pid = member.child.id();
        let whom = json!({ "whom": name, "pid": pid });
        match (deed, state(member)) {
            (Deed::Kill, "runs" | "paused") => {
                self.past().killed.insert(pid);
                self.fact("kill", whom);
                member.child.kill().map_err(|error| error.to_string())?;
                member.child.wait().map_err(|error| error.to_string())?;
            }
            (Deed::Pause, "runs") => {
                self.fact("stop", whom);
                signal(pid, Signal::STOP)?;
                member.paused = true;
            }
            (Deed::Continue, "paused") => {
                signal(pid, Signal::CONT)?;
                member.paused = false;
                self.fact("cont", whom);
            }
            (Deed::Restart, "gone") => {
                let (name, address) = (member.name.clone(), member.address.clone());
                let again = plan.start(name, (address, member.http.clone()), member.home.clone());
                *member = again.map_err(|error| error.sentence)?;
                self.fact("restart", json!({ "whom": member.name, "pid": member.child.id() }));
            }
            (_, state) => return Err(format!("{name} is {state}")),
        }
        Ok(())
    }

    /// Tells what has become of members.
    fn look(&self, cluster: &mut Cluster) {
        let now = |it: &mut Started| (it.name.clone(), it.child.id(), state(it));
        let members: Vec<_> = cluster.members.iter_mut().map(now).collect();
        let before = std::mem::replace(&mut self.past().members, members.clone());
        if before == members {
            return;
        }
        for (name, pid, state) in &members {
            let ran = before
                .iter()
                .any(|(was, old, state)| (was, old) == (name, pid) && *state != "gone");
            if ran && *state == "gone" && !self.past().killed.remove(pid) {
                self.fact("died", json!({ "whom": name, "pid": pid }));
            }
        }
        let demo = self.past().demo();
        self.tell(&demo);
    }

    /// Cuts a link at both ends, or heals it.
    fn cut(self: &Arc<Self>, one: &str, other: &str, cut: bool) -> Result<(), String> {
        for name in [one, other] {
            if !self.sockets.contains_key(name) {
                return Err(format!("there is no member {name}"));
            }
        }
        if one == other {
            return Err(format!("{one} has no link to itself"));
        }
        let ends = (one.min(other).to_owned(), one.max(other).to_owned());
        let changed = match cut {
            true => self.past().cuts.insert(ends.clone()),
            false => self.past().cuts.remove(&ends),
        };
        if !changed {
            return Ok(());
        }
        let (a, b) = &ends;
        let links = json!({ "links": [[a, b], [b, a]] });
        self.fact(if cut { "cut" } else { "mend" }, links);
        for (at, to) in [(a, b), (b, a)] {
            tokio::spawn(tell_cut(self.sockets[at].clone(), to.clone(), cut));
        }
        let demo = self.past().demo();
        self.tell(&demo);
        Ok(())
    }
}

fn signal(pid: u32, signal: Signal) -> Result<(), String> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("it has no process")?;
    kill_process(pid, signal).map_err(|error| error.to_string())
}

fn state(member: &mut Started) -> &'static str {
    match member.child.try_wait() {
        Ok(None) if member.paused => "paused",
        Ok(None) => "runs",
        _ => "gone",
    }
}

/// Tells a member that a link is cut at its end, or healed. One that does not run is told when it does.
async fn tell_cut(socket: PathBuf, to: String, cut: bool) {
    let method = if cut { Method::PUT } else { Method::DELETE };
    // One that stands still hears it when it goes on: what it answers is not waited for.
    let path = format!("/v1/cuts/{to}");
    let _ = timeout(PATIENCE, client::call(&socket, method, &path, None)).await;
}

/// Listens to a member for ever, whichever of its processes runs.
async fn listen(stage: Arc<Stage>, name: String) {
    let socket = stage.sockets[&name].clone();
    loop {
        let cuts = stage.past().cuts.clone();
        for (one, other) in cuts.iter().filter(|(one, other)| *one == name || *other == name) {
            let to = if *one == name { other } else { one };
            tell_cut(socket.clone(), to.clone(), true).await;
        }
        // Whatever ends it, the next process is listened to.
        let _ = client::follow::<Value>(&socket, "/v1/watch", |told| stage.tell(&told)).await;
        sleep(AGAIN).await;
    }
}

/// What was, and everything from now on.
async fn feed(
    State(stage): State<Arc<Stage>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (first, then) = {
        let past = stage.past();
        let first: Vec<Arc<str>> = [past.demo().to_string().into()]
            .into_iter()
            .chain(past.facts.iter().cloned())
            .chain(past.statuses.values().cloned())
            .collect();
        (first, stage.tell.subscribe())
    };
    let then = BroadcastStream::new(then).filter_map(Result::ok);
    let all = tokio_stream::iter(first).chain(then);
    Sse::new(all.map(|text| Ok(Event::default().data(&*text)))).keep_alive(KeepAlive::default())
}

async fn locks(State(stage): State<Arc<Stage>>) -> Json<Value> {
    asked(&stage, "/v1/locks").await
}

async fn roles(State(stage): State<Arc<Stage>>) -> Json<Value> {
    asked(&stage, "/v1/roles").await
}

/// A list, as the first member says that may act; nothing if none does.
async fn asked(stage: &Stage, path: &str) -> Json<Value> {
    let may_say = |name: &str| {
        let past = stage.past();
        let runs = past.members.iter().any(|(known, _, state)| known == name && *state == "runs");
        runs && past.acting.contains(name)
    };
    for (name, socket) in &stage.sockets {
        if !may_say(name) {
            continue;
        }
        let asked = timeout(PATIENCE, client::get::<Value>(socket, path));
        if let Ok(Ok(list)) = asked.await
            && list.is_array()
        {
            return Json(list);
        }
    }
    Json(Value::Null)
}

async fn act(
    State(stage): State<Arc<Stage>>,
    Path((name, deed)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let deed = match &*deed {
        "kill" => Deed::Kill,
        "pause" => Deed::Pause,
        "continue" => Deed::Continue,
        "restart" => Deed::Restart,
        _ => return (StatusCode::NOT_FOUND, "there is no such deed\n").into_response(),
    };
    if !may(&stage, &headers) {
        return forbidden();
    }
    let (done, result) = oneshot::channel();
    if stage.orders.send((name, deed, done)).await.is_err() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the cluster ends\n").into_response();
    }
    answer(result.await.unwrap_or_else(|_| Err("the cluster ends".to_owned())))
}

async fn link(
    State(stage): State<Arc<Stage>>,
    Path((one, other, deed)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Response {
    let cut = match &*deed {
        "cut" => true,
        "heal" => false,
        _ => return (StatusCode::NOT_FOUND, "there is no such deed\n").into_response(),
    };
    if !may(&stage, &headers) {
        return forbidden();
    }
    answer(stage.cut(&one, &other, cut))
}

fn may(stage: &Stage, headers: &HeaderMap) -> bool {
    headers.get(KEY).is_some_and(|key| key.as_bytes() == stage.key.as_bytes())
}

fn forbidden() -> Response {
    let why = "the key is missing: open the page by the address that quorate dev printed\n";
    (StatusCode::FORBIDDEN, why).into_response()
}

fn answer(result: Result<(), String>) -> Response {
    match result {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(why) => (StatusCode::CONFLICT, format!("{why}\n")).into_response(),
    }
}
