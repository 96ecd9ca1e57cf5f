//! Who decides which view follows which.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::convert::Infallible;

use quorate_core::{Ctx, Message, NodeId, NodeSet, Protocol, Refusal, Wrap};

use super::{Charter, Content, Majority, MajorityMsg, Register, RegisterMsg};

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
/// something. For each number at most one view is ever told, at any node and by whatever proposal:
/// that is all that halls rely on, so a consensus engine fits in here as well as the two that stand
/// beside.
pub trait Authority<D>:
    Protocol<Command = Proposal<D>, Event = Charter<D>, Stable = Infallible>
{
    /// This node has taken a seat in a view, or lost the one that it had.
    fn follow(&mut self, seat: Option<&Arc<Charter<D>>>);
}

/// The authority of a run, chosen when it begins.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Seat<D> {
    /// A majority of the view before.
    Majority(Box<Majority<D>>),
    /// A process of its own.
    Register(Box<Register<D>>),
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

impl<D: Content + 'static> Seat<D> {
    const MAJORITY: Wrap<Majority<D>, Self> =
        Wrap { msg: SeatMsg::Majority, timer: |none: Infallible| match none {} };
    const REGISTER: Wrap<Register<D>, Self> =
        Wrap { msg: SeatMsg::Register, timer: |none: Infallible| match none {} };
}

impl<D: Content + 'static> Protocol for Seat<D> {
    type Msg = SeatMsg<D>;
    type Timer = Infallible;
    type Command = Proposal<D>;
    type Event = Charter<D>;
    type Stable = Infallible;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        match self {
            Self::Majority(part) => cx.inner(Self::MAJORITY, |cx| part.on_start(cx)),
            Self::Register(part) => cx.inner(Self::REGISTER, |cx| part.on_start(cx)),
        }
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, next: Proposal<D>) -> Result<(), Refusal> {
        match self {
            Self::Majority(part) => cx.inner(Self::MAJORITY, |cx| part.on_command(cx, next)),
            Self::Register(part) => cx.inner(Self::REGISTER, |cx| part.on_command(cx, next)),
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: SeatMsg<D>) {
        match (self, msg) {
            (Self::Majority(part), SeatMsg::Majority(msg)) => {
                cx.inner(Self::MAJORITY, |cx| part.on_message(cx, from, msg));
            }
            (Self::Register(part), SeatMsg::Register(msg)) => {
                cx.inner(Self::REGISTER, |cx| part.on_message(cx, from, msg));
            }
            // A message of the other kind comes from a node that was set up otherwise.
            _ => cx.trace("foreign", &[("from", from.number().into())]),
        }
    }
}

impl<D: Content + 'static> Authority<D> for Seat<D> {
    fn follow(&mut self, seat: Option<&Arc<Charter<D>>>) {
        match self {
            Self::Majority(part) => part.follow(seat),
            Self::Register(part) => part.follow(seat),
        }
    }
}
