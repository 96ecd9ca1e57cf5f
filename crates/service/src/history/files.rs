//! The histories of a cluster as files: one per process, one JSON line per fact.
//!
//! Files come from anywhere, so nothing in them is believed: whatever is wrong is one sentence with the
//! number of its line, and every length has a limit. A process that is killed may leave half a line
//! behind; that one is not read.

use std::borrow::ToOwned;
use std::format;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use super::{History, Record};

/// How the names of history files end.
pub const ENDING: &str = ".history.jsonl";
/// The longest line that is read, in bytes.
pub const LINE_BYTES_MAX: u64 = 1 << 16;
/// The most records that are read, of all files together.
pub const RECORDS_MAX: usize = 5_000_000;
/// The most files that are read.
pub const FILES_MAX: usize = 10_000;
/// The most names that are looked at.
const NAMES_MAX: usize = 1_000_000;
/// How deep folders may be in each other.
const DEPTH_MAX: usize = 16;

/// What was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gathered {
    /// All records.
    pub history: History,
    /// How many files they come from.
    pub files: usize,
    /// How many of these end in half a line.
    pub torn: usize,
}

/// Reads all histories below a folder.
///
/// # Errors
/// The first thing that is wrong, in a sentence, or that there are none.
pub fn gather(folder: &Path) -> Result<Gathered, String> {
    let files = files(folder)?;
    if files.is_empty() {
        return Err(format!("there is no file *{ENDING} below {}", folder.display()));
    }
    let (mut records, mut torn) = (Vec::new(), 0);
    for path in &files {
        let wrong = |why: String| format!("{}: {why}", path.display());
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let room = RECORDS_MAX - records.len();
        let (read, is_torn) = read_file(BufReader::new(file), room).map_err(wrong)?;
        records.extend(read);
        torn += usize::from(is_torn);
    }
    Ok(Gathered { history: History::new(records), files: files.len(), torn })
}

/// The records of one file, and whether it ends in half a line.
fn read_file(mut input: impl BufRead, room: usize) -> Result<(Vec<Record>, bool), String> {
    let (mut records, mut line) = (Vec::new(), Vec::new());
    for number in 1_usize.. {
        line.clear();
        // One more than the limit and the line's end: so that too much is seen as such.
        let read = input.by_ref().take(LINE_BYTES_MAX + 2).read_until(b'\n', &mut line);
        read.map_err(|error| format!("line {number}: it cannot be read: {error}"))?;
        if line.is_empty() {
            break;
        }
        let whole = line.ends_with(b"\n");
        if (line.len() - usize::from(whole)) as u64 > LINE_BYTES_MAX {
            return Err(format!("line {number}: it is longer than {LINE_BYTES_MAX} bytes"));
        }
        match serde_json::from_slice(&line) {
            Ok(_) if records.len() == room => {
                return Err(format!("line {number}: there are more than {RECORDS_MAX} records"));
            }
            Ok(record) => records.push(record),
            Err(_) if !whole => return Ok((records, true)),
            Err(error) => return Err(format!("line {number}: {error}")),
        }
    }
    Ok((records, false))
}

/// The history files below a folder, in order. What only leads elsewhere is not followed.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let (mut files, mut names) = (Vec::new(), 0);
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let bad = |error| format!("{}: {error}", folder.display());
        if depth > DEPTH_MAX {
            return Err(format!("{}: folders are too deep in each other", folder.display()));
        }
        for entry in fs::read_dir(&folder).map_err(bad)? {
            let entry = entry.map_err(bad)?;
            let kind = entry.file_type().map_err(bad)?;
            names += 1;
            if kind.is_dir() {
                folders.push((entry.path(), depth + 1));
            } else if kind.is_file() && entry.file_name().to_string_lossy().ends_with(ENDING) {
                files.push(entry.path());
            }
            if files.len() > FILES_MAX || names > NAMES_MAX {
                return Err(format!("{}: there are too many files", folder.display()));
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests;
