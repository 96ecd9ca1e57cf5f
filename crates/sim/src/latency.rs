//! How long messages take.

use std::fmt;
use std::str::FromStr;

use quorate_core::{NodeId, Span};
use rustc_hash::FxHashMap;

use crate::Draw;

/// How long a message takes.
#[derive(Clone, PartialEq, Debug)]
pub enum Latency {
    /// Always so long.
    Constant(Span),
    /// Anything between the two, equally likely.
    Uniform(Span, Span),
    /// Exponentially distributed with this mean.
    Exponential(Span),
    /// As the link says; as the second says on links that are not in the table.
    PerLink(FxHashMap<(NodeId, NodeId), Span>, Box<Self>),
}

impl Default for Latency {
    fn default() -> Self {
        Self::Constant(Span::UNIT)
    }
}

impl Latency {
    /// Draws the latency of one message.
    #[inline]
    pub fn draw(&self, draw: &mut Draw, from: NodeId, to: NodeId) -> Span {
        match self {
            Self::Constant(span) => *span,
            Self::Uniform(low, high) => draw.between(*low, *high + Span(1)),
            Self::Exponential(mean) => draw.exponential(*mean),
            Self::PerLink(table, other) => Self::draw_on_link(table, other, draw, (from, to)),
        }
    }

    fn draw_on_link(
        table: &FxHashMap<(NodeId, NodeId), Span>,
        other: &Self,
        draw: &mut Draw,
        (from, to): (NodeId, NodeId),
    ) -> Span {
        table.get(&(from, to)).copied().unwrap_or_else(|| other.draw(draw, from, to))
    }

    /// The mean, T in the formulas; of a table, that of the links which are not in it.
    #[must_use]
    pub fn mean(&self) -> Span {
        match self {
            Self::Constant(span) | Self::Exponential(span) => *span,
            Self::Uniform(low, high) => Span(low.0 / 2 + high.0 / 2 + (low.0 & high.0 & 1)),
            Self::PerLink(_, other) => other.mean(),
        }
    }

    /// A bound for algorithms that need one. An exponential latency has none: 20 means, which one
    /// message in 500 million exceeds.
    #[must_use]
    pub fn max(&self) -> Span {
        match self {
            Self::Constant(span) | Self::Uniform(_, span) => *span,
            Self::Exponential(mean) => mean.times(20),
            Self::PerLink(table, other) => {
                table.values().copied().fold(other.max(), std::cmp::Ord::max)
            }
        }
    }

    /// Can a later message on the same link arrive earlier?
    #[must_use]
    pub const fn varies(&self) -> bool {
        match self {
            Self::Constant(_) => false,
            Self::Uniform(..) | Self::Exponential(_) => true,
            Self::PerLink(_, other) => other.varies(),
        }
    }

    /// The latency with the given links taking so long: lines of `FROM TO TIME`.
    ///
    /// # Errors
    /// The first line that says something else.
    pub fn with_table(self, text: &str) -> Result<Self, BadLatency> {
        let mut table = FxHashMap::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let words: Vec<_> = line.split_whitespace().collect();
            let link = match words[..] {
                [from, to, span] => node(from).zip(node(to)).zip(span.parse().ok()),
                _ => None,
            };
            let Some((link, span)) = link else {
                let number = number + 1;
                let text = format!("line {number}: {line:?} is not of the form FROM TO TIME");
                return Err(BadLatency(text));
            };
            table.insert(link, span);
        }
        Ok(Self::PerLink(table, Box::new(self)))
    }
}

fn node(text: &str) -> Option<NodeId> {
    text.parse().ok().and_then(NodeId::new)
}

impl FromStr for Latency {
    type Err = BadLatency;

    /// `1`, `uniform:0.5..1.5` or `exp:1`.
    fn from_str(text: &str) -> Result<Self, BadLatency> {
        let bad = || {
            let forms = "a time (1, 30us), uniform:FROM..TO or exp:MEAN";
            BadLatency(format!("{text} is not {forms}"))
        };
        let span = |text: &str| text.parse::<Span>().map_err(|_| bad());
        if let Some(range) = text.strip_prefix("uniform:") {
            let (low, high) = range.split_once("..").ok_or_else(bad)?;
            let (low, high) = (span(low)?, span(high)?);
            return if low <= high { Ok(Self::Uniform(low, high)) } else { Err(bad()) };
        }
        match text.strip_prefix("exp:") {
            Some(mean) => Ok(Self::Exponential(span(mean)?)),
            None => Ok(Self::Constant(span(text)?)),
        }
    }
}

/// A text that does not say how long messages take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadLatency(pub String);

impl fmt::Display for BadLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadLatency {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_read_from_text() {
        let unit = Span::UNIT;
        assert_eq!("1".parse(), Ok(Latency::Constant(unit)));
        assert_eq!("5ns".parse(), Ok(Latency::Constant(Span(5))));
        assert_eq!("uniform:1..3".parse(), Ok(Latency::Uniform(unit, Span::units(3))));
        assert_eq!("exp:2".parse(), Ok(Latency::Exponential(Span::units(2))));
        for bad in ["", "x", "uniform:3..1", "uniform:1", "exp:", "exp:-1"] {
            assert!(bad.parse::<Latency>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_table_overrules_the_rest() {
        let latency = Latency::default().with_table("1 2 3 # slow\n\n2 1 0.5\n").unwrap();
        let mut draw = Draw::new(1, 0);
        let mut of = |from, to| {
            latency.draw(&mut draw, NodeId::new(from).unwrap(), NodeId::new(to).unwrap()).in_units()
        };
        assert_eq!((of(1, 2), of(2, 1), of(1, 3)), (3.0, 0.5, 1.0));
        assert_eq!(latency.max(), Span::units(3));
        let error = Latency::default().with_table("1 2 3\n1 two 3").unwrap_err();
        assert_eq!(error.to_string(), "line 2: \"1 two 3\" is not of the form FROM TO TIME");
    }
}
