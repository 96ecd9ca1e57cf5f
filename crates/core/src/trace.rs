//! One trace format for simulator, checker and network: JSON lines, one per step of a node.
//!
//! The first line is a [`Header`], the last one [`END`]. Between them each line says when (`t`, in
//! nanoseconds), where (`n`), what came in (`in`), which steps of the paper it was (`steps`) and
//! what went out, in order (`out`). A message is named by its sender and the sender's count of
//! sendings (`id`), so that a trace can be replayed without reading the messages themselves.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use crate::{Effect, Liveness, Message, NodeId, Protocol, Refusal, Sink, Time};

/// The last line of a complete trace.
pub const END: &str = "{\"end\":true}";

/// The version of the format.
pub const VERSION: u32 = 1;

/// The first line: who wrote it and what is needed to run it again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// `sim`, `check` or `cluster`.
    pub engine: String,
    /// `family/name`.
    pub algorithm: String,
    /// How many nodes.
    pub nodes: usize,
    /// Everything else that the run was given, as a JSON value.
    pub spec: String,
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{\"quorate\":{VERSION},\"engine\":")?;
        string(f, &self.engine)?;
        f.write_str(",\"algorithm\":")?;
        string(f, &self.algorithm)?;
        write!(f, ",\"nodes\":{},\"spec\":{}}}", self.nodes, self.spec)
    }
}

/// One step of one node, or something that the world did to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// When.
    pub at: Time,
    /// Where.
    pub node: NodeId,
    /// What came in.
    pub input: Happening,
    /// The random choices of the step, in order.
    pub choices: Vec<u32>,
    /// The steps of the paper that it was.
    pub steps: Vec<Step>,
    /// What went out, in order.
    pub effects: Vec<Outcome>,
    /// What a monitor said to it.
    pub violation: Option<(String, String)>,
}

/// What came in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Happening {
    /// The node came up.
    Start,
    /// The node came up again after a crash.
    Recover,
    /// The node crashed.
    Crash,
    /// The node does nothing from now on.
    Pause,
    /// The node goes on, with what has waited for it.
    Resume,
    /// The user wished something.
    Command(String),
    /// The user wished something in vain.
    Refused(String, String),
    /// A message arrived.
    Receive(Parcel),
    /// A message to this node was lost, or arrived when the node was down.
    Lose(Parcel),
    /// A timer ran out.
    Timer(String),
    /// A failure detector spoke.
    Liveness(NodeId, Liveness),
    /// Nothing more happened; a monitor judged the end.
    Settle,
}

/// A message in transit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parcel {
    /// Who sent it.
    pub from: NodeId,
    /// The number of this sending among those of that node.
    pub id: u64,
    /// Its kind.
    pub kind: Cow<'static, str>,
    /// All of it.
    pub text: String,
}

impl Parcel {
    /// This message, sent by `from` as its `id`th.
    pub fn new<M: Message>(from: NodeId, id: u64, msg: &M) -> Self {
        Self { from, id, kind: Cow::Borrowed(msg.kind()), text: format!("{msg:?}") }
    }
}

/// A step of the paper.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it was about.
    pub fields: Vec<(Cow<'static, str>, u64)>,
}

/// What went out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A message left.
    Send {
        /// Its number among the sendings of the node.
        id: u64,
        /// Whom to.
        to: Vec<NodeId>,
        /// Its kind.
        kind: Cow<'static, str>,
        /// All of it.
        text: String,
    },
    /// A timer was set.
    Set(String),
    /// A timer was cancelled.
    Cancel(String),
    /// Something was persisted.
    Persist(String),
    /// The user was told something.
    Emit(String),
}

/// Collects what a step does into a [`Record`].
#[derive(Clone, Debug, Default)]
pub struct Recorder(Option<Record>);

impl Recorder {
    /// A recorder between two steps.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// A step begins.
    pub fn begin(&mut self, at: Time, node: NodeId, input: Happening) {
        let (choices, steps, effects) = (Vec::new(), Vec::new(), Vec::new());
        self.0 = Some(Record { at, node, input, choices, steps, effects, violation: None });
    }

    /// Takes up a step again whose record was ended before all of it was done, now.
    pub fn take_up(&mut self, at: Time, record: Record) {
        self.0 = Some(Record { at, ..record });
    }

    /// The step has an effect; `id` counts the sendings of its node, this one included.
    pub fn effect<P: Protocol>(&mut self, effect: &Effect<P>, id: u64) {
        let send = |to: Vec<NodeId>, msg: &P::Msg| Outcome::Send {
            id,
            to,
            kind: Cow::Borrowed(msg.kind()),
            text: format!("{msg:?}"),
        };
        let outcome = match effect {
            Effect::Send { to, msg } => send([*to].into(), msg),
            Effect::Multicast { to, msg } => send(to.iter().collect(), msg),
            Effect::SetTimer { timer, .. } => Outcome::Set(format!("{timer:?}")),
            Effect::CancelTimer(timer) => Outcome::Cancel(format!("{timer:?}")),
            Effect::Persist(stable) => Outcome::Persist(format!("{stable:?}")),
            Effect::Emit(event) => Outcome::Emit(format!("{event:?}")),
        };
        if let Some(record) = &mut self.0 {
            record.effects.push(outcome);
        }
    }

    /// The step is this one of the paper.
    pub fn step(&mut self, name: &'static str, fields: &[(&'static str, u64)]) {
        if let Some(record) = &mut self.0 {
            let fields = fields.iter().map(|&(field, value)| (Cow::Borrowed(field), value));
            record.steps.push(Step { name: Cow::Borrowed(name), fields: fields.collect() });
        }
    }

    /// The step chose.
    pub fn chose(&mut self, choice: u32) {
        if let Some(record) = &mut self.0 {
            record.choices.push(choice);
        }
    }

    /// The command was refused.
    pub fn refused(&mut self, refusal: Refusal) {
        if let Some(Record { input, .. }) = &mut self.0
            && let Happening::Command(command) = input
        {
            *input = Happening::Refused(core::mem::take(command), refusal.to_string());
        }
    }

    /// A monitor found fault with the step.
    pub fn violated(&mut self, violation: &crate::Violation) {
        if let Some(record) = &mut self.0 {
            record.violation = Some((violation.property.to_string(), violation.text.clone()));
        }
    }

    /// The step is over. None if none was begun.
    pub fn end(&mut self) -> Option<Record> {
        self.0.take()
    }
}

/// A sink that numbers sendings and notes every effect, step and choice in a recorder, where there
/// is one, before it passes them on.
#[derive(Debug)]
pub struct Recording<'a, S> {
    /// Who carries the effects out.
    pub sink: &'a mut S,
    /// How many sendings the node has made; a multicast counts once.
    pub sent: &'a mut u64,
    /// Who writes them down.
    pub recorder: Option<&'a mut Recorder>,
}

impl<P: Protocol, S: Sink<P>> Sink<P> for Recording<'_, S> {
    fn effect(&mut self, effect: Effect<P>) {
        if effect.is_sending() {
            *self.sent += 1;
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.effect(&effect, *self.sent);
        }
        self.sink.effect(effect);
    }

    fn trace(&mut self, step: &'static str, fields: &[(&'static str, u64)]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.step(step, fields);
        }
        self.sink.trace(step, fields);
    }

    fn chose(&mut self, choice: u32) {
        if let Some(recorder) = &mut self.recorder {
            recorder.chose(choice);
        }
        self.sink.chose(choice);
    }

    fn tally(&mut self, what: &'static str, value: u64) {
        self.sink.tally(what, value);
    }
}

impl fmt::Display for Record {
    /// The record as one JSON line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{\"t\":{},\"n\":{},\"in\":{}", self.at.0, self.node, self.input)?;
        if !self.choices.is_empty() {
            write!(f, ",\"choices\":{:?}", self.choices)?;
        }
        list(f, "steps", &self.steps)?;
        list(f, "out", &self.effects)?;
        if let Some((property, text)) = &self.violation {
            f.write_str(",\"violation\":{")?;
            named(f, "property", property)?;
            f.write_char(',')?;
            named(f, "text", text)?;
            f.write_char('}')?;
        }
        f.write_char('}')
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, name: &str, items: &[T]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        match i {
            0 => write!(f, ",\"{name}\":[")?,
            _ => f.write_char(',')?,
        }
        write!(f, "{item}")?;
    }
    if items.is_empty() { Ok(()) } else { f.write_char(']') }
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("\"start\""),
            Self::Recover => f.write_str("\"recover\""),
            Self::Crash => f.write_str("\"crash\""),
            Self::Pause => f.write_str("\"pause\""),
            Self::Resume => f.write_str("\"resume\""),
            Self::Settle => f.write_str("\"settle\""),
            Self::Command(command) => object(f, &[("command", command)]),
            Self::Refused(command, why) => object(f, &[("command", command), ("refused", why)]),
            Self::Receive(parcel) => parcel.write(f, "receive"),
            Self::Lose(parcel) => parcel.write(f, "lose"),
            Self::Timer(timer) => object(f, &[("timer", timer)]),
            Self::Liveness(peer, now) => {
                let now = if *now == Liveness::Up { "up" } else { "down" };
                write!(f, "{{\"liveness\":\"{now}\",\"peer\":{peer}}}")
            }
        }
    }
}

impl Parcel {
    fn write(&self, f: &mut fmt::Formatter<'_>, verb: &str) -> fmt::Result {
        f.write_char('{')?;
        named(f, verb, &self.text)?;
        f.write_char(',')?;
        named(f, "kind", &self.kind)?;
        write!(f, ",\"from\":{},\"id\":{}}}", self.from, self.id)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        named(f, "step", &self.name)?;
        for (field, value) in &self.fields {
            f.write_char(',')?;
            string(f, field)?;
            write!(f, ":{value}")?;
        }
        f.write_char('}')
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send { id, to, kind, text } => {
                f.write_char('{')?;
                named(f, "send", text)?;
                f.write_char(',')?;
                named(f, "kind", kind)?;
                write!(f, ",\"id\":{id},\"to\":{to:?}}}")
            }
            Self::Set(timer) => object(f, &[("set", timer)]),
            Self::Cancel(timer) => object(f, &[("cancel", timer)]),
            Self::Persist(stable) => object(f, &[("persist", stable)]),
            Self::Emit(event) => object(f, &[("emit", event)]),
        }
    }
}

fn object(f: &mut fmt::Formatter<'_>, pairs: &[(&str, &str)]) -> fmt::Result {
    for (i, (name, value)) in pairs.iter().enumerate() {
        f.write_char(if i == 0 { '{' } else { ',' })?;
        named(f, name, value)?;
    }
    f.write_char('}')
}

fn named(f: &mut fmt::Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    write!(f, "\"{name}\":")?;
    string(f, value)
}

/// A JSON string.
fn string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if u32::from(c) < 0x20 => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_of_json() {
        let parcel = Parcel {
            from: NodeId::at(0),
            id: 3,
            kind: "REQUEST".into(),
            text: "Request(\"\n".into(),
        };
        let send = Outcome::Send {
            id: 1,
            to: NodeId::first(2).collect(),
            kind: "REPLY".into(),
            text: "Reply".into(),
        };
        let step = Step { name: "defer".into(), fields: [("stamp".into(), 4)].into() };
        let record = Record {
            at: Time(1_500_000),
            node: NodeId::at(1),
            input: Happening::Receive(parcel),
            choices: [0, 1].into(),
            steps: [step].into(),
            effects: [send, Outcome::Emit("Granted".into())].into(),
            violation: Some(("safety".into(), "two inside".into())),
        };
        let line = r#"{"t":1500000,"n":2,"in":{"receive":"Request(\"\u000a","kind":"REQUEST","from":1,"id":3},"choices":[0, 1],"steps":[{"step":"defer","stamp":4}],"out":[{"send":"Reply","kind":"REPLY","id":1,"to":[1, 2]},{"emit":"Granted"}],"violation":{"property":"safety","text":"two inside"}}"#;
        assert_eq!(record.to_string(), line);
    }
}
