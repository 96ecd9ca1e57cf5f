//! Who is a member, and who is not any more.

use std::path::Path;

use quorate_member::{Config, Member, Standing, Status};

use crate::plan::{PATIENCE, Plan, until, until_seated};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_found_a_cluster_and_one_leaves_it() {
    let plan = Plan::of(&["a", "b", "c"]);
    let members = ["a", "b", "c"].map(|name| plan.start(name));
    for member in &members {
        let status = until_seated(member, &["a", "b", "c"]).await;
        assert_eq!(status.authority.kind, "raft");
    }
    until(&members[0], "voters", |status| status.authority.voters.len() == 3).await;
    let [a, b, c] = members;
    assert!(c.leave(PATIENCE).await, "it is told that it has left");
    until(&c, "left", |status| status.standing == Standing::Left).await;
    until_seated(&a, &["a", "b"]).await;
    let before = a.status().borrow().epoch;
    // All of them end, and come back to what was.
    for member in [a, b, c] {
        member.stop();
    }
    let members = ["a", "b", "c"].map(|name| plan.start(name));
    for member in &members {
        let status = until_seated(member, &["a", "b", "c"]).await;
        assert!(status.epoch > before, "epochs grow");
    }
    members.into_iter().for_each(Member::stop);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_joins_later_needs_no_disk_of_its_own_in_the_consensus() {
    let plan = Plan::of(&["a"]);
    let a = plan.start("a");
    until_seated(&a, &["a"]).await;
    let late = plan.start("late");
    let status = until_seated(&late, &["a", "late"]).await;
    assert_eq!((status.authority.kind.as_str(), status.cluster), ("remote", a_cluster(&a)));
    assert!(late.leave(PATIENCE).await);
    until_seated(&a, &["a"]).await;
    late.stop();
    a.stop();
}

fn a_cluster(member: &Member) -> Option<String> {
    member.status().borrow().cluster.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seed_that_lost_its_disk_is_replaced() {
    let plan = Plan::of(&["a", "b", "c"]);
    let [a, b, c] = ["a", "b", "c"].map(|name| plan.start(name));
    for member in [&a, &b, &c] {
        until_seated(member, &["a", "b", "c"]).await;
        until(member, "voters", |status| status.authority.voters.len() == 3).await;
    }
    c.stop();
    wipe(&plan.directory("c"));
    let c = plan.start("c");
    until_seated(&c, &["a", "b", "c"]).await;
    let three = |status: &Status| status.authority.voters == ["a", "b", "c"].map(String::from);
    let sorted = |status: &Status| {
        let mut status = status.clone();
        status.authority.voters.sort();
        three(&status)
    };
    until(&c, "voters", sorted).await;
    [a, b, c].into_iter().for_each(Member::stop);
}

fn wipe(directory: &Path) {
    std::fs::remove_dir_all(directory).expect("it is there");
}

#[test]
fn what_makes_no_sense_is_refused_with_a_sentence() {
    let plan = Plan::of(&["a", "b"]);
    let refused = |config| Member::start(config).expect_err("no member").to_string();
    assert!(refused(plan.config("a")).contains("2 seeds"));
    let plan = Plan::of(&["a", "b", "c"]);
    let founder = Config { found: true, ..plan.config("b") };
    assert!(refused(founder).contains("only the first of the seeds"));
    let nowhere = Config { listen: "192.0.2.1:1".into(), ..plan.config("b") };
    assert!(refused(nowhere).contains("192.0.2.1:1"));
}
