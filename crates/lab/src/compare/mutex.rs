//! The mutual-exclusion algorithms in the four criteria of the field: messages, synchronisation
//! delay, fault tolerance, load per node.
//!
//! Node 1 serves (as coordinator, as first place of the token, as arbiter) and does not want to
//! enter itself, so that every entry costs what it costs in general.

use quorate_algorithms::Catalogued;
use quorate_algorithms::mutex::{Mutex, Setup};
use quorate_core::{Meta, NodeId, Span, Time, Topology};
use serde_json::{Map, Value, json};

use super::{Figure, Theory, check_size, line, violated};
use crate::chart::Chart;
use crate::mutex::{Figures, LoadSpec, MutexSpec, promise};
use crate::registry::Study;
use crate::{BadInput, NodeAt, Numbers, Run, Spec, measure};

/// How often each node enters in the experiments.
const REQUESTS: u32 = 5;
/// Runs that never come to rest are stopped at this time, in units per node.
const UNITS_PER_NODE: u64 = 400;
/// How long a node stays inside: long enough that requests arrive meanwhile.
const STAY: Span = Span::units(5);

/// When nodes crash, where that is tried.
const SOON: Time = Time(Span::UNIT.0);

/// The probability that a message is lost, where that is tried.
const LOSS: f64 = 0.01;

/// How many runs with losses are tried; the worst counts.
const LOSSY_RUNS: u64 = 5;

/// One algorithm at one size.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Which.
    pub algorithm: &'static str,
    /// How many nodes.
    pub nodes: usize,
    /// The mean size of the quorums of those who want to enter, where they ask one.
    pub quorum: f64,
    /// Messages per entry when one at a time wants to enter.
    pub light: Figure,
    /// Messages per entry when everyone always wants to.
    pub heavy: Figure,
    /// From an exit to the next entry, in T.
    pub sync_delay: Figure,
    /// Messages handled by the busiest node, per entry.
    pub load_max: Option<f64>,
    /// What happened when a node crashed that neither was inside nor wanted to be.
    pub bystander_crash: Tried,
    /// What happened when a node crashed inside.
    pub holder_crash: Tried,
    /// What happened when one message in a hundred was lost.
    pub loss: Tried,
    /// Does the algorithm promise that every wish is granted?
    pub live: bool,
    /// Did all that is claimed hold in the runs without faults?
    pub holds: bool,
}

/// What happened when a fault was tried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tried {
    /// All wishes of the living were granted, and never two were inside.
    Survives,
    /// Some wish was never granted.
    Stops,
    /// Two were inside.
    Unsafe,
}

impl Tried {
    /// As written in tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Survives => "survives",
            Self::Stops => "stops",
            Self::Unsafe => "UNSAFE",
        }
    }
}

/// Compares all algorithms at these sizes. `progress` hears the name of each before it is measured.
///
/// # Errors
/// If a size makes no sense.
pub fn compare(
    sizes: &[usize],
    progress: &mut dyn FnMut(&str, usize),
) -> Result<Vec<Row>, BadInput> {
    let mut rows = Vec::new();
    for &nodes in sizes {
        check_size(nodes, 2000)?;
        for meta in Mutex::CATALOGUE {
            progress(meta.name, nodes);
            rows.push(row(meta, nodes)?);
        }
    }
    Ok(rows)
}

fn row(meta: &'static Meta, nodes: usize) -> Result<Row, BadInput> {
    let run = |load: LoadSpec, change: &dyn Fn(&mut Spec, &mut MutexSpec)| {
        let mut spec = Spec::new(meta.name, nodes);
        // Light load comes to rest between wishes, which takes time of its own.
        let pace = if load == LoadSpec::Light { 4 } else { 1 };
        spec.until = Some(Time::ZERO + Span::units(pace * UNITS_PER_NODE * nodes as u64));
        let bystanders = Numbers(vec![1]);
        let (requests, cs) = (REQUESTS, STAY);
        let mut given = MutexSpec { requests, load, cs, bystanders, ..MutexSpec::default() };
        change(&mut spec, &mut given);
        measure::<Mutex>(&spec.given(given))
    };
    let light = run(LoadSpec::Light, &|_, _| {})?;
    let heavy = run(LoadSpec::Heavy, &|_, _| {})?;
    let setup: Setup = Mutex::setup(&Spec::new(meta.name, nodes), &Topology::complete(nodes))?;
    let clients = NodeId::first(nodes).skip(1);
    let total: usize = clients.map(|node| setup.quorum(node).len()).sum();
    let quorum = total as f64 / (nodes - 1) as f64;
    let theory = |what: &[&str]| Theory::of(meta.costs, what, nodes as f64, quorum);
    Ok(Row {
        algorithm: meta.name,
        nodes,
        quorum,
        light: Figure {
            measured: light.figures.messages_per_entry,
            theory: theory(&["messages per entry, light", "messages per entry"]),
        },
        heavy: Figure {
            measured: heavy.figures.messages_per_entry,
            theory: theory(&["messages per entry, heavy", "messages per entry"]),
        },
        sync_delay: Figure {
            measured: heavy.figures.sync_delay,
            theory: theory(&["synchronisation delay"]),
        },
        load_max: heavy.figures.load.max_per_entry,
        bystander_crash: tried(&run(LoadSpec::Heavy, &|spec, given| {
            let last = spec.nodes as u32;
            given.bystanders.0.push(last);
            spec.crashes = vec![NodeAt::new(last, SOON)];
        })?),
        holder_crash: tried(&run(LoadSpec::Heavy, &|spec, given| {
            given.holder = Some(2);
            spec.crashes = vec![NodeAt::new(2, SOON)];
        })?),
        loss: (1..=LOSSY_RUNS)
            .map(|seed| {
                let lossy = run(LoadSpec::Heavy, &|spec, _| (spec.loss, spec.seed) = (LOSS, seed))?;
                Ok(tried(&lossy))
            })
            .collect::<Result<Vec<_>, BadInput>>()?
            .into_iter()
            .max()
            .unwrap_or(Tried::Survives),
        live: promise(&Spec::new(meta.name, nodes))?.live,
        holds: super::holds(&light.report) && super::holds(&heavy.report),
    })
}

fn tried(run: &Run<Figures>) -> Tried {
    let broken = |property| violated(&run.report, property);
    if broken("safety") {
        Tried::Unsafe
    } else if broken("liveness") {
        Tried::Stops
    } else {
        Tried::Survives
    }
}

impl Row {
    /// The row as one JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut json = Map::new();
        json.insert("algorithm".into(), json!(self.algorithm));
        json.insert("nodes".into(), json!(self.nodes));
        json.insert("quorum_size".into(), json!(self.quorum));
        for (name, figure) in self.figures() {
            json.insert(name.into(), figure.json());
        }
        json.insert("load_max".into(), json!(self.load_max));
        json.insert("bystander_crash".into(), json!(self.bystander_crash.word()));
        json.insert("holder_crash".into(), json!(self.holder_crash.word()));
        json.insert("loss".into(), json!(self.loss.word()));
        json.insert("holds".into(), json!(self.holds));
        Value::Object(json)
    }

    /// The figures that are compared with what is published.
    #[must_use]
    pub const fn figures(&self) -> [(&'static str, &Figure); 3] {
        [
            ("messages_light", &self.light),
            ("messages_heavy", &self.heavy),
            ("sync_delay", &self.sync_delay),
        ]
    }

    /// Do all figures agree with what is published, and all properties hold that are promised?
    #[must_use]
    pub fn agrees(&self) -> bool {
        (self.holds || !self.live)
            && self.figures().iter().all(|(_, figure)| figure.agrees() != Some(false))
    }
}

/// Messages per entry under heavy load against the number of nodes.
#[must_use]
pub fn chart(rows: &[Row]) -> Chart {
    let series = Mutex::CATALOGUE.iter().map(|meta| {
        let mine = rows.iter().filter(|row| row.algorithm == meta.name);
        let name = meta.name.trim_start_matches("mutex/").to_owned();
        line(name, mine.map(|row| (row.nodes as f64, &row.heavy)))
    });
    Chart {
        title: "Mutual exclusion: messages per entry when everyone always wants".to_owned(),
        x_label: "nodes".to_owned(),
        y_label: "messages per entry".to_owned(),
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_where_theory_is_and_not_where_it_still_agrees() {
        let rows = compare(&[4, 9], &mut |_, _| {}).expect("the sizes make sense");
        let chart = chart(&rows);
        let series = |name: &str| chart.series.iter().find(|one| one.name == name);
        // About 4(K - 1), and K is 5 of 9 in a grid.
        let maekawa = series("maekawa").expect("it was measured");
        assert_eq!(maekawa.theory.last(), Some(&(9.0, 16.0)));
        let naimi = series("naimi-trehel").expect("it was measured");
        assert_eq!(naimi.theory, [], "only bounds are published of it");
    }
}
