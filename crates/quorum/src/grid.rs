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
    /// A grid of so many nodes, as square as it gets.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
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
    #[must_use]
    pub fn quorum(&self, node: NodeId) -> NodeSet {
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

    /// The probability that no quorum is alive.
    ///
    /// Full rows are gone through one by one, with how many columns have been hit so far: of those that
    /// reach the ragged row, and of the others. The ragged row decides at the end.
    pub(crate) fn failure(&self, p: f64) -> f64 {
        let (rows, ragged, rest) = (self.full_rows(), self.ragged(), self.width - self.ragged());
        let q = 1.0 - p;
        // By columns hit: the probability with which no full row is alive, and that in any case.
        let no_row = self.without_full_row(p);
        let column_hit = 1.0 - power(q, rows);
        let hit = |h: usize| binomial(ragged, h, column_hit) * power(column_hit, rest);
        let row_alive = if ragged == 0 { 0.0 } else { power(q, ragged) };
        // The ragged row is alive: every column that reaches it is hit, and what is alive of full
        // rows finds no other column.
        let over: f64 = no_row[ragged][..rest].iter().sum();
        let with_row = row_alive * (hit(ragged) + over);
        // It is not: no full row is alive, or one is and finds no column.
        let none: f64 = no_row.iter().flatten().sum();
        let misses = |h: usize| match h {
            _ if h == ragged => 1.0 - row_alive,
            _ => power(p, ragged - h),
        };
        let no_column = (0..=ragged).map(|h| (hit(h) - no_row[h][rest]).max(0.0) * misses(h));
        with_row + (1.0 - row_alive) * none + no_column.sum::<f64>()
    }

    /// By columns hit, of those that reach the ragged row and of the others: the probability that it
    /// is so and that no full row is alive.
    fn without_full_row(&self, p: f64) -> Vec<Vec<f64>> {
        let (ragged, rest) = (self.ragged(), self.width - self.ragged());
        let row_alive = power(1.0 - p, self.width);
        let mut now = vec![vec![0.0; rest + 1]; ragged + 1];
        now[0][0] = 1.0;
        for _ in 0..self.full_rows() {
            let mut next = vec![vec![0.0; rest + 1]; ragged + 1];
            for (from, line) in now.iter().enumerate() {
                let line = spread(line, p);
                for (to, next) in next.iter_mut().enumerate().skip(from) {
                    let chance = binomial(ragged - from, to - from, p);
                    next.iter_mut().zip(&line).for_each(|(next, here)| *next += chance * here);
                }
            }
            for (next, before) in next.iter_mut().flatten().zip(now.iter().flatten()) {
                *next = (*next - row_alive * before).max(0.0);
            }
            now = next;
        }
        now
    }
}

/// By columns hit: their probability after one more row.
fn spread(line: &[f64], p: f64) -> Vec<f64> {
    let columns = line.len() - 1;
    let mut next = vec![0.0; line.len()];
    for (from, here) in line.iter().enumerate().filter(|(_, here)| **here > 0.0) {
        for (more, next) in next[from..].iter_mut().enumerate() {
            *next += here * binomial(columns - from, more, p);
        }
    }
    next
}

/// The probability of so many hits in so many tries.
fn binomial(tries: usize, hits: usize, p: f64) -> f64 {
    let few = hits.min(tries - hits);
    let choose = (0..few).fold(1.0, |c, i| c * (tries - i) as f64 / (i + 1) as f64);
    choose * power(p, hits) * power(1.0 - p, tries - hits)
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
        for nodes in [1, 2, 23, 25, 10_000] {
            let grid = Grid::new(nodes);
            assert_eq!((grid.failure(0.0), grid.failure(1.0)), (0.0, 1.0));
        }
    }
}
