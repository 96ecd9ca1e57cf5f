//! The messages of one view at one member: what has come, what all have, what may be delivered.
//!
//! Each member sends one stream of numbered units, and because links keep the order, what a member
//! has of a stream is always a beginning of it: one number says it all. Members are named by their
//! rank in the view.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use super::super::{Order, Wish};

/// A unit of a stream.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Unit {
    /// A message of a user.
    Message {
        /// What its sender wants.
        wish: Wish,
        /// For causal order: by rank, how much its sender had delivered of each stream.
        after: Vec<u64>,
        /// For total order by token: its place in the order.
        place: Option<u64>,
    },
    /// For total order by sequencer: these messages have the places from `first` on.
    Order {
        /// The place of the first.
        first: u64,
        /// The messages.
        labels: Vec<Label>,
    },
}

/// How many messages one unit gives places to.
pub(super) const LABELS_MAX: usize = 256;
/// How many units of streams are in one message that repairs.
const UNITS_MAX: usize = 64;

/// The largest place that is believed: below the end of the range.
pub(super) const PLACE_MAX: u64 = u64::MAX / 2;

impl Unit {
    /// Could a member have sent this?
    fn is_plausible(&self) -> bool {
        match self {
            Self::Message { place, .. } => place.is_none_or(|place| place <= PLACE_MAX),
            Self::Order { first, labels } => *first <= PLACE_MAX && labels.len() <= LABELS_MAX,
        }
    }
}

/// The name of a unit within its view.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Label {
    /// The rank of its sender.
    pub rank: u32,
    /// Its number in the stream, from 1.
    pub number: u64,
}

/// Units of a stream that follow each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Run {
    /// The first.
    pub first: Label,
    /// All of them.
    pub units: Vec<Unit>,
}

/// The same runs in pieces, each small enough for a message; at least one.
pub(super) fn in_pieces(runs: Vec<Run>) -> Vec<Vec<Run>> {
    let mut pieces = Vec::new();
    let (mut piece, mut room) = (Vec::new(), UNITS_MAX);
    for Run { mut first, mut units } in runs {
        while !units.is_empty() {
            let rest = units.split_off(units.len().min(room));
            room -= units.len();
            let next = Label { number: first.number + units.len() as u64, ..first };
            piece.push(Run { first, units });
            (first, units) = (next, rest);
            if room == 0 {
                pieces.push(core::mem::take(&mut piece));
                room = UNITS_MAX;
            }
        }
    }
    if !piece.is_empty() || pieces.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// The messages of one view at one member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Streams {
    /// My rank.
    me: usize,
    /// By rank of the sender.
    streams: Vec<Stream>,
    /// By rank of a member, and of the sender: how much that member has, as far as I know.
    has: Vec<Vec<u64>>,
    /// The total order as far as it is known: by place, the message, and the unit that says so.
    places: BTreeMap<u64, (Label, Label)>,
    /// The place that is delivered next.
    place_next: u64,
    /// The view is over: nothing more comes.
    closed: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Stream {
    /// How many units have been forgotten: delivered here, and had by all.
    forgotten: u64,
    units: VecDeque<Unit>,
    delivered: u64,
}

impl Stream {
    fn received(&self) -> u64 {
        self.forgotten + self.units.len() as u64
    }

    fn unit(&self, number: u64) -> Option<&Unit> {
        self.units.get(number.checked_sub(self.forgotten + 1)? as usize)
    }
}

impl Streams {
    pub(super) fn new(me: usize, members: usize) -> Self {
        Self {
            me,
            streams: vec![Stream::default(); members],
            has: vec![vec![0; members]; members],
            places: BTreeMap::new(),
            place_next: 1,
            closed: false,
        }
    }

    /// By rank, how much of each stream has come.
    pub(super) fn received(&self) -> Vec<u64> {
        self.streams.iter().map(Stream::received).collect()
    }

    /// By rank, how much of each stream has been delivered.
    pub(super) fn delivered(&self) -> Vec<u64> {
        self.streams.iter().map(|stream| stream.delivered).collect()
    }

    /// How many units are kept.
    pub(super) fn kept(&self) -> u64 {
        self.streams.iter().map(|stream| stream.units.len() as u64).sum()
    }

    /// How much of a stream all members have.
    pub(super) fn stable(&self, rank: usize) -> u64 {
        self.has.iter().map(|has| has[rank]).min().unwrap_or(0)
    }

    /// How many of my own units some member may not have.
    pub(super) fn in_flight(&self) -> u64 {
        self.streams[self.me].received() - self.stable(self.me)
    }

    /// The next unit of a stream. Says whether it was news.
    pub(super) fn push(&mut self, label: Label, unit: Unit) -> bool {
        let rank = label.rank as usize;
        let Some(stream) = self.streams.get_mut(rank) else { return false };
        if label.number != stream.received() + 1 || !unit.is_plausible() {
            return false;
        }
        match &unit {
            Unit::Order { first, labels } => {
                for (place, named) in (*first..).zip(labels) {
                    self.places.insert(place, (*named, label));
                }
            }
            Unit::Message { place: Some(place), .. } => {
                self.places.insert(*place, (label, label));
            }
            Unit::Message { .. } => {}
        }
        stream.units.push_back(unit);
        for member in [rank, self.me] {
            let has = &mut self.has[member][rank];
            *has = (*has).max(label.number);
        }
        true
    }

    /// A member says how much it has of each stream.
    pub(super) fn acknowledge(&mut self, rank: usize, received: &[u64]) {
        for (has, received) in self.has[rank].iter_mut().zip(received) {
            *has = (*has).max(*received);
        }
        self.forget();
    }

    /// Forgets what is delivered and had by all.
    fn forget(&mut self) {
        for rank in 0..self.streams.len() {
            let stable = self.stable(rank);
            let stream = &mut self.streams[rank];
            while stream.forgotten < stream.delivered.min(stable) {
                stream.units.pop_front();
                stream.forgotten += 1;
            }
        }
    }

    /// Is there a message that waits until all have it?
    pub(super) fn waits_for_all(&self) -> bool {
        self.streams.iter().any(|stream| {
            let mut waiting =
                stream.units.iter().skip((stream.delivered - stream.forgotten) as usize);
            waiting.any(|unit| matches!(unit, Unit::Message { wish, .. } if wish.uniform))
        })
    }

    /// Total messages that have come and have no place yet.
    pub(super) fn unplaced(&self) -> Vec<Label> {
        let mut unplaced = Vec::new();
        for (rank, stream) in self.streams.iter().enumerate() {
            for number in stream.delivered + 1..=stream.received() {
                let label = Label { rank: rank as u32, number };
                if self.is_total(label) && !self.has_place(label) {
                    unplaced.push(label);
                }
            }
        }
        unplaced
    }

    /// The first place that is free.
    pub(super) fn place_free(&self) -> u64 {
        self.places.keys().next_back().map_or(self.place_next, |last| last + 1)
    }

    fn is_total(&self, label: Label) -> bool {
        matches!(
            self.streams[label.rank as usize].unit(label.number),
            Some(Unit::Message { wish: Wish { order: Order::Total, .. }, .. })
        )
    }

    fn has_place(&self, label: Label) -> bool {
        self.places.values().any(|(named, _)| *named == label)
    }

    /// Takes out the next message that may be delivered, with the rank of its sender.
    pub(super) fn deliver(&mut self) -> Option<(usize, Wish)> {
        loop {
            let rank = self.ready()?;
            let stream = &mut self.streams[rank];
            stream.delivered += 1;
            let delivered = stream.unit(stream.delivered).cloned();
            self.forget();
            if let Some(Unit::Message { wish, .. }) = delivered {
                if wish.order == Order::Total {
                    self.pass_place(Label {
                        rank: rank as u32,
                        number: self.streams[rank].delivered,
                    });
                }
                return Some((rank, wish));
            }
        }
    }

    /// A message of the total order is delivered.
    fn pass_place(&mut self, label: Label) {
        if self.places.get(&self.place_next).is_some_and(|(named, _)| *named == label) {
            self.places.remove(&self.place_next);
            self.place_next += 1;
        }
    }

    /// A stream whose next unit may be delivered.
    fn ready(&self) -> Option<usize> {
        let ranks = 0..self.streams.len();
        let free = ranks.clone().find(|&rank| self.is_ready(rank));
        // When the view is over, what has no place comes last, by rank: the same for all, because
        // all else has been delivered by then.
        free.or_else(|| ranks.clone().find(|&rank| self.closed && self.is_leftover(rank)))
    }

    fn next(&self, rank: usize) -> Option<(Label, &Unit)> {
        let number = self.streams[rank].delivered + 1;
        Some((Label { rank: rank as u32, number }, self.streams[rank].unit(number)?))
    }

    fn is_ready(&self, rank: usize) -> bool {
        let Some((label, unit)) = self.next(rank) else { return false };
        let Unit::Message { wish, after, .. } = unit else { return true };
        let all_have =
            |label: Label| self.closed || self.stable(label.rank as usize) >= label.number;
        let in_order = match wish.order {
            Order::Fifo => true,
            Order::Causal if flaw!(IgnoreCauses) => true,
            Order::Causal => {
                let mut causes = self.streams.iter().zip(after);
                causes.all(|(stream, after)| stream.delivered >= *after)
            }
            Order::Total => match self.places.get(&self.place_next) {
                Some((named, said_by)) => *named == label && (!wish.uniform || all_have(*said_by)),
                None => false,
            },
        };
        in_order && (!wish.uniform || all_have(label))
    }

    fn is_leftover(&self, rank: usize) -> bool {
        self.next(rank).is_some_and(|(label, _)| self.is_total(label) && !self.has_place(label))
    }

    /// What I have beyond this much of each stream.
    pub(super) fn beyond(&self, received: &[u64]) -> Vec<Run> {
        let mut runs = Vec::new();
        for (rank, stream) in self.streams.iter().enumerate() {
            let known = received.get(rank).copied().unwrap_or(0).max(stream.forgotten);
            let units = stream.units.iter().skip((known - stream.forgotten) as usize);
            let units: Vec<Unit> = units.cloned().collect();
            if !units.is_empty() {
                runs.push(Run { first: Label { rank: rank as u32, number: known + 1 }, units });
            }
        }
        runs
    }

    /// Takes in what another member has beyond what I had.
    pub(super) fn take_in(&mut self, runs: Vec<Run>) {
        for Run { first: Label { rank, number }, units } in runs {
            for (later, unit) in units.into_iter().enumerate() {
                let number = number.saturating_add(later as u64);
                self.push(Label { rank, number }, unit);
            }
        }
    }

    /// How much of each stream can be delivered by all, if nothing else ever comes: a causal message
    /// whose causes nobody has cannot, nor can what its sender sent after it.
    pub(super) fn cut(&self) -> Vec<u64> {
        let mut cut = self.received();
        loop {
            let before = cut.clone();
            for (rank, stream) in self.streams.iter().enumerate() {
                let lacks = |number: &u64| match stream.unit(*number) {
                    Some(Unit::Message { wish, after, .. }) if wish.order == Order::Causal => {
                        after.iter().zip(&before).any(|(after, cut)| after > cut)
                    }
                    _ => false,
                };
                if let Some(lost) = (stream.delivered + 1..=cut[rank]).find(lacks) {
                    cut[rank] = lost - 1;
                }
            }
            if cut == before {
                return cut;
            }
        }
    }

    /// The view is over, and this much of each stream belongs to it.
    pub(super) fn close(&mut self, cut: &[u64]) {
        for (stream, cut) in self.streams.iter_mut().zip(cut) {
            let keep = cut.saturating_sub(stream.forgotten) as usize;
            stream.units.truncate(keep);
        }
        let streams = &self.streams;
        let exists = |label: &Label| {
            streams.get(label.rank as usize).is_some_and(|stream| label.number <= stream.received())
        };
        let places = core::mem::take(&mut self.places);
        // Places whose message nobody has are skipped, and so are those that only some know of: by
        // all, for all have the same.
        let known = |said_by: &Label| exists(said_by) || flaw!(KeepLatePlaces);
        let kept = places.into_values().filter(|(named, said_by)| exists(named) && known(said_by));
        self.places = (self.place_next..).zip(kept).collect();
        self.closed = true;
    }
}
