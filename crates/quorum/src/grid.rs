//! Grids: the quorum of a node is its row and its column (Maekawa).
//!
//! Filled row by row, `⌈√n⌉` columns wide; the last row may be ragged. Any two quorums still intersect:
//! a full row has a cell in every column, and two quorums in the last row share it. But not every
//! such family is minimal: with a last row of one node, or with one full row only, some quorums
//! contain others.

use alloc::vec;
use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet, PerNode};

use crate::load::Orbits;

/// The rows and columns of a grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    nodes: usize,
    width: usize,
}

impl Grid {
    /// As square as it gets.
    pub(crate) fn new(nodes: usize) -> Self {
        let width = (1..=nodes).find(|width| width * width >= nodes).unwrap_or(1);
        Self { nodes, width }
    }

    /// How many columns there are.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// How many rows are full.
    #[must_use]
    pub const fn full_rows(&self) -> usize {
        self.nodes / self.width
    }

    /// How many nodes the ragged last row has; 0 if all rows are full.
    #[must_use]
    pub const fn ragged(&self) -> usize {
        self.nodes % self.width
    }

    /// The row and column of a node, counted from 0.
    #[must_use]
    pub const fn place(&self, node: NodeId) -> (usize, usize) {
        (node.index() / self.width, node.index() % self.width)
    }

    /// The row and the column of a node.
    pub(crate) fn quorum(&self, node: NodeId) -> NodeSet {
        let (row, column) = self.place(node);
        let first = row * self.width;
        let in_row = first..(first + self.width).min(self.nodes);
        let in_column = (column..self.nodes).step_by(self.width);
        let mut set = NodeSet::with_room(self.nodes);
        set.extend(in_row.chain(in_column).map(NodeId::at));
        set
    }

    pub(crate) fn list(&self) -> Vec<NodeSet> {
        NodeId::first(self.nodes).map(|node| self.quorum(node)).collect()
    }

    pub(crate) fn assignment(&self) -> PerNode<NodeSet> {
        PerNode::new(self.nodes, |node| self.quorum(node))
    }

    /// The sizes of the smallest and the largest quorum.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let (rows, width, ragged) = (self.full_rows(), self.width, self.ragged());
        if ragged == 0 {
            return (rows + width - 1, rows + width - 1);
        }
        let sizes = [width + rows, width + rows - 1, ragged + rows];
        (sizes[1].min(sizes[2]), sizes[0])
    }

    /// Does no quorum contain another?
    pub(crate) const fn is_coterie(&self) -> bool {
        self.ragged() == 0 || (self.ragged() > 1 && self.full_rows() > 1)
    }

    /// A full row meets every column, and contains no column where there are two rows.
    pub(crate) fn dominating(&self) -> Option<NodeSet> {
        (self.full_rows() > 1 && self.width > 1).then(|| NodeSet::first(self.width))
    }

    /// Cells differ only in whether their row is the ragged one and whether their column has a cell
    /// in it; so do quorums.
    pub(crate) fn orbits(&self) -> Orbits {
        let (rows, width, ragged) = (self.full_rows(), self.width, self.ragged());
        let class = |node: NodeId| match self.place(node) {
            (row, _) if row == rows => 2,
            (_, column) => usize::from(column >= ragged),
        };
        let of = NodeId::first(self.nodes).map(class).collect();
        let [rows, width, ragged] = [rows, width, ragged].map(|n| n as u64);
        let sizes = vec![rows * ragged, rows * (width - ragged), ragged];
        let inner = vec![ragged, width - ragged + rows - 1, 0];
        let types = if ragged == 0 {
            vec![inner]
        } else {
            vec![vec![ragged + rows - 1, width - ragged, 1], inner, vec![rows, 0, ragged]]
        };
        Orbits { of, sizes, types }
    }

    /// How many crashes are always survived. To stop all quorums, hit all rows, or all columns, or
    /// all full rows and all columns that reach the last row.
    pub(crate) fn resilience(&self) -> usize {
        let (rows, width, ragged) = (self.full_rows(), self.width, self.ragged());
        let hits =
            if ragged == 0 { rows.min(width) } else { (rows + 1).min(width).min(rows.max(ragged)) };
        hits - 1
    }

    /// The probability that no row or no column is alive; only where all rows are full.
    ///
    /// Neither a row nor a column alive is summed row by row, by how many columns have been hit:
    /// sums of positive numbers only, hence without loss of digits.
    pub(crate) fn failure(&self, p: f64) -> Option<f64> {
        if self.ragged() > 0 {
            return None;
        }
        let (rows, width) = (self.full_rows(), self.width);
        let q = 1.0 - p;
        let no_row = power(1.0 - power(q, width), rows);
        let no_column = power(1.0 - power(q, rows), width);
        let mut hit = vec![0.0; width + 1];
        hit[0] = 1.0;
        for _ in 0..rows {
            let mut next = vec![0.0; width + 1];
            for (before, &chance) in hit.iter().enumerate() {
                let untouched = width - before;
                let mut ways = power(q, untouched) * chance;
                next[before] += ways * (1.0 - power(q, before));
                for more in 1..=untouched {
                    // From `more - 1` of the untouched columns to `more`.
                    ways = binomial_step(ways, untouched, more, p, q, chance);
                    next[before + more] += ways;
                }
            }
            hit = next;
        }
        Some(no_row + no_column - hit[width])
    }
}

/// The next term of a binomial distribution times `chance`; from the start where `q` is 0.
fn binomial_step(term: f64, of: usize, take: usize, p: f64, q: f64, chance: f64) -> f64 {
    if q > 0.0 {
        term * (of - take + 1) as f64 / take as f64 * (p / q)
    } else if take == of {
        chance
    } else {
        0.0
    }
}

/// A power; the standard library is not there.
pub(crate) fn power(base: f64, exponent: usize) -> f64 {
    let (mut result, mut square, mut left) = (1.0, base, exponent);
    while left > 0 {
        if left % 2 == 1 {
            result *= square;
        }
        square *= square;
        left /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quorums;

    #[test]
    fn what_is_said_without_a_list_is_what_the_list_says() {
        for nodes in 4..60 {
            let grid = Grid::new(nodes);
            let list = Quorums::new(nodes, grid.list()).unwrap();
            assert_eq!(list.sizes(), grid.sizes(), "{nodes}");
            assert_eq!(list.sets().len(), nodes, "{nodes}");
            assert_eq!(list.minimal().sets().len() == nodes, grid.is_coterie(), "{nodes}");
        }
    }

    #[test]
    fn failure_is_certain_or_impossible_at_the_ends() {
        let grid = Grid::new(25);
        assert_eq!(grid.failure(0.0), Some(0.0));
        assert_eq!(grid.failure(1.0), Some(1.0));
    }
}
