//! Who sits where and was granted what, read from histories while they are written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use quorate_core::Life;
use quorate_service::Epoch;
use quorate_service::history::{Fact, News, Record};

use crate::groups::GROUPS;
use crate::leaders::ROLES;
use crate::users::LOCKS;

/// The history of one process, followed as it grows.
pub(crate) struct Watch {
    own: Follow,
    /// That of its users, once it is of use.
    users: Follow,
    /// Where it sits.
    seat: Option<Seat>,
    presides: bool,
    /// What it and its users came to since that was forgotten.
    served: Served,
}

/// A file that is read as it grows.
struct Follow {
    path: PathBuf,
    read: u64,
    /// Half a line that is still being written.
    rest: Vec<u8>,
    /// What comes next may be the second half of a line.
    half: bool,
}

/// What a process and its users came to.
#[derive(Default)]
struct Served {
    locks: BTreeSet<String>,
    leads: bool,
    /// Roles of whose leaders they were told.
    roles: BTreeSet<String>,
    /// Streams in which they have sent something, and the number of the first such message.
    posted: BTreeMap<u64, u64>,
    /// Groups from which something of their own came back.
    groups: BTreeSet<String>,
}

/// Where a process sits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seat {
    pub(crate) epoch: Epoch,
    pub(crate) life: Life,
    pub(crate) members: Vec<Life>,
}

impl Watch {
    /// Of the process that writes there, and whose users write beside it.
    pub(crate) fn new(own: PathBuf, users: PathBuf) -> Self {
        let [own, users] = [own, users].map(Follow::new);
        Self { own, users, seat: None, presides: false, served: Served::default() }
    }

    /// Reads on.
    ///
    /// # Errors
    /// That a file cannot be read, or is no history.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        for fact in self.own.look()? {
            self.learn(fact);
        }
        Ok(())
    }

    /// Reads on in what its users write as well. That costs much: they write much.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn look_at_users(&mut self) -> io::Result<()> {
        for fact in self.users.look()? {
            self.served.learn(fact);
        }
        Ok(())
    }

    fn learn(&mut self, fact: Fact) {
        match fact {
            Fact::Installed { epoch, life, members } => {
                self.seat = Some(Seat { epoch, life, members });
            }
            Fact::Stopped { .. } => self.seat = None,
            Fact::Out { .. } | Fact::Left => (self.seat, self.presides) = (None, false),
            Fact::Presides { .. } => self.presides = true,
            Fact::Lost { .. } => self.presides = false,
            Fact::Granted { .. } => self.served.learn(fact),
            _ => {}
        }
    }

    /// Has it written down anything?
    pub(crate) const fn has_begun(&self) -> bool {
        self.own.read > 0
    }

    /// Was it granted every lock and did it lead, were its users told who leads in each role, and did they get
    /// a message of their own back from each group, since all that was forgotten?
    pub(crate) fn is_served(&self) -> bool {
        let Served { locks, leads, roles, groups, .. } = &self.served;
        locks.len() == LOCKS && *leads && roles.len() == ROLES.len() && groups.len() == GROUPS.len()
    }

    /// Forgets what it and its users came to, and does not read what they wrote until now.
    ///
    /// # Errors
    /// That the file of the users cannot be looked at.
    pub(crate) fn forget_served(&mut self) -> io::Result<()> {
        self.served = Served::default();
        self.users.skip()
    }

    /// Where it sits, as far as it was read.
    pub(crate) const fn seat(&self) -> Option<&Seat> {
        self.seat.as_ref()
    }

    /// Did it say that it presides, and not that it does so no more?
    pub(crate) const fn presides(&self) -> bool {
        self.presides
    }
}

impl Served {
    fn learn(&mut self, fact: Fact) {
        match fact {
            Fact::Granted { space: None, name, .. } => _ = self.locks.insert(name),
            Fact::Granted { .. } => self.leads = true,
            Fact::Observed { role, news: News::Leads { .. } } => _ = self.roles.insert(role),
            Fact::Posted { stream, number, .. } => {
                self.posted.entry(stream).or_insert(number);
            }
            Fact::Delivered { group, from, number, .. }
                if self.posted.get(&from).is_some_and(|first| *first <= number) =>
            {
                self.groups.insert(group);
            }
            _ => {}
        }
    }
}

impl Follow {
    const fn new(path: PathBuf) -> Self {
        Self { path, read: 0, rest: Vec::new(), half: false }
    }

    /// What was written since. That there is no file yet is no error.
    fn look(&mut self) -> io::Result<Vec<Fact>> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(self.read))?;
        self.read += file.read_to_end(&mut self.rest)? as u64;
        let Some(whole) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return Ok(Vec::new());
        };
        let rest = self.rest.split_off(whole + 1);
        let lines = std::mem::replace(&mut self.rest, rest);
        let fact = |line: &[u8]| {
            serde_json::from_slice(line).map(|record: Record| record.fact).map_err(|error| {
                io::Error::other(format!("{} is no history: {error}", self.path.display()))
            })
        };
        let left_off = usize::from(std::mem::take(&mut self.half));
        let lines = lines.split(|byte| *byte == b'\n').skip(left_off);
        lines.filter(|line| !line.is_empty()).map(fact).collect()
    }

    /// Goes to the end. A file may grow in the middle of a line: the first one from there is left off.
    fn skip(&mut self) -> io::Result<()> {
        self.read = match fs::metadata(&self.path) {
            Ok(file) => file.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        self.rest.clear();
        self.half = self.read > 0;
        Ok(())
    }
}

/// Do all of these sit in one view?
pub(crate) fn together<'a>(mut seats: impl Iterator<Item = Option<&'a Seat>>) -> bool {
    let Some(Some(first)) = seats.next() else { return false };
    first.members.contains(&first.life)
        && seats.all(|seat| {
            seat.is_some_and(|seat| seat.epoch == first.epoch && first.members.contains(&seat.life))
        })
}
