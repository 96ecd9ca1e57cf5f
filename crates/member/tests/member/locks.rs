//! Locks between members.

use std::time::{Duration, Instant};

use quorate_member::{Back, LockError, Lost, Member, Namespace};

use crate::plan::{PATIENCE, Plan, until_seated};

async fn three(plan: &Plan) -> [Member; 3] {
    let members = ["a", "b", "c"].map(|name| plan.start(name));
    for member in &members {
        until_seated(member, &["a", "b", "c"]).await;
    }
    members
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_in_the_first_moment_of_a_cluster_waits_for_its_seat_and_nothing_else() {
    let plan = Plan::of(&["a", "b", "c"]);
    let members = ["a", "b", "c"].map(|name| plan.start(name));
    let begun = Instant::now();
    for member in &members {
        while let Err(why) = member.lock("first").timeout(PATIENCE).await {
            assert_eq!(why, LockError::NotPrimary);
            assert!(begun.elapsed() < PATIENCE, "it has no seat");
            tokio::task::yield_now().await;
        }
    }
    members.into_iter().for_each(Member::stop);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_goes_from_hand_to_hand_and_its_fences_grow() {
    let plan = Plan::of(&["a", "b", "c"]);
    let members = three(&plan).await;
    let mut fences = Vec::new();
    for round in 0..30 {
        let locks = members[round % 3].locks();
        let guard = locks.lock("job").timeout(PATIENCE).await.expect("it is free");
        assert!(guard.check().expect("it is held") > Duration::ZERO);
        fences.push(guard.fence());
    }
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
    members.into_iter().for_each(Member::stop);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_at_a_time_though_all_want_it() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    let plan = Plan::of(&["a", "b", "c"]);
    let members = three(&plan).await;
    let (inside, entries) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut tasks = Vec::new();
    for member in &members {
        for _ in 0..4 {
            let locks = member.locks();
            let (inside, entries) = (Arc::clone(&inside), Arc::clone(&entries));
            tasks.push(tokio::spawn(async move {
                for _ in 0..25 {
                    let guard = locks.lock("one").timeout(PATIENCE).await.expect("its turn comes");
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "somebody is inside");
                    tokio::task::yield_now().await;
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                    entries.fetch_add(1, Ordering::SeqCst);
                    guard.release();
                }
            }));
        }
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(entries.load(Ordering::SeqCst), 300);
    members.into_iter().for_each(Member::stop);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_held_survives_a_change_of_view_and_what_its_holder_dies_with_does_not() {
    let plan = Plan::of(&["a", "b", "c"]);
    let [a, b, c] = three(&plan).await;
    let held = b.locks().lock("held").timeout(PATIENCE).await.expect("it is free");
    let doomed = c.locks().lock("doomed").timeout(PATIENCE).await.expect("it is free");
    let before = doomed.fence();
    // It is silent from now on; nobody was told that it leaves.
    c.stop();
    let after = a.locks().lock("doomed").timeout(PATIENCE).await.expect("nobody has it any more");
    assert!(after.fence() > before);
    until_seated(&a, &["a", "b"]).await;
    assert!(held.check().is_ok(), "a change of view does not touch it");
    let busy = a.locks().lock("held").timeout(Duration::from_millis(50)).await;
    assert_eq!(busy.err(), Some(LockError::Timeout));
    held.release();
    let free = a.locks().lock("held").timeout(PATIENCE).await;
    assert!(free.is_ok());
    drop((after, free));
    [a, b].into_iter().for_each(Member::stop);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_alone_loses_its_guards_in_time() {
    let plan = Plan::of(&["a", "b", "c"]);
    let [a, b, c] = three(&plan).await;
    let guard = a.locks().lock("x").timeout(PATIENCE).await.expect("it is free");
    assert!(guard.confirm().await.is_ok());
    b.stop();
    c.stop();
    assert_eq!(guard.lost().await, Lost::Expired);
    assert!(guard.check().is_err());
    assert!(guard.run(std::future::pending::<()>()).await.is_err());
    a.stop();
}

#[test]
fn a_program_without_a_runtime_locks_too() {
    let plan = Plan::of(&["a"]);
    let a = plan.start("a");
    let guard = loop {
        match a.locks().lock("x").timeout(PATIENCE).blocking() {
            Err(LockError::NotPrimary | LockError::Refused(_)) => std::thread::yield_now(),
            other => break other.expect("it is free"),
        }
    };
    let busy = a.locks().lock("x").timeout(Duration::from_millis(1)).blocking();
    assert_eq!(busy.err(), Some(LockError::Timeout));
    drop(guard);
    assert!(a.locks().lock("x").timeout(PATIENCE).blocking().is_ok());
    a.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_held_locks_survive_a_change_of_view() {
    let plan = Plan::of(&["a", "b", "c"]);
    let [a, b, c] = three(&plan).await;
    let mut guards = Vec::new();
    for number in 0..10_000 {
        let asking = b.locks().lock(&format!("held {number}")).timeout(PATIENCE);
        guards.push(asking.await.expect("it is free"));
    }
    let begun = Instant::now();
    assert!(c.leave(PATIENCE).await);
    until_seated(&a, &["a", "b"]).await;
    // Nothing is granted before all have said what they hold.
    let fresh = a.locks().lock("fresh").timeout(PATIENCE).await;
    let took = begun.elapsed();
    assert!(fresh.is_ok() && guards.iter().all(|guard| guard.check().is_ok()));
    println!("{} held locks, the next view after {took:?}", guards.len());
    // A tenth of that on a machine of its own: this one has to do with many things at once.
    assert!(took < Duration::from_secs(10), "{took:?}");
    let busy = a.locks().lock("held 77").now().await;
    assert_eq!(busy.err(), Some(LockError::Taken));
    drop(guards);
    [a, b, c].into_iter().for_each(Member::stop);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_that_is_taken_by_force_says_so_to_all_who_ask() {
    let plan = Plan::of(&["a", "b", "c"]);
    let [a, b, c] = three(&plan).await;
    let guard = a.locks().lock("job").timeout(PATIENCE).await.expect("it is free");
    let other = a.locks().lock("other").timeout(PATIENCE).await.expect("it is free");
    assert_eq!(b.locks().revoke("job", Back::Asked, PATIENCE).await, Ok(true));
    // It was asked before anybody waited for that.
    guard.asked_back().await;
    assert!(guard.is_asked_back() && guard.check().is_ok());
    let work = guard.run(std::future::pending::<()>());
    let force = b.locks();
    let force = force.revoke("job", Back::Forced, PATIENCE);
    let (work, lost, forced) = tokio::join!(work, guard.lost(), force);
    assert_eq!((work, lost, forced), (Err(Lost::Revoked), Lost::Revoked, Ok(true)));
    assert_eq!(guard.check(), Err(Lost::Revoked));
    assert!(other.check().is_ok(), "only that one");
    // Its user has not dropped it, but its time passes.
    let next = b.locks().lock("job").timeout(PATIENCE).await.expect("its time has passed");
    assert!(next.fence() > guard.fence());
    drop((guard, next, other));
    [a, b, c].into_iter().for_each(Member::stop);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_semaphore_has_as_many_places_as_the_first_has_said() {
    let plan = Plan::of(&["a", "b", "c"]);
    let members = three(&plan).await;
    let place = |at: usize| members[at].lock("pool").permits(2).timeout(PATIENCE);
    let (one, two) = (place(0).await.expect("a place"), place(1).await.expect("a place"));
    assert_ne!(one.place(), two.place());
    let full = members[2].lock("pool").permits(2).now().await;
    assert_eq!(full.err(), Some(LockError::Taken));
    let other = members[2].lock("pool").permits(3).await;
    assert!(matches!(other, Err(LockError::Refused(_))), "{other:?}");
    let (free, fence) = (one.place(), one.fence());
    drop(one);
    let third = place(2).await.expect("a place");
    assert!(third.place() == free && third.fence() > fence);
    let delayed = Namespace { lock_delay: Duration::from_secs(1), ..Namespace::default() };
    assert_eq!(members[1].locks().define("slow", &delayed).await, Ok(()));
    assert_eq!(members[1].locks().define("slow", &delayed).await, Ok(()));
    let refused = members[0].locks().define("slow", &Namespace::default()).await;
    assert!(matches!(refused, Err(LockError::Refused(_))), "{refused:?}");
    drop((two, third));
    members.into_iter().for_each(Member::stop);
}
