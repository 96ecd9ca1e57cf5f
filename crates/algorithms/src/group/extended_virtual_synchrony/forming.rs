//! How members find each other, agree on a configuration, and bring each other up to date.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{Ctx, Life, NodeId, NodeSet, Sole, ViewId};

use super::super::Event;
use super::ring::Ring;
use super::words::{Inside, Join, Known, Msg, Past, Reach, Roster, Run};
use super::{ExtendedVirtualSynchrony, Phase};

/// The largest number of a configuration that is believed: below the end of the range.
const ID_MAX: ViewId = ViewId(u64::MAX / 2);

/// A configuration that is agreed on, on the way to its beginning.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Recovery {
    pub(super) roster: Roster,
    /// By member that has said so: where it comes from.
    states: BTreeMap<NodeId, Option<Past>>,
    /// What was found out when all had said so.
    exchange: Option<Exchange>,
    /// Who has all that it needs. Invariant: this node is in it only if it has said so.
    done: NodeSet,
}

/// What those who come from the same configuration have together.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Exchange {
    /// Who they are, and what each knew; nobody, for a node that comes from none.
    together: Vec<(NodeId, Known)>,
    /// By rank, how much of each stream any of them has.
    cut: Vec<u64>,
}

impl ExtendedVirtualSynchrony {
    /// With whom this node is to be: of those that it reaches and that reach it, all who have not
    /// gone with a lower one of which that is not true. They are taken in the order of their numbers,
    /// each into the first group all of which reach each other. Of whom nothing is known, the best is
    /// hoped.
    fn wanted(&self) -> NodeSet {
        let reaches = |by: NodeId, whom: NodeId| {
            self.reaches.get(&by).is_none_or(|reach| reach.nodes.contains(whom))
        };
        let meet = |one, other| reaches(one, other) && reaches(other, one);
        let gone = |node| {
            let led_away = |by: NodeId| by < self.me && !meet(by, self.me) && meet(by, node);
            let with = self.joins.get(&node).map(|join| &join.with);
            with.is_some_and(|with| !with.contains(self.me) && with.iter().any(led_away))
        };
        let free = |node: &NodeId| *node == self.me || meet(*node, self.me) && !gone(*node);
        let mut groups: Vec<NodeSet> = Vec::new();
        for node in self.everybody.iter().filter(free) {
            let fits = |group: &&mut NodeSet| group.iter().all(|other| meet(node, other));
            match groups.iter_mut().find(fits) {
                Some(group) => _ = group.insert(node),
                None => groups.push([node].into_iter().collect()),
            }
        }
        groups.into_iter().find(|group| group.contains(self.me)).unwrap_or_default()
    }

    /// Whom this node reaches, in its own words.
    fn mine(&self) -> Reach {
        self.reaches.get(&self.me).cloned().unwrap_or_default()
    }

    /// Whom this node reaches has changed: it says so to all of them, before and after.
    pub(super) fn say(&mut self, cx: &mut Ctx<'_, Self>, nodes: NodeSet) {
        let Reach { word: (life, word), nodes: mut audience } = self.mine();
        audience.extend(&nodes);
        audience.remove(self.me);
        self.reaches.insert(self.me, Reach { word: (life, word + 1), nodes });
        let told = self.reconsider(cx);
        let audience: NodeSet = audience.iter().filter(|node| !told.contains(*node)).collect();
        if !audience.is_empty() {
            // What this node has just come to may have been its last configuration.
            cx.multicast(audience, Msg::Reach(self.mine()));
        }
    }

    /// Who is to be with this node may have changed: if so, it looks for a configuration. Returns to
    /// whom it has said so.
    pub(super) fn reconsider(&mut self, cx: &mut Ctx<'_, Self>) -> NodeSet {
        let wanted = self.wanted();
        let content = match &self.phase {
            Phase::Outside => return NodeSet::new(),
            Phase::Operational => self.ring.as_ref().is_some_and(|ring| ring.is_of(&wanted)),
            Phase::Recover(recovery) => recovery.roster.members == wanted,
            Phase::Gather => self.announced == wanted,
        };
        let told = if content { NodeSet::new() } else { self.gather(cx, wanted) };
        self.agree(cx);
        told
    }

    /// Says with whom this node wants to be: to all that it reaches, and to those of whom it has said
    /// so before.
    fn gather(&mut self, cx: &mut Ctx<'_, Self>, wanted: NodeSet) -> NodeSet {
        cx.trace("gather", &[("with", wanted.len() as u64)]);
        let takes_part =
            |node: &NodeId| self.reaches.get(node).is_none_or(|reach| !reach.nodes.is_empty());
        let mut audience: NodeSet = self.mine().nodes.iter().filter(takes_part).collect();
        audience.extend(&self.announced);
        audience.remove(self.me);
        self.announced = wanted.clone();
        self.phase = Phase::Gather;
        if !audience.is_empty() {
            let join = Join { with: wanted, used: self.used };
            cx.multicast(audience.clone(), Msg::Join(self.mine(), join));
        }
        audience
    }

    pub(super) fn on_reach(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        said: Reach,
        join: Option<Join>,
    ) {
        let far = join.as_ref().is_some_and(|join| join.used > ID_MAX);
        if far || !self.everybody.contains(from) {
            return cx.trace("foreign", &[("from", from.into())]);
        }
        cx.trace("hear", &[("from", from.into())]);
        let known = self.reaches.insert(from, said.clone());
        if let Some(join) = join {
            self.on_join(cx, from, join);
        }
        let told = self.reconsider(cx);
        // A new life has heard nothing of this node.
        let reborn = said.word.0 > known.map_or(Life::FIRST, |known| known.word.0);
        if reborn && !told.contains(from) {
            cx.send(from, Msg::Reach(self.mine()));
        }
    }

    fn on_join(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, join: Join) {
        let begins = match &self.phase {
            Phase::Outside | Phase::Gather => false,
            Phase::Operational => self.ring.as_ref().is_some_and(|ring| ring.rank(from).is_some()),
            // What was said on the way to this configuration may come later than the agreement.
            Phase::Recover(Recovery { roster, .. }) => {
                roster.members.contains(from)
                    && (join.with != roster.members || join.used >= roster.id)
            }
        };
        self.joins.insert(from, join);
        if begins {
            let wanted = self.wanted();
            self.gather(cx, wanted);
        }
    }

    /// If all whom this node wants want the same, and it is the lowest of them, it makes the
    /// configuration.
    fn agree(&mut self, cx: &mut Ctx<'_, Self>) {
        let Phase::Gather = self.phase else { return };
        let wanted = &self.announced;
        let agrees = |node: NodeId| {
            node == self.me || self.joins.get(&node).is_some_and(|join| join.with == *wanted)
        };
        if wanted.iter().next() != Some(self.me) || !wanted.iter().all(agrees) {
            return;
        }
        let used = wanted.iter().filter_map(|node| self.joins.get(&node)).map(|join| join.used);
        let roster = Roster {
            id: self.next_id(used.max().unwrap_or(self.used).max(self.used)),
            members: wanted.clone(),
        };
        cx.trace("agree", &[("configuration", roster.id.0)]);
        let mut others = roster.members.clone();
        others.remove(self.me);
        if !others.is_empty() {
            cx.multicast(others, Msg::Commit(roster.clone()));
        }
        self.recover(cx, roster);
    }

    /// The first number after this one that only this node gives: its remainder tells whose it is.
    pub(super) fn next_id(&self, ViewId(used): ViewId) -> ViewId {
        let (count, first) = (self.everybody.len() as u64, used + 1);
        let mine = self.me.index() as u64 % count;
        ViewId(first + (mine + count - first % count) % count)
    }

    pub(super) fn on_commit(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, roster: Roster) {
        let due = matches!(self.phase, Phase::Gather)
            && roster.members == self.announced
            && roster.members.iter().next() == Some(from)
            && roster.id > self.used
            && roster.id <= ID_MAX;
        if due {
            self.recover(cx, roster);
        } else {
            cx.trace("stale", &[("configuration", roster.id.0)]);
        }
    }

    /// Tells the members of the configuration to come where this one comes from.
    fn recover(&mut self, cx: &mut Ctx<'_, Self>, roster: Roster) {
        cx.trace("recover", &[("configuration", roster.id.0)]);
        self.used = roster.id;
        cx.persist(Sole(self.used));
        let past = self.ring.as_ref().map(Ring::past);
        self.tell(cx, &roster, Inside::State(past.clone()));
        let (states, done) = ([(self.me, past)].into(), NodeSet::new());
        self.phase = Phase::Recover(Recovery { roster, states, exchange: None, done });
        self.exchange(cx);
        self.read_early(cx);
    }

    fn tell(&self, cx: &mut Ctx<'_, Self>, roster: &Roster, inside: Inside) {
        let mut others = roster.members.clone();
        others.remove(self.me);
        if !others.is_empty() {
            cx.multicast(others, Msg::In(roster.id, inside));
        }
    }

    /// Something about the configuration to come.
    pub(super) fn on_recovery(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, inside: Inside) {
        let Phase::Recover(recovery) = &mut self.phase else { return };
        if !recovery.roster.members.contains(from) {
            return cx.trace("foreign", &[("from", from.into())]);
        }
        match inside {
            Inside::State(past) => {
                let mine = self.ring.as_ref();
                let sane = |past: &Past| {
                    mine.is_none_or(|ring| ring.id != past.id || ring.is_plausible(&past.known))
                };
                if !past.as_ref().is_none_or(sane) {
                    return cx.trace("stray number", &[("from", from.into())]);
                }
                cx.trace("note a state", &[("from", from.into())]);
                recovery.states.insert(from, past);
                self.exchange(cx);
            }
            Inside::Repair(runs) => {
                cx.trace("take in repairs", &[("from", from.into())]);
                self.take_in(runs);
                self.finish(cx);
            }
            Inside::Done => {
                cx.trace("note that it is done", &[("of", from.into())]);
                recovery.done.insert(from);
                self.begin(cx);
            }
            Inside::Data(..) | Inside::Ack(..) => {}
        }
    }

    fn take_in(&mut self, runs: Vec<Run>) {
        let Some(ring) = &mut self.ring else { return };
        for Run { rank, first, units } in runs {
            for (place, unit) in units.into_iter().enumerate() {
                ring.take(rank, first.saturating_add(place as u64), unit);
            }
        }
    }

    /// All have said where they come from: those who come from the same configuration see to it that
    /// they have the same of it. What somebody lacks, the lowest of those sends who have most.
    fn exchange(&mut self, cx: &mut Ctx<'_, Self>) {
        let Phase::Recover(Recovery { roster, states, exchange, .. }) = &mut self.phase else {
            return;
        };
        if states.len() < roster.members.len() {
            return;
        }
        let mut found = Exchange::default();
        if let Some(ring) = &self.ring {
            let same = |(node, past): (&NodeId, &Option<Past>)| {
                let past = past.as_ref().filter(|past| past.id == ring.id)?;
                Some((*node, past.known.clone()))
            };
            found.together = states.iter().filter_map(same).collect();
            found.cut = ring.cut(&found.together);
            for (to, runs) in ring.repairs(&found.together, &found.cut) {
                cx.trace("repair", &[("to", to.into())]);
                cx.send(to, Msg::In(roster.id, Inside::Repair(runs)));
            }
        }
        *exchange = Some(found);
        self.finish(cx);
    }

    /// If this node has all that those have who come from where it comes from, it says so.
    fn finish(&mut self, cx: &mut Ctx<'_, Self>) {
        let Phase::Recover(recovery) = &mut self.phase else { return };
        let Some(Exchange { together, cut }) = &recovery.exchange else { return };
        let received = self.ring.as_ref().map_or(&[][..], Ring::received);
        let lacks = received.iter().zip(cut).any(|(has, needs)| has < needs);
        if lacks && !flaw!(DoneWithoutRepair) || !recovery.done.insert(self.me) {
            return;
        }
        if let Some(ring) = &mut self.ring {
            ring.learn(together);
        }
        let roster = recovery.roster.clone();
        cx.trace("done", &[("configuration", roster.id.0)]);
        self.tell(cx, &roster, Inside::Done);
        self.begin(cx);
    }

    /// All are done: the configuration before ends, and the new one begins.
    fn begin(&mut self, cx: &mut Ctx<'_, Self>) {
        let Phase::Recover(recovery) = &mut self.phase else { return };
        if recovery.done != recovery.roster.members {
            return;
        }
        let roster = recovery.roster.clone();
        if let (Some(ring), Some(exchange)) = (self.ring.take(), recovery.exchange.take()) {
            self.end(cx, ring, exchange);
        }
        cx.trace("begin", &[("configuration", roster.id.0)]);
        let ring = Ring::new(roster.id, &roster.members, self.me);
        let (view, members, state) = (ring.id, ring.members.clone(), self.state);
        (self.ring, self.phase) = (Some(ring), Phase::Operational);
        cx.emit(Event::Installed { view, members, state });
        self.pump(cx);
        self.read_early(cx);
    }

    /// A configuration is over: what can be delivered in it with what all know now, is; then, for
    /// those who go on together, the rest.
    fn end(&mut self, cx: &mut Ctx<'_, Self>, mut ring: Ring, exchange: Exchange) {
        let Exchange { together, cut } = exchange;
        let together: Arc<[NodeId]> = together.into_iter().map(|(node, _)| node).collect();
        ring.settle(&together, &cut);
        while let Some(id) = ring.deliver() {
            self.hand_over(cx, id);
        }
        cx.trace("part", &[("together", together.len() as u64)]);
        cx.emit(Event::Transitional { members: together });
        for id in ring.rest() {
            self.hand_over(cx, id);
        }
    }
}
