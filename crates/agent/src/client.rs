//! A client of an agent: where it is, and how it is asked.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::{Method, Response, StatusCode};
use quorate_client::Place;
use quorate_client::http::{self, Silence};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::Failure;

/// Where the agent of a machine is.
const SYSTEM: &str = "/run/quorate/agent.sock";
/// An answer may be so long.
const ANSWER_MAX: usize = 16 << 20;
/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which agent.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Where {
    /// The socket of an agent [default: $QUORATE_AGENT, else /run/quorate/agent.sock, else that of the
    /// last quorate dev]
    #[arg(long, value_name = "PATH")]
    pub(crate) connect: Option<PathBuf>,
}

impl Where {
    /// The socket of the agent.
    ///
    /// # Errors
    /// If there is none to be found.
    pub(crate) fn find(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.connect {
            return Ok(path.clone());
        }
        if let Some(path) = env::var_os("QUORATE_AGENT").filter(|path| !path.is_empty()) {
            return Ok(path.into());
        }
        if Path::new(SYSTEM).exists() {
            return Ok(SYSTEM.into());
        }
        let last = fs::read_to_string(last_dev()).ok().map(|path| PathBuf::from(path.trim()));
        match last.filter(|path| path.exists()) {
            Some(path) => {
                anstream::eprintln!("(the agent of quorate dev, {})", path.display());
                Ok(path)
            }
            None => Err(Failure::nobody(
                "there is no agent: start one (quorate dev), or name its socket (--connect PATH)",
            )),
        }
    }
}

/// Where the socket of the last `quorate dev` of this user is written down.
pub(crate) fn last_dev() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    let root = env::var_os("XDG_RUNTIME_DIR").map_or_else(env::temp_dir, PathBuf::from);
    root.join(format!("quorate-dev-{user}"))
}

/// Asks an agent for something in JSON.
///
/// # Errors
/// If there is no agent, or it does not answer, or not what was asked for.
pub(crate) async fn get<T: DeserializeOwned>(socket: &Path, path: &str) -> Result<T, Failure> {
    let answer = async {
        let response = send(socket, path).await?;
        let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
        body.map(|body| body.to_bytes()).map_err(|error| odd(socket, &error))
    };
    let bytes = timeout(PATIENCE, answer).await.map_err(|_| odd(socket, &"no answer"))??;
    serde_json::from_slice(&bytes).map_err(|error| odd(socket, &error))
}

/// Follows what an agent tells as server-sent events, each in JSON, until it ends.
///
/// # Errors
/// If there is no agent, or what comes makes no sense.
pub(crate) async fn follow<T: DeserializeOwned>(
    socket: &Path,
    path: &str,
    mut each: impl FnMut(T),
) -> Result<(), Failure> {
    let mut events = http::Events::of(&Place::from(socket), send(socket, path).await?);
    while let Some(event) = events.next().await.map_err(failure)? {
        each(event);
    }
    Ok(())
}

/// Has an agent do something: the status of its answer, and what it says in JSON.
///
/// # Errors
/// If there is no agent, or what it answers makes no sense.
pub(crate) async fn call(
    socket: &Path,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Result<(StatusCode, Value), Failure> {
    http::call(&Place::from(socket), method, path, body).await.map_err(failure)
}

/// The same with bytes.
///
/// # Errors
/// As there.
pub(crate) async fn call_with(
    socket: &Path,
    method: Method,
    path: &str,
    bytes: Vec<u8>,
) -> Result<(StatusCode, Value), Failure> {
    http::call_with(&Place::from(socket), method, path, bytes).await.map_err(failure)
}

async fn send(socket: &Path, path: &str) -> Result<Response<Incoming>, Failure> {
    let asked = http::exchange(&Place::from(socket), Method::GET, path, None).await;
    let response = asked.map_err(failure)?;
    if response.status().is_success() {
        Ok(response)
    } else {
        Err(odd(socket, &format!("status {}", response.status())))
    }
}

/// What there is to say of an agent that does not answer.
fn failure(silence: Silence) -> Failure {
    match silence {
        Silence::Nobody(_) => Failure::nobody(silence),
        Silence::Odd(_) => Failure::broken(silence),
    }
}

fn odd(socket: &Path, what: &dyn std::fmt::Display) -> Failure {
    Failure::broken(format!("the agent at {}: {what}", socket.display()))
}
