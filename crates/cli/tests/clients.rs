//! Leaders and groups by way of agents: real processes on loopback.

mod dev;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use quorate::{
    Asked, Cluster, Config, Delivery, Group, GroupError, LockError, Lost, Observer, Order, Seed,
    Seen, Timers,
};
use serde_json::Value;

use dev::{Dev, PATIENCE, Running, quorate as command, runtime, signal};

/// The socket of the agent of a leader that is a process of its own.
const LEADER: &str = "QUORATE_TEST_LEADER";

/// What is awaited comes, or the test fails.
async fn soon<F: IntoFuture>(what: &str, work: F) -> F::Output {
    let done = tokio::time::timeout(PATIENCE, work.into_future()).await;
    done.unwrap_or_else(|_| panic!("in vain: {what}"))
}

async fn client(dev: &Dev, places: &[usize]) -> Cluster {
    let sockets: Vec<String> = places.iter().map(|place| dev.socket(*place)).collect();
    soon("an agent answers", Cluster::connect(sockets)).await.expect("an agent")
}

/// Waits until so many stand for the only role.
fn until_standing(dev: &Dev, place: usize, count: usize) {
    let begun = Instant::now();
    loop {
        let listed = command(&["roles", "--json", "--connect", &dev.socket(place)]);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap_or_default();
        if listed[0]["candidates"].as_array().map_or(0, Vec::len) == count {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{count} stand: {listed:#}");
    }
}

/// Follows until the leader is this one, by its value, and returns its term. Terms never go back.
async fn until_leads(observer: &mut Observer, value: &[u8]) -> String {
    let mut last = String::new();
    loop {
        let seen = soon("somebody leads", observer.changed()).await.expect("it goes on");
        let Some(leader) = seen.leader() else { continue };
        let term = leader.term.to_string();
        assert!(term >= last, "{term} after {last}");
        if leader.value == value {
            return term;
        }
        last = term;
    }
}

/// Not a test of its own: what the leader of another test runs.
#[test]
fn leader() {
    let Ok(socket) = std::env::var(LEADER) else { return };
    let cluster = Cluster::connect_blocking([socket]).expect("an agent");
    let leadership = cluster.campaign("web").value([0xff, 1]).blocking().expect("its turn");
    println!("\nleads {}", leadership.term());
    // Whoever started it holds the other end, and ends this process by force.
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn the_next_client_leads_in_a_later_term_when_the_process_of_the_first_is_killed() {
    let dev = Dev::start("900ms");
    let mut child = Command::new(std::env::current_exe().expect("this test"));
    child.args(["leader", "--exact", "--nocapture"]).env(LEADER, dev.socket(0));
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut first = Running(child.spawn().expect("it runs"));
    let lines = BufReader::new(first.0.stdout.take().expect("it is read")).lines();
    let term = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("leads ").map(str::to_owned))
        .expect("it leads");
    runtime().block_on(async {
        let (other, third) = (client(&dev, &[1]).await, client(&dev, &[2]).await);
        let mut web = third.observe("web").expect("a role");
        assert_eq!(until_leads(&mut web, &[0xff, 1]).await, term);
        assert_eq!(web.current().leader().map(|leader| leader.member.as_str()), Some("a"));
        assert_eq!(other.campaign("web").now().await.err(), Some(LockError::Taken));
        let late = other.campaign("web").timeout(Duration::from_millis(50)).await;
        assert_eq!(late.err(), Some(LockError::Timeout));

        let next = tokio::spawn(other.campaign("web").value("second").into_future());
        until_standing(&dev, 2, 1);
        signal(first.0.id(), "KILL");
        let next = soon("the next one leads", next).await.expect("no panic").expect("its turn");
        assert!(next.term().to_string() > term, "{} after {term}", next.term());
        assert!(next.check().is_ok_and(|left| left <= Duration::from_millis(900)));
        assert!(next.deadline().is_some_and(|until| until > quorate::now()));
        assert!(soon("it is confirmed", next.confirm()).await.is_ok());
        assert_eq!(until_leads(&mut web, b"second").await, next.term().to_string());

        // The session ends with the client and what it has given.
        drop((next, other));
        while soon("nobody leads", web.changed()).await.expect("it goes on") != Seen::Nobody {}
    });
}

#[test]
fn a_client_that_leads_is_asked_to_yield_and_hands_over() {
    let dev = Dev::start("900ms");
    runtime().block_on(async {
        let one = client(&dev, &[0]).await;
        let first = soon("it leads", one.campaign("web").priority(1)).await.expect("it is free");
        let again = one.campaign("web").priority(9).timeout(Duration::from_millis(50)).await;
        assert_eq!(again.err(), Some(LockError::Timeout), "another task of the same client waits");

        // A wish that was given up may have asked already: this leader has to be the one that is asked.
        first.resign();
        let first = soon("it leads", one.campaign("web").priority(1)).await.expect("it is free");
        let better = client(&dev, &[1]).await;
        let better = tokio::spawn(better.campaign("web").priority(5).value("b").into_future());
        let asked = soon("it is asked", first.asked_to_yield()).await;
        assert_eq!(asked, Some(Asked::Better(5)));
        let named = client(&dev, &[2]).await;
        let mut web = named.observe("web").expect("a role");
        let named = tokio::spawn(named.campaign("web").value("c").into_future());
        until_standing(&dev, 2, 2);
        let wanted = first.wanted();
        soon("it is asked", one.ask_to_yield("web", None)).await.expect("a member");
        assert_eq!(soon("it is told", wanted).await, Some(Asked::Wanted));
        assert!(first.check().is_ok(), "it is only asked");
        let nobody = one.ask_to_yield("web", Some("nobody")).await;
        assert!(matches!(nobody, Err(LockError::Refused(_))), "{nobody:?}");

        let kept = soon("it answers", first.hand_over("nobody")).await;
        let first = kept.expect_err("there is no such member");
        assert!(soon("it leads on", first.confirm()).await.is_ok());
        let before = first.term();
        soon("it is handed over", first.hand_over("c")).await.expect("a member");
        let named = soon("its turn", named).await.expect("no panic").expect("its turn");
        assert!(named.term() > before);
        assert_eq!(until_leads(&mut web, b"c").await, named.term().to_string());
        named.resign();
        let better = soon("its turn", better).await.expect("no panic").expect("its turn");
        assert_eq!(until_leads(&mut web, b"b").await, better.term().to_string());
    });
}

#[test]
fn when_its_agent_is_killed_a_leader_has_lost_and_an_observer_goes_on_elsewhere() {
    let dev = Dev::start("900ms");
    runtime().block_on(async {
        let (one, both) = (client(&dev, &[0]).await, client(&dev, &[1, 2]).await);
        let mut web = both.observe("web").expect("a role");
        let mut room = soon("a group", both.group("room")).await.expect("an agent");
        let led = both.campaign("web").value("first");
        let led = soon("it leads", led).await.expect("it is free");
        let term = until_leads(&mut web, b"first").await;
        let next = tokio::spawn(one.campaign("web").value("second").into_future());
        until_standing(&dev, 0, 1);

        signal(dev.pid(1), "KILL");
        assert_eq!(soon("it is lost", led.lost()).await, Lost::Expired);
        assert_eq!(led.check(), Err(Lost::Expired));
        assert_eq!(soon("nobody asks", led.asked_to_yield()).await, None);
        let next = soon("its turn", next).await.expect("no panic").expect("its turn");
        let seen = until_leads(&mut web, b"second").await;
        assert!(seen > term && seen == next.term().to_string(), "{seen} after {term}");

        // A group does not move: what was told meanwhile would be missing.
        let end = loop {
            match soon("it ends", room.next()).await {
                Ok(Delivery::View(_)) => {}
                Ok(told) => panic!("{told:?}"),
                Err(why) => break why,
            }
        };
        assert_eq!(end, GroupError::Excluded);
        assert_eq!(room.send(b"too late", Order::Total).await, Err(GroupError::Excluded));
        let mut room = soon("a group", both.group("room")).await.expect("the other agent");
        until_here(&mut room, &["c"]).await;
        // And a role is stood for elsewhere.
        drop(led);
        let again = tokio::spawn(both.campaign("web").value("third").into_future());
        until_standing(&dev, 0, 1);
        next.resign();
        let again = soon("its turn", again).await.expect("no panic").expect("its turn");
        assert_eq!(until_leads(&mut web, b"third").await, again.term().to_string());
        assert_eq!(web.current().leader().map(|leader| leader.member.as_str()), Some("c"));
    });
}

/// Follows until exactly these are in the group.
async fn until_here(room: &mut Group, names: &[&str]) {
    loop {
        let Delivery::View(view) = soon("a view", room.next()).await.expect("it goes on") else {
            panic!("a message before anybody sends");
        };
        let mut members: Vec<&str> = view.members.iter().map(AsRef::as_ref).collect();
        members.sort_unstable();
        if members == names {
            return;
        }
    }
}

/// The next messages: who sent them, and what.
async fn messages(room: &mut Group, count: usize) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    while all.len() < count {
        match soon("a message", room.next()).await.expect("it goes on") {
            Delivery::Message(message) => {
                assert_eq!(message.order(), Order::Total);
                all.push((message.sender().to_owned(), message.bytes().to_vec()));
            }
            told => panic!("{told:?} between messages"),
        }
    }
    all
}

#[test]
fn clients_and_a_member_are_told_the_same_messages_in_the_same_order() {
    const EACH: u8 = 20;
    let dev = Dev::start("900ms");
    let root = tempfile::tempdir().expect("a directory");
    let mut config = Config::alone("m", root.path()).expect("a name");
    config.cluster = "dev".parse().expect("a name");
    config.seeds = dev.seeds().iter().map(|seed| seed.parse::<Seed>().expect("a seed")).collect();
    config.found = false;
    config.timers = Timers::of(Duration::from_millis(900)).expect("a lease");
    runtime().block_on(async {
        let member = soon("it joins", Cluster::join(config)).await.expect("a member");
        let (one, other) = (client(&dev, &[0]).await, client(&dev, &[1]).await);
        let mut rooms = Vec::new();
        for cluster in [&one, &other, &member] {
            rooms.push(soon("a group", cluster.group("room")).await.expect("it is joined"));
        }
        for room in &mut rooms {
            until_here(room, &["a", "b", "m"]).await;
        }
        // All send at the same time. What they send is no text.
        let sends = rooms.iter().map(|room| {
            let sender = room.sender();
            tokio::spawn(async move {
                for number in 0..EACH {
                    let message = [0xff, 0, number];
                    soon("it is sent", sender.send(&message, Order::Total)).await.expect("sent");
                }
            })
        });
        let sends: Vec<_> = sends.collect();
        let mut told = Vec::new();
        for room in &mut rooms {
            told.push(messages(room, 3 * usize::from(EACH)).await);
        }
        for sent in sends {
            sent.await.expect("no panic");
        }
        assert_eq!(told[0], told[1]);
        assert_eq!(told[0], told[2]);
        for name in ["a", "b", "m"] {
            let of = told[0].iter().filter(|(sender, _)| sender == name);
            let numbers: Vec<u8> = of.map(|(_, bytes)| bytes[2]).collect();
            assert_eq!(numbers, (0..EACH).collect::<Vec<_>>(), "{name}");
        }

        // Who comes later is told who is here, and what is sent from then on.
        let mut late = soon("a group", one.group("room")).await.expect("its agent is in it");
        until_here(&mut late, &["a", "b", "m"]).await;
        soon("it is sent", rooms[2].send(b"late", Order::Total)).await.expect("sent");
        assert_eq!(messages(&mut late, 1).await, [("m".to_owned(), b"late".to_vec())]);
        late.retire();
        assert_eq!(soon("it ends", late.next()).await.err(), Some(GroupError::Left));
        let long = vec![0; (1 << 20) + 1];
        assert_eq!(rooms[0].send(&long, Order::Total).await, Err(GroupError::TooLong));
        assert_eq!(one.group("").await.err(), Some(GroupError::TooLong));
        assert!(soon("it leaves", member.leave(PATIENCE)).await);
    });
}
