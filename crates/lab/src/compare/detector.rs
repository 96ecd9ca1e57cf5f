//! The failure detectors side by side: how soon they notice a crash and how often they are wrong,
//! against the rate at which messages are lost.
//!
//! Links are independent of each other, so the number of nodes is always the same. Latency is
//! constant, so that what a fixed timeout does can be computed; see `Expected`.

use quorate_algorithms::detector::Detector;
use quorate_core::{Span, Time};
use serde_json::{Map, Value, json};

use super::{Figure, Theory, line};
use crate::chart::Chart;
use crate::detector::{DetectorSpec, Figures};
use crate::text::typed;
use crate::{BadInput, NodeAt, Run, Spec, measure, read};

/// How many nodes there are.
const NODES: usize = 5;
/// Ordered pairs of them.
const PAIRS: f64 = (NODES * (NODES - 1)) as f64;
/// How often they beat.
const INTERVAL: Span = Span::units(10);
/// How long a beat takes.
const LATENCY: Span = Span::UNIT;
/// How many beats the mistakes of a run without crashes are counted over.
const BEATS: u64 = 20_000;
/// How many crashes are tried, at equal distances between two beats.
const CRASHES: u64 = 40;
/// So many beats come before a crash: windows are full.
const BEATS_BEFORE: u64 = 150;
/// So many beats would come after it: everybody has noticed.
const BEATS_AFTER: u64 = 100;
/// The most different rates.
const RATES_MAX: usize = 20;
/// A mean of random runs may be off by so many standard deviations.
const DEVIATIONS: f64 = 4.0;
/// In units of time.
const HOUR: f64 = 3.6e6;

/// What is compared: an algorithm with an option.
const SETTINGS: [(&str, &str, &str); 6] = [
    ("detector/heartbeat", "timeout", "15"),
    ("detector/heartbeat", "timeout", "25"),
    ("detector/heartbeat", "timeout", "35"),
    ("detector/phi-accrual", "threshold", "1"),
    ("detector/phi-accrual", "threshold", "3"),
    ("detector/phi-accrual", "threshold", "8"),
];

/// One detector at one rate of losses. Times are in units.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Which.
    pub algorithm: &'static str,
    /// Its option, as typed.
    pub setting: String,
    /// The probability that a message is lost.
    pub loss: f64,
    /// From a crash to its suspicion, on average.
    pub detection: Figure,
    /// The longest.
    pub detection_max: Option<f64>,
    /// How often each node suspects each other one that is alive.
    pub mistakes_per_hour: Figure,
    /// How long a mistake lasts, on average.
    pub mistake_duration: Figure,
    /// How probable the right answer about a live node is at any moment.
    pub query_accuracy: Figure,
    /// Was every crash noticed by everybody?
    pub complete: bool,
}

/// What a fixed timeout comes to at constant latency.
///
/// With η the interval, Δ the timeout, p the rate of losses: a mistake begins when k = ⌈Δ/η⌉-1
/// beats in a row are lost after one that was not, and ends with the next that is not.
struct Expected {
    interval: f64,
    timeout: f64,
    loss: f64,
    /// Beats lost before a mistake.
    lost: i32,
}

impl Expected {
    fn new(timeout: f64, loss: f64) -> Self {
        let interval = INTERVAL.in_units();
        Self { interval, timeout, loss, lost: (timeout / interval).ceil() as i32 - 1 }
    }

    /// The probability that a beat begins a mistake.
    fn mistakes_per_beat(&self) -> f64 {
        (1.0 - self.loss) * self.loss.powi(self.lost)
    }

    fn mistake_duration(&self) -> f64 {
        let more = self.loss / (1.0 - self.loss);
        (f64::from(self.lost + 1) + more) * self.interval - self.timeout
    }

    fn query_accuracy(&self) -> f64 {
        1.0 - self.mistakes_per_beat() * self.mistake_duration() / self.interval
    }

    /// The crash is somewhere between two beats, of which the last ones may have been lost; whoever
    /// is suspected already is detected at once.
    fn detection(&self) -> f64 {
        let mut mean = 0.0;
        for lost in 0..=self.lost + 1 {
            let longest = LATENCY.in_units() + self.timeout - f64::from(lost) * self.interval;
            let usual = if longest >= self.interval {
                longest - self.interval / 2.0
            } else {
                longest.max(0.0).powi(2) / (2.0 * self.interval)
            };
            mean += (1.0 - self.loss) * self.loss.powi(lost) * usual;
        }
        mean
    }

    /// The deviation of how old the last beat that arrived is, and of how long a mistake goes on.
    fn deviation(&self) -> f64 {
        self.interval * self.loss.sqrt() / (1.0 - self.loss)
    }
}

/// Compares the detectors at these rates of losses. `progress` hears the name of each before it is
/// measured, and the number of nodes.
///
/// # Errors
/// If a rate makes no sense.
pub fn compare(
    losses: &[f64],
    progress: &mut dyn FnMut(&str, usize),
) -> Result<Vec<Row>, BadInput> {
    if losses.is_empty() || losses.len() > RATES_MAX {
        let reason = format!("{} rates; from 1 to {RATES_MAX} can be compared", losses.len());
        return Err(BadInput::new("--loss", reason));
    }
    if let Some(loss) = losses.iter().find(|loss| !(0.0..=0.9).contains(*loss)) {
        return Err(BadInput::new("--loss", format!("{loss} is not a probability from 0 to 0.9")));
    }
    let mut rows = Vec::new();
    for (algorithm, option, value) in SETTINGS {
        for &loss in losses {
            progress(algorithm, NODES);
            rows.push(row(algorithm, option, value, loss)?);
        }
    }
    Ok(rows)
}

fn row(
    algorithm: &'static str,
    option: &'static str,
    value: &'static str,
    loss: f64,
) -> Result<Row, BadInput> {
    let mut spec = Spec::new(algorithm, NODES).given(DetectorSpec { interval: INTERVAL });
    spec.latency = read("--latency", &typed(LATENCY))?;
    spec.options.insert(option.to_owned(), value.to_owned());
    spec.loss = loss;
    let until = Some(Time::ZERO + INTERVAL.times(BEATS) + LATENCY.times(2));
    let long = measure::<Detector>(&Spec { until, ..spec.clone() })?.figures;
    let crashes = crashes(&spec)?;
    let times = || crashes.iter().map(|run| &run.figures.detection_time);
    let means: Vec<f64> = times().filter_map(|time| time.mean).collect();
    let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
    let mistakes = long.mistakes as f64;
    let timeout = value.parse().ok().filter(|_| option == "timeout");
    let expected = timeout.map(|timeout| Expected::new(timeout, loss));
    let theory = |formula: &str, value: &dyn Fn(&Expected) -> (f64, f64)| {
        let (value, off) = value(expected.as_ref()?);
        let (low, high) = (value - off, value + off);
        Some(Theory { formula: formula.to_owned(), value: Some(value), low, high })
    };
    let beats = BEATS as f64 * PAIRS;
    let rate = |per_beat: f64| per_beat * HOUR / INTERVAL.in_units();
    Ok(Row {
        algorithm,
        setting: format!("--{option} {value}"),
        loss,
        detection: Figure {
            measured: (!means.is_empty()).then_some(mean),
            theory: theory("E max(0, T+Δ-ηU-ηG)", &|expected| {
                let samples = CRASHES as f64 * (NODES - 1) as f64;
                let off = DEVIATIONS * expected.deviation() / samples.sqrt();
                (expected.detection(), off)
            }),
        },
        detection_max: times().filter_map(|time| time.max).reduce(f64::max),
        mistakes_per_hour: Figure {
            measured: long.mistakes_per_hour,
            theory: theory("(1-p)·p^k/η", &|expected| {
                let per_beat = expected.mistakes_per_beat();
                // The last beat of a run may be one too few or too many.
                let off = (DEVIATIONS * (per_beat * beats).sqrt() + per_beat * PAIRS) / beats;
                (rate(per_beat), rate(off))
            }),
        },
        mistake_duration: Figure {
            measured: long.mistake_duration,
            theory: theory("(k+1)η-Δ+ηp/(1-p)", &|expected| {
                let off = DEVIATIONS * expected.deviation() / mistakes.max(1.0).sqrt();
                (expected.mistake_duration(), off)
            }),
        },
        query_accuracy: Figure {
            measured: long.query_accuracy,
            theory: theory("1-T_M/T_MR", &|expected| {
                let wrong = 1.0 - expected.query_accuracy();
                // So many mistakes, each as long as an exponentially distributed time at most.
                let count = (expected.mistakes_per_beat() * beats).max(1.0);
                (1.0 - wrong, DEVIATIONS * 1.5 * wrong / count.sqrt() + wrong / BEATS as f64)
            }),
        },
        complete: crashes.iter().all(|run| super::held(&run.report, "completeness")),
    })
}

/// The last node crashes, at one moment after the other between two beats.
fn crashes(spec: &Spec) -> Result<Vec<Run<Figures>>, BadInput> {
    let crash = |turn: u64| {
        let between = Span(INTERVAL.0 * (2 * turn + 1) / (2 * CRASHES));
        let at = Time::ZERO + INTERVAL.times(BEATS_BEFORE) + between;
        let until = at + INTERVAL.times(BEATS_AFTER);
        let (crashes, until) = (vec![NodeAt::new(NODES as u32, at)], Some(until));
        let spec = Spec { seed: spec.seed + turn, crashes, until, ..spec.clone() };
        measure::<Detector>(&spec)
    };
    (0..CRASHES).map(crash).collect()
}

impl Row {
    /// The row as one JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut json = Map::new();
        json.insert("algorithm".into(), json!(self.algorithm));
        json.insert("setting".into(), json!(self.setting));
        json.insert("loss".into(), json!(self.loss));
        for (name, figure) in self.figures() {
            let theory = figure.theory.as_ref();
            json.insert(
                name.into(),
                json!({
                    "measured": figure.measured,
                    "formula": theory.map(|theory| &theory.formula),
                    "expected": theory.and_then(|theory| theory.value),
                    "low": theory.map(|theory| theory.low),
                    "high": theory.map(|theory| theory.high),
                    "agrees": figure.agrees(),
                }),
            );
        }
        json.insert("detection_time_max".into(), json!(self.detection_max));
        json.insert("complete".into(), json!(self.complete));
        Value::Object(json)
    }

    /// The figures that are compared with what is computed.
    #[must_use]
    pub const fn figures(&self) -> [(&'static str, &Figure); 4] {
        [
            ("detection_time", &self.detection),
            ("mistakes_per_hour", &self.mistakes_per_hour),
            ("mistake_duration", &self.mistake_duration),
            ("query_accuracy", &self.query_accuracy),
        ]
    }

    /// Do all figures agree with what is computed, and were all crashes noticed?
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.complete && self.figures().iter().all(|(_, figure)| figure.agrees() != Some(false))
    }
}

/// Mistakes against the rate of losses.
#[must_use]
pub fn chart(rows: &[Row]) -> Chart {
    let series = SETTINGS.iter().map(|(algorithm, option, value)| {
        let setting = format!("--{option} {value}");
        let mine = rows.iter().filter(|row| row.algorithm == *algorithm && row.setting == setting);
        let name = format!("{} {value}", algorithm.trim_start_matches("detector/"));
        line(name, mine.map(|row| (row.loss, &row.mistakes_per_hour)))
    });
    Chart {
        title: "Failure detectors: mistakes of one node about another".to_owned(),
        x_label: "probability of a loss".to_owned(),
        y_label: "mistakes per hour".to_owned(),
        series: series.filter(|line| !line.points.is_empty()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_timeout_does_what_is_computed() {
        let rows = compare(&[0.0, 0.1, 0.3], &mut |_, _| {}).expect("the rates make sense");
        assert_eq!(rows.len(), 3 * SETTINGS.len());
        for row in &rows {
            assert!(row.agrees(), "{row:?}");
            let Some(theory) = &row.mistakes_per_hour.theory else { continue };
            let expected = theory.value.expect("it is computed");
            let measured = row.mistakes_per_hour.measured;
            let measured = measured.expect("pairs were watched");
            // Where mistakes are frequent, within a few percent.
            if row.loss == 0.3 {
                assert!((measured / expected - 1.0).abs() < 0.04, "{row:?}");
            }
        }
    }

    /// By hand: η = 10, Δ = 35, k = 3.
    #[test]
    fn what_is_expected_is_computed_right() {
        let expected = Expected::new(35.0, 0.1);
        assert_eq!(expected.lost, 3);
        assert!((expected.mistakes_per_beat() - 0.9e-3).abs() < 1e-12);
        assert!((expected.mistake_duration() - (5.0 + 10.0 / 9.0)).abs() < 1e-12);
        // 31, 21 and 11 on average after 0, 1 and 2 losses; 6 or less after 3: 36/20.
        let detection = 0.9 * (31.0 + 0.1 * 21.0 + 0.01 * 11.0 + 0.001 * 1.8);
        assert!((expected.detection() - detection).abs() < 1e-9);
        assert_eq!(Expected::new(30.0, 0.1).lost, 2, "a tie is a mistake");
    }

    #[test]
    fn rates_that_make_no_sense_are_named() {
        for losses in [&[][..], &[1.0], &[-0.1], &[f64::NAN], &[0.1; 21]] {
            assert_eq!(compare(losses, &mut |_, _| {}).unwrap_err().argument, "--loss");
        }
    }
}
