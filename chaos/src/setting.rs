//! What a machine has to have for members to be put under real faults.

use std::fs::File;
use std::process::{Command, Stdio};

/// What runs namespaces: the program, and Debian's package for it.
pub const TOOLS: [(&str, &str); 2] = [("ip", "iproute2"), ("unshare", "util-linux")];

/// Why this machine cannot do it, in one sentence; nothing if it can.
///
/// # Panics
/// In CI, where it has to.
#[must_use]
pub fn missing() -> Option<String> {
    let reason = reason();
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    if let Some(reason) = &reason {
        assert!(!in_ci, "{reason}, and in CI nothing is left out");
    }
    reason
}

fn reason() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root can make namespaces and devices".to_owned());
    }
    if let Err(error) = File::options().read(true).write(true).open("/dev/net/tun") {
        return Some(format!("/dev/net/tun cannot be opened: {error}"));
    }
    let absent = TOOLS.iter().find(|(program, _)| !is_there(program));
    absent
        .map(|(program, package)| format!("{program} is not there, of Debian's package {package}"))
}

fn is_there(program: &str) -> bool {
    let mut asked = Command::new(program);
    asked.arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}
