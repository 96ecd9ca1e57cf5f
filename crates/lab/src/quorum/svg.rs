//! Quorum systems as SVG: nodes in their structure, some quorums in colours.

use std::f64::consts::TAU;
use std::fmt::Write;

use quorate_core::NodeId;
use quorate_quorum::Structure;

use super::layout::{Form, Layout, Place, Shown, Trail, shown, weights};
use super::{Report, shortened};

/// The most nodes that are drawn.
const NODES_MAX: usize = 400;

const FONT: &str = "ui-sans-serif, system-ui, DejaVu Sans, sans-serif";
/// After Okabe and Ito: colours that colour-blind readers can tell apart.
const COLOURS: [&str; 3] = ["#0072B2", "#D55E00", "#009E73"];
const MARGIN: f64 = 24.0;
const WIDTH_MIN: f64 = 420.0;
/// How wide a character of the legend is taken to be.
const CHAR_PX: f64 = 7.0;

/// Draws a system: up to three quorums in colours. A node that is in several has the colours of all.
///
/// # Errors
/// If there are too many nodes.
pub fn svg(report: &Report) -> Result<String, String> {
    let nodes = report.system.nodes();
    if nodes > NODES_MAX {
        return Err(format!("{nodes} nodes are more than the {NODES_MAX} that are drawn"));
    }
    let unit = if nodes > 120 { 40.0 } else { 58.0 };
    let drawing =
        Drawing { report, layout: Layout::new(&report.system), shown: shown(&report.system), unit };
    Ok(drawing.document())
}

struct Drawing<'a> {
    report: &'a Report,
    layout: Layout,
    shown: Vec<Shown>,
    unit: f64,
}

impl Drawing<'_> {
    fn document(&self) -> String {
        let radius = self.radius();
        let end = |part: fn(&Place) -> f64| {
            self.layout.places.iter().map(part).fold(0.0, f64::max) * self.unit
        };
        let (inner, height) = (end(|place| place.0), end(|place| place.1));
        let width = (inner + 2.0 * (radius + MARGIN)).max(WIDTH_MIN);
        let (left, top) = ((width - inner) / 2.0, 92.0 + radius);
        let legend_top = top + height + radius + 40.0;
        let legend_lines = self.shown.len() + 1;
        let whole = legend_top + 20.0 * legend_lines as f64 + 4.0;
        let mut out = String::new();
        let name = self.title();
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{whole:.0}\" \
             viewBox=\"0 0 {width:.0} {whole:.0}\" role=\"img\" aria-label=\"{name}\" \
             font-family=\"{FONT}\" font-size=\"12\">\n<title>{name}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"{MARGIN}\" y=\"34\" font-size=\"17\" font-weight=\"600\" fill=\"#1F2933\">\
             {name}</text>\n"
        );
        for (line, text) in self.captions().iter().enumerate() {
            let y = 54.0 + 16.0 * line as f64;
            let _ = writeln!(out, "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"#52606D\">{text}</text>");
        }
        let _ = writeln!(out, "<g transform=\"translate({left:.1} {top:.1})\">");
        self.structure(&mut out);
        for (index, shown) in self.shown.iter().enumerate() {
            for trail in self.layout.trails(&self.report.system, &shown.set) {
                self.trail(&mut out, &trail, COLOURS[index], 0.62 * radius * 2.0, 0.28);
            }
        }
        (0..self.layout.places.len()).for_each(|i| self.node(&mut out, i));
        out.push_str("</g>\n");
        self.legend(&mut out, legend_top, ((width - 2.0 * MARGIN) / CHAR_PX) as usize - 3);
        out.push_str("</svg>\n");
        out
    }

    fn title(&self) -> String {
        let system = &self.report.system;
        let mut kind = system.kind().to_string();
        if kind.len() > 40 {
            kind = system.kind().name().to_owned();
        }
        format!("{kind}, {} nodes", system.nodes())
    }

    /// What was measured, in two lines.
    fn captions(&self) -> [String; 2] {
        let found = &self.report.examined;
        let (min, max) = found.sizes;
        let sizes = match (min, max) {
            (1, 1) => "1 node".to_owned(),
            _ if min == max => format!("{min} nodes"),
            _ => format!("{min} to {max} nodes"),
        };
        let count = found.count.map_or("too many to count".to_owned(), |count| match count {
            1 => "1 quorum".to_owned(),
            _ => format!("{count} quorums"),
        });
        let load = match (found.load.exact(), super::value(&found.load)) {
            (Some(load), _) if load.denom().to_string().len() < 6 => format!("load {load}"),
            (_, Some(load)) => format!("load {load:.4}"),
            _ => "load not known".to_owned(),
        };
        let survives = found.resilience.map_or(String::new(), |f| match f {
            1 => " · survives 1 crash".to_owned(),
            _ => format!(" · survives {f} crashes"),
        });
        let failure =
            format!(" · available {:.6} at p = {}", 1.0 - found.failure.value(), self.report.p);
        [
            format!("{count} of {sizes} · {load}"),
            format!("{survives}{failure}").replacen(" · ", "", 1),
        ]
    }

    fn radius(&self) -> f64 {
        self.unit * 0.3
    }

    fn at(&self, i: usize) -> (f64, f64) {
        let (x, y) = self.layout.places[i];
        (x * self.unit, y * self.unit)
    }

    /// What is there without any quorum: rows of walls, edges of trees, lines of the Fano plane.
    fn structure(&self, out: &mut String) {
        for trail in &self.layout.lines {
            self.trail(out, trail, "#9AA5B1", 1.4, 1.0);
        }
        if let Structure::Wall(wall) = self.report.system.structure() {
            let half = self.unit * 0.46;
            let mut first = 0;
            for &width in wall.widths() {
                let (x, y) = self.at(first);
                let _ = writeln!(
                    out,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"6\" \
                     fill=\"#F5F7FA\" stroke=\"#CBD2D9\"/>",
                    x - half,
                    y - half,
                    (width - 1) as f64 * self.unit + 2.0 * half,
                    2.0 * half
                );
                first += width;
            }
        }
    }

    fn trail(&self, out: &mut String, trail: &Trail, colour: &str, width: f64, opacity: f64) {
        let look = format!(
            "fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width:.1}\" \
             stroke-opacity=\"{opacity}\" stroke-linecap=\"round\" stroke-linejoin=\"round\""
        );
        let places: Vec<_> = trail.nodes.iter().map(|&i| self.at(i)).collect();
        if let (Form::Circle, [a, b, c]) = (trail.form, &places[..]) {
            let (x, y) = ((a.0 + b.0 + c.0) / 3.0, (a.1 + b.1 + c.1) / 3.0);
            let radius = (a.0 - x).hypot(a.1 - y);
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" {look}/>");
            return;
        }
        let mut path = String::new();
        for (step, (x, y)) in places.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if step == 0 { "M" } else { "L" });
        }
        if places.len() == 1 {
            path.push_str("h0.01");
        }
        if trail.form == Form::Closed {
            path.push('Z');
        }
        let _ = writeln!(out, "<path d=\"{path}\" {look}/>");
    }

    fn node(&self, out: &mut String, i: usize) {
        let node = NodeId::at(i);
        let ((x, y), radius) = (self.at(i), self.radius());
        let within: Vec<&str> = self
            .shown
            .iter()
            .zip(COLOURS)
            .filter(|(shown, _)| shown.set.contains(node))
            .map(|(_, colour)| colour)
            .collect();
        let fill = within.first().unwrap_or(&"#FFFFFF");
        let _ = write!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"{fill}\" \
             stroke=\"{}\" stroke-width=\"1.5\"/>",
            if within.is_empty() { "#7B8794" } else { "#1F2933" }
        );
        if within.len() > 1 {
            for (part, colour) in within.iter().enumerate() {
                let _ = write!(
                    out,
                    "<path d=\"{}\" fill=\"{colour}\"/>",
                    sector((x, y), radius - 0.7, part, within.len())
                );
            }
        }
        let colour = if within.is_empty() { "#1F2933" } else { "#FFFFFF" };
        let size = radius * if node.number() > 99 { 0.72 } else { 0.85 };
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"{size:.1}\" \
             font-weight=\"600\" fill=\"{colour}\">{node}</text>",
            y + size * 0.36
        );
        if let Some(weight) = weights(&self.report.system).and_then(|weights| weights.get(i)) {
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{:.1}\" fill=\"#52606D\">×{weight}\
                 </text>",
                x + radius * 0.85,
                y - radius * 0.7,
                radius * 0.7
            );
        }
    }

    fn legend(&self, out: &mut String, top: f64, chars_max: usize) {
        for (index, Shown { text, set }) in self.shown.iter().enumerate() {
            let y = top + 20.0 * index as f64;
            let mut line = format!("{text}: {}", shortened(set));
            if let (Some(weights), Structure::Votes(votes)) =
                (weights(&self.report.system), self.report.system.structure())
            {
                let weight: u32 = set.iter().filter_map(|node| weights.get(node.index())).sum();
                line += &format!(", weighs {weight}, {} needed", votes.need());
            }
            if line.chars().count() > chars_max {
                line = format!("{text}: {} nodes", set.len());
            }
            let _ = writeln!(
                out,
                "<rect x=\"{MARGIN}\" y=\"{:.1}\" width=\"12\" height=\"12\" rx=\"3\" \
                 fill=\"{}\"/><text x=\"{}\" y=\"{y:.1}\" fill=\"#323F4B\">{line}</text>",
                y - 10.5,
                COLOURS[index],
                MARGIN + 20.0
            );
        }
        if self.shown.len() > 1 {
            let y = top + 20.0 * self.shown.len() as f64;
            let _ = writeln!(
                out,
                "<text x=\"{MARGIN}\" y=\"{y:.1}\" fill=\"#7B8794\">A node in several quorums has \
                 all their colours.</text>"
            );
        }
    }
}

/// A piece of a round cake.
fn sector((x, y): (f64, f64), radius: f64, part: usize, parts: usize) -> String {
    let edge = |part: usize| {
        let angle = TAU * (part as f64 / parts as f64 + 0.125);
        (x + radius * angle.sin(), y - radius * angle.cos())
    };
    let ((ax, ay), (bx, by)) = (edge(part), edge(part + 1));
    let large = u8::from(parts < 2);
    format!("M{x:.1} {y:.1}L{ax:.1} {ay:.1}A{radius:.1} {radius:.1} 0 {large} 1 {bx:.1} {by:.1}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_quorum::System;

    fn drawn(name: &str, nodes: usize) -> Result<String, String> {
        let system = System::new(name.parse().unwrap(), nodes).unwrap();
        svg(&Report::new(system, 0.1, 1).unwrap())
    }

    /// The system of one node has one quorum, whoever asks; and of a weighted one the quorum without
    /// the heavy node is shown.
    #[test]
    fn only_quorums_are_shown_and_weights_are() {
        let singleton = drawn("singleton", 5).unwrap();
        assert!(singleton.contains(": {1}<") && !singleton.contains("{1,2}"), "{singleton}");
        let weighted = drawn("weighted:3,1,1,1,1", 5).unwrap();
        assert!(weighted.contains(": {2,3,4,5}, weighs 4, 4 needed<"), "{weighted}");
        assert!(weighted.contains(">×3</text>"), "{weighted}");
        let custom = drawn("custom:1,2,5;2,3,5;1,3,5", 5).unwrap();
        assert!(!custom.contains("{1,2,4,5}"), "{custom}");
    }

    #[test]
    fn every_node_is_drawn_once_and_every_quorum_shown_is_named() {
        for (name, nodes) in [("grid", 7), ("tree", 6), ("crumbling-wall", 8), ("all", 1)] {
            let text = drawn(name, nodes).unwrap();
            assert_eq!(text.matches("text-anchor=\"middle\"").count(), nodes, "{name}");
            assert!(text.contains("quorum of node 1: {"), "{name}");
            assert!(text.ends_with("</svg>\n"));
        }
        assert!(drawn("projective-plane", 7).unwrap().contains("r=\"77.0\""), "the seventh line");
        assert!(drawn("majority", 401).is_err());
    }
}
