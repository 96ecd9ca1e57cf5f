//! The thread that a voter lives on: fsync must hold up nobody else, and nobody else its heartbeats.

use std::collections::BTreeMap;
use std::io;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use quorate_service::{Answer, Committed, Order, Register};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{oneshot, watch};

use super::poison;
use super::redb::Redb;
use super::voter::{ChangeError, Options, Out, Standing, Stopped, Voter};
use super::wire::{Conf, Members, Word};
use crate::{Authority, Histogram, Unknown};

/// How much may wait for the thread. Words that find it full are lost, as on a bad link; orders and
/// reads are unknown.
const WAITING: usize = 4096;
/// How much is taken up in one turn: what came in during the last fsync is one entry.
const TURN: usize = 512;

/// What is said of a voter whose thread is no more.
const PANICKED: &str = "it has panicked: its directory must not be used again";

/// What a voter knows of itself and the others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// Who leads, as far as it knows.
    pub leader: Option<u64>,
    /// Its term.
    pub term: u64,
    /// Who takes part.
    pub members: Members,
    /// Why it has stopped, if it has. It does not go on by itself.
    pub stopped: Option<String>,
}

enum Command {
    Word { from: u64, word: Word },
    Order(Order, oneshot::Sender<Answer>),
    Read(oneshot::Sender<Arc<Register>>),
    Change(Conf, oneshot::Sender<Result<(), ChangeError>>),
    Standing(oneshot::Sender<Standing>),
    Trusts(u64, Standing, oneshot::Sender<bool>),
    Dead(u64),
    Lives(u64),
    Unreachable(u64),
    Stop,
}

/// A voter on a thread of its own, with a real disk and a real clock.
#[derive(Debug)]
pub struct Raft {
    id: u64,
    commands: SyncSender<Command>,
    committed: watch::Receiver<Committed>,
    status: watch::Receiver<Status>,
    syncs: Arc<Histogram>,
    /// Who is told is woken by this: a channel that is waited at wakes its thread while it is locked.
    sleeper: Thread,
    /// Until somebody waits for its end.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Raft {
    /// Starts the voter on this disk. What it has to say goes to `send`, several words to their voters at
    /// once; it is called on its thread and must not block: words that cannot be sent at once may be dropped.
    ///
    /// # Errors
    /// If the disk cannot be read, or there is no thread to be had.
    pub fn start(
        disk: Redb,
        options: Options,
        tick: Duration,
        send: impl FnMut(Vec<(u64, Vec<u8>)>) + Send + 'static,
    ) -> Result<Self, Stopped> {
        let (commands, inbox) = sync_channel(WAITING);
        let (begun, begins) = sync_channel(1);
        let syncs = disk.syncs();
        let work = move || {
            // From here on: raft may find in its first look at the disk that it cannot be.
            poison::watch(disk.directory());
            let voter = match Voter::new(disk, options) {
                Ok(voter) => voter,
                Err(stopped) => return drop(begun.send(Err(stopped))),
            };
            let (publish, committed) = watch::channel(voter.committed().clone());
            let members = voter.applied().members.clone();
            let (tell, status) = watch::channel(Status { members, ..Status::default() });
            let _ = begun.send(Ok((voter.id(), committed, status)));
            let said = tell.clone();
            let waiting = BTreeMap::new();
            let host = Host { voter, inbox, publish, tell, send, waiting, last: 0 };
            let why = match catch_unwind(AssertUnwindSafe(|| host.live(tick))) {
                Ok(Ok(())) => "it was asked to".to_owned(),
                Ok(Err(stopped)) => stopped.to_string(),
                Err(_) => PANICKED.to_owned(),
            };
            said.send_modify(|status| status.stopped = Some(why));
        };
        let thread = thread::Builder::new().name("quorate-authority".to_owned()).spawn(work);
        let thread = thread.map_err(|error: io::Error| Stopped::Corrupt(error.to_string()))?;
        let begun = begins.recv().unwrap_or_else(|_| Err(Stopped::Corrupt(PANICKED.to_owned())));
        let (id, committed, status) = begun?;
        let sleeper = thread.thread().clone();
        let thread = Mutex::new(Some(thread));
        Ok(Self { id, commands, committed, status, syncs, sleeper, thread })
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Bytes have come from this voter. What is not a word is ignored.
    pub fn receive(&self, from: u64, bytes: &[u8]) {
        let Some(word) = Word::decode(bytes) else { return };
        let waits = word.can_wait();
        let told = self.commands.try_send(Command::Word { from, word });
        if !waits && told.is_ok() {
            self.sleeper.unpark();
        }
    }

    /// There is a connection to this voter: it is not dead, or no longer.
    pub fn lives(&self, peer: u64) {
        self.tell(Command::Lives(peer));
    }

    /// There is evidence that this voter is dead.
    pub fn dead(&self, peer: u64) {
        self.tell(Command::Dead(peer));
    }

    /// What was sent to this voter did not get there.
    pub fn unreachable(&self, peer: u64) {
        self.tell(Command::Unreachable(peer));
    }

    /// Begins a change of who takes part; see [`Voter::change`].
    ///
    /// # Errors
    /// If it cannot be begun here and now.
    pub async fn change(&self, conf: Conf) -> Result<(), ChangeError> {
        let (answer, answered) = oneshot::channel();
        self.tell(Command::Change(conf, answer));
        answered.await.unwrap_or(Err(ChangeError::NotLeader))
    }

    /// Where it stands, to be said in a handshake.
    ///
    /// # Errors
    /// If it has stopped, or has too much to do.
    pub async fn standing(&self) -> Result<Standing, Unknown> {
        let (answer, answered) = oneshot::channel();
        self.tell(Command::Standing(answer));
        answered.await.map_err(|_| Unknown)
    }

    /// Can this be where that voter stands? See [`Voter::trusts`]. Who cannot say does not trust.
    pub async fn trusts(&self, peer: u64, standing: Standing) -> bool {
        let (answer, answered) = oneshot::channel();
        self.tell(Command::Trusts(peer, standing, answer));
        answered.await.unwrap_or(false)
    }

    /// What it knows of itself and the others.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// How long its disk takes to make something durable.
    #[must_use]
    pub const fn syncs(&self) -> &Arc<Histogram> {
        &self.syncs
    }

    /// Ends the voter, and returns when its disk is closed.
    pub fn stop(&self) {
        // If it is not there to be told, it has ended.
        let _ = self.commands.send(Command::Stop);
        self.sleeper.unpark();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = thread.map(JoinHandle::join);
    }

    /// What does not fit is lost: raft and the senders of orders are made for it.
    fn tell(&self, command: Command) {
        let _ = self.commands.try_send(command);
        self.sleeper.unpark();
    }
}

impl Drop for Raft {
    fn drop(&mut self) {
        self.tell(Command::Stop);
    }
}

impl Authority for Raft {
    fn watch(&self) -> watch::Receiver<Committed> {
        self.committed.clone()
    }

    async fn read(&self) -> Result<Arc<Register>, Unknown> {
        let (answer, answered) = oneshot::channel();
        self.tell(Command::Read(answer));
        answered.await.map_err(|_| Unknown)
    }

    async fn order(&self, order: Order) -> Result<Answer, Unknown> {
        let (answer, answered) = oneshot::channel();
        self.tell(Command::Order(order, answer));
        answered.await.map_err(|_| Unknown)
    }
}

/// Who waits for an answer. Dropped without one, it learns that the outcome is unknown.
enum Waiting {
    Order(oneshot::Sender<Answer>),
    Read(oneshot::Sender<Arc<Register>>),
}

struct Host<S> {
    voter: Voter<Redb>,
    inbox: Receiver<Command>,
    publish: watch::Sender<Committed>,
    tell: watch::Sender<Status>,
    send: S,
    waiting: BTreeMap<u64, Waiting>,
    last: u64,
}

/// The time that also passes while the machine sleeps.
fn now() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let time = clock_gettime(clock);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

impl<S: FnMut(Vec<(u64, Vec<u8>)>)> Host<S> {
    fn live(mut self, tick: Duration) -> Result<(), Stopped> {
        let mut next = now() + tick;
        self.turn()?;
        loop {
            let idle = self.voter.idle();
            let until = next + tick * idle;
            let Some(commands) = self.wait(until) else { return Ok(()) };
            let time = now();
            for _ in 0..idle {
                if time < next {
                    break;
                }
                self.voter.doze();
                next += tick;
            }
            for command in commands {
                if matches!(command, Command::Stop) {
                    return Ok(());
                }
                self.heed(command);
            }
            // Ticks that were slept through are not made up for: nobody was silent meanwhile, and what
            // a leader said may still have to be read.
            if idle > 0 && time > until + tick && !self.voter.leads() {
                next = time + tick;
            } else if next <= time {
                self.voter.tick();
                next = (next + tick).max(time);
            }
            self.turn()?;
        }
    }

    /// What it is told, or nothing if that takes too long. None if nobody is left to tell it anything.
    fn wait(&self, until: Duration) -> Option<Vec<Command>> {
        loop {
            match self.inbox.try_recv() {
                Ok(first) => {
                    let more = self.inbox.try_iter().take(TURN - 1);
                    return Some(iter::once(first).chain(more).collect());
                }
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            let left = until.saturating_sub(now());
            if left.is_zero() {
                return Some(Vec::new());
            }
            thread::park_timeout(left);
        }
    }

    fn heed(&mut self, command: Command) {
        match command {
            Command::Word { from, word } => self.voter.receive(from, word),
            Command::Order(order, answer) => {
                let ticket = self.ticket(Waiting::Order(answer));
                self.voter.order(ticket, order);
            }
            Command::Read(answer) => {
                let ticket = self.ticket(Waiting::Read(answer));
                self.voter.read(ticket);
            }
            Command::Change(conf, answer) => {
                // Who asked may be gone.
                let _ = answer.send(self.voter.change(conf));
            }
            Command::Standing(answer) => {
                let _ = answer.send(self.voter.standing());
            }
            Command::Trusts(peer, standing, answer) => {
                let trusted = self.voter.trusts(peer, standing);
                if trusted {
                    self.voter.lives(peer);
                }
                let _ = answer.send(trusted);
            }
            Command::Dead(peer) => self.voter.dead(peer),
            Command::Lives(peer) => self.voter.lives(peer),
            Command::Unreachable(peer) => self.voter.unreachable(peer),
            Command::Stop => {}
        }
    }

    fn ticket(&mut self, waiting: Waiting) -> u64 {
        self.last += 1;
        self.waiting.insert(self.last, waiting);
        self.last
    }

    fn turn(&mut self) -> Result<(), Stopped> {
        let Self { voter, publish, send, waiting, .. } = self;
        let done = voter.turn(&mut |out| match out {
            Out::Send(words) => {
                send(words.into_iter().map(|(to, word)| (to, word.encode())).collect());
            }
            Out::Committed(committed) => {
                publish.send_replace(committed);
            }
            Out::Answer { ticket, answer } => {
                if let Some(Waiting::Order(asked)) = waiting.remove(&ticket) {
                    let _ = asked.send(answer);
                }
            }
            Out::Read { ticket, register } => {
                if let Some(Waiting::Read(asked)) = waiting.remove(&ticket) {
                    let _ = asked.send(register);
                }
            }
            Out::Unknown { ticket } => {
                waiting.remove(&ticket);
            }
            Out::Members(_) => {}
        });
        let (leader, term) = (voter.leader(), voter.term());
        let members = &voter.applied().members;
        self.tell.send_if_modified(|status| {
            let same = (status.leader, status.term) == (leader, term) && status.members == *members;
            if !same {
                *status = Status { leader, term, members: members.clone(), stopped: None };
            }
            !same
        });
        done
    }
}
