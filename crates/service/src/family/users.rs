//! Users of the cluster's parts, and the kernels that tell of processes that are over.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use quorate_core::{Life, NodeId, NodeSet, PerNode, Span, Wait, Workload};

use super::{Command, Event};
use crate::founding::{self, Instance};
use crate::seat;

/// The users of a part of the cluster.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Users {
    /// Of seats.
    Seats(Seats),
    /// Of seeds.
    Seeds(Seeds),
    /// Of a register: at the first node somebody orders anything, for ever.
    Orders,
}

/// Something that a user does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Wish {
    /// It gives this command.
    Give(Command),
    /// It finds that the place of another node refuses connections.
    Refused(NodeId),
    /// It finds that something between it and another node is lost for good.
    Severed(NodeId),
}

/// The users of seats: what each of them does and when, and whose kernel tells it of the end of a
/// process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Seats {
    /// By node, in order. The register's node has none.
    pub plans: Vec<Vec<(Span, Wish)>>,
    /// How many of these were given.
    done: Vec<usize>,
    /// How often each process was started.
    starts: Vec<Life>,
    /// The life that each was given last.
    lives: Vec<Option<Life>>,
    /// What the kernel has to tell each node.
    reports: Vec<Vec<Command>>,
    /// Whose kernel tells.
    pub witnesses: NodeSet,
}

impl Seats {
    /// So many members whose users do nothing, and whose kernels say nothing.
    #[must_use]
    pub fn new(members: usize) -> Self {
        Self {
            plans: vec![Vec::new(); members],
            done: vec![0; members],
            starts: vec![Life::FIRST; members],
            lives: vec![None; members],
            reports: vec![Vec::new(); members],
            witnesses: NodeSet::new(),
        }
    }

    /// What the user at a node does next, if anything, and when.
    fn wish(&self, node: NodeId) -> Option<(Command, Wait)> {
        let plan = self.plans.get(node.index())?;
        if let Some(report) = self.reports[node.index()].first() {
            return Some((report.clone(), Wait::For(Span::UNIT)));
        }
        let (at, wish) = plan.get(self.done[node.index()])?;
        let life = |of: &NodeId| self.lives.get(of.index()).copied().flatten();
        let command = match wish {
            Wish::Give(command) => command.clone(),
            Wish::Refused(of) => Command::Refused(life(of)?),
            Wish::Severed(of) => Command::Severed(life(of)?),
        };
        Some((command, Wait::Until(*at)))
    }

    fn reported(&mut self, node: NodeId) {
        self.reports[node.index()].remove(0);
    }

    fn wished(&mut self, node: NodeId) {
        self.done[node.index()] += 1;
    }

    fn lives(&mut self, node: NodeId, life: Life) {
        if let Some(known) = self.lives.get_mut(node.index()) {
            *known = Some(life);
        }
    }

    fn down(&mut self, node: NodeId) -> Option<NodeId> {
        let start = *self.starts.get(node.index())?;
        self.reports[node.index()].clear();
        let witnesses: Vec<NodeId> = self.witnesses.iter().filter(|it| *it != node).collect();
        for witness in &witnesses {
            if let Some(reports) = self.reports.get_mut(witness.index()) {
                reports.push(Command::Exited(node, start));
            }
        }
        witnesses.first().copied()
    }

    fn up(&mut self, node: NodeId) -> Option<NodeId> {
        let start = self.starts.get_mut(node.index())?;
        *start = start.next();
        Some(node)
    }
}

/// The same users of whatever has a seat inside of it.
impl<E> Workload<seat::Command, E> for Seats {
    fn next(&self, node: NodeId) -> Option<(seat::Command, Wait)> {
        let (command, wait) = self.wish(node)?;
        Some((command.to_seat()?, wait))
    }

    fn gave(&mut self, node: NodeId, command: &seat::Command) -> Option<NodeId> {
        match command {
            seat::Command::Exited(_) => self.reported(node),
            _ => self.wished(node),
        }
        None
    }

    fn told(&mut self, _: NodeId, _: &E) -> Option<NodeId> {
        None
    }

    fn crashed(&mut self, node: NodeId) -> Option<NodeId> {
        self.down(node)
    }

    fn recovered(&mut self, node: NodeId) -> Option<NodeId> {
        self.up(node)
    }
}

/// The users of seeds: who is replaced when. It is never the last one that ought to know of a cluster:
/// without it there is none any more.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Seeds {
    /// By node, when it is replaced, the last time first.
    replaced: PerNode<Vec<Span>>,
    founded: BTreeSet<Instance>,
    /// Who ought to know of what, by what it has said.
    ought: BTreeSet<(NodeId, Instance)>,
}

impl Seeds {
    /// So many seeds, of which these are replaced then.
    #[must_use]
    pub fn new(count: usize, replaced: &[(NodeId, Span)]) -> Self {
        let times = |node| {
            let mine = replaced.iter().filter(|(it, _)| *it == node);
            let mut times: Vec<Span> = mine.map(|(_, at)| *at).collect();
            times.sort_unstable_by_key(|at| core::cmp::Reverse(*at));
            times
        };
        let replaced = PerNode::new(count, times);
        Self { replaced, founded: BTreeSet::new(), ought: BTreeSet::new() }
    }

    fn next(&self, node: NodeId) -> Option<(Command, Wait)> {
        let at = self.replaced[node].last()?;
        let known = |cluster: &Instance| {
            self.ought.iter().any(|(other, of)| *other != node && of == cluster)
        };
        self.founded.iter().all(known).then_some((Command::Replace, Wait::Until(*at)))
    }

    fn gave(&mut self, node: NodeId, command: &Command) {
        if *command == Command::Replace {
            self.replaced[node].pop();
            self.ought.retain(|(other, _)| *other != node);
        }
    }

    fn told(&mut self, node: NodeId, event: &founding::Event) {
        match event {
            founding::Event::Pledged(to) => _ = self.ought.insert((node, *to)),
            founding::Event::Founded(cluster) => {
                self.founded.insert(*cluster);
                self.ought.insert((node, *cluster));
            }
            founding::Event::Joined(cluster) => {
                self.ought.retain(|(other, _)| *other != node);
                self.ought.insert((node, *cluster));
            }
            founding::Event::Taken(..) | founding::Event::OtherList(_) => {}
        }
    }
}

impl Workload<Command, Event> for Users {
    fn next(&self, node: NodeId) -> Option<(Command, Wait)> {
        match self {
            Self::Seats(seats) => seats.wish(node),
            Self::Seeds(seeds) => seeds.next(node),
            Self::Orders => {
                (node == NodeId::at(0)).then_some((Command::Order, Wait::For(Span::UNIT)))
            }
        }
    }

    fn gave(&mut self, node: NodeId, command: &Command) -> Option<NodeId> {
        match (self, command) {
            (Self::Seats(seats), Command::Exited(..)) => seats.reported(node),
            (Self::Seats(seats), _) => seats.wished(node),
            (Self::Seeds(seeds), command) => seeds.gave(node, command),
            (Self::Orders, _) => {}
        }
        None
    }

    fn told(&mut self, node: NodeId, event: &Event) -> Option<NodeId> {
        match (self, event) {
            (Self::Seats(seats), Event::Seat(seat::Event::Lives(life))) => seats.lives(node, *life),
            (Self::Seeds(seeds), Event::Founding(event)) => seeds.told(node, event),
            _ => {}
        }
        None
    }

    fn crashed(&mut self, node: NodeId) -> Option<NodeId> {
        match self {
            Self::Seats(seats) => seats.down(node),
            Self::Seeds(_) | Self::Orders => None,
        }
    }

    fn recovered(&mut self, node: NodeId) -> Option<NodeId> {
        match self {
            Self::Seats(seats) => seats.up(node),
            Self::Seeds(_) | Self::Orders => None,
        }
    }
}
