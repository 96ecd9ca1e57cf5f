//! Raymond's algorithm against its paper: costs, the complete trace of seven nodes, all orders.

use std::collections::BTreeMap;
use std::format;
use std::string::String;

use quorate_check::Plan;
use quorate_core::trace::{Happening, Outcome};
use quorate_core::{Input, PerNode, Span, Topology};
use quorate_sim::{Faults, Network, World};

use super::*;
use crate::mutex::{Load, Users};
use crate::testing::{self, Log, node, units, wishes_at};

/// A scene on the tree with these edges, its root at node 1.
fn scene(count: usize, edges: &[(u32, u32)], holder: Option<u32>) -> Scene<Raymond> {
    let links: Vec<_> = edges.iter().map(|&(a, b)| (node(a), node(b))).collect();
    let topology = Topology::undirected(count, &links).unwrap();
    let setup = Setup { holder: holder.map(node), ..Setup::along(&topology) };
    let scene = Scene::new(topology, setup, ());
    Raymond::admit(&scene).unwrap();
    scene
}

/// The binary tree 1-(2,3), 2-(4,5), 3-(6,7) and so on.
fn binary(count: usize, holder: Option<u32>) -> Scene<Raymond> {
    let edges: Vec<_> = (2..=count as u32).map(|child| (child / 2, child)).collect();
    scene(count, &edges, holder)
}

fn line(count: u32, holder: Option<u32>) -> Scene<Raymond> {
    let edges: Vec<_> = (1..count).map(|one| (one, one + 1)).collect();
    scene(count as usize, &edges, holder)
}

fn heavy(count: usize, wishes: u32, stay: f64) -> Users {
    Users::new(count, &Setup::new(count), wishes, Load::Heavy, units(stay))
}

fn run(scene: &Scene<Raymond>, users: Users) -> Log {
    testing::run(scene, users, &Network::default(), &Faults::default(), |_| {})
}

#[test]
fn a_request_climbs_to_the_token_and_the_token_comes_down() {
    let log = run(&binary(7, None), wishes_at(7, &Setup::new(7), &[(4, 0.0), (6, 10.0)], 1.0));
    assert_eq!(log.sent[..4], ["REQUEST 4>2", "REQUEST 2>1", "TOKEN 1>2", "TOKEN 2>4"]);
    assert_eq!((log.count("REQUEST"), log.count("TOKEN")), (2 + 4, 2 + 4));
    assert_eq!(log.told_of("Granted"), [(4.0, 4), (18.0, 6)]);
}

#[test]
fn the_worst_case_is_twice_the_diameter() {
    let log = run(&line(5, None), wishes_at(5, &Setup::new(5), &[(5, 0.0)], 1.0));
    assert_eq!((log.count("REQUEST"), log.count("TOKEN")), (4, 4));
    for count in 2..=16 {
        // The two ends of the longest path, one after the other.
        let last_on_the_right = (0..).map(|k| 3_u32 << k).take_while(|&n| n <= count).last();
        let deepest = (0..).map(|k| 2_u32 << k).take_while(|&n| n <= count).last().unwrap();
        let (from, to) = (deepest, last_on_the_right.unwrap_or(1));
        let log = run(
            &binary(count as usize, None),
            wishes_at(count as usize, &Setup::new(count as usize), &[(from, 0.0)], 0.0),
        );
        let both = wishes_at(
            count as usize,
            &Setup::new(count as usize),
            &[(from, 0.0), (to, 100.0)],
            0.0,
        );
        let both = run(&binary(count as usize, None), both);
        let worst = both.report.messages - log.report.messages;
        assert_eq!(worst as f64, 2.0 * diameter(f64::from(count)), "{count} nodes");
    }
}

/// Everything that happens, by time.
fn chronicle(scene: &Scene<Raymond>, users: Users) -> Vec<String> {
    let mut lines: BTreeMap<u64, String> = BTreeMap::new();
    let (network, faults) = (Network::default(), Faults::default());
    let mut world = World::new(scene, users, (), &network, &faults, 1);
    world.trace(|record| {
        let line = lines.entry(record.at.in_units() as u64).or_default();
        if record.input == Happening::Command("Release".into()) {
            *line += &format!(" EXIT {}", record.node);
        }
        for effect in &record.effects {
            match effect {
                Outcome::Send { to, kind, .. } => {
                    *line += &format!(" {kind} {}>{}", record.node, to[0]);
                }
                Outcome::Emit(_) => *line += &format!(" ENTER {}", record.node),
                _ => {}
            }
        }
    });
    world.run_to_rest();
    drop(world);
    lines.into_iter().map(|(time, line)| format!("{time}:{line}")).collect()
}

/// All seven at time 0, stay 1: 20 messages.
#[test]
fn the_complete_trace_of_seven_nodes() {
    let lines = chronicle(&binary(7, None), heavy(7, 1, 1.0));
    let expected = [
        "0: ENTER 1 REQUEST 2>1 REQUEST 3>1 REQUEST 4>2 REQUEST 5>2 REQUEST 6>3 REQUEST 7>3",
        "1: EXIT 1 TOKEN 1>2 REQUEST 1>2",
        "2: ENTER 2",
        "3: EXIT 2 TOKEN 2>4 REQUEST 2>4",
        "4: ENTER 4",
        "5: EXIT 4 TOKEN 4>2",
        "6: TOKEN 2>5 REQUEST 2>5",
        "7: ENTER 5",
        "8: EXIT 5 TOKEN 5>2",
        "9: TOKEN 2>1",
        "10: TOKEN 1>3",
        "11: ENTER 3",
        "12: EXIT 3 TOKEN 3>6 REQUEST 3>6",
        "13: ENTER 6",
        "14: EXIT 6 TOKEN 6>3",
        "15: TOKEN 3>7",
        "16: ENTER 7",
        "17: EXIT 7",
    ];
    assert_eq!(lines, expected);
    let log = run(&binary(7, None), heavy(7, 1, 1.0));
    assert_eq!((log.count("REQUEST"), log.count("TOKEN"), log.report.messages), (10, 10, 20));
}

/// The mean number of messages per entry, and the mean time from an exit to the next entry.
fn saturated(scene: &Scene<Raymond>, users: Users, stay: f64) -> (f64, f64) {
    let log = run(scene, users);
    let entries = log.told_of("Granted");
    let gaps = entries.windows(2).map(|two| two[1].0 - two[0].0 - stay);
    let count = entries.len() as f64;
    (log.report.messages as f64 / count, gaps.sum::<f64>() / (count - 1.0))
}

#[test]
fn about_four_messages_when_everybody_always_wants() {
    let near = |found: (f64, f64), expected: (f64, f64)| {
        let off = (found.0 - expected.0).abs().max((found.1 - expected.1).abs());
        assert!(off < 0.02, "{found:?} is not {expected:?}");
    };
    near(saturated(&binary(7, None), heavy(7, 200, 1.0), 1.0), (3.42, 1.71));
    let star: Vec<_> = (2..=7).map(|leaf| (1, leaf)).collect();
    let leaves: Vec<_> = (2..=7).flat_map(|leaf| [(leaf, 0.0); 200]).collect();
    near(
        saturated(&scene(7, &star, None), wishes_at(7, &Setup::new(7), &leaves, 1.0), 1.0),
        (4.0, 2.0),
    );
}

#[test]
fn a_holder_enters_again_for_nothing() {
    let log = run(&line(3, None), wishes_at(3, &Setup::new(3), &[(1, 0.0), (1, 5.0)], 1.0));
    assert_eq!((log.report.messages, log.told.len()), (0, 2));
}

#[test]
fn a_node_can_be_booted_inside() {
    // From below the root, the pointers above the holder lead down.
    let scene = line(3, Some(3));
    let users = Users::new(3, &scene.setup, 1, Load::Heavy, units(5.0));
    let log = run(&scene, users.clone());
    assert_eq!(log.told_of("Granted"), [(6.0, 2), (12.0, 1), (19.0, 3)]);
    assert_eq!(testing::exhaust(&scene, &users, &Plan::default()), 170);
}

#[test]
fn a_tree_that_the_links_do_not_form_is_not_admitted() {
    let refused = |parents: [u32; 3]| {
        let mut scene = line(3, None);
        let parents = PerNode::new(3, |n| NodeId::new(parents[n.index()]));
        scene.setup.tree = Tree::Parents(parents.into());
        Raymond::admit(&scene).unwrap_err().reason
    };
    assert_eq!(refused([0, 1, 1]), "the tree has the edge 3-1, the links do not");
    assert_eq!(refused([0, 3, 2]), "nodes 1 and 2 are not in the same tree");
    assert_eq!(refused([0, 1, 0]), "nodes 1 and 3 are not in the same tree");
}

#[test]
fn wishes_out_of_turn_are_refused() {
    let scene = line(2, Some(1));
    assert_eq!(testing::refusal(&scene, node(1), Command::Acquire), Refusal::Busy);
    assert_eq!(testing::refusal(&scene, node(2), Command::Release), Refusal::NotHeld);
}

#[test]
fn foreign_messages_are_ignored() {
    let mut who = line(3, None).boot(node(2));
    let before = who.clone();
    for (from, msg) in [(9, Msg::Request), (1, Msg::Token), (9, Msg::Token)] {
        let input = Input::Message { from: node(from), msg };
        assert_eq!(testing::step(&mut who, node(2), input), Ok(Vec::new()));
        assert_eq!(who, before);
    }
}

#[test]
fn a_lost_message_ends_liveness() {
    let network = Network { loss: 0.05, ..Network::default() };
    let faults = Faults::default();
    let scene = binary(4, None);
    let log = testing::run_unjudged(&scene, heavy(4, 20, 1.0), &network, &faults, |_| {});
    let broken: Vec<_> = log.report.violations().map(|(_, v)| v.property).collect();
    assert_eq!(broken, ["liveness"]);
}

#[test]
fn a_thousand_nodes_under_any_latency() {
    let latency = "uniform:0.1..3".parse().unwrap();
    let network = Network { latency, ..Network::default() };
    let scene = binary(1_000, None);
    let log = testing::run(&scene, heavy(1_000, 3, 0.1), &network, &Faults::default(), |_| {});
    assert_eq!(log.told.len(), 3_000);
}

#[test]
fn every_interleaving_holds() {
    let holds = |scene: &Scene<Raymond>, wishes| {
        let users = Users::new(scene.count(), &scene.setup, wishes, Load::Heavy, Span::UNIT);
        testing::exhaust(scene, &users, &Plan::default())
    };
    assert_eq!((holds(&binary(3, None), 2), holds(&line(3, None), 2)), (1_004, 1_012));
    assert_eq!((holds(&binary(4, None), 2), holds(&binary(5, None), 1)), (13_954, 7_597));
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake| {
        let users = heavy(3, 2, 1.0);
        let (violation, records) =
            testing::catch(mistake, &binary(3, None), &users, &Plan::default());
        (violation.property, records)
    };
    assert_eq!([catch("AskFirst"), catch("KeepToken")], [("liveness", 16), ("safety", 7)]);
}
