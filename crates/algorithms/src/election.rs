//! Leader election: one winner, known to all who are to know.
//!
//! *Symmetry*: all nodes run the same program and differ in their rank only; anybody may start, and
//! nobody is chosen beforehand. Two are exceptions: in `registry_tree` the first node is also the
//! registry, and in `itai_rodeh` the election does not even use the rank.
//!
//! *Determinism*: who leads follows from the ranks, from who starts and from who is there, not from
//! delays or chance. Exceptions are `itai_rodeh` and `firewire`, which toss coins, `registry_tree`,
//! where the first to arrive is the root, and `tree_echo` with `leader=meeting`. In
//! `chang_roberts_bidirectional` chance decides on the cost, and not on the leader.

pub mod adoption;
pub mod bully;
pub mod bully_broadcast;
pub mod chang_roberts;
pub mod chang_roberts_bidirectional;
mod convergecast;
pub mod firewire;
pub mod floodmax;
pub mod graph_dfs;
pub mod hirschberg_sinclair;
mod in_views;
pub mod itai_rodeh;
pub mod lelann;
mod links;
mod monitor;
pub mod registry_tree;
mod ring;
pub mod ring_list;
mod setup;
#[cfg(test)]
mod testing;
pub mod tree_dfs;
pub mod tree_echo;
pub mod tree_saturation;
mod users;
mod words;

use quorate_core::Family;

pub use adoption::Adoption;
pub use bully::Bully;
pub use bully_broadcast::BullyBroadcast;
pub use chang_roberts::ChangRoberts;
pub use chang_roberts_bidirectional::ChangRobertsBidirectional;
pub use firewire::FireWire;
pub use floodmax::FloodMax;
pub use graph_dfs::GraphDfs;
pub use hirschberg_sinclair::HirschbergSinclair;
pub use in_views::InViews;
pub use itai_rodeh::ItaiRodeh;
pub use lelann::LeLann;
pub use monitor::OneLeader;
pub use registry_tree::RegistryTree;
pub use ring_list::RingList;
pub use setup::Setup;
pub use tree_dfs::TreeDfs;
pub use tree_echo::TreeEcho;
pub use tree_saturation::TreeSaturation;
pub use users::Initiators;
pub use words::{Command, Criterion, Event, Rank};

crate::catalogue::catalogue! { Election:
    Bully,
    BullyBroadcast,
    RingList,
    LeLann,
    ChangRoberts,
    ChangRobertsBidirectional,
    HirschbergSinclair,
    ItaiRodeh,
    TreeDfs,
    TreeEcho,
    TreeSaturation,
    FloodMax,
    GraphDfs,
    Adoption,
    FireWire,
    RegistryTree,
}
crate::stack::stack!(Election in InViews);

/// The family of leader election.
#[derive(Debug)]
pub struct Election;

/// A promise: what an algorithm does beyond electing one leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// Everybody is told who leads, not only the leader.
    pub everyone_told: bool,
    /// The node with the best rank leads; otherwise it may be any.
    pub best_leads: bool,
}

impl Family for Election {
    const NAME: &'static str = "election";
    type Command = Command;
    type Event = Event;
    type Setup = Setup;
    type Promise = Promise;
    type Monitor = OneLeader;

    fn monitor(count: usize, _: &Setup, promise: &Promise) -> OneLeader {
        OneLeader::new(count, promise)
    }

    fn command(text: &str) -> Option<Command> {
        Command::read(text)
    }

    fn event(text: &str) -> Option<Event> {
        Event::read(text)
    }
}
