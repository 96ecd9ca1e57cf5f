//! Nodes that do nothing for a while: because they are paused, or because a record is being written.
//! What happens to them meanwhile waits, and is handled afterwards in the order in which it came.

use quorate_core::trace::{Happening, Record};
use quorate_core::{
    CommandOf, Durable, Effect, EventOf, Input, NodeId, Protocol, System, Time, Workload,
};

use super::outside::Event;
use super::{Observer, World};

/// A node that does nothing now.
pub(super) struct Stalled<P: Protocol> {
    /// Until when.
    until: Time,
    /// What has happened to it meanwhile.
    waiting: Vec<Event<P>>,
    /// The step whose records are being written.
    writing: Option<Writing<P>>,
}

/// A step whose records are being written: nobody has seen anything of it.
struct Writing<P: Protocol> {
    effects: Vec<Effect<P>>,
    command: Option<P::Command>,
    record: Option<Record>,
}

impl<S, W, O> World<'_, S, W, O>
where
    S: System,
    W: Workload<CommandOf<S>, EventOf<S>>,
    O: Observer<CommandOf<S>, EventOf<S>>,
{
    /// The event, unless its node does nothing now: then it waits.
    #[inline]
    pub(super) fn unless_stalled(
        &mut self,
        event: Event<S::Protocol>,
    ) -> Option<Event<S::Protocol>> {
        if self.stalled.is_empty() {
            return Some(event);
        }
        match event.actor().and_then(|node| self.stalled.get_mut(&node)) {
            None => Some(event),
            Some(stalled) => {
                stalled.waiting.push(event);
                None
            }
        }
    }

    /// The node does nothing until then.
    pub(super) fn pause(&mut self, node: NodeId, until: Time) {
        if self.outside.is_up(node) {
            self.note(node, || Happening::Pause);
            self.stall(node, until, None);
        }
    }

    fn stall(&mut self, node: NodeId, until: Time, writing: Option<Writing<S::Protocol>>) {
        let fresh = || Stalled { until, waiting: Vec::new(), writing: None };
        let stalled = self.stalled.entry(node).or_insert_with(fresh);
        stalled.until = stalled.until.max(until);
        stalled.writing = stalled.writing.take().or(writing);
        self.outside.schedule(until, Event::Resume(node));
    }

    /// The node goes on: with the step that it had not finished, then with what has waited.
    pub(super) fn resume(&mut self, node: NodeId) {
        let over = |stalled: &Stalled<_>| stalled.until <= self.outside.now;
        if !self.stalled.get(&node).is_some_and(over) {
            return;
        }
        let Some(Stalled { waiting, writing, .. }) = self.stalled.remove(&node) else { return };
        match writing {
            Some(writing) => self.finish_writing(node, writing),
            None => self.note(node, || Happening::Resume),
        }
        let mut waiting = waiting.into_iter();
        while let Some(event) = waiting.next() {
            self.handle(event);
            if let Some(stalled) = self.stalled.get_mut(&node) {
                // A record is being written: the rest waits on, before what comes later.
                let mut rest: Vec<_> = waiting.collect();
                rest.append(&mut stalled.waiting);
                stalled.waiting = rest;
                return;
            }
        }
    }

    /// As [`World::step`], where records take time: the step is seen when they are on disk.
    pub(super) fn step_on_disk(
        &mut self,
        node: NodeId,
        input: Input<S::Protocol>,
        command: Option<CommandOf<S>>,
    ) {
        let Some(disk) = self.outside.faults.disk else { return };
        self.outside.withheld = Some(Vec::new());
        let result = self.act(node, |state, cx| state.step(cx, input));
        let effects = self.outside.withheld.take().unwrap_or_default();
        if let Err(refusal) = result {
            self.refuse(refusal);
            return self.end_record();
        }
        let records = effects.iter().filter(|effect| matches!(effect, Effect::Persist(_))).count();
        if records == 0 {
            self.carry_out(node, effects);
            self.tell(node, command);
            return self.end_record();
        }
        let record = self.outside.recorder.as_mut().and_then(quorate_core::trace::Recorder::end);
        let until = self.outside.now + disk.write.times(records as u64);
        self.stall(node, until, Some(Writing { effects, command, record }));
    }

    fn finish_writing(&mut self, node: NodeId, writing: Writing<S::Protocol>) {
        let Writing { effects, command, record } = writing;
        let now = self.outside.now;
        if let (Some(recorder), Some(record)) = (&mut self.outside.recorder, record) {
            recorder.take_up(now, record);
        }
        self.carry_out(node, effects);
        self.tell(node, command);
        self.end_record();
    }

    /// The node crashes: what waits for it is lost, and what is being written is left to the disk.
    pub(super) fn drop_stalled(&mut self, node: NodeId) {
        let Some(Stalled { waiting, writing, .. }) = self.stalled.remove(&node) else { return };
        for event in waiting {
            match event {
                Event::Deliver { from, to, id, msg, .. } => {
                    self.deliver(from, to, id, true, msg);
                }
                Event::User(node) => self.user_pending[node.index()] = false,
                _ => {}
            }
        }
        let torn = self.outside.faults.disk.map_or(0.0, |disk| disk.torn);
        for effect in writing.into_iter().flat_map(|writing| writing.effects) {
            let Effect::Persist(record) = effect else { continue };
            let kept = self.outside.kept.entry(node).or_default();
            if self.outside.chances.chance(torn) {
                kept.lose(&record.key());
            } else if self.outside.chances.chance(0.5) {
                kept.put(record);
            }
        }
    }
}
