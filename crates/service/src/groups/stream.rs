//! The stream of one view of a group: what has come, in what order it is, and what is delivered.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use quorate_core::Life;

use super::words::{Acks, Limits, Order, Pack, Payload, Placed, Unit, ViewId};

/// What a member has of one view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Stream {
    pub(super) view: ViewId,
    /// By rank.
    pub(super) members: Arc<[Life]>,
    /// The own rank.
    pub(super) me: usize,
    /// Has this one said that it sends nothing more?
    pub(super) sealed: bool,
    senders: Vec<Sender>,
    /// Ranges in the order of the sequencer, without those that are forgotten.
    log: VecDeque<Placed>,
    /// How many are forgotten.
    log_base: u64,
    /// How many are delivered to the end.
    log_done: u64,
    /// How many of them the others were told, if this is the sequencer.
    log_told: u64,
    /// The largest number of each sender that has a place.
    placed: Vec<u64>,
    /// How far each member has got, as it said; this one, as it is.
    acks: Vec<Acks>,
    /// Uniform units that are ready here, of each sender, and that the others do not know of.
    unconfirmed: Vec<VecDeque<u64>>,
    /// What came, and was taken, since this one said last how far it has got.
    since_told: usize,
    /// The largest stamp that is known.
    stamp: u64,
    /// Own units that are not taken by all, with their cost.
    under_way: VecDeque<(u64, usize)>,
    under_way_bytes: usize,
}

/// What there is of a sender.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Sender {
    /// Units that are not forgotten.
    units: VecDeque<Arc<Unit>>,
    /// How many are forgotten.
    base: u64,
    /// How many were delivered.
    delivered: u64,
    /// Costs of units that were delivered and not taken.
    untaken: VecDeque<usize>,
}

impl Sender {
    fn received(&self) -> u64 {
        self.base + self.units.len() as u64
    }

    fn unit(&self, number: u64) -> Option<&Arc<Unit>> {
        self.units.get(usize::try_from(number.checked_sub(self.base + 1)?).ok()?)
    }
}

/// Is every number at least what is asked for?
fn covers(have: &[u64], wanted: &[u64]) -> bool {
    have.iter().zip(wanted).all(|(have, wanted)| have >= wanted)
}

impl Stream {
    pub(super) fn new(view: ViewId, members: Arc<[Life]>, me: usize) -> Self {
        let count = members.len();
        let none = Acks { ready: vec![0; count], taken: vec![0; count], placed: 0 };
        Self {
            view,
            members,
            me,
            sealed: false,
            senders: vec![Sender::default(); count],
            log: VecDeque::new(),
            log_base: 0,
            log_done: 0,
            log_told: 0,
            placed: vec![0; count],
            acks: vec![none; count],
            unconfirmed: vec![VecDeque::new(); count],
            since_told: 0,
            stamp: 0,
            under_way: VecDeque::new(),
            under_way_bytes: 0,
        }
    }

    pub(super) fn rank_of(&self, life: Life) -> Option<usize> {
        self.members.iter().position(|member| *member == life)
    }

    /// The most senior member says what comes next.
    pub(super) const fn is_sequencer(&self) -> bool {
        self.me == 0
    }

    /// Bytes that are under way.
    pub(super) const fn under_way(&self) -> usize {
        self.under_way_bytes
    }

    // What comes

    /// Makes a unit of these messages, as the next one of this member.
    pub(super) fn compose(&mut self, pack: Pack) -> Arc<Unit> {
        let Pack { order, ends, bytes } = pack;
        self.stamp += 1;
        let number = self.senders[self.me].received() + 1;
        let after = match order {
            Order::Fifo => Vec::new(),
            _ if flaw!(ForgetWhatCameBefore) => vec![0; self.members.len()],
            _ => self.senders.iter().map(|sender| sender.delivered).collect(),
        };
        let bytes = Payload::from(bytes);
        let unit = Arc::new(Unit { number, stamp: self.stamp, order, after, ends, bytes });
        let cost = unit.cost();
        self.under_way.push_back((number, cost));
        self.under_way_bytes += cost;
        self.senders[self.me].units.push_back(Arc::clone(&unit));
        self.get_ready();
        unit
    }

    /// A unit has come. False if it is none, or does not follow what came before.
    pub(super) fn receive(&mut self, rank: usize, unit: Arc<Unit>) -> bool {
        let Some(sender) = self.senders.get_mut(rank) else { return false };
        if !unit.is_sound(self.members.len()) || unit.number != sender.received() + 1 {
            return false;
        }
        self.stamp = self.stamp.max(unit.stamp);
        self.since_told += unit.cost();
        if rank != self.me {
            self.acks[rank].ready[rank] = unit.number;
        }
        sender.units.push_back(unit);
        self.get_ready();
        true
    }

    /// Notes which units are there with everything that they come after; a sequencer gives them places.
    fn get_ready(&mut self) {
        let mut moved = true;
        while moved {
            moved = false;
            for rank in 0..self.members.len() {
                while let Some(unit) = self.senders[rank].unit(self.acks[self.me].ready[rank] + 1) {
                    if !covers(&self.acks[self.me].ready, &unit.after) {
                        break;
                    }
                    let (number, order) = (unit.number, unit.order);
                    self.acks[self.me].ready[rank] = number;
                    moved = true;
                    if order.is_placed() && self.is_sequencer() && !self.sealed {
                        self.place(rank, number);
                    }
                    // Who gives places says with each that it has the unit.
                    if order == Order::Uniform && !self.is_sequencer() {
                        self.unconfirmed[rank].push_back(number);
                    }
                }
            }
        }
    }

    /// Gives a unit the next place.
    fn place(&mut self, rank: usize, number: u64) {
        // What others were told, or is delivered to the end, stays as it is.
        let untold = self.log_end() > self.log_told.max(self.log_done);
        match self.log.back_mut().filter(|_| untold) {
            Some(Placed(last, upto)) if *last as usize == rank => *upto = number,
            _ => self.log.push_back(Placed(rank as u32, number)),
        }
        self.placed[rank] = number;
        self.note_placed();
    }

    fn log_end(&self) -> u64 {
        self.log_base + self.log.len() as u64
    }

    fn note_placed(&mut self) {
        self.acks[self.me].placed = self.log_end();
    }

    /// The sequencer has said what comes next, after so much. False if something is missing in between.
    pub(super) fn follow(&mut self, base: u64, placed: &[Placed]) -> bool {
        let follows = base == self.log_end();
        if follows {
            self.append(placed);
        }
        follows
    }

    fn append(&mut self, placed: &[Placed]) {
        for &Placed(rank, upto) in placed {
            let Some(last) = self.placed.get_mut(rank as usize) else { continue };
            *last = upto.max(*last);
            self.log.push_back(Placed(rank, upto));
            // The sequencer has what it gives a place, and knows the place.
            let sequencer = &mut self.acks[0];
            let ready = &mut sequencer.ready[rank as usize];
            *ready = upto.max(*ready);
            sequencer.placed = sequencer.placed.max(self.log_base + self.log.len() as u64);
        }
        self.note_placed();
    }

    /// Ranges of a sequencer that does not go on: what of them is new is appended.
    pub(super) fn complete(&mut self, base: u64, placed: &[Placed]) {
        let known = self.log_end().saturating_sub(base);
        if base <= self.log_end()
            && let Some(new) = placed.get(usize::try_from(known).unwrap_or(usize::MAX)..)
        {
            self.append(new);
        }
    }

    /// A member has said how far it has got.
    pub(super) fn hear(&mut self, rank: usize, acks: Acks) {
        let count = self.members.len();
        if acks.ready.len() != count || acks.taken.len() != count || rank == self.me {
            return;
        }
        self.acks[rank] = acks;
        self.forget();
    }

    /// The user has taken units of this sender, up to this one.
    pub(super) fn take(&mut self, rank: usize, number: u64) {
        let (Some(sender), Some(taken)) =
            (self.senders.get_mut(rank), self.acks[self.me].taken.get_mut(rank))
        else {
            return;
        };
        while *taken < number.min(sender.delivered) {
            *taken += 1;
            self.since_told += sender.untaken.pop_front().unwrap_or(0);
        }
        self.free();
    }

    /// The least that all members have said.
    fn least(&self, of: impl Fn(&Acks) -> u64) -> u64 {
        self.acks.iter().map(of).min().unwrap_or(0)
    }

    /// Forgets what all have, and frees the window of what all have taken.
    fn forget(&mut self) {
        for rank in 0..self.members.len() {
            let stable = self.least(|acks| acks.ready[rank]);
            let sender = &mut self.senders[rank];
            let forgettable = stable.min(sender.delivered);
            while sender.base < forgettable && sender.units.pop_front().is_some() {
                sender.base += 1;
            }
        }
        let known = self.least(|acks| acks.placed).min(self.log_done);
        while self.log_base < known && self.log.pop_front().is_some() {
            self.log_base += 1;
        }
        self.free();
    }

    fn free(&mut self) {
        let taken = self.least(|acks| acks.taken[self.me]);
        while let Some((number, cost)) = self.under_way.front()
            && *number <= taken
        {
            self.under_way_bytes -= cost;
            self.under_way.pop_front();
        }
    }

    // What goes out

    /// What the sequencer has to tell, and how much it has told before.
    pub(super) fn untold(&mut self) -> (u64, Vec<Placed>) {
        if !self.is_sequencer() {
            return (0, Vec::new());
        }
        let base = self.log_told;
        let known = base.saturating_sub(self.log_base) as usize;
        let untold = self.log.iter().skip(known).copied().collect();
        self.log_told = self.log_end();
        (base, untold)
    }

    /// How many units this one has sent, and how many ranges it has told.
    pub(super) fn said(&self) -> (u64, u64) {
        (self.senders[self.me].received(), self.log_told)
    }

    /// Has all come that a member has said?
    pub(super) fn has_all(&self, rank: usize, (sent, placed): (u64, u64)) -> bool {
        let received = self.senders.get(rank).map_or(0, Sender::received);
        received >= sent && (rank > 0 || self.log_end() >= placed)
    }

    /// Has the sequencer anything to tell?
    pub(super) fn has_untold(&self) -> bool {
        self.is_sequencer() && self.log_told < self.log_end()
    }

    /// Is it time to say how far this one has got? When much has come or was taken since; and when
    /// somebody waits for it, because a unit that is uniform has come and has a place.
    pub(super) fn owes_acks(&self, limits: &Limits) -> bool {
        let placed = |(units, placed): (&VecDeque<u64>, &u64)| {
            units.front().is_some_and(|number| number <= placed)
        };
        let awaited = || self.unconfirmed.iter().zip(&self.placed).any(placed);
        self.members.len() > 1 && (self.since_told >= limits.window / 4 || awaited())
    }

    /// How far this one has got.
    pub(super) fn say(&mut self) -> Acks {
        for (units, placed) in self.unconfirmed.iter_mut().zip(&self.placed) {
            while units.front().is_some_and(|number| number <= placed) {
                units.pop_front();
            }
        }
        self.since_told = 0;
        self.acks[self.me].clone()
    }

    // What is delivered

    /// Hands out what can be delivered. While a lease does not hold, nothing is known to be known by all.
    pub(super) fn deliver(&mut self, lease: bool, mut hand: impl FnMut(usize, Arc<Unit>)) {
        while self.pass(|stream, rank, unit| lease && stream.is_stable(rank, unit), &mut hand) {}
        if self.members.len() == 1 {
            self.forget();
        }
    }

    /// Do all have this unit, which is the next in the log, and its place?
    fn is_stable(&self, rank: usize, unit: &Unit) -> bool {
        if flaw!(UniformIsTotal) {
            return true;
        }
        let place = if flaw!(PlaceNeedNotBeKnown) { 0 } else { self.log_done + 1 };
        let has = |acks: &Acks| acks.ready[rank] >= unit.number && acks.placed >= place;
        self.acks.iter().all(has)
    }

    /// Goes over all senders once. Was anything delivered?
    fn pass(
        &mut self,
        stable: impl Fn(&Self, usize, &Unit) -> bool,
        hand: &mut impl FnMut(usize, Arc<Unit>),
    ) -> bool {
        let mut moved = false;
        for rank in 0..self.members.len() {
            while let Some(unit) = self.next_of(rank).cloned() {
                let delivered = |(have, wanted): (&Sender, &u64)| have.delivered >= *wanted;
                if !self.senders.iter().zip(&unit.after).all(delivered) {
                    break;
                }
                if unit.order.is_placed() && !self.is_next(rank, unit.number) {
                    break;
                }
                if unit.order == Order::Uniform && !stable(self, rank, &unit) {
                    break;
                }
                let sender = &mut self.senders[rank];
                sender.delivered = unit.number;
                sender.untaken.push_back(unit.cost());
                self.go_on_in_log();
                moved = true;
                hand(rank, unit);
            }
        }
        moved
    }

    /// The unit of a sender that is delivered next, if it is ready.
    fn next_of(&self, rank: usize) -> Option<&Arc<Unit>> {
        let sender = &self.senders[rank];
        let next = sender.delivered + 1;
        sender.unit(next).filter(|_| next <= self.acks[self.me].ready[rank])
    }

    fn is_next(&self, rank: usize, number: u64) -> bool {
        let head = self.log.get((self.log_done - self.log_base) as usize);
        head.is_some_and(|Placed(next, upto)| *next as usize == rank && number <= *upto)
    }

    /// Goes over ranges that are delivered to the end.
    fn go_on_in_log(&mut self) {
        while let Some(Placed(rank, upto)) = self.log.get((self.log_done - self.log_base) as usize)
            && self.senders[*rank as usize].delivered >= *upto
        {
            self.log_done += 1;
        }
    }

    // The end of the view

    /// What this one has of a sender and the others may not have.
    pub(super) fn kept_of(&self, rank: usize) -> impl Iterator<Item = &Arc<Unit>> {
        self.senders[rank].units.iter()
    }

    /// The ranges that the others may not have, and how many came before.
    pub(super) fn kept_log(&self) -> (u64, Vec<Placed>) {
        (self.log_base, self.log.iter().copied().collect())
    }

    /// Everybody who goes on has the same: hands out all that is left. What has no place comes after what
    /// has, by stamps, which are larger than those of whatever it comes after.
    pub(super) fn close(&mut self, mut hand: impl FnMut(usize, Arc<Unit>)) {
        let last = self.acks[self.me].ready.clone();
        // Places of units that nobody has who goes on are given up.
        for Placed(rank, upto) in &mut self.log {
            *upto = (*upto).min(last[*rank as usize]);
        }
        let mut rest: Vec<(u64, u32, u64)> = Vec::new();
        for (rank, sender) in self.senders.iter().enumerate() {
            for unit in &sender.units {
                let unplaced = unit.order.is_placed() && unit.number > self.placed[rank];
                if unplaced && unit.number <= last[rank] {
                    rest.push((unit.stamp, rank as u32, unit.number));
                }
            }
        }
        if flaw!(CloseInOrderOfArrival) {
            let by = self.me % rest.len().max(1);
            rest.rotate_left(by);
        } else {
            rest.sort_unstable();
        }
        self.log.extend(rest.into_iter().map(|(_, rank, number)| Placed(rank, number)));
        self.go_on_in_log();
        while self.pass(|_, _, _| true, &mut hand) {}
        let all = self.senders.iter().zip(&last).all(|(sender, last)| sender.delivered == *last);
        debug_assert!(all || cfg!(any(test, feature = "flaws")), "what all have is delivered");
    }

    /// Has everything that came been delivered, after the end?
    pub(super) fn is_drained(&self) -> bool {
        let ready = &self.acks[self.me].ready;
        self.senders.iter().zip(ready).all(|(sender, ready)| sender.delivered == *ready)
    }
}

/// Messages of a member that wait to be sent, packed as they will be.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Outbox {
    packs: VecDeque<Pack>,
    cost: usize,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.packs.is_empty()
    }

    /// What it costs.
    pub(super) const fn cost(&self) -> usize {
        self.cost
    }

    pub(super) fn push(&mut self, limits: &Limits, pack: Pack) {
        let own = match self.packs.back_mut() {
            Some(last) => {
                self.cost -= last.cost();
                let rest = last.join(limits, pack);
                self.cost += last.cost();
                rest.err()
            }
            None => Some(pack),
        };
        if let Some(pack) = own {
            self.cost += pack.cost();
            self.packs.push_back(pack);
        }
    }

    /// Is there enough for a unit?
    pub(super) fn is_full(&self, limits: &Limits) -> bool {
        self.packs.len() > 1 || self.packs.front().is_some_and(|pack| pack.is_full(limits))
    }

    /// The next messages, of one order, as many as go into a unit.
    pub(super) fn pop(&mut self) -> Option<Pack> {
        let pack = self.packs.pop_front()?;
        self.cost -= pack.cost();
        Some(pack)
    }
}
