//! Groups: for each rule a history that breaks it and no other.

use super::*;
use crate::groups::Order::{self, Causal, Fifo, Total, Uniform};

/// The streams of the three, each by the number of its process.
const WHO: [(&str, u128); 3] = [("a", 1), ("b", 2), ("c", 3)];

fn posted(stream: u64, number: u64, order: Order) -> Fact {
    Fact::Posted { group: "chat".into(), stream, number, order }
}

fn view(stream: u64, number: u64, members: &[&str], digest: u32) -> Fact {
    let members = members.iter().map(ToString::to_string).collect();
    let (group, epoch, digest) = ("chat".into(), Epoch(10), Some(digest));
    Fact::GroupView { group, stream, epoch, number, members, digest }
}

fn delivered(stream: u64, (from, number): (u64, u64), order: Order) -> Fact {
    Fact::Delivered { group: "chat".into(), stream, from, number, order }
}

fn end(stream: u64, left: bool) -> Fact {
    Fact::GroupEnd { group: "chat".into(), stream, left }
}

/// A message, with its order.
type Told = ((u64, u64), Order);

/// All three are in view 1. These messages are sent, each is told these, and then those go on who are told
/// view 2: `a` and `b` alone if `c` is to stay behind.
fn session(sent: &[Told], told: [&[Told]; 3], next: &[&str]) -> Script {
    let mut script = three();
    for (member, process) in WHO {
        script.say(20, member, process, view(process as u64, 1, &["a", "b", "c"], 7));
    }
    for (place, ((from, number), order)) in sent.iter().enumerate() {
        let (member, process) = WHO[*from as usize - 1];
        script.say(30 + place as u64, member, process, posted(*from, *number, *order));
    }
    for ((member, process), told) in WHO.into_iter().zip(told) {
        for (place, (id, order)) in told.iter().enumerate() {
            let fact = delivered(process as u64, *id, *order);
            script.say(50 + place as u64, member, process, fact);
        }
    }
    for (member, process) in WHO {
        if next.contains(&member) {
            script.say(80, member, process, view(process as u64, 2, next, 8));
        }
    }
    script
}

const ALL: [&str; 3] = ["a", "b", "c"];
const TWO: [&str; 2] = ["a", "b"];

#[test]
fn those_who_were_told_the_same_break_nothing() {
    let sent = [((1, 1), Fifo), ((2, 1), Causal), ((2, 2), Total), ((3, 1), Uniform)];
    let [x, y, z, u] = sent;
    // Fifo and causal messages of two that know nothing of each other come in any order.
    let mut script = session(&sent, [&[x, y, z, u], &[y, z, u, x], &[y, z, x, u]], &ALL);
    script.say(90, "c", 3, end(3, true));
    let judgement = script.judged();
    assert_eq!((judgement.findings, judgement.messages), (vec![], 12));
    let rules = [
        Rule::GroupViews,
        Rule::Synchrony,
        Rule::TotalOrder,
        Rule::Uniformity,
        Rule::Causality,
        Rule::SenderOrder,
        Rule::Once,
        Rule::States,
    ];
    for rule in rules {
        let verdict = judgement.verdicts.iter().find(|verdict| verdict.rule == rule);
        assert_eq!(verdict.map(|verdict| verdict.word), Some(Word::Holds), "{rule:?}");
    }
}

/// Who is excluded or killed may have been told what nobody else was.
#[test]
fn nothing_is_promised_of_who_does_not_go_on() {
    let (x, y) = (((3, 1), Total), ((1, 1), Total));
    let mut script = session(&[x, y], [&[y], &[y], &[x, y]], &TWO);
    assert_eq!(script.judged().findings, []);
    script.say(90, "c", 3, end(3, false));
    assert_eq!(script.judged().findings, []);
}

#[test]
fn a_message_that_one_goes_on_without_is_found() {
    let x = ((1, 1), Fifo);
    session(&[x], [&[x], &[], &[x]], &TWO).breaks(
        Rule::Synchrony,
        "a Delivered 50",
        "b GroupView 80",
        "b goes on from view 10:1 of group chat without message 1 of stream 1, and a with it",
    );
}

/// Leaving is going on from a view, too.
#[test]
fn a_message_that_one_leaves_without_is_found() {
    let x = ((1, 1), Fifo);
    let mut script = session(&[x], [&[x], &[x], &[]], &TWO);
    assert_eq!(script.judged().findings, []);
    script.say(90, "c", 3, end(3, true));
    assert_eq!(script.only_finding().0, Rule::Synchrony);
}

#[test]
fn two_orders_of_total_messages_are_found() {
    let (x, y) = (((1, 1), Total), ((2, 1), Total));
    session(&[x, y], [&[x, y], &[y, x], &[]], &TWO).breaks(
        Rule::TotalOrder,
        "a Delivered 50",
        "b Delivered 50",
        "in view 10:1 of group chat b delivers message 1 of stream 2 where a delivers message 1 of stream 1",
    );
}

#[test]
fn a_uniform_message_that_died_with_one_is_found() {
    let x = ((3, 1), Uniform);
    let script = session(&[x], [&[], &[], &[x]], &TWO);
    let judgement = script.judged();
    let texts: Vec<_> = judgement.findings.iter().map(|it| (it.rule, it.text.as_str())).collect();
    let text = |who| {
        format!(
            "{who} goes on from view 10:1 of group chat without message 1 of stream 3, which c \
             has delivered as uniform"
        )
    };
    assert_eq!(
        texts,
        [(Rule::Uniformity, text("a").as_str()), (Rule::Uniformity, text("b").as_str())]
    );
}

/// Somebody who stood still is told it when the others have long gone on.
#[test]
fn a_uniform_message_that_is_delivered_late_by_one_alone_is_found() {
    let x = ((3, 1), Uniform);
    let mut script = session(&[x], [&[], &[], &[]], &TWO);
    script.say(90, "c", 3, delivered(3, (3, 1), Uniform));
    script.breaks(
        Rule::Uniformity,
        "a GroupView 80",
        "c Delivered 90",
        "c delivers message 1 of stream 3 in group chat as uniform, and a went on without it",
    );
}

#[test]
fn two_orders_of_uniform_messages_are_found_also_at_who_does_not_go_on() {
    let (x, y) = (((1, 1), Uniform), ((2, 1), Uniform));
    let broken: Vec<_> = session(&[x, y], [&[x, y], &[x, y], &[y]], &TWO).judged().findings;
    assert!(broken.iter().all(|finding| finding.rule == Rule::Uniformity), "{broken:?}");
    let text = "c delivers message 1 of stream 2 in group chat as uniform where a delivers message 1 of \
                stream 1";
    assert!(broken.iter().any(|finding| finding.text == text), "{broken:?}");
}

#[test]
fn an_answer_before_its_question_is_found() {
    let mut script = session(&[((1, 1), Fifo)], [&[((1, 1), Fifo)], &[], &[]], &[]);
    script.say(60, "b", 2, delivered(2, (1, 1), Fifo)).say(61, "b", 2, posted(2, 1, Causal));
    script.say(70, "c", 3, delivered(3, (2, 1), Causal));
    script.breaks(
        Rule::Causality,
        "b Posted 61",
        "c Delivered 70",
        "c delivers message 1 of stream 2 in group chat before message 1 of stream 1, after which it was sent",
    );
}

#[test]
fn fifo_messages_and_those_of_another_view_have_no_causes() {
    let mut script = session(&[((1, 1), Fifo)], [&[], &[], &[]], &[]);
    script.say(60, "b", 2, delivered(2, (1, 1), Fifo)).say(61, "b", 2, posted(2, 1, Fifo));
    script.say(62, "b", 2, posted(2, 2, Causal)).say(70, "c", 3, delivered(3, (2, 1), Fifo));
    // What was sent in one view may be told in the next one, to somebody who was not in the first.
    script.say(75, "b", 2, delivered(2, (2, 1), Fifo)).say(80, "b", 2, view(2, 2, &["b", "d"], 8));
    script.start(70, "d", 4, 4).say(80, "d", 4, view(4, 2, &["b", "d"], 8));
    script.say(85, "d", 4, delivered(4, (2, 2), Causal));
    assert_eq!(script.judged().findings, []);
}

#[test]
fn a_gap_and_an_order_that_is_not_that_of_the_sender_are_found() {
    let [x, y, z] = [((1, 1), Fifo), ((1, 2), Fifo), ((1, 3), Fifo)];
    session(&[x, y, z], [&[x, z], &[], &[]], &[]).breaks(
        Rule::SenderOrder,
        "a Delivered 50",
        "a Delivered 51",
        "a delivers message 3 of stream 1 in group chat after message 1 of stream 1",
    );
    session(&[x, y], [&[y, x], &[], &[]], &[]).breaks(
        Rule::SenderOrder,
        "a Delivered 50",
        "a Delivered 51",
        "a delivers message 1 of stream 1 in group chat after message 2 of stream 1",
    );
}

#[test]
fn a_message_that_is_delivered_twice_is_found() {
    let x = ((1, 1), Total);
    session(&[x], [&[x, x], &[x], &[]], &TWO).breaks(
        Rule::Once,
        "a Delivered 50",
        "a Delivered 51",
        "a delivers message 1 of stream 1 in group chat twice",
    );
}

#[test]
fn a_message_that_nobody_has_sent_so_is_found() {
    let (x, wrong) = (((1, 1), Total), ((1, 1), Causal));
    session(&[x], [&[], &[wrong], &[]], &[]).breaks(
        Rule::Once,
        "b Delivered 50",
        "b Delivered 50",
        "b delivers message 1 of stream 1 in group chat as causal, and it was not sent so",
    );
    let mut script = session(&[x], [&[], &[], &[]], &[]);
    script.say(60, "b", 2, delivered(2, (1, 2), Total)).say(61, "a", 1, posted(1, 2, Total));
    assert_eq!(script.only_finding().0, Rule::Once, "it was sent later");
}

#[test]
fn a_view_with_other_members_for_another_one_is_found() {
    let mut script = three();
    script.say(20, "a", 1, view(1, 1, &["a", "b"], 7)).say(21, "b", 2, view(2, 1, &["b", "a"], 7));
    script.breaks(
        Rule::GroupViews,
        "a GroupView 20",
        "b GroupView 21",
        r#"view 10:1 of group chat has ["a", "b"] for a and ["b", "a"] for b"#,
    );
    let mut nameless = three();
    nameless.say(20, "a", 1, view(1, 1, &["a", "b"], 7));
    nameless.say(21, "b", 2, view(2, 1, &["life 1", "b"], 7));
    assert_eq!(nameless.judged().findings, [], "who is gone has no name any more");
}

#[test]
fn views_that_go_back_and_views_without_oneself_are_found() {
    let mut script = three();
    script.say(20, "a", 1, view(1, 2, &["a"], 7)).say(21, "a", 1, view(1, 1, &["a"], 7));
    assert_eq!(script.only_finding().0, Rule::GroupViews);
    let mut without = three();
    without.say(20, "a", 1, view(1, 2, &["b"], 7));
    assert_eq!(without.only_finding().0, Rule::GroupViews);
}

/// The one who joins is given a state that is not that of the others before its first view.
#[test]
fn a_state_that_is_not_that_of_the_others_is_found() {
    let mut script = session(&[], [&[], &[], &[]], &TWO);
    script.say(90, "c", 3, end(3, false)).say(100, "a", 1, view(1, 3, &ALL, 9));
    script.say(101, "c", 3, view(4, 3, &ALL, 5));
    script.breaks(
        Rule::States,
        "a GroupView 100",
        "c GroupView 101",
        "before view 10:3 of group chat the state is 00000009 for a and 00000005 for c",
    );
}

#[test]
fn a_survivor_that_gets_nothing_of_its_own_back_is_found() {
    let mut script = one_is_killed();
    for (member, process) in [("a", 4), ("b", 2), ("c", 3)] {
        let stream = process as u64;
        script.say(500, member, process, view(stream, 1, &ALL, 7));
        script.say(510, member, process, posted(stream, 1, Total));
    }
    for (member, process) in [("a", 4), ("b", 2), ("c", 3)] {
        for (place, from) in [2, 3, 4].into_iter().enumerate() {
            let fact = delivered(process as u64, (from, 1), Total);
            script.say(520 + place as u64, member, process, fact);
        }
    }
    script.done(6_000, Fact::End);
    assert_eq!(script.judged().findings, []);
    script.0.retain(|record| record.fact != delivered(4, (4, 1), Total));
    let (rule, _, text) = script.only_finding();
    assert_eq!(rule, Rule::Healing);
    assert_eq!(
        text,
        "5000.000 ms after healing a has got no message of its own back from group chat"
    );
}
