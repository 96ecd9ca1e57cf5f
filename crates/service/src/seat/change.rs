//! The change to the next view: who may be missing, who comes, and that all have stopped.
//!
//! The most senior member that goes on leads it. It asks all who will be in the next view whether they
//! hear it (PING); has those who were in the last one stop granting (FLUSH); and orders the view. None
//! of that begins before everybody who will be missing has a ground. So nobody is stopped while a
//! lease runs down.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use quorate_core::{Ctx, Life, NodeId, Time};

use super::words::{Event, Msg};
use super::{Party, Seat};
use crate::lease::{silence, since};
use crate::register::{
    Epoch, Gone, Ground, Member, Order, Process, ProposalId, Refused, Register, STRIKES_MAX,
    Standing,
};

/// A change that is led.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Change {
    id: ProposalId,
    staying: Vec<Life>,
    joining: Vec<Life>,
    gone: Vec<Gone>,
    phase: Phase,
    /// Who has not answered yet.
    owing: BTreeSet<Life>,
    /// When the phase began.
    since: Time,
}

/// How far a change is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Do all hear?
    Asking,
    /// Have all stopped?
    Stopping,
    /// It is ordered.
    Deciding,
}

impl Seat {
    /// Does what is due: says who was silent for too long, and leads the change if it is to lead.
    pub(super) fn consider(&mut self, cx: &mut Ctx<'_, Party>) {
        let Some(mine) = self.life() else { return };
        let register = alloc::sync::Arc::clone(&self.known.register);
        self.doom_the_silent(cx, mine, &register);
        self.mind_broken_links(cx, mine, &register);
        if self.coordinator(&register) == Some(mine) {
            self.lead(cx, mine, &register);
        } else {
            self.change = None;
            self.mind_the_coordinator(cx, &register);
        }
    }

    /// Whoever has been silent for longer than its lease, since its last beat was seen *here*.
    fn doom_the_silent(&self, cx: &mut Ctx<'_, Party>, mine: Life, register: &Register) {
        for (life, member) in register.members().filter(|(life, _)| *life != mine) {
            let Some((beat, seen)) = self.seen.get(&life) else { continue };
            let lease = match flaw!(LeaseOfAnotherBeat) {
                true => self.length(),
                false => member.lease,
            };
            let over = register.ground(life).is_some();
            if !over && since(*seen, cx.now()) >= silence(lease) {
                cx.trace("doom", &[("life", life.0), ("beat", beat.0)]);
                self.order(cx, Order::Doom { life, beat: *beat });
            }
        }
    }

    /// Is the process of this life over, by the kernel's word? By that of this node's kernel, or
    /// because another process of the same member has taken its place, on the same disk.
    fn is_dead(&self, register: &Register, life: Life, member: &Member) -> bool {
        let follows = |later: &Process, former: &Process| {
            let other = later.start() != former.start();
            let place = later.boot == former.boot && later.lock_file == former.lock_file;
            place && (other || flaw!(RejoinIsEvidence))
        };
        let followed = || {
            let mut later = register.members_after(life);
            later.any(|(_, other)| follows(&other.process, &member.process))
        };
        let exited = || self.exited.contains(&member.process.start());
        let evident = || self.config.evidence && (exited() || followed());
        !member.hosts && (evident() || self.is_refused(register, life, member))
    }

    /// Do at least two, and most of the other members, say that its place has refused connections since
    /// its last beat? One alone may be behind a firewall that says so.
    fn is_refused(&self, register: &Register, life: Life, member: &Member) -> bool {
        if !self.config.trust_refusal {
            return false;
        }
        let others = register.view().iter().filter(|other| **other != life);
        let others = others.filter_map(|other| register.member(*other));
        let says = |other: &&Member| other.refused.get(&life) == Some(&member.beat);
        let count = others.clone().filter(says).count();
        match flaw!(RefusalTrustedAlone) {
            true => count >= 1,
            false => count >= 2 && 2 * count > others.count(),
        }
    }

    /// Why a life may be missing from the next view, if it may.
    fn ground(&self, register: &Register, life: Life) -> Option<Ground> {
        let member = register.member(life)?;
        let dead = || self.is_dead(register, life, member).then_some(Ground::Dead(member.beat));
        register.ground(life).or_else(dead)
    }

    /// Does this life go on, as far as is known here?
    pub(super) fn goes_on(&self, register: &Register, life: Life) -> bool {
        register.goes_on(life) && self.ground(register, life).is_none()
    }

    /// The most senior member that goes on; of a view of which nobody is left, the first that waits.
    fn coordinator(&self, register: &Register) -> Option<Life> {
        let seated = register.view().iter().copied().find(|life| self.goes_on(register, *life));
        let abandoned =
            || register.view().iter().all(|life| self.ground(register, *life).is_some());
        seated.or_else(|| {
            let waiting = register.members().map(|(life, _)| life);
            waiting.filter(|_| abandoned()).find(|life| self.goes_on(register, *life))
        })
    }

    fn lead(&mut self, cx: &mut Ctx<'_, Party>, mine: Life, register: &Register) {
        self.forgive(cx, register);
        let view = register.view();
        let staying: Vec<Life> =
            view.iter().copied().filter(|life| self.goes_on(register, *life)).collect();
        let missing = view.iter().filter(|life| !staying.contains(life));
        let gone: Option<Vec<Gone>> = missing
            .map(|&life| self.ground(register, life).map(|ground| Gone { life, ground }))
            .collect();
        // Somebody will be missing, and there is no ground for it yet.
        let Some(gone) = gone else { return self.change = None };
        if let Some(change) = &mut self.change {
            let mut same = change.staying == staying && change.gone.len() == gone.len();
            same &= change.joining.iter().all(|life| register.goes_on(*life));
            if same {
                // A beat may have come in since the evidence was seen.
                change.gone = gone;
                return self.press_on(cx, register);
            }
            self.change = None;
        }
        let joining = self.newcomers(cx.now(), mine, register, &staying);
        let due = !gone.is_empty() || !joining.is_empty() || self.stopped.is_some();
        if due {
            self.begin(cx, mine, register, (staying, joining, gone));
        }
    }

    /// Who waits, and reaches all who stay.
    fn newcomers(&self, now: Time, mine: Life, register: &Register, staying: &[Life]) -> Vec<Life> {
        let unreachable = self.unreachable(now);
        let mut newcomers = Vec::new();
        for (life, member) in register.members() {
            let waits = member.standing == Standing::Waiting && self.goes_on(register, life);
            let heard = life == mine || (member.beat.0 > 0 && !unreachable.contains(&life));
            let others = staying.iter().chain(&newcomers);
            let reached = others.clone().all(|other| !register.are_apart(life, *other));
            let in_time = staying.is_empty() || self.has_paused(now, register, life, member);
            let in_time = in_time && (staying.is_empty() || !flaw!(NobodyComesIn));
            if waits && heard && reached && in_time {
                newcomers.push(life);
            }
        }
        newcomers
    }

    /// Has whoever comes back after it was doomed stayed away for long enough? It keeps all others
    /// waiting each time that it is lost.
    fn has_paused(&self, now: Time, register: &Register, life: Life, member: &Member) -> bool {
        let strikes = register.strikes(&member.name);
        let Some(doublings) = strikes.checked_sub(1) else { return true };
        let pause = self.length().times(1 << doublings);
        let waits = self.here.get(&(life, Standing::Waiting));
        waits.is_some_and(|seen| since(*seen, now) >= pause)
    }

    /// Forgives whoever has sat for as long as the longest pause.
    fn forgive(&self, cx: &mut Ctx<'_, Party>, register: &Register) {
        let long = self.length().times(1 << (STRIKES_MAX - 1));
        for name in register.struck() {
            let sits = |life: &&Life| register.member(**life).is_some_and(|it| it.name == name);
            let Some(life) = register.view().iter().find(sits) else { continue };
            let seen = self.here.get(&(*life, Standing::Seated));
            if seen.is_some_and(|seen| since(*seen, cx.now()) >= long) {
                self.order(cx, Order::Forgive(name.into()));
            }
        }
    }

    fn begin(
        &mut self,
        cx: &mut Ctx<'_, Party>,
        mine: Life,
        register: &Register,
        (staying, joining, gone): (Vec<Life>, Vec<Life>, Vec<Gone>),
    ) {
        self.changes += 1;
        let id = ProposalId(u128::from(mine.0) << 64 | u128::from(self.changes));
        cx.trace("begin a change", &[("staying", staying.len() as u64)]);
        let mut owing: BTreeSet<Life> = staying.iter().chain(&joining).copied().collect();
        owing.remove(&mine);
        let since = cx.now();
        let phase = Phase::Asking;
        self.change = Some(Change { id, staying, joining, gone, phase, owing, since });
        self.press_on(cx, register);
    }

    /// Says again what has not been answered, and goes on to the next phase if all has.
    fn press_on(&mut self, cx: &mut Ctx<'_, Party>, register: &Register) {
        let (now, epoch) = (cx.now(), register.epoch());
        let Some(mine) = self.life() else { return };
        let Some(mut change) = self.change.take() else { return };
        if change.phase == Phase::Asking {
            // Whoever wants to come in and does not answer waits for the next change.
            let patience = self.tick().times(2);
            let silent = since(change.since, now) >= patience;
            if change.owing.iter().all(|life| silent && change.joining.contains(life)) {
                let Change { joining, owing, .. } = &mut change;
                joining.retain(|life| !owing.contains(life));
                let due = !change.gone.is_empty() || !change.joining.is_empty();
                if !due && self.stopped.is_none() {
                    return;
                }
                change.phase = Phase::Stopping;
                change.owing = change.staying.iter().copied().filter(|it| *it != mine).collect();
                change.since = now;
                self.stop(cx);
            }
        }
        let patient = !flaw!(PassOverWhoOwes) || since(change.since, now) < self.tick().times(2);
        if change.phase == Phase::Stopping && (change.owing.is_empty() || !patient) {
            change.phase = Phase::Deciding;
        }
        self.put_again(cx, mine, epoch, &change);
        self.bar_who_owes(cx, now, epoch, &change);
        self.change = Some(change);
    }

    fn put_again(&self, cx: &mut Ctx<'_, Party>, mine: Life, epoch: Epoch, change: &Change) {
        let id = change.id;
        let msg = match change.phase {
            Phase::Asking => Msg::Ping { by: mine, change: Some(id) },
            Phase::Stopping => Msg::Flush { epoch, change: id },
            Phase::Deciding => {
                let next = change.staying.iter().chain(&change.joining).copied().collect();
                let gone = change.gone.clone();
                return self.order(cx, Order::Decide { after: epoch, id, next, gone });
            }
        };
        for node in change.owing.iter().filter_map(|life| self.node_of(*life)) {
            cx.send(node, msg.clone());
        }
    }

    /// Whoever renews, is reached, and owes an answer for longer than a lease, keeps all others from
    /// going on.
    fn bar_who_owes(&self, cx: &mut Ctx<'_, Party>, now: Time, epoch: Epoch, change: &Change) {
        if since(change.since, now) < silence(self.length()) || change.phase == Phase::Deciding {
            return;
        }
        let unreachable = self.unreachable(now);
        let owing = change.owing.iter().filter(|life| change.staying.contains(life));
        let lives: BTreeSet<Life> = owing.filter(|it| !unreachable.contains(it)).copied().collect();
        if !lives.is_empty() {
            cx.trace("bar who owes an answer", &[("lives", lives.len() as u64)]);
            self.order(cx, Order::Bar { after: epoch, lives });
        }
    }

    /// A coordinator that renews and does not make a change that is due is barred by the others. Where a
    /// bar is open the change has to wait, and whoever leads next has all the time again.
    fn mind_the_coordinator(&mut self, cx: &mut Ctx<'_, Party>, register: &Register) {
        let due = register.view().iter().any(|life| register.ground(*life).is_some());
        let coordinator = self.coordinator(register).filter(|_| due && !register.bar_is_open());
        let Some(coordinator) = coordinator else { return self.overdue = None };
        let overdue = self.overdue.filter(|(owing, _)| *owing == coordinator);
        let (_, begun) = *self.overdue.insert(overdue.unwrap_or((coordinator, cx.now())));
        let patience = silence(self.length()).times(2);
        if since(begun, cx.now()) >= patience {
            cx.trace("bar the coordinator", &[("life", coordinator.0)]);
            let lives = BTreeSet::from([coordinator]);
            self.order(cx, Order::Bar { after: register.epoch(), lives });
        }
    }

    pub(super) fn on_pong(&mut self, cx: &mut Ctx<'_, Party>, by: Life, id: Option<ProposalId>) {
        let asking = |change: &&mut Change| change.phase == Phase::Asking && Some(change.id) == id;
        if let Some(change) = self.change.as_mut().filter(asking)
            && change.owing.remove(&by)
            && change.owing.is_empty()
        {
            self.consider(cx);
        }
    }

    pub(super) fn on_flush(
        &mut self,
        cx: &mut Ctx<'_, Party>,
        from: NodeId,
        epoch: Epoch,
        change: ProposalId,
    ) {
        if self.view != Some(epoch) || self.life().is_none() {
            return cx.trace("stale", &[("epoch", epoch.0)]);
        }
        if !flaw!(FlushAndGoOn) {
            self.stop(cx);
        }
        cx.send(from, Msg::FlushOk { epoch, change });
    }

    /// Grants nothing more in this view.
    fn stop(&mut self, cx: &mut Ctx<'_, Party>) {
        if let (None, Some(epoch)) = (self.stopped, self.view) {
            self.stopped = Some(cx.now());
            cx.trace("stop", &[("view", epoch.0)]);
            cx.emit(Event::Stopped(epoch));
        }
    }

    pub(super) fn on_flush_ok(
        &mut self,
        cx: &mut Ctx<'_, Party>,
        from: NodeId,
        epoch: Epoch,
        id: ProposalId,
    ) {
        let register = &self.known.register;
        if epoch != register.epoch() {
            return;
        }
        let stopping = |change: &&mut Change| change.phase == Phase::Stopping && change.id == id;
        let Some(change) = self.change.as_mut().filter(stopping) else { return };
        let name = self.names.get(from.index());
        let by = |life: &Life| register.member(*life).map(|member| &member.name) == name;
        change.owing.retain(|life| !by(life));
        if change.owing.is_empty() {
            self.consider(cx);
        }
    }

    /// An order was refused: whatever it was about is looked at anew.
    pub(super) fn on_refused(&mut self, _: Refused) {
        if self.change.as_ref().is_some_and(|change| change.phase == Phase::Deciding) {
            self.change = None;
        }
    }

    /// The node of a life, if it is another one than this.
    pub(super) fn node_of(&self, life: Life) -> Option<NodeId> {
        let name = &self.known.register.member(life)?.name;
        self.node(name).filter(|node| *node != self.me)
    }
}
