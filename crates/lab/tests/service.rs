//! The parts of the cluster in the lab: what their runs say, and that clocks are believed by nobody but
//! their own node.

#![allow(clippy::unwrap_used)]

mod recorded;

use quorate_lab::verify::verify;
use quorate_lab::{Simulated, Spec, Watch, replay, simulate};
use serde_json::Value;

use recorded::recorded;

/// A run with these words, such as `--cut 1-4@300..600`; the first node of which the register is not.
fn seats(members: usize, words: &[(&str, &str)]) -> Spec {
    let mut spec = Spec::new("service/seat", members + 1);
    for (name, text) in words {
        match *name {
            "crash" => spec.crashes.push(text.parse().unwrap()),
            "recover" => spec.recoveries.push(text.parse().unwrap()),
            "cut" => spec.cuts.push(text.parse().unwrap()),
            "clock" => spec.clocks.push(text.parse().unwrap()),
            "pause" => spec.pauses.push(text.parse().unwrap()),
            "restart" => spec.restarts.push(text.parse().unwrap()),
            name => spec.read(name, text).unwrap(),
        }
    }
    spec
}

fn figure(simulated: &Simulated, spec: &Spec, name: &str) -> Value {
    simulated.json(spec)[name].clone()
}

fn violated(simulated: &Simulated) -> Vec<&'static str> {
    simulated.report.violations().map(|(_, violation)| violation.property).collect()
}

#[test]
fn a_death_costs_one_view_by_evidence_and_waits_for_the_lease_without() {
    for (words, least, most) in [
        (&[("crash", "2@500")][..], 1.0, 15.0),
        (&[("crash", "2@500"), ("no-evidence", "")], 75.0, 160.0),
        (&[("crash", "2@500"), ("witnesses", "none")], 75.0, 160.0),
    ] {
        let spec = seats(3, words);
        let (simulated, _) = recorded(&spec);
        assert!(simulated.holds, "{words:?}");
        assert_eq!(figure(&simulated, &spec, "members_at_the_end"), 2);
        let after = figure(&simulated, &spec, "from_crash_to_view")["max"].as_f64().unwrap();
        assert!((least..=most).contains(&after), "{words:?}: {after}");
    }
}

#[test]
fn members_come_and_go_and_all_restart() {
    let words = [
        ("join", "3@200"),
        ("leave", "1@400"),
        ("set-lease", "60@600"),
        ("restart", "800..805"),
        ("pause", "2@1100..1150"),
    ];
    let spec = seats(3, &words);
    let (simulated, trace) = recorded(&spec);
    assert_eq!(violated(&simulated), [""; 0]);
    // Whoever left asks again when it is started anew.
    assert_eq!(figure(&simulated, &spec, "members_at_the_end"), 3);
    assert_eq!(figure(&simulated, &spec, "left"), 1);
    let count = trace.records.len();
    let again = replay(&trace).unwrap();
    assert_eq!((again.records, again.difference), (count, None));
    assert!(verify(&trace).unwrap().holds());
}

/// A clock that is slow by four tenths, where a tenth is allowed: its node may act for longer than the
/// others wait, which only whoever knows all clocks can tell. A tenth is survived.
#[test]
fn deadlines_are_judged_by_the_clock_of_their_node_by_every_engine() {
    let cut = ("cut", "1-4@300..600");
    let slow = seats(3, &[cut, ("clock", "1*0.6")]);
    let (simulated, trace) = recorded(&slow);
    assert_eq!(violated(&simulated), ["grounds", "guard_before_grant"]);
    let verified = verify(&trace).unwrap();
    let found: Vec<_> = verified.findings.iter().map(|finding| finding.property).collect();
    assert_eq!(found[..2], ["grounds", "guard_before_grant"]);
    let again = replay(&trace).unwrap();
    assert_eq!((again.difference, again.violation.unwrap().0.as_str()), (None, "grounds"));
    let clocks = [("clock", "1*0.9"), ("clock", "2*1.1"), ("clock", "3*1.1")];
    let (simulated, _) = recorded(&seats(3, &[&[cut][..], &clocks].concat()));
    assert!(simulated.holds);
    assert!(
        simulated
            .report
            .verdicts
            .iter()
            .any(|(name, verdict)| { (*name, verdict.word()) == ("guard_before_grant", "ok") })
    );
}

#[test]
fn what_makes_no_sense_is_refused_with_the_argument() {
    let refused = |spec: &Spec| simulate(spec, Watch::default()).unwrap_err().to_string();
    let seeds = |count| Spec::new("service/founding", count);
    assert!(refused(&seeds(2)).starts_with("--nodes: 2 seeds: name 1, 3 or 5;"));
    assert!(refused(&Spec::new("service/seat", 1)).starts_with("--nodes: there is a node for"));
    assert!(refused(&Spec::new("service/seat", 300)).starts_with("--nodes: at most 255 members"));
    let spec = |name: &str, text: &str| seats(3, &[(name, text)]);
    assert_eq!(refused(&spec("leave", "4@5")), "--leave: node 4 has the register");
    assert_eq!(refused(&spec("lease", "1ns")), "--lease: it is shorter than a microsecond");
    let text = "--replace: only service/founding takes it, not service/seat";
    assert_eq!(refused(&spec("replace", "1@5")), text);
    let mut founding = seeds(3);
    founding.read("leave", "1@5").unwrap();
    let text = "--leave: only service/seat takes it, not service/founding";
    assert_eq!(refused(&founding), text);
    let mut seats = Spec::new("service/seat", 4);
    let error = seats.read("refused", "1@5").unwrap_err().to_string();
    assert_eq!(error, "--refused: 1@5 is not of the form NODE:NODE@TIME");
}
