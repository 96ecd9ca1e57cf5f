//! Several schedules at a time, each in a process of its own that takes everything with it when it ends.
//!
//! A worker is the first process of a namespace of processes: when it ends, however it ends, the kernel
//! ends all others in there, and with them their network goes. It ends when its input does, and that is
//! held by whoever has started it. So nothing is left behind, whoever is killed.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quorate_algorithms::flaw;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::host::{Flaw, FlawAt, Program};
use crate::schedule::{Beyond, Member, Schedule};
use crate::stage::{self, Report, Tally};
use crate::{job, soak, users};

/// The variable by which a process knows that a worker has started it.
const PART: &str = "QUORATE_CHAOS";
/// The variable that names a mistake to plant.
pub(crate) const FLAW: &str = "QUORATE_FLAW";
/// The word that makes a worker of this program.
const WORKER: &str = "chaos-worker";
/// How often it is looked who has ended.
const LOOK: Duration = Duration::from_millis(20);
/// So long may a schedule take that is not a long one.
const LIMIT: Duration = Duration::from_secs(90);

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The first seed.
    pub seed: u64,
    /// How many, one after the other.
    pub count: u64,
    /// How many at a time.
    pub jobs: usize,
    /// Which folders of schedules are kept.
    pub keep: Keep,
    /// Break what members rely on, instead of what they survive.
    pub beyond: Option<Beyond>,
    /// One long schedule of so many minutes, in which nothing may grow.
    pub soak: Option<u64>,
    /// What members run.
    pub program: Program,
}

/// Which folders of schedules are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Keep {
    /// None.
    Nothing,
    /// Those of broken ones, in a temporary folder.
    Broken,
    /// All, in this folder.
    All(PathBuf),
}

impl Options {
    fn schedule(&self, seed: u64) -> Schedule {
        drawn(seed, self.beyond, self.soak)
    }

    /// So long may a schedule take, whatever happens.
    fn limit(&self) -> Duration {
        LIMIT + Duration::from_secs(90 * self.soak.unwrap_or(0))
    }
}

fn drawn(seed: u64, beyond: Option<Beyond>, soak: Option<u64>) -> Schedule {
    match (beyond, soak) {
        (_, Some(minutes)) => Schedule::soak(seed, minutes),
        (Some(beyond), None) => Schedule::beyond(seed, beyond),
        (None, None) => Schedule::of(seed),
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How many schedules ran to their end.
    pub ran: u64,
    /// How many of them broke something.
    pub broken: u64,
    /// What is broken, a sentence each.
    pub found: Vec<String>,
    /// What users came to.
    pub tally: Tally,
    /// A signal ended it.
    pub interrupted: bool,
}

impl Outcome {
    fn add(&mut self, report: &Report) {
        self.ran += 1;
        self.broken += u64::from(!report.broken.is_empty());
        self.found.extend(report.broken.iter().cloned());
        self.tally.add(&report.tally);
    }

    /// As a program ends: 0 if nothing is broken, 1 if something is.
    #[must_use]
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match (self.broken, self.interrupted) {
            (0, false) => 0,
            (0, true) => 130,
            _ => 1,
        })
    }
}

/// Is this process a worker, a member, or what runs under a lock? Then it does its work here and ends.
///
/// To be called before anything else by every program that calls [`run`]: it starts itself as all of these.
pub fn be_a_worker_if_told() {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let is = |known: &str| words.first().is_some_and(|word| word == known);
    if is(WORKER) {
        std::process::exit(work(&words[1..]));
    }
    if is(job::COMMAND) {
        let done = job::work(&words[1..]);
        // The resource is gone when the schedule is over.
        std::process::exit(done.map_or(3, |()| 0));
    }
    // All that a worker starts knows that it does so.
    if std::env::var_os(PART).is_some() {
        std::process::exit(take_part());
    }
}

/// What `quorate` does with a cluster, and users in the process of a member.
#[derive(clap::Parser)]
struct Part {
    #[command(subcommand)]
    task: quorate_agent::Task,
}

fn take_part() -> i32 {
    if let Ok(name) = std::env::var(FLAW) {
        // It is planted for as long as the process lives.
        let name = Box::leak(name.into_boxed_str());
        flaw::plant(&flaw::Flaw { algorithm: "", name, answer: "" });
    }
    let task = <Part as clap::Parser>::parse().task;
    match quorate_agent::run_beside(task, |member| users::begin(&member)) {
        Ok(code) => code.into(),
        Err(failure) => {
            eprintln!("{}", failure.sentence);
            failure.code.into()
        }
    }
}

/// Runs schedules, and prints a line for each.
///
/// # Errors
/// What this machine does not allow.
pub fn run(options: &Options) -> io::Result<Outcome> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&interrupted))?;
    }
    let temporary = tempfile::Builder::new().prefix("quorate-chaos-").tempdir()?;
    let root = match &options.keep {
        Keep::All(folder) => folder.clone(),
        Keep::Nothing | Keep::Broken => temporary.path().to_owned(),
    };
    let (mut outcome, mut working, mut healed) = (Outcome::default(), Vec::new(), Vec::new());
    let (begun, end) = (Instant::now(), options.seed.saturating_add(options.count));
    let mut seeds = options.seed..end;
    loop {
        if interrupted.load(Ordering::Relaxed) {
            outcome.interrupted = true;
            break;
        }
        while working.len() < options.jobs
            && let Some(seed) = seeds.next()
        {
            working.push(Worker::start(seed, options, &root)?);
        }
        if working.is_empty() {
            break;
        }
        let mut going_on = Vec::new();
        for mut worker in working {
            match worker.ended(options.limit())? {
                None => going_on.push(worker),
                Some(report) => {
                    healed.extend(report.healed_after);
                    outcome.add(&report);
                    worker.tell(&report, options);
                }
            }
        }
        working = going_on;
        std::thread::sleep(LOOK);
    }
    drop(working);
    if options.keep == Keep::Broken && outcome.broken > 0 {
        _ = temporary.keep();
    }
    println!("{}", summary(&outcome, &mut healed, begun.elapsed()));
    Ok(outcome)
}

fn summary(outcome: &Outcome, healed: &mut [f64], took: Duration) -> String {
    let Outcome { ran, broken, interrupted, tally, .. } = outcome;
    let Tally { grants, changes: [changed, refused], lost, commands, terms, messages } = tally;
    let mut text = format!("{ran} schedules, {broken} broken");
    if *interrupted {
        text += ", interrupted";
    }
    healed.sort_by(f64::total_cmp);
    if let (Some(median), Some(longest)) = (healed.get(healed.len() / 2), healed.last()) {
        _ = write!(text, "; seated {median:.0} ms after healing (median), {longest:.0} ms at most");
    }
    _ = write!(text, "; {:.1} s", took.as_secs_f64());
    _ = write!(text, "\n{grants} grants, {lost} guards lost, {commands} commands under locks; ");
    _ = write!(text, "what is guarded was changed {changed} times and refused {refused} times");
    _ = write!(text, "\n{terms} terms of leaders, {messages} messages of groups delivered");
    text
}

/// A schedule that is being run.
struct Worker {
    seed: u64,
    folder: PathBuf,
    child: Child,
    begun: Instant,
}

impl Worker {
    fn start(seed: u64, options: &Options, root: &Path) -> io::Result<Self> {
        let folder = root.join(format!("seed-{seed}"));
        std::fs::create_dir_all(&folder)?;
        let program = &options.program;
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
        command.arg(std::env::current_exe()?).arg(WORKER).arg(seed.to_string());
        command.arg(&folder).arg(&program.path).arg(program.lease.as_millis().to_string());
        command.arg(options.beyond.map_or("", Beyond::name));
        command.arg(options.soak.unwrap_or(0).to_string());
        command.args(program.flaw.iter().map(shown));
        command.env(PART, "1");
        // Away from the terminal's signals: whoever has started it says when it ends.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(std::fs::File::create(folder.join("worker.log"))?);
        let child = command.spawn()?;
        Ok(Self { seed, folder, child, begun: Instant::now() })
    }

    /// What came of it, if it has ended.
    fn ended(&mut self, limit: Duration) -> io::Result<Option<Report>> {
        let late = self.begun.elapsed() > limit;
        if late {
            self.child.kill()?;
        }
        let Some(status) = self.child.try_wait()? else { return Ok(None) };
        let mut text = String::new();
        if let Some(mut output) = self.child.stdout.take() {
            output.read_to_string(&mut text)?;
        }
        let failed = |why: String| Report { broken: vec![why], ..Report::default() };
        Ok(Some(match serde_json::from_str(&text) {
            Ok(report) if status.success() => report,
            _ if late => failed(format!("it has not ended after {limit:?}")),
            _ => {
                let said = std::fs::read_to_string(self.folder.join("worker.log"));
                let said = said.unwrap_or_default();
                let last = said.lines().next().unwrap_or("nothing");
                failed(format!("the harness ended with {status}: {last}"))
            }
        }))
    }

    /// Prints what came of it, and removes what is of no use.
    fn tell(&self, report: &Report, options: &Options) {
        let Report { broken, views, processes, tally, healed_after, .. } = report;
        let grants = tally.grants;
        let mark = if broken.is_empty() { "ok" } else { "BROKEN" };
        let healed = healed_after.map_or(String::new(), |ms| format!(", healed in {ms:.0} ms"));
        let (seed, schedule) = (self.seed, options.schedule(self.seed));
        let took = self.begun.elapsed().as_secs_f64();
        let seen =
            format!("{processes} processes, {views} views, {grants} grants{healed}, {took:.1} s");
        println!("{mark:<7}seed {seed}  {schedule}  ({seen})");
        if !report.samples.is_empty() {
            println!("{}", soak::table(&report.samples));
            let word = if soak::growth(&report.samples).is_empty() { "flat" } else { "NOT FLAT" };
            println!(
                "memory, threads and file descriptors of members to which nothing was done: {word}"
            );
        }
        for text in broken {
            println!("       {text}");
        }
        if !broken.is_empty() && options.keep != Keep::Nothing {
            println!("       look: quorate verify --cluster {}", self.folder.display());
            let beyond = options.beyond.map(|beyond| format!(" --beyond {}", beyond.name()));
            let flaw = options.program.flaw.iter().map(|flaw| format!(" --flaw {}", shown(flaw)));
            let more: String = beyond.into_iter().chain(flaw).collect();
            println!("       again: cargo xtask chaos --seed {seed} --count 1{more} --keep DIR");
        } else if !matches!(options.keep, Keep::All(_)) {
            _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Its input ends, and so does it, with all that it has started.
        drop(self.child.stdin.take());
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The worker's side: SEED FOLDER PROGRAM LEASE BEYOND MINUTES [FLAW].
fn work(words: &[OsString]) -> i32 {
    // Whatever goes wrong in any thread ends this process, and with it all that it has started.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        std::process::exit(101);
    }));
    std::thread::spawn(|| {
        _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(102);
    });
    let done = read_words(words).and_then(|(schedule, program, folder)| {
        stage::run(&schedule, &program, &folder).map_err(|error| error.to_string())
    });
    match done.and_then(|report| serde_json::to_string(&report).map_err(|error| error.to_string()))
    {
        Ok(report) => {
            println!("{report}");
            0
        }
        Err(error) => {
            eprintln!("{error}");
            2
        }
    }
}

fn read_words(words: &[OsString]) -> Result<(Schedule, Program, PathBuf), String> {
    let [seed, folder, path, lease, beyond, minutes, flaw @ ..] = words else {
        return Err("too few words".into());
    };
    let number = |word: &OsString| {
        let text = word.to_str().unwrap_or_default();
        text.parse::<u64>().map_err(|error| format!("{text}: {error}"))
    };
    let flaw = flaw.first().and_then(|word| word.to_str()).map(read_flaw).transpose()?;
    let lease = Duration::from_millis(number(lease)?);
    let program = Program { path: path.into(), lease, flaw };
    let beyond = beyond.to_str().filter(|word| !word.is_empty()).map(str::parse).transpose()?;
    let soak = Some(number(minutes)?).filter(|minutes| *minutes > 0);
    Ok((drawn(number(seed)?, beyond, soak), program, folder.into()))
}

fn shown(flaw: &Flaw) -> String {
    let Flaw { name, at } = flaw;
    match at {
        FlawAt::Some => name.clone(),
        FlawAt::All => format!("{name}@all"),
        FlawAt::One(member) => format!("{name}@{member}"),
    }
}

/// A planted mistake as it is typed: `NAME`, `NAME@all` or `NAME@b`.
///
/// # Errors
/// What is wrong, in one sentence.
pub fn read_flaw(text: &str) -> Result<Flaw, String> {
    let (name, at) = match text.split_once('@') {
        None => (text, FlawAt::Some),
        Some((name, "all")) => (name, FlawAt::All),
        Some((name, member)) => match member.as_bytes() {
            [letter @ b'a'..=b'i'] => (name, FlawAt::One(Member(letter - b'a'))),
            _ => return Err(format!("{member} is neither all nor a member from a to i")),
        },
    };
    if name.is_empty() {
        return Err("a flaw has a name".into());
    }
    Ok(Flaw { name: name.to_owned(), at })
}
