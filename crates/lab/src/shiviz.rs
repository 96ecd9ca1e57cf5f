//! Logs of ShiViz: a host and its vector clock on a line, and what happened on the next.

use std::collections::BTreeMap;
use std::fmt::Write;

use quorate_core::trace::{Happening, Outcome, Record};
use quorate_core::{NodeId, PerNode, Time};
use serde_json::Value;

use crate::trace_file::{BadTrace, RECORDS_MAX, TraceFile};

/// The most numbers in the clocks of a log, which has one for each node at each step.
const CLOCKS_MAX: usize = 100_000_000;

/// The log of a run of so many nodes; nothing if its clocks would be too long.
#[must_use]
pub fn log(nodes: usize, records: &[Record]) -> Option<String> {
    if nodes.saturating_mul(records.len()) > CLOCKS_MAX {
        return None;
    }
    let mut clocks = PerNode::new(nodes, |_| vec![0u64; nodes]);
    let mut sent: BTreeMap<(NodeId, u64), Vec<u64>> = BTreeMap::new();
    let mut text = String::new();
    for Record { node, input, effects, steps, .. } in records {
        if let Happening::Receive(parcel) = input
            && let Some(known) = sent.get(&(parcel.from, parcel.id))
        {
            for (mine, theirs) in clocks[*node].iter_mut().zip(known) {
                *mine = (*mine).max(*theirs);
            }
        }
        let clock = &mut clocks[*node];
        clock[node.index()] += 1;
        for effect in effects {
            if let Outcome::Send { id, .. } = effect {
                sent.insert((*node, *id), clock.clone());
            }
        }
        let known = clock.iter().enumerate().filter(|(_, count)| **count > 0);
        let known: Vec<_> =
            known.map(|(node, count)| format!("\"n{}\":{count}", node + 1)).collect();
        let _ = writeln!(text, "n{node} {{{}}}\n{}", known.join(","), words(input, steps, effects));
    }
    Some(text)
}

/// What happened, on one line.
fn words(input: &Happening, steps: &[quorate_core::trace::Step], effects: &[Outcome]) -> String {
    let mut words = vec![match input {
        Happening::Start => "start".to_owned(),
        Happening::Recover => "recover".to_owned(),
        Happening::Crash => "crash".to_owned(),
        Happening::Pause => "pause".to_owned(),
        Happening::Resume => "resume".to_owned(),
        Happening::Settle => "settle".to_owned(),
        Happening::Command(command) => command.clone(),
        Happening::Refused(command, _) => format!("refused {command}"),
        Happening::Receive(parcel) => format!("receive {}", parcel.text),
        Happening::Lose(parcel) => format!("lose {}", parcel.text),
        Happening::Timer(timer) => format!("timer {timer}"),
        Happening::Liveness(peer, word) => format!("{peer} is {word:?}"),
    }];
    words.extend(steps.iter().map(|step| step.name.to_string()));
    words.extend(effects.iter().filter_map(|effect| match effect {
        Outcome::Send { text, to, .. } => {
            let to: Vec<_> = to.iter().map(|node| format!("n{node}")).collect();
            Some(format!("send {text} to {}", to.join(",")))
        }
        Outcome::Emit(event) => Some(event.clone()),
        Outcome::Set(_) | Outcome::Cancel(_) | Outcome::Persist(_) => None,
    }));
    words.join("; ").replace('\n', " ")
}

/// A log as a trace of mutual exclusion: what says acquire, granted or release is that, everything
/// else is shown and not judged. Steps stand in an order in which causes come first.
///
/// # Errors
/// The first line that cannot be read.
pub fn import(text: &str) -> Result<TraceFile, BadTrace> {
    let mut hosts = crate::import::Hosts::default();
    let mut entries = Vec::new();
    let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    while let Some((line, number)) = lines.next() {
        let bad = |fault: &str| BadTrace { line: number, fault: fault.to_owned() };
        let (host, clock) = line.split_once(' ').ok_or_else(|| bad("it is not HOST {CLOCK}"))?;
        let clock: BTreeMap<String, Value> = serde_json::from_str(clock.trim())
            .map_err(|_| bad("its clock is not a JSON object"))?;
        let mut sum = 0u64;
        for count in clock.values() {
            let count = count.as_u64().ok_or_else(|| bad("its clock has more than numbers"))?;
            sum = sum.saturating_add(count);
        }
        let (words, _) = lines.next().ok_or_else(|| bad("what happened is missing"))?;
        if entries.len() == RECORDS_MAX {
            return Err(bad("there are too many records"));
        }
        entries.push((sum, entries.len(), hosts.node(host), words));
    }
    // Whatever a step knows of has a smaller sum.
    entries.sort_unstable();
    let records = entries.iter().zip(0..).map(|(&(_, _, node, words), at)| {
        let (input, effects) = meant(words);
        crate::import::record(Time(at * 1_000), node, input, effects)
    });
    Ok(hosts.trace("shiviz", records.collect()))
}

/// What words of a log mean.
fn meant(words: &str) -> (Happening, Vec<Outcome>) {
    let lower = words.to_lowercase();
    if lower.contains("granted") {
        (Happening::Timer(words.to_owned()), vec![Outcome::Emit("Granted(None)".to_owned())])
    } else if lower.contains("acquire") {
        (Happening::Command("Acquire".to_owned()), Vec::new())
    } else if lower.contains("release") {
        (Happening::Command("Release".to_owned()), Vec::new())
    } else {
        (Happening::Timer(words.to_owned()), Vec::new())
    }
}
