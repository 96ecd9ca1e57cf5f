//! Random choices, made in every possible way.

use quorate_core::Choices;

/// Makes every sequence of choices in turn, in lexical order: run, [`advance`](Self::advance), run
/// again. Later choices and their bounds may depend on earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Odometer {
    digits: Vec<(u32, u32)>,
    next: usize,
}

impl Odometer {
    /// What was chosen in this run.
    pub(crate) fn chosen(&self) -> impl Iterator<Item = u32> {
        self.digits.iter().map(|&(choice, _)| choice)
    }

    /// Goes on to the next sequence; false if there is none.
    pub(crate) fn advance(&mut self) -> bool {
        self.next = 0;
        while let Some((choice, bound)) = self.digits.pop() {
            if choice + 1 < bound {
                self.digits.push((choice + 1, bound));
                return true;
            }
        }
        false
    }
}

impl Choices for Odometer {
    fn choose(&mut self, bound: u32) -> u32 {
        assert!(bound > 0, "a choice between nothing");
        if self.next == self.digits.len() {
            self.digits.push((0, bound));
        }
        let (choice, before) = self.digits[self.next];
        assert_eq!(bound, before, "a handler depends on something outside of its state");
        self.next += 1;
        choice
    }
}

/// Makes given choices again.
#[derive(Debug)]
pub(crate) struct Script<'a>(pub(crate) &'a [u32]);

impl Choices for Script<'_> {
    fn choose(&mut self, _: u32) -> u32 {
        let (first, rest) = self.0.split_first().expect("a step repeated chooses as often");
        self.0 = rest;
        *first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependent_choices_are_all_made() {
        let mut odometer = Odometer::default();
        let mut seen = Vec::new();
        loop {
            let first = odometer.choose(3);
            let second = if first == 1 { 9 } else { odometer.choose(first + 1) };
            assert_eq!(odometer.chosen().next(), Some(first));
            seen.push((first, second));
            if !odometer.advance() {
                break;
            }
        }
        assert_eq!(seen, [(0, 0), (1, 9), (2, 0), (2, 1), (2, 2)]);
    }
}
