//! Quorums as a list.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet};

use crate::{BadSystem, NODES_MAX};

/// A list of quorums, none of them empty: sorted, each once. That any two intersect is not promised
/// but verified, see [`crate::verify`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Quorums {
    nodes: usize,
    sets: Vec<NodeSet>,
}

impl Quorums {
    /// These quorums among nodes 1 to `nodes`.
    ///
    /// # Errors
    /// If there is none, if one is empty, or if a node is beyond the last one.
    pub fn new(nodes: usize, mut sets: Vec<NodeSet>) -> Result<Self, BadSystem> {
        if sets.is_empty() {
            return Err(BadSystem("there is no quorum".to_string()));
        }
        if sets.iter().any(NodeSet::is_empty) {
            return Err(BadSystem("a quorum without nodes intersects with none".to_string()));
        }
        let last = sets.iter().flat_map(NodeSet::iter).max();
        if let Some(node) = last.filter(|node| node.index() >= nodes) {
            return Err(BadSystem(format!("node {node} is not one of the nodes 1 to {nodes}")));
        }
        sets.sort();
        sets.dedup();
        Ok(Self { nodes, sets })
    }

    /// Reads one quorum per line: node numbers, separated by spaces or commas. A `;` ends a line
    /// too; `#` starts a comment; braces are allowed.
    ///
    /// # Errors
    /// The first line that says something else.
    pub fn read(text: &str) -> Result<Vec<NodeSet>, BadSystem> {
        let mut sets = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("");
            for part in line.split(';').map(str::trim).filter(|part| !part.is_empty()) {
                let set = read_set(part).ok_or_else(|| {
                    let number = number + 1;
                    let text = format!("line {number}: {part:?} is not a quorum such as 1 2 5");
                    BadSystem(text)
                })?;
                sets.push(set);
            }
        }
        if sets.is_empty() { Err(BadSystem("there is no quorum".to_string())) } else { Ok(sets) }
    }

    /// How many nodes there are, in quorums or not.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        self.nodes
    }

    /// The quorums, sorted.
    #[must_use]
    pub fn sets(&self) -> &[NodeSet] {
        &self.sets
    }

    /// The sizes of the smallest and of the largest quorum.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize) {
        let sizes = self.sets.iter().map(NodeSet::len);
        (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0))
    }

    /// By position of the node: in how many quorums it is.
    #[must_use]
    pub fn degrees(&self) -> Vec<usize> {
        let mut degrees = alloc::vec![0; self.nodes];
        for node in self.sets.iter().flat_map(NodeSet::iter) {
            degrees[node.index()] += 1;
        }
        degrees
    }

    /// Without the quorums that contain another one.
    #[must_use]
    pub fn minimal(&self) -> Self {
        Self { nodes: self.nodes, sets: minimal(&self.sets) }
    }
}

fn read_set(text: &str) -> Option<NodeSet> {
    let text = text.trim_start_matches('{').trim_end_matches('}');
    let words = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    let node = |word: &str| {
        word.parse().ok().and_then(NodeId::new).filter(|node| node.index() < NODES_MAX)
    };
    let set: NodeSet = words.map(node).collect::<Option<_>>()?;
    (!set.is_empty()).then_some(set)
}

/// The sets that contain no other one of them, sorted.
pub(crate) fn minimal(sets: &[NodeSet]) -> Vec<NodeSet> {
    let mut by_size: Vec<_> = sets.iter().map(|set| (set.len(), set)).collect();
    by_size.sort();
    let mut kept: Vec<NodeSet> = Vec::new();
    for (_, set) in by_size {
        if !kept.iter().any(|smaller| smaller.is_subset(set)) {
            kept.push(set.clone());
        }
    }
    kept.sort();
    kept
}

/// Do the sets share a node?
pub(crate) fn meet(a: &NodeSet, b: &NodeSet) -> bool {
    !a.intersection(b).is_empty()
}

/// A set as it is written: `{1,2,5}`.
#[must_use]
pub fn written(set: &NodeSet) -> String {
    let nodes: Vec<_> = set.iter().map(|node| node.to_string()).collect();
    format!("{{{}}}", nodes.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_in_every_usual_form() {
        let text = "# three of them\n1 2\n{2, 3}\n\n1,3 # last\n";
        let sets = Quorums::read(text).unwrap();
        let quorums = Quorums::new(3, sets).unwrap();
        let texts: Vec<_> = quorums.sets().iter().map(written).collect();
        assert_eq!(texts, ["{1,2}", "{1,3}", "{2,3}"]);
        assert_eq!(Quorums::read("1,2;2,3;1,3").unwrap().len(), 3);
    }

    #[test]
    fn what_is_no_list_is_said() {
        let error = |text| Quorums::read(text).unwrap_err().to_string();
        assert_eq!(error("1 2\n2 x"), "line 2: \"2 x\" is not a quorum such as 1 2 5");
        assert_eq!(error("1 0"), "line 1: \"1 0\" is not a quorum such as 1 2 5");
        assert_eq!(error("# nothing\n"), "there is no quorum");
        let sets = Quorums::read("1 9").unwrap();
        let error = Quorums::new(3, sets).unwrap_err().to_string();
        assert_eq!(error, "node 9 is not one of the nodes 1 to 3");
    }

    #[test]
    fn what_contains_another_quorum_is_not_minimal() {
        let quorums = Quorums::new(3, Quorums::read("1 2 3; 1 2; 1 3").unwrap()).unwrap();
        assert_eq!(quorums.minimal().sets().len(), 2);
        assert_eq!(quorums.sizes(), (2, 3));
        assert_eq!(quorums.degrees(), [3, 2, 2]);
    }
}
