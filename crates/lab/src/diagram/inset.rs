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
    let radius = (nodes as f64 * APART / TAU).max(RADIUS_MIN);
    let (middle_x, middle_y) = (left + radius + NODE + 2.0, top + 22.0 + radius + NODE);
    let place = |node: NodeId| {
        let angle = TAU * node.index() as f64 / nodes as f64;
        (middle_x + radius * angle.sin(), middle_y - radius * angle.cos())
    };
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
    middle_y + radius + NODE + 8.0
}
