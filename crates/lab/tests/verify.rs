//! Traces are judged right, whoever wrote them: by our simulator, by hand, or by nobody who means
//! well.
#![allow(clippy::unwrap_used, reason = "what is unexpected here is a failed test")]

mod recorded;

use std::path::Path;

use quorate_core::{Time, Verdict};
use quorate_lab::trace_file::{BadTrace, TraceFile};
use quorate_lab::verify::{Finding, Verified, verify};
use quorate_lab::{Spec, Watch, catalogue, simulate};

use recorded::recorded;

/// A trace of somebody else's system. What happened is written `1 ? C` for a command of the user at
/// node 1, `1 ! E` for what it is told, `1 crash` and `1 recover`; the lines are 1 us apart.
fn foreign(family: &str, nodes: usize, spec: &str, happened: &[&str]) -> String {
    let mut text = format!(
        "{{\"quorate\":1,\"engine\":\"mine\",\"algorithm\":\"{family}\",\"nodes\":{nodes},\
         \"spec\":{spec}}}\n"
    );
    for (line, time) in happened.iter().zip(1..) {
        let (node, what) = line.split_once(' ').unwrap();
        let rest = match what.split_once(' ') {
            Some(("?", command)) => format!("{{\"command\":\"{command}\"}}"),
            Some(("!", event)) => format!("{{\"timer\":\"x\"}},\"out\":[{{\"emit\":\"{event}\"}}]"),
            _ => format!("\"{what}\""),
        };
        text += &format!("{{\"t\":{time}000,\"n\":{node},\"in\":{rest}}}\n");
    }
    text + "{\"end\":true}\n"
}

fn judge(text: &str) -> Result<Verified, BadTrace> {
    verify(&TraceFile::read(text.as_bytes())?)
}

/// The property that does not hold, and the line at which that shows.
fn found(family: &str, spec: &str, happened: &[&str]) -> Option<(&'static str, usize)> {
    let verified = judge(&foreign(family, 3, spec, happened)).unwrap();
    assert_eq!(verified.events, happened.len());
    verified.findings.first().map(|Finding { property, line, .. }| (*property, *line))
}

#[test]
fn mutual_exclusion_is_judged() {
    let entry = ["1 ? Acquire", "1 ! Granted(None)"];
    let two = [&entry[..], &["2 ? Acquire", "2 ! Granted(None)"]].concat();
    assert_eq!(found("mutex", "{}", &two), Some(("safety", 5)));
    let crashed = [&entry[..], &["1 crash", "2 ? Acquire", "2 ! Granted(None)"]].concat();
    assert_eq!(found("mutex", "{}", &crashed), None);
    assert_eq!(found("mutex", "{}", &["3 ? Acquire"]), Some(("liveness", 3)));
    assert_eq!(found("mutex", r#"{"claims":["safety"]}"#, &["3 ? Acquire"]), None);
    let holder = r#"{"holder":2}"#;
    assert_eq!(found("mutex", holder, &entry), Some(("safety", 3)));
    assert_eq!(found("mutex", holder, &[&["2 ? Release"], &entry[..]].concat()), None);
    let fenced = |second: &'static str| {
        ["1 ? Acquire", "1 ! Fenced(1:5)", "1 ! Lost", "2 ? Acquire", second]
    };
    assert_eq!(found("mutex", "{}", &fenced("2 ! Fenced(2:1)")), None);
    assert_eq!(found("mutex", "{}", &fenced("2 ! Fenced(1:4)")), Some(("fencing", 6)));
    let again = ["1 ? Acquire", "1 ! Granted(None)", "1 ? Release", "1 ? Release"];
    assert_eq!(found("mutex", "{}", &again), Some(("wellformed", 5)));
    assert_eq!(found("mutex", "{}", &["1 ! Granted(None)"]), Some(("wellformed", 2)));
    let late = [
        "1 ? Acquire",
        "2 ? Acquire",
        "2 ! Granted(Some(5.2))",
        "2 ? Release",
        "1 ! Granted(Some(3.1))",
    ];
    assert_eq!(found("mutex", "{}", &late), None, "fairness is not claimed");
    assert_eq!(found("mutex", r#"{"claims":["fairness"]}"#, &late), Some(("fairness", 6)));
}

#[test]
fn elections_are_judged() {
    let elect = |rest: &[&'static str]| [&["1 ? Elect", "3 ! Leading(3)"], rest].concat();
    assert_eq!(found("election", "{}", &elect(&[])), None);
    let worse = elect(&["2 ! Leading(2)"]);
    assert_eq!(found("election", "{}", &worse), Some(("uniqueness", 4)));
    let both = ["1 ? Elect", "2 ! Leading(2)", "3 ! Leading(3)"];
    assert_eq!(found("election", "{}", &both), Some(("uniqueness", 4)));
    let succession = r#"{"claims":["succession"]}"#;
    assert_eq!(found("election", succession, &both), Some(("succession", 5)), "two in the end");
    assert_eq!(found("election", succession, &worse), Some(("succession", 4)));
    let takeover = [&both[..], &["2 ! Following(3)"]].concat();
    assert_eq!(found("election", succession, &takeover), None);
    assert_eq!(found("election", "{}", &takeover), Some(("uniqueness", 4)));
    let terms =
        ["1 ? Elect", "2 ! LeadingIn(2, term 1)", "3 ! LeadingIn(3, term 2)", "2 ! Leaderless"];
    assert_eq!(found("election", "{}", &terms), None);
    let same = ["1 ? Elect", "2 ! LeadingIn(2, term 1)", "2 crash", "3 ! LeadingIn(3, term 1)"];
    assert_eq!(found("election", "{}", &same), Some(("uniqueness", 5)));
    let second = ["1 ? Elect", "2 ! Leading(2)"];
    assert_eq!(found("election", r#"{"claims":["best"]}"#, &second), Some(("best", 4)));
    let wrong = elect(&["1 ! Following(2)"]);
    assert_eq!(found("election", "{}", &wrong), Some(("agreement", 5)));
    assert_eq!(found("election", "{}", &["1 ? Elect"]), Some(("termination", 3)));
    let told = r#"{"everyone_told":true}"#;
    assert_eq!(found("election", told, &elect(&[])), Some(("termination", 4)));
    assert_eq!(found("election", told, &elect(&["1 ! Following(3)", "2 crash"])), None);
    let back = elect(&["3 crash", "3 recover", "2 ! Leading(2)", "1 ! Following(2)"]);
    assert_eq!(found("election", "{}", &back), None);
}

#[test]
fn detectors_are_judged() {
    let missed = ["3 crash", "1 ! Suspect(3)"];
    assert_eq!(found("detector", "{}", &missed), Some(("completeness", 4)));
    let all = ["3 crash", "1 ! Suspect(3)", "2 ! Suspect(3)"];
    assert_eq!(found("detector", "{}", &all), None);
    let accurate = r#"{"claims":["eventual_accuracy"]}"#;
    assert_eq!(found("detector", "{}", &["1 ! Suspect(2)"]), None);
    assert_eq!(found("detector", accurate, &["1 ! Suspect(2)"]), Some(("eventual_accuracy", 3)));
    assert_eq!(found("detector", accurate, &["1 ! Suspect(2)", "1 ! Trust(2)"]), None);
}

/// What each of the nodes delivers, in this order.
fn deliveries(sent: &[&'static str], by_node: [&[&str]; 3]) -> Vec<String> {
    let mut lines: Vec<String> = sent.iter().map(|&line| line.to_owned()).collect();
    for (ids, node) in by_node.iter().zip(1..) {
        lines.extend(ids.iter().map(|id| format!("{node} ! deliver {id}")));
    }
    lines
}

fn group(spec: &str, happened: &[String]) -> Option<(&'static str, usize)> {
    found("group", spec, &happened.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn deliveries_are_judged() {
    let sent = ["1 ? multicast 1 fifo", "2 ? multicast 1 fifo", "1 ? multicast 2 fifo"];
    let ends = |by_node| deliveries(&sent, by_node);
    let [abc, acb, bac] = [["1:1", "2:1", "1:2"], ["1:1", "1:2", "2:1"], ["2:1", "1:1", "1:2"]];
    let wild = ["1:2", "1:1", "2:1"];
    assert_eq!(group("{}", &ends([&abc, &acb, &bac])), None);
    assert_eq!(group("{}", &ends([&abc, &wild, &bac])), Some(("fifo_order", 9)));
    assert_eq!(group(r#"{"claims":[]}"#, &ends([&abc, &wild, &bac])), None);
    let total = r#"{"claims":["total_order"]}"#;
    assert_eq!(group(total, &ends([&abc, &acb, &bac])), Some(("total_order", 9)));
    assert_eq!(group(total, &ends([&abc, &abc[..2], &abc[..1]])), None);
    let both = r#"{"claims":["total_order","fifo_order"]}"#;
    assert_eq!(group(both, &ends([&wild, &wild, &wild])), Some(("fifo_order", 6)));
    assert_eq!(group(total, &ends([&wild, &wild, &wild])), None);
    assert_eq!(group("{}", &ends([&abc, &abc[..2], &abc])), Some(("atomicity", 13)));
    assert_eq!(group("{}", &ends([&[], &[], &[]])), Some(("liveness", 5)));
    assert_eq!(group("{}", &ends([&["1:1", "1:1"], &[], &[]])), Some(("integrity", 6)));
    let unsent = ends([&["3:1"], &[], &[]]);
    assert_eq!(group("{}", &unsent), Some(("integrity", 5)));
    assert_eq!(group(r#"{"claims":[]}"#, &unsent), Some(("integrity", 5)), "always");
    let two = r#"{"members":[1,2]}"#;
    assert_eq!(group(two, &ends([&abc, &abc, &[]])), None);
    assert_eq!(group(two, &ends([&abc, &abc, &["1:1"]])), Some(("integrity", 11)));
}

#[test]
fn causes_come_first() {
    let causal = |last: [&'static str; 2]| {
        let first = ["1 ? multicast 1 causal", "1 ! deliver 1:1", "2 ! deliver 1:1"];
        let answer = ["2 ? multicast 1 causal", "2 ! deliver 2:1", "1 ! deliver 2:1"];
        [&first[..], &answer, &last].concat()
    };
    let good = causal(["3 ! deliver 1:1", "3 ! deliver 2:1"]);
    let bad = causal(["3 ! deliver 2:1", "3 ! deliver 1:1"]);
    for spec in ["{}", r#"{"claims":["causal_order"]}"#] {
        assert_eq!(found("group", spec, &good), None);
        assert_eq!(found("group", spec, &bad), Some(("causal_order", 8)));
    }
}

#[test]
fn views_are_judged_where_there_are_any() {
    let install = |view, members| move |node: u32| format!("{node} ! install {view} {members} 0/0");
    let after = |first: &[&str], last: &[String]| {
        let first = first.iter().map(|&line| line.to_owned());
        first.chain(last.iter().cloned()).collect::<Vec<_>>()
    };
    let both = [1, 2].map(install(2, "1,2"));
    let sent = ["1 ? multicast 1 total", "3 crash"];
    let all = ["1 ! deliver 1:1", "2 ! deliver 1:1"];
    assert_eq!(group("{}", &after(&[&sent[..], &all].concat(), &both)), None);
    let one = after(&[&sent[..], &all[..1]].concat(), &both);
    assert_eq!(group("{}", &one), Some(("atomicity", 6)));
    let stranger = after(&sent[1..], &[install(2, "1,2")(3)]);
    assert_eq!(group("{}", &stranger), Some(("view_synchrony", 3)));
    let uniform = ["1 ? multicast 1 total uniform", "3 ! deliver 1:1", "3 crash"];
    assert_eq!(group("{}", &after(&uniform, &both)), Some(("uniformity", 5)));
    let late = after(&[], &[both[0].clone(), "2 ? multicast 1 total".into(), both[1].clone()]);
    assert_eq!(group(r#"{"claims":["liveness"]}"#, &late), Some(("liveness", 5)));
}

#[test]
fn a_finding_shows_what_it_speaks_of() {
    let happened = [
        "1 ? multicast 1 total",
        "2 ? multicast 1 total",
        "3 ? multicast 1 total",
        "1 ! deliver 3:1",
        "1 ! deliver 1:1",
        "2 ! deliver 3:1",
        "1 ! deliver 2:1",
        "3 ! deliver 3:1",
        "3 ! deliver 2:1",
        "2 ! deliver 1:1",
    ];
    let finding = judge(&foreign("group", 3, "{}", &happened)).unwrap().findings.remove(0);
    assert_eq!(finding.text, "node 3 delivers 2:1 before 1:1, others after it");
    let shown = |it: &quorate_lab::verify::Witness| format!("{} {} {}", it.line, it.node, it.text);
    let evidence: Vec<_> = finding.evidence.iter().map(shown).collect();
    let expected = [
        "2 1 multicast 1 total",
        "3 2 multicast 1 total",
        "6 1 deliver 1:1",
        "8 1 deliver 2:1",
        "10 3 deliver 2:1",
    ];
    assert_eq!(evidence, expected);
    let many = ["1 ? Acquire", "1 ! Granted(None)", "1 ? Release"].repeat(10);
    let again = [&many[..], &["1 ? Acquire"]].concat();
    let finding = judge(&foreign("mutex", 3, "{}", &again)).unwrap().findings.remove(0);
    assert_eq!((finding.evidence.len(), finding.left_off), (20, 11));
}

/// What our own engines write is judged as they judged it.
#[test]
fn the_traces_of_all_our_algorithms_are_judged_as_by_the_simulator() {
    let mut broken = Vec::new();
    for meta in catalogue() {
        for loss in [0.0, 0.2] {
            // Seeds are one, three or five.
            let nodes = if meta.name == "service/founding" { 3 } else { 4 };
            let mut spec = Spec::new(meta.name, nodes);
            spec.loss = loss;
            // What lost something may never come to rest.
            spec.until = (loss > 0.0).then_some(Time(300_000_000));
            let (simulated, trace) = recorded(&spec);
            let verified = verify(&trace).unwrap();
            let name = meta.name;
            assert_eq!(verified.holds(), simulated.holds, "{name} {loss}");
            if loss == 0.0 && !simulated.holds {
                broken.push(name);
            }
            let words = |verdicts: &[(&'static str, Verdict)]| {
                verdicts.iter().map(|(name, verdict)| (*name, verdict.word())).collect::<Vec<_>>()
            };
            assert_eq!(words(&verified.verdicts), words(&simulated.report.verdicts), "{name}");
        }
    }
    // It is kept with its deadlock.
    assert_eq!(broken, ["mutex/maekawa-basic"]);
}

#[test]
fn the_example_of_the_guide_is_judged() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = std::fs::read_to_string(folder.join("tests/traces/own-system.jsonl")).unwrap();
    let guide = folder.join("../../docs/guide/trace-format.md");
    assert!(std::fs::read_to_string(guide).unwrap().contains(&example), "the guide shows it");
    let verified = judge(&example).unwrap();
    assert_eq!((verified.family, verified.records, verified.events), ("group", 6, 7));
    assert!(verified.said("ok").eq(["integrity", "atomicity", "total_order"]));
    assert_eq!(verified.findings, []);
    let crossed = example.replace(
        r#"{"emit":"deliver 2:1"},{"emit":"deliver 1:1"}"#,
        r#"{"emit":"deliver 1:1"},{"emit":"deliver 2:1"}"#,
    );
    let finding = judge(&crossed).unwrap().findings.remove(0);
    assert_eq!((finding.property, finding.line), ("total_order", 5));
}

#[test]
fn what_cannot_be_judged_is_one_sentence_with_its_line() {
    let fault = |text: &str| judge(text).unwrap_err().to_string();
    let one = |family, spec, happened: &[&str]| fault(&foreign(family, 2, spec, happened));
    let entries = ["1 ? Acquire", "1 ! Granted(None)"];
    let whole = foreign("mutex", 2, "{}", &entries);
    let cut = whole.trim_end().rsplit_once('\n').unwrap().0;
    assert_eq!(fault(cut), "line 4: the trace is cut off: it has no end line");
    let mut lines: Vec<&str> = whole.lines().collect();
    lines.swap(1, 2);
    let backwards = "line 3: it is of time 1000, and the line before of time 2000";
    assert_eq!(fault(&lines.join("\n")), backwards);
    let no_command = "line 2: \"Lock\" is no command of family mutex";
    assert_eq!(one("mutex", "{}", &["1 ? Lock"]), no_command);
    let no_event = "line 3: \"deliver 1:1\" is no event of family election";
    assert_eq!(one("election", "{}", &["1 ? Elect", "1 ! deliver 1:1"]), no_event);
    let nobody = "line 2: deliver 3:1 names node 3, and there are only 1 to 2";
    assert_eq!(one("group", "{}", &["1 ! deliver 3:1"]), nobody);
    let nobody = "line 2: Suspect(4294967295) names node 4294967295, and there are only 1 to 2";
    assert_eq!(one("detector", "{}", &["1 ! Suspect(4294967295)"]), nobody);
    let nobody = "line 1: the spec names node 3, and there are only 1 to 2";
    assert_eq!(one("mutex", r#"{"holder":3}"#, &[]), nobody);
    assert_eq!(one("group", r#"{"members":[1,3]}"#, &[]), nobody);
    let claim = "line 1: \"speed\" is no property of family mutex; they are safety, \
                 wellformed, liveness, fairness, ordering, fencing";
    assert_eq!(one("mutex", r#"{"claims":["speed"]}"#, &[]), claim);
    let field = "line 1: the spec of a trace of family group cannot be read: unknown field \
                 `holder`, expected `members` or `claims`";
    assert_eq!(one("group", r#"{"holder":1}"#, &[]), field);
    assert!(one("chat", "{}", &[]).starts_with("line 1: there is no family chat; it is one of"));
    let spec = "line 1: the spec in the header cannot be read: ";
    assert!(one("mutex/lamport", "{}", &[]).starts_with(spec));
    let nodes = |family, count| fault(&foreign(family, count, "{}", &[]));
    assert!(nodes("group", 1_001).starts_with("line 1: 1001 is not a number of nodes from 1 to"));
    assert!(nodes("mutex", 0).starts_with("line 1: 0 is not a number of nodes from 1 to"));
    let long = format!("1 ? {}", "x".repeat(10_000));
    assert!(one("mutex", "{}", &[&long]).len() < 120);
}

/// The oracle remembers what was before a message in causal order: not without an end.
#[test]
fn too_much_to_remember_is_refused() {
    let mut happened = Vec::new();
    for number in 1..=8_000 {
        happened.push(format!("1 ? multicast {number} causal"));
        happened.push(format!("1 ! deliver 1:{number}"));
    }
    let happened: Vec<&str> = happened.iter().map(String::as_str).collect();
    let bad = judge(&foreign("group", 1, "{}", &happened)).unwrap_err();
    assert_eq!(bad.fault, "there are too many messages in causal order to be judged");
}

/// Every violation is told, the first one first, and of the rest how many there are.
#[test]
fn all_violations_are_told() {
    let entries = ["1 ? Acquire", "1 ! Granted(None)", "2 ? Acquire", "2 ! Granted(None)"];
    let happened = [&entries[..], &["3 ? Acquire"]].concat();
    let verified = judge(&foreign("mutex", 3, "{}", &happened)).unwrap();
    let found: Vec<_> = verified.findings.iter().map(|it| (it.property, it.line)).collect();
    assert_eq!(found, [("safety", 5), ("liveness", 7)]);
    let twice = ["1 ? multicast 1 fifo"].into_iter().chain(["1 ! deliver 1:1"; 31]);
    let verified = judge(&foreign("group", 1, "{}", &twice.collect::<Vec<_>>())).unwrap();
    assert_eq!((verified.findings.len(), verified.left_off), (20, 10));
}

/// What nothing puts to the test is not said to hold.
#[test]
fn what_is_not_exercised_is_not_judged() {
    let said = |family, spec, happened: &[&str], word| {
        let verified = judge(&foreign(family, 3, spec, happened)).unwrap();
        verified.said(word).collect::<Vec<_>>()
    };
    let fifo = ["1 ? multicast 1 fifo", "1 ! deliver 1:1", "2 ! deliver 1:1", "3 ! deliver 1:1"];
    let held = ["integrity", "atomicity", "fifo_order", "liveness"];
    assert_eq!(said("group", "{}", &fifo, "ok"), held);
    assert_eq!(said("group", "{}", &fifo, "not exercised"), ["causal_order", "total_order"]);
    let asked = ["1 ? Elect", "1 ! Leading(1)"];
    assert_eq!(said("election", "{}", &asked, "not exercised"), ["agreement"]);
    assert_eq!(said("mutex", r#"{"claims":["fencing"]}"#, &[], "not exercised"), ["fencing"]);
    assert_eq!(said("detector", "{}", &[], "not exercised"), ["completeness"]);
}

/// Users who tell each other of their wishes find out who keeps the order in which things happened:
/// whoever asks everybody does, if links keep the order; a coordinator or a token does not.
#[test]
fn only_who_asks_everybody_grants_in_the_order_of_causes() {
    let words = |algorithm: &str, load: &str| {
        let mut words = std::collections::BTreeSet::new();
        for seed in 1..=20 {
            let mut spec = Spec::new(algorithm, 4);
            (spec.seed, spec.latency) = (seed, quorate_lab::read("--latency", "exp:1").unwrap());
            spec.channels = Some(quorate_lab::ChannelSpec::Fifo);
            spec.read("users-talk", "on").unwrap();
            spec.read("load", load).unwrap();
            let report = simulate(&spec, Watch::default()).unwrap().report;
            let word = report.verdicts.iter().find(|(name, _)| *name == "ordering").unwrap();
            words.insert(word.1.word());
        }
        words.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(words("mutex/lamport", "heavy"), ["ok"]);
    assert_eq!(words("mutex/ricart-agrawala", "heavy"), ["ok"]);
    assert!(words("mutex/central", "heavy").contains(&"violated"));
    // Where everybody always wishes, a token that goes round is in order.
    assert!(words("mutex/token-ring", "5").contains(&"violated"));
}
