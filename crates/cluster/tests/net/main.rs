//! The network driver, over loopback sockets.
#![allow(clippy::unwrap_used)] // A test may fail anywhere; helpers of tests are tests.

mod conformance;
mod faults;
mod malformed;
mod party;
mod proxy;
mod reconnect;
mod shutdown;
mod tally;
mod traces;
