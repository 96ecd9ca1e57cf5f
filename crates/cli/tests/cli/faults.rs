//! What faults do, what masks them, and runs that are cut off.

use crate::command::{code, folder, json, quorate};

/// What the lectures warn of: nothing comes after the last unit that could show its loss.
#[test]
fn a_lost_tail_is_shown_by_the_monitor() {
    let folder = folder("tail");
    let sim = |tail: &[&str]| {
        let run = "sim group/nack-multicast --nodes 2 --senders 1 --messages 7 --gap 1.5 \
                   --partition 1|2@10.4..10.6";
        let run: Vec<_> = run.split_whitespace().collect();
        let output = quorate(&folder, &[&run, tail].concat());
        (code(&output), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (exit, said) = sim(&["--heartbeat", "off", "--stop", "0"]);
    assert_eq!(exit, 1);
    assert!(
        said.contains("atomicity: deadlock: node 1 has delivered 1:7, node 2 never will"),
        "{said}"
    );
    for tail in [&["--heartbeat", "off", "--stop", "1"], &["--heartbeat", "on", "--stop", "0"]] {
        assert_eq!(sim(tail).0, 0, "{tail:?}");
    }
}

#[test]
fn a_loss_table_is_about_its_links_only() {
    let folder = folder("loss_table");
    std::fs::write(folder.join("losses"), "2 1 1 # all that 2 says to 1\n").unwrap();
    let sim = ["sim", "mutex/ricart-agrawala", "--nodes", "3", "--requests", "1", "--json"];
    assert_eq!(json(&folder, &sim)["lost"], 0);
    let lossy = json(&folder, &[&sim[..], &["--loss-table", "losses"]].concat());
    // Its request, and its reply if it is asked.
    assert_eq!((&lossy["lost"], &lossy["liveness"]), (&2.into(), &"violated".into()));
}

#[test]
fn in_views_crashes_are_survived_and_tokens_grow() {
    let folder = folder("views");
    let sim = ["sim", "mutex/raymond", "--crash", "1@5", "--json"];
    let bare = json(&folder, &sim);
    assert_eq!((&bare["liveness"], &bare["fencing"]), (&"violated".into(), &"not claimed".into()));
    let report = json(&folder, &[&sim[..], &["--over", "views"]].concat());
    for property in ["safety", "liveness", "fencing"] {
        assert_eq!(report[property], "ok", "{property}");
    }
    assert_eq!(report["over"], "views");
    let check = ["check", "mutex/central", "--over", "views", "--crashes", "1", "--json"];
    let report = json(&folder, &check);
    assert_eq!((&report["result"], &report["states"]), (&"holds".into(), &27464.into()));
    let refused = quorate(&folder, &["sim", "group/sequencer", "--over", "views"]);
    let text = "--over: algorithms of this family do not run in views; mutex and election do";
    assert!(String::from_utf8_lossy(&refused.stderr).contains(text));
    assert_eq!(code(&refused), 2);
}

#[test]
fn faults_are_masked_by_what_is_there_for_it() {
    let folder = folder("faults");
    let report = json(&folder, &["compare", "faults", "--json"]);
    assert_eq!(report["holds"], true);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 16);
    let central = rows.iter().find(|row| row["algorithm"] == "mutex/central").unwrap();
    for column in ["bare_loss", "bare_node_1", "bare_holder"] {
        assert_eq!(central[column], "waits for ever", "{column}");
    }
    for column in ["reliable_rough", "views_holder", "views_waiter", "views_node_1"] {
        assert_eq!(central[column], "ok", "{column}");
    }
    let refused = quorate(&folder, &["compare", "mutex", "--markdown"]);
    assert_eq!(code(&refused), 2);
}

/// What is missing when a run is cut off might still have come.
#[test]
fn a_run_that_is_cut_off_is_unfinished_and_not_violated() {
    let folder = folder("unfinished");
    let sim = ["sim", "mutex/ricart-agrawala", "--until", "5", "--trace", "cut"];
    let output = quorate(&folder, &sim);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(code(&output), 0, "{text}");
    assert!(text.ends_with("the run was cut off at 5, unfinished: liveness\n"), "{text}");
    assert!(!text.contains("never"), "{text}");
    let output = quorate(&folder, &["verify", "cut"]);
    assert_eq!(code(&output), 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("; unfinished: liveness"));
    let sim = ["sim", "detector/heartbeat", "--crash", "3@12", "--until", "45", "--json"];
    let report = json(&folder, &sim);
    assert_eq!(
        (&report["completeness"], &report["unfinished"][0]),
        (&"unfinished".into(), &"completeness".into())
    );
    // Lost for good is another matter: nothing more happens.
    let lossy = ["sim", "mutex/ricart-agrawala", "--loss", "0.5", "--json"];
    let report = json(&folder, &lossy);
    assert_eq!(report["liveness"], "violated");
    let text = report["violations"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("deadlock: the wish"), "{text}");
}

/// Everything at once: what is lost, doubled and overtaken is masked by the links, two deaths and a
/// return by the views. A doubt about the first life of node 2 once reached its second one, and a
/// few runs in a hundred had two inside.
#[test]
fn every_live_mutex_holds_in_views_over_bad_links() {
    let folder = folder("bad_links");
    let faults = "--nodes 7 --over views,reliable --loss 0.1 --duplicate 0.1 --reorder 0.1 \
                  --crash 2@20 --crash 5@40 --recover 2@80 --runs 200";
    let list = json(&folder, &["algorithms", "--json"]);
    let mutexes = list.as_array().unwrap().iter().filter(|it| it["family"] == "mutex");
    let names = mutexes.map(|it| it["name"].as_str().unwrap());
    // Its votes deadlock, as published.
    let names: Vec<&str> = names.filter(|name| *name != "mutex/maekawa-basic").collect();
    assert!(names.len() >= 14, "{names:?}");
    for name in names {
        let run: Vec<&str> = ["sim", name].into_iter().chain(faults.split_whitespace()).collect();
        let output = quorate(&folder, &run);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(code(&output) == 0 && said.contains("200 of 200 runs held"), "{name}: {said}");
    }
}
