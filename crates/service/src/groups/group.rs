//! A group at one process: its views one after the other.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{Life, NodeId, NodeSet, Span, Time};

use super::state::{Awaiting, Giving};
use super::stream::{Outbox, Stream};
use super::words::{Body, Event, Fellow, Frame, Limits, Outlet, Pack, Possession, Refused, ViewId};
use crate::lease::since;
use crate::locks::Text;
use crate::register::Epoch;

/// A message goes out at once if none did for so long; else it waits for others.
pub const LINGER: Span = Span(20_000);

/// What a step of a group sees of the world.
pub(super) struct Port<'a> {
    pub(super) epoch: Epoch,
    pub(super) me: Life,
    pub(super) lives: &'a [Life],
    pub(super) nodes: &'a [NodeId],
    /// May this process act?
    pub(super) lease: bool,
    pub(super) now: Time,
    pub(super) limits: &'a Limits,
    pub(super) out: &'a mut dyn Outlet,
}

impl Port<'_> {
    /// Says something about a group to these, but not to itself.
    pub(super) fn send<'l>(
        &mut self,
        to: impl IntoIterator<Item = &'l Life>,
        group: &Text,
        body: Body,
    ) {
        let (me, lives, nodes) = (self.me, self.lives, self.nodes);
        let others = to.into_iter().filter(|life| **life != me);
        let node = |life: &Life| nodes.get(lives.iter().position(|it| it == life)?).copied();
        let to: NodeSet = others.filter_map(node).collect();
        if !to.is_empty() {
            let frame = Frame { epoch: self.epoch, by: me, group: group.clone(), body };
            self.out.send(to, frame);
        }
    }
}

/// A group that this process is in, or wants to be in.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Group {
    pub(super) name: Text,
    /// Does this process keep a state, which who joins is given?
    pub(super) stateful: bool,
    /// Does it want to be in the next view?
    pub(super) stays: bool,
    /// Is it in none any more?
    over: bool,
    /// In which view of the cluster it has asked to be let out.
    pub(super) asked: Option<Epoch>,
    /// The view that it is in.
    pub(super) stream: Option<Stream>,
    /// The view that follows, once it is known.
    closing: Option<Closing>,
    /// The view that followed when this process had said DONE: somebody may have begun it.
    promised: Option<(ViewId, Vec<Fellow>)>,
    /// Changes after the one that is under way.
    changes: VecDeque<Closing>,
    /// What was said in views that have not begun here.
    ahead: Vec<(Life, Body)>,
    outbox: Outbox,
    /// Was a message refused because there was no room?
    refused: bool,
    /// When a unit went out last.
    sent: Time,
    pub(super) possession: Possession,
    pub(super) awaiting: Option<Awaiting>,
    pub(super) giving: Vec<Giving>,
}

/// The change from the view of the group to the next one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Closing {
    /// The view that begins.
    pub(super) next: ViewId,
    /// Who is in it.
    pub(super) members: Vec<Fellow>,
    /// Who goes on from the view that ends.
    pub(super) party: Vec<Life>,
    /// Who has said all that it has to say in the view that ends.
    marks: BTreeSet<Life>,
    /// Who has everything of the view that ends.
    dones: BTreeMap<Life, Possession>,
    /// Since when it is under way.
    since: Time,
}

impl Closing {
    pub(super) fn new(next: ViewId, mut members: Vec<Fellow>, party: Vec<Life>) -> Self {
        members.sort_unstable();
        let (marks, dones) = (BTreeSet::new(), BTreeMap::new());
        Self { next, members, party, marks, dones, since: Time::ZERO }
    }
}

impl Group {
    /// One that this process wants to be in.
    pub(super) fn wanted(name: Text, stateful: bool) -> Self {
        Self {
            name,
            stateful,
            stays: true,
            over: false,
            asked: None,
            stream: None,
            closing: None,
            promised: None,
            changes: VecDeque::new(),
            ahead: Vec::new(),
            outbox: Outbox::default(),
            refused: false,
            sent: Time::ZERO,
            possession: if stateful { Possession::Awaits(None) } else { Possession::Stateless },
            awaiting: None,
            giving: Vec::new(),
        }
    }

    /// The view that it is in.
    pub(super) fn view(&self) -> Option<ViewId> {
        self.stream.as_ref().map(|stream| stream.view)
    }

    // Users

    /// Messages to all.
    pub(super) fn send(&mut self, port: &mut Port<'_>, pack: Pack) -> Result<(), Refused> {
        if !self.stays {
            return Err(Refused::NotIn);
        }
        if !pack.is_sound(port.limits) {
            return Err(Refused::TooLong);
        }
        let under_way = self.under_way();
        if under_way > 0 && under_way + pack.cost() > port.limits.window {
            self.refused = true;
            return Err(Refused::Full);
        }
        self.outbox.push(port.limits, pack);
        if since(self.sent, port.now) >= LINGER || self.outbox.is_full(port.limits) {
            self.flush(port);
        }
        Ok(())
    }

    /// What is sent and not taken by all, and what waits to be sent.
    pub(super) fn under_way(&self) -> usize {
        self.stream.as_ref().map_or(0, Stream::under_way) + self.outbox.cost()
    }

    /// The user has taken units of a sender, up to this one.
    pub(super) fn take(&mut self, port: &mut Port<'_>, view: ViewId, rank: usize, number: u64) {
        if let Some(stream) = self.stream.as_mut().filter(|stream| stream.view == view) {
            stream.take(rank, number);
            self.tell_room(port);
        }
    }

    fn tell_room(&mut self, port: &mut Port<'_>) {
        if self.refused && self.under_way() <= port.limits.window / 2 {
            self.refused = false;
            port.out.tell(Event::Room(self.name.clone()));
        }
    }

    // Inside of a view

    /// Is there anything to be said?
    pub(super) fn is_due(&self, limits: &Limits) -> bool {
        let open = self.stream.as_ref().filter(|stream| !stream.sealed);
        open.is_some_and(|it| !self.outbox.is_empty() || it.has_untold() || it.owes_acks(limits))
    }

    /// Says what is to be said in this view.
    pub(super) fn flush(&mut self, port: &mut Port<'_>) {
        loop {
            let open = |stream: &&mut Stream| !stream.sealed || flaw!(SendAfterTheMark);
            let Some(stream) = self.stream.as_mut().filter(open) else { return };
            let pack = self.outbox.pop();
            let more = pack.is_some();
            let unit = pack.map(|pack| {
                self.sent = port.now;
                stream.compose(pack)
            });
            let (base, placed) = stream.untold();
            let acks = stream.owes_acks(port.limits).then(|| stream.say());
            if unit.is_some() || !placed.is_empty() || acks.is_some() {
                let members = Arc::clone(&stream.members);
                let body = Body::Turn { view: stream.view, unit, base, placed, acks };
                port.send(&*members, &self.name, body);
            }
            self.deliver(port);
            if !more {
                return;
            }
        }
    }

    /// Delivers what can be delivered.
    pub(super) fn deliver(&mut self, port: &mut Port<'_>) {
        let Some(stream) = &mut self.stream else { return };
        let (view, members) = (stream.view, Arc::clone(&stream.members));
        let group = &self.name;
        stream.deliver(port.lease, |rank, unit| {
            let (group, from) = (group.clone(), members[rank]);
            port.out.tell(Event::Unit { group, view, rank, from, unit });
        });
        self.tell_room(port);
    }

    /// Somebody says something about this group.
    pub(super) fn receive(&mut self, port: &mut Port<'_>, by: Life, body: Body) {
        match body {
            Body::Turn { view, .. } => match self.view() {
                Some(mine) if mine == view => self.on_turn(port, by, body),
                Some(mine) if mine > view => port.out.trace("stale", &[("epoch", view.epoch.0)]),
                _ => self.ahead.push((by, body)),
            },
            Body::Found { next, .. }
            | Body::Log { next, .. }
            | Body::Mark { next, .. }
            | Body::Done { next, .. } => match &self.closing {
                Some(closing) if closing.next == next => self.on_closing(port, by, body),
                Some(closing) if closing.next > next => {
                    port.out.trace("stale", &[("epoch", next.epoch.0)]);
                }
                None if self.view() >= Some(next) => {
                    port.out.trace("stale", &[("epoch", next.epoch.0)]);
                }
                _ => self.ahead.push((by, body)),
            },
            Body::Change { next, party, members } => {
                let change = Closing::new(next, members, party);
                self.changes.push_back(change);
                self.go_on(port);
            }
            // Whoever gives it may have begun the view earlier.
            Body::State { at, .. } if self.view() < Some(at) => self.ahead.push((by, body)),
            Body::State { at, offset, total, bytes } => {
                self.on_state(port, by, at, (offset, total), &bytes);
            }
            Body::Got { at, offset } => self.on_got(port, by, at, offset),
            Body::Groups { .. } | Body::Join { .. } | Body::Leave => {}
        }
    }

    fn on_turn(&mut self, port: &mut Port<'_>, by: Life, body: Body) {
        let Body::Turn { unit, base, placed, acks, .. } = body else { return };
        let Some(stream) = &mut self.stream else { return };
        let closing = self.closing.as_ref();
        // Who does not go on was heard for the last time when this process said what it has of it.
        let late = closing.is_some_and(|it| it.marks.contains(&by) || !it.party.contains(&by));
        let Some(rank) = stream.rank_of(by).filter(|_| !late) else {
            return port.out.trace("stale", &[("by", by.0)]);
        };
        if let Some(unit) = unit
            && !stream.receive(rank, unit)
        {
            port.out.trace("unsound", &[("by", by.0)]);
        }
        if rank == 0 && !placed.is_empty() && !stream.follow(base, &placed) {
            port.out.trace("unsound", &[("by", by.0)]);
        }
        if let Some(acks) = acks {
            stream.hear(rank, acks);
        }
        self.deliver(port);
    }

    // From view to view

    /// A view of the cluster begins: a change inside of the last one is not finished any more.
    pub(super) fn begin_epoch(&mut self, epoch: Epoch) {
        self.closing = None;
        self.changes.clear();
        self.giving.clear();
        self.ahead.retain(|(_, body)| match body {
            Body::Found { next, .. }
            | Body::Log { next, .. }
            | Body::Mark { next, .. }
            | Body::Done { next, .. } => next.epoch >= epoch,
            _ => true,
        });
        if let Possession::Awaits(donor) = &mut self.possession {
            *donor = None;
        }
    }

    /// The view that it has said DONE for, if it is in it.
    pub(super) fn promised(&self, me: Life) -> Option<ViewId> {
        let (view, members) = self.promised.as_ref()?;
        members.iter().any(|fellow| fellow.life == me).then_some(*view)
    }

    /// Somebody has begun a later view, so everybody had everything of this one: this process as well. It
    /// begins the view that it has said DONE for; false if it has not.
    pub(super) fn catch_up(&mut self, port: &mut Port<'_>) -> bool {
        let Some((view, members)) = self.promised.clone() else { return false };
        port.out.trace("catch up", &[("epoch", view.epoch.0), ("number", view.number)]);
        self.close(port);
        self.install(port, view, members, &BTreeMap::new());
        true
    }

    /// The next view is known.
    pub(super) fn change(&mut self, port: &mut Port<'_>, change: Closing) {
        self.changes.push_back(change);
        self.go_on(port);
    }

    /// Begins the next change if none is under way, and goes on with what was said early.
    fn go_on(&mut self, port: &mut Port<'_>) {
        if self.closing.is_none()
            && let Some(change) = self.changes.pop_front()
        {
            self.begin_closing(port, change);
        }
    }

    fn begin_closing(&mut self, port: &mut Port<'_>, mut change: Closing) {
        change.since = port.now;
        // What is placed is told before the end; what waits to be sent waits for the next view.
        if let Some(stream) = &mut self.stream {
            let (base, placed) = stream.untold();
            if !placed.is_empty() {
                let members = Arc::clone(&stream.members);
                let (view, unit, acks) = (stream.view, None, None);
                let body = Body::Turn { view, unit, base, placed, acks };
                port.send(&*members, &self.name, body);
            }
            stream.sealed = true;
            let (view, next) = (stream.view, change.next);
            if !flaw!(TakeItAlong) {
                let gone: Vec<usize> = (0..stream.members.len())
                    .filter(|rank| !change.party.contains(&stream.members[*rank]))
                    .collect();
                for rank in gone {
                    for unit in stream.kept_of(rank) {
                        let (of, unit) = (rank as u32, unit.clone());
                        let body = Body::Found { view, next, of, unit };
                        port.send(&change.party, &self.name, body);
                    }
                    if rank == 0 {
                        let (base, placed) = stream.kept_log();
                        let body = Body::Log { view, next, base, placed };
                        port.send(&change.party, &self.name, body);
                    }
                }
            }
            let (sent, placed) = stream.said();
            port.send(&change.party, &self.name, Body::Mark { view, next, sent, placed });
        }
        self.closing = Some(change);
        self.hear_ahead(port);
        self.conclude(port);
    }

    /// Looks again at what was said before its time.
    fn hear_ahead(&mut self, port: &mut Port<'_>) {
        for (by, body) in core::mem::take(&mut self.ahead) {
            self.receive(port, by, body);
        }
    }

    fn on_closing(&mut self, port: &mut Port<'_>, by: Life, body: Body) {
        let view = self.view();
        let Some(closing) = &mut self.closing else { return };
        if !closing.party.contains(&by) {
            return port.out.trace("foreign", &[("by", by.0)]);
        }
        match (body, &mut self.stream) {
            (Body::Found { view: of_view, of, unit, .. }, Some(stream))
                if Some(of_view) == view =>
            {
                // Others may have found it, too.
                let _ = stream.receive(of as usize, unit);
            }
            (Body::Log { view: of_view, base, placed, .. }, Some(stream))
                if Some(of_view) == view =>
            {
                stream.complete(base, &placed);
            }
            (Body::Mark { view: of_view, sent, placed, .. }, Some(stream))
                if Some(of_view) == view =>
            {
                // A session may have been lost with something in it. Then one of the two has to go, and
                // until then nobody goes on.
                let rank = stream.rank_of(by);
                if rank.is_some_and(|rank| stream.has_all(rank, (sent, placed))) {
                    closing.marks.insert(by);
                    self.conclude(port);
                } else {
                    port.out.trace("something is missing", &[("by", by.0)]);
                }
            }
            (Body::Done { possession, .. }, _) => {
                closing.dones.insert(by, possession);
                self.conclude(port);
            }
            _ => port.out.trace("stale", &[("by", by.0)]),
        }
    }

    /// Says DONE if all have said MARK, and begins the next view if all have said DONE.
    pub(super) fn conclude(&mut self, port: &mut Port<'_>) {
        let me = port.me;
        let Some(closing) = &mut self.closing else { return };
        let goes_on = self.stream.is_some() && closing.party.contains(&me);
        // A state that is given by who leaves is given to the end.
        let comes = |life: Life| closing.members.iter().any(|fellow| fellow.life == life);
        let goes_on = goes_on
            && match self.possession {
                Possession::Awaits(Some(donor)) => !comes(me) || comes(donor),
                _ => comes(me) || self.giving.is_empty(),
            };
        let marked = |life: &Life| *life == me || closing.marks.contains(life);
        if goes_on && !closing.dones.contains_key(&me) && closing.party.iter().all(marked) {
            closing.dones.insert(me, self.possession);
            let next = closing.members.iter().map(|fellow| &fellow.life);
            let mut to: Vec<Life> = closing.party.iter().chain(next).copied().collect();
            to.sort_unstable();
            to.dedup();
            let body = Body::Done { next: closing.next, possession: self.possession };
            self.promised = Some((closing.next, closing.members.clone()));
            port.send(&to, &self.name, body);
        }
        let over = flaw!(BeginWhenMarked) && closing.dones.contains_key(&me);
        if !over && !closing.party.iter().all(|life| closing.dones.contains_key(life)) {
            return;
        }
        let Some(Closing { next, members, dones, .. }) = self.closing.take() else { return };
        self.close(port);
        self.install(port, next, members, &dones);
    }

    /// Delivers what is left of the view.
    fn close(&mut self, port: &mut Port<'_>) {
        let Some(stream) = &mut self.stream else { return };
        let (view, members) = (stream.view, Arc::clone(&stream.members));
        let group = &self.name;
        stream.close(|rank, unit| {
            let (group, from) = (group.clone(), members[rank]);
            port.out.tell(Event::Unit { group, view, rank, from, unit });
        });
        if !stream.is_drained() {
            port.out.trace("something is left", &[("epoch", view.epoch.0)]);
        }
    }

    fn install(
        &mut self,
        port: &mut Port<'_>,
        view: ViewId,
        fellows: Vec<Fellow>,
        dones: &BTreeMap<Life, Possession>,
    ) {
        self.promised = None;
        let members: Vec<Life> = fellows.iter().map(|fellow| fellow.life).collect();
        let Some(me) = members.iter().position(|life| *life == port.me) else {
            self.stream = None;
            self.over = true;
            return port.out.tell(Event::Left(self.name.clone()));
        };
        let fresh = self.stream.is_none();
        self.stream = Some(Stream::new(view, members.as_slice().into(), me));
        let (begins, awaits, gives) = self.see_to_states(port.me, view, &fellows, dones, fresh);
        port.out.trace("begin a view of a group", &[("members", members.len() as u64)]);
        let group = self.name.clone();
        port.out.tell(Event::View { group, view, members, begins, awaits, gives });
        self.tell_room(port);
        self.hear_ahead(port);
        // What waits goes out in every view, also if the next change is known already.
        self.flush(port);
        self.go_on(port);
    }

    /// Who is waited for in a change that is under way, since when.
    pub(super) fn owing(&self, me: Life) -> Option<(Time, Vec<Life>)> {
        // Who joins is told nothing before all have everything.
        let closing = self.closing.as_ref().filter(|_| self.stream.is_some())?;
        let owes = |life: &&Life| **life != me && !closing.marks.contains(*life);
        Some((closing.since, closing.party.iter().filter(owes).copied().collect()))
    }

    /// Is this process in it no more?
    pub(super) const fn is_over(&self) -> bool {
        self.over
    }

    /// How many frames came too early.
    pub(super) fn early(&self) -> usize {
        self.ahead.len()
    }
}
