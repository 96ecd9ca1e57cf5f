//! Opens a page in the browser, if there is one to open it in.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

/// Opens the address. Whoever has no browser reads the address and opens it elsewhere.
pub(super) fn open(address: &str) {
    if !std::io::stdout().is_terminal() {
        return;
    }
    let mut command = match std::env::consts::OS {
        "macos" => Command::new("open"),
        "windows" => {
            let mut command = Command::new("cmd");
            command.args(["/c", "start", ""]);
            command
        }
        _ if !has_screen() => return,
        _ => Command::new("xdg-open"),
    };
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = command.spawn();
}

fn has_screen() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some())
}
