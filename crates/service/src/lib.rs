//! The cluster as state machines without clock, socket or disk.
//!
//! So far there is the [`Register`]: the one record that durable consensus keeps, and the orders that
//! change it.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod register;

pub use register::{
    Answer, Beat, Epoch, Gone, Ground, Host, Member, Nonce, Order, Process, ProposalId, Refused,
    Register, Renewal, Renewed, Settings, Standing,
};
