//! The claims of the header: the lecture's example, costs, losses of parents and roots.

use std::format;
use std::vec::Vec;

use quorate_core::{Effect, Input, Time, Topology};
use quorate_sim::{Draw, Faults, Report, World};

use super::*;
use crate::election::testing::Trial;
use crate::faults::crashes_and_returns;
use crate::flaw;
use crate::testing::{node, units};

const ALL: u32 = 1_000;

/// By node: its number, its level and its parent.
type Tree = Vec<(u32, Option<u32>, Option<u32>)>;

fn trial(count: usize, offers: u32) -> Trial<RegistryTree> {
    let config = Config { offers, ..Config::default() };
    Trial::ascending(Topology::complete(count), config)
}

/// The levels 2, 1, 1, 3 are offered, in this order, after a first candidate that is in no tree.
#[test]
fn of_equal_levels_the_last_one_is_chosen_or_the_first() {
    let choose = |ties| {
        let mut scene = trial(8, ALL).scene;
        scene.config.ties = ties;
        let mut newcomer = scene.boot(node(2));
        let lead = Lead { reign: 1, root: node(8), rank: scene.setup.ranks[node(8)] };
        let candidates: Vec<_> = [3, 4, 5, 6, 7].map(node).into();
        let mut effects = Vec::new();
        let mut take = |from, msg| {
            let mut dice = Draw::new(1, 0);
            let mut cx = Ctx::new(node(2), Time::ZERO, &mut dice, &mut effects);
            newcomer.step(&mut cx, Input::Message { from: node(from), msg }).unwrap();
        };
        take(1, Msg::Entries(lead, candidates));
        for (from, level) in [(3, None), (4, Some(2)), (5, Some(1)), (6, Some(1)), (7, Some(3))] {
            take(from, Msg::Level(level.map(|level| (level, lead))));
        }
        assert!(effects.contains(&Effect::Emit(Event::Following(lead.rank))));
        (newcomer.level, newcomer.parent)
    };
    assert_eq!(choose(Ties::Switch), (Some(2), Some(node(6))));
    assert_eq!(choose(Ties::Keep), (Some(2), Some(node(5))));
}

#[test]
fn when_all_are_offered_everybody_hangs_below_the_root() {
    for count in 2..=16u32 {
        let log = trial(count as usize, ALL).started_by(&[count]).run();
        let n = u64::from(count);
        assert_eq!(log.report.messages, 2 * n * (n - 1) + 1);
        assert_eq!(log.told_of(&format!("Parent({count})")).len(), count as usize - 1);
        assert_eq!(log.told_of("Leading"), [(2.0, count)]);
        assert!(log.told_of("Following").iter().all(|(at, _)| *at <= 5.0));
    }
    let log = trial(1, 3).run();
    assert_eq!((log.report.messages, log.told_of("Leading")), (0, [(0.0, 1)].into()));
}

#[test]
fn the_registry_can_name_the_first_member_instead() {
    let mut trial = trial(5, 3);
    trial.scene.config.first = true;
    assert_eq!(trial.run().told_of("Leading").len(), 1);
    assert_eq!(trial.started_by(&[4]).run().told_of("Leading"), [(1.0, 1)]);
}

/// Runs to the end, and takes the tree of the living.
fn tree(trial: Trial<RegistryTree>, seed: u64) -> (Tree, Report) {
    let Trial { scene, wishes: users, network, faults, .. } = trial;
    let mut world = World::new(&scene, users, (), &network, &faults, seed);
    world.run_to_rest();
    let dead: Vec<_> = faults.crashes.iter().map(|crash| crash.node).collect();
    let back: Vec<_> = faults.recoveries.iter().map(|recovery| recovery.node).collect();
    let nodes = NodeId::first(scene.count());
    let alive = nodes.filter(|node| !dead.contains(node) || back.contains(node));
    let tree = alive.map(|at| {
        let RegistryTree { level, parent, .. } = world.node(at);
        (at.number(), *level, parent.map(NodeId::number))
    });
    let tree = tree.collect();
    (tree, world.finish().0)
}

/// Is every level one more than the parent's, and one node the root?
fn is_sound(tree: &Tree) -> bool {
    let level_of = |number: Option<u32>| tree.iter().find(|(node, ..)| Some(*node) == number)?.1;
    let follows = |parent, level| level_of(parent).map(|above| above + 1) == level;
    tree.iter().filter(|(_, level, _)| *level == Some(0)).count() == 1
        && tree.iter().all(|&(_, level, parent)| level == Some(0) || follows(parent, level))
}

/// A run in which a third of the nodes crash, and half of these come back.
fn turmoil(seed: u64) -> (Tree, Report) {
    let mut draw = Draw::new(seed, 9);
    let count = 4 + draw.below(20) as usize;
    let mut victims: Vec<u32> = (2..=count as u32).collect();
    draw.shuffle(&mut victims);
    victims.truncate(count / 3);
    let crash = |&victim: &u32| (victim, draw.below(400) as f64 / 10.0);
    let crashes: Vec<_> = victims.iter().map(crash).collect();
    // Long enough after its crash for everybody to know.
    let back = |&(victim, at): &(u32, f64)| (victim, at + 60.0);
    let returns: Vec<_> = crashes.iter().take(count / 6).map(back).collect();
    let faults = crashes_and_returns(&crashes, &returns);
    let faults = Faults { detection: Some(units(2.0)), ..faults };
    let trial = trial(count, 1 + seed as u32 % 3).latency("uniform:0.1..3").faults(faults.clone());
    tree(trial, seed)
}

/// Whatever crashes, whenever, and comes back: the living form a tree below one root.
#[test]
fn the_living_always_form_a_tree() {
    let mut deepest = 0;
    for seed in 0..400 {
        let (tree, report) = turmoil(seed);
        let broken: Vec<_> = report.violations().collect();
        assert!(broken.is_empty() && is_sound(&tree), "seed {seed}: {broken:?} {tree:?}");
        deepest = deepest.max(tree.iter().filter_map(|(_, level, _)| *level).max().unwrap_or(0));
    }
    assert!(deepest >= 4, "{deepest}");
}

/// Whoever takes a parent of its own level or a greater one can take one of its own subtree.
#[test]
fn a_parent_of_any_level_can_make_a_circle() {
    let unsound = |seed: &u64| !is_sound(&turmoil(*seed).0);
    assert!(flaw::plant("AnyLevel", || (0..400).any(|seed| unsound(&seed))));
}

#[test]
fn the_next_best_takes_over_from_a_lost_root() {
    let faults = crashes_and_returns(&[(8, 50.0), (7, 100.0)], &[(8, 150.0)]);
    let faults = Faults { detection: Some(units(2.0)), ..faults };
    let log = trial(8, 3).started_by(&[3]).faults(faults.clone()).run();
    assert_eq!(log.told_of("Leading"), [(2.0, 8), (53.0, 7), (103.0, 6)]);
    assert_eq!(log.told.last().unwrap().2, "Following(6)", "who is back does not take over");
}

#[test]
fn every_interleaving_holds() {
    let states =
        |count, offers, starters: &[u32]| trial(count, offers).started_by(starters).states();
    assert_eq!(states(3, ALL, &[1, 2, 3]), 5_388);
    assert_eq!(states(3, 1, &[1, 2, 3]), 6_436);
    assert_eq!(states(4, 1, &[2]), 14_266);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let trial = trial(3, ALL).started_by(&[2]);
    let catch = |mistake| trial.catch(mistake);
    assert_eq!(catch("MinusOne"), ("uniqueness", 8));
    assert_eq!(catch("TellOne"), ("termination", 13));
}
