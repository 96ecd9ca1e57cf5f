//! A node in a process of its own.

use std::io::{self, BufRead, Read};
use std::net::TcpListener as StdListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use quorate_algorithms::{Portable, Storable};
use quorate_cluster::{CommandError, Config, Driver, FileStore, Member, Witness};
use quorate_core::{Life, NodeId, Scene, Solution};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::wire::{self, Go, LINE_MAX, Who, Word};
use crate::registry::find;

/// How long a port is waited for that an earlier life had.
const PORT_PATIENCE: Duration = Duration::from_secs(5);

/// What a node comes up with.
pub(crate) struct Birth {
    me: NodeId,
    who: Who,
    stdin: io::Lines<io::StdinLock<'static>>,
    voice: Voice,
}

/// The child's way to its parent.
#[derive(Clone)]
struct Voice {
    me: NodeId,
    life: Life,
    /// One word at a time, whichever thread speaks.
    turn: Arc<Mutex<()>>,
}

impl Voice {
    fn say(&self, word: &Word) -> io::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        wire::write(&mut io::stdout().lock(), self.me, self.life, word)
    }
}

/// Runs the node that the parent says over standard input, until that is closed.
///
/// # Errors
/// If the parent says something else, or the node cannot run.
pub fn serve() -> io::Result<()> {
    let mut stdin = io::stdin().lock();
    let mut line = String::new();
    stdin.by_ref().take(LINE_MAX).read_line(&mut line)?;
    let who: Who = serde_json::from_str(&line)?;
    let me = NodeId::new(who.node).filter(|node| node.index() < who.spec.nodes);
    let me = me.ok_or_else(|| io::Error::other("there is no such node"))?;
    let voice = Voice { me, life: Life(who.life), turn: Arc::default() };
    let spec = who.spec.clone();
    let run = || {
        spec.plant().map_err(io::Error::other)?;
        let (problem, _) = find(&spec.algorithm).map_err(io::Error::other)?;
        let birth = Birth { me, who, stdin: stdin.lines(), voice: voice.clone() };
        (problem.net_node)(&spec, birth)
    };
    run().inspect_err(|error| {
        let _ = voice.say(&Word::Failed(error.to_string()));
    })
}

/// Lives: listens, begins when it is told to, obeys, until the parent has nothing more to say.
pub(super) fn live<A>(
    scene: Scene<A>,
    config: Config,
    birth: Birth,
    read: impl Fn(&str) -> Option<A::Command>,
) -> io::Result<()>
where
    A: Solution,
    A::Msg: Portable,
    A::Stable: Storable,
{
    let Birth { me, who, mut stdin, voice } = birth;
    let store = FileStore::<A::Stable>::open(&who.dir)?;
    let kept = store.kept();
    let listener = listen(who.listen)?;
    listener.set_nonblocking(true)?;
    voice.say(&Word::Listening(listener.local_addr()?))?;
    let Some(line) = stdin.next().transpose()? else { return Ok(()) };
    let Go { epoch, addresses } = serde_json::from_str(&line)?;
    let peers: Vec<_> = NodeId::first(addresses.len())
        .zip(addresses)
        .map(|(id, addr)| Member { id, addr })
        .collect();
    let since = SystemTime::UNIX_EPOCH + Duration::from_nanos(epoch);
    let elapsed = SystemTime::now().duration_since(since).unwrap_or_default();
    let epoch = Instant::now().checked_sub(elapsed);
    let teller = voice.clone();
    let trace = Witness::new(move |record| {
        if teller.say(&Word::Step(record)).is_err() {
            // Nobody hears it any more.
            std::process::exit(0);
        }
    });
    let config = Config { life: Life(who.life), epoch, trace: Some(trace), ..config };
    let runtime = super::runtime()?;
    let driver = runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        let driver = Driver::start_with(&scene, me, listener, &peers, config, &kept, store).await;
        driver.map_err(|error| io::Error::other(error.to_string()))
    })?;
    let driver = driver.unheard();
    for line in stdin {
        let text: String = serde_json::from_str(&line?)?;
        let command = read(&text).ok_or_else(|| io::Error::other(format!("no command: {text}")))?;
        // Refused or not, its step says so.
        if runtime.block_on(driver.command(command)) == Err(CommandError::Stopped) {
            return Err(io::Error::other("it does not run any more"));
        }
    }
    Ok(())
}

/// Listens, as soon as an earlier life of the node has let the port go.
fn listen(addr: std::net::SocketAddr) -> io::Result<StdListener> {
    let begun = std::time::Instant::now();
    loop {
        match StdListener::bind(addr) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && begun.elapsed() < PORT_PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            bound => return bound,
        }
    }
}
