//! What users get told when they ask for something that cannot be done.

use std::fmt;

/// Bad input: which argument, and what is wrong with it, in one sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadInput {
    /// The argument, as typed.
    pub argument: String,
    /// What is wrong with it and what would do.
    pub reason: String,
}

impl BadInput {
    /// This argument is wrong for this reason.
    pub fn new(argument: &str, reason: impl fmt::Display) -> Self {
        Self { argument: argument.to_owned(), reason: reason.to_string() }
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.argument, self.reason)
    }
}

impl std::error::Error for BadInput {}
