//! Groups for programs beside an agent: what they send goes out by it, and what it is told they can follow.
//!
//! The agent is in a group as long as somebody follows it, or has sent to it a moment ago.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{BufRead as _, Write as _};
use std::path::Path as FilePath;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use clap::{Args, Subcommand, ValueEnum};
use hyper::Method;
use quorate_client::http::no_text;
use quorate_member::{Delivery, Group, GroupError, Member, Order, Sender};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{Mutex as AsyncMutex, broadcast};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::BroadcastStream;

use crate::Failure;
use crate::client::{self, Where};

/// Whoever follows may be so many lines behind; then it is told that it missed some.
const BEHIND: usize = 4_096;
/// An agent stays in a group for so long after the last who used it.
const LINGER: Duration = Duration::from_secs(10);
/// Groups that an agent is in for others.
const ROOMS_MAX: usize = 256;

/// What is told in a group, as a line of JSON.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(untagged)]
pub(crate) enum Line {
    /// A view begins.
    View { view: String, members: Vec<String> },
    /// A message; bytes that are no text are shown as such, and come as they are in another form.
    Message {
        from: String,
        order: String,
        text: String,
        /// Was it sent by way of this agent?
        #[serde(default)]
        own: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base64: Option<String>,
    },
}

/// The groups that an agent is in for others.
pub(crate) struct Rooms {
    member: Arc<Member>,
    rooms: Mutex<BTreeMap<String, Arc<AsyncMutex<Option<Room>>>>>,
}

/// A group that an agent is in.
#[derive(Clone)]
struct Room {
    sender: Sender,
    told: Arc<Told>,
    /// Everybody who uses it has one of these.
    users: Arc<()>,
}

/// What is told in a group.
struct Told {
    lines: broadcast::Sender<Line>,
    /// The view that was told last. Whoever tells or begins to follow has it locked.
    view: Mutex<Option<Line>>,
}

impl Told {
    fn new() -> Arc<Self> {
        let (lines, _) = broadcast::channel(BEHIND);
        Arc::new(Self { lines, view: Mutex::default() })
    }

    fn view(&self) -> MutexGuard<'_, Option<Line>> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all who follow.
    fn tell(&self, line: Line) {
        let mut view = self.view();
        if let Line::View { .. } = line {
            *view = Some(line.clone());
        }
        // Nobody may be there to hear it.
        let _ = self.lines.send(line);
    }

    /// The view, if it was told already, and all that is told after it.
    fn follow(&self) -> (Option<Line>, broadcast::Receiver<Line>) {
        let view = self.view();
        (view.clone(), self.lines.subscribe())
    }
}

impl Rooms {
    pub(crate) fn new(member: Arc<Member>) -> Arc<Self> {
        Arc::new(Self { member, rooms: Mutex::default() })
    }

    fn rooms(&self) -> MutexGuard<'_, BTreeMap<String, Arc<AsyncMutex<Option<Room>>>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The group of this name, which is joined if the agent is not in it.
    async fn enter(self: &Arc<Self>, name: &str) -> Result<Room, GroupError> {
        let place = {
            let mut rooms = self.rooms();
            if rooms.len() >= ROOMS_MAX && !rooms.contains_key(name) {
                return Err(GroupError::Full);
            }
            Arc::clone(rooms.entry(name.to_owned()).or_default())
        };
        let mut known = place.lock().await;
        if let Some(room) = &*known {
            return Ok(room.clone());
        }
        let group = self.member.group(name).await?;
        let told = Told::new();
        let users = Arc::new(());
        let room = Room { sender: group.sender(), told: Arc::clone(&told), users };
        *known = Some(room.clone());
        let (rooms, name, place) = (Arc::clone(self), name.to_owned(), Arc::clone(&place));
        tokio::spawn(async move { rooms.attend(name, group, told, place).await });
        Ok(room)
    }

    /// Passes on what is told, until nobody has used it for a while or the group is over.
    async fn attend(
        &self,
        name: String,
        mut group: Group,
        all: Arc<Told>,
        place: Arc<AsyncMutex<Option<Room>>>,
    ) {
        let mut room = loop {
            let told = tokio::time::timeout(LINGER, group.next()).await;
            let unused = |room: &Option<Room>| {
                room.as_ref().is_none_or(|room| Arc::strong_count(&room.users) == 1)
            };
            match told {
                Ok(Ok(delivery)) => {
                    if let Some(line) = line(&delivery) {
                        all.tell(line);
                    }
                }
                Ok(Err(_)) => break place.lock().await,
                Err(_) => {
                    let room = place.lock().await;
                    if unused(&room) {
                        break room;
                    }
                }
            }
        };
        *room = None;
        // Whoever follows has heard all that there is.
        drop(all);
        // Who comes meanwhile waits: it can be joined again when it is left.
        group.leave().await;
        drop(room);
        let mut rooms = self.rooms();
        // Nobody came in meanwhile: this one and the table have it.
        if rooms.get(&name).is_some_and(|known| Arc::strong_count(known) <= 2) {
            rooms.remove(&name);
        }
    }
}

fn line(delivery: &Delivery) -> Option<Line> {
    match delivery {
        Delivery::View(view) => Some(Line::View {
            view: format!("{}:{}", view.id.0, view.id.1),
            members: view.members.iter().map(|name| name.as_ref().to_owned()).collect(),
        }),
        Delivery::Message(message) => Some(Line::Message {
            from: message.sender().to_owned(),
            order: message.order().name().to_owned(),
            text: String::from_utf8_lossy(message.bytes()).into_owned(),
            own: message.is_own(),
            base64: no_text(message.bytes()),
        }),
        Delivery::State(_) | Delivery::Snapshot(_) => None,
    }
}

/// What can be asked of an agent about groups.
pub(crate) fn router(member: Arc<Member>) -> Router {
    Router::new().route("/v1/groups/{name}", get(tail).post(send)).with_state(Rooms::new(member))
}

/// Why not, as a code and a sentence.
struct Refused(GroupError);

impl From<GroupError> for Refused {
    fn from(error: GroupError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (code, word) = match &self.0 {
            GroupError::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, "too long"),
            GroupError::Full => (StatusCode::TOO_MANY_REQUESTS, "full"),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "not primary"),
        };
        (code, Json(json!({ "error": word, "sentence": self.0.to_string() }))).into_response()
    }
}

/// In what order.
#[derive(Deserialize)]
struct Manner {
    #[serde(default)]
    order: OrderName,
}

async fn send(
    State(rooms): State<Arc<Rooms>>,
    Path(name): Path<String>,
    Query(Manner { order }): Query<Manner>,
    body: Bytes,
) -> Result<StatusCode, Refused> {
    let room = rooms.enter(&name).await?;
    room.sender.send(&body, order.into()).await?;
    Ok(StatusCode::ACCEPTED)
}

/// The view of a group, and everything that is told in it from now on, as server-sent events.
async fn tail(
    State(rooms): State<Arc<Rooms>>,
    Path(name): Path<String>,
) -> Result<impl IntoResponse, Refused> {
    let Room { told, users, .. } = rooms.enter(&name).await?;
    let (view, lines) = told.follow();
    // Who is too far behind is cut off: a gap would not be seen.
    let lines = BroadcastStream::new(lines).map_while(Result::ok);
    let lines = tokio_stream::iter(view).chain(lines).map(move |line| {
        let _ = &users;
        Ok::<_, Infallible>(Event::default().json_data(&line).unwrap_or_default())
    });
    Ok(Sse::new(lines).keep_alive(KeepAlive::default()))
}

// The command line

/// What to do with a group.
#[derive(Subcommand, Clone, Debug)]
pub enum GroupTask {
    /// Send a message to a group, or every line of the input
    Send(SendArguments),
    /// Show what is told in a group, from now on
    Tail(TailArguments),
}

/// What is sent.
#[derive(Args, Clone, Debug)]
pub struct SendArguments {
    /// The group's name
    name: String,
    /// In what order it is delivered
    #[arg(long, value_enum, default_value_t)]
    order: OrderName,
    /// The message; every line of the input if there is none
    text: Option<String>,
    #[command(flatten)]
    at: Where,
}

/// What is shown, and how.
#[derive(Args, Clone, Debug)]
pub struct TailArguments {
    /// The group's name
    name: String,
    /// For programs: a line of JSON each
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: Where,
}

/// The order of a message, by its name.
#[derive(ValueEnum, Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OrderName {
    /// After what its sender sent before
    Fifo,
    /// And after what its sender had delivered
    Causal,
    /// And everywhere in the same place
    #[default]
    Total,
    /// And nowhere before all have it
    Uniform,
}

impl From<OrderName> for Order {
    fn from(order: OrderName) -> Self {
        match order {
            OrderName::Fifo => Self::Fifo,
            OrderName::Causal => Self::Causal,
            OrderName::Total => Self::Total,
            OrderName::Uniform => Self::Uniform,
        }
    }
}

/// Does something with a group.
///
/// # Errors
/// A sentence, and the exit code that goes with it.
pub(crate) async fn run(task: GroupTask) -> Result<(), Failure> {
    match task {
        GroupTask::Send(SendArguments { name, order, text, at }) => {
            let socket = at.find()?;
            let path = path(&name, order)?;
            if let Some(text) = text {
                return post(&socket, &path, text).await;
            }
            for line in std::io::stdin().lock().lines() {
                post(&socket, &path, line.map_err(Failure::input)?).await?;
            }
            Ok(())
        }
        GroupTask::Tail(TailArguments { name, json, at }) => {
            let socket = at.find()?;
            let path = format!("/v1/groups/{}", checked(&name)?);
            client::follow(&socket, &path, |line: Line| show(&line, json)).await
        }
    }
}

fn path(name: &str, order: OrderName) -> Result<String, Failure> {
    Ok(format!("/v1/groups/{}?order={}", checked(name)?, Order::from(order).name()))
}

/// A name that can stand in a path.
fn checked(name: &str) -> Result<&str, Failure> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !name.is_empty() && name.len() <= 255 && name.bytes().all(plain) {
        Ok(name)
    } else {
        Err(Failure::input("a group's name has letters, digits, - _ and . only, 255 at most"))
    }
}

async fn post(socket: &FilePath, path: &str, text: String) -> Result<(), Failure> {
    let (status, said) = client::call_with(socket, Method::POST, path, text.into_bytes()).await?;
    if status.is_success() {
        return Ok(());
    }
    let sentence = said.get("sentence").and_then(|it| it.as_str()).unwrap_or("no reason was given");
    Err(Failure::broken(format!("the message was not sent: {sentence}")))
}

fn show(line: &Line, json: bool) {
    let text = match line {
        line if json => serde_json::to_string(line).unwrap_or_default(),
        Line::View { view, members } => format!("* view {view}: {}", members.join(", ")),
        Line::Message { from, text, .. } => format!("{from}: {text}"),
    };
    // Who reads it may have gone away: then there is nobody to tell.
    if writeln!(std::io::stdout().lock(), "{text}").is_err() {
        std::process::exit(0);
    }
}
