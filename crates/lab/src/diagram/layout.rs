//! Where things are: times and nodes as coordinates, arrows as segments.

use std::collections::BTreeSet;

use quorate_core::{NodeId, Span, Time};

use super::{Arrow, Fate, Picture};

/// The width of a typical delay, where there is room.
const DELAY_PX: f64 = 120.0;
/// The same in a long run, before the drawing grows wider instead.
const DELAY_PX_MIN: f64 = 30.0;
const WIDTH_MIN: f64 = 640.0;
/// What a bar of a suspected node takes.
pub(super) const SUSPECT_PX: f64 = 7.0;
/// However large the letters are.
const WIDTH_LEAST: f64 = 320.0;
const WIDTH_USUAL: f64 = 1200.0;
const WIDTH_MAX: f64 = 6000.0;
/// Room to the right of the last event.
const TAIL: f64 = 44.0;

/// A straight piece.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Segment {
    pub(super) x1: f64,
    pub(super) y1: f64,
    pub(super) x2: f64,
    pub(super) y2: f64,
}

impl Segment {
    pub(super) fn length(&self) -> f64 {
        (self.x2 - self.x1).hypot(self.y2 - self.y1)
    }

    /// The unit vector along it; to the right where it has no length.
    pub(super) fn direction(&self) -> (f64, f64) {
        match self.length() {
            length if length > 0.0 => ((self.x2 - self.x1) / length, (self.y2 - self.y1) / length),
            _ => (1.0, 0.0),
        }
    }

    /// The point at this part of its length.
    pub(super) fn at(&self, part: f64) -> (f64, f64) {
        (self.x1 + (self.x2 - self.x1) * part, self.y1 + (self.y2 - self.y1) * part)
    }

    /// The piece of it between two parts of its length.
    pub(super) fn piece(&self, from: f64, to: f64) -> Self {
        let ((x1, y1), (x2, y2)) = (self.at(from), self.at(to));
        Self { x1, y1, x2, y2 }
    }
}

/// A segment that is bent aside, so that another one on the same line is seen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Curve {
    segment: Segment,
    bend: f64,
}

impl Segment {
    /// The way from end to end that is so far aside in its middle.
    pub(super) const fn bent(self, bend: f64) -> Curve {
        Curve { segment: self, bend }
    }
}

impl Curve {
    /// The point that pulls it aside.
    fn pull(&self) -> (f64, f64) {
        let (x, y) = self.segment.at(0.5);
        let (dx, dy) = self.segment.direction();
        (x - dy * 2.0 * self.bend, y + dx * 2.0 * self.bend)
    }

    /// The point at this part of its way.
    pub(super) fn at(&self, part: f64) -> (f64, f64) {
        let (x, y) = self.segment.at(part);
        let (dx, dy) = self.segment.direction();
        let aside = 4.0 * part * (1.0 - part) * self.bend;
        (x - dy * aside, y + dx * aside)
    }

    /// The unit vector along its end.
    pub(super) fn direction(&self) -> (f64, f64) {
        let (x1, y1) =
            if self.bend == 0.0 { (self.segment.x1, self.segment.y1) } else { self.pull() };
        Segment { x1, y1, ..self.segment }.direction()
    }

    /// As a path.
    pub(super) fn path(&self) -> String {
        let Segment { x1, y1, x2, y2 } = self.segment;
        if self.bend == 0.0 {
            return format!("M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}");
        }
        let (x, y) = self.pull();
        format!("M{x1:.1} {y1:.1}Q{x:.1} {y:.1} {x2:.1} {y2:.1}")
    }
}

/// How far aside arrows are bent that would hide each other, one after the other.
const BENDS: [f64; 5] = [0.0, 7.0, -7.0, 14.0, -14.0];
/// Two arrows hide each other if they are on one line for so long.
const SHARED_PX: f64 = 14.0;
/// So close is the same line.
const SAME_PX: f64 = 2.0;
/// With more arrows than this none is bent.
const BENT_MAX: usize = 1500;

/// How far every arrow is bent aside, so that none hides another one.
pub(super) fn bends(segments: &[Segment]) -> Vec<f64> {
    let mut bends = vec![0.0; segments.len()];
    if segments.len() > BENT_MAX {
        return bends;
    }
    for index in 1..segments.len() {
        let hides = |other: &usize| segments[index].hides(&segments[*other]);
        let taken: Vec<f64> = (0..index).filter(hides).map(|other| bends[other]).collect();
        let free = BENDS.into_iter().find(|bend| !taken.contains(bend));
        bends[index] = free.unwrap_or(0.0);
    }
    bends
}

impl Segment {
    /// Are both on one line, and for a while side by side?
    fn hides(&self, other: &Self) -> bool {
        let (dx, dy) = self.direction();
        let along = |x: f64, y: f64| (x - self.x1) * dx + (y - self.y1) * dy;
        let aside = |x: f64, y: f64| ((x - self.x1) * dy - (y - self.y1) * dx).abs();
        if aside(other.x1, other.y1) > SAME_PX || aside(other.x2, other.y2) > SAME_PX {
            return false;
        }
        let (a, b) = (along(other.x1, other.y1), along(other.x2, other.y2));
        a.max(b).min(self.length()) - a.min(b).max(0.0) > SHARED_PX
    }

    /// The piece of it between two places of the time axis, and whether its ends are its own.
    pub(super) fn clipped(&self, left: f64, right: f64) -> (Self, bool, bool) {
        let width = self.x2 - self.x1;
        if width.abs() < 1e-9 {
            return (*self, true, true);
        }
        let part = |x: f64| ((x - self.x1) / width).clamp(0.0, 1.0);
        let from = if self.x1 < left { part(left) } else { 0.0 };
        let to = if self.x2 > right { part(right) } else { 1.0 };
        (self.piece(from, to), from == 0.0, to == 1.0)
    }
}

/// The coordinates of a drawing.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) left: f64,
    pub(super) top: f64,
    /// Between two process lines.
    pub(super) row: f64,
    /// Of the part with events, without the tail.
    pub(super) width: f64,
    nodes: usize,
    start: Time,
    px_per_ns: f64,
    /// A typical delay.
    delay: Span,
    in_steps: bool,
    /// How many nodes are suspected at most, each with a bar of its own.
    suspects: usize,
}

impl Layout {
    /// Coordinates in which `zoom` makes letters as large as they are to be.
    pub(super) fn new(picture: &Picture, top: f64, zoom: f64) -> Self {
        let delay = typical_delay(picture);
        let span = picture.end.since(picture.start).0.max(1) as f64;
        let delays = span / delay.0.max(1) as f64;
        let width = match delays * DELAY_PX {
            roomy if roomy <= WIDTH_USUAL => roomy.max(WIDTH_MIN),
            _ => (delays * DELAY_PX_MIN).clamp(WIDTH_USUAL, WIDTH_MAX),
        };
        let width = (width / zoom).max(WIDTH_LEAST);
        let row = match picture.nodes {
            0..=4 => 92.0,
            5..=7 => 76.0,
            8..=12 => 62.0,
            _ => 40.0,
        };
        let suspects = suspects_most(picture);
        let row = row + SUSPECT_PX * suspects.saturating_sub(2) as f64;
        let digits = picture.nodes.to_string().len() as f64;
        let names = picture.setting.names.iter().map(|name| name.chars().count()).max();
        let left = 34.0 + 9.0 * digits + names.map_or(0.0, |chars| 5.0 * chars as f64);
        let (nodes, start) = (picture.nodes, picture.start);
        let (px_per_ns, in_steps) = (width / span, picture.setting.in_steps);
        Self { left, top, row, width, nodes, start, px_per_ns, delay, in_steps, suspects }
    }

    /// The place of a time; left of the picture if that was before it begins.
    pub(super) fn x(&self, time: Time) -> f64 {
        let before = self.start.since(time).0 as f64;
        self.left + (time.since(self.start).0 as f64 - before) * self.px_per_ns
    }

    pub(super) fn y(&self, node: NodeId) -> f64 {
        self.top + self.row * node.index() as f64
    }

    /// The right end of the process lines.
    pub(super) fn right(&self) -> f64 {
        self.left + self.width + TAIL
    }

    /// The height of the lowest process line.
    pub(super) fn bottom(&self) -> f64 {
        self.top + self.row * self.nodes.saturating_sub(1) as f64
    }

    /// The height of the time axis.
    pub(super) fn axis(&self) -> f64 {
        self.bottom() + 24.0 + SUSPECT_PX * self.suspects as f64
    }

    /// The way of a message, and how much of it is drawn: all of it only if it arrived.
    pub(super) fn way(&self, picture: &Picture, arrow: &Arrow) -> Segment {
        let (y1, y2) = (self.y(arrow.from), self.y(arrow.to));
        let (x_end, part) = match arrow.fate {
            Fate::Received(at) => (self.x(at), 1.0),
            Fate::Lost(at) if is_down(picture, arrow.to, at) => (self.x(at), 1.0),
            Fate::Lost(at) => (self.x(at.max(self.expected(arrow))), lost_at(arrow)),
            Fate::InFlight => (self.x(self.expected(arrow)), flying_to(arrow)),
        };
        match arrow.sent {
            Some(sent) => Segment { x1: self.x(sent), y1, x2: x_end, y2 }.piece(0.0, part),
            None => {
                let x1 = x_end - self.delay.0 as f64 * self.px_per_ns;
                Segment { x1, y1, x2: x_end, y2 }.piece(flying_to(arrow), 1.0)
            }
        }
    }

    /// When a message that did not arrive would have.
    fn expected(&self, arrow: &Arrow) -> Time {
        arrow.sent.unwrap_or(self.start) + self.delay
    }

    /// The times to be marked on the axis, and what to write there.
    pub(super) fn ticks(&self, end: Time) -> Vec<(Time, String)> {
        let least = if self.in_steps { Span::UNIT.0 } else { 1 };
        let step = tick_step(60.0 / self.px_per_ns).max(least);
        let first = self.start.0.div_ceil(step);
        let ticks = (first..).map(|i| i.saturating_mul(step)).take_while(|&ns| ns <= end.0);
        ticks.take(1000).map(|ns| (Time(ns), super::rounded(Time(ns).in_units(), 6))).collect()
    }
}

/// How far along its way a message is drawn that was still under way: about half, between two lines.
fn flying_to(arrow: &Arrow) -> f64 {
    let rows = arrow.from.index().abs_diff(arrow.to.index()).max(1);
    ((rows / 2) as f64 + 0.5) / rows as f64
}

/// How far along its way a lost message is drawn: almost to the line where it is missed.
fn lost_at(arrow: &Arrow) -> f64 {
    let rows = arrow.from.index().abs_diff(arrow.to.index()).max(1) as f64;
    (rows - 0.42) / rows
}

/// Is this node down at this time? Then a message arrives at its line, and is lost there.
pub(super) fn is_down(picture: &Picture, node: NodeId, at: Time) -> bool {
    let mut outages = picture.outages.iter().filter(|outage| outage.node == node);
    outages.any(|outage| outage.from <= at && outage.until.is_none_or(|until| at < until))
}

/// The most nodes that one node suspects, each with a bar of its own: four at most.
pub(super) fn suspects_most(picture: &Picture) -> usize {
    let of = |node| picture.suspicions.iter().filter(move |one| one.node == node);
    let distinct = |node| of(node).map(|one| one.peer).collect::<BTreeSet<_>>().len();
    NodeId::first(picture.nodes).map(distinct).max().unwrap_or(0).min(4)
}

/// The median of all delays.
fn typical_delay(picture: &Picture) -> Span {
    let delay = |arrow: &Arrow| match (arrow.sent, arrow.fate) {
        (Some(sent), Fate::Received(at)) if at > sent => Some(at.since(sent)),
        _ => None,
    };
    let mut delays: Vec<_> = picture.arrows.iter().filter_map(delay).collect();
    let middle = delays.len() / 2;
    if delays.is_empty() {
        return Span((picture.end.since(picture.start).0 / 8).max(1));
    }
    *delays.select_nth_unstable(middle).1
}

/// The smallest round number of nanoseconds that is not below `ns_min`: 1, 2 or 5 times a power of
/// ten.
fn tick_step(ns_min: f64) -> u64 {
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if step as f64 >= ns_min {
                return step;
            }
        }
        match power.checked_mul(10) {
            Some(next) => power = next,
            None => return u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in a counterexample: what goes to the node after the next one runs along what goes to the
    /// next one.
    #[test]
    fn arrows_on_one_line_are_drawn_apart() {
        let to = |x2, y2| Segment { x1: 0.0, y1: 0.0, x2, y2 };
        let away = Segment { x1: 500.0, y1: 0.0, x2: 600.0, y2: 100.0 };
        let bends = bends(&[to(100.0, 100.0), to(200.0, 200.0), to(100.0, 100.0), away]);
        assert_eq!(bends, [0.0, 7.0, -7.0, 0.0]);
    }

    #[test]
    fn what_leaves_the_picture_is_cut_at_its_border() {
        let segment = Segment { x1: 0.0, y1: 0.0, x2: 100.0, y2: 100.0 };
        let (cut, own_start, own_end) = segment.clipped(20.0, 60.0);
        assert_eq!(cut, Segment { x1: 20.0, y1: 20.0, x2: 60.0, y2: 60.0 });
        assert!(!own_start && !own_end);
        assert_eq!(segment.clipped(-5.0, 200.0), (segment, true, true));
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(tick_step(0.3), 1);
        assert_eq!(tick_step(3.0), 5);
        assert_eq!(tick_step(700_000.0), 1_000_000);
        assert_eq!(tick_step(1_000_001.0), 2_000_000);
        assert_eq!(tick_step(1e30), u64::MAX);
    }
}
