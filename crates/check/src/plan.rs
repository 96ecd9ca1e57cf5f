//! What is explored: the network, the faults, the bounds.

use std::thread::available_parallelism;

use quorate_core::NodeSet;

/// What may happen in the runs that are explored, and how far to go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// May messages overtake each other?
    pub network: Network,
    /// How the nodes come up.
    pub start: Start,
    /// When timers may fire.
    pub timers: Timers,
    /// Whether taking in a message without any consequence is a step.
    pub discards: Discards,
    /// Whether orders that make no difference are left out.
    pub reduction: Reduction,
    /// How many crashes a run may have; at most 255.
    pub crashes: u32,
    /// Who may crash; everybody if not said.
    pub mortal: Option<NodeSet>,
    /// How many recoveries a run may have; at most 255.
    pub recoveries: u32,
    /// How many messages a run may lose; at most 255.
    pub losses: u32,
    /// How many messages a run may see twice; at most 255.
    pub duplicates: u32,
    /// With more states than this the search is given up.
    pub states_max: u64,
    /// How many threads explore. With 1, everything runs on the calling thread. The report is the
    /// same whatever the number.
    pub threads: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            network: Network::default(),
            start: Start::default(),
            timers: Timers::default(),
            discards: Discards::default(),
            reduction: Reduction::default(),
            crashes: 0,
            mortal: None,
            recoveries: 0,
            losses: 0,
            duplicates: 0,
            states_max: 50_000_000,
            threads: available_parallelism().map_or(1, usize::from),
        }
    }
}

/// May messages overtake each other?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Network {
    /// Each link keeps the order.
    Fifo,
    /// Messages may overtake each other.
    #[default]
    Unordered,
}

/// How the nodes come up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// In the initial state all nodes have started; users have not wished anything yet.
    #[default]
    AtOnce,
    /// Coming up is a step of its own, and the first command of the node's user is part of it.
    /// Before that a node takes in nothing, and messages to it wait.
    Step,
    /// In the initial state all nodes have started, and then each user's first command was given,
    /// in the order of the nodes.
    Started,
}

/// When timers may fire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Timers {
    /// Whenever they are set: nothing is known about delays.
    #[default]
    Anytime,
    /// Only while no message is in flight: timeouts are longer than any delay. Likewise a failure
    /// detector reports a crash only when the last message of the crashed node has arrived.
    WhenQuiet,
}

/// Whether taking in a message without any consequence is a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discards {
    /// It is: the message is gone.
    #[default]
    Count,
    /// It is not, and the message stays: as in Stateright's actor model. A delivery has no
    /// consequence if it leaves the node as it was and has no effects.
    Ignore,
}

/// Whether orders that make no difference are left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reduction {
    /// Every order is tried, and counterexamples are shortest.
    #[default]
    None,
    /// A message that its receiver claims to be outdated
    /// ([`Protocol::is_outdated`](quorate_core::Protocol::is_outdated)) is delivered before anything
    /// else happens. The claims are verified. There are fewer states and the same verdict; a
    /// counterexample need not be shortest. Without effect where faults are allowed or discards are
    /// ignored.
    Outdated,
}
