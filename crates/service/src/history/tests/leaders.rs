//! Roles: for each rule a history that breaks it and no other.

use super::*;
use crate::history::News;

fn leads_from(counter: u64, until: u64) -> Fact {
    let (space, name) = (Some("roles".into()), "web".into());
    Fact::Granted { space, name, fence: fence(10, counter), until: Time(until * MS) }
}

fn asks(counter: u64, left: u64) -> Fact {
    let (space, name) = (Some("roles".into()), "web".into());
    Fact::Checked { space, name, fence: fence(10, counter), left: Span(left * MS) }
}

fn resigns(counter: u64) -> Fact {
    let (space, name) = (Some("roles".into()), "web".into());
    Fact::Dropped { space, name, fence: fence(10, counter) }
}

fn leader(counter: u64, member: &str) -> News {
    let (member, value) = (member.to_string(), format!("{member}:80"));
    News::Leads { term: fence(10, counter), member, value }
}

fn nobody(counter: u64) -> News {
    News::Nobody { after: Some(fence(10, counter)) }
}

fn heard(news: News) -> Fact {
    Fact::Heard { role: "web".into(), news }
}

fn observed(news: News) -> Fact {
    Fact::Observed { role: "web".into(), news }
}

/// `b` leads and resigns, then `c` does; `a` is told of it, late.
fn two_terms() -> Script {
    let mut script = three();
    script.say(20, "b", 2, leads_from(1, 300)).say(30, "b", 2, asks(1, 400));
    script.say(35, "a", 1, heard(leader(1, "b"))).say(36, "a", 1, observed(leader(1, "b")));
    script.say(40, "b", 2, resigns(1)).say(45, "a", 1, heard(nobody(1)));
    script.say(50, "c", 3, leads_from(2, 400)).say(52, "a", 1, heard(leader(2, "c")));
    script.say(55, "a", 1, observed(News::Nobody { after: None }));
    script.say(56, "a", 1, observed(leader(2, "c"))).say(57, "a", 1, heard(News::Unknown)).clone()
}

#[test]
fn terms_that_follow_each_other_break_nothing() {
    let judgement = two_terms().judged();
    assert_eq!(judgement.findings, []);
    for rule in [Rule::Leaders, Rule::Terms, Rule::Observers] {
        let verdict = judgement.verdicts.iter().find(|verdict| verdict.rule == rule);
        assert_eq!(verdict.map(|verdict| verdict.word), Some(Word::Holds), "{rule:?}");
    }
}

/// A role and a lock of one name have nothing to do with each other.
#[test]
fn a_lock_of_the_same_name_is_another_one() {
    let mut script = two_terms();
    let lock = Fact::Granted {
        space: None,
        name: "web".into(),
        fence: fence(10, 1),
        until: Time(500 * MS),
    };
    script.say(51, "a", 1, lock);
    assert_eq!(script.judged().findings, []);
}

#[test]
fn a_leader_beside_one_that_may_still_act_is_found() {
    let mut script = two_terms();
    script.0.retain(|record| record.fact != resigns(1) && record.fact != heard(nobody(1)));
    script.0.retain(|record| record.fact != observed(News::Nobody { after: None }));
    script.breaks(
        Rule::Leaders,
        "b Checked 30",
        "c Granted 50",
        "c has role web at 49.000 ms, and b has it until 429.000 ms: 380.000 ms too early",
    );
}

#[test]
fn a_term_with_two_leaders_is_found() {
    let mut script = three();
    script.say(20, "b", 2, leads_from(1, 300)).say(40, "b", 2, resigns(1));
    script.say(50, "c", 3, leads_from(1, 400));
    script.breaks(
        Rule::Terms,
        "b Granted 20",
        "c Granted 50",
        "c leads in role web in term 10-1, after b in 10-1",
    );
}

#[test]
fn a_term_that_is_less_than_the_last_one_is_found() {
    let mut script = two_terms();
    script.say(60, "c", 3, resigns(2)).say(70, "a", 1, leads_from(1, 400));
    assert_eq!(script.only_finding().0, Rule::Terms);
}

#[test]
fn a_leader_that_nobody_has_made_one_is_found() {
    let mut script = two_terms();
    script.say(60, "a", 1, heard(leader(3, "b")));
    script.breaks(
        Rule::Observers,
        "a Heard 60",
        "a Heard 60",
        "a is told that b leads in role web in term 10-3, which nobody was granted",
    );
}

#[test]
fn a_leader_that_is_told_of_before_it_leads_is_found() {
    let mut script = two_terms();
    script.say(48, "b", 2, heard(leader(2, "c")));
    assert_eq!(script.only_finding().0, Rule::Observers);
}

#[test]
fn a_leader_by_the_name_of_another_one_is_found() {
    let mut script = two_terms();
    script.say(60, "b", 2, heard(leader(1, "a")));
    let broken: Vec<_> = script.judged().findings.into_iter().map(|it| it.text).collect();
    let said = "b is told that a leads in role web in term 10-1";
    assert_eq!(
        broken,
        [format!("{said}, which b was granted"), format!("{said} as a:80, and a as b:80")]
    );
}

#[test]
fn what_is_said_of_a_leader_differently_to_two_is_found() {
    let mut script = two_terms();
    let (term, member) = (fence(10, 2), "c".into());
    script.say(60, "b", 2, heard(News::Leads { term, member, value: "elsewhere".into() }));
    script.breaks(
        Rule::Observers,
        "a Heard 52",
        "b Heard 60",
        "b is told that c leads in role web in term 10-2 as elsewhere, and a as c:80",
    );
}

#[test]
fn nobody_who_does_lead_is_found() {
    let mut script = two_terms();
    script.say(60, "b", 2, heard(nobody(1)));
    assert_eq!(script.judged().findings, [], "the first term is over");
    script.say(61, "b", 2, heard(nobody(2)));
    script.breaks(
        Rule::Observers,
        "c Granted 50",
        "b Heard 61",
        "b is told that nobody leads in role web up to term 10-2, and c does until 399.000 ms",
    );
}

/// Users are told no term, but know the last one that they were told of.
#[test]
fn nobody_after_a_leader_that_still_leads_is_found_without_a_term() {
    let mut script = two_terms();
    script.say(60, "a", 1, observed(News::Nobody { after: None }));
    let (rule, [leads, told], _) = script.only_finding();
    assert_eq!(rule, Rule::Observers);
    assert_eq!((leads.as_str(), told.as_str()), ("c Granted 50", "a Observed 60"));
}

#[test]
fn terms_that_go_back_for_one_observer_are_found() {
    let mut script = two_terms();
    script.say(60, "a", 1, observed(leader(1, "b")));
    script.breaks(
        Rule::Observers,
        "a Observed 56",
        "a Observed 60",
        "a is told of term 10-1 of role web after term 10-2",
    );
    let mut again = two_terms();
    again.say(47, "a", 1, heard(leader(1, "b")));
    let (rule, _, text) = again.only_finding();
    assert_eq!(rule, Rule::Observers);
    assert_eq!(text, "a is told of term 10-1 of role web after the end of term 10-1");
}

/// A history in which all lead and observe after the healing.
fn healed() -> Script {
    let mut script = one_is_killed();
    for (place, (member, process)) in [("b", 2), ("a", 4), ("c", 3)].into_iter().enumerate() {
        let (at, counter) = (500 + 20 * place as u64, 1 + place as u64);
        let (space, name) = (Some("roles".into()), "web".to_string());
        let fence = fence(12, counter);
        let granted = Fact::Granted {
            space: space.clone(),
            name: name.clone(),
            fence,
            until: Time(900 * MS),
        };
        script.say(at, member, process, granted);
        script.say(at + 10, member, process, Fact::Dropped { space, name, fence });
    }
    for (member, process) in [("a", 4), ("b", 2), ("c", 3)] {
        let (term, value) = (fence(12, 3), String::new());
        let news = News::Leads { term, member: "c".into(), value };
        script.say(600, member, process, observed(news));
    }
    script.done(6_000, Fact::End).clone()
}

#[test]
fn a_survivor_that_does_not_lead_is_found() {
    assert_eq!(healed().judged().findings, []);
    let mut script = healed();
    script.0.retain(|record| record.member != "a" || !matches!(record.fact, Fact::Granted { .. }));
    let (rule, _, text) = script.only_finding();
    assert_eq!(rule, Rule::Healing);
    assert_eq!(text, "5000.000 ms after healing a has not led in any role");
}

#[test]
fn a_survivor_that_is_not_told_who_leads_is_found() {
    let mut script = healed();
    script.0.retain(|record| record.member != "a" || !matches!(record.fact, Fact::Observed { .. }));
    script.say(601, "a", 4, observed(News::Unknown));
    let (rule, _, text) = script.only_finding();
    assert_eq!(rule, Rule::Healing);
    assert_eq!(text, "5000.000 ms after healing a has not been told who leads in role web");
}
