//! The drawing as SVG. Everything is written out with attributes and without ids or style sheets,
//! so that several drawings can stand in one page without touching each other.

use std::fmt::Write;

use quorate_core::{NodeId, Time};

use super::labels::{self, LABEL_PX, Label};
use super::layout::{Layout, Segment, is_down};
use super::{Arrow, Bar, Fate, Phase, Picture, Style, What, legend, wrap};

const FONT: &str = "ui-sans-serif, system-ui, DejaVu Sans, sans-serif";
/// Okabe and Ito's colours, which colour-blind readers can tell apart, without their yellow (too
/// pale for a line) and black.
const COLOURS: [&str; 7] =
    ["#0072B2", "#D55E00", "#009E73", "#B0578D", "#3A9BD9", "#A6761D", "#6A6A6A"];
const RED: &str = "#C00000";
const GREEN: &str = "#009E73";
const HEAD: f64 = 9.0;
const HALF_BAR: f64 = 5.0;
const CHAR_PX: f64 = 6.6;

/// The colour of a kind of message.
pub(super) const fn colour(kind: usize) -> &'static str {
    COLOURS[kind % COLOURS.len()]
}

/// The look of a bar.
pub(super) const fn fill(phase: Phase) -> &'static str {
    match phase {
        Phase::Wanting => "fill=\"#D3D9DE\" stroke=\"#8A949C\"",
        Phase::Inside => "fill=\"#1F2933\" stroke=\"#1F2933\"",
        Phase::Leading => "fill=\"#F5C710\" stroke=\"#9A7B00\"",
        Phase::Member => "fill=\"#BFE3D6\" stroke=\"#3F8F76\"",
    }
}

/// The colour of the barrier that a view is.
const BARRIER: &str = "#2E6B58";
/// How far a barrier goes beyond the lines of its members.
const BARRIER_ENDS: f64 = 13.0;

pub(super) fn draw(picture: &Picture, style: &Style) -> String {
    let mut body = String::new();
    // Room for the arcs of what the first node sends to itself.
    let has_arcs = picture.arrows.iter().any(|arrow| arrow.from == arrow.to);
    let top = heading(&mut body, picture, style) + if has_arcs { 42.0 } else { 26.0 };
    let layout = Layout::new(picture, top);
    let mut drawing = Drawing { picture, layout, out: body };
    drawing.axis();
    drawing.lines();
    let segments: Vec<_> = picture.arrows.iter().map(|arrow| drawing.segment(arrow)).collect();
    drawing.bars();
    drawing.barriers();
    drawing.arrows(&segments);
    drawing.marks();
    for label in labels::place(picture, &drawing.layout, &segments) {
        drawing.label(&label);
    }
    let strip_bottom = drawing.strip();
    let (left, width) = (drawing.layout.left, drawing.layout.right() - drawing.layout.left);
    let mut body = drawing.out;
    let bottom = legend::draw(&mut body, picture, left, strip_bottom + 22.0, width);
    document(style, left + width + 16.0, bottom + 2.0, &body)
}

fn document(style: &Style, width: f64, height: f64, body: &str) -> String {
    let name = if style.title.is_empty() { "space-time diagram" } else { &style.title };
    let name = escape(name);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{name}\" \
         font-family=\"{FONT}\" font-size=\"11\" fill=\"none\">\n\
         <title>{name}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <g fill=\"#222\">\n{body}</g>\n</svg>\n"
    )
}

/// Writes title and caption, and returns the height of what comes below.
fn heading(out: &mut String, picture: &Picture, style: &Style) -> f64 {
    let mut y = 10.0;
    if !style.title.is_empty() {
        y += 18.0;
        let title = escape(&style.title);
        let _ = writeln!(
            out,
            "<text x=\"16\" y=\"{y:.0}\" font-size=\"15\" font-weight=\"600\">{title}</text>"
        );
    }
    let summary = picture.summary();
    let caption = if style.caption.is_empty() { &summary } else { &style.caption };
    for line in wrap(caption, 110) {
        y += 16.0;
        let line = escape(&line);
        let _ = writeln!(out, "<text x=\"16\" y=\"{y:.0}\" fill=\"#555\">{line}</text>");
    }
    y
}

/// With more arrows than this they are thinner.
const DENSE: usize = 150;

struct Drawing<'a> {
    picture: &'a Picture,
    layout: Layout,
    out: String,
}

impl Drawing<'_> {
    fn write(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = self.out.write_fmt(line);
        self.out.push('\n');
    }

    fn axis(&mut self) {
        let (top, bottom) = (self.layout.top - 16.0, self.layout.bottom() + 24.0);
        for (time, text) in self.layout.ticks(self.picture.end) {
            let x = self.layout.x(time);
            self.write(format_args!(
                "<path d=\"M{x:.1} {top:.1}V{bottom:.1}\" stroke=\"#E7EAED\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{text}</text>",
                bottom + 13.0
            ));
        }
        let (left, right) = (self.layout.left, self.layout.right());
        self.write(format_args!(
            "<path d=\"M{left:.1} {bottom:.1}H{:.1}\" stroke=\"#888\"/>\
             <path d=\"M{right:.1} {bottom:.1}l-7 -3v6z\" fill=\"#888\"/>\
             <text x=\"{right:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">time</text>",
            right - 6.0,
            bottom - 6.0
        ));
    }

    fn lines(&mut self) {
        let (left, right) = (self.layout.left, self.layout.right());
        for node in NodeId::first(self.picture.nodes) {
            let y = self.layout.y(node);
            self.write(format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"14\" font-weight=\"600\" \
                 text-anchor=\"end\">{node}</text>",
                left - 16.0,
                y + 5.0
            ));
            let mut x = left - 8.0;
            for outage in self.picture.outages.iter().filter(|outage| outage.node == node) {
                let (from, until) = (self.layout.x(outage.from), outage.until);
                let until = until.map_or(right, |until| self.layout.x(until));
                self.write(format_args!(
                    "<path d=\"M{x:.1} {y:.1}H{from:.1}\" stroke=\"#555\" stroke-width=\"1.5\"/>\
                     <path d=\"M{from:.1} {y:.1}H{until:.1}\" stroke=\"#AAA\" \
                     stroke-dasharray=\"3 5\"/>"
                ));
                x = until;
            }
            if x < right {
                self.write(format_args!(
                    "<path d=\"M{x:.1} {y:.1}H{right:.1}\" stroke=\"#555\" stroke-width=\"1.5\"/>"
                ));
            }
        }
    }

    /// The way of an arrow, from the edge of a bar to the edge of another rather than over them;
    /// moved up and down only, as times must stay true.
    fn segment(&self, arrow: &Arrow) -> Segment {
        let Segment { x1, y1, x2, y2 } = self.layout.way(self.picture, arrow);
        let room = |node: NodeId, at: Time| {
            let covers = |bar: &Bar| bar.node == node && bar.from <= at && at <= bar.until;
            if self.picture.bars.iter().any(covers) { HALF_BAR + 0.5 } else { 0.5 }
        };
        let first = arrow.sent.map_or(0.0, |at| room(arrow.from, at));
        let last = match arrow.fate {
            Fate::Received(at) => room(arrow.to, at),
            Fate::Lost(_) | Fate::InFlight => 0.0,
        };
        // What a node sends to itself leaves and arrives above its line.
        let down = if y2 > y1 { 1.0 } else { -1.0 };
        let last = if arrow.from == arrow.to { -last } else { last };
        Segment { x1, y1: y1 + first * down, x2, y2: y2 - last * down }
    }

    fn arrows(&mut self, segments: &[Segment]) {
        let is_dense = segments.len() > DENSE;
        for (arrow, segment) in self.picture.arrows.iter().zip(segments) {
            let title = escape(&self.story(arrow));
            let colour = colour(arrow.kind);
            let dash = match (arrow.fate, arrow.copy_of) {
                (_, Some(_)) => " stroke-dasharray=\"1.5 3\"",
                (Fate::Received(_), None) => "",
                _ => " stroke-dasharray=\"5 3\"",
            };
            let shape = if arrow.from == arrow.to { looped(segment) } else { straight(segment) };
            let (stroke, head) = if is_dense { (1.0, HEAD * 0.75) } else { (1.5, HEAD) };
            let end = end(arrow, segment, colour, head);
            self.write(format_args!(
                "<g><title>{title}</title><path d=\"{shape}\" fill=\"none\" stroke=\"{colour}\" \
                 stroke-width=\"{stroke}\"{dash}/>{end}</g>"
            ));
        }
    }

    /// The tooltip of an arrow.
    fn story(&self, arrow: &Arrow) -> String {
        let Arrow { from, to, text, .. } = arrow;
        let sent = arrow.sent.map_or_else(|| "before".to_string(), |at| format!("{at:?}"));
        let fate = match arrow.fate {
            Fate::Received(at) => format!("received {at:?}"),
            Fate::Lost(at) if is_down(self.picture, *to, at) => format!("{to} is down at {at:?}"),
            Fate::Lost(at) => format!("lost {at:?}"),
            Fate::InFlight => "under way at the end".to_string(),
        };
        let copy = if arrow.copy_of.is_some() { ", a further copy" } else { "" };
        format!(
            "{} {from} → {to}: {text} (sent {sent}, {fate}{copy})",
            self.picture.kinds[arrow.kind]
        )
    }

    fn bars(&mut self) {
        for bar in &self.picture.bars {
            let (x, y) = (self.layout.x(bar.from), self.layout.y(bar.node) - HALF_BAR);
            let until = if bar.is_open { self.layout.right() } else { self.layout.x(bar.until) };
            let (width, height) = ((until - x).max(2.5), 2.0 * HALF_BAR);
            let what = match bar.phase {
                Phase::Wanting => "wants",
                Phase::Inside => "is inside",
                Phase::Leading => "leads",
                Phase::Member => "is a member",
            };
            let until = if bar.is_open { "the end".into() } else { format!("{:?}", bar.until) };
            let title = format!("{} {what} from {:?} to {until}: {}", bar.node, bar.from, bar.text);
            self.write(format_args!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.0}\" \
                 rx=\"1.5\" {}><title>{}</title></rect>",
                fill(bar.phase),
                escape(&title)
            ));
        }
    }

    /// Views, as barriers across the lines of their members: what is left of one was delivered in the
    /// view before, by all who go through it.
    fn barriers(&mut self) {
        for (view, mut entries) in self.picture.views() {
            entries.sort_by_key(|bar| bar.node);
            let point = |bar: &&Bar| (self.layout.x(bar.from), self.layout.y(bar.node));
            let points: Vec<(f64, f64)> = entries.iter().map(point).collect();
            let (Some(&(first, top)), Some(&(last, bottom))) = (points.first(), points.last())
            else {
                continue;
            };
            let (top, bottom) = (top - BARRIER_ENDS, bottom + BARRIER_ENDS);
            let mut path = format!("M{first:.1} {top:.1}");
            for (x, y) in &points {
                path += &format!("L{x:.1} {y:.1}");
            }
            let title = escape(&format!("view {view}"));
            self.write(format_args!(
                "<path d=\"{path}L{last:.1} {bottom:.1}\" fill=\"none\" stroke=\"{BARRIER}\" \
                 stroke-width=\"3\" stroke-dasharray=\"7 3\" stroke-linejoin=\"round\" opacity=\"0.8\">\
                 <title>{title}</title></path>"
            ));
            self.write(format_args!(
                "<text x=\"{first:.1}\" y=\"{:.1}\" text-anchor=\"middle\" \
                 font-size=\"{LABEL_PX:.0}\" fill=\"{BARRIER}\">{title}</text>",
                top - 3.0
            ));
        }
    }

    fn marks(&mut self) {
        for event in &self.picture.events {
            let What::Mark(mark, text) = &event.what else { continue };
            if legend::is_drawn(*mark, event.seen) {
                let (x, y) = (self.layout.x(event.at), self.layout.y(event.node));
                let title = escape(&format!("{:?}: {} {text}", event.at, event.node));
                let sign = legend::sign(*mark);
                self.write(format_args!(
                    "<g transform=\"translate({x:.1} {y:.1})\"><title>{title}</title>{sign}</g>"
                ));
            }
        }
    }

    fn label(&mut self, label: &Label) {
        let Label { x, y, degrees, .. } = label;
        let colour = colour(self.picture.arrows[label.arrow].kind);
        let text = escape(&label.text);
        self.write(format_args!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate({degrees:.1})\" y=\"3.5\" \
             text-anchor=\"middle\" font-size=\"{LABEL_PX:.0}\" fill=\"{colour}\" stroke=\"#fff\" \
             stroke-width=\"3\" stroke-linejoin=\"round\" paint-order=\"stroke\">{text}</text>"
        ));
    }

    /// The property strip: green until the first violation, then red. Returns what is below.
    fn strip(&mut self) -> f64 {
        let (left, right, y) = (self.layout.left, self.layout.right(), self.layout.bottom() + 48.0);
        let fault = self.picture.violation.as_ref();
        let turn = fault.map_or(right, |fault| self.layout.x(fault.at));
        self.write(format_args!(
            "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"7\" fill=\"{GREEN}\"/>",
            turn - left
        ));
        let Some(fault) = fault else {
            self.write(format_args!(
                "<text x=\"{left:.1}\" y=\"{:.1}\" fill=\"#555\">no violation</text>",
                y + 21.0
            ));
            return y + 26.0;
        };
        let (node_y, node) = (self.layout.y(fault.node), fault.node);
        self.write(format_args!(
            "<rect x=\"{turn:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"11\" fill=\"{RED}\"/>\
             <path d=\"M{turn:.1} {:.1}V{y:.1}\" stroke=\"{RED}\" stroke-dasharray=\"2 3\"/>\
             <circle cx=\"{turn:.1}\" cy=\"{node_y:.1}\" r=\"10\" stroke=\"{RED}\" \
             stroke-width=\"2.5\" fill=\"none\"><title>the step of {node}</title></circle>",
            y - 2.0,
            right - turn,
            self.layout.top - 16.0
        ));
        let mut below = y + 10.0;
        for line in wrap(&fault.to_string(), ((right - left) / CHAR_PX) as usize) {
            below += 14.0;
            let line = escape(&line);
            self.write(format_args!(
                "<text x=\"{left:.1}\" y=\"{below:.1}\" fill=\"{RED}\" \
                 font-weight=\"600\">{line}</text>"
            ));
        }
        below + 5.0
    }
}

fn straight(Segment { x1, y1, x2, y2 }: &Segment) -> String {
    format!("M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}")
}

/// A message of a node to itself: an arc above its line.
fn looped(Segment { x1, y1, x2, .. }: &Segment) -> String {
    let (top, x2) = (y1 - 26.0, x2.max(x1 + 8.0));
    format!("M{x1:.1} {y1:.1}C{x1:.1} {top:.1} {x2:.1} {top:.1} {x2:.1} {y1:.1}")
}

/// The end of an arrow: a head, two for a further copy, a cross where it was lost.
fn end(arrow: &Arrow, segment: &Segment, colour: &str, size: f64) -> String {
    let (x, y) = (segment.x2, segment.y2);
    match arrow.fate {
        Fate::Received(_) => {
            let down = (0.0, 1.0);
            let is_loop = arrow.from == arrow.to;
            let direction = if is_loop { down } else { segment.direction() };
            let x = if is_loop { x.max(segment.x1 + 8.0) } else { x };
            let heads = if arrow.copy_of.is_some() { 2 } else { 1 };
            let head = |i| head((x, y), direction, size, f64::from(i) * size * 0.8);
            let heads: String = (0..heads).map(head).collect();
            format!("<path d=\"{heads}\" fill=\"{colour}\"/>")
        }
        Fate::Lost(_) => format!(
            "<path d=\"M{:.1} {:.1}l10 10m0 -10l-10 10\" stroke=\"{colour}\" stroke-width=\"2.6\"/>",
            x - 5.0,
            y - 5.0
        ),
        Fate::InFlight => format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"#fff\" stroke=\"{colour}\" \
             stroke-width=\"1.3\"/>"
        ),
    }
}

fn head((x, y): (f64, f64), (dx, dy): (f64, f64), size: f64, back: f64) -> String {
    let (x, y) = (x - dx * back, y - dy * back);
    let (base_x, base_y, half) = (x - dx * size, y - dy * size, size * 0.38);
    format!(
        "M{x:.1} {y:.1}L{:.1} {:.1}L{:.1} {:.1}Z",
        base_x - dy * half,
        base_y + dx * half,
        base_x + dy * half,
        base_y - dx * half
    )
}

/// Text as XML: no markup in it, and none of the characters that XML cannot hold.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('·'),
            c => escaped.push(c),
        }
    }
    escaped
}
