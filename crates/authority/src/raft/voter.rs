//! A voter: one member of the consensus, without thread, clock or socket.
//!
//! It is told what happens ([`tick`](Voter::tick), [`receive`](Voter::receive),
//! [`order`](Voter::order), …) and then takes a [`turn`](Voter::turn), in which it writes to its disk
//! and says what is to be done, in order. It drives raft's `RawNode` the one way that is known to be
//! right: what a Ready has to be persisted is, in one transaction, before anything that depends on it
//! is sent; entries are applied with the members as of them; then the Ready is advanced.

mod change;
mod guard;
mod ready;
mod succession;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use ::raft::eraftpb;
use ::raft::{Config, RawNode, ReadOnlyOption, SnapshotStatus, StateRole};
use quorate_service::{Answer, Committed, Order, Register, Revision};
use slog::{Discard, Logger, o};

use super::disk::{Disk, DiskError};
use super::log::Log;
use super::orders::Orders;
use super::reads::Reads;
use super::state::Applied;
use super::wire::{Kind, Members, Message, Snapshot, Word, encode};

pub use change::ChangeError;
use guard::Guard;
pub use guard::Standing;
use succession::Succession;

/// How a voter goes about things. Times are in ticks.
#[derive(Clone, Debug)]
pub struct Options {
    /// What its election timeouts are drawn from.
    pub seed: u64,
    /// The shortest election timeout; the longest is twice as long.
    pub election: usize,
    /// How often a leader is heard.
    pub heartbeat: usize,
    /// After how long the outcome of an order or a read is unknown.
    pub patience: u64,
    /// How many applied entries are kept for those that are behind. When there are twice as many, the
    /// older half is dropped.
    pub tail: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, election: 15, heartbeat: 2, patience: 300, tail: 1024 }
    }
}

/// Something that is to be done, or that has come to be.
#[derive(Clone, Debug)]
pub enum Out {
    /// Send these words, each to its voter. They may get lost.
    Send(Vec<(u64, Word)>),
    /// The register that is committed now. Later ones follow earlier ones.
    Committed(Committed),
    /// An order was done; the register before this has it.
    Answer {
        /// The ticket that it was given with.
        ticket: u64,
        /// What became of it.
        answer: Answer,
    },
    /// A read is answered.
    Read {
        /// The ticket that it was given with.
        ticket: u64,
        /// The register.
        register: Arc<Register>,
    },
    /// The outcome of an order or a read is not known, and never will be here.
    Unknown {
        /// The ticket that it was given with.
        ticket: u64,
    },
    /// Who takes part from now on.
    Members(Members),
}

/// Why a voter has stopped. It never goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// Its disk failed.
    Disk(DiskError),
    /// It holds something that it cannot read, or cannot begin with.
    Corrupt(String),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => write!(f, "{error}"),
            Self::Corrupt(what) => write!(f, "{what}"),
        }
    }
}

impl Error for Stopped {}

impl From<DiskError> for Stopped {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

/// One member of the consensus.
pub struct Voter<D> {
    id: u64,
    node: RawNode<Log>,
    disk: D,
    options: Options,
    orders: Orders,
    reads: Reads,
    succession: Succession,
    guard: Guard,
    current: Committed,
    /// Ticks since it started.
    now: u64,
    ticked: bool,
    /// How often its election timeout ran out: each time another one is drawn.
    draws: u64,
    /// What was applied is not written yet; and if who takes part has changed, it must be durable.
    unwritten: bool,
    members_changed: bool,
    /// Whom a snapshot was sent to, and when.
    snapshots: BTreeMap<u64, u64>,
    stopped: Option<Stopped>,
}

impl<D: Disk> Voter<D> {
    /// A voter that goes on from what is on this disk.
    ///
    /// # Errors
    /// If the disk cannot be read, or what is there is not the disk of a voter.
    pub fn new(mut disk: D, options: Options) -> Result<Self, Stopped> {
        let stored = disk.start()?;
        let (id, boot) = (stored.id, stored.boot);
        let config = Config {
            id,
            applied: stored.applied.index,
            election_tick: options.election,
            heartbeat_tick: options.heartbeat,
            pre_vote: true,
            check_quorum: true,
            read_only_option: ReadOnlyOption::Safe,
            max_size_per_msg: 256 << 10,
            max_inflight_msgs: 256,
            max_uncommitted_size: 16 << 20,
            ..Config::default()
        };
        let current = Committed {
            revision: Revision(stored.applied.index),
            register: Arc::new(stored.applied.state.register.clone()),
        };
        let alone = stored.applied.members.voters == [id];
        let node = RawNode::new(&config, Log::new(stored), &Logger::root(Discard, o!()));
        let node = node.map_err(|error| Stopped::Corrupt(error.to_string()))?;
        let mut voter = Self {
            id,
            node,
            disk,
            options,
            orders: Orders::new(id, boot),
            reads: Reads::new(id, boot),
            succession: Succession::default(),
            guard: Guard::default(),
            current,
            now: 0,
            ticked: false,
            draws: 0,
            unwritten: false,
            members_changed: false,
            snapshots: BTreeMap::new(),
            stopped: None,
        };
        voter.settle();
        if alone {
            voter.campaign();
        }
        Ok(voter)
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Who leads, as far as it knows.
    #[must_use]
    pub fn leader(&self) -> Option<u64> {
        Some(self.node.raft.leader_id).filter(|leader| *leader != 0)
    }

    /// Does it lead, as far as it knows?
    #[must_use]
    pub fn leads(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    /// Its term.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.node.raft.term
    }

    /// What it has applied.
    #[must_use]
    pub fn applied(&self) -> &Applied {
        &self.node.store().applied
    }

    /// The register as far as it has applied it. It may be old: only a read is not.
    #[must_use]
    pub const fn committed(&self) -> &Committed {
        &self.current
    }

    /// A tick has passed.
    pub fn tick(&mut self) {
        self.ticked = true;
        self.doze();
    }

    /// A tick has passed before anything else that is told now: one of those that are [`idle`](Self::idle).
    pub fn doze(&mut self) {
        self.now += 1;
        self.node.tick();
        if self.node.raft.election_elapsed == 0 {
            self.draws += 1;
        }
        // One that got lost would keep its receiver waiting for ever.
        let mut lost = Vec::new();
        self.snapshots.retain(|peer, sent| {
            let due = *sent + self.options.election as u64 <= self.now;
            lost.extend(due.then_some(*peer));
            !due
        });
        for peer in lost {
            self.node.report_snapshot(peer, SnapshotStatus::Failure);
        }
        self.settle();
        self.succeed();
    }

    /// How many of the next ticks do nothing but pass, if nothing else happens: who has nothing to do
    /// need not be woken for them.
    #[must_use]
    pub fn idle(&self) -> u32 {
        if self.succession.is_open() || !self.snapshots.is_empty() {
            return 0;
        }
        let raft = &self.node.raft;
        let left = if self.leads() {
            let beat = raft.heartbeat_timeout().saturating_sub(raft.heartbeat_elapsed());
            beat.min(raft.election_timeout().saturating_sub(raft.election_elapsed))
        } else {
            raft.randomized_election_timeout().saturating_sub(raft.election_elapsed)
        };
        let due = [self.orders.due(self.now), self.reads.due()];
        let left = due
            .iter()
            .flatten()
            .fold(left as u64, |left, due| left.min(due.saturating_sub(self.now)));
        u32::try_from(left).unwrap_or(u32::MAX).saturating_sub(1)
    }

    /// A word has come from this voter. What is not from it, not for this one or not sound is ignored.
    pub fn receive(&mut self, from: u64, word: Word) {
        self.lives(from);
        match word {
            Word::Orders(orders) => {
                let known = self.applied().members.contains(from);
                if self.leads() && known && orders.iter().all(|(id, _)| id.voter == from) {
                    self.orders.collect(orders);
                }
            }
            Word::Raft(message) => {
                if message.from == from && message.to == self.id && is_sound(&message) {
                    self.guard.note(&message);
                    // What raft refuses it has no use for.
                    let _ = self.node.step(message.raft());
                    self.settle();
                }
            }
        }
    }

    /// An order is to be done. It is answered under this ticket.
    pub fn order(&mut self, ticket: u64, order: Order) {
        self.orders.give(ticket, order, self.now + self.options.patience);
    }

    /// The register is to be read. It is answered under this ticket.
    pub fn read(&mut self, ticket: u64) {
        self.reads.give(ticket, self.now + self.options.patience);
    }

    /// What was sent to this voter did not get there.
    pub fn unreachable(&mut self, peer: u64) {
        self.node.report_unreachable(peer);
        self.settle();
    }

    /// Does what there is to do, and says what has come of it, in order.
    ///
    /// # Errors
    /// If it cannot go on: see [`Stopped`]. What was said before holds.
    pub fn turn(&mut self, out: &mut dyn FnMut(Out)) -> Result<(), Stopped> {
        if let Some(stopped) = &self.stopped {
            return Err(stopped.clone());
        }
        let done = self.work(out);
        if let Err(stopped) = &done {
            self.stopped = Some(stopped.clone());
        }
        done
    }

    fn work(&mut self, out: &mut dyn FnMut(Out)) -> Result<(), Stopped> {
        loop {
            // In between too: who has come to lead can propose and answer at once.
            self.place(out);
            self.ask();
            if !self.node.has_ready() {
                break;
            }
            self.ready(out)?;
            self.settle();
        }
        for ticket in self.reads.served(self.applied().index) {
            out(Out::Read { ticket, register: Arc::clone(&self.current.register) });
        }
        let (orders, reads) = (self.orders.expired(self.now), self.reads.expired(self.now));
        for ticket in orders.into_iter().chain(reads) {
            out(Out::Unknown { ticket });
        }
        self.ticked = false;
        self.save()
    }

    /// Orders go to who leads.
    fn place(&mut self, out: &mut dyn FnMut(Out)) {
        if !self.leads() {
            self.orders.abandon();
            let Some(to) = self.leader() else { return };
            let orders = self.orders.unsent();
            if !orders.is_empty() {
                out(Out::Send(vec![(to, Word::Orders(orders))]));
            }
            return;
        }
        let orders = self.orders.unsent();
        self.orders.collect(orders);
        for batch in self.orders.batches(self.ticked) {
            if self.node.propose(Vec::new(), encode(&batch)).is_err() {
                self.orders.give_back(batch);
            }
        }
    }

    /// Reads ask who leads. A new leader knows only when it has committed something of its own.
    fn ask(&mut self) {
        let unable = self.leads() && !self.node.raft.commit_to_current_term();
        if self.leader().is_none() || unable {
            return;
        }
        if let Some(question) = self.reads.question(self.now, self.options.election as u64) {
            self.node.read_index(question);
        }
    }

    fn send(&mut self, messages: Vec<eraftpb::Message>, out: &mut dyn FnMut(Out)) {
        let mut words = Vec::new();
        for mut message in messages {
            if let Some(message) = Message::of(&mut message) {
                if message.kind == Kind::Snapshot {
                    self.snapshots.insert(message.to, self.now);
                }
                words.push((message.to, Word::Raft(message)));
            }
        }
        if !words.is_empty() {
            out(Out::Send(words));
        }
    }

    /// Raft draws election timeouts from the system's randomness whenever its role changes; here they
    /// follow from the seed, so that a run can be repeated.
    fn settle(&mut self) {
        let raft = &mut self.node.raft;
        let mut x =
            self.options.seed ^ self.id.rotate_left(32) ^ raft.term.rotate_left(16) ^ self.draws;
        for factor in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
            x = (x ^ (x >> 30)).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(factor);
        }
        let election = self.options.election;
        let more = (x ^ (x >> 31)) % election as u64;
        raft.set_randomized_election_timeout(election + usize::try_from(more).unwrap_or(0));
    }
}

/// Is it a message that raft can be given? Some of its code takes the shape of a message for granted.
fn is_sound(message: &Message) -> bool {
    match message.kind {
        Kind::ReadIndex | Kind::ReadIndexResp => message.entries.len() == 1,
        Kind::Snapshot => message.snapshot.as_ref().is_some_and(Snapshot::is_sound),
        _ => true,
    }
}
