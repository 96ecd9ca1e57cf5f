//! Every interleaving of three seeds that start, crash, come up again and lose their disks.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasher, DefaultHasher};
use std::vec::Vec;

use quorate_core::{Choices, Effect, Kept, Life, Time};

use super::*;
use crate::flaw::plant;

const COUNT: usize = 3;

/// Nobody draws lots here.
struct NoLots;

impl Choices for NoLots {
    fn choose(&mut self, _: u32) -> u32 {
        unreachable!("founding draws no lots")
    }
}

/// Three seeds, their disks, and what is on its way: in any order, and as often as it likes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct System {
    seeds: Vec<Option<Founding>>,
    disks: Vec<Kept<Sole<Standing>>>,
    lives: Vec<Life>,
    sent: BTreeSet<(NodeId, NodeId, Msg)>,
    /// Clusters that were ever founded.
    founded: BTreeSet<Instance>,
    /// Who ought to know of what, by what it has said and told.
    ought: BTreeSet<(NodeId, Instance)>,
    crashes: u8,
    wipes: u8,
}

impl System {
    fn step(&mut self, at: NodeId, deed: impl FnOnce(&mut Founding, &mut Ctx<'_, Founding>)) {
        let mut effects = Vec::new();
        let Some(seed) = &mut self.seeds[at.index()] else { return };
        deed(seed, &mut Ctx::new(at, Time::ZERO, &mut NoLots, &mut effects));
        for effect in effects {
            match effect {
                Effect::Send { to, msg } => {
                    if let Msg::Pledge(instance) = msg {
                        self.ought.insert((at, instance));
                    }
                    self.sent.insert((at, to, msg));
                }
                Effect::Multicast { to, msg } => {
                    self.sent.extend(to.iter().map(|to| (at, to, msg)));
                }
                Effect::Persist(record) => _ = self.disks[at.index()].put(record),
                Effect::Emit(Event::Founded(instance)) => {
                    self.founded.insert(instance);
                    self.ought.insert((at, instance));
                }
                Effect::Emit(Event::Joined(instance)) => {
                    self.ought.retain(|(node, _)| *node != at);
                    self.ought.insert((at, instance));
                }
                Effect::SetTimer { .. } | Effect::CancelTimer(()) | Effect::Emit(_) => {}
            }
        }
    }

    fn start(&mut self, at: NodeId) {
        let seeds = Seeds { count: COUNT, list: 1, found: true, patience: Span::UNIT };
        let kept = &self.disks[at.index()];
        let life = self.lives[at.index()];
        let waking = Waking { me: at, life, kept };
        self.seeds[at.index()] = Some(Founding::boot(Arc::new(seeds), &waking));
        self.step(at, Founding::on_start);
    }

    /// Everything that can happen next.
    fn next(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut can = |deed: &dyn Fn(&mut Self)| {
            let mut then = self.clone();
            deed(&mut then);
            all.push(then);
        };
        for (from, to, msg) in &self.sent {
            can(&|it| it.step(*to, |seed, cx| seed.on_message(cx, *from, *msg)));
        }
        for at in NodeId::first(COUNT) {
            match &self.seeds[at.index()] {
                None => can(&|it| it.start(at)),
                Some(_) => {
                    can(&|it| it.step(at, |seed, cx| seed.on_timer(cx, ())));
                    if self.crashes > 0 {
                        can(&|it| it.crash(at));
                    }
                }
            }
            // Not the last disk that ought to know of a cluster: without it there is none any more.
            let known = |cluster: &Instance| {
                let mut others = NodeId::first(COUNT).filter(|it| *it != at);
                others.any(|it| self.ought.contains(&(it, *cluster)))
            };
            let left = self.founded.iter().all(known);
            if self.wipes > 0 && left && self.seeds[at.index()].is_none() {
                can(&|it| it.wipe(at));
            }
        }
        all
    }

    fn wipe(&mut self, at: NodeId) {
        self.wipes -= 1;
        self.ought.retain(|(node, _)| *node != at);
        self.disks[at.index()] = Kept::new();
    }

    fn crash(&mut self, at: NodeId) {
        self.crashes -= 1;
        self.seeds[at.index()] = None;
        let life = &mut self.lives[at.index()];
        *life = life.next();
    }
}

/// Three seeds that have never been up.
fn blank(crashes: u8, wipes: u8) -> System {
    System {
        seeds: std::vec![None; COUNT],
        disks: std::vec![Kept::new(); COUNT],
        lives: std::vec![Life::FIRST; COUNT],
        sent: BTreeSet::new(),
        founded: BTreeSet::new(),
        ought: BTreeSet::new(),
        crashes,
        wipes,
    }
}

/// How many states three seeds can be in; and whether two clusters were founded in one of them.
fn explore(crashes: u8, wipes: u8) -> (usize, bool) {
    let begin = blank(crashes, wipes);
    // States are told apart by 64 bits of a hash.
    let print = |system: &System| {
        std::hash::BuildHasherDefault::<DefaultHasher>::default().hash_one(system)
    };
    let mut seen = HashSet::from([print(&begin)]);
    let mut open = std::vec![begin];
    while let Some(system) = open.pop() {
        if system.founded.len() > 1 {
            return (seen.len(), true);
        }
        for next in system.next() {
            if seen.insert(print(&next)) {
                open.push(next);
            }
        }
    }
    (seen.len(), false)
}

#[test]
fn three_seeds_found_one_cluster_whoever_crashes_and_loses_its_disk() {
    assert_eq!(explore(2, 2), (71_748, false));
}

#[test]
fn mistakes_found_two() {
    let mistakes = [("MostPledgesWillDo", 2), ("PledgeAgain", 2), ("PledgeNotKept", 3)];
    for (flaw, crashes) in mistakes {
        assert!(plant(flaw, || explore(crashes, 1)).1, "{flaw}");
    }
}

/// 2 pledges itself, loses its disk, and is counted all the same: the cluster is founded with 3. The
/// founder loses its disk and begins anew; 2 pledges itself to that, and hears of the first cluster
/// only now. If it joined, 3, which has to be replaced, would make the second one.
fn pledge_and_hear_of_another() -> usize {
    let [one, two, three] = [0, 1, 2].map(NodeId::at);
    let mut system = blank(3, 3);
    let hear = |system: &mut System, from: NodeId, to: NodeId, kind: &str| {
        let sent = system
            .sent
            .iter()
            .rev()
            .find(|(by, at, msg)| (*by, *at, msg.kind()) == (from, to, kind));
        if let Some((_, _, msg)) = sent.copied() {
            system.step(to, |seed, cx| seed.on_message(cx, from, msg));
        }
    };
    let replace = |system: &mut System, at: NodeId| {
        system.crash(at);
        system.wipe(at);
        system.start(at);
    };
    NodeId::first(COUNT).for_each(|at| system.start(at));
    let pledge = |system: &mut System, at: NodeId| {
        hear(system, one, at, "ASK");
        hear(system, at, one, "PLEDGE");
    };
    pledge(&mut system, two);
    replace(&mut system, two);
    pledge(&mut system, three);
    assert_eq!(system.founded.len(), 1);
    replace(&mut system, one);
    pledge(&mut system, two);
    hear(&mut system, one, two, "CLUSTER");
    if system.ought.iter().any(|(at, instance)| *at == two && system.founded.contains(instance)) {
        replace(&mut system, three);
        pledge(&mut system, three);
    }
    system.founded.len()
}

#[test]
fn a_pledge_holds() {
    assert_eq!(pledge_and_hear_of_another(), 1);
    assert_eq!(plant("PledgeDoesNotHold", pledge_and_hear_of_another), 2);
}

/// Nobody crashes: all belong to one cluster in the end, whatever the order.
#[test]
fn without_faults_all_belong_to_one_cluster() {
    let mut by_node = BTreeMap::new();
    let mut system = blank(0, 0);
    NodeId::first(COUNT).for_each(|at| system.start(at));
    // Whoever asked before the others were up asks again.
    system.step(NodeId::at(0), |seed, cx| seed.on_timer(cx, ()));
    for _ in 0..4 {
        for (from, to, msg) in system.sent.clone() {
            system.step(to, |seed, cx| seed.on_message(cx, from, msg));
        }
    }
    for at in NodeId::first(COUNT) {
        by_node.insert(at, system.seeds[at.index()].as_ref().and_then(Founding::cluster));
    }
    let clusters: BTreeSet<_> = by_node.values().collect();
    assert!(clusters.len() == 1 && !clusters.contains(&None), "{by_node:?}");
}

#[test]
fn two_and_four_seeds_are_refused_with_advice() {
    for count in [1, 3, 5] {
        assert!(Seeds::admit(count).is_ok());
    }
    let text = std::format!("{}", Seeds::admit(2).unwrap_err());
    assert!(text.starts_with("2 seeds: name 1, 3 or 5;"), "{text}");
    assert!(Seeds::admit(0).is_err() && Seeds::admit(4).is_err());
}
