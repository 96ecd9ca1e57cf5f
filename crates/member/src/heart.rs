//! What a process decides with: its service, which the thread of the transport and the users' own threads
//! step in turn.
//!
//! Users step it themselves, under one mutex that is held for a step and never across input or output:
//! taking a lock that rests at this process costs no channel, no message and no disk. The gate
//! between users and a change of view is that same mutex: a stop is told to others only after the step
//! that made it, and no step of a user lies in between.

mod diary;
mod shared;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) use diary::{Diary, written};
use quorate_core::trace::{Happening, Recorder};
use quorate_core::{Choices, Input, Life, Node, NodeId, Output, Span, Time};
use quorate_service::groups;
use quorate_service::locks::{
    Event, Fence, LockId, Loss, Refused, Report, Text, Wish, WishId, Word,
};
use quorate_service::seat::Seat;
use quorate_service::service::{self, Service};
use quorate_transport::{Direct, Lane};
pub(crate) use shared::Shared;
use tokio::sync::oneshot;

use crate::figures::Counts;
use crate::groups::Inbox;
use crate::lease::Lease;
use crate::roles::{Observers, Seen};
use crate::trace::Tracer;
use crate::words::Frame;

/// Users that take one lock after the other look after so long whether the thread of the transport has to run,
/// and let it: what has come may be that somebody elsewhere wants the lock.
const TURN: Span = Span(40_000);
/// The same, if it had to when they looked last: it may not have got a core yet, or have one of its own.
const TURN_AGAIN: Span = Span(5_000);
/// The node that a process is, to itself.
pub(crate) const ME: NodeId = NodeId::at(0);

/// What comes of a wish.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// It is granted: this place of it, with this fence, under this lease.
    Granted(u32, Fence, Arc<Lease>),
    /// It is not.
    Refused(Refused),
}

/// A lock that was taken: the wish, its fence, and the lease that it is held under.
pub(crate) type Taken = (WishId, Fence, Arc<Lease>);

/// Told what comes of a wish.
pub(crate) type Waiter = Box<dyn FnOnce(Outcome) + Send>;

/// Told what all say about locks.
pub(crate) enum Question {
    /// Who holds what, and who waits.
    Census(Box<dyn FnOnce(Vec<Report>) + Send>),
    /// Has all heard that a lock is asked for back; did anybody hold it?
    Revoke(Box<dyn FnOnce(bool) + Send>),
}

/// What is to be called when the mutex is free again.
pub(crate) type Calls = Vec<Box<dyn FnOnce() + Send>>;

/// What a process decides with.
pub(crate) struct Heart {
    pub(crate) node: Node<Service>,
    dice: Dice,
    recorder: Recorder,
    /// Who waits for its wish.
    waiters: BTreeMap<WishId, Waiter>,
    /// Who wants to know when its guard is lost.
    mourners: BTreeMap<WishId, Vec<oneshot::Sender<Loss>>>,
    /// Who wants to know when its guard is asked for back.
    yielders: BTreeMap<WishId, Vec<oneshot::Sender<()>>>,
    /// Guards that were asked for back and not given back yet, and for which priority.
    asked: BTreeMap<WishId, Option<i32>>,
    /// Who observes roles.
    pub(crate) observers: Observers,
    /// Questions to all about locks, by their numbers.
    questions: BTreeMap<u64, Question>,
    /// Guards that were lost and not given back yet, and why; and how many these are.
    lost: BTreeMap<WishId, Loss>,
    losses: Arc<AtomicUsize>,
    /// Where users are told of their groups.
    pub(crate) inboxes: BTreeMap<Text, Arc<Inbox>>,
    /// How others are reached, by the name and by the number of their node.
    sessions: BTreeMap<String, Way>,
    ways: Vec<Option<Way>>,
    lease: Arc<Lease>,
    wishes: u64,
    /// When users last looked whether the thread of the transport has to run, whether it had to, and whether
    /// it is time to look again.
    turned: Time,
    pressed: Arc<AtomicBool>,
    turn: bool,
    /// What was granted is written down, with what is held, if a history is asked for.
    diary: Option<Diary>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) tracer: Option<Tracer>,
}

/// How a member is reached, and what can be said to it.
#[derive(Clone)]
pub(crate) struct Way {
    direct: Direct,
    /// The version of the wire.
    version: u16,
}

impl Way {
    pub(crate) const fn new(direct: Direct, version: u16) -> Self {
        Self { direct, version }
    }

    /// The session, if what is to be said can be said in it: what a version does not have is left unsaid,
    /// and is said again in the view in which the member has a later one.
    pub(crate) fn to_say(&self, frame: &Frame<'_>) -> Option<&Direct> {
        (frame.version() <= self.version).then_some(&self.direct)
    }
}

impl Heart {
    fn new(
        service: Service,
        seed: u64,
        (losses, pressed): (Arc<AtomicUsize>, Arc<AtomicBool>),
        (diary, counts, tracer): (Option<Diary>, Arc<Counts>, Option<Tracer>),
    ) -> Self {
        Self {
            node: Node::new(ME, service),
            dice: Dice(seed | 1),
            recorder: Recorder::new(),
            waiters: BTreeMap::new(),
            mourners: BTreeMap::new(),
            yielders: BTreeMap::new(),
            asked: BTreeMap::new(),
            observers: Observers::default(),
            questions: BTreeMap::new(),
            lost: BTreeMap::new(),
            losses,
            inboxes: BTreeMap::new(),
            sessions: BTreeMap::new(),
            ways: Vec::new(),
            lease: Arc::new(Lease::lost()),
            wishes: 0,
            turned: Time::ZERO,
            pressed,
            turn: false,
            diary,
            counts,
            tracer,
        }
    }

    /// Its seat.
    pub(crate) fn seat(&self) -> Option<&Seat> {
        self.node.protocol().seat()
    }

    /// The life that its seat lives.
    pub(crate) fn life(&self) -> Option<Life> {
        self.seat().and_then(Seat::life)
    }

    /// Hands it an input; what is to be written down of the step, if that is asked for.
    pub(crate) fn handle(
        &mut self,
        now: Time,
        input: Input<Service>,
        written: Option<Happening>,
    ) -> (Result<(), quorate_core::Refusal>, Option<quorate_core::trace::Record>) {
        let recorder = written.map(|happening| {
            self.recorder.begin(now, ME, happening);
            &mut self.recorder
        });
        let outcome = self.node.handle(now, &mut self.dice, input, recorder);
        (outcome, self.recorder.end())
    }

    /// Takes a lock that rests here and that nobody else wants: that needs no clock but one reading, nobody
    /// to be told, and nothing sent. None if it takes more than that.
    pub(crate) fn take(&mut self, lock: &LockId, owner: (Option<u64>, &Text)) -> Option<Taken> {
        // What goes into a trace is told as it comes, one thing after the other.
        if self.tracer.is_some() {
            return None;
        }
        let id = WishId(self.wishes + 1);
        let (session, text) = owner;
        let owner = (session.unwrap_or(u64::MAX - id.0), text);
        let now = quorate_transport::now();
        let (fence, until) = self.node.protocol_mut().take(now, lock, id, owner)?;
        self.wishes = id.0;
        let pause = if self.pressed.load(Ordering::Relaxed) { TURN_AGAIN } else { TURN };
        if now.since(self.turned) > pause {
            (self.turned, self.turn) = (now, true);
        }
        self.counts.taken();
        if let Some(diary) = &mut self.diary {
            diary.granted(id, lock.clone(), fence, until);
        }
        Some((id, fence, Arc::clone(&self.lease)))
    }

    /// Gives back what nobody else wants: nobody has to be told. False if somebody has.
    fn put_back(&mut self, lock: &LockId, id: WishId) -> bool {
        let quiet = self.mourners.is_empty()
            && self.yielders.is_empty()
            && self.asked.is_empty()
            && self.lost.is_empty();
        // What is written down must be there before anybody else can know of it.
        let untold = self.diary.is_none() && self.tracer.is_none();
        let given = quiet && untold && self.node.protocol_mut().put_back(lock, id);
        debug_assert!(!given || !self.waiters.contains_key(&id), "who waits has nothing");
        given
    }

    /// A wish of a user. If it comes to something at once, nobody waits.
    pub(crate) fn wish(
        &mut self,
        now: Time,
        lock: &LockId,
        wish: impl FnOnce(WishId) -> Wish,
        waiter: impl FnOnce() -> Waiter,
        calls: &mut Calls,
    ) -> (WishId, Option<Outcome>) {
        self.wishes += 1;
        let id = WishId(self.wishes);
        let wish = wish(id);
        if let Some(tracer) = &mut self.tracer {
            tracer.wish(now, lock, &wish);
        }
        let command = service::Command::Wish(lock.clone(), wish);
        // Locks refuse by telling so.
        let _ = self.node.command(now, &mut self.dice, command);
        let outcome = self.send_until(id, calls);
        match &outcome {
            Some(outcome) => self.counts.at_once(outcome),
            None => _ = self.waiters.insert(id, self.counts.timed(now, waiter())),
        }
        (id, outcome)
    }

    /// A user gives a guard back, or a wish up.
    fn release(&mut self, now: Time, lock: &LockId, id: WishId) {
        self.waiters.remove(&id);
        self.mourners.remove(&id);
        self.yielders.remove(&id);
        self.asked.remove(&id);
        self.lost.remove(&id);
        self.losses.store(self.lost.len(), Ordering::Release);
        if let Some(diary) = &mut self.diary {
            diary.dropped(id);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.released(now, id);
        }
        self.order(now, service::Command::Release(lock.clone(), id));
    }

    /// A user has something done about locks. What is not there any more is no fault.
    pub(crate) fn order(&mut self, now: Time, command: service::Command) {
        let _ = self.node.command(now, &mut self.dice, command);
    }

    /// A user gives a guard away: it does not use it any more, and others have not heard of it yet.
    pub(crate) fn give_away(&mut self, id: WishId) {
        if let Some(diary) = &mut self.diary {
            diary.dropped(id);
        }
    }

    /// Was a guard asked for back? For which priority?
    pub(crate) fn asked_back(&self, id: WishId) -> Option<Option<i32>> {
        self.asked.get(&id).copied()
    }

    /// Why a guard is lost, if it is for a reason of its own.
    pub(crate) fn loss(&self, id: WishId) -> Option<Loss> {
        self.lost.get(&id).copied()
    }

    /// Has somebody told when a guard is lost; why, if it is.
    pub(crate) fn mourn(&mut self, id: WishId, told: oneshot::Sender<Loss>) -> Option<Loss> {
        let lost = self.loss(id);
        if lost.is_none() {
            add(&mut self.mourners, id, told);
        }
        lost
    }

    /// A wish about a group.
    pub(crate) fn group(
        &mut self,
        now: Time,
        command: groups::Command,
    ) -> Result<(), quorate_core::Refusal> {
        self.node.command(now, &mut self.dice, crate::groups::wish(command))
    }

    /// Is a timer due?
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.node.next_deadline().is_some_and(|deadline| deadline <= now)
    }

    // What comes of steps

    /// Something about locks is told: to whom, and what.
    pub(crate) fn on_lock(&mut self, event: Event, calls: &mut Calls) {
        match event {
            Event::Granted { lock, wish, place, fence, until, .. } => {
                let outcome = self.granted((wish, lock, place), fence, until);
                self.write_down(wish, &outcome);
                self.answer(wish, outcome, calls);
            }
            Event::Refused { wish, why, .. } => {
                let outcome = Outcome::Refused(why);
                self.write_down(wish, &outcome);
                self.answer(wish, outcome, calls);
            }
            Event::Lost { wish, why, .. } => {
                self.lost.insert(wish, why);
                self.losses.store(self.lost.len(), Ordering::Release);
                if let Some(tracer) = &mut self.tracer {
                    tracer.lost(quorate_transport::now(), wish);
                }
                for told in self.mourners.remove(&wish).unwrap_or_default() {
                    // Whoever asked may have stopped waiting.
                    calls.push(Box::new(move || _ = told.send(why)));
                }
            }
            Event::Yield { wish, better, .. } => {
                // What somebody has asked for stays asked for, whoever stands.
                let asked = self.asked.entry(wish).or_insert(better);
                *asked = better.filter(|_| asked.is_some());
                for told in self.yielders.remove(&wish).unwrap_or_default() {
                    calls.push(Box::new(move || _ = told.send(())));
                }
            }
            Event::Observed { lock, word } => {
                let after = match &word {
                    Word::Nobody { after } => Some(*after),
                    Word::Leads { .. } | Word::Unknown => None,
                };
                let seen = Seen::of(word, self.seat());
                if let Some(diary) = &mut self.diary {
                    diary.heard(&lock, after, &seen);
                }
                self.observers.told(&lock, seen);
            }
            Event::Revoked { number, held } => {
                if let Some(Question::Revoke(told)) = self.questions.remove(&number) {
                    calls.push(Box::new(move || told(held)));
                }
            }
            Event::Census { number, reports } => {
                if let Some(Question::Census(told)) = self.questions.remove(&number) {
                    calls.push(Box::new(move || told(reports)));
                }
            }
        }
    }

    /// Asks all about locks.
    pub(crate) fn ask(
        &mut self,
        now: Time,
        what: impl FnOnce(u64) -> service::Command,
        told: Question,
    ) {
        self.wishes += 1;
        let number = self.wishes;
        self.questions.insert(number, told);
        // Locks refuse nothing: who is no member is told so by nobody's answering.
        let _ = self.node.command(now, &mut self.dice, what(number));
    }

    /// Is a guard asked for back?
    pub(crate) fn is_asked_back(&self, id: WishId) -> bool {
        self.asked.contains_key(&id)
    }

    /// Has somebody told when its guard is asked for back; at once, if it is.
    pub(crate) fn when_asked_back(&mut self, id: WishId, told: oneshot::Sender<()>) {
        if self.is_asked_back(id) {
            // Whoever asked may have stopped waiting.
            let _ = told.send(());
            return;
        }
        self.when_asked_again(id, told);
    }

    /// Has somebody told when its guard is asked for back from now on, whether or not it is already.
    pub(crate) fn when_asked_again(&mut self, id: WishId, told: oneshot::Sender<()>) {
        add(&mut self.yielders, id, told);
    }

    fn granted(
        &mut self,
        (wish, lock, place): (WishId, LockId, u32),
        fence: Fence,
        until: Time,
    ) -> Outcome {
        if let Some(diary) = &mut self.diary {
            diary.granted(wish, lock, fence, until);
        }
        Outcome::Granted(place, fence, Arc::clone(&self.lease))
    }

    fn answer(&mut self, wish: WishId, outcome: Outcome, calls: &mut Calls) {
        if let Some(waiter) = self.waiters.remove(&wish) {
            calls.push(Box::new(move || waiter(outcome)));
        }
    }

    /// Carries out what a step of a user has come to; what came of this wish, if anything did.
    fn send_until(&mut self, mine: WishId, calls: &mut Calls) -> Option<Outcome> {
        let mut outcome = None;
        while let Some(output) = self.node.poll() {
            match output {
                Output::Emit(service::Event::Lock(Event::Granted {
                    lock,
                    wish,
                    place,
                    fence,
                    until,
                    ..
                })) if wish == mine => {
                    outcome = Some(self.granted((wish, lock, place), fence, until));
                }
                Output::Emit(service::Event::Lock(Event::Refused { wish, why, .. }))
                    if wish == mine =>
                {
                    outcome = Some(Outcome::Refused(why));
                }
                output => self.carry_out(output, calls),
            }
        }
        if let Some(outcome) = &outcome {
            self.write_down(mine, outcome);
        }
        outcome
    }

    /// What came of a wish goes into the trace.
    fn write_down(&mut self, wish: WishId, outcome: &Outcome) {
        let Some(tracer) = &mut self.tracer else { return };
        match outcome {
            Outcome::Granted(_, fence, _) => tracer.granted(quorate_transport::now(), wish, *fence),
            Outcome::Refused(_) => tracer.over(wish),
        }
    }

    fn send_directly(&mut self, calls: &mut Calls) {
        while let Some(output) = self.node.poll() {
            self.carry_out(output, calls);
        }
    }

    fn carry_out(&mut self, output: Output<Service>, calls: &mut Calls) {
        match output {
            Output::Send { to, msg: service::Msg::Lock(frame), .. } => {
                let frame = Frame::Lock(frame);
                // A session that is lost ends the view, and with it what was said in it.
                if let Some(way) = self.way(to, &frame)
                    && let Ok(sending) = way.put(Lane::Data, &frame.encode())
                {
                    // Its place is taken; it goes out when others can step again.
                    calls.push(Box::new(move || sending.go()));
                }
            }
            Output::Emit(service::Event::Lock(event)) => self.on_lock(event, calls),
            Output::Multicast { to, msg: service::Msg::Group(frame), .. } => {
                let frame = Frame::Group(frame);
                let bytes = frame.encode();
                // As with locks.
                for way in to.iter().filter_map(|to| self.way(to, &frame)) {
                    if let Ok(sending) = way.put(Lane::Data, &bytes) {
                        calls.push(Box::new(move || sending.go()));
                    }
                }
            }
            Output::Emit(service::Event::Group(event)) => {
                self.on_group(quorate_transport::now(), event);
            }
            // Users do nothing to the seat.
            Output::Send { .. } | Output::Multicast { .. } => {}
            Output::Persist(_) | Output::Emit(service::Event::Seat(_)) => {}
        }
    }

    // What the thread of the transport sees to

    /// How the member of this name is reached from now on, if it is.
    pub(crate) fn reach(&mut self, name: &str, way: Option<Way>) {
        match way {
            Some(way) => _ = self.sessions.insert(name.to_owned(), way),
            None => _ = self.sessions.remove(name),
        }
        self.find_ways();
    }

    /// Names may have other nodes now.
    pub(crate) fn find_ways(&mut self) {
        let mut ways = Vec::new();
        if let Some(seat) = self.seat() {
            let mut place = 0;
            while let Some(name) = seat.name(NodeId::at(place)) {
                ways.push(self.sessions.get(name).cloned());
                place += 1;
            }
        }
        self.ways = ways;
    }

    /// How a node is reached with something.
    pub(crate) fn way(&self, to: NodeId, frame: &Frame<'_>) -> Option<&Direct> {
        self.ways.get(to.index())?.as_ref()?.to_say(frame)
    }

    /// How long this process may still act.
    pub(crate) fn left(&self, now: Time) -> Option<quorate_core::Span> {
        self.lease.left(now)
    }

    /// The lease may have been renewed, or be over. Until when it goes, if that has changed.
    pub(crate) fn look_at_lease(&mut self, now: Time) -> Option<Time> {
        let until = self.seat().and_then(|seat| seat.until(now));
        match until {
            None if self.lease.until().is_some() => {
                self.lease.end();
                self.counts.lost();
                Some(Time::ZERO)
            }
            None => None,
            Some(until) if self.lease.until() == Some(until) => None,
            Some(until) => {
                if let Some(left) = self.lease.left(now) {
                    self.counts.renewed(left);
                }
                if !self.lease.extend(until) {
                    self.lease = Arc::new(Lease::new(until));
                }
                Some(until)
            }
        }
    }
}

/// One more who wants to know, in the place of those who do not any more.
fn add<T>(
    waiting: &mut BTreeMap<WishId, Vec<oneshot::Sender<T>>>,
    id: WishId,
    told: oneshot::Sender<T>,
) {
    let all = waiting.entry(id).or_default();
    all.retain(|other| !other.is_closed());
    all.push(told);
}

/// Lots, where a state machine draws some: xorshift.
struct Dice(u64);

impl Choices for Dice {
    fn choose(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let drawn = (u128::from(self.0) * u128::from(bound)) >> 64;
        drawn as u32
    }
}
