//! `quorate lock NAME -- COMMAND`: a command that runs while a lock is held.
//!
//! The command is gone before anybody else can be granted the lock: this process ends it in time when the
//! agent cannot say any more that the lock is held, and the agent ends it when this process is gone.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
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
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::Failure;
use crate::client::{Where, call};
use crate::options::span;

/// What a session may be silent, unless something else is asked for.
const TTL: Duration = Duration::from_millis(1_500);
/// An agent is asked no more often than this.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The command is killed so long before the lock is lost.
const LAST: Duration = Duration::from_millis(200);

/// The exit code of a lock that was not granted in time.
const NOT_ACQUIRED: u8 = 75;
/// The exit code of a lock that was lost.
const LOST: u8 = 76;

/// What a command is run under.
#[derive(Args, Clone, Debug)]
pub(crate) struct LockOptions {
    /// The lock's name
    name: String,
    /// How long to wait for it, such as 10s [default: for ever]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Together with others who share it
    #[arg(long)]
    shared: bool,
    /// What others see of who holds it [default: this user, host and process]
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,
    /// What the command gets first when the lock is about to be lost
    #[arg(long, value_enum, default_value = "term")]
    on_lost: OnLost,
    #[command(flatten)]
    at: Where,
    /// The command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What a command gets that is about to lose its lock.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum OnLost {
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
    let socket = options.at.find()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::broken)?.block_on(run(options, socket))
}

async fn run(options: &LockOptions, socket: PathBuf) -> Result<u8, Failure> {
    let wait = options.timeout.as_deref().map(span).transpose();
    let wait = wait.map_err(|error| Failure::input(format!("--timeout: {error}")))?;
    let session = Session::open(socket).await?;
    let left = session.keep_alive();
    let held = session.lock(options, wait).await;
    let (begun, fence, until) = match held {
        Ok(held) => held,
        Err(failure) => {
            session.end().await;
            return Err(failure);
        }
    };
    let ended = Work { options, session: &session, fence: &fence }.run(begun, until, left).await;
    session.end().await;
    ended
}

/// A session with an agent.
struct Session {
    socket: PathBuf,
    id: u64,
}

impl Session {
    async fn open(socket: PathBuf) -> Result<Self, Failure> {
        let body = json!({ "ttl_ms": TTL.as_millis() as u64, "pid": std::process::id() });
        let (status, said) = call(&socket, Method::POST, "/v1/sessions", Some(body)).await?;
        match said["session"].as_u64() {
            Some(id) => Ok(Self { socket, id }),
            None => Err(refused(status, &said)),
        }
    }

    /// Asks for the lock: when it was answered, the fence, and until when it may be used.
    async fn lock(
        &self,
        options: &LockOptions,
        wait: Option<Duration>,
    ) -> Result<(Instant, String, Instant), Failure> {
        let owner = options.owner.clone().unwrap_or_else(|| {
            let user = std::env::var("USER").unwrap_or_default();
            format!("{user} pid {}", std::process::id())
        });
        let body = json!({
            "name": options.name,
            "owner": owner,
            "shared": options.shared,
            "wait_ms": wait.map(|wait| wait.as_millis() as u64),
        });
        let path = format!("/v1/sessions/{}/locks", self.id);
        let (status, said) = call(&self.socket, Method::POST, &path, Some(body)).await?;
        let fence = said["fence"].as_str().map(str::to_owned);
        match (fence, said["left_ms"].as_u64()) {
            (Some(fence), Some(_)) => {
                // What is left counts from a question, and that was asked before it was waited.
                let begun = Instant::now();
                let left = self.ping().await?;
                Ok((begun, fence, begun + left))
            }
            _ => Err(refused(status, &said)),
        }
    }

    async fn ping(&self) -> Result<Duration, Failure> {
        let path = format!("/v1/sessions/{}", self.id);
        let (status, said) = call(&self.socket, Method::POST, &path, None).await?;
        let left = said["left_ms"].as_u64().map(Duration::from_millis);
        left.ok_or_else(|| refused(status, &said))
    }

    /// Asks again and again, as long as somebody wants to know: until when the session's locks may be
    /// used, each time it was answered.
    fn keep_alive(&self) -> mpsc::Receiver<Instant> {
        let (told, left) = mpsc::channel(4);
        let session = Self { socket: self.socket.clone(), id: self.id };
        tokio::spawn(async move {
            let mut pause = TTL / 4;
            loop {
                let begun = Instant::now();
                match session.ping().await {
                    Ok(left) => {
                        if told.send(begun + left).await.is_err() {
                            return;
                        }
                        // The command is warned while a good part is left: of a short lease, too, it
                        // has to be heard several times before that.
                        pause = (left / 8).clamp(PAUSE_MIN, TTL / 4);
                    }
                    Err(failure) if failure.code == GONE => return,
                    // An agent that does not answer is asked again: the deadline stays where it is.
                    Err(_) => {}
                }
                tokio::time::sleep(pause).await;
            }
        });
        left
    }

    async fn end(&self) {
        let path = format!("/v1/sessions/{}", self.id);
        // Without an answer it ends by itself.
        let _ = call(&self.socket, Method::DELETE, &path, None).await;
    }
}

/// The exit code of a session that is over.
const GONE: u8 = LOST;

fn refused(status: StatusCode, said: &Value) -> Failure {
    let sentence = said["sentence"].as_str().unwrap_or("the agent refused").to_owned();
    let code = match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT => NOT_ACQUIRED,
        StatusCode::GONE => GONE,
        StatusCode::SERVICE_UNAVAILABLE => 69,
        _ => 2,
    };
    Failure { code, sentence }
}

/// A command that runs under a lock.
struct Work<'a> {
    options: &'a LockOptions,
    session: &'a Session,
    fence: &'a str,
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
        command
            .env(WRAPPER, std::process::id().to_string())
            .env("QUORATE_LOCK", &self.options.name);
        command.env("QUORATE_FENCE", self.fence).env("QUORATE_DEADLINE_MS", left.to_string());
        // A group of its own, so that what it starts is ended with it.
        let child = command.process_group(0).spawn();
        child.map_err(|error| Failure::broken(format!("cannot start a process: {error}")))
    }

    async fn run(
        self,
        begun: Instant,
        mut until: Instant,
        mut left: mpsc::Receiver<Instant>,
    ) -> Result<u8, Failure> {
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
        if let Some(group) = group {
            // It stops when it is ready. One that has ended instead is seen below.
            let _ = waitpid(Some(group), WaitOptions::UNTRACED);
        }
        let path = format!("/v1/sessions/{}/children/{}", self.session.id, child.id());
        // If the agent does not hear of it, this process still ends it in time.
        let _ = call(&self.session.socket, Method::PUT, &path, None).await;
        send(Signal::CONT);
        let (mut warned, mut lost) = (false, false);
        // How long it was good for when that was said last: a warning comes in the last third of it.
        let mut good = until.saturating_duration_since(begun);
        loop {
            if let Some(status) = child.try_wait().map_err(broken)? {
                return Ok(if lost { LOST } else { code(status) });
            }
            let last = LAST.min(good / 4);
            let grace =
                if self.options.on_lost == OnLost::Kill { last } else { (TTL / 3).min(good / 3) };
            let next = until - if warned { last } else { grace };
            tokio::select! {
                _ = ended.recv() => {}
                _ = terminate.recv() => send(Signal::TERM),
                _ = interrupt.recv() => send(Signal::INT),
                _ = hangup.recv() => send(Signal::HUP),
                later = left.recv() => match later {
                    Some(later) if !lost => {
                        good = later.saturating_duration_since(Instant::now());
                        until = until.max(later);
                        warned = false;
                    }
                    Some(_) => {}
                    // The session is over: nothing will be renewed.
                    None if !lost => {
                        lost = true;
                        send(Signal::TERM);
                        warned = true;
                        left = mpsc::channel(1).1;
                    }
                    None => sleep_until(until).await,
                },
                () = sleep_until(next) => {
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
