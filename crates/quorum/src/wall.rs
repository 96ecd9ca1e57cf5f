//! Crumbling walls (Peleg and Wool): a quorum is one full row and a node of every row below.
//!
//! A row of one node below the top makes everything above it redundant.

use alloc::vec;
use alloc::vec::Vec;

use num_rational::Ratio;
use num_traits::{CheckedAdd, CheckedMul};
use quorate_core::{NodeId, NodeSet, PerNode};

use crate::grid::power;
use crate::load::{Load, Orbits};

/// The rows of a wall, from top to bottom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wall {
    widths: Vec<usize>,
}

impl Wall {
    /// Rows of these widths, none of them 0.
    pub(crate) const fn new(widths: Vec<usize>) -> Self {
        Self { widths }
    }

    /// The wall `CWlog`: row i has `⌊log₂ 2i⌋` nodes. What is left over and does not fill the next row
    /// joins the last one.
    pub(crate) fn logarithmic(nodes: usize) -> Self {
        let mut widths: Vec<usize> = Vec::new();
        let mut left = nodes;
        while left > 0 {
            let next = (2 * (widths.len() + 1)).ilog2() as usize;
            match widths.last_mut() {
                Some(last) if left < next => {
                    *last += left;
                    left = 0;
                }
                _ => {
                    widths.push(next);
                    left -= next;
                }
            }
        }
        Self { widths }
    }

    /// How many nodes each row has, from top to bottom.
    #[must_use]
    pub fn widths(&self) -> &[usize] {
        &self.widths
    }

    /// The positions of the nodes of each row.
    pub(crate) fn rows(&self) -> impl Iterator<Item = core::ops::Range<usize>> + '_ {
        self.widths.iter().scan(0, |start, &width| {
            let first = *start;
            *start += width;
            Some(first..*start)
        })
    }

    fn nodes(&self) -> usize {
        self.widths.iter().sum()
    }

    pub(crate) fn list(&self) -> Vec<NodeSet> {
        let rows: Vec<_> = self.rows().collect();
        let mut quorums = Vec::new();
        for (top, row) in rows.iter().enumerate() {
            let mut full = NodeSet::with_room(self.nodes());
            full.extend(row.clone().map(NodeId::at));
            let mut partial = vec![full];
            for below in &rows[top + 1..] {
                let with = |set: &NodeSet| {
                    let set = set.clone();
                    below.clone().map(move |i| {
                        let mut set = set.clone();
                        set.insert(NodeId::at(i));
                        set
                    })
                };
                partial = partial.iter().flat_map(with).collect();
            }
            quorums.append(&mut partial);
        }
        quorums
    }

    /// By row: how many quorums have it as their full one; none if too many to count.
    fn counts(&self) -> Option<Vec<u128>> {
        let mut below = Some(1u128);
        let mut counts = Vec::new();
        for &width in self.widths.iter().rev() {
            counts.push(below?);
            below = below.and_then(|count| count.checked_mul(width as u128));
        }
        counts.reverse();
        Some(counts)
    }

    pub(crate) fn count(&self) -> Option<u128> {
        self.counts()?.into_iter().try_fold(0u128, u128::checked_add)
    }

    fn sizes_by_row(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        let rows = self.widths.len();
        self.widths.iter().enumerate().map(move |(row, width)| width + rows - 1 - row)
    }

    pub(crate) fn sizes(&self) -> (usize, usize) {
        let sizes = self.sizes_by_row();
        (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0))
    }

    pub(crate) fn is_coterie(&self) -> bool {
        self.widths.iter().skip(1).all(|&width| width > 1)
    }

    pub(crate) fn is_symmetric(&self) -> Option<bool> {
        let counts = self.counts()?;
        let (min, max) = self.sizes();
        let mut above = 0u128;
        let mut degrees = Vec::new();
        for (&width, count) in self.widths.iter().zip(counts) {
            degrees.push(count + above / width as u128);
            above = above.checked_add(count)?;
        }
        Some(min == max && degrees.iter().all(|&degree| degree == degrees[0]))
    }

    /// A node of every row meets all quorums; it contains none if the top row is wider than one. If
    /// it is not, and no row below is narrow, the wall is not dominated (Peleg and Wool).
    pub(crate) fn dominating(&self) -> Option<NodeSet> {
        // A row of one node makes what is above it redundant: it is the top row.
        let narrow = self.widths.iter().rposition(|&width| width == 1);
        let none = narrow.is_some();
        (!none).then(|| self.rows().map(|row| NodeId::at(row.start)).collect())
    }

    /// The nodes of a row are alike; so are the quorums with the same full row.
    pub(crate) fn orbits(&self) -> Orbits {
        let rows = self.widths.len();
        let of = self.widths.iter().enumerate();
        let of = of.flat_map(|(row, &width)| core::iter::repeat_n(row, width)).collect();
        let sizes = self.widths.iter().map(|&width| width as u64).collect();
        let kind = |top: usize| -> Vec<u64> {
            let part = |row: usize| match row.cmp(&top) {
                core::cmp::Ordering::Less => 0,
                core::cmp::Ordering::Equal => self.widths[row] as u64,
                core::cmp::Ordering::Greater => 1,
            };
            (0..rows).map(part).collect()
        };
        Orbits { of, sizes, types: (0..rows).map(kind).collect() }
    }

    /// The load. With s the sum of amounts of quorums whose full row is this one or one above, a row of
    /// width w allows s to become 1 + (1 - 1/w) s, and s must not be above the width of any row below.
    /// Where the fractions get too long, it is computed with rounding down and with rounding up.
    pub(crate) fn load(&self) -> Load {
        /// What s is rounded to a multiple of.
        const UNIT: i128 = 1 << 60;
        if let Some(sum) = self.sum() {
            return Load::Exact(sum.recip());
        }
        let rounded = |up: bool| {
            let steps = self.widths.iter().zip(self.caps()).fold(0, |sum, (&width, cap)| {
                let width = width as i128;
                let product = sum * (width - 1) + if up { width - 1 } else { 0 };
                (UNIT + product / width).min(cap as i128 * UNIT)
            });
            Ratio::new(UNIT, steps)
        };
        Load::Between(rounded(true), rounded(false))
    }

    /// The largest sum of amounts; none if the fraction gets too long.
    fn sum(&self) -> Option<Ratio<i128>> {
        let one = Ratio::from_integer(1);
        self.widths.iter().zip(self.caps()).try_fold(
            Ratio::from_integer(0),
            |sum, (&width, cap)| {
                let kept = Ratio::new(width as i128 - 1, width as i128);
                let sum = sum.checked_mul(&kept)?.checked_add(&one)?;
                Some(sum.min(Ratio::from_integer(cap as i128)))
            },
        )
    }

    /// By row: the width of the narrowest row below, or a number beyond all sums.
    fn caps(&self) -> impl Iterator<Item = usize> + '_ {
        let below = |row: usize| self.widths[row + 1..].iter().copied().min();
        (0..self.widths.len()).map(move |row| below(row).unwrap_or(self.nodes() + 1))
    }

    /// How many crashes are always survived. To stop all quorums, hit every row; or a full row, and
    /// every row below it.
    pub(crate) fn resilience(&self) -> usize {
        self.sizes().0.min(self.widths.len()) - 1
    }

    /// The probability that no quorum is alive. Row by row: it is fully alive, or one of it is and
    /// the wall above has a quorum.
    pub(crate) fn failure(&self, p: f64) -> f64 {
        // The probability of failure, not of success: its digits count where it is small.
        let fails = |above: f64, &width: &usize| {
            let (dead, full) = (power(p, width), power(1.0 - p, width));
            dead + (1.0 - dead - full) * above
        };
        self.widths.iter().fold(1.0, fails)
    }

    /// The smallest quorum through the node: with its own row full, or with a row above. In the rows
    /// below, nodes take turns.
    pub(crate) fn assignment(&self) -> PerNode<NodeSet> {
        let rows: Vec<_> = self.rows().collect();
        let sizes: Vec<_> = self.sizes_by_row().collect();
        PerNode::new(self.nodes(), |node| {
            let i = node.index();
            let own = rows.iter().position(|row| row.contains(&i)).unwrap_or(0);
            let top = (0..=own).rev().min_by_key(|&row| sizes[row]).unwrap_or(own);
            let mut set = NodeSet::with_room(self.nodes());
            set.extend(rows[top].clone().map(NodeId::at));
            for (row, places) in rows.iter().enumerate().skip(top + 1) {
                let turn = if row == own { i } else { places.start + i % places.len() };
                set.insert(NodeId::at(turn));
            }
            set
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithmic_walls_are_filled_row_by_row() {
        let widths = |nodes| Wall::logarithmic(nodes).widths;
        assert_eq!(widths(1), [1]);
        assert_eq!(widths(8), [1, 2, 2, 3]);
        assert_eq!(widths(7), [1, 2, 4]);
        assert_eq!(widths(17), [1, 2, 2, 3, 3, 3, 3]);
        for nodes in 1..200 {
            assert_eq!(Wall::logarithmic(nodes).nodes(), nodes);
        }
    }

    #[test]
    fn what_is_said_without_a_list_is_what_the_list_says() {
        for widths in [vec![1, 2, 3], vec![2, 2, 3], vec![1, 1, 2], vec![3], vec![2, 1], vec![4, 3]]
        {
            let wall = Wall::new(widths);
            let list = crate::Quorums::new(wall.nodes(), wall.list()).unwrap();
            assert_eq!(wall.count(), Some(list.sets().len() as u128), "{wall:?}");
            assert_eq!(wall.sizes(), list.sizes(), "{wall:?}");
            assert_eq!(wall.is_coterie(), list.minimal() == list, "{wall:?}");
            assert_eq!(wall.is_symmetric(), Some(crate::verify::uneven(&list).is_none()));
        }
    }
}
