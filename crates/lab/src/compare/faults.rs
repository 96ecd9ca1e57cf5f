//! What faults do to the algorithms of mutual exclusion: on the bare network, over reliable links,
//! and in views. As tried, with so many seeds each; the worst that happened counts.

use std::collections::BTreeSet;
use std::fmt::Write;

use quorate_algorithms::Catalogued;
use quorate_algorithms::mutex::{Command, Event, Mutex};
use quorate_core::{Fact, Meta, NodeId, Span, Time};
use quorate_sim::Observer;
use serde_json::{Map, Value, json};

use super::violated;
use crate::mutex::MutexSpec;
use crate::simulate::observe;
use crate::{BadInput, NodeAt, Over, Spec, Watch, read, simulate};

/// How many nodes there are.
pub const NODES: usize = 5;
/// With how many seeds each fault is tried.
pub const SEEDS: u64 = 20;
/// The probability that a message is lost, where nothing is done about it.
pub const LOSS: f64 = 0.02;
/// The probability that a message is lost, doubled, and reordered, where links mask that.
pub const ROUGH: f64 = 0.2;
/// A wish that is not granted by then is never granted: everything takes a few hundred units.
const UNTIL: Span = Span::units(20_000);
/// Longer than any delay, for those who rely on a bound where links send again.
const DELAY_MAX: &str = "60s";
/// Kept as published first: it deadlocks, faults or none.
const DEADLOCKS: &str = "mutex/maekawa-basic";

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fate {
    /// All wishes of the living were granted, one after the other.
    Fine,
    /// Some wish was never granted.
    Waits,
    /// Two were inside, or were given tokens that do not grow.
    Broken,
}

impl Fate {
    /// As written in tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Waits => "waits for ever",
            Self::Broken => "two inside",
        }
    }
}

/// Something that is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trial {
    /// What carries the messages.
    pub over: Layers,
    /// What goes wrong.
    pub fault: Fault,
}

/// What an algorithm runs over, here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layers {
    /// The network as it is.
    Bare,
    /// Reliable links.
    Reliable,
    /// Views.
    Views,
}

impl Layers {
    fn over(self) -> Over {
        match self {
            Self::Bare => Over::BARE,
            Self::Reliable => Over::reliable(),
            Self::Views => Over::views(),
        }
    }
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Messages are lost.
    Loss,
    /// Messages are lost, doubled and reordered.
    Rough,
    /// Node 1 crashes: coordinator, arbiter, root, where the token begins.
    First,
    /// Who is inside crashes.
    Holder,
    /// Who wants to enter crashes.
    Waiter,
}

/// The columns: their names in JSON and as headings, and what is tried.
pub const TRIALS: [(&str, &str, Trial); 7] = [
    ("bare_loss", "bare, loss", Trial { over: Layers::Bare, fault: Fault::Loss }),
    ("bare_node_1", "bare, node 1 crashes", Trial { over: Layers::Bare, fault: Fault::First }),
    ("bare_holder", "bare, holder crashes", Trial { over: Layers::Bare, fault: Fault::Holder }),
    ("reliable_rough", "reliable, rough", Trial { over: Layers::Reliable, fault: Fault::Rough }),
    ("views_holder", "views, holder crashes", Trial { over: Layers::Views, fault: Fault::Holder }),
    ("views_waiter", "views, waiter crashes", Trial { over: Layers::Views, fault: Fault::Waiter }),
    ("views_node_1", "views, node 1 crashes", Trial { over: Layers::Views, fault: Fault::First }),
];

/// One algorithm.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Which.
    pub algorithm: &'static str,
    /// What happened, in the order of [`TRIALS`].
    pub fates: [Fate; TRIALS.len()],
}

impl Row {
    /// Did what masks a fault mask it? What deadlocks without faults still may.
    #[must_use]
    pub fn holds(&self) -> bool {
        let worst = if self.algorithm == DEADLOCKS { Fate::Waits } else { Fate::Fine };
        let masked =
            TRIALS.iter().zip(self.fates).filter(|((.., trial), _)| trial.over != Layers::Bare);
        masked.into_iter().all(|(_, fate)| fate <= worst)
    }

    /// The row as one JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut json = Map::new();
        json.insert("algorithm".into(), json!(self.algorithm));
        for ((name, ..), fate) in TRIALS.iter().zip(self.fates) {
            json.insert((*name).into(), json!(fate.word()));
        }
        json.insert("holds".into(), json!(self.holds()));
        Value::Object(json)
    }
}

/// Tries everything with every algorithm. `progress` hears the name of each before it is tried.
///
/// # Errors
/// None that can be helped: the arguments of all runs make sense.
pub fn compare(progress: &mut dyn FnMut(&str, usize)) -> Result<Vec<Row>, BadInput> {
    let mut rows = Vec::new();
    for meta in Mutex::CATALOGUE {
        progress(meta.name, NODES);
        let mut fates = [Fate::Fine; TRIALS.len()];
        for (fate, (.., trial)) in fates.iter_mut().zip(TRIALS) {
            for seed in 1..=SEEDS {
                *fate = (*fate).max(tried(meta, trial, seed)?);
            }
        }
        rows.push(Row { algorithm: meta.name, fates });
    }
    Ok(rows)
}

fn tried(meta: &Meta, trial: Trial, seed: u64) -> Result<Fate, BadInput> {
    let given = MutexSpec { cs: Span::units(2), ..MutexSpec::default() };
    let mut spec = Spec::new(meta.name, NODES).given(given);
    (spec.seed, spec.over, spec.until) = (seed, trial.over.over(), Some(Time::ZERO + UNTIL));
    spec.latency = read("--latency", "uniform:0.5..1.5")?;
    match trial.fault {
        Fault::Loss => spec.loss = LOSS,
        Fault::Rough => {
            (spec.loss, spec.duplicate, spec.reorder) = (ROUGH, ROUGH, ROUGH);
            if meta.options.iter().any(|option| option.name == "delay-max") {
                spec.options.insert("delay-max".to_owned(), DELAY_MAX.to_owned());
            }
        }
        // At another moment with every seed.
        Fault::First => spec.crashes = vec![NodeAt::new(1, Time(Span::UNIT.0 * seed / 2))],
        Fault::Holder => spec.crashes = moment(&spec, seed)?.map_or(vec![], |m| vec![m.holder()]),
        Fault::Waiter => spec.crashes = moment(&spec, seed)?.map_or(vec![], |m| m.waiter()),
    }
    let done = simulate(&spec, Watch::default())?;
    let broken = |property| violated(&done.report, property);
    Ok(if broken("safety") || broken("fencing") {
        Fate::Broken
    } else if broken("liveness") {
        Fate::Waits
    } else {
        Fate::Fine
    })
}

/// A moment in a run at which somebody is inside.
struct Moment {
    at: Time,
    inside: NodeId,
    waiting: BTreeSet<NodeId>,
}

impl Moment {
    fn holder(&self) -> NodeAt {
        NodeAt::new(self.inside.number(), self.at)
    }

    fn waiter(&self) -> Vec<NodeAt> {
        self.waiting.iter().take(1).map(|node| NodeAt::new(node.number(), self.at)).collect()
    }
}

/// Shortly after an entry of this run, an earlier or later one by the seed, while others wait. Up
/// to there a run with a crash goes in the same way. There is such a moment, unless the run
/// deadlocks: a third of all entries come later, of more than one node, and whoever has left wishes
/// again at once.
fn moment(spec: &Spec, seed: u64) -> Result<Option<Moment>, BadInput> {
    let nth = 1 + seed % (2 * NODES as u64);
    let entries = Entries { left: nth, waiting: BTreeSet::new(), found: None };
    Ok(observe::<Mutex, _>(spec, entries)?.found)
}

/// Waits for an entry.
struct Entries {
    /// How many there are before it, and it.
    left: u64,
    waiting: BTreeSet<NodeId>,
    found: Option<Moment>,
}

impl Observer<Command, Event> for Entries {
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        match fact {
            Fact::Command(Command::Acquire) => {
                self.waiting.insert(at);
            }
            Fact::Event(Event::Granted(_) | Event::Entered(..) | Event::Fenced(_)) => {
                self.waiting.remove(&at);
                self.left = self.left.saturating_sub(1);
                if self.left == 0 && self.found.is_none() {
                    let soon = now + Span(Span::UNIT.0 / 2);
                    let waiting = self.waiting.clone();
                    self.found = Some(Moment { at: soon, inside: at, waiting });
                }
            }
            Fact::Command(Command::Release)
            | Fact::Event(Event::Lost)
            | Fact::Crashed
            | Fact::Recovered => {}
        }
    }
}

/// The table as a document.
#[must_use]
pub fn markdown(rows: &[Row]) -> String {
    let mut text = format!(
        "# What faults do to mutual exclusion\n\n\
         <!-- Generated by `cargo xtask docs` from `quorate compare faults`. -->\n\n\
         As tried: {NODES} nodes that always want to enter, three times each, message delays from a \
         half to one\nand a half units, {SEEDS} seeds for each cell. The worst that happened counts:\n\n\
         - **ok**: all wishes of the living were granted, one after the other;\n\
         - **waits for ever**: some wish was never granted;\n\
         - **two inside**: at the same time.\n\n\
         Loss is {} % of all messages. Rough is {} % lost, {2} % doubled and {2} % reordered. Whoever is \
         inside, or\nwaits, crashes shortly after an entry, another one with each seed; node 1 crashes at \
         a different moment\nwith each. *Bare* is the algorithm as published, over the network as it is; \
         *reliable* is\n`--over reliable`; *views* is `--over views`, where also each entry got a larger \
         token than all before.\n\n",
        LOSS * 100.0,
        ROUGH * 100.0,
        ROUGH * 100.0,
    );
    let headings = TRIALS.map(|(_, heading, _)| heading).join(" | ");
    let _ = writeln!(text, "| algorithm | {headings} |\n|{}", "---|".repeat(TRIALS.len() + 1));
    for Row { algorithm, fates } in rows {
        let _ = writeln!(text, "| `{algorithm}` | {} |", fates.map(Fate::word).join(" | "));
    }
    let _ = write!(
        text,
        "\n`{DEADLOCKS}` is kept as published first, and deadlocks without any fault.\n"
    );
    text
}
