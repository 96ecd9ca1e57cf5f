//! The crates as others would get them: each packages, says what it is, and names the oldest compiler that
//! its dependencies allow.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::shell::{Step, cargo, run_silently};

/// What the code itself needs, whatever its dependencies do: conditions of several `let`.
const OWN: Version = (1, 88);

type Version = (u32, u32);

/// Checks all of it. Nothing is compiled.
pub(crate) fn check(root: &Path) -> Result<Step, String> {
    // What other systems would need is not there, and is not asked for.
    let words = ["metadata", "--format-version", "1", "--locked", "--filter-platform"];
    let metadata =
        run_silently(cargo(root, &[&words[..], &["x86_64-unknown-linux-gnu"]].concat()))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let members: BTreeSet<&str> =
        list(&metadata["workspace_members"]).iter().filter_map(Value::as_str).collect();
    let packages = list(&metadata["packages"]);
    let own = |package: &&Value| package["id"].as_str().is_some_and(|id| members.contains(id));
    // Those that may not be published are tools of this repository.
    let published = |package: &&Value| package["publish"].is_null();
    let ours: Vec<&Value> = packages.iter().filter(own).filter(published).collect();
    let wrong: Vec<String> = ours.iter().flat_map(|package| faults(package)).collect();
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    let needed = oldest(&metadata, &ours).max(OWN);
    for package in &ours {
        let said = version(&package["rust_version"]);
        if said != Some(needed) {
            return Err(format!(
                "{}: its rust-version is {}, and the lowest that its dependencies allow is {}.{}: say so in \
                 Cargo.toml",
                name(package),
                package["rust_version"],
                needed.0,
                needed.1
            ));
        }
    }
    let mut words = vec!["package", "--no-verify", "--allow-dirty", "--quiet", "--locked"];
    for package in &ours {
        words.extend(["-p", name(package)]);
    }
    run_silently(cargo(root, &words))?;
    Ok(Step::Done(format!("{} crates, for Rust {}.{}", ours.len(), needed.0, needed.1)))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap_or_default()
}

fn version(value: &Value) -> Option<Version> {
    let mut parts = value.as_str()?.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// What a reader of a registry would miss.
fn faults(package: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for field in ["description", "license", "readme"] {
        if package[field].as_str().is_none_or(str::is_empty) {
            faults.push(format!("{}: there is no {field} in its Cargo.toml", name(package)));
        }
    }
    if list(&package["keywords"]).is_empty() {
        faults.push(format!("{}: there are no keywords in its Cargo.toml", name(package)));
    }
    let manifest = package["manifest_path"].as_str().unwrap_or_default();
    let readme = Path::new(manifest).with_file_name("README.md");
    let text = fs::read_to_string(&readme).unwrap_or_default();
    if !text.starts_with(&format!("# {}\n", name(package))) {
        faults.push(format!("{} does not begin with the name of its crate", readme.display()));
    }
    faults
}

/// The latest compiler that a dependency asks for, of all that these crates are built with.
fn oldest(metadata: &Value, ours: &[&Value]) -> Version {
    let nodes = list(&metadata["resolve"]["nodes"]);
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = ours.iter().filter_map(|package| package["id"].as_str()).collect();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let node = nodes.iter().find(|node| node["id"] == id);
        for dependency in node.map_or(&[][..], |node| list(&node["deps"])) {
            let built = list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
            open.extend(dependency["pkg"].as_str().filter(|_| built));
        }
    }
    let foreign = list(&metadata["packages"]).iter().filter(|package| {
        !package["source"].is_null() && package["id"].as_str().is_some_and(|id| seen.contains(id))
    });
    foreign.filter_map(|package| version(&package["rust_version"])).max().unwrap_or((1, 0))
}
