//! Votes: every node has a weight, and a quorum is what weighs enough.
//!
//! Four constructions are of this kind. *Singleton*: all weight is node 1's. *All*: one vote each, and
//! all are needed. *Majority*: one vote each, more than half. *Weighted*: more than half of all weight.

use alloc::vec;
use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet, PerNode};

use crate::load::Orbits;

/// Weights and how much is needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Votes {
    weights: Vec<u32>,
    need: u64,
}

impl Votes {
    /// Node 1 decides alone.
    pub(crate) fn singleton(nodes: usize) -> Self {
        let mut weights = vec![0; nodes];
        weights[0] = 1;
        Self { weights, need: 1 }
    }

    /// All have to agree.
    pub(crate) fn all(nodes: usize) -> Self {
        Self { weights: vec![1; nodes], need: nodes as u64 }
    }

    /// More than half of the nodes.
    pub(crate) fn majority(nodes: usize) -> Self {
        Self::weighted(vec![1; nodes])
    }

    /// More than half of the weight.
    pub(crate) fn weighted(weights: Vec<u32>) -> Self {
        let need = weights.iter().map(|&w| u64::from(w)).sum::<u64>() / 2 + 1;
        Self { weights, need }
    }

    /// By position: what the node's vote weighs.
    #[must_use]
    pub fn weights(&self) -> &[u32] {
        &self.weights
    }

    /// What a quorum weighs at least.
    #[must_use]
    pub const fn need(&self) -> u64 {
        self.need
    }

    fn total(&self) -> u64 {
        self.weights.iter().map(|&w| u64::from(w)).sum()
    }

    /// Positions of the nodes that have a vote, heaviest first.
    fn by_weight(&self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.weights.len()).filter(|&i| self.weights[i] > 0).collect();
        order.sort_by_key(|&i| core::cmp::Reverse(self.weights[i]));
        order
    }

    /// Have all nodes with a vote the same one?
    fn is_level(&self) -> bool {
        let mut weights = self.weights.iter().filter(|&&w| w > 0);
        let first = weights.next();
        weights.all(|w| Some(w) == first)
    }

    /// Is there no difference between nodes?
    pub(crate) fn is_symmetric(&self) -> Option<bool> {
        self.is_level().then(|| self.weights.iter().all(|&w| w > 0))
    }

    /// Of minimal quorums: how many there are (none if too many to count), and the sizes of the
    /// smallest and the largest one.
    ///
    /// Taken heaviest first, a minimal quorum is a set that weighs enough from its last node on.
    pub(crate) fn summary(&self) -> (Option<u128>, (usize, usize)) {
        if self.is_level() {
            let size = self.heaviest_until(self.need);
            return (choose(self.by_weight().len(), size), (size, size));
        }
        let need = self.need as usize;
        let mut ways = vec![Some(0u128); need];
        let mut longest = vec![None; need];
        (ways[0], longest[0]) = (Some(1), Some(0));
        let (mut count, mut size_max) = (Some(0u128), 0);
        for i in self.by_weight() {
            let weight = self.weights[i] as usize;
            for sum in need.saturating_sub(weight)..need {
                count = count.zip(ways[sum]).and_then(|(a, b)| a.checked_add(b));
                size_max = size_max.max(longest[sum].map_or(0, |length: usize| length + 1));
            }
            for sum in (weight..need).rev() {
                let from = ways[sum - weight];
                ways[sum] = ways[sum].zip(from).and_then(|(a, b)| a.checked_add(b));
                longest[sum] = longest[sum].max(longest[sum - weight].map(|length| length + 1));
            }
        }
        (count, (self.heaviest_until(self.need), size_max))
    }

    /// How many nodes weigh so much, heaviest first.
    fn heaviest_until(&self, weight: u64) -> usize {
        let mut sum = 0;
        let order = self.by_weight();
        let done = order.iter().position(|&i| {
            sum += u64::from(self.weights[i]);
            sum >= weight
        });
        done.map_or(order.len(), |last| last + 1)
    }

    /// The minimal quorums.
    pub(crate) fn list(&self) -> Vec<NodeSet> {
        let order = self.by_weight();
        let mut rest = vec![0; order.len() + 1];
        for (at, &i) in order.iter().enumerate().rev() {
            rest[at] = rest[at + 1] + u64::from(self.weights[i]);
        }
        let mut found = Vec::new();
        self.extend(&order, &rest, 0, 0, &mut NodeSet::with_room(self.weights.len()), &mut found);
        found
    }

    fn extend(
        &self,
        order: &[usize],
        rest: &[u64],
        from: usize,
        sum: u64,
        set: &mut NodeSet,
        found: &mut Vec<NodeSet>,
    ) {
        if sum >= self.need {
            found.push(set.clone());
            return;
        }
        for at in from..order.len() {
            if sum + rest[at] < self.need {
                return;
            }
            let node = NodeId::at(order[at]);
            set.insert(node);
            let sum = sum + u64::from(self.weights[order[at]]);
            self.extend(order, rest, at + 1, sum, set, found);
            set.remove(node);
        }
    }

    /// Nodes of the same weight are one class; a type of quorum is how many it has of each. None if
    /// there are more than so many types.
    pub(crate) fn orbits(&self, types_max: usize) -> Option<Orbits> {
        let mut classes: Vec<u32> = self.weights.clone();
        classes.sort_by_key(|&w| core::cmp::Reverse(w));
        classes.dedup();
        let class = |w: &u32| classes.iter().position(|c| c == w).unwrap_or(0);
        let of: Vec<_> = self.weights.iter().map(class).collect();
        let mut sizes = vec![0u64; classes.len()];
        of.iter().for_each(|&class| sizes[class] += 1);
        let mut types = Vec::new();
        let mut taken = Vec::new();
        self.types(&classes, &sizes, 0, &mut taken, &mut types, types_max);
        (types.len() <= types_max).then_some(Orbits { of, sizes, types })
    }

    fn types(
        &self,
        classes: &[u32],
        sizes: &[u64],
        sum: u64,
        taken: &mut Vec<u64>,
        types: &mut Vec<Vec<u64>>,
        types_max: usize,
    ) {
        let class = taken.len();
        let Some(weight) = classes.get(class).map(|&w| u64::from(w)).filter(|&w| w > 0) else {
            return;
        };
        let left = classes.iter().zip(sizes).skip(class).map(|(&w, size)| u64::from(w) * size);
        if sum + left.sum::<u64>() < self.need {
            return;
        }
        let enough = (self.need - sum).div_ceil(weight);
        if enough <= sizes[class] {
            let mut whole = taken.clone();
            whole.push(enough);
            whole.resize(classes.len(), 0);
            types.push(whole);
        }
        for more in 0..enough.min(sizes[class] + 1) {
            if types.len() > types_max {
                return;
            }
            taken.push(more);
            self.types(classes, sizes, sum + more * weight, taken, types, types_max);
            taken.pop();
        }
    }

    /// A set that meets all quorums and contains none: it and the rest both weigh too little.
    pub(crate) fn dominating(&self) -> Option<NodeSet> {
        let (total, need) = (self.total() as usize, self.need as usize);
        // By sum: the node that was added last to reach it first.
        let mut last: Vec<Option<usize>> = vec![None; need];
        let mut reached = vec![false; need];
        reached[0] = true;
        for i in self.by_weight() {
            let weight = self.weights[i] as usize;
            for sum in (weight..need).rev() {
                if !reached[sum] && reached[sum - weight] {
                    (reached[sum], last[sum]) = (true, Some(i));
                }
            }
        }
        let mut sum = (total + 1 - need..need).find(|&sum| reached[sum])?;
        let mut set = NodeSet::with_room(self.weights.len());
        while let Some(i) = last[sum] {
            set.insert(NodeId::at(i));
            sum -= self.weights[i] as usize;
        }
        Some(set)
    }

    /// How many crashes are always survived: the heaviest ones hurt most.
    pub(crate) fn resilience(&self) -> usize {
        self.heaviest_until(self.total() - self.need + 1) - 1
    }

    /// The probability that the living weigh too little, each being dead with probability `p`.
    pub(crate) fn failure(&self, p: f64) -> f64 {
        let need = self.need as usize;
        // By weight of the living, up to `need`; the last one stands for more.
        let mut chance = vec![0.0; need + 1];
        chance[0] = 1.0;
        for &weight in &self.weights {
            let weight = weight as usize;
            let enough: f64 = chance[need.saturating_sub(weight)..need].iter().sum();
            chance[need] += enough * (1.0 - p);
            for sum in (0..need).rev() {
                let from = if sum >= weight { chance[sum - weight] } else { 0.0 };
                chance[sum] = chance[sum] * p + from * (1.0 - p);
            }
        }
        chance[..need].iter().sum()
    }

    /// Each node with the next ones where all are alike, so that all are asked equally often; else
    /// with the heaviest ones.
    pub(crate) fn assignment(&self) -> PerNode<NodeSet> {
        let nodes = self.weights.len();
        if self.is_symmetric() == Some(true) {
            let size = self.heaviest_until(self.need);
            return PerNode::new(nodes, |node| {
                (0..size).map(|step| NodeId::at((node.index() + step) % nodes)).collect()
            });
        }
        PerNode::new(nodes, |node| self.with_heaviest(node))
    }

    fn with_heaviest(&self, node: NodeId) -> NodeSet {
        let mut set = NodeSet::with_room(self.weights.len());
        set.insert(node);
        let mut sum = u64::from(self.weights[node.index()]);
        let others: Vec<_> = self.by_weight().into_iter().filter(|&i| i != node.index()).collect();
        for &i in others.iter().take_while(|&&i| {
            let more = sum < self.need;
            sum += if more { u64::from(self.weights[i]) } else { 0 };
            more
        }) {
            set.insert(NodeId::at(i));
        }
        for &i in others.iter().rev().filter(|&&i| set.contains(NodeId::at(i))).collect::<Vec<_>>()
        {
            let weight = u64::from(self.weights[i]);
            if sum - weight >= self.need {
                sum -= weight;
                set.remove(NodeId::at(i));
            }
        }
        set
    }
}

/// In how many ways so many can be chosen of so many; none if too many to count.
fn choose(of: usize, size: usize) -> Option<u128> {
    let few = size.min(of - size) as u128;
    (0..few).try_fold(1u128, |ways, i| Some(ways.checked_mul(of as u128 - i)? / (i + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_that_of_the_list() {
        for weights in [vec![3, 1, 1, 1, 1], vec![3, 2, 2, 1], vec![5, 4, 3, 3, 2, 1, 1], vec![2]] {
            let votes = Votes::weighted(weights);
            let list = votes.list();
            let (count, (min, max)) = votes.summary();
            assert_eq!(count, Some(list.len() as u128));
            assert_eq!(list.iter().map(NodeSet::len).min(), Some(min));
            assert_eq!(list.iter().map(NodeSet::len).max(), Some(max));
        }
    }

    #[test]
    fn large_majorities_are_counted_without_a_list() {
        assert_eq!(Votes::majority(31).summary().0, Some(300_540_195));
        assert_eq!(Votes::majority(1000).summary(), (None, (501, 501)));
        assert_eq!(Votes::weighted(vec![2, 2, 2, 0]).summary(), (Some(3), (2, 2)));
    }
}
