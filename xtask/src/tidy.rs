//! The rules of style that no compiler knows: for all files, and for those of algorithms.

mod algorithm;

use std::path::Path;

use crate::source::{File, Tree};
use algorithm::Anatomy;

/// What stands nowhere: each with the reason. Written in two parts so as not to find itself.
const NOWHERE: &[(&str, &str)] = &[
    (concat!("#[ig", "nore"), "a test that is not run proves nothing"),
    (concat!("to", "do!"), "what is not there yet is not called"),
    (concat!("unimpl", "emented!"), "what is not there yet is not called"),
    (concat!("FIX", "ME"), "a known fault is repaired or stands under Known limits"),
];

/// What stands in no test, with the reason.
const NOT_IN_TESTS: &[(&str, &str)] =
    &[(concat!("sle", "ep("), "a test waits for what it waits for, not for some time")];

/// A rule that is broken: where, and which.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Fault {
    path: String,
    line: usize,
    text: String,
}

impl Fault {
    fn new(file: &File, line: usize, text: impl Into<String>) -> Self {
        Self { path: file.path.clone(), line, text: text.into() }
    }
}

/// Checks all rules. Says what was checked, or what is broken.
pub(crate) fn check(tree: &Tree) -> Result<String, String> {
    let mut faults: Vec<Fault> = tree.rust.iter().flat_map(general).collect();
    let exists = |path: &Path| tree.root.join(path).exists();
    faults.extend(tree.documents.iter().flat_map(|file| dead_links(file, exists)));
    let algorithms: Vec<&File> = tree.rust.iter().filter(|file| algorithm::is_one(file)).collect();
    let catalogue: Vec<&str> = tree.rust.iter().flat_map(algorithm::catalogued).collect();
    for file in &algorithms {
        faults.extend(Anatomy::of(file).faults(&catalogue));
        faults.extend(algorithm::timing_faults(file, &tree.rust));
        if let Some(scenarios) = &tree.scenarios {
            faults.extend(algorithm::steps_without_scenario(file, &tree.rust, scenarios));
        }
    }
    let unlisted = tree.rust.iter().filter(|file| algorithm::is_unlisted(file));
    faults.extend(unlisted.flat_map(algorithm::unlisted_faults));
    faults.sort();
    if faults.is_empty() {
        let scenarios = match &tree.scenarios {
            Some(scenarios) => format!("{} scenarios", scenarios.len()),
            None => "no scenarios yet, so that step names are not checked".into(),
        };
        return Ok(format!(
            "{} files, {} algorithms, {scenarios}",
            tree.rust.len(),
            algorithms.len()
        ));
    }
    let lines = faults.iter().map(|Fault { path, line, text }| format!("{path}:{line}: {text}\n"));
    let broken = if faults.len() == 1 { "one rule is" } else { "rules are" };
    Err(format!("{broken} broken\n{}", lines.collect::<String>().trim_end()))
}

/// The rules for every file.
fn general(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    if !file.text.starts_with("//! ") {
        let text = "it does not begin with `//!` and a sentence on what it is for";
        faults.push(Fault::new(file, 1, text));
    }
    let tests_begin = tests_begin(file);
    for (index, line) in file.text.lines().enumerate() {
        let not_here = if index >= tests_begin { NOT_IN_TESTS } else { &[] };
        for (word, reason) in NOWHERE.iter().chain(not_here) {
            if has_word(line, word) {
                faults.push(Fault::new(file, index + 1, format!("`{word}`: {reason}")));
            }
        }
    }
    faults
}

/// The links of a document to files that are not there.
fn dead_links(file: &File, exists: impl Fn(&Path) -> bool) -> Vec<Fault> {
    let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let mut faults = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let links = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        for (link, _) in links.filter(|(link, _)| !link.contains("://")) {
            let path = link.split('#').next().unwrap_or(link);
            if !path.is_empty() && !exists(&folder.join(path)) {
                faults.push(Fault::new(file, index + 1, format!("there is no {path}")));
            }
        }
    }
    faults
}

/// The index of the first line that belongs to tests; beyond the end if none does.
fn tests_begin(file: &File) -> usize {
    if file.path.contains("/tests/") || file.path.ends_with("/tests.rs") {
        return 0;
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let begins = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod tests");
    lines.windows(2).position(begins).unwrap_or(lines.len())
}

/// Does the line have this word, and not as the end of a longer one?
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    fn texts(faults: &[Fault]) -> Vec<(usize, &str)> {
        faults.iter().map(|fault| (fault.line, fault.text.split(':').next().unwrap())).collect()
    }

    #[test]
    fn the_repository_is_tidy() {
        let tree = source::read(&crate::root()).unwrap();
        check(&tree).unwrap_or_else(|broken| panic!("{broken}"));
    }

    #[test]
    fn a_file_begins_with_its_purpose() {
        assert!(
            general(&file(
                "crates/a/src/lib.rs",
                "//! A.
"
            ))
            .is_empty()
        );
        let faults = general(&file(
            "crates/a/src/lib.rs",
            "use b;
",
        ));
        assert_eq!(faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn links_lead_somewhere() {
        let text = "[a](there.md#b), ![c](not.svg)\n[d](#e) [f](https://g.h/i)\n";
        let document = file("docs/guide/j.md", text);
        let faults = dead_links(&document, |path| path == Path::new("docs/guide/there.md"));
        assert_eq!(texts(&faults), [(1, "there is no not.svg")]);
    }

    #[test]
    fn words_are_found_where_they_must_not_stand() {
        let waiting = concat!("    sle", "ep(1);\n");
        let asleep = concat!("    asle", "ep(1);\n");
        let tests = format!("//! A.\n{waiting}#[cfg(test)]\nmod tests {{\n{asleep}{waiting}}}\n");
        let faults = general(&file("crates/a/src/lib.rs", &tests));
        assert_eq!(texts(&faults), [(6, concat!("`sle", "ep(`"))]);
        let faults = general(&file("crates/a/tests/b.rs", &format!("//! A.\n{waiting}")));
        assert_eq!(texts(&faults), [(2, concat!("`sle", "ep(`"))]);
        let faults = general(&file("bench/src/b.rs", concat!("//! A.\nto", "do!()\n")));
        assert_eq!(texts(&faults), [(2, concat!("`to", "do!`"))]);
    }
}
