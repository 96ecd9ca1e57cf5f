//! One schedule: members are started, things are done to them, and what they wrote is judged.

mod deeds;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use quorate_service::history::files::gather;
use quorate_service::history::{Fact, Finding, Record, Role, Rule, Terms};
use quorate_service::locks::ROLES;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::book::Book;
use crate::host::{Host, Program, send};
use crate::network::{Quality, Switch};
use crate::schedule::{Fault, Schedule};
use crate::soak::{Sample, Usage};
use crate::watch::together;
use crate::{job, resource, soak};
use deeds::Agenda;

/// How often histories are looked at.
const LOOK: Duration = Duration::from_millis(10);
/// So long may it take until all are seated first: much more than it needs, also on a busy machine.
const FOUNDING: Duration = Duration::from_secs(20);
/// So long may it take until a process says that it has started.
const STARTING: Duration = Duration::from_secs(10);
/// So long go they on together before it is over: what is wrong with them may show.
const LINGER: Duration = Duration::from_millis(200);
/// So long may a member take to say what it knows of the cluster.
const ANSWER: Duration = Duration::from_secs(5);

/// So much is told of what breaks one rule.
const TOLD_MAX: usize = 5;

/// What came of a schedule.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// What is broken, a sentence each.
    pub broken: Vec<String>,
    /// How many records there are.
    pub records: usize,
    /// How many views were decided.
    pub views: usize,
    /// How many processes there were.
    pub processes: usize,
    /// What users came to.
    #[serde(flatten)]
    pub tally: Tally,
    /// What members that are there all the time take of their machine, if that is looked at.
    pub samples: Vec<Sample>,
    /// How long after the last fault all survivors sat in one view, in milliseconds.
    pub healed_after: Option<f64>,
}

/// What users came to, in one schedule or in several.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// How often somebody was granted something.
    pub grants: usize,
    /// How often what locks guard was changed, and how often that was refused.
    pub changes: [usize; 2],
    /// How many guards were lost that somebody asked about.
    pub lost: usize,
    /// How many commands ran under locks.
    pub commands: usize,
    /// How often somebody led in a role.
    pub terms: usize,
    /// How many messages of groups were delivered.
    pub messages: usize,
}

/// Runs a schedule in this folder, and judges it.
///
/// # Errors
/// What this machine does not allow. What the members do wrong is in the report.
pub(crate) fn run(schedule: &Schedule, program: &Program, folder: &Path) -> io::Result<Report> {
    std::fs::write(folder.join("schedule.txt"), format!("seed {}: {schedule}\n", schedule.seed))?;
    let mut stage = Stage::set(schedule, program, folder)?;
    stage.play()?;
    let mut broken = std::mem::take(&mut stage.broken);
    let samples = std::mem::take(&mut stage.samples);
    if schedule.samples.is_some() {
        broken.extend(soak::growth(&samples));
    }
    for host in &mut stage.hosts {
        host.kill()?;
        if let Some(job) = &mut host.job {
            job.kill()?;
        }
    }
    drop(stage);
    let mut report = Report { samples, ..Report::default() };
    match gather(folder) {
        Ok(gathered) => {
            let judged = gathered.history.judge(Terms::default());
            broken.extend(told(&judged.findings));
            report.records = gathered.history.records().len();
            (report.views, report.processes) = (judged.views, judged.processes);
            (report.tally.grants, report.tally.messages) = (judged.grants, judged.messages);
            report.tally.count(gathered.history.records());
            report.healed_after = judged.healed_after.map(|span| span.in_units());
        }
        Err(error) => broken.push(error),
    }
    report.broken = broken;
    Ok(report)
}

/// What was found, a sentence each, of each rule the first ones: a mistake that shows shows often.
fn told(findings: &[Finding]) -> Vec<String> {
    let mut counts: BTreeMap<Rule, usize> = BTreeMap::new();
    let mut told = Vec::new();
    for Finding { rule, text, .. } in findings {
        let count = counts.entry(*rule).or_default();
        *count += 1;
        if *count <= TOLD_MAX {
            told.push(format!("{}: {text}", rule.name()));
        }
    }
    let more = counts.into_iter().filter(|(_, count)| *count > TOLD_MAX);
    told.extend(
        more.map(|(rule, count)| format!("{}: and {} more", rule.name(), count - TOLD_MAX)),
    );
    told
}

impl Tally {
    /// Adds what another schedule came to.
    pub(crate) fn add(&mut self, other: &Self) {
        self.grants += other.grants;
        self.changes = [0, 1].map(|it| self.changes[it] + other.changes[it]);
        self.lost += other.lost;
        self.commands += other.commands;
        self.terms += other.terms;
        self.messages += other.messages;
    }

    fn count(&mut self, records: &[Record]) {
        for record in records {
            match &record.fact {
                Fact::Gate { accepted, .. } => self.changes[usize::from(!accepted)] += 1,
                Fact::Checked { left, .. } if left.0 == 0 => self.lost += 1,
                Fact::Granted { space: Some(space), .. } if space == ROLES => self.terms += 1,
                Fact::Start { role: Role::Client, .. } => self.commands += 1,
                _ => {}
            }
        }
    }
}

/// Members and their network.
struct Stage<'a> {
    schedule: &'a Schedule,
    program: &'a Program,
    hosts: Vec<Host>,
    switch: Switch,
    book: Book,
    /// What is done to the network at the moment, by number.
    troubles: BTreeMap<usize, Fault>,
    /// Are wrappers started?
    jobs: bool,
    /// Is it looked at what users write?
    users: bool,
    /// What members take, and when that is looked at next.
    samples: Vec<Sample>,
    next_sample: Option<Instant>,
    begun: Instant,
    broken: Vec<String>,
}

impl<'a> Stage<'a> {
    fn set(schedule: &'a Schedule, program: &'a Program, folder: &Path) -> io::Result<Self> {
        let hosts: io::Result<Vec<_>> =
            schedule.all().map(|member| Host::new(member, folder, schedule)).collect();
        let hosts = hosts?;
        let switch = Switch::connect(hosts.iter().map(|host| &host.port), schedule.seed)?;
        switch.set_all(schedule.network);
        let book = Book::of_harness(folder, "harness")?;
        std::env::set_current_dir(folder)?;
        resource::serve(folder)?;
        Ok(Self {
            schedule,
            program,
            hosts,
            switch,
            book,
            troubles: BTreeMap::new(),
            jobs: false,
            users: false,
            samples: Vec::new(),
            next_sample: None,
            begun: Instant::now(),
            broken: Vec::new(),
        })
    }

    fn play(&mut self) -> io::Result<()> {
        for member in self.schedule.all().filter(|member| self.schedule.is_first(*member)) {
            self.start(member)?;
        }
        if !self.wait(FOUNDING, Self::seated)? {
            self.complain("they do not found a cluster");
            return self.book.note(Fact::End);
        }
        self.jobs = self.schedule.jobs;
        let mut agenda = Agenda::of(self.schedule);
        let begun = Instant::now();
        self.begun = begun;
        self.next_sample = self.schedule.samples.map(|every| begun + every.time());
        while let Some((due, deed)) = agenda.next() {
            self.go_on_until(begun + due)?;
            self.perform(&mut agenda, deed)?;
        }
        self.go_on_until(begun + self.schedule.heal.time())?;
        self.next_sample = None;
        self.heal()?;
        let healing = Duration::from_nanos(Terms::default().healing.0);
        let due = Instant::now() + healing;
        if self.wait(healing, Self::seated)? {
            self.go_on_until(Instant::now() + LINGER)?;
            // The judge says who is late.
            let rest = due.saturating_duration_since(Instant::now()) + LINGER;
            self.wait(rest, Self::are_served)?;
            self.ask_all();
        }
        self.jobs = false;
        if !self.wait(job::LIMIT, |stage| stage.hosts.iter().all(|host| host.job.is_none()))? {
            self.complain("a wrapper has not ended");
        }
        let gone = |stage: &Self| !stage.running().any(|running| running.leaves);
        if !self.wait(healing, gone)? {
            self.complain("who was asked to leave has not ended");
        }
        self.book.note(Fact::End)
    }

    /// Everything is repaired, and everybody is there.
    fn heal(&mut self) -> io::Result<()> {
        self.troubles.clear();
        self.switch.set_all(Quality::default());
        for host in &mut self.hosts {
            for pid in host.job.iter_mut().flat_map(|job| job.stopped.drain(..)) {
                send(pid, Signal::CONT);
            }
        }
        for place in 0..self.hosts.len() {
            if self.hosts[place].running.as_ref().is_some_and(|running| running.stopped) {
                self.go_on(place)?;
            }
        }
        for member in self.schedule.all() {
            self.start(member)?;
        }
        let there = |stage: &Self| stage.running().all(|running| running.watch.has_begun());
        if !self.wait(STARTING, there)? {
            self.complain("somebody does not say that it has started");
        }
        for running in self.hosts.iter_mut().filter_map(|host| host.running.as_mut()) {
            running.watch.forget_served()?;
        }
        self.users = self.program.has_users();
        self.book.note(Fact::Heal)
    }

    fn complain(&mut self, text: &str) {
        self.broken.push(text.to_owned());
    }

    fn running(&self) -> impl Iterator<Item = &crate::host::Running> {
        self.hosts.iter().filter_map(|host| host.running.as_ref())
    }

    /// Does everybody who means to stay sit in one view, and does one preside?
    fn seated(&self) -> bool {
        let staying = || self.running().filter(|running| !running.leaves && !running.stopped);
        let presided = staying().any(|running| running.watch.presides());
        presided && together(staying().map(|running| running.watch.seat()))
    }

    /// Was everybody who means to stay served since the healing: with locks, roles and groups?
    fn are_served(&self) -> bool {
        let mut staying = self.running().filter(|running| !running.leaves);
        !self.users || staying.all(|running| running.watch.is_served())
    }

    /// Waits until something is so. Was it, in time?
    fn wait(&mut self, patience: Duration, is: impl Fn(&Self) -> bool) -> io::Result<bool> {
        let begun = Instant::now();
        loop {
            self.look()?;
            if is(self) {
                return Ok(true);
            }
            if begun.elapsed() > patience {
                return Ok(false);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Looks on until then.
    fn go_on_until(&mut self, end: Instant) -> io::Result<()> {
        loop {
            self.look()?;
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Ok(());
            }
            std::thread::sleep(rest.min(LOOK));
        }
    }

    /// Reads on in all histories, and sees who has ended.
    fn look(&mut self) -> io::Result<()> {
        for host in &mut self.hosts {
            if let Some((running, status)) = host.ended()? {
                let (whom, pid) = (host.member.to_string(), running.pid());
                // Who was asked to leave ends well, and says so itself.
                if !(running.leaves && status.success()) {
                    let how = status.to_string();
                    self.book.note(Fact::Died { whom, pid, how })?;
                }
            }
            if let Some(running) = &mut host.running {
                running.watch.look()?;
                if self.users {
                    running.watch.look_at_users()?;
                }
            }
            let jobs = self.jobs && self.schedule.has_jobs(host.member);
            if let Some(wrong) = host.see_to_job(self.program, jobs)? {
                self.broken.push(format!("{wrong} at {}", host.member));
            }
        }
        self.sample()
    }

    /// Looks at what those take of their machine that were there all the time, if it is time for it.
    fn sample(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let Some((due, every)) = self.next_sample.zip(self.schedule.samples) else { return Ok(()) };
        if now < due {
            return Ok(());
        }
        self.next_sample = Some(due + every.time());
        let always = self.hosts.iter().filter(|host| host.member.0 < self.schedule.seeds);
        let there = always.filter(|host| host.starts == 1);
        let of = there.filter_map(|host| {
            let running = host.running.as_ref()?;
            Some(Usage::of(host.member.to_string(), running.pid()))
        });
        let of: io::Result<Vec<Usage>> = of.collect();
        let at = self.begun.elapsed().as_millis() as u64;
        self.samples.push(Sample { at, of: of? });
        Ok(())
    }

    /// Every member says what it knows of the cluster: the same, and in time.
    fn ask_all(&mut self) {
        let names: Vec<String> = self.staying().map(|host| host.member.to_string()).collect();
        let mut broken = Vec::new();
        for host in self.staying() {
            let who = host.member;
            match host.status(self.program, ANSWER) {
                Err(error) => broken.push(format!("status of {who}: {error}")),
                Ok(status) => {
                    let listed = |name: &String| status.members.iter().any(|it| it.name == *name);
                    if let Some(name) = names.iter().find(|name| !listed(name)) {
                        let epoch = status.epoch;
                        broken.push(format!("{who} does not list {name} in epoch {epoch}"));
                    }
                }
            }
        }
        self.broken.extend(broken);
    }

    fn staying(&self) -> impl Iterator<Item = &Host> {
        let stays = |host: &&Host| host.running.as_ref().is_some_and(|running| !running.leaves);
        self.hosts.iter().filter(stays)
    }

    fn go_on(&mut self, place: usize) -> io::Result<()> {
        let host = &mut self.hosts[place];
        host.signal(Signal::CONT)?;
        let Some(running) = &mut host.running else { return Ok(()) };
        running.stopped = false;
        let (whom, pid) = (host.member.to_string(), running.pid());
        self.book.note(Fact::Cont { whom, pid })
    }
}
