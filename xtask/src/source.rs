//! The files of the repository that rules are about.

use std::fs;
use std::path::{Path, PathBuf};

/// Where Rust files are looked for.
const RUST: &[&str] = &["crates", "bench", "chaos", "xtask"];
/// Where scenarios are looked for.
const SCENARIOS: &str = "crates/cli/scenarios";

/// A text file.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root of the repository, with slashes.
    pub(crate) path: String,
    /// What stands in it.
    pub(crate) text: String,
}

/// What the rules look at.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Where it is.
    pub(crate) root: PathBuf,
    /// All documents.
    pub(crate) documents: Vec<File>,
    /// All Rust files.
    pub(crate) rust: Vec<File>,
    /// The scenarios; none if there is no folder for them yet.
    pub(crate) scenarios: Option<Vec<File>>,
}

/// Reads the tree.
pub(crate) fn read(root: &Path) -> Result<Tree, String> {
    let mut rust = Vec::new();
    for place in RUST {
        collect(root, place, ".rs", &mut rust)?;
    }
    let mut scenarios = None;
    if root.join(SCENARIOS).is_dir() {
        collect(root, SCENARIOS, ".txt", scenarios.insert(Vec::new()))?;
    }
    let mut documents = Vec::new();
    collect(root, "docs", ".md", &mut documents)?;
    for name in names(root, "")?.into_iter().map(|(name, _)| name) {
        if name.ends_with(".md") {
            documents.push(File { text: read_text(root, &name)?, path: name });
        }
    }
    Ok(Tree { root: root.into(), documents, rust, scenarios })
}

/// Adds the files below a folder whose names end so, in order.
fn collect(root: &Path, place: &str, ending: &str, files: &mut Vec<File>) -> Result<(), String> {
    for (name, is_folder) in names(root, place)? {
        let path = format!("{place}/{name}");
        if is_folder && name != "target" {
            collect(root, &path, ending, files)?;
        } else if name.ends_with(ending) {
            let text = read_text(root, &path)?;
            files.push(File { path, text });
        }
    }
    Ok(())
}

/// The names in a folder, in order, and whether they are folders.
fn names(root: &Path, place: &str) -> Result<Vec<(String, bool)>, String> {
    let bad = |error| format!("{place} cannot be read: {error}");
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join(place)).map_err(bad)? {
        let entry = entry.map_err(bad)?;
        let is_folder = entry.file_type().map_err(bad)?.is_dir();
        names.push((entry.file_name().to_string_lossy().into_owned(), is_folder));
    }
    names.sort();
    Ok(names)
}

/// Reads one file.
pub(crate) fn read_text(root: &Path, path: &str) -> Result<String, String> {
    fs::read_to_string(root.join(path)).map_err(|error| format!("{path} cannot be read: {error}"))
}
