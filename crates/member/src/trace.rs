//! What users of this process do with locks, written down as a trace while it goes on.
//!
//! Each line is a record of the trace format; its step is the name of the lock, with the number of the
//! wish. Whoever wants to know whether a lock was held by two takes the files of all members, picks one
//! lock (`quorate import member FILE… --lock NAME`) and has the outcome judged.
//!
//! Which locks are written down is decided by their names alone, so that all members pick the same ones.
//! Lines that the disk does not take in time are counted and left out: a trace never holds up a lock.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use quorate_core::trace::{END, Happening, Header, Outcome, Record, Step};
use quorate_core::{NodeId, Time};
use quorate_service::locks::{Fence, LockId, Mode, Wish, WishId};
use tracing::warn;

use crate::config::fingerprint;

/// So many lines may wait for the disk.
const WAITING: usize = 16_384;
/// A file that is longer is put aside as FILE.1, in the place of what was there.
const FILE_MAX: u64 = 64 << 20;
/// So many users of one lock are told apart.
const USERS_MAX: usize = 4_096;

/// Where a trace is written, and of which locks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceConfig {
    /// The file.
    pub path: PathBuf,
    /// One of so many locks: 1 for all of them.
    pub one_in: u32,
}

/// Writes a trace down.
#[derive(Debug)]
pub(crate) struct Tracer {
    lines: SyncSender<Line>,
    one_in: u64,
    /// Wishes that are neither refused nor given back: of which lock, and as which of its users.
    open: BTreeMap<WishId, (LockId, usize)>,
    /// For each lock that is used, which users there are.
    users: BTreeMap<LockId, Vec<bool>>,
    /// Lines that were left out since the last one that was not.
    missing: u64,
    thread: Option<JoinHandle<()>>,
}

enum Line {
    Record(Box<Record>),
    End,
}

impl Tracer {
    /// Begins a trace of a process of this member.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn start(config: &TraceConfig, member: &str, nonce: u128) -> io::Result<Self> {
        let header = header(member, nonce, config.one_in);
        let mut file = Trace::create(&config.path, &header)?;
        let (lines, inbox) = sync_channel(WAITING);
        let work = move || {
            if let Err(error) = file.write_all(&inbox, &header) {
                warn!(%error, "the trace cannot be written, and ends");
            }
        };
        let thread = thread::Builder::new().name("quorate-trace".to_owned()).spawn(work)?;
        let thread = Some(thread);
        let one_in = u64::from(config.one_in.max(1));
        let (open, users) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { lines, one_in, open, users, missing: 0, thread })
    }

    /// Ends the trace, and returns when its last line is written.
    pub(crate) fn finish(mut self) {
        let thread = self.thread.take();
        drop(self);
        // A thread that panicked has nothing more to write.
        let _ = thread.map(JoinHandle::join);
    }

    /// A user wishes. Only who wants a lock alone is written down: others keep nobody of their kind out.
    pub(crate) fn wish(&mut self, now: Time, lock: &LockId, wish: &Wish) {
        let names = [lock.space.as_str(), lock.name.as_str()];
        if wish.mode != Mode::Exclusive || fingerprint(names.into_iter()) % self.one_in != 0 {
            return;
        }
        let users = self.users.entry(lock.clone()).or_default();
        let user = users.iter().position(|busy| !busy).unwrap_or(users.len());
        if user >= USERS_MAX {
            return;
        }
        match users.get_mut(user) {
            Some(busy) => *busy = true,
            None => users.push(true),
        }
        self.open.insert(wish.id, (lock.clone(), user));
        self.tell(now, wish.id, Happening::Command("Acquire".to_owned()), None);
    }

    /// A wish is granted.
    pub(crate) fn granted(&mut self, now: Time, wish: WishId, fence: Fence) {
        let emit = format!("Fenced({}:{})", fence.epoch.0, fence.counter);
        self.tell(now, wish, Happening::Timer("grant".to_owned()), Some(emit));
    }

    /// A guard is lost: its user is told, and may still be at work.
    pub(crate) fn lost(&mut self, now: Time, wish: WishId) {
        let emit = Some("Lost".to_owned());
        self.tell(now, wish, Happening::Timer("lose".to_owned()), emit);
    }

    /// A guard is given back, or a wish given up.
    pub(crate) fn released(&mut self, now: Time, wish: WishId) {
        self.tell(now, wish, Happening::Command("Release".to_owned()), None);
        self.over(wish);
    }

    /// A wish is refused.
    pub(crate) fn over(&mut self, wish: WishId) {
        let Some((lock, user)) = self.open.remove(&wish) else { return };
        if let Some(users) = self.users.get_mut(&lock) {
            users[user] = false;
            if !users.contains(&true) {
                self.users.remove(&lock);
            }
        }
    }

    fn tell(&mut self, at: Time, wish: WishId, input: Happening, emit: Option<String>) {
        let Some((lock, user)) = self.open.get(&wish) else { return };
        let name = format!("{}/{}", lock.space.as_str(), lock.name.as_str());
        let field = (Cow::Borrowed("wish"), wish.0);
        let step = Step { name: Cow::Owned(name), fields: vec![field] };
        let record = record(at, NodeId::at(*user), input, step, emit);
        if self.missing > 0 {
            let step = Step {
                name: Cow::Borrowed("gap"),
                fields: vec![(Cow::Borrowed("lines"), self.missing)],
            };
            let gap = record_of_gap(at, step);
            if self.lines.try_send(Line::Record(Box::new(gap))).is_ok() {
                self.missing = 0;
            }
        }
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Line::Record(Box::new(record))) {
            self.missing += 1;
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // If there is no room, the trace ends without its last line, as after a crash.
        let _ = self.lines.try_send(Line::End);
    }
}

fn record(at: Time, node: NodeId, input: Happening, step: Step, emit: Option<String>) -> Record {
    let effects = emit.map(Outcome::Emit).into_iter().collect();
    Record { at, node, input, choices: Vec::new(), steps: vec![step], effects, violation: None }
}

fn record_of_gap(at: Time, step: Step) -> Record {
    record(at, NodeId::at(0), Happening::Timer("gap".to_owned()), step, None)
}

/// The first line. The trace is of many locks, so it is none of the family `mutex` yet.
fn header(member: &str, nonce: u128, one_in: u32) -> Header {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let calendar = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let calendar = calendar.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
    // What to add to a time of the trace to have one of the calendar.
    let offset = calendar.saturating_sub(quorate_transport::now().0);
    let spec = serde_json::json!({
        "member": member,
        "process": format!("{nonce:032x}"),
        "boot": boot.trim(),
        "calendar": offset,
        "one_in": one_in.max(1),
    });
    Header {
        engine: "member".to_owned(),
        algorithm: "locks".to_owned(),
        nodes: USERS_MAX,
        spec: spec.to_string(),
    }
}

/// The file of a trace.
#[derive(Debug)]
struct Trace {
    path: PathBuf,
    out: BufWriter<File>,
    len: u64,
}

impl Trace {
    fn create(path: &Path, header: &Header) -> io::Result<Self> {
        if path.exists() {
            fs::rename(path, aside(path))?;
        }
        let mut trace =
            Self { path: path.to_owned(), out: BufWriter::new(File::create(path)?), len: 0 };
        trace.line(&header.to_string())?;
        trace.out.flush()?;
        Ok(trace)
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.len += line.len() as u64 + 1;
        writeln!(self.out, "{line}")
    }

    /// Writes lines until the last one: what has come is on its way to the disk before more is waited for.
    fn write_all(&mut self, inbox: &Receiver<Line>, header: &Header) -> io::Result<()> {
        while let Ok(first) = inbox.recv() {
            let mut next = Some(first);
            while let Some(line) = next {
                match line {
                    Line::Record(record) => self.line(&record.to_string())?,
                    Line::End => {
                        self.line(END)?;
                        return self.out.flush();
                    }
                }
                next = inbox.try_recv().ok();
            }
            self.out.flush()?;
            if self.len > FILE_MAX {
                *self = Self::create(&self.path.clone(), header)?;
            }
        }
        self.line(END)?;
        self.out.flush()
    }
}

/// Where the file of before is.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

#[cfg(test)]
mod tests {
    use quorate_service::locks::{Owner, Patience, Value};

    use super::*;

    fn wish(id: u64, mode: Mode) -> Wish {
        let owner = Owner { session: id, text: "test".into() };
        let (patience, value) = (Patience::Wait, Value::default());
        Wish { id: WishId(id), mode, owner, priority: 0, patience, value }
    }

    /// The file, when its last line is there.
    fn read(path: &Path) -> Vec<String> {
        let begun = std::time::Instant::now();
        loop {
            let text = fs::read_to_string(path).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            if lines.last().is_some_and(|line| line == END) {
                return lines;
            }
            assert!(begun.elapsed().as_secs() < 30, "the trace does not end: {text}");
        }
    }

    #[test]
    fn users_of_a_lock_are_told_apart_and_the_file_of_before_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.trace");
        fs::write(&path, "before").unwrap();
        let config = TraceConfig { path: path.clone(), one_in: 1 };
        let mut tracer = Tracer::start(&config, "a", 7).unwrap();
        let job = LockId::new("main", "job");
        tracer.wish(Time(1), &job, &wish(1, Mode::Exclusive));
        tracer.wish(Time(2), &job, &wish(2, Mode::Exclusive));
        tracer.wish(Time(3), &job, &wish(3, Mode::Shared));
        tracer.granted(Time(4), WishId(1), Fence { epoch: quorate_service::Epoch(5), counter: 6 });
        tracer.granted(Time(4), WishId(3), Fence { epoch: quorate_service::Epoch(5), counter: 6 });
        tracer.released(Time(5), WishId(1));
        tracer.wish(Time(6), &job, &wish(4, Mode::Exclusive));
        drop(tracer);
        let lines = read(&path);
        assert!(
            lines[0].contains(r#""algorithm":"locks""#) && lines[0].contains(r#""member":"a""#)
        );
        let users: Vec<bool> = lines[1..].iter().map(|it| it.contains(r#""n":1,"#)).collect();
        assert_eq!(users, [true, false, true, true, true, false], "{lines:#?}");
        assert!(
            lines[3].contains("Fenced(5:6)") && lines[3].contains(r#""step":"main/job","wish":1"#)
        );
        assert_eq!(fs::read_to_string(aside(&path)).unwrap(), "before");
    }

    #[test]
    fn all_members_pick_the_same_locks() {
        let root = tempfile::tempdir().unwrap();
        let traced = |name: &str| {
            let path = root.path().join(name);
            let config = TraceConfig { path: path.clone(), one_in: 8 };
            let mut tracer = Tracer::start(&config, name, 7).unwrap();
            for id in 0..200 {
                let lock = LockId::new("main", &format!("lock-{id}"));
                tracer.wish(Time(id), &lock, &wish(id, Mode::Exclusive));
            }
            drop(tracer);
            read(&path)[1..].to_vec()
        };
        let (a, b) = (traced("a"), traced("b"));
        assert_eq!(a, b);
        assert!((10..60).contains(&a.len()), "about one of eight: {}", a.len());
    }
}
