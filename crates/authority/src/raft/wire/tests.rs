//! What travels comes back as it was, and nothing else is taken for it.

use quorate_core::{Life, Span};
use quorate_service::{Register, Settings};

use super::*;

fn message() -> Message {
    let content = [Content::Orders(vec![1]), Content::Conf(encode(&Conf::Remove(3)))];
    let entry = |(place, content)| Entry { term: 4, index: place as u64 + 6, content };
    let register = Register::founded(5, Settings { lease: Span(1) });
    Message {
        kind: Kind::Snapshot,
        to: 1,
        from: 2,
        term: 3,
        log_term: 4,
        index: 5,
        entries: content.into_iter().enumerate().map(entry).collect(),
        commit: 8,
        commit_term: 9,
        snapshot: Some(Snapshot {
            index: 10,
            term: 11,
            members: Members { voters: vec![1, 2], learners: vec![3] },
            state: encode(&State::new(register)),
        }),
        request_snapshot: 12,
        reject: true,
        reject_hint: 13,
        context: vec![14],
    }
}

#[test]
fn a_message_comes_back_as_it_was() {
    assert_eq!(Message::of(&mut message().raft()), Some(message()));
    let id = OrderId { voter: 1, boot: 2, number: 3 };
    let orders = Word::Orders(vec![(id, Order::Leave(Life(4)))]);
    for word in [Word::Raft(message()), orders] {
        assert_eq!(Word::decode(&word.encode()), Some(word));
    }
}

#[test]
fn every_kind_comes_back_as_it_was() {
    let kinds = [
        Kind::Append,
        Kind::AppendResponse,
        Kind::RequestVote,
        Kind::RequestVoteResponse,
        Kind::Snapshot,
        Kind::Heartbeat,
        Kind::HeartbeatResponse,
        Kind::ReadIndex,
        Kind::ReadIndexResp,
        Kind::RequestPreVote,
        Kind::RequestPreVoteResponse,
    ];
    for kind in kinds {
        assert_eq!(Kind::of(kind.raft()), Some(kind));
    }
}

#[test]
fn what_voters_do_not_exchange_is_not_sent() {
    for kind in [MessageType::MsgPropose, MessageType::MsgTimeoutNow, MessageType::MsgHup] {
        let mut raft = eraftpb::Message::default();
        raft.set_msg_type(kind);
        assert_eq!(Message::of(&mut raft), None);
    }
}

/// Groups within groups, without an end: protobuf's parser would follow them until the stack is full.
/// Nothing that is decoded here is given to it, not even where raft itself expects its encoding.
#[test]
fn groups_within_groups_are_never_parsed() {
    let groups = vec![0x0b; 1 << 20];
    assert_eq!(Word::decode(&groups), None);
    assert_eq!(decode::<Conf>(&groups), None);
    let conf = Entry { term: 1, index: 2, content: Content::Conf(groups) };
    let raft = conf.raft();
    assert!(raft.data.is_empty(), "raft parses the data of a change");
    assert!(raft.context.len() > 1 << 19);
    let mut proposal = Conf::Learn(4).proposal();
    assert!(proposal.take_entries().iter().all(|entry| entry.data.is_empty()));
}

#[test]
fn bytes_that_are_no_word_are_refused() {
    let bytes = Word::Raft(message()).encode();
    assert_eq!(Word::decode(&bytes[..bytes.len() - 1]), None);
    assert_eq!(Word::decode(&[&bytes[..], &[0]].concat()), None);
    assert_eq!(Word::decode(&[&[VERSION + 1], &bytes[1..]].concat()), None);
    assert_eq!(Word::decode(&[]), None);
}
