//! Group communication: what a multicast costs, how long it takes and how much is kept, over group
//! sizes and losses.
//!
//! The last node sends, one multicast after the other with time between them; the first one serves
//! (as sequencer, as root of the tree). Only algorithms that deliver in no order or each sender's
//! are tried with losses: one order for all is made over a network that loses nothing.

use quorate_algorithms::Catalogued;
use quorate_algorithms::group::{Group, Order, Ordering};
use quorate_core::{Meta, Span, Time};
use quorate_sim::topology::Named;
use serde_json::{Map, Value, json};

use super::{Figure, Theory, check_size, line};
use crate::chart::Chart;
use crate::group::{Figures, GroupSpec, OrderSpec, promise};
use crate::{BadInput, Numbers, Spec, TopologySpec, measure};

/// How many multicasts are measured in a run.
const MESSAGES: u32 = 50;
/// From one multicast to the next: what it takes is mostly over then.
const GAP: Span = Span::units(20);
/// Runs that never come to rest are stopped at this time.
const UNTIL: Span = Span::units(50_000);
/// How many runs with losses are measured.
const LOSSY_RUNS: u64 = 3;

/// One algorithm, in one variant, at one size and with one loss.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Which.
    pub algorithm: &'static str,
    /// The order that was asked for, or how the algorithm was told to make it; mostly nothing.
    pub variant: String,
    /// How many nodes.
    pub nodes: usize,
    /// The probability that a message is lost.
    pub loss: f64,
    /// Packets sent per multicast; one to several nodes is one.
    pub sendings: Figure,
    /// Messages per multicast; each receiver counts.
    pub messages: Figure,
    /// Those of them that carry the data for the first time, or its place in the order. What one
    /// algorithm's several orders are published to cost is this: what it sends to forget messages is
    /// the same for all of them.
    pub data: Figure,
    /// Requests per multicast.
    pub nacks: f64,
    /// Repetitions per multicast.
    pub repairs: f64,
    /// From sending to the last delivery, in T: the longest.
    pub latency_max: Figure,
    /// From sending to delivery, over all receivers, in T.
    pub latency: Option<f64>,
    /// The most messages that one node kept.
    pub buffer_max: f64,
    /// Did all that is claimed hold?
    pub holds: bool,
}

/// Compares all algorithms at these sizes and losses. `progress` hears the name of each before it is
/// measured.
///
/// # Errors
/// If a size or a loss makes no sense.
pub fn compare(
    sizes: &[usize],
    losses: &[f64],
    progress: &mut dyn FnMut(&str, usize),
) -> Result<Vec<Row>, BadInput> {
    if let Some(loss) = losses.iter().find(|loss| !(0.0..=0.5).contains(*loss)) {
        let reason = format!("{loss} is not a probability from 0 to 0.5");
        return Err(BadInput::new("--loss", reason));
    }
    let mut rows = Vec::new();
    for &nodes in sizes {
        check_size(nodes, 256)?;
        for meta in Group::CATALOGUE {
            progress(meta.name, nodes);
            let promise = promise(&Spec::new(meta.name, nodes))?;
            for variant in variants(meta, promise.order) {
                let losses = if is_total(promise.order) { &[0.0] } else { losses };
                for &loss in losses {
                    rows.push(row(meta, &variant, nodes, loss)?);
                }
            }
        }
    }
    Ok(rows)
}

/// Is one order for all made, or can it be?
const fn is_total(order: Ordering) -> bool {
    matches!(order, Ordering::Always(Order::Total) | Ordering::AsWished)
}

/// One way to run an algorithm.
#[derive(Clone, Debug, Default)]
struct Variant {
    name: String,
    order: Option<OrderSpec>,
    option: Option<(String, String)>,
}

/// Costs of an algorithm that can be told how to work are published for each way: `…, by broadcast`.
const BY: &str = "by";

fn variants(meta: &Meta, order: Ordering) -> Vec<Variant> {
    // Where the order makes no difference, one cost is published for all.
    let differ = meta.costs.iter().any(|cost| cost.what.starts_with("messages per multicast, "));
    if order == Ordering::AsWished && differ {
        let orders = OrderSpec::NAMES.into_iter();
        let plain = orders.filter(|(name, _)| !["total", "mixed"].contains(name));
        let asked = |(name, order): (&str, _)| Variant {
            name: name.to_owned(),
            order: Some(order),
            option: None,
        };
        return plain.map(asked).collect();
    }
    let ways = meta.costs.iter().filter_map(|cost| {
        let way = cost.what.strip_prefix("messages per multicast, by ")?;
        meta.options.iter().find(|option| option.name == BY)?;
        let option = Some((BY.to_owned(), way.to_owned()));
        Some(Variant { name: format!("{BY} {way}"), order: None, option })
    });
    let ways: Vec<_> = ways.collect();
    if ways.is_empty() { vec![Variant::default()] } else { ways }
}

fn row(meta: &'static Meta, variant: &Variant, nodes: usize, loss: f64) -> Result<Row, BadInput> {
    let run = |seed| {
        let mut spec = Spec::new(meta.name, nodes).given(GroupSpec {
            bystanders: Numbers((1..nodes as u32).collect()),
            messages: MESSAGES,
            gap: GAP,
            order: variant.order,
            ..GroupSpec::default()
        });
        (spec.seed, spec.loss) = (seed, loss);
        spec.topology = Some(TopologySpec::Named(Named::Complete));
        spec.options.extend(variant.option.clone());
        spec.until = Some(Time::ZERO + UNTIL);
        measure::<Group>(&spec)
    };
    let seeds = if loss > 0.0 { LOSSY_RUNS } else { 1 };
    let runs = (1..=seeds).map(run).collect::<Result<Vec<_>, _>>()?;
    let theory = |what: &str| {
        // An order that can be made in several ways: `total-token` is `total by token`.
        let way = variant.name.replace('-', " by ");
        let named = [format!("{what}, no loss"), format!("{what}, {way}"), what.to_owned()];
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        let known = || Theory::of(meta.costs, &named, nodes as f64, nodes as f64);
        if loss > 0.0 { None } else { known() }
    };
    let all = |pick: &dyn Fn(&Figures) -> Option<f64>| -> Option<Vec<f64>> {
        runs.iter().map(|run| pick(&run.figures)).collect()
    };
    let mean = |pick: &dyn Fn(&Figures) -> Option<f64>| {
        all(pick).map(|values| values.iter().sum::<f64>() / values.len() as f64)
    };
    let most = |pick: &dyn Fn(&Figures) -> Option<f64>| {
        all(pick).map(|values| values.into_iter().fold(0.0, f64::max))
    };
    let per_multicast =
        |pick: fn(&Figures) -> u64| mean(&|figures| Some(pick(figures) as f64 / sent(figures)));
    let (in_all, data_only) = match (theory("messages per multicast"), variant.order) {
        (published, None) => (published, theory("messages per multicast, no loss, DATA only")),
        (published, Some(_)) => (None, published),
    };
    Ok(Row {
        algorithm: meta.name,
        variant: variant.name.clone(),
        nodes,
        loss,
        sendings: Figure {
            measured: per_multicast(|figures| figures.sendings),
            theory: theory("sendings per multicast"),
        },
        messages: Figure { measured: per_multicast(|figures| figures.messages), theory: in_all },
        data: Figure {
            measured: mean(&|figures| Some(carrying(figures)? / sent(figures))),
            theory: data_only.or_else(|| theory("DATA messages per multicast")),
        },
        nacks: per_multicast(|figures| figures.nacks).unwrap_or_default(),
        repairs: per_multicast(|figures| figures.repairs).unwrap_or_default(),
        latency_max: Figure {
            measured: most(&|figures| figures.latency.max),
            theory: theory("latency"),
        },
        latency: mean(&|figures| figures.latency.mean),
        buffer_max: most(&|figures| Some(figures.buffer_max as f64)).unwrap_or_default(),
        holds: runs.iter().all(|run| super::holds(&run.report)),
    })
}

/// How many messages of this kind were sent, where there is such a kind.
fn kind(figures: &Figures, kind: &str) -> Option<f64> {
    let known = figures.by_kind.iter().find(|(known, _)| *known == kind);
    known.map(|(_, count)| *count as f64)
}

/// How many messages carried data for the first time, to everybody or to who is to send it on, or
/// said in which order data is delivered; nothing where there is no DATA.
fn carrying(figures: &Figures) -> Option<f64> {
    let of = |name| kind(figures, name).unwrap_or_default();
    // A REQUEST is one for data, unless somebody else is to send it on.
    let sent_on = kind(figures, "SEQUENCED").map_or(0.0, |count| count + of("REQUEST"));
    Some(kind(figures, "DATA")? + of("ORDER") + sent_on)
}

/// How many multicasts there were; not 0, to divide by.
fn sent(figures: &Figures) -> f64 {
    figures.multicasts.max(1) as f64
}

impl Row {
    /// The row as one JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut json = Map::new();
        json.insert("algorithm".into(), json!(self.algorithm));
        json.insert("variant".into(), json!(self.variant));
        json.insert("nodes".into(), json!(self.nodes));
        json.insert("loss".into(), json!(self.loss));
        for (name, figure) in self.figures() {
            json.insert(name.into(), figure.json());
        }
        json.insert("nacks".into(), json!(self.nacks));
        json.insert("repairs".into(), json!(self.repairs));
        json.insert("latency".into(), json!(self.latency));
        json.insert("buffer_max".into(), json!(self.buffer_max));
        json.insert("holds".into(), json!(self.holds));
        Value::Object(json)
    }

    /// The figures that are compared with what is published.
    #[must_use]
    pub const fn figures(&self) -> [(&'static str, &Figure); 4] {
        [
            ("sendings", &self.sendings),
            ("messages", &self.messages),
            ("data_messages", &self.data),
            ("latency_max", &self.latency_max),
        ]
    }

    /// Do all figures agree with what is published, and all properties hold that are promised?
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.holds && self.figures().iter().all(|(_, figure)| figure.agrees() != Some(false))
    }

    /// The algorithm with its variant.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.algorithm, self.variant).trim_end().to_owned()
    }
}

/// Packets per multicast against the number of nodes: without losses, and with the greatest.
#[must_use]
pub fn chart(rows: &[Row]) -> Chart {
    let mut lines: Vec<(String, f64)> = Vec::new();
    let most = |name: &str| {
        let mine = rows.iter().filter(|row| row.name() == name);
        mine.map(|row| row.loss).fold(0.0, f64::max)
    };
    for row in rows {
        let line = (row.name(), row.loss);
        if (row.loss == 0.0 || row.loss == most(&line.0)) && !lines.contains(&line) {
            lines.push(line);
        }
    }
    let series = lines.into_iter().map(|(name, loss)| {
        let mine = rows.iter().filter(|row| row.name() == name && row.loss == loss);
        let short = name.trim_start_matches("group/");
        let lost = if loss > 0.0 { format!(", {} % lost", loss * 100.0) } else { String::new() };
        line(format!("{short}{lost}"), mine.map(|row| (row.nodes as f64, &row.sendings)))
    });
    Chart {
        title: "Group communication: packets per multicast".to_owned(),
        x_label: "nodes".to_owned(),
        y_label: "packets per multicast".to_owned(),
        series: series.collect(),
    }
}
