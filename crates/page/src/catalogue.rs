//! What there is, and what is said of it.

use quorate_core::{Channels, Meta, OptionSpec, Shape, Timing};
use quorate_lab::{BadInput, Over, arguments, catalogue, families, flaws, meta};
use serde_json::{Map, Value, json};

/// A step of an algorithm: the file, its name in traces, the rule, the code.
type StepSource = (&'static str, &'static str, &'static str, &'static str);

/// All steps of all sources.
const STEPS: &[StepSource] = include!(concat!(env!("OUT_DIR"), "/steps.rs"));

/// All algorithms and what can be said to them.
pub(crate) fn all() -> Map<String, Value> {
    let mut json = Map::new();
    json.insert("version".into(), json!(env!("CARGO_PKG_VERSION")));
    json.insert("families".into(), families().collect());
    json.insert("algorithms".into(), catalogue().map(summary).collect());
    let arguments = arguments().map(|(family, about)| {
        json!({ "family": family, "name": about.name, "value": about.value, "help": about.help,
                "simulated": about.simulated, "repeated": about.repeated })
    });
    json.insert("arguments".into(), arguments.collect());
    json
}

fn summary(meta: &'static Meta) -> Value {
    let options = meta.options.iter().map(|&OptionSpec { name, values, default, help }| {
        json!({ "name": name, "values": values, "default": default, "help": help })
    });
    let costs = meta.costs.iter().map(|cost| json!({ "what": cost.what, "formula": cost.formula }));
    let bare = Over::BARE;
    let flaws = flaws(meta.name, &bare);
    let flaws = flaws.map(|flaw| json!({ "name": flaw.name, "answer": flaw.answer }));
    json!({
        "name": meta.name,
        "summary": meta.summary,
        "shape": match meta.shape {
            Shape::Complete => "complete",
            Shape::Ring => "ring",
            Shape::TwoWayRing => "two-way-ring",
            Shape::Tree => "tree",
            Shape::Graph => "graph",
        },
        "needs": meta.shape.words(),
        "fifo": meta.channels == Channels::Fifo,
        "timing": match meta.timing {
            Timing::Asynchronous => "asynchronous",
            Timing::Synchronous => "synchronous",
            Timing::Timed => "timed",
        },
        "survives": meta.survives,
        "kinds": meta.kinds,
        "options": options.collect::<Vec<_>>(),
        "costs": costs.collect::<Vec<_>>(),
        "flaws": flaws.collect::<Vec<_>>(),
        "authors": meta.paper.authors,
        "title": meta.paper.title,
        "venue": meta.paper.venue,
        "year": meta.paper.year,
        "doi": meta.paper.doi,
    })
}

/// An algorithm in the words of its file, and the rule behind each of its steps.
///
/// # Errors
/// If there is no such algorithm.
pub(crate) fn explain(name: &str) -> Result<Map<String, Value>, BadInput> {
    let meta = meta(name)?;
    let mut json = Map::new();
    json.insert("name".into(), json!(meta.name));
    json.insert("text".into(), json!(meta.explanation()));
    let mut rules = Map::new();
    let mut ranked: Vec<_> =
        STEPS.iter().filter_map(|step| Some((rank(name, step.0)?, step))).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    for (_, (file, step, rule, code)) in ranked {
        // The same step may be taken in several places; the first one that says what it is speaks.
        let known = rules.get(*step).is_some_and(|known: &Value| known["rule"] != "");
        if !known {
            let rule = json!({ "rule": rule, "code": code, "file": file });
            rules.insert((*step).to_owned(), rule);
        }
    }
    json.insert("rules".into(), Value::Object(rules));
    Ok(json)
}

/// How close a file is to an algorithm: its own, one of its family's parts, one of the layers, another
/// algorithm of the family; none if it is another algorithm altogether.
fn rank(algorithm: &str, file: &str) -> Option<u8> {
    let own = algorithm.replace('-', "_");
    let stem = file.trim_end_matches(".rs");
    if stem == own || stem.starts_with(&format!("{own}/")) {
        return Some(0);
    }
    let family = own.split('/').next().unwrap_or_default();
    let other = catalogue().map(|meta| meta.name.replace('-', "_"));
    let is_other = |other: String| stem == other || stem.starts_with(&format!("{other}/"));
    if other.into_iter().any(is_other) {
        // Detectors run beside algorithms of other families, and some algorithms are made of another.
        let first = stem.split('/').next()?;
        return [("detector", 3), (family, 4)].into_iter().find(|it| it.0 == first).map(|it| it.1);
    }
    match stem.split('/').next() {
        Some(first) if first == family => Some(1),
        _ => Some(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_lab::{Spec, Watch, simulate};
    use std::collections::BTreeSet;

    #[test]
    fn every_step_of_every_algorithm_is_found_and_nearly_all_are_explained() {
        let (mut all, mut explained) = (0, 0);
        // The register names its steps after orders, which are data.
        for meta in catalogue().filter(|meta| meta.name != "service/register") {
            let rules = explain(meta.name).unwrap();
            let mut steps = BTreeSet::new();
            // An odd number, so that seeds agree to it.
            let mut spec = Spec::new(meta.name, 5);
            spec.until = Some(quorate_core::Time::ZERO + quorate_core::Span::units(200));
            let mut record = |record: quorate_core::trace::Record| {
                steps.extend(record.steps.iter().map(|step| step.name.to_string()));
            };
            let watch = Watch { record: Some(&mut record), ..Watch::default() };
            simulate(&spec, watch).unwrap();
            assert!(!steps.is_empty(), "{}", meta.name);
            for step in steps {
                let said = |what: &str| {
                    let text = rules["rules"][&step][what].as_str().unwrap_or_default();
                    !text.is_empty()
                };
                assert!(said("code"), "{}: {step}", meta.name);
                all += 1;
                explained += u32::from(said("rule"));
            }
        }
        assert!(explained * 10 > all * 9, "{explained} of {all}");
    }

    #[test]
    fn an_algorithm_speaks_for_itself_before_its_family_does() {
        let rules = explain("mutex/ricart-agrawala").unwrap();
        let defer = &rules["rules"]["defer"];
        assert_eq!(defer["rule"], "`Reply_Deferred[j] := TRUE`.");
        assert!(defer["code"].as_str().unwrap().starts_with("fn defer"));
        assert_eq!(rules["rules"]["enter"]["file"], "mutex/phase.rs");
    }
}
