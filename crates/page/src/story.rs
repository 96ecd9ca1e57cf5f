//! A trace as columns: what a page draws.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use quorate_core::trace::{Happening, Outcome, Record};
use quorate_core::{Liveness, NodeId, Time};
use quorate_lab::diagram::{Fate, Phase, Picture, brief};
use quorate_lab::trace_file::TraceFile;
use quorate_lab::{Spec, topology};
use serde_json::{Value, json};

use crate::Answer;

/// The most links that are listed; a complete graph needs no list.
const LINKS_MAX: usize = 20_000;

/// Texts, each kept once.
#[derive(Default)]
struct Texts {
    places: HashMap<String, i32>,
    all: Vec<String>,
}

impl Texts {
    fn place(&mut self, text: String) -> i32 {
        let next = i32::try_from(self.all.len()).unwrap_or(i32::MAX);
        match self.places.entry(text) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.all.push(new.key().clone());
                *new.insert(next)
            }
        }
    }
}

/// The columns of a trace, and what else its pictures need.
pub(crate) fn story(trace: &TraceFile) -> Answer {
    let picture = Picture::of(&trace.header, &trace.records);
    let mut answer = Answer::default();
    let mut texts = Texts::default();
    texts.place(String::new());
    arrows(&picture, &mut texts, &mut answer);
    records(&trace.records, &picture, &mut texts, &mut answer);
    bars(&picture, &mut texts, &mut answer);
    answer.say("texts", texts.all);
    rest(trace, &picture, &mut answer);
    answer
}

fn index(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn place(number: Option<usize>) -> i32 {
    number.map_or(-1, index)
}

fn time(at: Option<Time>) -> f64 {
    at.map_or(f64::NAN, Time::in_units)
}

fn arrows(picture: &Picture, texts: &mut Texts, answer: &mut Answer) {
    let all = || picture.arrows.iter();
    answer.wholes("a_from", all().map(|arrow| index(arrow.from.index())));
    answer.wholes("a_to", all().map(|arrow| index(arrow.to.index())));
    answer.wholes("a_id", all().map(|arrow| i32::try_from(arrow.id).unwrap_or(i32::MAX)));
    answer.smalls("a_kind", all().map(|arrow| u8::try_from(arrow.kind).unwrap_or(u8::MAX)));
    answer.reals("a_sent", all().map(|arrow| time(arrow.sent)));
    answer.wholes("a_sent_by", all().map(|arrow| place(arrow.sent_by)));
    let end = |fate| match fate {
        Fate::Received(at) | Fate::Lost(at) => at.in_units(),
        Fate::InFlight => f64::NAN,
    };
    answer.reals("a_end", all().map(|arrow| end(arrow.fate)));
    answer.wholes("a_end_by", all().map(|arrow| place(arrow.ended_by)));
    let fate = |fate| match fate {
        Fate::Received(_) => 0,
        Fate::Lost(_) => 1,
        Fate::InFlight => 2,
    };
    answer.smalls("a_fate", all().map(|arrow| fate(arrow.fate)));
    answer.wholes("a_copy", all().map(|arrow| place(arrow.copy_of)));
    // A multicast has one text for all of its receivers.
    let mut known: HashMap<(usize, &str), (i32, i32)> = HashMap::new();
    let written: Vec<(i32, i32)> = all()
        .map(|arrow| {
            *known.entry((arrow.kind, &arrow.text)).or_insert_with(|| {
                let full = texts.place(picture.written(arrow));
                (full, texts.place(picture.written_short(arrow)))
            })
        })
        .collect();
    answer.wholes("a_text", written.iter().map(|(full, _)| *full));
    answer.wholes("a_short", written.iter().map(|(_, short)| *short));
}

fn records(records: &[Record], picture: &Picture, texts: &mut Texts, answer: &mut Answer) {
    let all = || records.iter();
    answer.reals("r_at", all().map(|record| record.at.in_units()));
    answer.wholes("r_node", all().map(|record| index(record.node.index())));
    answer.smalls("r_what", all().map(|record| what(&record.input)));
    let mut ends = vec![-1; records.len()];
    for (number, arrow) in picture.arrows.iter().enumerate() {
        if let Some(end) = arrow.ended_by.and_then(|record| ends.get_mut(record)) {
            *end = index(number);
        }
    }
    answer.wholes("r_arrow", ends.into_iter());
    let words: Vec<i32> = all().map(|record| texts.place(words(&record.input))).collect();
    answer.wholes("r_words", words.into_iter());
    let steps = |record: &Record| {
        let names = record.steps.iter().map(|step| step.name.to_string());
        names.collect::<Vec<_>>().join("\u{1f}")
    };
    let steps: Vec<i32> = all().map(|record| texts.place(steps(record))).collect();
    answer.wholes("r_steps", steps.into_iter());
    let told = |record: &Record| {
        let told = record.effects.iter().filter_map(|effect| match effect {
            Outcome::Emit(event) => Some(brief(event)),
            _ => None,
        });
        told.collect::<Vec<_>>().join("\u{1f}")
    };
    let told: Vec<i32> = all().map(|record| texts.place(told(record))).collect();
    answer.wholes("r_told", told.into_iter());
}

/// What came in, as a number.
const fn what(input: &Happening) -> u8 {
    match input {
        Happening::Start => 0,
        Happening::Recover => 1,
        Happening::Crash => 2,
        Happening::Pause => 3,
        Happening::Resume => 4,
        Happening::Command(_) => 5,
        Happening::Refused(..) => 6,
        Happening::Receive(_) => 7,
        Happening::Lose(_) => 8,
        Happening::Timer(_) => 9,
        Happening::Liveness(..) => 10,
        Happening::Settle => 11,
    }
}

/// What came in, as far as its number does not say it; messages are written at their arrows.
fn words(input: &Happening) -> String {
    match input {
        Happening::Command(command) => brief(command),
        Happening::Refused(command, why) => format!("{}: {why}", brief(command)),
        Happening::Timer(timer) => timer.clone(),
        Happening::Liveness(peer, Liveness::Up) => format!("{peer} is up"),
        Happening::Liveness(peer, Liveness::Down) => format!("{peer} is down"),
        _ => String::new(),
    }
}

fn bars(picture: &Picture, texts: &mut Texts, answer: &mut Answer) {
    let all = || picture.bars.iter();
    let phase = |phase| match phase {
        Phase::Wanting => 0,
        Phase::Inside => 1,
        Phase::Leading => 2,
        Phase::Member => 3,
        Phase::Still => 4,
    };
    answer.wholes("b_node", all().map(|bar| index(bar.node.index())));
    answer.smalls("b_phase", all().map(|bar| phase(bar.phase)));
    answer.reals("b_from", all().map(|bar| bar.from.in_units()));
    answer.reals("b_until", all().map(|bar| bar.until.in_units()));
    answer.wholes("b_by", all().map(|bar| place(bar.begun_by)));
    answer.wholes("b_end_by", all().map(|bar| place(bar.ended_by)));
    let words: Vec<i32> = all().map(|bar| texts.place(brief(&bar.text))).collect();
    answer.wholes("b_text", words.into_iter());
    answer.wholes("b_view", all().map(|bar| bar.view.map_or(-1, |view| index(view.0 as usize))));
}

fn numbers(nodes: &[NodeId]) -> Vec<usize> {
    nodes.iter().map(|node| node.index()).collect()
}

fn rest(trace: &TraceFile, picture: &Picture, answer: &mut Answer) {
    let header = &trace.header;
    answer.say("engine", header.engine.as_str());
    answer.say("algorithm", header.algorithm.as_str());
    answer.say("nodes", picture.nodes);
    answer.say("start", picture.start.in_units());
    answer.say("end", picture.end.in_units());
    answer.say("kinds", picture.kinds.clone());
    answer.say("summary", picture.summary());
    let setting = &picture.setting;
    answer.say("in_steps", setting.in_steps);
    answer.say("names", setting.names.clone());
    answer.say("members", numbers(&setting.members));
    let splits = setting.splits.iter().map(|split| {
        let sides: Vec<_> = split.sides.iter().map(|side| numbers(side)).collect();
        let until = split.until.map(Time::in_units);
        json!({ "sides": sides, "from": split.from.in_units(), "until": until, "text": split.text })
    });
    answer.say("splits", splits.collect::<Vec<_>>());
    let outages = picture.outages.iter().map(|it| {
        let (from, until) = (it.from.in_units(), it.until.map(Time::in_units));
        json!({ "node": it.node.index(), "from": from, "until": until, "by": it.begun_by,
                "end_by": it.ended_by })
    });
    answer.say("outages", outages.collect::<Vec<_>>());
    let entries = picture.entries.iter().map(|it| {
        json!({ "view": it.view, "node": it.node.index(), "at": it.at.in_units(),
                "members": numbers(&it.members), "by": it.by })
    });
    answer.say("entries", entries.collect::<Vec<_>>());
    let suspicions = picture.suspicions.iter().map(|it| {
        let (from, until) = (it.from.in_units(), it.until.map(Time::in_units));
        json!({ "node": it.node.index(), "peer": it.peer.index(), "from": from, "until": until,
                "by": it.begun_by, "end_by": it.ended_by })
    });
    answer.say("suspicions", suspicions.collect::<Vec<_>>());
    let broken = trace.records.iter().enumerate().filter_map(|(number, record)| {
        let (property, text) = record.violation.as_ref()?;
        Some(json!({ "record": number, "property": property, "text": text }))
    });
    answer.say("broken", broken.collect::<Vec<_>>());
    links(trace, answer);
}

/// Who is linked with whom, if the run is one of ours; otherwise, those who sent something to each other.
fn links(trace: &TraceFile, answer: &mut Answer) {
    let nodes = trace.header.nodes;
    let spec: Option<Spec> = serde_json::from_str(&trace.header.spec).ok();
    let laid = spec.as_ref().and_then(|spec| topology(spec).ok());
    let Some(laid) = laid.filter(|laid| laid.count() == nodes) else {
        answer.say("shape", "unknown");
        return;
    };
    let shape = if laid.is_complete() {
        "complete"
    } else if laid.is_ring() || laid.is_two_way_ring() {
        "ring"
    } else if laid.is_tree() {
        "tree"
    } else {
        "graph"
    };
    let named = spec.as_ref().and_then(|spec| spec.topology.as_ref());
    answer
        .say("topology", named.map(|named| named.to_string().chars().take(40).collect::<String>()));
    answer.say("shape", shape);
    answer.say("two_way", laid.is_two_way());
    if !laid.is_complete() && laid.links() <= LINKS_MAX {
        let of = |a: NodeId| laid.neighbours(a).iter().map(move |b| json!([a.index(), b.index()]));
        let all: Vec<Value> = NodeId::first(nodes).flat_map(of).collect();
        answer.say("links", all);
    }
}
