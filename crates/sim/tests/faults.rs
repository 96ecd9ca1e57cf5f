//! What the world does to messages and nodes, seen from a protocol that counts.

mod counting;

use std::collections::BTreeSet;

use counting::{Sender, counters};
use quorate_core::{Fact, NodeId, Span, Time};
use quorate_sim::{
    Crash, Cut, Disk, Faults, Network, Observer, Partition, Pause, Recovery, Report, Slow,
    Tampered, Tampering, World,
};

/// What node 2 was told, and when.
#[derive(Default)]
struct Arrivals(Vec<(f64, u32)>);

impl Observer<(), u32> for Arrivals {
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, (), u32>) {
        if let (2, Fact::Event(number)) = (at.number(), fact) {
            self.0.push((now.in_units(), *number));
        }
    }
}

fn run(messages: u32, network: &Network, faults: &Faults, seed: u64) -> (Report, Vec<(f64, u32)>) {
    let system = counters();
    let users = Sender { left: messages };
    let mut world = World::new(&system, users, Arrivals::default(), network, faults, seed);
    world.run_to_rest();
    let (report, Arrivals(arrivals)) = world.finish();
    let numbers = arrivals.into_iter().filter(|(_, number)| *number < counting::STARTED);
    (report, numbers.collect())
}

fn numbers(arrivals: &[(f64, u32)]) -> Vec<u32> {
    arrivals.iter().map(|(_, number)| *number).collect()
}

fn at(units: u64) -> Time {
    Time::ZERO + Span::units(units)
}

fn latency(text: &str) -> Network {
    Network { latency: text.parse().expect("a latency"), ..Network::default() }
}

#[test]
fn links_keep_the_order_if_they_must() {
    let unordered = latency("uniform:0..10");
    let fifo = Network { fifo: true, ..unordered.clone() };
    for seed in 0..20 {
        let (_, any) = run(100, &unordered, &Faults::default(), seed);
        let (_, ordered) = run(100, &fifo, &Faults::default(), seed);
        assert!(!numbers(&any).is_sorted() && numbers(&ordered).is_sorted());
        assert_eq!((any.len(), ordered.len()), (100, 100));
    }
}

/// Node 1 sends every unit what takes two: on one medium, each waits for those before it.
#[test]
fn a_shared_medium_carries_one_sending_at_a_time() {
    let arrivals = |network| run(3, &network, &Faults::default(), 1).1;
    assert_eq!(arrivals(latency("2")), [(3.0, 1), (4.0, 2), (5.0, 3)]);
    let shared = Network { shared_medium: true, ..latency("2") };
    assert_eq!(arrivals(shared), [(3.0, 1), (5.0, 2), (7.0, 3)]);
}

#[test]
fn losses_and_duplicates_come_as_often_as_asked() {
    let network = Network { loss: 0.2, duplicate: 0.1, ..Network::default() };
    let (report, arrivals) = run(20_000, &network, &Faults::default(), 1);
    assert!((3_800..4_200).contains(&report.lost), "{}", report.lost);
    assert!((1_400..1_800).contains(&report.duplicated), "{}", report.duplicated);
    assert_eq!(arrivals.len() as u64, 20_000 - report.lost + report.duplicated);
    assert_eq!(report.messages, 20_000);
}

#[test]
fn some_messages_are_overtaken_if_asked() {
    let network = Network { fifo: true, reorder: 0.1, ..Network::default() };
    let (_, arrivals) = run(1_000, &network, &Faults::default(), 1);
    let overtaken = numbers(&arrivals).windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!((50..200).contains(&overtaken), "{overtaken}");
}

#[test]
fn a_partition_cuts_what_is_sent_or_would_arrive_in_it() {
    let side = |number| [NodeId::new(number).unwrap()].into_iter().collect();
    let cut = Partition { sides: vec![side(1), side(2)], from: at(5), until: at(8) };
    let network = Network { partitions: vec![cut], ..Network::default() };
    let (report, arrivals) = run(10, &network, &Faults::default(), 1);
    // Sent at 5, 6, 7; and at 4, to arrive at 5.
    assert_eq!(numbers(&arrivals), [1, 2, 3, 8, 9, 10]);
    assert_eq!(report.lost, 4);
}

#[test]
fn a_crash_loses_all_but_what_was_persisted() {
    let node = NodeId::new(2).unwrap();
    let faults = Faults {
        crashes: vec![Crash { node, at: Time(at(4).0 + 1) }],
        recoveries: vec![Recovery { node, at: Time(at(7).0 + 1) }],
        ..Faults::default()
    };
    let system = counters();
    let network = Network::default();
    let users = Sender { left: 10 };
    let mut world = World::new(&system, users, Arrivals::default(), &network, &faults, 1);
    world.run_to_rest();
    let (report, Arrivals(arrivals)) = world.finish();
    // Three arrive before the crash; that number is all the node has when it is back.
    let started = counting::STARTED;
    assert_eq!(numbers(&arrivals), [started, 1, 2, 3, started + 3, 7, 8, 9, 10]);
    assert_eq!(report.lost, 3);
}

#[test]
fn a_cut_of_one_direction_leaves_the_other() {
    let (one, two) = (NodeId::at(0), NodeId::at(1));
    let lost = |from, to, both_ways| {
        let cut = Cut { from, to, both_ways, start: at(3), until: at(6) };
        run(10, &Network { cuts: vec![cut], ..Network::default() }, &Faults::default(), 1).0.lost
    };
    // Sent at 1, 2, 3 and so on, each takes one unit: those of 2 to 5 are under way during the cut.
    assert_eq!((lost(one, two, false), lost(two, one, true)), (4, 4));
    assert_eq!(lost(two, one, false), 0);
}

/// What comes while a node is paused is handled when it goes on, in order, before what comes later.
#[test]
fn a_paused_node_catches_up_in_order() {
    let pauses = vec![Pause { node: NodeId::at(1), from: at(3), until: at(6) }];
    let faults = Faults { pauses, ..Faults::default() };
    let network = Network { fifo: true, ..Network::default() };
    let (report, arrivals) = run(6, &network, &faults, 1);
    let caught_up = [(2.0, 1), (6.0, 2), (6.0, 3), (6.0, 4), (6.0, 5), (7.0, 6)];
    assert_eq!((arrivals.as_slice(), report.lost), (&caught_up[..], 0));
    // A node that crashes meanwhile never sees what has waited for it.
    let crashes = vec![Crash { node: NodeId::at(1), at: at(5) }];
    let (report, arrivals) = run(6, &network, &Faults { crashes, ..faults }, 1);
    assert_eq!((numbers(&arrivals), report.lost), (vec![1], 5));
}

/// A step is seen when its record is on disk. A crash before that leaves the record, the one before
/// it, or nothing: and whoever counts on the record has told nobody.
#[test]
fn a_record_takes_its_time_and_may_be_lost_or_torn() {
    let disk = |torn| Some(Disk { write: Span(Span::UNIT.0 / 2), torn });
    let slow = Faults { disk: disk(0.0), ..Faults::default() };
    let (_, arrivals) = run(3, &Network::default(), &slow, 1);
    assert_eq!(arrivals, [(2.5, 1), (3.5, 2), (4.5, 3)]);
    let node = NodeId::at(1);
    let kept = |torn, seed| {
        let crashes = vec![Crash { node, at: Time(at(4).0 + 1) }];
        let recoveries = vec![Recovery { node, at: at(9) }];
        let faults = Faults { crashes, recoveries, disk: disk(torn), ..Faults::default() };
        let system = counters();
        let (network, users) = (Network::default(), Sender { left: 3 });
        let mut world = World::new(&system, users, Arrivals::default(), &network, &faults, seed);
        world.run_to_rest();
        let (_, Arrivals(arrivals)) = world.finish();
        arrivals.last().map(|(_, number)| number - counting::STARTED)
    };
    // The third is being written when it crashes.
    let outcomes: BTreeSet<_> = (0..20).map(|seed| kept(0.0, seed)).collect();
    assert_eq!(outcomes, [Some(2), Some(3)].into());
    assert_eq!(kept(1.0, 1), Some(0));
}

#[test]
fn a_single_message_can_be_slow() {
    let (from, to) = (NodeId::at(0), NodeId::at(1));
    let slow = vec![Slow { from, to, nth: 2, latency: Span::units(10) }];
    let (_, arrivals) = run(3, &Network { slow, ..Network::default() }, &Faults::default(), 1);
    assert_eq!(arrivals, [(2.0, 1), (4.0, 3), (12.0, 2)]);
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_another() {
    let network = Network { loss: 0.1, duplicate: 0.1, ..latency("exp:2") };
    let run = |seed| run(200, &network, &Faults::default(), seed);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).1, run(8).1);
}

#[test]
fn delays_do_not_depend_on_whether_messages_are_lost() {
    let times = |loss| {
        let network = Network { loss, ..latency("exp:2") };
        run(50, &network, &Faults::default(), 3).1
    };
    let (all, some) = (times(0.0), times(0.5));
    assert!(some.len() < all.len() && some.iter().all(|arrival| all.contains(arrival)));
}

/// The third message of node 1 is tampered with; nothing else may change.
#[test]
fn whoever_tampers_with_a_message_touches_no_other() {
    let lossy = Network { loss: 0.2, duplicate: 0.2, ..latency("uniform:0..10") };
    let tampered = |network: &Network, how| {
        let (from, to) = (NodeId::at(0), NodeId::at(1));
        let one = Tampered { from, id: 3, and_on: false, to, how };
        let network = Network { tampered: vec![one], ..network.clone() };
        run(20, &network, &Faults::default(), 7).1
    };
    for network in [latency("1"), lossy] {
        let (_, whole) = run(20, &network, &Faults::default(), 7);
        let others = |arrivals: &[(f64, u32)]| {
            let others = arrivals.iter().copied().filter(|(_, number)| *number != 3);
            others.collect::<Vec<_>>()
        };
        let third = |arrivals: &[(f64, u32)]| -> Vec<f64> {
            let third = arrivals.iter().filter(|(_, number)| *number == 3);
            third.map(|(at, _)| *at).collect()
        };
        let [lost, late, twice] = [
            Tampering::Lose,
            Tampering::Delay(Span::units(100)),
            Tampering::Repeat(Span::units(100)),
        ]
        .map(|how| tampered(&network, how));
        assert!(!third(&whole).is_empty(), "there is something to tamper with");
        assert_eq!(third(&lost), [0.0; 0]);
        assert!(third(&late).contains(&(third(&whole)[0] + 100.0)));
        assert_eq!(third(&twice).len(), third(&whole).len() + 1);
        for arrivals in [&lost, &late, &twice] {
            assert_eq!(others(arrivals), others(&whole));
        }
    }
}

#[test]
fn a_delayed_message_holds_up_those_behind_it_where_links_keep_the_order() {
    let (from, to) = (NodeId::at(0), NodeId::at(1));
    let how = Tampering::Delay(Span::units(50));
    let delayed = vec![Tampered { from, id: 2, and_on: false, to, how }];
    let network = Network { fifo: true, tampered: delayed, ..latency("1") };
    let (_, arrivals) = run(5, &network, &Faults::default(), 1);
    assert_eq!(numbers(&arrivals), [1, 2, 3, 4, 5]);
    assert!(arrivals[1].0 >= 50.0 && arrivals[4].0 >= arrivals[1].0);
}

#[test]
fn whoever_tampers_from_a_message_on_lets_those_before_it_pass() {
    let (from, to) = (NodeId::at(0), NodeId::at(1));
    let tampered = vec![Tampered { from, id: 3, and_on: true, to, how: Tampering::Lose }];
    let network = Network { tampered, ..latency("1") };
    let (report, arrivals) = run(5, &network, &Faults::default(), 1);
    assert_eq!((numbers(&arrivals), report.lost), (vec![1, 2], 3));
}
