//! What other systems have written, as traces of mutual exclusion that `verify` judges.
//!
//! Only safety is claimed: a history may have been cut at any moment.

mod edn;
pub mod member;

use std::collections::BTreeMap;

use quorate_core::trace::{Happening, Header, Outcome, Record};
use quorate_core::{NodeId, Time};
use serde_json::Value;

use crate::trace_file::{BadTrace, RECORDS_MAX, TraceFile};
use edn::Edn;

/// The most hosts or processes.
const HOSTS_MAX: usize = 100_000;

/// Hosts by their names, in the order in which they appear.
#[derive(Default)]
pub(crate) struct Hosts(BTreeMap<String, usize>);

impl Hosts {
    /// The node that a host is.
    pub(crate) fn node(&mut self, name: &str) -> NodeId {
        let next = self.0.len().min(HOSTS_MAX - 1);
        NodeId::at(*self.0.entry(name.to_owned()).or_insert(next))
    }

    /// A trace of these nodes.
    pub(crate) fn trace(&self, engine: &str, records: Vec<Record>) -> TraceFile {
        let header = Header {
            engine: engine.to_owned(),
            algorithm: "mutex".to_owned(),
            nodes: self.0.len().max(1),
            spec: "{\"claims\":[\"safety\"]}".to_owned(),
        };
        TraceFile { header, records }
    }
}

/// A record of what came in and went out.
pub(crate) fn record(at: Time, node: NodeId, input: Happening, effects: Vec<Outcome>) -> Record {
    let (choices, steps) = (Vec::new(), Vec::new());
    Record { at, node, input, choices, steps, effects, violation: None }
}

/// Something that a lock did, in the order in which simultaneous ones are taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Deed {
    Release,
    Crash,
    Acquire,
    Granted,
}

/// The trace of these deeds, which are put in the order of time.
fn of_deeds(hosts: &Hosts, engine: &str, mut deeds: Vec<(u64, Deed, NodeId)>) -> TraceFile {
    deeds.sort_unstable();
    let first = deeds.first().map_or(0, |(at, ..)| *at);
    let records = deeds.into_iter().map(|(at, deed, node)| {
        let command = |text: &str| (Happening::Command(text.to_owned()), Vec::new());
        let (input, effects) = match deed {
            Deed::Acquire => command("Acquire"),
            Deed::Release => command("Release"),
            Deed::Crash => (Happening::Crash, Vec::new()),
            Deed::Granted => {
                let granted = Outcome::Emit("Granted(None)".to_owned());
                (Happening::Timer("granted".to_owned()), vec![granted])
            }
        };
        record(Time(at - first), node, input, effects)
    });
    hosts.trace(engine, records.collect())
}

/// An operation of a Jepsen history.
struct Op {
    kind: String,
    f: String,
    process: String,
    time: u64,
}

/// A history of a Jepsen lock workload, in EDN or JSON, as a list or one operation per line.
///
/// A process is inside from when its `acquire` was ok to when it invokes `release`. What failed has
/// not happened; a process of which nothing is known (`info`) has crashed.
///
/// # Errors
/// The first thing that cannot be read.
pub fn jepsen(text: &str) -> Result<TraceFile, BadTrace> {
    let bad = |number: usize, fault: &str| BadTrace {
        line: 1,
        fault: format!("operation {number}: {fault}"),
    };
    let mut hosts = Hosts::default();
    let mut deeds = Vec::new();
    let mut invoked: BTreeMap<String, (String, u64)> = BTreeMap::new();
    for (op, number) in ops(text)?.into_iter().zip(1..) {
        // The nemesis is no process.
        if op.process.parse::<u64>().is_err() || !["acquire", "release"].contains(&op.f.as_str()) {
            continue;
        }
        if op.kind == "invoke" {
            if invoked.insert(op.process, (op.f, op.time)).is_some() {
                return Err(bad(number, "its process has not been answered yet"));
            }
            continue;
        }
        let Some((f, begun)) = invoked.remove(&op.process) else {
            return Err(bad(number, "nothing was invoked that it could answer"));
        };
        let node = hosts.node(&op.process);
        match (f.as_str(), op.kind.as_str()) {
            (_, "fail") => {}
            ("acquire", "ok") => {
                deeds.extend([(begun, Deed::Acquire, node), (op.time, Deed::Granted, node)]);
            }
            ("acquire", "info") => {
                deeds.extend([(begun, Deed::Acquire, node), (op.time, Deed::Crash, node)]);
            }
            ("release", "ok") => deeds.push((begun, Deed::Release, node)),
            ("release", "info") => {
                deeds.extend([(begun, Deed::Release, node), (op.time, Deed::Crash, node)]);
            }
            _ => return Err(bad(number, "its type is none of invoke, ok, fail, info")),
        }
    }
    // What was never answered may have happened: a release has begun, an acquisition is waited for.
    for (process, (f, begun)) in invoked {
        let deed = if f == "release" { Deed::Release } else { Deed::Acquire };
        deeds.push((begun, deed, hosts.node(&process)));
    }
    admit(&hosts, deeds.len())?;
    Ok(of_deeds(&hosts, "jepsen", deeds))
}

fn admit(hosts: &Hosts, deeds: usize) -> Result<(), BadTrace> {
    let fault = |fault: String| Err(BadTrace { line: 1, fault });
    if hosts.0.len() >= HOSTS_MAX {
        return fault(format!("there are {HOSTS_MAX} hosts or more"));
    }
    if deeds > RECORDS_MAX {
        return fault(format!("there are more than {RECORDS_MAX} records"));
    }
    Ok(())
}

fn ops(text: &str) -> Result<Vec<Op>, BadTrace> {
    let start: String = text.chars().filter(|c| !c.is_whitespace()).take(3).collect();
    let json = start.starts_with("{\"") || start.starts_with("[{\"");
    if json { ops_of_json(text) } else { edn::read_all(text)?.iter().map(op_of_edn).collect() }
}

fn ops_of_json(text: &str) -> Result<Vec<Op>, BadTrace> {
    let bad = |error: serde_json::Error| BadTrace { line: error.line(), fault: error.to_string() };
    let mut ops = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value.map_err(bad)? {
            Value::Array(values) => ops.extend(values.iter().map(op_of_json)),
            value => ops.push(op_of_json(&value)),
        }
    }
    ops.into_iter().collect()
}

fn op_of_json(value: &Value) -> Result<Op, BadTrace> {
    let word = |name: &str| match &value[name] {
        Value::String(text) => Some(text.trim_start_matches(':').to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    op(word("type"), word("f"), word("process"), value["time"].as_u64())
}

fn op_of_edn(value: &Edn) -> Result<Op, BadTrace> {
    let word = |name: &str| value.get(name).and_then(Edn::word);
    let time = word("time").and_then(|time| time.parse().ok());
    op(word("type"), word("f"), word("process"), time)
}

fn op(
    kind: Option<String>,
    f: Option<String>,
    process: Option<String>,
    time: Option<u64>,
) -> Result<Op, BadTrace> {
    let op = kind.zip(f).zip(process).zip(time);
    let op = op.map(|(((kind, f), process), time)| Op { kind, f, process, time });
    op.ok_or_else(|| BadTrace {
        line: 1,
        fault: "an operation has no type, f, process or time".to_owned(),
    })
}

/// Spans of OpenTelemetry, in the JSON of OTLP, one or more exports: `acquire` begins with the wish,
/// `hold` is the time inside. A node is a resource, by `service.instance.id`, `host.name` or
/// `service.name`.
///
/// # Errors
/// The first thing that cannot be read.
pub fn otel(text: &str) -> Result<TraceFile, BadTrace> {
    let bad = |error: serde_json::Error| BadTrace { line: error.line(), fault: error.to_string() };
    let mut hosts = Hosts::default();
    let mut deeds = Vec::new();
    for export in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let export = export.map_err(bad)?;
        for resource in list(&export["resourceSpans"]) {
            let node = hosts.node(&host(&resource["resource"]));
            let scopes = list(&resource["scopeSpans"]);
            for span in scopes.iter().flat_map(|scope| list(&scope["spans"])) {
                take_span(span, node, &mut deeds)?;
            }
        }
    }
    admit(&hosts, deeds.len())?;
    Ok(of_deeds(&hosts, "otel", wished(deeds)))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn host(resource: &Value) -> String {
    const NAMES: [&str; 3] = ["service.instance.id", "host.name", "service.name"];
    let attributes = list(&resource["attributes"]);
    let named = |name: &&str| {
        let found = attributes.iter().find(|attribute| attribute["key"] == **name)?;
        found["value"]["stringValue"].as_str()
    };
    NAMES.iter().find_map(named).unwrap_or("").to_owned()
}

fn take_span(
    span: &Value,
    node: NodeId,
    deeds: &mut Vec<(u64, Deed, NodeId)>,
) -> Result<(), BadTrace> {
    let failed = span["status"]["code"] == 2 || span["status"]["code"] == "STATUS_CODE_ERROR";
    let name = span["name"].as_str().unwrap_or("");
    if failed || !["acquire", "hold"].contains(&name) {
        return Ok(());
    }
    let time = |name: &str| match &span[name] {
        Value::String(text) => text.parse().ok(),
        value => value.as_u64(),
    };
    let times = time("startTimeUnixNano").zip(time("endTimeUnixNano"));
    let Some((begun, ended)) = times.filter(|(begun, ended)| begun <= ended) else {
        let fault = format!("a span {name:?} has no startTimeUnixNano before its endTimeUnixNano");
        return Err(BadTrace { line: 1, fault });
    };
    match name {
        "acquire" => deeds.push((begun, Deed::Acquire, node)),
        _ => deeds.extend([(begun, Deed::Granted, node), (ended, Deed::Release, node)]),
    }
    Ok(())
}

/// With a wish before each grant that has none, and none before no grant.
fn wished(mut deeds: Vec<(u64, Deed, NodeId)>) -> Vec<(u64, Deed, NodeId)> {
    deeds.sort_unstable();
    let mut wishes: BTreeMap<NodeId, bool> = BTreeMap::new();
    let mut all = Vec::new();
    for (at, deed, node) in deeds {
        let wishing = wishes.entry(node).or_default();
        match deed {
            Deed::Acquire if *wishing => continue,
            Deed::Acquire => *wishing = true,
            Deed::Granted if !*wishing => all.push((at, Deed::Acquire, node)),
            Deed::Granted => *wishing = false,
            Deed::Release | Deed::Crash => {}
        }
        all.push((at, deed, node));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::verify;

    /// Which property does not hold, if any.
    fn broken(trace: &TraceFile) -> Option<String> {
        verify(trace).unwrap().findings.first().map(|finding| finding.property.to_string())
    }

    const HISTORY: &str = "\
{:type :invoke, :f :acquire, :value nil, :process 0, :time 10, :index 0}
{:type :invoke, :f :acquire, :value nil, :process 1, :time 11, :index 1}
{:type :info, :f :kill, :process :nemesis, :time 12, :value [\"n1\" {:a 1}]}
{:type :ok, :f :acquire, :value nil, :process 0, :time 20, :index 2}
{:type :invoke, :f :release, :process 0, :time 30}
{:type :ok, :f :acquire, :process 1, :time AT}
{:type :ok, :f :release, :process 0, :time 40}
{:type :invoke, :f :release, :process 1, :time 50}
{:type :ok, :f :release, :process 1, :time 60}
";

    #[test]
    fn two_inside_in_a_history_of_jepsen_are_found() {
        let good = jepsen(&HISTORY.replace("AT", "35")).unwrap();
        assert_eq!((good.header.nodes, good.records.len()), (2, 6));
        assert_eq!(broken(&good), None);
        let bad = jepsen(&HISTORY.replace("AT", "25")).unwrap();
        assert_eq!(broken(&bad).as_deref(), Some("safety"));
    }

    #[test]
    fn a_history_may_be_json_and_a_vector() {
        let json = r#"[{"type":"invoke","f":"acquire","process":3,"time":1},
            {"type":"ok","f":"acquire","process":3,"time":2}]"#;
        assert_eq!(jepsen(json).unwrap().records.len(), 2);
        let edn = "[#jepsen.history.Op{:type :invoke :f :acquire :process 3 :time 1}
            ; a comment\n{:type :fail, :f :acquire, :process 3, :time 2}]";
        assert_eq!(jepsen(edn).unwrap().records.len(), 0, "what failed has not happened");
        for bad in ["{:type :ok, :f :acquire, :process 1, :time 1}", "{:type", "{:type :ok}", "}"] {
            assert!(jepsen(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn spans_that_overlap_are_found() {
        let export = |begun: u64| {
            let resource = |name: &str, begun: u64, ended: u64| {
                serde_json::json!({
                    "resource": { "attributes": [
                        { "key": "service.instance.id", "value": { "stringValue": name } },
                    ]},
                    "scopeSpans": [{ "spans": [{
                        "name": "hold",
                        "startTimeUnixNano": begun.to_string(),
                        "endTimeUnixNano": ended.to_string(),
                    }]}],
                })
            };
            let spans = [resource("a", 100, 200), resource("b", begun, 300)];
            serde_json::json!({ "resourceSpans": spans }).to_string()
        };
        assert_eq!(broken(&otel(&export(200)).unwrap()), None);
        assert_eq!(broken(&otel(&export(150)).unwrap()).as_deref(), Some("safety"));
        assert!(otel("{\"resourceSpans\":").is_err());
    }

    #[test]
    fn a_log_of_shiviz_is_put_in_the_order_of_causes() {
        let log = "b {\"a\":2,\"b\":2}\nGranted\nb {\"b\":1}\nacquire\n\
                   a {\"a\":1}\nacquire lock\na {\"a\":2}\nlock granted\n";
        let trace = crate::shiviz::import(log).unwrap();
        assert_eq!(broken(&trace).as_deref(), Some("safety"), "a has not left when b enters");
        assert!(crate::shiviz::import("a {\"a\":1}\n").is_err());
        assert!(crate::shiviz::import("a [1]\nx\n").is_err());
    }
}
