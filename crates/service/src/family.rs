//! The family of the cluster's parts: what they promise, and who judges it.
//!
//! Seats, the founding of a cluster and the register are each run as an algorithm of a catalogue, so that
//! every engine knows them and one monitor ([`Promises`]) judges all of them: random schedules in tests,
//! single runs on the command line, and every interleaving of what has no clock.

mod founding;
mod monitor;
mod register;
mod seat;
mod users;
mod words;

use quorate_algorithms::{BadStack, Layer};
use quorate_core::{Family, NodeSet, Span};

pub use founding::{Patience, SeedNode};
pub use monitor::Promises;
pub use register::{Bounds, Keeping, NoMessage, RegisterNode};
pub use seat::SeatNode;
pub use users::{Seats, Seeds, Users, Wish};
pub use words::{Command, Event};

quorate_algorithms::catalogue! { Service:
    SeatNode,
    SeedNode,
    RegisterNode,
}
quorate_algorithms::sum! {
    /// Any part of the cluster: over nothing, since each sends again itself what is lost.
    stack: Service { Bare(any::Any), }
}

impl Service {
    fn layered(config: any::Config, layers: &[Layer]) -> Result<stack::Config, BadStack> {
        match layers {
            [] => Ok(stack::Config::Bare(config)),
            _ => Err(BadStack::because(
                "a part of the cluster runs over the bare network: it says again itself what may be \
                 lost, and what is late must count as late",
            )),
        }
    }
}

/// The family of the cluster's parts.
#[derive(Debug)]
pub struct Service;

/// What all nodes are told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// How long a lease is at first.
    pub lease: Span,
    /// Does a process that holds the data of another one, or the kernel's word, prove a death?
    pub evidence: bool,
    /// Does the operator vouch that a place refuses connections only if nobody is there?
    pub trust_refusal: bool,
    /// Who does not ask for a seat when it comes up for the first time.
    pub outside: NodeSet,
    /// How often a seed asks after each start, if not as often as it takes.
    pub asks: Option<u8>,
    /// What is ordered of a register that is ordered everything.
    pub bounds: Bounds,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            lease: Span::units(100),
            evidence: true,
            trust_refusal: false,
            outside: NodeSet::new(),
            asks: None,
            bounds: Bounds::default(),
        }
    }
}

/// A promise: of which part of the cluster it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Promise {
    /// Of seats around a register, which is at the last node.
    Seats,
    /// Of seeds that found a cluster; all of them belong to it in the end if they ask for ever.
    Founding,
    /// Of a register alone, of whose members nothing is known but what it says.
    Register,
    /// Of a system of somebody else's: whatever it tells of.
    Anything,
}

impl Family for Service {
    const NAME: &'static str = "service";
    type Command = Command;
    type Event = Event;
    type Setup = Setup;
    type Promise = Promise;
    type Monitor = Promises;

    fn monitor(count: usize, setup: &Setup, promise: &Promise) -> Promises {
        Promises::new(count, setup, *promise)
    }

    fn command(text: &str) -> Option<Command> {
        Command::read(text)
    }

    fn event(text: &str) -> Option<Event> {
        Event::read(text)
    }
}

#[cfg(test)]
mod tests;
