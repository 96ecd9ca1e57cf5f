//! Whoever has the token may enter; whoever wants it asks everybody, and the token remembers whose
//! wishes it has served.
//!
//! # Idea
//! A single token makes exclusion trivial: only its holder is inside. The difficulty is to find the
//! token, and to tell a request that is still open from one that was served long ago and arrives
//! late. To find it, a node asks everybody. To tell old from new, requests are numbered at their
//! node, everybody remembers the highest number heard of everybody (RN), and the token carries the
//! number last served for everybody (LN): a node waits exactly if its RN is one ahead of its LN.
//! The token also carries the queue of those who wait, so that nobody is overtaken for ever. A
//! holder keeps the token when nobody wants it, and enters again without a single message.
//!
//! # Paper
//! I. Suzuki, T. Kasami: *A Distributed Mutual Exclusion Algorithm*, ACM Transactions on Computer
//! Systems 3(4), 1985, pp. 344-349, doi:10.1145/6110.214406. The basic algorithm is followed; the
//! variant with bounded numbers is not.
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. Processes do not fail. No timing. Complete
//! graph; every node knows all others; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST(n) | the user wants to enter and the token is elsewhere, to all others | noted |
//! | TOKEN(LN, Q) | its holder is outside and somebody waits, to the next one | it enters |
//!
//! ```text
//! the token is at 1, unused
//! 3  --REQUEST(1)-->  1, 2, 4      1 does not need the token
//! 1  ----TOKEN----->  3            3 enters; it may enter again for nothing
//! 2  --REQUEST(1)-->  1, 3, 4      3 is inside: it notes the request
//! 3  ----TOKEN----->  2            3 has left: LN[3] = 1; 2 is next in Q and enters
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `requested` | `RN[1..N]` |
//! | `phase` | `Requesting`, `HavePrivilege` |
//! | `Token::served` | `LN[1..N]` |
//! | `Token::queue` | `Q` |
//!
//! # Safety
//! `safety`: there is one token, and it is sent only by a node that is outside.
//!
//! # Liveness
//! `liveness`: a request reaches everybody. Whoever leaves with the token after that puts the asker
//! into the queue, which is first in, first out. An unused token goes to the first who asks.
//!
//! # Cost
//! N messages per entry (N-1 REQUEST and the TOKEN), 0 if the token is here already.
//! Synchronisation delay T; response time 2T + E when nobody else wants. The token has the size of
//! one number per node and the queue. Space: one number per node.
//!
//! # Deviations
//! The paper's PRIVILEGE is called TOKEN here. On leaving, the nodes that wait are put into the
//! queue in cyclic order beginning after the leaving node, where the paper begins with the first:
//! otherwise low numbers have an advantage. A token that arrives twice is told from the real one by
//! its `LN` and ignored; the paper assumes that none does.
//!
//! # Known limits
//! Survives the crash of a node that neither waits nor has the token, as long as it stays down. A
//! node that comes back has forgotten its number, and its requests look old. If the token is lost,
//! nobody enters any more.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Event, Mutex, Promise};

impl Algorithm for SuzukiKasami {
    type Family = Mutex;
    type Config = ();

    const META: Meta = Meta {
        name: "mutex/suzuki-kasami",
        summary: "ask everybody for the token, which knows whose wishes are served and who is next",
        paper: Paper {
            authors: "I. Suzuki, T. Kasami",
            title: "A Distributed Mutual Exclusion Algorithm",
            venue: "ACM Transactions on Computer Systems 3(4)",
            year: 1985,
            doi: "10.1145/6110.214406",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "crashes of nodes that neither wait nor have the token; duplicates; no loss",
        kinds: &["REQUEST", "TOKEN"],
        options: &[],
        costs: &[
            Cost::of("messages per entry, best", "0", |_| 0.0),
            Cost::of("messages per entry, light", "N", |n| n),
            Cost::of("messages per entry, heavy", "N", |n| n),
            Cost::of("synchronisation delay", "T", |_| 1.0),
        ],
        source: include_str!("suzuki_kasami.rs"),
    };

    fn promise((): &()) -> Promise {
        Promise { fair: false, live: true, fenced: false }
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let count = boot.view.members().len();
        let first = boot.view.members().first();
        let place = boot.setup.holder.or(first.map(|&first| boot.setup.in_place_of(first)));
        // Whoever comes back from a crash must not make a second token.
        let has_token = place == Some(boot.me) && boot.life.is_first();
        let token = has_token.then(|| Box::new(Token::new(count)));
        Self {
            others: boot.view.others(boot.me),
            requested: PerNode::new(count, |_| 0),
            phase: match token {
                Some(token) if boot.setup.holder.is_some() => Phase::Inside(token),
                Some(token) => Phase::Holding(token),
                None => Phase::Idle,
            },
        }
    }
}

/// A message between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// I want the token; this is the number of my request.
    Request(u64),
    /// The token: it is yours.
    Token(Box<Token>),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "REQUEST",
            Self::Token(_) => "TOKEN",
        }
    }
}

/// The token, which gives the right to enter. Its table and its queue move with it and are never
/// copied.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Token {
    /// By node: the number of its request that was served last.
    served: Vec<u64>,
    /// The nodes that wait, the next one first.
    queue: VecDeque<NodeId>,
}

impl Token {
    fn new(count: usize) -> Self {
        Self { served: vec![0; count], queue: VecDeque::new() }
    }
}

/// A node of Suzuki and Kasami's algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SuzukiKasami {
    /// Everybody else.
    others: NodeSet,
    /// By node: the highest number of a request heard, or made.
    requested: PerNode<u64>,
    /// The phase of this node.
    phase: Phase,
}

/// A phase of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// The node has no token and does not want it.
    Idle,
    /// The node has asked for the token.
    Waiting,
    /// The node has the token and does not need it. Invariant: the queue is empty.
    Holding(Box<Token>),
    /// The node is inside.
    Inside(Box<Token>),
}

impl Protocol for SuzukiKasami {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, self.phase.take()) {
            (Command::Acquire, Phase::Idle) => self.request(cx),
            (Command::Acquire, Phase::Holding(token)) => self.enter(cx, token),
            (Command::Release, Phase::Inside(token)) => self.leave(cx, token),
            (Command::Acquire, phase) => {
                self.phase = phase;
                return Err(Refusal::Busy);
            }
            (Command::Release, phase) => {
                self.phase = phase;
                return Err(Refusal::NotHeld);
            }
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Request(number) if self.others.contains(from) => {
                self.note(cx, from, number);
                self.give_if_unused(cx, from);
            }
            Msg::Token(token) if self.waits_for(cx.me(), &token) => self.enter(cx, token),
            Msg::Request(_) | Msg::Token(_) => cx.trace("stale", &[]),
        }
    }

    fn assert_invariants(&self) {
        if let Phase::Holding(token) = &self.phase {
            assert!(token.queue.is_empty(), "an unused token is kept only if nobody waits");
        }
        if let Phase::Holding(token) | Phase::Inside(token) = &self.phase {
            assert_eq!(token.served.len(), self.requested.len(), "the token knows everybody");
        }
    }
}

impl Phase {
    /// Takes the phase out, with the token in it; idle is left behind.
    const fn take(&mut self) -> Self {
        core::mem::replace(self, Self::Idle)
    }
}

impl SuzukiKasami {
    /// `RN[i] := RN[i] + 1`, and asks everybody.
    fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let number = &mut self.requested[cx.me()];
        *number += 1;
        let number = *number;
        self.phase = Phase::Waiting;
        cx.trace("request", &[("number", number)]);
        cx.multicast(self.others.clone(), Msg::Request(number));
    }

    /// `RN[j] := max(RN[j], n)`.
    fn note(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, number: u64) {
        let known = &mut self.requested[from];
        *known = number.max(*known);
        cx.trace("note", &[("node", u64::from(from.number())), ("number", number)]);
    }

    /// "If the token is here and unused": whoever asks gets it, unless its request is an old one.
    fn give_if_unused(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        match self.phase.take() {
            Phase::Holding(token) if flaw!(AnswerOldRequests) => Self::pass(cx, from, token),
            Phase::Holding(token) if self.is_open(&token, from) => {
                if flaw!(KeepCopy) {
                    self.phase = Phase::Holding(token.clone());
                }
                Self::pass(cx, from, token);
            }
            phase => self.phase = phase,
        }
    }

    /// `RN[j] = LN[j] + 1`: it waits.
    fn is_open(&self, token: &Token, node: NodeId) -> bool {
        self.requested[node].checked_sub(1) == Some(token.served[node.index()])
    }

    /// Is this the token for the request that is open here, and one that fits this group?
    fn waits_for(&self, me: NodeId, token: &Token) -> bool {
        self.phase == Phase::Waiting
            && token.served.len() == self.requested.len()
            && token.queue.iter().all(|node| self.others.contains(*node))
            && self.is_open(token, me)
    }

    /// "Critical section".
    fn enter(&mut self, cx: &mut Ctx<'_, Self>, token: Box<Token>) {
        self.phase = Phase::Inside(token);
        cx.trace("enter", &[("number", self.requested[cx.me()])]);
        cx.emit(Event::Granted(None));
    }

    /// `LN[i] := RN[i]`; queues whoever waits and is not queued yet, and passes the token on.
    fn leave(&mut self, cx: &mut Ctx<'_, Self>, mut token: Box<Token>) {
        token.served[cx.me().index()] = self.requested[cx.me()];
        self.queue_up(cx.me(), &mut token);
        cx.trace("leave", &[("waiting", token.queue.len() as u64)]);
        match token.queue.pop_front() {
            Some(next) => Self::pass(cx, next, token),
            None => self.phase = Phase::Holding(token),
        }
    }

    /// Queues whoever waits and is not queued yet, beginning with the node after this one.
    fn queue_up(&self, me: NodeId, token: &mut Token) {
        if flaw!(ForgetRequests) {
            return;
        }
        let count = self.requested.len();
        let mut queued = NodeSet::with_room(count);
        queued.extend(token.queue.iter().copied());
        for node in (1..count).map(|step| NodeId::at((me.index() + step) % count)) {
            if !queued.contains(node) && self.is_open(token, node) {
                token.queue.push_back(node);
            }
        }
    }

    /// "Send the token."
    fn pass(cx: &mut Ctx<'_, Self>, to: NodeId, token: Box<Token>) {
        cx.trace("pass", &[("node", u64::from(to.number()))]);
        cx.send(to, Msg::Token(token));
    }
}

#[cfg(test)]
mod tests {
    use quorate_check::Plan;
    use quorate_core::Input;

    use super::*;
    use crate::mutex::testing::Trial;
    use crate::testing::node;

    fn trial(count: usize) -> Trial<SuzukiKasami> {
        Trial::of(count)
    }

    /// N messages for each entry, but for the first one of the node that has the token.
    #[test]
    fn an_entry_costs_n_messages() {
        for count in 2..=16 {
            for trial in [trial(count).wishes(3), trial(count).in_turn(3)] {
                let log = trial.run();
                let entries = 3 * count as u64;
                assert_eq!(log.entries().len() as u64, entries);
                assert_eq!(log.count("REQUEST"), (entries - 1) * (count as u64 - 1));
                assert_eq!(log.count("TOKEN"), entries - 1);
            }
        }
    }

    #[test]
    fn a_holder_enters_again_for_nothing() {
        let log = trial(4).wanting_at(&[(3, 0.0), (3, 10.0)]).run();
        assert_eq!(log.sent, ["REQUEST 3>1", "REQUEST 3>2", "REQUEST 3>4", "TOKEN 1>3"]);
        assert_eq!(log.entries(), [(2.0, 3), (10.0, 3)]);
    }

    #[test]
    fn who_waits_at_an_exit_is_queued_in_cyclic_order() {
        let trial = trial(4).wanting_at(&[(1, 0.0), (3, 0.5), (2, 0.6)]).stay(3.0);
        let log = trial.drive(|world| {
            world.run_to_rest();
            let Phase::Holding(token) = &world.node(node(3)).phase else { panic!("3 is the last") };
            assert_eq!(token.served, [0, 1, 1, 0]);
        });
        assert!(log.report.holds());
        assert_eq!(log.entries(), [(0.0, 1), (4.0, 2), (8.0, 3)]);
        assert_eq!(log.counts(["REQUEST", "TOKEN"]), [6, 2]);
    }

    #[test]
    fn the_synchronisation_delay_is_one_message() {
        let entries = trial(5).wishes(4).run().entries();
        assert!(entries.windows(2).all(|two| two[1].0 - two[0].0 == 2.0), "{entries:?}");
    }

    #[test]
    fn a_node_can_be_booted_inside() {
        let trial = trial(3).holder(2).boots_inside([(6.0, 3), (12.0, 1), (18.0, 2)]);
        assert_eq!(trial.states(), 838);
    }

    /// Tokens that nobody waits for, and such as do not fit the group.
    #[test]
    fn foreign_tokens_are_ignored() {
        let enters = |asks: bool, token: Token| {
            let hear = |from, msg| Input::Message { from: node(from), msg };
            let heard = [hear(9, Msg::Request(3)), hear(1, Msg::Token(Box::new(token)))];
            let asked = asks.then_some(Input::Command(Command::Acquire));
            let who = trial(3).after(2, asked.into_iter().chain(heard));
            matches!(who.phase, Phase::Inside(_))
        };
        assert!(enters(true, Token::new(3)));
        assert!(!enters(false, Token::new(3)));
        assert!(!enters(true, Token::new(2)));
        assert!(!enters(true, Token { served: vec![0, 1, 0], queue: VecDeque::new() }));
        assert!(!enters(true, Token { served: vec![0; 3], queue: VecDeque::from([node(7)]) }));
    }

    #[test]
    fn the_crash_of_somebody_uninvolved_is_survived() {
        let log = trial(4).wanting(&[1, 2, 3]).crash(4, 0.0).run();
        assert_eq!(log.entries().len(), 3);
    }

    #[test]
    fn a_lost_message_ends_liveness() {
        assert_eq!(trial(4).wishes(20).loss(0.05).broken(), ["liveness"]);
    }

    #[test]
    fn a_thousand_nodes_share_one_token() {
        assert_eq!(trial(1_000).run().report.messages, 999 * 1_000);
    }

    #[test]
    fn every_interleaving_holds() {
        let holds = |count, wishes, duplicates| {
            trial(count).wishes(wishes).plan(Plan { duplicates, ..Plan::default() }).states()
        };
        assert_eq!((holds(2, 3, 0), holds(3, 1, 0), holds(3, 2, 0)), (234, 725, 58_933));
        assert_eq!((holds(2, 2, 1), holds(3, 2, 1)), (452, 952_948));
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = trial(3).wishes(2);
        assert_eq!(trial.catch("KeepCopy"), ("safety", 7));
        assert_eq!(trial.catch("AnswerOldRequests"), ("liveness", 22));
        assert_eq!(trial.catch("ForgetRequests"), ("liveness", 14));
    }
}
