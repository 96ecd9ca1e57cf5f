//! Group communication: what is sent to a group reaches all of it, in one order where that is asked
//! for, and the group agrees on who belongs to it.

pub mod abcast;
pub mod ack_multicast;
mod backoff;
pub mod extended_virtual_synchrony;
pub mod lamport_order;
mod monitor;
pub mod nack_multicast;
pub mod sequencer;
mod setup;
pub mod srm;
mod standing;
mod stream;
#[cfg(test)]
mod testing;
pub mod token_order;
mod users;
pub mod virtual_synchrony;
mod words;

use quorate_core::Family;

pub use abcast::Abcast;
pub use ack_multicast::AckMulticast;
pub use extended_virtual_synchrony::ExtendedVirtualSynchrony;
pub use lamport_order::LamportOrder;
pub use monitor::Delivery;
pub use nack_multicast::NackMulticast;
pub use sequencer::Sequencer;
pub use setup::{Setup, TotalBy};
pub use srm::Srm;
pub use stream::Unit;
pub use token_order::TokenOrder;
pub use users::{Pattern, Senders};
pub use virtual_synchrony::VirtualSynchrony;
pub use words::{Command, Event, History, MessageId, NotAWord, Order, Wish};

crate::catalogue::catalogue! { Group:
    AckMulticast,
    NackMulticast,
    Srm,
    Sequencer,
    Abcast,
    LamportOrder,
    TokenOrder,
    VirtualSynchrony,
    ExtendedVirtualSynchrony,
}
crate::stack::stack!(Group);

/// The family of group communication.
#[derive(Debug)]
pub struct Group;

/// What an algorithm promises beyond integrity: nothing is delivered twice, or without being sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Promise {
    /// The order in which messages are delivered.
    pub order: Ordering,
    /// All working members deliver a message or none does.
    pub atomic: bool,
    /// How members agree on who they are.
    pub views: Views,
    /// Messages of which it is wished are delivered uniformly; otherwise such a wish means nothing.
    pub uniform: bool,
    /// What a working member sends, all working members deliver in the end.
    pub live: bool,
    /// What those are owed who join later.
    pub newcomers: Newcomers,
}

impl Promise {
    /// Everything is delivered in this order, to all of a group that never changes.
    #[must_use]
    pub const fn always(order: Order) -> Self {
        Self {
            order: Ordering::Always(order),
            atomic: true,
            views: Views::None,
            uniform: false,
            live: true,
            newcomers: Newcomers::None,
        }
    }

    /// As promised, of a group that nodes join and leave.
    #[must_use]
    pub const fn with(self, newcomers: Newcomers) -> Self {
        Self { newcomers, ..self }
    }
}

/// What those are owed who join a group later. Who leaves is owed nothing any more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Newcomers {
    /// Nobody joins, and nobody leaves.
    None,
    /// What is sent after they were told that they are members.
    Known,
    /// Of that, what follows the first message of its sender that they deliver: nobody needs to know
    /// that they are there.
    Listening,
}

/// How members agree on who they are. Messages stay within views, where there are any.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Views {
    /// Not at all.
    None,
    /// On one sequence of views; who is cut off from it is no member.
    Primary,
    /// Among those who reach each other: every part of the network has views of its own.
    Partitionable,
}

/// The order in which messages are delivered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ordering {
    /// As they come.
    None,
    /// All in the same kind of order, whatever was wished.
    Always(Order),
    /// Each as was wished.
    AsWished,
}

impl Ordering {
    /// The order in which a message is delivered; none if as it comes.
    #[must_use]
    pub const fn of(self, wished: Order) -> Option<Order> {
        match self {
            Self::None => None,
            Self::Always(order) => Some(order),
            Self::AsWished => Some(wished),
        }
    }
}

impl Family for Group {
    const NAME: &'static str = "group";
    type Command = Command;
    type Event = Event;
    type Setup = Setup;
    type Promise = Promise;
    type Monitor = Delivery;

    fn monitor(count: usize, setup: &Setup, promise: &Promise) -> Delivery {
        Delivery::new(count, &setup.members, *promise)
    }

    fn command(text: &str) -> Option<Command> {
        text.parse().ok()
    }

    fn event(text: &str) -> Option<Event> {
        text.parse().ok()
    }
}
