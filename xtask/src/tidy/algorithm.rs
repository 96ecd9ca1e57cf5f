//! The rules for files of algorithms, of wrappers and of parts: the header, time, the catalogue, step
//! names.

use std::collections::BTreeMap;

use super::{Fault, tests_begin};
use crate::source::File;

/// Where algorithms stand: below this, in a folder per family.
const PLACE: &str = "crates/algorithms/src/";
/// The headings of the header, in their order.
const HEADINGS: [&str; 10] = [
    "Idea",
    "Paper",
    "Assumptions",
    "Messages",
    "State",
    "Safety",
    "Liveness",
    "Cost",
    "Deviations",
    "Known limits",
];

/// Is this the file of an algorithm, and not a part of one or something else in its family?
pub(super) fn is_one(file: &File) -> bool {
    let inner = file.path.strip_prefix(PLACE).unwrap_or("");
    inner.matches('/').count() == 1 && file.text.contains("const META: Meta")
}

/// Is this the file of a wrapper or of a part: of a protocol that no catalogue lists?
pub(super) fn is_unlisted(file: &File) -> bool {
    let body = file.text.lines().take(tests_begin(file));
    let of_protocol = |line: &str| {
        line.starts_with("impl")
            && (line.contains(" Protocol for ") || line.contains(" Solution for "))
    };
    file.path.starts_with(PLACE) && !is_one(file) && body.into_iter().any(of_protocol)
}

/// The types that the catalogues in a file list.
pub(super) fn catalogued(file: &File) -> Vec<&str> {
    let lists = file.text.split("catalogue! { ").skip(1);
    let lists = lists.filter_map(|rest| rest.split('}').next());
    lists.flat_map(|list| list.lines().filter_map(|line| line.trim().strip_suffix(','))).collect()
}

/// A wrapper and a part say in a sentence what they are.
pub(super) fn unlisted_faults(file: &File) -> Vec<Fault> {
    let anatomy = Anatomy::of(file);
    if anatomy.opens_well() {
        return Vec::new();
    }
    vec![Fault::new(
        file,
        1,
        "the header does not open with what the wrapper or part is, and a full stop",
    )]
}

/// Who reads a clock, in its file or in its folder, says so; and who says so reads one.
pub(super) fn timing_faults(file: &File, rust: &[File]) -> Vec<Fault> {
    let folder = format!("{}/", file.path.trim_end_matches(".rs"));
    let mut parts =
        rust.iter().filter(|part| part.path == file.path || part.path.starts_with(&folder));
    let timed = parts.any(|part| part.text.contains("impl Timed for"));
    let says = file.text.contains("timing: Timing::Timed,");
    if timed == says {
        return Vec::new();
    }
    vec![Fault::new(file, 1, "`impl Timed for` and `timing: Timing::Timed` go together")]
}

/// A file of an algorithm, taken apart.
pub(super) struct Anatomy<'a> {
    file: &'a File,
    /// The lines of the header without their `//!`.
    header: Vec<&'a str>,
}

impl<'a> Anatomy<'a> {
    pub(super) fn of(file: &'a File) -> Self {
        let header = file.text.lines().map_while(|line| line.strip_prefix("//!"));
        let header = header.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        Self { file, header }
    }

    /// What is broken.
    pub(super) fn faults(&self, catalogue: &[&str]) -> Vec<Fault> {
        let mut faults = self.header_faults();
        faults.extend(self.name_faults(catalogue));
        faults
    }

    /// The type that is the algorithm.
    fn implementing(&self) -> Option<&'a str> {
        let mut lines = self.file.text.lines();
        lines.find_map(|line| line.strip_prefix("impl Algorithm for ")?.strip_suffix(" {"))
    }

    /// What stands before the first heading.
    fn opening(&self) -> String {
        let before = self.header.iter().take_while(|line| !line.starts_with("# "));
        let lines: Vec<&str> = before.copied().collect();
        lines.join("\n").trim().to_owned()
    }

    fn opens_well(&self) -> bool {
        let opening = self.opening();
        opening.split("\n\n").next().is_some_and(|first| first.ends_with(['.', ':']))
    }

    fn header_faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut found = Vec::new();
        let mut in_code = false;
        for (index, line) in self.header.iter().enumerate() {
            in_code ^= line.starts_with("```");
            if let Some(heading) = line.strip_prefix("# ").filter(|_| !in_code) {
                found.push((index, heading));
            }
        }
        if !self.opens_well() || self.opening().contains("\n\n") {
            let text = "the header does not open with one sentence on what the algorithm does";
            faults.push(Fault::new(self.file, 1, text));
        }
        let names: Vec<&str> = found.iter().map(|&(_, name)| name).collect();
        if names != HEADINGS {
            let place = names.iter().zip(HEADINGS).position(|(name, wanted)| *name != wanted);
            let place = place.unwrap_or(names.len().min(HEADINGS.len()));
            let line = found.get(place).map_or(self.header.len(), |&(index, _)| index + 1);
            let text = match HEADINGS.get(place) {
                Some(wanted) => format!("here the header needs the heading `# {wanted}`"),
                None => format!("`# {}` is no heading of a header", names[place]),
            };
            faults.push(Fault::new(self.file, line, text));
        }
        for (place, &(index, name)) in found.iter().enumerate() {
            let end = found.get(place + 1).map_or(self.header.len(), |&(next, _)| next);
            if self.header[index + 1..end].iter().all(|line| line.trim().is_empty()) {
                let text = format!("nothing stands under `# {name}`");
                faults.push(Fault::new(self.file, index + 1, text));
            }
        }
        faults
    }

    /// The name on the command line, the file's and the catalogue's are the same.
    fn name_faults(&self, catalogue: &[&str]) -> Vec<Fault> {
        let Some((line, name)) = name(self.file) else {
            return vec![Fault::new(self.file, 1, "its META has no `name: \"family/name\",`")];
        };
        let mut faults = Vec::new();
        let path = format!("{PLACE}{}.rs", name.replace('-', "_"));
        if path != self.file.path {
            let text = format!("{name} belongs into {path}");
            faults.push(Fault::new(self.file, line, text));
        }
        if !self.implementing().is_some_and(|it| catalogue.contains(&it)) {
            let text = format!("{name} is missing in the catalogue of its family");
            faults.push(Fault::new(self.file, line, text));
        }
        faults
    }
}

/// The name that META gives, and its line.
fn name(file: &File) -> Option<(usize, &str)> {
    file.text.lines().enumerate().find_map(|(index, line)| {
        let name = line.trim().strip_prefix("name: \"")?.strip_suffix("\",")?;
        name.contains('/').then_some((index + 1, name))
    })
}

/// Steps that only ignore an input, which no peer sends that keeps to the rules: tests show them, not
/// scenarios.
const IGNORING: [&str; 15] = [
    "asked twice",
    "duplicate",
    "foreign",
    "from the dead",
    "home already",
    "known already",
    "late receipt",
    "late reply",
    "not for me",
    "not inside",
    "out of order",
    "stale",
    "stale list",
    "stray number",
    "unexpected",
];

/// Step names of an algorithm and its parts that no scenario of it shows.
pub(super) fn steps_without_scenario(file: &File, rust: &[File], scenarios: &[File]) -> Vec<Fault> {
    let Some((_, name)) = name(file) else { return Vec::new() };
    let parts = format!("{}/", file.path.trim_end_matches(".rs"));
    let files = rust.iter().filter(|part| part.path == file.path || part.path.starts_with(&parts));
    let short = name.rsplit('/').next().unwrap_or(name);
    let of_it = |scenario: &&File| {
        scenario.path.replace('_', "-").contains(short) || scenario.text.contains(name)
    };
    let shown: Vec<&str> = scenarios.iter().filter(of_it).flat_map(steps_shown).collect();
    let mut faults = Vec::new();
    for part in files {
        match steps_named(part) {
            Ok(steps) => {
                let missing = steps
                    .into_iter()
                    .filter(|(step, _)| !shown.contains(step) && !IGNORING.contains(step));
                faults.extend(missing.map(|(step, line)| {
                    let text = format!("no scenario of {name} has the step `{step}`");
                    Fault::new(part, line, text)
                }));
            }
            Err(fault) => faults.push(fault),
        }
    }
    faults
}

/// The step names in `cx.trace("name", ...)` before the tests, with the line of the first.
fn steps_named(file: &File) -> Result<BTreeMap<&str, usize>, Fault> {
    const CALL: &str = "cx.trace(";
    let mut steps = BTreeMap::new();
    let end = file.text.lines().take(tests_begin(file)).map(|line| line.len() + 1).sum::<usize>();
    let body = &file.text[..end.min(file.text.len())];
    for (at, _) in body.match_indices(CALL) {
        let line = body[..at].lines().count().max(1);
        let argument = body[at + CALL.len()..].trim_start().strip_prefix('"');
        let Some((step, _)) = argument.and_then(|rest| rest.split_once('"')) else {
            return Err(Fault::new(file, line, "a step is named by a string that stands here"));
        };
        steps.entry(step).or_insert(line);
    }
    Ok(steps)
}

/// The step names in a listing: what stands between dots, without its fields.
fn steps_shown(file: &File) -> impl Iterator<Item = &str> {
    let parts = file.text.lines().flat_map(|line| line.split(" · ").skip(1));
    parts.map(|part| {
        let mut part = part.trim_end();
        while let Some((rest, last)) = part.rsplit_once(' ')
            && last.contains('=')
        {
            part = rest;
        }
        part
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/algorithms/src/mutex/some_name.rs";

    fn header(headings: &[&str]) -> String {
        let sections = headings.iter().map(|heading| format!("//!\n//! # {heading}\n//! Text.\n"));
        format!("//! One sentence.\n{}", sections.collect::<String>())
    }

    fn file(header: &str, body: &str) -> File {
        let name = "        name: \"mutex/some-name\",\n";
        let meta = format!("const META: Meta = Meta {{\n{name}{body}}}\n");
        let text = format!("{header}\nimpl Algorithm for SomeName {{\n{meta}}}\n");
        File { path: PATH.into(), text }
    }

    fn faults(file: &File) -> Vec<String> {
        let faults = Anatomy::of(file).faults(&["SomeName"]);
        faults.into_iter().map(|fault| format!("{}: {}", fault.line, fault.text)).collect()
    }

    #[test]
    fn a_good_file_passes_and_parts_are_not_asked() {
        let good = file(&header(&HEADINGS), "");
        assert!(is_one(&good));
        assert_eq!(faults(&good), [""; 0]);
        let part = File { path: PATH.replace(".rs", "/part.rs"), text: good.text };
        assert!(!is_one(&part));
    }

    #[test]
    fn headings_stand_in_order_and_have_text() {
        let mut headings = HEADINGS;
        headings.swap(1, 2);
        let swapped = file(&header(&headings), "");
        assert_eq!(faults(&swapped), ["6: here the header needs the heading `# Paper`"]);
        let short = file(&header(&HEADINGS[..9]), "");
        assert_eq!(faults(&short), ["28: here the header needs the heading `# Known limits`"]);
        let more = file(&header(&[&HEADINGS[..], &["More"]].concat()), "");
        assert_eq!(faults(&more), ["33: `# More` is no heading of a header"]);
        let empty = header(&HEADINGS).replacen("# Idea\n//! Text.", "# Idea", 1);
        assert_eq!(faults(&file(&empty, "")), ["3: nothing stands under `# Idea`"]);
        let two = header(&HEADINGS).replacen("sentence.", "sentence.\n//!\n//! Two.", 1);
        assert!(faults(&file(&two, ""))[0].starts_with("1: the header does not open"));
    }

    #[test]
    fn who_reads_a_clock_says_so() {
        let says = file(
            &header(&HEADINGS),
            "        timing: Timing::Timed,
",
        );
        assert_eq!(timing_faults(&says, &[]).len(), 1);
        let path = PATH.replace(".rs", "/asking.rs");
        let part = File {
            path,
            text: "impl Timed for SomeName {}
"
            .into(),
        };
        assert_eq!(timing_faults(&says, &[part]), []);
    }

    #[test]
    fn a_part_says_what_it_is() {
        let part = |opening: &str| File {
            path: "crates/algorithms/src/some_part.rs".into(),
            text: format!(
                "{opening}

impl Protocol for Part {{
}}
"
            ),
        };
        assert!(is_unlisted(&part("//! A part.")));
        assert_eq!(unlisted_faults(&part("//! A part.")), []);
        assert_eq!(unlisted_faults(&part("//! a part")).len(), 1);
    }

    #[test]
    fn catalogues_list_types() {
        let text = "crate::catalogue::catalogue! { Mutex:\n    One,\n    Two,\n}\n    Three,\n";
        assert_eq!(catalogued(&File { path: "a.rs".into(), text: text.into() }), ["One", "Two"]);
    }

    #[test]
    fn names_agree() {
        let text = file(&header(&HEADINGS), "").text;
        let elsewhere = File { path: PATH.replace("some", "other"), text };
        assert!(faults(&elsewhere)[0].contains("belongs into"));
        let forgotten = Anatomy::of(&file(&header(&HEADINGS), "")).faults(&[]);
        assert!(forgotten[0].text.contains("missing in the catalogue"));
    }

    #[test]
    fn every_step_is_in_a_scenario_of_its_algorithm() {
        let body = "cx.trace(\"sit back\", &[]);\ncx.trace(\n    \"go\", &[(\"a\", 1)]);\n";
        let algorithm = file(&header(&HEADINGS), body);
        let scenario = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let missing = |scenarios: &[File]| {
            let rust = std::slice::from_ref(&algorithm);
            steps_without_scenario(&algorithm, rust, scenarios).len()
        };
        assert_eq!(missing(&[]), 2);
        let line = "t=1 n1 receive X from 2 · sit back · go a=1 b=2 · send Y to 1\n";
        assert_eq!(missing(&[scenario("s/some-name/one.txt", line)]), 0);
        assert_eq!(missing(&[scenario("s/one.txt", &format!("# mutex/some-name\n{line}"))]), 0);
        assert_eq!(missing(&[scenario("s/other.txt", line)]), 2);
        let longer = scenario("s/some_name.txt", "t=1 n1 start · sit back again · go further\n");
        assert_eq!(missing(&[longer]), 2);
        let hidden = file(&header(&HEADINGS), "cx.trace(step, &[]);\n");
        assert!(steps_named(&hidden).is_err());
    }
}
