//! Patience: how long a node waits for an answer before it takes silence for a crash.

use quorate_core::{BadOption, OptionSpec, Options, Span};

use crate::options::span;

/// The bounds on which timeouts rely.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Patience {
    /// The bound on message delays; the network's if not given.
    pub delay_max: Option<Span>,
    /// The bound on the time that a node takes to answer.
    pub processing: Span,
}

impl Default for Patience {
    /// The network's delays, and a tenth of a unit for processing.
    fn default() -> Self {
        Self { delay_max: None, processing: Span(Span::UNIT.0 / 10) }
    }
}

impl Patience {
    /// The option for the bound on message delays.
    pub const DELAY_MAX: OptionSpec = OptionSpec {
        name: "delay-max",
        values: "TIME",
        default: "the network's",
        help: "the bound on message delays that timeouts rely on",
    };

    /// The option for the bound on the time that a node takes to answer.
    pub const PROCESSING: OptionSpec = OptionSpec {
        name: "processing",
        values: "TIME",
        default: "0.1",
        help: "the bound on the time that a node takes to answer",
    };

    /// The bounds as given, and as usual where they are not.
    ///
    /// # Errors
    /// If one of them is not a length of time.
    pub fn read(options: &Options<'_>, usual: Self) -> Result<Self, BadOption> {
        Ok(Self {
            delay_max: span(options, Self::DELAY_MAX.name)?.or(usual.delay_max),
            processing: options.span(Self::PROCESSING.name, usual.processing)?,
        })
    }

    /// The bound on message delays, where this is the network's.
    #[must_use]
    pub fn delay(self, network: Span) -> Span {
        self.delay_max.unwrap_or(network)
    }

    /// The bound on the time from a question to its answer: two delays and the processing.
    #[must_use]
    pub fn round_trip(self, network: Span) -> Span {
        self.delay(network).times(2) + self.processing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::units;

    #[test]
    fn what_is_not_given_is_as_usual() {
        let read = |options: &[_]| Patience::read(&Options(options), Patience::default());
        assert_eq!(read(&[]), Ok(Patience::default()));
        let given = read(&[("delay-max", "3"), ("processing", "0")]).unwrap();
        assert_eq!(given, Patience { delay_max: Some(units(3.0)), processing: Span::ZERO });
        for name in ["delay-max", "processing"] {
            assert_eq!(read(&[(name, "soon")]).unwrap_err().name, name);
        }
    }

    #[test]
    fn an_answer_takes_two_delays_and_the_processing() {
        let usual = Patience::default();
        assert_eq!(usual.round_trip(units(2.0)), units(4.1));
        let given = Patience { delay_max: Some(units(1.0)), ..usual };
        assert_eq!(
            (given.delay(units(2.0)), given.round_trip(units(2.0))),
            (units(1.0), units(2.1))
        );
    }
}
