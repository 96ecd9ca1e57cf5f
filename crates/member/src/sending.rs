//! What a process sends to a group.
//!
//! A message that comes alone is a step of the heart and goes out at once. Of those that come right after it
//! the first is put on a *page*, which the thread of the transport is asked to fetch, and the others are
//! written below it: that takes no step, no clock and nobody's sleep. Whoever finds the page full hands
//! it over.

use std::sync::{Arc, MutexGuard, PoisonError};

use quorate_core::{Refusal, Time};
use quorate_service::groups::{Command, LINGER, Limits, Order, Pack};
use quorate_service::locks::Text;

use crate::groups::{GroupError, Inbox};
use crate::heart::{Heart, Shared};

/// Messages that were sent and that the heart does not know of yet.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pack: Option<Pack>,
    /// What there is room for: as much as the heart takes for sure.
    room: usize,
    /// When somebody sent who found nothing on it.
    sent: Time,
    /// Nothing is sent any more.
    shut: bool,
}

impl Page {
    /// Writes a message below others, if there are some and there is room for it.
    fn add(&mut self, limits: &Limits, order: Order, message: &[u8]) -> bool {
        let cost = Pack::cost_of_one_more(message.len());
        let Some(pack) = &mut self.pack else { return false };
        let added = cost <= self.room && pack.add(limits, order, message);
        if added {
            self.room -= cost;
        }
        added
    }

    /// Begins with this message, if there is room for it.
    fn begin(&mut self, limits: &Limits, order: Order, message: &[u8]) -> bool {
        let cost = Pack::cost_of_one(message.len());
        let fits = cost <= self.room && message.len() < limits.unit;
        if fits {
            self.room -= cost;
            self.pack = Some(Pack::spacious(limits, order, message));
        }
        fits
    }
}

/// Sends to a group, from any task.
#[derive(Clone, Debug)]
pub struct Sender {
    pub(crate) shared: Arc<Shared>,
    pub(crate) group: Text,
    pub(crate) inbox: Arc<Inbox>,
}

impl Sender {
    /// Sends a message, if there is room for it now. It comes back as a delivery.
    ///
    /// # Errors
    /// If there is no room, the message is too long, or this process is not in the group any more.
    pub fn try_send(&self, message: &[u8], order: Order) -> Result<(), GroupError> {
        let limits = Limits::default();
        if message.len() > limits.message {
            return Err(GroupError::TooLong);
        }
        let mut page = self.page();
        if page.shut || self.inbox.is_over() {
            return Err(self.ended());
        }
        if page.add(&limits, order, message) {
            return Ok(());
        }
        self.hand_over(&mut page)?;
        let now = quorate_transport::now();
        let alone = now.since(page.sent) >= LINGER;
        page.sent = now;
        if alone || !page.begin(&limits, order, message) {
            return self.give(&mut page, Pack::new(order, message));
        }
        self.shared.ask_to_fetch(self.clone());
        Ok(())
    }

    /// Sends a message as soon as there is room for it. Returns when it is on its way, which is before
    /// anybody delivers it.
    ///
    /// # Errors
    /// If the message is too long, or this process is not in the group any more.
    pub async fn send(&self, message: &[u8], order: Order) -> Result<(), GroupError> {
        loop {
            let done = self.try_send(message, order);
            if done != Err(GroupError::Full) {
                return done;
            }
            let room = self.inbox.room.notified();
            match self.try_send(message, order) {
                Err(GroupError::Full) => room.await,
                done => return done,
            }
        }
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        self.inbox.page.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> GroupError {
        self.inbox.lock().ended.clone().unwrap_or(GroupError::Left)
    }

    /// Hands over what is on the page.
    fn hand_over(&self, page: &mut Page) -> Result<(), GroupError> {
        page.pack.take().map_or(Ok(()), |pack| self.give(page, pack))
    }

    /// Gives the heart something. The page is held meanwhile, so that what is sent stays in its order.
    fn give(&self, page: &mut Page, pack: Pack) -> Result<(), GroupError> {
        let command = Command::Send { group: self.group.clone(), pack };
        let room = |heart: &Heart| heart.node.protocol().groups().room(&self.group);
        let (sent, room) = self.shared.group_and(command, room);
        page.room = room;
        sent.map_err(|refusal| match refusal {
            Refusal::Busy => GroupError::Full,
            _ => self.ended(),
        })
    }

    /// The thread of the transport fetches what is on the page.
    pub(crate) fn fetch(&self) {
        // Who is in the group no more sends nothing.
        let _ = self.hand_over(&mut self.page());
    }

    /// Nothing is sent after what was sent already.
    pub(crate) fn shut(&self) {
        let mut page = self.page();
        page.shut = true;
        // As above.
        let _ = self.hand_over(&mut page);
    }
}
