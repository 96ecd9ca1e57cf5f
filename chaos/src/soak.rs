//! Hours in minutes: what members that are never touched take of their machine, while others come, go and are
//! killed around them. It must not grow.

use std::fmt::Write as _;
use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

/// What a process takes of its machine at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Usage {
    /// Which member it is.
    pub member: String,
    /// Memory that is resident, in KiB.
    pub memory: u64,
    /// How many threads.
    pub threads: u64,
    /// How many file descriptors.
    pub descriptors: u64,
}

/// What members that are there all the time take, at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// In milliseconds from when all were seated first.
    pub at: u64,
    /// By member.
    pub of: Vec<Usage>,
}

/// Memory may grow by this share from the middle third of the time to the last one, and by so many KiB.
const MEMORY_PERCENT: u64 = 6;
const MEMORY_LEAST: u64 = 2 * 1024;
/// So many threads and descriptors may be more: those of a command or a connection that is just there.
const THREADS: u64 = 1;
const DESCRIPTORS: u64 = 4;
/// With less nothing can be said.
const SAMPLES_MIN: usize = 6;

impl Usage {
    /// Of the process of this number, as the kernel says.
    pub(crate) fn of(member: String, pid: u32) -> io::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
            number.ok_or_else(|| io::Error::other(format!("/proc/{pid}/status has no {name}")))
        };
        let (memory, threads) = (field("VmRSS:")?, field("Threads:")?);
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64;
        Ok(Self { member, memory, threads, descriptors })
    }
}

/// What is not flat, a sentence each.
pub(crate) fn growth(samples: &[Sample]) -> Vec<String> {
    if samples.len() < SAMPLES_MIN {
        return vec![format!("{} samples are too few to say anything", samples.len())];
    }
    let third = samples.len() / 3;
    let (middle, last) = (&samples[third..2 * third], &samples[samples.len() - third..]);
    let members = samples.last().map_or(&[][..], |sample| &sample.of);
    let mut found = Vec::new();
    for Usage { member, .. } in members {
        let mut compare = |what: &str, of: fn(&Usage) -> u64, more: fn(u64) -> u64| {
            let [before, after] = [middle, last].map(|part| median(part, member, of));
            if after > before + more(before) {
                found.push(format!("{what} of {member} grow from {before} to {after}"));
            }
        };
        compare(
            "KiB of memory",
            |it| it.memory,
            |before| (before * MEMORY_PERCENT / 100).max(MEMORY_LEAST),
        );
        compare("threads", |it| it.threads, |_| THREADS);
        compare("file descriptors", |it| it.descriptors, |_| DESCRIPTORS);
    }
    found
}

fn median(samples: &[Sample], member: &str, of: fn(&Usage) -> u64) -> u64 {
    let all = samples.iter().flat_map(|sample| &sample.of);
    let mut numbers: Vec<u64> = all.filter(|usage| usage.member == member).map(of).collect();
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied().unwrap_or(0)
}

/// All samples, a line each.
pub(crate) fn table(samples: &[Sample]) -> String {
    let mut text = String::from("   time");
    for usage in samples.first().iter().flat_map(|sample| &sample.of) {
        _ = write!(text, "   {}: MiB threads fds", usage.member);
    }
    for Sample { at, of } in samples {
        _ = write!(text, "\n{:>5} s", at / 1_000);
        for Usage { memory, threads, descriptors, .. } in of {
            let memory = *memory as f64 / 1024.0;
            _ = write!(text, "   {memory:>6.1} {threads:>7} {descriptors:>3}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many samples of one member, each as it is at that place.
    fn samples(count: u64, of: impl Fn(u64) -> [u64; 3]) -> Vec<Sample> {
        let sample = |place: u64| {
            let [memory, threads, descriptors] = of(place);
            let usage = Usage { member: "a".into(), memory, threads, descriptors };
            Sample { at: 1_000 * place, of: vec![usage] }
        };
        (0..count).map(sample).collect()
    }

    #[test]
    fn what_warms_up_and_wavers_is_flat() {
        let flat = samples(30, |place| {
            [20_000 + 400 * place.min(10) + 300 * (place % 2), 12 + place % 2, 40 + place % 5]
        });
        assert_eq!(growth(&flat), [""; 0]);
    }

    #[test]
    fn each_thing_that_grows_is_found() {
        let memory = samples(30, |place| [20_000 + 250 * place, 12, 40]);
        assert_eq!(growth(&memory), ["KiB of memory of a grow from 23750 to 26250"]);
        let threads = samples(30, |place| [20_000, 12 + place / 5, 40]);
        assert_eq!(growth(&threads), ["threads of a grow from 15 to 17"]);
        let descriptors = samples(30, |place| [20_000, 12, 40 + place]);
        assert_eq!(growth(&descriptors), ["file descriptors of a grow from 55 to 65"]);
    }

    #[test]
    fn of_a_few_samples_nothing_is_said_to_be_flat() {
        assert_eq!(growth(&samples(5, |_| [1, 1, 1])).len(), 1);
    }

    #[test]
    fn the_kernel_says_what_this_process_takes() {
        let own = Usage::of("a".into(), std::process::id()).unwrap();
        assert!(own.memory > 100 && own.threads >= 1 && own.descriptors >= 3, "{own:?}");
    }
}
