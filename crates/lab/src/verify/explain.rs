//! What a property means, as the guide says it.

use quorate_algorithms::nearest;

use crate::BadInput;

/// The page that defines all properties.
const PAGE: &str = include_str!("../../properties.md");

/// A section of the page: a property of a family, and everything that is said of it.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    let parts = PAGE.split("\n### ").skip(1);
    parts.map(|part| {
        let part = part.split("\n## ").next().unwrap_or_default().trim_end();
        part.split_once('\n').unwrap_or((part, ""))
    })
}

/// What a property means, by its name, which may stand behind that of its family: `safety`,
/// `group/liveness`. Several families may have one of the same name.
///
/// # Errors
/// If there is no such property.
pub fn explain(name: &str) -> Result<String, BadInput> {
    let wanted = name.replace('/', ": ");
    let named =
        |title: &str| title == wanted || title.split_once(": ").is_some_and(|t| t.1 == wanted);
    let found: Vec<_> = sections().filter(|(title, _)| named(title)).collect();
    if found.is_empty() {
        let known = sections().filter_map(|(title, _)| Some(title.split_once(": ")?.1));
        let hint = match nearest(name, known.clone()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
        };
        return Err(BadInput::new("--explain", format!("there is no property {name:?}; {hint}")));
    }
    let texts = found.into_iter().map(|(title, text)| format!("{title}\n{text}\n"));
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use quorate_algorithms::detector::Suspicions;
    use quorate_algorithms::election::OneLeader;
    use quorate_algorithms::group::Delivery;
    use quorate_algorithms::mutex::Exclusion;
    use quorate_core::Monitor;
    use quorate_service::family::Promises;

    use super::*;
    use crate::trace_file::TraceFile;
    use crate::verify::verify;

    #[test]
    fn every_property_has_a_trace_that_violates_it_and_no_other() {
        for (title, text) in sections() {
            let (_, property) = title.split_once(": ").unwrap();
            let trace = text.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
            let verified = verify(&TraceFile::read(trace.as_bytes()).unwrap()).unwrap();
            let found: BTreeSet<_> = verified.findings.iter().map(|it| it.property).collect();
            assert!(found.iter().eq([&property]), "{title}: {:?}", verified.findings);
        }
    }

    #[test]
    fn every_property_of_every_monitor_is_defined_once() {
        let all = [
            ("mutex", <Exclusion as Monitor<_, _>>::PROPERTIES),
            ("election", <OneLeader as Monitor<_, _>>::PROPERTIES),
            ("detector", <Suspicions as Monitor<_, _>>::PROPERTIES),
            ("group", <Delivery as Monitor<_, _>>::PROPERTIES),
            ("service", <Promises as Monitor<_, _>>::PROPERTIES),
        ];
        let of = |(family, names): (&str, &[&str])| {
            names.iter().map(|name| format!("{family}: {name}")).collect::<Vec<_>>()
        };
        let judged: Vec<_> = all.into_iter().flat_map(of).collect();
        assert_eq!(sections().map(|(title, _)| title).collect::<Vec<_>>(), judged);
    }

    #[test]
    fn a_property_is_explained_by_its_name() {
        assert!(explain("fencing").unwrap().starts_with("mutex: fencing\n\nEvery token"));
        let both = explain("liveness").unwrap();
        assert!(both.starts_with("mutex: liveness\n") && both.contains("\ngroup: liveness\n"));
        assert!(explain("group/liveness").unwrap().starts_with("group: liveness\n"));
        let error = explain("uniquness").unwrap_err().to_string();
        let hint = "--explain: there is no property \"uniquness\"; did you mean uniqueness?";
        assert_eq!(error, hint);
    }
}
