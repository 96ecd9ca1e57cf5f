//! The heart of a process, for all its threads: whose turn it is, and how the thread of the transport is told.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use quorate_authority::Histogram;
use quorate_core::Time;
use quorate_service::locks::{LockId, Text, WishId};
use quorate_service::service::Service;
use quorate_transport::Remote;
use tokio::sync::watch;

use super::{Calls, Diary, Heart, Taken};
use crate::figures::Counts;
use crate::locks::SPACE;
use crate::runtime::Command;
use crate::sending::Sender;
use crate::trace::Tracer;

/// So often users let it go first when it waits for the heart.
const WAYS: u32 = 64;

/// The heart of a process, for all its threads.
pub(crate) struct Shared {
    heart: Mutex<Option<Heart>>,
    /// Does the thread of the transport wait for it?
    awaited: AtomicBool,
    /// Had it something to do when users looked last?
    pressed: Arc<AtomicBool>,
    /// The way to the thread of the transport, once there is one.
    remote: OnceLock<Remote<Command>>,
    /// Until when the process may act; 0 while it may not.
    pub(crate) until: watch::Sender<Time>,
    /// How many guards are lost that were not given back yet.
    losses: Arc<AtomicUsize>,
    /// The namespace of locks that name none, and what they say of themselves who say nothing.
    pub(crate) main: Text,
    pub(crate) nobody: Text,
    /// Has the thread of the transport been woken, and not looked around yet?
    woken: AtomicBool,
    pub(crate) counts: Arc<Counts>,
    /// How long the own disk takes, once there is one.
    pub(crate) syncs: OnceLock<Arc<Histogram>>,
    /// Until there is a heart.
    tracer: Mutex<Option<Tracer>>,
    /// Who has something on its page for the thread of the transport to fetch.
    pages: Mutex<Vec<Sender>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

impl Shared {
    pub(crate) fn new(tracer: Option<Tracer>) -> Self {
        let (heart, awaited, remote) = (Mutex::new(None), AtomicBool::new(false), OnceLock::new());
        let (until, losses) = (watch::Sender::new(Time::ZERO), Arc::default());
        let (main, nobody, woken) = (Text::fixed(SPACE), Text::fixed(""), AtomicBool::new(false));
        let (counts, syncs, tracer) = (Arc::default(), OnceLock::new(), Mutex::new(tracer));
        Self {
            heart,
            awaited,
            pressed: Arc::default(),
            remote,
            until,
            losses,
            main,
            nobody,
            woken,
            counts,
            syncs,
            tracer,
            pages: Mutex::default(),
        }
    }

    /// This is the way to the thread of the transport.
    pub(crate) fn meet(&self, remote: &Remote<Command>) {
        // There is one transport.
        let _ = self.remote.set(remote.clone());
    }

    /// Tells the thread of the transport something, if it is there.
    pub(crate) fn tell(&self, command: Command) -> bool {
        self.remote.get().is_some_and(|remote| remote.tell(command).is_ok())
    }

    /// Wakes the thread of the transport: a timer of a step here is due.
    pub(crate) fn wake(&self) {
        if !self.woken.swap(true, Ordering::SeqCst) {
            self.tell(Command::Wake);
        }
    }

    /// The thread of the transport looks around.
    pub(crate) fn is_awake(&self) {
        self.woken.store(false, Ordering::SeqCst);
        let pages = std::mem::take(&mut *self.pages());
        pages.iter().for_each(Sender::fetch);
    }

    /// Asks the thread of the transport to fetch what was sent.
    pub(crate) fn ask_to_fetch(&self, sender: Sender) {
        self.pages().push(sender);
        self.wake();
    }

    /// Nothing is fetched any more: whoever sends would else keep the heart for ever, and it them.
    pub(crate) fn forget_pages(&self) {
        self.pages().clear();
    }

    fn pages(&self) -> MutexGuard<'_, Vec<Sender>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The heart, if the process has one yet, for the thread of the transport. A mutex goes to whoever runs
    /// when it is free, and those who take one lock after the other do: they are told that it is awaited.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Heart>> {
        if let Ok(heart) = self.heart.try_lock() {
            return heart;
        }
        self.awaited.store(true, Ordering::Relaxed);
        let heart = self.heart.lock();
        self.awaited.store(false, Ordering::Relaxed);
        // A step that panicked has ended the process.
        heart.unwrap_or_else(PoisonError::into_inner)
    }

    /// The heart, for a user.
    fn enter(&self) -> MutexGuard<'_, Option<Heart>> {
        for _ in 0..WAYS {
            if !self.awaited.load(Ordering::Relaxed) {
                break;
            }
            thread::yield_now();
        }
        self.heart.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a lock that rests here and that nobody else wants.
    pub(crate) fn take(&self, lock: &LockId, owner: (Option<u64>, &Text)) -> Option<Taken> {
        self.enter().as_mut()?.take(lock, owner)
    }

    /// Is any guard of this process lost that was not given back yet?
    pub(crate) fn has_losses(&self) -> bool {
        self.losses.load(Ordering::Acquire) > 0
    }

    /// From now on it has one.
    pub(crate) fn begin(&self, service: Service, seed: u64, diary: Option<Diary>) {
        let tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (losses, counts) = (Arc::clone(&self.losses), Arc::clone(&self.counts));
        let signs = (losses, Arc::clone(&self.pressed));
        *self.lock() = Some(Heart::new(service, seed, signs, (diary, counts, tracer)));
    }

    /// Gives a guard back, or a wish up.
    pub(crate) fn release(&self, lock: &LockId, id: WishId) {
        let (mut calls, mut turn) = (Calls::new(), false);
        if let Some(heart) = self.enter().as_mut() {
            if !heart.put_back(lock, id) {
                heart.release(quorate_transport::now(), lock, id);
                heart.send_directly(&mut calls);
            }
            turn = std::mem::take(&mut heart.turn);
        }
        calls.into_iter().for_each(|call| call());
        if turn {
            self.let_run();
        }
    }

    /// Lets the thread of the transport run, if it has something to do.
    fn let_run(&self) {
        let pressed = self.remote.get().is_some_and(Remote::is_busy);
        self.pressed.store(pressed, Ordering::Relaxed);
        if pressed {
            thread::yield_now();
        }
    }

    /// A step of a user: what it sends goes out from here.
    pub(crate) fn step<R>(&self, act: impl FnOnce(&mut Heart, Time, &mut Calls) -> R) -> Option<R> {
        let mut calls = Calls::new();
        let result = self.enter().as_mut().map(|heart| {
            let result = act(heart, quorate_transport::now(), &mut calls);
            heart.send_directly(&mut calls);
            result
        });
        calls.into_iter().for_each(|call| call());
        result
    }
}
