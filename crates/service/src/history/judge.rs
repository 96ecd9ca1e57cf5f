//! The judge of a history: what no schedule may break, shown by the two records that contradict each
//! other.
//!
//! It believes nothing but records, and compares deadlines by the clock of whoever relies on them. What
//! it cannot know is decided in favour of the cluster: a history may be silent, but must not lie.

mod calls;
mod charters;
mod groups;
mod guards;
mod healing;
mod observers;
mod processes;
mod served;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use quorate_core::Span;

use super::Record;
use processes::Processes;

/// What is promised.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// V1: for every epoch one charter, over all restarts; and epochs grow.
    OneHistory,
    /// V2: a life is of one process, and one that was left out never sits or acts again.
    Lives,
    /// V4: who comes from the last view has stopped in it before the next one is decided.
    StopBeforeDecide,
    /// V5: when somebody is granted something, every earlier guard of it is over.
    GuardBeforeGrant,
    /// R6: a guard that was lost stays lost.
    Losses,
    /// V7: fences of a name grow, at those who are granted and at what they guard.
    Fences,
    /// Who is granted something sits in a view, and has not stopped in it.
    Primary,
    /// No process works under a lock when the next one has been granted it.
    Children,
    /// V5, of roles: when somebody leads, every earlier leader of the role is over.
    Leaders,
    /// V7, of roles: terms grow.
    Terms,
    /// What observers of roles are told is true, and terms do not go back.
    Observers,
    /// Views of groups: the same for all, and they grow.
    GroupViews,
    /// Who goes on from a view of a group was told the same messages in it.
    Synchrony,
    /// Who goes on from a view of a group was told what has a place in the same order.
    TotalOrder,
    /// What anybody has delivered as uniform, everybody delivers who goes on.
    Uniformity,
    /// Nothing but fifo is delivered before what its sender had delivered.
    Causality,
    /// Messages of one sender are delivered in their order, without a gap.
    SenderOrder,
    /// Nobody delivers a message twice, or one that was not sent.
    Once,
    /// Who has a state before a view of a group has the same one.
    States,
    /// Every call returns within its bound.
    Calls,
    /// Soon after the last fault all survivors sit in one view, and are served.
    Healing,
    /// No process ends but by what is done to it, or by its own word.
    Endings,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::OneHistory,
        Self::Lives,
        Self::StopBeforeDecide,
        Self::GuardBeforeGrant,
        Self::Losses,
        Self::Fences,
        Self::Primary,
        Self::Children,
        Self::Leaders,
        Self::Terms,
        Self::Observers,
        Self::GroupViews,
        Self::Synchrony,
        Self::TotalOrder,
        Self::Uniformity,
        Self::Causality,
        Self::SenderOrder,
        Self::Once,
        Self::States,
        Self::Calls,
        Self::Healing,
        Self::Endings,
    ];

    /// As written in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneHistory => "one history",
            Self::Lives => "lives",
            Self::StopBeforeDecide => "stop before decide",
            Self::GuardBeforeGrant => "guard before grant",
            Self::Losses => "losses",
            Self::Fences => "fences",
            Self::Primary => "primary",
            Self::Children => "children",
            Self::Leaders => "leaders",
            Self::Terms => "terms",
            Self::Observers => "observers",
            Self::GroupViews => "group views",
            Self::Synchrony => "synchrony",
            Self::TotalOrder => "total order",
            Self::Uniformity => "uniformity",
            Self::Causality => "causality",
            Self::SenderOrder => "sender order",
            Self::Once => "once",
            Self::States => "states",
            Self::Calls => "calls",
            Self::Healing => "healing",
            Self::Endings => "endings",
        }
    }

    /// What it promises, in one sentence.
    #[must_use]
    pub const fn promise(self) -> &'static str {
        match self {
            Self::OneHistory => "every epoch has one charter, over all restarts, and epochs grow",
            Self::Lives => "a life is of one process, and never acts after a view has left it out",
            Self::StopBeforeDecide => {
                "who comes from a view has stopped in it when the next one is decided"
            }
            Self::GuardBeforeGrant => "nothing is granted while an earlier guard of it is good",
            Self::Losses => "a guard that was lost stays lost",
            Self::Fences => {
                "fences of a name grow, at those who are granted it and at what it guards"
            }
            Self::Primary => {
                "only who sits in a view, and has not stopped in it, is granted anything"
            }
            Self::Children => "no process works under a lock that was granted to the next one",
            Self::Leaders => "nobody leads in a role while an earlier leader of it may act",
            Self::Terms => "every term of a role has one leader, and terms grow",
            Self::Observers => {
                "who is said to lead was granted that term, nobody is said to lead only when all terms are over, and terms do not go back"
            }
            Self::GroupViews => "a view of a group has the same members for all, and views grow",
            Self::Synchrony => {
                "who goes on from a view of a group has delivered the same messages in it"
            }
            Self::TotalOrder => {
                "who goes on from a view of a group has delivered total and uniform messages in one order"
            }
            Self::Uniformity => {
                "what anybody has delivered as uniform is delivered by all who go on, in the same order"
            }
            Self::Causality => "nothing but fifo is delivered before what its sender had delivered",
            Self::SenderOrder => {
                "messages of one sender are delivered in their order, without a gap"
            }
            Self::Once => "nobody delivers a message twice, or one that was not sent",
            Self::States => {
                "who has the state of a group before a view has the same one, given or made"
            }
            Self::Calls => "every call returns within its bound",
            Self::Healing => {
                "soon after the last fault all survivors sit in one view, lock every lock, lead, observe, \
                 and get a message of their own back"
            }
            Self::Endings => "no process ends but by what is done to it or by its own word",
        }
    }
}

/// What is asked of a cluster beyond what it promises by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// After the last fault all survivors have to be seated within this time.
    pub healing: Span,
}

impl Default for Terms {
    /// Five seconds.
    fn default() -> Self {
        Self { healing: Span(5_000_000_000) }
    }
}

/// Two records that cannot both be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What is broken.
    pub rule: Rule,
    /// How, in a sentence.
    pub text: String,
    /// The places of the two records in the history.
    pub between: [usize; 2],
}

/// What can be said of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Of which.
    pub rule: Rule,
    /// What.
    pub word: Word,
    /// How many facts have put it to the test.
    pub tested: usize,
}

/// What can be said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// It held.
    Holds,
    /// It did not.
    Violated,
    /// The history ends too early to say.
    Unfinished,
    /// Nothing put it to the test.
    NotExercised,
}

impl Word {
    /// As written in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "ok",
            Self::Violated => "violated",
            Self::Unfinished => "unfinished",
            Self::NotExercised => "not exercised",
        }
    }
}

/// What is to be said of a history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// By rule.
    pub verdicts: Vec<Verdict>,
    /// What is broken, in the order in which it shows.
    pub findings: Vec<Finding>,
    /// How many processes there were.
    pub processes: usize,
    /// How many views were decided.
    pub views: usize,
    /// How often somebody was granted something.
    pub grants: usize,
    /// How many messages of groups were delivered.
    pub messages: usize,
    /// How long after the last fault all survivors sat in one view.
    pub healed_after: Option<Span>,
}

impl Judgement {
    /// Is nothing broken?
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.findings.is_empty()
    }
}

/// What the parts of the judge have in common.
struct Bench<'a> {
    records: &'a [Record],
    processes: Processes<'a>,
    findings: Vec<Finding>,
    /// By rule, in the order of [`Rule::ALL`].
    tested: [usize; Rule::ALL.len()],
    unfinished: Vec<Rule>,
}

impl<'a> Bench<'a> {
    fn test(&mut self, rule: Rule) {
        self.test_times(rule, 1);
    }

    fn test_times(&mut self, rule: Rule, times: usize) {
        self.tested[rule as usize] += times;
    }

    fn object(&mut self, rule: Rule, between: [usize; 2], text: String) {
        self.findings.push(Finding { rule, text, between });
    }

    fn record(&self, place: usize) -> &'a Record {
        &self.records[place]
    }

    /// Who wrote this, as said in sentences.
    fn who(&self, place: usize) -> &'a str {
        &self.records[place].member
    }

    /// When something was, from the beginning of the history.
    fn when(&self, t: u64) -> String {
        let first = self.records.first().map_or(0, |record| record.t);
        milliseconds(t.saturating_sub(first))
    }
}

/// Nanoseconds, as said in sentences.
fn milliseconds(nanoseconds: u64) -> String {
    let microseconds = nanoseconds / 1_000;
    format!("{}.{:03} ms", microseconds / 1_000, microseconds % 1_000)
}

pub(super) fn judge(records: &[Record], terms: Terms) -> Judgement {
    let processes = Processes::of(records);
    let tested = [0; Rule::ALL.len()];
    let mut bench =
        Bench { records, processes, findings: Vec::new(), tested, unfinished: Vec::new() };
    let views = charters::judge(&mut bench);
    let guards = guards::judge(&mut bench);
    observers::judge(&mut bench, &guards);
    let messages = groups::judge(&mut bench);
    calls::judge(&mut bench);
    let healed_after = healing::judge(&mut bench, terms);
    let Bench { mut findings, tested, unfinished, processes, .. } = bench;
    findings.sort_by_key(|finding| finding.between[1]);
    let verdict = |rule: Rule| {
        let tested = tested[rule as usize];
        let word = match () {
            () if findings.iter().any(|finding| finding.rule == rule) => Word::Violated,
            () if unfinished.contains(&rule) => Word::Unfinished,
            () if tested == 0 => Word::NotExercised,
            () => Word::Holds,
        };
        Verdict { rule, word, tested }
    };
    let verdicts = Rule::ALL.map(verdict).into();
    let (processes, grants) = (processes.count(), guards.len());
    Judgement { verdicts, findings, processes, views, grants, messages, healed_after }
}
