//! `quorate observe` and `quorate roles`: who leads; `quorate resign`: who shall not.

use std::path::Path;

use clap::Args;
use hyper::Method;
use quorate_client::http::escaped;
use serde_json::Value;

use crate::Failure;
use crate::client::{Where, call, follow};
use crate::show::{lines, list, table, to_json};

/// What is observed.
#[derive(Args, Clone, Debug)]
pub(crate) struct ObserveOptions {
    /// The role's name
    role: String,
    #[command(flatten)]
    at: Where,
    /// For programs: one line for each change
    #[arg(long)]
    json: bool,
}

/// Which role is to be given up.
#[derive(Args, Clone, Debug)]
pub(crate) struct ResignOptions {
    /// The role's name
    role: String,
    /// The member that is to lead next, if it stands
    #[arg(long, value_name = "MEMBER")]
    to: Option<String>,
    #[command(flatten)]
    at: Where,
}

/// Prints who leads, and every change of it, until the agent ends.
///
/// # Errors
/// If there is no agent, or not any more.
pub(crate) async fn observe(options: &ObserveOptions) -> Result<(), Failure> {
    let socket = options.at.find()?;
    let path = format!("/v1/roles/{}/watch", escaped(&options.role));
    let print = |word: Value| {
        let text = if options.json { to_json(&word, true) } else { line(&word) };
        anstream::println!("{text}");
    };
    follow(&socket, &path, print).await?;
    Err(Failure::nobody("the agent has ended"))
}

fn line(word: &Value) -> String {
    let text = |key: &str| word["leader"][key].as_str().unwrap_or_default().to_owned();
    match (word["known"].as_bool(), word["leader"].is_object()) {
        (_, true) => format!("{}  {}  {}", text("term"), text("member"), text("value")),
        (Some(true), false) => "nobody leads".to_owned(),
        _ => "it is not known who leads: this member may not act".to_owned(),
    }
}

/// Shows in which roles somebody leads, and who stands for them; once, or at every change.
///
/// # Errors
/// If there is no agent that says.
pub(crate) async fn roles(socket: &Path, json: bool, watch: bool) -> Result<(), Failure> {
    list(socket, "/v1/roles", role_table, (json, watch)).await
}

fn role_table(roles: &Value) -> String {
    let all = roles.as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return "nobody leads, and nobody stands for anything".to_owned();
    }
    let mut rows = table(&["role", "", "member", "owner", "term"]);
    for role in all {
        let name = role["role"].as_str().unwrap_or_default();
        let mut row = |word: &str, party: &Value, term: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let cells = [text(&party["member"]), text(&party["owner"]), text(term)];
            rows.add_row([name.to_owned(), word.to_owned()].into_iter().chain(cells));
        };
        if role["leader"].is_object() {
            row("led by", &role["leader"], &role["term"]);
        }
        for candidate in role["candidates"].as_array().map_or(&[][..], Vec::as_slice) {
            row("wanted by", candidate, &Value::Null);
        }
    }
    lines(&rows)
}

/// Asks whoever leads to give the role up.
///
/// # Errors
/// If there is no agent that can ask, or no such member.
pub(crate) async fn resign(options: &ResignOptions) -> Result<(), Failure> {
    let ResignOptions { role, to, at } = options;
    let socket = at.find()?;
    let to = to.as_deref().map_or_else(String::new, |to| format!("?to={}", escaped(to)));
    let path = format!("/v1/roles/{}/yield{to}", escaped(role));
    let (status, said) = call(&socket, Method::POST, &path, None).await?;
    if !status.is_success() {
        let sentence = said["sentence"].as_str().unwrap_or("the agent refused");
        return Err(Failure::input(sentence));
    }
    anstream::println!("{role}: whoever leads is asked to give it up (see quorate observe {role})");
    Ok(())
}
