//! What whoever runs a cluster does with it: real processes on loopback.

mod deploy;
mod disaster;
mod documents;
#[allow(dead_code, reason = "what the tests of pains need is in it as well")]
mod stage;

use std::io::{BufRead as _, BufReader};

use serde_json::Value;

use stage::{
    Dev, Holder, Site, fence, get, is_gone, lock, metric, quorate, seated, signal, start, text,
    until, until_status,
};

#[test]
fn metrics_and_probes_say_how_a_member_is() {
    let root = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(root.path(), "");
    let socket = dev.socket(0);
    assert_eq!(get(&socket, "/livez").expect("it answers").0, 200);
    assert_eq!(get(&socket, "/readyz").expect("it answers"), (200, "member\n".to_owned()));
    assert_eq!(metric(&socket, "quorate_ready"), 1.0);
    assert_eq!(metric(&socket, "quorate_standing{standing=\"member\"}"), 1.0);
    assert_eq!(metric(&socket, "quorate_members{state=\"seated\"}"), 3.0);
    assert_eq!(metric(&socket, "quorate_authority_voters"), 3.0);
    assert!(metric(&socket, "quorate_lease_left_seconds") <= 0.9);
    assert!(metric(&socket, "quorate_disk_sync_seconds_count") > 0.0);
    assert!(metric(&socket, "quorate_frames_received_total{kind=\"seat\"}") > 0.0);
    assert_eq!(metric(&socket, "quorate_link_up{peer=\"b\"}"), 1.0);
    until("renewals", || {
        (metric(&socket, "quorate_lease_slack_seconds_count") > 2.0).then_some(())
    });

    let holder = Holder::start(root.path(), &socket, "job");
    assert_eq!(metric(&socket, "quorate_locks_held"), 1.0);
    assert_eq!(metric(&socket, "quorate_sessions_busy"), 1.0);
    let mut waiter = lock(&socket, "job", "true").spawn().expect("it runs");
    until("somebody who waits", || (metric(&socket, "quorate_locks_waiting") == 1.0).then_some(()));
    let before = metric(&socket, "quorate_lock_wait_seconds_count");
    assert_eq!(holder.finish(), Some(0));
    assert!(waiter.wait().expect("it ends").success());
    assert!(metric(&socket, "quorate_lock_wait_seconds_count") > before);

    // Two of three are gone: it may do nothing, and says so.
    signal(dev.pid(1), "KILL");
    signal(dev.pid(2), "KILL");
    until("unready", || (get(&socket, "/readyz").expect("it answers").0 == 503).then_some(()));
    assert_eq!(metric(&socket, "quorate_ready"), 0.0);
}

#[test]
fn a_drained_agent_waits_for_its_clients_and_leaves() {
    let root = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(root.path(), "");
    let (a, c) = (dev.socket(0), dev.socket(2));
    let holder = Holder::start(root.path(), &c, "job");
    let mut drain = start(&format!("drain --connect {c}"));
    until("draining", || {
        (get(&c, "/readyz").is_some_and(|it| it == (503, "draining\n".to_owned()))).then_some(())
    });
    let refused = lock(&c, "other", "true").output().expect("it runs");
    assert_eq!(refused.status.code(), Some(69), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("ask another one"), "{}", text(&refused.stderr));
    assert!(drain.0.try_wait().expect("it is there").is_none(), "it waits for who holds something");
    assert_eq!(holder.finish(), Some(0), "its command ended by itself");
    assert!(drain.0.wait().expect("it ends").success());
    until_status(&a, "a view of two", |status| seated(status) == 2);
    let why = text(&quorate(&format!("events --why --connect {a}")).stdout);
    assert!(why.contains("c (life") && why.contains("has left, by its own word"), "{why}");
    fence(&a, "job");
}

#[test]
fn what_outlasts_a_drain_is_ended_before_its_lock_is_granted_again() {
    let root = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(root.path(), "");
    let (a, c) = (dev.socket(0), dev.socket(2));
    let holder = Holder::start(root.path(), &c, "job");
    let next = lock(&a, "--timeout 60s job", &is_gone(&holder.pid)).spawn().expect("it runs");
    let drained = quorate(&format!("drain --timeout 300ms --connect {c}"));
    assert!(drained.status.success(), "{}", text(&drained.stderr));
    let next = next.wait_with_output().expect("it ends");
    assert_eq!(text(&next.stdout).trim(), "gone", "{}", text(&next.stderr));
}

#[test]
fn why_somebody_was_excluded_is_known_after_a_restart_of_all() {
    let root = tempfile::tempdir().expect("a directory");
    let mut dev = Dev::start(root.path(), "");
    signal(dev.pid(2), "KILL");
    until_status(&dev.socket(0), "a view of two", |status| seated(status) == 2);
    let why = |socket: &str| text(&quorate(&format!("events --why --connect {socket}")).stdout);
    let said = why(&dev.socket(0));
    assert!(said.contains("c (life") && said.contains("is dead"), "{said}");
    let line = said.lines().find(|line| line.contains("c (life")).expect("it is there").to_owned();
    signal(dev.process.0.id(), "TERM");
    assert!(dev.process.0.wait().expect("it ends").success());
    drop(dev);
    let dev = Dev::start(root.path(), "");
    assert!(why(&dev.socket(0)).contains(&line), "{line} in {}", why(&dev.socket(0)));
}

#[test]
fn a_watch_that_no_terminal_reads_is_lines_of_what_changed() {
    let root = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(root.path(), "");
    let mut watch = start(&format!("status --watch --connect {}", dev.socket(0)));
    let mut lines = BufReader::new(watch.0.stdout.take().expect("it is read")).lines();
    let mut next = || lines.next().expect("a line").expect("text");
    let first = next();
    assert!(first.starts_with("a: member, view ") && !first.contains('\u{1b}'), "{first}");
    signal(dev.pid(2), "KILL");
    until("c is missing", || (!next().contains("c seated")).then_some(()));
    let mut watch = start(&format!("locks --watch --json --connect {}", dev.socket(0)));
    let mut lines = BufReader::new(watch.0.stdout.take().expect("it is read")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "[]");
    let holder = Holder::start(root.path(), &dev.socket(1), "job");
    let held: Value =
        serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON");
    assert_eq!(held[0]["name"], "job");
    assert_eq!(holder.finish(), Some(0));
}

#[test]
fn the_doctor_finds_nothing_wrong_with_a_cluster_that_works_and_something_with_one_that_does_not() {
    let root = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(root.path(), "");
    let done = quorate(&format!("doctor --json --connect {}", dev.socket(1)));
    let findings: Vec<Value> = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(done.status.code(), Some(0), "{findings:#?}");
    for what in ["standing", "lock", "exclusion", "loss", "next holder", "fences", "killed holder"]
    {
        let well = |it: &&Value| it["what"] == what && it["verdict"] == "well";
        assert!(findings.iter().any(|it| well(&it)), "{what} in {findings:#?}");
    }
    let table = quorate(&format!("doctor --look --connect {}", dev.socket(1)));
    assert!(text(&table.stdout).contains("members are not told from strangers"));
    signal(dev.pid(0), "KILL");
    signal(dev.pid(2), "KILL");
    until_status(&dev.socket(1), "no majority", |status| status["standing"] != "member");
    let ill = quorate(&format!("doctor --look --connect {}", dev.socket(1)));
    assert_eq!(ill.status.code(), Some(1), "{}", text(&ill.stdout));
    assert!(text(&ill.stdout).contains("WRONG"), "{}", text(&ill.stdout));
}

#[test]
fn what_members_write_down_is_judged_and_drawn() {
    let root = tempfile::tempdir().expect("a directory");
    let site = Site::new(root.path());
    let dir = root.path().display();
    let trace = |name: &str| format!("--trace {dir}/{name}.trace");
    let agents = [
        site.agent("a", &format!("--found {}", trace("a"))),
        site.agent("b", &trace("b")),
        site.agent("c", &trace("c")),
    ];
    site.ready("a");
    for name in ["a", "b", "c"] {
        site.ready(name);
    }
    let mut clients = Vec::new();
    for place in 0..9 {
        let socket = site.socket(["a", "b", "c"][place % 3]);
        clients.push(lock(&socket, "job", "true").spawn().expect("it runs"));
    }
    fence(&site.socket("a"), "other");
    for client in &mut clients {
        assert!(client.wait().expect("it ends").success());
    }
    for mut agent in agents {
        signal(agent.0.id(), "TERM");
        assert!(agent.0.wait().expect("it ends").success());
    }
    let files = format!("{dir}/a.trace {dir}/b.trace {dir}/c.trace");
    let many = quorate(&format!("verify {dir}/a.trace"));
    assert_eq!(many.status.code(), Some(2));
    assert!(text(&many.stderr).contains("quorate import member"), "{}", text(&many.stderr));
    let unknown = quorate(&format!("import member {files} --lock nothing"));
    assert!(text(&unknown.stderr).contains("main/job, main/other"), "{}", text(&unknown.stderr));
    let merged = quorate(&format!("import member {files} --lock job --trace {dir}/job.jsonl"));
    assert!(merged.status.success(), "{}", text(&merged.stderr));
    let judged = quorate(&format!("verify {dir}/job.jsonl --json --svg {dir}/job.svg"));
    assert_eq!(judged.status.code(), Some(0), "{}", text(&judged.stdout));
    let judged: Value = serde_json::from_slice(&judged.stdout).expect("JSON");
    assert_eq!(judged["verdicts"]["safety"], "ok", "{judged:#?}");
    assert_eq!(judged["verdicts"]["fencing"], "ok", "{judged:#?}");
    let granted = std::fs::read_to_string(format!("{dir}/job.jsonl")).expect("a trace");
    assert_eq!(granted.matches("Fenced(").count(), 9, "{granted}");
    let picture = std::fs::read_to_string(format!("{dir}/job.svg")).expect("a picture");
    assert!(picture.contains("<svg"));
}
