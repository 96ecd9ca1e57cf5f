//! The servers that tests run against: installed where that may be done, and left out elsewhere.

use std::process::{Command, Stdio};

use crate::shell::{Step, output_of, run};

/// What tests need: the program, and Debian's package for it.
const SERVERS: [(&str, &str); 1] = [("etcd", "etcd-server")];

/// Installs what is missing, if this is a machine of Debian's and its owner asks. In CI nothing may be
/// left out.
pub(crate) fn install() -> Result<Step, String> {
    let missing = SERVERS.iter().filter(|(program, _)| !is_there(program));
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if packages.is_empty() {
        return Ok(Step::Done("all there".into()));
    }
    let names = packages.join(", ");
    if is_root() && is_there("apt-get") {
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

fn is_there(program: &str) -> bool {
    let mut asked = Command::new(program);
    asked.arg("--version").stdin(Stdio::null());
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
