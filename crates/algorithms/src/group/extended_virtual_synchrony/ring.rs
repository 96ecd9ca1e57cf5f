//! One configuration at one of its members: what was sent in it, and what may be delivered.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet, ViewId};

use super::super::MessageId;
use super::words::{Known, Past, Run, Unit};

/// How many units of its own a member sends beyond what all are known to have.
pub(super) const WINDOW: u64 = 64;
/// The largest time that is believed: below the end of the range of clocks.
const TIME_MAX: u64 = u64::MAX / 2;

/// A configuration. Members have ranks, by their numbers.
///
/// Invariant: a stream holds the units from `discarded` on that have come, and `known.received` of
/// this member says how many have.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Ring {
    pub(super) id: ViewId,
    pub(super) members: Arc<[NodeId]>,
    /// The rank of this node.
    me: usize,
    /// By rank: units that have come and are kept.
    streams: Vec<VecDeque<Unit>>,
    /// By rank: how many units were kept and are not any more. All members have them.
    discarded: Vec<u64>,
    /// By rank: how many units were delivered.
    delivered: Vec<u64>,
    known: Known,
}

impl Ring {
    pub(super) fn new(id: ViewId, members: &NodeSet, me: NodeId) -> Self {
        let members: Arc<[NodeId]> = members.iter().collect();
        let count = members.len();
        Self {
            id,
            me: members.iter().position(|node| *node == me).unwrap_or(0),
            members,
            streams: vec![VecDeque::new(); count],
            discarded: vec![0; count],
            delivered: vec![0; count],
            known: Known { heard: vec![0; count], received: vec![vec![0; count]; count] },
        }
    }

    pub(super) fn rank(&self, node: NodeId) -> Option<usize> {
        self.members.iter().position(|member| *member == node)
    }

    pub(super) fn others(&self) -> NodeSet {
        let me = self.members[self.me];
        self.members.iter().copied().filter(|node| *node != me).collect()
    }

    pub(super) fn is_of(&self, members: &NodeSet) -> bool {
        self.members.iter().copied().eq(members.iter())
    }

    /// By rank, how many units have come.
    pub(super) fn received(&self) -> &[u64] {
        &self.known.received[self.me]
    }

    /// By rank, how many units were delivered.
    pub(super) fn delivered(&self) -> &[u64] {
        &self.delivered
    }

    /// How many units are kept.
    pub(super) fn kept(&self) -> u64 {
        self.streams.iter().map(|stream| stream.len() as u64).sum()
    }

    /// May this member send another unit?
    pub(super) fn has_room(&self) -> bool {
        self.received()[self.me] < self.known_by_all(self.me) + WINDOW
    }

    /// Has this member delivered all that it sent?
    pub(super) fn is_done_with_its_own(&self) -> bool {
        self.delivered[self.me] == self.received()[self.me]
    }

    /// A unit of this member; its number.
    pub(super) fn send(&mut self, unit: Unit) -> u64 {
        let number = self.received()[self.me] + 1;
        self.keep(self.me, number, unit);
        number
    }

    /// A unit has come. False if it makes no sense.
    pub(super) fn take(&mut self, rank: usize, number: u64, unit: Unit) -> bool {
        let fits = rank < self.members.len()
            && unit.after.len() == self.members.len()
            && number == self.received()[rank] + 1
            && number <= self.discarded[rank] + 4 * WINDOW
            && unit.time <= TIME_MAX
            && self.streams[rank].back().is_none_or(|last| last.time < unit.time);
        if fits {
            self.keep(rank, number, unit);
        }
        fits
    }

    fn keep(&mut self, rank: usize, number: u64, unit: Unit) {
        self.hear(rank, unit.time);
        self.streams[rank].push_back(unit);
        self.known.received[self.me][rank] = number;
        let own = &mut self.known.received[rank][rank];
        *own = (*own).max(number);
    }

    /// Whatever comes from this member from now on is younger.
    fn hear(&mut self, rank: usize, time: u64) {
        self.known.heard[rank] = self.known.heard[rank].max(time);
    }

    /// This member's clock: whatever it sends from now on is younger.
    pub(super) fn tick(&mut self, time: u64) {
        self.hear(self.me, time);
    }

    /// What a member says that it has. False if it makes no sense.
    pub(super) fn acknowledge(&mut self, rank: usize, time: u64, received: &[u64]) -> bool {
        let fits = received.len() == self.members.len() && time <= TIME_MAX;
        if fits {
            self.hear(rank, time);
            raise(&mut self.known.received[rank], received);
        }
        fits
    }

    /// How many units of a stream all members are known to have.
    fn known_by_all(&self, rank: usize) -> u64 {
        self.known.received.iter().map(|row| row[rank]).min().unwrap_or(0)
    }

    /// The oldest unit that has come and is not delivered, of the streams that are open.
    fn oldest(&self, open: impl Fn(usize) -> bool) -> Option<(usize, &Unit)> {
        let next = |rank: usize| {
            let at = usize::try_from(self.delivered[rank] - self.discarded[rank]).ok()?;
            Some((rank, self.streams[rank].get(at)?))
        };
        let heads = (0..self.members.len()).filter(|rank| open(*rank)).filter_map(next);
        heads.min_by_key(|(rank, unit)| (unit.time, *rank))
    }

    /// The next message that may be delivered in this configuration: nothing older can come, and if
    /// it is to be safe, all members have it and all that was delivered before it.
    pub(super) fn deliver(&mut self) -> Option<MessageId> {
        let (rank, unit) = self.oldest(|_| true)?;
        let agreed = self.known.heard.iter().all(|time| *time >= unit.time);
        let safe = unit.wish.uniform;
        let mut needed = self.delivered.clone();
        needed[rank] += 1;
        let has_all = |row: &Vec<u64>| row.iter().zip(&needed).all(|(has, need)| has >= need);
        let known = self.known.received.iter().all(has_all) || flaw!(SafeIsAgreed);
        (agreed && (!safe || known)).then(|| self.pass(rank))
    }

    /// The messages that are left, when nothing more can come: in order, but for those that depend
    /// on a message that nobody here has.
    pub(super) fn rest(&mut self) -> Vec<MessageId> {
        let mut delivered = Vec::new();
        let mut broken = vec![false; self.members.len()];
        while let Some((rank, unit)) = self.oldest(|rank| !broken[rank]) {
            let mut causes = unit.after.iter().zip(&self.delivered);
            if causes.all(|(need, has)| has >= need) {
                delivered.push(self.pass(rank));
            } else {
                broken[rank] = true;
            }
        }
        delivered
    }

    fn pass(&mut self, rank: usize) -> MessageId {
        let at = (self.delivered[rank] - self.discarded[rank]) as usize;
        let number = self.streams[rank][at].wish.number;
        self.delivered[rank] += 1;
        MessageId { sender: self.members[rank], number }
    }

    /// Forgets what was delivered and all members are known to have.
    pub(super) fn discard(&mut self) {
        for rank in 0..self.members.len() {
            let end = self.delivered[rank].min(self.known_by_all(rank));
            while self.discarded[rank] < end {
                self.streams[rank].pop_front();
                self.discarded[rank] += 1;
            }
        }
    }

    /// What this member knows, for those who come from here too.
    pub(super) fn past(&self) -> Past {
        Past { id: self.id, known: self.known.clone() }
    }

    /// Can a member know this?
    pub(super) fn is_plausible(&self, known: &Known) -> bool {
        let count = self.members.len();
        let near = |row: &Vec<u64>| {
            let mut pairs = row.iter().zip(self.received());
            row.len() == count && pairs.all(|(there, here)| *there <= here + 2 * WINDOW)
        };
        known.heard.len() == count
            && known.heard.iter().all(|time| *time <= TIME_MAX)
            && known.received.len() == count
            && known.received.iter().all(near)
    }

    /// By rank, how many units of each stream any of those has who come from here.
    pub(super) fn cut(&self, of: &[(NodeId, Known)]) -> Vec<u64> {
        let mut cut = self.received().to_vec();
        for (node, known) in of {
            if let Some(rank) = self.rank(*node) {
                raise(&mut cut, &known.received[rank]);
            }
        }
        cut
    }

    /// What those who come from here know, this member knows now. It has all that they have: who has
    /// heard something of a member has all that it sent before.
    pub(super) fn learn(&mut self, of: &[(NodeId, Known)]) {
        for (_, known) in of {
            raise(&mut self.known.heard, &known.heard);
            for (whose, said) in known.received.iter().enumerate().filter(|(r, _)| *r != self.me) {
                raise(&mut self.known.received[whose], said);
            }
        }
    }

    /// What others lack up to this cut, and this member is the first to have.
    pub(super) fn repairs(
        &self,
        of: &[(NodeId, Known)],
        cut: &[u64],
    ) -> BTreeMap<NodeId, Vec<Run>> {
        let has = |(node, known): &(NodeId, Known)| {
            let rank = self.rank(*node)?;
            Some((*node, known.received[rank].clone()))
        };
        let have: Vec<_> = of.iter().filter_map(has).collect();
        let me = self.members[self.me];
        let mut repairs: BTreeMap<NodeId, Vec<Run>> = BTreeMap::new();
        for (rank, most) in cut.iter().enumerate() {
            let first = have.iter().find(|(_, received)| received[rank] == *most);
            if first.is_none_or(|(node, _)| *node != me) {
                continue;
            }
            for (node, received) in have.iter().filter(|(_, received)| received[rank] < *most) {
                repairs.entry(*node).or_default().push(self.run(rank, received[rank] + 1));
            }
        }
        repairs
    }

    /// All who go on together have the same now: these members, up to this cut.
    pub(super) fn settle(&mut self, together: &[NodeId], cut: &[u64]) {
        for rank in together.iter().filter_map(|node| self.rank(*node)).collect::<Vec<_>>() {
            raise(&mut self.known.received[rank], cut);
        }
    }

    /// The units of a stream from this number on.
    fn run(&self, rank: usize, first: u64) -> Run {
        let skip = (first - 1).saturating_sub(self.discarded[rank]) as usize;
        Run { rank, first, units: self.streams[rank].iter().skip(skip).cloned().collect() }
    }
}

fn raise(row: &mut [u64], said: &[u64]) {
    for (known, said) in row.iter_mut().zip(said) {
        *known = (*known).max(*said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::{Order, Wish};

    fn unit(time: u64, number: u32, uniform: bool, after: [u64; 3]) -> Unit {
        Unit { time, wish: Wish { number, order: Order::Total, uniform }, after: after.into() }
    }

    /// A configuration of three at the third, with these units of the first two.
    fn ring(units: &[(usize, u64, Unit)]) -> Ring {
        let mut ring = Ring::new(ViewId(1), &NodeSet::first(3), NodeId::at(2));
        for (rank, number, unit) in units {
            assert!(ring.take(*rank, *number, unit.clone()));
        }
        ring
    }

    fn id(sender: usize, number: u32) -> MessageId {
        MessageId { sender: NodeId::at(sender), number }
    }

    /// All have the second message, but the first one, which came before it, has not reached
    /// node 2. There the second could be left out later, because it may depend on the first.
    #[test]
    fn a_message_is_safe_only_with_all_that_came_before_it() {
        let first = (0, 1, unit(1, 1, false, [0, 0, 0]));
        let second = (0, 2, unit(2, 2, true, [1, 0, 0]));
        let mut ring = ring(&[first, second]);
        ring.tick(3);
        assert!(ring.acknowledge(0, 3, &[2, 0, 0]));
        assert!(ring.acknowledge(1, 3, &[0, 0, 0]));
        assert_eq!([ring.deliver(), ring.deliver()], [Some(id(0, 1)), None]);
        assert!(ring.acknowledge(1, 4, &[1, 0, 0]));
        assert_eq!(ring.deliver(), None);
        assert!(ring.acknowledge(1, 5, &[2, 0, 0]));
        assert_eq!(ring.deliver(), Some(id(0, 2)));
        ring.discard();
        assert_eq!(ring.kept(), 0);
    }

    /// At the end, a message is left out that depends on one that nobody has, and with it all that
    /// its sender sent after it; others are not.
    #[test]
    fn what_depends_on_a_missing_message_is_left_out() {
        let mut ring = ring(&[
            (0, 1, unit(1, 1, false, [0, 0, 0])),
            (1, 1, unit(2, 1, false, [2, 0, 0])),
            (1, 2, unit(4, 2, false, [0, 1, 0])),
        ]);
        ring.tick(3);
        ring.send(unit(5, 7, false, [1, 0, 0]));
        assert_eq!(ring.rest(), [id(0, 1), id(2, 7)]);
    }

    #[test]
    fn the_first_who_has_most_repairs_the_others() {
        let one = |time| unit(time, 1, false, [0, 0, 0]);
        let mut ring = ring(&[(0, 1, one(1)), (0, 2, one(2)), (1, 1, one(3))]);
        let known = |received: [u64; 3], mine: usize| {
            let mut table = vec![vec![0; 3]; 3];
            table[mine] = received.into();
            Known { heard: vec![9; 3], received: table }
        };
        // Node 1 is gone; node 2 has less of its stream, and more of its own.
        let together = [(NodeId::at(1), known([1, 2, 0], 1)), (NodeId::at(2), ring.past().known)];
        let cut = ring.cut(&together);
        assert_eq!(cut, [2, 2, 0]);
        let repairs = ring.repairs(&together, &cut);
        let run = Run { rank: 0, first: 2, units: vec![one(2)] };
        assert_eq!(repairs, [(NodeId::at(1), vec![run])].into());
        // What the others have heard counts only with what they have.
        assert_eq!(ring.deliver(), None);
        assert!(ring.take(1, 2, one(4)));
        ring.learn(&together);
        assert_eq!(
            [ring.deliver(), ring.deliver()].map(|id| id.map(|id| id.sender)),
            [Some(NodeId::at(0)); 2]
        );
    }
}
