//! The judgement of a run: what a monitor said, what was put to the test, and how the run ended.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::{Clocks, Fact, Monitor, NodeId, Time, VectorClock, Violation};

/// A verdict: what can be said of a property after a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It held, and something put it to the test.
    Holds,
    /// It did not hold; the first time that this was seen.
    Violated(Time, Violation),
    /// The run was cut off: what is missing might still have come.
    Unfinished,
    /// Nothing in the run put it to the test.
    NotExercised,
    /// The algorithm does not claim it.
    NotClaimed,
}

impl Verdict {
    /// As written in reports.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Holds => "ok",
            Self::Violated(..) => "violated",
            Self::Unfinished => "unfinished",
            Self::NotExercised => "not exercised",
            Self::NotClaimed => "not claimed",
        }
    }
}

/// An end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Nothing can happen any more.
    Rest,
    /// The run is over, by somebody else's word.
    Over,
    /// There was no more time, and what did not happen in it is taken never to happen.
    OutOfTime,
    /// The run was cut off while it might have gone on.
    Cut,
}

/// A monitor at work: what it found first of each property, and what has been put to the test.
#[derive(Clone, Debug)]
pub struct Judge<M> {
    monitor: M,
    /// By property, in the order of the monitor's list.
    violations: Vec<Option<(Time, Violation)>>,
    /// By property: claimed, and not put to the test yet.
    untested: Vec<bool>,
    /// How many of these there are.
    untested_left: usize,
    /// By property: what is missing might still have come.
    unfinished: Vec<bool>,
}

impl<M> Judge<M> {
    /// The judge of a run that begins.
    pub fn new<C, E>(monitor: M) -> Self
    where
        M: Monitor<C, E>,
    {
        let untested: Vec<_> = M::PROPERTIES.iter().map(|name| monitor.claims(name)).collect();
        let count = untested.len();
        Self {
            untested_left: untested.iter().filter(|untested| **untested).count(),
            untested,
            violations: vec![None; count],
            unfinished: vec![false; count],
            monitor,
        }
    }

    /// The monitor.
    pub const fn monitor(&self) -> &M {
        &self.monitor
    }

    /// What did not hold so far, and since when, by property.
    pub fn violations(&self) -> impl Iterator<Item = (Time, &Violation)> {
        self.violations.iter().flatten().map(|(at, violation)| (*at, violation))
    }

    /// Judges a fact, where all clocks show the time.
    pub fn fact<C, E>(&mut self, now: Time, at: NodeId, fact: Fact<'_, C, E>) -> Option<Violation>
    where
        M: Monitor<C, E>,
    {
        self.fact_after(now, &now, at, fact, None)
    }

    /// Judges a fact at a moment at which clocks show this, and of which it may be known what happened
    /// before.
    pub fn fact_after<C, E>(
        &mut self,
        now: Time,
        clocks: &dyn Clocks,
        at: NodeId,
        fact: Fact<'_, C, E>,
        past: Option<&VectorClock>,
    ) -> Option<Violation>
    where
        M: Monitor<C, E>,
    {
        if self.untested_left > 0 {
            self.note_tested(at, fact);
        }
        let judged = match past {
            None => self.monitor.observe_by(clocks, at, fact),
            Some(past) => self.monitor.observe_after(at, fact, past),
        };
        let violation = judged.err()?;
        self.violated(now, &violation);
        Some(violation)
    }

    fn note_tested<C, E>(&mut self, at: NodeId, fact: Fact<'_, C, E>)
    where
        M: Monitor<C, E>,
    {
        for (untested, property) in self.untested.iter_mut().zip(M::PROPERTIES) {
            if *untested && self.monitor.exercises(property, at, fact) {
                *untested = false;
                self.untested_left -= 1;
            }
        }
    }

    fn violated<C, E>(&mut self, now: Time, violation: &Violation)
    where
        M: Monitor<C, E>,
    {
        let place = place::<M, C, E>(violation);
        self.violations[place].get_or_insert_with(|| (now, violation.clone()));
    }

    /// Judges the end. Returns what it breaks, the first one first, and at which node that is seen.
    pub fn end<C, E>(&mut self, now: Time, end: End) -> Option<(NodeId, Vec<Violation>)>
    where
        M: Monitor<C, E>,
    {
        let owed = self.monitor.owed();
        let mut broken = Vec::new();
        for violation in self.monitor.settle() {
            let is_final = M::FINAL.contains(&violation.property);
            let violation = match end {
                _ if is_final => violation,
                End::Cut => {
                    self.unfinished[place::<M, C, E>(&violation)] = true;
                    continue;
                }
                End::Over => violation,
                End::Rest if owed.is_empty() => violation,
                End::Rest => violation.by_deadlock(),
                End::OutOfTime => {
                    let text = format!("{} (in the time given)", violation.text);
                    Violation { text, ..violation }
                }
            };
            self.violated(now, &violation);
            broken.push(violation);
        }
        let at = owed.iter().next().unwrap_or(NodeId::at(0));
        (!broken.is_empty()).then_some((at, broken))
    }

    /// What can be said, by property.
    pub fn verdicts<C, E>(self) -> Vec<(&'static str, Verdict)>
    where
        M: Monitor<C, E>,
    {
        let Self { monitor, violations, untested, unfinished, .. } = self;
        let tested = untested.into_iter().zip(unfinished);
        let properties = M::PROPERTIES.iter().zip(violations).zip(tested);
        let verdict = |((&property, violation), (untested, unfinished))| {
            let verdict = match violation {
                Some((at, violation)) => Verdict::Violated(at, violation),
                None if !monitor.claims(property) => Verdict::NotClaimed,
                None if unfinished => Verdict::Unfinished,
                None if untested => Verdict::NotExercised,
                None => Verdict::Holds,
            };
            (property, verdict)
        };
        properties.map(verdict).collect()
    }
}

/// The place of a property in the monitor's list.
fn place<M: Monitor<C, E>, C, E>(violation: &Violation) -> usize {
    let place = M::PROPERTIES.iter().position(|property| *property == violation.property);
    place.expect("a monitor judges the properties that it names")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeSet;

    /// Commands must be answered; one is forbidden, and one property is about another one.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct Answered {
        open: bool,
        crossed: bool,
    }

    impl Monitor<u32, ()> for Answered {
        const PROPERTIES: &'static [&'static str] = &["taboo", "answer", "cross", "never"];
        const FINAL: &'static [&'static str] = &["cross"];

        fn observe(&mut self, _: NodeId, fact: Fact<'_, u32, ()>) -> Result<(), Violation> {
            match fact {
                Fact::Command(13) => {
                    return Err(Violation { property: "taboo", text: "13".into() });
                }
                Fact::Command(command) => {
                    self.open = true;
                    self.crossed |= *command == 7;
                }
                Fact::Event(()) => self.open = false,
                Fact::Crashed | Fact::Recovered => {}
            }
            Ok(())
        }

        fn owed(&self) -> NodeSet {
            NodeSet::first(usize::from(self.open))
        }

        fn settle(&self) -> Vec<Violation> {
            let open = self.open.then(|| Violation { property: "answer", text: "open".into() });
            let crossed = self.crossed.then(|| Violation { property: "cross", text: "7".into() });
            open.into_iter().chain(crossed).collect()
        }

        fn claims(&self, property: &str) -> bool {
            property != "never"
        }

        fn exercises(&self, property: &str, _: NodeId, fact: Fact<'_, u32, ()>) -> bool {
            match (property, fact) {
                ("cross", fact) => fact == Fact::Command(&7),
                (_, fact) => matches!(fact, Fact::Command(_)),
            }
        }
    }

    fn judged(facts: &[Fact<'_, u32, ()>], end: End) -> [&'static str; 4] {
        let mut judge = Judge::new(Answered { open: false, crossed: false });
        for fact in facts {
            judge.fact(Time::ZERO, NodeId::at(0), *fact);
        }
        judge.end(Time::ZERO, end);
        let verdicts = judge.verdicts();
        core::array::from_fn(|place| verdicts[place].1.word())
    }

    #[test]
    fn what_nothing_put_to_the_test_is_not_said_to_hold() {
        const NOT: &str = "not exercised";
        assert_eq!(judged(&[], End::Rest), [NOT, NOT, NOT, "not claimed"]);
        let (one, answer) = (Fact::Command(&1), Fact::Event(&()));
        assert_eq!(judged(&[one, answer], End::Rest), ["ok", "ok", NOT, "not claimed"]);
        let seven = [Fact::Command(&7), answer];
        assert_eq!(judged(&seven, End::Rest), ["ok", "ok", "violated", "not claimed"]);
        let taboo = judged(&[Fact::Command(&13)], End::Rest);
        assert_eq!(taboo, ["violated", "ok", NOT, "not claimed"]);
    }

    #[test]
    fn a_run_that_is_cut_off_is_unfinished_where_something_may_still_come() {
        let open = [Fact::Command(&7)];
        assert_eq!(judged(&open, End::Cut), ["ok", "unfinished", "violated", "not claimed"]);
        assert_eq!(judged(&open, End::Rest), ["ok", "violated", "violated", "not claimed"]);
        assert_eq!(judged(&open, End::OutOfTime), judged(&open, End::Rest));
        let paid = [Fact::Command(&1), Fact::Event(&())];
        assert_eq!(judged(&paid, End::Cut), judged(&paid, End::Rest));
    }

    #[test]
    fn an_end_says_how_it_came() {
        let texts = |end| {
            let mut judge = Judge::new(Answered { open: false, crossed: false });
            judge.fact(Time::ZERO, NodeId::at(0), Fact::Command(&7));
            let (_, broken) = judge.end(Time::ZERO, end).unwrap();
            broken.into_iter().map(|violation| violation.text).collect::<Vec<_>>()
        };
        assert_eq!(texts(End::Rest), ["deadlock: open", "7"]);
        assert_eq!(texts(End::OutOfTime), ["open (in the time given)", "7"]);
        assert_eq!(texts(End::Over), ["open", "7"]);
        assert_eq!(texts(End::Cut), ["7"]);
    }
}
