//! Roles between members.

use std::time::Duration;

use quorate_member::{Asked, Fence, LockError, Lost, Member, Observer, Seen};
use tokio::time::timeout;

use crate::plan::{PATIENCE, Plan, until_seated};

async fn three(plan: &Plan) -> [Member; 3] {
    let members = ["a", "b", "c"].map(|name| plan.start(name));
    for member in &members {
        until_seated(member, &["a", "b", "c"]).await;
    }
    members
}

/// Waits until an observer knows of a term.
async fn until_led(observer: &mut Observer, term: Fence) -> Seen {
    let seen = async {
        loop {
            let seen = observer.changed().await.expect("the member lives");
            if seen.leader().is_some_and(|leader| leader.term == term) {
                return seen;
            }
        }
    };
    timeout(PATIENCE, seen).await.expect("it is told")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_is_observed_by_all_and_handed_over_to_whom_it_names() {
    let plan = Plan::of(&["a", "b", "c"]);
    let members = three(&plan).await;
    let [a, b, c] = &members;
    let mut observers = [a, b, c].map(|member| member.observe("web").expect("a member"));
    let first = a.campaign("web").value("here").timeout(PATIENCE).await.expect("nobody leads");
    for observer in &mut observers {
        let seen = until_led(observer, first.term()).await;
        let leader = seen.leader().expect("it leads");
        assert_eq!((leader.member.as_str(), leader.value.as_slice()), ("a", &b"here"[..]));
    }
    // The best one is not who is named.
    let best = tokio::spawn(b.campaign("web").priority(9).timeout(PATIENCE).into_future());
    assert_eq!(timeout(PATIENCE, first.asked_to_yield()).await, Ok(Some(Asked::Better(9))));
    let stands = c.campaign("web").timeout(PATIENCE).into_future();
    let named = tokio::spawn(stands);
    until_standing(a, 2).await;
    let first = first.hand_over("nobody").expect_err("there is no such member");
    let term = first.term();
    first.hand_over("c").expect("there is such a member");
    let second = named.await.expect("no panic").expect("it is its turn");
    assert!(second.term() > term);
    until_led(&mut observers[0], second.term()).await;
    a.ask_to_yield("web", None).expect("a member");
    assert_eq!(timeout(PATIENCE, second.wanted()).await, Ok(Some(Asked::Wanted)));
    second.resign();
    let third = best.await.expect("no panic").expect("it is its turn");
    until_led(&mut observers[2], third.term()).await;
    third.resign();
    let nobody = async { while observers[1].changed().await.expect("it lives") != Seen::Nobody {} };
    timeout(PATIENCE, nobody).await.expect("it is told");
    drop(observers);
    members.into_iter().for_each(Member::stop);
}

/// Waits until so many wait for something.
async fn until_standing(member: &Member, count: usize) {
    let standing = async {
        loop {
            let all = member.locks().census(PATIENCE).await.unwrap_or_default();
            if all.iter().filter(|party| party.fence.is_none()).count() == count {
                return;
            }
        }
    };
    timeout(PATIENCE, standing).await.expect("they stand");
}

/// PEERS, pain 8: two leaders at once, from recipes that a reconnect confuses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pain_8_one_leader_at_a_time_though_all_stand_again_and_again() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    let plan = Plan::of(&["a", "b", "c"]);
    let members = three(&plan).await;
    let (leading, terms) =
        (Arc::new(AtomicU64::new(0)), Arc::new(std::sync::Mutex::new(Vec::new())));
    let mut tasks = Vec::new();
    for member in &members {
        for task in 0..3 {
            let (leading, terms) = (Arc::clone(&leading), Arc::clone(&terms));
            let campaigns: Vec<_> = (0..10)
                .map(|round| member.campaign("web").priority((round + task) % 3).timeout(PATIENCE))
                .collect();
            tasks.push(tokio::spawn(async move {
                for campaign in campaigns {
                    let leadership = campaign.await.expect("its turn comes");
                    assert_eq!(leading.fetch_add(1, Ordering::SeqCst), 0, "somebody leads");
                    terms.lock().expect("no panic").push(leadership.term());
                    tokio::task::yield_now().await;
                    assert_eq!(leading.fetch_sub(1, Ordering::SeqCst), 1);
                    leadership.resign();
                }
            }));
        }
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    let terms = terms.lock().expect("no panic").clone();
    assert_eq!(terms.len(), 90);
    assert!(terms.is_sorted_by(|one, next| one < next), "{terms:?}");
    members.into_iter().for_each(Member::stop);
}

/// PEERS, pain 9: a leader without a majority that goes on leading.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pain_9_a_leader_without_a_majority_leads_no_more() {
    let plan = Plan::of(&["a", "b", "c"]);
    let [a, b, c] = three(&plan).await;
    let mut observer = a.observe("web").expect("a member");
    let leadership = a.campaign("web").timeout(PATIENCE).await.expect("nobody leads");
    assert!(leadership.confirm().await.is_ok());
    until_led(&mut observer, leadership.term()).await;
    b.stop();
    c.stop();
    assert_eq!(leadership.lost().await, Lost::Expired);
    assert!(leadership.check().is_err());
    assert!(leadership.run(std::future::pending::<()>()).await.is_err());
    let unknown = async { while observer.changed().await.expect("it lives") != Seen::Unknown {} };
    timeout(PATIENCE, unknown).await.expect("it is told");
    a.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_one_leads_when_a_leader_is_gone() {
    let plan = Plan::of(&["a", "b", "c"]);
    let [a, b, c] = three(&plan).await;
    let doomed = c.campaign("web").timeout(PATIENCE).await.expect("nobody leads");
    let before = doomed.term();
    let mut observer = a.observe("web").expect("a member");
    until_led(&mut observer, before).await;
    // It is silent from now on; nobody was told that it leaves.
    c.stop();
    let next = b.campaign("web").timeout(PATIENCE).await.expect("nobody leads any more");
    assert!(next.term() > before);
    until_led(&mut observer, next.term()).await;
    drop((next, observer));
    [a, b].into_iter().for_each(Member::stop);
}

#[test]
fn a_program_without_a_runtime_leads_too() {
    let plan = Plan::of(&["a"]);
    let a = plan.start("a");
    let leadership = loop {
        match a.campaign("web").value("x").timeout(PATIENCE).blocking() {
            Err(LockError::NotPrimary | LockError::Refused(_)) => std::thread::yield_now(),
            other => break other.expect("nobody leads"),
        }
    };
    let mut observer = a.observe("web").expect("a member");
    while observer.blocking_changed().expect("it lives").leader().map(|it| it.term)
        != Some(leadership.term())
    {}
    let busy = a.campaign("web").timeout(Duration::from_millis(1)).blocking();
    assert_eq!(busy.err(), Some(LockError::Timeout));
    let taken = a.campaign("web").now().blocking();
    assert_eq!(taken.err(), Some(LockError::Taken));
    let long = a.campaign("web").value(vec![0_u8; 5_000]).blocking();
    assert!(matches!(long, Err(LockError::Refused(_))));
    drop(observer);
    a.stop();
}
