//! A mutant for every property: a run with one thing wrong in it that violates this property and no
//! other. So every part of every monitor is needed, and none stands in for another.
//!
//! That each property has a trace that violates it and no other, and that the page of properties has
//! all of them, is tested where properties are explained (`quorate_lab::verify`).

#![allow(clippy::unwrap_used)]

mod command;

use command::{folder, json};

/// A property, a run, and what is wrong in it: a planted mistake, or an algorithm that does not keep
/// the property and does not claim to.
const MUTANTS: [(&str, &str, Option<&str>); 29] = [
    ("mutex: safety", "mutex/central", Some("IgnoreHolder")),
    ("mutex: wellformed", "mutex/central", Some("TellTwice")),
    ("mutex: liveness", "mutex/sanders", Some("NeverYield")),
    ("mutex: fairness", "mutex/ricart-agrawala --latency exp:1 --load 5", Some("IgnoreTies")),
    (
        "mutex: ordering",
        "mutex/central --users-talk on --channels fifo --latency exp:1 --requests 30",
        None,
    ),
    ("mutex: fencing", "mutex/central --over views", Some("IgnoreCounters")),
    ("election: uniqueness", "election/chang-roberts", Some("WorseCountsAsOwn")),
    ("election: succession", "election/firewire", Some("EarlyRoot")),
    (
        "election: agreement",
        "election/floodmax --nodes 9 --ids random --latency exp:1 --seed 5",
        Some("OneRoundFewer"),
    ),
    (
        "election: best",
        "election/hirschberg-sinclair --nodes 9 --ids random --initiators 3",
        Some("NobodyRefuses"),
    ),
    ("election: termination", "election/tree-echo", Some("LeavesAreNotTold")),
    ("detector: completeness", "detector/heartbeat --crash 3@500", Some("WatchOnce")),
    ("detector: eventual_accuracy", "detector/heartbeat --loss 0.1", Some("NeverForgive")),
    ("group: integrity", "group/srm --loss 0.1 --latency exp:1", Some("DeliverTwice")),
    (
        "group: atomicity",
        "group/ack-multicast --loss 0.1 --latency exp:1",
        Some("StableAtFirstAck"),
    ),
    ("group: fifo_order", "group/ack-multicast --window 1 --gap 0", Some("NewestFirst")),
    (
        "group: causal_order",
        "group/virtual-synchrony --order causal --latency exp:1",
        Some("IgnoreCauses"),
    ),
    ("group: total_order", "group/abcast", Some("OwnIsFinal")),
    (
        "group: view_synchrony",
        "group/virtual-synchrony --partition 1,2|3,4,5@5..30 --latency exp:1",
        Some("InstallWithoutMissing"),
    ),
    (
        "group: uniformity",
        "group/extended-virtual-synchrony --uniform --partition 1,2|3,4,5@5..30 --latency exp:1",
        Some("SafeIsAgreed"),
    ),
    ("group: liveness", "group/sequencer", Some("SamePlace")),
    (
        "service: one_history",
        "service/seat --nodes 2 --crash 3@7.5 --recover 3@27.5 --disk-write 2",
        Some("AnswerBeforeDisk"),
    ),
    (
        "service: lives",
        "service/seat --nodes 3 --crash 2@500 --recover 2@510 --no-evidence",
        Some("AdmitByName"),
    ),
    ("service: grounds", "service/seat --nodes 3 --cut 2-3@300..800", Some("BarIsGround")),
    ("service: stop_before_decide", "service/seat --nodes 3 --leave 3@300", Some("FlushAndGoOn")),
    (
        "service: guard_before_grant",
        "service/seat --nodes 3 --cut 1-2@300..350",
        Some("PresideForTheSilent"),
    ),
    (
        "service: no_silent_gap",
        "service/seat --nodes 4 --join 3@300 --join 4@330 --cut 5>2@300..385",
        Some("PassOverWhoOwes"),
    ),
    (
        "service: one_founding",
        "service/founding --nodes 3 --cut 1-3@0..45 --cut 1-2@40..200 --cut 2-3@0..200 --replace 1@43",
        Some("MostPledgesWillDo"),
    ),
    ("service: liveness", "service/seat --nodes 3 --join 3@300", Some("NobodyComesIn")),
];

/// What a run violates.
fn violated(run: &str, flaw: Option<&str>) -> Vec<String> {
    let mut words: Vec<&str> = ["sim"].into_iter().chain(run.split_whitespace()).collect();
    words.extend(flaw.iter().flat_map(|name| ["--flaw", name]));
    words.push("--json");
    let report = json(&folder("monitors"), &words);
    let violations = report.get("violations").and_then(|all| all.as_array());
    let property = |violation: &serde_json::Value| violation["property"].as_str().unwrap().into();
    violations.into_iter().flatten().map(property).collect()
}

#[test]
fn every_property_has_a_mutant_that_violates_it_and_no_other() {
    for (title, run, flaw) in MUTANTS {
        let (_, property) = title.split_once(": ").unwrap();
        assert_eq!(violated(run, flaw), [property], "{title}: {run} {flaw:?}");
        // It is the mistake, and not the run.
        if flaw.is_some() {
            assert!(violated(run, None).is_empty(), "{title}: {run}");
        }
    }
}

#[test]
fn no_property_is_forgotten() {
    let page = include_str!("../../lab/properties.md");
    let explained: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(MUTANTS.map(|(title, ..)| title).to_vec(), explained);
}
