//! Most of the seeds are lost, or all of them.

use std::fs;

use super::stage::{Site, fence, quorate, signal, text};

#[test]
fn a_seed_that_is_left_alone_goes_on_when_told_to_and_fences_grow() {
    let root = tempfile::tempdir().expect("a directory");
    let site = Site::new(root.path());
    let [a, b, c] = site.all();
    let before = site.ready("a");
    let old = fence(&site.socket("a"), "job");
    let recover =
        format!("recover --force --data {} --seeds {}", site.data("a").display(), site.seeds);
    let running = quorate(&recover);
    assert_eq!(running.status.code(), Some(2));
    assert!(text(&running.stderr).contains("end its agent first"), "{}", text(&running.stderr));
    drop(a);
    let alive = quorate(&recover);
    assert_eq!(alive.status.code(), Some(1), "{}", text(&alive.stdout));
    assert!(text(&alive.stderr).contains("may still live"), "{}", text(&alive.stderr));
    drop((b, c));
    for name in ["b", "c"] {
        fs::remove_dir_all(site.data(name)).expect("it is there");
    }
    let done = quorate(&recover);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let _agents = [site.agent("a", ""), site.agent("b", ""), site.agent("c", "")];
    let after = site.ready("c");
    assert_ne!(after["cluster"], before["cluster"]);
    assert!(after["epoch"].as_u64() > before["epoch"].as_u64());
    let new = fence(&site.socket("b"), "job");
    assert!(old < new, "{old} {new}");
}

#[test]
fn a_backup_is_restored_on_an_empty_disk() {
    let root = tempfile::tempdir().expect("a directory");
    let site = Site::new(root.path());
    let agents = site.all();
    let before = site.ready("b");
    let old = fence(&site.socket("b"), "job");
    let file = root.path().join("backup.json");
    let backup = quorate(&format!("backup {} --connect {}", file.display(), site.socket("b")));
    assert!(backup.status.success(), "{}", text(&backup.stderr));
    for agent in &agents {
        signal(agent.0.id(), "KILL");
    }
    drop(agents);
    let restore = |data: &str| {
        quorate(&format!(
            "restore {} --name b --force --data {data} --seeds {}",
            file.display(),
            site.seeds
        ))
    };
    let full = restore(&site.data("b").display().to_string());
    assert!(text(&full.stderr).contains("take an empty one"), "{}", text(&full.stderr));
    for name in ["a", "b", "c"] {
        fs::remove_dir_all(site.data(name)).expect("it is there");
    }
    let done = restore(&site.data("b").display().to_string());
    assert!(done.status.success(), "{}", text(&done.stderr));
    let _agents = [site.agent("a", ""), site.agent("b", ""), site.agent("c", "")];
    let after = site.ready("a");
    assert_ne!(after["cluster"], before["cluster"]);
    assert!(old < fence(&site.socket("a"), "job"));
    let nonsense = root.path().join("nonsense.json");
    fs::write(&nonsense, "{}").expect("it is written");
    let refused = quorate(&format!(
        "restore {} --name x --force --data {}/x --seeds x=127.0.0.1:1",
        nonsense.display(),
        root.path().display()
    ));
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("no backup"), "{}", text(&refused.stderr));
}
