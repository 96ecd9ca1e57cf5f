//! What people are shown of a cluster.

use std::path::Path;

use comfy_table::{ContentArrangement, Table, presets};
use quorate_client::http::escaped;
use quorate_member::{Standing, Status};

use crate::Failure;
use crate::client;

/// What is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum View {
    /// Everything.
    Status,
    /// Who is there.
    Members,
}

/// Shows it once, or at every change.
///
/// # Errors
/// If there is no agent that says.
pub(crate) async fn show(
    socket: &Path,
    view: View,
    json: bool,
    watch: bool,
) -> Result<(), Failure> {
    if watch {
        return client::follow(socket, "/v1/status/watch", |status| {
            print(&status, view, json, true);
        })
        .await;
    }
    print(&client::get(socket, "/v1/status").await?, view, json, false);
    Ok(())
}

fn print(status: &Status, view: View, json: bool, again: bool) {
    let text = match (json, view) {
        (true, View::Status) => to_json(status, again),
        (true, View::Members) => to_json(&status.members, again),
        (false, View::Status) => summary(status),
        (false, View::Members) => members(status),
    };
    let gap = if again && !json { "\n" } else { "" };
    anstream::println!("{text}{gap}");
}

pub(crate) fn to_json(value: &impl serde::Serialize, line: bool) -> String {
    let text =
        if line { serde_json::to_string(value) } else { serde_json::to_string_pretty(value) };
    text.unwrap_or_default()
}

pub(crate) fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(head.iter().map(|word| word.to_uppercase()));
    table
}

pub(crate) fn lines(table: &Table) -> String {
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn members(status: &Status) -> String {
    let mut rows = table(&["member", "state", "address", "life", "does not reach"]);
    for member in &status.members {
        rows.add_row([
            member.name.clone(),
            member.state.clone(),
            member.address.clone(),
            member.life.to_string(),
            member.unreachable.join(", "),
        ]);
    }
    lines(&rows)
}

/// All that a person wants to know first.
fn summary(status: &Status) -> String {
    let cluster = status.cluster.as_deref().unwrap_or("none yet");
    let standing = match (status.standing, status.left_ms) {
        (Standing::Member | Standing::Jeopardy, Some(left)) => {
            format!("{} (lease for {left} ms more)", status.standing.as_str())
        }
        _ => status.standing.as_str().to_owned(),
    };
    let authority = &status.authority;
    let led = authority.leader.as_deref().unwrap_or("nobody, as far as is known here");
    let mut text = format!(
        "cluster    {} ({cluster})\nmember     {}, pid {}\nstanding   {standing}\n\
         view       {}\nauthority  {}, led by {led}, voters {}\n",
        status.cluster_name,
        status.name,
        status.pid,
        status.epoch,
        authority.kind,
        authority.voters.join(", "),
    );
    if let Some(why) = &authority.stopped {
        text += &format!("stopped    {why}\n");
    }
    text += "\n";
    text += &members(status);
    let mut links = table(&["link to", "state", "round trip", "queued"]);
    for link in &status.links {
        let rtt = link.rtt_us.map_or_else(String::new, |rtt| format!("{rtt} µs"));
        links.add_row([link.name.clone(), link.state.clone(), rtt, link.queued.to_string()]);
    }
    if !status.links.is_empty() {
        text += &format!("\n\n{}", lines(&links));
    }
    text
}

/// Shows who holds which lock, and who waits for it.
///
/// # Errors
/// If there is no agent that says.
pub(crate) async fn locks(socket: &Path, json: bool) -> Result<(), Failure> {
    let locks: serde_json::Value = client::get(socket, "/v1/locks").await?;
    if json {
        anstream::println!("{}", to_json(&locks, false));
        return Ok(());
    }
    let all = locks.as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        anstream::println!("nobody holds a lock, and nobody waits for one");
        return Ok(());
    }
    let mut rows = table(&["lock", "", "member", "owner", "for", "mode", "fence"]);
    for lock in all {
        let name = lock["name"].as_str().unwrap_or_default();
        let name = match lock["space"].as_str() {
            None | Some(quorate_member::SPACE) => name.to_owned(),
            Some(space) => format!("{name} (in {space})"),
        };
        for (list, word) in [("holders", "held by"), ("waiting", "wanted by")] {
            for party in lock[list].as_array().map_or(&[][..], Vec::as_slice) {
                let text = |key: &str| party[key].as_str().unwrap_or_default().to_owned();
                let since = ago(party["since_ms"].as_u64().unwrap_or(0));
                let row = [text("member"), text("owner"), since, text("mode"), text("fence")];
                rows.add_row([name.clone(), word.to_owned()].into_iter().chain(row));
            }
        }
    }
    anstream::println!("{}", lines(&rows));
    Ok(())
}

/// A length of time, for people.
fn ago(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{:.1} s", ms as f64 / 1_000.0),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

/// Shows all namespaces, and what the locks in them are like.
///
/// # Errors
/// If there is no agent that says.
pub(crate) async fn spaces(socket: &Path, json: bool) -> Result<(), Failure> {
    let spaces: serde_json::Value = client::get(socket, "/v1/spaces").await?;
    if json {
        anstream::println!("{}", to_json(&spaces, false));
        return Ok(());
    }
    let mut rows = table(&["namespace", "algorithm", "permits", "lock-delay"]);
    for (name, space) in spaces.as_object().into_iter().flatten() {
        let algorithm = space["algorithm"].as_str().unwrap_or_default().to_owned();
        let delay = match space["lock_delay_ms"].as_u64().unwrap_or(0) {
            0 => "none".to_owned(),
            delay => ago(delay),
        };
        rows.add_row([name.clone(), algorithm, space["permits"].to_string(), delay]);
    }
    anstream::println!("{}", lines(&rows));
    Ok(())
}

/// Defines a namespace.
///
/// # Errors
/// If there is no agent that can, or there is another one of that name.
pub(crate) async fn define(
    socket: &Path,
    name: &str,
    space: &serde_json::Value,
) -> Result<(), Failure> {
    let path = format!("/v1/spaces/{}", escaped(name));
    let body = Some(space.clone());
    let (status, said) = client::call(socket, hyper::Method::PUT, &path, body).await?;
    if status.is_success() {
        return Ok(());
    }
    let sentence = said["sentence"].as_str().unwrap_or("the agent refused");
    Err(Failure::input(sentence))
}

/// Takes a lock by force.
///
/// # Errors
/// If there is no agent that can.
pub(crate) async fn force(socket: &Path, space: &str, name: &str) -> Result<(), Failure> {
    let path = format!("/v1/locks/{}?space={}", escaped(name), escaped(space));
    let (status, said) = client::call(socket, hyper::Method::DELETE, &path, None).await?;
    if !status.is_success() {
        let sentence = said["sentence"].as_str().unwrap_or("the agent refused");
        return Err(Failure::broken(sentence));
    }
    let text = match said["held"].as_bool() {
        Some(true) => {
            "its holder has lost it: it is free when its user has dropped it, or its time has passed"
        }
        _ => "nobody holds it",
    };
    anstream::println!("{name}: {text}");
    Ok(())
}
