//! Real transports on loopback: what they promise, and to whom they do not talk.
#![allow(clippy::unwrap_used)] // A test may fail anywhere; helpers of tests are tests.

mod certificates;
mod crossing;
mod cuts;
mod direct;
mod founding;
mod hostile;
mod log;
mod node;
mod proxy;
mod sessions;
