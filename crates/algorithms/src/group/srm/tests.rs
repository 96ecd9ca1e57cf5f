//! SRM on chains and stars with single losses, as analysed; on trees with many; every interleaving.

use std::string::{String, ToString};
use std::vec::Vec;

use quorate_core::{Effect, Fact, Input, Kept, Life, Scene, Time};
use quorate_sim::topology::Named;
use quorate_sim::{Faults, Network, Observer, Report, World};

use super::*;
use crate::faults::crashes;
use crate::flaw;
use crate::group::testing::{cut, parted, quiet, users_of, wish};
use crate::group::{Pattern, Senders, Setup};
use crate::testing::{self, feed, node, units};

/// Distances are known and nobody sends session messages, as in the paper's analysis.
fn analysed(c1: f64, c2: f64, d1: f64, d2: f64) -> Config {
    let milli = |number: f64| Milli((number * 1000.0) as u32);
    let (d1, d2) = (Some(milli(d1)), Some(milli(d2)));
    let (c1, c2) = (milli(c1), milli(c2));
    Config { c1, c2, d1, d2, distances_given: true, sessions: false, ..Config::default() }
}

fn scene(named: &Named, count: usize, config: Config) -> Scene<Srm> {
    let topology = named.build(count, 1).unwrap();
    let setup = Setup::along(&topology);
    Scene::new(topology, setup, config)
}

/// A star of so many members around node 1, which is none.
fn star(members: usize, config: Config) -> Scene<Srm> {
    let mut scene = scene(&Named::Star, members + 1, config);
    scene.setup.members.remove(node(1));
    scene
}

/// From one unit to the next: all is over before.
const GAP: f64 = 1000.0;

fn users(scene: &Scene<Srm>, senders: &[u32], messages: u32, gap: f64) -> Senders {
    let pattern = Pattern { gap: units(gap), ..Pattern::default() };
    users_of(scene, senders, messages, pattern)
}

/// Loses what one node sends to another at this time, in units.
fn losing(from: u32, to: u32, at: f64) -> Network {
    cut(&[(from, to, at)])
}

/// When which node took this step, in units.
type Steps = Vec<(f64, u32, String)>;

fn watch(scene: &Scene<Srm>, users: Senders, network: &Network) -> (Steps, Report) {
    let mut steps = Vec::new();
    let faults = Faults::default();
    let mut world = World::new(scene, users, (), network, &faults, 1);
    world.trace(|record| {
        let of_record = record
            .steps
            .iter()
            .map(|step| (record.at.in_units(), record.node.number(), step.name.to_string()));
        steps.extend(of_record);
    });
    world.run_to_rest();
    let (report, ()) = world.finish();
    (steps, report)
}

fn of(steps: &Steps, name: &str) -> Vec<(f64, u32)> {
    let mine = steps.iter().filter(|(_, _, step)| step == name);
    mine.map(|&(at, node, _)| (at, node)).collect()
}

/// A chain of nodes 0 to `last`, node 0 the source; unit 1 is lost between `above` and the next one.
/// Times count from the sending of unit 2, which shows the loss; nodes are numbered from 0.
fn chain(last: u32, above: u32, config: Config) -> (impl Fn(&str) -> Vec<(f64, u32)>, Report) {
    let scene = scene(&Named::Path, last as usize + 1, config);
    let network = losing(above + 1, above + 2, GAP + f64::from(above));
    let (steps, report) = watch(&scene, users(&scene, &[1], 2, GAP), &network);
    let of = move |name: &str| {
        let late = of(&steps, name).into_iter().filter(|(at, _)| *at >= 2.0 * GAP);
        late.map(|(at, node)| (at - 2.0 * GAP, node - 1)).collect()
    };
    (of, report)
}

/// Deterministic suppression, C1 = D1 = 1 and C2 = D2 = 0: the node below the loss asks, the one
/// above it answers, and nobody else says anything.
#[test]
fn on_a_chain_the_nearest_below_asks_and_the_nearest_above_answers() {
    for (above, last) in [(1, 5), (3, 8), (0, 4)] {
        let (of, report) = chain(last, above, analysed(1.0, 0.0, 1.0, 0.0));
        let asked = f64::from(above + 1) * 2.0;
        assert_eq!(of("request")[0], (asked, above + 1));
        assert_eq!(of("repair"), [(asked + 2.0, above)]);
        let recovered: Vec<_> =
            (above + 1..=last).map(|node| (asked + 2.0 + f64::from(node - above), node)).collect();
        let mut delivered = of("deliver");
        // Unit 2 itself arrives at its distance from the source.
        delivered.retain(|&(at, node)| at != f64::from(node));
        assert_eq!(delivered, recovered);
        // Next to the source the doubled timer, 2 hops, runs out before the answer can have come, 3
        // hops; hold-down keeps that second request from a second answer.
        let again = if above == 0 { Vec::from([(4.0, 1)]) } else { Vec::new() };
        assert_eq!(of("request")[1..], again);
        assert_eq!(of("hold down").len(), again.len());
        assert_eq!(
            (report.tally("nack").sum, report.tally("repair").sum),
            (1 + again.len() as u64, 1)
        );
        assert_eq!(of("suppress").len(), above as usize, "those above drop their answers");
    }
}

#[test]
fn goldens_of_the_chain() {
    let (of, _) = chain(5, 1, analysed(1.0, 0.0, 1.0, 0.0));
    assert_eq!((of("request"), of("repair")), (Vec::from([(4.0, 2)]), Vec::from([(6.0, 1)])));
    assert_eq!(of("deliver")[6..], [(7.0, 2), (8.0, 3), (9.0, 4), (10.0, 5)]);
    let (of, _) = chain(8, 3, analysed(1.0, 0.0, 1.0, 0.0));
    assert_eq!((of("request"), of("repair")), (Vec::from([(8.0, 4)]), Vec::from([(10.0, 3)])));
    assert_eq!(of("deliver")[9..], [(11.0, 4), (12.0, 5), (13.0, 6), (14.0, 7), (15.0, 8)]);
}

/// The worked trace of the authors' simulator: C1 = 2, D1 = 1, links of 10.5 ms, the loss next to the
/// source. The request follows the detection by 21 ms, the answer is prepared for 10.5 ms.
#[test]
fn the_worked_trace_of_the_simulator() {
    let mut scene = scene(&Named::Path, 6, analysed(2.0, 0.0, 1.0, 0.0));
    scene.setup.delay_max = units(10.5);
    let network = Network { latency: "10.5".parse().unwrap(), ..losing(1, 2, GAP) };
    let (steps, _) = watch(&scene, users(&scene, &[1], 2, GAP), &network);
    let detected = 2.0 * GAP + 10.5;
    assert_eq!(of(&steps, "detect")[0], (detected, 2));
    assert_eq!(of(&steps, "request"), [(detected + 21.0, 2)]);
    assert_eq!(of(&steps, "schedule"), [(detected + 31.5, 1)]);
    assert_eq!(of(&steps, "repair"), [(detected + 42.0, 1)]);
    let backed_off: Vec<u32> = of(&steps, "back off").iter().map(|(_, node)| *node).collect();
    assert_eq!(backed_off, [2, 3, 4, 5, 6]);
}

/// When a unit that was lost is there at last.
#[derive(Clone, Copy, Default)]
struct Recovered(Option<Time>);

impl Observer<Command, Event> for Recovered {
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        if let Fact::Event(Event::Delivered(MessageId { sender, number: 1 })) = fact
            && *sender != at
        {
            self.0.get_or_insert(now);
        }
    }
}

/// In a star the first unit is lost next to the source, so that all others miss it at once. Requests
/// sent, and when the first was after that, both on average over many seeds.
fn star_means(members: usize, c2: f64) -> (f64, f64) {
    const SEEDS: u32 = 10_000;
    // Answers come at once: 4 hops after the first request, the unit is there.
    let scene = star(members, analysed(2.0, c2, 0.0, 0.0));
    let network = losing(2, 1, GAP);
    let faults = Faults::default();
    let (mut requests, mut hops) = (0, 0.0);
    for seed in 0..SEEDS {
        let users = users(&scene, &[2], 2, GAP);
        let mut world =
            World::new(&scene, users, Recovered::default(), &network, &faults, u64::from(seed));
        world.run_to_rest();
        let (report, Recovered(at)) = world.finish();
        requests += report.tally("nack").sum;
        let detected = 2.0 * GAP + 2.0;
        hops += at.unwrap().in_units() - 4.0 - detected;
    }
    (requests as f64 / f64::from(SEEDS), hops / f64::from(SEEDS))
}

/// Probabilistic suppression: E = 1 + (G-1)/C2 - C2^-(G-1) requests, the first one 2 C1 + 2 C2/G hops
/// after the loss was noticed.
#[test]
fn in_a_star_the_lot_decides_who_asks() {
    let goldens =
        [(5, 2.0, 2.9375, 0.8), (5, 4.0, 1.9961, 1.6), (10, 2.0, 5.498, 0.4), (10, 9.0, 2.0, 1.8)];
    for (members, c2, requests, lot) in goldens.into_iter().chain([(20, 4.0, 5.75, 0.4)]) {
        let others = members as f64 - 1.0;
        let formula = 1.0 + others / c2 - f64::powf(c2, -others);
        assert!((formula - requests).abs() < 1e-4 * requests, "{formula} {requests}");
        let (asked, first) = star_means(members, c2);
        let near = |measured: f64, wanted: f64| (measured / wanted - 1.0).abs() < 0.02;
        assert!(near(asked, formula), "{members} members, C2 = {c2}: {asked}, not {formula}");
        assert!(near(first, 4.0 + lot), "{members} members, C2 = {c2}: {first}, not {lot} + 4");
        // The lot alone scatters as much as it is long: three standard errors.
        assert!((first - 4.0 - lot).abs() < 0.03 * lot, "{first}");
    }
}

#[test]
fn in_a_star_a_short_lottery_suppresses_nobody() {
    for members in [3, 5, 10] {
        for c2 in [0.0, 0.5, 1.0] {
            let scene = star(members, analysed(2.0, c2, 0.0, 0.0));
            let (_, report) = watch(&scene, users(&scene, &[2], 2, GAP), &losing(2, 1, GAP));
            assert_eq!(report.tally("nack").sum, members as u64 - 1);
            assert_eq!(report.tally("repair").sum, 1);
        }
    }
}

/// The published cost of the star is the formula that the goldens are measured against.
#[test]
fn published_costs_are_as_measured() {
    let cost = |what: &str| Srm::META.costs.iter().find(|cost| cost.what == what).unwrap().value;
    let star = cost("REQUEST per loss, star of n members, C2 = 2");
    assert_eq!((star(5.0), star(10.0)), (2.9375, 1.0 + 4.5 - 1.0 / 512.0));
    for count in 2..=16 {
        for named in [Named::Path, Named::Star, Named::Tree(2)] {
            let scene = scene(&named, count, analysed(2.0, 2.0, 1.0, 1.0));
            let users = users(&scene, &[1, 2], 3, 5.0);
            let log = testing::run(&scene, users, &Network::default(), &Faults::default());
            let data = cost("messages per multicast, no loss, DATA only")(count as f64) as u64;
            assert_eq!((log.count("DATA"), log.report.messages), (6 * data, 6 * data));
        }
    }
}

/// A star in which a third of what the source sends is lost at once for all.
fn lossy_star(config: Config) -> (f64, f64) {
    let units_sent = 300;
    let scene = star(12, config);
    let network = Network { loss_table: "2 1 0.33".parse().unwrap(), ..Network::default() };
    let log =
        testing::run(&scene, users(&scene, &[2], units_sent, 60.0), &network, &Faults::default());
    let each = |what| log.report.tally(what).sum as f64 / f64::from(units_sent);
    (each("nack"), each("duplicate"))
}

#[test]
fn adaptive_timers_learn_to_ask_less_in_a_star() {
    let fixed = Config { distances_given: true, ..Config::default() };
    let (asked, twice) = lossy_star(fixed);
    let (asked_less, twice_less) = lossy_star(Config { adaptive: true, ..fixed });
    assert!(asked_less < 0.6 * asked, "{asked_less} requests, {asked} with fixed timers");
    assert!(twice_less < 0.6 * twice, "{twice_less} duplicates, {twice} with fixed timers");
}

#[test]
fn all_arrives_whatever_is_lost() {
    for (named, count) in [(Named::Path, 6), (Named::Star, 8), (Named::Tree(2), 15)] {
        for adaptive in [false, true] {
            for loss in [0.05, 0.2] {
                let scene = scene(&named, count, Config { adaptive, ..Config::default() });
                let network = Network { loss, duplicate: 0.1, reorder: 0.1, ..Network::default() };
                let users = users(&scene, &[1, 2, 5], 20, 3.0);
                let log = testing::run(&scene, users, &network, &Faults::default());
                assert_eq!(log.told_of("deliver").len(), 60 * count);
                assert!(log.report.tally("nack").sum > 0 && log.report.tally("repair").sum > 0);
            }
        }
    }
}

#[test]
fn routers_pass_on_and_deliver_nothing() {
    let scene = star(4, Config::default());
    let users = users(&scene, &[2, 3], 5, 2.0);
    let network = Network { loss: 0.1, ..Network::default() };
    let log = testing::run(&scene, users, &network, &Faults::default());
    assert_eq!(log.told_of("deliver").len(), 10 * 4);
    assert!(log.told.iter().all(|(_, node, _)| *node != 1));
    assert_eq!(testing::refusal(&scene, node(1), wish(1)), Refusal::NotMember);
}

/// The last unit is lost: nothing shows it but a session message.
#[test]
fn only_session_messages_show_that_the_last_unit_is_lost() {
    let network = losing(1, 2, 2.0 * GAP);
    let quiet = scene(&Named::Path, 3, analysed(2.0, 2.0, 1.0, 1.0));
    let (steps, report) = watch(&quiet, users(&quiet, &[1], 2, GAP), &network);
    assert_eq!((of(&steps, "deliver").len(), report.tally("nack").sum), (4, 0));
    assert!(report.holds(), "nothing was promised");
    let told = scene(&Named::Path, 3, Config::default());
    let (steps, report) = watch(&told, users(&told, &[1], 2, GAP), &network);
    assert_eq!(of(&steps, "deliver").len(), 6);
    assert!(report.holds() && report.quiet, "session messages pause in the end");
}

/// Distances on a chain whose links differ, measured by session messages alone.
#[test]
fn distances_are_measured_by_session_messages() {
    let scene = scene(&Named::Path, 4, Config::default());
    let latency = "1".parse::<quorate_sim::Latency>().unwrap();
    let latency = latency.with_table("2 3 5\n3 2 5\n").unwrap();
    let network = Network { latency, ..Network::default() };
    let faults = Faults::default();
    let mut world = World::new(&scene, users(&scene, &[], 0, 1.0), (), &network, &faults, 1);
    world.run_to_rest();
    let distance = |from, to| world.node(node(from)).distances.between(node(from), node(to));
    // Nobody is taken to be farther away than the longest delay on every link.
    assert_eq!((distance(1, 2), distance(2, 1)), (units(1.0), units(1.0)));
    assert_eq!((distance(1, 3), distance(4, 1)), (units(4.0), units(4.0)));
    assert_eq!((distance(2, 3), distance(3, 4)), (units(4.0), units(1.0)));
}

/// A crash that leaves the tree connected harms nobody; whoever comes back only passes on.
#[test]
fn a_crashed_leaf_harms_nobody() {
    let scene = scene(&Named::Tree(2), 7, Config::default());
    let network = Network { loss: 0.1, ..Network::default() };
    let users = users(&scene, &[1, 4], 10, 3.0);
    testing::run(&scene, users, &network, &crashes(&[(7, 10.0)]));
    let mut back = scene.reboot(node(7), Life(1), &Kept::new());
    let data = Msg::Data(MessageId { sender: node(1), number: 1 });
    assert_eq!(feed(&mut back, 7, Input::Message { from: node(3), msg: data }), Ok(Vec::new()));
}

/// Nothing gets through for very long: a member stops asking, and hopes again when it hears of the
/// unit from somebody who still sends session messages.
#[test]
fn a_member_gives_up_and_hopes_again() {
    let cut = |from, until| parted(&[&[1], &[2]], from, until);
    // Unit 1, sent at 2, is lost; unit 2, sent at 4, is the last thing that gets through.
    let cuts = [cut(2.0, 2.5), cut(5.5, 2000.0)];
    let network = Network { partitions: cuts.into(), ..Network::default() };
    let run = |quiet| {
        let config = Config { quiet, distances_given: true, ..Config::default() };
        let scene = scene(&Named::Path, 2, config);
        let (steps, report) = watch(&scene, users(&scene, &[1], 2, 2.0), &network);
        let broken = report.violations().map(|(_, violation)| violation.property);
        (of(&steps, "give up").len(), of(&steps, "request").len(), broken.collect::<Vec<_>>())
    };
    assert_eq!(run(6), (1, 16, Vec::from(["atomicity"])));
    assert_eq!(run(255), (1, 17, Vec::new()));
}

#[test]
fn units_have_their_numbers_in_order() {
    let scene = scene(&Named::Path, 2, Config::default());
    for number in [0, 2, u32::MAX] {
        assert_eq!(testing::refusal(&scene, node(1), wish(number)), Refusal::Busy);
    }
    assert_eq!(testing::refusal(&scene, node(1), Command::Join), Refusal::Busy);
}

/// Members 1 to 3 of a chain of 4, of which 1 sends; node 4 joins, and node 2 leaves, at these times.
fn changing(messages: u32, join: f64, leave: f64, config: Config) -> (Scene<Srm>, Senders) {
    let mut scene = scene(&Named::Path, 4, config);
    scene.setup.members.remove(node(4));
    let pattern = Pattern {
        gap: units(GAP),
        joins: [(node(4), units(join))].into(),
        leaves: [(node(2), units(leave))].into(),
        ..Pattern::default()
    };
    let users = users_of(&scene, &[1], messages, pattern);
    (scene, users)
}

/// Who joins begins with the first unit that comes, and neither asks for what was before it nor answers
/// for it; who leaves passes on, and nothing else.
#[test]
fn who_joins_begins_to_listen_and_who_leaves_stops() {
    let (scene, users) = changing(3, 1.5 * GAP, 2.5 * GAP, analysed(1.0, 0.0, 1.0, 0.0));
    let (steps, report) = watch(&scene, users, &Network::default());
    assert_eq!(report.violations().count(), 0);
    assert_eq!(of(&steps, "begin"), [(2.0 * GAP + 3.0, 4)]);
    let delivered = |number| of(&steps, "deliver").iter().filter(|(_, n)| *n == number).count();
    assert_eq!([1, 2, 3, 4].map(delivered), [3, 2, 3, 2]);
    assert_eq!(report.tally("nack").sum, 0);
}

/// With session messages, which tell a newcomer how far the sources are: it asks for nothing, and when
/// a later unit is lost on its way, all who miss it get it.
#[test]
fn a_newcomer_asks_for_what_it_misses_and_not_for_what_was_before() {
    let (scene, users) = changing(3, 1.5 * GAP, 2.5 * GAP, Config::default());
    let (steps, report) = watch(&scene, users, &losing(3, 4, 3.0 * GAP + 2.0));
    assert_eq!(report.violations().count(), 0);
    assert_eq!(of(&steps, "note the top").len(), 1);
    assert!(of(&steps, "detect").iter().all(|&(at, n)| at > 3.0 * GAP && n == 4));
    let delivered = |number| of(&steps, "deliver").iter().filter(|(_, n)| *n == number).count();
    assert_eq!([1, 2, 3, 4].map(delivered), [3, 2, 3, 2]);
}

/// A member leaves while it waits to ask and to answer: no timer of it is left.
#[test]
fn who_leaves_drops_its_timers() {
    let scene = scene(&Named::Path, 3, Config::default());
    let mut member = scene.boot(node(2));
    let unit = |number| MessageId { sender: node(1), number };
    let request = Request { unit: unit(2), asker: node(3), distance: Span::UNIT, first: true };
    let input = |from, msg| Input::Message { from: node(from), msg };
    for input in [Input::Start, input(1, Msg::Data(unit(2))), input(3, Msg::Request(request))] {
        assert!(feed(&mut member, 2, input).is_ok());
    }
    let effects = testing::step(&mut member, node(2), Input::Command(Command::Leave)).unwrap();
    let cancelled = effects.iter().filter(|effect| matches!(effect, Effect::CancelTimer(_)));
    assert_eq!(cancelled.count(), 3);
    assert_eq!(testing::refusal(&scene, node(1), Command::Join), Refusal::Busy);
    for command in [Command::Join, Command::Leave, wish(1)] {
        assert_eq!(feed(&mut member, 2, Input::Command(command)), Err(Refusal::NotMember));
    }
}

/// What a peer makes up is ignored, or costs no more than a window of memory.
#[test]
fn nonsense_from_a_peer_does_no_harm() {
    let mut config = analysed(1.0, 0.0, 1.0, 0.0);
    config.window = 8;
    let scene = scene(&Named::Path, 3, config);
    let member = scene.boot(node(3));
    let unit = |sender, number| MessageId { sender: node(sender), number };
    let request = |unit, asker| {
        Msg::Request(Request { unit, asker: node(asker), distance: Span::ZERO, first: true })
    };
    for (from, msg) in [
        (1, Msg::Data(unit(1, 1))),
        (2, Msg::Data(unit(3, 1))),
        (2, Msg::Data(unit(9, 1))),
        (2, request(unit(1, 1), 3)),
        (2, request(unit(3, 1), 1)),
        (2, request(unit(1, 1), 9)),
    ] {
        testing::ignores(&member, 3, from, msg);
    }
    let far = |number| {
        let mut member = member.clone();
        let msg = Msg::Data(unit(1, number));
        feed(&mut member, 3, Input::Message { from: node(2), msg }).unwrap().len()
    };
    // Up to seven missing units with a timer each, and the delivery.
    assert_eq!((far(1), far(8), far(9), far(u32::MAX), far(0)), (1, 8, 0, 0, 0));
    let mut member = member.clone();
    let tops = Vec::from([(node(1), 8), (node(1), u32::MAX), (node(3), 5), (node(9), 1)]);
    let session = Session { member: node(1), sent: Time(u64::MAX), tops, echoes: Vec::new() };
    let msg = Msg::Session(session);
    let effects =
        testing::step(&mut member, node(3), Input::Message { from: node(2), msg }).unwrap();
    assert_eq!(effects.len(), 8);
    assert!(effects.iter().all(|effect| matches!(effect, Effect::SetTimer { .. })));
}

/// Session messages that show every loss, with as few of them as can be.
fn told_once() -> Config {
    Config { quiet: 1, distances_given: true, ..Config::default() }
}

#[test]
fn every_interleaving_holds() {
    let states = |messages, config| {
        let scene = scene(&Named::Path, 3, config);
        testing::exhaust(&scene, &users(&scene, &[1], messages, 1.0), &quiet(1, 0))
    };
    let quiet = analysed(1.0, 1.0, 1.0, 1.0);
    assert_eq!((states(2, quiet), states(1, told_once())), (17_849, 1_576_137));
}

/// One joins and one leaves, at any time.
#[test]
fn every_interleaving_of_a_join_and_a_leave_holds() {
    let mut scene = scene(&Named::Path, 3, analysed(1.0, 1.0, 1.0, 1.0));
    scene.setup.members.remove(node(3));
    let pattern = Pattern {
        joins: [(node(3), Span::UNIT)].into(),
        leaves: [(node(2), Span::UNIT)].into(),
        ..Pattern::default()
    };
    let users = users_of(&scene, &[1], 2, pattern);
    assert_eq!(testing::exhaust(&scene, &users, &quiet(1, 0)), 1_051);
}

#[test]
fn mistakes_are_caught() {
    let catch = |mistake| {
        let scene = scene(&Named::Path, 3, told_once());
        let users = users(&scene, &[1], 1, 1.0);
        let (violation, records) = testing::catch(mistake, &scene, &users, &quiet(2, 0));
        (violation.property, records)
    };
    let caught = ["NoSecondRequest", "DeliverTwice"].map(catch);
    assert_eq!(caught, [("atomicity", 17), ("integrity", 14)]);
}

/// Mistakes that cost messages and nothing else show in what is counted.
#[test]
fn wasteful_mistakes_are_caught_by_counting() {
    let counts = |above| {
        let (_, report) = chain(5, above, analysed(1.0, 0.0, 1.0, 0.0));
        (report.tally("nack").sum, report.tally("repair").sum)
    };
    assert_eq!((counts(1), counts(0)), ((1, 1), (2, 1)));
    let (asked, _) = flaw::plant("NoSuppression", || counts(1));
    assert!(asked > 1, "everybody asks who does not keep quiet");
    assert_eq!(flaw::plant("NoHoldDown", || counts(0)), (2, 2));
}
