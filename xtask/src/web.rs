//! The lab page: built, checked against its sources, and tried in a browser.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::shell::{Step, cargo, output_of, run, run_silently, target};
use crate::{docs, servers};

/// Where the sources of the page are.
const WEB: &str = "web";
/// Where the built page is.
const DIST: &str = "web/dist";
/// Which sources it was built from.
const RECORD: &str = "web/dist/SOURCES";
/// What the engines are built for.
const TARGET: &str = "wasm32-unknown-unknown";
/// The page with its engines, compressed, in bytes at most.
const BYTES_MAX: u64 = 1_200_000;

/// The crate whose module is the engines.
const PAGE: &str = "page";
/// Parts of crates that are not in the module.
const LEFT_OUT: [&str; 2] = ["crates/lab/src/net.rs", "crates/lab/src/net/"];

/// Builds the page anew.
pub(crate) fn build(root: &Path) -> Result<(), String> {
    install_target(root)?;
    let engine = ["build", "--locked", "--package", "quorate-page", "--profile", "page"];
    let mut command = cargo(root, &engine);
    run({
        command.args(["--target", TARGET]);
        command
    })?;
    install_packages(root)?;
    run(npm(root, &["run", "--silent", "check"]))?;
    let module = target(root)?.join(TARGET).join("page/quorate_page.wasm");
    let mut node = Command::new("node");
    node.arg("build.mjs").arg("dist").arg(&module);
    node.current_dir(root.join(WEB)).stdin(Stdio::null());
    run(node)?;
    fs::write(root.join(RECORD), format!("{}\n", digest(root)?))
        .map_err(|error| format!("{RECORD} cannot be written: {error}"))
}

/// Is the built page that of the sources, and small enough?
pub(crate) fn check(root: &Path) -> Result<Step, String> {
    let known = fs::read_to_string(root.join(RECORD)).unwrap_or_default();
    if known.trim() != digest(root)? {
        return Err(format!("{DIST} is out of date; `cargo xtask web` builds it anew"));
    }
    let bytes = size(&root.join(DIST))?;
    if bytes > BYTES_MAX {
        return Err(format!("{DIST} has {bytes} bytes, and may have {BYTES_MAX}"));
    }
    Ok(Step::Done(format!("{} kB", bytes / 1000)))
}

/// Tries the page in a browser. In CI nothing may be left out.
pub(crate) fn test(root: &Path) -> Result<Step, String> {
    tried(root, &["test/"], &[])
}

/// Makes the pictures of the documents anew.
pub(crate) fn pictures(root: &Path) -> Result<Step, String> {
    tried(root, &["test/looks.test.mjs", "test/live.test.mjs"], &[("UPDATE", "1")])
}

fn tried(root: &Path, files: &[&str], given: &[(&str, &str)]) -> Result<Step, String> {
    if let Step::Skipped(why) = servers::install_browser()? {
        return Ok(Step::Skipped(why));
    }
    install_packages(root)?;
    let program = docs::build(root)?;
    let mut node = Command::new("node");
    node.args(["--test", "--test-concurrency=1", "--test-reporter=tap"]).args(files);
    node.envs(given.iter().copied());
    node.env("QUORATE", program);
    node.current_dir(root.join(WEB)).stdin(Stdio::null());
    let printed = run_silently(node)?;
    let passed = printed.lines().find_map(|line| line.strip_prefix("# pass "));
    Ok(Step::Done(format!("{} tests in a browser", passed.unwrap_or("some"))))
}

fn install_target(root: &Path) -> Result<(), String> {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "list", "--installed"]).current_dir(root).stdin(Stdio::null());
    let installed = output_of(rustup).unwrap_or_default();
    if installed.lines().any(|line| line == TARGET) {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET]).current_dir(root).stdin(Stdio::null());
    run(rustup)
}

/// Installs what the page is built and tried with, as its lock file says, unless it is there.
fn install_packages(root: &Path) -> Result<(), String> {
    let (lock, kept) =
        (root.join(WEB).join("package-lock.json"), root.join(WEB).join("node_modules/.kept"));
    let wanted =
        fs::read_to_string(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    if fs::read_to_string(&kept).is_ok_and(|kept| kept == wanted) {
        return Ok(());
    }
    run(npm(root, &["ci", "--silent", "--no-audit", "--no-fund"]))?;
    fs::write(&kept, wanted).map_err(|error| format!("{}: {error}", kept.display()))
}

fn npm(root: &Path, words: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.args(words).current_dir(root.join(WEB)).stdin(Stdio::null());
    npm
}

fn size(folder: &Path) -> Result<u64, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let sizes = entries.map(|entry| Ok(entry?.metadata()?.len()));
    sizes.sum::<std::io::Result<u64>>().map_err(|error| format!("{}: {error}", folder.display()))
}

/// A number for all that the page is built from; another one if anything of it changes.
fn digest(root: &Path) -> Result<String, String> {
    let mut files = BTreeSet::new();
    for name in ["build.mjs", "index.html", "package-lock.json", "tsconfig.json"] {
        files.insert(PathBuf::from(WEB).join(name));
    }
    collect(root, &Path::new(WEB).join("src"), &mut files)?;
    collect(root, Path::new("docs/guide/lectures"), &mut files)?;
    let mut crates = vec![PAGE.to_owned()];
    let mut known = BTreeSet::new();
    while let Some(name) = crates.pop() {
        if !known.insert(name.clone()) {
            continue;
        }
        let folder = Path::new("crates").join(&name);
        collect(root, &folder.join("src"), &mut files)?;
        let manifest = folder.join("Cargo.toml");
        crates.extend(needed(&read(root, &manifest)?));
        if root.join(&folder).join("build.rs").exists() {
            files.insert(folder.join("build.rs"));
        }
        files.insert(manifest);
    }
    let mut hash = Hash::default();
    for path in &files {
        let name = path.display().to_string();
        if !LEFT_OUT.iter().any(|left_out| name.starts_with(left_out)) {
            hash.take(&name);
            hash.take(shipped(&name, &read(root, path)?));
        }
    }
    Ok(hash.to_string())
}

/// Does all of it belong to tests?
fn is_of_tests(path: &Path) -> bool {
    path.file_stem().is_some_and(|name| name == "tests")
}

/// What of a file gets into the page: tests do not.
fn shipped<'a>(name: &str, text: &'a str) -> &'a str {
    match text.find("#[cfg(test)]\nmod tests {") {
        Some(end) if name.ends_with(".rs") => &text[..end],
        _ => text,
    }
}

fn read(root: &Path, path: &Path) -> Result<String, String> {
    let bytes =
        fs::read(root.join(path)).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let bad = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(root.join(folder)).map_err(bad)? {
        let entry = entry.map_err(bad)?;
        let path = folder.join(entry.file_name());
        if is_of_tests(&path) {
            continue;
        }
        if entry.path().is_dir() {
            collect(root, &path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

/// The crates of this repository that a manifest always depends on.
fn needed(manifest: &str) -> Vec<String> {
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let dependencies = dependencies.split("\n[").next().unwrap_or_default();
    let lines = dependencies.lines().filter(|line| !line.contains("optional = true"));
    let names = lines.filter_map(|line| line.strip_prefix("quorate-"));
    names.filter_map(|line| Some(line.split(['.', ' ', '=']).next()?.to_owned())).collect()
}

/// Fowler, Noll and Vo's hash, with 128 bits: against mistakes, not against enemies.
struct Hash(u128);

impl Default for Hash {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Hash {
    fn take(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }
}

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_any_file_changes_the_number() {
        let hash = |texts: &[&str]| {
            let mut hash = Hash::default();
            texts.iter().for_each(|text| hash.take(text));
            hash.to_string()
        };
        assert_eq!(hash(&["a", "b"]), hash(&["a", "b"]));
        assert_ne!(hash(&["a", "b"]), hash(&["ab", ""]));
        assert_ne!(hash(&["a"]), hash(&["b"]));
    }

    #[test]
    fn tests_are_not_shipped() {
        let source = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(shipped("x.rs", source), "fn a() {}\n\n");
        assert_eq!(shipped("x.md", source), source);
        assert!(is_of_tests(Path::new("crates/x/src/tests")));
        assert!(is_of_tests(Path::new("crates/x/src/y/tests.rs")));
        assert!(!is_of_tests(Path::new("crates/x/src/contests.rs")));
    }

    #[test]
    fn optional_crates_are_not_needed() {
        let manifest = "[dependencies]\nquorate-core.workspace = true\n\
                        quorate-cluster = { workspace = true, optional = true }\n\
                        quorate-sim = { workspace = true, features = [\"x\"] }\nserde = \"1\"\n\n\
                        [dev-dependencies]\nquorate-check.workspace = true\n";
        assert_eq!(needed(manifest), ["core", "sim"]);
    }
}
