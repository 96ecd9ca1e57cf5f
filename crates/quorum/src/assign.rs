//! One quorum per node, for algorithms: each node is in its own.

use quorate_core::{NodeSet, PerNode};

use crate::{BadSystem, Structure, System, listed};

/// The most nodes that are given a quorum each.
const ASSIGNED_MAX: usize = 20_000;

impl System {
    /// By node: the quorum that it asks, with the node itself in it. Any two intersect.
    ///
    /// Where nodes are alike (majority, square grids, whole planes) every node is in as many of these
    /// as any other. Elsewhere the smallest quorum through the node is taken: a path through a tree,
    /// a row of a wall with turns below, the heaviest voters. A node that is in no minimal quorum
    /// joins one: what contains a quorum is one as well.
    ///
    /// # Errors
    /// If there are too many nodes, or too many quorums to choose from.
    pub fn assignment(&self) -> Result<PerNode<NodeSet>, BadSystem> {
        if self.nodes() > ASSIGNED_MAX {
            let text = alloc::format!("more than {ASSIGNED_MAX} nodes are not given a quorum each");
            return Err(BadSystem(text));
        }
        Ok(match self.structure() {
            Structure::Votes(votes) => votes.assignment(),
            Structure::Grid(grid) => grid.assignment(),
            Structure::Plane(plane) => plane.assignment(),
            Structure::Wall(wall) => wall.assignment(),
            Structure::Tree(tree) => tree.assignment(),
            Structure::Listed(_) => listed::assignment(&self.minimal()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Kind, Quorums, System, verify};
    use alloc::vec::Vec;
    use quorate_core::NodeSet;

    #[test]
    fn every_node_is_in_its_quorum_and_any_two_intersect() {
        for nodes in 1..50 {
            for kind in Kind::usual(nodes) {
                let system = System::new(kind.clone(), nodes).unwrap();
                let assignment = system.assignment().unwrap();
                assert_eq!(verify::outsider(&assignment), None, "{kind} {nodes}");
                let sets: Vec<NodeSet> = assignment.iter().map(|(_, set)| set.clone()).collect();
                let sets = Quorums::new(nodes, sets).unwrap();
                assert_eq!(verify::disjoint(&sets), None, "{kind} {nodes}");
            }
        }
    }

    #[test]
    fn every_assigned_set_contains_a_quorum() {
        for text in ["weighted:5,4,3,3,2,1,1,0", "crumbling-wall:2,3,1,2", "custom:1,2;2,3;1,3,4"] {
            let kind: Kind = text.parse().unwrap();
            let system = System::new(kind.clone(), kind.nodes().unwrap()).unwrap();
            let quorums = system.quorums().unwrap();
            for (node, set) in system.assignment().unwrap().iter() {
                assert!(set.contains(node));
                let any = quorums.sets().iter().any(|quorum| quorum.is_subset(set));
                assert!(any, "{kind}: {set:?}");
            }
        }
    }

    #[test]
    fn alike_nodes_are_asked_equally_often() {
        for (kind, nodes) in
            [(Kind::Majority, 8), (Kind::Grid, 16), (Kind::ProjectivePlane, 13), (Kind::All, 3)]
        {
            let assignment = System::new(kind, nodes).unwrap().assignment().unwrap();
            let mut asked = alloc::vec![0; nodes];
            assignment.iter().flat_map(|(_, set)| set).for_each(|i| asked[i.index()] += 1);
            assert!(asked.iter().all(|&times| times == asked[0]), "{asked:?}");
        }
    }
}
