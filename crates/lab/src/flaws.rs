//! Mistakes that can be planted in an algorithm, so that one learns how they are found.

use quorate_algorithms::flaw::{FLAWS, Flaw, plant};

use crate::{BadInput, Spec};

/// The mistakes that can be planted in an algorithm.
pub fn flaws(algorithm: &str) -> impl Iterator<Item = &'static Flaw> {
    FLAWS.iter().filter(move |flaw| flaw.algorithm == algorithm)
}

impl Spec {
    /// Plants the mistake that is named, if one is, in every run of this process from now on.
    ///
    /// # Errors
    /// The algorithm has no such mistake.
    pub fn plant(&self) -> Result<(), BadInput> {
        let Some(name) = &self.flaw else { return Ok(()) };
        let algorithm = &self.algorithm;
        let Some(flaw) = flaws(algorithm).find(|flaw| flaw.name == name) else {
            let known: Vec<_> = flaws(algorithm).map(|flaw| flaw.name).collect();
            let reason = match known[..] {
                [] => format!("no mistake can be planted in {algorithm}"),
                _ => format!("in {algorithm} can be planted {}, not {name}", known.join(", ")),
            };
            return Err(BadInput::new("--flaw", reason));
        };
        plant(flaw);
        Ok(())
    }
}
