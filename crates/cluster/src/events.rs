//! What the node tells its user: in order, never held up by a slow user, and yet not without bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tokio::sync::{Notify, mpsc};

/// The node's end of the stream: its user may fall behind only so far.
#[derive(Debug)]
pub(crate) struct EventSink<E> {
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

pub(crate) fn stream<E>(max: usize) -> (EventSink<E>, EventSource<E>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let unread = Arc::new(Unread { count: AtomicUsize::new(0), max, read: Notify::new() });
    let sink = EventSink { events: sender, unread: Arc::clone(&unread) };
    (sink, EventSource { events: receiver, unread })
}

impl<E> EventSink<E> {
    /// Tells the user. Nobody listening is no error.
    pub(crate) fn tell(&self, event: E) {
        self.unread.count.fetch_add(1, SeqCst);
        let _ = self.events.send(event);
    }

    /// Waits until the user has not fallen too far behind.
    pub(crate) async fn caught_up(&self) {
        while self.unread.count.load(SeqCst) >= self.unread.max && !self.events.is_closed() {
            self.unread.read.notified().await;
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
