//! The operator's tool for the files of gates.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use quorate_fence::{Fence, FileGate};

const USAGE: &str = "\
usage: quorate-fence create FILE         make a gate that knows nothing
       quorate-fence show FILE           say what it knows, also while it is used
       quorate-fence repair FILE FENCE   make a usable one of a damaged or lost one, which refuses
                                         everything below this fence";

fn main() -> ExitCode {
    let words: Result<Vec<_>, _> = std::env::args_os().skip(1).map(OsString::into_string).collect();
    let Ok(words) = words else { return wrong("only words in UTF-8 are understood") };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["help" | "--help" | "-h"] => Ok(USAGE.to_owned()),
        ["create", path] => create(path.into()),
        ["show", path] => show(path.into()),
        ["repair", path, fence] => match fence.parse() {
            Ok(fence) => repair(path.into(), fence),
            Err(error) => return wrong(&format!("{fence}: {error}")),
        },
        _ => return wrong(USAGE),
    };
    match done {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn wrong(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::from(2)
}

fn create(path: PathBuf) -> Result<String, quorate_fence::OpenError> {
    FileGate::create(&path)?;
    Ok(format!("made {}", path.display()))
}

fn show(path: PathBuf) -> Result<String, quorate_fence::OpenError> {
    let contents = FileGate::inspect(path)?;
    let mut text = format!("names    {}\nfloor    {}\n", contents.names, contents.floor);
    text += &match contents.highest {
        Some(highest) => format!(
            "highest  {highest}\n\
             A cluster that has lost everything has to begin above epoch {}:\n  \
             quorate recover --force --epoch-above {}",
            highest.epoch, highest.epoch
        ),
        None => "highest  none".to_owned(),
    };
    Ok(text)
}

fn repair(path: PathBuf, floor: Fence) -> Result<String, quorate_fence::OpenError> {
    let copy = FileGate::repair(&path, floor)?;
    let mut text = format!("{} refuses everything below {floor}", path.display());
    if let Some(copy) = copy {
        text += &format!("\nwhat was there is kept as {}", copy.display());
    }
    Ok(text)
}
