//! `quorate events`: what happened, and why.

use std::path::Path;
use std::time::Duration;

use quorate_member::Note;
use tokio::time::sleep;

use crate::client;
use crate::{Failure, show};

/// How often it is asked again with `--watch`.
const AGAIN: Duration = Duration::from_millis(500);

/// Shows the latest events of an agent; with `watch` also those that come.
///
/// # Errors
/// If there is no agent that says.
pub(crate) async fn events(
    socket: &Path,
    why: bool,
    json: bool,
    watch: bool,
) -> Result<(), Failure> {
    let mut shown: Vec<Note> = Vec::new();
    loop {
        let notes: Vec<Note> = client::get(socket, "/v1/events").await?;
        let wanted = |note: &&Note| !why || note.kind == quorate_member::Kind::Excluded;
        let new: Vec<&Note> =
            notes.iter().filter(wanted).filter(|note| !shown.contains(note)).collect();
        if json && !watch {
            anstream::println!("{}", serde_json::to_string_pretty(&new).unwrap_or_default());
        } else {
            for note in &new {
                let line = match json {
                    true => serde_json::to_string(note).unwrap_or_default(),
                    false => line(note),
                };
                anstream::println!("{line}");
            }
            if new.is_empty() && !watch {
                anstream::println!("nothing has happened");
            }
        }
        if !watch {
            return Ok(());
        }
        shown = notes;
        sleep(AGAIN).await;
    }
}

fn line(Note { at_ms, kind, text, .. }: &Note) -> String {
    format!("{}  {:<8}  {text}", show::moment(*at_ms), kind.as_str())
}
