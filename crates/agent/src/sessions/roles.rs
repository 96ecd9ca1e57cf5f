//! What sessions do with roles.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quorate_member::{Asked, LockError};
use tokio::time::Instant;

use super::{Granted, Led, SessionError, Sessions};

/// So many roles may one session lead in.
const ROLES_MAX: usize = 256;

/// How a role is stood for.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) role: String,
    pub(crate) owner: String,
    pub(crate) priority: i32,
    pub(crate) value: String,
    pub(crate) wait: Option<Duration>,
}

impl Sessions {
    /// Stands for a role for a session, until it leads.
    ///
    /// # Errors
    /// If it is not to be had.
    pub(crate) async fn campaign(
        self: &Arc<Self>,
        id: u64,
        standing: Standing,
    ) -> Result<Granted, SessionError> {
        let session = self.find(id)?;
        if self.is_draining() {
            return Err(SessionError::Draining);
        }
        if session.inner().roles.len() >= ROLES_MAX {
            return Err(SessionError::TooMany("roles of one session"));
        }
        let begun = Instant::now();
        self.host(standing.wait).await?;
        let Standing { role, owner, priority, value, wait } = standing;
        let campaign = self.member.campaign(&role).priority(priority).value(value);
        let mut campaign = campaign.owner(&owner).session(id << 32);
        if let Some(wait) = wait {
            campaign = campaign.timeout(wait.saturating_sub(begun.elapsed()));
        }
        let leadership = tokio::select! {
            leadership = campaign => leadership?,
            () = session.ended(0) => return Err(SessionError::Gone),
            () = self.told_to_drain() => return Err(SessionError::Draining),
        };
        let fence = leadership.term().to_string();
        let left = leadership.check().map_err(|_| LockError::NotPrimary)?.min(self.left(&session));
        let grant = self.grants.fetch_add(1, Ordering::Relaxed) + 1;
        let mut inner = session.inner();
        if inner.ended {
            return Err(SessionError::Gone);
        }
        // Looked at under the same lock under which a drain counts what is held.
        if self.is_draining() {
            return Err(SessionError::Draining);
        }
        inner.answered = Instant::now();
        let lost = leadership.watch();
        inner.roles.insert(role, Led { leadership: Arc::new(leadership), grant });
        drop(inner);
        session.news.notify_one();
        let all = Arc::clone(self);
        tokio::spawn(async move {
            if lost.await.is_some() {
                all.outlived(id, grant).await;
            }
        });
        Ok(Granted { grant, place: 0, fence, left })
    }

    /// How long a session may still lead in a role.
    ///
    /// # Errors
    /// If it does not.
    pub(crate) fn check_role(&self, id: u64, role: &str) -> Result<Duration, SessionError> {
        let session = self.find(id)?;
        let held = session.inner().roles.get(role).cloned().ok_or(SessionError::NotHeld)?;
        let left = held.leadership.check().map_err(SessionError::Lost)?;
        Ok(left.min(self.left(&session)))
    }

    /// Returns when a session is asked to give a role up, and why: by whoever asks for it, or also by a
    /// better candidate.
    ///
    /// # Errors
    /// If it does not lead, or not any more.
    pub(crate) async fn asked(
        &self,
        id: u64,
        role: &str,
        also_better: bool,
    ) -> Result<Asked, SessionError> {
        let session = self.find(id)?;
        // What is waited for must not keep the role: others may give it up meanwhile.
        let asked = {
            let inner = session.inner();
            let led = &inner.roles.get(role).ok_or(SessionError::NotHeld)?.leadership;
            let any: std::pin::Pin<Box<dyn Future<Output = Option<Asked>> + Send>> =
                if also_better { Box::pin(led.asked_to_yield()) } else { Box::pin(led.wanted()) };
            any
        };
        tokio::select! {
            asked = asked => asked.ok_or(SessionError::NotHeld),
            () = session.ended(0) => Err(SessionError::Gone),
        }
    }

    /// Gives a role up; for the member of this name, if one is named.
    ///
    /// # Errors
    /// If the session does not lead, or there is no such member.
    pub(crate) fn resign(&self, id: u64, role: &str, to: Option<&str>) -> Result<(), SessionError> {
        let session = self.find(id)?;
        let mut inner = session.inner();
        let Led { leadership, grant } = inner.roles.remove(role).ok_or(SessionError::NotHeld)?;
        // Somebody may look at it just now: then it is given up without a name when that is done.
        if let (Some(to), Some(held)) = (to, Arc::into_inner(leadership))
            && let Err(held) = held.hand_over(to)
        {
            let leadership = Arc::new(held);
            inner.roles.insert(role.to_owned(), Led { leadership, grant });
            let why = format!("there is no member {to} in the cluster now");
            return Err(LockError::Refused(why).into());
        }
        Ok(())
    }
}
