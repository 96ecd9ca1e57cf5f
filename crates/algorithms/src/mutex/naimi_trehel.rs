//! Send the request to whoever probably has the token; everybody who passes it on learns who will
//! have it next.
//!
//! # Idea
//! As in Raymond's algorithm, each node points to somebody, and the pointers lead to the place
//! where a request must go: the *root*, which is the last one that will have the token. But here
//! anybody may point to anybody. A request travels along the pointers, and every node that it
//! visits then points to the asker, for now the asker will be the last: the path is *reversed*, and
//! so becomes short for everybody on it. The root remembers the asker as the one who is `next` and
//! gives it the token on leaving. So there are two structures: a tree of guesses that leads to the
//! end of the queue, and the queue itself, of which each node knows only its successor. The
//! difficulty of the tree, long paths, cures itself: a long one is walked once and gone.
//!
//! # Paper
//! M. Naimi, M. Trehel, A. Arnold: *A log(N) Distributed Mutual Exclusion Algorithm Based on Path
//! Reversal*, Journal of Parallel and Distributed Computing 34(1), 1996, pp. 1-13,
//! doi:10.1006/jpdc.1996.0041. The algorithm is that of Naimi and Trehel of 1987.
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. Processes do not fail. No timing. Complete
//! graph; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST(asker) | the user wants to enter; passed on along the pointers | queued at the root |
//! | TOKEN | its holder is outside and has a successor | it enters |
//!
//! ```text
//! the token is at 1, everybody points to 1
//! 2  --REQUEST(2)-->  1              1 does not need it, and points to 2 from now on
//! 1  ----TOKEN----->  2              2 enters
//! 3  --REQUEST(3)-->  1  --REQUEST(3)-->  2      2 is inside: 3 is next; 1 and 2 point to 3
//! 2  ----TOKEN----->  3              2 has left; 3 enters
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `last` | `last`, nil at the root |
//! | `phase` | `requesting`, `token-present`, `next` |
//!
//! # Safety
//! `safety`: there is one token, and it is sent only by a node that is outside.
//!
//! # Liveness
//! `liveness`: pointers have no cycle, so that a request arrives at a root. A root that waits was
//! queued itself before it became one, so that the queue, followed backwards, leads to the token.
//!
//! # Cost
//! Requests of nodes chosen at random, one at a time: `H(N-1) = 1 + 1/2 + ... + 1/(N-1)` messages
//! on average, which grows as log N. Best 0, worst N. Synchronisation delay T. Space: two node
//! numbers, whatever N.
//!
//! # Deviations
//! None from the version without failures. A node can be booted inside (`Setup::holder`): it is the
//! root then. A TOKEN that was not asked for is ignored.
//!
//! # Known limits
//! The order of requests in time is not kept. A crash loses the pointers and the successor that
//! were kept there, even of a node that only passed requests on. A duplicated message can make a
//! second token or put somebody into the queue twice.

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Event, Mutex, Promise};

impl Algorithm for NaimiTrehel {
    type Family = Mutex;
    type Config = ();

    const META: Meta = Meta {
        name: "mutex/naimi-trehel",
        summary: "requests follow pointers to the end of the queue and turn them to the asker",
        paper: Paper {
            authors: "M. Naimi, M. Trehel, A. Arnold",
            title: "A log(N) Distributed Mutual Exclusion Algorithm Based on Path Reversal",
            venue: "Journal of Parallel and Distributed Computing 34(1)",
            year: 1996,
            doi: "10.1006/jpdc.1996.0041",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["REQUEST", "TOKEN"],
        options: &[],
        costs: &[
            Cost::of("messages per entry, best", "0", |_| 0.0),
            Cost::of("messages per entry, average", "H(N-1)", harmonic_below),
            Cost::of("messages per entry, worst", "N", |n| n),
            Cost::of("synchronisation delay", "T", |_| 1.0),
        ],
        source: include_str!("naimi_trehel.rs"),
    };

    fn promise((): &()) -> Promise {
        Promise { fair: false, live: true, fenced: false }
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let others = boot.view.others(boot.me);
        let first = boot.view.members().first();
        let place = boot.setup.holder.or(first.map(|&first| boot.setup.in_place_of(first)));
        // Whoever comes back from a crash must not make a second token.
        let fresh = boot.life.is_first() || others.is_empty();
        let last = place.filter(|&place| !fresh || place != boot.me);
        let last = last.or(others.iter().next());
        let (last, phase) = match (place == Some(boot.me) && fresh, boot.setup.holder) {
            (true, Some(_)) => (None, Phase::Inside { next: None }),
            (true, None) => (None, Phase::Holding),
            (false, _) => (last, Phase::Idle),
        };
        Self { others, last, phase }
    }
}

/// The harmonic number of `n - 1`.
fn harmonic_below(n: f64) -> f64 {
    (1..n as u64).map(|k| 1.0 / k as f64).sum()
}

/// A message between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// This node wants the token.
    Request(NodeId),
    /// The token: it is yours.
    Token,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "REQUEST",
            Self::Token => "TOKEN",
        }
    }
}

/// A node of Naimi and Trehel's algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NaimiTrehel {
    /// Everybody else.
    others: NodeSet,
    /// The node that asked last, as far as this one knows; none if it did itself: then it is the
    /// root.
    last: Option<NodeId>,
    /// The phase of this node.
    phase: Phase,
}

/// A phase of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// The node has no token and does not want it. Invariant: it is not the root.
    Idle,
    /// The node has asked for the token.
    Waiting {
        /// The node that gets the token from it. Invariant: somebody exactly if it is no longer the
        /// root.
        next: Option<NodeId>,
    },
    /// The node has the token and does not need it. Invariant: it is the root.
    Holding,
    /// The node is inside.
    Inside {
        /// As while waiting.
        next: Option<NodeId>,
    },
}

impl Protocol for NaimiTrehel {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (self.phase, command) {
            (Phase::Idle, Command::Acquire) => self.request(cx),
            (Phase::Holding, Command::Acquire) => self.enter(cx, None),
            (_, Command::Acquire) => return Err(Refusal::Busy),
            (Phase::Inside { next }, Command::Release) => self.leave(cx, next),
            (_, Command::Release) => return Err(Refusal::NotHeld),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, _from: NodeId, msg: Msg) {
        match (msg, self.phase) {
            (Msg::Request(asker), _) if !self.others.contains(asker) => cx.trace("stale", &[]),
            (Msg::Request(asker), phase) => match (self.last, phase) {
                (Some(last), _) => self.forward(cx, last, asker),
                (None, Phase::Waiting { .. } | Phase::Inside { .. }) if flaw!(ForgetAsker) => {}
                (None, Phase::Holding) if flaw!(KeepToken) => cx.send(asker, Msg::Token),
                (None, Phase::Waiting { .. }) => {
                    self.append(cx, asker, Phase::Waiting { next: Some(asker) });
                }
                (None, Phase::Inside { .. }) => {
                    self.append(cx, asker, Phase::Inside { next: Some(asker) });
                }
                (None, Phase::Idle | Phase::Holding) => self.give(cx, asker),
            },
            (Msg::Token, Phase::Waiting { next }) => self.enter(cx, next),
            (Msg::Token, _) => cx.trace("stale", &[]),
        }
    }

    fn assert_invariants(&self) {
        match self.phase {
            Phase::Idle => assert!(self.last.is_some(), "an idle root has the token"),
            Phase::Holding => assert!(self.last.is_none(), "an unused token is at the root"),
            Phase::Waiting { next } | Phase::Inside { next } => {
                assert_eq!(next.is_some(), self.last.is_some(), "the root is the end of the queue");
            }
        }
    }
}

impl NaimiTrehel {
    /// Asks, and is the root from now on: whoever asks later comes after it.
    fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Waiting { next: None };
        // An idle node is not the root.
        if let Some(last) = self.last.take() {
            cx.trace("request", &[("last", u64::from(last.number()))]);
            cx.send(last, Msg::Request(cx.me()));
        }
    }

    /// Not the root: passes the request on, and points to the asker.
    fn forward(&mut self, cx: &mut Ctx<'_, Self>, last: NodeId, asker: NodeId) {
        if last == asker {
            // Its request would come back to it: only a duplicate does.
            return cx.trace("stale", &[]);
        }
        self.last = Some(asker);
        cx.trace("forward", &[("last", u64::from(last.number()))]);
        cx.send(last, Msg::Request(asker));
    }

    /// The root wants the token itself: the asker comes next.
    fn append(&mut self, cx: &mut Ctx<'_, Self>, asker: NodeId, phase: Phase) {
        self.phase = phase;
        self.last = Some(asker);
        cx.trace("append", &[("node", u64::from(asker.number()))]);
    }

    /// The root does not need the token: the asker gets it.
    fn give(&mut self, cx: &mut Ctx<'_, Self>, asker: NodeId) {
        self.phase = Phase::Idle;
        self.last = Some(asker);
        cx.trace("give", &[("node", u64::from(asker.number()))]);
        cx.send(asker, Msg::Token);
    }

    /// The token is here.
    fn enter(&mut self, cx: &mut Ctx<'_, Self>, next: Option<NodeId>) {
        self.phase = Phase::Inside { next };
        cx.trace("enter", &[]);
        cx.emit(Event::Granted(None));
    }

    /// Passes the token on to who is next, if anybody is.
    fn leave(&mut self, cx: &mut Ctx<'_, Self>, next: Option<NodeId>) {
        cx.trace("leave", &[("next", next.map_or(0, |next| u64::from(next.number())))]);
        match next {
            Some(next) => {
                self.phase = Phase::Idle;
                cx.send(next, Msg::Token);
            }
            None => self.phase = Phase::Holding,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutex::Load;
    use crate::mutex::testing::Trial;
    use crate::testing::{node, units};

    fn trial(count: usize) -> Trial<NaimiTrehel> {
        Trial::of(count)
    }

    /// Wishes come so rarely that they do not meet, each from any node with the same probability:
    /// H(N-1) messages, the TOKEN included.
    #[test]
    fn an_entry_costs_h_of_n_minus_1_on_average() {
        for count in 2..=16_usize {
            let rarely = Load::Poisson { mean: units(100_000.0) };
            let log = trial(count).load(rarely, 40_000 / count as u32).stay(0.0).run();
            let (per_entry, expected) = (log.per_entry(), harmonic_below(count as f64));
            assert!((per_entry / expected - 1.0).abs() < 0.02, "{count}: {per_entry} {expected}");
        }
    }

    /// The ladder of the header, and that a long path is walked once: 1 > 2 > ... > N.
    #[test]
    fn paths_are_reversed() {
        let log = trial(3).wanting_at(&[(2, 0.0), (3, 3.0)]).stay(5.0).run();
        let ladder = ["REQUEST 2>1", "TOKEN 1>2", "REQUEST 3>1", "REQUEST 1>2", "TOKEN 2>3"];
        assert_eq!(log.sent, ladder);
        assert_eq!(log.entries(), [(2.0, 2), (8.0, 3)]);
        for count in 3..=16_u32 {
            // Everybody points to its successor; then the first asks, and then the second.
            let trial = trial(count as usize).wanting_at(&[(1, 0.0), (2, 100.0)]).stay(0.0);
            let log = trial.run_prepared(|world| {
                for number in 1..count {
                    world.node_mut(node(number)).phase = Phase::Idle;
                    world.node_mut(node(number)).last = Some(node(number + 1));
                }
                world.node_mut(node(count)).phase = Phase::Holding;
                world.node_mut(node(count)).last = None;
            });
            assert_eq!(log.report.messages, u64::from(count) + 2);
        }
    }

    #[test]
    fn the_synchronisation_delay_is_one_message() {
        let entries = trial(5).wishes(4).run().entries();
        assert!(entries[1..].windows(2).all(|two| two[1].0 - two[0].0 == 2.0), "{entries:?}");
    }

    #[test]
    fn a_holder_enters_again_for_nothing() {
        let log = trial(3).wanting_at(&[(1, 0.0), (1, 5.0)]).run();
        assert_eq!((log.report.messages, log.told.len()), (0, 2));
    }

    #[test]
    fn a_node_can_be_booted_inside() {
        let trial = trial(3).holder(2).boots_inside([(6.0, 1), (12.0, 3), (18.0, 2)]);
        assert_eq!(trial.states(), 176);
    }

    #[test]
    fn foreign_messages_are_ignored() {
        let requests = [9, 2, 1].map(|number| (1, Msg::Request(node(number))));
        trial(3).ignores(2, requests.into_iter().chain([(1, Msg::Token)]));
    }

    #[test]
    fn a_lost_message_ends_liveness() {
        assert_eq!(trial(4).wishes(20).loss(0.05).broken(), ["liveness"]);
    }

    #[test]
    fn a_thousand_nodes_under_any_latency() {
        let log = trial(1_000).wishes(3).latency("uniform:0.1..3").run();
        assert_eq!(log.told.len(), 3_000);
    }

    #[test]
    fn every_interleaving_holds() {
        let holds = |count, wishes| trial(count).wishes(wishes).states();
        assert_eq!((holds(2, 3), holds(3, 2)), (149, 1_530));
        assert_eq!((holds(4, 1), holds(4, 2)), (1_476, 45_980));
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = trial(3).wishes(2);
        assert_eq!(trial.catch("KeepToken"), ("safety", 7));
        assert_eq!(trial.catch("ForgetAsker"), ("liveness", 12));
    }
}
