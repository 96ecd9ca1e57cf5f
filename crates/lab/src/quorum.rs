//! Quorum systems in the lab: by name, as reports, side by side, and as pictures.

mod layout;
mod svg;
mod unicode;

use quorate_core::{NodeSet, PerNode};
use quorate_quorum::verify::{Domination, NotIdeal, Uneven};
use quorate_quorum::{
    BadSystem, Chance, Examined, Kind, Load, Ratio, System, examine, verify, written,
};
use serde_json::{Map, Value, json};

use crate::BadInput;

pub use svg::svg;
pub use unicode::unicode;

/// Bounds of a load that are as close as this are as good as the load.
const CLOSE: f64 = 1e-9;

/// The system of this name, such as `grid` or `crumbling-wall:1,2,3`, for so many nodes; its parameters
/// may say how many.
///
/// # Errors
/// If there is none, naming the argument.
pub fn system(argument: &str, name: &str, nodes: Option<usize>) -> Result<System, BadInput> {
    let bad = |bad: BadSystem| BadInput::new(argument, bad);
    let kind: Kind = name.parse().map_err(bad)?;
    let Some(nodes) = nodes.or_else(|| kind.nodes()) else {
        return Err(BadInput::new("N", format!("{kind} needs a number of nodes")));
    };
    System::new(kind, nodes).map_err(bad)
}

/// Where the nodes of a system stand in its picture, in units of the distance between neighbours.
#[derive(Clone, PartialEq, Debug)]
pub struct Places {
    /// By position of the node.
    pub nodes: Vec<(f64, f64)>,
    /// Lines that are drawn for the structure: the positions of their nodes, and whether they are
    /// `open`, `closed` or a `circle` through three nodes.
    pub lines: Vec<(Vec<usize>, &'static str)>,
}

/// Where the nodes of a system stand in its picture.
#[must_use]
pub fn places(system: &System) -> Places {
    let layout = layout::Layout::new(system);
    let line = |trail: layout::Trail| {
        let form = match trail.form {
            layout::Form::Open => "open",
            layout::Form::Closed => "closed",
            layout::Form::Circle => "circle",
        };
        (trail.nodes, form)
    };
    Places { nodes: layout.places, lines: layout.lines.into_iter().map(line).collect() }
}

/// The quorums that nodes ask in a system of this kind.
///
/// # Errors
/// If there is none of so many nodes, or if it is none because two quorums do not intersect.
pub(crate) fn assignment(
    argument: &str,
    kind: &Kind,
    nodes: usize,
) -> Result<PerNode<NodeSet>, BadInput> {
    let bad = |bad: BadSystem| BadInput::new(argument, bad);
    let system = System::new(kind.clone(), nodes).map_err(bad)?;
    if let Kind::Custom(_) = system.kind() {
        let quorums = system.quorums().map_err(|bad| BadInput::new(argument, bad))?;
        if let Some((a, b)) = verify::disjoint(&quorums) {
            let reason = format!("{} and {} do not intersect", written(a), written(b));
            return Err(BadInput::new(argument, reason));
        }
    }
    system.assignment().map_err(|bad| BadInput::new(argument, bad))
}

/// A system with all that was found out about it.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// What was examined.
    pub system: System,
    /// What came out.
    pub examined: Examined,
    /// The probability with which nodes are dead.
    pub p: f64,
}

impl Report {
    /// Verifies and measures a system.
    ///
    /// # Errors
    /// If `p` is no probability.
    pub fn new(system: System, p: f64, seed: u64) -> Result<Self, BadInput> {
        let examined = examine(&system, p, seed).map_err(|bad| BadInput::new("--p", bad))?;
        Ok(Self { system, examined, p })
    }

    /// All usual systems of so many nodes.
    ///
    /// # Errors
    /// If there is none.
    pub fn usual(nodes: usize, p: f64, seed: u64) -> Result<Vec<Self>, BadInput> {
        let kinds = Kind::usual(nodes).into_iter();
        let reports = kinds.map(|kind| {
            let system = System::new(kind, nodes).map_err(|bad| BadInput::new("--nodes", bad))?;
            Self::new(system, p, seed)
        });
        reports.collect()
    }

    /// Do any two quorums intersect?
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.examined.disjoint.is_none()
    }

    /// The report as one JSON object.
    #[must_use]
    pub fn json(&self) -> Map<String, Value> {
        let Examined { quorums, count, sizes, coterie, .. } = &self.examined;
        let mut json = Map::new();
        let mut put = |name: &str, value: Value| json.insert(name.to_owned(), value);
        put("kind", json!(self.system.kind().to_string()));
        put("nodes", json!(self.system.nodes()));
        let lists = |sets: &[NodeSet]| sets.iter().map(list).collect::<Vec<_>>();
        put("quorums", quorums.as_ref().map_or(Value::Null, |q| json!(lists(q.sets()))));
        put("count", count.map_or(Value::Null, number));
        put("size_min", json!(sizes.0));
        put("size_max", json!(sizes.1));
        put("intersecting", json!(self.holds()));
        put("coterie", json!(coterie));
        put("symmetric", json!(self.examined.symmetric));
        put("non_dominated", json!(self.examined.non_dominated()));
        put("ideal", json!(self.examined.ideal));
        self.put_measures(&mut put);
        put("witnesses", Value::Object(self.witnesses(written)));
        let assignment = self.examined.assignment.as_ref();
        let assigned = |table: &quorate_core::PerNode<NodeSet>| -> Vec<Value> {
            table.iter().map(|(_, set)| list(set)).collect()
        };
        put("assignment", assignment.map_or(Value::Null, |table| json!(assigned(table))));
        json
    }

    fn put_measures(&self, put: &mut dyn FnMut(&str, Value) -> Option<Value>) {
        let Examined { load, strategy, resilience, failure, probes, .. } = &self.examined;
        put("load", json!(value(load)));
        put("load_exact", json!(load.exact().map(|load| load.to_string())));
        if let Load::Between(low, high) = load {
            put("load_bounds", json!([real(*low), real(*high)]));
        }
        put("capacity", json!(value(load).map(|load| 1.0 / load)));
        let used = |(set, chance): &(NodeSet, Ratio<i128>)| {
            (*chance.numer() > 0)
                .then(|| json!({ "quorum": list(set), "probability": chance.to_string() }))
        };
        let used = |all: &Vec<_>| all.iter().filter_map(used).collect::<Vec<_>>();
        put("strategy", json!(strategy.as_ref().map(used)));
        put("resilience", json!(resilience));
        put("p", json!(self.p));
        put("availability", json!(1.0 - failure.value()));
        put("failure", json!(failure.value()));
        if let Chance::Estimated { low, high, samples, .. } = failure {
            put("failure_interval", json!([low, high]));
            put("samples", json!(samples));
        }
        put("probes", json!(probes));
    }

    /// Why properties do not hold, each in a sentence, by property; sets as they are to be written.
    #[must_use]
    pub fn witnesses(&self, written: fn(&NodeSet) -> String) -> Map<String, Value> {
        let pair = |(a, b): &(NodeSet, NodeSet)| (written(a), written(b));
        let mut found = Map::new();
        let mut put = |name: &str, text: String| found.insert(name.to_owned(), json!(text));
        if let Some((a, b)) = self.examined.disjoint.as_ref().map(pair) {
            put("intersecting", format!("{a} and {b} do not intersect"));
        }
        if let Some((a, b)) = self.examined.nested.as_ref().map(pair) {
            put("coterie", format!("{a} is contained in {b}"));
        }
        match &self.examined.uneven {
            Some(Uneven::Sizes(a, b)) => {
                put("symmetric", format!("{} and {} differ in size", written(a), written(b)));
            }
            Some(Uneven::Degrees((a, x), (b, y))) => {
                put("symmetric", format!("node {a} is in {x} quorums, node {b} in {y}"));
            }
            None => {}
        }
        match &self.examined.not_ideal {
            Some(NotIdeal::Idle(node)) => {
                put("ideal", format!("node {node} is in no quorum"));
            }
            Some(NotIdeal::Sizes(a, b)) => {
                put("ideal", format!("{} and {} differ in size", written(a), written(b)));
            }
            Some(NotIdeal::Shared(a, b)) => {
                let shared = a.intersection(b).len();
                put("ideal", format!("{} and {} share {shared} nodes", written(a), written(b)));
            }
            None => {}
        }
        if let Domination::By(set) = &self.examined.domination {
            let text = format!("{} meets all quorums and contains none", written(set));
            put("non_dominated", text);
        }
        found
    }
}

/// The most nodes of a set that are written where people read.
const WRITTEN_MAX: usize = 16;

/// A set as it is written, long ones cut: `{1,2,5 and 96 more}`.
#[must_use]
pub fn shortened(set: &NodeSet) -> String {
    if set.len() <= WRITTEN_MAX {
        return written(set);
    }
    let first: Vec<_> = set.iter().take(WRITTEN_MAX / 2).map(|node| node.to_string()).collect();
    format!("{{{} and {} more}}", first.join(","), set.len() - first.len())
}

fn list(set: &NodeSet) -> Value {
    json!(set.iter().map(quorate_core::NodeId::number).collect::<Vec<_>>())
}

/// A count; what does not fit into 64 bits is rounded.
fn number(count: u128) -> Value {
    u64::try_from(count).map_or_else(|_| json!(count as f64), |count| json!(count))
}

/// The load as a number, if it is known.
#[must_use]
pub fn value(load: &Load) -> Option<f64> {
    match load {
        Load::Exact(load) => Some(real(*load)),
        Load::Between(low, high) => {
            let (low, high) = (real(*low), real(*high));
            (high - low < CLOSE).then_some(low.midpoint(high))
        }
    }
}

/// A fraction as a number.
#[must_use]
pub fn real(ratio: Ratio<i128>) -> f64 {
    *ratio.numer() as f64 / *ratio.denom() as f64
}
