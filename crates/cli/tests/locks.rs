//! Locks as a user takes them: from the command line, by way of an agent, and from other languages.

mod dev;

#[path = "../../quorate/examples/connect.rs"]
#[allow(dead_code, reason = "an example has a main of its own")]
mod connect;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use quorate::{Back, Cluster, LockError, Lost, Namespace, Standing};
use serde_json::Value;

use dev::{
    Dev, PATIENCE, Running, has, is_gone, quorate as command, runtime, signal, text, until_there,
    waits_for_its_end,
};

/// Longer than anything that is there takes to be noticed.
const SOON: Duration = Duration::from_secs(20);

async fn clients(dev: &Dev) -> (Cluster, Cluster) {
    let one = Cluster::connect([dev.socket(0)]).await.expect("an agent");
    let other = Cluster::connect([dev.socket(1)]).await.expect("an agent");
    (one, other)
}

#[test]
fn a_client_has_the_same_locks_as_a_member() {
    let dev = Dev::start("900ms");
    runtime().block_on(async {
        let (one, other) = clients(&dev).await;
        let guard = one.lock("job").owner("first").timeout(PATIENCE).await.expect("it is free");
        assert!(guard.check().is_ok_and(|left| left <= Duration::from_millis(900)));
        assert!(guard.deadline().is_some_and(|until| until > quorate::now()));
        assert!(guard.confirm().await.is_ok());
        assert_eq!(one.standing(), Standing::Member);
        assert_eq!(other.lock("job").now().await.err(), Some(LockError::Taken));
        let late = other.lock("job").timeout(Duration::from_millis(50)).await;
        assert_eq!(late.err(), Some(LockError::Timeout));
        // Another task of the same process waits for it as anybody does.
        let same = one.lock("job").timeout(Duration::from_millis(50)).await;
        assert_eq!(same.err(), Some(LockError::Timeout));
        let mine = one.session();
        let held = mine.lock("own").await.expect("it is free");
        assert_eq!(mine.lock("own").await.err(), Some(LockError::AlreadyHeld));
        drop(held);

        // What was dropped is given back soon, not at once.
        let begun = std::time::Instant::now();
        let mut parties = other.locks().await.expect("they say");
        while parties.len() > 1 && begun.elapsed() < PATIENCE {
            parties = other.locks().await.expect("they say");
        }
        let [party] = &parties[..] else { panic!("{parties:#?}") };
        assert_eq!((&party.member[..], &party.owner[..], party.mode), ("a", "first", "exclusive"));
        assert_eq!(party.fence.map(|it| it.to_string()), Some(guard.fence().to_string()));

        // It is asked for, and given back; the next one has a larger fence.
        let next = tokio::spawn({
            let other = other.clone();
            async move { other.lock("job").timeout(PATIENCE).await }
        });
        assert_eq!(other.take_back("job", Back::Asked).await, Ok(true));
        tokio::time::timeout(PATIENCE, guard.asked_back()).await.expect("it is told");
        assert!(guard.check().is_ok(), "it is only asked");
        let before = guard.fence();
        guard.release();
        let next = next.await.expect("no panic").expect("its turn");
        assert!(next.fence() > before);

        // By force it is lost at once, and whatever is done under it is given up.
        let work = next.run(std::future::pending::<()>());
        let (lost, taken) = tokio::join!(work, one.take_back("job", Back::Forced));
        assert_eq!((lost, taken), (Err(Lost::Revoked), Ok(true)));
        assert_eq!(next.check(), Err(Lost::Revoked));
        drop(next);
        assert!(one.lock("job").timeout(PATIENCE).await.is_ok());
    });
}

#[test]
fn readers_share_several_are_taken_at_once_and_circles_are_told() {
    // Nobody's lease is to run out here, on a busy machine either: a lost lock breaks the circle.
    let dev = Dev::start("3s");
    runtime().block_on(async {
        let (one, other) = clients(&dev).await;
        let readers = (one.lock("table").shared().await, other.lock("table").shared().await);
        assert!(readers.0.is_ok() && readers.1.is_ok());
        assert_eq!(one.lock("table").now().await.err(), Some(LockError::Taken));
        drop(readers);

        let both = one.lock_all(["y", "x", "y"]).timeout(PATIENCE).await.expect("they are free");
        assert_eq!(both.iter().map(quorate::Guard::name).collect::<Vec<_>>(), ["x", "y"]);
        let none = other.lock_all(["w", "x"]).timeout(Duration::from_millis(50)).await;
        assert_eq!(none.err(), Some(LockError::Timeout));
        let free = other.lock("w").now().await;
        assert!(free.is_ok(), "all or none: {free:?}");
        drop((both, free));

        // Two who wait for each other: one of them is told so.
        let (left, right) = (one.session(), other.session());
        let a = left.lock("a").owner("left").await.expect("it is free");
        let b = right.lock("b").owner("right").await.expect("it is free");
        let waits = |session: quorate::Session, name: &'static str, owner: &'static str| {
            tokio::spawn(async move { session.lock(name).owner(owner).timeout(PATIENCE).await })
        };
        let (mut first, mut second) = (waits(left, "b", "left"), waits(right, "a", "right"));
        let (told, held) = tokio::select! {
            told = &mut first => (told, a),
            told = &mut second => (told, b),
        };
        let told = told.expect("no panic");
        let Err(LockError::Deadlock(circle)) = told else { panic!("no circle: {told:?}") };
        assert_eq!(circle.len(), 2, "{circle:?}");
        assert!(circle.iter().any(|link| link == "left waits for b"), "{circle:?}");
        drop(held);
    });
}

#[test]
fn a_wish_is_put_again_at_another_agent_and_a_guard_does_not_move() {
    let dev = Dev::start("900ms");
    runtime().block_on(async {
        let both = Cluster::connect([dev.socket(1), dev.socket(2)]).await.expect("an agent");
        let (holder, _) = clients(&dev).await;
        let held = holder.lock("job").await.expect("it is free");
        let own = both.lock("own").await.expect("it is free");
        let waits = tokio::spawn({
            let both = both.clone();
            async move { both.lock("job").owner("patient").timeout(PATIENCE).await }
        });
        dev.until_lock("somebody waits", |lock| lock["waiting"][0]["member"] == "b");
        signal(dev.pid(1), "KILL");
        dev.until_lock("it waits elsewhere", |lock| lock["waiting"][0]["member"] == "c");
        held.release();
        let guard = waits.await.expect("no panic").expect("its turn");
        assert!(guard.check().is_ok());
        assert_eq!(tokio::time::timeout(SOON, own.lost()).await, Ok(Lost::Expired));
        // Nobody is left: that is said, and not waited for.
        let one = Cluster::connect([dev.socket(2)]).await.expect("an agent");
        signal(dev.pid(2), "KILL");
        let begun = Instant::now();
        assert_eq!(one.lock("x").await.err(), Some(LockError::Closed));
        assert!(begun.elapsed() < SOON);
    });
    let nobody = Cluster::connect_blocking(["/nowhere/agent.sock"]).err().map(|it| it.to_string());
    assert!(nobody.is_some_and(|it| it.contains("/nowhere/agent.sock")));
}

#[test]
fn a_wish_that_is_dropped_takes_nothing() {
    let dev = Dev::start("900ms");
    runtime().block_on(async {
        let (one, other) = clients(&dev).await;
        for _ in 0..50 {
            let wish = one.lock("job").into_future();
            // At any moment between the question and the grant.
            let _ = tokio::time::timeout(Duration::from_micros(700), wish).await;
        }
        let guard = other.lock("job").timeout(PATIENCE).await;
        assert!(guard.is_ok(), "{guard:?}");
    });
}

#[test]
fn a_program_without_a_runtime_is_a_client_too() {
    let dev = Dev::start("900ms");
    let cluster = Cluster::connect_blocking([dev.socket(0)]).expect("an agent");
    let guard = cluster.lock("job").timeout(PATIENCE).blocking().expect("it is free");
    assert_eq!(cluster.lock("job").now().blocking().err(), Some(LockError::Taken));
    drop((guard, cluster));
    let again = Cluster::connect_blocking([dev.socket(1)]).expect("an agent");
    assert!(again.lock("job").timeout(PATIENCE).blocking().is_ok(), "it was given back");
}

#[test]
fn the_example_of_a_client_runs() {
    let dev = Dev::start("900ms");
    let done = runtime().block_on(connect::work(vec![dev.socket(2)]));
    assert!(done.is_ok(), "{done:?}");
}

#[test]
fn there_are_as_many_at_a_time_as_was_said() {
    let dev = Dev::start("900ms");
    let go = dev.file("go");
    std::fs::write(&go, "").expect("it is written");
    let holds = |at: usize, more: &str| {
        let script = format!("while [ -e {} ]; do sleep 0.02; done", go.display());
        Running(dev.lock(at, &format!("{more} crawl"), &script).spawn().expect("it runs"))
    };
    let mut holders = [holds(0, "--permits 2"), holds(1, "--permits 2")];
    let two = |lock: &Value| lock["holders"].as_array().is_some_and(|all| all.len() == 2);
    let lock = dev.until_lock("two hold it", two);
    assert_eq!((&lock["mode"], &lock["space"]), (&"permit".into(), &"crawl".into()));
    assert_ne!(lock["holders"][0]["place"], lock["holders"][1]["place"], "{lock:#?}");
    let third = dev.lock(2, "--permits 2 --timeout 100ms crawl", "true").output().expect("it runs");
    assert_eq!(third.status.code(), Some(75), "{}", text(&third.stderr));
    let at_once = dev.lock(2, "--permits 2 --timeout 0s crawl", "true").output().expect("it runs");
    assert_eq!(at_once.status.code(), Some(75), "{}", text(&at_once.stderr));
    // How many there are is one word for all.
    let other = dev.lock(2, "--permits 3 crawl", "true").output().expect("it runs");
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("have 2 permits"), "{}", text(&other.stderr));
    std::fs::remove_file(&go).expect("it is there");
    for holder in &mut holders {
        assert!(holder.0.wait().expect("it ends").success());
    }
}

#[test]
fn namespaces_are_defined_once() {
    let dev = Dev::start("900ms");
    let socket = dev.socket(0);
    let define = |more: &str| {
        let words: Vec<&str> = more.split_whitespace().collect();
        let words = [&["spaces", "define"][..], &words, &["--connect", &socket]].concat();
        let output = command(&words);
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(define("slow --lock-delay 5s").0, Some(0));
    assert_eq!(define("slow --lock-delay 5s").0, Some(0), "the same again is no fault");
    let (code, why) = define("slow --lock-delay 6s");
    assert!(code == Some(2) && why.contains("is different"), "{why}");
    assert_eq!(define("old --algorithm ricart-agrawala").0, Some(0));
    let (code, why) = define("ring --algorithm token-ring");
    assert!(code == Some(2) && why.contains("never comes to rest"), "{why}");
    let (code, why) = define("x --algorithm naimi-tehel");
    assert!(code == Some(2) && why.contains("naimi-trehel"), "{why}");
    let table = text(&command(&["spaces", "--connect", &dev.socket(1)]).stdout);
    assert!(
        table.lines().any(|line| line.trim().starts_with("slow") && line.trim().ends_with("5.0 s")),
        "{table}"
    );
    // A lock of another algorithm works, and what that cannot do is refused in a sentence.
    let done = dev.lock(1, "--space old job", "exit 3").output().expect("it runs");
    assert_eq!(done.status.code(), Some(3), "{}", text(&done.stderr));
    let shared = dev.lock(1, "--space old --shared job", "true").output().expect("it runs");
    assert_eq!(shared.status.code(), Some(2), "{}", text(&shared.stderr));
    // By way of the library, too.
    runtime().block_on(async {
        let (one, other) = clients(&dev).await;
        let pool = Namespace { lock_delay: Duration::from_secs(1), ..Namespace::of_permits(2) };
        assert_eq!(one.define("pool", &pool).await, Ok(()));
        let place = other.lock("gpu").space("pool").permits(2).timeout(PATIENCE).await;
        assert!(place.is_ok(), "{place:?}");
        let wrong = other.define("pool", &Namespace::default()).await;
        assert!(matches!(wrong, Err(LockError::Refused(_))), "{wrong:?}");
    });
}

#[test]
fn what_a_lost_member_held_is_granted_later_where_that_is_wanted() {
    let dev = Dev::start("900ms");
    runtime().block_on(async {
        let (one, _) = clients(&dev).await;
        let lost = Cluster::connect([dev.socket(2)]).await.expect("an agent");
        let delay = Duration::from_secs(3);
        let slow = Namespace { lock_delay: delay, ..Namespace::default() };
        assert_eq!(one.define("slow", &slow).await, Ok(()));
        let held = (lost.lock("job").await, lost.lock("job").space("slow").await);
        assert!(held.0.is_ok() && held.1.is_ok(), "{held:?}");
        signal(dev.pid(2), "KILL");
        assert!(one.lock("job").timeout(PATIENCE).await.is_ok());
        let begun = Instant::now();
        assert!(one.lock("job").space("slow").timeout(PATIENCE).await.is_ok());
        assert!(begun.elapsed() > delay / 2, "{:?}", begun.elapsed());
    });
}

#[test]
fn the_list_of_locks_is_for_programs_too() {
    let dev = Dev::start("900ms");
    runtime().block_on(async {
        let (one, other) = clients(&dev).await;
        let guard = one.lock("job/1").owner("the holder").await.expect("it is free");
        let waits = tokio::spawn(async move { other.lock("job/1").owner("who waits").await });
        let lock = dev.until_lock("one waits", |lock| !lock["waiting"][0].is_null());
        assert_eq!(lock["name"], "job/1");
        assert_eq!(lock["mode"], "exclusive");
        assert_eq!(lock["fence"], guard.fence().to_string());
        assert_eq!(lock["holder"]["member"], "a");
        assert_eq!(lock["holder"]["owner"], "the holder");
        assert!(lock["holder"]["since_ms"].as_u64().is_some_and(|it| it < 60_000), "{lock:#?}");
        assert_eq!(lock["waiting"][0]["member"], "b");
        assert_eq!(lock["waiting"][0]["owner"], "who waits");
        assert!(lock["waiting"][0]["since_ms"].is_u64());
        let table = text(&command(&["locks", "--connect", &dev.socket(2)]).stdout);
        assert!(table.contains("held by") && table.contains("wanted by"), "{table}");
        // Names are no paths.
        let taken = command(&["unlock", "--force", "job/1", "--connect", &dev.socket(2)]);
        assert!(text(&taken.stdout).contains("has lost it"), "{}", text(&taken.stdout));
        assert_eq!(guard.lost().await, Lost::Revoked);
        guard.release();
        assert!(waits.await.expect("no panic").is_ok());
    });
}

#[test]
fn a_command_is_ended_when_its_lock_is_taken_by_force() {
    let dev = Dev::start("900ms");
    for stopped in [false, true] {
        let pid = dev.file(if stopped { "stopped" } else { "running" });
        let script = waits_for_its_end(&pid);
        let mut wrapper = Running(dev.lock(0, "job", &script).spawn().expect("it runs"));
        until_there(&pid);
        // If its wrapper does not do it, its agent does.
        if stopped {
            signal(wrapper.0.id(), "STOP");
        }
        let next = dev.lock(1, "--timeout 30s job", &is_gone(&pid)).spawn().expect("it runs");
        dev.until_lock("it waits", |lock| !lock["waiting"][0].is_null());
        let taken = command(&["unlock", "--force", "job", "--connect", &dev.socket(2)]);
        assert!(text(&taken.stdout).contains("has lost it"), "{}", text(&taken.stdout));
        let next = next.wait_with_output().expect("it ends");
        assert_eq!(text(&next.stdout).trim(), "gone", "{}", text(&next.stderr));
        if !stopped {
            assert_eq!(wrapper.0.wait().expect("it ends").code(), Some(76));
        }
    }
}

#[test]
fn a_command_waits_for_its_lock_far_longer_than_a_session_may_be_silent() {
    let dev = Dev::start("3s");
    let (held, go) = (dev.file("held"), dev.file("go"));
    let until =
        format!("touch {}; until [ -e {} ]; do sleep 0.02; done", held.display(), go.display());
    let _holder = Running(dev.lock(0, "job", &until).spawn().expect("it runs"));
    until_there(&held);
    let begun = Instant::now();
    let mut waiter = Running(dev.lock(1, "job", "true").spawn().expect("it runs"));
    dev.until_lock("it waits", |lock| !lock["waiting"][0].is_null());
    // A session may be silent for a second and a half.
    while begun.elapsed() < Duration::from_secs(5) {
        dev.until_lock("it still waits", |lock| !lock["waiting"][0].is_null());
        assert!(waiter.0.try_wait().expect("it is asked").is_none(), "it gave up waiting");
    }
    std::fs::write(&go, "").expect("it is written");
    assert_eq!(waiter.0.wait().expect("it ends").code(), Some(0));
}

#[test]
fn the_guided_run_ends_well() {
    let mut shown = Command::new(env!("CARGO_BIN_EXE_quorate"));
    shown.args(["dev", "--demo", "--lease", "900ms"]).stdin(Stdio::null());
    let shown = shown.output().expect("it runs");
    let (said, why) = (text(&shown.stdout), text(&shown.stderr));
    assert!(shown.status.success(), "{said}{why}");
    for step in ["1. Acquire", "2. Hand over", "3. The holder dies", "4. A member is cut off"] {
        assert!(said.contains(step), "{step} in {said}");
    }
    assert!(said.contains("its guard is lost"), "{said}");
    let few = command(&["dev", "--demo", "--members", "1"]);
    assert_eq!(few.status.code(), Some(2), "{}", text(&few.stderr));
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    path.display().to_string()
}

#[test]
fn the_examples_in_other_languages_run() {
    let dev = Dev::start("1500ms");
    for (program, needs, file) in [("python3", "python3", "lock.py"), ("sh", "curl", "lock.sh")] {
        if !has(needs) {
            continue;
        }
        let done = Command::new(program).args([&example(file), &dev.socket(1)]).output();
        let done = done.expect("it runs");
        let said = text(&done.stdout);
        assert!(done.status.success(), "{file}: {said}{}", text(&done.stderr));
        assert!(said.starts_with("holds example, fence 0"), "{file}: {said}");
        assert_eq!(said.matches("may go on for").count(), 3, "{file}: {said}");
        assert_eq!(dev.locks(), Vec::<Value>::new(), "{file} gives it back");
    }
}
