//! Trees that elections build, for algorithms that move along one.

use quorate_algorithms::election::{Command, Election, Event};
use quorate_core::{Fact, NodeId, PerNode, Time, Topology};
use quorate_sim::Observer;

use crate::simulate::observe;
use crate::{About, BadInput, Spec};

/// The argument that names the election.
pub(crate) const TREE_FROM: About = About::new(
    "tree-from",
    "ELECTION",
    "The election whose tree is used, by those that run along one: election/adoption, graph-dfs, \
     registry-tree or firewire",
);

/// The tree that this election builds in a run with the given nodes, topology and seed.
///
/// # Errors
/// If there is no such election, or it builds no tree.
pub(crate) fn tree(election: &str, spec: &Spec) -> Result<Topology, BadInput> {
    let bad = |reason: String| BadInput::new("--tree-from", reason);
    if !election.starts_with("election/") {
        return Err(bad(format!("{election} is not an election")));
    }
    let run = Spec {
        seed: spec.seed,
        topology: spec.topology.clone(),
        latency: spec.latency.clone(),
        ..Spec::new(election, spec.nodes)
    };
    let parents = Parents(PerNode::new(spec.nodes, |_| None));
    let Parents(parents) = observe::<Election, _>(&run, parents)
        .map_err(|error| bad(format!("{election}: {error}")))?;
    let links = parents.iter().filter_map(|(node, parent)| Some(((*parent)?, node)));
    let links: Vec<_> = links.collect();
    let tree = Topology::undirected(spec.nodes, &links).map_err(|error| bad(error.to_string()))?;
    if tree.is_tree() { Ok(tree) } else { Err(bad(format!("{election} builds no spanning tree"))) }
}

/// The parent of each node, as last told; whoever leads has none.
struct Parents(PerNode<Option<NodeId>>);

impl Observer<Command, Event> for Parents {
    fn fact(&mut self, _: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        match fact {
            Fact::Event(Event::Parent(parent)) => self.0[at] = Some(*parent),
            Fact::Event(Event::Leading(_)) => self.0[at] = None,
            Fact::Event(Event::Following(_) | Event::Leaderless)
            | Fact::Command(Command::Elect)
            | Fact::Crashed
            | Fact::Recovered => {}
        }
    }
}
