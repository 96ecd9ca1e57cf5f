//! Rights on a lock, given out by its home: to one exclusively, to several to share, or so many permits.
//!
//! # Idea
//! `mutex/home` of the catalogue, with more to ask for. What the home gives is a *right* of a process,
//! which the process keeps until somebody else needs it: under it, its users come and go without a
//! message. An exclusive right is a token that goes straight from a process to the next one while only
//! exclusive ones are wanted. Rights to share are recalled from all when somebody wants an exclusive
//! one. Permits are not kept: who does not use one gives it back. Whoever asks is served in the order
//! in which requests arrive at the home, so that readers who come after a writer wait for it, and
//! writers do not starve; or, where the queue is ordered so, by priority first.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST(number, mode) | a user wants what the rights here do not allow, to the home | queued, or granted |
//! | TOKEN(turn) | the exclusive right goes to the next in the line | it is there |
//! | NEXT(node or home) | the line gets longer, to its end | that one knows who comes after it |
//! | LEFT(turn) | the token was passed on, to the home | the line gets shorter |
//! | BACK(turn) | the token goes to the home, which was named as the next | the home gives what is wanted |
//! | GRANT(number, place) | a right to share or a permit is given | it is there |
//! | RECALL | somebody wants it exclusively, to all who share it | nobody enters any more |
//! | RETURN | all who shared it here are out | if that was the last one, the home goes on |
//! | FREE(place) | a permit is not used any more | the home gives it to the next one |
//! | CANCEL(number) | nobody here wants it any more | it is taken out of the queue, if it is still there |
//! | REFUSE(number) | it was taken out; or cannot be granted now, and is not to wait | it is over |
//! | PROBE | somebody would have it at once or not at all, to whoever has rights | who does not use its right gives it back |
//! | BUSY | it is used, or wanted | the home refuses |
//! | RANK(number, priority) | somebody better or worse is the first who waits here | it gets another place in the queue |
//! | LEADS(term, priority, value) | the right is used from now on, to the home | all who observe are told |
//! | PREFER(node) | the holder is about to give it up, for this one | that one is next, if it asks |
//! | WANTED(node or none) | somebody asks for it to be given up | as PREFER, and the holder is asked |
//! | YIELD(priority) | somebody better waits, to the leader | its user is told |
//! | WATCH(on or off) | somebody here observes who holds it, to the home | it is told now, and of every change |
//! | LED(node, term, value), UNLED(term) | it has changed who leads, to all who observe | their users are told |
//!
//! # Order by priority
//! Where the queue is ordered by priority, the exclusive right is not kept: who does not use it gives it
//! back to the home, with the request of the next one here already in the queue. So the home, and nobody
//! else, says who is next, and the best of all gets it.
//!
//! # Safety
//! There is one token; it is at the home, under way or with one process, and there are rights to share
//! only while the home has it. It is passed on only when nobody is inside. Of permits there are so many
//! places, each at the home, under way or with one process.
//!
//! # Fences
//! The token carries the counter of grants. Everybody who shares between two exclusive grants has the
//! same fence: the first one of them takes the next number, and the token says that it was for sharing.
//! A permit takes the next number of the home.
//!
//! # Assumptions
//! Links keep the order and lose nothing, which is so within a view.

mod board;
mod desk;
mod words;

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use quorate_core::NodeId;

use desk::Desk;
pub use words::Msg;

use super::words::{Fence, Mode, Patience, Value};
use crate::register::Epoch;

/// The home is the first member of an instance.
const HOME: NodeId = NodeId::at(0);

/// What locks of a kind are like.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Terms {
    /// How many places there are, if locks have places.
    pub(super) permits: Option<u32>,
    /// Is the queue ordered by priority, and by arrival only among equals?
    pub(super) ordered: bool,
}

/// A holder that a view begins with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Holder {
    pub(super) node: NodeId,
    pub(super) mode: Mode,
    pub(super) place: u32,
    pub(super) fence: Fence,
}

/// The rights of a process on a lock; at the home with what it knows of all.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Rights {
    me: NodeId,
    epoch: Epoch,
    right: Right,
    /// How many users are inside.
    users: u32,
    /// Requests that are not answered, by their numbers. Invariant: at most one, unless for permits.
    asked: BTreeSet<u64>,
    /// Whether a request that is not answered was withdrawn.
    withdrawn: BTreeSet<u64>,
    numbers: u64,
    /// Is the queue ordered by priority? Then the exclusive right is not kept.
    ordered: bool,
    /// The priority that was asked with last.
    priority: i32,
    /// Does a user here observe who holds it?
    watching: bool,
    /// What the home has told, and its users here have not been. Invariant: empty between steps.
    told: VecDeque<Told>,
    /// Who gets the token from here, once that is known; inside, the home if none.
    next: Option<Option<NodeId>>,
    /// The number of a request that was refused, and is not to be put again.
    refused: Option<u64>,
    /// The largest counter that is known here.
    counter: u64,
    /// Invariant: only the home has one.
    desk: Option<Box<Desk>>,
    /// What the home says to itself. Invariant: empty between steps.
    own: VecDeque<Msg>,
}

/// What the home tells users of a process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Told {
    /// Whoever holds it here is asked to give it up, for somebody with this priority if that is why.
    Yield(Option<i32>),
    /// This one holds it.
    Led(NodeId, Fence, Value),
    /// Nobody does, and all grants up to this one are over.
    Unled(Fence),
}

/// What a process may do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Right {
    /// Nothing.
    None,
    /// Let several in to share.
    Shared {
        fence: Fence,
        /// It is to be given back: nobody enters any more.
        recalled: bool,
        /// Nobody has entered since it came: one may, also if it is recalled meanwhile. The home hears the
        /// grant and the recall in one step; where somebody always waits to be alone, nobody at the home
        /// would ever share.
        fresh: bool,
    },
    /// Let one in, or several to share.
    Exclusive {
        turn: u64,
        /// The fence of those who share, if the last grant was to such.
        shared: Option<Fence>,
    },
    /// Let one in for each place that is here and not used.
    Places(Vec<(u32, Fence)>),
}

/// Takes what a process says to the others.
pub(super) type Post<'a> = &'a mut dyn FnMut(NodeId, Msg);

impl Rights {
    /// The rights of `me` in a view that begins with these holders. No grant has a larger counter than
    /// `floor`.
    pub(super) fn boot(
        terms: Terms,
        (me, epoch, floor): (NodeId, Epoch, u64),
        holders: &[Holder],
    ) -> Self {
        let mine: Vec<&Holder> = holders.iter().filter(|holder| holder.node == me).collect();
        let right = match mine.first() {
            _ if terms.permits.is_some() => Right::Places(Vec::new()),
            None => Right::None,
            Some(Holder { mode: Mode::Exclusive, .. }) => {
                Right::Exclusive { turn: 0, shared: None }
            }
            Some(Holder { fence, .. }) => {
                Right::Shared { fence: *fence, recalled: false, fresh: false }
            }
        };
        Self {
            me,
            epoch,
            right,
            users: mine.len() as u32,
            asked: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
            numbers: 0,
            ordered: terms.ordered,
            priority: 0,
            watching: false,
            told: VecDeque::new(),
            next: None,
            refused: None,
            counter: floor,
            desk: (me == HOME).then(|| Box::new(Desk::boot(terms, (epoch, floor), holders))),
            own: VecDeque::new(),
        }
    }

    /// The largest counter that is known here.
    pub(super) fn counter(&self) -> u64 {
        self.desk.as_ref().map_or(self.counter, |desk| self.counter.max(desk.counter()))
    }

    /// Does it neither use nor ask for anything?
    pub(super) fn is_idle(&self) -> bool {
        let watched = self.watching || self.desk.as_ref().is_some_and(|desk| desk.is_watched());
        self.users == 0 && self.asked.is_empty() && !watched
    }

    /// Is anybody inside?
    pub(super) const fn is_used(&self) -> bool {
        self.users > 0
    }

    /// Does somebody elsewhere want it, as far as is known here?
    pub(super) const fn is_contended(&self) -> bool {
        self.next.is_some()
    }

    /// May one more be let in?
    pub(super) fn may(&self, mode: Mode) -> bool {
        match (&self.right, mode) {
            (Right::Exclusive { .. }, Mode::Exclusive) => self.users == 0,
            (Right::Exclusive { shared, .. }, Mode::Shared) => self.users == 0 || shared.is_some(),
            (Right::Shared { recalled, fresh, .. }, Mode::Shared) => *fresh || !recalled,
            (Right::Places(free), Mode::Permit) => !free.is_empty(),
            _ => false,
        }
    }

    /// Lets one in: its place and its fence. It may.
    pub(super) fn enter(&mut self, mode: Mode) -> (u32, Fence) {
        self.users += 1;
        let next = Fence { epoch: self.epoch, counter: self.counter.saturating_add(1) };
        let fence = match (&mut self.right, mode) {
            (Right::Exclusive { shared, .. }, Mode::Shared) => *shared.get_or_insert(next),
            (Right::Exclusive { shared, .. }, _) => {
                *shared = None;
                next
            }
            (Right::Shared { fence, fresh, .. }, _) => {
                *fresh = false;
                *fence
            }
            (Right::Places(free), _) if !free.is_empty() => return free.remove(0),
            (Right::Places(_) | Right::None, _) => next,
        };
        if fence.epoch == self.epoch {
            self.counter = self.counter.max(fence.counter);
        }
        (0, fence)
    }

    /// One is out.
    pub(super) fn leave(&mut self, place: u32, post: Post<'_>) {
        self.users = self.users.saturating_sub(1);
        if let Right::Places(_) = self.right {
            self.say(HOME, Msg::Free(place), post);
        } else if self.ordered {
            self.settle(post);
        }
        self.talk_to_self(post);
    }

    /// Is the exclusive right here, with nobody inside and nobody to whom it is to be given? It never rests
    /// where the home orders by priority: who leads there is said each time.
    pub(super) const fn rests(&self) -> bool {
        let free =
            !self.ordered && self.users == 0 && self.next.is_none() && self.refused.is_none();
        free && matches!(self.right, Right::Exclusive { .. })
    }

    /// The one who is inside alone is out, and the right rests here. False if it is to be given away, and
    /// then nothing is changed.
    pub(super) const fn leave_to_rest(&mut self) -> bool {
        let rests = self.users == 1
            && !self.ordered
            && self.next.is_none()
            && self.refused.is_none()
            && matches!(self.right, Right::Exclusive { .. });
        if rests {
            self.users = 0;
        }
        rests
    }

    /// Is the queue ordered by priority?
    pub(super) const fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Who was let in last says what is to be known of it.
    pub(super) fn lead(&mut self, (term, priority, value): (Fence, i32, Value), post: Post<'_>) {
        self.say(HOME, Msg::Leads { term, priority, value }, post);
        self.talk_to_self(post);
    }

    /// Whoever is inside will leave: the next one is to be this, if it asks.
    pub(super) fn prefer(&mut self, node: NodeId, post: Post<'_>) {
        self.say(HOME, Msg::Prefer(node), post);
        self.talk_to_self(post);
    }

    /// Has whoever is inside, anywhere, be asked to leave; for this one, if one is named.
    pub(super) fn ask_for(&mut self, node: Option<NodeId>, post: Post<'_>) {
        self.say(HOME, Msg::Wanted(node), post);
        self.talk_to_self(post);
    }

    /// A user here wants to know who is inside, anywhere, or none does any more.
    pub(super) fn watch(&mut self, on: bool, post: Post<'_>) {
        self.watching = on;
        self.say(HOME, Msg::Watch(on), post);
        self.talk_to_self(post);
    }

    /// What the home has told, the first one first.
    pub(super) fn take_told(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// Asks for what so many who wait need, if it has not.
    pub(super) fn want(
        &mut self,
        mode: Mode,
        (waiting, priority, patience): (usize, i32, Patience),
        post: Post<'_>,
    ) {
        let open = self.asked.len() - self.withdrawn.len();
        let count = match &self.right {
            // What is here is enough when those who are inside have left.
            Right::Exclusive { .. } if !self.ordered => 0,
            Right::Places(free) => waiting.saturating_sub(open + free.len()),
            _ if self.asked.is_empty() => 1,
            _ => 0,
        };
        if count == 0 && open > 0 && self.ordered && priority != self.priority {
            let number = self.numbers;
            self.say(HOME, Msg::Rank { number, priority }, post);
        }
        self.priority = priority;
        for _ in 0..count {
            self.numbers += 1;
            let number = self.numbers;
            self.asked.insert(number);
            self.say(HOME, Msg::Request { number, mode, priority, patience }, post);
        }
        self.talk_to_self(post);
        // The home may have to recall from itself what it shares, before it can have more.
        if matches!(self.right, Right::Shared { recalled: true, .. }) && !self.may(mode) {
            self.settle(post);
        }
    }

    /// Only so many still wait: withdraws what was asked for beyond that.
    pub(super) fn unwant(&mut self, waiting: usize, post: Post<'_>) {
        while self.asked.len() - self.withdrawn.len() > waiting {
            let open = self.asked.iter().rev().find(|number| !self.withdrawn.contains(number));
            let Some(&number) = open else { break };
            self.withdrawn.insert(number);
            self.say(HOME, Msg::Cancel(number), post);
        }
        self.talk_to_self(post);
    }

    /// Was a request refused that was not to wait? It says so once.
    pub(super) const fn take_refusal(&mut self) -> bool {
        self.refused.take().is_some()
    }

    /// Is there such a refusal?
    pub(super) const fn has_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Nobody else is let in for now: gives away what others want and nobody here uses.
    pub(super) fn settle(&mut self, post: Post<'_>) {
        match &mut self.right {
            Right::Exclusive { turn, shared } if self.users == 0 => {
                let Some(next) = self.next.take().or(self.ordered.then_some(None)) else { return };
                let (turn, counter, shared) = (*turn, self.counter, *shared);
                self.right = Right::None;
                let after = turn.saturating_add(1);
                match next {
                    Some(node) => {
                        self.say(node, Msg::Token { turn: after, counter, shared }, post);
                        if node != HOME {
                            self.say(HOME, Msg::Left(turn), post);
                        }
                    }
                    None => self.say(HOME, Msg::Back { turn: after, counter, shared }, post),
                }
            }
            Right::Shared { recalled: true, .. } if self.users == 0 || flaw!(ReturnWhileInside) => {
                self.right = Right::None;
                self.say(HOME, Msg::Return, post);
            }
            Right::Places(free) => {
                for (place, _) in core::mem::take(free) {
                    self.say(HOME, Msg::Free(place), post);
                }
            }
            _ => {}
        }
        self.talk_to_self(post);
    }

    /// A message of another member.
    pub(super) fn receive(&mut self, from: NodeId, msg: Msg, post: Post<'_>) {
        self.take(from, msg, post);
        self.talk_to_self(post);
    }

    /// Says something to the home or to another member.
    fn say(&mut self, to: NodeId, msg: Msg, post: Post<'_>) {
        if to == self.me { self.own.push_back(msg) } else { post(to, msg) }
    }

    fn talk_to_self(&mut self, post: Post<'_>) {
        while let Some(msg) = self.own.pop_front() {
            self.take(self.me, msg, post);
        }
    }

    fn take(&mut self, from: NodeId, msg: Msg, post: Post<'_>) {
        match msg {
            Msg::Token { turn, counter, shared } => {
                if let Some(desk) = &mut self.desk {
                    desk.shorten(turn);
                }
                self.counter = self.counter.max(counter);
                self.answered_all();
                self.right = Right::Exclusive { turn, shared };
            }
            Msg::Next(next) if from == HOME => self.next = Some(next),
            Msg::Grant { number, place, fence } if from == HOME => {
                if fence.epoch == self.epoch {
                    self.counter = self.counter.max(fence.counter);
                }
                self.answered(number);
                match &mut self.right {
                    Right::Places(free) => free.push((place, fence)),
                    right => *right = Right::Shared { fence, recalled: false, fresh: true },
                }
            }
            Msg::Recall if from == HOME => {
                if let Right::Shared { recalled, .. } = &mut self.right {
                    *recalled = true;
                }
            }
            Msg::Refuse(number) if from == HOME => {
                if self.asked.contains(&number) && !self.withdrawn.contains(&number) {
                    self.refused = Some(number);
                }
                self.answered(number);
            }
            Msg::Probe if from == HOME => self.be_probed(post),
            Msg::Yield(better) if from == HOME => {
                if self.users > 0 {
                    self.told.push_back(Told::Yield(better));
                }
            }
            Msg::Led { leader, term, value } if from == HOME => {
                self.told.push_back(Told::Led(leader, term, value));
            }
            Msg::Unled(after) if from == HOME => self.told.push_back(Told::Unled(after)),
            Msg::Next(_) | Msg::Grant { .. } | Msg::Recall | Msg::Refuse(_) | Msg::Probe => {}
            Msg::Yield(_) | Msg::Led { .. } | Msg::Unled(_) => {}
            to_desk => {
                let Some(desk) = &mut self.desk else { return };
                let mut sent = Vec::new();
                desk.take(from, to_desk, &mut sent);
                for (to, msg) in sent {
                    self.say(to, msg, post);
                }
            }
        }
    }

    fn answered(&mut self, number: u64) {
        self.asked.remove(&number);
        self.withdrawn.remove(&number);
    }

    fn answered_all(&mut self) {
        self.asked.clear();
        self.withdrawn.clear();
    }

    /// Would it give its right back? Not if it uses or wants it.
    fn be_probed(&mut self, post: Post<'_>) {
        let gives = self.users == 0 && self.asked.is_empty() && self.next.is_none();
        match &mut self.right {
            Right::Exclusive { .. } if gives => {
                self.next = Some(None);
                self.settle_now(post);
            }
            Right::Shared { recalled, .. } if gives => {
                *recalled = true;
                self.settle_now(post);
            }
            _ => self.say(HOME, Msg::Busy, post),
        }
    }

    fn settle_now(&mut self, post: Post<'_>) {
        // What the home says to itself is heard when this step is done.
        let own = core::mem::take(&mut self.own);
        self.settle(post);
        self.own.extend(own);
    }

    pub(super) fn assert_invariants(&self) {
        assert!(self.own.is_empty(), "the home has heard itself");
        assert!(self.told.is_empty(), "users were told");
        assert!(self.withdrawn.is_subset(&self.asked), "what is withdrawn was asked for");
        if !matches!(self.right, Right::Places(_)) {
            assert!(self.asked.len() <= 1, "one request at a time");
        }
        if let Right::None = self.right {
            assert!(self.users == 0 || flaw!(ReturnWhileInside), "who is inside has a right");
        }
    }
}

#[cfg(test)]
mod tests;
