//! `quorate new`: a crate with a protocol of one's own.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use quorate_lab::BadInput;

use crate::Done;
use crate::output;

/// The program that is written: the example of the library, as it is tested there.
const PROGRAM: &str = include_str!("../your_own.rs");

/// Where the library stood when this program was built.
const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../quorate");

#[derive(Args, Debug)]
pub(crate) struct NewArguments {
    /// The name of the crate, and of the folder that it is written into
    pub(crate) name: PathBuf,
    /// Where the crate quorate is [default: where this program was built from, else the registry]
    #[arg(long, value_name = "DIR")]
    pub(crate) library: Option<PathBuf>,
}

/// Writes a crate that simulates and checks a protocol of its own.
pub(crate) fn run(arguments: &NewArguments) -> Result<Done, BadInput> {
    let folder = &arguments.name;
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let first = name.chars().next();
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !first.is_some_and(|c| c.is_ascii_alphabetic()) || !name.chars().all(letters) {
        let reason =
            format!("{name:?} is not a name of a crate: a letter, then letters, digits, - and _");
        return Err(BadInput::new("NAME", reason));
    }
    if folder.exists() {
        let reason = format!("{} is there already; take another name", folder.display());
        return Err(BadInput::new("NAME", reason));
    }
    let files = [
        ("Cargo.toml", manifest(name, &library(arguments)?)),
        ("src/main.rs", PROGRAM.to_owned()),
        (".gitignore", "/target\n".to_owned()),
    ];
    for (path, text) in files {
        write(&folder.join(path), &text)?;
    }
    let folder = folder.display();
    output::print_line(&format!(
        "wrote {folder}: a protocol, users, an oracle, a simulation and a check, in src/main.rs\n\
         run it: cd {folder} && cargo run\n\
         what the parts mean: docs/guide/your-own.md of Quorate"
    ));
    Ok(Done::Holds)
}

/// The library as a dependency: by its folder, where there is one.
fn library(arguments: &NewArguments) -> Result<String, BadInput> {
    let folder = match &arguments.library {
        Some(folder) => Some(folder.canonicalize().map_err(|error| {
            BadInput::new("--library", format!("{}: {error}", folder.display()))
        })?),
        None => Path::new(LIBRARY).canonicalize().ok(),
    };
    Ok(match folder {
        Some(folder) => format!("path = {:?}", folder.display().to_string()),
        None => format!("version = {:?}", env!("CARGO_PKG_VERSION")),
    })
}

fn manifest(name: &str, library: &str) -> String {
    format!(
        "[package]\nname = {name:?}\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\n\
         quorate = {{ {library}, default-features = false, features = [\"sim\", \"check\"] }}\n\n\
         # A crate of its own, wherever it stands.\n[workspace]\n\n\
         # Checks take many steps.\n[profile.dev]\nopt-level = 1\n"
    )
}

fn write(path: &Path, text: &str) -> Result<(), BadInput> {
    let bad = |error: std::io::Error| {
        BadInput::new("NAME", format!("{} cannot be written: {error}", path.display()))
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(bad)?;
    }
    fs::write(path, text).map_err(bad)
}
