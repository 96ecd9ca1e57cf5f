//! Draining: nothing new is granted, what is held is waited for, and what is left then is ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::info;

use super::Sessions;

/// How often it is looked whether anybody still holds something.
const LOOK: Duration = Duration::from_millis(20);

impl Sessions {
    /// Grants nothing more, and refuses whoever waits: it is to ask another agent. Those who hold
    /// something have until then, for ever if nothing is said; the agent ends afterwards.
    pub(crate) fn drain(&self, limit: Option<Duration>) {
        self.draining.store(true, Ordering::SeqCst);
        let until = limit.map(|limit| Instant::now() + limit);
        self.drained.send_modify(|drain| {
            // Who is told twice goes by what is sooner.
            let known = drain.take();
            *drain = Some(match known {
                Some(Some(before)) => Some(until.map_or(before, |until| until.min(before))),
                _ => until,
            });
        });
    }

    /// Does it grant nothing more?
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Returns when it is told to grant nothing more.
    pub(crate) async fn told_to_drain(&self) {
        let mut drained = self.drained.subscribe();
        // This value is there as long as the channel.
        let _ = drained.wait_for(Option::is_some).await;
    }

    /// How many sessions there are, and how many hold something or have started something, also of those
    /// that are over.
    pub(crate) fn census(&self) -> (usize, usize) {
        let all: Vec<_> = self.table().values().cloned().collect();
        let busy = |session: &&Arc<super::Session>| session.inner().is_busy();
        let closing = self.closing.load(Ordering::SeqCst);
        (all.len(), all.iter().filter(busy).count() + closing)
    }

    /// Returns when nobody holds anything any more, or its time is over; then ends what is left: those
    /// that were started first, what they were started under after that.
    pub(crate) async fn run_dry(self: &Arc<Self>) {
        let begun = self.census().1;
        if begun > 0 {
            info!(sessions = begun, "waits for those who hold something");
        }
        loop {
            let until = *self.drained.borrow();
            let over = until.flatten().is_some_and(|until| Instant::now() >= until);
            let busy = self.census().1;
            if busy == 0 {
                return;
            }
            if over {
                info!(sessions = busy, "ends what is left");
                break;
            }
            sleep(LOOK).await;
        }
        let ids: Vec<u64> = self.table().keys().copied().collect();
        for id in ids {
            if let Ok(session) = self.find(id) {
                session.inner().ended = true;
                session.news.notify_waiters();
                session.news.notify_one();
            }
        }
        // Each is closed by the task that outlives it, when its processes are gone.
        let patience = Instant::now() + Duration::from_secs(5);
        while self.census().1 > 0 && Instant::now() < patience {
            sleep(LOOK).await;
        }
    }
}
