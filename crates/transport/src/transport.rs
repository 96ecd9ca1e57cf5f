//! The thread of a transport, and its turns.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::{Events, Poll, Waker};
use quorate_core::Span;

use crate::bell::Bell;
use crate::core::{Core, Event, LISTENER, WAKER};
use crate::lane::Frame;
use crate::stats::count;
use crate::wire::{Segment, Stream};
use crate::{Config, Down, Handler, Io, Lane, Listener, Remote, Scope, Stats, clock};

/// How many commands are taken up in one turn.
const COMMANDS: usize = 1024;
/// How long peers have to hear that this is the end.
const GOODBYE: Span = Span::units(500);

/// The thread of a transport: its name is `quorate-io`. Dropped, it ends.
#[derive(Debug)]
pub struct Transport<C> {
    remote: Remote<C>,
    stats: Arc<Stats>,
    thread: Option<JoinHandle<()>>,
}

impl<C: Send + 'static> Transport<C> {
    /// Starts the thread. The handler is made before that, on the thread of the caller, and may keep the
    /// way by which other threads reach it.
    ///
    /// If the handler panics, the process is aborted: others may rely on what it has promised, and must see
    /// that it is gone.
    ///
    /// # Errors
    /// If the certificates cannot be read or are somebody else's, if plaintext is asked for where it is not
    /// allowed, or if the system has no thread or socket to give.
    pub fn start<H: Handler<Command = C>>(
        config: Config,
        listener: Option<&Listener>,
        make: impl FnOnce(&Remote<C>) -> H,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let stats = Arc::new(Stats::default());
        let waker = Waker::new(poll.registry(), WAKER)?;
        let waited_for = poll.registry().try_clone()?;
        let bell = Arc::new(Bell::new(waker, waited_for, Arc::clone(&stats)));
        let (commands, inbox) = channel();
        let remote = Remote { commands, bell: Arc::clone(&bell) };
        let registry = poll.registry().try_clone()?;
        if let Some(address) = listener.map(Listener::address).transpose()?
            && config.forbids(address)
        {
            let why =
                format!("{address} needs TLS: plaintext is only allowed on loopback addresses");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let accepts = listener.map(Listener::accepts);
        let core = Core::new(config, registry, Arc::clone(&bell), Arc::clone(&stats), accepts)?;
        let turns = Turns { core, handler: make(&remote), poll, inbox, bell };
        let work = move || {
            if catch_unwind(AssertUnwindSafe(|| turns.live())).is_err() {
                tracing::error!("the thread of the transport has panicked");
                std::process::abort();
            }
        };
        let thread = Some(thread::Builder::new().name("quorate-io".to_owned()).spawn(work)?);
        Ok(Self { remote, stats, thread })
    }

    /// The way by which other threads reach the handler.
    #[must_use]
    pub const fn remote(&self) -> &Remote<C> {
        &self.remote
    }

    /// What is counted.
    #[must_use]
    pub const fn stats(&self) -> &Arc<Stats> {
        &self.stats
    }
}

impl<C> Transport<C> {
    /// Ends the thread: every peer is told. Returns when it has ended.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.remote.bell.stop();
            // It aborts the process rather than panic.
            let _ = thread.join();
        }
    }
}

impl<C> Drop for Transport<C> {
    fn drop(&mut self) {
        self.end();
    }
}

/// A number that no other process has: for [`Identity::nonce`](crate::Identity::nonce).
#[must_use]
pub fn nonce() -> u128 {
    let mut bytes = [0; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).expect("the system gives random numbers");
    u128::from_le_bytes(bytes)
}

/// What the thread has.
struct Turns<H: Handler> {
    core: Core,
    handler: H,
    poll: Poll,
    inbox: Receiver<H::Command>,
    bell: Arc<Bell>,
}

impl<H: Handler> Turns<H> {
    fn live(mut self) {
        let mut events = Events::with_capacity(256);
        self.handler.started(&mut Io { core: &mut self.core });
        self.deliver();
        while !self.core.stopping && !self.bell.is_stopping() {
            if let Err(error) = self.turn(&mut events) {
                tracing::error!("the sockets cannot be waited for: {error}");
                std::process::abort();
            }
        }
        self.core.say_bye_to_all();
        let end = clock::now() + GOODBYE;
        while self.core.has_connections() && clock::now() < end {
            let wait = clock::real(end.since(clock::now()));
            if self.poll.poll(&mut events, Some(wait)).is_err() {
                return;
            }
            self.core.now = clock::now();
            for event in &events {
                if event.token() != LISTENER && self.core.on_ready_token(event) {
                    self.core.fill(event.token().0);
                }
            }
        }
    }

    /// Waits until there is something to do, and does it: reads, steps, and writes once to every peer.
    fn turn(&mut self, events: &mut Events) -> io::Result<()> {
        let first = self.wait(events)?;
        count(&self.core.stats.turns);
        for event in events.iter() {
            match event.token() {
                WAKER => {}
                LISTENER => self.core.accept(),
                token => {
                    if self.core.on_ready_token(event) {
                        self.read(token.0);
                    }
                }
            }
        }
        if self.core.is_busy() {
            self.core.accept_rest();
            for token in self.core.take_unread() {
                self.read(token);
            }
        }
        self.deliver();
        let rest = COMMANDS - usize::from(first.is_some());
        for command in first.into_iter().chain(self.inbox.try_iter().take(rest)).collect::<Vec<_>>()
        {
            self.handler.command(&mut Io { core: &mut self.core }, command);
            self.deliver();
        }
        self.core.look_around();
        self.core.expire();
        self.deliver();
        if self.handler.deadline().is_some_and(|deadline| deadline <= self.core.now) {
            self.handler.expired(&mut Io { core: &mut self.core });
            self.deliver();
        }
        self.handler.turned(&mut Io { core: &mut self.core });
        self.deliver();
        self.core.flush();
        self.deliver();
        Ok(())
    }

    /// Waits, unless there is something to do. A command that came meanwhile is given back.
    fn wait(&mut self, events: &mut Events) -> io::Result<Option<H::Command>> {
        self.bell.lie_down();
        // Who came before that did not ring.
        self.core.look_around();
        let first = self.inbox.try_recv().ok();
        let busy = first.is_some()
            || self.core.is_busy()
            || !self.core.events.is_empty()
            || self.bell.is_stopping();
        let timeout = if busy {
            Duration::ZERO
        } else {
            let ours = self.core.deadline();
            let next = self.handler.deadline().map_or(ours, |theirs| theirs.min(ours));
            clock::real(next.since(clock::now()))
        };
        let polled = self.poll.poll(events, Some(timeout));
        self.bell.get_up();
        self.core.now = clock::now();
        match polled {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            Err(_) => {
                events.clear();
                Ok(first)
            }
            Ok(()) => Ok(first),
        }
    }

    /// Tells the handler what has happened.
    fn deliver(&mut self) {
        while let Some(event) = self.core.events.pop_front() {
            let Self { core, handler, .. } = self;
            let io = &mut Io { core };
            match event {
                Event::Up(peer, arrival, resumed) => {
                    handler.up(io, peer, &Core::hello(&arrival, resumed));
                }
                Event::Down(peer, why) => handler.down(io, peer, &why),
                Event::Lost(peer, why) => handler.lost(io, peer, &why),
                Event::Refused(name, address) => handler.refused(io, &name, address),
                Event::Unreachable(name, why) => handler.unreachable(io, &name, &why),
                Event::Readable(watch) => handler.readable(io, watch),
            }
        }
    }

    /// Reads from a connection and hands out what has come.
    fn read(&mut self, token: usize) {
        let ended = self.core.fill(token);
        let established = self.core.greetings(token);
        self.deliver();
        if established {
            self.segments(token);
            self.core.digested(token);
        }
        if let Some(ended) = ended {
            self.core.on_ended(token, ended);
        }
        self.deliver();
    }

    /// Decodes what has come on an established connection.
    fn segments(&mut self, token: usize) {
        let inbox = self.core.take_inbox(token);
        let mut used = 0;
        loop {
            match self.core.next_segment(token, &inbox[used..]) {
                Ok(None) => break,
                Ok(Some((segment, len))) => {
                    used += len;
                    self.segment(token, segment);
                }
                Err(error) => {
                    self.core.fail(token, Down::Malformed(error.to_string()));
                    break;
                }
            }
        }
        self.core.return_inbox(token, inbox, used);
    }

    /// Hands out the frames of a segment.
    fn segment(&mut self, token: usize, segment: Segment<'_>) {
        let Some((mut lent, mut bytes)) = self.core.on_segment(token, segment) else {
            return self.deliver();
        };
        let mut frames = 0;
        let wrong = loop {
            let Frame { founding, bytes } = match lent.incoming.next(&mut bytes, lent.max) {
                Ok(Some(frame)) => frame,
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            };
            let lane = match (lent.stream, founding) {
                (Stream::Control, true) => Lane::Founding,
                _ if lent.scope == Scope::Founding => {
                    break Some("a frame came before the cluster was known".to_owned());
                }
                (Stream::Control, false) => Lane::Control,
                (Stream::Data, _) => Lane::Data,
            };
            frames += 1;
            self.handler.frame(&mut Io { core: &mut self.core }, lent.peer, lane, bytes);
            if !self.core.events.is_empty() {
                self.deliver();
            }
            if !self.core.is_current(&lent) {
                break None;
            }
        };
        self.core.give_back(lent, frames);
        if let Some(why) = wrong {
            self.core.fail(token, Down::Malformed(why));
            self.deliver();
        }
    }
}
