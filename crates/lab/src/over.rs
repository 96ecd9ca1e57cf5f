//! The layers that an algorithm runs over, as typed: `views,reliable,detector/phi-accrual`.

use std::fmt;
use std::str::FromStr;

use quorate_algorithms::detector::Detector;
use quorate_algorithms::{Catalogued, Layer, nearest};
use quorate_core::Options;

use crate::BadInput;
use crate::text::{Unclear, stands_as_text};

/// The layers of a run, the uppermost first; none for the network as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Over(Vec<Named>);

/// A layer by its name.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Named {
    Views,
    Reliable,
    Detector(&'static str),
}

impl Over {
    /// The network as it is.
    pub const BARE: Self = Self(Vec::new());

    /// Views alone.
    #[must_use]
    pub fn views() -> Self {
        Self(vec![Named::Views])
    }

    /// Reliable links alone.
    #[must_use]
    pub fn reliable() -> Self {
        Self(vec![Named::Reliable])
    }

    /// Is there no layer?
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.0.is_empty()
    }

    /// Are there views among the layers?
    #[must_use]
    pub fn has_views(&self) -> bool {
        self.0.contains(&Named::Views)
    }

    /// Are there reliable links among the layers?
    #[must_use]
    pub fn has_links(&self) -> bool {
        self.0.contains(&Named::Reliable)
    }

    /// Is there a failure detector among the layers?
    #[must_use]
    pub fn has_detector(&self) -> bool {
        self.0.iter().any(|layer| matches!(layer, Named::Detector(_)))
    }

    /// The layers as the algorithms know them.
    pub(crate) fn layers(&self) -> Result<Vec<Layer>, BadInput> {
        let layer = |layer: &Named| match layer {
            Named::Views => Ok(Layer::Views),
            Named::Reliable => Ok(Layer::Reliable),
            Named::Detector(name) => {
                let unknown = || BadInput::new("--over", format!("there is no {name}"));
                let config = Detector::configure(name, &Options(&[])).ok_or_else(unknown)?;
                let config = config.map_err(|bad| BadInput::new("--over", bad))?;
                Ok(Layer::Detector(Box::new(config)))
            }
        };
        self.0.iter().map(layer).collect()
    }
}

impl FromStr for Over {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let detectors = || Detector::CATALOGUE.iter().map(|meta| meta.name);
        let layer = |word: &str| match word {
            "views" => Ok(Named::Views),
            "reliable" => Ok(Named::Reliable),
            word => detectors().find(|name| *name == word).map(Named::Detector).ok_or_else(|| {
                let known = ["views", "reliable"].into_iter().chain(detectors());
                let hint = match nearest(word, known.clone()) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
                };
                Unclear::new(format!("there is no layer {word:?}; {hint}"))
            }),
        };
        match text {
            "" | "bare" => Ok(Self::BARE),
            text => text.split(',').map(layer).collect::<Result<_, _>>().map(Self),
        }
    }
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.0.iter().map(|layer| match layer {
            Named::Views => "views",
            Named::Reliable => "reliable",
            Named::Detector(name) => name,
        });
        f.write_str(&words.collect::<Vec<_>>().join(","))
    }
}

stands_as_text!(Over);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_read_as_they_are_written() {
        for text in ["", "views", "views,reliable", "reliable,detector/phi-accrual"] {
            assert_eq!(text.parse::<Over>().map(|over| over.to_string()), Ok(text.to_owned()));
        }
        let over: Over = "views,reliable,detector/heartbeat".parse().unwrap();
        assert!(over.has_views() && over.has_links() && over.has_detector());
        let error = |text: &str| text.parse::<Over>().unwrap_err().to_string();
        assert_eq!(error("relaible"), "there is no layer \"relaible\"; did you mean reliable?");
        assert!(error("views,,reliable").starts_with("there is no layer \"\""));
    }
}
