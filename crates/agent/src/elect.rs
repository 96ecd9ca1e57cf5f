//! `quorate elect ROLE -- COMMAND`: a command that runs while this process leads in a role.
//!
//! It is `quorate lock` around a role: the command is gone before the next leader is told that it leads.

use std::path::PathBuf;

use clap::Args;
use hyper::Method;
use quorate_client::http::escaped;
use serde_json::json;

use crate::Failure;
use crate::client::call;
use crate::lock::{ChildOptions, NOT_ACQUIRED, Session, Work, this_process};
use crate::options::span;

/// What a command is run as the leader of.
#[derive(Args, Clone, Debug)]
pub(crate) struct ElectOptions {
    /// The role's name
    role: String,
    /// Larger ones lead first
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// What observers are told of this leader, such as where it is reached
    #[arg(long, value_name = "TEXT", default_value = "")]
    value: String,
    /// Give the role up when a better candidate stands: the command gets TERM
    #[arg(long = "yield")]
    yields: bool,
    /// How long to stand for it, such as 10s [default: for ever]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// What others see of who leads [default: this user, host and process]
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,
    #[command(flatten)]
    child: ChildOptions,
}

/// Runs a command while this process leads; its exit code.
///
/// # Errors
/// If there is no agent, or the role is not to be had.
pub(crate) fn elect(options: &ElectOptions) -> Result<u8, Failure> {
    let socket = options.child.at.find()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::broken)?.block_on(run(options, socket))
}

async fn run(options: &ElectOptions, socket: PathBuf) -> Result<u8, Failure> {
    let ElectOptions { role, priority, value, yields, owner, child, .. } = options;
    let wait = options.timeout.as_deref().map(span).transpose();
    let wait = wait.map_err(|error| Failure::input(format!("--timeout: {error}")))?;
    let session = Session::open(socket).await?;
    let left = session.keep_alive();
    let body = json!({
        "role": role,
        "owner": owner.clone().unwrap_or_else(this_process),
        "priority": priority,
        "value": value,
        "wait_ms": wait.map(|wait| wait.as_millis() as u64),
    });
    let held = match session.acquire("roles", "term", body).await {
        Ok(held) => held,
        Err(mut failure) => {
            session.end().await;
            if failure.code == NOT_ACQUIRED {
                failure.sentence = format!("{role}: somebody else leads (see quorate roles)");
            }
            return Err(failure);
        }
    };
    let variables = vec![
        ("QUORATE_ROLE", role.clone()),
        ("QUORATE_TERM", held.fence.clone()),
        ("QUORATE_FENCE", held.fence.clone()),
    ];
    let asked = asked_to_yield(&session, role, *yields);
    let work = Work { options: child, variables, session: &session };
    let ended = work.run(&held, left, asked).await;
    session.end().await;
    ended
}

/// Returns when the role is to be given up.
async fn asked_to_yield(session: &Session, role: &str, yields: bool) {
    let path = format!("/v1/sessions/{}/roles/{}/asked?better={yields}", session.id, escaped(role));
    match call(&session.socket, Method::GET, &path, None).await {
        Ok((_, said)) if said["why"].is_string() => {}
        // Nobody asks any more: the session is over, or the agent gone, which is seen elsewhere.
        _ => std::future::pending().await,
    }
}
