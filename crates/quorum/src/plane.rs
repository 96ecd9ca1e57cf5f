//! Finite projective planes: any two lines meet in exactly one point, so lines are ideal quorums.
//!
//! A plane of order k has k² + k + 1 points and as many lines, each of k + 1 points. It is known for
//! prime powers, here for those up to 32: points are the triples (1,a,b), (0,1,a), (0,0,1) over the
//! field of k elements, in this order; lines have the same triples; a point is on a line if the inner
//! product is 0. Three nodes are the triangle, the degenerate plane of order 1.
//!
//! For other numbers of nodes the next larger plane is taken and its spare points are second names
//! of the first nodes (Maekawa): point n + 1 is node 1, and so on. Any two quorums still intersect,
//! but they differ in size, share more than one node, and may contain each other.

use alloc::vec;
use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet, PerNode};

use crate::field::Field;

/// The largest order whose field is known.
const ORDER_MAX: usize = 32;
/// The most nodes a plane is known for.
pub(crate) const NODES_MAX: usize = ORDER_MAX * ORDER_MAX + ORDER_MAX + 1;

/// A projective plane, or what is left of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plane {
    nodes: usize,
    order: usize,
    /// The lines of the whole plane, as positions of points.
    lines: Vec<Vec<usize>>,
}

impl Plane {
    /// The smallest plane with at least so many points; none beyond the largest known.
    pub(crate) fn new(nodes: usize) -> Option<Self> {
        let fits = |order: &usize| order * order + order + 1 >= nodes;
        if fits(&1) {
            let lines = vec![vec![0, 1], vec![0, 2], vec![1, 2]];
            return Some(Self { nodes, order: 1, lines });
        }
        let mut orders = (2..=ORDER_MAX).filter(fits);
        let (order, field) =
            orders.find_map(|order| Field::new(order).map(|field| (order, field)))?;
        Some(Self { nodes, order, lines: lines(order, &field) })
    }

    /// A line has one point more than this.
    #[must_use]
    pub const fn order(&self) -> usize {
        self.order
    }

    /// Has every node one point of the plane?
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.nodes == self.order * self.order + self.order + 1
    }

    pub(crate) fn list(&self) -> Vec<NodeSet> {
        self.lines.iter().map(|line| self.quorum(line)).collect()
    }

    fn quorum(&self, line: &[usize]) -> NodeSet {
        let mut set = NodeSet::with_room(self.nodes);
        set.extend(line.iter().map(|point| NodeId::at(point % self.nodes)));
        set
    }

    /// To every point a line through it, to each another one: a matching, which exists because
    /// every point is on as many lines as a line has points.
    pub(crate) fn assignment(&self) -> PerNode<NodeSet> {
        let mut through = vec![Vec::new(); self.lines.len()];
        for (line, points) in self.lines.iter().enumerate() {
            points.iter().for_each(|&point| through[point].push(line));
        }
        let mut matching = Matching { through, owner: vec![None; self.lines.len()] };
        for point in 0..self.lines.len() {
            let found = matching.augment(point, &mut vec![false; self.lines.len()]);
            assert!(found, "a regular graph has a perfect matching");
        }
        let mut line_of = vec![0; self.lines.len()];
        for (line, point) in matching.owner.iter().enumerate() {
            line_of[point.expect("the matching is perfect")] = line;
        }
        PerNode::new(self.nodes, |node| self.quorum(&self.lines[line_of[node.index()]]))
    }
}

fn lines(order: usize, field: &Field) -> Vec<Vec<usize>> {
    let pairs = (0..order).flat_map(|a| (0..order).map(move |b| [1, a, b]));
    let triples: Vec<[usize; 3]> =
        pairs.chain((0..order).map(|a| [0, 1, a])).chain([[0, 0, 1]]).collect();
    let on = |line: &[usize; 3], point: &[usize; 3]| {
        let terms = line.iter().zip(point).map(|(&a, &b)| field.multiply(a, b));
        terms.fold(0, |sum, term| field.add(sum, term)) == 0
    };
    let points = |line: &[usize; 3]| {
        let on_it = triples.iter().enumerate().filter(|(_, point)| on(line, point));
        on_it.map(|(i, _)| i).collect()
    };
    triples.iter().map(points).collect()
}

struct Matching {
    /// By point: the lines through it.
    through: Vec<Vec<usize>>,
    /// By line: the point that has it.
    owner: Vec<Option<usize>>,
}

impl Matching {
    /// Gives the point a line, if necessary by giving others another one.
    fn augment(&mut self, point: usize, tried: &mut [bool]) -> bool {
        for at in 0..self.through[point].len() {
            let line = self.through[point][at];
            if core::mem::replace(&mut tried[line], true) {
                continue;
            }
            let free = match self.owner[line] {
                None => true,
                Some(other) => self.augment(other, tried),
            };
            if free {
                self.owner[line] = Some(point);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quorums::written;
    use crate::{Quorums, verify};
    use alloc::string::String;

    #[test]
    fn listings_are_as_published() {
        let list = |nodes| -> String {
            let quorums = Quorums::new(nodes, Plane::new(nodes).unwrap().list()).unwrap();
            quorums.sets().iter().map(written).collect()
        };
        assert_eq!(list(7), "{1,2,7}{1,3,5}{1,4,6}{2,3,6}{2,4,5}{3,4,7}{5,6,7}");
        assert_eq!(
            list(13),
            "{1,2,3,13}{1,4,7,10}{1,5,9,11}{1,6,8,12}{2,4,9,12}{2,5,8,10}{2,6,7,11}{3,4,8,11}\
             {3,5,7,12}{3,6,9,10}{4,5,6,13}{7,8,9,13}{10,11,12,13}"
        );
    }

    #[test]
    fn planes_are_ideal_and_every_node_has_a_line_of_its_own() {
        for (order, nodes) in
            [(2, 7), (3, 13), (4, 21), (5, 31), (7, 57), (8, 73), (9, 91), (11, 133), (16, 273)]
        {
            let plane = Plane::new(nodes).unwrap();
            assert!(plane.is_whole() && plane.order() == order);
            let quorums = Quorums::new(nodes, plane.list()).unwrap();
            assert_eq!(quorums.sizes(), (order + 1, order + 1));
            assert_eq!(verify::not_ideal(&quorums), None);
            assert_eq!(verify::uneven(&quorums), None);
            let assignment = plane.assignment();
            assert_eq!(verify::outsider(&assignment), None);
            let own: alloc::collections::BTreeSet<_> =
                assignment.iter().map(|(_, set)| set.clone()).collect();
            assert_eq!(own.len(), nodes);
        }
    }

    #[test]
    fn other_numbers_take_the_next_plane_and_still_intersect() {
        for nodes in 1..100 {
            let plane = Plane::new(nodes).unwrap();
            let quorums = Quorums::new(nodes, plane.list()).unwrap();
            assert_eq!(verify::disjoint(&quorums), None, "{nodes}");
            assert_eq!(verify::outsider(&plane.assignment()), None, "{nodes}");
        }
        assert_eq!(Plane::new(22).unwrap().order(), 5);
        assert_eq!(Plane::new(32).unwrap().order(), 7);
        assert!(Plane::new(NODES_MAX).unwrap().is_whole());
        assert_eq!(Plane::new(NODES_MAX + 1), None);
    }
}
