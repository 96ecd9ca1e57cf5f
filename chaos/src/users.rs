//! Users in the process of a member. Those of locks take them, ask how long they are good for, change what
//! they guard, and give them back. Some do not ask; some ask for locks of others by force. Candidates and
//! observers of roles (`leaders.rs`) and participants of groups (`groups.rs`) share one more thread.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::Duration;

use quorate_core::Span;
use quorate_fence::Fence;
use quorate_member::{Back, Guard, Locks, Member};
use quorate_service::Nonce;
use quorate_service::history::{Fact, Record};

use crate::book::Book;
use crate::dice::Dice;
use crate::groups::{GROUPS, Participant};
use crate::leaders::{Party, ROLES};
use crate::resource::{Resource, written};

/// So many locks are there.
pub(crate) const LOCKS: usize = 16;
/// So many users does a member have.
const USERS: u64 = 4;
/// So long is a role waited for, and an answer to somebody who forces.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// So long is a lock waited for by most: longer than its queue takes when the users of all members stand
/// in it, on a machine that is busy with other schedules.
const WAIT: Duration = Duration::from_secs(2);
/// So many milliseconds is it waited for by the others.
const GLANCE: std::ops::RangeInclusive<u64> = 1..=200;
/// Within this time every call has to return, on a machine that is busy with other schedules.
pub(crate) const WITHIN: Span = Span(5_000_000_000);

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
    /// Pauses are so many times as long as they are at least.
    pub(crate) pace: u64,
}

/// The name of a lock.
pub(crate) fn name(place: usize) -> String {
    format!("lock-{place:02}")
}

impl Users {
    /// As it is told.
    pub(crate) fn words(&self) -> String {
        let Self { member, history, seed, forces, pace } = self;
        format!("{member} {history} {seed} {forces} {pace}")
    }

    fn read(words: &str) -> Option<Self> {
        let mut words = words.split(' ');
        Some(Self {
            member: words.next()?.to_owned(),
            history: words.next()?.to_owned(),
            seed: words.next()?.parse().ok()?,
            forces: words.next()?.parse().ok()?,
            pace: words.next()?.parse().ok()?,
        })
    }
}

/// Begins to use the cluster, if this process is told to.
pub(crate) fn begin(member: &Arc<Member>) {
    let told = std::env::var(VARIABLE).ok();
    if let Some(users) = told.as_deref().and_then(Users::read)
        && let Err(error) = start(member, &users)
    {
        eprintln!("users: {error}");
        std::process::exit(102);
    }
}

/// Where users write, seen from where the member of this history does.
pub(crate) fn history_beside(history: &str) -> String {
    format!("{}.users.history.jsonl", history.trim_end_matches(".history.jsonl"))
}

fn start(member: &Arc<Member>, users: &Users) -> io::Result<()> {
    let locks = &member.locks();
    let process = process(Path::new(&users.history))?;
    let path = history_beside(&users.history);
    let book = Book::open(Path::new(&path), users.member.clone(), process)?;
    let calls = Arc::new(AtomicU64::new(0));
    let deck = Deck::shared(Dice::of(users.seed ^ u64::from(std::process::id())));
    for number in 0..USERS {
        let user = User {
            locks: locks.clone(),
            book: book.another()?,
            dice: Dice::of(users.seed ^ (number + 1) << 32 ^ u64::from(std::process::id())),
            calls: Arc::clone(&calls),
            deck: Arc::clone(&deck),
            resource: Resource::connect()?,
            pace: users.pace,
        };
        // Its files or the resource are gone: the schedule is over.
        thread::Builder::new().name(format!("user-{number}")).spawn(move || drop(user.work()))?;
    }
    if users.forces {
        let (locks, dice) = (locks.clone(), Dice::of(users.seed));
        thread::Builder::new().name("force".into()).spawn(move || drop(force(&locks, dice)))?;
    }
    let members = Members { member: Arc::clone(member), book, users: users.clone(), calls };
    thread::Builder::new().name("members".into()).spawn(move || drop(members.work())).map(drop)
}

/// Those who need a member and not only locks.
struct Members {
    member: Arc<Member>,
    book: Book,
    users: Users,
    calls: Arc<AtomicU64>,
}

impl Members {
    fn work(&self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for (place, role) in ROLES.iter().enumerate() {
                tasks.spawn(self.party(2 * place as u64)?.stand(role));
                tasks.spawn(self.party(2 * place as u64 + 1)?.observe(role));
            }
            let streams = Arc::new(AtomicU64::new(0));
            for (place, (group, stateful)) in GROUPS.into_iter().enumerate() {
                let participant = Participant {
                    member: Arc::clone(&self.member),
                    book: self.book.another()?,
                    dice: self.dice(100 + place as u64),
                    streams: Arc::clone(&streams),
                    pace: self.users.pace,
                    group,
                    stateful,
                };
                tasks.spawn(participant.work());
            }
            // They end when their files are gone: the schedule is over.
            while tasks.join_next().await.is_some() {}
            Ok(())
        })
    }

    fn dice(&self, number: u64) -> Dice {
        Dice::of(self.users.seed ^ (number + 1) << 40 ^ u64::from(std::process::id()))
    }

    fn party(&self, number: u64) -> io::Result<Party> {
        Ok(Party {
            member: Arc::clone(&self.member),
            book: self.book.another()?,
            dice: self.dice(number),
            calls: Arc::clone(&self.calls),
            pace: self.users.pace,
        })
    }
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

/// Which lock is next: all of them, in any order, again and again. The users of a member share it, so that
/// together they come to all of them soon, also on a machine that is busy with other schedules.
struct Deck {
    dice: Dice,
    left: Vec<usize>,
}

impl Deck {
    fn shared(dice: Dice) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { dice, left: Vec::new() }))
    }

    fn draw(&mut self) -> usize {
        loop {
            if let Some(place) = self.left.pop() {
                return place;
            }
            let all: Vec<usize> = (0..LOCKS).collect();
            self.left = self.dice.some(&all, LOCKS);
        }
    }

    /// It was not had: somebody is to come to it once more before all begins anew.
    fn put_back(&mut self, place: usize) {
        self.left.insert(0, place);
    }
}

/// One user.
struct User {
    locks: Locks,
    book: Book,
    dice: Dice,
    /// How many calls the users of this process have begun.
    calls: Arc<AtomicU64>,
    deck: Arc<Mutex<Deck>>,
    resource: Resource,
    pace: u64,
}

impl User {
    /// Takes one lock after the other.
    fn work(mut self) -> io::Result<()> {
        loop {
            let place = self.deck(Deck::draw);
            if !self.take(&name(place))? {
                self.deck(|deck| deck.put_back(place));
            }
            let (least, most) = (5 * self.pace, 25 * self.pace);
            self.pause(least..=most);
        }
    }

    fn deck<R>(&self, act: impl FnOnce(&mut Deck) -> R) -> R {
        act(&mut self.deck.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn pause(&mut self, range: std::ops::RangeInclusive<u64>) {
        sleep(Duration::from_millis(self.dice.between(range)));
    }

    /// Waits for a lock, and holds it for a while. Was it had?
    fn take(&mut self, name: &str) -> io::Result<bool> {
        let id = self.calls.fetch_add(1, Ordering::Relaxed);
        self.book.note(Fact::Call { id, what: format!("lock {name}"), within: WITHIN })?;
        let patience = match self.dice.between(0..=9) {
            0 => Duration::from_millis(self.dice.between(GLANCE)),
            _ => WAIT,
        };
        let asked = self.locks.lock(name).owner("user").timeout(patience).blocking();
        let outcome = asked.as_ref().map_or_else(ToString::to_string, |_| "granted".to_owned());
        self.book.note(Fact::Return { id, outcome })?;
        let Ok(guard) = asked else {
            self.pause(10..=40);
            return Ok(false);
        };
        self.hold(&guard)?;
        Ok(true)
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
            let (space, name, fence) = (None, guard.name().to_owned(), written(fence));
            self.book.note_at(asked, Fact::Checked { space, name, fence, left })?;
            if left == Span(0) {
                break;
            }
            self.pause(1..=4);
        }
        self.resource.change(guard.name(), fence).map(drop)
    }
}
