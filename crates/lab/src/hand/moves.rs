//! Moves: what somebody lets happen, as typed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use quorate_core::NodeId;
use quorate_core::trace::{Happening, Outcome, Record};

use crate::text::{Unclear, stands_as_text};

/// Something that somebody lets happen.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Move {
    /// What.
    pub action: Action,
    /// What the node chooses then; drawn from the seed as far as it is not said.
    pub choices: Vec<u32>,
}

/// What can happen next. Nodes are named by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Action {
    /// The user at a node gives its next command: `c1`.
    Command(NodeId),
    /// A message arrives: `d1.2-3` is what node 1 sent to node 3 in its second sending.
    Deliver(NodeId, u64, NodeId),
    /// A timer of a node runs out, by its place among those that are set: `t1.0`.
    Timer(NodeId, usize),
    /// A failure detector tells a node of another one: `w1.3`.
    Word(NodeId, NodeId),
    /// A node crashes: `x3`.
    Crash(NodeId),
    /// A node comes up again: `r3`.
    Recover(NodeId),
    /// A message is lost: `l1.2-3`.
    Lose(NodeId, u64, NodeId),
    /// A message will arrive once more: `e1.2-3`.
    Repeat(NodeId, u64, NodeId),
}

impl Action {
    /// Is it something that goes wrong?
    #[must_use]
    pub const fn is_fault(self) -> bool {
        matches!(self, Self::Crash(_) | Self::Recover(_) | Self::Lose(..) | Self::Repeat(..))
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.action {
            Action::Command(node) => write!(f, "c{node}"),
            Action::Deliver(from, id, to) => write!(f, "d{from}.{id}-{to}"),
            Action::Timer(node, place) => write!(f, "t{node}.{place}"),
            Action::Word(node, peer) => write!(f, "w{node}.{peer}"),
            Action::Crash(node) => write!(f, "x{node}"),
            Action::Recover(node) => write!(f, "r{node}"),
            Action::Lose(from, id, to) => write!(f, "l{from}.{id}-{to}"),
            Action::Repeat(from, id, to) => write!(f, "e{from}.{id}-{to}"),
        }?;
        for choice in &self.choices {
            write!(f, "*{choice}")?;
        }
        Ok(())
    }
}

impl FromStr for Move {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let bad = || Unclear::new(format!("{text} is not a move such as c1, d1.2-3 or x2"));
        let mut parts = text.split('*');
        let action = parts.next().unwrap_or_default();
        let choices = parts.map(|choice| choice.parse().map_err(|_| bad()));
        let choices = choices.collect::<Result<_, _>>()?;
        let node = |text: &str| text.parse().ok().and_then(NodeId::new).ok_or_else(bad);
        let mut letters = action.chars();
        let (letter, rest) = (letters.next(), letters.as_str());
        let pair = || rest.split_once('.').ok_or_else(bad);
        let message = || {
            let (from, rest) = pair()?;
            let (id, to) = rest.split_once('-').ok_or_else(bad)?;
            Ok((node(from)?, id.parse().map_err(|_| bad())?, node(to)?))
        };
        let action = match letter {
            Some('c') => Action::Command(node(rest)?),
            Some('x') => Action::Crash(node(rest)?),
            Some('r') => Action::Recover(node(rest)?),
            Some('t') => {
                let (of, place) = pair()?;
                Action::Timer(node(of)?, place.parse().map_err(|_| bad())?)
            }
            Some('w') => {
                let (of, peer) = pair()?;
                Action::Word(node(of)?, node(peer)?)
            }
            Some('d') => message().map(|(from, id, to)| Action::Deliver(from, id, to))?,
            Some('l') => message().map(|(from, id, to)| Action::Lose(from, id, to))?,
            Some('e') => message().map(|(from, id, to)| Action::Repeat(from, id, to))?,
            _ => return Err(bad()),
        };
        Ok(Self { action, choices })
    }
}

stands_as_text!(Move);

/// The moves that lead through a trace of a check.
#[must_use]
pub fn moves_of(records: &[Record]) -> Vec<Move> {
    let mut timers: BTreeMap<NodeId, BTreeSet<String>> = BTreeMap::new();
    let mut moves = Vec::new();
    let mut down = BTreeSet::new();
    for (number, record) in records.iter().enumerate() {
        let node = record.node;
        let set = timers.entry(node).or_default();
        let action = match &record.input {
            Happening::Command(_) | Happening::Refused(..) => Some(Action::Command(node)),
            Happening::Receive(it) => Some(Action::Deliver(it.from, it.id, node)),
            Happening::Liveness(peer, _) => Some(Action::Word(node, *peer)),
            Happening::Recover => Some(Action::Recover(node)),
            Happening::Timer(timer) => {
                let place = set.iter().position(|set| set == timer);
                set.remove(timer);
                place.map(|place| Action::Timer(node, place))
            }
            Happening::Crash => {
                set.clear();
                down.insert(node);
                Some(Action::Crash(node))
            }
            // What a crash loses is lost with it, and what is sent to the dead at once.
            Happening::Lose(it) => {
                (!down.contains(&node)).then_some(Action::Lose(it.from, it.id, node))
            }
            _ => None,
        };
        if matches!(record.input, Happening::Recover) {
            down.remove(&node);
        }
        let set = timers.entry(node).or_default();
        for effect in &record.effects {
            match effect {
                Outcome::Set(timer) => {
                    set.insert(timer.clone());
                }
                Outcome::Cancel(timer) => {
                    set.remove(timer);
                }
                _ => {}
            }
        }
        // A message that arrives again later has been repeated before.
        if let Some(action @ Action::Deliver(from, id, to)) = action {
            let again = records[number + 1..].iter().any(|later| match &later.input {
                Happening::Receive(it) => (it.from, it.id, later.node) == (from, id, to),
                _ => false,
            });
            if again {
                moves.push(Move { action: Action::Repeat(from, id, to), choices: Vec::new() });
            }
            moves.push(Move { action, choices: record.choices.clone() });
        } else if let Some(action) = action {
            moves.push(Move { action, choices: record.choices.clone() });
        }
    }
    moves
}
