//! What users and mutexes say to each other.

use alloc::format;
use core::fmt;

use quorate_core::{NodeId, Stamp, ViewId};

/// A command: what the local user wishes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Command {
    /// Let me in.
    Acquire,
    /// I am out.
    Release,
}

/// An event: what the local user is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// You are inside; with the stamp of the wish, where the algorithm has one.
    Granted(Option<Stamp>),
    /// You are inside, and this proves it: whatever is guarded refuses older tokens.
    Fenced(Fence),
    /// You are not inside any more: the others go on without you.
    Lost,
}

/// A token of an entry. Each is larger than all that were given before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Fence {
    /// The view of the entry.
    pub epoch: ViewId,
    /// A number that grows with each entry of this view.
    pub counter: u64,
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch.0, self.counter)
    }
}

impl Command {
    /// The command that prints so.
    pub(super) fn read(text: &str) -> Option<Self> {
        [Self::Acquire, Self::Release].into_iter().find(|command| format!("{command:?}") == text)
    }
}

impl Event {
    /// The event that prints so.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (name, told) = match text.strip_suffix(')') {
            Some(text) => text.split_once('(')?,
            None => (text, ""),
        };
        let event = match (name, told) {
            ("Lost", _) => Self::Lost,
            ("Granted", "None") => Self::Granted(None),
            ("Granted", stamp) => {
                let stamp = stamp.strip_prefix("Some(")?.strip_suffix(')')?;
                let (time, node) = stamp.split_once('.')?;
                let (time, node) = (time.parse().ok()?, NodeId::new(node.parse().ok()?)?);
                Self::Granted(Some(Stamp { time, node }))
            }
            ("Fenced", fence) => {
                let (epoch, counter) = fence.split_once(':')?;
                let (epoch, counter) = (ViewId(epoch.parse().ok()?), counter.parse().ok()?);
                Self::Fenced(Fence { epoch, counter })
            }
            _ => return None,
        };
        // Numbers can be written in several ways, of which one is what an event prints.
        (format!("{event:?}") == text).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    #[test]
    fn commands_are_read_as_they_print() {
        for command in [Command::Acquire, Command::Release] {
            assert_eq!(Command::read(&format!("{command:?}")), Some(command));
        }
        assert_eq!(Command::read("acquire"), None);
    }

    #[test]
    fn events_are_read_as_they_print() {
        let stamp = Stamp { time: 12, node: node(3) };
        let fence = Fence { epoch: ViewId(2), counter: 7 };
        let events = [Event::Granted(None), Event::Granted(Some(stamp)), Event::Fenced(fence)];
        for event in events.into_iter().chain([Event::Lost]) {
            assert_eq!(Event::read(&format!("{event:?}")), Some(event));
        }
        for text in ["", "Granted", "Granted()", "Granted(Some(1.0))", "Granted(Some(+1.1))"] {
            assert_eq!(Event::read(text), None, "{text}");
        }
        for text in ["Lost()", "Lost(1)", "Fenced", "Fenced(1)", "Fenced(01:2)", "Fenced(1:-2)"] {
            assert_eq!(Event::read(text), None, "{text}");
        }
    }
}
