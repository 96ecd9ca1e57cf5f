//! The little languages of arguments: what is read from text is written as the same text, on the
//! command line as in the header of a trace.

use std::fmt;
use std::str::FromStr;

use quorate_core::{Span, Time};
use quorate_sim::Latency;

use crate::BadInput;

/// A text that does not say what it should: what it is not, in one sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unclear(String);

impl Unclear {
    /// This is not what was asked for.
    pub(crate) fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unclear {}

/// Reads the text of an argument.
///
/// # Errors
/// If it says something else; the argument is named.
pub fn read<T: FromStr>(argument: &str, text: &str) -> Result<T, BadInput>
where
    T::Err: fmt::Display,
{
    text.parse().map_err(|unclear| BadInput::new(argument, unclear))
}

/// Reads the text of an argument that is a time.
///
/// # Errors
/// If it says something else; the argument is named.
pub fn read_time(argument: &str, text: &str) -> Result<Span, BadInput> {
    span(text).map_err(|unclear| BadInput::new(argument, unclear))
}

/// Reads the text of an argument that is a number of bytes: `500M`, `2G`.
///
/// # Errors
/// If it says something else; the argument is named.
pub fn read_size(argument: &str, text: &str) -> Result<u64, BadInput> {
    let shift = |unit| match unit {
        'K' => Some(10),
        'M' => Some(20),
        'G' => Some(30),
        _ => None,
    };
    let shift = text.chars().last().and_then(shift);
    let digits = if shift.is_some() { &text[..text.len() - 1] } else { text };
    let bytes = digits.parse::<u64>().ok();
    let bytes = bytes.and_then(|number| number.checked_mul(1 << shift.unwrap_or(0)));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        BadInput::new(argument, format!("{text} is not a number of bytes such as 500M or 2G"))
    })
}

/// A length of time.
pub(crate) fn span(text: &str) -> Result<Span, Unclear> {
    text.parse().map_err(|bad| Unclear(format!("{text} is {bad}")))
}

/// A point in time.
pub(crate) fn time(text: &str) -> Result<Time, Unclear> {
    span(text).map(|span| Time::ZERO + span)
}

/// A length of time as it is typed: in units, or in nanoseconds where units are not exact.
pub(crate) fn typed(span: Span) -> String {
    let units = span.in_units().to_string();
    if units.parse() == Ok(span) { units } else { format!("{}ns", span.0) }
}

/// A whole number.
pub(crate) fn number<T: FromStr>(text: &str) -> Result<T, Unclear> {
    text.parse().map_err(|_| Unclear(format!("{text} is not a number")))
}

/// One of several words.
pub(crate) fn choice<T: Copy>(text: &str, names: &[(&str, T)]) -> Result<T, Unclear> {
    let named = names.iter().find(|(name, _)| *name == text);
    named.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
        Unclear(format!("{text} is none of {}", names.join(", ")))
    })
}

/// A list of node numbers, with ranges: `1,2,5-9`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Numbers(pub Vec<u32>);

impl Numbers {
    /// Is none named?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The most numbers that one range stands for.
const RANGE_MAX: u32 = 1 << 20;

impl FromStr for Numbers {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let bad = || Unclear(format!("{text} is not a list such as 1,5-9"));
        let number = |text: &str| text.parse::<u32>().map_err(|_| bad());
        let mut numbers = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last || last - first >= RANGE_MAX {
                return Err(bad());
            }
            numbers.extend(first..=last);
        }
        Ok(Self(numbers))
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = &self.0[..];
        let mut comma = "";
        while let [first, ..] = *rest {
            let run = rest.iter().zip(first..).take_while(|(number, next)| *number == next).count();
            let last = rest[run - 1];
            match run {
                1 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
            rest = &rest[run..];
            comma = ",";
        }
        Ok(())
    }
}

/// A value together with the text that says it, which is what stands in headers.
#[derive(Clone, PartialEq, Debug)]
pub struct Said<T> {
    text: String,
    value: T,
}

impl<T> Said<T> {
    /// What is said.
    pub const fn value(&self) -> &T {
        &self.value
    }
}

impl<T: FromStr> FromStr for Said<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        Ok(Self { text: text.to_owned(), value: text.parse()? })
    }
}

impl<T> fmt::Display for Said<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Default for Said<Latency> {
    fn default() -> Self {
        Self { text: "1".to_owned(), value: Latency::default() }
    }
}

impl<T> serde::Serialize for Said<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> serde::Deserialize<'de> for Said<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Lets a type that is read from text and written as text stand in a header as that text.
macro_rules! stands_as_text {
    ($($type:ty),+ $(,)?) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}
pub(crate) use stands_as_text;

stands_as_text!(Numbers);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_ranges_and_written_as_short_as_they_can_be() {
        for (text, numbers, written) in [
            ("1", vec![1], "1"),
            ("1,2,5-9", vec![1, 2, 5, 6, 7, 8, 9], "1-2,5-9"),
            ("3,1", vec![3, 1], "3,1"),
            ("4,4", vec![4, 4], "4,4"),
        ] {
            assert_eq!(text.parse(), Ok(Numbers(numbers.clone())));
            assert_eq!(Numbers(numbers.clone()).to_string(), written);
            assert_eq!(written.parse(), Ok(Numbers(numbers)));
        }
        for bad in ["", "1,", "5-1", "a", "1-4000000", "-1"] {
            let error = bad.parse::<Numbers>().map_err(|unclear| unclear.to_string());
            assert_eq!(error, Err(format!("{bad} is not a list such as 1,5-9")));
        }
    }

    #[test]
    fn what_is_said_stands_as_its_text() {
        let latency: Said<Latency> = "uniform:1ms..2".parse().expect("it is a latency");
        assert_eq!(*latency.value(), Latency::Uniform(Span::units(1), Span::units(2)));
        let text = serde_json::to_string(&latency).expect("it is text");
        assert_eq!(text, "\"uniform:1ms..2\"");
        assert_eq!(serde_json::from_str::<Said<Latency>>(&text).ok(), Some(latency));
        assert!(serde_json::from_str::<Said<Latency>>("\"soon\"").is_err());
        assert_eq!("1".parse(), Ok(Said::<Latency>::default()));
    }

    #[test]
    fn times_are_written_so_that_they_are_read_as_they_were() {
        for (nanos, text) in [(0, "0"), (1_500_000, "1.5"), (1, "0.000001")] {
            assert_eq!(typed(Span(nanos)), text);
        }
        for nanos in [3, 333_333, 123_456_789_012, 1_000_000_000_000_000_000, 900_719_925_474_099] {
            assert_eq!(span(&typed(Span(nanos))), Ok(Span(nanos)));
        }
        assert_eq!(
            read_time("--cs", "soon").map_err(|bad| bad.to_string()),
            Err("--cs: soon is not a time such as 2, 0.5, 30us or 1s".to_owned())
        );
    }
}
