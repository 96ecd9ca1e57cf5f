//! A data directory while no member runs on it: what a person does when a cluster cannot go on by itself.
//!
//! Whatever is done here is done in an order in which every crash leaves something that is safe to start:
//! a disk of the old cluster, or none, never the new disk under the old cluster's name.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorate_authority::raft::{Disk as _, Redb, Stored};
use quorate_service::Register;
use quorate_service::founding::{Instance, Standing};
use quorate_service::lease::silence;
use serde::{Deserialize, Serialize};

use crate::consensus::random_id;
use crate::place::{Place, PlaceError};

/// The version of the format of backups.
const VERSION: u32 = 1;

/// A copy of what a cluster has agreed on: who is admitted, settings and namespaces. Locks are not in it:
/// who holds one is known by its holder.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Backup {
    /// The version of the format.
    pub quorate_backup: u32,
    /// The name of the cluster.
    pub cluster_name: String,
    /// Its id, in 32 hexadecimal digits.
    pub cluster: String,
    /// The member that made it.
    pub member: String,
    /// When, by the calendar: milliseconds since 1970.
    pub at_ms: u64,
    register: Register,
}

impl Backup {
    pub(crate) fn new(cluster_name: &str, cluster: &str, member: &str, register: Register) -> Self {
        let (cluster_name, cluster) = (cluster_name.to_owned(), cluster.to_owned());
        let (member, at_ms) = (member.to_owned(), unix_ms());
        Self { quorate_backup: VERSION, cluster_name, cluster, member, at_ms, register }
    }

    /// The view that was decided last when it was made.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.register.epoch().0
    }

    /// Can this program read it?
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub fn check(&self) -> Result<(), OfflineError> {
        match self.quorate_backup {
            VERSION => Ok(()),
            other => Err(OfflineError(format!(
                "this backup has format {other}, and this program reads {VERSION}: use the quorate that \
                 wrote it"
            ))),
        }
    }

    /// How long somebody may still act on what it says.
    #[must_use]
    pub fn wait(&self) -> Duration {
        wait(&self.register)
    }
}

/// Why a directory cannot be used so: a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfflineError(String);

impl fmt::Display for OfflineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OfflineError {}

impl From<PlaceError> for OfflineError {
    fn from(error: PlaceError) -> Self {
        Self(match error {
            PlaceError::InUse(_) => format!("{error}: end its agent first"),
            _ => error.to_string(),
        })
    }
}

/// The data directory of a member that does not run.
#[derive(Debug)]
pub struct Offline {
    place: Place,
}

/// What is on the disk of a seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    register: Register,
    /// What others may have decided that is in the log and not in the register yet.
    pending: u64,
}

/// A cluster that goes on under another id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anew {
    /// Its id, in 32 hexadecimal digits.
    pub cluster: String,
    /// Where its epochs begin.
    pub epoch: u64,
    /// Where the disk of the old one was put, if there was one.
    pub aside: Option<std::path::PathBuf>,
}

impl Found {
    /// The view that was decided last, as far as this disk knows.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.register.epoch().0
    }

    /// How long somebody may still act on what it says.
    #[must_use]
    pub fn wait(&self) -> Duration {
        wait(&self.register)
    }
}

impl Offline {
    /// The directory of a member that there is.
    ///
    /// # Errors
    /// If a process uses it, or there is none.
    pub fn open(directory: &Path) -> Result<Self, OfflineError> {
        match Place::reopen(directory)? {
            Some(place) => Ok(Self { place }),
            None => Err(OfflineError(format!(
                "{}: there is no member in this directory",
                directory.display()
            ))),
        }
    }

    /// An empty directory, for the member of this name.
    ///
    /// # Errors
    /// If there is something in it.
    pub fn blank(directory: &Path, name: &str) -> Result<Self, OfflineError> {
        let place = Place::take(directory, name)?;
        if place.standing().is_some() || place.authority().exists() {
            return Err(OfflineError(format!(
                "{}: there is a member in this directory: take an empty one",
                directory.display()
            )));
        }
        Ok(Self { place })
    }

    /// Whose it is.
    #[must_use]
    pub fn name(&self) -> &str {
        self.place.name()
    }

    /// Forgets to whom it is pledged; what that was, if there was anything.
    ///
    /// # Errors
    /// If it belongs to a cluster: then there is no pledge that could be cleared.
    pub fn clear_pledge(&mut self) -> Result<Option<String>, OfflineError> {
        match self.place.standing() {
            None => Ok(None),
            Some(Standing::Belongs(Instance(cluster))) => Err(OfflineError(format!(
                "{} belongs to the cluster {cluster:032x}: that is no pledge, and is not cleared",
                self.name()
            ))),
            Some(_) if self.place.authority().exists() => Err(OfflineError(format!(
                "{} has a disk of the consensus: it may have founded the cluster, start it instead",
                self.name()
            ))),
            Some(Standing::Asking(Instance(to)) | Standing::Pledged(Instance(to))) => {
                self.place.keep(None)?;
                Ok(Some(format!("{to:032x}")))
            }
        }
    }

    /// What its disk knows.
    ///
    /// # Errors
    /// If it cannot be read, or must not be believed.
    pub fn read(&self) -> Result<Found, OfflineError> {
        let directory = self.place.authority();
        let wrong = |error: &dyn fmt::Display| {
            OfflineError(format!(
                "{}: {error}; if there is a backup, use quorate restore",
                directory.display()
            ))
        };
        let mut disk = Redb::open(&directory).map_err(|error| wrong(&error))?;
        let stored = disk.start().map_err(|error| wrong(&error))?;
        let pending = stored.entries.len() as u64;
        Ok(Found { register: stored.applied.state.register, pending })
    }

    /// Makes this member the only voter of a new cluster, which knows what the disk knew. Its epochs and
    /// lives begin above all that the disk knows, the calendar, and this.
    ///
    /// # Errors
    /// If it cannot be written. What there was is left as it was, or put aside.
    pub fn recover(&mut self, found: &Found, above: u64) -> Result<Anew, OfflineError> {
        let known = found.register.epoch().0.saturating_add(found.pending);
        self.begin(&found.register, above.max(known))
    }

    /// Makes this member the only voter of a new cluster, which knows what the backup knew.
    ///
    /// # Errors
    /// As of [`recover`](Self::recover).
    pub fn restore(&mut self, backup: &Backup, above: u64) -> Result<Anew, OfflineError> {
        self.begin(&backup.register, above)
    }

    fn begin(&mut self, register: &Register, above: u64) -> Result<Anew, OfflineError> {
        let register = register.recovered(above.saturating_add(1).max(unix_ms()));
        let (directory, id) = (self.place.authority(), random_id());
        let fresh = directory.with_extension("new");
        let wrong =
            |error: &dyn fmt::Display| OfflineError(format!("{}: {error}", fresh.display()));
        if fresh.exists() {
            // Nobody has ever voted with it.
            fs::remove_dir_all(&fresh).map_err(|error| wrong(&error))?;
        }
        let epoch = register.epoch().0;
        let stored = Stored::founding(id, vec![id], register).map_err(|error| wrong(&error))?;
        drop(Redb::create(&fresh, &stored).map_err(|error| wrong(&error))?);
        let aside = match directory.exists() {
            true => Some(self.place.set_authority_aside()?),
            false => None,
        };
        let cluster = quorate_transport::nonce();
        self.place.keep(Some(Standing::Belongs(Instance(cluster))))?;
        fs::rename(&fresh, &directory).map_err(|error| wrong(&error))?;
        let synced = fs::File::open(self.place.directory()).and_then(|it| it.sync_all());
        synced.map_err(|error| wrong(&error))?;
        Ok(Anew { cluster: format!("{cluster:032x}"), epoch, aside })
    }
}

/// For how long after the last word of a cluster somebody may still act: nobody has renewed since.
fn wait(register: &Register) -> Duration {
    Duration::from_nanos(silence(register.longest_lease()).0)
}

/// The calendar, in milliseconds since 1970.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use quorate_core::Span;
    use quorate_service::{Order, Settings};

    use super::*;

    fn founded(root: &Path, epoch: u64) -> Offline {
        let mut place = Place::take(root, "a").unwrap();
        let register = Register::founded(epoch, Settings { lease: Span(2_000_000_000) });
        let stored = Stored::founding(7, vec![7], register).unwrap();
        drop(Redb::create(&place.authority(), &stored).unwrap());
        place.keep(Some(Standing::Belongs(Instance(5)))).unwrap();
        drop(place);
        Offline::open(root).unwrap()
    }

    #[test]
    fn a_recovered_cluster_has_another_id_and_larger_epochs() {
        let root = tempfile::tempdir().unwrap();
        // As if its clock had been wrong when it was founded: ten years ahead.
        let ahead = unix_ms() + 10 * 365 * 86_400_000;
        let mut offline = founded(root.path(), ahead);
        let found = offline.read().unwrap();
        assert_eq!((found.epoch(), found.wait()), (ahead, Duration::from_millis(2_200)));
        let anew = offline.recover(&found, 3).unwrap();
        assert!(anew.epoch > ahead && anew.cluster != format!("{:032x}", 5));
        assert!(anew.aside.unwrap().ends_with("authority.1"));
        assert_eq!(offline.read().unwrap().epoch(), anew.epoch);
        let found = offline.read().unwrap();
        let again = offline.recover(&found, anew.epoch + 1_000).unwrap();
        assert!(again.epoch > anew.epoch + 1_000);
    }

    #[test]
    fn a_backup_is_restored_into_an_empty_directory_only() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        drop(founded(root.path(), 9));
        let mut register = Register::founded(9, Settings { lease: Span(1) });
        let space =
            quorate_service::Space { algorithm: "home".into(), permits: 2, lock_delay: Span(0) };
        register.apply(&Order::Space { name: "jobs".into(), space });
        let backup = Backup::new("main", "05", "a", register);
        let text = serde_json::to_string(&backup).unwrap();
        let backup: Backup = serde_json::from_str(&text).unwrap();
        assert!(Offline::blank(root.path(), "a").is_err());
        let mut offline = Offline::blank(other.path(), "a").unwrap();
        let anew = offline.restore(&backup, 0).unwrap();
        assert!(anew.epoch > 9 && anew.aside.is_none());
        assert!(offline.read().unwrap().register.space("jobs").is_some());
        let later = Backup { quorate_backup: 2, ..backup };
        assert!(later.check().unwrap_err().to_string().contains("format 2"));
    }

    #[test]
    fn a_pledge_is_cleared_and_a_cluster_is_not() {
        let root = tempfile::tempdir().unwrap();
        let mut place = Place::take(root.path(), "b").unwrap();
        place.keep(Some(Standing::Pledged(Instance(0xab)))).unwrap();
        assert!(Offline::open(root.path()).unwrap_err().to_string().contains("end its agent"));
        drop(place);
        let mut offline = Offline::open(root.path()).unwrap();
        assert_eq!(offline.clear_pledge().unwrap().as_deref(), Some(&*format!("{:032x}", 0xab)));
        assert_eq!(offline.clear_pledge().unwrap(), None);
        let other = tempfile::tempdir().unwrap();
        assert!(founded(other.path(), 1).clear_pledge().is_err());
        let nothing = tempfile::tempdir().unwrap();
        assert!(Offline::open(nothing.path()).unwrap_err().to_string().contains("no member"));
    }
}
