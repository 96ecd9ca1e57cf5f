//! What the tests of groups have in common: who is there, who sends, and which messages are lost.

use std::vec::Vec;

use quorate_check::{Plan, Timers};
use quorate_core::{Algorithm, Input, Kept, Life, NodeSet, Refusal, Scene, Span, Topology};
use quorate_sim::{Network, Partition};

use super::{Command, Group, Newcomers, Order, Pattern, Senders, Setup, Wish};
use crate::testing::{self, Log, feed, node, refusal, units};

pub(super) use crate::faults::time;

/// A trial of a group. All nodes are members, and nobody sends, unless it is said otherwise.
pub(super) type Trial<A> = testing::Trial<A, Senders>;

impl<A: Algorithm<Family = Group>> testing::Wishes<A> for Senders {
    type Users = Self;

    fn users(&self, _: &Scene<A>) -> Self {
        self.clone()
    }
}

impl<A: Algorithm<Family = Group>> Trial<A> {
    /// So many nodes, all of which reach each other.
    pub(super) fn of(count: usize, config: A::Config) -> Self {
        let topology = Topology::complete(count);
        let setup = Setup::along(&topology);
        Self::new(Scene::new(topology, setup, config), users(count, &[], 0))
    }

    /// These send.
    pub(super) fn sending(mut self, users: Senders) -> Self {
        self.wishes = users;
        self
    }

    /// A multicast, whoever sends, costs what is published first; all are delivered by all.
    pub(super) fn assert_published_cost(&self) {
        let count = self.scene.count();
        let everybody: Vec<u32> = (1..=count as u32).collect();
        for senders in [&everybody[..], &everybody[..1]] {
            let log = self.clone().sending(users(count, senders, 3)).run();
            let sent = 3 * senders.len();
            let published = (A::META.costs[0].value)(count as f64);
            assert_eq!(log.report.messages as f64, sent as f64 * published);
            assert_eq!(log.told_of("deliver").len(), sent * count);
        }
    }

    /// The first so many nodes are members at first, the first of them sends so many messages, at 1.5,
    /// 3, 4.5 and so on, and these join and leave then.
    pub(super) fn changing(
        mut self,
        members: usize,
        messages: u32,
        joins: &[(u32, f64)],
        leaves: &[(u32, f64)],
    ) -> Self {
        self.scene.setup.members = NodeSet::first(members);
        let when = |&(number, at): &(u32, f64)| (node(number), units(at));
        let pattern = Pattern {
            gap: units(1.5),
            joins: joins.iter().map(when).collect(),
            leaves: leaves.iter().map(when).collect(),
            ..Pattern::default()
        };
        let users = users_of(&self.scene, &[1], messages, pattern);
        self.sending(users)
    }

    /// Only a member sends, and only in its first life; without newcomers, it stays one.
    pub(super) fn assert_outsiders_send_nothing(mut self) {
        let outsider = node(self.scene.count() as u32);
        self.scene.setup.members.remove(outsider);
        assert_eq!(refusal(&self.scene, outsider, wish(1)), Refusal::NotMember);
        if A::promise(&self.scene.config).newcomers == Newcomers::None {
            assert_eq!(refusal(&self.scene, outsider, Command::Join), Refusal::NotMember);
            assert_eq!(refusal(&self.scene, node(1), Command::Leave), Refusal::NotMember);
        }
        let mut back = self.scene.reboot(node(1), Life(1), &Kept::new());
        assert_eq!(feed(&mut back, 1, Input::Command(wish(1))), Err(Refusal::NotMember));
    }

    /// A member takes so many wishes at a time, sends something for each, and refuses the next.
    pub(super) fn assert_bounded(&self, it: &mut A, me: u32, wishes: usize) {
        for number in 1..=wishes as u32 {
            let effects = feed(it, me, Input::Command(wish(number)));
            assert_eq!(effects.map(|effects| effects.len()), Ok(1));
        }
        let further = Input::Command(wish(wishes as u32 + 1));
        assert_eq!(feed(it, me, further), Err(Refusal::Busy));
    }
}

/// A wish to send the message of this number.
pub(super) fn wish(number: u32) -> Command {
    Command::Multicast(Wish { number, order: Order::Fifo, uniform: false })
}

/// Of `count` nodes these send so many messages each, one per unit of time.
pub(super) fn users(count: usize, senders: &[u32], messages: u32) -> Senders {
    let senders: NodeSet = senders.iter().map(|&number| node(number)).collect();
    Senders::new(count, &NodeSet::first(count), &senders, messages, Pattern::default())
}

/// What each node delivered, in order.
pub(super) fn deliveries(log: &Log, count: u32) -> Vec<Vec<&str>> {
    let told = |number| {
        let mine = log.told.iter().filter(move |(_, node, _)| *node == number);
        mine.filter_map(|(_, _, text)| text.strip_prefix("deliver ")).collect()
    };
    (1..=count).map(told).collect()
}

/// A network that loses, doubles and reorders, all at once.
pub(super) fn bad_network() -> Network {
    Network {
        latency: "uniform:0..1".parse().unwrap(),
        loss: 0.2,
        duplicate: 0.1,
        reorder: 0.2,
        ..Network::default()
    }
}

/// Timeouts are longer than any delay; so many messages are lost and doubled.
pub(super) fn quiet(losses: u32, duplicates: u32) -> Plan {
    Plan { timers: Timers::WhenQuiet, losses, duplicates, ..Plan::default() }
}

/// The first so many of `count` nodes send so many messages each, at 1.5, 3, 4.5 and so on: never
/// when something arrives that takes a unit of time, or its answer.
pub(super) fn senders(count: usize, senders: usize, messages: u32) -> Senders {
    in_step(count, senders, messages, units(1.5))
}

/// As [`senders`], but all at 0.
pub(super) fn burst(count: usize, senders: usize, messages: u32) -> Senders {
    in_step(count, senders, messages, Span::ZERO)
}

fn in_step(count: usize, senders: usize, messages: u32, gap: Span) -> Senders {
    let pattern = Pattern { gap, ..Pattern::default() };
    let (members, senders) = (NodeSet::first(count), NodeSet::first(senders));
    Senders::new(count, &members, &senders, messages, pattern)
}

/// In this scene, these send so many messages each; its members belong to the group at first.
pub(super) fn users_of<A: Algorithm<Family = Group>>(
    scene: &Scene<A>,
    senders: &[u32],
    messages: u32,
    pattern: Pattern,
) -> Senders {
    let senders = senders.iter().map(|&number| node(number)).collect();
    Senders::new(scene.count(), &scene.setup.members, &senders, messages, pattern)
}

/// These do not reach each other for a while.
pub(super) fn parted(sides: &[&[u32]], from: f64, until: f64) -> Partition {
    let side = |side: &&[u32]| side.iter().map(|&number| node(number)).collect();
    let sides = sides.iter().map(side).collect();
    Partition { sides, from: time(from), until: time(until) }
}

/// A network that loses what is sent or would arrive between these two at this time, in units.
pub(super) fn cut(lost: &[(u32, u32, f64)]) -> Network {
    let cut = |&(from, to, at): &(u32, u32, f64)| Partition {
        sides: [from, to].map(|side| [node(side)].into_iter().collect()).into(),
        from: time(at),
        until: time(at) + Span(1),
    };
    Network { partitions: lost.iter().map(cut).collect(), ..Network::default() }
}
