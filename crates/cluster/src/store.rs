//! Where a node keeps what it persists.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use quorate_core::{Durable, Kept, Stored, Stowed};

use crate::shared::lock;

/// Where a node keeps what it persists.
pub trait Store<R>: Send {
    /// Keeps a record, in place of an earlier one with its key. When this returns, the record
    /// survives a crash of the node; nothing that the node wants done after it is done before.
    ///
    /// # Errors
    /// If the record may not survive. The node then ends.
    fn put(&mut self, record: &R) -> io::Result<()>;
}

/// A store that outlives the node, not the process: whoever starts the node again in the same
/// process hands it what is in here.
#[derive(Clone, Debug)]
pub struct Memory<R: Durable>(Arc<Mutex<Kept<R>>>);

impl<R: Durable> Memory<R> {
    /// A store with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Kept::new())))
    }

    /// What is kept.
    #[must_use]
    pub fn kept(&self) -> Kept<R> {
        lock(&self.0).clone()
    }
}

impl<R: Durable> Default for Memory<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Durable> Store<R> for Memory<R> {
    fn put(&mut self, record: &R) -> io::Result<()> {
        lock(&self.0).put(record.clone());
        Ok(())
    }
}

/// A store in a file of its own: records are appended, and are on the disk when [`Store::put`]
/// returns. The thread that puts one waits for the disk.
///
/// Each record is a frame: its length and its checksum, four bytes each with the least significant
/// first, and so many bytes of postcard. Of several records with one key the last one counts.
#[derive(Debug)]
pub struct FileStore<R: Durable> {
    dir: PathBuf,
    file: File,
    /// By how much the file has grown since it was written anew.
    grown: u64,
    kept: Kept<R>,
    frame: Vec<u8>,
}

/// The longest record, in bytes.
const RECORD_MAX: usize = 1 << 20;
/// The longest file that is read.
const FILE_MAX: u64 = 64 << 20;
/// A file that has grown by so much is written anew, with one frame for each key.
const GROWTH_MAX: u64 = 1 << 20;
/// Length and checksum.
const HEADER: usize = 8;

impl<R: Stored> FileStore<R> {
    /// Opens the store of a directory, which is made if it does not exist. A frame at the end that
    /// was not written completely is dropped: nobody has been told that it was kept.
    ///
    /// # Errors
    /// If it cannot be read or written, or there is something else in the file than was written.
    pub fn open(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let bytes = read(&path(dir))?;
        let kept = parse(&bytes)?;
        let file = write_anew(dir, &kept)?;
        Ok(Self { dir: dir.to_owned(), file, grown: 0, kept, frame: Vec::new() })
    }

    /// What is kept.
    #[must_use]
    pub fn kept(&self) -> Kept<R> {
        self.kept.clone()
    }
}

impl<R: Stored> Store<R> for FileStore<R> {
    fn put(&mut self, record: &R) -> io::Result<()> {
        seal(&mut self.frame, record)?;
        self.file.write_all(&self.frame)?;
        self.file.sync_data()?;
        self.grown += self.frame.len() as u64;
        self.kept.put(record.clone());
        if self.grown > GROWTH_MAX {
            self.file = write_anew(&self.dir, &self.kept)?;
            self.grown = 0;
        }
        Ok(())
    }
}

fn path(dir: &Path) -> PathBuf {
    dir.join("kept")
}

fn corrupt(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(FILE_MAX + 1).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(bytes),
        Err(error) => return Err(error),
    };
    if bytes.len() as u64 > FILE_MAX {
        return Err(corrupt("the store is longer than any that was written"));
    }
    Ok(bytes)
}

/// Reads all frames but a torn one at the end.
fn parse<R: Stored>(mut bytes: &[u8]) -> io::Result<Kept<R>> {
    let mut kept = Kept::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() {
        let [a, b, c, d, checksum @ ..] = *header;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let Some((payload, after)) = rest.split_at_checked(length) else {
            if length > RECORD_MAX {
                return Err(corrupt("a record in the store is longer than allowed"));
            }
            break;
        };
        if length == 0 || crc32(payload) != u32::from_le_bytes(checksum) {
            // Some file systems lengthen a file before they write into it.
            if after.iter().all(|byte| *byte == 0) {
                break;
            }
            return Err(corrupt("a record in the store is damaged, and others follow"));
        }
        match postcard::take_from_bytes::<Stowed<R>>(payload) {
            Ok((Stowed(record), [])) => kept.put(record),
            _ => return Err(corrupt("a record in the store is of another kind")),
        };
        bytes = after;
    }
    Ok(kept)
}

/// Replaces the file by one with what is kept and nothing else. A crash leaves the old or the new.
fn write_anew<R: Stored>(dir: &Path, kept: &Kept<R>) -> io::Result<File> {
    let (new, mut frame) = (dir.join("kept.new"), Vec::new());
    let mut file = File::create(&new)?;
    for record in kept.iter() {
        seal(&mut frame, record)?;
        file.write_all(&frame)?;
    }
    file.sync_all()?;
    fs::rename(&new, path(dir))?;
    sync_dir(dir)?;
    OpenOptions::new().append(true).open(path(dir))
}

/// Makes names durable, where directories can be opened.
fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

fn seal<R: Stored>(frame: &mut Vec<u8>, record: &R) -> io::Result<()> {
    frame.clear();
    frame.extend_from_slice(&[0; HEADER]);
    *frame =
        postcard::to_extend(&Stowed(record), std::mem::take(frame)).map_err(io::Error::other)?;
    let payload = &frame[HEADER..];
    let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= RECORD_MAX);
    let length = length.ok_or_else(|| io::Error::other("a record is longer than allowed"))?;
    let checksum = crc32(payload);
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[4..HEADER].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

/// The checksum of Ethernet (IEEE 802.3).
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_core::{Sole, ViewId};

    type Record = Sole<ViewId>;

    fn frames(views: &[u64]) -> Vec<u8> {
        let (mut frame, mut all) = (Vec::new(), Vec::new());
        for view in views {
            seal(&mut frame, &Sole(ViewId(*view))).unwrap();
            all.extend_from_slice(&frame);
        }
        all
    }

    fn parsed(bytes: &[u8]) -> io::Result<Option<u64>> {
        parse::<Record>(bytes).map(|kept| kept.sole().map(|view| view.0))
    }

    #[test]
    fn the_last_record_counts_and_a_torn_one_does_not() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let one = frames(&[1]).len();
        let bytes = frames(&[1, 2]);
        assert_eq!(parsed(&bytes).unwrap(), Some(2));
        for cut in one..bytes.len() {
            assert_eq!(parsed(&bytes[..cut]).unwrap(), Some(1), "cut at {cut}");
        }
        let zeroes = [&bytes[..one], &[0; 40]].concat();
        assert_eq!(parsed(&zeroes).unwrap(), Some(1));
    }

    #[test]
    fn damage_in_the_middle_is_no_torn_end() {
        let mut bytes = frames(&[1, 2]);
        bytes[HEADER] ^= 1;
        assert_eq!(parsed(&bytes).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let absurd = u32::MAX.to_le_bytes().repeat(4);
        assert_eq!(parsed(&absurd).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn what_was_put_is_there_after_a_restart() {
        let name = format!("quorate-store-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let mut store = FileStore::<Record>::open(&dir).unwrap();
        assert!(store.kept().is_empty());
        for view in [7, 8] {
            store.put(&Sole(ViewId(view))).unwrap();
        }
        drop(store);
        let mut torn = OpenOptions::new().append(true).open(path(&dir)).unwrap();
        torn.write_all(&frames(&[9])[..HEADER]).unwrap();
        let mut store = FileStore::<Record>::open(&dir).unwrap();
        assert_eq!(store.kept().sole(), Some(&ViewId(8)));
        store.put(&Sole(ViewId(10))).unwrap();
        assert_eq!(FileStore::<Record>::open(&dir).unwrap().kept().sole(), Some(&ViewId(10)));
        fs::remove_dir_all(&dir).unwrap();
    }
}
