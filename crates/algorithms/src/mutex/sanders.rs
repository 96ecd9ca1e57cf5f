//! One algorithm for many: two sets per node say whom it asks and whom it tells, and by the choice
//! of the sets it becomes a central, a quorum or a fully distributed one.
//!
//! # Idea
//! Algorithms that work by permission differ in whom a node asks, and in who keeps book of it. So
//! let both be data: node i asks all of its *request set* R_i and tells all of its *inform set* I_i
//! when it leaves. A node keeps book of exactly those who will tell it (its *status set*): it gives
//! permission to one of them at a time. To others it gives permission and forgets it. When is that
//! safe? Every node informs itself, and
//!
//! 1. I_i is a part of R_i: whoever keeps book of a node is asked by it;
//! 2. for any two nodes i and j, either I_i and I_j meet, so that somebody keeps book of both; or i
//!    and j ask each other, so that the older request goes first.
//!
//! Both are checked before a run. Permissions are given in the order in which requests arrive, so
//! that circles of waiting nodes could close; therefore a permission that was given to a younger
//! request is asked back, and whoever is not inside gives it back.
//!
//! # Paper
//! B. A. Sanders: *The Information Structure of Distributed Mutual Exclusion Algorithms*, ACM
//! Transactions on Computer Systems 5(3), 1987, pp. 284-299, doi:10.1145/24068.28052. The
//! generalized algorithm, in the version without deadlocks.
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. Processes do not fail. No timing. Complete
//! graph; every node knows its sets; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST(stamp) | the user wants to enter, to R_i | GRANT now or later |
//! | GRANT(stamp) | nobody of the status set has it, or gave it back | one fewer is missing |
//! | INQUIRE(stamp) | an older request came after a GRANT | YIELD, unless inside |
//! | YIELD(stamp) | asked by INQUIRE | the oldest is granted |
//! | RELEASE(stamp) | the user is out, to I_i | the oldest is granted |
//!
//! ```text
//! R_2 = {1, 2, 3}, I_2 = {1, 2}
//! 2  --REQUEST(1.2)-->  1, 3
//! 2  <----GRANT-------  1, 3        1 keeps book of it, 3 does not: 3 may grant others
//! 2  ----RELEASE----->  1
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `asked`, `informed` | `R_i` and `I_i`, both without i |
//! | `status` | the status set: whose inform sets this node is in |
//! | `granted` | `CSSTAT`: who of the status set has permission |
//! | `queue` | the requests without GRANT, by age |
//! | `grants` | the GRANTs that have come, and INQUIREs that were faster |
//!
//! # Safety
//! `safety`: of two nodes inside, take condition 2. If somebody keeps book of both, it has given
//! permission to both, which it does not. If they asked each other, the older one has granted the
//! younger one's request: not before its own, for then the clock rule would have made its own the
//! younger one; not afterwards, for it keeps book of itself.
//!
//! # Liveness
//! `liveness`: the oldest request is denied only by who has granted somebody inside, which leaves,
//! or somebody who waits and gives the permission back when asked. `fairness` with
//! `structure=individual` only.
//!
//! # Cost
//! 2(|R_i|-1) + (|I_i|-1) messages per entry when nobody else wants: 3(K-1) with quorums, 2(N-1)
//! with `individual`, 3(N-1) with `all`, 3 with `central`. An INQUIRE costs three more: itself,
//! YIELD, and GRANT once again. Synchronisation delay T if the next one asks the one that leaves,
//! otherwise 2T. Space: three sets, and the requests of those who ask the node.
//!
//! # Deviations
//! An INQUIRE that overtakes its GRANT is kept until the GRANT comes; with that, channels need not
//! keep the order. A node's messages to itself are calls. A node can be booted inside
//! (`Setup::holder`): those whom it informs begin with their permission given to it.
//!
//! # Known limits
//! One lost message or one crashed node, and nobody who needs its answer enters any more. The
//! paper's recovery from failures is not here.

mod book;
mod structure;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::phase::Phase;
use super::votes::{Recall, Taken, Votes};
use super::{Command, Event, Mutex, Promise};

pub use structure::{Sets, Structure};

impl Algorithm for Sanders {
    type Family = Mutex;
    type Config = Config;

    const META: Meta = Meta {
        name: "mutex/sanders",
        summary: "whom to ask and whom to tell are sets; by their choice it becomes the others",
        paper: Paper {
            authors: "B. A. Sanders",
            title: "The Information Structure of Distributed Mutual Exclusion Algorithms",
            venue: "ACM Transactions on Computer Systems 5(3)",
            year: 1987,
            doi: "10.1145/24068.28052",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "crash of nodes that nobody asks; no loss",
        kinds: &["REQUEST", "GRANT", "INQUIRE", "YIELD", "RELEASE"],
        options: &[OptionSpec {
            name: "structure",
            values: "quorum|individual|central|all|given:SETS",
            default: "quorum",
            help: "whom a node asks and whom it tells: its quorum (Maekawa), everybody and itself \
                   (Ricart and Agrawala), node 1, or everybody; given:1,2/1;1,2/2 for each node whom \
                   it asks / whom it tells",
        }],
        costs: &[
            Cost::of("messages per entry, light", "2(|R|-1)+(|I|-1), 3(K-1) for quorums", |k| {
                3.0 * (k - 1.0)
            }),
            Cost::of(
                "messages per entry, worst",
                "3 more for each INQUIRE, 6(K-1) for quorums",
                |k| 6.0 * (k - 1.0),
            ),
            Cost::of("synchronisation delay, best", "T", |_| 1.0),
            Cost::of("synchronisation delay, worst", "2T", |_| 2.0),
        ],
        source: include_str!("sanders.rs"),
    };

    fn promise(config: &Config) -> Promise {
        Promise { fair: matches!(config.structure, Structure::Individual), live: true }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        const NAMES: [&str; 4] = ["quorum", "individual", "central", "all"];
        if let Some(sets) = options.get("structure").and_then(|text| text.strip_prefix("given:")) {
            let bad =
                || BadOption::new("structure", sets, "ASKED/TOLD for each node, as 1,2/1;1,2/2");
            let sets = Sets::read(sets).ok_or_else(bad)?;
            return Ok(Config { structure: Structure::Given(Arc::new(sets)) });
        }
        let named = NAMES.map(|name| (name, name));
        Ok(Config {
            structure: match options.choice("structure", &named, "quorum")? {
                "individual" => Structure::Individual,
                "central" => Structure::Central,
                "all" => Structure::All,
                _ => Structure::Quorum,
            },
        })
    }

    /// Are the conditions for safety fulfilled?
    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        let admitted = scene.config.structure.admit(&scene.setup, scene.view.set());
        admitted.map_err(|reason| BadOption::because("structure", reason))
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let structure = &boot.config.structure;
        let (mut asked, mut informed) = structure.sets(boot.setup, boot.me);
        let keeps_book = |node: &NodeId| structure.informs(boot.setup, *node, boot.me);
        // A node asks itself in any case: it keeps book of itself.
        asked.insert(boot.me);
        let grants = Votes::missing_from(&asked);
        asked.remove(boot.me);
        informed.remove(boot.me);
        Self {
            asked,
            informed,
            status: boot.view.set().iter().filter(keeps_book).collect(),
            clock: LamportClock::default(),
            phase: Phase::at_boot(boot.setup, boot.me),
            grants,
            granted: boot.setup.granted().filter(|stamp| keeps_book(&stamp.node)),
            queue: Vec::new(),
        }
    }
}

/// The options.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// The sets of those whom nodes ask and tell.
    pub structure: Structure,
}

/// A message between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// May I enter? This is how old my wish is.
    Request(Stamp),
    /// You may with this wish, as far as I am concerned.
    Grant(Stamp),
    /// Somebody older than this wish of yours has come: may I have my word back?
    Inquire(Stamp),
    /// You may. Keep my request.
    Yield(Stamp),
    /// I am out.
    Release(Stamp),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "REQUEST",
            Self::Grant(_) => "GRANT",
            Self::Inquire(_) => "INQUIRE",
            Self::Yield(_) => "YIELD",
            Self::Release(_) => "RELEASE",
        }
    }
}

/// A node of Sanders' algorithm: one that asks, and one that keeps book.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sanders {
    /// The others that this node asks.
    asked: NodeSet,
    /// The others that this node tells when it leaves.
    informed: NodeSet,
    /// The nodes that tell this one when they leave: it grants to one of them at a time.
    status: NodeSet,
    /// The highest sequence number seen or used.
    clock: LamportClock,
    /// The phase of this node.
    phase: Phase,
    /// The answers of those who are asked to the present wish. Invariant: some missing while
    /// waiting; all fresh otherwise.
    grants: Votes,
    /// The request of the status set that has been granted.
    granted: Option<Stamp>,
    /// The requests that wait, the oldest one last. Invariant: empty if none is granted.
    queue: Vec<Stamp>,
}

impl Protocol for Sanders {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        self.phase.obey(command, self, cx, [Self::request, Self::leave])
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Request(theirs) if theirs.node == from => self.register(cx, theirs),
            Msg::Grant(mine) => self.take_grant(cx, from, mine),
            Msg::Inquire(_) if flaw!(NeverYield) => {}
            Msg::Inquire(_) if flaw!(ForgetEarlyInquiry) && self.grants.held_of(from).is_none() => {
            }
            Msg::Inquire(mine) => self.inquired(cx, from, mine),
            Msg::Yield(theirs) if theirs.node == from => self.take_back(cx, theirs),
            Msg::Release(theirs) if theirs.node == from => self.free(cx, theirs),
            Msg::Request(_) | Msg::Yield(_) | Msg::Release(_) => cx.trace("foreign", &[]),
        }
    }

    fn assert_invariants(&self) {
        match self.phase {
            Phase::Waiting(_) => {
                assert!(self.grants.missing() > 0, "with all permissions, a node is inside");
                assert_eq!(self.grants.first_inquired(), None, "what is here goes back at once");
            }
            Phase::Idle | Phase::Inside(_) => {
                assert!(self.grants.are_fresh(), "permissions are counted while waiting");
            }
        }
        if let Some(granted) = self.granted {
            assert!(self.status.contains(granted.node), "only of these is kept book");
        } else {
            assert!(self.queue.is_empty(), "who can be granted is granted");
        }
        assert!(self.queue.is_sorted_by(|younger, older| younger > older), "by age, each once");
    }
}

// The asker.
impl Sanders {
    /// Asks all of the request set, itself among them.
    fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let stamp = self.phase.wish(cx, &mut self.clock);
        cx.multicast(self.asked.clone(), Msg::Request(stamp));
        self.register(cx, stamp);
    }

    /// GRANT: one permission fewer is missing, unless it has been asked back already.
    fn take_grant(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, mine: Stamp) {
        if self.phase != Phase::Waiting(mine) {
            return cx.trace("stale", &[]);
        }
        match self.grants.take(from, ()) {
            Taken::Stale => cx.trace("stale", &[]),
            // With the last permission the node enters, even if it was asked back: who is inside
            // answers by its RELEASE.
            Taken::Recalled if self.grants.missing() > 0 => {
                self.give_back(cx, from, mine);
            }
            Taken::Recalled | Taken::Held => {
                cx.trace("count", &[("missing", self.grants.missing() as u64)]);
                if self.grants.missing() == 0 {
                    self.grants.clear();
                    self.phase.enter(cx, mine);
                }
            }
        }
    }

    /// INQUIRE: whoever is not inside gives the permission back, now or as soon as it arrives.
    fn inquired(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, mine: Stamp) {
        if self.phase != Phase::Waiting(mine) {
            return cx.trace("stale", &[]);
        }
        match self.grants.recall(from, ()) {
            Recall::Stale => cx.trace("stale", &[]),
            Recall::Early => cx.trace("early", &[("node", u64::from(from.number()))]),
            Recall::Held => self.give_back(cx, from, mine),
        }
    }

    /// Gives a permission back; the request stays.
    fn give_back(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId, mine: Stamp) {
        self.grants.give_back(to);
        cx.trace("yield", &[("node", u64::from(to.number()))]);
        self.post(cx, to, Msg::Yield(mine));
    }

    /// Tells all of the inform set.
    fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(stamp) = self.phase.end() else { return };
        cx.trace("leave", &[]);
        cx.multicast(self.informed.clone(), Msg::Release(stamp));
        self.free(cx, stamp);
    }

    /// Sends, or calls if it is to this node itself.
    fn post(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId, msg: Msg) {
        if to == cx.me() { self.on_message(cx, to, msg) } else { cx.send(to, msg) }
    }
}

#[cfg(test)]
mod tests;
