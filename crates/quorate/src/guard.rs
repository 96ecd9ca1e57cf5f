//! A lock that is held.

use std::future::Future;
use std::time::Duration;

use quorate_core::Time;
use quorate_fence::Fence;
use quorate_member::Lost;

/// A lock that is held. Dropped, it is given back; that a release comes late harms nobody.
///
/// From the moment at which [`check`](Self::check) has returned the time that is left until that has passed
/// on this process's clock, nobody else has been granted this lock, if no clock is off by more than a
/// tenth and none stood still. What was begun and is not finished by then is protected by the
/// [`fence`](Self::fence) only: give it to what is written to, and let a [`Gate`](crate::fence::Gate)
/// there refuse the older ones.
#[derive(Debug)]
#[must_use = "the lock is given back when the guard is dropped"]
pub struct Guard {
    held: Held,
}

#[derive(Debug)]
enum Held {
    Member(quorate_member::Guard),
    Client(quorate_client::Guard),
}

impl From<quorate_member::Guard> for Guard {
    fn from(guard: quorate_member::Guard) -> Self {
        Self { held: Held::Member(guard) }
    }
}

impl From<quorate_client::Guard> for Guard {
    fn from(guard: quorate_client::Guard) -> Self {
        Self { held: Held::Client(guard) }
    }
}

impl Guard {
    /// What proves the grant to the guarded resource: later grants have larger ones.
    #[must_use]
    pub const fn fence(&self) -> Fence {
        let fence = match &self.held {
            Held::Member(guard) => guard.fence(),
            Held::Client(guard) => guard.fence(),
        };
        Fence::new(fence.epoch.0, fence.counter)
    }

    /// The name of the lock.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.held {
            Held::Member(guard) => guard.name(),
            Held::Client(guard) => guard.name(),
        }
    }

    /// Of permits: which place is held, from 0 on. Each has fences of its own
    /// ([`of_place`](crate::fence::of_place)).
    #[must_use]
    pub const fn place(&self) -> u32 {
        match &self.held {
            Held::Member(guard) => guard.place(),
            Held::Client(guard) => guard.place(),
        }
    }

    /// How long it may still be used. This looks at a clock and asks nobody: it is right in a process that
    /// has just been woken up, too.
    ///
    /// # Errors
    /// If it may not be used any more.
    pub fn check(&self) -> Result<Duration, Lost> {
        match &self.held {
            Held::Member(guard) => guard.check(),
            Held::Client(guard) => guard.check(),
        }
    }

    /// Until when it may be used if nothing is renewed any more: a time of [`now`](crate::now).
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        match &self.held {
            Held::Member(guard) => guard.deadline(),
            Held::Client(guard) => guard.deadline(),
        }
    }

    /// Returns when it may not be used any more, and why.
    pub async fn lost(&self) -> Lost {
        match &self.held {
            Held::Member(guard) => guard.lost().await,
            Held::Client(guard) => guard.lost().await,
        }
    }

    /// Asks the cluster whether it may still be used, now: how long from the question on.
    ///
    /// # Errors
    /// If it may not.
    pub async fn confirm(&self) -> Result<Duration, Lost> {
        match &self.held {
            Held::Member(guard) => guard.confirm().await,
            Held::Client(guard) => guard.confirm().await,
        }
    }

    /// Does some work, and gives it up when the guard is lost.
    ///
    /// # Errors
    /// If the guard was lost before the work was done.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        match &self.held {
            Held::Member(guard) => guard.run(work).await,
            Held::Client(guard) => guard.run(work).await,
        }
    }

    /// Returns when somebody asks for the lock back. Nothing happens to who does not heed it.
    pub async fn asked_back(&self) {
        match &self.held {
            Held::Member(guard) => guard.asked_back().await,
            Held::Client(guard) => guard.asked_back().await,
        }
    }

    /// Gives it back.
    pub fn release(self) {}
}
