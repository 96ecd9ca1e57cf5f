//! What was measured, under its names: the one place between typed figures and what is printed.

use quorate_sim::{Report, Verdict};
use serde_json::{Map, Value, json};

/// What was measured of one thing.
#[derive(Clone, PartialEq, Debug)]
pub enum Figure {
    /// A number.
    Number(Number),
    /// Several numbers under their own names.
    Parts(Vec<(&'static str, Number)>),
    /// Is it so?
    Flag(bool),
    /// A word.
    Word(String),
    /// What the monitor says.
    Verdict(Verdict),
}

/// A number, whole or not.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// Something was counted.
    Count(u64),
    /// Something was measured.
    Real(f64),
    /// There was nothing to measure.
    None,
}

/// Figures with their names, in the order of the report.
pub type Named = Vec<(&'static str, Figure)>;

/// Figures of a family that have names.
pub trait Figures {
    /// All figures, as named in reports, in order.
    fn named(&self) -> Named;
}

impl Number {
    /// The number for calculations, if there is one.
    #[must_use]
    pub const fn value(self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(count as f64),
            Self::Real(real) => Some(real),
            Self::None => None,
        }
    }

    fn json(self) -> Value {
        match self {
            Self::Count(count) => json!(count),
            Self::Real(real) => json!(real),
            Self::None => Value::Null,
        }
    }
}

impl From<u64> for Number {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for Number {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<f64> for Number {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

impl<T: Into<Self>> From<Option<T>> for Number {
    fn from(number: Option<T>) -> Self {
        number.map_or(Self::None, Into::into)
    }
}

impl<T: Into<Number>> From<T> for Figure {
    fn from(number: T) -> Self {
        Self::Number(number.into())
    }
}

impl Figure {
    /// The figure in JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        match self {
            Self::Number(number) => number.json(),
            Self::Parts(parts) => {
                let parts = parts.iter().map(|(name, part)| ((*name).to_owned(), part.json()));
                Value::Object(parts.collect())
            }
            Self::Flag(flag) => json!(flag),
            Self::Word(word) => json!(word),
            Self::Verdict(verdict) => json!(verdict.word()),
        }
    }
}

/// One JSON object of all figures.
pub(crate) fn object(figures: &[(&'static str, Figure)]) -> Map<String, Value> {
    figures.iter().map(|(name, figure)| ((*name).to_owned(), figure.json())).collect()
}

/// Messages by kind, in the order of the paper.
pub(crate) fn by_kind(kinds: &[(&'static str, u64)]) -> Figure {
    Figure::Parts(kinds.iter().map(|&(kind, count)| (kind, Number::Count(count))).collect())
}

/// What every report ends with, whatever the family.
pub(crate) fn closing(report: &Report) -> Named {
    let mut named = vec![
        ("lost", report.lost.into()),
        ("duplicated", report.duplicated.into()),
        ("refused", report.refused.into()),
        ("events", report.events.into()),
        ("end", report.end.in_units().into()),
        ("quiet", Figure::Flag(report.quiet)),
    ];
    let verdicts = report.verdicts.iter();
    named.extend(verdicts.map(|(name, verdict)| (*name, Figure::Verdict(verdict.clone()))));
    named
}

/// The figure of many runs: means of numbers, part by part, over the runs that have them, and the
/// worst verdict. Nothing where no run has anything to measure, or where there is no such thing as a
/// mean.
pub(crate) fn of_many(runs: &[&Figure]) -> Option<Figure> {
    match runs.first()? {
        Figure::Number(_) => {
            let values: Vec<_> = runs.iter().filter_map(|run| run.number()?.value()).collect();
            Some(Summary::of(&values)?.mean.into())
        }
        Figure::Parts(parts) => {
            let mean = |name: &'static str| {
                let values: Vec<_> =
                    runs.iter().filter_map(|run| run.part(name)?.value()).collect();
                (name, Summary::of(&values).map(|summary| summary.mean).into())
            };
            Some(Figure::Parts(parts.iter().map(|(name, _)| mean(name)).collect()))
        }
        Figure::Verdict(_) => {
            let first = runs.iter().rev().max_by_key(|run| run.weight());
            first.map(|figure| (*figure).clone())
        }
        Figure::Flag(_) | Figure::Word(_) => None,
    }
}

impl Figure {
    /// The number, where it is one.
    pub(crate) const fn number(&self) -> Option<Number> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// How much a verdict counts beside others of the same property.
    const fn weight(&self) -> u8 {
        match self {
            Self::Verdict(Verdict::Violated(..)) => 4,
            Self::Verdict(Verdict::Unfinished) => 3,
            Self::Verdict(Verdict::Holds) => 2,
            Self::Verdict(Verdict::NotExercised) => 1,
            _ => 0,
        }
    }

    fn part(&self, name: &str) -> Option<Number> {
        match self {
            Self::Parts(parts) => {
                parts.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
            }
            _ => None,
        }
    }
}

/// Many measurements of one thing.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// In how many runs there was something to measure.
    pub count: usize,
    /// The mean.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The value that half of the runs do not exceed.
    pub median: f64,
    /// The value that nineteen in twenty runs do not exceed.
    pub p95: f64,
    /// The largest.
    pub max: f64,
    /// Half the width of the 95 % confidence interval of the mean.
    pub ci95: f64,
}

impl Summary {
    /// Of these values; nothing if there are none.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let quantile = |share: f64| {
            let place = (share * values.len() as f64).ceil() as usize;
            sorted[place.clamp(1, values.len()) - 1]
        };
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        Some(Self {
            mean,
            min,
            median: quantile(0.5),
            p95: quantile(0.95),
            max,
            count: values.len(),
            ci95: 1.96 * deviation / count.sqrt(),
        })
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "runs": self.count,
            "min": self.min,
            "median": self.median,
            "p95": self.p95,
            "max": self.max,
            "ci95": self.ci95,
        })
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::Time;
    use quorate_core::Violation;

    use super::*;

    #[test]
    fn of_many_runs_numbers_have_means_and_the_worst_verdict_counts() {
        let numbers: [Figure; 2] = [1u64.into(), 2u64.into()];
        assert_eq!(of_many(&numbers.each_ref()), Some(1.5.into()));
        let some: [Figure; 2] = [1.0.into(), None::<f64>.into()];
        assert_eq!(of_many(&some.each_ref()), Some(1.0.into()));
        let nothing: [Figure; 2] = [None::<f64>.into(), None::<f64>.into()];
        assert_eq!(of_many(&nothing.each_ref()), None);
        let kinds = [by_kind(&[("A", 1), ("B", 3)]), by_kind(&[("A", 2)])];
        let parts = vec![("A", Number::Real(1.5)), ("B", Number::Real(3.0))];
        assert_eq!(of_many(&kinds.each_ref()), Some(Figure::Parts(parts)));
        let violation = Violation { property: "safety", text: "two inside".to_owned() };
        let broken = Figure::Verdict(Verdict::Violated(Time::ZERO, violation));
        let verdicts = [broken.clone(), Figure::Verdict(Verdict::Holds)];
        assert_eq!(of_many(&verdicts.each_ref()), Some(broken));
        let verdicts = [Verdict::NotExercised, Verdict::Holds, Verdict::NotExercised];
        let verdicts = verdicts.map(Figure::Verdict);
        assert_eq!(of_many(&verdicts.each_ref()), Some(Figure::Verdict(Verdict::Holds)));
        assert_eq!(of_many(&[&Figure::Flag(true)]), None);
    }
}
