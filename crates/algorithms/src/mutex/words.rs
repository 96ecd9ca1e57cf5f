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
    /// You are inside of this region, where there are several; with the stamp of the wish, as above.
    Entered(Region, Option<Stamp>),
    /// You are inside, and this proves it: whatever is guarded refuses older tokens.
    Fenced(Fence),
    /// You are not inside any more: the others go on without you.
    Lost,
}

/// A critical region, where there are several; the first is `a`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Region(pub u8);

impl fmt::Debug for Region {
    /// A letter, or two behind `z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |place: u8| char::from(b'a' + place % 26);
        match self.0 / 26 {
            0 => write!(f, "{}", letter(self.0)),
            row => write!(f, "{}{}", letter(row - 1), letter(self.0)),
        }
    }
}

impl Region {
    /// The region that prints so.
    fn read(text: &str) -> Option<Self> {
        (0..=u8::MAX).map(Self).find(|region| format!("{region:?}") == text)
    }
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
            ("Granted", stamp) => Self::Granted(read_stamp(stamp)?),
            ("Entered", entry) => {
                let (region, stamp) = entry.split_once(", ")?;
                Self::Entered(Region::read(region)?, read_stamp(stamp)?)
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

/// The stamp that prints so, if there is one.
fn read_stamp(text: &str) -> Option<Option<Stamp>> {
    if text == "None" {
        return Some(None);
    }
    let stamp = text.strip_prefix("Some(")?.strip_suffix(')')?;
    let (time, node) = stamp.split_once('.')?;
    let (time, node) = (time.parse().ok()?, NodeId::new(node.parse().ok()?)?);
    Some(Some(Stamp { time, node }))
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
        let regions = [0, 25, 26, 63].map(|region| Event::Entered(Region(region), Some(stamp)));
        assert_eq!(
            format!(
                "{:?}",
                regions.map(|event| match event {
                    Event::Entered(region, _) => region,
                    _ => unreachable!("all of them are"),
                })
            ),
            "[a, z, aa, bl]"
        );
        let others = [Event::Lost, Event::Entered(Region(1), None)];
        for event in events.into_iter().chain(regions).chain(others) {
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
