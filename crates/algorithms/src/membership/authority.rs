//! Who decides which view follows which.

use alloc::boxed::Box;

use quorate_core::{Ctx, Message, NodeId, NodeSet, Protocol, Refusal, Sole, Wrap};

use super::majority::Retry;
use super::{Charter, Content, Ledger, Majority, MajorityMsg, Register, RegisterMsg};

/// A view that somebody would have follow.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Proposal<D> {
    /// The view.
    pub next: Charter<D>,
    /// Who works in the view before it, but the proposer.
    pub reach: NodeSet,
}

/// Decides which view follows which: one register that is compared and set.
///
/// It is a part: its commands are proposals, and it tells what was decided to nodes that proposed
/// something. What it must not forget it persists, so that a node that comes up again is the same
/// voter as before, though it is no member any more. For each number at most one view is ever told, at any node and by whatever proposal:
/// that is all that halls rely on, so a consensus engine fits in here as well as the two that stand
/// beside.
pub trait Authority<D>: Protocol<Command = Proposal<D>, Event = Charter<D>> {
    /// This node knows of this view and of no later one.
    fn follow(&mut self, view: &Charter<D>);

    /// The view that this node knew of when it last persisted something.
    fn recalled(&self) -> Option<&Charter<D>>;
}

/// The authority of a run, chosen when it begins.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Seat<D> {
    /// A majority of the view before.
    Majority(Box<Majority<D>>),
    /// A process of its own.
    Register(Box<Register<D>>),
}

/// What a [`Seat`] persists.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SeatRecord<D> {
    /// Of a majority.
    Majority(Ledger<D>),
    /// Of a register.
    Register(Charter<D>),
}

/// What parts of a [`Seat`] send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SeatMsg<D> {
    /// Of a majority.
    Majority(MajorityMsg<D>),
    /// Of a register.
    Register(RegisterMsg<D>),
}

impl<D: Content + 'static> Message for SeatMsg<D> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Majority(msg) => msg.kind(),
            Self::Register(msg) => msg.kind(),
        }
    }
}

fn majority<D: Content + 'static>() -> Wrap<Majority<D>, Seat<D>> {
    let stable = |Sole(ledger)| Sole(SeatRecord::Majority(ledger));
    Wrap { msg: SeatMsg::Majority, timer: |retry| retry, stable }
}

fn register<D: Content + 'static>() -> Wrap<Register<D>, Seat<D>> {
    let stable = |Sole(view)| Sole(SeatRecord::Register(view));
    Wrap { msg: SeatMsg::Register, timer: |retry| retry, stable }
}

impl<D: Content + 'static> Protocol for Seat<D> {
    type Msg = SeatMsg<D>;
    type Timer = Retry;
    type Command = Proposal<D>;
    type Event = Charter<D>;
    type Stable = Sole<SeatRecord<D>>;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        match self {
            Self::Majority(part) => cx.inner(majority(), |cx| part.on_start(cx)),
            Self::Register(part) => cx.inner(register(), |cx| part.on_start(cx)),
        }
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, next: Proposal<D>) -> Result<(), Refusal> {
        match self {
            Self::Majority(part) => cx.inner(majority(), |cx| part.on_command(cx, next)),
            Self::Register(part) => cx.inner(register(), |cx| part.on_command(cx, next)),
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: SeatMsg<D>) {
        match (self, msg) {
            (Self::Majority(part), SeatMsg::Majority(msg)) => {
                cx.inner(majority(), |cx| part.on_message(cx, from, msg));
            }
            (Self::Register(part), SeatMsg::Register(msg)) => {
                cx.inner(register(), |cx| part.on_message(cx, from, msg));
            }
            // A message of the other kind comes from a node that was set up otherwise.
            _ => cx.trace("foreign", &[("from", from.number().into())]),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Retry) {
        match self {
            Self::Majority(part) => cx.inner(majority(), |cx| part.on_timer(cx, timer)),
            Self::Register(part) => cx.inner(register(), |cx| part.on_timer(cx, timer)),
        }
    }
}

impl<D: Content + 'static> Authority<D> for Seat<D> {
    fn follow(&mut self, view: &Charter<D>) {
        match self {
            Self::Majority(part) => part.follow(view),
            Self::Register(part) => part.follow(view),
        }
    }

    fn recalled(&self) -> Option<&Charter<D>> {
        match self {
            Self::Majority(part) => part.recalled(),
            Self::Register(part) => part.recalled(),
        }
    }
}
