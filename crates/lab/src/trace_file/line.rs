//! One line of a trace: the other half of the `Display` of `Header` and `Record`.

use std::borrow::Cow;
use std::fmt;

use quorate_core::trace::{Happening, Header, Outcome, Parcel, Record, Step, VERSION};
use quorate_core::{Liveness, NodeId, Time};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::NODES_MAX;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderLine {
    quorate: u32,
    engine: String,
    algorithm: String,
    nodes: usize,
    #[expect(dead_code, reason = "kept as text, and named here to be demanded")]
    spec: IgnoredAny,
}

#[derive(Deserialize)]
struct VersionOnly {
    quorate: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordLine {
    t: u64,
    n: u32,
    #[serde(rename = "in")]
    input: Value,
    #[serde(default)]
    choices: Vec<u32>,
    #[serde(default)]
    steps: Vec<StepLine>,
    #[serde(default)]
    out: Vec<OutLine>,
    violation: Option<ViolationLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ViolationLine {
    property: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields, expecting = "no `out` looks like this")]
enum OutLine {
    Send { send: String, kind: String, id: u64, to: Vec<u32> },
    Set { set: String },
    Cancel { cancel: String },
    Persist { persist: String },
    Emit { emit: String },
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields, expecting = "no `in` looks like this")]
enum InLine {
    Refused { command: String, refused: String },
    Command { command: String },
    Receive { receive: String, kind: String, from: u32, id: u64 },
    Lose { lose: String, kind: String, from: u32, id: u64 },
    Timer { timer: String },
    Liveness { liveness: String, peer: u32 },
}

/// Reads the first line.
pub(super) fn header(text: &str) -> Result<Header, String> {
    let VersionOnly { quorate } = json(text)?;
    if quorate != VERSION {
        return Err(format!(
            "the trace is of version {quorate}, and only version {VERSION} can be read"
        ));
    }
    let line: HeaderLine = json(text)?;
    debug_assert_eq!(line.quorate, quorate, "both read the same field");
    if line.nodes > NODES_MAX {
        return Err(format!("{} nodes are more than {NODES_MAX}", line.nodes));
    }
    let spec = raw_field(text, "spec").ok_or("the field `spec` cannot be read")?.to_string();
    Ok(Header { engine: line.engine, algorithm: line.algorithm, nodes: line.nodes, spec })
}

/// Reads a record of a run of so many nodes.
pub(super) fn record(text: &str, nodes: usize) -> Result<Record, String> {
    let line: RecordLine = json(text)?;
    let known = Known(nodes);
    Ok(Record {
        at: Time(line.t),
        node: known.node(line.n)?,
        input: known.happening(line.input)?,
        choices: line.choices,
        steps: line.steps.into_iter().map(|StepLine(step)| step).collect(),
        effects: line.out.into_iter().map(|out| known.outcome(out)).collect::<Result<_, _>>()?,
        violation: line.violation.map(|ViolationLine { property, text }| (property, text)),
    })
}

fn json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| {
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        match error.is_data() {
            true => what.to_string(),
            false => format!("it is not JSON: {what} at column {}", error.column()),
        }
    })
}

/// The text of a field of a JSON object, as it stands there. The object is known to be valid.
fn raw_field<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = object.trim_start().strip_prefix('{')?;
    loop {
        let (key, after) = split_value(rest)?;
        let (value, after) = split_value(after.trim_start().strip_prefix(':')?)?;
        if serde_json::from_str::<String>(key).is_ok_and(|key| key == name) {
            return Some(value);
        }
        rest = after.trim_start().strip_prefix(',')?;
    }
}

/// The JSON value that `text` begins with, and the rest.
fn split_value(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    text.split_at_checked(values.byte_offset())
}

/// How many nodes there are, to tell known ones from unknown ones.
#[derive(Clone, Copy)]
struct Known(usize);

impl Known {
    fn node(self, number: u32) -> Result<NodeId, String> {
        let node = NodeId::new(number).filter(|node| node.index() < self.0);
        node.ok_or_else(|| format!("there is no node {number}, only 1 to {}", self.0))
    }

    fn happening(self, input: Value) -> Result<Happening, String> {
        if let Value::String(word) = &input {
            return match word.as_str() {
                "start" => Ok(Happening::Start),
                "recover" => Ok(Happening::Recover),
                "crash" => Ok(Happening::Crash),
                "pause" => Ok(Happening::Pause),
                "resume" => Ok(Happening::Resume),
                "settle" => Ok(Happening::Settle),
                _ => Err(format!("nothing that can come in is called {word:?}")),
            };
        }
        Ok(match InLine::deserialize(input).map_err(|error| error.to_string())? {
            InLine::Refused { command, refused } => Happening::Refused(command, refused),
            InLine::Command { command } => Happening::Command(command),
            InLine::Receive { receive, kind, from, id } => {
                Happening::Receive(self.parcel(receive, kind, from, id)?)
            }
            InLine::Lose { lose, kind, from, id } => {
                Happening::Lose(self.parcel(lose, kind, from, id)?)
            }
            InLine::Timer { timer } => Happening::Timer(timer),
            InLine::Liveness { liveness, peer } => {
                Happening::Liveness(self.node(peer)?, word_on(&liveness)?)
            }
        })
    }

    fn parcel(self, text: String, kind: String, from: u32, id: u64) -> Result<Parcel, String> {
        Ok(Parcel { from: self.node(from)?, id, kind: Cow::Owned(kind), text })
    }

    fn outcome(self, out: OutLine) -> Result<Outcome, String> {
        Ok(match out {
            OutLine::Send { send, kind, id, to } => Outcome::Send {
                id,
                to: to.into_iter().map(|to| self.node(to)).collect::<Result<_, _>>()?,
                kind: Cow::Owned(kind),
                text: send,
            },
            OutLine::Set { set } => Outcome::Set(set),
            OutLine::Cancel { cancel } => Outcome::Cancel(cancel),
            OutLine::Persist { persist } => Outcome::Persist(persist),
            OutLine::Emit { emit } => Outcome::Emit(emit),
        })
    }
}

fn word_on(word: &str) -> Result<Liveness, String> {
    match word {
        "up" => Ok(Liveness::Up),
        "down" => Ok(Liveness::Down),
        _ => Err(format!("a node is \"up\" or \"down\", not {word:?}")),
    }
}

/// A step: its name first, then its fields in their order.
struct StepLine(Step);

impl<'de> Deserialize<'de> for StepLine {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(StepVisitor)
    }
}

struct StepVisitor;

impl<'de> Visitor<'de> for StepVisitor {
    type Value = StepLine;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step: its name and its numbers")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StepLine, A::Error> {
        let name = match map.next_entry::<String, String>()? {
            Some((key, name)) if key == "step" => name,
            _ => return Err(serde::de::Error::custom("a step begins with its name")),
        };
        let mut fields = Vec::new();
        while let Some((field, value)) = map.next_entry::<String, u64>()? {
            fields.push((Cow::Owned(field), value));
        }
        Ok(StepLine(Step { name: Cow::Owned(name), fields }))
    }
}
