//! All steps out of a state.

use hashbrown::HashSet;
use quorate_core::{Liveness, NodeId};
use rustc_hash::FxBuildHasher;

use crate::draft::{AUDIENCE, BUDGET, Draft, Limited, NODES};
use crate::plan::{Discards, Network, Start, Timers};
use crate::reduce;
use crate::tables::{Code, Heard, Presence, Response, Tables, pair};
use crate::world::{Action, Move, Reached, World};

/// Takes every step out of a state. Where the tables do not say what becomes of a step, it finds
/// that out, leaves the step out and goes on with the next one: the state is to be expanded again
/// when the findings are in the tables.
pub(crate) struct Expander<'a> {
    world: &'a World<'a>,
    /// The share of work that the state belongs to.
    pub(crate) share: usize,
    /// How often something was not known.
    pub(crate) missed: u64,
    responses_asked: HashSet<u64, FxBuildHasher>,
    heard_asked: HashSet<u64, FxBuildHasher>,
    /// The state with what was taken out of it for the step.
    base: Draft,
    /// The state after the step.
    after: Draft,
    /// From whom messages are in flight in the state that is being expanded.
    talking: Vec<bool>,
    /// Are outdated messages delivered before anything else?
    reduces: bool,
}

/// What a step did to a draft.
enum Done {
    /// It is in the draft.
    Fully,
    /// It breaks a property.
    Broken(u32),
    /// That is not known yet.
    Unknown,
}

impl<'a> Expander<'a> {
    pub(crate) fn new(world: &'a World<'a>) -> Self {
        Self {
            world,
            share: 0,
            missed: 0,
            responses_asked: HashSet::default(),
            heard_asked: HashSet::default(),
            base: Draft::default(),
            after: Draft::default(),
            talking: vec![false; world.count],
            reduces: reduce::applies(world.plan),
        }
    }

    /// Visits everything that can happen next, always in the same order.
    pub(crate) fn expand(&mut self, from: &Draft, visit: &mut impl FnMut(Move, Reached<'_>)) {
        if self.reduces && self.outdated_delivery(from, visit) {
            return;
        }
        if self.world.plan.start == Start::Step {
            self.starts(from, visit);
        }
        self.deliveries(from, visit);
        for node in 0..self.world.count {
            self.command(from, node, visit);
        }
        for node in 0..self.world.count {
            self.words(from, node, visit);
            self.timers(from, node, visit);
        }
        let left = |what: Limited| what.left(from.row[BUDGET]) > 0;
        if left(Limited::Recovery) {
            self.recoveries(from, visit);
        }
        if left(Limited::Crash) {
            self.crashes(from, visit);
        }
        if left(Limited::Loss) || left(Limited::Duplicate) {
            self.mishaps(from, visit);
        }
    }

    /// A node comes up, without its user's command.
    pub(crate) fn start(
        &mut self,
        from: &Draft,
        node: usize,
        visit: &mut impl FnMut(Move, Reached<'_>),
    ) {
        self.base.copy(&from.row, from.fingerprint);
        self.branch(Action::Start(node), node, Code::START, visit);
    }

    /// The user at a node gives its next command, if it has one and it is not refused.
    pub(crate) fn command(
        &mut self,
        from: &Draft,
        node: usize,
        visit: &mut impl FnMut(Move, Reached<'_>),
    ) {
        let Some(command) = self.world.tables.audience(from.row[AUDIENCE]).commands[node] else {
            return;
        };
        if self.world.presence(&from.row, node) == Presence::Up {
            self.base.copy(&from.row, from.fingerprint);
            self.branch(Action::Command(node, command), node, Code::command(command), visit);
        }
    }

    /// Nodes come up one by one, each with its user's first command.
    fn starts(&mut self, from: &Draft, visit: &mut impl FnMut(Move, Reached<'_>)) {
        for node in 0..self.world.count {
            if self.world.presence(&from.row, node) != Presence::Asleep {
                continue;
            }
            let mut started = Vec::new();
            self.start(from, node, &mut |step, reached| match reached {
                Reached::State(draft) => started.push((step, draft.clone())),
                Reached::Violation(_) => visit(step, reached),
            });
            for (start, draft) in started {
                let mut gave = false;
                self.command(&draft, node, &mut |step, reached| {
                    gave = true;
                    let Action::Command(_, command) = step.action else { return };
                    visit(Move { command: Some((command, step.way)), ..start }, reached);
                });
                if !gave {
                    visit(start, Reached::State(&draft));
                }
            }
        }
    }

    /// The first outdated message arrives, if there is one. Nothing else needs to be tried then.
    fn outdated_delivery(
        &mut self,
        from: &Draft,
        visit: &mut impl FnMut(Move, Reached<'_>),
    ) -> bool {
        let World { tables, .. } = self.world;
        let mail = self.world.mail();
        let claimed = |&place: &usize| {
            let to = tables.route(from.row[place]).to as usize;
            self.world.is_outdated(from.row[NODES + to], from.row[place])
        };
        let Some(place) = first_in_line(from, mail.start, mail.network, tables).find(claimed)
        else {
            return false;
        };
        let message = from.row[place];
        let to = tables.route(message).to as usize;
        self.base.copy(&from.row, from.fingerprint);
        mail.take(&mut self.base, place, |message| tables.route(message));
        self.branch(Action::Deliver(message), to, Code::message(message), visit);
        true
    }

    /// Messages arrive.
    fn deliveries(&mut self, from: &Draft, visit: &mut impl FnMut(Move, Reached<'_>)) {
        let World { tables, plan, .. } = self.world;
        let mail = self.world.mail();
        self.talking.fill(false);
        for place in first_in_line(from, mail.start, mail.network, tables) {
            let message = from.row[place];
            let route = tables.route(message);
            let to = route.to as usize;
            let (local, code) = (from.row[NODES + to], Code::message(message));
            let is_up = tables.local(local).presence == Presence::Up;
            let idle = |response: &Response| response.local == local && response.silent;
            if plan.discards == Discards::Ignore
                && is_up
                && tables.responses(local, code).is_some_and(|ways| ways.iter().all(idle))
            {
                continue;
            }
            self.talking[route.from as usize] = true;
            if is_up {
                self.base.copy(&from.row, from.fingerprint);
                mail.take(&mut self.base, place, |message| tables.route(message));
                self.branch(Action::Deliver(message), to, code, visit);
            }
        }
    }

    /// The detector's words to a node arrive. In a synchronous system the detector waits until it
    /// can be sure, and that is longer than the last message of the crashed node takes.
    fn words(&mut self, from: &Draft, node: usize, visit: &mut impl FnMut(Move, Reached<'_>)) {
        let summary = self.world.tables.local(from.row[NODES + node]);
        if summary.presence != Presence::Up {
            return;
        }
        let synchronous = self.world.plan.timers == Timers::WhenQuiet;
        for word in &summary.words {
            if synchronous && word.now == Liveness::Down && self.talking[word.peer] {
                continue;
            }
            self.base.copy(&from.row, from.fingerprint);
            self.branch(Action::Word(node, word.place), node, Code::word(word.place), visit);
        }
    }

    /// The timers of a node fire. In a synchronous system timeouts are longer than any delay.
    fn timers(&mut self, from: &Draft, node: usize, visit: &mut impl FnMut(Move, Reached<'_>)) {
        let synchronous = self.world.plan.timers == Timers::WhenQuiet;
        if synchronous && self.talking.contains(&true) {
            return;
        }
        let summary = self.world.tables.local(from.row[NODES + node]);
        for place in 0..summary.timers {
            self.base.copy(&from.row, from.fingerprint);
            self.branch(Action::Timer(node, place), node, Code::timer(place), visit);
        }
    }

    /// Crashed nodes come up again; the detectors of the others notice, and their own will tell
    /// them who is down.
    fn recoveries(&mut self, from: &Draft, visit: &mut impl FnMut(Move, Reached<'_>)) {
        let count = self.world.count;
        for node in 0..count {
            if self.world.presence(&from.row, node) != Presence::Down {
                continue;
            }
            self.base.copy(&from.row, from.fingerprint);
            self.base.spend(Limited::Recovery);
            let mut known = self.notice(node, Liveness::Up);
            for other in (0..count).filter(|&other| self.world.listens && other != node) {
                if self.world.presence(&from.row, other) == Presence::Down {
                    known &= self.will_hear(node, other, Liveness::Down);
                }
            }
            if known {
                self.branch(Action::Recover(node), node, Code::RECOVER, visit);
            }
        }
    }

    /// Nodes crash; messages to them are gone, and the detectors of the others notice.
    fn crashes(&mut self, from: &Draft, visit: &mut impl FnMut(Move, Reached<'_>)) {
        let tables = &self.world.tables;
        let mail = self.world.mail();
        let mortal = self.world.plan.mortal.as_ref();
        let spared = |node| mortal.is_some_and(|mortal| !mortal.contains(NodeId::at(node)));
        for node in 0..self.world.count {
            if self.world.presence(&from.row, node) != Presence::Up || spared(node) {
                continue;
            }
            self.base.copy(&from.row, from.fingerprint);
            self.base.spend(Limited::Crash);
            let to_it = |&message: &u32| tables.route(message).to as usize == node;
            while let Some(place) = self.base.row[mail.start..].iter().position(to_it) {
                mail.take(&mut self.base, mail.start + place, |message| tables.route(message));
            }
            if self.notice(node, Liveness::Down) {
                self.branch(Action::Crash(node), node, Code::CRASH, visit);
            }
        }
    }

    /// Messages are lost or doubled. With links that keep the order it is enough that this happens
    /// to the first in line: nobody can tell whether it happened earlier.
    fn mishaps(&mut self, from: &Draft, visit: &mut impl FnMut(Move, Reached<'_>)) {
        let tables = &self.world.tables;
        let mail = self.world.mail();
        let route = |message| tables.route(message);
        for place in first_in_line(from, mail.start, mail.network, tables) {
            let message = from.row[place];
            let mut step = |action, draft: &Draft| {
                visit(Move { action, way: 0, command: None }, Reached::State(draft));
            };
            if Limited::Loss.left(from.row[BUDGET]) > 0 {
                self.base.copy(&from.row, from.fingerprint);
                self.base.spend(Limited::Loss);
                mail.take(&mut self.base, place, route);
                step(Action::Lose(message), &self.base);
            }
            if Limited::Duplicate.left(from.row[BUDGET]) > 0 {
                self.base.copy(&from.row, from.fingerprint);
                self.base.spend(Limited::Duplicate);
                mail.double(&mut self.base, place, route);
                step(Action::Duplicate(message), &self.base);
            }
        }
    }

    /// The detectors of all others notice that a node went or came. False if that is not known yet.
    fn notice(&mut self, node: usize, now: Liveness) -> bool {
        let mut known = true;
        for other in (0..self.world.count).filter(|_| self.world.listens) {
            if other != node && self.world.presence(&self.base.row, other) != Presence::Down {
                known &= self.will_hear(other, node, now);
            }
        }
        known
    }

    /// The detector of a node will tell it something. False if that is not known yet.
    fn will_hear(&mut self, node: usize, peer: usize, now: Liveness) -> bool {
        let World { tables, .. } = self.world;
        let (local, code) = (self.base.row[NODES + node], Code::noticed(NodeId::at(peer), now));
        match tables.responses(local, code) {
            Some([response]) => self.base.set(NODES + node, response.local),
            Some(_) => unreachable!("a detector does not choose"),
            None => {
                self.find_responses(local, code);
                return false;
            }
        }
        true
    }

    /// Something happens to a node, in each way that its choices allow.
    fn branch(
        &mut self,
        action: Action,
        node: usize,
        code: Code,
        visit: &mut impl FnMut(Move, Reached<'_>),
    ) {
        let World { tables, .. } = self.world;
        let local = self.base.row[NODES + node];
        let Some(responses) = tables.responses(local, code) else {
            return self.find_responses(local, code);
        };
        for (way, response) in responses.iter().enumerate() {
            if way + 1 == responses.len() {
                std::mem::swap(&mut self.base, &mut self.after);
            } else {
                self.after.copy(&self.base.row, self.base.fingerprint);
            }
            let step = Move { action, way, command: None };
            match self.apply(node, response) {
                Done::Fully => visit(step, Reached::State(&self.after)),
                Done::Broken(violation) => visit(step, Reached::Violation(violation)),
                Done::Unknown => {}
            }
        }
    }

    fn apply(&mut self, node: usize, response: &Response) -> Done {
        let tables = &self.world.tables;
        let mail = self.world.mail();
        self.after.set(NODES + node, response.local);
        for &message in tables.sends(response) {
            // What is sent to a crashed node is as good as lost.
            let to = tables.route(message).to as usize;
            if self.world.presence(&self.after.row, to) != Presence::Down {
                mail.put(&mut self.after, message, |message| tables.route(message));
            }
        }
        let Some(news) = response.news else { return Done::Fully };
        let audience = self.after.row[AUDIENCE];
        match tables.heard(audience, news) {
            Some(Heard::Fine(audience)) => self.after.set(AUDIENCE, audience),
            Some(Heard::Broken(violation)) => return Done::Broken(violation),
            None => {
                self.find_heard(audience, news);
                return Done::Unknown;
            }
        }
        Done::Fully
    }
}

impl Expander<'_> {
    /// Finds out what a node makes of a cause, unless that was asked before.
    #[cold]
    fn find_responses(&mut self, local: u32, code: Code) {
        self.missed += 1;
        if self.responses_asked.insert(pair(local, code.0)) {
            self.world.pieces.find_responses(self.share, local, code);
        }
    }

    /// Finds out what an audience makes of news, unless that was asked before.
    #[cold]
    fn find_heard(&mut self, audience: u32, news: u32) {
        self.missed += 1;
        if self.heard_asked.insert(pair(audience, news)) {
            self.world.pieces.find_heard(self.share, audience, news);
        }
    }
}

/// The places of the messages that can arrive next: one of each kind or, with links that keep the
/// order, the first one on each link.
fn first_in_line<'a>(
    from: &'a Draft,
    start: usize,
    network: Network,
    tables: &'a Tables,
) -> impl Iterator<Item = usize> + use<'a> {
    let row = &from.row;
    (start..row.len()).filter(move |&place| {
        place == start
            || match network {
                Network::Unordered => row[place - 1] != row[place],
                Network::Fifo => tables.route(row[place - 1]).link != tables.route(row[place]).link,
            }
    })
}
