//! What becomes of the pieces of states, in numbers.
//!
//! A step changes few pieces of a state: one node, some messages, now and then its audience. There
//! are few different pieces compared with states, so each is kept once and named by a number, and
//! what a node makes of a cause is found out once and then looked up here. The pieces themselves are
//! kept elsewhere ([`Pieces`](crate::pieces::Pieces)): whoever searches needs only their numbers, and
//! so the search is compiled once and not for every protocol.

use hashbrown::HashMap;
use quorate_core::{Liveness, NodeId, NodeSet, Violation};
use rustc_hash::FxBuildHasher;

use crate::intern::Interner;

/// Numbers of pieces stay below this, so that a [`Code`] has room for its kind.
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
pub(crate) struct LocalSummary {
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

/// What an expansion has to know of an audience.
#[derive(Debug)]
pub(crate) struct AudienceSummary {
    /// The next command of each node's user.
    pub(crate) commands: Vec<Option<u32>>,
    /// The nodes to which something is owed; those beyond the 64th are left out.
    pub(crate) owed: u64,
    /// The first node to which something is owed, also beyond the 64th.
    pub(crate) owed_first: Option<NodeId>,
    /// What the monitor says if this is the end.
    pub(crate) settled: Result<(), Violation>,
}

impl AudienceSummary {
    /// The summary of an audience: its users' commands, and what its monitor says.
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
pub(crate) struct Response {
    pub(crate) local: u32,
    /// The news that its audience is told, if any.
    pub(crate) news: Option<u32>,
    /// It had no effects at all.
    pub(crate) silent: bool,
    /// The cause was a message that the node claimed to be outdated.
    outdated: bool,
    sends: (u32, u32),
    choices: (u32, u32),
}

/// A response that is to be kept.
#[derive(Debug)]
pub(crate) struct NewResponse {
    pub(crate) local: u32,
    pub(crate) news: Option<u32>,
    pub(crate) silent: bool,
    pub(crate) outdated: bool,
    pub(crate) sends: Vec<u32>,
    pub(crate) choices: Vec<u32>,
}

/// What an audience makes of news.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard {
    /// This is the audience now.
    Fine(u32),
    /// The monitor finds this violation.
    Broken(u32),
}

/// All that is known about the pieces that were met.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    locals: Vec<LocalSummary>,
    routes: Vec<Route>,
    audiences: Vec<AudienceSummary>,
    pub(crate) violations: Interner<Violation>,
    responses: Vec<Response>,
    sends: Vec<u32>,
    choices: Vec<u32>,
    /// From a node's state and a cause to a range of responses, one for each way to choose.
    responses_known: HashMap<u64, (u32, u32), FxBuildHasher>,
    heard_known: HashMap<u64, Heard, FxBuildHasher>,
}

impl Tables {
    /// What is to be known of a node's state.
    pub(crate) fn local(&self, local: u32) -> &LocalSummary {
        &self.locals[local as usize]
    }

    /// What is to be known of a message.
    pub(crate) fn route(&self, message: u32) -> Route {
        self.routes[message as usize]
    }

    /// What is to be known of an audience.
    pub(crate) fn audience(&self, audience: u32) -> &AudienceSummary {
        &self.audiences[audience as usize]
    }

    /// What a node in this state makes of a cause, if that is known: nothing if it refuses, else
    /// one response for each way to choose.
    pub(crate) fn responses(&self, local: u32, code: Code) -> Option<&[Response]> {
        let &(start, end) = self.responses_known.get(&pair(local, code.0))?;
        Some(&self.responses[start as usize..end as usize])
    }

    /// What an audience makes of news, if that is known.
    pub(crate) fn heard(&self, audience: u32, news: u32) -> Option<Heard> {
        self.heard_known.get(&pair(audience, news)).copied()
    }

    /// The causes to which responses are known, each with the node's state, in order.
    pub(crate) fn causes_known(&self) -> Vec<(u32, Code)> {
        let mut keys: Vec<_> = self.responses_known.keys().copied().collect();
        keys.sort_unstable();
        keys.into_iter().map(|key| ((key >> 32) as u32, Code(key as u32))).collect()
    }

    /// Whether a node in this state claims that the message is outdated, if that is known.
    pub(crate) fn outdated(&self, local: u32, message: u32) -> Option<bool> {
        let responses = self.responses(local, Code::message(message))?;
        Some(responses.first().is_some_and(|response| response.outdated))
    }

    /// The messages that are sent with a response.
    pub(crate) fn sends(&self, response: &Response) -> &[u32] {
        &self.sends[response.sends.0 as usize..response.sends.1 as usize]
    }

    /// The choices that lead to a response.
    pub(crate) fn choices(&self, response: &Response) -> &[u32] {
        &self.choices[response.choices.0 as usize..response.choices.1 as usize]
    }

    /// The next new state of a node.
    pub(crate) fn add_local(&mut self, summary: LocalSummary) {
        self.locals.push(summary);
    }

    /// The next new message.
    pub(crate) fn add_route(&mut self, route: Route) {
        self.routes.push(route);
    }

    /// The next new audience.
    pub(crate) fn add_audience(&mut self, summary: AudienceSummary) {
        self.audiences.push(summary);
    }

    /// Keeps what a node makes of a cause, which was not known: one response for each way to choose.
    pub(crate) fn add_responses(&mut self, local: u32, code: Code, responses: Vec<NewResponse>) {
        let start = self.responses.len() as u32;
        for NewResponse { local, news, silent, outdated, sends, choices } in responses {
            let sends = append(&mut self.sends, &sends);
            let choices = append(&mut self.choices, &choices);
            self.responses.push(Response { local, news, silent, outdated, sends, choices });
        }
        self.responses_known.insert(pair(local, code.0), (start, self.responses.len() as u32));
    }

    /// Keeps what an audience makes of news, which was not known.
    pub(crate) fn add_heard(&mut self, audience: u32, news: u32, heard: Heard) {
        self.heard_known.insert(pair(audience, news), heard);
    }
}

/// Appends numbers to others; where they stand then.
fn append(all: &mut Vec<u32>, more: &[u32]) -> (u32, u32) {
    let start = all.len() as u32;
    all.extend_from_slice(more);
    (start, all.len() as u32)
}

/// The key of a piece and what happens to it.
pub(crate) const fn pair(piece: u32, what: u32) -> u64 {
    (piece as u64) << 32 | what as u64
}
