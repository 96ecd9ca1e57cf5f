//! Frames: messages with their numbers, and acknowledgements that ride on them.

use core::fmt::{self, Debug};

use quorate_core::{Life, Message};

/// A frame: what goes over a link.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Frame<M> {
    /// The lives that it is from and for.
    pub(super) session: Session,
    /// What of the other direction has arrived.
    pub(super) ack: Ack,
    /// The rest.
    pub(super) body: Body<M>,
}

/// Two lives of two nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Session {
    pub(super) from: Life,
    pub(super) to: Life,
}

/// What has arrived: everything below `next`, and of `next + 1` onwards what `early` has a bit for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Ack {
    pub(super) next: u64,
    pub(super) early: u64,
}

impl Ack {
    /// The numbers that came early.
    pub(super) fn early(self) -> impl Iterator<Item = u64> {
        let bits = (0..u64::from(u64::BITS)).filter(move |bit| self.early >> bit & 1 == 1);
        bits.map(move |bit| self.next.saturating_add(1 + bit))
    }

    /// Has this number arrived?
    pub(super) fn covers(self, number: u64) -> bool {
        let bit = number.checked_sub(self.next).and_then(|ahead| ahead.checked_sub(1));
        let early = bit.filter(|bit| *bit < u64::from(u64::BITS));
        number < self.next || early.is_some_and(|bit| self.early >> bit & 1 == 1)
    }
}

/// A message, or nothing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Body<M> {
    /// A message of the user.
    Data { number: u64, again: bool, msg: M },
    /// Nothing but an acknowledgement.
    Ack,
}

impl<M: Message> Message for Frame<M> {
    fn kind(&self) -> &'static str {
        match &self.body {
            Body::Data { again: false, msg, .. } => msg.kind(),
            Body::Data { again: true, .. } => RESEND,
            Body::Ack => LINK_ACK,
        }
    }
}

/// The kind of a message that is sent once more.
pub(crate) const RESEND: &str = "RESEND";
/// The kind of an acknowledgement that rides on nothing. Some algorithms have an ACK of their own.
pub(crate) const LINK_ACK: &str = "LINK-ACK";

impl<M: Debug> Debug for Frame<M> {
    /// First the message, as without a link; then what the link adds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, ack, body } = self;
        match body {
            Body::Data { number, again, msg } => {
                write!(f, "{msg:?} #{number}{} ", if *again { " again" } else { "" })?;
            }
            Body::Ack => {}
        }
        write!(f, "ack {}", ack.next)?;
        if ack.early != 0 {
            f.write_str(" ")?;
            f.debug_set().entries(ack.early()).finish()?;
        }
        if (session.from, session.to) != (Life::FIRST, Life::FIRST) {
            write!(f, " in {:?}>{:?}", session.from, session.to)?;
        }
        Ok(())
    }
}
