//! The lock space of a process: all its locks, and what happens to all of them at once.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};

use quorate_algorithms::{Catalogued, mutex};
use quorate_core::{NodeId, Options, Solution, Span, Time};

use super::census::Census;
use super::collect::Closing;
use super::gate::{Gate, Port};
use super::instance::Method;
use super::revoke::Revoking;
use super::rights::Terms;
use super::slot::{Given, Slot};
use super::steps::Parked;
use super::words::{
    Event, Fence, Frame, Held, LockId, Loss, Mode, Outlet, Patience, Refused, Text, Wish, WishId,
};
use crate::register::Space;

/// How much of everything there may be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    /// Locks that are in use, or were a moment ago.
    pub names: usize,
    /// Wishes of users of one process that wait for one lock.
    pub waiters: usize,
    /// Bytes of a name, or of an owner's text.
    pub text: usize,
    /// Bytes of what a candidate says of itself.
    pub value: usize,
    /// Messages that came too early.
    pub early: usize,
    /// How often a home looks for what nobody uses, and everybody for circles among those who wait.
    pub sweep: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            names: 1 << 20,
            waiters: 1 << 16,
            text: 255,
            value: 4096,
            early: 1 << 20,
            sweep: Span::units(10_000),
        }
    }
}

/// What the locks of a namespace are like.
#[derive(Clone)]
pub struct Kind {
    algorithm: &'static str,
    permits: u32,
    pub(super) method: Method,
    pub(super) lock_delay: Span,
}

// The options of an algorithm say nothing that its name and theirs do not.
impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl Eq for Kind {}

impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words().hash(state);
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (algorithm, permits, lock_delay) = self.words();
        write!(f, "{algorithm}, {permits} permits, delay {lock_delay:?}")
    }
}

/// A namespace that cannot be, in a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadSpace(String);

impl fmt::Display for BadSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for BadSpace {}

impl Kind {
    /// Locks like this, if they can be.
    ///
    /// # Errors
    /// If there is no such algorithm, or it is not made for this.
    pub fn of(space: &Space) -> Result<Self, BadSpace> {
        let Space { permits, lock_delay, .. } = *space;
        let (algorithm, method) = match space.algorithm.as_str() {
            HOME => (HOME, Method::Rights(terms(permits, false))),
            PRIORITY => (PRIORITY, Method::Rights(terms(permits, true))),
            name => plain(name)?,
        };
        if permits == 0 {
            return Err(BadSpace("a lock that nobody may hold is none: permits begin at 1".into()));
        }
        if let (Method::Plain(_), 2..) = (&method, permits) {
            let why = "lets one in at a time; for permits take home";
            return Err(BadSpace(alloc::format!("{algorithm} {why}")));
        }
        Ok(Self { algorithm, permits, method, lock_delay })
    }

    /// Roles: one holds each, and the best of those who wait is next.
    #[must_use]
    pub const fn of_roles() -> Self {
        let terms = Terms { permits: None, ordered: true };
        let method = Method::Rights(terms);
        Self { algorithm: PRIORITY, permits: 1, method, lock_delay: Span::ZERO }
    }

    const fn words(&self) -> (&'static str, u32, Span) {
        (self.algorithm, self.permits, self.lock_delay)
    }

    /// Can locks be held in this way?
    fn supports(&self, mode: Mode, patience: Patience) -> bool {
        match (&self.method, mode) {
            (Method::Plain(_), mode) => mode == Mode::Exclusive && patience == Patience::Wait,
            (Method::Rights(_), Mode::Permit) => self.permits > 1,
            (Method::Rights(_), Mode::Exclusive | Mode::Shared) => self.permits == 1,
        }
    }

    /// Do wishes with a larger priority go first?
    pub(super) const fn is_ordered(&self) -> bool {
        matches!(self.method, Method::Rights(Terms { ordered: true, .. }))
    }
}

/// A home gives out rights, to share, exclusive, or so many permits, in the order of requests.
const HOME: &str = "home";

/// As [`HOME`], in the order of priorities.
const PRIORITY: &str = "home-by-priority";

fn terms(permits: u32, ordered: bool) -> Terms {
    Terms { permits: (permits > 1).then_some(permits), ordered }
}

/// The algorithm of this name in the catalogue, if locks can be made of it.
fn plain(name: &str) -> Result<(&'static str, Method), BadSpace> {
    let full = alloc::format!("mutex/{name}");
    let Some(config) = mutex::Mutex::configure(&full, &Options(&[])) else {
        let known = mutex::Mutex::CATALOGUE.iter().filter_map(|meta| meta.name.split('/').nth(1));
        let near = quorate_algorithms::nearest(name, known.chain([PRIORITY]));
        let hint = near.map_or_else(String::new, |near| alloc::format!("; was {near} meant?"));
        return Err(BadSpace(alloc::format!("there is no algorithm {name}{hint}")));
    };
    let config = config.map_err(|bad| BadSpace(alloc::format!("{bad}")))?;
    let traits = mutex::any::Any::traits(&config);
    if traits.restless {
        let why = "never comes to rest, and would send messages for every lock all the time";
        return Err(BadSpace(alloc::format!("{name} {why}")));
    }
    if !mutex::any::Any::promise(&config).live {
        let why = "can wait for ever though nobody holds the lock";
        return Err(BadSpace(alloc::format!("{name} {why}")));
    }
    Ok((traits.name, Method::Plain(config)))
}

/// All locks of a process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LockSpace {
    pub(super) limits: Limits,
    pub(super) kinds: BTreeMap<Text, Kind>,
    pub(super) slots: BTreeMap<LockId, Slot>,
    /// The view, if the process sits in one.
    pub(super) gate: Option<Gate>,
    /// Nothing is granted in this view any more.
    pub(super) stopped: bool,
    /// When somebody was left out last who did not leave, if that counts still.
    pub(super) mourning: Option<Time>,
    /// Who has not said yet all that it holds, by rank.
    pub(super) owing: BTreeSet<usize>,
    /// Who held what when the view began, by rank, as long as that instance goes on.
    pub(super) table: BTreeMap<LockId, Vec<(usize, Held)>>,
    /// By namespace: no grant in this view has a larger counter of which nothing else is known.
    pub(super) floors: BTreeMap<Text, u64>,
    /// How many generations have begun with this process as their home, in this view.
    pub(super) minted: u64,
    /// What came before its time.
    pub(super) early: Vec<(NodeId, Frame)>,
    /// What was said in a generation that is not known here.
    pub(super) parked: BTreeMap<LockId, Vec<Parked>>,
    /// What all are asked about.
    pub(super) closing: BTreeMap<LockId, Closing>,
    /// What is asked for back, by the number of the request.
    pub(super) revoking: BTreeMap<u64, Revoking>,
    /// What was taken by force, and when it is over at the latest.
    pub(super) forced: BTreeSet<(Time, LockId)>,
    /// What all are asked about, by the number of the question.
    pub(super) asking: BTreeMap<u64, Census>,
    pub(super) censuses: u64,
    /// The largest stamp of a wish that is known here.
    pub(super) stamp: u64,
    /// When the home looks for what nobody uses, and everybody for circles.
    pub(super) next_sweep: Time,
    /// Of which locks users here want to know who holds them, in whatever view.
    pub(super) observed: BTreeSet<LockId>,
}

impl LockSpace {
    /// No locks.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            kinds: BTreeMap::new(),
            slots: BTreeMap::new(),
            gate: None,
            stopped: false,
            mourning: None,
            owing: BTreeSet::new(),
            table: BTreeMap::new(),
            floors: BTreeMap::new(),
            minted: 0,
            early: Vec::new(),
            parked: BTreeMap::new(),
            closing: BTreeMap::new(),
            revoking: BTreeMap::new(),
            forced: BTreeSet::new(),
            asking: BTreeMap::new(),
            censuses: 0,
            stamp: 0,
            next_sweep: Time::ZERO,
            observed: BTreeSet::new(),
        }
    }

    /// The view, if the process sits in one.
    #[must_use]
    pub const fn gate(&self) -> Option<&Gate> {
        self.gate.as_ref()
    }

    /// How many things are kept that have to do with a single lock.
    #[must_use]
    pub fn entries(&self) -> usize {
        let parked: usize = self.parked.values().map(Vec::len).sum();
        self.slots.len() + self.table.len() + self.closing.len() + self.early.len() + parked
    }

    /// Is this namespace known?
    #[must_use]
    pub fn knows(&self, space: &str) -> bool {
        self.kinds.contains_key(&Text::from(space))
    }

    /// Locks of this namespace are like this. The first word on it counts.
    pub fn define(&mut self, now: Time, space: &str, kind: Kind, out: &mut dyn Outlet) {
        self.kinds.entry(space.into()).or_insert(kind);
        self.watch_again(now, out);
        self.take_early(now, out);
    }

    // Users

    /// A local user wants a lock. Whatever comes of it is told.
    pub fn wish(&mut self, now: Time, lock: &LockId, wish: Wish, out: &mut dyn Outlet) {
        if let Err(why) = self.admit(lock, &wish) {
            return out.tell(Event::Refused { lock: lock.clone(), wish: wish.id, why });
        }
        if wish.mode == Mode::Exclusive
            && let Some((fence, until)) =
                self.take(now, lock, wish.id, (wish.owner.session, &wish.owner.text))
        {
            let (lock, mode, place) = (lock.clone(), wish.mode, 0);
            return out.tell(Event::Granted { lock, wish: wish.id, mode, place, fence, until });
        }
        self.stamp += 1;
        let stamp = self.stamp;
        let ordered = self.kinds.get(&lock.space).is_some_and(Kind::is_ordered);
        let Some(gate) = &self.gate else { return };
        let mut port = Port { gate, now, out: &mut *out };
        let begun = match self.slots.get_mut(lock) {
            Some(slot) => slot.wish(&mut port, wish, stamp, ordered),
            None => {
                let mut slot = Slot::new(lock.clone());
                slot.wish(&mut port, wish, stamp, ordered);
                self.slots.insert(lock.clone(), slot);
                false
            }
        };
        if !begun {
            self.begin_if_wanted(now, lock, out);
        }
    }

    /// Grants a wish to hold a lock exclusively that needs nobody else, in one step: the fence, and until
    /// when this process may act. None if it takes more than that, and then nothing was done.
    pub fn take(
        &mut self,
        now: Time,
        lock: &LockId,
        id: WishId,
        (session, text): (u64, &Text),
    ) -> Option<(Fence, Time)> {
        let gate = self.gate.as_ref()?;
        let until = gate.until.filter(|until| now < *until)?;
        let slot = self.slots.get_mut(lock)?;
        let odd = text.as_str().len() > self.limits.text
            || self.table.get(lock).is_some_and(|held| held.len() > 1);
        if odd {
            return None;
        }
        let fence = slot.take(gate, now, (id, self.stamp + 1), (session, text))?;
        self.stamp += 1;
        Some((fence, until))
    }

    /// A guard is given back that nobody waits for: the same as [`release`](Self::release), where that has
    /// nothing else done. False if it has, and then nothing was done.
    pub fn put_back(&mut self, lock: &LockId, id: WishId) -> bool {
        let open = self.gate.as_ref().is_some_and(|gate| gate.open);
        open && self.slots.get_mut(lock).is_some_and(|slot| slot.put_back(id))
    }

    fn admit(&self, lock: &LockId, wish: &Wish) -> Result<(), Refused> {
        if self.gate.is_none() {
            return Err(Refused::NotMember);
        }
        let Some(kind) = self.kinds.get(&lock.space) else { return Err(Refused::NoSuchSpace) };
        let texts = [&lock.space, &lock.name, &wish.owner.text];
        let value = wish.value.as_bytes().len();
        if texts.iter().any(|text| text.as_str().len() > self.limits.text)
            || value > self.limits.value
        {
            return Err(Refused::TooLong);
        }
        if !kind.supports(wish.mode, wish.patience) {
            return Err(Refused::Unsupported);
        }
        if self.in_conflict(lock) {
            return Err(Refused::Conflict);
        }
        match self.slots.get(lock) {
            None if self.slots.len() >= self.limits.names => Err(Refused::TooManyNames),
            None => Ok(()),
            Some(slot) if slot.is_held_by(wish.owner.session) => Err(Refused::AlreadyHeld),
            Some(slot) if slot.waiting() >= self.limits.waiters => Err(Refused::TooManyWaiters),
            Some(_) => Ok(()),
        }
    }

    /// A local user gives a guard back, or a wish up. One that is not there any more is no fault.
    pub fn release(&mut self, now: Time, lock: &LockId, wish: WishId, out: &mut dyn Outlet) {
        if self.put_back(lock, wish) {
            return;
        }
        let needed = self.on_slot(now, lock, out, |slot, port| {
            slot.release(port, wish);
            slot.is_needed()
        });
        if needed == Some(false) {
            self.slots.remove(lock);
        }
    }

    /// The clock, before anything else that happens at this time: has the lease run out?
    pub fn look_at_the_clock(&mut self, now: Time, out: &mut dyn Outlet) {
        let until = self.gate.as_ref().and_then(|gate| gate.until);
        if until.is_some_and(|until| now >= until) {
            self.set_until(None);
            self.lose(now, Loss::Expired, out);
            self.know_nothing(out);
        }
    }

    /// Until when this process may act, if it may.
    pub fn lease(&mut self, now: Time, until: Option<Time>, out: &mut dyn Outlet) {
        self.look_at_the_clock(now, out);
        let Some(gate) = &self.gate else { return };
        let (before, open) = (gate.until, gate.open);
        self.set_until(until);
        match (before, until) {
            (Some(_), None) => {
                self.lose(now, Loss::Expired, out);
                self.know_nothing(out);
            }
            (None, Some(_)) if open => {
                self.pump_waiting(now, out);
                self.watch_again(now, out);
            }
            _ => {}
        }
    }

    const fn set_until(&mut self, until: Option<Time>) {
        if let Some(gate) = &mut self.gate {
            gate.until = until;
        }
    }

    fn lose(&mut self, now: Time, why: Loss, out: &mut dyn Outlet) {
        let held: Vec<LockId> =
            self.slots.iter().filter(|(_, slot)| slot.is_held()).map(|it| it.0.clone()).collect();
        for lock in held {
            self.on_slot(now, &lock, out, |slot, port| slot.lose(port, why));
            self.forget_unused(&lock);
        }
    }

    /// The life of this process is over: what is held is lost, and nobody waits any more. What was begun
    /// may go on until the time that was told last; the next life begins after that.
    pub fn leave(&mut self, now: Time, out: &mut dyn Outlet) {
        let Some(gate) = &mut self.gate else { return };
        gate.open = false;
        self.lose(now, Loss::Excluded, out);
        for (lock, mut slot) in core::mem::take(&mut self.slots) {
            for wish in slot.give_up() {
                out.tell(Event::Refused { lock: lock.clone(), wish, why: Refused::Excluded });
            }
        }
        self.forget_view();
        self.forced.clear();
        self.asking.clear();
        self.revoking.clear();
        self.mourning = None;
        self.gate = None;
        self.know_nothing(out);
    }

    // Time

    /// When [`LockSpace::tick`] has something to do next.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let forced = self.forced.first().map(|(until, _)| *until);
        if self.gate.as_ref().is_none_or(|gate| !gate.open) {
            return forced;
        }
        let delays = self.kinds.values().map(|kind| kind.lock_delay).filter(|it| *it > Span::ZERO);
        let delay = self.mourning.and_then(|since| delays.map(|delay| since + delay).min());
        [delay, forced, Some(self.next_sweep)].into_iter().flatten().min()
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Time, out: &mut dyn Outlet) {
        self.look_at_the_clock(now, out);
        self.end_forced(now, out);
        if self.gate.as_ref().is_none_or(|gate| !gate.open) {
            return;
        }
        let over = |since: Time| self.kinds.values().all(|kind| now >= since + kind.lock_delay);
        self.mourning = self.mourning.filter(|since| !over(*since));
        self.pump_waiting(now, out);
        if now >= self.next_sweep {
            self.next_sweep = now + self.limits.sweep;
            self.sweep(now, out);
            self.suspect(now, out);
        }
    }

    // Slots

    /// Has a slot do something, if it is there and the process sits in a view.
    pub(super) fn on_slot<R>(
        &mut self,
        now: Time,
        lock: &LockId,
        out: &mut dyn Outlet,
        act: impl FnOnce(&mut Slot, &mut Port<'_>) -> R,
    ) -> Option<R> {
        let (gate, slot) = (self.gate.as_ref()?, self.slots.get_mut(lock)?);
        Some(act(slot, &mut Port { gate, now, out }))
    }

    /// Begins the instance of a lock that somebody here waits for, if it has not begun.
    pub(super) fn begin_if_wanted(&mut self, now: Time, lock: &LockId, out: &mut dyn Outlet) {
        let open = self.gate.as_ref().is_some_and(|gate| gate.open);
        let begins = |slot: &Slot| slot.is_wanted() && !slot.runs() && !slot.is_frozen();
        if open && self.slots.get(lock).is_some_and(begins) {
            self.begin(now, lock, None, out);
        }
    }

    /// Begins the instance of a lock at this member, in this generation if it is known.
    pub(super) fn begin(
        &mut self,
        now: Time,
        lock: &LockId,
        generation: Option<u64>,
        out: &mut dyn Outlet,
    ) {
        let (Some(gate), Some(kind)) = (&self.gate, self.kinds.get(&lock.space)) else { return };
        let listed = self.table.get(lock);
        let generation = generation.or(listed.map(|_| 0)).or_else(|| {
            let mine = gate.home(lock) == gate.rank;
            mine.then(|| {
                self.minted += 1;
                self.minted
            })
        });
        let held = listed.map_or(&[][..], Vec::as_slice);
        let mourned = self.mourning.filter(|_| listed.is_none()).map(|it| it + kind.lock_delay);
        let not_before = mourned.unwrap_or(gate.begun);
        let floor = self.floors.get(&lock.space).copied().unwrap_or(0);
        let given = Given { method: &kind.method, generation, held, floor, not_before };
        let slot = self.slots.entry(lock.clone()).or_insert_with(|| Slot::new(lock.clone()));
        slot.begin_run(&mut Port { gate, now, out }, given);
    }

    /// Serves whoever waits here, the oldest wish first.
    pub(super) fn pump_waiting(&mut self, now: Time, out: &mut dyn Outlet) {
        let waiting = self.slots.iter().filter_map(|(lock, slot)| Some((slot.oldest()?, lock)));
        let mut waiting: Vec<(WishId, LockId)> =
            waiting.map(|(wish, lock)| (wish, lock.clone())).collect();
        waiting.sort_unstable();
        for (_, lock) in waiting {
            if self.slots.get(&lock).is_some_and(Slot::runs) {
                self.on_slot(now, &lock, out, Slot::pump);
            } else {
                self.begin_if_wanted(now, &lock, out);
            }
        }
    }

    /// Forgets a slot that nobody uses and no instance needs.
    pub(super) fn forget_unused(&mut self, lock: &LockId) {
        if self.slots.get(lock).is_some_and(|slot| !slot.is_needed()) {
            self.slots.remove(lock);
        }
    }

    pub(crate) fn assert_invariants(&self) {
        for slot in self.slots.values() {
            slot.assert_invariants();
        }
    }
}
