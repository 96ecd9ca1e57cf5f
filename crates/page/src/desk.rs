//! Questions and answers: what a page can ask for.

use std::collections::HashMap;
use std::fmt::Display;

use quorate_algorithms::flaw::uproot;
use quorate_check::{Plan, Progress};
use quorate_core::Verdict;
use quorate_lab::diagram::{Picture, Style, brief};
use quorate_lab::hand::{Action, Move, by_hand, moves_of};
use quorate_lab::trace_file::{BadTrace, TraceFile};
use quorate_lab::typed::Word;
use quorate_lab::verify::{Finding, Verified, verify};
use quorate_lab::{
    BadInput, EVENTS_MAX, Spec, Watch, estimate, exhaust, import, read_time, shiviz, simulate,
    states,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::story::story;
use crate::{Answer, catalogue, measure, quorums};

/// So many steps of a run are kept to be drawn; of a longer run, the first ones.
const RECORDS_MAX: usize = 250_000;
/// A page has no room for more nodes.
const NODES_MAX: usize = 1_000_000;
/// A check gives up beyond so many states if nothing is said: a page has to answer.
const STATES_MAX: u64 = 3_000_000;
/// The most runs that are remembered.
const SLOTS_MAX: usize = 16;

/// Where a page asks. It remembers runs by the names that the page gives them.
#[derive(Default)]
pub struct Desk {
    kept: HashMap<String, TraceFile>,
}

/// A question.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Question {
    /// What there is.
    Catalogue,
    /// One algorithm in the words of its file.
    Explain { algorithm: String },
    /// A simulation.
    Run(Work),
    /// Every interleaving.
    Check(Work),
    /// A run whose steps somebody picks.
    Hand { slot: String, algorithm: String, words: Vec<Word>, moves: Vec<Move> },
    /// A trace from elsewhere.
    Open { slot: String, text: String },
    /// One record of a run.
    Record { slot: String, record: usize },
    /// The states of all nodes after so many records of a run.
    States { slot: String, records: usize },
    /// A run as a file.
    Export { slot: String, form: Form, title: String, from: Option<String>, to: Option<String> },
    /// All algorithms of a family side by side.
    Compare { family: String, sizes: Vec<usize>, losses: Vec<f64>, topology: Option<String> },
    /// One algorithm at all values of an argument.
    Sweep { algorithm: String, words: Vec<Word>, axis: String, values: Vec<String>, runs: u32 },
    /// A quorum system.
    Quorum { kind: String, nodes: Option<usize>, p: f64 },
    /// How available a quorum system is.
    Availability { kind: String, nodes: Option<usize> },
    /// The usual quorum systems side by side.
    Quorums { nodes: usize, p: f64 },
}

/// What is to be done, and where the trace of it is kept.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Work {
    slot: String,
    algorithm: String,
    words: Vec<Word>,
}

/// The form of a file.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    Trace,
    Shiviz,
    Svg,
}

/// Why there is no other answer: an argument, and what is wrong with it.
struct Refused(BadInput);

impl From<BadInput> for Refused {
    fn from(bad: BadInput) -> Self {
        Self(bad)
    }
}

impl From<BadTrace> for Refused {
    fn from(bad: BadTrace) -> Self {
        Self(BadInput::new("TRACE", bad))
    }
}

fn refused(argument: &str, reason: impl Display) -> Refused {
    Refused(BadInput::new(argument, reason))
}

impl Desk {
    /// Answers a question in JSON. `told` hears, in JSON, how far long work is.
    pub fn ask(&mut self, question: &str, told: &mut dyn FnMut(&str)) -> Answer {
        let answer = match serde_json::from_str(question) {
            Ok(question) => self.answer(question, told),
            Err(error) => Err(refused("question", error)),
        };
        answer.unwrap_or_else(|Refused(BadInput { argument, reason })| {
            let argument = argument.trim_start_matches('-');
            let mut answer = Answer::default();
            answer.say("refused", json!({ "argument": argument, "reason": reason }));
            answer
        })
    }

    fn answer(
        &mut self,
        question: Question,
        told: &mut dyn FnMut(&str),
    ) -> Result<Answer, Refused> {
        uproot();
        Ok(match question {
            Question::Catalogue => Answer::new(catalogue::all()),
            Question::Explain { algorithm } => Answer::new(catalogue::explain(&algorithm)?),
            Question::Run(work) => self.run(work, told)?,
            Question::Check(work) => self.check(work, told)?,
            Question::Hand { slot, algorithm, words, moves } => {
                self.hand(slot, &algorithm, &words, &moves)?
            }
            Question::Open { slot, text } => self.open(slot, &text)?,
            Question::Record { slot, record } => self.record(&slot, record)?,
            Question::States { slot, records } => self.states(&slot, records)?,
            Question::Export { slot, form, title, from, to } => {
                self.export(&slot, &form, title, [from, to])?
            }
            Question::Compare { family, sizes, losses, topology } => {
                Answer::new(measure::compare(&family, &sizes, &losses, topology.as_deref(), told)?)
            }
            Question::Sweep { algorithm, words, axis, values, runs } => {
                Answer::new(measure::vary(&algorithm, &words, &axis, &values, runs, told)?)
            }
            Question::Quorum { kind, nodes, p } => Answer::new(quorums::examine(&kind, nodes, p)?),
            Question::Availability { kind, nodes } => {
                Answer::new(quorums::availability(&kind, nodes)?)
            }
            Question::Quorums { nodes, p } => Answer::new(quorums::compare(nodes, p)?),
        })
    }

    fn run(&mut self, work: Work, told: &mut dyn FnMut(&str)) -> Result<Answer, Refused> {
        let spec = Spec::typed(&work.algorithm, &work.words)?;
        if spec.nodes > NODES_MAX {
            let reason = format!("a page simulates at most {NODES_MAX} nodes");
            return Err(refused("--nodes", reason));
        }
        spec.plant()?;
        let events = estimate(&spec).unwrap_or(0.0);
        if events > EVENTS_MAX {
            let reason = format!("this would have about {events:.0e} events; take less of it");
            return Err(refused("--nodes", reason));
        }
        let (mut records, mut left_off) = (Vec::new(), 0u64);
        let mut record = |record| match records.len() < RECORDS_MAX {
            true => records.push(record),
            false => left_off += 1,
        };
        let mut progress = |events: u64, now: quorate_core::Time| {
            told(&json!({ "events": events, "time": now.in_units() }).to_string());
            true
        };
        let watch = Watch { record: Some(&mut record), progress: Some(&mut progress) };
        let done = simulate(&spec, watch)?;
        let trace = TraceFile { header: spec.header("sim"), records };
        let mut answer = self.keep(work.slot, trace);
        answer.say("report", Value::Object(done.json(&spec)));
        answer.say("holds", done.holds);
        answer.say("left_off", left_off);
        answer.say("latency", spec.latency().mean().in_units());
        let verdicts = done.report.verdicts.iter().map(|(property, verdict)| {
            let (at, text) = match verdict {
                Verdict::Violated(at, violation) => (Some(at.in_units()), violation.text.as_str()),
                _ => (None, ""),
            };
            json!({ "property": property, "word": verdict.word(), "at": at, "text": text })
        });
        answer.say("verdicts", verdicts.collect::<Vec<_>>());
        Ok(answer)
    }

    fn check(&mut self, work: Work, told: &mut dyn FnMut(&str)) -> Result<Answer, Refused> {
        let (spec, plan) = Spec::typed_check(&work.algorithm, &work.words)?;
        spec.plant()?;
        let limited = work.words.iter().any(|(name, _)| name == "max-states");
        let states_max = if limited { plan.states_max } else { STATES_MAX };
        let plan = Plan { threads: 1, states_max, ..plan };
        let done = exhaust(&spec, &plan, &mut |progress| {
            let Progress { states, depth, frontier } = progress;
            let text = json!({ "states": states, "depth": depth, "frontier": frontier });
            told(&text.to_string());
            true
        })?;
        let report = Value::Object(done.json(&spec));
        let mut answer = match done.trace {
            Some(trace) => {
                let moves = moves_of(&trace.records);
                let mut answer = self.keep(work.slot, trace);
                answer.say("moves", json!(moves));
                answer
            }
            None => Answer::default(),
        };
        answer.say("report", report);
        Ok(answer)
    }

    fn hand(
        &mut self,
        slot: String,
        algorithm: &str,
        words: &[Word],
        moves: &[Move],
    ) -> Result<Answer, Refused> {
        let (spec, plan) = Spec::typed_check(algorithm, words)?;
        spec.plant()?;
        let handed = by_hand(&spec, &plan, moves)?;
        let next: Vec<Value> = handed.next.iter().map(choice).collect();
        let trace = TraceFile { header: spec.header("check"), records: handed.records };
        let mut answer = self.keep(slot, trace);
        answer.say("next", next);
        answer.say("after", json!(handed.after));
        answer.say("over", handed.is_over);
        let broken = handed.broken.map(|it| json!({ "property": it.property, "text": it.text }));
        answer.say("violated", broken);
        Ok(answer)
    }

    fn open(&mut self, slot: String, text: &str) -> Result<Answer, Refused> {
        let start = text.trim_start();
        let trace = if start.starts_with("{\"quorate\"") {
            TraceFile::read(text.as_bytes())?
        } else if start.starts_with("{\"resourceSpans\"") || start.starts_with("{\"traceId\"") {
            import::otel(text)?
        } else if start.starts_with('{') || start.starts_with('[') {
            import::jepsen(text)?
        } else {
            shiviz::import(text)?
        };
        let judged = verify(&trace);
        let mut answer = self.keep(slot, trace);
        match judged {
            Ok(verified) => answer.say("verified", judgement(&verified)),
            Err(bad) => answer.say("unjudged", bad.to_string()),
        }
        Ok(answer)
    }

    fn record(&self, slot: &str, record: usize) -> Result<Answer, Refused> {
        let trace = self.kept(slot)?;
        let record = trace.records.get(record);
        let record = record.ok_or_else(|| refused("record", "there is no such record"))?;
        let json: Value = serde_json::from_str(&record.to_string()).unwrap_or_default();
        let mut answer = Answer::default();
        answer.say("record", json);
        Ok(answer)
    }

    fn states(&self, slot: &str, records: usize) -> Result<Answer, Refused> {
        let trace = self.kept(slot)?;
        if let Ok(spec) = serde_json::from_str::<Spec>(&trace.header.spec) {
            spec.plant()?;
        }
        let mut answer = Answer::default();
        answer.say("states", json!(states(trace, records)?));
        Ok(answer)
    }

    fn export(
        &self,
        slot: &str,
        form: &Form,
        title: String,
        window: [Option<String>; 2],
    ) -> Result<Answer, Refused> {
        let trace = self.kept(slot)?;
        let text = match form {
            Form::Trace => {
                let mut bytes = Vec::new();
                trace.write(&mut bytes).map_err(|error| refused("TRACE", error))?;
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Form::Shiviz => shiviz::log(trace.header.nodes, &trace.records)
                .ok_or_else(|| refused("TRACE", "its clocks would be too long"))?,
            Form::Svg => {
                let time = |text: Option<String>| {
                    let span = text.map(|text| read_time("--from", &text)).transpose()?;
                    Ok::<_, BadInput>(span.map(|span| quorate_core::Time::ZERO + span))
                };
                let [from, to] = window;
                let picture = Picture::of(&trace.header, &trace.records);
                let picture = picture.between(time(from)?, time(to)?);
                let style = Style { title, ..Style::default() };
                picture.svg(&style).map_err(|large| refused("--svg", large))?
            }
        };
        let mut answer = Answer::default();
        answer.say("text", text);
        Ok(answer)
    }

    fn kept(&self, slot: &str) -> Result<&TraceFile, Refused> {
        self.kept.get(slot).ok_or_else(|| refused("slot", format!("there is no run {slot}")))
    }

    /// Remembers a run, and tells what is drawn of it.
    fn keep(&mut self, slot: String, trace: TraceFile) -> Answer {
        let answer = story(&trace);
        if self.kept.len() >= SLOTS_MAX && !self.kept.contains_key(&slot) {
            self.kept.clear();
        }
        self.kept.insert(slot, trace);
        answer
    }
}

/// Something that can happen next.
fn choice((action, words): &(Action, String)) -> Value {
    let text = Move { action: *action, choices: Vec::new() }.to_string();
    let place = |node: quorate_core::NodeId| node.index();
    let mut json = match *action {
        Action::Command(node) => json!({ "what": "command", "node": place(node) }),
        Action::Timer(node, _) => json!({ "what": "timer", "node": place(node) }),
        Action::Word(node, peer) => {
            json!({ "what": "word", "node": place(node), "peer": place(peer) })
        }
        Action::Crash(node) => json!({ "what": "crash", "node": place(node) }),
        Action::Recover(node) => json!({ "what": "recover", "node": place(node) }),
        Action::Deliver(from, id, to) => message("deliver", place(from), id, place(to)),
        Action::Lose(from, id, to) => message("lose", place(from), id, place(to)),
        Action::Repeat(from, id, to) => message("repeat", place(from), id, place(to)),
    };
    json["move"] = json!(text);
    json["words"] = json!(brief(words));
    json["fault"] = json!(action.is_fault());
    json
}

fn message(what: &str, from: usize, id: u64, to: usize) -> Value {
    json!({ "what": what, "from": from, "id": id, "node": to })
}

fn judgement(verified: &Verified) -> Value {
    let verdicts = verified.verdicts.iter().map(|(property, verdict)| {
        let at = match verdict {
            Verdict::Violated(at, _) => Some(at.in_units()),
            _ => None,
        };
        let found = verified.findings.iter().find(|finding| finding.property == *property);
        let text = found.map_or("", |finding| finding.text.as_str());
        json!({ "property": property, "word": verdict.word(), "at": at, "text": text })
    });
    let findings = verified.findings.iter().map(|finding| {
        let Finding { property, text, line, evidence, .. } = finding;
        let evidence = evidence.iter().map(|it| {
            json!({ "line": it.line, "at": it.at.in_units(), "node": it.node.index(),
                    "text": it.text })
        });
        // Line 1 is the header, so line 2 is record 0.
        json!({ "property": property, "text": text, "record": line.saturating_sub(2),
                "evidence": evidence.collect::<Vec<_>>() })
    });
    let mut json = Map::new();
    json.insert("family".into(), json!(verified.family));
    json.insert("events".into(), json!(verified.events));
    json.insert("holds".into(), json!(verified.holds()));
    json.insert("verdicts".into(), verdicts.collect());
    json.insert("findings".into(), findings.collect());
    Value::Object(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(desk: &mut Desk, question: &Value) -> Map<String, Value> {
        desk.ask(&question.to_string(), &mut |_| {}).json
    }

    #[test]
    fn a_run_is_answered_and_remembered() {
        let mut desk = Desk::default();
        let words = [["nodes", "3"], ["requests", "1"]];
        let question =
            json!({ "do": "run", "slot": "a", "algorithm": "mutex/central", "words": words });
        let answer = ask(&mut desk, &question);
        assert_eq!(answer["report"]["entries"], 3);
        assert_eq!((&answer["nodes"], &answer["shape"]), (&json!(3), &json!("complete")));
        let record = ask(&mut desk, &json!({ "do": "record", "slot": "a", "record": 0 }));
        assert_eq!(record["record"]["in"], "start");
        let states = ask(&mut desk, &json!({ "do": "states", "slot": "a", "records": 5 }));
        let states = states["states"].as_array().unwrap();
        assert!(states.len() == 3 && states[0].as_str().unwrap().contains("phase"), "{states:?}");
        let export = |form: &str| {
            let mut desk = Desk::default();
            ask(&mut desk, &question);
            let question = json!({ "do": "export", "slot": "a", "form": form, "title": "t",
                                   "from": null, "to": null });
            ask(&mut desk, &question)["text"].as_str().unwrap().to_owned()
        };
        assert!(export("svg").starts_with("<svg"));
        assert!(export("shiviz").starts_with("n1 {"));
        let again = json!({ "do": "open", "slot": "b", "text": export("trace") });
        let opened = ask(&mut desk, &again);
        assert_eq!(opened["verified"]["holds"], true);
        assert_eq!(opened["summary"], answer["summary"]);
    }

    #[test]
    fn a_mistake_is_planted_for_one_question_only() {
        let mut desk = Desk::default();
        let check = |desk: &mut Desk, words: Value| {
            let question = json!({ "do": "check", "slot": "a", "algorithm": "mutex/central",
                                   "words": words });
            ask(desk, &question)
        };
        let wrong = check(&mut desk, json!([["nodes", "2"], ["flaw", "IgnoreHolder"]]));
        assert_eq!(wrong["report"]["result"], "violated");
        let right = check(&mut desk, json!([["nodes", "2"]]));
        assert_eq!(right["report"]["result"], "holds");
        // The way that was found can be taken by hand.
        let words = json!([["nodes", "2"], ["flaw", "IgnoreHolder"]]);
        let question = json!({ "do": "hand", "slot": "b", "algorithm": "mutex/central",
                               "words": words, "moves": wrong["moves"] });
        let handed = ask(&mut desk, &question);
        assert_eq!(handed["violated"]["property"], "safety");
    }

    #[test]
    fn whatever_makes_no_sense_is_refused_in_a_sentence() {
        let mut desk = Desk::default();
        let mut refused = |question: &Value| {
            let answer = ask(&mut desk, question);
            let Value::Object(refused) = &answer["refused"] else { panic!("{answer:?}") };
            (refused["argument"].as_str().unwrap().to_owned(), refused["reason"].clone())
        };
        assert_eq!(refused(&json!({ "do": "dance" })).0, "question");
        assert_eq!(refused(&json!(7)).0, "question");
        let run = |algorithm: &str, words: Value| json!({ "do": "run", "slot": "a", "algorithm": algorithm, "words": words });
        assert_eq!(refused(&run("mutex/nothing", json!([]))).0, "ALGORITHM");
        assert_eq!(refused(&run("mutex/central", json!([["nodes", "0"]]))).0, "nodes");
        assert_eq!(refused(&run("mutex/central", json!([["nodes", "20000000"]]))).0, "nodes");
        assert_eq!(refused(&json!({ "do": "states", "slot": "z", "records": 1 })).0, "slot");
        let text = "{\"quorate\":1,\"engine\":\"x\"}";
        assert_eq!(refused(&json!({ "do": "open", "slot": "a", "text": text })).0, "TRACE");
        let quorum = json!({ "do": "quorum", "kind": "gird", "nodes": 4, "p": 0.1 });
        assert_eq!(refused(&quorum).0, "KIND");
    }

    #[test]
    fn quorums_and_comparisons_are_answered() {
        let mut desk = Desk::default();
        let grid = ask(&mut desk, &json!({ "do": "quorum", "kind": "grid", "nodes": 9, "p": 0.1 }));
        assert_eq!(grid["quorums"].as_array().unwrap().len(), 9);
        assert_eq!(grid["places"].as_array().unwrap().len(), 9);
        let curve =
            ask(&mut desk, &json!({ "do": "availability", "kind": "majority", "nodes": 5 }));
        let points = curve["points"].as_array().unwrap();
        assert_eq!((&points[0], points.len()), (&json!([0.0, 1.0]), 21));
        let question = json!({ "do": "compare", "family": "mutex", "sizes": [4], "losses": [],
                               "topology": null });
        let rows = ask(&mut desk, &question)["rows"].as_array().unwrap().len();
        assert!(rows >= 15, "{rows}");
        let question = json!({ "do": "sweep", "algorithm": "mutex/central", "words": [],
                               "axis": "nodes", "values": ["3", "5"], "runs": 2 });
        assert_eq!(ask(&mut desk, &question)["points"].as_array().unwrap().len(), 2);
    }
}
