//! Collects what the sources of the algorithms say of their steps: the name that a step has in
//! traces, and the comment and the code of the function that takes it. The page shows them beside a run.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The longest function that is shown whole; of a longer one, what is near the step.
const LINES_MAX: usize = 32;
/// So many lines before a step are near, and half as many behind it.
const NEAR: usize = 8;

/// Where algorithms are, and what their files are called there before their names.
const SOURCES: [(&str, &str); 2] = [("../algorithms/src", ""), ("../service/src", "service/")];

fn main() -> io::Result<()> {
    let mut table = String::from("&[\n");
    for (folder, prefix) in SOURCES {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        println!("cargo::rerun-if-changed={}", sources.display());
        let mut files = Vec::new();
        collect(&sources, &mut files)?;
        files.sort();
        for path in files {
            let text = fs::read_to_string(&path)?;
            let name = path.strip_prefix(&sources).unwrap_or(&path).display();
            let name = format!("{prefix}{name}");
            for (step, rule, code) in steps(&text) {
                let row = writeln!(table, "    ({name:?}, {step:?}, {rule:?}, {code:?}),");
                row.map_err(io::Error::other)?;
            }
        }
    }
    table.push(']');
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("there is no OUT_DIR"))?;
    fs::write(Path::new(&out).join("steps.rs"), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The steps of a file: names, comments, functions.
fn steps(text: &str) -> Vec<(String, String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.iter().position(|line| line.starts_with("mod tests"));
    let lines = &lines[..end.unwrap_or(lines.len())];
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        for name in named(line) {
            let head = (0..=number).rev().find(|place| is_head(lines[*place]));
            let Some(head) = head else { continue };
            let rule = comment(lines, head, "///");
            let rule = if rule.is_empty() { comment(lines, number, "//") } else { rule };
            found.push((name, rule, code(lines, head, number)));
        }
    }
    found
}

/// The names of the steps that are traced on this line.
fn named(line: &str) -> Vec<String> {
    let parts = line.split("trace(\"").skip(1);
    parts.filter_map(|part| Some(part.split_once('"')?.0.to_owned())).collect()
}

fn is_head(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| match rest.find(") ") {
        Some(end) if rest.starts_with('(') => &rest[end + 2..],
        _ => rest.trim_start(),
    });
    line.trim_start_matches("const ").starts_with("fn ")
}

/// The comment that stands above a line, on one line itself.
fn comment(lines: &[&str], line: usize, mark: &str) -> String {
    let above = lines[..line].iter().rev().map(|line| line.trim_start());
    let above = above.skip_while(|line| line.starts_with("#["));
    let mut above: Vec<_> = above.map_while(|line| line.strip_prefix(mark)).collect();
    above.reverse();
    let text = above.iter().map(|line| line.trim()).take_while(|line| !line.starts_with('#'));
    text.collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// The function, up to the brace that closes it, or what of it is near the step.
fn code(lines: &[&str], head: usize, step: usize) -> String {
    let indent = lines[head].len() - lines[head].trim_start().len();
    let closing = format!("{}}}", " ".repeat(indent));
    let length = lines[head..].iter().position(|line| *line == closing).unwrap_or(0) + 1;
    let (from, to) = match length > LINES_MAX {
        true => (head.max(step.saturating_sub(NEAR)), (head + length).min(step + NEAR / 2 + 1)),
        false => (head, head + length),
    };
    let body = lines[from..to].iter().map(|line| line.get(indent..).unwrap_or(""));
    body.collect::<Vec<_>>().join("\n")
}
