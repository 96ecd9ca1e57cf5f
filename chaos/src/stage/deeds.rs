//! What is done to members, step by step.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::time::Duration;

use quorate_service::history::{Fact, Rule};
use rustix::process::Signal;

use super::Stage;
use crate::host::send;
use crate::job::Job;
use crate::network::Quality;
use crate::schedule::{Fault, Member, Ms, Schedule, Whom};

/// So long may it take to find out who leads.
const ASKING: Duration = Duration::from_millis(500);

/// Something that is to be done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Deed {
    /// This step of the schedule.
    Step(usize),
    /// A member is started, if it is not there.
    Start(Member),
    /// A process goes on, if it is still that one.
    GoOn(Member, u32),
    /// A wrapper or its command goes on, if it is still there.
    GoOnJob(Member, u32),
    /// This step's trouble with the network is over.
    Mend(usize),
    /// A member is killed and gets the disk back that it once had.
    Restore(Member),
}

/// What is to be done, in the order of time.
pub(super) struct Agenda {
    waiting: BinaryHeap<Reverse<(Duration, Deed)>>,
    now: Duration,
}

impl Agenda {
    pub(super) fn of(schedule: &Schedule) -> Self {
        let steps = schedule.steps.iter().enumerate();
        let waiting = steps.map(|(place, step)| Reverse((step.at.time(), Deed::Step(place))));
        Self { waiting: waiting.collect(), now: Duration::ZERO }
    }

    /// What is next, and when.
    pub(super) fn next(&mut self) -> Option<(Duration, Deed)> {
        let Reverse((due, deed)) = self.waiting.pop()?;
        self.now = due;
        Some((due, deed))
    }

    fn after(&mut self, time: Duration, deed: Deed) {
        self.waiting.push(Reverse((self.now + time, deed)));
    }
}

impl Stage<'_> {
    pub(super) fn perform(&mut self, agenda: &mut Agenda, deed: Deed) -> io::Result<()> {
        match deed {
            Deed::Step(place) => self.step(agenda, place),
            Deed::Start(member) => self.start(member),
            Deed::GoOn(member, pid) => {
                let place = usize::from(member.0);
                let running = self.hosts[place].running.as_ref();
                match running.is_some_and(|running| running.pid() == pid) {
                    true => self.go_on(place),
                    false => Ok(()),
                }
            }
            Deed::GoOnJob(member, pid) => self.go_on_job(member, pid),
            Deed::Mend(place) => {
                self.troubles.remove(&place);
                self.spoil();
                Ok(())
            }
            Deed::Restore(member) => {
                self.kill(member)?;
                self.book.note(Fact::Fault { what: format!("{member} gets its old disk") })?;
                self.hosts[usize::from(member.0)].restore_disk()?;
                self.start(member)
            }
        }
    }

    fn step(&mut self, agenda: &mut Agenda, place: usize) -> io::Result<()> {
        let fault = self.schedule.steps[place].fault.clone();
        match &fault {
            Fault::Kill(whom, back) => {
                let member = self.who(*whom);
                self.kill(member)?;
                agenda.after(back.time(), Deed::Start(member));
            }
            Fault::KillAll(back) => {
                for member in self.schedule.all() {
                    self.kill(member)?;
                }
                for (member, back) in back {
                    agenda.after(back.time(), Deed::Start(*member));
                }
            }
            Fault::Stop(whom, time) => {
                let member = self.who(*whom);
                if let Some(pid) = self.stop(member)? {
                    agenda.after(time.time(), Deed::GoOn(member, pid));
                }
            }
            Fault::StopWrapper(member, time) => self.stop_wrapper(agenda, *member, *time)?,
            Fault::StopCommand(member, time) => {
                let command = self.job(*member).and_then(|job| job.command());
                if let Some(pid) = command {
                    self.stop_job(*member, pid)?;
                    agenda.after(time.time(), Deed::GoOnJob(*member, pid));
                }
            }
            Fault::StopBoth(member, time) => {
                self.stop_wrapper(agenda, *member, *time)?;
                if let Some(pid) = self.stop(*member)? {
                    agenda.after(time.time(), Deed::GoOn(*member, pid));
                }
            }
            Fault::KillWrapper(member) => self.kill_wrapper(*member)?,
            Fault::Wipe(member, back) => {
                self.kill(*member)?;
                self.book.note(Fact::Fault { what: fault.to_string() })?;
                self.hosts[usize::from(member.0)].wipe_disk()?;
                agenda.after(back.time(), Deed::Start(*member));
            }
            Fault::RollBack(member, by) => {
                self.kill(*member)?;
                self.hosts[usize::from(member.0)].copy_disk()?;
                self.start(*member)?;
                agenda.after(by.time(), Deed::Restore(*member));
            }
            Fault::Join(member) => self.start(*member)?,
            Fault::Leave(member, back) => {
                self.leave(*member)?;
                agenda.after(back.time(), Deed::Start(*member));
            }
            Fault::Part(_, time)
            | Fault::Pair(_, _, time)
            | Fault::OneWay(_, _, time)
            | Fault::Bad(_, _, time)
            | Fault::Reject(_, time) => {
                self.note_trouble(&fault)?;
                agenda.after(time.time(), Deed::Mend(place));
                self.troubles.insert(place, fault);
                self.spoil();
            }
        }
        Ok(())
    }

    fn who(&self, whom: Whom) -> Member {
        let presides = || {
            let running = |host: &&crate::host::Host| {
                host.running.as_ref().is_some_and(|running| running.watch.presides())
            };
            self.hosts.iter().find(running).map(|host| host.member)
        };
        let leads = || {
            let said = self.staying().find_map(|host| host.status(self.program, ASKING).ok())?;
            let leader = said.authority.leader?;
            self.schedule.all().find(|member| member.to_string() == leader)
        };
        match whom {
            Whom::Member(member) => member,
            Whom::Presider => presides().unwrap_or(Member(0)),
            Whom::Leader => leads().or_else(presides).unwrap_or(Member(0)),
        }
    }

    /// Starts a member that is not there.
    pub(super) fn start(&mut self, member: Member) -> io::Result<()> {
        let host = &mut self.hosts[usize::from(member.0)];
        match host.running {
            Some(_) => Ok(()),
            None => host.start(self.program, self.schedule),
        }
    }

    fn job(&mut self, member: Member) -> Option<&mut Job> {
        self.hosts[usize::from(member.0)].job.as_mut()
    }

    fn stop_wrapper(&mut self, agenda: &mut Agenda, member: Member, time: Ms) -> io::Result<()> {
        let Some(pid) = self.job(member).map(|job| job.pid()) else { return Ok(()) };
        self.stop_job(member, pid)?;
        agenda.after(time.time(), Deed::GoOnJob(member, pid));
        self.set_aside(member)
    }

    /// Stops a wrapper or its command.
    fn stop_job(&mut self, member: Member, pid: u32) -> io::Result<()> {
        let Some(job) = self.job(member) else { return Ok(()) };
        job.disturbed = true;
        job.stopped.push(pid);
        self.book.note(Fact::Stop { whom: format!("{member}.job"), pid })?;
        send(pid, Signal::STOP);
        Ok(())
    }

    fn go_on_job(&mut self, member: Member, pid: u32) -> io::Result<()> {
        let Some(job) = self.job(member) else { return Ok(()) };
        if !job.stopped.contains(&pid) {
            return Ok(());
        }
        job.stopped.retain(|stopped| *stopped != pid);
        send(pid, Signal::CONT);
        self.book.note(Fact::Cont { whom: format!("{member}.job"), pid })
    }

    fn kill_wrapper(&mut self, member: Member) -> io::Result<()> {
        let Some(job) = self.job(member) else { return Ok(()) };
        job.disturbed = true;
        let pid = job.pid();
        self.book.note(Fact::Kill { whom: format!("{member}.job"), pid })?;
        send(pid, Signal::KILL);
        Ok(())
    }

    /// Where a wrapper and its agent stand still or are gone at once, nobody ends the command in time:
    /// then only what is guarded is judged.
    fn set_aside(&mut self, member: Member) -> io::Result<()> {
        let host = &self.hosts[usize::from(member.0)];
        let wrapper = host.job.as_ref().is_some_and(Job::is_stopped);
        let agent = host.running.as_ref().is_none_or(|running| running.stopped);
        if wrapper && agent {
            self.book.note(Fact::Aside { rule: Rule::Children.name().to_owned() })?;
        }
        Ok(())
    }

    fn kill(&mut self, member: Member) -> io::Result<()> {
        let host = &mut self.hosts[usize::from(member.0)];
        if let Some(running) = &host.running {
            let (whom, pid) = (member.to_string(), running.pid());
            self.book.note(Fact::Kill { whom, pid })?;
        }
        host.kill()?;
        self.set_aside(member)
    }

    fn stop(&mut self, member: Member) -> io::Result<Option<u32>> {
        let host = &mut self.hosts[usize::from(member.0)];
        let Some(running) = &mut host.running else { return Ok(None) };
        let (whom, pid) = (member.to_string(), running.pid());
        running.stopped = true;
        self.book.note(Fact::Stop { whom, pid })?;
        host.signal(Signal::STOP)?;
        self.set_aside(member)?;
        Ok(Some(pid))
    }

    fn leave(&mut self, member: Member) -> io::Result<()> {
        let host = &mut self.hosts[usize::from(member.0)];
        let Some(running) = &mut host.running else { return Ok(()) };
        let (whom, pid) = (member.to_string(), running.pid());
        running.leaves = true;
        self.book.note(Fact::Term { whom, pid })?;
        host.signal(Signal::TERM)
    }

    /// Writes down what is about to be done to the network.
    fn note_trouble(&mut self, fault: &Fault) -> io::Result<()> {
        let links = self.cut_by(fault);
        let links = links.iter().map(|(from, to)| (from.to_string(), to.to_string())).collect();
        self.book.note(match fault {
            Fault::Part(..) | Fault::Pair(..) | Fault::OneWay(..) => Fact::Cut { links },
            other => Fact::Fault { what: other.to_string() },
        })
    }

    fn links(&self) -> Vec<(Member, Member)> {
        let all = || self.schedule.all();
        let pairs = all().flat_map(|from| all().map(move |to| (from, to)));
        pairs.filter(|(from, to)| from != to).collect()
    }

    /// The links that pass nothing on by this.
    fn cut_by(&self, fault: &Fault) -> Vec<(Member, Member)> {
        let mut links = self.links();
        links.retain(|(from, to)| match fault {
            Fault::Part(side, _) => side.contains(from) != side.contains(to),
            Fault::Pair(one, other, _) => (from, to) == (one, other) || (from, to) == (other, one),
            Fault::OneWay(one, other, _) => (from, to) == (one, other),
            _ => false,
        });
        links
    }

    /// The network does what all troubles at the moment make it do.
    fn spoil(&self) {
        self.switch.set_all(self.schedule.network);
        for fault in self.troubles.values() {
            let place = |member: Member| self.hosts[usize::from(member.0)].port.address();
            for (from, to) in self.cut_by(fault) {
                self.switch.change(place(from), place(to), |link| link.cut = true);
            }
            match fault {
                Fault::Reject(member, _) => self.switch.reject(place(*member), true),
                Fault::Bad(member, trouble, _) => {
                    let worse = trouble.quality();
                    let there = |end: Member| member.is_none_or(|member| member == end);
                    for (from, to) in self.links() {
                        if there(from) || there(to) {
                            self.switch.change(place(from), place(to), |link| worsen(link, &worse));
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// A link does both of these to packets.
fn worsen(link: &mut Quality, worse: &Quality) {
    link.delay += worse.delay;
    link.loss = link.loss.max(worse.loss);
    link.duplicate = link.duplicate.max(worse.duplicate);
    link.reorder = link.reorder.max(worse.reorder);
    link.rate = link.rate.or(worse.rate);
}
