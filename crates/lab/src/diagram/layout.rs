//! Where things are: times and nodes as coordinates, arrows as segments.

use quorate_core::{NodeId, Span, Time};

use super::{Arrow, Fate, Picture};

/// The width of a typical delay, where there is room.
const DELAY_PX: f64 = 120.0;
/// The same in a long run, before the drawing grows wider instead.
const DELAY_PX_MIN: f64 = 30.0;
const WIDTH_MIN: f64 = 640.0;
const WIDTH_USUAL: f64 = 1200.0;
const WIDTH_MAX: f64 = 6000.0;
/// Room to the right of the last event.
const TAIL: f64 = 44.0;
/// How far along its way a message is drawn that was still under way.
const FLYING_TO: f64 = 0.5;

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
}

impl Layout {
    pub(super) fn new(picture: &Picture, top: f64) -> Self {
        let delay = typical_delay(picture);
        let span = picture.end.since(picture.start).0.max(1) as f64;
        let delays = span / delay.0.max(1) as f64;
        let width = match delays * DELAY_PX {
            roomy if roomy <= WIDTH_USUAL => roomy.max(WIDTH_MIN),
            _ => (delays * DELAY_PX_MIN).clamp(WIDTH_USUAL, WIDTH_MAX),
        };
        let row = match picture.nodes {
            0..=4 => 92.0,
            5..=7 => 76.0,
            8..=12 => 62.0,
            _ => 40.0,
        };
        let digits = picture.nodes.to_string().len() as f64;
        let left = 34.0 + 9.0 * digits;
        let (nodes, start) = (picture.nodes, picture.start);
        Self { left, top, row, width, nodes, start, px_per_ns: width / span, delay }
    }

    pub(super) fn x(&self, time: Time) -> f64 {
        self.left + time.since(self.start).0 as f64 * self.px_per_ns
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

    /// The way of a message, and how much of it is drawn: all of it only if it arrived.
    pub(super) fn way(&self, picture: &Picture, arrow: &Arrow) -> Segment {
        let (y1, y2) = (self.y(arrow.from), self.y(arrow.to));
        let (x_end, part) = match arrow.fate {
            Fate::Received(at) => (self.x(at), 1.0),
            Fate::Lost(at) if is_down(picture, arrow.to, at) => (self.x(at), 1.0),
            Fate::Lost(at) => (self.x(at.max(self.expected(arrow))), lost_at(arrow)),
            Fate::InFlight => (self.x(self.expected(arrow)), FLYING_TO),
        };
        match arrow.sent {
            Some(sent) => Segment { x1: self.x(sent), y1, x2: x_end, y2 }.piece(0.0, part),
            None => {
                let x1 = x_end - self.delay.0 as f64 * self.px_per_ns;
                Segment { x1, y1, x2: x_end, y2 }.piece(FLYING_TO, 1.0)
            }
        }
    }

    /// When a message that did not arrive would have.
    fn expected(&self, arrow: &Arrow) -> Time {
        arrow.sent.unwrap_or(self.start) + self.delay
    }

    /// The times to be marked on the axis, and what to write there.
    pub(super) fn ticks(&self, end: Time) -> Vec<(Time, String)> {
        let step = tick_step(60.0 / self.px_per_ns);
        let first = self.start.0.div_ceil(step);
        let ticks = (first..).map(|i| i.saturating_mul(step)).take_while(|&ns| ns <= end.0);
        ticks.take(1000).map(|ns| (Time(ns), super::rounded(Time(ns).in_units(), 6))).collect()
    }
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

    #[test]
    fn ticks_are_round() {
        assert_eq!(tick_step(0.3), 1);
        assert_eq!(tick_step(3.0), 5);
        assert_eq!(tick_step(700_000.0), 1_000_000);
        assert_eq!(tick_step(1_000_001.0), 2_000_000);
        assert_eq!(tick_step(1e30), u64::MAX);
    }
}
