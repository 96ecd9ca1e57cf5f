//! Histories made by hand: a good one, and for each rule one that breaks that rule and no other.

mod groups;
mod leaders;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use quorate_core::{Life, Span, Time};

use super::judge::{Judgement, Rule, Terms, Word};
use super::{ChildState, Fact, Fence, HARNESS, History, Record, Role};
use crate::register::{Epoch, Nonce};

const MS: u64 = 1_000_000;
/// When the kernel's clock stood, as the histories begin.
const BEGIN: u64 = 1_000_000 * MS;

/// A history that is being written. Times are in milliseconds from its beginning.
#[derive(Clone, Default)]
struct Script(Vec<Record>);

impl Script {
    /// A process says something. Its clock goes right.
    fn say(&mut self, ms: u64, member: &str, process: u128, fact: Fact) -> &mut Self {
        self.say_by_clock(ms, ms, member, process, fact)
    }

    /// A process says something. Its clock is at this many milliseconds of its own.
    fn say_by_clock(
        &mut self,
        ms: u64,
        clock: u64,
        member: &str,
        process: u128,
        fact: Fact,
    ) -> &mut Self {
        let (t, clock) = (BEGIN + ms * MS, Time(clock * MS));
        let (member, process) = (member.to_string(), Nonce(process));
        self.0.push(Record { t, clock, member, process, fact });
        self
    }

    /// Something is done to a member.
    fn done(&mut self, ms: u64, fact: Fact) -> &mut Self {
        self.say(ms, HARNESS, 99, fact)
    }

    /// A process of this number starts, and is given this life.
    fn start(&mut self, ms: u64, member: &str, process: u32, life: u64) -> &mut Self {
        let at = u128::from(process);
        self.say(ms, member, at, Fact::Start { pid: process, role: Role::Member });
        self.say(ms + 1, member, at, Fact::Life { life: Life(life) })
    }

    fn install(
        &mut self,
        ms: u64,
        who: (&str, u128, u64),
        epoch: u64,
        members: &[u64],
    ) -> &mut Self {
        let (member, process, life) = who;
        let members = lives(members);
        let fact = Fact::Installed { epoch: Epoch(epoch), life: Life(life), members };
        self.say(ms, member, process, fact)
    }

    fn judged(&self) -> Judgement {
        History::new(self.0.clone()).judge(Terms::default())
    }

    /// The rule that is broken, the two records, and the sentence, if there is one alone.
    fn only_finding(&self) -> (Rule, [String; 2], String) {
        let judgement = self.judged();
        let [finding] = &judgement.findings[..] else { panic!("{:#?}", judgement.findings) };
        let history = History::new(self.0.clone());
        let shown = finding.between.map(|place| {
            let record = &history.records()[place];
            let fact = format!("{:?}", record.fact);
            let name = fact.split([' ', '(']).next().unwrap_or_default();
            format!("{} {name} {}", record.member, (record.t - BEGIN) / MS)
        });
        let said = judgement.verdicts.iter().find(|verdict| verdict.rule == finding.rule);
        assert_eq!(said.map(|verdict| verdict.word), Some(Word::Violated));
        (finding.rule, shown, finding.text.clone())
    }

    #[track_caller]
    fn breaks(&self, rule: Rule, first: &str, second: &str, text: &str) {
        let (broken, [one, other], said) = self.only_finding();
        assert_eq!((broken, one.as_str(), other.as_str()), (rule, first, second), "{said}");
        assert_eq!(said, text);
    }
}

fn lives(numbers: &[u64]) -> Vec<Life> {
    numbers.iter().map(|life| Life(*life)).collect()
}

fn presides(epoch: u64, until: u64) -> Fact {
    Fact::Presides { epoch: Epoch(epoch), until: Time(until * MS) }
}

fn until(at: u64) -> Fact {
    Fact::Until { at: Time(at * MS) }
}

fn stopped(epoch: u64) -> Fact {
    Fact::Stopped { epoch: Epoch(epoch) }
}

fn lost() -> Fact {
    Fact::Lost { why: "its lease has run out".into() }
}

fn kill(whom: &str, pid: u32) -> Fact {
    Fact::Kill { whom: whom.into(), pid }
}

fn fence(epoch: u64, counter: u64) -> Fence {
    Fence { epoch: Epoch(epoch), counter }
}

fn granted(epoch: u64, counter: u64, until: u64) -> Fact {
    let (name, until) = ("x".into(), Time(until * MS));
    Fact::Granted { space: None, name, fence: fence(epoch, counter), until }
}

fn checked(epoch: u64, counter: u64, left: u64) -> Fact {
    let (name, left) = ("x".into(), Span(left * MS));
    Fact::Checked { space: None, name, fence: fence(epoch, counter), left }
}

fn dropped(epoch: u64, counter: u64) -> Fact {
    Fact::Dropped { space: None, name: "x".into(), fence: fence(epoch, counter) }
}

/// Three members in view 10, of which `a` presides.
fn three() -> Script {
    let mut script = Script::default();
    for (member, process) in [("a", 1), ("b", 2), ("c", 3)] {
        script.start(u64::from(process), member, process, process.into());
        script.install(10, (member, process.into(), process.into()), 10, &[1, 2, 3]);
    }
    script.say(10, "a", 1, presides(10, 550)).clone()
}

/// The member `a` is killed, `b` takes its place, and `a` comes back under another life.
fn one_is_killed() -> Script {
    let mut script = three();
    script.say(160, "a", 1, until(700)).done(300, kill("a", 1));
    script.say(305, "b", 2, stopped(10)).say(306, "c", 3, stopped(10));
    script.say(308, "c", 3, Fact::Decided { epoch: Epoch(11), members: lives(&[2, 3]) });
    script.install(309, ("b", 2, 2), 11, &[2, 3]).install(309, ("c", 3, 3), 11, &[2, 3]);
    script.say(310, "b", 2, presides(11, 800));
    script.start(400, "a", 4, 4).done(401, Fact::Heal);
    script.say(410, "b", 2, stopped(11)).say(411, "c", 3, stopped(11));
    for who in [("b", 2, 2), ("c", 3, 3), ("a", 4, 4)] {
        script.install(415, who, 12, &[2, 3, 4]);
    }
    script.say(420, "b", 2, until(1_000)).clone()
}

#[test]
fn a_good_history_breaks_nothing() {
    let judgement = one_is_killed().judged();
    assert_eq!(judgement.findings, []);
    assert_eq!((judgement.processes, judgement.views, judgement.grants), (4, 3, 2));
    assert_eq!(judgement.healed_after, Some(Span(14 * MS)));
    let exercised = [
        Rule::OneHistory,
        Rule::Lives,
        Rule::StopBeforeDecide,
        Rule::GuardBeforeGrant,
        Rule::Primary,
        Rule::Healing,
        Rule::Endings,
    ];
    for verdict in judgement.verdicts {
        let word = match exercised.contains(&verdict.rule) {
            true => Word::Holds,
            false => Word::NotExercised,
        };
        assert_eq!(verdict.word, word, "{:?}", verdict.rule);
    }
}

#[test]
fn nothing_at_all_breaks_nothing_and_shows_nothing() {
    let judgement = Script::default().judged();
    assert!(judgement.verdicts.iter().all(|verdict| verdict.word == Word::NotExercised));
}

#[test]
fn an_epoch_with_two_charters_is_found() {
    let mut script = three();
    script.say(20, "c", 3, Fact::Decided { epoch: Epoch(10), members: lives(&[1, 3, 2]) });
    script.breaks(
        Rule::OneHistory,
        "a Installed 10",
        "c Decided 20",
        "epoch 10 is [1, 2, 3] for a and [1, 3, 2] for c",
    );
}

/// All are killed and come back, and the register has lost what it knew.
#[test]
fn epochs_that_begin_anew_are_found() {
    let mut script = three();
    script.done(100, kill("a", 1)).done(100, kill("b", 2)).done(100, kill("c", 3));
    script.start(200, "a", 4, 4).install(220, ("a", 4, 4), 9, &[4]);
    script.breaks(
        Rule::OneHistory,
        "a Installed 10",
        "a Installed 220",
        "a has epoch 9 after a had epoch 10",
    );
}

#[test]
fn a_register_that_goes_back_in_one_process_is_found() {
    let mut script = one_is_killed();
    script.say(430, "c", 3, Fact::Decided { epoch: Epoch(10), members: lives(&[1, 2, 3]) });
    script.breaks(
        Rule::OneHistory,
        "c Decided 308",
        "c Decided 430",
        "c has epoch 10 after c had epoch 11",
    );
}

/// A process that comes up reads again what was decided before its time.
#[test]
fn what_was_decided_before_may_be_seen_again_after_a_restart() {
    let mut script = one_is_killed();
    script.say(402, "a", 4, Fact::Decided { epoch: Epoch(10), members: lives(&[1, 2, 3]) });
    assert!(script.judged().holds());
}

#[test]
fn a_life_of_two_processes_is_found() {
    let mut script = three();
    script.done(100, kill("a", 1)).start(200, "a", 4, 1);
    script.breaks(
        Rule::Lives,
        "a Life 2",
        "a Life 201",
        "life 1 is that of a process of a and of one of a",
    );
}

#[test]
fn a_life_that_was_left_out_and_sits_again_is_found() {
    let mut script = one_is_killed();
    script.say(500, "b", 2, stopped(12)).say(500, "c", 3, stopped(12)).say(
        500,
        "a",
        4,
        stopped(12),
    );
    script.install(510, ("b", 2, 2), 13, &[2, 3, 4, 1]);
    script.breaks(
        Rule::Lives,
        "c Decided 308",
        "b Installed 510",
        "life 1 is in epoch 13, and an earlier view had left it out",
    );
}

#[test]
fn a_life_that_was_left_out_and_renews_is_found() {
    let mut script = three();
    script.say(20, "b", 2, until(550)).say(30, "a", 1, stopped(10)).say(30, "c", 3, stopped(10));
    script.install(40, ("a", 1, 1), 11, &[1, 3]).say(50, "b", 2, until(600));
    script.breaks(
        Rule::Lives,
        "a Installed 40",
        "b Until 50",
        "b renews as life 2, which a view had left out",
    );
}

#[test]
fn a_view_that_is_installed_by_a_stranger_is_found() {
    let mut script = three();
    script.start(11, "d", 4, 4).install(20, ("d", 4, 4), 10, &[1, 2, 3]);
    let broken: Vec<_> =
        script.judged().findings.into_iter().map(|it| (it.rule, it.text)).collect();
    let text = "d sits in epoch 10 as life 4, and that view has [1, 2, 3]".to_string();
    assert!(broken.contains(&(Rule::Lives, text)), "{broken:?}");
}

#[test]
fn a_view_that_is_decided_before_all_have_stopped_is_found() {
    let mut script = one_is_killed();
    script.0.retain(|record| record.member != "c" || record.fact != stopped(11));
    script.breaks(
        Rule::StopBeforeDecide,
        "c Installed 309",
        "b Installed 415",
        "c had not stopped in epoch 11 when epoch 12 was decided",
    );
}

#[test]
fn who_stops_only_after_the_decision_is_found() {
    let mut script = one_is_killed();
    script.0.retain(|record| record.member != "c" || record.fact != stopped(10));
    script.say(309, "c", 3, stopped(10));
    let (rule, [stop, decided], _) = script.only_finding();
    assert_eq!(rule, Rule::StopBeforeDecide);
    assert_eq!((stop.as_str(), decided.as_str()), ("c Stopped 309", "c Decided 308"));
}

/// The one who presides stands still, and the others do not wait for the end of its time.
#[test]
fn a_chair_that_is_taken_too_early_is_found() {
    let mut script = one_is_killed();
    script.0.retain(|record| record.fact != kill("a", 1));
    script.done(300, Fact::Stop { whom: "a".into(), pid: 1 });
    script.breaks(
        Rule::GuardBeforeGrant,
        "a Until 160",
        "b Presides 310",
        "b has the chair at 309.000 ms, and a has it until 699.000 ms: 390.000 ms too early",
    );
}

/// Marked as lost is not over.
#[test]
fn a_chair_that_is_said_to_be_lost_is_good_until_its_time_is_over() {
    let mut script = one_is_killed();
    script.0.retain(|record| record.fact != kill("a", 1));
    script.say(299, "a", 1, lost()).say(299, "a", 1, Fact::Out { life: Life(1) });
    assert_eq!(script.only_finding().0, Rule::GuardBeforeGrant);
}

/// The clock of `a` goes at nine tenths: its 540 ms are 600 for everybody else.
#[test]
fn deadlines_are_those_of_the_own_clock() {
    let at = |takes: u64| {
        let mut script = Script::default();
        script.say_by_clock(0, 0, "a", 1, Fact::Start { pid: 1, role: Role::Member });
        script.start(0, "b", 2, 2);
        script.install(10, ("b", 2, 2), 10, &[1, 2]);
        let members = lives(&[1, 2]);
        let install = Fact::Installed { epoch: Epoch(10), life: Life(1), members };
        script.say_by_clock(10, 9, "a", 1, install);
        script.say_by_clock(100, 90, "a", 1, presides(10, 630));
        script.say(takes - 20, "b", 2, stopped(10));
        script.install(takes - 10, ("b", 2, 2), 11, &[2]);
        script.say(takes, "b", 2, presides(11, takes + 500)).clone()
    };
    assert!(at(700).judged().holds());
    let (rule, _, text) = at(699).only_finding();
    assert_eq!(rule, Rule::GuardBeforeGrant);
    assert!(text.ends_with("1.000 ms too early"), "{text}");
}

/// What a process was told when it stood still, and hears too late, is nothing that it has.
#[test]
fn a_grant_that_has_run_out_when_it_is_told_is_none() {
    let mut script = one_is_killed();
    script.say(700, "c", 3, presides(12, 690)).say(701, "c", 3, until(695));
    assert!(script.judged().holds());
}

#[test]
fn a_lock_that_is_granted_while_another_guard_is_good_is_found() {
    let mut script = three();
    script.say(20, "b", 2, granted(10, 1, 500)).say(100, "b", 2, checked(10, 1, 480));
    script.say(579, "c", 3, granted(10, 2, 900));
    script.breaks(
        Rule::GuardBeforeGrant,
        "b Checked 100",
        "c Granted 579",
        "c has lock x at 578.000 ms, and b has it until 579.000 ms: 1.000 ms too early",
    );
}

#[test]
fn a_guard_ends_by_its_drop_its_time_or_its_process() {
    let mut dropping = three();
    dropping.say(20, "b", 2, granted(10, 1, 500)).say(30, "b", 2, checked(10, 1, 480));
    dropping.say(40, "b", 2, dropped(10, 1)).say(41, "c", 3, granted(10, 2, 500));
    let mut running_out = three();
    running_out.say(20, "b", 2, granted(10, 1, 500)).say(100, "b", 2, checked(10, 1, 480));
    running_out.say(300, "b", 2, checked(10, 1, 0)).say(580, "c", 3, granted(10, 2, 900));
    let mut killed = three();
    killed.say(20, "b", 2, granted(10, 1, 500)).done(60, kill("b", 2));
    killed.say(61, "c", 3, granted(10, 2, 500));
    let mut gone = three();
    gone.say(20, "b", 2, granted(10, 1, 500)).say(60, "b", 2, Fact::Exit);
    gone.say(61, "c", 3, granted(10, 2, 500));
    for script in [dropping, running_out, killed, gone] {
        assert_eq!(script.judged().findings, []);
    }
}

#[test]
fn one_process_that_has_a_lock_twice_is_found() {
    let mut script = three();
    script.say(20, "b", 2, granted(10, 1, 500)).say(30, "b", 2, granted(10, 2, 500));
    assert_eq!(script.only_finding().0, Rule::GuardBeforeGrant);
}

#[test]
fn a_fence_that_does_not_grow_is_found() {
    let mut script = three();
    script.say(20, "b", 2, granted(10, 7, 500)).say(30, "b", 2, dropped(10, 7));
    script.say(40, "c", 3, granted(10, 7, 500));
    script.breaks(
        Rule::Fences,
        "b Granted 20",
        "c Granted 40",
        "lock x is granted to c under fence 10-7, after 10-7 to b",
    );
}

/// It was granted, stood still before it could say so, and does when the next one has it.
#[test]
fn an_older_fence_that_has_run_out_when_it_is_told_is_none() {
    let mut script = three();
    script.say(20, "b", 2, granted(10, 7, 500)).say(40, "c", 3, granted(10, 6, 39));
    assert_eq!(script.judged().findings, []);
}

#[test]
fn a_gate_that_lets_an_older_fence_through_is_found() {
    let gate = |counter, accepted| {
        let (name, fence) = ("x".into(), fence(10, counter));
        Fact::Gate { name, fence, accepted }
    };
    let mut script = three();
    script.say(30, "b", 2, gate(2, true)).say(31, "b", 2, gate(2, true));
    script.say(32, "b", 2, gate(1, false));
    assert!(script.judged().holds());
    script.say(33, "b", 2, gate(1, true));
    script.breaks(
        Rule::Fences,
        "b Gate 31",
        "b Gate 33",
        "b changes what lock x guards under fence 10-1, after b under 10-2",
    );
}

#[test]
fn a_grant_by_who_has_stopped_is_found() {
    let mut script = three();
    script.say(20, "b", 2, stopped(10)).say(30, "b", 2, granted(10, 1, 500));
    script.breaks(
        Rule::Primary,
        "b Stopped 20",
        "b Granted 30",
        "b is granted in epoch 10, and has stopped there",
    );
}

#[test]
fn a_grant_in_another_view_than_the_own_is_found() {
    let mut script = three();
    script.say(30, "b", 2, granted(9, 1, 500));
    let (rule, _, text) = script.only_finding();
    assert_eq!((rule, text.as_str()), (Rule::Primary, "b sits in epoch 10, and is granted in 9"));
}

#[test]
fn a_client_sits_nowhere_and_is_granted_locks_all_the_same() {
    let mut script = three();
    script.say(20, "w", 7, Fact::Start { pid: 7, role: Role::Client });
    script.say(30, "w", 7, granted(10, 1, 500));
    assert!(script.judged().holds());
}

#[test]
fn a_child_that_works_after_the_next_grant_is_found() {
    let child = |state| Fact::Child { pid: 50, name: "x".into(), fence: fence(10, 1), state };
    let mut script = three();
    script.say(20, "b", 2, granted(10, 1, 500)).say(30, "w", 50, child(ChildState::Alive));
    script.say(40, "b", 2, dropped(10, 1)).say(50, "c", 3, granted(10, 2, 500));
    script.say(60, "b", 2, child(ChildState::Gone));
    assert!(script.judged().holds());
    script.say(55, "w", 50, child(ChildState::Alive)).say(56, "w", 50, child(ChildState::Alive));
    script.breaks(
        Rule::Children,
        "c Granted 50",
        "w Child 55",
        "child 50 works under lock x with fence 10-1, after c was granted 10-2",
    );
}

#[test]
fn children_are_not_judged_once_wrapper_and_agent_were_stopped_at_once() {
    let child =
        Fact::Child { pid: 50, name: "x".into(), fence: fence(10, 1), state: ChildState::Alive };
    let mut script = three();
    script.say(20, "b", 2, granted(10, 1, 30)).say(50, "c", 3, granted(10, 2, 500));
    script.say(60, "w", 50, child);
    let mut aside = script.clone();
    aside.done(40, Fact::Aside { rule: "children".into() });
    assert!(aside.judged().holds());
    script.done(40, Fact::Aside { rule: "calls".into() });
    assert_eq!(script.only_finding().0, Rule::Children);
}

#[test]
fn a_guard_that_was_lost_and_is_good_again_is_found() {
    let mut script = three();
    script.say(20, "b", 2, granted(10, 1, 500)).say(30, "b", 2, checked(10, 1, 100));
    script.say(40, "b", 2, checked(10, 1, 0)).say(50, "b", 2, checked(10, 2, 100));
    assert!(script.judged().holds());
    script.say(60, "b", 2, checked(10, 1, 100));
    script.breaks(
        Rule::Losses,
        "b Checked 40",
        "b Checked 60",
        "b lost lock x with fence 10-1, and has it again",
    );
}

fn call(id: u64) -> Fact {
    Fact::Call { id, what: "lock x".into(), within: Span(100 * MS) }
}

fn answer(id: u64) -> Fact {
    Fact::Return { id, outcome: "ok".into() }
}

#[test]
fn a_call_that_returns_too_late_is_found() {
    let mut script = three();
    script.say(20, "b", 2, call(1)).say(120, "b", 2, answer(1)).say(200, "b", 2, call(2));
    assert!(script.judged().holds());
    script.say(301, "b", 2, answer(2));
    script.breaks(
        Rule::Calls,
        "b Call 200",
        "b Return 301",
        "lock x at b took 101.000 ms, and has to return within 100.000 ms",
    );
}

#[test]
fn a_call_that_never_returns_is_found_if_its_process_was_there() {
    let mut script = three();
    script.say(20, "b", 2, call(1)).say(121, "c", 3, until(1_000));
    assert_eq!(script.only_finding().0, Rule::Calls);
    script.done(100, kill("b", 2));
    assert!(script.judged().holds());
}

#[test]
fn the_time_in_which_a_process_stands_still_does_not_count() {
    let (whom, pid) = (String::from("b"), 2);
    let mut script = three();
    script.say(20, "b", 2, call(1)).say(421, "b", 2, answer(1));
    script.done(30, Fact::Stop { whom: whom.clone(), pid });
    script.done(330, Fact::Cont { whom, pid });
    assert_eq!(
        script.only_finding().2,
        "lock x at b took 101.000 ms, and has to return within 100.000 ms"
    );
    script.0.retain(|record| record.fact != answer(1));
    script.say(420, "b", 2, answer(1));
    assert!(script.judged().holds());
}

#[test]
fn a_survivor_that_is_not_seated_in_time_is_found() {
    let mut script = one_is_killed();
    script.0.retain(|record| record.process != Nonce(4) || record.t < BEGIN + 410 * MS);
    script.say(5_000, "a", 4, Fact::Life { life: Life(5) });
    let judgement = script.judged();
    let word = |judgement: &Judgement| {
        judgement.verdicts.iter().find(|it| it.rule == Rule::Healing).map(|it| it.word)
    };
    assert_eq!(word(&judgement), Some(Word::Unfinished), "it might have come");
    script.done(5_402, Fact::End);
    script.breaks(
        Rule::Healing,
        "harness Heal 401",
        "a Life 5000",
        "5000.000 ms after healing a does not sit in epoch 12",
    );
}

/// All sit where they sat, and nobody's lease was renewed.
#[test]
fn a_view_in_which_nobody_presides_is_found() {
    let mut script = three();
    script.done(600, Fact::Heal).done(6_000, Fact::End);
    script.breaks(
        Rule::Healing,
        "harness Heal 600",
        "harness Heal 600",
        "5000.000 ms after healing nobody presides",
    );
    script.say(5_500, "a", 1, until(5_900));
    assert_eq!(script.judged().healed_after, Some(Span(4_900 * MS)));
}

#[test]
fn a_survivor_that_does_not_lock_every_lock_is_found() {
    let mut script = one_is_killed();
    for (place, (member, process)) in [("b", 2), ("a", 4), ("c", 3)].into_iter().enumerate() {
        let (at, counter) = (500 + 20 * place as u64, 1 + place as u64);
        script.say(at, member, process, granted(12, counter, 2_000));
        script.say(at + 10, member, process, dropped(12, counter));
    }
    script.done(6_000, Fact::End);
    assert_eq!(script.judged().findings, []);
    script.0.retain(|record| record.member != "c" || record.t < BEGIN + 500 * MS);
    script.breaks(
        Rule::Healing,
        "harness Heal 401",
        "a Dropped 530",
        "5000.000 ms after healing c has not had lock x",
    );
}

#[test]
fn who_leaves_or_stands_still_is_no_survivor() {
    let mut leaving = one_is_killed();
    leaving.0.retain(|record| record.process != Nonce(4) || record.t < BEGIN + 410 * MS);
    let mut standing = leaving.clone();
    leaving.done(400, Fact::Term { whom: "a".into(), pid: 4 }).done(6_000, Fact::End);
    standing.done(400, Fact::Stop { whom: "a".into(), pid: 4 }).done(6_000, Fact::End);
    for script in [leaving, standing] {
        assert_eq!(script.judged().findings, []);
        assert!(script.judged().healed_after.is_some());
    }
}

#[test]
fn a_process_that_ends_by_itself_is_found() {
    let mut script = three();
    let how = String::from("signal 6");
    script.done(50, Fact::Died { whom: "b".into(), pid: 2, how });
    script.breaks(
        Rule::Endings,
        "b Installed 10",
        "harness Died 50",
        "b has ended, and nobody told it to: signal 6",
    );
}

#[test]
fn every_rule_has_a_name_and_a_promise_of_its_own() {
    let names: Vec<_> =
        Rule::ALL.iter().flat_map(|rule| vec![rule.name(), rule.promise()]).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), names.len());
    assert!(Rule::ALL.iter().enumerate().all(|(place, rule)| *rule as usize == place));
}
