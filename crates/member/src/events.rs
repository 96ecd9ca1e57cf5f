//! What happened to a member and its cluster, kept over restarts: why somebody was excluded is asked
//! the day after.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use quorate_core::Life;
use quorate_service::{Ground, Register};
use serde::{Deserialize, Serialize};
use tracing::warn;

/// So many of each kind are kept.
pub(crate) const KEPT: usize = 100;
/// The file is written anew when it is longer.
const FILE_MAX: u64 = 1 << 20;

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Somebody was barred, doomed, found dead, or left.
    Excluded,
    /// There is another view.
    View,
    /// A step of this member's own seat.
    Seat,
    /// Somebody is reached, or is not any more.
    Link,
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Excluded => "excluded",
            Self::View => "view",
            Self::Seat => "seat",
            Self::Link => "link",
        }
    }
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Note {
    /// When, by the calendar: milliseconds since 1970.
    pub at_ms: u64,
    /// What it is about.
    pub kind: Kind,
    /// The view that was decided last, as far as was known.
    pub epoch: u64,
    /// What happened, and why.
    pub text: String,
}

/// The latest events, in memory and in a file.
#[derive(Debug)]
pub(crate) struct Events(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    latest: BTreeMap<Kind, VecDeque<Note>>,
    path: PathBuf,
    /// None after an error: it is said once.
    file: Option<File>,
}

impl Events {
    /// Goes on with the file in this directory.
    pub(crate) fn open(directory: &Path) -> Self {
        let path = directory.join("events.jsonl");
        let mut kept = Kept { latest: BTreeMap::new(), path, file: None };
        match kept.read_back() {
            Ok(file) => kept.file = Some(file),
            Err(error) => warn!(%error, "events are not kept over a restart"),
        }
        Self(Mutex::new(kept))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened now.
    pub(crate) fn note(&self, kind: Kind, epoch: u64, text: String) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let note = Note { at_ms, kind, epoch, text };
        let mut kept = self.kept();
        if let Err(error) = kept.write(&note) {
            warn!(%error, "events are not kept over a restart");
            kept.file = None;
        }
        kept.remember(note);
    }

    /// The latest of each kind, the latest last.
    pub(crate) fn latest(&self) -> Vec<Note> {
        self.kept().all()
    }
}

impl Kept {
    fn read_back(&mut self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(&self.path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(FILE_MAX)))?;
        for line in BufReader::new((&file).take(FILE_MAX)).lines() {
            // A line that was cut off by a crash or by where reading began is no event.
            if let Some(note) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) {
                self.remember(note);
            }
        }
        Ok(file)
    }

    fn remember(&mut self, note: Note) {
        let list = self.latest.entry(note.kind).or_default();
        if list.len() == KEPT {
            list.pop_front();
        }
        list.push_back(note);
    }

    fn all(&self) -> Vec<Note> {
        let mut all: Vec<Note> = self.latest.values().flatten().cloned().collect();
        all.sort_by_key(|note| note.at_ms);
        all
    }

    fn write(&mut self, note: &Note) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(&line(note)?)?;
        if file.metadata()?.len() <= FILE_MAX {
            return Ok(());
        }
        let new = self.path.with_extension("new");
        let mut short = File::create(&new)?;
        for note in self.all() {
            short.write_all(&line(&note)?)?;
        }
        short.write_all(&line(note)?)?;
        std::fs::rename(&new, &self.path)?;
        self.file = Some(OpenOptions::new().append(true).open(&self.path)?);
        Ok(())
    }
}

fn line(note: &Note) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(note)?;
    line.push(b'\n');
    Ok(line)
}

/// What happened between two states of the register, of all that people ask for later. Some states in
/// between may not have been seen.
pub(crate) fn between(before: &Register, after: &Register) -> Vec<(Kind, String)> {
    let mut said = Vec::new();
    for (life, member) in before.members() {
        let name = &member.name;
        let who = format!("{name} (life {})", life.0);
        let (was, is) = (before.state(life), after.state(life));
        let text = match is {
            _ if was == is => continue,
            "barred" => {
                format!("{who} is barred: {}", unreached(after, life))
            }
            "doomed" => doomed(before, &who, life),
            "left" => format!("{who} has left, by its own word"),
            "out" => match after.gone().iter().find(|gone| gone.life == life).map(|it| it.ground) {
                Some(Ground::Dead(beat)) => format!(
                    "{who} is dead: its kernel, or a place that refuses connections, says so (beat {})",
                    beat.0
                ),
                Some(Ground::Left) if was != "left" => format!("{who} has left, by its own word"),
                Some(Ground::Doomed) if was != "doomed" => doomed(before, &who, life),
                Some(_) => continue,
                None if was == "waiting" => format!("{who} no longer waits for a seat"),
                None if matches!(was, "left" | "doomed") => continue,
                None => format!("{who} is gone, and why was not seen from here"),
            },
            _ => continue,
        };
        said.push((Kind::Excluded, text));
    }
    if before.epoch() != after.epoch() {
        let names: Vec<&str> = after
            .view()
            .iter()
            .filter_map(|life| after.member(*life))
            .map(|member| member.name.as_str())
            .collect();
        said.push((Kind::View, format!("view {} of {}", after.epoch().0, names.join(", "))));
    }
    said
}

fn doomed(before: &Register, who: &str, life: Life) -> String {
    let beat = before.member(life).map_or(0, |member| member.beat.0);
    format!(
        "{who} is doomed: it did not renew for longer than its lease after beat {beat}; {}",
        unreached(before, life)
    )
}

/// Who says that a life is not reached, and whom it does not reach.
fn unreached(register: &Register, life: Life) -> String {
    let name = |life: &Life| register.member(*life).map(|member| member.name.clone());
    let by: Vec<String> = register
        .members()
        .filter(|(_, member)| member.unreachable.contains(&life))
        .map(|(_, member)| member.name.clone())
        .collect();
    let own = register.member(life);
    let own: Vec<String> =
        own.into_iter().flat_map(|member| &member.unreachable).filter_map(name).collect();
    match (by.is_empty(), own.is_empty()) {
        (true, true) => "nobody had said that it is not reached".to_owned(),
        (false, true) => format!("{} did not reach it", by.join(", ")),
        (true, false) => format!("it did not reach {}", own.join(", ")),
        (false, false) => {
            format!("{} did not reach it, and it not {}", by.join(", "), own.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::Span;
    use quorate_service::{Beat, Gone, Nonce, Order, Process, ProposalId, Renewal, Settings};

    use super::*;

    fn process(nonce: u128) -> Process {
        Process {
            nonce: Nonce(nonce),
            boot: 1,
            pid_namespace: 1,
            pid: 1,
            started: 1,
            lock_file: (1, 1),
            address: "h:1".into(),
        }
    }

    #[test]
    fn events_are_there_after_a_restart_and_few_enough() {
        let root = tempfile::tempdir().unwrap();
        let events = Events::open(root.path());
        events.note(Kind::Excluded, 1, "b is doomed".into());
        for number in 0..2 * KEPT {
            events.note(Kind::Link, 1, format!("c is up, {number}"));
        }
        drop(events);
        let events = Events::open(root.path()).latest();
        assert_eq!(events.len(), KEPT + 1, "links do not drive out who was excluded");
        assert_eq!(events.first().unwrap().text, "b is doomed");
        assert!(events.last().unwrap().text.ends_with(&format!(" {}", 2 * KEPT - 1)));
    }

    #[test]
    fn a_file_that_grew_too_long_is_cut() {
        let root = tempfile::tempdir().unwrap();
        let events = Events::open(root.path());
        let long = "x".repeat(10_000);
        for _ in 0..150 {
            events.note(Kind::View, 1, long.clone());
        }
        let path = root.path().join("events.jsonl");
        assert!(std::fs::metadata(&path).unwrap().len() < FILE_MAX + 20_000);
        std::fs::write(&path, "{\"at_ms\":1,\nnonsense\n").unwrap();
        assert!(Events::open(root.path()).latest().is_empty());
    }

    #[test]
    fn who_is_excluded_is_told_with_the_reason() {
        let mut register = Register::founded(10, Settings { lease: Span(5) });
        for (place, name) in ["a", "b"].into_iter().enumerate() {
            let process = process(place as u128);
            register.apply(&Order::Admit { name: name.into(), process });
        }
        let lives: Vec<Life> = register.members().map(|(life, _)| life).collect();
        let decide = |register: &mut Register, next: Vec<Life>, gone| {
            let after = register.epoch();
            let id = ProposalId(u128::from(after.0));
            register.apply(&Order::Decide { after, id, next, gone })
        };
        let mut seated = register.clone();
        decide(&mut seated, lives.clone(), Vec::new());
        let said = between(&register, &seated);
        assert_eq!(said, [(Kind::View, "view 11 of a, b".to_owned())]);

        let mut renewal = Renewal::new(lives[0], 1);
        renewal.unreachable.insert(lives[1]);
        seated.apply(&Order::Renew(vec![renewal]));
        let mut doomed = seated.clone();
        doomed.apply(&Order::Doom { life: lives[1], beat: Beat(1) });
        let said = between(&seated, &doomed);
        assert!(said[0].1.starts_with("b (life 11) is doomed: it did not renew"), "{said:?}");
        assert!(said[0].1.ends_with("a did not reach it"), "{said:?}");

        let mut after = doomed.clone();
        let gone = vec![Gone { life: lives[1], ground: Ground::Doomed }];
        decide(&mut after, vec![lives[0]], gone);
        assert_eq!(between(&doomed, &after).len(), 1, "only the view: the doom was told");
        assert_eq!(between(&seated, &after).len(), 2, "both, if the doom was not seen");
    }
}
