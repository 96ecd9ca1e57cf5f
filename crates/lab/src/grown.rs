//! Trees that elections build, for algorithms that move along one.

use quorate_core::trace::{Outcome, Record};
use quorate_core::{NodeId, Topology};

use crate::{BadInput, Spec, Watch, simulate};

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
    let mut parents = vec![None; spec.nodes];
    let mut record = |record: Record| {
        for effect in &record.effects {
            if let Outcome::Emit(text) = effect
                && let Some(parent) = text.strip_prefix("Parent(").and_then(|t| t.strip_suffix(')'))
            {
                parents[record.node.index()] = parent.parse().ok().and_then(NodeId::new);
            } else if let Outcome::Emit(text) = effect
                && text.starts_with("Leading")
            {
                parents[record.node.index()] = None;
            }
        }
    };
    simulate(&run, Watch { record: Some(&mut record), progress: None })
        .map_err(|error| bad(format!("{election}: {error}")))?;
    let links: Vec<_> =
        NodeId::first(spec.nodes).filter_map(|node| Some((parents[node.index()]?, node))).collect();
    let tree = Topology::undirected(spec.nodes, &links).map_err(|error| bad(error.to_string()))?;
    if tree.is_tree() { Ok(tree) } else { Err(bad(format!("{election} builds no spanning tree"))) }
}
