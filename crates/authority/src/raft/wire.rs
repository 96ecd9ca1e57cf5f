//! What travels between voters and what is stored: types of our own, converted field by field.
//!
//! Only the messages that voters have to exchange exist here. Raft's own forwarding of proposals, the
//! transfer of leadership and the messages that it sends to itself cannot be expressed, so nobody can
//! send them.

use ::raft::eraftpb::{
    self, ConfChangeSingle, ConfChangeType, ConfChangeV2, EntryType, MessageType,
};
use quorate_service::Order;
use serde::{Deserialize, Serialize};

use super::state::{OrderId, State};

/// The version of what travels, the first byte of every word.
const VERSION: u8 = 1;

/// What one voter says to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Word {
    /// A message of raft.
    Raft(Message),
    /// Orders, to be put into the sequence by who leads. They are passed on once, and never again.
    Orders(Vec<(OrderId, Order)>),
}

impl Word {
    /// The word as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(&(VERSION, self))
    }

    /// The word that these bytes are, if they are one.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, rest): (u8, _) = postcard::take_from_bytes(bytes).ok()?;
        if version != VERSION {
            return None;
        }
        decode(rest)
    }

    /// Can it wait until the voter runs for another reason, as a leader does with every heartbeat? That one
    /// was heard is looked at once in an election timeout, unless it answers a read.
    pub(super) fn can_wait(&self) -> bool {
        let Self::Raft(message) = self else { return false };
        message.kind == Kind::HeartbeatResponse && message.context.is_empty()
    }
}

/// Bytes of a value. Our types have no maps of unknown length and no custom serializers: it cannot fail.
pub(super) fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap_or_default()
}

/// The value that these bytes are, and nothing after it.
pub(super) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Some(value),
        _ => None,
    }
}

/// What a message of raft is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// Entries for the log.
    Append,
    /// Entries were taken, or not.
    AppendResponse,
    /// Somebody wants to lead.
    RequestVote,
    /// It may, or not.
    RequestVoteResponse,
    /// The state instead of entries that are gone.
    Snapshot,
    /// The leader is there.
    Heartbeat,
    /// It was heard.
    HeartbeatResponse,
    /// A voter asks what is committed.
    ReadIndex,
    /// This is.
    ReadIndexResp,
    /// Would I be voted for?
    RequestPreVote,
    /// Yes, or no.
    RequestPreVoteResponse,
}

impl Kind {
    const fn of(raft: MessageType) -> Option<Self> {
        Some(match raft {
            MessageType::MsgAppend => Self::Append,
            MessageType::MsgAppendResponse => Self::AppendResponse,
            MessageType::MsgRequestVote => Self::RequestVote,
            MessageType::MsgRequestVoteResponse => Self::RequestVoteResponse,
            MessageType::MsgSnapshot => Self::Snapshot,
            MessageType::MsgHeartbeat => Self::Heartbeat,
            MessageType::MsgHeartbeatResponse => Self::HeartbeatResponse,
            MessageType::MsgReadIndex => Self::ReadIndex,
            MessageType::MsgReadIndexResp => Self::ReadIndexResp,
            MessageType::MsgRequestPreVote => Self::RequestPreVote,
            MessageType::MsgRequestPreVoteResponse => Self::RequestPreVoteResponse,
            MessageType::MsgHup
            | MessageType::MsgBeat
            | MessageType::MsgPropose
            | MessageType::MsgUnreachable
            | MessageType::MsgSnapStatus
            | MessageType::MsgCheckQuorum
            | MessageType::MsgTransferLeader
            | MessageType::MsgTimeoutNow => return None,
        })
    }

    const fn raft(self) -> MessageType {
        match self {
            Self::Append => MessageType::MsgAppend,
            Self::AppendResponse => MessageType::MsgAppendResponse,
            Self::RequestVote => MessageType::MsgRequestVote,
            Self::RequestVoteResponse => MessageType::MsgRequestVoteResponse,
            Self::Snapshot => MessageType::MsgSnapshot,
            Self::Heartbeat => MessageType::MsgHeartbeat,
            Self::HeartbeatResponse => MessageType::MsgHeartbeatResponse,
            Self::ReadIndex => MessageType::MsgReadIndex,
            Self::ReadIndexResp => MessageType::MsgReadIndexResp,
            Self::RequestPreVote => MessageType::MsgRequestPreVote,
            Self::RequestPreVoteResponse => MessageType::MsgRequestPreVoteResponse,
        }
    }
}

/// A message of raft. The fields mean what they mean there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "raft gives these names their meaning")]
pub struct Message {
    pub kind: Kind,
    pub to: u64,
    pub from: u64,
    pub term: u64,
    pub log_term: u64,
    pub index: u64,
    pub entries: Vec<Entry>,
    pub commit: u64,
    pub commit_term: u64,
    pub snapshot: Option<Snapshot>,
    pub request_snapshot: u64,
    pub reject: bool,
    pub reject_hint: u64,
    pub context: Vec<u8>,
}

impl Message {
    /// A message that raft wants sent; nothing if it is none that voters exchange.
    pub(super) fn of(raft: &mut eraftpb::Message) -> Option<Self> {
        let snapshot = raft.has_snapshot().then(|| Snapshot::of(raft.get_snapshot()));
        Some(Self {
            kind: Kind::of(raft.get_msg_type())?,
            to: raft.to,
            from: raft.from,
            term: raft.term,
            log_term: raft.log_term,
            index: raft.index,
            entries: raft.take_entries().iter().map(Entry::of).collect(),
            commit: raft.commit,
            commit_term: raft.commit_term,
            snapshot,
            request_snapshot: raft.request_snapshot,
            reject: raft.reject,
            reject_hint: raft.reject_hint,
            context: raft.context.to_vec(),
        })
    }

    /// The message as raft takes it.
    pub(super) fn raft(self) -> eraftpb::Message {
        let mut raft = eraftpb::Message::default();
        raft.set_msg_type(self.kind.raft());
        raft.to = self.to;
        raft.from = self.from;
        raft.term = self.term;
        raft.log_term = self.log_term;
        raft.index = self.index;
        raft.set_entries(self.entries.into_iter().map(Entry::raft).collect());
        raft.commit = self.commit;
        raft.commit_term = self.commit_term;
        if let Some(snapshot) = self.snapshot {
            raft.set_snapshot(snapshot.raft());
        }
        raft.request_snapshot = self.request_snapshot;
        raft.reject = self.reject;
        raft.reject_hint = self.reject_hint;
        raft.context = self.context.into();
        raft
    }
}

/// An entry of the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The term that it was proposed in.
    pub term: u64,
    /// Its place.
    pub index: u64,
    /// What it says.
    pub content: Content,
}

/// What an entry says. Both kinds are in our own encoding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Content {
    /// Orders, or nothing: a new leader begins with an empty entry. In a message about a read, its
    /// context.
    Orders(Vec<u8>),
    /// A change of who votes.
    Conf(Vec<u8>),
}

impl Entry {
    pub(super) fn of(raft: &eraftpb::Entry) -> Self {
        let content = match raft.get_entry_type() {
            EntryType::EntryNormal => Content::Orders(raft.data.to_vec()),
            EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => {
                Content::Conf(raft.context.to_vec())
            }
        };
        Self { term: raft.term, index: raft.index, content }
    }

    pub(super) fn raft(self) -> eraftpb::Entry {
        let (term, index) = (self.term, self.index);
        match self.content {
            Content::Orders(data) => {
                eraftpb::Entry { term, index, data: data.into(), ..Default::default() }
            }
            // Its data stays empty: raft would give it to protobuf. The context is ours to read.
            Content::Conf(context) => {
                let entry_type = EntryType::EntryConfChange;
                let context = context.into();
                eraftpb::Entry { entry_type, term, index, context, ..Default::default() }
            }
        }
    }
}

/// The state at an index, in place of the entries up to it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// The index.
    pub index: u64,
    /// The term of the entry there.
    pub term: u64,
    /// Who was a member then.
    pub members: Members,
    /// The state, encoded.
    pub state: Vec<u8>,
}

impl Snapshot {
    pub(super) fn of(raft: &eraftpb::Snapshot) -> Self {
        let about = raft.get_metadata();
        Self {
            index: about.index,
            term: about.term,
            members: Members::of(about.get_conf_state()),
            state: raft.data.to_vec(),
        }
    }

    pub(super) fn raft(self) -> eraftpb::Snapshot {
        let data = self.state.into();
        let mut raft = eraftpb::Snapshot { data, ..Default::default() };
        let about = raft.mut_metadata();
        about.index = self.index;
        about.term = self.term;
        about.set_conf_state(self.members.raft());
        raft
    }

    /// Is it one that can be taken: a state that can be read, with somebody who votes?
    pub(super) fn is_sound(&self) -> bool {
        self.index > 0 && !self.members.voters.is_empty() && decode::<State>(&self.state).is_some()
    }
}

/// Who takes part. There is one change at a time, so there never are two sets at once.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Members {
    /// Who votes.
    pub voters: Vec<u64>,
    /// Who only listens, so that it can vote soon.
    pub learners: Vec<u64>,
}

impl Members {
    pub(super) fn of(raft: &eraftpb::ConfState) -> Self {
        let mut members = Self { voters: raft.voters.clone(), learners: raft.learners.clone() };
        members.voters.sort_unstable();
        members.learners.sort_unstable();
        members
    }

    pub(super) fn raft(&self) -> eraftpb::ConfState {
        let mut raft = eraftpb::ConfState::default();
        raft.voters.clone_from(&self.voters);
        raft.learners.clone_from(&self.learners);
        raft
    }

    /// Does it take part at all?
    #[must_use]
    pub fn contains(&self, id: u64) -> bool {
        self.voters.contains(&id) || self.learners.contains(&id)
    }
}

/// A change of who takes part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Conf {
    /// This one listens from now on.
    Learn(u64),
    /// This one, which listened, votes from now on.
    Promote(u64),
    /// This one takes part no more. Its id is never used again.
    Remove(u64),
}

impl Conf {
    pub(super) fn raft(self) -> ConfChangeV2 {
        let mut change = ConfChangeSingle::default();
        let (kind, id) = match self {
            Self::Learn(id) => (ConfChangeType::AddLearnerNode, id),
            Self::Promote(id) => (ConfChangeType::AddNode, id),
            Self::Remove(id) => (ConfChangeType::RemoveNode, id),
        };
        change.set_change_type(kind);
        change.node_id = id;
        let mut changes = ConfChangeV2::default();
        changes.set_changes(vec![change].into());
        changes
    }

    /// The proposal of this change. Its data is empty: nothing for protobuf to parse.
    pub(super) fn proposal(self) -> eraftpb::Message {
        let content = Content::Conf(encode(&self));
        let mut message = eraftpb::Message::default();
        message.set_msg_type(MessageType::MsgPropose);
        message.set_entries(vec![Entry { term: 0, index: 0, content }.raft()].into());
        message
    }
}

#[cfg(test)]
mod tests;
