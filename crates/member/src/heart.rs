//! What a process decides with: its service, which the thread of the transport and the users' own threads
//! step in turn.
//!
//! Users step it themselves, under one mutex that is held for a step and never across input or output of
//! others: taking a lock that rests at this process costs no channel, no message and no disk. The gate
//! between users and a change of view is that same mutex: a stop is told to others only after the step
//! that made it, and no step of a user lies in between.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use quorate_core::trace::{Happening, Recorder};
use quorate_core::{Choices, Input, Life, Node, NodeId, Output, Time};
use quorate_service::groups;
use quorate_service::locks::{Event, Fence, LockId, Loss, Refused, Report, Text, Wish, WishId};
use quorate_service::seat::Seat;
use quorate_service::service::{self, Service};
use quorate_transport::{Direct, Lane, Remote};
use tokio::sync::watch;

use crate::groups::Inbox;
use crate::lease::Lease;
use crate::roles::{Observers, Seen};
use crate::runtime::Command;
use crate::words::Frame;

/// The node that a process is, to itself.
pub(crate) const ME: NodeId = NodeId::at(0);

/// What comes of a wish.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// It is granted, under this lease.
    Granted(Fence, Arc<Lease>),
    /// It is not.
    Refused(Refused),
}

/// Told what comes of a wish.
pub(crate) type Waiter = Box<dyn FnOnce(Outcome) + Send>;

/// Told that a guard is lost.
type Mourner = Box<dyn FnOnce(Loss) + Send>;

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
    mourners: BTreeMap<WishId, Mourner>,
    /// Who wants to know when its guard is asked for back.
    yielders: BTreeMap<WishId, Box<dyn FnOnce() + Send>>,
    /// Guards that were asked for back and not given back yet, and for which priority.
    asked: BTreeMap<WishId, Option<i32>>,
    /// Who observes roles.
    pub(crate) observers: Observers,
    /// Questions to all about locks, by their numbers.
    questions: BTreeMap<u64, Question>,
    /// Guards that were lost and not given back yet, and why.
    lost: BTreeMap<WishId, Loss>,
    /// Where users are told of their groups.
    pub(crate) inboxes: BTreeMap<Text, Arc<Inbox>>,
    /// How others are reached, by the name and by the number of their node.
    sessions: BTreeMap<String, Direct>,
    ways: Vec<Option<Direct>>,
    lease: Arc<Lease>,
    wishes: u64,
}

/// The heart of a process, for all its threads.
pub(crate) struct Shared {
    heart: Mutex<Option<Heart>>,
    /// The way to the thread of the transport, once there is one.
    remote: OnceLock<Remote<Command>>,
    /// Until when the process may act; 0 while it may not.
    pub(crate) until: watch::Sender<Time>,
    /// Has the thread of the transport been woken, and not looked around yet?
    woken: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

impl Shared {
    pub(crate) fn new() -> Self {
        let (heart, remote) = (Mutex::new(None), OnceLock::new());
        let woken = AtomicBool::new(false);
        Self { heart, remote, until: watch::Sender::new(Time::ZERO), woken }
    }

    /// This is the way to the thread of the transport.
    pub(crate) fn meet(&self, remote: &Remote<Command>) {
        // There is one transport.
        let _ = self.remote.set(remote.clone());
    }

    /// Tells the thread of the transport something, if it is there.
    pub(crate) fn tell(&self, command: Command) -> bool {
        self.remote.get().is_some_and(|remote| remote.tell(command).is_ok())
    }

    /// Wakes the thread of the transport: a timer of a step here is due.
    pub(crate) fn wake(&self) {
        if !self.woken.swap(true, Ordering::SeqCst) {
            self.tell(Command::Wake);
        }
    }

    /// The thread of the transport looks around.
    pub(crate) fn is_awake(&self) {
        self.woken.store(false, Ordering::SeqCst);
    }

    /// The heart, if the process has one yet. A step that panicked has ended the process.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Heart>> {
        self.heart.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on it has one.
    pub(crate) fn begin(&self, service: Service, seed: u64) {
        *self.lock() = Some(Heart::new(service, seed));
    }

    /// A step of a user: what it sends goes out from here.
    pub(crate) fn step<R>(&self, act: impl FnOnce(&mut Heart, Time, &mut Calls) -> R) -> Option<R> {
        let mut calls = Calls::new();
        let result = self.lock().as_mut().map(|heart| {
            let result = act(heart, quorate_transport::now(), &mut calls);
            heart.send_directly(&mut calls);
            result
        });
        calls.into_iter().for_each(|call| call());
        result
    }
}

impl Heart {
    fn new(service: Service, seed: u64) -> Self {
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
            inboxes: BTreeMap::new(),
            sessions: BTreeMap::new(),
            ways: Vec::new(),
            lease: Arc::new(Lease::lost()),
            wishes: 0,
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
        let command = service::Command::Wish(lock.clone(), wish(id));
        // Locks refuse by telling so.
        let _ = self.node.command(now, &mut self.dice, command);
        let outcome = self.send_until(id, calls);
        if outcome.is_none() {
            self.waiters.insert(id, waiter());
        }
        (id, outcome)
    }

    /// A user gives a guard back, or a wish up.
    pub(crate) fn release(&mut self, now: Time, lock: &LockId, id: WishId) {
        self.waiters.remove(&id);
        self.mourners.remove(&id);
        self.yielders.remove(&id);
        self.asked.remove(&id);
        self.lost.remove(&id);
        self.order(now, service::Command::Release(lock.clone(), id));
    }

    /// A user has something done about locks. What is not there any more is no fault.
    pub(crate) fn order(&mut self, now: Time, command: service::Command) {
        let _ = self.node.command(now, &mut self.dice, command);
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
    pub(crate) fn mourn(&mut self, id: WishId, told: Mourner) -> Option<Loss> {
        let lost = self.loss(id);
        if lost.is_none() {
            self.mourners.insert(id, told);
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
            Event::Granted { wish, fence, .. } => {
                let outcome = Outcome::Granted(fence, Arc::clone(&self.lease));
                self.answer(wish, outcome, calls);
            }
            Event::Refused { wish, why, .. } => self.answer(wish, Outcome::Refused(why), calls),
            Event::Lost { wish, why, .. } => {
                self.lost.insert(wish, why);
                if let Some(told) = self.mourners.remove(&wish) {
                    calls.push(Box::new(move || told(why)));
                }
            }
            Event::Yield { wish, better, .. } => {
                // What somebody has asked for stays asked for, whoever stands.
                let asked = self.asked.entry(wish).or_insert(better);
                *asked = better.filter(|_| asked.is_some());
                calls.extend(self.yielders.remove(&wish));
            }
            Event::Observed { lock, word } => {
                let seen = Seen::of(word, self.seat());
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

    /// Has somebody told when its guard is asked for back.
    pub(crate) fn when_asked_back(&mut self, id: WishId, told: Box<dyn FnOnce() + Send>) {
        self.yielders.insert(id, told);
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
                Output::Emit(service::Event::Lock(Event::Granted { wish, fence, .. }))
                    if wish == mine =>
                {
                    outcome = Some(Outcome::Granted(fence, Arc::clone(&self.lease)));
                }
                Output::Emit(service::Event::Lock(Event::Refused { wish, why, .. }))
                    if wish == mine =>
                {
                    outcome = Some(Outcome::Refused(why));
                }
                output => self.carry_out(output, calls),
            }
        }
        outcome
    }

    fn send_directly(&mut self, calls: &mut Calls) {
        while let Some(output) = self.node.poll() {
            self.carry_out(output, calls);
        }
    }

    fn carry_out(&mut self, output: Output<Service>, calls: &mut Calls) {
        match output {
            Output::Send { to, msg: service::Msg::Lock(frame), .. } => {
                if let Some(Some(way)) = self.ways.get(to.index()) {
                    // A session that is lost ends the view, and with it what was said in it.
                    let _ = way.send(Lane::Data, &Frame::Lock(frame).encode());
                }
            }
            Output::Emit(service::Event::Lock(event)) => self.on_lock(event, calls),
            Output::Multicast { to, msg: service::Msg::Group(frame), .. } => {
                let bytes = Frame::Group(frame).encode();
                for way in to.iter().filter_map(|to| self.way(to)) {
                    // As with locks.
                    let _ = way.send(Lane::Data, &bytes);
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
    pub(crate) fn reach(&mut self, name: &str, way: Option<Direct>) {
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

    /// How a node is reached.
    pub(crate) fn way(&self, to: NodeId) -> Option<&Direct> {
        self.ways.get(to.index())?.as_ref()
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
                Some(Time::ZERO)
            }
            None => None,
            Some(until) if self.lease.until() == Some(until) => None,
            Some(until) => {
                if !self.lease.extend(until) {
                    self.lease = Arc::new(Lease::new(until));
                }
                Some(until)
            }
        }
    }
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
