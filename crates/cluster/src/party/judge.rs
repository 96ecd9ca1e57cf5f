//! The oracle of a run over a network, and what is counted for it.

use quorate_core::trace::{Happening, Outcome as Effect, Record};
use quorate_core::{End, Fact, Judge, Monitor, NodeId, PerNode, Time, Verdict, Violation};

/// What a run over a network came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// How many steps were taken.
    pub steps: u64,
    /// When the last one was.
    pub end: Time,
    /// Did it come to rest, or was its time up?
    pub quiet: bool,
    /// Messages sent, each receiver of a multicast counted.
    pub messages: u64,
    /// Sendings: a multicast counts once.
    pub sendings: u64,
    /// Messages by kind, in the order of the paper.
    pub by_kind: Vec<(&'static str, u64)>,
    /// Messages sent and received, by node.
    pub handled: PerNode<u64>,
    /// Commands that were refused.
    pub refused: u64,
    /// What the oracle says, by property.
    pub verdicts: Vec<(&'static str, Verdict)>,
}

impl Outcome {
    /// What did not hold, and since when.
    pub fn violations(&self) -> impl Iterator<Item = (Time, &Violation)> {
        self.verdicts.iter().filter_map(|(_, verdict)| match verdict {
            Verdict::Violated(at, violation) => Some((*at, violation)),
            _ => None,
        })
    }
}

/// The oracle, and what has been counted so far.
pub(crate) struct Tribunal<M> {
    judge: Judge<M>,
    steps: u64,
    messages: u64,
    sendings: u64,
    by_kind: Vec<(&'static str, u64)>,
    handled: PerNode<u64>,
    refused: u64,
}

impl<M> Tribunal<M> {
    pub(crate) fn new<C, E>(monitor: M, kinds: &[&'static str], count: usize) -> Self
    where
        M: Monitor<C, E>,
    {
        Self {
            judge: Judge::new(monitor),
            steps: 0,
            messages: 0,
            sendings: 0,
            by_kind: kinds.iter().map(|kind| (*kind, 0)).collect(),
            handled: PerNode::new(count, |_| 0),
            refused: 0,
        }
    }

    pub(crate) fn count(&mut self, record: &Record) {
        self.steps += 1;
        match record.input {
            Happening::Receive(_) => self.handled[record.node] += 1,
            Happening::Refused(..) => self.refused += 1,
            _ => {}
        }
        for effect in &record.effects {
            let Effect::Send { to, kind, .. } = effect else { continue };
            let receivers = to.len() as u64;
            self.sendings += 1;
            self.messages += receivers;
            self.handled[record.node] += receivers;
            if let Some((_, count)) = self.by_kind.iter_mut().find(|(known, _)| known == kind) {
                *count += receivers;
            }
        }
    }

    /// Judges a fact.
    pub(crate) fn fact<C, E>(
        &mut self,
        now: Time,
        at: NodeId,
        fact: Fact<'_, C, E>,
    ) -> Option<Violation>
    where
        M: Monitor<C, E>,
    {
        self.judge.fact(now, at, fact)
    }

    /// Would this be a good end?
    pub(crate) fn is_content<C, E>(&self) -> bool
    where
        M: Monitor<C, E>,
    {
        self.judge.monitor().settle().is_empty()
    }

    /// Judges the end. Returns where and what, if it is not a good one.
    pub(crate) fn settle<C, E>(
        &mut self,
        now: Time,
        quiet: bool,
    ) -> Option<(NodeId, Vec<Violation>)>
    where
        M: Monitor<C, E>,
    {
        self.judge.end(now, if quiet { End::Rest } else { End::Cut })
    }

    pub(crate) fn outcome<C, E>(self, end: Time, quiet: bool) -> Outcome
    where
        M: Monitor<C, E>,
    {
        Outcome {
            verdicts: self.judge.verdicts(),
            steps: self.steps,
            end,
            quiet,
            messages: self.messages,
            sendings: self.sendings,
            by_kind: self.by_kind,
            handled: self.handled,
            refused: self.refused,
        }
    }
}
