//! Failure detection: who has crashed, as far as silence can tell.
//!
//! Nobody can tell a crashed node from a slow one, so detectors make mistakes. What they promise
//! is said in the terms of T. D. Chandra and S. Toueg (Journal of the ACM 43(2), 1996); how good
//! they are in those of W. Chen, S. Toueg and M. K. Aguilera (IEEE Transactions on Computers
//! 51(5), 2002): detection time, and how often mistakes are made and how long they last.

mod beats;
mod detected;
pub mod heartbeat;
mod monitor;
pub mod phi_accrual;
mod setup;
#[cfg(test)]
mod testing;
mod users;
mod words;

use quorate_core::Family;

pub use detected::{Beside, Detected, Layer};
pub use heartbeat::Heartbeat;
pub use monitor::Suspicions;
pub use phi_accrual::PhiAccrual;
pub use setup::Setup;
pub use users::Listeners;
pub use words::{Command, Event};

crate::catalogue::catalogue! { Detector:
    Heartbeat,
    PhiAccrual,
}
crate::sum::sum! {
    /// Any detector: over nothing, since what counts is which beats are lost.
    stack: Detector { Bare(any::Any), }
}

impl Detector {
    fn layered(
        config: any::Config,
        layers: &[crate::Layer],
    ) -> Result<stack::Config, crate::BadStack> {
        match layers {
            [] => Ok(stack::Config::Bare(config)),
            _ => Err(crate::BadStack::because(
                "a failure detector runs over the bare network: what it judges by is which of its \
                 messages are late or lost",
            )),
        }
    }
}

/// The family of failure detectors.
#[derive(Debug)]
pub struct Detector;

/// A promise: what a detector is beyond complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// Within its assumptions nobody who is alive is suspected, and not only in the long run, which
    /// no run of finite length can show.
    pub accurate: bool,
}

impl Family for Detector {
    const NAME: &'static str = "detector";
    type Command = Command;
    type Event = Event;
    type Setup = Setup;
    type Promise = Promise;
    type Monitor = Suspicions;

    fn monitor(count: usize, _: &Setup, promise: &Promise) -> Suspicions {
        Suspicions::new(count, promise)
    }

    fn command(_: &str) -> Option<Command> {
        None
    }

    fn event(text: &str) -> Option<Event> {
        Event::read(text)
    }
}
