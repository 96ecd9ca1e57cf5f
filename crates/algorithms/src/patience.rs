//! Bounds on delays, for algorithms that take silence for a sign.

use quorate_core::{BadOption, OptionSpec, Options, Span};

/// The patience of a node: how long it waits for an answer before there will be none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Patience {
    /// The bound on message delays; the network's if not given.
    pub delay_max: Option<Span>,
    /// The bound on the time that a node takes to answer.
    pub processing: Span,
}

impl Default for Patience {
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

    /// Reads both options.
    ///
    /// # Errors
    /// If one of them is no time.
    pub fn read(options: &Options<'_>) -> Result<Self, BadOption> {
        let delay_max = Self::read_delay_max(options)?;
        let processing = options.span(Self::PROCESSING.name, Self::default().processing)?;
        Ok(Self { delay_max, processing })
    }

    /// Reads the bound on message delays, where it is given.
    ///
    /// # Errors
    /// If it is no time.
    pub fn read_delay_max(options: &Options<'_>) -> Result<Option<Span>, BadOption> {
        let OptionSpec { name, .. } = Self::DELAY_MAX;
        options.get(name).map(|_| options.span(name, Span::ZERO)).transpose()
    }

    /// The bound on message delays, where the network has this one.
    #[must_use]
    pub fn delay(&self, network: Span) -> Span {
        self.delay_max.unwrap_or(network)
    }

    /// The time after which no answer comes any more, where the network has this bound on message
    /// delays: one there, one back, and the processing between them.
    #[must_use]
    pub fn round_trip(&self, network: Span) -> Span {
        self.delay(network).times(2) + self.processing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::units;

    #[test]
    fn bounds_that_are_not_given_are_the_networks() {
        let read = |given| Patience::read(&Options(given));
        assert_eq!(read(&[]), Ok(Patience::default()));
        assert_eq!(read(&[]).unwrap().round_trip(units(2.0)), units(4.1));
        let given = read(&[("delay-max", "3"), ("processing", "0")]).unwrap();
        assert_eq!(given, Patience { delay_max: Some(units(3.0)), processing: Span::ZERO });
        assert_eq!(given.round_trip(units(2.0)), units(6.0));
        assert!(read(&[("delay-max", "soon")]).is_err());
        assert!(read(&[("processing", "soon")]).is_err());
    }
}
