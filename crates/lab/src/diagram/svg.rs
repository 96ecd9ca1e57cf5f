//! The drawing as SVG. Everything is written out with attributes and without ids or style sheets,
//! so that several drawings can stand in one page without touching each other.

use std::collections::BTreeSet;
use std::fmt::Write;

use quorate_core::{NodeId, Time};

use super::inset;
use super::labels::{self, LABEL_PX, Label};
use super::layout::{Layout, SUSPECT_PX, Segment, bends, is_down};
use super::notation::brief;
use super::{Arrow, Bar, Entry, Fate, Mark, Phase, Picture, Style, What, legend, printable, wrap};

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

/// How the strokes of a kind are broken: beyond as many kinds as there are colours, colours come again.
pub(super) const fn dash(kind: usize) -> &'static str {
    match kind / COLOURS.len() {
        0 => "",
        1 => " stroke-dasharray=\"14 3\"",
        2 => " stroke-dasharray=\"9 3 2 3\"",
        _ => " stroke-dasharray=\"2 2\"",
    }
}

/// Do arrows of this kind have hollow heads?
pub(super) const fn is_hollow(kind: usize) -> bool {
    kind / COLOURS.len() % 2 == 1
}

/// The colour of suspicions.
pub(super) const SUSPICION: &str = "#7B4FA3";

/// The look of a bar.
pub(super) const fn fill(phase: Phase) -> &'static str {
    match phase {
        Phase::Wanting => "fill=\"#D3D9DE\" stroke=\"#8A949C\"",
        Phase::Inside => "fill=\"#1F2933\" stroke=\"#1F2933\"",
        Phase::Leading => "fill=\"#F5C710\" stroke=\"#9A7B00\"",
        Phase::Member => "fill=\"#BFE3D6\" stroke=\"#3F8F76\"",
        Phase::Still => "fill=\"#FFF\" stroke=\"#2E6B58\" stroke-dasharray=\"2 2\"",
    }
}

/// The sign of something that a node is told at the moment at which it wishes something.
const RING: &str = "<circle r=\"7\" stroke=\"#222\" stroke-width=\"1.6\" fill=\"none\"/>";

/// The colour of the barrier that a view is.
const BARRIER: &str = "#2E6B58";
/// How far a barrier goes beyond the lines of its members.
const BARRIER_ENDS: f64 = 13.0;

/// How large letters are if nothing is said.
const FONT_PX: f64 = 11.0;

pub(super) fn draw(picture: &Picture, style: &Style) -> String {
    let mut body = String::new();
    let zoom = style.font_px.unwrap_or(FONT_PX) / FONT_PX;
    // Room for the arcs of what the first node sends to itself.
    let has_arcs = picture.arrows.iter().any(|arrow| arrow.from == arrow.to);
    let has_signs = !picture.entries.is_empty() || !picture.setting.splits.is_empty();
    let room = if has_arcs || has_signs { 42.0 } else { 26.0 };
    let width = Layout::new(picture, 0.0, zoom).right();
    let top = heading(&mut body, picture, style, width) + room;
    let layout = Layout::new(picture, top, zoom);
    let mut drawing = Drawing { picture, layout, out: body };
    drawing.bands();
    drawing.axis();
    drawing.lines();
    let whole: Vec<_> = picture.arrows.iter().map(|arrow| drawing.segment(arrow)).collect();
    let (left, right) = (drawing.layout.left - 8.0, drawing.layout.right());
    let ends: Vec<_> = whole.iter().map(|segment| segment.clipped(left, right)).collect();
    let segments: Vec<_> = ends.iter().map(|(segment, ..)| *segment).collect();
    let bends = bends(&segments);
    drawing.bars();
    drawing.suspicions();
    drawing.barriers();
    for (index, (segment, _, is_own_end)) in ends.iter().enumerate() {
        drawing.arrow(index, segment, bends[index], *is_own_end);
    }
    drawing.marks();
    drawing.fences();
    for label in labels::place(picture, &drawing.layout, &segments, &bends) {
        drawing.label(&label);
    }
    drawing.guilty();
    let strip_bottom = drawing.strip();
    let (left, width) = (drawing.layout.left, drawing.layout.right() - drawing.layout.left);
    let mut body = drawing.out;
    let bottom = legend::draw(&mut body, picture, left, strip_bottom + 22.0, width);
    let bottom = inset::draw(&mut body, picture, left, bottom);
    document(style, (left + width + 16.0, bottom + 2.0), zoom, &body)
}

fn document(style: &Style, (width, height): (f64, f64), zoom: f64, body: &str) -> String {
    let (wide, high) = (width * zoom, height * zoom);
    let name = if style.title.is_empty() { "space-time diagram" } else { &style.title };
    let name = escape(name);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide:.0}\" height=\"{high:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{name}\" \
         font-family=\"{FONT}\" font-size=\"11\" fill=\"none\">\n\
         <title>{name}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <g fill=\"#222\">\n{body}</g>\n</svg>\n"
    )
}

/// Writes title and caption, and returns the height of what comes below.
fn heading(out: &mut String, picture: &Picture, style: &Style, width: f64) -> f64 {
    let mut y = 10.0;
    if !style.title.is_empty() {
        y += 18.0;
        let title = escape(&style.title);
        let _ = writeln!(
            out,
            "<text x=\"16\" y=\"{y:.0}\" font-size=\"15\" font-weight=\"600\">{title}</text>"
        );
    }
    let captions = match style.caption.is_empty() {
        true => vec![picture.summary(), picture.setting.words.clone()],
        false => vec![style.caption.clone()],
    };
    for line in captions.iter().flat_map(|text| wrap(text, (width / CHAR_PX) as usize)) {
        y += 16.0;
        let line = escape(&line);
        let _ = writeln!(out, "<text x=\"16\" y=\"{y:.0}\" fill=\"#555\">{line}</text>");
    }
    y
}

/// The most characters of what a message carries, before all of it is told.
const STORY_CHARS_MAX: usize = 60;

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
        let (top, bottom) = (self.layout.top - 16.0, self.layout.axis());
        for (time, text) in self.layout.ticks(self.picture.end) {
            let x = self.layout.x(time);
            self.write(format_args!(
                "<path d=\"M{x:.1} {top:.1}V{bottom:.1}\" stroke=\"#E7EAED\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{text}</text>",
                bottom + 13.0
            ));
        }
        let (left, right) = (self.layout.left, self.layout.right());
        let unit = if self.picture.setting.in_steps { "step" } else { "time" };
        self.write(format_args!(
            "<path d=\"M{left:.1} {bottom:.1}H{:.1}\" stroke=\"#888\"/>\
             <path d=\"M{right:.1} {bottom:.1}l-7 -3v6z\" fill=\"#888\"/>\
             <text x=\"{right:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{unit}</text>",
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
            if let Some(name) = self.picture.setting.names.get(node.index()) {
                let name = escape(name);
                self.write(format_args!(
                    "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"9.5\" fill=\"#555\" \
                     text-anchor=\"end\">{name}</text>",
                    left - 14.0,
                    y + 17.0
                ));
            }
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

    /// An arrow, or what of it is in the picture.
    fn arrow(&mut self, index: usize, segment: &Segment, bend: f64, is_own_end: bool) {
        let arrow = &self.picture.arrows[index];
        let is_dense = self.picture.arrows.len() > DENSE;
        let title = escape(&self.story(arrow));
        let colour = colour(arrow.kind);
        let broken = match (arrow.fate, arrow.copy_of) {
            (_, Some(_)) => " stroke-dasharray=\"1.5 3\"",
            (Fate::Received(_), None) => dash(arrow.kind),
            _ => " stroke-dasharray=\"5 3\"",
        };
        let is_loop = arrow.from == arrow.to;
        let shape = if is_loop { looped(segment) } else { segment.bent(bend).path() };
        let (stroke, head) = if is_dense { (1.0, HEAD * 0.75) } else { (1.5, HEAD) };
        let end = if is_own_end { end(arrow, segment, bend, head) } else { String::new() };
        self.write(format_args!(
            "<g><title>{title}</title><path d=\"{shape}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"{stroke}\"{broken}/>{end}</g>"
        ));
    }

    /// The tooltip of an arrow.
    fn story(&self, arrow: &Arrow) -> String {
        let Arrow { from, to, text, .. } = arrow;
        let notation = self.picture.notation(arrow);
        let short = notation.within(STORY_CHARS_MAX);
        let sent = arrow.sent.map_or_else(|| "before".to_string(), |at| format!("{at:?}"));
        let fate = match arrow.fate {
            Fate::Received(at) => format!("received {at:?}"),
            Fate::Lost(at) if is_down(self.picture, *to, at) => format!("{to} is down at {at:?}"),
            Fate::Lost(at) => format!("lost {at:?}"),
            Fate::InFlight => "under way at the end".to_string(),
        };
        let copy = if arrow.copy_of.is_some() { ", a further copy" } else { "" };
        format!("{short} {from} → {to} (sent {sent}, {fate}{copy}): {}", printable(text))
    }

    fn bars(&mut self) {
        let (still, others): (Vec<_>, Vec<_>) =
            self.picture.bars.iter().partition(|bar| bar.phase == Phase::Still);
        for bar in still.into_iter().chain(others) {
            // What stands still is seen beside what the node is or wants.
            let half = if bar.phase == Phase::Still { HALF_BAR + 2.5 } else { HALF_BAR };
            let (x, y) = (self.layout.x(bar.from), self.layout.y(bar.node) - half);
            let until = if bar.is_open { self.layout.right() } else { self.layout.x(bar.until) };
            let (width, height) = ((until - x).max(2.5), 2.0 * half);
            let what = match bar.phase {
                Phase::Wanting => "wants",
                Phase::Inside => "is inside",
                Phase::Leading => "leads",
                Phase::Member => "is a member",
                Phase::Still => "stands still",
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

    /// Who suspects whom: thin bars below the line of who does, one below the other.
    fn suspicions(&mut self) {
        let suspicions = &self.picture.suspicions;
        for (index, one) in suspicions.iter().enumerate() {
            let peers = suspicions[..=index].iter().filter(|other| other.node == one.node);
            let peers: BTreeSet<_> = peers.map(|other| other.peer).collect();
            let place = peers.iter().position(|peer| *peer == one.peer).unwrap_or(0).min(3);
            let (x, y) = (self.layout.x(one.from), self.layout.y(one.node));
            let y = y + 8.0 + SUSPECT_PX * place as f64;
            let until = one.until.map_or(self.layout.right(), |until| self.layout.x(until));
            let title = format!("{} suspects {} from {:?}", one.node, one.peer, one.from);
            self.write(format_args!(
                "<g><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" \
                 height=\"4\" fill=\"{SUSPICION}\" opacity=\"0.75\"/><text x=\"{:.1}\" \
                 y=\"{:.1}\" text-anchor=\"end\" font-size=\"8.5\" fill=\"{SUSPICION}\">\
                 {}?</text></g>",
                escape(&title),
                (until - x).max(2.0),
                x - 2.0,
                y + 5.0,
                one.peer
            ));
        }
    }

    /// When the network was cut: a band, and a line between those who did not reach each other.
    fn bands(&mut self) {
        let (top, bottom) = (self.layout.top - 16.0, self.layout.axis());
        for split in &self.picture.setting.splits {
            let from = self.layout.x(split.from.max(self.picture.start));
            let until = split.until.filter(|until| *until <= self.picture.end);
            let until = until.map_or(self.layout.right(), |until| self.layout.x(until));
            if until <= from {
                continue;
            }
            let text = escape(&format!("cut: {}", split.text));
            self.write(format_args!(
                "<rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 fill=\"#FBE3E0\"/><text x=\"{:.1}\" y=\"{:.1}\" fill=\"{RED}\" \
                 font-size=\"{LABEL_PX:.0}\">{text}</text>",
                until - from,
                bottom - top,
                from + 3.0,
                top - 4.0
            ));
            let side = |node: NodeId| split.sides.iter().position(|side| side.contains(&node));
            for (upper, lower) in
                NodeId::first(self.picture.nodes).zip(NodeId::first(self.picture.nodes).skip(1))
            {
                if let (Some(a), Some(b)) = (side(upper), side(lower))
                    && a != b
                {
                    let y = f64::midpoint(self.layout.y(upper), self.layout.y(lower));
                    self.write(format_args!(
                        "<path d=\"M{from:.1} {y:.1}H{until:.1}\" stroke=\"{RED}\" \
                         stroke-width=\"1.5\" stroke-dasharray=\"6 4\" fill=\"none\"/>"
                    ));
                }
            }
        }
    }

    /// The tokens with which nodes were let in, at the bars.
    fn fences(&mut self) {
        let inside = self.picture.bars.iter().filter(|bar| bar.phase == Phase::Inside);
        let fenced: Vec<_> = inside
            .filter_map(|bar| {
                let fence = bar.text.strip_prefix("Fenced(")?.strip_suffix(')')?;
                Some((self.layout.x(bar.from), self.layout.y(bar.node), escape(fence)))
            })
            .collect();
        for (x, y, fence) in fenced {
            self.write(format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"9\" fill=\"#1F2933\" stroke=\"#fff\" \
                 stroke-width=\"2.5\" paint-order=\"stroke\"><title>fence</title>{fence}</text>",
                x + 1.0,
                y - HALF_BAR - 3.0
            ));
        }
    }

    /// Rings around what shows the violation.
    fn guilty(&mut self) {
        for &(at, node) in &self.picture.guilty {
            let (x, y) = (self.layout.x(at), self.layout.y(node));
            self.write(format_args!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"9\" stroke=\"{RED}\" stroke-width=\"2\" \
                 fill=\"none\"><title>has to do with the violation</title></circle>"
            ));
        }
    }

    /// Views, as barriers across the lines of their members: what is left of one was delivered in the
    /// view before, by all who go through it.
    fn barriers(&mut self) {
        for ((view, members), mut entries) in self.picture.views() {
            entries.sort_by_key(|entry| entry.node);
            let point = |entry: &&Entry| (self.layout.x(entry.at), self.layout.y(entry.node));
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
            let members = match members.is_empty() {
                true => entries.iter().map(|entry| entry.node).collect(),
                false => members,
            };
            let title = escape(&format!("view {view} {}", set(&members)));
            self.write(format_args!(
                "<path d=\"{path}L{last:.1} {bottom:.1}\" fill=\"none\" stroke=\"{BARRIER}\" \
                 stroke-width=\"3\" stroke-dasharray=\"7 3\" stroke-linejoin=\"round\" \
                 opacity=\"0.8\"><title>{title}</title></path>"
            ));
            self.write(format_args!(
                "<text x=\"{first:.1}\" y=\"{:.1}\" text-anchor=\"middle\" \
                 font-size=\"{LABEL_PX:.0}\" fill=\"{BARRIER}\" stroke=\"#fff\" stroke-width=\"3\" \
                 paint-order=\"stroke\">{title}</text>",
                top - 3.0
            ));
        }
    }

    fn marks(&mut self) {
        let mut dots = BTreeSet::new();
        for event in &self.picture.events {
            let What::Mark(mark, text) = &event.what else { continue };
            if legend::is_drawn(*mark, event.seen) {
                let (x, y) = (self.layout.x(event.at), self.layout.y(event.node));
                let title = escape(&format!("{:?}: {} {}", event.at, event.node, brief(text)));
                // A ring around a dot, rather than upon it.
                let is_around = *mark == Mark::Told && dots.contains(&(event.at, event.node));
                let sign = if is_around { RING } else { legend::sign(*mark) };
                if *mark == Mark::Wish {
                    dots.insert((event.at, event.node));
                }
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
        let (left, right, y) = (self.layout.left, self.layout.right(), self.layout.axis() + 24.0);
        let fault = self.picture.violation.as_ref();
        let turn = fault.map_or(right, |fault| self.layout.x(fault.at).clamp(left, right));
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
             <path d=\"M{turn:.1} {:.1}V{:.1}\" stroke=\"{RED}\" stroke-dasharray=\"2 3\"/>\
             <circle cx=\"{turn:.1}\" cy=\"{node_y:.1}\" r=\"10\" stroke=\"{RED}\" \
             stroke-width=\"2.5\" fill=\"none\"><title>the step of {node}</title></circle>",
            y - 2.0,
            right - turn,
            self.layout.top - 16.0,
            // Not over the numbers of the axis.
            self.layout.axis()
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

/// Nodes as a set.
fn set(nodes: &[NodeId]) -> String {
    let nodes: Vec<_> = nodes.iter().map(ToString::to_string).collect();
    format!("{{{}}}", nodes.join(","))
}

/// A message of a node to itself: an arc above its line.
fn looped(Segment { x1, y1, x2, .. }: &Segment) -> String {
    let (top, x2) = (y1 - 26.0, x2.max(x1 + 8.0));
    format!("M{x1:.1} {y1:.1}C{x1:.1} {top:.1} {x2:.1} {top:.1} {x2:.1} {y1:.1}")
}

/// The end of an arrow: a head, two for a further copy, a cross where it was lost.
fn end(arrow: &Arrow, segment: &Segment, bend: f64, size: f64) -> String {
    let colour = colour(arrow.kind);
    let fill = if is_hollow(arrow.kind) { "#fff" } else { colour };
    let (x, y) = (segment.x2, segment.y2);
    match arrow.fate {
        Fate::Received(_) => {
            let down = (0.0, 1.0);
            let is_loop = arrow.from == arrow.to;
            let direction = if is_loop { down } else { segment.bent(bend).direction() };
            let x = if is_loop { x.max(segment.x1 + 8.0) } else { x };
            let heads = if arrow.copy_of.is_some() { 2 } else { 1 };
            let head = |i| head((x, y), direction, size, f64::from(i) * size * 0.8);
            let heads: String = (0..heads).map(head).collect();
            format!(
                "<path d=\"{heads}\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"0.8\"/>"
            )
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
