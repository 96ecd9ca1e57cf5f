//! What locks guard: a resource that is changed by whoever has the fence for it, in the process of the
//! harness.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use quorate_fence::{Fence, Gate as _, MemoryGate};
use quorate_service::Epoch;
use quorate_service::history::{self, Fact};

use crate::book::Book;

/// Where it is, seen from the folder of the schedule.
const SOCKET: &str = "resource.sock";
/// So long is it waited for an answer: it is given at once, if the machine is not too busy.
const PATIENCE: Duration = Duration::from_secs(5);

/// A gate, and the history of what it let through: one at a time, so that they are in one order.
struct Guarded {
    gate: MemoryGate,
    book: Book,
}

/// Begins to serve whoever connects. This process is in the folder of the schedule, too: names of sockets
/// must not be long.
pub(crate) fn serve(folder: &Path) -> io::Result<()> {
    let listener = UnixListener::bind(SOCKET)?;
    let book = Book::of_harness(folder, "resource")?;
    let guarded = Arc::new(Mutex::new(Guarded { gate: MemoryGate::new(), book }));
    let serving = move || {
        for stream in listener.incoming().flatten() {
            let guarded = Arc::clone(&guarded);
            // Whoever ends in the middle of a word has written nothing.
            thread::spawn(move || drop(listen(stream, &guarded)));
        }
    };
    thread::Builder::new().name("resource".into()).spawn(serving).map(drop)
}

fn listen(mut stream: UnixStream, guarded: &Mutex<Guarded>) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while let Some(line) = lines.next().transpose()? {
        let wrong = || io::Error::other(format!("not a name and a fence: {line}"));
        let (name, fence) = line.split_once(' ').ok_or_else(wrong)?;
        let fence: Fence = fence.parse().map_err(|_| wrong())?;
        let accepted = {
            let mut guarded = guarded.lock().unwrap_or_else(PoisonError::into_inner);
            let accepted = guarded.gate.admit(name, fence).is_ok();
            let (name, fence) = (name.to_owned(), written(fence));
            guarded.book.note(Fact::Gate { name, fence, accepted })?;
            accepted
        };
        stream.write_all(if accepted { b"1" } else { b"0" })?;
    }
    Ok(())
}

/// A fence as histories have it.
pub(crate) const fn written(fence: Fence) -> history::Fence {
    history::Fence { epoch: Epoch(fence.epoch), counter: fence.counter }
}

/// A way to the resource, from a process in the folder of the schedule.
pub(crate) struct Resource(UnixStream);

impl Resource {
    pub(crate) fn connect() -> io::Result<Self> {
        let stream = UnixStream::connect(SOCKET)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(stream))
    }

    /// Changes what this lock guards. Was it let through?
    pub(crate) fn change(&mut self, name: &str, fence: Fence) -> io::Result<bool> {
        self.0.write_all(format!("{name} {fence}\n").as_bytes())?;
        let mut answer = [0];
        io::Read::read_exact(&mut self.0, &mut answer)?;
        Ok(answer == *b"1")
    }
}
