//! One session: what it holds, what it waits for, and how long it lives.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_member::{Guard, Leadership, LockError};
use rustix::process::Pid;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::process::kill;
use super::{LOCKS_MAX, SessionError, Which};

/// One of them.
pub(super) struct Session {
    pub(super) ttl: Duration,
    /// Its process, if that is watched.
    pub(super) pid: Option<u32>,
    pub(super) inner: Mutex<Inner>,
    /// It was heard, or ended.
    pub(super) news: Notify,
}

pub(super) struct Inner {
    /// Its client was answered last then.
    pub(super) answered: Instant,
    /// By the number of the grant.
    pub(super) guards: BTreeMap<u64, Held>,
    /// Wishes of tasks that wait; was one given up?
    pub(super) asking: BTreeMap<u32, bool>,
    /// Where it leads, by the number of the grant.
    pub(super) roles: BTreeMap<u64, Led>,
    /// Processes that it started under its locks.
    pub(super) children: Vec<(Pid, OwnedFd)>,
    pub(super) ended: bool,
}

/// What one of its tasks holds.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) guard: Arc<Guard>,
    pub(super) task: u32,
}

/// A role in which one of its tasks leads.
#[derive(Clone)]
pub(super) struct Led {
    pub(super) leadership: Arc<Leadership>,
    pub(super) task: u32,
}

impl Which {
    pub(super) fn is(&self, grant: u64, held: &Held) -> bool {
        let guard = &held.guard;
        guard.name() == self.name
            && self.space.as_ref().is_none_or(|space| guard.space() == *space)
            && self.grant.is_none_or(|wanted| wanted == grant)
            && self.task.is_none_or(|task| task == held.task)
    }

    pub(super) fn leads(&self, grant: u64, led: &Led) -> bool {
        led.leadership.role() == self.name
            && self.grant.is_none_or(|wanted| wanted == grant)
            && self.task.is_none_or(|task| task == led.task)
    }
}

/// A wish of a task is put as long as this is there.
pub(super) struct Asking<'a> {
    session: &'a Session,
    task: u32,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.session.inner().asking.remove(&self.task);
    }
}

impl Session {
    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its client was heard, and is answered now, unless the session is over.
    pub(super) fn heard(&self) -> Result<MutexGuard<'_, Inner>, SessionError> {
        let mut inner = self.inner();
        if inner.ended {
            return Err(SessionError::Gone);
        }
        inner.answered = Instant::now();
        Ok(inner)
    }

    /// A task of its client asks for a lock.
    pub(super) fn ask(&self, task: u32) -> Result<Asking<'_>, SessionError> {
        let mut inner = self.inner();
        if inner.guards.len() + inner.asking.len() >= LOCKS_MAX {
            return Err(SessionError::TooMany("locks of one session"));
        }
        if task > 0 && inner.asking.insert(task, false).is_some() {
            return Err(SessionError::TooMany("wishes of one task"));
        }
        Ok(Asking { session: self, task })
    }

    /// Returns when it is over, or this task does not want its lock any more.
    pub(super) async fn ended(&self, task: u32) {
        loop {
            let news = self.news.notified();
            if self.inner().is_over_for(task) {
                return;
            }
            news.await;
        }
    }

    /// Why a wish came to nothing.
    pub(super) fn given_up<T>(&self) -> Result<T, SessionError> {
        Err(if self.inner().ended { SessionError::Gone } else { LockError::Timeout.into() })
    }

    /// Returns when it is to be closed, and why: ended, its process gone, or silent for too long.
    pub(super) async fn outlive(&self, process: Option<AsyncFd<OwnedFd>>) -> &'static str {
        let gone = async {
            match &process {
                // An error is as good as an end: it cannot be watched any more.
                Some(process) => drop(process.readable().await),
                None => std::future::pending().await,
            }
        };
        let silent = async {
            loop {
                let (answered, ended) = {
                    let inner = self.inner();
                    (inner.answered, inner.ended)
                };
                let until = answered + self.ttl * 11 / 10;
                if ended || Instant::now() >= until {
                    return if ended { "it was ended" } else { "its client was silent" };
                }
                tokio::select! {
                    () = self.news.notified() => {}
                    () = sleep_until(until) => {}
                }
            }
        };
        tokio::select! {
            () = gone => "the process of its client has ended",
            why = silent => why,
        }
    }
}

impl Inner {
    /// Kills what was started under the locks. Whether it is gone is seen to when the session is over.
    pub(super) fn end_children(&self) {
        for (pid, fd) in &self.children {
            kill(*pid, fd);
        }
    }

    /// Does it hold something, or has it started something?
    pub(super) fn is_busy(&self) -> bool {
        !self.guards.is_empty() || !self.roles.is_empty() || !self.children.is_empty()
    }

    /// Is it over, or does this task not want its lock any more?
    pub(super) fn is_over_for(&self, task: u32) -> bool {
        self.ended || self.asking.get(&task).is_some_and(|given_up| *given_up)
    }

    /// Does it have this grant, of a lock or of a role, and has not given it back?
    pub(super) fn has(&self, grant: u64) -> bool {
        self.guards.contains_key(&grant) || self.roles.contains_key(&grant)
    }

    /// A task may still be waiting for something, and does not want it any more.
    pub(super) fn give_up(&mut self, task: Option<u32>) -> Result<(), SessionError> {
        let asking = task.and_then(|task| self.asking.get_mut(&task));
        *asking.ok_or(SessionError::NotHeld)? = true;
        Ok(())
    }

    /// The last of its leaderships that is meant: one before it may be lost and not given up yet.
    pub(super) fn led(&self, which: &Which) -> Option<(u64, Led)> {
        let found = self.roles.iter().rev().find(|(grant, led)| which.leads(**grant, led));
        found.map(|(grant, led)| (*grant, led.clone()))
    }

    /// The first of its guards that is meant.
    pub(super) fn find(&self, which: &Which) -> Option<(u64, Held)> {
        let found = self.guards.iter().find(|(grant, held)| which.is(**grant, held));
        found.map(|(grant, held)| (*grant, held.clone()))
    }
}
