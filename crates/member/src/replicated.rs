//! A state machine of a program's own, applied in one order by all members of a group.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorate_service::groups::Order;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::Member;
use crate::groups::{Delivery, Group, GroupError, Message};
use crate::sending::Sender;

/// The first byte of a message that is a command.
const WRITE: u8 = 1;
/// The first byte of a message that only marks a place.
const READ: u8 = 0;

/// A state that changes by commands, in the same way everywhere.
pub trait State: Send + Sized + 'static {
    /// Does what a command says, and answers. It may look at nothing but the state and the command.
    fn apply(&mut self, command: &[u8]) -> Vec<u8>;

    /// The whole state, for who joins.
    fn snapshot(&self) -> Vec<u8>;

    /// The state that a snapshot is of.
    ///
    /// # Errors
    /// If it is none, in a sentence.
    fn restore(snapshot: &[u8]) -> Result<Self, String>;
}

/// A state that all members of a group have, each its own copy.
///
/// Commands are applied by all in one order, and an answer is given only when all members have the
/// command: whoever survives has it. A read sees every command that was answered before it began,
/// wherever that was.
pub struct Replicated<S> {
    sender: Sender,
    inner: Arc<Inner<S>>,
    task: JoinHandle<()>,
    retire: Option<oneshot::Sender<()>>,
}

struct Inner<S> {
    state: Mutex<S>,
    waiting: Mutex<Waiting>,
    numbers: AtomicU64,
}

/// Who waits for an answer.
#[derive(Default)]
struct Waiting {
    answers: BTreeMap<u64, oneshot::Sender<Vec<u8>>>,
    ended: Option<GroupError>,
}

impl<S> fmt::Debug for Replicated<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Replicated({:?})", self.sender)
    }
}

impl<S: State> Replicated<S> {
    /// Joins the group of this name. If nobody is in it, the state begins as this one; else it is given by
    /// the others. Must be called inside of a Tokio runtime.
    ///
    /// # Errors
    /// If the group cannot be joined, or the state that is given cannot be used.
    pub async fn join(cluster: &Member, name: &str, begin: S) -> Result<Self, GroupError> {
        let mut group = cluster.group(name).stateful().await?;
        let sender = group.sender();
        let inner = Arc::new(Inner {
            state: Mutex::new(begin),
            waiting: Mutex::default(),
            numbers: AtomicU64::new(0),
        });
        // The first thing that is told is the state, if there was one.
        if let Some(first) = group.try_next()? {
            inner.take(first)?;
        }
        let (retire, retired) = oneshot::channel();
        let task = tokio::spawn(Arc::clone(&inner).follow(group, retired));
        Ok(Self { sender, inner, task, retire: Some(retire) })
    }

    /// Has all apply a command, and returns the answer of this member's copy.
    ///
    /// # Errors
    /// If this process is not in the group any more. The command may have been applied or not.
    pub async fn write(&self, command: &[u8]) -> Result<Vec<u8>, GroupError> {
        self.put(WRITE, command).await
    }

    /// Looks at the state, after everything that was answered before this call, anywhere.
    ///
    /// # Errors
    /// If this process is not in the group any more.
    pub async fn read<R>(&self, look: impl FnOnce(&S) -> R) -> Result<R, GroupError> {
        self.put(READ, &[]).await?;
        Ok(self.peek(look))
    }

    /// Looks at the state as it is here, which may be a moment behind the others.
    pub fn peek<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(&self.inner.state())
    }

    async fn put(&self, kind: u8, command: &[u8]) -> Result<Vec<u8>, GroupError> {
        let number = self.inner.numbers.fetch_add(1, Ordering::Relaxed);
        let (told, answer) = oneshot::channel();
        {
            let mut waiting = self.inner.waiting();
            if let Some(ended) = &waiting.ended {
                return Err(ended.clone());
            }
            waiting.answers.insert(number, told);
        }
        let message = [&[kind][..], &number.to_le_bytes(), command].concat();
        if let Err(error) = self.sender.send(&message, Order::Uniform).await {
            self.inner.waiting().answers.remove(&number);
            return Err(error);
        }
        let ended = || self.inner.waiting().ended.clone().unwrap_or(GroupError::Excluded);
        answer.await.map_err(|_| ended())
    }

    /// Leaves the group, and returns when that is so: whoever joined meanwhile has the state.
    pub async fn leave(mut self) {
        if let Some(retire) = self.retire.take() {
            // The task may have ended by itself.
            let _ = retire.send(());
        }
        // Whether it panicked or not: it is over.
        let _ = (&mut self.task).await;
    }
}

impl<S> Drop for Replicated<S> {
    fn drop(&mut self) {
        if self.retire.is_some() {
            self.task.abort();
        }
    }
}

impl<S: State> Inner<S> {
    fn state(&self) -> MutexGuard<'_, S> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is told, until there is nothing more.
    async fn follow(self: Arc<Self>, mut group: Group, mut retired: oneshot::Receiver<()>) {
        let mut retiring = false;
        let ended = loop {
            let told = tokio::select! {
                told = group.next() => told,
                asked = &mut retired, if !retiring => {
                    retiring = true;
                    if asked.is_ok() {
                        group.retire();
                    }
                    continue;
                }
            };
            if let Err(error) = told.and_then(|delivery| self.take(delivery)) {
                break error;
            }
        };
        let mut waiting = self.waiting();
        waiting.answers.clear();
        waiting.ended = Some(ended);
    }

    fn take(&self, delivery: Delivery) -> Result<(), GroupError> {
        match delivery {
            Delivery::View(_) => {}
            Delivery::Message(message) => self.apply(&message),
            Delivery::State(state) => {
                *self.state() = S::restore(&state).map_err(GroupError::State)?;
                // What was asked before may be in it: nobody will say.
                self.waiting().answers.clear();
            }
            Delivery::Snapshot(snapshot) => snapshot.give(self.state().snapshot()),
        }
        Ok(())
    }

    fn apply(&self, message: &Message) {
        let Some((&kind, rest)) = message.bytes().split_first() else { return };
        let Some((number, command)) = rest.split_first_chunk() else { return };
        let answer = if kind == WRITE { self.state().apply(command) } else { Vec::new() };
        if message.is_own()
            && let Some(told) = self.waiting().answers.remove(&u64::from_le_bytes(*number))
        {
            // Whoever asked may have stopped waiting.
            let _ = told.send(answer);
        }
    }
}

impl<S> Inner<S> {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
