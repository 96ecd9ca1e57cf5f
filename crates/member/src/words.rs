//! What members say to each other.

use std::ops::RangeInclusive;

use quorate_authority::raft::Standing;
use quorate_core::Message as _;
use quorate_service::{founding, groups, locks, seat};
use serde::{Deserialize, Serialize};

/// The versions of the wire that members speak. The first one has locks; the second one has roles and
/// groups as well.
pub const VERSIONS: RangeInclusive<u16> = 1..=2;

/// The first version that has roles and groups.
pub(crate) const GROUPS_SINCE: u16 = 2;

/// A frame between two members.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Frame<'a> {
    /// Of a seed that may not belong to a cluster yet.
    Founding(founding::Msg),
    /// The first word of a session: whose disk votes here.
    Introduction(Introduction),
    /// Of a seat, or to and from the authority.
    Seat(seat::Msg),
    /// Of the consensus, in its own encoding.
    Consensus(&'a [u8]),
    /// About locks.
    Lock(locks::Frame),
    /// About groups.
    Group(groups::Frame),
}

/// What a member says of its part in the consensus.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Introduction {
    /// The id of its disk, and where that stands; none if it does not vote.
    pub(crate) voter: Option<(u64, Standing)>,
}

impl<'a> Frame<'a> {
    /// What it is about, and its kind.
    pub(crate) fn kind(&self) -> (&'static str, &'static str) {
        match self {
            Self::Founding(msg) => ("founding", msg.kind()),
            Self::Introduction(_) => ("consensus", "INTRODUCTION"),
            Self::Seat(msg) => ("seat", msg.kind()),
            Self::Consensus(_) => ("consensus", "RAFT"),
            Self::Lock(frame) => ("lock", frame.kind()),
            Self::Group(frame) => ("group", frame.kind()),
        }
    }

    /// The first version of the wire that can say it.
    pub(crate) const fn version(&self) -> u16 {
        match self {
            Self::Group(_) => GROUPS_SINCE,
            Self::Lock(frame) if frame.is_of_roles() => GROUPS_SINCE,
            _ => *VERSIONS.start(),
        }
    }

    /// The frame as bytes. Nothing in it can fail to be written.
    pub(crate) fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// The frame that these bytes are, and nothing after it.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Self> {
        match postcard::take_from_bytes(bytes) {
            Ok((frame, [])) => Some(frame),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::Life;
    use quorate_service::founding::Instance;

    use super::*;

    #[test]
    fn frames_come_back_and_cut_ones_do_not() {
        let frames = [
            Frame::Founding(founding::Msg::Pledge(Instance(9))),
            Frame::Introduction(Introduction { voter: Some((7, Standing { term: 3, last: 9 })) }),
            Frame::Seat(seat::Msg::Ping { by: Life(4), change: None }),
            Frame::Consensus(b"raft"),
        ];
        for frame in frames {
            let bytes = frame.encode();
            assert_eq!(Frame::decode(&bytes), Some(frame.clone()));
            for cut in 0..bytes.len() {
                assert_ne!(Frame::decode(&bytes[..cut]), Some(frame.clone()));
            }
            assert_eq!(Frame::decode(&[&bytes[..], &[0]].concat()), None);
        }
    }
}
