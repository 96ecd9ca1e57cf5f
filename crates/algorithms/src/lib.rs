//! The classic algorithms of coordination: one file per algorithm, one catalogue per family.
//!
//! Every file follows one template: a header that explains the algorithm, its messages, its state,
//! and one function per step of the paper. Start with [`mutex::ricart_agrawala`].
#![cfg_attr(not(test), no_std)]

extern crate alloc;

#[macro_use]
pub mod flaw;
mod catalogue;
pub mod detector;
pub mod election;
#[cfg(test)]
mod faults;
pub mod group;
pub mod link;
pub mod membership;
pub mod mutex;
mod options;
pub mod patience;
pub mod reliable;
mod stack;
mod sum;
#[cfg(test)]
mod testing;

pub use catalogue::{Carried, Catalogued, Maker, Portable, Storable, nearest};
pub use patience::Patience;
pub use reliable::Reliable;
pub use stack::{BadStack, Layer};
