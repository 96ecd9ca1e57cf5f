//! The history of a member: what it did and was told, for the judge of faults.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use quorate_service::history::{Fact, Record, Role};
use quorate_service::seat::Event;
use quorate_service::{Epoch, Nonce, Register};
use tracing::warn;

use crate::feed::Feed;

/// Writes down what happens, each fact at once: what was done before a process is killed must be there.
/// Those who watch are told as well.
#[derive(Debug)]
pub(crate) struct History {
    file: Option<File>,
    pub(crate) feed: Feed,
    member: String,
    process: Nonce,
    /// The view that was seen last.
    epoch: Epoch,
}

impl History {
    /// Goes on with this file, if there is one, for a process of this member.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn open(path: Option<&Path>, member: &str, nonce: u128) -> io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let file = path.map(open).transpose()?;
        let (member, process) = (member.to_owned(), Nonce(nonce));
        let mut history = Self { file, feed: Feed::new(), member, process, epoch: Epoch(0) };
        history.note(Fact::Start { pid: std::process::id(), role: Role::Member });
        Ok(history)
    }

    /// The same history, for another thread: each record is written in one piece. None if nothing is written.
    ///
    /// # Errors
    /// If the system does not give another way to the file.
    pub(crate) fn another(&self) -> io::Result<Option<Self>> {
        let Some(file) = &self.file else { return Ok(None) };
        let (file, feed) = (Some(file.try_clone()?), self.feed.another());
        let (member, process, epoch) = (self.member.clone(), self.process, self.epoch);
        Ok(Some(Self { file, feed, member, process, epoch }))
    }

    /// Writes a fact down.
    pub(crate) fn note(&mut self, fact: Fact) {
        if self.file.is_none() && !self.feed.is_watched() {
            return;
        }
        let (t, clock) = quorate_transport::reading();
        let (member, process) = (self.member.clone(), self.process);
        let record = Record { t, clock, member, process, fact };
        self.feed.fact(&record);
        let Some(file) = &mut self.file else { return };
        let written = serde_json::to_vec(&record).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            file.write_all(&line)
        });
        if let Err(error) = written {
            warn!(%error, "the history cannot be written");
        }
    }

    /// The seat has told something.
    pub(crate) fn event(&mut self, event: &Event) {
        self.note(match event.clone() {
            Event::Installed { epoch, life, members } => Fact::Installed { epoch, life, members },
            Event::Stopped(epoch) => Fact::Stopped { epoch },
            Event::Presides { epoch, until } => Fact::Presides { epoch, until },
            Event::Until(at) => Fact::Until { at },
            Event::Lost => Fact::Lost { why: "its lease has run out, or its life is over".into() },
            Event::Out(life) => Fact::Out { life },
            Event::Left => Fact::Left,
            // The report has noted it; and only a register that is a node of a simulation speaks.
            Event::Lives(_) | Event::Register(_) => return,
        });
    }

    /// A message of this kind came in from a member.
    pub(crate) fn message(&mut self, from: &str, kind: (&'static str, &'static str)) {
        self.feed.message(&self.member, from, kind);
    }

    /// The consensus has committed this register.
    pub(crate) fn committed(&mut self, register: &Register) {
        let epoch = register.epoch();
        if epoch > self.epoch && !register.view().is_empty() {
            self.epoch = epoch;
            self.note(Fact::Decided { epoch, members: register.view().to_vec() });
        }
    }
}
