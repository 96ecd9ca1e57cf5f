//! What the world does to messages and nodes.

use std::fmt;
use std::str::FromStr;

use quorate_core::{Clocks, NodeId, NodeSet, Span, Time};
use rustc_hash::FxHashMap;

use crate::Latency;

/// What happens to messages.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Network {
    /// How long they take.
    pub latency: Latency,
    /// Does every link keep the order?
    pub fifo: bool,
    /// The probability that a message is lost.
    pub loss: f64,
    /// Links on which it is another one.
    pub loss_table: LossTable,
    /// The probability that a message arrives twice.
    pub duplicate: f64,
    /// The probability that a message is held up for another latency or more and overtaken, even
    /// where links keep the order.
    pub reorder: f64,
    /// Do all nodes send over one medium, which carries one sending at a time? It is the same for one
    /// receiver as for many, and begins when those are over that were to be sent before.
    pub shared_medium: bool,
    /// When the network is cut in parts.
    pub partitions: Vec<Partition>,
    /// When single links are cut, in one direction or in both.
    pub cuts: Vec<Cut>,
    /// Single messages that take another time: for the scenarios of papers.
    pub slow: Vec<Slow>,
    /// Single messages that somebody interferes with. All others are as they would be without.
    pub tampered: Vec<Tampered>,
}

impl Network {
    /// Does every message arrive once, after its latency and nothing else?
    pub(crate) fn is_plain(&self) -> bool {
        let Self { loss, loss_table, duplicate, reorder, partitions, cuts, slow, tampered, .. } =
            self;
        let whole = partitions.is_empty() && cuts.is_empty();
        let lists_empty =
            loss_table.0.is_empty() && whole && slow.is_empty() && tampered.is_empty();
        [*loss, *duplicate, *reorder] == [0.0; 3] && lists_empty && !self.shared_medium
    }

    /// Everything that keeps messages from arriving for a while.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = Gap<'_>> {
        let partitions = self.partitions.iter().map(Gap::Partition);
        partitions.chain(self.cuts.iter().map(Gap::Cut))
    }

    /// Until when no message gets from one node to the other, if none does at this time.
    pub(crate) fn cut_until(&self, from: NodeId, to: NodeId, at: Time) -> Option<Time> {
        self.gaps().filter(|gap| gap.severs(from, to, at)).map(Gap::until).max()
    }

    /// The probability that a message is lost on this link.
    pub(crate) fn loss_on(&self, from: NodeId, to: NodeId) -> f64 {
        self.loss_table.0.get(&(from, to)).copied().unwrap_or(self.loss)
    }
}

/// Links that lose messages with a probability of their own.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LossTable(FxHashMap<(NodeId, NodeId), f64>);

impl FromStr for LossTable {
    type Err = BadLossTable;

    /// Lines of `FROM TO PROBABILITY`; what follows a `#` is a remark.
    fn from_str(text: &str) -> Result<Self, BadLossTable> {
        let mut table = FxHashMap::default();
        for (line, number) in text.lines().zip(1..) {
            let line = line.split('#').next().unwrap_or("").trim();
            let words: Vec<_> = line.split_whitespace().collect();
            let node = |text: &str| text.parse().ok().and_then(NodeId::new);
            let probability = |text: &str| text.parse().ok().filter(|p| (0.0..=1.0).contains(p));
            let entry = match words[..] {
                [] => continue,
                [from, to, loss] => node(from).zip(node(to)).zip(probability(loss)),
                _ => None,
            };
            let Some((link, loss)) = entry else {
                return Err(BadLossTable { number, line: line.to_owned() });
            };
            table.insert(link, loss);
        }
        Ok(Self(table))
    }
}

/// A line that does not say how often a link loses messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadLossTable {
    number: usize,
    line: String,
}

impl fmt::Display for BadLossTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, line } = self;
        write!(f, "line {number}: {line:?} is not of the form FROM TO PROBABILITY")
    }
}

impl std::error::Error for BadLossTable {}

/// One message that takes another time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slow {
    /// Who sends it.
    pub from: NodeId,
    /// Who receives it.
    pub to: NodeId,
    /// Its number among the messages on this link, counted from 1.
    pub nth: u32,
    /// How long it takes.
    pub latency: Span,
}

/// Something that is done to one message, or to all from one on. Nothing is drawn for it, so that whatever
/// is not a consequence of it stays as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tampered {
    /// Who sends the message.
    pub from: NodeId,
    /// The number of the sending among those of that node, as traces say it.
    pub id: u64,
    /// Is the same done to all that it sends there later?
    pub and_on: bool,
    /// Who is to receive it.
    pub to: NodeId,
    /// What is done to it.
    pub how: Tampering,
}

/// What can be done to a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tampering {
    /// It does not arrive.
    Lose,
    /// It takes so much longer. Where links keep the order, those behind it wait.
    Delay(Span),
    /// It arrives once more, so much later.
    Repeat(Span),
}

/// A cut: nodes of different sides do not reach each other for a while. A message is lost if the
/// cut is there when it is sent or when it would arrive. Nodes on no side reach everybody.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Partition {
    /// The sides.
    pub sides: Vec<NodeSet>,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
}

impl Partition {
    /// Does it keep the two apart at this time?
    #[must_use]
    pub fn cuts(&self, from: NodeId, to: NodeId, at: Time) -> bool {
        let side = |node| self.sides.iter().position(|side| side.contains(node));
        (self.from..self.until).contains(&at)
            && side(from).zip(side(to)).is_some_and(|(from, to)| from != to)
    }
}

/// A link that carries nothing for a while. As of a [`Partition`], a message is lost if the cut is
/// there when it is sent or when it would arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Whose messages do not arrive.
    pub from: NodeId,
    /// Where they do not arrive.
    pub to: NodeId,
    /// The other direction is cut too.
    pub both_ways: bool,
    /// From when on.
    pub start: Time,
    /// Until when.
    pub until: Time,
}

/// Something that keeps messages from arriving for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gap<'a> {
    Partition(&'a Partition),
    Cut(&'a Cut),
}

impl Gap<'_> {
    /// Does it keep what one node sends from the other at this time?
    pub(crate) fn severs(self, sender: NodeId, receiver: NodeId, at: Time) -> bool {
        match self {
            Self::Partition(partition) => partition.cuts(sender, receiver, at),
            Self::Cut(&Cut { from, to, both_ways, start, until }) => {
                let there = (sender, receiver) == (from, to);
                let back = both_ways && (sender, receiver) == (to, from);
                (there || back) && (start..until).contains(&at)
            }
        }
    }

    pub(crate) const fn start(self) -> Time {
        match self {
            Self::Partition(partition) => partition.from,
            Self::Cut(cut) => cut.start,
        }
    }

    pub(crate) const fn until(self) -> Time {
        match self {
            Self::Partition(partition) => partition.until,
            Self::Cut(cut) => cut.until,
        }
    }
}

/// What happens to nodes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Faults {
    /// Who crashes.
    pub crashes: Vec<Crash>,
    /// Who comes up again.
    pub recoveries: Vec<Recovery>,
    /// After how long a failure detector tells of a crash, a cut, a pause, or the end of one; never
    /// if none. A cut or a pause that does not last so long goes unnoticed.
    pub detection: Option<Span>,
    /// Who does nothing for a while.
    pub pauses: Vec<Pause>,
    /// Whose clock runs fast or slow.
    pub clocks: Vec<ClockRate>,
    /// The disks on which nodes keep their records; without, a record is durable at once.
    pub disk: Option<Disk>,
}

impl Faults {
    /// The time on the clock of a node.
    #[must_use]
    pub fn clock(&self, node: NodeId, now: Time) -> Time {
        Time(self.rate(node).map_or(now.0, |rate| scaled(now.0, rate, ClockRate::TRUE)))
    }

    /// How long it takes until so much time has passed on the clock of a node.
    #[must_use]
    pub fn waiting(&self, node: NodeId, span: Span) -> Span {
        Span(self.rate(node).map_or(span.0, |rate| scaled(span.0, ClockRate::TRUE, rate)))
    }

    /// What all clocks show at this time.
    #[must_use]
    pub const fn clocks(&self, now: Time) -> ClocksAt<'_> {
        ClocksAt { faults: self, now }
    }

    fn rate(&self, node: NodeId) -> Option<u32> {
        self.clocks.iter().find(|clock| clock.node == node).map(|clock| clock.rate)
    }

    /// Everybody crashes at one time, and comes up again at another.
    pub fn restart_all(&mut self, count: usize, down: Time, up: Time) {
        self.crashes.extend(NodeId::first(count).map(|node| Crash { node, at: down }));
        self.recoveries.extend(NodeId::first(count).map(|node| Recovery { node, at: up }));
    }
}

/// What all clocks show at a time.
#[derive(Clone, Copy, Debug)]
pub struct ClocksAt<'a> {
    faults: &'a Faults,
    now: Time,
}

impl Clocks for ClocksAt<'_> {
    fn clock(&self, node: NodeId) -> Time {
        self.faults.clock(node, self.now)
    }
}

fn scaled(value: u64, times: u32, by: u32) -> u64 {
    u64::try_from(u128::from(value) * u128::from(times) / u128::from(by.max(1))).unwrap_or(u64::MAX)
}

/// A node does nothing for a while, as when its process is stopped. Whatever happens to it meanwhile
/// waits, and is handled afterwards, in order. Its clock goes on, and whatever it has sent arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// Who.
    pub node: NodeId,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
}

/// A clock that runs fast or slow; timers run out by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockRate {
    /// Whose.
    pub node: NodeId,
    /// In millionths: 1,100,000 for a clock that gains a tenth.
    pub rate: u32,
}

impl ClockRate {
    /// A clock that runs true.
    pub const TRUE: u32 = 1_000_000;
}

/// A disk that takes time. While a record is being written its node does nothing, and nothing that
/// the step does is seen by anybody; a node that crashes meanwhile finds the record, or the one
/// before it, or none that it can read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Disk {
    /// How long a record takes.
    pub write: Span,
    /// The probability that a crash tears what is being written, so that nothing can be read under
    /// its key. If it does not, the record is there or not with equal probability.
    pub torn: f64,
}

/// A node stops. At time 0, it never starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// Who.
    pub node: NodeId,
    /// When.
    pub at: Time,
}

/// A node comes up again, with what it persisted and nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// Who.
    pub node: NodeId,
    /// When.
    pub at: Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u32) -> NodeId {
        NodeId::new(number).unwrap()
    }

    #[test]
    fn a_table_overrules_the_loss_of_its_links_only() {
        let loss_table = "1 2 0.5 # a bad cable\n\n2 1 0\n".parse().unwrap();
        let network = Network { loss: 0.1, loss_table, ..Network::default() };
        let of = |from, to| network.loss_on(node(from), node(to));
        assert_eq!((of(1, 2), of(2, 1), of(1, 3)), (0.5, 0.0, 0.1));
        let loss_table: LossTable = "1 2 1".parse().unwrap();
        assert!(!Network { loss_table, ..Network::default() }.is_plain());
    }

    #[test]
    fn nonsense_in_a_table_is_named_with_its_line() {
        for bad in ["1 2", "0 1 0.5", "1 2 1.5", "1 2 nan", "1 2 -1", "1 two 0.5", "1 2 3 4"] {
            let error = format!("1 2 0.5\n{bad}").parse::<LossTable>().unwrap_err().to_string();
            let wanted = format!("line 2: {bad:?} is not of the form FROM TO PROBABILITY");
            assert_eq!(error, wanted);
        }
    }
}
