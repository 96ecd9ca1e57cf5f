//! Charts: what was measured as points, theory as lines, both axes logarithmic.

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
    /// Its name in the legend.
    pub name: String,
    /// What was measured.
    pub points: Vec<(f64, f64)>,
    /// What theory says; a line.
    pub theory: Vec<(f64, f64)>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 250.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 56.0;
/// Okabe and Ito's colours, which colour-blind readers can tell apart.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
const FONT: &str = "ui-sans-serif, system-ui, DejaVu Sans, sans-serif";

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis from pixel `from` to pixel `to` on which all values have room.
    fn new(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let positive = values.filter(|value| *value > 0.0);
        let (low, high) = positive
            .fold((f64::MAX, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low / 1.3, high * 1.3) };
        Self { low: low.ln(), high: high.ln(), from, to }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.max(1e-12).ln() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round numbers on the axis: 1, 2, 5, 10, 20, 50, …
    fn ticks(&self) -> Vec<f64> {
        let decades =
            (self.low / 10f64.ln()).floor() as i32..=(self.high / 10f64.ln()).ceil() as i32;
        let all =
            decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(decade)));
        all.filter(|tick| (self.low..=self.high).contains(&tick.ln())).collect()
    }
}

impl Chart {
    /// The chart as a picture.
    #[must_use]
    pub fn svg(&self) -> String {
        let values = |pick: fn(&(f64, f64)) -> f64| {
            self.series.iter().flat_map(|one| one.points.iter().chain(&one.theory)).map(pick)
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
        let note = "points: measured · lines: theory · both axes logarithmic";
        text(&mut out, 16.0, 44.0, "font-size=\"11\" fill=\"#555\"", note);
        self.axes(&mut out, &x, &y);
        for (index, series) in self.series.iter().enumerate() {
            series.draw(&mut out, &x, &y, index);
            series.legend(&mut out, index);
        }
        out.push_str("</svg>\n");
        out
    }

    fn axes(&self, out: &mut String, x: &Axis, y: &Axis) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for tick in x.ticks() {
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
        let middle = (LEFT + right) / 2.0;
        let label = escape(&self.x_label);
        text(out, middle, HEIGHT - 14.0, "text-anchor=\"middle\" fill=\"#222\"", &label);
        let turned = format!(
            "transform=\"rotate(-90 18 {0})\" text-anchor=\"middle\" fill=\"#222\"",
            HEIGHT / 2.0
        );
        text(out, 18.0, HEIGHT / 2.0, &turned, &escape(&self.y_label));
    }
}

impl Series {
    fn draw(&self, out: &mut String, x: &Axis, y: &Axis, index: usize) {
        let colour = COLOURS[index % COLOURS.len()];
        let known = self.theory.iter().filter(|point| point.1 > 0.0);
        let path: Vec<_> =
            known.map(|point| format!("{:.1},{:.1}", x.place(point.0), y.place(point.1))).collect();
        if path.len() > 1 {
            let points = path.join(" ");
            let _ = writeln!(
                out,
                "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-opacity=\"0.55\"/>"
            );
        }
        for point in self.points.iter().filter(|point| point.1 > 0.0) {
            mark(out, (x.place(point.0), y.place(point.1)), index, &tooltip(&self.name, *point));
        }
    }

    fn legend(&self, out: &mut String, index: usize) {
        let at = TOP + 10.0 + 18.0 * index as f64;
        mark(out, (WIDTH - RIGHT + 24.0, at), index, &escape(&self.name));
        text(out, WIDTH - RIGHT + 36.0, at + 4.0, "fill=\"#222\"", &escape(&self.name));
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
        let line = svg.lines().find(|line| line.starts_with("<polyline")).unwrap();
        let circles: Vec<_> = svg.lines().filter(|line| line.starts_with("<circle")).collect();
        assert_eq!(circles.len(), 4, "three points and one in the legend");
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
