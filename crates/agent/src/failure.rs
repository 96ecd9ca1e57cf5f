//! What went wrong, as a sentence and an exit code.

use std::fmt;

/// A sentence for people, and a code for programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// What the process exits with.
    pub code: u8,
    /// What it says.
    pub sentence: String,
}

impl Failure {
    /// Bad input: exit code 2.
    pub(crate) fn input(sentence: impl fmt::Display) -> Self {
        Self { code: 2, sentence: sentence.to_string() }
    }

    /// Something that should work did not: exit code 1.
    pub(crate) fn broken(sentence: impl fmt::Display) -> Self {
        Self { code: 1, sentence: sentence.to_string() }
    }

    /// Nobody is there who could do it: exit code 69, as `sysexits` has it.
    pub(crate) fn nobody(sentence: impl fmt::Display) -> Self {
        Self { code: 69, sentence: sentence.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Failure {}
