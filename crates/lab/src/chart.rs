//! Charts: what was measured as points and solid lines, theory as dashed lines, both axes logarithmic.
//!
//! Curves have their names at their ends. Curves that are equal share a name and take turns, so that
//! none hides another one; what is zero stands on a line of its own below the axis; a series without
//! data is not drawn, and the chart says so.

use std::fmt::Write;

/// A chart of several series.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Below the horizontal axis.
    pub x_label: String,
    /// Beside the vertical axis.
    pub y_label: String,
    /// What it shows.
    pub series: Vec<Series>,
}

/// One thing that was measured for several sizes.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Its name, at its curve.
    pub name: String,
    /// What was measured.
    pub points: Vec<(f64, f64)>,
    /// What theory says; a line.
    pub theory: Vec<(f64, f64)>,
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 70.0;
/// Room for the names of curves.
const RIGHT: f64 = 290.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 62.0;
/// Between the names of two curves.
const NAME_PX: f64 = 14.0;
/// The longest line of a name, in characters.
const NAME_CHARS_MAX: usize = 46;
/// The length of a dash where equal curves take turns.
const TURN_PX: f64 = 9.0;
/// Values that differ by less are equal in a picture.
const EQUAL: f64 = 0.01;
/// Where zero stands on an axis that otherwise has none: at this share of it.
const ZERO_SHARE: f64 = 0.07;
/// With more sizes than this the axis has round numbers instead.
const SIZES_MAX: usize = 12;
/// Okabe and Ito's colours, which colour-blind readers can tell apart, the yellow one darker.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#000000"];
const FONT: &str = "ui-sans-serif, system-ui, DejaVu Sans, sans-serif";

/// A logarithmic axis, with a place for zero before it if there is one.
struct Axis {
    low: f64,
    high: f64,
    /// The pixel of the lowest value.
    from: f64,
    to: f64,
    /// The pixel of zero.
    zero: Option<f64>,
}

impl Axis {
    /// An axis from pixel `from` to pixel `to` on which all values have room.
    fn new(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let positive = values.clone().filter(|value| *value > 0.0);
        let (low, high) = positive
            .fold((f64::MAX, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low / 1.3, high * 1.3) };
        let zero = values.clone().any(|value| value == 0.0).then_some(from);
        let from = if zero.is_some() { from + ZERO_SHARE * (to - from) } else { from };
        Self { low: low.ln(), high: high.ln(), from, to, zero }
    }

    fn place(&self, value: f64) -> f64 {
        if let (Some(zero), true) = (self.zero, value <= 0.0) {
            return zero;
        }
        let share = (value.max(1e-12).ln() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round numbers on the axis: 1, 2, 5, 10, 20, 50, …; and zero, where it has a place.
    fn ticks(&self) -> Vec<f64> {
        let decades =
            (self.low / 10f64.ln()).floor() as i32..=(self.high / 10f64.ln()).ceil() as i32;
        let all =
            decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(decade)));
        let all = all.filter(|tick| (self.low..=self.high).contains(&tick.ln()));
        self.zero.map(|_| 0.0).into_iter().chain(all).collect()
    }
}

/// Curves that are equal, with the place of the first one's end.
struct Bundle<'a> {
    /// With their places among the series.
    series: Vec<(usize, &'a Series)>,
    end: (f64, f64),
}

impl Bundle<'_> {
    /// The name of all of them, in lines.
    fn name(&self) -> Vec<String> {
        let names: Vec<_> = self.series.iter().map(|(_, one)| one.name.as_str()).collect();
        crate::diagram::wrap(&names.join(" = "), NAME_CHARS_MAX)
    }
}

impl Chart {
    /// The chart as a picture.
    #[must_use]
    pub fn svg(&self) -> String {
        let drawn = || self.series.iter().filter(|one| !one.points.is_empty());
        let values = |pick: fn(&(f64, f64)) -> f64| {
            drawn().flat_map(|one| one.points.iter().chain(&one.theory)).map(pick)
        };
        let x = Axis::new(values(|point| point.0), LEFT, WIDTH - RIGHT);
        let y = Axis::new(values(|point| point.1), HEIGHT - BOTTOM, TOP);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"{FONT}\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        let title = escape(&self.title);
        text(&mut out, 16.0, 26.0, "font-size=\"17\" font-weight=\"bold\" fill=\"#222\"", &title);
        text(&mut out, 16.0, 44.0, "font-size=\"11\" fill=\"#555\"", &escape(&self.note()));
        self.axes(&mut out, &x, &y);
        let bundles = self.bundles(&x, &y);
        for bundle in &bundles {
            for (turn, (index, series)) in bundle.series.iter().enumerate() {
                series.draw(&mut out, (&x, &y), *index, (turn, bundle.series.len()));
            }
        }
        names(&mut out, &bundles);
        out.push_str("</svg>\n");
        out
    }

    /// What the signs mean, and what is not drawn.
    fn note(&self) -> String {
        let mut note = "solid: measured".to_owned();
        if self.series.iter().any(|one| !one.points.is_empty() && one.theory.len() > 1) {
            note += " · dashed: theory";
        }
        note += " · both axes logarithmic";
        let missing = self.series.iter().filter(|one| one.points.is_empty());
        let missing: Vec<_> = missing.map(|one| one.name.as_str()).collect();
        if !missing.is_empty() {
            note += &format!(" · nothing to measure: {}", missing.join(", "));
        }
        note
    }

    /// The sizes that were measured, if they are not too many.
    fn sizes(&self) -> Option<Vec<f64>> {
        let mut sizes: Vec<f64> =
            self.series.iter().flat_map(|one| &one.points).map(|point| point.0).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        Some(sizes).filter(|sizes| !sizes.is_empty() && sizes.len() <= SIZES_MAX)
    }

    fn bundles(&self, x: &Axis, y: &Axis) -> Vec<Bundle<'_>> {
        let mut bundles: Vec<Bundle<'_>> = Vec::new();
        for (index, one) in self.series.iter().enumerate() {
            let Some(&(last_x, last_y)) = one.points.last() else { continue };
            let same = |bundle: &&mut Bundle<'_>| bundle.series[0].1.is_equal(one);
            match bundles.iter_mut().find(same) {
                Some(bundle) => bundle.series.push((index, one)),
                None => {
                    let end = (x.place(last_x), y.place(last_y));
                    bundles.push(Bundle { series: vec![(index, one)], end });
                }
            }
        }
        bundles
    }

    fn axes(&self, out: &mut String, x: &Axis, y: &Axis) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for tick in self.sizes().unwrap_or_else(|| x.ticks()) {
            let at = x.place(tick);
            line(out, (at, TOP), (at, bottom), "stroke=\"#e8e8e8\"");
            text(out, at, bottom + 18.0, "text-anchor=\"middle\" fill=\"#555\"", &shown(tick));
        }
        for tick in y.ticks() {
            let at = y.place(tick);
            line(out, (LEFT, at), (right, at), "stroke=\"#e8e8e8\"");
            text(out, LEFT - 8.0, at + 4.0, "text-anchor=\"end\" fill=\"#555\"", &shown(tick));
        }
        line(out, (LEFT, bottom), (right, bottom), "stroke=\"#555\"");
        line(out, (LEFT, TOP), (LEFT, bottom), "stroke=\"#555\"");
        // The axis is broken between zero and the rest.
        for (zero, from, is_upright) in [(x.zero, x.from, false), (y.zero, y.from, true)] {
            let Some(zero) = zero else { continue };
            let middle = f64::midpoint(zero, from);
            let (at_x, at_y) = if is_upright { (LEFT, middle) } else { (middle, bottom) };
            for shift in [-2.5, 2.5] {
                let (at_x, at_y) =
                    if is_upright { (at_x, at_y + shift) } else { (at_x + shift, at_y) };
                line(out, (at_x - 4.0, at_y + 3.0), (at_x + 4.0, at_y - 3.0), "stroke=\"#555\"");
            }
        }
        let middle = (LEFT + right) / 2.0;
        let label = escape(&self.x_label);
        text(out, middle, HEIGHT - 16.0, "text-anchor=\"middle\" fill=\"#222\"", &label);
        let turned = format!(
            "transform=\"rotate(-90 18 {0})\" text-anchor=\"middle\" fill=\"#222\"",
            HEIGHT / 2.0
        );
        text(out, 18.0, HEIGHT / 2.0, &turned, &escape(&self.y_label));
    }
}

/// Writes the names of curves beside their ends, moved up and down until none covers another one.
fn names(out: &mut String, bundles: &[Bundle<'_>]) {
    let mut order: Vec<&Bundle<'_>> = bundles.iter().collect();
    order.sort_by(|a, b| a.end.1.total_cmp(&b.end.1));
    let heights: Vec<f64> = order.iter().map(|one| NAME_PX * one.name().len() as f64).collect();
    let mut tops: Vec<f64> =
        order.iter().zip(&heights).map(|(one, height)| one.end.1 - height / 2.0).collect();
    for i in 1..tops.len() {
        tops[i] = tops[i].max(tops[i - 1] + heights[i - 1] + 2.0);
    }
    // What was pushed below the chart goes up again, and takes the others with it.
    let mut floor = HEIGHT - BOTTOM + 24.0;
    for i in (0..tops.len()).rev() {
        tops[i] = tops[i].min(floor - heights[i]);
        floor = tops[i] - 2.0;
    }
    let column = WIDTH - RIGHT + 28.0;
    for ((bundle, top), height) in order.iter().zip(tops).zip(heights) {
        let (x, y) = bundle.end;
        let middle = top + height / 2.0;
        let path = format!("M{:.1} {y:.1}L{:.1} {middle:.1}", x + 6.0, column - 14.0);
        let _ = writeln!(out, "<path d=\"{path}\" stroke=\"#bbb\" fill=\"none\"/>");
        let (index, first) = bundle.series[0];
        mark(out, (column - 8.0, middle), index, &escape(&first.name));
        let colour = COLOURS[index % COLOURS.len()];
        for (row, name) in bundle.name().iter().enumerate() {
            let at = top + NAME_PX * (row as f64 + 0.78);
            text(out, column, at, &format!("fill=\"{colour}\""), &escape(name));
        }
    }
}

impl Series {
    /// Do both have the same values, as far as a picture shows it?
    fn is_equal(&self, other: &Self) -> bool {
        let close = |a: f64, b: f64| (a - b).abs() <= EQUAL * a.abs().max(b.abs());
        let mut pairs = self.points.iter().zip(&other.points);
        self.points.len() == other.points.len() && pairs.all(|(a, b)| a.0 == b.0 && close(a.1, b.1))
    }

    /// Draws the curve; of equal ones, every one takes its turn.
    fn draw(&self, out: &mut String, (x, y): (&Axis, &Axis), index: usize, turns: (usize, usize)) {
        let colour = COLOURS[index % COLOURS.len()];
        let path = |points: &[(f64, f64)]| {
            let place =
                |point: &(f64, f64)| format!("{:.1},{:.1}", x.place(point.0), y.place(point.1));
            points.iter().map(place).collect::<Vec<_>>().join(" ")
        };
        let mut curve = |points: &[(f64, f64)], look: &str| {
            if points.len() > 1 {
                let points = path(points);
                let _ = writeln!(
                    out,
                    "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" {look}/>"
                );
            }
        };
        curve(&self.theory, "stroke-dasharray=\"3 4\" stroke-opacity=\"0.7\"");
        let (turn, count) = turns;
        let turns = match count {
            1 => String::new(),
            _ => format!(
                " stroke-dasharray=\"{TURN_PX} {}\" stroke-dashoffset=\"{}\"",
                TURN_PX * (count - 1) as f64,
                -TURN_PX * turn as f64
            ),
        };
        curve(&self.points, &format!("stroke-width=\"1.8\"{turns}"));
        for point in &self.points {
            mark(out, (x.place(point.0), y.place(point.1)), index, &tooltip(&self.name, *point));
        }
    }
}

fn tooltip(name: &str, (x, y): (f64, f64)) -> String {
    format!("{}: {} at {}", escape(name), shown(y), shown(x))
}

/// A mark of the series' shape and colour.
fn mark(out: &mut String, (x, y): (f64, f64), index: usize, title: &str) {
    let colour = COLOURS[index % COLOURS.len()];
    let shape = match index / COLOURS.len() {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\""),
        1 => {
            format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"8.5\" height=\"8.5\"", x - 4.2, y - 4.2)
        }
        _ => {
            let (left, right, top, bottom) = (x - 5.0, x + 5.0, y - 5.0, y + 4.0);
            format!("<path d=\"M{left:.1} {bottom:.1}L{right:.1} {bottom:.1}L{x:.1} {top:.1}Z\"")
        }
    };
    let _ = writeln!(out, "{shape} fill=\"{colour}\"><title>{title}</title></{}>", name(&shape));
}

/// The name of the element that begins so.
fn name(element: &str) -> &str {
    element.trim_start_matches('<').split(' ').next().unwrap_or("g")
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64), style: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        out,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>"
    );
}

fn text(out: &mut String, x: f64, y: f64, style: &str, content: &str) {
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{content}</text>");
}

fn shown(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_points_lie_on_the_line_of_theory_where_they_agree() {
        let at = |n: f64| (n, 2.0 * n);
        let points = [4.0, 16.0, 64.0].map(at).to_vec();
        let series = Series { name: "a <b>".into(), points: points.clone(), theory: points };
        let chart = Chart {
            title: "messages".into(),
            x_label: "nodes".into(),
            y_label: "messages per entry".into(),
            series: vec![series],
        };
        let svg = chart.svg();
        let is_theory = |line: &&str| line.contains("stroke-dasharray=\"3 4\"");
        let line = svg.lines().find(is_theory).unwrap();
        let circles: Vec<_> = svg.lines().filter(|line| line.starts_with("<circle")).collect();
        assert_eq!(circles.len(), 4, "three points and one at the name");
        for circle in &circles[..3] {
            let number = |key: &str| {
                let rest = circle.split_once(&format!("{key}=\"")).unwrap().1;
                rest.split_once('"').unwrap().0
            };
            assert!(
                line.contains(&format!("{},{}", number("cx"), number("cy"))),
                "{circle} {line}"
            );
        }
        assert!(svg.contains("a &lt;b&gt;"));
    }

    fn chart(series: &[(&str, &[(f64, f64)])]) -> Chart {
        let one = |(name, points): &(&str, &[(f64, f64)])| Series {
            name: (*name).into(),
            points: points.to_vec(),
            theory: Vec::new(),
        };
        Chart {
            title: String::new(),
            x_label: String::new(),
            y_label: String::new(),
            series: series.iter().map(one).collect(),
        }
    }

    #[test]
    fn equal_curves_share_a_name_and_take_turns() {
        let curve = [(4.0, 9.0), (16.0, 45.0)];
        let other = [(4.0, 3.0), (16.0, 3.0)];
        let svg = chart(&[("lamport", &curve), ("central", &other), ("majority", &curve)]).svg();
        assert!(svg.contains(">lamport = majority</text>"), "{svg}");
        let turns = svg.lines().filter(|line| line.contains("stroke-dashoffset")).count();
        assert_eq!(turns, 2);
        assert!(svg.contains(">16</text>"), "a size that was measured is on the axis");
    }

    #[test]
    fn zero_has_a_place_and_nothing_measured_is_said() {
        let svg = chart(&[("a", &[(0.0, 0.0), (0.1, 5.0)]), ("b", &[])]).svg();
        assert!(svg.contains(">0</text>") && svg.contains("nothing to measure: b"), "{svg}");
        let marks = svg.lines().filter(|line| line.starts_with("<circle")).count();
        assert_eq!(marks, 3, "two points and one at the name");
    }

    #[test]
    fn an_empty_chart_is_a_chart() {
        let chart = Chart {
            title: String::new(),
            x_label: String::new(),
            y_label: String::new(),
            series: Vec::new(),
        };
        assert!(chart.svg().ends_with("</svg>\n"));
    }
}
