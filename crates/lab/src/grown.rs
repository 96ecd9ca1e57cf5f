//! What elections leave behind, for other algorithms: trees to move along, and leaders to coordinate.

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
    let parents = Parents(PerNode::new(spec.nodes, |_| None));
    let Parents(parents) = held(election, spec.clone(), parents).map_err(bad)?;
    let links = parents.iter().filter_map(|(node, parent)| Some(((*parent)?, node)));
    let links: Vec<_> = links.collect();
    let tree = Topology::undirected(spec.nodes, &links).map_err(|error| bad(error.to_string()))?;
    if tree.is_tree() { Ok(tree) } else { Err(bad(format!("{election} builds no spanning tree"))) }
}

/// The node that leads after a run of this election with the given nodes and seed, over whatever
/// links it needs.
///
/// # Errors
/// If there is no such election, or nobody leads after it.
pub(crate) fn leader(election: &str, spec: &Spec) -> Result<NodeId, BadInput> {
    let bad = |reason: String| BadInput::new("--coordinator-from", reason);
    let alone = Spec { topology: None, ..spec.clone() };
    let Leader(leader) = held(election, alone, Leader(None)).map_err(bad)?;
    leader.ok_or_else(|| bad(format!("after {election} nobody leads")))
}

/// Holds an election with the nodes, links, latency and seed of a run, and has somebody look on.
fn held<O: Observer<Command, Event>>(election: &str, run: Spec, look: O) -> Result<O, String> {
    if !election.starts_with("election/") {
        return Err(format!("{election} is not an election"));
    }
    let Spec { seed, topology, latency, nodes, .. } = run;
    let run = Spec { seed, topology, latency, ..Spec::new(election, nodes) };
    observe::<Election, _>(&run, look).map_err(|error| format!("{election}: {error}"))
}

/// The node that was last told that it leads.
struct Leader(Option<NodeId>);

impl Observer<Command, Event> for Leader {
    fn fact(&mut self, _: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        if let Fact::Event(Event::Leading(_)) = fact {
            self.0 = Some(at);
        }
    }
}

/// The parent of each node, as last told; whoever leads has none.
struct Parents(PerNode<Option<NodeId>>);

impl Observer<Command, Event> for Parents {
    fn fact(&mut self, _: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        match fact {
            Fact::Event(Event::Parent(parent)) => self.0[at] = Some(*parent),
            Fact::Event(Event::Leading(_) | Event::LeadingIn(..)) => self.0[at] = None,
            Fact::Event(Event::Following(_) | Event::Leaderless)
            | Fact::Command(Command::Elect)
            | Fact::Crashed
            | Fact::Recovered => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_algorithms::mutex::Mutex;

    use super::*;
    use crate::measure;

    fn entered(algorithm: &str, name: &str, value: &str) -> Result<(u64, u64), BadInput> {
        let mut spec = Spec::new(algorithm, 4);
        match name {
            "coordinator" => drop(spec.options.insert(name.to_owned(), value.to_owned())),
            _ => spec.read(name, value)?,
        }
        let run = measure::<Mutex>(&spec)?;
        assert!(run.holds);
        Ok((run.figures.entries, run.figures.load.max))
    }

    /// The best one is elected, and is asked as if it had been named.
    #[test]
    fn an_election_names_the_coordinator() {
        assert_eq!(leader("election/bully", &Spec::new("mutex/central", 4)), Ok(node(4)));
        let elected = entered("mutex/central", "coordinator-from", "election/bully");
        assert_eq!(elected, entered("mutex/central", "coordinator", "4"));
        assert_eq!(elected.map(|(entries, _)| entries), Ok(12));
        let mut ring = Spec::new("mutex/token-ring", 4);
        ring.options.insert("regenerate".to_owned(), "on".to_owned());
        ring.read("coordinator-from", "election/chang-roberts").unwrap();
        ring.until = Some(Time::ZERO + quorate_core::Span::units(100));
        assert!(measure::<Mutex>(&ring).unwrap().holds);
    }

    #[test]
    fn who_has_no_coordinator_needs_no_election() {
        let refused = |algorithm, election| {
            let refused = entered(algorithm, "coordinator-from", election);
            refused.unwrap_err().to_string()
        };
        let reason = "--coordinator-from: mutex/lamport has no coordinator";
        assert_eq!(refused("mutex/lamport", "election/bully"), reason);
        let reason = "--coordinator-from: mutex/raymond is not an election";
        assert_eq!(refused("mutex/central", "mutex/raymond"), reason);
    }

    fn node(number: u32) -> NodeId {
        NodeId::new(number).unwrap()
    }
}
