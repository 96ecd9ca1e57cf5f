//! Raymond's algorithm against its paper: costs, the complete trace of seven nodes, all orders.

use std::collections::BTreeMap;
use std::format;
use std::string::String;

use quorate_core::trace::{Happening, Outcome};
use quorate_core::{PerNode, Topology};
use quorate_sim::World;

use super::*;
use crate::mutex::testing::Trial;
use crate::testing::node;

/// The tree with these edges, its root at node 1.
fn tree(count: usize, edges: impl IntoIterator<Item = (u32, u32)>) -> Trial<Raymond> {
    let links: Vec<_> = edges.into_iter().map(|(a, b)| (node(a), node(b))).collect();
    let topology = Topology::undirected(count, &links).unwrap();
    let setup = Setup::along(&topology);
    let trial = Trial::on(topology, setup);
    Raymond::admit(&trial.scene).unwrap();
    trial
}

/// The binary tree 1-(2,3), 2-(4,5), 3-(6,7) and so on.
fn binary(count: u32) -> Trial<Raymond> {
    tree(count as usize, (2..=count).map(|child| (child / 2, child)))
}

fn line(count: u32) -> Trial<Raymond> {
    tree(count as usize, (1..count).map(|one| (one, one + 1)))
}

#[test]
fn a_request_climbs_to_the_token_and_the_token_comes_down() {
    let log = binary(7).wanting_at(&[(4, 0.0), (6, 10.0)]).run();
    assert_eq!(log.sent[..4], ["REQUEST 4>2", "REQUEST 2>1", "TOKEN 1>2", "TOKEN 2>4"]);
    assert_eq!(log.counts(["REQUEST", "TOKEN"]), [2 + 4, 2 + 4]);
    assert_eq!(log.entries(), [(4.0, 4), (18.0, 6)]);
}

#[test]
fn the_worst_case_is_twice_the_diameter() {
    let log = line(5).wanting(&[5]).run();
    assert_eq!(log.counts(["REQUEST", "TOKEN"]), [4, 4]);
    for count in 2..=16 {
        // The two ends of the longest path, one after the other.
        let last_on_the_right = (0..).map(|k| 3_u32 << k).take_while(|&n| n <= count).last();
        let deepest = (0..).map(|k| 2_u32 << k).take_while(|&n| n <= count).last().unwrap();
        let ends = [(deepest, 0.0), (last_on_the_right.unwrap_or(1), 100.0)];
        let cost = |ends| binary(count).wanting_at(ends).stay(0.0).run().report.messages;
        let worst = cost(&ends) - cost(&ends[..1]);
        assert_eq!(worst as f64, 2.0 * diameter(f64::from(count)), "{count} nodes");
    }
}

/// Everything that happens, by time.
fn chronicle(trial: &Trial<Raymond>) -> Vec<String> {
    let mut lines: BTreeMap<u64, String> = BTreeMap::new();
    let Trial { scene, network, faults, .. } = trial;
    let mut world = World::new(scene, trial.users(), (), network, faults, 1);
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
    let lines = chronicle(&binary(7));
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
    let log = binary(7).run();
    assert_eq!((log.counts(["REQUEST", "TOKEN"]), log.report.messages), ([10, 10], 20));
}

#[test]
fn about_four_messages_when_everybody_always_wants() {
    let near = |trial: Trial<Raymond>, messages: f64, delay: f64| {
        let log = trial.run();
        let found = (log.per_entry(), log.sync_delay(1.0));
        let off = (found.0 - messages).abs().max((found.1 - delay).abs());
        assert!(off < 0.02, "{found:?} is not {:?}", (messages, delay));
    };
    near(binary(7).wishes(200), 3.42, 1.71);
    let leaves: Vec<_> = (2..=7).flat_map(|leaf| [leaf; 200]).collect();
    near(tree(7, (2..=7).map(|leaf| (1, leaf))).wanting(&leaves), 4.0, 2.0);
}

#[test]
fn a_holder_enters_again_for_nothing() {
    let log = line(3).wanting_at(&[(1, 0.0), (1, 5.0)]).run();
    assert_eq!((log.report.messages, log.told.len()), (0, 2));
}

#[test]
fn a_node_can_be_booted_inside() {
    // From below the root, the pointers above the holder lead down.
    let trial = line(3).holder(3).boots_inside([(6.0, 2), (12.0, 1), (19.0, 3)]);
    assert_eq!(trial.states(), 170);
}

#[test]
fn a_tree_that_the_links_do_not_form_is_not_admitted() {
    let refused = |parents: &[u32]| {
        let mut scene = line(3).scene;
        let parents = PerNode::new(parents.len(), |n| NodeId::new(parents[n.index()]));
        scene.setup.tree = Tree::Parents(parents.into());
        Raymond::admit(&scene).unwrap_err().reason
    };
    assert_eq!(refused(&[0, 1, 1]), "the tree has the edge 3-1, the links do not");
    assert_eq!(refused(&[0, 3, 2]), "nodes 1 and 2 are not in the same tree");
    assert_eq!(refused(&[0, 1, 0]), "nodes 1 and 3 are not in the same tree");
    assert_eq!(refused(&[0, 1]), "the tree has 2 nodes, not 3");
}

#[test]
fn foreign_messages_are_ignored() {
    line(3).ignores(2, [(9, Msg::Request), (1, Msg::Token), (9, Msg::Token)]);
}

#[test]
fn a_lost_message_ends_liveness() {
    assert_eq!(binary(4).wishes(20).loss(0.05).broken(), ["liveness"]);
}

#[test]
fn a_thousand_nodes_under_any_latency() {
    let log = binary(1_000).wishes(3).stay(0.1).latency("uniform:0.1..3").run();
    assert_eq!(log.told.len(), 3_000);
}

#[test]
fn every_interleaving_holds() {
    assert_eq!((binary(3).wishes(2).states(), line(3).wishes(2).states()), (1_004, 1_012));
    assert_eq!((binary(4).wishes(2).states(), binary(5).states()), (13_954, 7_597));
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let trial = binary(3).wishes(2);
    assert_eq!(trial.catch("AskFirst"), ("liveness", 16));
    assert_eq!(trial.catch("KeepToken"), ("safety", 7));
}
