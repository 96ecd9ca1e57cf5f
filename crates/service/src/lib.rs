//! The cluster as state machines without clock, socket or disk.
//!
//! The [`Register`] is the one record that durable consensus keeps, and the orders that change it. A
//! [`Seat`](seat::Seat) is what makes a process a member of the cluster, and says until when. A
//! [`LockSpace`](locks::LockSpace) has its locks, [`Groups`](groups::Groups) its groups, and a
//! [`Service`](service::Service) joins the three. Seats, the register and how a cluster is founded are algorithms of a [`family`], which the simulator, the
//! checker and the command line know.
#![cfg_attr(not(test), no_std)]

extern crate alloc;
#[cfg(any(test, feature = "files"))]
extern crate std;
#[macro_use(flaw)]
extern crate quorate_algorithms;

mod committed;
mod deed;
pub mod family;
#[cfg(any(test, feature = "flaws"))]
mod flaw;
pub mod founding;
pub mod groups;
pub mod history;
pub mod lease;
pub mod locks;
mod register;
pub mod seat;
pub mod service;

pub use committed::{Committed, Revision};
pub use deed::Deed;
#[cfg(any(test, feature = "flaws"))]
pub use flaw::FLAWS;
pub use register::{
    Answer, Beat, Epoch, Gone, Ground, Host, Member, Nonce, Order, Process, ProposalId, Refused,
    Register, Renewal, Renewed, SPACES_MAX, Settings, Space, Standing, Start,
};
