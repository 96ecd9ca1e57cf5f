//! What every gate does: it lets nothing pass that is older than what it has let pass before.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::Fence;
use crate::doors::Doors;

/// The longest name, in bytes.
pub const NAME_MAX: usize = 255;
/// How many names a gate knows unless it is told otherwise.
pub const NAMES_DEFAULT: usize = 100_000;
/// How many names a gate can be told to know.
pub const NAMES_MAX: usize = 1 << 20;

/// The verifier at a guarded resource.
///
/// It remembers for every name the largest fence that it has seen and refuses what is *below* it. The
/// same fence again is let in: whoever repeats a request is not refused, nor are several that were
/// granted something together and have one fence.
///
/// There are two ways through. [`enter`](Self::enter) is the one to use: as long as its [`Pass`] is
/// there, nobody with a larger fence gets in, so that what is done meanwhile is done before anything
/// that a later holder does. [`admit`](Self::admit) only compares and remembers. It is enough where one
/// thread does all of the work, as nothing then comes between the answer and what follows from it.
pub trait Gate: Send + Sync {
    /// Compares and remembers, durably if this gate is durable. Admitting the same fence again changes
    /// nothing and is let in.
    ///
    /// # Errors
    /// If the fence is below the largest one seen under this name, or the gate cannot say.
    fn admit(&self, name: &str, fence: Fence) -> Result<(), Refusal>;

    /// Admits, and then waits, for so long at most, until nobody with an older fence is inside.
    ///
    /// From the moment of the call on nothing older gets in. If something newer came while this was
    /// waiting, it is refused.
    ///
    /// # Errors
    /// As [`admit`](Self::admit), and [`Refusal::Busy`] if who is inside did not leave in time.
    fn enter(&self, name: &str, fence: Fence, wait: Duration) -> Result<Pass, Refusal>;

    /// Below what fences are refused under this name; nothing if none is.
    fn seen(&self, name: &str) -> Option<Fence>;

    /// The largest fence that it has seen under any name.
    ///
    /// Its epoch is what a cluster that has lost everything has to begin above, lest this gate refuse all
    /// of its grants: `quorate recover --force --epoch-above EPOCH`.
    fn highest(&self) -> Option<Fence>;
}

/// Why a gate did not let somebody in. Whatever the reason: do not write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The fence is old: a larger one has been here.
    Stale {
        /// What would have been enough.
        seen: Fence,
    },
    /// Somebody with an older fence is inside and did not leave in time.
    Busy {
        /// The fence of who is inside.
        inside: Fence,
    },
    /// The gate knows as many names as it may, and forgets none.
    Full {
        /// How many these are.
        names_max: usize,
    },
    /// This is not a name: it is empty, longer than [`NAME_MAX`] bytes, or has control characters.
    Name,
    /// The gate cannot remember any more, for this reason, and refuses everything until it is opened
    /// again.
    Broken(Arc<str>),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { seen } => write!(f, "the fence is old: {seen} has been here"),
            Self::Busy { inside } => write!(f, "the holder of {inside} is still inside"),
            Self::Full { names_max } => write!(
                f,
                "the gate knows {names_max} names and may not know more: raise its floor or its limit"
            ),
            Self::Name => write!(f, "a name has 1 to {NAME_MAX} bytes and no control characters"),
            Self::Broken(why) => write!(f, "the gate has to be opened again: {why}"),
        }
    }
}

impl Error for Refusal {}

/// Somebody is inside. Nobody with a larger fence gets in under this name until it is dropped.
///
/// A resource that asks for a `&Pass` where it writes cannot be written to past its gate.
#[must_use = "who drops the pass has left"]
pub struct Pass {
    doors: Arc<Doors>,
    name: Box<str>,
    fence: Fence,
}

impl Pass {
    pub(crate) fn new(doors: Arc<Doors>, name: &str, fence: Fence) -> Self {
        Self { doors, name: name.into(), fence }
    }

    /// What is guarded.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fence that was let in.
    #[must_use]
    pub const fn fence(&self) -> Fence {
        self.fence
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("name", &self.name).field("fence", &self.fence).finish()
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.doors.leave(&self.name);
    }
}

/// The name of one place of something that has several permits. Each place has fences of its own, so
/// that a gate has to tell places apart: `workers@3`.
#[must_use]
pub fn of_place(name: &str, place: u32) -> String {
    format!("{name}@{place}")
}

/// Is this a name?
pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    let fits = (1..=NAME_MAX).contains(&name.len());
    if fits && !name.chars().any(char::is_control) { Ok(()) } else { Err(Refusal::Name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_printed_and_is_not_too_long() {
        assert_eq!(check_name(&of_place("jobs/nächtlich", 3)), Ok(()));
        assert_eq!(check_name(&"a".repeat(NAME_MAX)), Ok(()));
        for bad in ["", "a\nb", "\0", &"a".repeat(NAME_MAX + 1)] {
            assert_eq!(check_name(bad), Err(Refusal::Name), "{bad:?}");
        }
    }
}
