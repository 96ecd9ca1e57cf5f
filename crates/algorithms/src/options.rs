//! Options that several algorithms read in the same way.

use core::ops::RangeInclusive;

use quorate_core::{BadOption, NodeId, Options, Span};

/// A number within bounds; `default` if not given.
pub(crate) fn number(
    options: &Options<'_>,
    name: &'static str,
    default: u32,
    bounds: RangeInclusive<u32>,
) -> Result<u32, BadOption> {
    let Some(given) = options.get(name) else { return Ok(default) };
    given.parse().ok().filter(|number| bounds.contains(number)).ok_or_else(|| {
        let wanted = alloc::format!("a number from {} to {}", bounds.start(), bounds.end());
        BadOption::new(name, given, &wanted)
    })
}

/// A length of time, if it is given.
pub(crate) fn span(options: &Options<'_>, name: &'static str) -> Result<Option<Span>, BadOption> {
    options.get(name).map(|_| options.span(name, Span::ZERO)).transpose()
}

/// A node, if it is given.
pub(crate) fn node(options: &Options<'_>, name: &'static str) -> Result<Option<NodeId>, BadOption> {
    let Some(given) = options.get(name) else { return Ok(None) };
    let bad = || BadOption::new(name, given, "the number of a node, from 1 on");
    given.parse().ok().and_then(NodeId::new).map(Some).ok_or_else(bad)
}

/// On or off; `default` if not given.
pub(crate) fn switch(
    options: &Options<'_>,
    name: &'static str,
    default: bool,
) -> Result<bool, BadOption> {
    options.choice(name, &[("on", true), ("off", false)], default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_bounds() {
        let read = |given| number(&Options(&[("stop", given)]), "stop", 3, 0..=9);
        assert_eq!((read("0"), read("9")), (Ok(0), Ok(9)));
        assert_eq!(read("10").unwrap_err().to_string(), "--stop: 10 is not a number from 0 to 9");
        assert_eq!(number(&Options(&[]), "stop", 3, 0..=9), Ok(3));
    }

    #[test]
    fn what_is_not_given_is_left_open_or_as_usual() {
        let (none, given) = (Options(&[]), Options(&[("wait", "2"), ("beat", "off")]));
        assert_eq!(
            (span(&none, "wait"), span(&given, "wait")),
            (Ok(None), Ok(Some(Span::units(2))))
        );
        assert_eq!(
            (switch(&none, "beat", true), switch(&given, "beat", true)),
            (Ok(true), Ok(false))
        );
        let bad = Options(&[("wait", "soon"), ("beat", "maybe")]);
        assert_eq!(span(&bad, "wait").unwrap_err().name, "wait");
        assert_eq!(switch(&bad, "beat", true).unwrap_err().name, "beat");
    }
}
