//! Ask only those who may know where the token is: whoever is believed to want it too.
//!
//! # Idea
//! Suzuki and Kasami's algorithm asks everybody for the token. Most of them cannot help: the token
//! is with somebody who wanted it. So every node keeps a guess of what all others are doing
//! (requesting, executing, holding an unused token, or nothing), and asks only those of whom it
//! believes that they are requesting, for one of them has the token, had it, or will get it. The
//! token carries such a table too, with numbers that tell which entry is newer; whoever leaves
//! merges the two tables. The difficulty is that of any two nodes at least one must ask the other,
//! or a requester and the token can miss each other. At the start this is so because node i
//! believes that 1 to i-1 are requesting: a staircase. Two rules keep it so: whoever is asked
//! believes the asker to be requesting, and a requester that learns of another one asks it.
//!
//! # Paper
//! M. Singhal: *A Heuristically-Aided Algorithm for Mutual Exclusion in Distributed Systems*, IEEE
//! Transactions on Computers 38(5), 1989, pp. 651-662, doi:10.1109/12.24268.
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. Processes do not fail. No timing. Complete
//! graph; every node knows all others; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST(n) | the user wants to enter, to whoever is believed to be requesting | noted |
//! | TOKEN(TSV, TSN) | its holder is outside and somebody is known to request, to it | it enters |
//! | HINT | an old REQUEST finds the token here | the asker will ask here next time |
//!
//! ```text
//! the token is at 1; 3 believes that 1 and 2 are requesting, 2 that 1 is
//! 3  --REQUEST(1)-->  1, 2       1 does not need the token; 2 believes now that 3 requests
//! 1  ----TOKEN----->  3          3 enters; 1 believes now that 3 requests
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `phase` | `SV_i[i]` |
//! | `requesting`, `numbers` | the `j` with `SV_i[j] = R`, all others have `N`; `SN_i[1..N]` |
//! | `Token` | `TSV[1..N]` and `TSN[1..N]` |
//!
//! # Safety
//! `safety`: there is one token, and it is sent only by a node that is outside.
//!
//! # Liveness
//! `liveness`: of any two nodes one believes the other to be requesting, or a message that will
//! make it believe so is under way. So a request and the token meet; on leaving, the token goes to
//! the next requester in cyclic order, so that nobody is passed over twice.
//!
//! # Cost
//! 0 to N messages per entry: about N/2 when wishes are rare, N when everybody always wants. The
//! first wish of node i costs i. Synchronisation delay T; response time 2T + E when nobody else
//! wants. Space: one number and one bit per node.
//!
//! # Deviations
//! *Old requests.* A REQUEST whose number is not above the known one is old: its wish was served
//! before it came. The published rule discards it (`--outdated discard`), and then of two nodes
//! neither may ask the other. Of three nodes, 3 enters first, but its REQUEST to 2 is very slow; 1
//! and then 2 enter after it, and merging the tables 2 and 3 come to believe nothing of each other.
//! Now the old REQUEST comes and is discarded. When 3 wants again it asks only 1, which does not
//! care, and waits for ever while 2 holds an unused token. The checker finds it. The default,
//! `hardened`, keeps what an old REQUEST still says: whoever gets one believes the asker to be
//! requesting, or, having the token, hints that it should be asked itself.
//!
//! The table of states is a set: of others a node believes either "requesting" or "nothing". With a
//! holder given at boot, the staircase begins with it.
//!
//! # Known limits
//! The order of requests in time is not kept. A lost token is the end. A crash loses the guesses.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Event, Mutex, Promise};

impl Algorithm for Singhal {
    type Family = Mutex;
    type Config = Config;

    const META: Meta = Meta {
        name: "mutex/singhal",
        summary: "ask for the token only those who are believed to want it too",
        paper: Paper {
            authors: "M. Singhal",
            title: "A Heuristically-Aided Algorithm for Mutual Exclusion in Distributed Systems",
            venue: "IEEE Transactions on Computers 38(5)",
            year: 1989,
            doi: "10.1109/12.24268",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss; duplicates",
        kinds: &["REQUEST", "TOKEN", "HINT"],
        options: &[OptionSpec {
            name: "outdated",
            values: "hardened|discard",
            default: "hardened",
            help: "what becomes of a late REQUEST: taken as a hint, or discarded as published, \
                   after which somebody may wait for ever",
        }],
        costs: &[
            Cost::of("messages per entry, best", "0", |_| 0.0),
            Cost::of("messages per entry, worst", "N", |n| n),
            Cost::of("messages per entry, heavy", "about N", |n| n),
            Cost::of("synchronisation delay", "T", |_| 1.0),
        ],
        source: include_str!("singhal.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise { fair: false, live: true, fenced: false }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let values = [("hardened", Outdated::Hardened), ("discard", Outdated::Discard)];
        Ok(Config { outdated: options.choice("outdated", &values, Outdated::default())? })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let count = boot.view.members().len();
        let first = boot.setup.holder.unwrap_or_else(|| boot.setup.in_place_of(NodeId::at(0)));
        // Whoever comes back from a crash must not make a second token, and asks everybody.
        let fresh = boot.life.is_first();
        let step = |node: NodeId| (node.index() + count - first.index()) % count;
        let others = boot.view.others(boot.me);
        let below = |node: &NodeId| !fresh || step(*node) < step(boot.me);
        let mut requesting = NodeSet::with_room(count);
        requesting.extend(others.iter().filter(below));
        let token = (boot.me == first && fresh).then(|| Box::new(Token::new(count)));
        Self {
            others,
            outdated: boot.config.outdated,
            requesting,
            numbers: PerNode::new(count, |_| 0),
            phase: match token {
                Some(token) if boot.setup.holder.is_some() => Phase::Executing(token),
                Some(token) => Phase::Holding(token),
                None => Phase::Nothing,
            },
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The fate of a late REQUEST.
    pub outdated: Outdated,
}

/// The fate of a late REQUEST.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Outdated {
    /// The late REQUEST is a hint: its sender may not ask otherwise.
    #[default]
    Hardened,
    /// The late REQUEST is discarded, as published.
    Discard,
}

/// A message between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// I want the token; this is the number of my request.
    Request(u64),
    /// The token: it is yours.
    Token(Box<Token>),
    /// Ask me as well.
    Hint,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "REQUEST",
            Self::Token(_) => "TOKEN",
            Self::Hint => "HINT",
        }
    }
}

/// The token, which gives the right to enter. Its table moves with it and is never copied.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Token {
    /// The nodes that are requesting, as far as the token knows.
    requesting: NodeSet,
    /// By node: the number of the request that this was learnt from.
    numbers: Vec<u64>,
}

impl Token {
    fn new(count: usize) -> Self {
        Self { requesting: NodeSet::with_room(count), numbers: vec![0; count] }
    }
}

/// A node of Singhal's algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Singhal {
    /// Everybody else.
    others: NodeSet,
    /// The fate of a late REQUEST.
    outdated: Outdated,
    /// The nodes that are believed to be requesting. Invariant: nobody while holding an unused
    /// token.
    requesting: NodeSet,
    /// By node: the highest number of a request heard of, or made.
    numbers: PerNode<u64>,
    /// The phase of this node.
    phase: Phase,
}

/// A phase of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// `N`: it has no token and does not want it.
    Nothing,
    /// `R`: it has asked for the token.
    Requesting,
    /// `E`: it is inside.
    Executing(Box<Token>),
    /// `H`: it has the token and does not need it.
    Holding(Box<Token>),
}

impl Protocol for Singhal {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, core::mem::replace(&mut self.phase, Phase::Nothing)) {
            (Command::Acquire, Phase::Nothing) => self.request(cx),
            (Command::Acquire, Phase::Holding(token)) => self.enter(cx, token),
            (Command::Release, Phase::Executing(token)) => self.leave(cx, token),
            (command, phase) => {
                self.phase = phase;
                let acquire = command == Command::Acquire;
                return Err(if acquire { Refusal::Busy } else { Refusal::NotHeld });
            }
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            _ if !self.others.contains(from) => cx.trace("stale", &[]),
            Msg::Request(number) if self.is_new(from, number) => {
                self.note(cx, from, number);
            }
            Msg::Request(_) if self.outdated == Outdated::Discard => cx.trace("discard", &[]),
            Msg::Request(_) | Msg::Hint => self.take_hint(cx, from),
            Msg::Token(token) if self.waits_for(cx.me(), &token) => self.enter(cx, token),
            Msg::Token(_) => cx.trace("stale", &[]),
        }
    }

    fn assert_invariants(&self) {
        if let Phase::Holding(_) = &self.phase {
            assert!(self.requesting.is_empty(), "an unused token is kept only if nobody requests");
        }
        assert!(self.requesting.is_subset(&self.others), "the own state is the phase");
    }
}

impl Singhal {
    /// Asks everybody who is believed to be requesting.
    fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let number = &mut self.numbers[cx.me()];
        *number += 1;
        let number = *number;
        self.phase = Phase::Requesting;
        cx.trace("request", &[("number", number), ("asked", self.requesting.len() as u64)]);
        if !self.requesting.is_empty() {
            cx.multicast(self.requesting.clone(), Msg::Request(number));
        }
    }

    /// Is this request unknown, here and to the token?
    fn is_new(&self, from: NodeId, number: u64) -> bool {
        let served = match (&self.phase, self.outdated) {
            (Phase::Executing(token) | Phase::Holding(token), Outdated::Hardened) => {
                token.numbers[from.index()]
            }
            _ => 0,
        };
        number > served && number > self.numbers[from]
    }

    /// Learns of a new request, and does what the own state demands.
    fn note(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, number: u64) {
        self.numbers[from] = number;
        let is_news = self.requesting.insert(from);
        cx.trace("note", &[("node", u64::from(from.number())), ("number", number)]);
        match core::mem::replace(&mut self.phase, Phase::Nothing) {
            Phase::Holding(mut token) => {
                token.requesting.insert(from);
                token.numbers[from.index()] = number;
                if flaw!(KeepCopy) {
                    self.requesting.remove(from);
                    self.phase = Phase::Holding(token.clone());
                }
                Self::pass(cx, from, token);
            }
            phase => self.phase = phase,
        }
        let is_news = is_news && !flaw!(NoCrossing);
        if is_news && self.phase == Phase::Requesting {
            self.ask_too(cx, from);
        }
    }

    /// A requester learns of another one: one of the two will have the token first.
    fn ask_too(&mut self, cx: &mut Ctx<'_, Self>, node: NodeId) {
        cx.trace("ask too", &[("node", u64::from(node.number()))]);
        cx.send(node, Msg::Request(self.numbers[cx.me()]));
    }

    /// The sender may not be asking this node any more: so this one asks it, or lets it know.
    fn take_hint(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        cx.trace("take hint", &[("node", u64::from(from.number()))]);
        match self.phase {
            Phase::Nothing => {
                self.requesting.insert(from);
            }
            Phase::Requesting => {
                if self.requesting.insert(from) {
                    self.ask_too(cx, from);
                }
            }
            Phase::Executing(_) | Phase::Holding(_) => cx.send(from, Msg::Hint),
        }
    }

    /// Is this the token for the request that is open here, and one that fits this group?
    fn waits_for(&self, me: NodeId, token: &Token) -> bool {
        self.phase == Phase::Requesting
            && token.numbers.len() == self.numbers.len()
            && token.requesting.contains(me)
            && token.numbers[me.index()] == self.numbers[me]
    }

    /// The token is here.
    fn enter(&mut self, cx: &mut Ctx<'_, Self>, token: Box<Token>) {
        self.phase = Phase::Executing(token);
        cx.trace("enter", &[("number", self.numbers[cx.me()])]);
        cx.emit(Event::Granted(None));
    }

    /// Merges the two tables, newer entries win; the token goes to the next requester, if any.
    fn leave(&mut self, cx: &mut Ctx<'_, Self>, mut token: Box<Token>) {
        let me = cx.me();
        token.requesting.remove(me);
        token.numbers[me.index()] = self.numbers[me];
        for node in &self.others {
            let (here, there) = (&mut self.numbers[node], &mut token.numbers[node.index()]);
            if *here > *there {
                *there = *here;
                put(&mut token.requesting, node, self.requesting.contains(node));
            } else {
                *here = *there;
                put(&mut self.requesting, node, token.requesting.contains(node));
            }
        }
        cx.trace("leave", &[("requesting", self.requesting.len() as u64)]);
        let after = self.requesting.iter().find(|&node| node > me);
        match after.or(self.requesting.iter().next()) {
            Some(next) => Self::pass(cx, next, token),
            None => self.phase = Phase::Holding(token),
        }
    }

    /// Sends the token.
    fn pass(cx: &mut Ctx<'_, Self>, to: NodeId, token: Box<Token>) {
        cx.trace("pass", &[("node", u64::from(to.number()))]);
        cx.send(to, Msg::Token(token));
    }
}

/// Makes the node a member of the set, or not.
fn put(set: &mut NodeSet, node: NodeId, member: bool) {
    let _changed = if member { set.insert(node) } else { set.remove(node) };
}

#[cfg(test)]
mod tests;
