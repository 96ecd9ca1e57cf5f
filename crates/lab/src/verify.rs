//! Judges a trace by the oracle of its family, whoever wrote it.
//!
//! Only what users wished and were told is read, and who crashed and came back: no message, no step,
//! and not what the trace says of violations itself. So a trace of a system that is none of ours can
//! be judged too, as long as it speaks the words of the family. Its header then names the family
//! alone, and says what the system claims.

mod causes;
mod claims;
mod evidence;
mod explain;

use std::marker::PhantomData;

use quorate_core::trace::{Happening, Outcome, Record};
use quorate_core::{End, Fact, Family, Monitor, NodeId, Scene, Solution, System, Time, Verdict};

use quorate_sim::Faults;

use crate::registry::{families, family, find};
use crate::trace_file::{BadTrace, TraceFile};
use crate::{BadInput, Spec};
use causes::Causes;
pub(crate) use claims::Judged;
use claims::Oracles;
pub use explain::explain;

/// A trace was judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verified {
    /// The problem that it is about.
    pub family: &'static str,
    /// How many records were read.
    pub records: usize,
    /// How many commands, events, crashes and recoveries were judged.
    pub events: usize,
    /// What can be said, by property.
    pub verdicts: Vec<(&'static str, Verdict)>,
    /// What does not hold, the first one first.
    pub findings: Vec<Finding>,
    /// How many more there are, after these.
    pub left_off: usize,
}

impl Verified {
    /// Does everything hold that is claimed?
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.findings.is_empty()
    }

    /// The properties of which this is said.
    pub fn said(&self, word: &str) -> impl Iterator<Item = &'static str> {
        let verdicts = self.verdicts.iter().filter(move |(_, verdict)| verdict.word() == word);
        verdicts.map(|(property, _)| *property)
    }
}

/// A property does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Which.
    pub property: &'static str,
    /// How that shows, in a sentence.
    pub text: String,
    /// The line of the file at which it can be seen: the last one if only at the end.
    pub line: usize,
    /// The events that show it, in order.
    pub evidence: Vec<Witness>,
    /// How many more there are, before these.
    pub left_off: usize,
}

/// Something that was wished, told or happened to a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witness {
    /// The line of the file.
    pub line: usize,
    /// When.
    pub at: Time,
    /// Where.
    pub node: NodeId,
    /// What.
    pub text: String,
}

/// Judges a trace.
///
/// # Errors
/// The first line that cannot be judged, and why.
pub fn verify(trace: &TraceFile) -> Result<Verified, BadTrace> {
    in_order(&trace.records)?;
    let name = trace.header.algorithm.as_str();
    match family(name) {
        Some(problem) => (problem.judge_theirs)(trace),
        None if name.contains('/') => ours(trace),
        None if name == "locks" => Err(in_header(
            "a member has written this of many locks: quorate import member FILE… --lock NAME makes a \
             trace of one"
                .to_owned(),
        )),
        None => Err(in_header(format!(
            "there is no family {name}; it is one of {}, or one of the algorithms that quorate \
             algorithms lists",
            families().collect::<Vec<_>>().join(", ")
        ))),
    }
}

fn in_header(fault: String) -> BadTrace {
    BadTrace { line: 1, fault }
}

/// A trace tells what happened in the order in which it happened.
fn in_order(records: &[Record]) -> Result<(), BadTrace> {
    let pairs = records.iter().zip(records.iter().skip(1));
    match pairs.zip(3..).find(|((before, after), _)| after.at < before.at) {
        None => Ok(()),
        Some(((before, after), line)) => {
            let (before, after) = (before.at.0, after.at.0);
            let fault = format!("it is of time {after}, and the line before of time {before}");
            Err(BadTrace { line, fault })
        }
    }
}

/// The trace of a system that is none of ours: its header says what it claims.
pub(crate) fn judge_theirs<F: Judged>(trace: &TraceFile) -> Result<Verified, BadTrace> {
    within::<F>(trace)?;
    let oracles = F::oracles(trace).map_err(in_header)?;
    judge::<F>(trace, oracles, End::Over)
}

fn within<F: Judged>(trace: &TraceFile) -> Result<(), BadTrace> {
    let (nodes, most) = (trace.header.nodes, F::NODES_MAX);
    match (1..=most).contains(&nodes) {
        true => Ok(()),
        false => Err(in_header(format!(
            "{nodes} is not a number of nodes from 1 to {most}, as many as are judged in a trace \
             of family {}",
            F::NAME
        ))),
    }
}

/// The trace of one of our algorithms: what it promises is known.
fn ours(trace: &TraceFile) -> Result<Verified, BadTrace> {
    let header = &trace.header;
    let spec: Spec = serde_json::from_str(&header.spec).map_err(|error| {
        in_header(format!(
            "the spec in the header cannot be read: {error}; for a system of your own name only \
             the family"
        ))
    })?;
    if spec.algorithm != header.algorithm || spec.nodes != header.nodes {
        return Err(in_header("the header and the spec in it do not agree".to_owned()));
    }
    let bad = |bad: BadInput| in_header(bad.to_string());
    let (problem, _) = find(&spec.algorithm).map_err(bad)?;
    (problem.judge_ours)(&spec, trace).map_err(bad)?
}

/// Judges a trace of one of our algorithms by what it promises.
pub(crate) fn judge_ours<A>(
    scene: &Scene<A>,
    faults: Faults,
    trace: &TraceFile,
) -> Result<Verified, BadTrace>
where
    A: Solution,
    A::Family: Judged,
{
    within::<A::Family>(trace)?;
    // Whoever wrote it says when it came to rest with something owed; what is broken for good is
    // written down at any end.
    let last = |property: &str| <A::Family as Family>::Monitor::FINAL.contains(&property);
    let rested = trace.records.iter().any(|record| {
        let for_good = record.violation.as_ref().is_some_and(|(property, _)| last(property));
        record.input == Happening::Settle && !for_good
    });
    let end = if rested { End::Over } else { End::Cut };
    let oracles = Oracles::of(scene.monitor()).with_clocks(faults);
    judge::<A::Family>(trace, oracles, end)
}

/// The most findings that are shown with their evidence.
const FINDINGS_MAX: usize = 20;

fn judge<F: Judged>(
    trace: &TraceFile,
    mut oracles: Oracles<F>,
    end: End,
) -> Result<Verified, BadTrace> {
    let mut limits = Limits::<F>::new(trace.header.nodes, oracles.remember_all);
    let mut found = Vec::new();
    let mut causes = oracles.follow.then(|| Causes::new(trace.header.nodes));
    for (record, line) in trace.records.iter().zip(2..) {
        let facts = facts::<F>(record, trace.header.nodes);
        let facts = facts.map_err(|fault| BadTrace { line, fault })?;
        let past = causes.as_mut().map(|causes| causes.step(record).clone());
        for fact in &facts {
            limits.count(record.node, fact).map_err(|fault| BadTrace { line, fault })?;
            let past = past.as_ref();
            let broken = oracles.fact(record.at, record.node, fact.as_fact(), past);
            found.extend(broken.into_iter().map(|violation| (violation, line)));
        }
    }
    let last = trace.records.len() + 2;
    let at = trace.records.last().map_or(Time::ZERO, |record| record.at);
    found.extend(oracles.end(at, end).into_iter().map(|violation| (violation, last)));
    let left_off = found.len().saturating_sub(FINDINGS_MAX);
    found.truncate(FINDINGS_MAX);
    let shown = found.into_iter();
    Ok(Verified {
        family: F::NAME,
        records: trace.records.len(),
        events: limits.events,
        verdicts: oracles.verdicts(),
        findings: shown.map(|(it, line)| evidence::show(&trace.records, it, line)).collect(),
        left_off,
    })
}

/// The most that oracles remember of what was before messages: 8 bytes each.
const REMEMBERED_MAX: usize = 50_000_000;

/// Counts what is judged, and says when it is too much.
struct Limits<F> {
    events: usize,
    /// By node.
    before: Vec<usize>,
    remembered: usize,
    remember_all: bool,
    family: PhantomData<F>,
}

impl<F: Judged> Limits<F> {
    fn new(nodes: usize, remember_all: bool) -> Self {
        let before = vec![0; nodes];
        Self { events: 0, before, remembered: 0, remember_all, family: PhantomData }
    }

    fn count(&mut self, node: NodeId, fact: &Said<F>) -> Result<(), String> {
        self.events += 1;
        let before = &mut self.before[node.index()];
        *before += 1;
        if let Said::Command(command) = fact
            && (self.remember_all || F::is_remembered(command))
        {
            self.remembered += *before;
        }
        if self.events > F::EVENTS_MAX {
            let (name, most) = (F::NAME, F::EVENTS_MAX);
            return Err(format!("of a trace of family {name} at most {most} events are judged"));
        }
        match self.remembered > REMEMBERED_MAX {
            true => Err("there are too many messages in causal order to be judged".to_owned()),
            false => Ok(()),
        }
    }
}

/// What an oracle is told of.
enum Said<F: Family> {
    Command(F::Command),
    Event(F::Event),
    Crashed,
    Recovered,
}

impl<F: Family> Said<F> {
    const fn as_fact(&self) -> Fact<'_, F::Command, F::Event> {
        match self {
            Self::Command(command) => Fact::Command(command),
            Self::Event(event) => Fact::Event(event),
            Self::Crashed => Fact::Crashed,
            Self::Recovered => Fact::Recovered,
        }
    }
}

/// What an oracle is told of a record: first what came in, then what went out.
fn facts<F: Judged>(record: &Record, nodes: usize) -> Result<Vec<Said<F>>, String> {
    let mut facts = Vec::new();
    match &record.input {
        Happening::Command(text) => {
            let command = F::command(text).ok_or_else(|| unknown::<F>("command", text))?;
            facts.push(Said::Command(command));
        }
        Happening::Crash => facts.push(Said::Crashed),
        Happening::Recover => facts.push(Said::Recovered),
        _ => {}
    }
    for effect in &record.effects {
        let Outcome::Emit(text) = effect else { continue };
        let event = F::event(text).ok_or_else(|| unknown::<F>("event", text))?;
        if let Some(node) = F::named(&event).into_iter().find(|node| node.index() >= nodes) {
            return Err(format!("{text} names node {node}, and there are only 1 to {nodes}"));
        }
        facts.push(Said::Event(event));
    }
    Ok(facts)
}

fn unknown<F: Family>(what: &str, text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    format!("{shown:?} is no {what} of family {}", F::NAME)
}
