//! What people are shown of a cluster.

use std::path::Path;
use std::time::Duration;

use comfy_table::{ContentArrangement, Table, presets};
use quorate_client::http::escaped;
use quorate_member::{Standing, Status};

use crate::Failure;
use crate::client;
use crate::screen::Screen;

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
        let mut screen = Screen::of_terminal().filter(|_| !json);
        let mut last = String::new();
        return client::follow(socket, "/v1/status/watch", |status: Status| {
            let text = match (&mut screen, json) {
                (Some(screen), _) => return screen.draw(&text(&status, view, false, true)),
                (None, true) => text(&status, view, true, true),
                (None, false) => line(&status),
            };
            // How much of a lease is left changes all the time; for whoever reads lines that is no news.
            if json || text != last {
                anstream::println!("{text}");
                last = text;
            }
        })
        .await;
    }
    anstream::println!("{}", text(&client::get(socket, "/v1/status").await?, view, json, false));
    Ok(())
}

fn text(status: &Status, view: View, json: bool, again: bool) -> String {
    match (json, view) {
        (true, View::Status) => to_json(status, again),
        (true, View::Members) => to_json(&status.members, again),
        (false, View::Status) => summary(status),
        (false, View::Members) => members(status),
    }
}

/// How things stand, in a line.
fn line(status: &Status) -> String {
    let members: Vec<String> =
        status.members.iter().map(|it| format!("{} {}", it.name, it.state)).collect();
    let leader = status.authority.leader.as_deref().unwrap_or("nobody");
    format!(
        "{}: {}, view {}, led by {leader}; {}",
        status.name,
        status.standing.as_str(),
        status.epoch,
        members.join(", ")
    )
}

/// A moment of the calendar, in UTC, from milliseconds since 1970.
pub(crate) fn moment(at_ms: u64) -> String {
    let (days, ms) = (at_ms / 86_400_000, at_ms % 86_400_000);
    // Years that begin in March, so that the day that is sometimes there is the last one (H. Hinnant,
    // chrono-Compatible Low-Level Date Algorithms).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
}

/// Who reaches whom, by their own word: a row for who says so, a column for whom it is about.
fn matrix(status: &Status) -> Option<String> {
    let seated = status.members.iter().filter(|it| matches!(&*it.state, "seated" | "barred"));
    let all: Vec<_> = seated.collect();
    if all.len() < 2 {
        return None;
    }
    let mut head = vec!["reaches".to_owned()];
    head.extend(all.iter().map(|it| it.name.clone()));
    let mut rows = Table::new();
    rows.load_style(presets::NOTHING);
    rows.set_content_arrangement(ContentArrangement::Disabled);
    rows.set_header(head);
    for from in &all {
        let cell = |to: &&&quorate_member::MemberStatus| match () {
            () if to.name == from.name => "·",
            () if from.unreachable.contains(&to.name) => "NO",
            () => "yes",
        };
        let cells = all.iter().map(|to| cell(&to).to_owned());
        rows.add_row([from.name.clone()].into_iter().chain(cells));
    }
    Some(lines(&rows))
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
    if let Some(matrix) = matrix(status) {
        text += &format!("\n\n{matrix}");
    }
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

/// How often it is asked again who holds what.
const AGAIN: Duration = Duration::from_millis(500);

/// Shows who holds which lock, and who waits for it; once, or at every change.
///
/// # Errors
/// If there is no agent that says.
pub(crate) async fn locks(socket: &Path, json: bool, watch: bool) -> Result<(), Failure> {
    list(socket, "/v1/locks", lock_table, (json, watch)).await
}

/// Shows a list of an agent, for programs or as a table; once, or at every change.
///
/// # Errors
/// If there is no agent that says.
pub(crate) async fn list(
    socket: &Path,
    path: &str,
    table: fn(&serde_json::Value) -> String,
    (json, watch): (bool, bool),
) -> Result<(), Failure> {
    let mut screen = Screen::of_terminal().filter(|_| watch && !json);
    let mut last = None;
    loop {
        let all: serde_json::Value = client::get(socket, path).await?;
        if last.as_ref() != Some(&all) {
            let text = if json { to_json(&all, watch) } else { table(&all) };
            match &mut screen {
                Some(screen) => screen.draw(&text),
                None => anstream::println!("{text}"),
            }
            last = Some(all);
        }
        if !watch {
            return Ok(());
        }
        tokio::time::sleep(AGAIN).await;
    }
}

fn lock_table(locks: &serde_json::Value) -> String {
    let all = locks.as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return "nobody holds a lock, and nobody waits for one".to_owned();
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
    lines(&rows)
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

#[cfg(test)]
mod tests {
    use quorate_member::MemberStatus;

    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        assert_eq!(moment(0), "1970-01-01 00:00:00.000Z");
        assert_eq!(moment(951_782_400_123), "2000-02-29 00:00:00.123Z");
        assert_eq!(moment(1_709_251_199_999), "2024-02-29 23:59:59.999Z");
        assert_eq!(moment(1_709_251_200_000), "2024-03-01 00:00:00.000Z");
        assert_eq!(moment(4_107_542_399_000), "2100-02-28 23:59:59.000Z");
    }

    #[test]
    fn the_matrix_says_who_does_not_reach_whom() {
        let member = |name: &str, unreachable: &[&str]| MemberStatus {
            name: name.into(),
            address: String::new(),
            life: 1,
            state: "seated".into(),
            unreachable: unreachable.iter().map(|it| (*it).to_owned()).collect(),
        };
        let members = vec![member("a", &[]), member("b", &["c"]), member("c", &[])];
        let status = Status { members, ..Status::default() };
        let words: Vec<Vec<String>> = matrix(&status)
            .unwrap()
            .lines()
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .collect();
        assert_eq!(words[0], ["reaches", "a", "b", "c"]);
        assert_eq!(words[2], ["b", "yes", "·", "NO"]);
        assert_eq!(words[3], ["c", "yes", "yes", "·"]);
    }
}
