//! The agent: a member behind a local socket and HTTP, until it is told to end.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use quorate_member::{LockError, Member, Namespace, StartError};
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;
use tracing::{error, info, warn};

use crate::http::{Peer, router};
use crate::operations::{Desk, deeds, looks};
use crate::options::{AgentOptions, Setting};
use crate::sessions::Sessions;
use crate::{Failure, lab};

/// What a program does in the process of its agent, as the member that this is.
pub(crate) type Beside = Box<dyn FnOnce(Arc<Member>)>;

/// Runs an agent until it is told to end, and leaves the cluster before that.
///
/// # Errors
/// If it cannot be started, or cannot go on.
pub(crate) fn agent(options: AgentOptions, beside: Option<Beside>) -> Result<(), Failure> {
    let setting = options.settle()?;
    crate::log::start(setting.log);
    if setting.with_parent {
        let bound = set_parent_process_death_signal(Some(Signal::TERM));
        bound.map_err(|error| Failure::broken(format!("cannot end with its parent: {error}")))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::broken)?;
    runtime.block_on(serve(setting, beside))
}

async fn serve(setting: Setting, beside: Option<Beside>) -> Result<(), Failure> {
    let refused = |error: &io::Error, flag: &str, place: &str| {
        Failure::input(format!("{flag} {place}: {error}"))
    };
    // All that can be refused is asked for before anybody is told of the member.
    let http = match &setting.http {
        None => None,
        Some(place) => {
            let listener = TcpListener::bind(place).await;
            let listener = listener.map_err(|error| refused(&error, "--http", place))?;
            let address = listener.local_addr().map_err(Failure::broken)?;
            if !address.ip().is_loopback() {
                return Err(Failure::input(format!(
                    "--http {place}: HTTP is for this machine only: use a loopback address"
                )));
            }
            Some(listener)
        }
    };
    let (name, lease) = (setting.member.name.clone(), setting.member.timers.lease);
    let (data, security) = (setting.member.data.clone(), setting.member.security.clone());
    let member = Member::start(setting.member).map_err(|error| match error {
        StartError::System(_) | StartError::Authority(_) => Failure::broken(error),
        other => Failure::input(other),
    })?;
    let member = Arc::new(member);
    // Only now: the directory is this process's alone.
    let socket = listen(&setting.socket, setting.socket_mode)
        .map_err(|error| refused(&error, "--socket", &setting.socket.display().to_string()))?;
    info!(%name, socket = %setting.socket.display(), "the agent has started");
    let sessions = Sessions::new(Arc::clone(&member));
    tokio::spawn(Arc::clone(&sessions).mind_lease());
    tokio::spawn(define(Arc::clone(&member), setting.spaces));
    let desk =
        Desk { member: Arc::clone(&member), sessions: Arc::clone(&sessions), data, security };
    let (api, local) = routes(desk, setting.faults);
    let local = local.into_make_service_with_connect_info::<Peer>();
    tokio::spawn(axum::serve(socket, local).into_future());
    if let Some(http) = http {
        let shown = match setting.lab {
            true => api.merge(lab::router(Arc::clone(&member))),
            false => api,
        };
        if setting.lab {
            let address = http.local_addr().map_err(Failure::broken)?;
            info!(%name, lab = %format_args!("http://{address}/lab/#/live"), "the lab shows it");
        }
        tokio::spawn(axum::serve(http, shown).into_future());
    }
    if let Some(begin) = beside {
        begin(Arc::clone(&member));
    }
    let ended = until_told(&member, &sessions).await;
    let done = match ended {
        Ok(()) => {
            dry(&sessions, setting.drain).await?;
            info!(%name, "leaves the cluster");
            if !member.leave(3 * lease).await {
                error!(%name, "nobody confirmed that it left: it will be missed as if it had died");
            }
            Ok(())
        }
        Err(why) => Err(Failure::broken(why)),
    };
    member.end_trace();
    // Whoever is served meanwhile is cut off: the process ends.
    let _ = fs::remove_file(&setting.socket);
    if let Some(member) = Arc::into_inner(member) {
        member.stop();
    }
    done
}

/// What is answered on loopback, and what over the socket.
fn routes(desk: Desk, faults: bool) -> (Router, Router) {
    let member = Arc::clone(&desk.member);
    let api = router(Arc::clone(&member), Arc::clone(&desk.sessions))
        .merge(looks(desk.clone()))
        .merge(lab::watching(Arc::clone(&member)));
    let local = api.clone().merge(deeds(desk));
    // Whoever cuts links has the socket, and not only a browser.
    let local = match faults {
        true => local.merge(lab::faults(member)),
        false => local,
    };
    (api, local)
}

/// Sees to it that these namespaces are there, as soon as the process is a member.
async fn define(member: Arc<Member>, spaces: Vec<(String, Namespace)>) {
    for (name, namespace) in spaces {
        loop {
            match member.locks().define(&name, &namespace).await {
                Ok(()) => break,
                Err(LockError::NotPrimary | LockError::Timeout) => sleep(DEFINE_AGAIN).await,
                Err(LockError::Closed) => return,
                Err(why) => {
                    warn!(%name, %why, "a namespace is not as the configuration wants it");
                    break;
                }
            }
        }
    }
}

/// How often it is tried again to define a namespace.
const DEFINE_AGAIN: Duration = Duration::from_millis(200);

/// Returns when nobody holds anything here any more, or has had his time. A second signal ends the wait.
async fn dry(sessions: &Arc<Sessions>, limit: Duration) -> Result<(), Failure> {
    if !sessions.is_draining() {
        sessions.drain(Some(limit));
    }
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::broken)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::broken)?;
    let again = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        // What is left is ended now, and waited for below.
        sessions.drain(Some(Duration::ZERO));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = sessions.run_dry() => {}
        () = again => {}
    }
    Ok(())
}

/// Returns when the process is told to end; an error if the member cannot go on.
async fn until_told(member: &Member, sessions: &Sessions) -> Result<(), String> {
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    let mut hangup = signal(SignalKind::hangup()).map_err(|error| error.to_string())?;
    let mut status = member.status();
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            () = sessions.told_to_drain() => return Ok(()),
            _ = hangup.recv() => member.reload(),
            changed = status.changed() => {
                changed.map_err(|_| "the thread of the member has ended".to_owned())?;
                if let Some(why) = &status.borrow_and_update().authority.stopped {
                    return Err(format!("the authority has stopped: {why}"));
                }
            }
        }
    }
}

/// A socket that only those with this file mode can use. Whatever an earlier process left there is removed: the data
/// directory, where it is by default, belongs to this one.
fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(listener)
}

/// How long an agent has to end by itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
