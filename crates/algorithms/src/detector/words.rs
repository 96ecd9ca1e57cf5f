//! What failure detectors say to their users.

use alloc::format;
use core::convert::Infallible;

use quorate_core::NodeId;

/// A command: there is none, a detector works unasked.
pub type Command = Infallible;

/// An event: what the local user is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// This node seems to have crashed.
    Suspect(NodeId),
    /// It has not, or is back.
    Trust(NodeId),
}

impl Event {
    /// The event that prints as `text`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (word, node) = text.strip_suffix(')')?.split_once('(')?;
        let node = NodeId::new(node.parse().ok()?)?;
        let event = match word {
            "Suspect" => Self::Suspect(node),
            "Trust" => Self::Trust(node),
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
    fn events_are_read_as_they_print() {
        for event in [Event::Suspect(node(3)), Event::Trust(node(12))] {
            assert_eq!(Event::read(&format!("{event:?}")), Some(event));
        }
        for text in ["", "Suspect", "Suspect()", "Suspect(0)", "Suspect(+1)", "Doubt(1)"] {
            assert_eq!(Event::read(text), None, "{text}");
        }
    }
}
