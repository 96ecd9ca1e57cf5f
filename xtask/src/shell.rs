//! Commands that are run, and what is said about them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Cargo, in the root of the repository and with nothing to read.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    // Cargo names itself when it runs xtask, so that both are of the same toolchain.
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root).args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn run(mut command: Command) -> Result<(), String> {
    let shown = shown(&command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` failed ({status})")),
        Err(error) => Err(format!("`{shown}` cannot be run: {error}")),
    }
}

/// Runs a command to its end. What it prints is shown only if it fails, and is returned.
pub(crate) fn run_silently(mut command: Command) -> Result<String, String> {
    let shown = shown(&command);
    command.stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("`{shown}` cannot be run: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(printed);
    }
    print!("{printed}");
    Err(format!("`{shown}` failed ({})", output.status))
}

/// Is there such a command, and does it work? What it prints is not shown.
pub(crate) fn output_of(mut command: Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// What a step of a chore comes to.
pub(crate) enum Step {
    /// It was done, and this is worth a word.
    Done(String),
    /// It was left out, for this reason.
    Skipped(String),
}

/// Does a step, and says in one line how it went and how long it took.
pub(crate) fn step(name: &str, work: impl FnOnce() -> Result<Step, String>) -> Result<(), String> {
    let begun = Instant::now();
    let result = work();
    let seconds = begun.elapsed().as_secs_f64();
    let (mark, word) = match &result {
        Ok(Step::Done(word)) => ("ok", word.as_str()),
        Ok(Step::Skipped(why)) => ("skipped", why.as_str()),
        Err(_) => ("FAILED", ""),
    };
    let line = format!("{mark:<8}{seconds:>7.1} s  {name:<10}{word}");
    println!("{}", line.trim_end());
    result.map(|_| ())
}

/// The folder of what is built, which the user may have put elsewhere.
pub(crate) fn target(root: &Path) -> Result<PathBuf, String> {
    let command = cargo(root, &["metadata", "--no-deps", "--format-version", "1"]);
    let text = output_of(command).ok_or("`cargo metadata` failed")?;
    let found =
        text.split_once("\"target_directory\":\"").and_then(|(_, rest)| rest.split_once('"'));
    found.map(|(path, _)| PathBuf::from(path)).ok_or_else(|| "no target directory".to_owned())
}
