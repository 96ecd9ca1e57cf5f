//! The same for Corosync's closed process groups: three daemons in namespaces of their own, and clients in C.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A client of its library, which is compiled when it is measured.
const CLIENT: &str = include_str!("../corosync/cpg.c");
/// What starts the daemons and the clients.
const NODES: &str = include_str!("../corosync/nodes.sh");

/// Corosync, as it can be measured here.
pub(crate) struct Corosync {
    root: tempfile::TempDir,
    client: PathBuf,
}

impl Corosync {
    /// Gets it ready.
    ///
    /// # Errors
    /// Says what is missing.
    pub(crate) fn prepare() -> Result<Self, String> {
        let said = |error: std::io::Error| error.to_string();
        if !rustix::process::geteuid().is_root() {
            return Err("only root can make networks for it".into());
        }
        let version = Command::new("corosync").arg("-v").stdout(Stdio::null()).status();
        version.map_err(|_| "Debian's package is corosync")?;
        let root = tempfile::tempdir().map_err(said)?;
        let (source, client) = (root.path().join("cpg.c"), root.path().join("cpg"));
        fs::write(&source, CLIENT).map_err(said)?;
        fs::write(root.path().join("nodes.sh"), NODES).map_err(said)?;
        let mut command = Command::new("cc");
        command.args(["-O2", "-o"]).arg(&client).arg(&source).arg("-lcpg").stderr(Stdio::null());
        let compiled = command.status().is_ok_and(|status| status.success());
        match compiled {
            true => Ok(Self { root, client }),
            false => Err("its client needs cc and Debian's package libcpg-dev".into()),
        }
    }

    /// Messages of so many bytes for so long: how many a second, and which delay the half and one in a hundred
    /// exceed.
    ///
    /// # Errors
    /// If it does not work.
    pub(crate) fn measure(
        &self,
        size: usize,
        span: Duration,
    ) -> Result<(f64, Duration, Duration), String> {
        let place = tempfile::tempdir_in(self.root.path()).map_err(|error| error.to_string())?;
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh"]);
        command.arg(self.root.path().join("nodes.sh")).arg(&self.client).arg(place.path());
        command.args([size.to_string(), span.as_secs_f64().to_string()]);
        let output = command.output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = said.split_whitespace().filter_map(|it| it.parse().ok()).collect();
        let [rate, p50, p99] = numbers[..] else {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        };
        let nanos = |number: f64| Duration::from_nanos(number as u64);
        Ok((rate, nanos(p50), nanos(p99)))
    }
}
