//! Families own problems; algorithms solve them; everything about an algorithm that is not its
//! behaviour is data.

use alloc::string::{String, ToString};
use core::fmt::{self, Debug};

use crate::{BadTopology, Monitor, Neighbours, NodeId, Protocol, Span, Topology, View};

/// A problem: what its users say and hear, and what counts as a solution.
pub trait Family: Sized + 'static {
    /// Its name on the command line.
    const NAME: &'static str;
    /// What users wish.
    type Command: Clone + Eq + core::hash::Hash + Debug + Send + Sync;
    /// What users are told.
    type Event: Clone + Eq + core::hash::Hash + Debug + Send + Sync;
    /// What is given to all nodes alike: ranks, a holder, quorums.
    type Setup: Clone + Debug + Send + Sync;
    /// What an algorithm promises beyond what all of the family do.
    type Promise: Clone + Debug;
    /// The oracle.
    type Monitor: Monitor<Self::Command, Self::Event>;

    /// The oracle for a run of `count` nodes.
    fn monitor(count: usize, setup: &Self::Setup, promise: &Self::Promise) -> Self::Monitor;

    /// The command that prints as `text`; the other half of its `Debug`, for replay.
    fn command(text: &str) -> Option<Self::Command>;

    /// The event that prints as `text`; the other half of its `Debug`, for judging traces.
    fn event(text: &str) -> Option<Self::Event>;
}

/// A solution: behaviour (as a [`Protocol`]) and description.
pub trait Algorithm:
    Protocol<Command = <Self::Family as Family>::Command, Event = <Self::Family as Family>::Event>
{
    /// The problem that it solves.
    type Family: Family;
    /// Its own options, the same at all nodes.
    type Config: Clone + Debug + Default + Send + Sync;
    /// Everything about it that is not its behaviour.
    const META: Meta;
    /// It goes on when nobody wants anything any more: its runs end when users have nothing to do.
    const RESTLESS: bool = false;

    /// What it promises with these options.
    fn promise(config: &Self::Config) -> <Self::Family as Family>::Promise;

    /// Reads its options; those not given keep their defaults.
    ///
    /// # Errors
    /// The first option that is unknown or has a value that it cannot take.
    fn configure(options: &Options<'_>) -> Result<Self::Config, BadOption>;

    /// Can it run in this scene? Asked before any node is booted; the shape of the topology has
    /// been checked.
    ///
    /// # Errors
    /// The option that makes no sense here, and why.
    fn admit(_scene: &Scene<Self>) -> Result<(), BadOption> {
        Ok(())
    }

    /// Does this timer watch for a failure? Where nobody fails by definition, as within a view, it
    /// is not set.
    fn watches(_timer: Self::Timer) -> bool {
        false
    }

    /// The node's state before its start.
    fn boot(boot: Boot<'_, Self>) -> Self;
}

/// What a node knows when it comes up.
#[derive(Debug)]
pub struct Boot<'a, A: Algorithm> {
    /// Itself.
    pub me: NodeId,
    /// Who takes part.
    pub view: &'a View,
    /// Whom it can send to.
    pub neighbours: Neighbours<'a>,
    /// What the family tells all nodes.
    pub setup: &'a <A::Family as Family>::Setup,
    /// The algorithm's options.
    pub config: &'a A::Config,
    /// How often it came up before: 0 at first, more after crashes.
    pub incarnation: u32,
    /// What it persisted last, if it did.
    pub stable: Option<A::Stable>,
}

/// Everything that is given to a run before it begins, and the same for every engine.
pub struct Scene<A: Algorithm> {
    /// Who can talk to whom.
    pub topology: Topology,
    /// Who takes part.
    pub view: View,
    /// What the family tells all nodes.
    pub setup: <A::Family as Family>::Setup,
    /// The algorithm's options.
    pub config: A::Config,
}

// Derived, these would ask the same of the family, which is only a name.
impl<A: Algorithm> Clone for Scene<A> {
    fn clone(&self) -> Self {
        Self {
            topology: self.topology.clone(),
            view: self.view.clone(),
            setup: self.setup.clone(),
            config: self.config.clone(),
        }
    }
}

impl<A: Algorithm> Debug for Scene<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scene")
            .field("topology", &self.topology)
            .field("view", &self.view)
            .field("setup", &self.setup)
            .field("config", &self.config)
            .finish()
    }
}

impl<A: Algorithm> Scene<A> {
    /// All nodes of the topology take part, in a founding view.
    pub fn new(topology: Topology, setup: <A::Family as Family>::Setup, config: A::Config) -> Self {
        let view = View::founding(topology.count());
        Self { topology, view, setup, config }
    }

    /// How many nodes take part.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.topology.count()
    }

    /// The state of a node before its start.
    pub fn boot(&self, me: NodeId, incarnation: u32, stable: Option<A::Stable>) -> A {
        let neighbours = self.topology.neighbours(me);
        let Self { view, setup, config, .. } = self;
        A::boot(Boot { me, view, neighbours, setup, config, incarnation, stable })
    }

    /// The oracle for a run.
    pub fn monitor(&self) -> <A::Family as Family>::Monitor {
        A::Family::monitor(self.count(), &self.setup, &A::promise(&self.config))
    }

    /// Can the algorithm run on this topology?
    ///
    /// # Errors
    /// What it needs, in words.
    pub fn fits(&self) -> Result<(), BadTopology> {
        let Self { topology, .. } = self;
        let (fits, needs) = match A::META.shape {
            Shape::Complete => (topology.is_complete(), "a complete graph"),
            Shape::Ring => (topology.is_ring() || self.count() == 1, "a one-way ring"),
            Shape::TwoWayRing => (topology.is_two_way_ring(), "a two-way ring"),
            Shape::Tree => (topology.is_tree(), "a tree"),
            Shape::Graph => (
                topology.is_connected() && topology.is_two_way(),
                "a connected graph with two-way links",
            ),
        };
        let text = || alloc::format!("{} needs {needs}", A::META.name);
        if fits { Ok(()) } else { Err(BadTopology(text())) }
    }
}

/// Everything about an algorithm that is not its behaviour.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// As typed: `family/name`.
    pub name: &'static str,
    /// What it does, in a sentence that a newcomer understands.
    pub summary: &'static str,
    /// Where it was published.
    pub paper: Paper,
    /// The topology it runs on.
    pub shape: Shape,
    /// What it needs of its channels.
    pub channels: Channels,
    /// What it needs of time.
    pub timing: Timing,
    /// Which failures it survives, in words.
    pub survives: &'static str,
    /// The kinds of messages, in the order of the paper.
    pub kinds: &'static [&'static str],
    /// Its own options.
    pub options: &'static [OptionSpec],
    /// What it is published to cost.
    pub costs: &'static [Cost],
    /// The file it stands in, whose header explains it.
    pub source: &'static str,
}

impl Meta {
    /// The family's part of the name.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.name.split_once('/').map_or("", |(family, _)| family)
    }

    /// The explanation: the header of its file, as Markdown.
    #[must_use]
    pub fn explanation(&self) -> String {
        let mut text = String::new();
        for line in self.source.lines().map_while(|line| line.strip_prefix("//!")) {
            text.push_str(line.strip_prefix(' ').unwrap_or(line));
            text.push('\n');
        }
        text
    }
}

/// A publication.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Who.
    pub authors: &'static str,
    /// What.
    pub title: &'static str,
    /// Where.
    pub venue: &'static str,
    /// When.
    pub year: u16,
    /// Its digital object identifier, or nothing.
    pub doi: &'static str,
}

/// The topologies that an algorithm can need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Everybody linked with everybody.
    Complete,
    /// A one-way ring.
    Ring,
    /// A two-way ring.
    TwoWayRing,
    /// A tree.
    Tree,
    /// Any connected two-way graph.
    Graph,
}

/// What an algorithm needs of its channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channels {
    /// Reliable, and each link keeps the order.
    Fifo,
    /// Reliable; messages may overtake each other.
    Unordered,
}

/// What an algorithm needs of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timing {
    /// Nothing: correct however slow anything is.
    Asynchronous,
    /// Known bounds on delays; a broken bound can break its safety.
    Synchronous,
    /// It reads [`Ctx::now`](crate::Ctx::now).
    Timed,
}

/// A published cost.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Of what, and when: "messages, ids ascending".
    pub what: &'static str,
    /// The formula as printed; `about` in front of it says that it is an approximation.
    pub formula: &'static str,
    /// The formula as computed, for `n` nodes.
    pub value: fn(n: f64) -> f64,
}

/// An option of one algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionSpec {
    /// As typed after `--`.
    pub name: &'static str,
    /// The values it takes, as shown in help: `a|b`, or `TIME`, `NUMBER`.
    pub values: &'static str,
    /// The value it has when not given.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// Options of an algorithm as given: names and values.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(pub &'a [(&'a str, &'a str)]);

impl<'a> Options<'a> {
    /// The value given for an option.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }

    /// One of several named values; `default` if not given.
    ///
    /// # Errors
    /// If the value is none of them.
    pub fn choice<T: Copy>(
        &self,
        name: &'static str,
        values: &[(&str, T)],
        default: T,
    ) -> Result<T, BadOption> {
        let Some(given) = self.get(name) else { return Ok(default) };
        match values.iter().find(|(value, _)| *value == given) {
            Some((_, value)) => Ok(*value),
            None => {
                let known: alloc::vec::Vec<_> = values.iter().map(|(value, _)| *value).collect();
                Err(BadOption::new(name, given, &alloc::format!("one of {}", known.join(", "))))
            }
        }
    }

    /// A length of time: a number of units, or one with `ns`, `us`, `ms` or `s`.
    ///
    /// # Errors
    /// If it is not a length of time.
    pub fn span(&self, name: &'static str, default: Span) -> Result<Span, BadOption> {
        let Some(given) = self.get(name) else { return Ok(default) };
        given.parse().map_err(|_| BadOption::new(name, given, "a time such as 2, 0.5, 30us or 1s"))
    }
}

impl core::str::FromStr for Span {
    type Err = NotATime;

    /// A number of units, or one with `ns`, `us`, `ms` or `s`.
    fn from_str(text: &str) -> Result<Self, NotATime> {
        const SUFFIXES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
        let (digits, scale) = SUFFIXES
            .iter()
            .find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, *scale)))
            .unwrap_or((text, Self::UNIT.0 as f64));
        let nanos = digits.parse::<f64>().map_err(|_| NotATime)? * scale;
        // Beyond this, sums of times could leave 64 bits.
        const NANOS_MAX: f64 = 1e18;
        if (0.0..=NANOS_MAX).contains(&nanos) {
            Ok(Self((nanos + 0.5) as u64))
        } else {
            Err(NotATime)
        }
    }
}

/// A text that is not a length of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotATime;

/// An option that cannot be taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadOption {
    /// Which.
    pub name: String,
    /// Why, naming the value and what would do.
    pub reason: String,
}

impl BadOption {
    /// This option makes no sense, for this reason.
    #[must_use]
    pub fn because(name: &str, reason: String) -> Self {
        Self { name: name.to_string(), reason }
    }

    /// The value of an option is none that it takes.
    #[must_use]
    pub fn new(name: &str, given: &str, wanted: &str) -> Self {
        let reason = alloc::format!("{given} is not {wanted}");
        Self { name: name.to_string(), reason }
    }
}

impl fmt::Display for BadOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{}: {}", self.name, self.reason)
    }
}

impl core::error::Error for BadOption {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_units_or_with_a_suffix() {
        let span = |text: &str| text.parse::<Span>().map(|span| span.0);
        assert_eq!(span("1"), Ok(1_000_000));
        assert_eq!(span("0.5"), Ok(500_000));
        assert_eq!(span("240ns"), Ok(240));
        assert_eq!(span("3us"), Ok(3_000));
        assert_eq!(span("2s"), Ok(2_000_000_000));
        for bad in ["", "x", "-1", "nan", "inf", "1e30", "1 ms"] {
            assert_eq!(span(bad), Err(NotATime), "{bad}");
        }
    }

    #[test]
    fn a_choice_names_what_would_do() {
        let options = Options(&[("wake", "maybe")]);
        let error = options.choice("wake", &[("on", 1), ("off", 2)], 1).unwrap_err();
        assert_eq!(error.to_string(), "--wake: maybe is not one of on, off");
        assert_eq!(options.choice("other", &[("on", 1)], 7), Ok(7));
    }
}
