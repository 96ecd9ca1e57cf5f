//! The pages that name tests: what they name is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PAGES: [&str; 3] = ["pains.md", "first-week.md", "guarantees.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of all functions below a folder.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            functions(&path, names);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).expect("text");
            let found = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            names.extend(found.map(str::to_owned));
        }
    }
}

#[test]
fn tests_that_pages_name_are_there() {
    let mut names = BTreeSet::new();
    functions(&root().join("crates"), &mut names);
    for page in PAGES {
        let text = fs::read_to_string(root().join("docs/guide").join(page)).expect("a page");
        let spans = text.split('`').skip(1).step_by(2);
        let is_name = |span: &&str| {
            span.matches('_').count() > 2
                && span.chars().all(|it| it == '_' || it.is_ascii_alphanumeric())
        };
        let named: Vec<&str> =
            spans.filter(is_name).filter(|it| !it.starts_with("quorate_")).collect();
        assert!(!named.is_empty(), "{page} names no test");
        for name in named {
            assert!(names.contains(name), "{page}: there is no test {name}");
        }
    }
}

#[test]
fn all_pains_are_answered() {
    let text = fs::read_to_string(root().join("docs/guide/pains.md")).expect("a page");
    let rows =
        text.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok());
    let rows: Vec<u32> = rows.collect();
    assert_eq!(rows, (1..=23).collect::<Vec<_>>());
}
