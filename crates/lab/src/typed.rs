//! A run and a check from names and texts, as they stand in a link: `nodes` and `5`, `crash` and
//! `2@4`. The names are those of the command line without dashes, and so a link says what to type.

use quorate_check::{self as check, Discards, Plan, Reduction, Start, Timers};
use quorate_core::{Channels, NodeSet, Time, Timing};

use crate::registry::{meta, server, traits};
use crate::text::{choice, number};
use crate::{
    BadInput, ChannelSpec, DETECTION, DISCARDS, MediumSpec, Numbers, STARTS, Spec, TIMERS, read,
    read_time,
};

/// A name and a text.
pub type Word = (String, String);

/// The names that a check takes and a simulation does not.
const OF_CHECKS: [&str; 10] = [
    "timers",
    "start",
    "discards",
    "reduce",
    "crashes",
    "mortal",
    "recoveries",
    "losses",
    "duplicates",
    "max-states",
];
/// The most faults of a kind in a check.
const FAULTS_MAX: u32 = 255;
/// How many nodes a simulation has if nothing is said.
const NODES: usize = 5;
/// How many nodes a check has if nothing is said.
const NODES_CHECKED: usize = 3;

impl Spec {
    /// The simulation that these words ask for, with a failure detector for whoever listens to one.
    ///
    /// # Errors
    /// The first word that makes no sense.
    pub fn typed(algorithm: &str, words: &[Word]) -> Result<Self, BadInput> {
        let mut spec = Self::new(meta(algorithm)?.name, NODES);
        let mut detects = None;
        for (name, text) in words {
            match name.as_str() {
                "detect" => detects = Some(text.as_str()),
                _ => spec.take(name, text)?,
            }
        }
        spec.counted_in(words);
        let alone = spec.over.has_views() && !spec.over.has_detector();
        spec.detection = match detects {
            Some("off") if alone => {
                let reason = "without a detector no view would ever change";
                return Err(BadInput::new("--detect", reason));
            }
            Some("off") => None,
            Some(text) => Some(read_time("--detect", text)?),
            None if !spec.over.has_detector() && traits(&spec)?.listens => Some(DETECTION),
            None => None,
        };
        spec.admit()?;
        Ok(spec)
    }

    /// The check that these words ask for: what is run, and what may happen.
    ///
    /// # Errors
    /// The first word that makes no sense.
    pub fn typed_check(algorithm: &str, words: &[Word]) -> Result<(Self, Plan), BadInput> {
        let mut spec = Self::small(meta(algorithm)?.name, NODES_CHECKED)?;
        for (name, text) in words.iter().filter(|(name, _)| !OF_CHECKS.contains(&name.as_str())) {
            spec.take(name, text)?;
        }
        spec.counted_in(words);
        spec.admit()?;
        let plan = spec.plan(words)?;
        Ok((spec, plan))
    }

    /// As many nodes as lists of ids or links name, if nothing is said; and one that is there for the
    /// others, which nobody counts.
    fn counted_in(&mut self, words: &[Word]) {
        if !words.iter().any(|(name, _)| name == "nodes") {
            self.nodes = self.counted().unwrap_or(self.nodes);
        }
        self.nodes = self.nodes.saturating_add(usize::from(server(&self.algorithm).is_some()));
    }

    /// Takes over one word.
    fn take(&mut self, name: &str, text: &str) -> Result<(), BadInput> {
        let argument = &format!("--{name}");
        let bad = |unclear| BadInput::new(argument, unclear);
        match name {
            "nodes" => self.nodes = number(text).map_err(bad)?,
            "seed" => self.seed = number(text).map_err(bad)?,
            "topology" => self.topology = Some(read(argument, text)?),
            "channels" => {
                self.channels = Some(choice(text, &ChannelSpec::NAMES).map_err(bad)?);
            }
            "over" => self.over = read(argument, text)?,
            "flaw" => self.flaw = Some(text.to_owned()),
            "latency" => self.latency = read(argument, text)?,
            "latency-table" => self.latency_table = Some(read(argument, text)?),
            "loss" => self.loss = number(text).map_err(bad)?,
            "loss-table" => self.loss_table = Some(read(argument, text)?),
            "duplicate" => self.duplicate = number(text).map_err(bad)?,
            "reorder" => self.reorder = number(text).map_err(bad)?,
            "medium" => self.medium = choice(text, &MediumSpec::NAMES).map_err(bad)?,
            "crash" => self.crashes.push(read(argument, text)?),
            "recover" => self.recoveries.push(read(argument, text)?),
            "partition" => self.partitions.push(read(argument, text)?),
            "cut" => self.cuts.push(read(argument, text)?),
            "pause-node" => self.pauses.push(read(argument, text)?),
            "clock" => self.clocks.push(read(argument, text)?),
            "restart-all" => self.restarts.push(read(argument, text)?),
            "tamper" => self.tampered.push(read(argument, text)?),
            "disk-write" => self.disk_write = Some(read_time(argument, text)?),
            "until" => self.until = Some(Time::ZERO + read_time(argument, text)?),
            _ if OF_CHECKS.contains(&name) => {
                return Err(BadInput::new(argument, "only checks take it"));
            }
            _ => return self.take_own(name, text),
        }
        Ok(())
    }

    /// An option of the algorithm, or else an argument of its family.
    fn take_own(&mut self, name: &str, text: &str) -> Result<(), BadInput> {
        if meta(&self.algorithm)?.options.iter().any(|option| option.name == name) {
            self.options.insert(name.to_owned(), text.to_owned());
            return Ok(());
        }
        self.read(name, text)
    }

    /// What may happen in a check.
    fn plan(&self, words: &[Word]) -> Result<Plan, BadInput> {
        let traits = traits(self)?;
        let fifo = match self.channels {
            Some(channels) => channels == ChannelSpec::Fifo,
            None => traits.channels == Channels::Fifo,
        };
        let mut plan = Plan {
            network: if fifo { check::Network::Fifo } else { check::Network::Unordered },
            // What the algorithm assumes holds, unless somebody says otherwise.
            timers: match traits.timing {
                Timing::Synchronous => Timers::WhenQuiet,
                Timing::Asynchronous | Timing::Timed => Timers::Anytime,
            },
            start: Start::default(),
            discards: Discards::default(),
            ..Plan::default()
        };
        for (name, text) in words {
            let argument = &format!("--{name}");
            let bad = |unclear| BadInput::new(argument, unclear);
            let count = || {
                let few = text.parse().ok().filter(|count| *count <= FAULTS_MAX);
                few.ok_or_else(|| {
                    let reason = format!("{text} is not a number from 0 to {FAULTS_MAX}");
                    BadInput::new(argument, reason)
                })
            };
            match name.as_str() {
                "timers" => plan.timers = choice(text, &TIMERS).map_err(bad)?,
                "start" => plan.start = choice(text, &STARTS).map_err(bad)?,
                "discards" => plan.discards = choice(text, &DISCARDS).map_err(bad)?,
                "reduce" => plan.reduction = Reduction::Outdated,
                "crashes" => plan.crashes = count()?,
                "recoveries" => plan.recoveries = count()?,
                "losses" => plan.losses = count()?,
                "duplicates" => plan.duplicates = count()?,
                "max-states" => plan.states_max = number(text).map_err(bad)?,
                "mortal" => {
                    let mortal = read::<Numbers>(argument, text)?;
                    plan.mortal = Some(self.node_set(argument, &mortal)?);
                }
                _ => {}
            }
        }
        let mortal = plan.mortal.as_ref().is_some_and(|mortal: &NodeSet| !mortal.is_empty());
        let pointless = [("--recoveries", plan.recoveries > 0), ("--mortal", mortal)];
        match pointless.iter().find(|(_, given)| *given && plan.crashes == 0) {
            Some((argument, _)) => {
                Err(BadInput::new(argument, "nobody crashes; give --crashes K, too"))
            }
            None => Ok(plan),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
        pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
    }

    #[test]
    fn words_make_a_run() {
        let text = "nodes=7 seed=3 requests=2 crash=2@4 crash=3@5 tamper=lose:1.2-3 latency=exp:2";
        let spec = Spec::typed("mutex/central", &words(text)).unwrap();
        assert_eq!((spec.nodes, spec.seed, spec.crashes.len()), (7, 3, 2));
        assert_eq!(spec.tampered, ["lose:1.2-3".parse().unwrap()]);
        assert_eq!(spec.latency.to_string(), "exp:2");
        let coordinated = Spec::typed("mutex/central", &words("coordinator=2")).unwrap();
        assert_eq!(coordinated.options["coordinator"], "2");
    }

    #[test]
    fn whoever_listens_to_a_detector_has_one_unless_it_is_off() {
        let detection = |text| Spec::typed("election/bully", &words(text)).unwrap().detection;
        let listens = traits(&Spec::new("election/bully", 3)).unwrap().listens;
        assert_eq!(detection("nodes=3"), listens.then_some(DETECTION));
        assert_eq!(detection("detect=off"), None);
    }

    #[test]
    fn a_word_that_makes_no_sense_is_named() {
        let error = |text| Spec::typed("mutex/central", &words(text)).unwrap_err().to_string();
        assert_eq!(error("nodes=many"), "--nodes: many is not a number");
        assert_eq!(error("crashes=1"), "--crashes: only checks take it");
        assert!(error("colour=red").starts_with("--colour: "));
        let check = |text| Spec::typed_check("mutex/central", &words(text)).unwrap_err();
        assert_eq!(check("losses=300").to_string(), "--losses: 300 is not a number from 0 to 255");
        assert_eq!(
            check("recoveries=1").to_string(),
            "--recoveries: nobody crashes; give --crashes K, too"
        );
    }

    #[test]
    fn words_make_a_check() {
        let (spec, plan) =
            Spec::typed_check("mutex/lamport", &words("losses=1 mortal=2 crashes=1")).unwrap();
        assert_eq!((spec.nodes, plan.losses, plan.crashes), (3, 1, 1));
        assert_eq!(plan.network, check::Network::Fifo);
        assert!(plan.mortal.is_some());
    }
}
