//! `quorate lab`: the lab page, served from the binary on loopback.

mod browser;
mod http;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use clap::Args;
use quorate_lab::BadInput;
use quorate_site::Asset;

use crate::Done;
use crate::output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quorate lab                       open the lab in the browser
  quorate lab --port 8080 --no-open serve it there, and only say where
  quorate lab --export site         write the page as files, to be hosted anywhere

The page runs the same engines, in the browser: nothing that is typed or dropped there leaves it.";

#[derive(Args, Debug)]
pub(crate) struct LabArguments {
    /// The port on loopback [default: any that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
    /// Write the page into this folder, and serve nothing
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["port", "no_open"])]
    export: Option<PathBuf>,
}

/// Serves the page until the process ends, or writes it down.
pub(crate) fn run(arguments: &LabArguments) -> Result<Done, BadInput> {
    if let Some(folder) = &arguments.export {
        return export(folder);
    }
    let place = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let bad = |error: io::Error| BadInput::new("--port", format!("{place}: {error}"));
    let listener = TcpListener::bind(place).map_err(bad)?;
    let address = format!("http://{}/", listener.local_addr().map_err(bad)?);
    output::print_line(&format!("the lab is at {address}"));
    if !arguments.no_open {
        browser::open(&address);
    }
    http::serve(&listener).map_err(bad)?;
    Ok(Done::Holds)
}

/// Writes the files of the page as a server would send them to a browser that unpacks nothing.
fn export(folder: &Path) -> Result<Done, BadInput> {
    let bad = |path: &Path, error: &io::Error| output::bad_file("--export", path, error);
    std::fs::create_dir_all(folder).map_err(|error| bad(folder, &error))?;
    for asset in Asset::all() {
        let path = folder.join(asset.name);
        let bytes = asset.plain().map_err(|error| bad(&path, &error))?;
        let written = std::fs::File::create(&path).and_then(|mut file| file.write_all(&bytes));
        written.map_err(|error| bad(&path, &error))?;
    }
    output::print_line(&format!("the page is in {}", folder.display()));
    Ok(Done::Holds)
}
