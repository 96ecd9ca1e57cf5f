//! The chores themselves: verify, fix, tidy, bench.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::shell::{Step, cargo, output_of, run, run_silently, step};
use crate::{Failure, Outcome, docs, packages, servers, source, tidy as rules, web};

/// How everything is built that is tried.
pub(crate) const PROFILE: &str = "ci";

/// Targets without an operating system that have what `alloc` needs, best known first.
const BARE_METAL: &[&str] = &[
    "thumbv7em-none-eabi",
    "thumbv7em-none-eabihf",
    "thumbv7m-none-eabi",
    "aarch64-unknown-none",
    "riscv32imac-unknown-none-elf",
    "x86_64-unknown-none",
];

/// Checks everything, the quick things first, and writes nothing into the work tree.
pub(crate) fn verify(root: &Path) -> Outcome {
    let begun = Instant::now();
    let done = |result: Result<(), String>| result.map(|()| Step::Done(String::new()));
    let tool = |words: &str| {
        let words: Vec<_> = words.split(' ').collect();
        done(run(cargo(root, &words)))
    };
    let check = |name, work: &dyn Fn() -> Result<Step, String>| {
        step(name, work).map_err(|error| Failure::Found(next_step(name, &error)))
    };
    check("format", &|| tool("fmt --all --check"))?;
    check("tidy", &|| tidy_step(root))?;
    check("docs", &|| done(docs::check(root)))?;
    check("web", &|| web::check(root))?;
    check("deny", &|| deny(root))?;
    check("package", &|| packages::check(root))?;
    check("clippy", &|| {
        // As the tests are built, so that what runs while something is built is made once.
        tool(&format!(
            "clippy --quiet --locked --profile {PROFILE} --workspace --all-targets --all-features \
             -- -D warnings"
        ))
    })?;
    check("no_std", &|| no_std(root))?;
    check("servers", &servers::install)?;
    check("test", &|| test(root))?;
    check("browser", &|| web::test(root))?;
    check("rustdoc", &|| rustdoc(root))?;
    println!("all well after {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

fn next_step(name: &str, error: &str) -> String {
    let advice = match name {
        "format" | "docs" | "web" => "`cargo xtask fix` repairs this",
        "clippy" => "`cargo xtask fix` repairs what can be repaired by itself",
        "test" => {
            "if golden files differ and are meant to, `cargo xtask fix` rewrites them; look at the \
             difference before you keep it"
        }
        _ => "this has to be repaired by hand; `cargo xtask fix` does the rest",
    };
    format!("{error}\n{advice}")
}

fn tidy_step(root: &Path) -> Result<Step, String> {
    let checked = rules::check(&source::read(root)?)?;
    Ok(Step::Done(checked))
}

/// Licences, sources and bans, where the tool for it is there.
fn deny(root: &Path) -> Result<Step, String> {
    if output_of(cargo(root, &["deny", "--version"])).is_none() {
        return Ok(Step::Skipped("cargo-deny is not installed".into()));
    }
    let words =
        ["deny", "--locked", "--log-level", "error", "check", "bans", "licenses", "sources"];
    run(cargo(root, &words))?;
    Ok(Step::Done(String::new()))
}

/// The contract and the algorithms without the standard library: on a target that has none, where
/// one is installed.
fn no_std(root: &Path) -> Result<Step, String> {
    let mut words = vec![
        "check",
        "--quiet",
        "--locked",
        "--profile",
        PROFILE,
        "-p",
        "quorate-core",
        "-p",
        "quorate-algorithms",
        "-p",
        "quorate-service",
    ];
    words.push("--no-default-features");
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "list", "--installed"]).stdin(Stdio::null());
    let installed = output_of(rustup).unwrap_or_default();
    let target = BARE_METAL.iter().find(|&&target| installed.lines().any(|line| line == target));
    if let Some(target) = target {
        words.extend(["--target", target]);
    }
    run(cargo(root, &words))?;
    Ok(Step::Done(target.map_or("for this machine".into(), |target| format!("for {target}"))))
}

/// All tests; what they print is shown only if one fails.
fn test(root: &Path) -> Result<Step, String> {
    // All features, so that no example and no doc test is left out.
    let mut words = vec!["test", "--locked", "--workspace", "--all-features"];
    words.extend(["--quiet", "--no-fail-fast", "--profile", PROFILE]);
    let printed = run_silently(cargo(root, &words))?;
    let counts = printed.lines().filter_map(|line| {
        let (count, _) = line.strip_prefix("test result: ok. ")?.split_once(" passed")?;
        count.parse::<usize>().ok()
    });
    Ok(Step::Done(format!("{} tests", counts.sum::<usize>())))
}

fn rustdoc(root: &Path) -> Result<Step, String> {
    let mut words = vec!["doc", "--quiet", "--locked", "--workspace", "--no-deps"];
    words.extend(["--profile", PROFILE]);
    // The doc comments of the command line are its help, and its name is that of the library.
    words.extend(["--all-features", "--exclude", "quorate-cli"]);
    let mut command = cargo(root, &words);
    command.env("RUSTDOCFLAGS", "-D warnings");
    run(command)?;
    Ok(Step::Done(String::new()))
}

/// Repairs what can be repaired by itself; writes into the work tree.
pub(crate) fn fix(root: &Path) -> Outcome {
    let clippy = [
        "clippy",
        "--quiet",
        "--fix",
        "--allow-dirty",
        "--allow-staged",
        "--workspace",
        "--all-targets",
        "--all-features",
    ];
    let commands = [
        ("clippy", cargo(root, &clippy)),
        ("format", cargo(root, &["fmt", "--all"])),
        // As a program of its own: this one still has the headers in it that it was built with.
        ("docs", cargo(root, &["run", "--quiet", "--package", "xtask", "--", "docs"])),
    ];
    for (name, command) in commands {
        step(name, || run(command).map(|()| Step::Done(String::new())))?;
    }
    step("web", || match web::check(root) {
        Ok(step) => Ok(step),
        Err(_) => web::build(root).map(|()| Step::Done("built anew".into())),
    })?;
    step("golden", || {
        let words = ["test", "--profile", PROFILE, "-p", "quorate-lab", "-p", "quorate-cli"];
        let mut command = cargo(root, &words);
        command.arg("--quiet").env("UPDATE", "1");
        run_silently(command).map(|_| Step::Done(String::new()))
    })?;
    println!("look at `git diff` before you keep it; `cargo xtask verify` checks the rest");
    Ok(())
}

/// The rules of style that no compiler knows.
pub(crate) fn tidy(root: &Path) -> Result<(), String> {
    step("tidy", || tidy_step(root))
}

/// What was measured last: CPU-seconds of the command's release build, and minutes of a cold `verify`
/// on two cores.
const BUILD_BEFORE: [(&str, f64); 2] =
    [("release build, CPU-seconds", 644.0), ("verify, minutes", 32.4)];

/// Measures what the compiler is asked to do: the release build of the command, from nothing, and all
/// that `verify` does, from nothing, in a folder of their own.
pub(crate) fn bench_build(root: &Path) -> Outcome {
    let folder = root.join("target/bench-build");
    let begin = || match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{} cannot be removed: {error}", folder.display()))
        }
        _ => Ok(()),
    };
    let cold = |words: &[&str]| {
        let mut command = cargo(root, words);
        command.env("CARGO_TARGET_DIR", &folder).env("CARGO_INCREMENTAL", "0");
        command
    };
    begin()?;
    let before = cpu_seconds()?;
    run(cold(&["build", "--release", "--locked", "--quiet", "-p", "quorate-cli"]))?;
    let build = cpu_seconds()? - before;
    begin()?;
    let begun = Instant::now();
    run(cold(&["run", "--quiet", "--package", "xtask", "--", "verify"]))?;
    let verify = begun.elapsed().as_secs_f64() / 60.0;
    begin()?;
    for ((what, last), now) in BUILD_BEFORE.iter().zip([build, verify]) {
        println!("{what:<30}{now:>8.1}   before: {last:>6.1}   ratio: {:.2}", now / last);
    }
    Ok(())
}

/// The CPU time of all processes that this one has waited for, as the system counts it.
fn cpu_seconds() -> Result<f64, String> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat")
        .map_err(|error| format!("/proc/self/stat cannot be read: {error}"))?;
    // After the name in brackets: state is the first field, and the times of children 14th and 15th.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok());
    let (user, system) = ticks(13).zip(ticks(14)).ok_or("/proc/self/stat has too few fields")?;
    Ok((user + system) / TICKS_PER_SECOND)
}

/// Puts real members under real faults.
pub(crate) fn chaos(root: &Path, rest: &[&str]) -> Result<(), String> {
    step("servers", servers::install)?;
    let words = ["run", "--quiet", "--release", "--locked", "--package", "quorate-chaos", "--"];
    let mut command = cargo(root, &words);
    command.args(rest);
    run(command)
}

/// What is measured of real clusters, and what the program calls it that measures: it is an agent too, to
/// which `locks` and `group` mean something else.
pub(crate) const CLUSTER_BENCHES: [(&str, &str); 4] = [
    ("cluster", "cluster"),
    ("locks", "lock-bars"),
    ("group", "group-bars"),
    ("leaders", "leaders"),
];

/// Measures against a reference, in one run.
pub(crate) fn bench(root: &Path, name: &str, rest: &[&str]) -> Result<(), String> {
    // Real clusters are measured as users build them.
    let of_clusters = CLUSTER_BENCHES.iter().find(|(known, _)| *known == name);
    let (profile, package, task) = match of_clusters {
        Some((_, task)) => ("release", "quorate-bench-cluster", *task),
        None => ("fast", "quorate-bench", name),
    };
    let words = ["run", "--quiet", "--profile", profile, "--package", package, "--", task];
    let mut command = cargo(root, &words);
    command.args(rest);
    run(command)
}
