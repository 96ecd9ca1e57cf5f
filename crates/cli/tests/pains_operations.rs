//! What users of other systems suffer from, and whoever runs a cluster meets: a test each, under its
//! number in `docs/guide/pains.md`. Real processes on loopback.

#[path = "operations/stage.rs"]
#[allow(dead_code, reason = "what the other tests of operations need is in it as well")]
mod stage;

use std::collections::BTreeSet;

use serde_json::Value;

use stage::{
    Dev, Holder, Running, Site, ask, fence, get, life, lock, metric, quorate, seated, signal,
    status, text, until, until_status,
};

#[test]
fn pain_06_an_election_of_the_coordinator_ends_nobodys_work() {
    let root = tempfile::tempdir().expect("a directory");
    // An election fits into it also where a dozen clusters share two cores.
    let dev = Dev::with_lease(root.path(), "3s", "");
    let leader = dev.leader();
    let other = (leader + 1) % 3;
    let holder = Holder::start(root.path(), &dev.socket(other), "job");
    signal(dev.pid(leader), "KILL");
    until_status(&dev.socket(other), "a view of two", |status| seated(status) == 2);
    assert_eq!(holder.finish(), Some(0), "its command ended by itself, under its lock");
}

#[test]
fn pain_07_a_leader_that_stood_still_excludes_nobody_when_it_goes_on() {
    let root = tempfile::tempdir().expect("a directory");
    // An election fits into it also where a dozen clusters share two cores.
    let dev = Dev::with_lease(root.path(), "3s", "");
    let leader = dev.leader();
    let others: Vec<usize> = (0..3).filter(|place| *place != leader).collect();
    let names = others.iter().map(|place| ["a", "b", "c"][*place]);
    let socket = dev.socket(others[0]);
    let before = status(&socket).expect("it answers");
    let lives: Vec<_> = names.map(|name| (name, life(&before, name))).collect();
    let holder = Holder::start(root.path(), &socket, "job");
    signal(dev.pid(leader), "STOP");
    until_status(&socket, "a view without it", |status| seated(status) == 2);
    signal(dev.pid(leader), "CONT");
    let after = until_status(&socket, "all again", |status| seated(status) == 3);
    for (name, before) in lives {
        assert_eq!(life(&after, name), before, "{name} was never out");
    }
    assert_eq!(holder.finish(), Some(0));
}

#[test]
fn pain_10_who_does_not_reach_whom_is_shown_and_said() {
    let root = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(root.path(), "");
    let shown = text(&quorate(&format!("status --connect {}", dev.socket(0))).stdout);
    let matrix: Vec<&str> = shown
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("reaches"))
        .take(4)
        .collect();
    let cells: Vec<Vec<&str>> = matrix.iter().map(|it| it.split_whitespace().collect()).collect();
    // By seniority: who came first is chance.
    let [heading, rows @ ..] = &cells[..] else { panic!("{shown}") };
    let names: BTreeSet<&str> = heading[1..].iter().copied().collect();
    assert_eq!(names, ["a", "b", "c"].into(), "{shown}");
    assert_eq!(rows.len(), 3, "{shown}");
    for row in rows {
        let cell = |name: &&str| if *name == row[0] { "·" } else { "yes" };
        let reached: Vec<&str> = heading[1..].iter().map(cell).collect();
        assert_eq!(row[1..], reached, "{shown}");
    }
    // Stopped, c answers nobody: the others say so in the register before it is left out.
    signal(dev.pid(2), "STOP");
    let said = until("a word about c", || {
        let text = text(&quorate(&format!("events --why --connect {}", dev.socket(0))).stdout);
        text.lines().find(|line| line.contains("is doomed")).map(str::to_owned)
    });
    signal(dev.pid(2), "CONT");
    assert!(said.contains("c (life") && said.contains("did not reach it"), "{said}");
}

#[test]
fn pain_11_seeds_that_start_at_once_found_one_cluster_or_none() {
    let root = tempfile::tempdir().expect("a directory");
    let site = Site::new(root.path());
    let mut agents: Vec<Running> = ["a", "b", "c"].map(|name| site.agent(name, "")).into();
    // Without a word nobody founds anything, however long they see each other.
    for name in ["a", "b", "c"] {
        until_status(&site.socket(name), "links", |status| {
            status["links"]
                .as_array()
                .is_some_and(|links| links.iter().all(|it| it["state"] == "up"))
        });
    }
    // They go on asking each other, and nothing comes of it.
    let asked =
        |name: &str| metric(&site.socket(name), "quorate_frames_received_total{kind=\"founding\"}");
    until("a dozen questions", || (asked("a") >= 12.0 && asked("c") >= 12.0).then_some(()));
    for name in ["a", "b", "c"] {
        let status = status(&site.socket(name)).expect("it answers");
        assert_eq!(
            (status["standing"].as_str(), &status["cluster"]),
            (Some("founding"), &Value::Null)
        );
    }
    agents.remove(0);
    agents.push(site.agent("a", "--found"));
    let ids = ["a", "b", "c"].map(|name| site.ready(name)["cluster"].clone());
    assert!(ids[0].is_string() && ids[0] == ids[1] && ids[1] == ids[2], "{ids:?}");
}

#[test]
fn pain_12_a_minority_grants_nothing_and_comes_back_by_itself() {
    let root = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(root.path(), "");
    let before = fence(&dev.socket(0), "job");
    for place in [1, 2] {
        signal(dev.pid(place), "STOP");
    }
    until_status(&dev.socket(0), "no majority", |status| {
        matches!(status["standing"].as_str(), Some("not primary" | "majority lost"))
    });
    let refused = lock(&dev.socket(0), "--timeout 200ms job", "true").output().expect("it runs");
    let code = refused.status.code();
    assert!(matches!(code, Some(69 | 75)), "{code:?}: {}", text(&refused.stderr));
    for place in [1, 2] {
        signal(dev.pid(place), "CONT");
    }
    until_status(&dev.socket(0), "all again", |status| {
        seated(status) == 3 && status["standing"] == "member"
    });
    assert!(before < fence(&dev.socket(0), "job"));
}

#[test]
fn pain_13_all_are_killed_and_come_back_without_a_hand() {
    let root = tempfile::tempdir().expect("a directory");
    let site = Site::new(root.path());
    let agents = site.all();
    site.ready("c");
    let before = fence(&site.socket("b"), "job");
    // The drop of each is a KILL.
    drop(agents);
    let agents = ["a", "b", "c"].map(|name| site.agent(name, ""));
    site.ready("a");
    assert!(before < fence(&site.socket("c"), "job"));
    drop(agents);
}

#[test]
fn pain_14_nine_that_start_at_once_are_seated_in_one_view() {
    let root = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(root.path(), "--members 9");
    let first = until_status(&dev.socket(0), "all nine", |status| seated(status) == 9);
    for place in 0..9 {
        until_status(&dev.socket(place), "the same view", |status| {
            status["epoch"] == first["epoch"]
        });
    }
    let fences: Vec<String> = (0..9).map(|place| fence(&dev.socket(place), "job")).collect();
    assert!(fences.is_sorted() && fences.windows(2).all(|two| two[0] != two[1]), "{fences:?}");
}

#[test]
fn pain_15_who_is_excluded_for_its_silence_is_told_which_time_ran_out() {
    let root = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(root.path(), "");
    signal(dev.pid(2), "STOP");
    until_status(&dev.socket(0), "a view of two", |status| seated(status) == 2);
    signal(dev.pid(2), "CONT");
    let said = text(&quorate(&format!("events --why --connect {}", dev.socket(1))).stdout);
    assert!(said.contains("did not renew for longer than its lease after beat"), "{said}");
    assert_eq!(metric(&dev.socket(0), "quorate_lease_seconds"), 0.9);
}

#[test]
fn pain_19_a_lock_that_rests_with_its_user_costs_the_others_nothing() {
    let root = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(root.path(), "");
    let user = dev.socket(1);
    let said = |method: &str, path: &str, body: &str| {
        let (code, said) = ask(&user, method, path, body).expect("it answers");
        assert!((200..300).contains(&code), "{method} {path}: {code} {said}");
        serde_json::from_str::<Value>(&said).unwrap_or_default()
    };
    let session = said("POST", "/v1/sessions", r#"{"ttl_ms":60000}"#)["session"].clone();
    let locks = format!("/v1/sessions/{session}/locks");
    let round = || {
        said("POST", &locks, r#"{"name":"job","wait_ms":60000}"#);
        said("DELETE", &format!("{locks}/job"), "");
    };
    round();
    let frames =
        || (0..3).map(|it| metric(&dev.socket(it), "quorate_frames_received_total{kind=\"lock\"}"));
    let before: f64 = frames().sum();
    let rounds = 200;
    for _ in 0..rounds {
        round();
    }
    let cost = frames().sum::<f64>() - before;
    // Now and then it is said that a name is not used any more; asking all would be 800.
    assert!(cost < f64::from(rounds), "{cost} frames for {rounds} acquisitions");
    assert!(metric(&user, "quorate_locks_at_once_total") >= f64::from(rounds) / 2.0);
}

#[test]
fn pain_20_the_chain_of_safety_is_tried_on_the_live_cluster() {
    let root = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(root.path(), "");
    let done = quorate(&format!("doctor --connect {}", dev.socket(2)));
    let said = text(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("killed holder") && said.contains("0 wrong"), "{said}");
    let ready = quorate(&format!("doctor --ready --connect {}", dev.socket(2)));
    assert_eq!((ready.status.code(), text(&ready.stdout).trim()), (Some(0), "member"));
}

#[test]
fn pain_21_a_doubt_about_a_member_excludes_nobody() {
    let root = tempfile::tempdir().expect("a directory");
    let dev = Dev::with_lease(root.path(), "6s", "");
    let before = status(&dev.socket(0)).expect("it answers");
    // Silent for longer than connections may be (a quarter of the lease), and for less than its lease.
    signal(dev.pid(2), "STOP");
    until_status(&dev.socket(0), "a doubt", |status| {
        let links = status["links"].as_array().expect("a list");
        links.iter().any(|link| link["name"] == "c" && link["state"] != "up")
    });
    signal(dev.pid(2), "CONT");
    // More than a lease later: it is renewed every quarter of one.
    let renewed = || metric(&dev.socket(2), "quorate_lease_slack_seconds_count");
    let begun = renewed();
    until("six renewals", || (renewed() >= begun + 6.0).then_some(()));
    let after = until_status(&dev.socket(0), "all", |status| seated(status) == 3);
    assert_eq!(life(&after, "c"), life(&before, "c"));
    assert_eq!(after["epoch"], before["epoch"]);
    assert_eq!(get(&dev.socket(2), "/readyz").expect("it answers").0, 200);
}
