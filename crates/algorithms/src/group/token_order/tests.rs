//! Costs, published runs, losses, every interleaving, and planted mistakes.

use std::string::ToString;
use std::vec::Vec;

use quorate_check::Plan;
use quorate_core::{Input, PerNode, Time, Wait, Workload};
use quorate_sim::{Latency, Pace, Partition, Report, Slow, World};

use super::*;
use crate::faults::time;
use crate::flaw;
use crate::group::testing::{Trial, deliveries, quiet, users, wish};
use crate::group::{MessageId, Pattern, Senders};
use crate::testing::{feed, ignores, node, refusal, units};

fn trial(count: usize, per_visit: u32) -> Trial<TokenOrder> {
    Trial::of(count, Config { per_visit })
}

/// Users of which all send so many messages, as fast as they can.
fn eager(count: usize, messages: u32) -> Senders {
    let pattern = Pattern { gap: Span::ZERO, ahead_max: 64, ..Pattern::default() };
    let everybody = NodeSet::first(count);
    Senders::new(count, &everybody, &everybody, messages, pattern)
}

#[test]
fn one_multicast_in_a_ring_at_rest_costs_four_messages_per_member() {
    for count in 2..=16 {
        let log = trial(count, 1).sending(users(count, &[1], 1)).run();
        let costs = TokenOrder::META.costs.iter().map(|cost| (cost.value)(count as f64));
        let measured = [log.count("DATA"), log.report.messages].map(|messages| messages as f64);
        assert!(costs.eq(measured), "{measured:?}");
        assert_eq!(log.count("WAKE"), 1);
        assert_eq!(log.count("TOKEN"), 2 * count as u64);
        assert_eq!(log.told_of("deliver").len(), count);
    }
}

/// Where everybody sends one message per visit there is one TOKEN for n-1 DATA, and nearly two
/// rounds more until all know that all have everything.
#[test]
fn under_load_a_multicast_costs_one_token_more_than_its_copies() {
    let tokens_more = |count: usize| {
        let log = trial(count, 1).sending(eager(count, 20)).run();
        let sent = 20 * count as u64;
        assert_eq!(log.count("DATA"), sent * (count as u64 - 1));
        log.count("TOKEN") - sent
    };
    for count in 2..=16 {
        assert_eq!(tokens_more(count), 2 * (count as u64 - 1));
    }
}

#[test]
fn the_token_is_fetched_then_it_takes_one_delay() {
    let log = trial(3, 8).sending(users(3, &[1], 1)).run();
    assert_eq!(log.told_of("deliver 1:1"), [(3.0, 1), (4.0, 2), (4.0, 3)]);
    let log = trial(3, 8).sending(users(3, &[3], 1)).run();
    assert_eq!(log.told_of("deliver 3:1"), [(1.0, 3), (2.0, 1), (2.0, 2)]);
    let log = trial(1, 8).sending(users(1, &[1], 3)).run();
    assert_eq!((log.report.messages, log.told_of("deliver").len()), (0, 3));
}

/// Who wants to be sure waits until `aru` has gone round twice; what comes behind waits too.
#[test]
fn safe_delivery_waits_until_all_have_it() {
    let pattern = Pattern { uniform: true, ..Pattern::default() };
    let (members, sender) = (NodeSet::first(3), [node(1)].into_iter().collect());
    let log = trial(3, 8).sending(Senders::new(3, &members, &sender, 1, pattern)).run();
    assert_eq!(log.told_of("deliver 1:1"), [(6.0, 1), (7.0, 2), (8.0, 3)]);
}

/// Users that send so many messages each, all at once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Script(PerNode<(u32, u32)>);

impl Workload<Command, Event> for Script {
    fn next(&self, node: NodeId) -> Option<(Command, Wait)> {
        let (sent, wished) = self.0[node];
        let wish = Wish { number: sent + 1, order: Order::Total, uniform: false };
        (sent < wished).then_some((Command::Multicast(wish), Wait::For(Span::ZERO)))
    }

    fn gave(&mut self, node: NodeId, _: &Command) -> Option<NodeId> {
        self.0[node].0 += 1;
        None
    }

    fn told(&mut self, _: NodeId, _: &Event) -> Option<NodeId> {
        None
    }

    fn crashed(&mut self, _: NodeId) -> Option<NodeId> {
        None
    }
}

/// What a visit left behind: where it was, the token, what that member takes for safe, and what
/// really all have received.
type Visit = (u32, Token, u64, u64);

/// Spec 5d: A sends 2, B sends 1, C misses place 2. All visits, and what the run came to.
fn golden() -> (Vec<Visit>, Report) {
    let Trial { scene, mut network, faults, .. } = trial(3, 8);
    // From A to C go WAKE, place 1 and place 2, which comes when nobody needs it any more.
    network.slow = [Slow { from: node(1), to: node(3), nth: 3, latency: units(50.0) }].into();
    let users = Script(PerNode::new(3, |node| (0, 2 - node.index() as u32)));
    let mut world = World::new(&scene, users, (), &network, &faults, 1);
    world.start();
    let (mut visits, mut hops) = (Vec::new(), [1, 2, 3]);
    while world.run(1, Time(u64::MAX)) == Pace::More {
        for (number, hop) in (1..=3).zip(&mut hops) {
            let it = world.node(node(number));
            if let Whereabouts::Passed(token) | Whereabouts::Parked(token) = &it.token
                && core::mem::replace(hop, it.hop) != it.hop
            {
                let all = (1..=3).map(|number| world.node(node(number)).aru).min();
                visits.push((number, token.clone(), it.safe, all.unwrap()));
            }
        }
    }
    (visits, world.finish().0)
}

#[test]
fn a_missed_message_is_asked_for_and_sent_again() {
    let (visits, report) = golden();
    assert!(report.holds());
    let short = |(number, token, safe, _): &Visit| {
        let Token { seq, aru, aru_id, rtr, .. } = token;
        (*number, *seq, *aru, aru_id.map_or(0, NodeId::number), rtr.clone(), *safe)
    };
    let visits: Vec<_> = visits.iter().map(short).collect();
    let none = Vec::new;
    let published = [
        (1, 2, 2, 0, none(), 0),
        (2, 3, 3, 0, none(), 0),
        (3, 3, 1, 3, [2].into(), 0),
        (1, 3, 1, 3, none(), 1),
        (2, 3, 1, 3, none(), 1),
        (3, 3, 3, 0, none(), 1),
        (1, 3, 3, 0, none(), 1),
        (2, 3, 3, 0, none(), 1),
        (3, 3, 3, 0, none(), 3),
    ];
    assert_eq!(visits[..9], published);
    // Two more until all know that all have everything; then it is parked.
    assert_eq!(visits[9..], [(1, 3, 3, 0, none(), 3), (2, 3, 3, 0, none(), 3)]);
    let broadcasts = report.by_kind.iter().find(|(kind, _)| *kind == "DATA");
    assert_eq!(broadcasts, Some(&("DATA", 4 * 2)));
    assert_eq!((report.tally("repair").sum, report.tally("nack").sum), (1, 1));
}

/// The pitfall: whoever raises `aru` for somebody else takes for safe what that one misses.
#[test]
fn without_aru_id_aru_overtakes_who_misses_something() {
    let overtaken = |visits: &[Visit]| visits.iter().position(|(_, _, safe, all)| safe > all);
    assert_eq!(overtaken(&golden().0), None);
    let (visits, _) = flaw::plant("NoAruId", golden);
    assert_eq!(overtaken(&visits), Some(3));
}

/// And then it forgets it: what was lost twice is lost for good.
#[test]
fn without_aru_id_messages_are_lost_for_good() {
    let outcome =
        |seed| trial(4, 4).sending(eager(4, 10)).loss(0.3).until(5_000.0).simulate(seed).holds();
    assert!((1..=10).all(outcome));
    let kept = flaw::plant("NoAruId", || (1..=10).filter(|seed| outcome(*seed)).count());
    assert_eq!(kept, 6);
}

#[test]
fn losses_duplicates_and_overtaking_change_nothing() {
    for count in [2, 3, 5, 8] {
        let mut trial = trial(count, 3);
        trial.network.latency = Latency::Uniform(units(0.2), units(2.0));
        trial.network.loss = 0.25;
        trial.network.duplicate = 0.1;
        let log = trial.sending(eager(count, 12)).run();
        let logs = deliveries(&log, count as u32);
        assert_eq!(logs[0].len(), 12 * count);
        assert!(logs.iter().all(|other| *other == logs[0]));
        assert!(log.report.tally("buffered").max <= FAR);
        assert!(log.report.tally("repair").sum > 0 && log.report.tally("duplicate").sum > 0);
    }
}

/// The token from 1 to 2 is lost; 1 hears nothing for so long, and sends it again. So do 2 and 3,
/// which passed it on before and are told that it has come.
#[test]
fn a_lost_token_is_repeated() {
    let run = |until: f64| {
        let mut trial = trial(3, 8);
        let sides = [[node(1)], [node(2)]].map(|side| side.into_iter().collect()).into();
        let cut = Partition { sides, from: time(4.5), until: time(until) };
        trial.network.partitions = [cut].into();
        trial.sending(users(3, &[3], 1)).run()
    };
    let (healthy, lost) = (run(4.5), run(5.5));
    assert_eq!(lost.report.lost, 1);
    assert_eq!(lost.count("TOKEN"), healthy.count("TOKEN") + 3);
    assert_eq!(lost.report.end.since(healthy.report.end), units(8.0));
}

#[test]
fn flow_control_keeps_to_the_window() {
    let log = trial(2, 64).sending(eager(2, 400)).run();
    assert_eq!(log.told_of("deliver").len(), 1_600);
    assert!(log.report.tally("buffered").max <= 2 * WINDOW, "{:?}", log.report.tally("buffered"));
}

#[test]
fn what_makes_no_sense_is_ignored() {
    let trial = trial(3, 8);
    let it = trial.scene.boot(node(1));
    let token = Token::first(4);
    ignores(&it, 1, 2, Msg::Token(token.clone()));
    ignores(&it, 1, 4, Msg::Token(token.clone()));
    ignores(&it, 1, 3, Msg::Token(Token { hop: 5, ..token.clone() }));
    ignores(&it, 1, 3, Msg::Token(Token { seq: u64::MAX, ..token.clone() }));
    ignores(&it, 1, 3, Msg::Token(Token { aru: 1, ..token.clone() }));
    ignores(&it, 1, 3, Msg::Token(Token { rtr: [1; 65].into(), ..token }));
    let content = Content { id: MessageId { sender: node(2), number: 1 }, uniform: false };
    ignores(&it, 1, 2, Msg::Data(FAR + 1, content));
    ignores(&it, 1, 2, Msg::Data(0, content));
    ignores(&it, 1, 2, Msg::Heard(9));
    ignores(&it, 1, 2, Msg::Wake(1));
    ignores(&it, 1, 2, Msg::Wake(u64::MAX));
    assert_eq!(refusal(&trial.scene, node(1), Command::Leave), Refusal::NotMember);
}

#[test]
fn beyond_the_bound_wishes_are_refused() {
    let trial = trial(2, 8);
    let mut it = trial.scene.boot(node(1));
    for number in 1..=PENDING_MAX as u32 {
        assert!(feed(&mut it, 1, Input::Command(wish(number))).is_ok());
    }
    assert_eq!(feed(&mut it, 1, Input::Command(wish(100))), Err(Refusal::Busy));
    let options = |value| TokenOrder::configure(&Options(&[("per-visit", value)]));
    assert_eq!(options("3"), Ok(Config { per_visit: 3 }));
    let reason = "--per-visit: 65 is not a number from 1 to 64";
    assert_eq!(options("65").unwrap_err().to_string(), reason);
}

fn plan(losses: u32, duplicates: u32) -> Plan {
    Plan { states_max: 3_000_000, ..quiet(losses, duplicates) }
}

#[test]
fn every_interleaving_holds_with_losses_and_duplicates() {
    let states = |senders: &[u32], messages, plan: &Plan| {
        trial(3, 1).sending(users(3, senders, messages)).plan(plan.clone()).states()
    };
    let plain = [states(&[1], 2, &plan(0, 0)), states(&[1, 2], 1, &plan(0, 0))];
    let faulty = [(1, 0), (0, 1), (2, 0), (1, 1)];
    let faulty = faulty.map(|(losses, duplicates)| states(&[1, 2], 1, &plan(losses, duplicates)));
    assert_eq!((plain, faulty), ([126, 359], [3_763, 7_396, 16_305, 61_994]));
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake| trial(3, 1).sending(users(3, &[1, 2], 1)).plan(plan(1, 0)).catch(mistake);
    assert_eq!(catch("OwnNumbers"), ("total_order", 11));
    assert_eq!(catch("SkipGaps"), ("total_order", 10));
}
