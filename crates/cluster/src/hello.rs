//! The handshake. Whoever wants to send introduces itself ([`Hello`]), the other one says what it
//! has ([`Welcome`]), the first one says where it goes on ([`Resume`]).

use quorate_core::{Life, NodeId, Topology, ViewId};
use serde::{Deserialize, Serialize};

use crate::{Reject, frame};

/// The longest payload of a handshake.
pub(crate) const PAYLOAD_MAX: usize = 1024;

const MAGIC: [u8; 4] = *b"QRT\n";
const VERSION: u8 = 1;
const PREFIX: [u8; 5] = [MAGIC[0], MAGIC[1], MAGIC[2], MAGIC[3], VERSION];

/// Who a driver is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) me: NodeId,
    /// Drawn anew at every start.
    pub(crate) life: Life,
    pub(crate) algorithm: &'static str,
    pub(crate) view: ViewId,
}

/// I am, and want to send.
#[derive(Serialize, Deserialize, Debug)]
struct Hello<'a> {
    algorithm: &'a str,
    view: ViewId,
    from: NodeId,
    to: NodeId,
    life: Life,
    ack_every: u32,
}

/// What a receiver needs to know of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Caller {
    pub(crate) node: NodeId,
    pub(crate) life: Life,
    /// After how many frames it wants an acknowledgement.
    pub(crate) ack_every: u32,
}

/// I am the one, and this is what I have.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct Welcome {
    pub(crate) from: NodeId,
    pub(crate) life: Life,
    /// The first frame of the session that is missing; none if there is no session.
    pub(crate) expected: Option<u64>,
}

/// What follows begins with this frame.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct Resume {
    pub(crate) first: u64,
}

/// All frames below this one have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct Ack {
    pub(crate) below: u64,
}

impl Identity {
    pub(crate) fn hello(&self, to: NodeId, ack_every: u32) -> Vec<u8> {
        let Self { me, life, algorithm, view } = *self;
        sealed(&PREFIX, &Hello { algorithm, view, from: me, to, life, ack_every })
    }

    pub(crate) fn welcome(&self, expected: Option<u64>) -> Vec<u8> {
        let welcome = Welcome { from: self.me, life: self.life, expected };
        sealed(&PREFIX, &welcome)
    }

    /// Reads a hello, and checks that it is for this node and from one with a link to it.
    pub(crate) fn check(&self, payload: &[u8], topology: &Topology) -> Result<Caller, Reject> {
        let Ok((hello, [])) = postcard::take_from_bytes::<Hello<'_>>(strip(payload)?) else {
            return Err(Reject::Malformed);
        };
        if hello.algorithm != self.algorithm {
            return Err(Reject::Algorithm);
        }
        if hello.view != self.view {
            return Err(Reject::View);
        }
        if hello.to != self.me {
            return Err(Reject::Misdirected);
        }
        let in_range = hello.from.index() < topology.count();
        if !in_range || topology.link(hello.from, self.me).is_none() {
            return Err(Reject::Unknown);
        }
        let Hello { from, life, ack_every, .. } = hello;
        Ok(Caller { node: from, life, ack_every })
    }
}

impl Welcome {
    pub(crate) fn read(payload: &[u8]) -> Result<Self, Reject> {
        frame::open(strip(payload)?)
    }
}

impl Resume {
    pub(crate) fn sealed(self) -> Vec<u8> {
        sealed(&[], &self)
    }
}

impl Ack {
    pub(crate) fn sealed(self) -> Vec<u8> {
        sealed(&[], &self)
    }
}

fn strip(payload: &[u8]) -> Result<&[u8], Reject> {
    let rest = payload.strip_prefix(&MAGIC).ok_or(Reject::Malformed)?;
    match rest.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
        Some(_) => Err(Reject::Version),
        None => Err(Reject::Malformed),
    }
}

fn sealed<T: Serialize>(prefix: &[u8], value: &T) -> Vec<u8> {
    let mut frame = Vec::new();
    frame::seal(&mut frame, prefix, value, PAYLOAD_MAX)
        .expect("an algorithm's name and a few numbers fit into a handshake");
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(number: u32) -> Identity {
        let me = NodeId::new(number).unwrap();
        Identity { me, life: Life(77), algorithm: "mutex/some", view: ViewId(1) }
    }

    fn check(at: Identity, frame: &[u8]) -> Result<Caller, Reject> {
        at.check(&frame[frame::HEADER..], &Topology::complete(3))
    }

    #[test]
    fn a_hello_says_who_and_is_checked() {
        let [one, two, nine] = [1, 2, 9].map(identity);
        let hello = one.hello(two.me, 16);
        let caller = Caller { node: one.me, life: Life(77), ack_every: 16 };
        assert_eq!(check(two, &hello), Ok(caller));
        assert_eq!(check(identity(3), &hello), Err(Reject::Misdirected));
        assert_eq!(check(one, &one.hello(one.me, 16)), Err(Reject::Unknown));
        assert_eq!(check(two, &nine.hello(two.me, 16)), Err(Reject::Unknown));
        let other = Identity { algorithm: "mutex/other", ..two };
        assert_eq!(check(other, &hello), Err(Reject::Algorithm));
        assert_eq!(check(Identity { view: ViewId(2), ..two }, &hello), Err(Reject::View));
    }

    #[test]
    fn another_version_is_told_from_noise() {
        let mut hello = identity(1).hello(identity(2).me, 1);
        hello[frame::HEADER + MAGIC.len()] = VERSION + 1;
        assert_eq!(check(identity(2), &hello), Err(Reject::Version));
        hello[frame::HEADER] = b'X';
        assert_eq!(check(identity(2), &hello), Err(Reject::Malformed));
    }
}
