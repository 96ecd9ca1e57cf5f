//! Sweeps: one algorithm at every combination of what is varied, each with several seeds.

use serde_json::{Map, Value, json};

use crate::chart::{Chart, Series};
use crate::simulate::simulate_all;
use crate::{BadInput, Many, Spec, Summary};

/// The most runs of a sweep.
pub const RUNS_MAX: usize = 1_000_000;

/// What is varied, and over what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// The argument, without dashes.
    pub name: String,
    /// Its values, as typed.
    pub values: Vec<String>,
}

/// One combination, and what came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// The value on each axis.
    pub values: Vec<String>,
    /// What was run.
    pub spec: Spec,
    /// With one seed after the other.
    pub many: Many,
}

/// What came of a sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Sweep {
    /// What was varied.
    pub axes: Vec<Axis>,
    /// All combinations, the last axis the fastest.
    pub points: Vec<Point>,
}

/// All combinations of the values, the last axis the fastest.
#[must_use]
pub fn combinations(axes: &[Axis]) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    for axis in axes {
        let longer = |one: &Vec<String>| {
            let more =
                axis.values.iter().map(|value| [&one[..], std::slice::from_ref(value)].concat());
            more.collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Runs the spec of every combination with `runs` seeds, on all cores, as long as `go_on`, told how
/// many runs are done, says so.
///
/// # Errors
/// The first argument that makes no sense.
pub fn sweep(
    axes: Vec<Axis>,
    specs: Vec<Spec>,
    runs: u32,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<Sweep, BadInput> {
    let runs = runs as usize;
    let total = specs.len().saturating_mul(runs);
    if !(1..=RUNS_MAX).contains(&total) {
        let reason = format!("{total} runs are not a number of runs from 1 to {RUNS_MAX}");
        return Err(BadInput::new("--runs", reason));
    }
    let seeded = |number: usize| {
        let spec = &specs[number / runs];
        Spec { seed: spec.seed.wrapping_add((number % runs) as u64), ..spec.clone() }
    };
    let mut done = simulate_all(total, &seeded, go_on)?.into_iter();
    let all = combinations(&axes).into_iter().zip(&specs).map(|(values, spec)| {
        let many = Many { runs: done.by_ref().take(runs).collect() };
        Point { values, spec: spec.clone(), many }
    });
    let points = all.filter(|point| !point.many.runs.is_empty()).collect();
    Ok(Sweep { axes, points })
}

impl Sweep {
    /// The names of all numbers that were measured, in the order of the report.
    #[must_use]
    pub fn figures(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in self.points.iter().flat_map(|point| point.many.summaries()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// One line of comma-separated values for each combination: where it is, in how many runs all
    /// held, and mean and 95th percentile of each number.
    #[must_use]
    pub fn csv(&self) -> String {
        let figures = self.figures();
        let names = self.axes.iter().map(|axis| quoted(&axis.name));
        let mut header: Vec<String> = names.chain(["runs".into(), "held".into()]).collect();
        header.extend(figures.iter().flat_map(|name| [name.clone(), format!("{name}.p95")]));
        let mut text = header.join(",") + "\n";
        for Point { values, many, .. } in &self.points {
            let mut cells: Vec<String> = values.iter().map(|value| quoted(value)).collect();
            cells.extend([many.runs.len().to_string(), many.held().to_string()]);
            let summaries = many.summaries();
            for name in &figures {
                let summary = summaries.iter().find(|(known, _)| known == name);
                cells.extend(match summary {
                    Some((_, Summary { mean, p95, .. })) => [mean.to_string(), p95.to_string()],
                    None => [String::new(), String::new()],
                });
            }
            text += &(cells.join(",") + "\n");
        }
        text
    }

    /// The sweep as one JSON object: the report of each combination, with its place.
    #[must_use]
    pub fn json(&self) -> Map<String, Value> {
        let axes: Map<_, _> =
            self.axes.iter().map(|axis| (axis.name.clone(), json!(axis.values))).collect();
        let points = self.points.iter().map(|Point { values, spec, many }| {
            let names = self.axes.iter().map(|axis| axis.name.clone());
            let at: Map<_, _> = names.zip(values.iter().map(|value| json!(value))).collect();
            json!({ "at": at, "report": many.json(spec) })
        });
        let mut json = Map::new();
        json.insert("axes".into(), Value::Object(axes));
        json.insert("points".into(), points.collect());
        json
    }

    /// A figure against the first axis of numbers, a series for each combination of the others.
    ///
    /// # Errors
    /// If no axis has numbers, or nothing of this name was measured.
    pub fn chart(&self, figure: &str) -> Result<Chart, BadInput> {
        let numeric = |axis: &Axis| axis.values.iter().all(|value| value.parse::<f64>().is_ok());
        let Some(x) = self.axes.iter().position(numeric) else {
            return Err(BadInput::new("--svg", "nothing is varied over numbers"));
        };
        let mut series: Vec<Series> = Vec::new();
        for Point { values, many, .. } in &self.points {
            let others = self.axes.iter().zip(values).enumerate().filter(|(index, _)| *index != x);
            let others = others.map(|(_, (axis, value))| format!("{} {value}", axis.name));
            let name = others.collect::<Vec<_>>().join(", ");
            let name = if name.is_empty() { figure.to_owned() } else { name };
            let summaries = many.summaries();
            let mean = summaries.iter().find(|(known, _)| known == figure);
            let Some(((_, summary), at)) = mean.zip(values[x].parse().ok()) else { continue };
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push((at, summary.mean)),
                None => {
                    series.push(Series { name, points: vec![(at, summary.mean)], theory: vec![] });
                }
            }
        }
        if series.is_empty() {
            let known = self.figures().join(", ");
            return Err(BadInput::new("--figure", format!("{figure} is none of {known}")));
        }
        let algorithm = self.points.first().map_or("", |point| &point.spec.algorithm);
        Ok(Chart {
            title: format!("{algorithm}: {}", figure.replace('_', " ")),
            x_label: self.axes[x].name.clone(),
            y_label: figure.replace('_', " "),
            series,
        })
    }
}

/// A value of comma-separated ones.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(name: &str, values: &[&str]) -> Axis {
        Axis { name: name.into(), values: values.iter().map(|&value| value.into()).collect() }
    }

    #[test]
    fn every_combination_is_run_with_every_seed() {
        let axes = vec![axis("nodes", &["4", "8"]), axis("loss", &["0", "0.5"])];
        let specs: Vec<_> = combinations(&axes)
            .iter()
            .map(|at| {
                let spec = Spec::new("mutex/ricart-agrawala", at[0].parse().unwrap());
                Spec { loss: at[1].parse().unwrap(), ..spec }
            })
            .collect();
        let done = sweep(axes, specs, 3, &mut |_| true).unwrap();
        let held: Vec<_> = done.points.iter().map(|point| point.many.held()).collect();
        assert_eq!(held, [3, 0, 3, 0], "half of the messages are too many to lose");
        let csv = done.csv();
        let lines: Vec<_> = csv.lines().collect();
        assert!(lines[0].starts_with("nodes,loss,runs,held,entries,entries.p95,messages,"));
        assert!(lines[1].starts_with("4,0,3,3,12,12,72,72,6,6,"), "{}", lines[1]);
        assert!(lines[3].starts_with("8,0,3,3,24,24,336,336,14,14,"), "{}", lines[3]);
        let chart = done.chart("messages_per_entry").unwrap();
        assert_eq!(chart.series[0].name, "loss 0");
        assert_eq!(chart.series[0].points, [(4.0, 6.0), (8.0, 14.0)]);
        assert!(done.chart("nonsense").is_err());
    }
}
