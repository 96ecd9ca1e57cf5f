//! What a run came to.

use quorate_core::{Time, Verdict, Violation};

/// What a run came to, as far as it does not depend on the family.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// How many events were handled.
    pub events: u64,
    /// When the last one was.
    pub end: Time,
    /// Did the run come to rest, or was it stopped?
    pub quiet: bool,
    /// Messages sent, each receiver of a multicast counted.
    pub messages: u64,
    /// Sendings: a multicast counts once.
    pub sendings: u64,
    /// Messages by kind, in the order of the paper.
    pub by_kind: Vec<(&'static str, u64)>,
    /// What protocols noted to be measured.
    pub tallies: Vec<(&'static str, Tally)>,
    /// Messages that did not arrive.
    pub lost: u64,
    /// Messages that arrived once more than they were sent.
    pub duplicated: u64,
    /// Commands that were refused.
    pub refused: u64,
    /// Messages sent and received by the busiest node.
    pub handled_max: u64,
    /// Messages sent and received by a node, on average.
    pub handled_mean: f64,
    /// What the monitor says, by property.
    pub verdicts: Vec<(&'static str, Verdict)>,
}

/// Values of something that protocols noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Their sum.
    pub sum: u64,
    /// The largest.
    pub max: u64,
}

impl Report {
    /// What protocols noted under this name; nothing if none did.
    #[must_use]
    pub fn tally(&self, what: &str) -> Tally {
        let noted = self.tallies.iter().find(|(known, _)| *known == what);
        noted.map_or_else(Tally::default, |(_, tally)| *tally)
    }

    /// Is none of the claimed properties violated?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.violations().next().is_none()
    }

    /// What did not hold, and since when.
    pub fn violations(&self) -> impl Iterator<Item = (Time, &Violation)> {
        self.verdicts.iter().filter_map(|(_, verdict)| match verdict {
            Verdict::Violated(at, violation) => Some((*at, violation)),
            _ => None,
        })
    }

    /// The properties of which nothing can be said because the run was cut off.
    pub fn unfinished(&self) -> impl Iterator<Item = &'static str> {
        let verdicts = self.verdicts.iter();
        let open = verdicts.filter(|(_, verdict)| *verdict == Verdict::Unfinished);
        open.map(|(property, _)| *property)
    }
}
