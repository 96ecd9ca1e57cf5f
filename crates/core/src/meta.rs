//! Everything about a published algorithm that is not its behaviour.

use alloc::string::String;

use crate::{OptionSpec, Topology};

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

impl Shape {
    /// What an algorithm of this shape needs, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Complete => "a complete graph",
            Self::Ring => "a one-way ring",
            Self::TwoWayRing => "a two-way ring",
            Self::Tree => "a tree",
            Self::Graph => "a connected graph with two-way links",
        }
    }

    /// So many nodes linked in this shape: trees are binary, and a tree is graph enough.
    #[must_use]
    pub fn laid_out(self, count: usize) -> Topology {
        match self {
            Self::Complete => Topology::complete(count),
            Self::Ring => Topology::ring(count),
            Self::TwoWayRing => Topology::ring(count).two_way(),
            Self::Tree | Self::Graph => Topology::binary_tree(count),
        }
    }

    /// Does a topology have this shape?
    #[must_use]
    pub fn fits(self, topology: &Topology) -> bool {
        match self {
            Self::Complete => topology.is_complete(),
            Self::Ring => topology.is_ring() || topology.count() == 1,
            Self::TwoWayRing => topology.is_two_way_ring(),
            Self::Tree => topology.is_tree(),
            Self::Graph => topology.is_connected() && topology.is_two_way(),
        }
    }
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
    /// It reads the clock of its node: it is [`Timed`](crate::Timed).
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

impl Cost {
    /// A cost: of what, the formula as printed, and as computed.
    #[must_use]
    pub const fn of(what: &'static str, formula: &'static str, value: fn(f64) -> f64) -> Self {
        Self { what, formula, value }
    }
}
