//! All groups of a process, from view to view of the cluster.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{Life, NodeId, Span, Time};

use super::group::{Closing, Group, Port};
use super::words::{
    Body, Command, Entry, Event, Fellow, Frame, Limits, Outlet, Possession, Refused, ViewId,
};
use crate::lease::since;
use crate::locks::{Gate, Text};
use crate::register::Epoch;

/// So many entries go into one frame.
const PART: usize = 128;

/// The groups that a process is in, and those that it keeps the roll of.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Groups {
    limits: Limits,
    seating: Option<Seating>,
    /// Until when this process may act.
    until: Option<Time>,
    groups: BTreeMap<Text, Group>,
    /// Who has not said yet which groups it is in.
    owing: BTreeSet<Life>,
    /// Who is in which, as all said when the view of the cluster began.
    directory: BTreeMap<Text, BTreeMap<Life, Entry>>,
    /// Who is in which now, if this process is the most senior.
    rolls: BTreeMap<Text, Roll>,
    /// What came before its time.
    early: Vec<(NodeId, Frame)>,
}

/// A view of the cluster.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Seating {
    epoch: Epoch,
    me: Life,
    lives: Arc<[Life]>,
    nodes: Arc<[NodeId]>,
    begun: Time,
}

/// Who is in a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Roll {
    members: Vec<Fellow>,
    number: u64,
}

impl Groups {
    /// No groups.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            seating: None,
            until: None,
            groups: BTreeMap::new(),
            owing: BTreeSet::new(),
            directory: BTreeMap::new(),
            rolls: BTreeMap::new(),
            early: Vec::new(),
        }
    }

    /// How much of everything there may be.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The view of the cluster that it is in.
    #[must_use]
    pub fn epoch(&self) -> Option<Epoch> {
        self.seating.as_ref().map(|seating| seating.epoch)
    }

    /// The view of a group that this process is in.
    #[must_use]
    pub fn view(&self, group: &Text) -> Option<ViewId> {
        self.groups.get(group)?.view()
    }

    /// How much this process may send to a group before the others have taken something of it.
    #[must_use]
    pub fn room(&self, group: &Text) -> usize {
        let under_way = self.groups.get(group).map_or(usize::MAX, Group::under_way);
        self.limits.window.saturating_sub(under_way)
    }

    /// The groups that this process is in or wants to be in.
    pub fn names(&self) -> impl Iterator<Item = &Text> {
        self.groups.keys()
    }

    /// Has one group do something.
    fn on<R>(
        &mut self,
        now: Time,
        group: &Text,
        out: &mut dyn Outlet,
        act: impl FnOnce(&mut Group, &mut Port<'_>) -> R,
    ) -> Option<R> {
        let Self { limits, seating, until, groups, .. } = self;
        let group = groups.get_mut(group)?;
        let mut port = port(seating.as_ref()?, limits, (now, *until), out);
        Some(act(group, &mut port))
    }

    fn say(&self, to: &[Life], now: Time, group: &Text, body: Body, out: &mut dyn Outlet) {
        if let Some(seating) = &self.seating {
            port(seating, &self.limits, (now, self.until), out).send(to, group, body);
        }
    }

    // Users

    /// The user wants something.
    ///
    /// # Errors
    /// If it cannot be.
    pub fn command(
        &mut self,
        now: Time,
        command: Command,
        out: &mut dyn Outlet,
    ) -> Result<(), Refused> {
        match command {
            Command::Join { group, stateful } => self.join(now, &group, stateful, out),
            Command::Leave(group) => self.leave(now, &group, out),
            Command::Send { group, pack } => {
                let sent = self.on(now, &group, out, |group, port| group.send(port, pack));
                sent.unwrap_or(Err(Refused::NotIn))
            }
            Command::Take { group, view, rank, number } => {
                self.on(now, &group, out, |group, port| group.take(port, view, rank, number));
                Ok(())
            }
            Command::Give { group, at, state } => {
                self.on(now, &group, out, |group, port| group.give(port, at, &state));
                Ok(())
            }
        }
    }

    /// The user wants to be in a group.
    fn join(
        &mut self,
        now: Time,
        group: &Text,
        stateful: bool,
        out: &mut dyn Outlet,
    ) -> Result<(), Refused> {
        if group.as_str().is_empty() || group.as_str().len() > self.limits.text {
            return Err(Refused::TooLong);
        }
        if self.groups.contains_key(group) {
            return Err(Refused::Already);
        }
        if self.groups.len() >= self.limits.groups {
            return Err(Refused::TooMany);
        }
        self.groups.insert(group.clone(), Group::wanted(group.clone(), stateful));
        self.ask_the_senior(now, group, Body::Join { stateful }, out);
        Ok(())
    }

    /// The user does not want to be in a group any more: it is told when that is so.
    fn leave(&mut self, now: Time, group: &Text, out: &mut dyn Outlet) -> Result<(), Refused> {
        let asked = self.epoch();
        let known = self.groups.get_mut(group).filter(|it| it.stays).ok_or(Refused::NotIn)?;
        (known.stays, known.asked) = (false, asked);
        if self.seating.is_none() {
            self.groups.remove(group);
            out.tell(Event::Left(group.clone()));
        } else {
            self.ask_the_senior(now, group, Body::Leave, out);
        }
        Ok(())
    }

    // Turns

    /// Is there anything to be said?
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.groups.values().any(|group| group.is_due(&self.limits))
    }

    /// Says what is to be said: once for all that has come meanwhile.
    pub fn turn(&mut self, now: Time, out: &mut dyn Outlet) {
        let due = self.groups.iter().filter(|(_, group)| group.is_due(&self.limits));
        let due: Vec<Text> = due.map(|(name, _)| name.clone()).collect();
        for group in due {
            self.on(now, &group, out, |group, port| group.flush(port));
        }
    }

    // Views of the cluster

    /// A view of the cluster begins, of which this process is a member. Groups are among those of its
    /// members who know them, which is a matter of their programs: all who do know who does.
    pub fn install(
        &mut self,
        now: Time,
        gate: &Gate,
        knows_groups: impl Fn(Life) -> bool,
        out: &mut dyn Outlet,
    ) {
        let Some(me) = gate.lives.get(gate.rank).copied() else { return };
        let all = gate.lives.iter().copied().zip(gate.nodes.iter().copied());
        let (lives, nodes): (Vec<Life>, Vec<NodeId>) =
            all.filter(|(life, _)| *life == me || knows_groups(*life)).unzip();
        self.owing = lives.iter().copied().filter(|life| *life != me).collect();
        let (lives, nodes) = (lives.into(), nodes.into());
        self.seating = Some(Seating { epoch: gate.epoch, me, lives, nodes, begun: now });
        self.directory.clear();
        self.rolls.clear();
        // Nobody has to know of who wanted to come and does not any more.
        self.groups.retain(|name, it| {
            let cancelled = !it.stays && it.view().is_none();
            if cancelled {
                out.tell(Event::Left(name.clone()));
            }
            !cancelled
        });
        let mut entries = Vec::new();
        for (name, group) in &mut self.groups {
            group.begin_epoch(gate.epoch);
            let (view, promised) = (group.view(), group.promised(me));
            let Group { stateful, stays, possession, .. } = *group;
            let (group, has) = (name.clone(), possession == Possession::Has);
            entries.push(Entry { group, stateful, view, promised, stays, has });
        }
        self.note(me, &entries);
        let (others, all) = (self.owing.iter().copied().collect::<Vec<_>>(), Text::from(""));
        let mut left = entries.len() as u64;
        let mut parts: Vec<&[Entry]> = entries.chunks(PART).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        for part in parts {
            left -= part.len() as u64;
            let body = Body::Groups { entries: part.into(), left };
            self.say(&others, now, &all, body, out);
        }
        if self.owing.is_empty() {
            self.open(now, out);
        }
        for (from, frame) in core::mem::take(&mut self.early) {
            self.receive(now, from, frame, out);
        }
    }

    /// It turns out that a member of the view knows no groups: nothing is waited for from it.
    pub fn exclude(&mut self, now: Time, life: Life, out: &mut dyn Outlet) {
        let Some(seating) = &mut self.seating else { return };
        let Some(place) = seating.lives.iter().position(|it| *it == life) else { return };
        let others = |at: usize| at != place;
        seating.lives = except(&seating.lives, others);
        seating.nodes = except(&seating.nodes, others);
        self.heard_from(now, life, out);
    }

    /// Nothing more is to come from a member about which groups it is in.
    fn heard_from(&mut self, now: Time, life: Life, out: &mut dyn Outlet) {
        if self.owing.remove(&life) && self.owing.is_empty() {
            self.open(now, out);
            for (from, frame) in core::mem::take(&mut self.early) {
                self.receive(now, from, frame, out);
            }
        }
    }

    /// The others go on without this process, or it has left the cluster.
    pub fn leave_all(&mut self, out: &mut dyn Outlet) {
        if self.seating.is_none() {
            return;
        }
        for (name, _) in core::mem::take(&mut self.groups) {
            out.tell(Event::Out(name));
        }
        (self.seating, self.until) = (None, None);
        self.owing.clear();
        self.directory.clear();
        self.rolls.clear();
    }

    /// Until when this process may act, if it may.
    pub fn lease(&mut self, now: Time, until: Option<Time>, out: &mut dyn Outlet) {
        let fresh = until.is_some() && self.until.is_none_or(|old| now >= old);
        self.until = until;
        if fresh {
            let names: Vec<Text> = self.groups.keys().cloned().collect();
            for name in names {
                self.on(now, &name, out, |group, port| group.deliver(port));
            }
        }
    }

    /// Whoever has kept the others waiting for so long.
    #[must_use]
    pub fn who_owes(&self, now: Time, patience: Span) -> BTreeSet<Life> {
        let Some(seating) = &self.seating else { return BTreeSet::new() };
        let exchange = (seating.begun, self.owing.iter().copied().collect());
        let changes = self.groups.values().filter_map(|group| group.owing(seating.me));
        let late = |(begun, _): &(Time, Vec<Life>)| since(*begun, now) >= patience;
        [exchange].into_iter().chain(changes).filter(late).flat_map(|(_, lives)| lives).collect()
    }

    fn note(&mut self, life: Life, entries: &[Entry]) {
        for entry in entries {
            let known = self.directory.entry(entry.group.clone()).or_default();
            known.insert(life, entry.clone());
        }
    }

    /// All have said which groups they are in: each group goes on to its first view of this epoch.
    fn open(&mut self, now: Time, out: &mut dyn Outlet) {
        let Some(Seating { epoch, me, lives, .. }) = self.seating.clone() else { return };
        out.trace("all groups are known", &[("groups", self.directory.len() as u64)]);
        let next = ViewId { epoch, number: 0 };
        for (name, entries) in core::mem::take(&mut self.directory) {
            let top = entries.values().filter_map(|entry| entry.view).max();
            let goes_on =
                |entry: &Entry| top.is_some() && (entry.view == top || entry.promised == top);
            let party: Vec<Life> =
                entries.iter().filter(|(_, it)| goes_on(it)).map(|(life, _)| *life).collect();
            // Who alone has the state leaves when others have been given it.
            let kept = entries.values().any(|it| it.stays && goes_on(it) && it.has);
            let stays = |entry: &Entry| match entry.view {
                None => entry.stays,
                Some(_) => goes_on(entry) && (entry.stays || (entry.has && !kept)),
            };
            let mut members: Vec<Fellow> = entries
                .iter()
                .filter(|(_, entry)| stays(entry))
                .map(|(life, entry)| Fellow { life: *life, stateful: entry.stateful })
                .collect();
            if !entries.values().any(|entry| entry.stays) {
                members.clear();
            }
            if lives.first() == Some(&me) && !members.is_empty() {
                self.rolls.insert(name.clone(), Roll { members: members.clone(), number: 0 });
            }
            let Some(mine) = entries.get(&me) else { continue };
            if mine.view.is_some() && mine.view != top {
                self.on(now, &name, out, |group, port| group.catch_up(port));
                self.sweep(now, &name, out);
            }
            if mine.view.is_some() && !goes_on(mine) {
                // It wanted to leave, and all others have, or begun anew.
                if self.groups.remove(&name).is_some() {
                    out.tell(Event::Out(name));
                }
                continue;
            }
            if members.iter().any(|fellow| fellow.life == me) || party.contains(&me) {
                let change = Closing::new(next, members, party);
                self.on(now, &name, out, |group, port| group.change(port, change));
            }
            self.sweep(now, &name, out);
        }
    }

    /// Forgets a group that this process is in no more. Who was kept for its state asks again to leave.
    fn sweep(&mut self, now: Time, name: &Text, out: &mut dyn Outlet) {
        let Some(group) = self.groups.get_mut(name) else { return };
        let epoch = self.seating.as_ref().map(|seating| seating.epoch);
        let kept = !group.stays && group.view().map(|view| view.epoch) == epoch;
        if group.is_over() {
            self.groups.remove(name);
        } else if kept && group.asked != epoch {
            group.asked = epoch;
            self.ask_the_senior(now, name, Body::Leave, out);
        }
    }

    // The roll

    /// Tells the most senior member, who keeps the roll.
    fn ask_the_senior(&mut self, now: Time, group: &Text, body: Body, out: &mut dyn Outlet) {
        let Some(seating) = self.seating.clone() else { return };
        let Some(senior) = seating.lives.first().copied() else { return };
        if senior == seating.me {
            self.enroll(now, seating.me, group, &body, out);
        } else {
            self.say(&[senior], now, group, body, out);
        }
    }

    /// Somebody joins a group, or leaves it.
    fn enroll(&mut self, now: Time, life: Life, group: &Text, body: &Body, out: &mut dyn Outlet) {
        let Some(seating) = self.seating.clone() else { return };
        if seating.lives.first() != Some(&seating.me) {
            return out.trace("not the senior", &[("life", life.0)]);
        }
        if !self.owing.is_empty() {
            // Who is in which group is not known yet.
            let place = seating.lives.iter().position(|it| *it == life);
            let Some(node) = place.and_then(|place| seating.nodes.get(place)) else { return };
            let (group, body) = (group.clone(), body.clone());
            let frame = Frame { epoch: seating.epoch, by: life, group, body };
            return self.keep(*node, frame, out);
        }
        let roll = self.rolls.entry(group.clone()).or_default();
        let party: Vec<Life> = roll.members.iter().map(|fellow| fellow.life).collect();
        match *body {
            Body::Join { stateful } if !party.contains(&life) => {
                roll.members.push(Fellow { life, stateful });
            }
            Body::Leave if party.contains(&life) => {
                roll.members.retain(|fellow| fellow.life != life);
            }
            _ => return out.trace("nothing changes", &[("life", life.0)]),
        }
        roll.number += 1;
        let next = ViewId { epoch: seating.epoch, number: roll.number };
        let members = roll.members.clone();
        let mut to: Vec<Life> =
            members.iter().map(|fellow| fellow.life).chain(party.clone()).collect();
        to.sort_unstable();
        to.dedup();
        let change = Body::Change { next, party: party.clone(), members: members.clone() };
        self.say(&to, now, group, change, out);
        if to.contains(&seating.me) {
            let change = Closing::new(next, members, party);
            self.on(now, group, out, |group, port| group.change(port, change));
            self.sweep(now, group, out);
        }
    }

    // Frames

    /// Somebody says something about groups.
    pub fn receive(&mut self, now: Time, from: NodeId, frame: Frame, out: &mut dyn Outlet) {
        let Some(seating) = &self.seating else { return self.keep(from, frame, out) };
        if frame.epoch > seating.epoch {
            return self.keep(from, frame, out);
        }
        let place = seating.nodes.iter().position(|node| *node == from);
        if place.and_then(|place| seating.lives.get(place)) != Some(&frame.by) {
            return out.trace("stale", &[("by", frame.by.0)]);
        }
        let current = frame.epoch == seating.epoch;
        let Frame { epoch, by, group, body } = frame;
        match body {
            Body::Groups { .. } | Body::Join { .. } | Body::Leave | Body::Change { .. }
                if !current =>
            {
                out.trace("stale", &[("by", by.0)]);
            }
            // The first view of this epoch comes before it.
            Body::Change { .. } if !self.owing.is_empty() => {
                self.keep(from, Frame { epoch, by, group, body }, out);
            }
            Body::Groups { entries, left } => {
                self.note(by, &entries);
                if left == 0 {
                    self.heard_from(now, by, out);
                }
            }
            Body::Join { .. } | Body::Leave => self.enroll(now, by, &group, &body, out),
            body => {
                let known = self.on(now, &group, out, |group, port| {
                    if group.early() >= port.limits.early {
                        port.out.trace("too much came early", &[("by", by.0)]);
                    } else {
                        group.receive(port, by, body);
                    }
                });
                match known {
                    Some(()) => self.sweep(now, &group, out),
                    None => out.trace("no such group", &[("by", by.0)]),
                }
            }
        }
    }

    fn keep(&mut self, from: NodeId, frame: Frame, out: &mut dyn Outlet) {
        if self.early.len() >= self.limits.early {
            return out.trace("too much came early", &[("from", from.into())]);
        }
        self.early.push((from, frame));
    }
}

/// Those whose places fit.
fn except<T: Copy>(all: &[T], fits: impl Fn(usize) -> bool) -> Arc<[T]> {
    all.iter().enumerate().filter(|(at, _)| fits(*at)).map(|(_, it)| *it).collect()
}

fn port<'a>(
    seating: &'a Seating,
    limits: &'a Limits,
    (now, until): (Time, Option<Time>),
    out: &'a mut dyn Outlet,
) -> Port<'a> {
    let Seating { epoch, me, lives, nodes, .. } = seating;
    let lease = until.is_some_and(|until| now < until);
    Port { epoch: *epoch, me: *me, lives, nodes, lease, now, limits, out }
}
