//! Profiles: all times of a cluster together, since they only make sense together.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use quorate_core::Span;

/// How far members are from each other, and so how long they wait for each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Profile {
    /// One machine, to try things.
    #[default]
    Dev,
    /// One network with machines of one's own.
    Lan,
    /// Machines that stand still now and then.
    Cloud,
    /// Several places.
    Wan,
}

impl Profile {
    /// All, with their names.
    pub const ALL: [(&'static str, Self); 4] =
        [("dev", Self::Dev), ("lan", Self::Lan), ("cloud", Self::Cloud), ("wan", Self::Wan)];

    /// Its times.
    #[must_use]
    pub const fn timers(self) -> Timers {
        let (lease, tick, heartbeat, election) = match self {
            Self::Dev => (1_500, 20, 1, 7),
            Self::Lan => (3_000, 50, 2, 6),
            Self::Cloud => (10_000, 250, 2, 4),
            Self::Wan => (15_000, 250, 4, 7),
        };
        let tick = Duration::from_millis(tick);
        Timers { lease: Duration::from_millis(lease), tick, heartbeat, election }
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, profile)| *profile)
            .ok_or_else(|| format!("there is no profile {text}: there are dev, lan, cloud and wan"))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(_, profile)| profile == self);
        f.pad(found.map_or("", |(name, _)| name))
    }
}

/// The times of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timers {
    /// How long a lease is: T.
    pub lease: Duration,
    /// The unit of the consensus.
    pub tick: Duration,
    /// How often a leader is heard, in ticks.
    pub heartbeat: usize,
    /// The shortest election timeout, in ticks; the longest is twice as long.
    pub election: usize,
}

/// The shortest lease that makes sense: it holds four elections of a few ticks each.
pub const LEASE_MIN: Duration = Duration::from_millis(300);
/// The longest: who is gone is missed for as long.
pub const LEASE_MAX: Duration = Duration::from_secs(600);

impl Timers {
    /// Times that fit another length of lease: it is four times the longest election timeout, so that
    /// an election with a split vote costs nobody its lease.
    ///
    /// # Errors
    /// If it is too short or too long.
    pub fn of(lease: Duration) -> Result<Self, String> {
        if !(LEASE_MIN..=LEASE_MAX).contains(&lease) {
            return Err(format!(
                "a lease of {lease:?}: it is between {LEASE_MIN:?} and {LEASE_MAX:?}"
            ));
        }
        let election = 7;
        let tick = lease / (4 * 2 * u32::try_from(election).unwrap_or(7));
        Ok(Self { lease, tick, heartbeat: 2, election })
    }

    /// The lease, as state machines count.
    #[must_use]
    pub fn span(&self) -> Span {
        Span(u64::try_from(self.lease.as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_outlasts_an_election_with_a_split_vote() {
        let all = Profile::ALL.iter().map(|(_, profile)| profile.timers());
        let other = [300, 600, 60_000].map(|ms| Timers::of(Duration::from_millis(ms)).unwrap());
        for timers in all.chain(other) {
            let longest = timers.tick * 2 * u32::try_from(timers.election).unwrap();
            assert!(longest * 4 <= timers.lease, "{timers:?}");
            assert!(timers.heartbeat < timers.election, "{timers:?}");
        }
        assert!(Timers::of(Duration::from_millis(1)).is_err());
    }

    #[test]
    fn profiles_have_names() {
        for (name, profile) in Profile::ALL {
            assert_eq!(name.parse(), Ok(profile));
            assert_eq!(profile.to_string(), name);
        }
        assert!("moon".parse::<Profile>().unwrap_err().contains("moon"));
    }
}
