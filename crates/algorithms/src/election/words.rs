//! What users and elections say to each other.

use alloc::format;
use core::cmp::Ordering;
use core::fmt;

use quorate_core::NodeId;

/// A command: what the local user wishes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Command {
    /// There is no leader, or not any more: let there be one.
    Elect,
}

/// An event: what the local user is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// You lead.
    Leading(Rank),
    /// You lead in this term, in which nobody else ever does.
    LeadingIn(Rank, Term),
    /// Somebody else leads.
    Following(Rank),
    /// The election also builds a tree, and this is your parent in it, until you hear otherwise.
    Parent(NodeId),
    /// Nobody leads: what you were told before is void, and an election is on, or cannot succeed.
    Leaderless,
}

/// A term: the time in which one node leads, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "term {}", self.0)
    }
}

impl Command {
    /// The command that prints as `text`.
    pub(super) fn read(text: &str) -> Option<Self> {
        (text == "Elect").then_some(Self::Elect)
    }
}

impl Event {
    /// The news that `leader` leads, to the node of rank `mine`.
    pub(super) fn of(leader: Rank, mine: Rank) -> Self {
        if leader == mine { Self::Leading(leader) } else { Self::Following(leader) }
    }

    /// The event that prints as `text`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let event = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some(("Leading", rank)) => Self::Leading(Rank::read(rank)?),
            Some(("LeadingIn", both)) => {
                let (rank, term) = both.split_once(", term ")?;
                Self::LeadingIn(Rank::read(rank)?, Term(term.parse().ok()?))
            }
            Some(("Following", rank)) => Self::Following(Rank::read(rank)?),
            Some(("Parent", node)) => Self::Parent(NodeId::new(node.parse().ok()?)?),
            Some(_) => return None,
            None => Self::Leaderless,
        };
        // Numbers can be written in several ways, of which one is what an event prints.
        (format!("{event:?}") == text).then_some(event)
    }
}

/// The end of the order that wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Criterion {
    /// The highest weight, and of equal ones the highest id.
    #[default]
    Highest,
    /// The lowest weight, and of equal ones the lowest id.
    Lowest,
}

/// A rank: what a candidate offers. The *greater* rank wins, whatever the criterion.
///
/// Twelve bytes, because elections of a million nodes have a million of them in flight: the weight
/// in two halves, and the criterion in the highest bit of the id.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rank {
    weight_high: u32,
    weight_low: u32,
    id_and_criterion: u32,
}

const LOWEST: u32 = 1 << 31;
/// Behind a rank as printed: the lower one wins.
const LOWEST_MARK: char = '↓';

impl Rank {
    /// The largest id.
    pub const ID_MAX: u32 = LOWEST - 1;

    /// The rank of the candidate with this id, which also breaks ties between equal weights.
    ///
    /// # Panics
    /// If the id is larger than [`Rank::ID_MAX`].
    #[must_use]
    pub const fn new(id: u32, weight: u64, criterion: Criterion) -> Self {
        assert!(id <= Self::ID_MAX, "ids have 31 bits");
        let end = match criterion {
            Criterion::Highest => 0,
            Criterion::Lowest => LOWEST,
        };
        Self {
            weight_high: (weight >> 32) as u32,
            weight_low: weight as u32,
            id_and_criterion: id | end,
        }
    }

    /// The id of the candidate.
    #[must_use]
    pub const fn id(self) -> u32 {
        self.id_and_criterion & Self::ID_MAX
    }

    /// The weight, which decides.
    #[must_use]
    pub const fn weight(self) -> u64 {
        (self.weight_high as u64) << 32 | self.weight_low as u64
    }

    /// The rank that prints as `text`.
    fn read(text: &str) -> Option<Self> {
        let (text, criterion) = match text.strip_suffix(LOWEST_MARK) {
            Some(text) => (text, Criterion::Lowest),
            None => (text, Criterion::Highest),
        };
        let (id, weight) = text.split_once(':').unwrap_or((text, text));
        let id = id.parse().ok().filter(|id| *id <= Self::ID_MAX)?;
        Some(Self::new(id, weight.parse().ok()?, criterion))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |rank: &Self| (rank.weight(), rank.id_and_criterion);
        let order = key(self).cmp(&key(other));
        if self.id_and_criterion & LOWEST == 0 { order } else { order.reverse() }
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id())?;
        let named_by_weight = self.weight() == u64::from(self.id());
        if !named_by_weight {
            write!(f, ":{}", self.weight())?;
        }
        if self.id_and_criterion & LOWEST == 0 { Ok(()) } else { write!(f, "{LOWEST_MARK}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_rank_wins_under_both_criteria() {
        let rank = |id, weight, criterion| Rank::new(id, weight, criterion);
        assert!(rank(1, 9, Criterion::Highest) > rank(2, 8, Criterion::Highest));
        assert!(rank(2, 9, Criterion::Highest) > rank(1, 9, Criterion::Highest));
        assert!(rank(1, 8, Criterion::Lowest) > rank(2, 9, Criterion::Lowest));
        assert!(rank(1, 9, Criterion::Lowest) > rank(2, 9, Criterion::Lowest));
    }

    #[test]
    fn events_are_read_as_they_print() {
        let weighed = Rank::new(7, 1 << 40, Criterion::Lowest);
        for event in [
            Event::Leading(Rank::new(3, 3, Criterion::Highest)),
            Event::Leading(Rank::new(3, 3, Criterion::Lowest)),
            Event::LeadingIn(weighed, Term(7)),
            Event::Following(weighed),
            Event::Parent(NodeId::at(8)),
            Event::Leaderless,
        ] {
            assert_eq!(Event::read(&format!("{event:?}")), Some(event));
        }
        let too_large = format!("Leading({})", u32::MAX);
        for text in
            ["", "Leading", "Leading()", "Leading(+3)", "Leading(3:3)", "Parent(0)", "LeadingIn(3)"]
        {
            assert_eq!(Event::read(text), None, "{text}");
        }
        assert_eq!(Event::read(&too_large), None);
    }
}
