//! Which arrows get a label, and where: along the arrow, beside it, over nothing else.
//!
//! Labels are placed one after another, each at the best of a few places on its arrow. Where even
//! the best one is bad, a shorter text is tried, and in the end none: the colour says the kind, and
//! a wrong place says less than no label.

use super::Picture;
use super::layout::{Layout, Segment};

pub(super) const LABEL_PX: f64 = 10.0;
/// With more arrows than this no arrow gets a label.
const ARROWS_MAX: usize = 400;
const CHAR_PX: f64 = LABEL_PX * 0.68;
/// The longest content of a message that is written at its arrow.
const DETAIL_CHARS_MAX: usize = 14;
/// From the arrow to the middle of the text.
const OFFSET: f64 = 7.5;
const HALF_HEIGHT: f64 = LABEL_PX * 0.5;
/// Where on the arrow, best first.
const PLACES: [f64; 9] = [0.4, 0.33, 0.5, 0.26, 0.6, 0.68, 0.2, 0.76, 0.84];
/// Half the height of what is drawn on process lines.
const LINE_HALF: f64 = 6.0;

/// A text beside an arrow.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub(super) arrow: usize,
    pub(super) text: String,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) degrees: f64,
}

/// A rectangle turned about its middle.
#[derive(Clone, Copy, Debug)]
struct Turned {
    x: f64,
    y: f64,
    half_width: f64,
    along: (f64, f64),
}

/// Places labels on what can have one. The segments are those of the arrows.
pub(super) fn place(
    picture: &Picture,
    layout: &Layout,
    segments: &[Segment],
    bends: &[f64],
) -> Vec<Label> {
    if segments.len() > ARROWS_MAX {
        return Vec::new();
    }
    let mut placer = Placer { picture, layout, segments, bends, taken: Vec::new() };
    let has_label = |index: &usize| {
        let arrow = &picture.arrows[*index];
        arrow.from != arrow.to && arrow.copy_of.is_none()
    };
    let mut order: Vec<_> = (0..segments.len()).filter(has_label).collect();
    // Short arrows first: they have the least choice.
    order.sort_by(|&a, &b| segments[a].length().total_cmp(&segments[b].length()));
    order.into_iter().filter_map(|index| placer.best(index)).collect()
}

struct Placer<'a> {
    picture: &'a Picture,
    layout: &'a Layout,
    segments: &'a [Segment],
    /// How far arrows are bent aside.
    bends: &'a [f64],
    taken: Vec<Turned>,
}

impl Placer<'_> {
    /// The longest text that covers nothing, or else the longest that covers one other arrow. What
    /// a message carries goes before its kind, which the colour says, too.
    fn best(&mut self, index: usize) -> Option<Label> {
        let arrow = &self.picture.arrows[index];
        let notation = self.picture.notation(arrow);
        let is_short = |text: &&str| (1..=DETAIL_CHARS_MAX).contains(&text.chars().count());
        let first = notation.short.split(", ").next();
        let detail = Some(notation.short.as_str()).filter(is_short).or(first.filter(is_short));
        let texts = match detail {
            Some(detail) if notation.is_of_view => vec![notation.with(detail), notation.with("")],
            Some(detail) => {
                vec![notation.with(detail), super::printable(detail), notation.with("")]
            }
            None => vec![notation.with("")],
        };
        let covering = |cost_max| texts.iter().map(move |text| (text, cost_max));
        let mut tries = covering(1.0).chain(covering(2.0));
        tries.find_map(|(text, cost_max)| self.label(index, text, cost_max))
    }

    fn label(&mut self, arrow: usize, text: &str, cost_max: f64) -> Option<Label> {
        let segment = self.segments[arrow];
        let width = CHAR_PX * text.chars().count() as f64;
        let along = upright(segment.direction());
        // Above the arrow rather than below: (y, -x) points up, as `along` points to the right.
        let up = (along.1, -along.0);
        let mut best: Option<(f64, Turned)> = None;
        for (rank, part) in PLACES.iter().enumerate() {
            for side in [1.0, -1.0] {
                let room = segment.length() * part.min(1.0 - part);
                if room < width / 2.0 + 4.0 {
                    continue;
                }
                let (x, y) = segment.bent(self.bends[arrow]).at(*part);
                let (x, y) = (x + up.0 * OFFSET * side, y + up.1 * OFFSET * side);
                let place = Turned { x, y, half_width: width / 2.0, along };
                let preference = rank as f64 * 0.07 + if side < 0.0 { 0.3 } else { 0.0 };
                let Some(cost) = self.cost(arrow, &place) else { continue };
                let cost = cost + preference;
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, place));
                }
            }
        }
        let (_, place) = best.filter(|(cost, _)| *cost < cost_max)?;
        self.taken.push(place);
        let degrees = place.along.1.atan2(place.along.0).to_degrees();
        Some(Label { arrow, text: text.to_string(), x: place.x, y: place.y, degrees })
    }

    /// How much a label here would disturb; none if it would cover another one or a line.
    fn cost(&self, own: usize, place: &Turned) -> Option<f64> {
        if self.taken.iter().any(|other| place.overlaps(other)) {
            return None;
        }
        let (_, half_y) = place.extent();
        let over_line = |y: f64| (place.y - y).abs() < half_y + LINE_HALF;
        let mut lines = quorate_core::NodeId::first(self.picture.nodes);
        if lines.any(|node| over_line(self.layout.y(node))) {
            return None;
        }
        let others = self.segments.iter().enumerate().filter(|(index, _)| *index != own);
        let crossed = others.filter(|(_, segment)| place.is_crossed(segment)).count();
        Some(crossed as f64)
    }
}

impl Turned {
    /// Half the width and half the height of the upright box around it.
    fn extent(&self) -> (f64, f64) {
        let (cos, sin) = (self.along.0.abs(), self.along.1.abs());
        let across = self.half_width * sin + HALF_HEIGHT * cos;
        (self.half_width * cos + HALF_HEIGHT * sin, across)
    }

    /// Two convex shapes are apart if a line along a side of one of them is between them.
    fn overlaps(&self, other: &Self) -> bool {
        let (dx, dy) = (other.x - self.x, other.y - self.y);
        [self.along, other.along].into_iter().all(|(cos, sin)| {
            let reach = |shape: &Self, axis: (f64, f64)| {
                let along = (shape.along.0 * axis.0 + shape.along.1 * axis.1).abs();
                let across = (shape.along.0 * axis.1 - shape.along.1 * axis.0).abs();
                shape.half_width * along + (HALF_HEIGHT + 1.0) * across
            };
            [(cos, sin), (-sin, cos)].into_iter().all(|axis| {
                let distance = (dx * axis.0 + dy * axis.1).abs();
                distance < reach(self, axis) + reach(other, axis)
            })
        })
    }

    /// Does the segment run through it? Clips it against the two pairs of sides.
    fn is_crossed(&self, segment: &Segment) -> bool {
        let local = |x: f64, y: f64| {
            let (dx, dy) = (x - self.x, y - self.y);
            (dx * self.along.0 + dy * self.along.1, dy * self.along.0 - dx * self.along.1)
        };
        let (from, to) = (local(segment.x1, segment.y1), local(segment.x2, segment.y2));
        let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
        for (from, to, half) in [(from.0, to.0, self.half_width), (from.1, to.1, HALF_HEIGHT)] {
            let step = to - from;
            if step.abs() < 1e-9 {
                if from.abs() > half {
                    return false;
                }
                continue;
            }
            let (a, b) = ((-half - from) / step, (half - from) / step);
            enter = enter.max(a.min(b));
            leave = leave.min(a.max(b));
        }
        enter <= leave
    }
}

/// The same direction or its opposite, such that text along it is not upside down.
fn upright((x, y): (f64, f64)) -> (f64, f64) {
    if x < 0.0 || (x == 0.0 && y > 0.0) { (-x, -y) } else { (x, y) }
}
