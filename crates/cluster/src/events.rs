//! What the node tells its user: in order, never held up by a slow user, and yet not without bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use quorate_core::NodeId;
use tokio::sync::{Notify, mpsc};

/// Where the node's events go.
#[derive(Debug)]
pub(crate) enum EventSink<E> {
    /// To the user of one driver, who may fall behind only so far.
    Own(Own<E>),
    /// Into a stream that several nodes share; whoever reads it sees to its length.
    Joint(mpsc::UnboundedSender<(NodeId, E)>),
}

/// The node's end of its own stream.
#[derive(Debug)]
pub(crate) struct Own<E> {
    events: mpsc::UnboundedSender<E>,
    unread: Arc<Unread>,
}

/// The user's end of it.
#[derive(Debug)]
pub(crate) struct EventSource<E> {
    events: mpsc::UnboundedReceiver<E>,
    unread: Arc<Unread>,
}

#[derive(Debug)]
struct Unread {
    count: AtomicUsize,
    max: usize,
    read: Notify,
}

pub(crate) fn own<E>(max: usize) -> (EventSink<E>, EventSource<E>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let unread = Arc::new(Unread { count: AtomicUsize::new(0), max, read: Notify::new() });
    let own = Own { events: sender, unread: Arc::clone(&unread) };
    (EventSink::Own(own), EventSource { events: receiver, unread })
}

impl<E> EventSink<E> {
    /// Tells the user. Nobody listening is no error.
    pub(crate) fn tell(&self, me: NodeId, event: E) {
        match self {
            Self::Own(own) => {
                own.unread.count.fetch_add(1, SeqCst);
                let _ = own.events.send(event);
            }
            Self::Joint(events) => {
                let _ = events.send((me, event));
            }
        }
    }

    /// Waits until the user has not fallen too far behind.
    pub(crate) async fn caught_up(&self) {
        let Self::Own(own) = self else { return };
        while own.unread.count.load(SeqCst) >= own.unread.max && !own.events.is_closed() {
            own.unread.read.notified().await;
        }
    }
}

impl<E> EventSource<E> {
    pub(crate) async fn next(&mut self) -> Option<E> {
        let event = self.events.recv().await?;
        if self.unread.count.fetch_sub(1, SeqCst) == self.unread.max {
            self.unread.read.notify_one();
        }
        Some(event)
    }
}

impl<E> Drop for EventSource<E> {
    fn drop(&mut self) {
        self.events.close();
        self.unread.read.notify_one();
    }
}
