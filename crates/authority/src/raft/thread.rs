//! The thread that a voter lives on: fsync must hold up nobody else, and nobody else its heartbeats.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
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
    thread: JoinHandle<()>,
}

impl Raft {
    /// Starts the voter on this disk. What it has to say goes to `send`, which is called on its thread
    /// and must not block: a word that cannot be sent at once may be dropped.
    ///
    /// # Errors
    /// If the disk cannot be read, or there is no thread to be had.
    pub fn start(
        disk: Redb,
        options: Options,
        tick: Duration,
        send: impl FnMut(u64, Vec<u8>) + Send + 'static,
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
            let host =
                Host { voter, inbox, publish, tell, send, waiting: BTreeMap::new(), last: 0 };
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
        Ok(Self { id, commands, committed, status, syncs, thread })
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Bytes have come from this voter. What is not a word is ignored.
    pub fn receive(&self, from: u64, bytes: &[u8]) {
        if let Some(word) = Word::decode(bytes) {
            self.tell(Command::Word { from, word });
        }
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
    pub fn stop(self) {
        // If it is not there to be told, it has ended.
        let _ = self.commands.send(Command::Stop);
        let _ = self.thread.join();
    }

    /// What does not fit is lost: raft and the senders of orders are made for it.
    fn tell(&self, command: Command) {
        let _ = self.commands.try_send(command);
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

impl<S: FnMut(u64, Vec<u8>)> Host<S> {
    fn live(mut self, tick: Duration) -> Result<(), Stopped> {
        let mut next = now() + tick;
        self.turn()?;
        loop {
            match self.inbox.recv_timeout(next.saturating_sub(now())) {
                Ok(first) => {
                    let mut commands = vec![first];
                    commands.extend(self.inbox.try_iter().take(TURN - 1));
                    for command in commands {
                        if matches!(command, Command::Stop) {
                            return Ok(());
                        }
                        self.heed(command);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            let time = now();
            if next <= time {
                self.voter.tick();
                // Ticks that were slept through are not made up for: nobody was silent meanwhile.
                next = (next + tick).max(time);
            }
            self.turn()?;
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
                let _ = answer.send(self.voter.trusts(peer, standing));
            }
            Command::Dead(peer) => self.voter.dead(peer),
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
            Out::Send { to, word } => send(to, word.encode()),
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
