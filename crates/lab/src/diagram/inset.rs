//! Who is linked with whom, as a small drawing below a diagram.

use std::f64::consts::TAU;
use std::fmt::Write;

use quorate_core::NodeId;

use super::Picture;
use super::svg::escape;

/// The radius of a node.
const NODE: f64 = 10.0;
/// Between the middles of two neighbours on the circle, at least.
const APART: f64 = 30.0;
const RADIUS_MIN: f64 = 44.0;

/// Appends the topology, if not everybody is linked with everybody, and returns what is below it.
pub(super) fn draw(out: &mut String, picture: &Picture, left: f64, top: f64) -> f64 {
    let links = &picture.setting.links;
    if links.is_empty() {
        return top;
    }
    let nodes = picture.nodes;
    let places = tree(nodes, links).unwrap_or_else(|| circle(nodes));
    let (left_most, top_most) = (left + NODE + 2.0, top + 22.0 + NODE);
    let place = |node: NodeId| {
        let (x, y) = places[node.index()];
        (left_most + x, top_most + y)
    };
    let lowest = places.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    let _ =
        writeln!(out, "<text x=\"{left:.1}\" y=\"{:.1}\" fill=\"#555\">links</text>", top + 8.0);
    for &(from, to) in links {
        let is_two_way = links.contains(&(to, from));
        if is_two_way && from > to {
            continue;
        }
        let ((x1, y1), (x2, y2)) = (place(from), place(to));
        let length = (x2 - x1).hypot(y2 - y1).max(1.0);
        let (dx, dy) = ((x2 - x1) / length, (y2 - y1) / length);
        let (x1, y1) = (x1 + dx * NODE, y1 + dy * NODE);
        let (x2, y2) = (x2 - dx * NODE, y2 - dy * NODE);
        let _ = write!(
            out,
            "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"#777\" stroke-width=\"1.2\" \
             fill=\"none\"/>"
        );
        if !is_two_way {
            let (back_x, back_y) = (x2 - dx * 6.0, y2 - dy * 6.0);
            let _ = write!(
                out,
                "<path d=\"M{x2:.1} {y2:.1}L{:.1} {:.1}L{:.1} {:.1}Z\" fill=\"#777\"/>",
                back_x - dy * 3.0,
                back_y + dx * 3.0,
                back_x + dy * 3.0,
                back_y - dx * 3.0
            );
        }
        out.push('\n');
    }
    for node in NodeId::first(nodes) {
        let (x, y) = place(node);
        let name = picture.setting.names.get(node.index()).map_or("", String::as_str);
        let _ = writeln!(
            out,
            "<g><title>{node} {}</title><circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{NODE}\" \
             fill=\"#fff\" stroke=\"#555\"/><text x=\"{x:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{node}</text></g>",
            escape(name),
            y + 4.0
        );
    }
    top_most + lowest + NODE + 8.0
}

/// Nodes on a circle, the first one at the top.
fn circle(nodes: usize) -> Vec<(f64, f64)> {
    let radius = (nodes as f64 * APART / TAU).max(RADIUS_MIN);
    let place = |i: usize| {
        let angle = TAU * i as f64 / nodes as f64;
        (radius * (1.0 + angle.sin()), radius * (1.0 - angle.cos()))
    };
    (0..nodes).map(place).collect()
}

/// Nodes of a tree: the first one at the top, every parent above the middle of its children. None if
/// the links are no tree.
fn tree(nodes: usize, links: &[(NodeId, NodeId)]) -> Option<Vec<(f64, f64)>> {
    let is_two_way = links.iter().all(|&(a, b)| links.contains(&(b, a)));
    if !is_two_way || links.len() != 2 * nodes.checked_sub(1)? {
        return None;
    }
    let mut hung = Hung { links, leaves: 0, seen: vec![false; nodes], places: vec![None; nodes] };
    hung.hang(NodeId::at(0), 0);
    hung.places.into_iter().collect()
}

/// A tree as far as it is laid out.
struct Hung<'a> {
    links: &'a [(NodeId, NodeId)],
    leaves: usize,
    seen: Vec<bool>,
    places: Vec<Option<(f64, f64)>>,
}

impl Hung<'_> {
    /// Places a node and what hangs from it, and returns where it is.
    fn hang(&mut self, node: NodeId, level: usize) -> f64 {
        self.seen[node.index()] = true;
        let mut below = Vec::new();
        for &(from, to) in self.links {
            if from == node && !self.seen[to.index()] {
                below.push(self.hang(to, level + 1));
            }
        }
        let x = match (below.first(), below.last()) {
            (Some(first), Some(last)) => f64::midpoint(*first, *last),
            _ => {
                self.leaves += 1;
                (self.leaves - 1) as f64 * APART
            }
        };
        self.places[node.index()] = Some((x, level as f64 * APART * 1.3));
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_hangs_from_its_first_node() {
        let links = |pairs: &[(usize, usize)]| -> Vec<(NodeId, NodeId)> {
            let both = pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
            both.map(|(a, b)| (NodeId::at(a), NodeId::at(b))).collect()
        };
        let places = tree(4, &links(&[(0, 1), (0, 2), (1, 3)])).expect("it is a tree");
        assert_eq!(places, [(15.0, 0.0), (0.0, 39.0), (30.0, 39.0), (0.0, 78.0)]);
        // A ring beside a node has as many links as a tree.
        assert_eq!(tree(4, &links(&[(0, 1), (1, 2), (2, 0)])), None);
        assert_eq!(tree(3, &[(NodeId::at(0), NodeId::at(1))]), None);
    }
}
