//! The claims of the header: the lecture's example, costs, losses of parents and roots.

use std::vec::Vec;

use quorate_core::{Effect, Input, Time, Topology};
use quorate_sim::{Draw, Faults, Report, World};

use super::*;
use crate::election::Initiators;
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
    let choose = |ties, is_late| {
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
        let mut answers = [(3, None), (4, Some(2)), (5, Some(1)), (6, Some(1)), (7, Some(3))];
        if is_late {
            answers.reverse();
        }
        for (from, level) in answers {
            take(from, Msg::Level(level.map(|level| (level, lead))));
        }
        assert!(effects.contains(&Effect::Emit(Event::Following(lead.rank))));
        (newcomer.level, newcomer.parent)
    };
    // In the list, whichever answer comes first.
    for is_late in [false, true] {
        assert_eq!(choose(Ties::Switch, is_late), (Some(2), Some(node(6))));
        assert_eq!(choose(Ties::Keep, is_late), (Some(2), Some(node(5))));
    }
}

#[test]
fn when_all_are_offered_everybody_hangs_below_the_root() {
    for count in 2..=16u32 {
        let log = trial(count as usize, ALL).started_by(&[count]).run();
        let n = u64::from(count);
        assert_eq!(log.report.messages, (n - 1) * (n + 3));
        assert_eq!(log.told_of("Parent(1)").len(), count as usize - 1);
        assert_eq!(log.told_of("Leading"), [(0.0, 1)]);
        assert!(log.told_of("Following").iter().all(|(at, _)| *at <= 4.0));
    }
    let log = trial(1, 3).run();
    assert_eq!((log.report.messages, log.told_of("Leading")), (0, [(0.0, 1)].into()));
}

/// Nodes 2 to 5 arrive one after the other: each is offered only those who are there already, and
/// the first of them is the root. Node 1, the registry, never does.
#[test]
fn the_tree_grows_by_arrivals() {
    let trial = arriving(5, 1, &[2, 3, 4, 5]);
    let wishes = Initiators::staggered([2, 3, 4, 5].map(node).into_iter().collect(), units(50.0));
    let (tree, report) = tree(Trial { wishes, ..trial }, 1);
    assert!(report.holds(), "{report:?}");
    assert_eq!(tree[0], (1, None, None), "who does not arrive is in no tree");
    assert_eq!(tree[1], (2, Some(0), None));
    for (number, level, parent) in &tree[2..] {
        assert!(level.is_some() && *parent < Some(*number), "{tree:?}");
    }
}

/// They arrive when they are asked, all at once.
fn arriving(count: usize, offers: u32, starters: &[u32]) -> Trial<RegistryTree> {
    let mut trial = trial(count, offers).started_by(starters);
    trial.scene.config.arrive = Arrive::Asked;
    trial
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
    // Node 1 is the registry, and may not have arrived.
    let tree: Vec<_> =
        tree.iter().filter(|(node, level, _)| *node != 1 || level.is_some()).collect();
    let level_of = |number: Option<u32>| tree.iter().find(|(node, ..)| Some(*node) == number)?.1;
    let follows = |parent, level| level_of(parent).map(|above| above + 1) == level;
    tree.iter().filter(|(_, level, _)| *level == Some(0)).count() == 1
        && tree.iter().all(|&&(_, level, parent)| level == Some(0) || follows(parent, level))
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
    // All but the registry, so that the root can be lost.
    let starters: Vec<u32> = (2..=count as u32).collect();
    let trial = arriving(count, 1 + seed as u32 % 3, &starters);
    let trial = trial.latency("uniform:0.1..3").faults(faults.clone());
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
    let faults = crashes_and_returns(&[(2, 50.0), (8, 100.0)], &[(2, 150.0)]);
    let faults = Faults { detection: Some(units(2.0)), ..faults };
    let run = |first| {
        let mut trial = arriving(8, 3, &[2, 3, 4, 5, 6, 7, 8]).faults(faults.clone());
        trial.scene.config.first = first;
        trial.run()
    };
    let log = run(false);
    assert_eq!(log.told_of("Leading"), [(2.0, 2), (53.0, 8), (103.0, 7)]);
    assert_eq!(log.told.last().unwrap().2, "Following(7)", "who is back does not take over");
    assert_eq!(run(true).told_of("Leading"), [(2.0, 2), (53.0, 3)]);
}

#[test]
fn every_interleaving_holds() {
    let states =
        |count, offers, starters: &[u32]| trial(count, offers).started_by(starters).states();
    let found = [states(3, ALL, &[1, 2, 3]), states(3, 1, &[1, 2, 3]), states(4, 1, &[2])];
    assert_eq!(found, [1_128, 864, 10_434]);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let trial = trial(3, ALL).started_by(&[2]);
    let catch = |mistake| trial.catch(mistake);
    let found = [catch("MinusOne"), catch("NobodyIsEnrolled")];
    assert_eq!(found, [("uniqueness", 8), ("termination", 7)]);
}
