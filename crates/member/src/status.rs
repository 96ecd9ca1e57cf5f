//! How things stand with a member, for people and programs that ask.

use serde::{Deserialize, Serialize};

/// What a member may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Standing {
    /// It belongs to no cluster yet.
    #[default]
    #[serde(rename = "founding")]
    Founding,
    /// It waits for a seat.
    #[serde(rename = "joining")]
    Joining,
    /// It sits in the view, and its lease is renewed.
    #[serde(rename = "member")]
    Member,
    /// It still may act, but its renewals are not answered.
    #[serde(rename = "jeopardy")]
    Jeopardy,
    /// It may not act: its lease has run out, or its life is over.
    #[serde(rename = "not primary")]
    NotPrimary,
    /// It may not act, and nobody answers who could let it.
    #[serde(rename = "majority lost")]
    MajorityLost,
    /// It has left, as it was asked to.
    #[serde(rename = "left")]
    Left,
}

impl Standing {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Founding => "founding",
            Self::Joining => "joining",
            Self::Member => "member",
            Self::Jeopardy => "jeopardy",
            Self::NotPrimary => "not primary",
            Self::MajorityLost => "majority lost",
            Self::Left => "left",
        }
    }
}

/// How things stand with a member.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// The id of its cluster, in 32 hexadecimal digits; none before it belongs to one.
    pub cluster: Option<String>,
    /// The name of its cluster.
    pub cluster_name: String,
    /// Its own name.
    pub name: String,
    /// The number of its process.
    pub pid: u32,
    /// The view that was decided last, as far as it knows.
    pub epoch: u64,
    /// What it may do.
    pub standing: Standing,
    /// For how long, in milliseconds from when this was made.
    pub left_ms: Option<u64>,
    /// How long a lease is, in milliseconds.
    pub lease_ms: u64,
    /// Who is admitted, the members of the view first, the most senior first of all.
    pub members: Vec<MemberStatus>,
    /// Who decides.
    pub authority: AuthorityStatus,
    /// The others, as they are reached from here.
    pub links: Vec<LinkStatus>,
    /// What has happened lately, the latest last.
    pub events: Vec<String>,
}

/// Somebody who is admitted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// The number of its life.
    pub life: u64,
    /// `seated`, `waiting`, `barred`, `doomed` or `left`.
    pub state: String,
    /// Whom it says that it does not reach.
    pub unreachable: Vec<String>,
}

/// Who decides.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AuthorityStatus {
    /// `raft` or `etcd`; `remote` where others vote.
    pub kind: String,
    /// The name of who leads, if that is known.
    pub leader: Option<String>,
    /// The names of who votes.
    pub voters: Vec<String>,
    /// Why the engine here has stopped, if it has.
    pub stopped: Option<String>,
}

/// How somebody is reached.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Its name.
    pub name: String,
    /// `up`, `down` or `away`.
    pub state: String,
    /// How long a question and its answer took the last time, in microseconds.
    pub rtt_us: Option<u64>,
    /// Bytes that are not acknowledged.
    pub queued: usize,
}
