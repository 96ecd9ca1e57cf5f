//! Where nodes stand in the picture of a quorum system, and which quorums are shown.

use std::f64::consts::TAU;

use quorate_core::{NodeId, NodeSet};
use quorate_quorum::{Structure, System, Tree};

/// A point, in units of the distance between neighbours.
pub(super) type Place = (f64, f64);

/// The structure, without measures of the drawing.
pub(super) struct Layout {
    /// By position of the node.
    pub(super) places: Vec<Place>,
    /// Thin lines between nodes, drawn for the structure.
    pub(super) lines: Vec<Trail>,
}

/// A way through nodes, by their positions.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Trail {
    pub(super) nodes: Vec<usize>,
    pub(super) form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Open,
    Closed,
    /// The circle through three nodes.
    Circle,
}

/// A quorum that is shown, and whose it is.
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) set: NodeSet,
}

impl Layout {
    pub(super) fn new(system: &System) -> Self {
        let nodes = system.nodes();
        match system.structure() {
            Structure::Grid(grid) => {
                let place = |node| {
                    let (row, column) = grid.place(node);
                    (column as f64, row as f64)
                };
                Self { places: NodeId::first(nodes).map(place).collect(), lines: Vec::new() }
            }
            Structure::Wall(wall) => Self::wall(wall.widths()),
            Structure::Tree(_) => Self::tree(nodes),
            Structure::Plane(plane) if plane.order() == 2 && plane.is_whole() => Self::fano(system),
            Structure::Plane(plane) if plane.order() > 1 => Self::plane(nodes, plane.order()),
            Structure::Plane(_) | Structure::Votes(_) | Structure::Listed(_) => Self::circle(nodes),
        }
    }

    /// Rows like courses of bricks, centred.
    fn wall(widths: &[usize]) -> Self {
        let widest = widths.iter().copied().max().unwrap_or(1);
        let row = |(row, &width): (usize, &usize)| {
            let left = (widest - width) as f64 / 2.0;
            (0..width).map(move |i| (left + i as f64, row as f64 * 1.15)).collect::<Vec<_>>()
        };
        let places = widths.iter().enumerate().flat_map(row).collect();
        Self { places, lines: Vec::new() }
    }

    /// Every parent above the middle of its children.
    fn tree(nodes: usize) -> Self {
        let levels = Tree::level(NodeId::at(nodes - 1)) + 1;
        let place = |node: NodeId| {
            let level = Tree::level(node);
            let among = node.index() + 1 - (1 << level);
            let step = (1 << (levels - 1 - level)) as f64;
            ((among as f64 + 0.5) * step - 0.5, level as f64 * 1.35)
        };
        let edge = |i: usize| Trail { nodes: vec![(i - 1) / 2, i], form: Form::Open };
        Self {
            places: NodeId::first(nodes).map(place).collect(),
            lines: (1..nodes).map(edge).collect(),
        }
    }

    /// The usual picture of the plane of seven points: a triangle, its heights, and a circle.
    fn fano(system: &System) -> Self {
        let side = 4.6;
        let height = side * 0.75_f64.sqrt();
        let corners = [(side / 2.0, 0.0), (0.0, height), (side, height)];
        let middle = |a: usize, b: usize| {
            let ((x, y), (u, v)) = (corners[a], corners[b]);
            (x.midpoint(u), y.midpoint(v))
        };
        let centre = (side / 2.0, height * 2.0 / 3.0);
        let [a, b, c] = corners;
        let places = vec![a, b, c, centre, middle(0, 2), middle(1, 2), middle(0, 1)];
        let lines = system.quorums().map_or_else(
            |_| Vec::new(),
            |list| list.sets().iter().map(|set| fano_line(set, &places)).collect(),
        );
        Self { places, lines }
    }

    /// The points with a first coordinate as a square, those at infinity as a column beside it.
    fn plane(nodes: usize, order: usize) -> Self {
        let square = order * order;
        let place = |i: usize| match i {
            _ if i < square => ((i % order) as f64, (i / order) as f64),
            _ => (order as f64 + 0.6, (i - square) as f64),
        };
        Self { places: (0..nodes).map(place).collect(), lines: Vec::new() }
    }

    fn circle(nodes: usize) -> Self {
        // Neighbours are one unit apart.
        let radius = if nodes > 1 { (nodes as f64 / TAU * 1.05).max(1.0) } else { 0.0 };
        let place = |i: usize| {
            let angle = TAU * i as f64 / nodes as f64;
            (radius * (1.0 + angle.sin()), radius * (1.0 - angle.cos()))
        };
        Self { places: (0..nodes).map(place).collect(), lines: Vec::new() }
    }

    /// The ways that make a quorum visible as what it is in this structure.
    pub(super) fn trails(&self, system: &System, set: &NodeSet) -> Vec<Trail> {
        let nodes: Vec<usize> = set.iter().map(NodeId::index).collect();
        let open = |nodes: Vec<usize>| Trail { nodes, form: Form::Open };
        match system.structure() {
            Structure::Grid(grid) => {
                let lines = |part: fn((usize, usize)) -> usize| {
                    let at = |&i: &usize| part(grid.place(NodeId::at(i)));
                    let mut groups: Vec<Vec<usize>> = Vec::new();
                    for &i in &nodes {
                        match groups.iter_mut().find(|group| at(&group[0]) == at(&i)) {
                            Some(group) => group.push(i),
                            None => groups.push(vec![i]),
                        }
                    }
                    groups.into_iter().max_by_key(Vec::len).unwrap_or_default()
                };
                vec![open(lines(|place| place.0)), open(lines(|place| place.1))]
            }
            Structure::Tree(_) => {
                let child = |&&i: &&usize| i > 0 && set.contains(NodeId::at((i - 1) / 2));
                nodes.iter().filter(child).map(|&i| open(vec![(i - 1) / 2, i])).collect()
            }
            Structure::Plane(plane) if plane.order() == 2 && plane.is_whole() => {
                vec![fano_line(set, &self.places)]
            }
            Structure::Plane(plane) if plane.order() > 1 => vec![open(nodes)],
            Structure::Wall(_) => vec![open(nodes)],
            _ if nodes.len() > 2 => vec![Trail { nodes, form: Form::Closed }],
            _ => vec![open(nodes)],
        }
    }
}

/// Three points of the plane in their order on the line; on the circle if they are on none.
fn fano_line(set: &NodeSet, places: &[Place]) -> Trail {
    let mut nodes: Vec<usize> = set.iter().map(NodeId::index).collect();
    nodes.sort_by(|&a, &b| places[a].partial_cmp(&places[b]).expect("places are numbers"));
    let [a, b, c] = nodes[..] else { return Trail { nodes, form: Form::Open } };
    let ((ax, ay), (bx, by), (cx, cy)) = (places[a], places[b], places[c]);
    let area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay);
    let form = if area.abs() < 1e-9 { Form::Open } else { Form::Circle };
    Trail { nodes, form }
}

/// Up to three quorums: that of node 1, and others that share as few nodes with it as can be. Of a
/// tree, the third one does without the root.
pub(super) fn shown(system: &System) -> Vec<Shown> {
    let Ok(assignment) = system.assignment() else { return Vec::new() };
    let mut shown: Vec<Shown> = Vec::new();
    let own = |node: NodeId, set: &NodeSet| Shown {
        text: format!("whom node {node} asks"),
        set: set.clone(),
    };
    for count in 0..3 {
        if let (2, Structure::Tree(tree)) = (count, system.structure()) {
            shown.extend(tree.without_root().map(|set| {
                let text = "quorum without the root".to_owned();
                Shown { text, set }
            }));
            break;
        }
        let shares = |set: &NodeSet| -> usize {
            shown.iter().map(|other| other.set.intersection(set).len()).sum()
        };
        let new = assignment.iter().filter(|(_, set)| shown.iter().all(|old| old.set != **set));
        let Some((node, set)) = new.min_by_key(|(node, set)| (shares(set), node.index())) else {
            break;
        };
        shown.push(own(node, set));
    }
    shown
}
