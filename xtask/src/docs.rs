//! Documents that come from the code: the algorithms explained, and the example of the README.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::chores::PROFILE;
use crate::shell::{cargo, run, run_silently, target};
use crate::source::read_text;

const ALGORITHMS: &str = "docs/algorithms.md";
const FAULTS: &str = "docs/faults.md";
const README: &str = "README.md";
const EXAMPLE: &str = "crates/quorate/examples/first.rs";

/// Writes the documents anew.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    for (path, text) in generated(root)? {
        fs::write(root.join(path), text)
            .map_err(|error| format!("{path} cannot be written: {error}"))?;
    }
    Ok(())
}

/// Are the documents what they would be if written anew?
pub(crate) fn check(root: &Path) -> Result<(), String> {
    for (path, text) in generated(root)? {
        if read_text(root, path).ok().as_deref() != Some(&text) {
            return Err(format!("{path} is out of date; `cargo xtask docs` writes it anew"));
        }
    }
    Ok(())
}

fn generated(root: &Path) -> Result<[(&'static str, String); 3], String> {
    let readme = read_text(root, README)?;
    let readme = put_between(&readme, "example", &example(&read_text(root, EXAMPLE)?))?;
    let program = build(root)?;
    Ok([
        (ALGORITHMS, asked(&program, &["algorithms", "--markdown"])?),
        (README, readme),
        // What faults do, as tried just now.
        (FAULTS, asked(&program, &["compare", "faults", "--markdown"])?),
    ])
}

/// Builds the command, and says where it is. Run and not linked, and built as the tests build it, so that
/// nothing is compiled twice.
pub(crate) fn build(root: &Path) -> Result<PathBuf, String> {
    let words = ["build", "--quiet", "--locked", "--workspace", "--all-features"];
    let mut command = cargo(root, &words);
    command.args(["--profile", PROFILE, "--bin", "quorate"]);
    run(command)?;
    Ok(target(root)?.join(PROFILE).join("quorate"))
}

/// The names of all algorithms.
pub(crate) fn names(root: &Path) -> Result<Vec<String>, String> {
    let document = asked(&build(root)?, &["algorithms", "--markdown"])?;
    Ok(document.lines().filter_map(|line| line.strip_prefix("### ")).map(str::to_owned).collect())
}

/// What the command prints.
fn asked(program: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    run_silently(command)
}

/// Replaces what stands between the two markers of this name.
fn put_between(text: &str, name: &str, new: &str) -> Result<String, String> {
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let parts = text.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    });
    let (before, after) = parts.ok_or_else(|| format!("{README} has no {begin} and {end}"))?;
    Ok(format!("{before}{begin}\n{new}{end}{after}"))
}

/// The example as a block of code, without the line that only a file needs.
fn example(source: &str) -> String {
    let lines = source.lines().filter(|line| !line.starts_with("//!"));
    lines.fold("```rust\n".to_string(), |text, line| text + line + "\n") + "```\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_markers_is_replaced_and_nothing_else() {
        let text = "a\n<!-- x:begin -->\nold\n<!-- x:end -->\nb\n";
        let new = put_between(text, "x", "new\n").unwrap();
        assert_eq!(new, text.replace("old", "new"));
        assert_eq!(put_between(&new, "x", "new\n").unwrap(), new);
        assert!(put_between(text, "y", "").is_err());
    }
}
