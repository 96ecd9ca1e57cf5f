//! The cluster as state machines without clock, socket or disk.
//!
//! The [`Register`] is the one record that durable consensus keeps, and the orders that change it. A
//! [`Seat`](seat::Seat) is what makes a process a member of the cluster, and says until when.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

#[macro_use]
mod flaw;
pub mod founding;
pub mod lease;
mod register;
pub mod seat;

pub use register::{
    Answer, Beat, Epoch, Gone, Ground, Host, Member, Nonce, Order, Process, ProposalId, Refused,
    Register, Renewal, Renewed, Settings, Standing, Start,
};
