//! `quorate lock NAME -- COMMAND`: a command that runs while a lock is held.
//!
//! The command is gone before anybody else can be granted the lock: this process ends it in time when the
//! agent cannot say any more that the lock is held, and the agent ends it when this process is gone.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::pin::pin;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use clap::{Args, ValueEnum};
use hyper::{Method, StatusCode};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, kill_process_group,
    set_parent_process_death_signal, waitpid,
};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::Failure;
use crate::client::{Where, call};
use crate::options::span;
use crate::sessions::LAST;

/// What a session may be silent, unless something else is asked for.
const TTL: Duration = Duration::from_millis(1_500);

/// An agent is not asked more often.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// The exit code of a lock that was not granted in time.
pub(crate) const NOT_ACQUIRED: u8 = 75;
/// The exit code of a lock that was lost.
const LOST: u8 = 76;

/// What a command is run under.
#[derive(Args, Clone, Debug)]
pub(crate) struct LockOptions {
    /// The lock's name
    name: String,
    /// How long to wait for it, such as 10s; 0s to have it at once or not at all [default: for ever]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Together with others who share it
    #[arg(long, conflicts_with = "permits")]
    shared: bool,
    /// Together with up to N - 1 others: one of N places, the same N everywhere
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    permits: Option<u32>,
    /// The namespace of the lock, as quorate spaces shows them [default: main; of permits, one with the
    /// name of the lock]
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
    /// What others see of who holds it [default: this user, host and process]
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,
    #[command(flatten)]
    child: ChildOptions,
}

/// A command that runs while something is held.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChildOptions {
    /// What the command gets first when what it runs under is about to be lost
    #[arg(long, value_enum, default_value = "term")]
    on_lost: OnLost,
    #[command(flatten)]
    pub(crate) at: Where,
    /// The command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What a command gets that is about to lose its lock.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnLost {
    /// TERM, and KILL if it does not end
    Term,
    /// KILL
    Kill,
}

/// Runs a command while a lock is held; its exit code.
///
/// # Errors
/// If there is no agent, or the lock is not to be had.
pub(crate) fn lock(options: &LockOptions) -> Result<u8, Failure> {
    let socket = options.child.at.find()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::broken)?.block_on(run(options, socket))
}

async fn run(options: &LockOptions, socket: PathBuf) -> Result<u8, Failure> {
    let wait = options.timeout.as_deref().map(span).transpose();
    let wait = wait.map_err(|error| Failure::input(format!("--timeout: {error}")))?;
    let session = Session::open(socket).await?;
    let left = session.keep_alive();
    let held = match session.lock(options, wait).await {
        Ok(held) => held,
        Err(failure) => {
            session.end().await;
            return Err(failure);
        }
    };
    let variables =
        vec![("QUORATE_LOCK", options.name.clone()), ("QUORATE_FENCE", held.fence.clone())];
    let work = Work { options: &options.child, variables, session: &session };
    // Whoever wants the lock waits until the command has ended.
    let ended = work.run(&held, left, std::future::pending()).await;
    session.end().await;
    ended
}

/// What an agent says when it is asked.
struct Heard {
    left: Duration,
    lost: Vec<u64>,
}

/// Until when what a session holds may be used, and which of its grants may not be any more.
pub(crate) type Word = (Instant, Vec<u64>);

/// What a command runs under.
pub(crate) struct Holding {
    /// The number that the agent knows it by.
    grant: u64,
    /// When it was asked until when it may be used.
    begun: Instant,
    /// Until when it may be used, as was answered.
    until: Instant,
    /// The fence, or the term.
    pub(crate) fence: String,
}

/// Who holds something, if nothing else is said.
pub(crate) fn this_process() -> String {
    let user = std::env::var("USER").unwrap_or_default();
    format!("{user} pid {}", std::process::id())
}

/// A session with an agent.
pub(crate) struct Session {
    pub(crate) socket: PathBuf,
    pub(crate) id: u64,
}

impl Session {
    pub(crate) async fn open(socket: PathBuf) -> Result<Self, Failure> {
        let body = json!({ "ttl_ms": TTL.as_millis() as u64, "pid": std::process::id() });
        let (status, said) = call(&socket, Method::POST, "/v1/sessions", Some(body)).await?;
        match said["session"].as_u64() {
            Some(id) => Ok(Self { socket, id }),
            None => Err(refused(status, &said)),
        }
    }

    /// Asks for the lock.
    async fn lock(
        &self,
        options: &LockOptions,
        wait: Option<Duration>,
    ) -> Result<Holding, Failure> {
        let owner = options.owner.clone().unwrap_or_else(this_process);
        let body = json!({
            "name": options.name,
            "owner": owner,
            "space": options.space,
            "shared": options.shared,
            "permits": options.permits,
            "wait_ms": wait.map(|wait| wait.as_millis() as u64),
        });
        self.acquire("locks", "fence", body).await
    }

    /// Asks for something that is granted, with a number under this name.
    pub(crate) async fn acquire(
        &self,
        what: &str,
        number: &str,
        body: Value,
    ) -> Result<Holding, Failure> {
        let path = format!("/v1/sessions/{}/{what}", self.id);
        let (status, said) = call(&self.socket, Method::POST, &path, Some(body)).await?;
        let fence = said[number].as_str().map(str::to_owned);
        match (fence, said["grant"].as_u64()) {
            (Some(fence), Some(grant)) => {
                // What is left counts from a question, and that was asked before it was waited.
                let begun = Instant::now();
                let heard = self.ping().await?;
                Ok(Holding { grant, begun, until: begun + heard.left, fence })
            }
            _ => Err(refused(status, &said)),
        }
    }

    async fn ping(&self) -> Result<Heard, Failure> {
        let path = format!("/v1/sessions/{}", self.id);
        let (status, said) = call(&self.socket, Method::POST, &path, None).await?;
        let left = said["left_ms"].as_u64().map(Duration::from_millis);
        let left = left.ok_or_else(|| refused(status, &said))?;
        let lost = said["lost"].as_array().into_iter().flatten();
        Ok(Heard { left, lost: lost.filter_map(|lost| lost["grant"].as_u64()).collect() })
    }

    /// Asks again and again, as long as somebody may want to know: until when the session's locks may be
    /// used, as was answered last. Who waits for a lock does not look, however long that takes.
    pub(crate) fn keep_alive(&self) -> watch::Receiver<Option<Word>> {
        let (told, left) = watch::channel(None);
        let session = Self { socket: self.socket.clone(), id: self.id };
        tokio::spawn(async move {
            loop {
                let begun = Instant::now();
                let pause = match session.ping().await {
                    Ok(Heard { left, lost }) => {
                        if told.send(Some((begun + left, lost))).is_err() {
                            return;
                        }
                        // As often as the lease is renewed that it rests on.
                        left / 4
                    }
                    Err(failure) if failure.code == GONE => return,
                    // An agent that does not answer is asked again: the deadline stays where it is.
                    Err(_) => PAUSE_MIN,
                };
                tokio::time::sleep(pause.clamp(PAUSE_MIN, TTL / 4)).await;
            }
        });
        left
    }

    pub(crate) async fn end(&self) {
        let path = format!("/v1/sessions/{}", self.id);
        // Without an answer it ends by itself.
        let _ = call(&self.socket, Method::DELETE, &path, None).await;
    }
}

/// The exit code of a session that is over.
const GONE: u8 = LOST;

pub(crate) fn refused(status: StatusCode, said: &Value) -> Failure {
    let sentence = said["sentence"].as_str().unwrap_or("the agent refused").to_owned();
    let code = match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT => NOT_ACQUIRED,
        StatusCode::GONE => GONE,
        StatusCode::SERVICE_UNAVAILABLE => 69,
        _ => 2,
    };
    Failure { code, sentence }
}

/// A command that runs while something is held.
pub(crate) struct Work<'a> {
    pub(crate) options: &'a ChildOptions,
    /// What it finds in its environment.
    pub(crate) variables: Vec<(&'static str, String)>,
    pub(crate) session: &'a Session,
}

impl Work<'_> {
    fn start(&self, begun: Instant, until: Instant) -> Result<Child, Failure> {
        let [program, arguments @ ..] = &self.options.command[..] else {
            return Err(Failure::input("there is no command"));
        };
        let left = until.saturating_duration_since(begun).as_millis();
        // It waits until the agent knows of it: whatever happens to this process, it is ended in time.
        let mut command = Command::new(std::env::current_exe().map_err(Failure::broken)?);
        command.args(["lock-child", "--"]).arg(program).args(arguments);
        command.env(WRAPPER, std::process::id().to_string());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env("QUORATE_DEADLINE_MS", left.to_string());
        // A group of its own, so that what it starts is ended with it.
        let child = command.process_group(0).spawn();
        child.map_err(|error| Failure::broken(format!("cannot start a process: {error}")))
    }

    /// Waits until the process is ready to become the command and the agent knows of it. Is there time left to
    /// begin?
    async fn is_ready(&self, child: &Child, until: Instant, whole: Duration) -> bool {
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // It stops when it is ready. One that has ended instead is seen by whoever waits for it.
            let _ = waitpid(Some(pid), WaitOptions::UNTRACED);
        }
        let path = format!("/v1/sessions/{}/children/{}", self.session.id, child.id());
        // If the agent does not hear of it, this process still ends it in time.
        let adopted = call(&self.session.socket, Method::PUT, &path, None);
        let _ = timeout_at(until - whole / 3, adopted).await;
        Instant::now() < until - LAST.min(whole / 4)
    }

    /// Did the agent end it, because what it held is lost or the agent itself goes, before this process knew?
    async fn was_ended_by_the_agent(&self, status: ExitStatus, grant: u64) -> bool {
        status.signal().is_some()
            && match self.session.ping().await {
                Ok(heard) => heard.lost.contains(&grant),
                Err(_) => true,
            }
    }

    /// Runs it, and ends it in time when what is held is about to be lost. When it is asked for, the command
    /// gets TERM, and all the time that it needs.
    pub(crate) async fn run(
        self,
        held: &Holding,
        left: watch::Receiver<Option<Word>>,
        asked: impl Future<Output = ()>,
    ) -> Result<u8, Failure> {
        let Holding { grant, begun, mut until, .. } = *held;
        let mut asked = pin!(asked);
        let mut given_up = false;
        let broken = |error| Failure::broken(error);
        let mut ended = signal(SignalKind::child()).map_err(broken)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(broken)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(broken)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(broken)?;
        let mut child = self.start(begun, until)?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let send = |signal: Signal| {
            if let Some(group) = group {
                // Who is gone gets no signal.
                let _ = kill_process_group(group, signal);
            }
        };
        // The most that there was left at any time: so long is a lease.
        let mut whole = until.saturating_duration_since(begun);
        if !self.is_ready(&child, until, whole).await {
            send(Signal::KILL);
            return child.wait().map(|_| LOST).map_err(broken);
        }
        send(Signal::CONT);
        let first = if self.options.on_lost == OnLost::Kill { Signal::KILL } else { Signal::TERM };
        let (mut warned, mut lost, mut left) = (false, false, Some(left));
        loop {
            if let Some(status) = child.try_wait().map_err(broken)? {
                let lost = lost || given_up || self.was_ended_by_the_agent(status, grant).await;
                return Ok(if lost { LOST } else { code(status) });
            }
            let last = LAST.min(whole / 4);
            let grace = if self.options.on_lost == OnLost::Kill { last } else { whole / 3 };
            let due = until - if warned { last } else { grace };
            tokio::select! {
                _ = ended.recv() => {}
                _ = terminate.recv() => send(Signal::TERM),
                _ = interrupt.recv() => send(Signal::INT),
                _ = hangup.recv() => send(Signal::HUP),
                () = &mut asked, if !given_up => {
                    given_up = true;
                    send(Signal::TERM);
                }
                later = next_of(&mut left) => {
                    let held = matches!(&later, Some((_, gone)) if !gone.contains(&grant));
                    match later {
                        Some((later, _)) if held && !lost => {
                            until = until.max(later);
                            whole = whole.max(until.saturating_duration_since(Instant::now()));
                            warned = false;
                            continue;
                        }
                        Some(_) => {}
                        None => left = None,
                    }
                    // It was taken by force, or the session is over: nothing will be renewed.
                    if !lost {
                        (lost, warned) = (true, true);
                        send(first);
                    }
                }
                () = sleep_until(due) => {
                    lost = true;
                    let last = warned || self.options.on_lost == OnLost::Kill;
                    send(if last { Signal::KILL } else { Signal::TERM });
                    warned = true;
                    if last {
                        return child.wait().map(|_| LOST).map_err(broken);
                    }
                }
            }
        }
    }
}

/// What was told last, if that is new; nothing more comes once it has ended.
async fn next_of<T: Clone>(told: &mut Option<watch::Receiver<Option<T>>>) -> Option<T> {
    match told {
        Some(told) => told.changed().await.ok().and_then(|()| told.borrow_and_update().clone()),
        None => std::future::pending().await,
    }
}

/// Where the command finds who started it.
const WRAPPER: &str = "QUORATE_WRAPPER";

/// What a command is before it begins: it waits for the word to begin, ends with whoever started it, and
/// becomes the command.
///
/// # Errors
/// If there is no such command. If there is, this does not return.
pub(crate) fn become_command(command: &[OsString]) -> Result<u8, Failure> {
    let [program, arguments @ ..] = command else {
        return Err(Failure::input("there is no command"));
    };
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(Failure::broken)?;
    let wrapper = std::env::var(WRAPPER).ok().and_then(|text| text.parse().ok());
    // It may have ended before that was said.
    if getppid() != wrapper.and_then(Pid::from_raw) {
        return Err(Failure { code: LOST, sentence: "who started this has ended".into() });
    }
    kill_process(getpid(), Signal::STOP).map_err(Failure::broken)?;
    let error = Command::new(program).args(arguments).env_remove(WRAPPER).exec();
    Err(Failure { code: 127, sentence: format!("{}: {error}", program.display()) })
}

/// The exit code of a command, as shells have it.
fn code(status: ExitStatus) -> u8 {
    let signalled = || status.signal().map(|signal| 128 + signal);
    let code = status.code().or_else(signalled).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::post;
    use axum::{Json, Router};
    use tokio::net::UnixListener;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn who_waits_for_a_lock_is_heard_however_long_that_takes() {
        let place = tempfile::tempdir().expect("a folder");
        let socket = place.path().join("agent.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let answer = move || {
            let number = counted.fetch_add(1, Ordering::Relaxed) + 1;
            async move { Json(json!({ "left_ms": 80, "lost": [{ "grant": number }] })) }
        };
        let agent = Router::new().route("/v1/sessions/7", post(answer));
        tokio::spawn(axum::serve(listener, agent).into_future());
        let session = Session { socket, id: 7 };
        // Nobody looks at what is told.
        let left = session.keep_alive();
        let often = async {
            while asked.load(Ordering::Relaxed) < 20 {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(20), often).await.expect("the agent is asked again and again");
        // Once somebody does, that is what was answered last.
        let (_, lost) = next_of(&mut Some(left)).await.expect("it was answered");
        assert!(lost[0] >= 19, "{lost:?}");
    }
}
