//! The elections side by side: messages and time over many rings, trees and graphs of random ids,
//! and what breaks when something fails.

use quorate_algorithms::Catalogued;
use quorate_algorithms::election::Election;
use quorate_core::{Meta, Span, Time, Topology};
use quorate_sim::Verdict;
use serde_json::{Map, Value, json};

use super::{Figure, Theory, check_size, line};
use crate::chart::Chart;
use crate::election::{ElectionSpec, Figures, Ids, Who};
use crate::registry::Study;
use crate::{BadInput, NodeAt, Numbers, Run, Spec, TopologySpec, Watch, measure, simulate};

/// How many seeds each experiment is run with.
const RUNS: u64 = 20;
/// How many seeds each fault is tried with; the worst counts.
const FAULTY_RUNS: u64 = 5;
/// The probability that a message is lost, where that is tried.
const LOSS: f64 = 0.05;
/// Runs that never come to rest are stopped at this time, in units per node.
const UNITS_PER_NODE: u64 = 1_000;

/// One algorithm at one size.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Which.
    pub algorithm: &'static str,
    /// How many nodes.
    pub nodes: usize,
    /// On which topology.
    pub topology: String,
    /// Messages: the fewest, the mean and the most.
    pub messages: Range,
    /// The mean of the messages, next to what is published of this case.
    pub mean: Figure,
    /// What is published of messages in all cases.
    pub published: String,
    /// Time until the last node is told, in T: the shortest, the mean and the longest.
    pub time: Range,
    /// What broke when a node crashed that was neither the best nor the initiator.
    pub bystander_crash: String,
    /// What broke when the best node crashed.
    pub best_crash: String,
    /// What broke when the only initiator crashed.
    pub initiator_crash: String,
    /// What broke when messages were lost.
    pub loss: String,
    /// Did all that is claimed hold in the runs without faults?
    pub holds: bool,
}

/// Measurements of one thing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    /// The smallest.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

impl Range {
    fn of(values: &[f64]) -> Self {
        let fold = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).unwrap_or(0.0);
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        Self { min: fold(f64::min), mean, max: fold(f64::max) }
    }
}

/// Compares the algorithms at these sizes: each on the topology that it is made for, or those that
/// can run on the given one. `progress` hears the name of each before it is measured.
///
/// # Errors
/// If a size or the topology makes no sense.
pub fn compare(
    sizes: &[usize],
    topology: Option<&TopologySpec>,
    progress: &mut dyn FnMut(&str, usize),
) -> Result<Vec<Row>, BadInput> {
    let mut rows = Vec::new();
    for &nodes in sizes {
        check_size(nodes, 2000)?;
        for meta in Election::CATALOGUE {
            let spec = Spec { topology: topology.cloned(), ..Spec::new(meta.name, nodes) };
            if topology.is_some() && simulate(&spec, Watch::default()).is_err() {
                continue;
            }
            progress(meta.name, nodes);
            rows.push(row(meta, &spec)?);
        }
    }
    if rows.is_empty() {
        return Err(BadInput::new("--topology", "no algorithm can run on it at these sizes"));
    }
    Ok(rows)
}

fn row(meta: &'static Meta, spec: &Spec) -> Result<Row, BadInput> {
    let nodes = spec.nodes;
    let random = || ElectionSpec { ids: Ids::Random, ..ElectionSpec::default() };
    let run = |seed: u64, change: &dyn Fn(&mut Spec)| {
        let mut spec = spec.clone().given(random());
        spec.seed = seed;
        spec.until = Some(Time::ZERO + Span::units(UNITS_PER_NODE * nodes as u64));
        change(&mut spec);
        measure::<Election>(&spec)
    };
    let plain = (1..=RUNS).map(|seed| run(seed, &|_| {})).collect::<Result<Vec<_>, _>>()?;
    let sent: Vec<f64> = plain.iter().map(|run| run.figures.messages as f64).collect();
    let times: Vec<f64> = plain.iter().filter_map(|run| run.figures.time).collect();
    let messages = Range::of(&sent);
    let theory = ["messages, ids random", "messages, all start", "messages"];
    // Somebody crashes in the middle: after the first messages, before the last.
    let crash = |who: &dyn Fn(u32, u32) -> u32| {
        let tried = (1..=FAULTY_RUNS).map(|seed| {
            let best = best(&Spec { seed, ..spec.clone().given(random()) })?;
            // Whoever asks is not the best itself.
            let initiator = if best == 1 { 2 } else { 1 };
            let victim = who(best, initiator);
            run(seed, &|spec| {
                let initiators = Who::Nodes(Numbers(vec![initiator]));
                spec.family = ElectionSpec { initiators, ..random() }.into();
                spec.crashes = vec![NodeAt::new(victim, Time(3 * Span::UNIT.0 / 2))];
            })
        });
        Ok::<_, BadInput>(broken(&tried.collect::<Result<Vec<_>, _>>()?))
    };
    let lossy = (1..=FAULTY_RUNS).map(|seed| run(seed, &|spec| spec.loss = LOSS));
    Ok(Row {
        algorithm: meta.name,
        nodes,
        topology: match &spec.topology {
            Some(TopologySpec::Named(named)) => named.to_string(),
            Some(TopologySpec::Links(_)) => "file".to_owned(),
            None => "its own".to_owned(),
        },
        messages,
        mean: Figure {
            measured: Some(messages.mean),
            theory: Theory::of(meta.costs, &theory, nodes as f64, nodes as f64).map(|theory| {
                // A mean of some runs is off by chance.
                let off = 4.0 * deviation(&sent) / (RUNS as f64).sqrt();
                Theory { low: theory.low - off, high: theory.high + off, ..theory }
            }),
        },
        published: published(meta),
        time: Range::of(&times),
        bystander_crash: crash(&|best, initiator| {
            let others = (1..=nodes as u32).filter(|node| ![best, initiator].contains(node));
            others.max().unwrap_or(best)
        })?,
        best_crash: crash(&|best, _| best)?,
        initiator_crash: crash(&|_, initiator| initiator)?,
        loss: broken(&lossy.collect::<Result<Vec<_>, _>>()?),
        holds: plain.iter().all(|one| super::holds(&one.report)),
    })
}

/// What is published of messages, case by case.
fn published(meta: &Meta) -> String {
    let costs = meta.costs.iter().filter(|cost| cost.what.starts_with("messages"));
    let case =
        |what: &str| what.trim_start_matches("messages").trim_start_matches([',', ' ']).to_owned();
    let said = costs.map(|cost| match case(cost.what).as_str() {
        "" => cost.formula.to_owned(),
        case => format!("{case}: {}", cost.formula),
    });
    said.collect::<Vec<_>>().join("; ")
}

/// The standard deviation.
fn deviation(values: &[f64]) -> f64 {
    let mean = Range::of(values).mean;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / values.len().max(1) as f64).sqrt()
}

/// The node that ought to win.
fn best(spec: &Spec) -> Result<u32, BadInput> {
    let setup = Election::setup(spec, &Topology::complete(spec.nodes))?;
    let best = setup.ranks.iter().max_by_key(|(_, rank)| **rank);
    Ok(best.map_or(1, |(node, _)| node.number()))
}

/// Which properties broke, in any of the runs.
fn broken(runs: &[Run<Figures>]) -> String {
    let mut words: Vec<&str> = Vec::new();
    for (property, verdict) in runs.iter().flat_map(|run| &run.report.verdicts) {
        if matches!(verdict, Verdict::Violated(..) | Verdict::Unfinished)
            && !words.contains(property)
        {
            words.push(property);
        }
    }
    words.sort_unstable();
    if words.is_empty() { "ok".to_owned() } else { words.join(", ") }
}

impl Row {
    /// The row as one JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let range =
            |range: &Range| json!({ "min": range.min, "mean": range.mean, "max": range.max });
        let theory = self.mean.theory.as_ref();
        let mut json = Map::new();
        json.insert("algorithm".into(), json!(self.algorithm));
        json.insert("nodes".into(), json!(self.nodes));
        json.insert("topology".into(), json!(self.topology));
        json.insert("messages".into(), range(&self.messages));
        json.insert("formula".into(), json!(theory.map(|theory| &theory.formula)));
        json.insert("low".into(), json!(theory.map(|theory| theory.low)));
        json.insert("high".into(), json!(theory.map(|theory| theory.high)));
        json.insert("agrees".into(), json!(self.mean.agrees()));
        json.insert("published".into(), json!(self.published));
        json.insert("time".into(), range(&self.time));
        json.insert("bystander_crash".into(), json!(self.bystander_crash));
        json.insert("best_crash".into(), json!(self.best_crash));
        json.insert("initiator_crash".into(), json!(self.initiator_crash));
        json.insert("loss".into(), json!(self.loss));
        json.insert("holds".into(), json!(self.holds));
        Value::Object(json)
    }

    /// Do all figures agree with what is published, and all properties hold?
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.holds && self.mean.agrees() != Some(false)
    }
}

/// Messages against the number of nodes.
#[must_use]
pub fn chart(rows: &[Row]) -> Chart {
    let series = Election::CATALOGUE.iter().map(|meta| {
        let mine = rows.iter().filter(|row| row.algorithm == meta.name);
        let name = meta.name.trim_start_matches("election/").to_owned();
        line(name, mine.map(|row| (row.nodes as f64, &row.mean)))
    });
    Chart {
        title: "Leader election: messages when everybody starts, mean over random ids".to_owned(),
        x_label: "nodes".to_owned(),
        y_label: "messages".to_owned(),
        series: series.filter(|line| !line.points.is_empty()).collect(),
    }
}
