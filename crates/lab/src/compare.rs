//! Comparisons: every algorithm of a family in the same experiments, next to what is published.

pub mod detector;
pub mod election;
pub mod faults;
pub mod group;
pub mod mutex;

use quorate_core::Cost;
use quorate_sim::{Report, Verdict};
use serde_json::{Value, json};

use crate::BadInput;
use crate::chart::Series;

/// A figure as measured, and what is published of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// What was measured; nothing where there was nothing to measure.
    pub measured: Option<f64>,
    /// What is published.
    pub theory: Option<Theory>,
}

/// What is published of a figure, for the size that was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Theory {
    /// As printed.
    pub formula: String,
    /// The value itself; none where only bounds are published.
    pub value: Option<f64>,
    /// The smallest value that agrees.
    pub low: f64,
    /// The largest value that agrees.
    pub high: f64,
}

/// A formula that begins with this is compared with a tolerance; see [`Cost::formula`].
const ABOUT: &str = "about";
/// So much may an approximate formula be off, and 1/n more: it is one for many nodes.
const TOLERANCE: f64 = 0.25;

impl Figure {
    /// Does it agree with what is published? Nothing if there is nothing to compare.
    #[must_use]
    pub fn agrees(&self) -> Option<bool> {
        let (measured, Theory { low, high, .. }) = (self.measured?, self.theory.as_ref()?);
        let slack = 1e-6 * high.abs().max(1.0);
        Some((low - slack..=high + slack).contains(&measured))
    }

    /// The figure as one JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let theory = self.theory.as_ref();
        json!({
            "measured": self.measured,
            "formula": theory.map(|theory| &theory.formula),
            "low": theory.map(|theory| theory.low),
            "high": theory.map(|theory| theory.high),
            "agrees": self.agrees(),
        })
    }
}

impl Theory {
    /// What is published of `what`: an exact or approximate value, or bounds.
    #[must_use]
    pub fn of(costs: &[Cost], what: &[&str], n: f64, k: f64) -> Option<Self> {
        let find = |name: &str| costs.iter().find(|cost| cost.what == name);
        // Formulas in K are in the size of a quorum.
        let value = |cost: &Cost| (cost.value)(if cost.formula.contains('K') { k } else { n });
        for name in what {
            if let Some(cost) = find(name) {
                let value = value(cost);
                let about = cost.formula.starts_with(ABOUT);
                let off = if about { (TOLERANCE + 1.0 / n) * value } else { 0.0 };
                let formula = cost.formula.to_owned();
                let (low, high) = (value - off, value + off);
                return Some(Self { formula, value: Some(value), low, high });
            }
            let (best, worst) = (find(&bound(name, "best")), find(&bound(name, "worst")));
            if let (Some(best), Some(worst)) = (best, worst) {
                let formula = format!("{} .. {}", best.formula, worst.formula);
                let (low, high) = (value(best), value(worst));
                return Some(Self { formula, value: None, low, high });
            }
        }
        None
    }
}

/// Is this a number of nodes with which algorithms can be compared?
fn check_size(nodes: usize, nodes_max: usize) -> Result<(), BadInput> {
    if (3..=nodes_max).contains(&nodes) {
        return Ok(());
    }
    let reason = format!("{nodes} is not a number of nodes from 3 to {nodes_max}");
    Err(BadInput::new("--nodes", reason))
}

/// A line of a chart: what was measured at each of these places, and what is published of it.
fn line<'a>(name: String, figures: impl Iterator<Item = (f64, &'a Figure)> + Clone) -> Series {
    let measured = figures.clone().filter_map(|(at, figure)| Some((at, figure.measured?)));
    let theory = figures.filter_map(|(at, figure)| Some((at, figure.theory.as_ref()?.value?)));
    Series { name, points: measured.collect(), theory: theory.collect() }
}

/// Did this property hold, and was it claimed?
fn held(report: &Report, property: &str) -> bool {
    let verdict = report.verdicts.iter().find(|(name, _)| *name == property);
    verdict.is_some_and(|(_, verdict)| *verdict == Verdict::Holds)
}

/// Does everything hold that is claimed? What has not come when the time of a comparison is over never
/// will.
fn holds(report: &Report) -> bool {
    report.holds() && report.unfinished().next().is_none()
}

/// Was this property violated? What has not come when the time of a comparison is over never will.
fn violated(report: &Report, property: &str) -> bool {
    let broken = report.violations().map(|(_, violation)| violation.property);
    broken.chain(report.unfinished()).any(|broken| broken == property)
}

/// `messages per entry, light` in its best case: `messages per entry, best`.
fn bound(name: &str, case: &str) -> String {
    let stem = name.split_once(',').map_or(name, |(stem, _)| stem);
    format!("{stem}, {case}")
}
