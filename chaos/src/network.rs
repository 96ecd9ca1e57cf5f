//! A network between namespaces of the kernel: every member has a namespace of its own with one device,
//! and a switch in this process carries packets from one device to another, or does not.
//!
//! Kernels answer as they do: a port that nobody listens at refuses, a process that is killed resets its
//! connections. What a network does to packets, and a firewall in front of a host, the switch does:
//! delay, loss, duplication, reordering, a narrow line, a cut in one direction, a refusal in the name of
//! somebody who is there.
//!
//! Nothing is left behind: a namespace has no name, and goes when the last process in it has ended and
//! the last device of it is closed.

mod link;
mod packet;
mod port;
mod switch;

pub use link::Quality;
pub use port::{Port, address};
pub use switch::Switch;
