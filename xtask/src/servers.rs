//! The programs of others that tests need: installed where that may be done, and left out elsewhere.

use std::fs;
use std::process::{Command, Stdio};

use crate::shell::{Step, output_of, run};

/// What tests need: the program, how it says its version, and Debian's package for it.
const PROGRAMS: [(&str, &str, &str); 4] = [
    ("etcd", "--version", "etcd-server"),
    // Fences in the transactions of a database.
    ("pg_ctl", "--version", "postgresql"),
    // Namespaces for members under real faults.
    ("ip", "-V", "iproute2"),
    ("unshare", "-V", "util-linux"),
];

/// Where Debian has the programs of each version of PostgreSQL, which are not in the path.
const POSTGRESQL: &str = "/usr/lib/postgresql";

/// What the tests of the lab page need.
const BROWSER: [(&str, &str, &str); 3] = [
    ("chromium", "--version", "chromium"),
    ("node", "--version", "nodejs"),
    ("npm", "--version", "npm"),
];

/// Installs what is missing, if this is a machine of Debian's and its owner asks. In CI nothing may be
/// left out.
pub(crate) fn install() -> Result<Step, String> {
    install_all(&PROGRAMS)
}

/// The same of a browser, and of what drives it.
pub(crate) fn install_browser() -> Result<Step, String> {
    install_all(&BROWSER)
}

fn install_all(programs: &[(&str, &str, &'static str)]) -> Result<Step, String> {
    let missing = programs.iter().filter(|(program, version, _)| !is_there(program, version));
    let packages: Vec<&str> = missing.map(|(.., package)| *package).collect();
    if packages.is_empty() {
        return Ok(Step::Done("all there".into()));
    }
    let names = packages.join(", ");
    if is_root() && is_there("apt-get", "--version") {
        // What is known of packages may be nothing yet, or too old.
        let installed = apt(&["install"], &packages);
        installed.or_else(|_| apt(&["update"], &[]).and_then(|()| apt(&["install"], &packages)))?;
        return Ok(Step::Done(format!("installed {names}")));
    }
    if std::env::var_os("CI").is_some_and(|value| value == "true") {
        return Err(format!("{names} is not installed, and only root can do that"));
    }
    Ok(Step::Skipped(format!("tests against {names} are left out: it is not installed")))
}

fn is_there(program: &str, version: &str) -> bool {
    let mut folders = fs::read_dir(POSTGRESQL).into_iter().flatten().flatten();
    if folders.any(|folder| folder.path().join("bin").join(program).exists()) {
        return true;
    }
    let mut asked = Command::new(program);
    asked.arg(version).stdin(Stdio::null());
    output_of(asked).is_some()
}

fn is_root() -> bool {
    let mut id = Command::new("id");
    id.arg("-u").stdin(Stdio::null());
    output_of(id).is_some_and(|user| user.trim() == "0")
}

fn apt(what: &[&str], packages: &[&str]) -> Result<(), String> {
    let mut apt = Command::new("apt-get");
    apt.args(["--quiet=2", "--yes", "--no-install-recommends"]).args(what).args(packages);
    apt.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).stdout(Stdio::null());
    run(apt)
}
