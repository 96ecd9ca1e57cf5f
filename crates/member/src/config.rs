//! What a member is started with.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use quorate_service::founding::Seeds;
use quorate_transport::{Name, NotAName, Security};

use crate::profile::{Profile, Timers};
use crate::trace::TraceConfig;
use crate::words::VERSIONS;

/// A seed: a member that also votes in the consensus, and where it is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seed {
    /// Its name.
    pub name: Name,
    /// `host:port`.
    pub address: String,
}

impl FromStr for Seed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, address) = text
            .split_once('=')
            .ok_or_else(|| format!("{text}: a seed is NAME=HOST:PORT, such as a=10.0.0.1:7400"))?;
        let name = name.parse().map_err(|error| format!("{text}: {error}"))?;
        let address = address.to_owned();
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none() {
            return Err(format!("{text}: its address has no port"));
        }
        Ok(Self { name, address })
    }
}

/// Where the register is kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// By the seeds, on their own disks.
    #[default]
    Embedded,
    /// In an etcd that is there already.
    Etcd {
        /// Its JSON gateway, `host:port` each.
        endpoints: Vec<String>,
        /// The key.
        key: String,
    },
}

/// All that a member is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The member's name.
    pub name: Name,
    /// The cluster's name, as in certificates.
    pub cluster: Name,
    /// Where it listens, `host:port`.
    pub listen: String,
    /// Where others reach it, if that is another address.
    pub advertise: Option<String>,
    /// Who votes: one, three or five, in the same order everywhere. Not used with an engine outside.
    pub seeds: Vec<Seed>,
    /// Where it keeps what it must not forget.
    pub data: PathBuf,
    /// The times of the cluster.
    pub timers: Timers,
    /// May it found a cluster, if it is the first of the seeds and there is none?
    pub found: bool,
    /// Does a place that refuses connections prove that nobody is there?
    pub trust_refusal: bool,
    /// How members are told from strangers.
    pub security: Security,
    /// The versions of the wire that it speaks: [`VERSIONS`](crate::VERSIONS), or fewer of them.
    pub versions: RangeInclusive<u16>,
    /// Where the register is kept.
    pub engine: Engine,
    /// Where it writes down what happens to it, for the judge of faults.
    pub history: Option<PathBuf>,
    /// Where it writes down what its users do with locks.
    pub trace: Option<TraceConfig>,
}

impl Config {
    /// A member of a cluster of its own, on this machine: it votes alone, and founds the cluster if its
    /// directory is empty. For programs on one machine, and to try things.
    ///
    /// # Errors
    /// If the name is none.
    pub fn alone(name: &str, data: impl Into<PathBuf>) -> Result<Self, NotAName> {
        let name: Name = name.parse()?;
        let address = "127.0.0.1:0".to_owned();
        Ok(Self {
            cluster: name.clone(),
            listen: address.clone(),
            advertise: None,
            seeds: vec![Seed { name: name.clone(), address }],
            name,
            data: data.into(),
            timers: Profile::Dev.timers(),
            found: true,
            trust_refusal: false,
            versions: VERSIONS,
            security: Security::Plain { anywhere: false },
            engine: Engine::Embedded,
            history: None,
            trace: None,
        })
    }

    /// Is this something that a cluster can be made of?
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub fn check(&self) -> Result<(), String> {
        if self.engine != Engine::Embedded {
            return Ok(());
        }
        Seeds::admit(self.seeds.len()).map_err(|error| error.to_string())?;
        for (place, seed) in self.seeds.iter().enumerate() {
            if self.seeds[..place].iter().any(|other| other.name == seed.name) {
                return Err(format!("the seed {} is listed twice", seed.name));
            }
        }
        if self.found && self.seeds.first().is_none_or(|first| first.name != self.name) {
            return Err(format!(
                "{} cannot found the cluster: only the first of the seeds can, so that two never do",
                self.name
            ));
        }
        Ok(())
    }

    /// Where others reach it.
    #[must_use]
    pub fn address(&self) -> &str {
        self.advertise.as_deref().unwrap_or(&self.listen)
    }

    /// Its place in the list of seeds.
    pub(crate) fn seat_among_seeds(&self) -> Option<usize> {
        self.seeds.iter().position(|seed| seed.name == self.name)
    }

    /// What tells one list of seeds from another one, or one key of etcd. Addresses may change, names may
    /// not.
    pub(crate) fn list(&self) -> u64 {
        let names = self.seeds.iter().map(|seed| seed.name.as_str());
        let key = match &self.engine {
            Engine::Embedded => "",
            Engine::Etcd { key, .. } => key,
        };
        fingerprint(names.chain([self.cluster.as_str(), key]))
    }
}

/// What tells texts apart (FNV-1a): the same on every machine and in every version.
pub(crate) fn fingerprint<'a>(texts: impl Iterator<Item = &'a str>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for text in texts {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_have_names_and_ports() {
        let seed: Seed = "a=[::1]:7400".parse().unwrap();
        assert_eq!((seed.name.as_str(), seed.address.as_str()), ("a", "[::1]:7400"));
        for bad in ["a", "=x:1", "a=host", "a=host:port", "A=host:1"] {
            assert!(bad.parse::<Seed>().is_err(), "{bad}");
        }
    }

    #[test]
    fn lists_are_told_apart_by_their_order() {
        let list = |names: &[&'static str]| fingerprint(names.iter().copied());
        assert_ne!(list(&["a", "b"]), list(&["b", "a"]));
        assert_ne!(list(&["ab"]), list(&["a", "b"]));
        assert_eq!(list(&["a", "b"]), list(&["a", "b"]));
    }
}
