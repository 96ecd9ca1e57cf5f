//! Groups: messages that all members of a group deliver in one order, between the same views.
//!
//! A group is a name. Whoever is a member of the cluster may join it, sends bytes to it, and is told one
//! ordered *stream*: views of the group, and between two views the messages of the first. Those who go
//! from one view of a group to the next together have delivered the same messages before the second.
//!
//! | what | where |
//! |---|---|
//! | units, frames and what users are told | `words.rs` |
//! | the stream of one view: what has come, what is ordered, what is delivered | `stream.rs` |
//! | one group at one process: its views one after the other, and the state that who joins is given | `group.rs`, `state.rs` |
//! | all groups of a process: who is in which, from view to view of the cluster | `space.rs` |
//!
//! # Orders
//! Each order promises what those before it do. *Fifo*: a message is delivered after all that its sender
//! sent before. *Causal*: and after all that its sender had delivered. *Total*: and by all in the same
//! place among all total and uniform ones. *Uniform*: and by nobody before all members have it and know
//! its place, so that nobody delivers it, acts on it, and is the only one who knew.
//!
//! # Inside of a view
//! Messages that waited are packed into *units*, numbered by their sender. The most senior member of the
//! group is its *sequencer*: it says in which order units that are total come (ORDER, ranges of numbers
//! of senders). Everybody says now and then how far it has got (ACK): what all have is forgotten, and
//! what nobody's user has taken yet counts against the window of its sender, which has to wait.
//!
//! # From view to view
//! A view of a group ends when the view of the cluster does, or when somebody joins or leaves the group.
//! Then each of its members that goes on says to the others what it has of those who do not (FOUND, LOG),
//! and that it sends nothing more in this view (MARK): links keep the order of what is said, so whoever
//! has heard MARK from all has all. It says so (DONE); and whoever has heard DONE from all delivers what
//! is left, in an order that follows from what all have, and begins the next view. So if anybody has
//! begun the next view, everybody has all of the last one, and whoever dies then takes nothing along.
//!
//! # Who is in which group
//! When a view of the cluster begins, every member says which groups it is in (GROUPS). After that the
//! most senior member of the cluster keeps the roll: it is told who joins and leaves (JOIN, LEAVE) and
//! tells the members of that group (CHANGE), nobody else.

mod group;
mod space;
mod state;
mod stream;
mod words;

pub use group::LINGER;
pub use space::Groups;
pub use words::{
    Acks, Body, Command, Entry, Event, Fellow, Frame, KINDS, Limits, Order, Outlet, Pack, Payload,
    Placed, Possession, Refused, Unit, ViewId,
};

#[cfg(test)]
mod tests;
