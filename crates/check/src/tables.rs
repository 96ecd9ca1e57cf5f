//! What becomes of the parts of states, in numbers.
//!
//! A step changes few parts of a state: one node, some messages, now and then what users and
//! monitor know. There are few different parts compared with states, so each is kept once and named
//! by a number, and what a node makes of a cause is found out once and then looked up here. The
//! parts themselves are kept elsewhere ([`Parts`](crate::parts::Parts)): whoever searches needs
//! only their numbers, and so the search is compiled once and not for every protocol.

use hashbrown::HashMap;
use quorate_core::{Liveness, NodeId, NodeSet, Violation};
use rustc_hash::FxBuildHasher;

use crate::intern::Interner;

/// Numbers of parts stay below this, so that a [`Code`] has room for its kind.
pub(crate) const PAYLOAD_MAX: u32 = 1 << 28;

/// A cause in a word: four bits for its kind, the rest for a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) u32);

impl Code {
    pub(crate) const START: Self = Self(0);
    pub(crate) const RECOVER: Self = Self::new(1, 0);
    pub(crate) const CRASH: Self = Self::new(2, 0);

    const fn new(kind: u32, payload: u32) -> Self {
        assert!(payload < PAYLOAD_MAX);
        Self(kind * PAYLOAD_MAX + payload)
    }

    pub(crate) const fn command(command: u32) -> Self {
        Self::new(3, command)
    }

    pub(crate) const fn message(message: u32) -> Self {
        Self::new(4, message)
    }

    pub(crate) const fn timer(place: u32) -> Self {
        Self::new(5, place)
    }

    pub(crate) const fn word(place: u32) -> Self {
        Self::new(6, place)
    }

    /// The message that arrives, if this is what happens.
    pub(crate) fn as_message(self) -> Option<u32> {
        (self.kind() == 4).then_some(self.payload())
    }

    pub(crate) const fn kind(self) -> u32 {
        self.0 / PAYLOAD_MAX
    }

    pub(crate) const fn payload(self) -> u32 {
        self.0 % PAYLOAD_MAX
    }

    pub(crate) const fn noticed(peer: NodeId, now: Liveness) -> Self {
        let kind = if matches!(now, Liveness::Up) { 7 } else { 8 };
        Self::new(kind, peer.index() as u32)
    }
}

/// Whether a node is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Presence {
    Asleep,
    Up,
    Down,
}

/// What an expansion has to know of a node's state.
#[derive(Debug)]
pub(crate) struct LocalFacts {
    pub(crate) presence: Presence,
    /// How many timers are set.
    pub(crate) timers: u32,
    /// The words that the detector can tell next: the first one on each peer.
    pub(crate) words: Vec<Word>,
}

/// A word that the detector can tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    pub(crate) place: u32,
    pub(crate) peer: usize,
    pub(crate) now: Liveness,
}

impl Word {
    /// The words that can be told next, of all that are to be told: by peer, and for each in order.
    pub(crate) fn next(words: &[(NodeId, Liveness)]) -> Vec<Self> {
        let first = |place: usize| place == 0 || words[place - 1].0 != words[place].0;
        let word = |place: usize| {
            let (peer, now) = words[place];
            Self { place: place as u32, peer: peer.index(), now }
        };
        (0..words.len()).filter(|&place| first(place)).map(word).collect()
    }
}

/// Where a message comes from and goes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) link: u32,
}

/// What an expansion has to know of users and monitor.
#[derive(Debug)]
pub(crate) struct WatchFacts {
    /// The next command of each node's user.
    pub(crate) commands: Vec<Option<u32>>,
    /// The nodes to which something is owed; those beyond the 64th are left out.
    pub(crate) owed: u64,
    /// The first node to which something is owed, also beyond the 64th.
    pub(crate) owed_first: Option<NodeId>,
    /// What the monitor says if this is the end.
    pub(crate) settled: Result<(), Violation>,
}

impl WatchFacts {
    /// What there is to know of users with these commands, and of a monitor that says this.
    pub(crate) fn new(
        commands: Vec<Option<u32>>,
        owed: &NodeSet,
        settled: Result<(), Violation>,
    ) -> Self {
        let bits = owed.iter().filter(|node| node.index() < 64);
        let bits = bits.fold(0, |bits, node| bits | 1 << node.index());
        Self { commands, owed: bits, owed_first: owed.iter().next(), settled }
    }
}

/// What a node makes of a cause, in numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deed {
    pub(crate) local: u32,
    /// What is told of it, if anything.
    pub(crate) tale: Option<u32>,
    /// It had no effects at all.
    pub(crate) silent: bool,
    sends: (u32, u32),
    choices: (u32, u32),
}

/// A deed that is to be kept.
#[derive(Debug)]
pub(crate) struct NewDeed {
    pub(crate) local: u32,
    pub(crate) tale: Option<u32>,
    pub(crate) silent: bool,
    pub(crate) sends: Vec<u32>,
    pub(crate) choices: Vec<u32>,
}

/// What users and monitor make of a tale.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard {
    /// They are in this state now.
    Fine(u32),
    /// The monitor finds this violation.
    Broken(u32),
}

/// All that is known about the parts that were met.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    locals: Vec<LocalFacts>,
    routes: Vec<Route>,
    watches: Vec<WatchFacts>,
    pub(crate) violations: Interner<Violation>,
    deeds: Vec<Deed>,
    sends: Vec<u32>,
    choices: Vec<u32>,
    /// From a node's state and a cause to a range of deeds, one for each way to choose.
    deeds_known: HashMap<u64, (u32, u32), FxBuildHasher>,
    heard_known: HashMap<u64, Heard, FxBuildHasher>,
}

impl Tables {
    /// What is to be known of a node's state.
    pub(crate) fn local(&self, local: u32) -> &LocalFacts {
        &self.locals[local as usize]
    }

    /// What is to be known of a message.
    pub(crate) fn route(&self, message: u32) -> Route {
        self.routes[message as usize]
    }

    /// What is to be known of users and monitor.
    pub(crate) fn watch(&self, watch: u32) -> &WatchFacts {
        &self.watches[watch as usize]
    }

    /// What a node in this state makes of a cause, if that is known: nothing if it refuses, else
    /// one deed for each way to choose.
    pub(crate) fn deeds(&self, local: u32, code: Code) -> Option<&[Deed]> {
        let &(start, end) = self.deeds_known.get(&pair(local, code.0))?;
        Some(&self.deeds[start as usize..end as usize])
    }

    /// What users and monitor in this state make of a tale, if that is known.
    pub(crate) fn heard(&self, watch: u32, tale: u32) -> Option<Heard> {
        self.heard_known.get(&pair(watch, tale)).copied()
    }

    /// Everything that is known to happen to a node in a state, in order.
    pub(crate) fn deeds_all(&self) -> Vec<(u32, Code)> {
        let mut keys: Vec<_> = self.deeds_known.keys().copied().collect();
        keys.sort_unstable();
        keys.into_iter().map(|key| ((key >> 32) as u32, Code(key as u32))).collect()
    }

    /// The messages that are sent with a deed.
    pub(crate) fn sends(&self, deed: &Deed) -> &[u32] {
        &self.sends[deed.sends.0 as usize..deed.sends.1 as usize]
    }

    /// The choices that lead to a deed.
    pub(crate) fn choices(&self, deed: &Deed) -> &[u32] {
        &self.choices[deed.choices.0 as usize..deed.choices.1 as usize]
    }

    /// The next new state of a node.
    pub(crate) fn add_local(&mut self, facts: LocalFacts) {
        self.locals.push(facts);
    }

    /// The next new message.
    pub(crate) fn add_route(&mut self, route: Route) {
        self.routes.push(route);
    }

    /// The next new state of users and monitor.
    pub(crate) fn add_watch(&mut self, facts: WatchFacts) {
        self.watches.push(facts);
    }

    /// Keeps what a node makes of a cause, which was not known: one deed for each way to choose.
    pub(crate) fn add_deeds(&mut self, local: u32, code: Code, deeds: Vec<NewDeed>) {
        let start = self.deeds.len() as u32;
        for NewDeed { local, tale, silent, sends, choices } in deeds {
            let sends = append(&mut self.sends, &sends);
            let choices = append(&mut self.choices, &choices);
            self.deeds.push(Deed { local, tale, silent, sends, choices });
        }
        self.deeds_known.insert(pair(local, code.0), (start, self.deeds.len() as u32));
    }

    /// Keeps what users and monitor make of a tale, which was not known.
    pub(crate) fn add_heard(&mut self, watch: u32, tale: u32, heard: Heard) {
        self.heard_known.insert(pair(watch, tale), heard);
    }
}

/// Appends numbers to others; where they stand then.
fn append(all: &mut Vec<u32>, more: &[u32]) -> (u32, u32) {
    let start = all.len() as u32;
    all.extend_from_slice(more);
    (start, all.len() as u32)
}

/// The key of a part and what happens to it.
pub(crate) const fn pair(part: u32, what: u32) -> u64 {
    (part as u64) << 32 | what as u64
}
