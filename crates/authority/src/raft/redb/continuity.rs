//! Is this the file that was last written, or a copy or an older state of it?
//!
//! A voter that goes back forgets what it promised, and no other voter can notice in every case. So
//! before it starts, what the file knows of itself is compared with what the system knows of it: where
//! and when it was made, and how often it was written, which is kept beside it (in an extended attribute,
//! which stays when older bytes are copied over the file) as well as in it. A volume that goes back as a
//! whole takes both along: that is not noticed.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use serde::{Deserialize, Serialize};

const COUNT: &str = "user.quorate.count";

/// What a file knows of itself: its inode, and when that was made, where the system says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Birth {
    inode: u64,
    at: Option<u128>,
}

/// What the system knows of a file.
#[derive(Debug)]
pub(super) struct Continuity {
    file: File,
}

impl Continuity {
    pub(super) const fn new(file: File) -> Self {
        Self { file }
    }

    pub(super) fn birth(&self) -> io::Result<Birth> {
        let about = self.file.metadata()?;
        let created = about.created().ok();
        let at = created.and_then(|at| Some(at.duration_since(UNIX_EPOCH).ok()?.as_nanos()));
        Ok(Birth { inode: about.ino(), at })
    }

    /// Keeps the count beside the file, after it is durable in it: so what is beside it is never more,
    /// unless the file went back. Where it cannot be kept, less is noticed.
    pub(super) fn keep(&self, count: u64) -> bool {
        fsetxattr(&self.file, COUNT, &count.to_le_bytes(), XattrFlags::empty()).is_ok()
    }

    /// The count that is kept beside the file, if one is.
    pub(super) fn kept(&self) -> Option<u64> {
        let mut bytes = [0; 8];
        let length = fgetxattr(&self.file, COUNT, &mut bytes).ok()?;
        (length == bytes.len()).then(|| u64::from_le_bytes(bytes))
    }

    /// Why a file that says this of itself is not the one that was last written, if it is not.
    pub(super) fn broken(&self, born: Birth, count: u64, beside: bool) -> Option<&'static str> {
        match self.birth() {
            Ok(birth) if birth == born => {}
            _ => return Some("it is a copy"),
        }
        match self.kept() {
            None if beside => Some("it is a copy"),
            Some(kept) if kept > count => Some("it is older than what was last written"),
            _ => None,
        }
    }
}
