//! Mistakes that can be planted in an algorithm or in its layers, so that one learns how they are found.

use quorate_algorithms::flaw::{FLAWS, Flaw, plant};
use quorate_service::FLAWS as OF_SERVICES;

use crate::{BadInput, Over, Spec};

/// The mistakes that can be planted in an algorithm over these layers.
pub fn flaws(algorithm: &str, over: &Over) -> impl Iterator<Item = &'static Flaw> + Clone {
    let family = algorithm.split('/').next().unwrap_or_default();
    let views = over.has_views().then(|| format!("{family}/views"));
    let links = over.has_links().then(|| "reliable".to_owned());
    let parts: Vec<_> = [Some(algorithm.to_owned()), views, links].into_iter().flatten().collect();
    let all = FLAWS.iter().chain(OF_SERVICES);
    all.filter(move |flaw| parts.iter().any(|part| part == flaw.algorithm))
}

impl Spec {
    /// Plants the mistake that is named, if one is, in every run of this process from now on.
    ///
    /// # Errors
    /// The algorithm has no such mistake.
    pub fn plant(&self) -> Result<(), BadInput> {
        let Some(name) = &self.flaw else { return Ok(()) };
        let algorithm = &self.algorithm;
        let mut known = flaws(algorithm, &self.over);
        let names: Vec<_> = known.clone().map(|flaw| flaw.name).collect();
        let Some(flaw) = known.find(|flaw| flaw.name == name) else {
            let reason = match names[..] {
                [] => format!("no mistake can be planted in {algorithm}"),
                _ => format!("in {algorithm} can be planted {}, not {name}", names.join(", ")),
            };
            return Err(BadInput::new("--flaw", reason));
        };
        plant(flaw);
        Ok(())
    }
}
