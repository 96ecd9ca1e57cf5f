//! Runs a trace again, step by step, and compares: whatever engine wrote it.
//!
//! Nothing of the trace is believed but the order of inputs and the random choices. Each input is
//! given to the algorithm again, messages are those that were really sent, timers those that were
//! really set, and every step must come out as it is written.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::trace::{Happening, Parcel, Record, Recorder, Recording};
use quorate_core::{
    Choices, Ctx, Effect, Fact, Family, Input, Kept, Life, Monitor, NodeId, Scene, Solution,
    System, Violation,
};

use quorate_sim::Faults;

use crate::registry::find;
use crate::trace_file::TraceFile;
use crate::{BadInput, Spec};

/// A trace was run again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// How many records were run again.
    pub records: usize,
    /// The violation that the trace ends with or contains, if any: it was found again.
    pub violation: Option<(String, String)>,
    /// Where the trace differs from what really happens, if it does.
    pub difference: Option<Difference>,
}

/// Where a trace differs from what really happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The line of the file.
    pub line: usize,
    /// What is wrong with it.
    pub text: String,
}

/// Runs a trace again and compares.
///
/// # Errors
/// If its header does not say what to run.
pub fn replay(trace: &TraceFile) -> Result<Replayed, BadInput> {
    let bad = |reason: String| BadInput::new("TRACE", reason);
    let spec: Spec = serde_json::from_str(&trace.header.spec).map_err(|error| {
        bad(format!(
            "line 1: the spec in the header cannot be read: {error}; only runs of quorate can be \
                 run again, and quorate verify judges those of other systems"
        ))
    })?;
    if spec.algorithm != trace.header.algorithm || spec.nodes != trace.header.nodes {
        return Err(bad("line 1: the header and the spec in it do not agree".to_owned()));
    }
    let (problem, _) = find(&spec.algorithm)?;
    (problem.replay)(&spec, &trace.records)
}

/// Runs the records of a scene again.
///
/// # Errors
/// If it is not in the trace what a crash left on a disk.
pub(crate) fn run_again<A: Solution>(
    scene: &Scene<A>,
    faults: Faults,
    records: &[Record],
) -> Result<Replayed, BadInput> {
    if faults.disk.is_some() {
        let reason = "of a run with slow disks it is not written down what a crash left on them";
        return Err(BadInput::new("TRACE", reason));
    }
    let mut stage = Stage::new(scene, faults);
    let mut replayed = Replayed { records: 0, violation: None, difference: None };
    for (record, line) in records.iter().zip(2..) {
        let text = match stage.step(record) {
            Err(text) => text,
            Ok(again) if again != *record => format!("what really happens is {again}"),
            Ok(_) => {
                replayed.records += 1;
                replayed.violation = replayed.violation.or_else(|| record.violation.clone());
                continue;
            }
        };
        replayed.difference = Some(Difference { line, text });
        break;
    }
    Ok(replayed)
}

/// The state of every node after these records of a run, as its type shows itself; nothing for one that
/// is down.
///
/// # Errors
/// If the header does not say what was run, or if the records cannot have happened.
pub fn states(trace: &TraceFile, records: usize) -> Result<Vec<Option<String>>, BadInput> {
    let spec: Spec = serde_json::from_str(&trace.header.spec).map_err(|_| {
        BadInput::new("TRACE", "it is not one of quorate's, and its states are not known")
    })?;
    let (problem, _) = find(&spec.algorithm)?;
    (problem.states)(&spec, trace.records.get(..records).unwrap_or(&trace.records))
}

/// The states of the nodes of a scene after these records.
pub(crate) fn states_after<A: Solution>(
    scene: &Scene<A>,
    faults: Faults,
    records: &[Record],
) -> Result<Vec<Option<String>>, BadInput> {
    if faults.disk.is_some() {
        let reason = "of a run with slow disks it is not written down what a crash left on them";
        return Err(BadInput::new("TRACE", reason));
    }
    let mut stage = Stage::new(scene, faults);
    for (record, line) in records.iter().zip(2..) {
        stage
            .step(record)
            .map_err(|text| BadInput::new("TRACE", format!("line {line}: {text}")))?;
    }
    let state = |node: &Option<A>| node.as_ref().map(|node| format!("{node:?}"));
    Ok(stage.nodes.iter().map(state).collect())
}

/// Why an input cannot have happened.
type Impossible = String;

/// The nodes and what is between them.
struct Stage<'a, A: Solution> {
    scene: &'a Scene<A>,
    /// Whose clocks run fast or slow.
    faults: Faults,
    nodes: Vec<Option<A>>,
    lives: Vec<Life>,
    monitor: <A::Family as Family>::Monitor,
    /// Messages that were sent: who sent what to whom. They stay, for a network may duplicate.
    sent: BTreeMap<(NodeId, u64, NodeId), A::Msg>,
    sendings: Vec<u64>,
    timers: BTreeSet<(NodeId, A::Timer)>,
    kept: BTreeMap<NodeId, Kept<A::Stable>>,
}

impl<'a, A: Solution> Stage<'a, A> {
    fn new(scene: &'a Scene<A>, faults: Faults) -> Self {
        let count = scene.count();
        Self {
            scene,
            faults,
            nodes: NodeId::first(count).map(|node| Some(scene.boot(node))).collect(),
            lives: vec![Life::FIRST; count],
            monitor: scene.monitor(),
            sent: BTreeMap::new(),
            sendings: vec![0; count],
            timers: BTreeSet::new(),
            kept: BTreeMap::new(),
        }
    }

    /// Runs one record again: how it must read.
    fn step(&mut self, record: &Record) -> Result<Record, Impossible> {
        let node = record.node;
        let mut recorder = Recorder::new();
        recorder.begin(record.at, node, self.happening(record)?);
        match self.input(record)? {
            Some(input) => self.run(record, input, &mut recorder)?,
            None => self.world_event(record, &mut recorder)?,
        }
        recorder.end().ok_or_else(|| "nothing was recorded".to_owned())
    }

    /// What came in, written as it is and not as it is said to be.
    fn happening(&self, record: &Record) -> Result<Happening, Impossible> {
        let real = |parcel: &Parcel| {
            let msg = self.message(record.node, parcel)?;
            Ok::<_, Impossible>(Parcel::new(parcel.from, parcel.id, msg))
        };
        Ok(match &record.input {
            Happening::Receive(parcel) => Happening::Receive(real(parcel)?),
            Happening::Lose(parcel) => Happening::Lose(real(parcel)?),
            Happening::Refused(command, _) => Happening::Command(command.clone()),
            other => other.clone(),
        })
    }

    /// The input of a step; none if the record is no step of the node.
    fn input(&mut self, record: &Record) -> Result<Option<Input<A>>, Impossible> {
        let node = record.node;
        Ok(Some(match &record.input {
            Happening::Start => Input::Start,
            Happening::Recover => {
                self.recover(node)?;
                // Recovering is no fact that a monitor can find fault with.
                let judged = self.judge(record, Fact::Recovered);
                judged.map_err(|violation| violation.to_string())?;
                Input::Start
            }
            Happening::Command(text) | Happening::Refused(text, _) => {
                let command = A::Family::command(text);
                Input::Command(command.ok_or_else(|| format!("there is no command {text}"))?)
            }
            Happening::Receive(parcel) => {
                Input::Message { from: parcel.from, msg: self.message(node, parcel)?.clone() }
            }
            Happening::Timer(text) => {
                let set = self.timers.iter().find(|(n, t)| *n == node && format!("{t:?}") == *text);
                let &(_, timer) = set.ok_or_else(|| format!("the timer {text} is not set"))?;
                self.timers.remove(&(node, timer));
                Input::Timer(timer)
            }
            Happening::Liveness(peer, now) => Input::Liveness { peer: *peer, now: *now },
            Happening::Crash
            | Happening::Pause
            | Happening::Resume
            | Happening::Lose(_)
            | Happening::Settle => return Ok(None),
        }))
    }

    fn message(&self, to: NodeId, parcel: &Parcel) -> Result<&A::Msg, Impossible> {
        let Parcel { from, id, .. } = parcel;
        let sent = self.sent.get(&(*from, *id, to));
        sent.ok_or_else(|| format!("node {from} has not sent a message {id} to node {to}"))
    }

    fn recover(&mut self, node: NodeId) -> Result<(), Impossible> {
        if self.nodes[node.index()].is_some() {
            return Err(format!("node {node} recovers without having crashed"));
        }
        let life = &mut self.lives[node.index()];
        *life = life.next();
        let booted = self.scene.reboot(node, *life, self.kept.entry(node).or_default());
        self.nodes[node.index()] = Some(booted);
        Ok(())
    }

    /// Tells the monitor a fact of this record.
    fn judge(
        &mut self,
        record: &Record,
        fact: Fact<'_, A::Command, A::Event>,
    ) -> Result<(), Violation> {
        self.monitor.observe_by(&self.faults.clocks(record.at), record.node, fact)
    }

    /// Something that the world did.
    fn world_event(&mut self, record: &Record, recorder: &mut Recorder) -> Result<(), Impossible> {
        let node = record.node;
        let judged = match record.input {
            Happening::Crash => {
                if self.nodes[node.index()].take().is_none() {
                    return Err(format!("node {node} crashes twice"));
                }
                self.timers.retain(|(owner, _)| *owner != node);
                self.judge(record, Fact::Crashed)
            }
            Happening::Settle => self.judge_end(record),
            _ => Ok(()),
        };
        if let Err(violation) = judged {
            recorder.violated(&violation);
        }
        Ok(())
    }

    /// The end as a monitor sees it. An engine says how the end came, in its own words.
    fn judge_end(&self, record: &Record) -> Result<(), Violation> {
        let found = self.monitor.settle();
        let said = record.violation.as_ref();
        let same = found.iter().find(|found| said.is_some_and(|said| said.0 == found.property));
        match (same, said) {
            (Some(Violation { property, .. }), Some((_, text))) => {
                Err(Violation { property, text: text.clone() })
            }
            _ => found.into_iter().next().map_or(Ok(()), Err),
        }
    }

    /// Gives a node its input and takes what it does.
    fn run(
        &mut self,
        record: &Record,
        input: Input<A>,
        recorder: &mut Recorder,
    ) -> Result<(), Impossible> {
        let node = record.node;
        let protocol = self.nodes[node.index()].as_mut();
        let protocol = protocol.ok_or_else(|| format!("node {node} is down"))?;
        let command = match &input {
            Input::Command(command) => Some(command.clone()),
            _ => None,
        };
        let sendings = &mut self.sendings[node.index()];
        let mut chosen = Recorded { choices: record.choices.iter(), missing: false };
        let mut id = *sendings;
        let mut effects = Vec::new();
        let mut sink = Recording { sink: &mut effects, sent: sendings, recorder: Some(recorder) };
        let clock = self.faults.clock(node, record.at);
        let result = protocol.step(&mut Ctx::new(node, clock, &mut chosen, &mut sink), input);
        if chosen.missing {
            return Err("the step draws more random choices than are written".to_owned());
        }
        if let Err(refusal) = result {
            recorder.refused(refusal);
            return Ok(());
        }
        let clocks = self.faults.clocks(record.at);
        let mut judge = |fact: Fact<'_, A::Command, A::Event>| {
            if let Err(violation) = self.monitor.observe_by(&clocks, node, fact) {
                recorder.violated(&violation);
            }
        };
        if let Some(command) = &command {
            judge(Fact::Command(command));
        }
        for effect in effects {
            id += u64::from(effect.is_sending());
            match effect {
                Effect::Emit(event) => judge(Fact::Event(&event)),
                Effect::Send { to, msg } => {
                    self.sent.insert((node, id, to), msg);
                }
                Effect::Multicast { to, msg } => {
                    self.sent.extend(to.iter().map(|to| ((node, id, to), msg.clone())));
                }
                Effect::SetTimer { timer, .. } => {
                    self.timers.insert((node, timer));
                }
                Effect::CancelTimer(timer) => {
                    self.timers.remove(&(node, timer));
                }
                Effect::Persist(record) => {
                    self.kept.entry(node).or_default().put(record);
                }
            }
        }
        Ok(())
    }
}

/// The choices as they are written.
struct Recorded<'a> {
    choices: std::slice::Iter<'a, u32>,
    missing: bool,
}

impl Choices for Recorded<'_> {
    fn choose(&mut self, bound: u32) -> u32 {
        let choice = self.choices.next().copied().filter(|&choice| choice < bound.max(1));
        self.missing |= choice.is_none();
        choice.unwrap_or(0)
    }
}
