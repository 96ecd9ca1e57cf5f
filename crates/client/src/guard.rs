//! A lock that is held by way of an agent.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use quorate_core::Time;
use quorate_member::{Fence, Lost};

use crate::client::Inner;
use crate::session::{Grant, Kind, Session};

/// A lock that is held by way of an agent. Dropped, it is given back.
///
/// What [`check`](Self::check) says holds as it does for a member; the clock is this process's own.
#[must_use = "the lock is given back when the guard is dropped"]
pub struct Guard {
    pub(crate) inner: Arc<Inner>,
    pub(crate) session: Arc<Session>,
    pub(crate) grant: Arc<Grant>,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) place: u32,
    pub(crate) fence: Fence,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("name", &self.name).field("fence", &self.fence).finish()
    }
}

impl Guard {
    /// What proves the grant to the guarded resource: later grants have larger ones.
    #[must_use]
    pub const fn fence(&self) -> Fence {
        self.fence
    }

    /// The name of the lock.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Of permits: which place is held, from 0 on.
    #[must_use]
    pub const fn place(&self) -> u32 {
        self.place
    }

    /// How long it may still be used.
    ///
    /// # Errors
    /// If it may not be used any more.
    pub fn check(&self) -> Result<Duration, Lost> {
        self.grant.check()
    }

    /// Until when it may be used if nothing is renewed any more: a time of
    /// [`now`](quorate_transport::now).
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.grant.lease.until()
    }

    /// Returns when it may not be used any more, and why.
    pub async fn lost(&self) -> Lost {
        self.grant.watch().await.unwrap_or(Lost::Expired)
    }

    /// Asks the cluster whether it may still be used, now: how long from the question on.
    ///
    /// # Errors
    /// If it may not.
    pub async fn confirm(&self) -> Result<Duration, Lost> {
        let (session, grant) = (Arc::clone(&self.session), Arc::clone(&self.grant));
        let (kind, name) = (self.kind, self.name.clone());
        let confirmed = async move { session.confirm(kind, &name, &grant).await };
        let asked = self.inner.handle.spawn(confirmed);
        asked.await.unwrap_or(Err(Lost::Expired))
    }

    /// Does some work, and gives it up when the guard is lost.
    ///
    /// # Errors
    /// If the guard was lost before the work was done.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        self.check()?;
        tokio::select! {
            done = work => Ok(done),
            lost = self.lost() => Err(lost),
        }
    }

    /// Returns when somebody asks for the lock back.
    pub async fn asked_back(&self) {
        // It is given back before anybody asks.
        let _ = self.grant.watch_asked_back().await;
    }

    /// Gives it back.
    pub fn release(self) {}
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.session.forget(self.grant.number);
        let (session, kind) = (Arc::clone(&self.session), self.kind);
        let (name, query) = (self.name.clone(), format!("grant={}", self.grant.number));
        // The client is there until that is done: its sessions are to be ended last.
        let inner = Arc::clone(&self.inner);
        self.inner.handle.spawn(async move {
            session.give_back(kind, &name, &query).await;
            drop(inner);
        });
    }
}
