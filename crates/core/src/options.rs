//! Options of an algorithm: which there are, and what was given.

use alloc::string::{String, ToString};
use core::fmt;

use crate::Span;

/// An option of one algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionSpec {
    /// As typed after `--`.
    pub name: &'static str,
    /// The values it takes, as shown in help: `a|b`, or `TIME`, `NUMBER`.
    pub values: &'static str,
    /// The value it has when not given.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// Options of an algorithm as given: names and values.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(pub &'a [(&'a str, &'a str)]);

impl<'a> Options<'a> {
    /// The value given for an option.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }

    /// One of several named values; `default` if not given.
    ///
    /// # Errors
    /// If the value is none of them.
    pub fn choice<T: Copy>(
        &self,
        name: &'static str,
        values: &[(&str, T)],
        default: T,
    ) -> Result<T, BadOption> {
        let Some(given) = self.get(name) else { return Ok(default) };
        match values.iter().find(|(value, _)| *value == given) {
            Some((_, value)) => Ok(*value),
            None => {
                let known: alloc::vec::Vec<_> = values.iter().map(|(value, _)| *value).collect();
                Err(BadOption::new(name, given, &alloc::format!("one of {}", known.join(", "))))
            }
        }
    }

    /// A length of time: a number of units, or one with `ns`, `us`, `ms` or `s`.
    ///
    /// # Errors
    /// If it is not a length of time.
    pub fn span(&self, name: &'static str, default: Span) -> Result<Span, BadOption> {
        let Some(given) = self.get(name) else { return Ok(default) };
        given.parse().map_err(|_| BadOption::new(name, given, "a time such as 2, 0.5, 30us or 1s"))
    }
}

/// An option that cannot be taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadOption {
    /// Which.
    pub name: String,
    /// Why, naming the value and what would do.
    pub reason: String,
}

impl BadOption {
    /// This option makes no sense, for this reason.
    #[must_use]
    pub fn because(name: &str, reason: String) -> Self {
        Self { name: name.to_string(), reason }
    }

    /// The value of an option is none that it takes.
    #[must_use]
    pub fn new(name: &str, given: &str, wanted: &str) -> Self {
        let reason = alloc::format!("{given} is not {wanted}");
        Self { name: name.to_string(), reason }
    }
}

impl fmt::Display for BadOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{}: {}", self.name, self.reason)
    }
}

impl core::error::Error for BadOption {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_names_what_would_do() {
        let options = Options(&[("wake", "maybe")]);
        let error = options.choice("wake", &[("on", 1), ("off", 2)], 1).unwrap_err();
        assert_eq!(error.to_string(), "--wake: maybe is not one of on, off");
        assert_eq!(options.choice("other", &[("on", 1)], 7), Ok(7));
    }
}
