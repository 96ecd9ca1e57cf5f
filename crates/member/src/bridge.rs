//! The bridge to the authority: questions leave the thread of the transport, answers come back to it.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::thread;

use quorate_authority::{Authority, Order};
use quorate_transport::Remote;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, oneshot};

use crate::runtime::{Asker, Command};

/// So many questions may be under way. More are not asked: whoever wants to know asks again.
const QUESTIONS: usize = 1024;

/// A thread that waits for answers, so that nobody else has to.
#[derive(Debug)]
pub(crate) struct Bridge {
    handle: Handle,
    room: Arc<Semaphore>,
    /// Dropped, it ends the thread.
    _end: oneshot::Sender<()>,
}

impl Bridge {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has none to give.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        // That the other end is gone is an error, and what is waited for.
        let work = move || drop(runtime.block_on(ended));
        thread::Builder::new().name("quorate-bridge".to_owned()).spawn(work)?;
        Ok(Self { handle, room: Arc::new(Semaphore::new(QUESTIONS)), _end: end })
    }

    /// Asks something; what becomes of it is told to the member as a command, if there is one.
    pub(crate) fn ask<F>(&self, remote: &Remote<Command>, question: F)
    where
        F: Future<Output = Option<Command>> + Send + 'static,
    {
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else { return };
        let remote = remote.clone();
        self.handle.spawn(async move {
            if let Some(command) = question.await {
                // The member may have ended meanwhile.
                let _ = remote.tell(command);
            }
            drop(place);
        });
    }

    /// Gives an order. An unknown outcome is told to nobody: whoever ordered it orders it again.
    pub(crate) fn order<A: Authority>(
        &self,
        remote: &Remote<Command>,
        authority: &Arc<A>,
        (asker, number): (Asker, u64),
        order: Order,
    ) {
        let authority = Arc::clone(authority);
        self.ask(remote, async move {
            let answer = authority.order(order).await.ok()?;
            let after = authority.watch().borrow().clone();
            Some(Command::Answered { asker, number, answer, after })
        });
    }

    /// Tells the member everything that is watched, from what is there now on, until there is no more.
    pub(crate) fn follow<T: Clone + Send + Sync + 'static>(
        &self,
        remote: &Remote<Command>,
        mut watch: tokio::sync::watch::Receiver<T>,
        tell: impl Fn(T) -> Command + Send + 'static,
    ) {
        let remote = remote.clone();
        self.handle.spawn(async move {
            loop {
                let seen = watch.borrow_and_update().clone();
                if remote.tell(tell(seen)).is_err() || watch.changed().await.is_err() {
                    return;
                }
            }
        });
    }
}
