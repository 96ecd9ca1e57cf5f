//! The embedded engine: tikv's raft over redb.
//!
//! [`Voter`] is one member of the consensus without thread, clock or socket: it is told what happens
//! and says what is to be done. [`Disk`] is where it writes; [`Redb`] is one on a real disk.
//! [`Raft`] is the thread around it, and an [`Authority`](crate::Authority).
//!
//! Nothing that comes from outside is parsed by protobuf, which raft is built with: what travels and
//! what is stored has types of its own ([`wire`]).

mod disk;
mod log;
mod orders;
mod poison;
mod reads;
mod redb;
mod state;
mod thread;
mod voter;
pub mod wire;

pub use disk::{Disk, DiskError, FoundError, Hard, Point, Stored, Write};
pub use redb::{OpenError, Redb};
pub use state::{Applied, OrderId, State};
pub use thread::{Raft, Status};
pub use voter::{ChangeError, Options, Out, Standing, Stopped, Voter};
pub use wire::{Conf, Members, Word};
