//! Users of locks in the process of a member: they take locks, ask how long they are good for, change what
//! these guard, and give them back. Some do not ask; some ask for locks of others by force.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use quorate_core::Span;
use quorate_fence::Fence;
use quorate_member::{Back, Guard, Locks};
use quorate_service::Nonce;
use quorate_service::history::{Fact, Record};

use crate::book::Book;
use crate::dice::Dice;
use crate::resource::{Resource, written};

/// So many locks are there.
pub(crate) const LOCKS: usize = 16;
/// So many users does a member have.
const USERS: u64 = 4;
/// So long is a lock waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// Within this time every call has to return, on a machine that is busy with other schedules.
const WITHIN: Span = Span(4_000_000_000);

/// The variable that tells a member of its users.
pub(crate) const VARIABLE: &str = "QUORATE_CHAOS_USERS";

/// What a member is told of its users.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Users {
    pub(crate) member: String,
    /// The history of the member, seen from the folder of the schedule.
    pub(crate) history: String,
    pub(crate) seed: u64,
    /// Does one of them ask for locks by force?
    pub(crate) forces: bool,
}

/// The name of a lock.
pub(crate) fn name(place: usize) -> String {
    format!("lock-{place:02}")
}

impl Users {
    /// As it is told.
    pub(crate) fn words(&self) -> String {
        let Self { member, history, seed, forces } = self;
        format!("{member} {history} {seed} {forces}")
    }

    fn read(words: &str) -> Option<Self> {
        let mut words = words.split(' ');
        Some(Self {
            member: words.next()?.to_owned(),
            history: words.next()?.to_owned(),
            seed: words.next()?.parse().ok()?,
            forces: words.next()?.parse().ok()?,
        })
    }
}

/// Begins to use locks, if this process is told to.
pub(crate) fn begin(locks: &Locks) {
    let told = std::env::var(VARIABLE).ok();
    if let Some(users) = told.as_deref().and_then(Users::read)
        && let Err(error) = start(locks, &users)
    {
        eprintln!("users: {error}");
        std::process::exit(102);
    }
}

fn start(locks: &Locks, users: &Users) -> io::Result<()> {
    let process = process(Path::new(&users.history))?;
    let path = format!("{}.users.history.jsonl", users.history.trim_end_matches(".history.jsonl"));
    let book = Book::open(Path::new(&path), users.member.clone(), process)?;
    let calls = Arc::new(AtomicU64::new(0));
    for number in 0..USERS {
        let user = User {
            locks: locks.clone(),
            book: book.another()?,
            dice: Dice::of(users.seed ^ (number + 1) << 32 ^ u64::from(std::process::id())),
            calls: Arc::clone(&calls),
            resource: Resource::connect()?,
        };
        // Its files or the resource are gone: the schedule is over.
        thread::Builder::new().name(format!("user-{number}")).spawn(move || drop(user.work()))?;
    }
    if users.forces {
        let (locks, dice) = (locks.clone(), Dice::of(users.seed));
        thread::Builder::new().name("force".into()).spawn(move || drop(force(&locks, dice)))?;
    }
    Ok(())
}

/// What this process calls itself in its history, which it has begun.
fn process(history: &Path) -> io::Result<Nonce> {
    let text = fs::read_to_string(history)?;
    let own = text.lines().rev().find_map(|line| {
        let record: Record = serde_json::from_str(line).ok()?;
        let own = std::process::id();
        matches!(record.fact, Fact::Start { pid, .. } if pid == own).then_some(record.process)
    });
    own.ok_or_else(|| io::Error::other("the member has not begun its history"))
}

/// Asks for one lock after the other by force.
fn force(locks: &Locks, mut dice: Dice) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    loop {
        sleep(Duration::from_millis(dice.between(100..=400)));
        let name = name(dice.between(0..=LOCKS as u64 - 1) as usize);
        // Nobody may hold it, and this process may be no member.
        let _ = runtime.block_on(locks.revoke(&name, Back::Forced, PATIENCE));
    }
}

/// One user.
struct User {
    locks: Locks,
    book: Book,
    dice: Dice,
    /// How many calls the users of this process have begun.
    calls: Arc<AtomicU64>,
    resource: Resource,
}

impl User {
    /// Takes all locks again and again, in any order.
    fn work(mut self) -> io::Result<()> {
        let all: Vec<usize> = (0..LOCKS).collect();
        loop {
            for place in self.dice.some(&all, LOCKS) {
                self.take(&name(place))?;
                self.pause(5..=25);
            }
        }
    }

    fn pause(&mut self, range: std::ops::RangeInclusive<u64>) {
        sleep(Duration::from_millis(self.dice.between(range)));
    }

    fn take(&mut self, name: &str) -> io::Result<()> {
        let id = self.calls.fetch_add(1, Ordering::Relaxed);
        self.book.note(Fact::Call { id, what: format!("lock {name}"), within: WITHIN })?;
        let asked = self.locks.lock(name).owner("user").timeout(PATIENCE).blocking();
        let outcome = asked.as_ref().map_or_else(ToString::to_string, |_| "granted".to_owned());
        self.book.note(Fact::Return { id, outcome })?;
        match asked {
            Ok(guard) => self.hold(&guard),
            Err(_) => {
                self.pause(10..=40);
                Ok(())
            }
        }
    }

    fn hold(&mut self, guard: &Guard) -> io::Result<()> {
        let fence = Fence::new(guard.fence().epoch.0, guard.fence().counter);
        let checks = match self.dice.between(0..=19) {
            // Somebody who does not ask: only what is guarded can refuse it.
            0 | 1 => {
                self.pause(0..=120);
                0
            }
            // Somebody who takes its time.
            2 => 20,
            _ => self.dice.between(1..=3),
        };
        for _ in 0..checks {
            let asked = quorate_transport::reading();
            let left = guard.check().map_or(Span(0), |left| Span(left.as_nanos() as u64));
            let (name, fence) = (guard.name().to_owned(), written(fence));
            self.book.note_at(asked, Fact::Checked { name, fence, left })?;
            if left == Span(0) {
                break;
            }
            self.pause(1..=4);
        }
        self.resource.change(guard.name(), fence).map(drop)
    }
}
