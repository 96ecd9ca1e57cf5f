//! What a member tells those who watch it: facts as they happen, and a sample of the messages.
//!
//! Nobody watches most of the time: then nothing is written, counted or copied.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_core::Span;
use quorate_service::history::Record;
use serde::Serialize;
use tokio::sync::broadcast;

/// So much is kept for a watcher that is slow; what is older it does not get.
const KEPT: usize = 1024;
/// A window of the sample.
const WINDOW: Span = Span::units(100);
/// So many messages of a window are told of each sort, the first ones.
const SAMPLE: u32 = 3;

/// Something that a watcher is told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum Told {
    /// A fact of the history.
    Fact(Record),
    /// A message that came in.
    Message(Heard),
}

/// A message that came in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Heard {
    /// When, by the kernel's clock, in nanoseconds.
    pub t: u64,
    /// At which member.
    pub member: String,
    /// From which one.
    pub from: String,
    /// What it is about: `seat`, `lock`, `group`, `consensus` or `founding`.
    pub about: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// How many have come in since somebody watches, with those that are left out.
    pub count: u64,
}

/// What a member tells those who watch it.
#[derive(Debug)]
pub(crate) struct Feed {
    tell: broadcast::Sender<Arc<Told>>,
    /// When the window began for messages about something, and how many of them were told.
    windows: BTreeMap<&'static str, (u64, u32)>,
    count: u64,
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self { tell: broadcast::Sender::new(KEPT), windows: BTreeMap::new(), count: 0 }
    }

    /// The same feed, for another thread: it samples by itself.
    pub(crate) fn another(&self) -> Self {
        Self { tell: self.sender(), windows: BTreeMap::new(), count: 0 }
    }

    /// For those who want to watch.
    pub(crate) fn sender(&self) -> broadcast::Sender<Arc<Told>> {
        self.tell.clone()
    }

    /// Does anybody watch?
    pub(crate) fn is_watched(&self) -> bool {
        self.tell.receiver_count() > 0
    }

    /// Tells a fact.
    pub(crate) fn fact(&self, record: &Record) {
        if self.is_watched() {
            // Whoever watched may have just gone.
            let _ = self.tell.send(Arc::new(Told::Fact(record.clone())));
        }
    }

    /// A message of this kind came in from a member.
    pub(crate) fn message(
        &mut self,
        member: &str,
        from: &str,
        (about, kind): (&'static str, &'static str),
    ) {
        if !self.is_watched() {
            return;
        }
        let (t, _) = quorate_transport::reading();
        self.count += 1;
        if !self.is_in_sample(about, t) {
            return;
        }
        let (member, from, count) = (member.to_owned(), from.to_owned(), self.count);
        let heard = Heard { t, member, from, about, kind, count };
        let _ = self.tell.send(Arc::new(Told::Message(heard)));
    }

    /// Is a message that came in at this time told?
    fn is_in_sample(&mut self, about: &'static str, t: u64) -> bool {
        let (begun, told) = self.windows.entry(about).or_default();
        if t.saturating_sub(*begun) >= WINDOW.0 {
            (*begun, *told) = (t, 0);
        }
        *told = told.saturating_add(1);
        *told <= SAMPLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_messages_a_sample_is_told_in_every_window() {
        let mut feed = Feed::new();
        let mut told = |from: u64, many: u64| {
            (0..many).filter(|at| feed.is_in_sample("seat", WINDOW.0 * from + at)).count()
        };
        assert_eq!(told(10, 1_000), SAMPLE as usize);
        assert_eq!(told(11, 3), 3);
        assert_eq!(told(20, 100), SAMPLE as usize);
        assert!(
            feed.is_in_sample("lock", WINDOW.0 * 20 + 100),
            "others have a window of their own"
        );
    }

    #[test]
    fn what_nobody_watches_is_not_counted() {
        let mut feed = Feed::new();
        feed.message("a", "b", ("seat", "PING"));
        assert_eq!(feed.count, 0);
        let mut watcher = feed.sender().subscribe();
        feed.message("a", "b", ("seat", "PING"));
        let Ok(told) = watcher.try_recv() else { panic!("a watcher is told") };
        let Told::Message(heard) = &*told else { panic!("a message") };
        assert_eq!((&*heard.from, heard.kind, heard.count), ("b", "PING", 1));
    }
}
