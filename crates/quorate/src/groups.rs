//! A group that this process is in, or its agent for it.

use quorate_member::{Delivery, GroupError, Order};

/// A group that this process is in, or its agent for it. Dropped, it is left.
///
/// What [`next`](Self::next) returns is one stream: views, and between two views the messages of the
/// first, the same for all who are in both. A member that does not take what it is told slows down those who
/// send. A client does not: if it is 4,096 things behind, or its agent is gone, the stream ends with
/// [`GroupError::Excluded`], and it has to come again.
#[derive(Debug)]
pub struct Group {
    way: Way,
}

#[derive(Debug)]
enum Way {
    Member(quorate_member::Group),
    Client(quorate_client::Group),
}

impl From<quorate_member::Group> for Group {
    fn from(group: quorate_member::Group) -> Self {
        Self { way: Way::Member(group) }
    }
}

impl From<quorate_client::Group> for Group {
    fn from(group: quorate_client::Group) -> Self {
        Self { way: Way::Client(group) }
    }
}

impl Group {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.way {
            Way::Member(group) => group.name(),
            Way::Client(group) => group.name(),
        }
    }

    /// What sends to it, from any task.
    #[must_use]
    pub fn sender(&self) -> Sender {
        Sender(match &self.way {
            Way::Member(group) => Sends::Member(group.sender()),
            Way::Client(group) => Sends::Client(group.sender()),
        })
    }

    /// As [`Sender::send`]. Whoever sends much has to take what it is told meanwhile: by another task.
    ///
    /// # Errors
    /// As there.
    pub async fn send(&self, message: &[u8], order: Order) -> Result<(), GroupError> {
        match &self.way {
            Way::Member(group) => group.send(message, order).await,
            Way::Client(group) => group.send(message, order).await,
        }
    }

    /// The next thing that is told.
    ///
    /// # Errors
    /// When there is nothing more: this process has left, or the others go on without it or its agent.
    pub async fn next(&mut self) -> Result<Delivery, GroupError> {
        match &mut self.way {
            Way::Member(group) => group.next().await,
            Way::Client(group) => group.next().await,
        }
    }

    /// The next thing, if it was told already.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn try_next(&mut self) -> Result<Option<Delivery>, GroupError> {
        match &mut self.way {
            Way::Member(group) => group.try_next(),
            Way::Client(group) => group.try_next(),
        }
    }

    /// Asks to leave. Take what is told until [`GroupError::Left`] says that it is done: what a member has
    /// sent is delivered before. A client is only told what has come already.
    pub fn retire(&mut self) {
        match &mut self.way {
            Way::Member(group) => group.retire(),
            Way::Client(group) => group.retire(),
        }
    }

    /// Leaves the group: returns when that is so. What is told meanwhile is forgotten.
    pub async fn leave(mut self) {
        self.retire();
        while self.next().await.is_ok() {}
    }
}

/// Sends to a group, from any task.
#[derive(Clone, Debug)]
pub struct Sender(Sends);

#[derive(Clone, Debug)]
enum Sends {
    Member(quorate_member::Sender),
    Client(quorate_client::Sender),
}

impl Sender {
    /// Sends a message as soon as there is room for it. Returns when it is on its way, which is before
    /// anybody delivers it. What a client sends is sent by its agent, under that name.
    ///
    /// # Errors
    /// If the message is too long, or this process or its agent is not in the group any more. After
    /// [`GroupError::Excluded`] it may have been sent or not.
    pub async fn send(&self, message: &[u8], order: Order) -> Result<(), GroupError> {
        match &self.0 {
            Sends::Member(sender) => sender.send(message, order).await,
            Sends::Client(sender) => sender.send(message, order).await,
        }
    }
}
