//! How long a run will be, before it begins: from small runs of the same kind, and how they grow.

use quorate_core::{Span, Time};

use crate::registry::find;
use crate::{Spec, Watch, simulate};

/// Runs with more events than this take hours.
pub const EVENTS_MAX: f64 = 1e10;

/// Up to so many nodes are tried as they are.
const NODES: usize = 64;
/// The sizes that are tried where there are more: squares and powers of two, as some topologies are.
const SIZES: [usize; 2] = [16, NODES];
/// A run of so few rounds is no longer than what is tried.
const ROUNDS: u64 = 1_000;
/// So many latencies of a run are tried.
const LATENCIES: u64 = 1_000;
/// So many events of a run are tried.
const EVENTS: u64 = 1 << 20;

/// About how many events a simulation will have: nothing if it is small anyway, or if small runs of
/// the kind cannot tell.
#[must_use]
pub fn estimate(spec: &Spec) -> Option<f64> {
    let (problem, _) = find(&spec.algorithm).ok()?;
    let until = spec.until.unwrap_or_else(|| Time::ZERO + (problem.until)(spec));
    let tried = spec.latency().mean().max(Span::UNIT).times(LATENCIES);
    let (family, times) = spec.family.once();
    let endless = until == Time(u64::MAX);
    if spec.nodes <= NODES && times <= ROUNDS && (endless || until.since(Time::ZERO) <= tried) {
        return None;
    }
    let small = |nodes: usize| {
        let mut small = Spec { nodes, family: family.clone(), ..spec.clone() };
        small.until = Some(until.min(Time::ZERO + tried));
        if nodes < spec.nodes {
            // They name nodes that are not there.
            small.crashes.clear();
            small.recoveries.clear();
            small.partitions.clear();
            small.cuts.clear();
            small.pauses.clear();
            small.clocks.clear();
        }
        let mut short = |events, _| events < EVENTS;
        let watch = Watch { record: None, progress: Some(&mut short) };
        let report = simulate(&small, watch).ok()?.report;
        // What has not come to rest goes on like this.
        let passed = report.end.since(Time::ZERO).0.max(1) as f64;
        let rest = if report.quiet || endless { 1.0 } else { until.0 as f64 / passed };
        Some(report.events.max(1) as f64 * rest)
    };
    let events = match spec.nodes > NODES {
        false => small(spec.nodes)?,
        true => {
            let [few, many] = SIZES.map(small);
            let (few, many) = (few?, many?);
            let [fewer, more] = SIZES.map(|nodes| nodes as f64);
            let power = (many / few).ln() / (more / fewer).ln();
            many * (spec.nodes as f64 / more).powf(power.max(0.0))
        }
    };
    // Rounds count where they, and not the time, end the run.
    Some(if endless { events * times as f64 } else { events })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::GroupSpec;

    /// How far the estimate is from what happens, as a factor.
    fn off(spec: &Spec) -> f64 {
        let events = simulate(spec, Watch::default()).unwrap().report.events as f64;
        let estimate = estimate(spec).unwrap();
        (estimate / events).max(events / estimate)
    }

    #[test]
    fn estimates_are_of_the_right_size() {
        for (algorithm, nodes) in
            [("mutex/lamport", 200), ("mutex/raymond", 1_000), ("election/chang-roberts", 10_000)]
        {
            let spec = Spec::new(algorithm, nodes);
            assert!(off(&spec) < 3.0, "{algorithm}: {}", off(&spec));
        }
        let beats =
            Spec { until: Some(Time(20_000_000_000)), ..Spec::new("detector/heartbeat", 5) };
        assert!(off(&beats) < 2.0, "{}", off(&beats));
    }

    #[test]
    fn what_would_take_hours_is_known_and_what_does_not_is_not_tried() {
        let hopeless = [
            Spec::new("mutex/lamport", 100_000),
            Spec::new("mutex/ricart-agrawala", 20_000_000),
            Spec::new("election/bully", 1_000_000),
            Spec::new("group/ack-multicast", 5)
                .given(GroupSpec { messages: 4_000_000_000, ..GroupSpec::default() }),
            Spec {
                until: Some(Time::ZERO + Span::units(99_999_999_000)),
                ..Spec::new("detector/heartbeat", 5)
            },
        ];
        for spec in hopeless {
            assert!(estimate(&spec) > Some(EVENTS_MAX), "{}", spec.algorithm);
        }
        assert!(estimate(&Spec::new("election/chang-roberts", 20_000_000)) < Some(EVENTS_MAX));
        assert_eq!(estimate(&Spec::new("mutex/lamport", 5)), None);
    }
}
