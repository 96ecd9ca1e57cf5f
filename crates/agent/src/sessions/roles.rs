//! What sessions do with roles.

use std::sync::Arc;
use std::time::Duration;

use quorate_member::{Asked, LockError};
use tokio::time::Instant;

use super::session::{Inner, Led};
use super::{Granted, SessionError, Sessions, Which};

/// So many roles may one session lead in.
const ROLES_MAX: usize = 256;

/// How a role is stood for.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) role: String,
    pub(crate) owner: String,
    pub(crate) priority: i32,
    pub(crate) value: Vec<u8>,
    /// Which task of the client it is for; 0 for the session itself.
    pub(crate) task: u32,
    /// How long; not at all if that is nothing.
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
        let _asking = session.ask(standing.task)?;
        let begun = Instant::now();
        self.host(standing.wait).await?;
        let Standing { role, owner, priority, value, task, wait } = standing;
        let campaign = self.member.campaign(&role).priority(priority).value(value);
        // Tasks of one client are users of their own.
        let campaign = campaign.owner(&owner).session(id << 32 | u64::from(task));
        let campaign = match wait {
            None => campaign,
            Some(Duration::ZERO) => campaign.now(),
            Some(wait) => campaign.timeout(wait.saturating_sub(begun.elapsed())),
        };
        let leadership = tokio::select! {
            leadership = campaign => leadership?,
            () = session.ended(task) => return session.given_up(),
            () = self.told_to_drain() => return Err(SessionError::Draining),
        };
        let fence = leadership.term().to_string();
        let left = leadership.check().map_err(|_| LockError::NotPrimary)?.min(self.left(&session));
        let lost = leadership.watch();
        let led = Led { leadership: Arc::new(leadership), task };
        let keep = |inner: &mut Inner, grant| drop(inner.roles.insert(grant, led));
        let grant = self.hand_in(id, &session, task, lost, keep)?;
        Ok(Granted { grant, place: 0, fence, left })
    }

    /// How long a session may still lead in a role.
    ///
    /// # Errors
    /// If it does not.
    pub(crate) fn check_role(&self, id: u64, which: &Which) -> Result<Duration, SessionError> {
        let session = self.find(id)?;
        let (_, led) = session.inner().led(which).ok_or(SessionError::NotHeld)?;
        let left = led.leadership.check().map_err(SessionError::Lost)?;
        Ok(left.min(self.left(&session)))
    }

    /// Asks the cluster whether a session may still lead in a role: for how long from now on.
    ///
    /// # Errors
    /// If it may not.
    pub(crate) async fn confirm_role(
        &self,
        id: u64,
        which: &Which,
    ) -> Result<Duration, SessionError> {
        let session = self.find(id)?;
        let (_, led) = session.inner().led(which).ok_or(SessionError::NotHeld)?;
        let confirmed = led.leadership.confirm().await.map_err(SessionError::Lost)?;
        // It holds as long as the session does.
        Ok(confirmed.min(self.check_role(id, which)?))
    }

    /// Returns when a session is asked to give a role up, and why: by whoever asks for it, or also by a
    /// better candidate.
    ///
    /// # Errors
    /// If it does not lead, or not any more.
    pub(crate) async fn asked(
        &self,
        id: u64,
        which: &Which,
        also_better: bool,
    ) -> Result<Asked, SessionError> {
        let session = self.find(id)?;
        // What is waited for must not keep the role: others may give it up meanwhile.
        let asked = {
            let (_, led) = session.inner().led(which).ok_or(SessionError::NotHeld)?;
            let led = led.leadership;
            let any: std::pin::Pin<Box<dyn Future<Output = Option<Asked>> + Send>> =
                if also_better { Box::pin(led.asked_to_yield()) } else { Box::pin(led.wanted()) };
            any
        };
        tokio::select! {
            asked = asked => asked.ok_or(SessionError::NotHeld),
            () = session.ended(0) => Err(SessionError::Gone),
        }
    }

    /// Gives a role up, for the member of this name if one is named; or what a task stands for.
    ///
    /// # Errors
    /// If the session does not lead, or there is no such member.
    pub(crate) fn resign(
        &self,
        id: u64,
        which: &Which,
        to: Option<&str>,
    ) -> Result<(), SessionError> {
        let session = self.find(id)?;
        let mut inner = session.inner();
        let grant = inner.led(which).map(|(grant, _)| grant);
        let Some((grant, led)) = grant.and_then(|grant| inner.roles.remove_entry(&grant)) else {
            inner.give_up(which.task)?;
            drop(inner);
            session.news.notify_waiters();
            return Ok(());
        };
        let Led { leadership, task } = led;
        // Somebody may look at it just now: then it is given up without a name when that is done.
        if let (Some(to), Some(held)) = (to, Arc::into_inner(leadership))
            && let Err(held) = held.hand_over(to)
        {
            inner.roles.insert(grant, Led { leadership: Arc::new(held), task });
            let why = format!("there is no member {to} in the cluster now");
            return Err(LockError::Refused(why).into());
        }
        Ok(())
    }
}
