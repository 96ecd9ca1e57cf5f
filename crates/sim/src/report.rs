//! What a run came to.

use quorate_core::{Time, Violation};

/// What a run came to, as far as it does not depend on the family.
#[derive(Clone, PartialEq, Debug)]
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

/// What a monitor says of a property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It held.
    Holds,
    /// It did not hold; the first time that this was seen.
    Violated(Time, Violation),
    /// It did not hold in so far as something was still owed when the run was cut.
    Open(Time, Violation),
    /// The algorithm does not claim it.
    NotClaimed,
}

impl Verdict {
    /// As written in reports.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Holds => "ok",
            Self::Violated(..) => "violated",
            Self::Open(..) => "open",
            Self::NotClaimed => "not claimed",
        }
    }
}

impl Report {
    /// What protocols noted under this name; nothing if none did.
    #[must_use]
    pub fn tally(&self, what: &str) -> Tally {
        let noted = self.tallies.iter().find(|(known, _)| *known == what);
        noted.map_or_else(Tally::default, |(_, tally)| *tally)
    }

    /// Do all claimed properties hold, and is nothing owed any more?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.violations().chain(self.open()).next().is_none()
    }

    /// What was still owed when the run was cut.
    pub fn open(&self) -> impl Iterator<Item = (Time, &Violation)> {
        self.verdicts.iter().filter_map(|(_, verdict)| match verdict {
            Verdict::Open(at, violation) => Some((*at, violation)),
            Verdict::Holds | Verdict::Violated(..) | Verdict::NotClaimed => None,
        })
    }

    /// What did not hold, and since when.
    pub fn violations(&self) -> impl Iterator<Item = (Time, &Violation)> {
        self.verdicts.iter().filter_map(|(_, verdict)| match verdict {
            Verdict::Violated(at, violation) => Some((*at, violation)),
            Verdict::Holds | Verdict::Open(..) | Verdict::NotClaimed => None,
        })
    }
}
