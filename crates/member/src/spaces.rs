//! Namespaces: what the locks in them are like. The register knows them, and the first word counts, so that
//! no two members ever disagree.

use std::time::Duration;

use quorate_core::{Span, Time};
use quorate_service::locks::Kind;
use quorate_service::{Order, Register, SPACES_MAX, Settings, Space};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::locks::{ALGORITHM, LockError, Locks, SPACE};
use crate::runtime::Command;

/// What the locks of a namespace are like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Namespace {
    /// The algorithm, by its name in the catalogue. `home` alone has locks that are shared, permits, and
    /// an exact answer to who does not want to wait.
    pub algorithm: String,
    /// How many may hold one at a time.
    pub permits: u32,
    /// How long nobody gets what a member may have held that is gone and did not leave.
    pub lock_delay: Duration,
}

impl Default for Namespace {
    fn default() -> Self {
        Self { algorithm: ALGORITHM.to_owned(), permits: 1, lock_delay: Duration::ZERO }
    }
}

/// The longest lock-delay.
const DELAY_MAX: Duration = Duration::from_secs(24 * 3600);
/// The longest name of a namespace, in bytes.
const NAME_MAX: usize = 255;
/// How long a definition may take that nobody gave a time.
const PATIENCE: Duration = Duration::from_secs(10);

impl From<&Space> for Namespace {
    fn from(space: &Space) -> Self {
        Self {
            algorithm: space.algorithm.clone(),
            permits: space.permits,
            lock_delay: Duration::from_nanos(space.lock_delay.0),
        }
    }
}

impl Namespace {
    /// Locks of which each has so many places.
    #[must_use]
    pub fn of_permits(permits: u32) -> Self {
        Self { permits, ..Self::default() }
    }

    /// As the register has it, if it can be.
    fn settle(&self, name: &str) -> Result<Space, LockError> {
        if name.is_empty() || name.len() > NAME_MAX {
            return refused(format!("the name of a namespace has 1 to {NAME_MAX} bytes"));
        }
        if self.lock_delay > DELAY_MAX {
            return refused("a lock-delay is a day at most");
        }
        let nanos = u64::try_from(self.lock_delay.as_nanos()).unwrap_or(u64::MAX);
        let Self { algorithm, permits, .. } = self.clone();
        let space = Space { algorithm, permits, lock_delay: Span(nanos) };
        match Kind::of(&space) {
            Ok(_) => Ok(space),
            Err(why) => refused(why.to_string()),
        }
    }
}

/// The register that a cluster begins with. It has the namespace of locks that name none, so that whoever
/// asks for one in the first moment of a cluster is not refused.
pub(crate) fn founded(from: u64, settings: Settings) -> Register {
    let mut register = Register::founded(from, settings);
    let space = Space { algorithm: ALGORITHM.to_owned(), permits: 1, lock_delay: Span(0) };
    // It is the first one.
    register.apply(&Order::Space { name: SPACE.to_owned(), space });
    register
}

fn refused<T>(why: impl Into<String>) -> Result<T, LockError> {
    Err(LockError::Refused(why.into()))
}

/// Told what came of a definition.
pub(crate) type Told = Box<dyn FnOnce(Result<(), LockError>) + Send>;

/// A namespace that somebody wants to be there.
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) space: Space,
    /// It is not ordered any more then.
    pub(crate) until: Time,
    pub(crate) told: Told,
}

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {:?}", self.name, self.space)
    }
}

impl Definition {
    /// What this register says of it; nothing if it has to be ordered.
    pub(crate) fn outcome(&self, register: &Register) -> Option<Result<(), LockError>> {
        let Some(known) = register.space(&self.name) else {
            let full = register.spaces().count() >= SPACES_MAX;
            return full.then(|| refused(format!("there are {SPACES_MAX} namespaces already")));
        };
        Some(match *known == self.space {
            true => Ok(()),
            false => {
                let Namespace { algorithm, permits, lock_delay } = known.into();
                refused(format!(
                    "the namespace {} is there, and is different: algorithm {algorithm}, permits \
                     {permits}, lock-delay {lock_delay:?}",
                    self.name
                ))
            }
        })
    }
}

impl Locks {
    /// Sees to it that there is a namespace of this name, and that its locks are like this.
    ///
    /// # Errors
    /// If there is one already that is different, or no such locks can be, or nobody confirms it in time.
    pub async fn define(&self, name: &str, namespace: &Namespace) -> Result<(), LockError> {
        let (told, done) = oneshot::channel();
        // Whoever asked may have stopped waiting.
        let put = self.put_definition(name, namespace, Box::new(|it| drop(told.send(it))))?;
        if put == Put::There {
            return Ok(());
        }
        let done = timeout(PATIENCE, done).await.map_err(|_| LockError::Timeout)?;
        done.unwrap_or(Err(LockError::Closed))
    }

    /// The same, on this thread.
    ///
    /// # Errors
    /// As [`define`](Self::define).
    pub fn define_blocking(&self, name: &str, namespace: &Namespace) -> Result<(), LockError> {
        let (told, done) = std::sync::mpsc::sync_channel(1);
        let put = self.put_definition(name, namespace, Box::new(move |it| drop(told.send(it))))?;
        if put == Put::There {
            return Ok(());
        }
        done.recv_timeout(PATIENCE).unwrap_or(Err(LockError::Timeout))
    }

    /// All namespaces.
    ///
    /// # Errors
    /// If this process belongs to no cluster yet.
    pub fn spaces(&self) -> Result<Vec<(String, Namespace)>, LockError> {
        let all = self.with_register(|register| {
            register.spaces().map(|(name, space)| (name.to_owned(), space.into())).collect()
        });
        all.ok_or(LockError::NotPrimary)
    }

    /// What has to be defined before a lock of this namespace can have so many places; nothing if it can.
    pub(crate) fn lacks(&self, name: &str, permits: u32) -> Result<Option<Namespace>, LockError> {
        let wanted = Namespace::of_permits(permits);
        match self.with_register(|register| register.space(name).map(|space| space.permits)) {
            None => Err(LockError::NotPrimary),
            Some(None) => Ok(Some(wanted)),
            Some(Some(known)) if known == permits => Ok(None),
            Some(Some(known)) => refused(format!(
                "locks of the namespace {name} have {known} permits, and not {permits}"
            )),
        }
    }

    fn with_register<R>(&self, look: impl FnOnce(&Register) -> R) -> Option<R> {
        let look =
            |heart: &mut crate::heart::Heart| heart.seat().map(|seat| look(&seat.known().register));
        self.shared.step(|heart, _, _| look(heart)).flatten()
    }

    fn put_definition(&self, name: &str, wanted: &Namespace, told: Told) -> Result<Put, LockError> {
        let space = wanted.settle(name)?;
        let until = quorate_transport::now() + Span(PATIENCE.as_nanos() as u64);
        let definition = Definition { name: name.to_owned(), space, until, told };
        match self.with_register(|register| definition.outcome(register)) {
            None => Err(LockError::NotPrimary),
            Some(Some(known)) => known.map(|()| Put::There),
            Some(None) if self.shared.tell(Command::Define(definition)) => Ok(Put::Ordered),
            Some(None) => Err(LockError::Closed),
        }
    }
}

/// What became of a definition at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Put {
    /// It was there already.
    There,
    /// It is on its way.
    Ordered,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_begins_with_the_namespace_of_locks_that_name_none() {
        let register = founded(7, Settings { lease: Span(1) });
        let spaces: Vec<_> = register.spaces().collect();
        let [(SPACE, space)] = spaces[..] else { panic!("{spaces:?}") };
        assert_eq!(Namespace::from(space), Namespace::default());
        assert!(Kind::of(space).is_ok());
    }
}
