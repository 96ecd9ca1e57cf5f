//! When to stop before the end: after some time, with some memory, or at Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use quorate_lab::{BadInput, read_size, read_time};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

#[derive(Args, Debug)]
pub(crate) struct LimitArguments {
    /// Give up after so long, as time goes by here: 30s
    #[arg(long, value_name = "DURATION")]
    pub(crate) time: Option<String>,
    /// Give up with so much memory in use: 500M, 2G
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
}

/// The exit code of a program that Ctrl-C has ended.
pub(crate) const INTERRUPTED: u8 = 130;
/// How often the memory is looked at, in questions.
const MEMORY_STRIDE: u32 = 16;

/// Why something was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    Time,
    Memory,
    Signal,
}

impl Stop {
    /// As said in reports.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Time => "--time",
            Self::Memory => "--memory",
            Self::Signal => "a signal",
        }
    }
}

/// When to stop.
#[derive(Debug)]
pub(crate) struct Limits {
    begun: Instant,
    time: Option<Duration>,
    memory: Option<u64>,
    signal: Arc<AtomicBool>,
    asked: u32,
    stopped: Option<Stop>,
}

impl Limits {
    /// Begins to count, and to listen for signals. A second signal ends the program at once.
    pub(crate) fn new(arguments: &LimitArguments) -> Result<Self, BadInput> {
        let LimitArguments { time, memory } = arguments;
        let time = time.as_deref().map(|text| read_time("--time", text)).transpose()?;
        let memory = memory.as_deref().map(|text| read_size("--memory", text)).transpose()?;
        if memory.is_some() && resident().is_none() {
            let reason = "this system does not say how much memory is in use";
            return Err(BadInput::new("--memory", reason));
        }
        let signal = Arc::new(AtomicBool::new(false));
        for number in [SIGINT, SIGTERM] {
            let ended = i32::from(INTERRUPTED);
            let heard = flag::register_conditional_shutdown(number, ended, Arc::clone(&signal))
                .and_then(|_| flag::register(number, Arc::clone(&signal)));
            heard.map_err(|error| BadInput::new("signals", error))?;
        }
        let time = time.map(|span| Duration::from_nanos(span.0));
        Ok(Self { begun: Instant::now(), time, memory, signal, asked: 0, stopped: None })
    }

    /// Is there an end to it, however long it would take?
    pub(crate) const fn ends(&self) -> bool {
        self.time.is_some()
    }

    /// Shall it go on?
    pub(crate) fn go_on(&mut self) -> bool {
        self.asked = self.asked.wrapping_add(1);
        if self.stopped.is_none() {
            self.stopped = self.reason();
        }
        self.stopped.is_none()
    }

    fn reason(&self) -> Option<Stop> {
        if self.signal.load(Ordering::Relaxed) {
            return Some(Stop::Signal);
        }
        if self.time.is_some_and(|time| self.begun.elapsed() >= time) {
            return Some(Stop::Time);
        }
        let looks = self.asked % MEMORY_STRIDE == 1;
        let memory = self.memory.filter(|_| looks)?;
        (resident()? > memory).then_some(Stop::Memory)
    }

    /// Why it was stopped, if it was.
    pub(crate) const fn stopped(&self) -> Option<Stop> {
        self.stopped
    }
}

/// How many bytes of memory are in use, where the system says so.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}
