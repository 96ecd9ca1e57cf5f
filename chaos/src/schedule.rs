//! Schedules: what is done to which member, and when, drawn from a seed.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use crate::dice::Dice;
use crate::network::Quality;

/// A member, by its place among all that take part at some time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Member(pub u8);

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", char::from(b'a' + self.0))
    }
}

/// To whom something is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whom {
    /// To this one.
    Member(Member),
    /// To whoever presides at that time.
    Presider,
    /// To whoever leads the authority at that time.
    Leader,
}

impl fmt::Display for Whom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(member) => member.fmt(f),
            Self::Presider => f.write_str("who presides"),
            Self::Leader => f.write_str("the leader"),
        }
    }
}

/// A length of time in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ms(pub u64);

impl Ms {
    /// As it is.
    #[must_use]
    pub const fn time(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// Something that is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// KILL one, and start it again after some time.
    Kill(Whom, Ms),
    /// KILL all at once, and start each one again after some time.
    KillAll(Vec<(Member, Ms)>),
    /// STOP one, and CONT it after some time.
    Stop(Whom, Ms),
    /// STOP the wrapper of one's command, and CONT it after some time.
    StopWrapper(Member, Ms),
    /// STOP the command, and CONT it after some time.
    StopCommand(Member, Ms),
    /// STOP a wrapper and its agent at once.
    StopBoth(Member, Ms),
    /// KILL a wrapper.
    KillWrapper(Member),
    /// These on one side and all others on the other hear nothing of each other.
    Part(Vec<Member>, Ms),
    /// These two hear nothing of each other.
    Pair(Member, Member, Ms),
    /// What the first one says is not heard by the second one.
    OneWay(Member, Member, Ms),
    /// All links from and to one, or all links, do this to packets.
    Bad(Option<Member>, Trouble, Ms),
    /// All that is sent to this one is refused in its name, though it is there.
    Reject(Member, Ms),
    /// One is killed, and comes back with nothing on its disk.
    Wipe(Member, Ms),
    /// One is killed and comes back; later again, with the disk that it had the first time.
    RollBack(Member, Ms),
    /// One joins that was not there yet.
    Join(Member),
    /// One is asked to leave, and comes back after some time.
    Leave(Member, Ms),
}

/// What a bad network does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// It loses a fifth.
    Loss,
    /// It takes 100 ms.
    Delay,
    /// It passes on no more than a slow modem.
    Narrow,
    /// It doubles and reorders.
    Murky,
}

impl Trouble {
    /// What links do.
    #[must_use]
    pub fn quality(self) -> Quality {
        let plain = Quality::default();
        match self {
            Self::Loss => Quality { loss: 200_000, ..plain },
            Self::Delay => Quality { delay: Duration::from_millis(100), ..plain },
            Self::Narrow => Quality { rate: Some(8_000), ..plain },
            Self::Murky => Quality { duplicate: 100_000, reorder: 100_000, ..plain },
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Loss => "20 % loss",
            Self::Delay => "100 ms delay",
            Self::Narrow => "8 kB/s",
            Self::Murky => "doubled and reordered",
        }
    }
}

impl Fault {
    /// Is this done to a command that runs under a lock?
    const fn is_of_a_job(&self) -> bool {
        matches!(
            self,
            Self::StopWrapper(..)
                | Self::StopCommand(..)
                | Self::StopBoth(..)
                | Self::KillWrapper(_)
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(whom, back) => write!(f, "kill {whom} for {back}"),
            Self::KillAll(back) => {
                let longest = back.iter().map(|(_, back)| *back).max().unwrap_or(Ms(0));
                write!(f, "kill all for up to {longest}")
            }
            Self::Stop(whom, time) => write!(f, "stop {whom} for {time}"),
            Self::StopWrapper(member, time) => write!(f, "stop the wrapper at {member} for {time}"),
            Self::StopCommand(member, time) => write!(f, "stop the command at {member} for {time}"),
            Self::StopBoth(member, time) => write!(f, "stop {member} and its wrapper for {time}"),
            Self::KillWrapper(member) => write!(f, "kill the wrapper at {member}"),
            Self::Part(side, time) => write!(f, "cut off {} for {time}", names(side)),
            Self::Pair(one, other, time) => write!(f, "cut {one}-{other} for {time}"),
            Self::OneWay(from, to, time) => write!(f, "cut {from}>{to} for {time}"),
            Self::Bad(None, trouble, time) => write!(f, "{} for {time}", trouble.words()),
            Self::Bad(Some(member), trouble, time) => {
                write!(f, "{} at {member} for {time}", trouble.words())
            }
            Self::Reject(member, time) => write!(f, "reject {member} for {time}"),
            Self::Wipe(member, back) => write!(f, "wipe {member}, back after {back}"),
            Self::RollBack(member, by) => write!(f, "roll {member} back by {by}"),
            Self::Join(member) => write!(f, "{member} joins"),
            Self::Leave(member, back) => write!(f, "{member} leaves for {back}"),
        }
    }
}

fn names(members: &[Member]) -> String {
    members.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Something that is done at a time, counted from when all were seated first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// When.
    pub at: Ms,
    /// What.
    pub fault: Fault,
}

/// Where members are, as far as they can know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hosts {
    /// All on one machine, whose kernel knows who has ended.
    One,
    /// Each on a machine of its own.
    Own,
}

/// What is done in one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// Where all of it comes from.
    pub seed: u64,
    /// How many of the members are seeds: the first ones.
    pub seeds: u8,
    /// How many members there are at first.
    pub members: u8,
    /// Where they are.
    pub hosts: Hosts,
    /// How fast the clock of each member goes that takes part at some time, in millionths.
    pub rates: Vec<u32>,
    /// Are they told that nobody refuses for who is there?
    pub trusts_refusals: bool,
    /// What the network is like.
    pub network: Quality,
    /// Do commands run under locks of agents?
    pub jobs: bool,
    /// Do users ask for locks by force?
    pub forces: bool,
    /// Pauses of users are so many times as long as usual.
    pub pace: u64,
    /// How often it is looked what those take of their machine to whom nothing is done, if it is.
    pub samples: Option<Ms>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// When nothing more is done, and all is repaired.
    pub heal: Ms,
}

/// Something that members rely on, and that a schedule breaks: the judge has to find it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beyond {
    /// Clocks are off by a half.
    Clocks,
    /// Somebody is refused who is there, and others trust refusals.
    Refusals,
}

impl Beyond {
    /// All of them, with their names.
    pub const ALL: [(&str, Self); 2] = [("clocks", Self::Clocks), ("refusals", Self::Refusals)];

    /// As it is typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }
}

impl FromStr for Beyond {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|(name, _)| *name == text);
        known.map(|(_, beyond)| *beyond).ok_or_else(|| format!("{text} is not clocks or refusals"))
    }
}

/// Draws a fault of one kind, and how long it lasts.
type Kind = fn(&mut Draft) -> (Fault, Ms);

/// The kinds of faults. The first one of a schedule goes by its seed, so that as many schedules in a
/// row as there are kinds have all of them.
const KINDS: [Kind; 20] = [
    Draft::kill,
    Draft::kill_all,
    Draft::stop,
    Draft::stop_the_first,
    Draft::part,
    Draft::pair,
    Draft::one_way,
    Draft::loss,
    Draft::delay,
    Draft::narrow,
    Draft::reject,
    Draft::wipe,
    Draft::roll_back,
    Draft::join,
    Draft::leave,
    Draft::kill_the_first,
    Draft::stop_wrapper,
    Draft::stop_command,
    Draft::stop_both,
    Draft::kill_wrapper,
];

/// So many of these in one schedule. No more: whoever is doomed more often has to stay away for longer
/// than the time in which all have to be seated.
const FAULTS: RangeInclusive<u64> = 2..=5;
/// So many are told at most.
const SHOWN: usize = 5;

impl Schedule {
    /// The schedule of this seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::of(seed);
        let members = dice.pick(&[3, 3, 3, 5, 5]);
        let seeds = if members == 5 { dice.pick(&[3, 5]) } else { 3 };
        let hosts = dice.pick(&[Hosts::One, Hosts::Own]);
        let mut draft = Draft { dice, seeds, members, joined: 0, disk: false };
        let (mut steps, mut at, mut heal) = (Vec::new(), 200, 0);
        let count = draft.dice.between(FAULTS);
        for number in 0..count {
            let kind = match number {
                0 => seed % KINDS.len() as u64,
                _ => draft.dice.between(0..=KINDS.len() as u64 - 1),
            };
            let disk = draft.disk;
            let (fault, Ms(takes)) = KINDS[kind as usize](&mut draft);
            // What is done to a disk is done alone: more than one lost disk at a time is not promised
            // to be survived.
            let alone = draft.disk && !disk;
            at = if alone && number > 0 { (heal + 800).max(at) } else { at };
            steps.push(Step { at: Ms(at), fault });
            heal = heal.max(at + takes);
            at = if alone { heal + 300 } else { at + draft.dice.between(100..=1500) };
        }
        let Draft { mut dice, joined, .. } = draft;
        let rates = (0..members + joined).map(|_| rate(&mut dice)).collect();
        let network = network(&mut dice);
        // Who trusts refusals vouches that nobody refuses for who is there.
        let trusts_refusals =
            !steps.iter().any(|step: &Step| matches!(step.fault, Fault::Reject(..)));
        let heal = Ms(heal + 100);
        let wraps = |step: &Step| step.fault.is_of_a_job();
        let jobs = dice.happens(40) || steps.iter().any(wraps);
        let forces = dice.happens(25);
        Self {
            seed,
            seeds,
            members,
            hosts,
            rates,
            trusts_refusals,
            network,
            jobs,
            forces,
            pace: 1,
            samples: None,
            steps,
            heal,
        }
    }

    /// A long one: three members to which nothing is done, and two that come, go and are killed all the time.
    /// Nobody is doomed: who is again and again has to stay away, in the end for most of the time.
    #[must_use]
    pub fn soak(seed: u64, minutes: u64) -> Self {
        let mut dice = Dice::of(seed);
        let (mut steps, mut at) = (Vec::new(), 2_000);
        let heal = minutes.max(1) * 60_000;
        while at + 6_000 < heal {
            let (member, back) = (Member(dice.pick(&[3, 4])), Ms(dice.between(300..=1_500)));
            let fault = match dice.between(0..=3) {
                0 | 1 => Fault::Kill(Whom::Member(member), back),
                2 => Fault::Leave(member, back),
                _ => Fault::Stop(Whom::Member(member), Ms(dice.between(50..=200))),
            };
            steps.push(Step { at: Ms(at), fault });
            at += dice.between(2_000..=4_000);
        }
        Self {
            seed,
            seeds: 3,
            members: 5,
            hosts: Hosts::One,
            rates: vec![1_000_000; 5],
            trusts_refusals: true,
            network: Quality::default(),
            jobs: true,
            forces: true,
            pace: 4,
            samples: Some(Ms((heal / 30).max(1_000))),
            steps,
            heal: Ms(heal),
        }
    }

    /// A schedule that breaks what members rely on, so that something has to be found.
    #[must_use]
    pub fn beyond(seed: u64, what: Beyond) -> Self {
        let (first, back, time) = (Member(0), Ms(300), Ms(2_000));
        let (rates, fault) = match what {
            Beyond::Clocks => (vec![500_000, 1_500_000, 1_500_000], Fault::Part(vec![first], time)),
            Beyond::Refusals => (vec![1_000_000; 3], Fault::Reject(first, time)),
        };
        // Who was killed comes back as the least senior one: after that the first one presides.
        let kill = |member| Fault::Kill(Whom::Member(Member(member)), back);
        let steps = [(200, kill(1)), (1_500, kill(2)), (2_800, fault)];
        let steps = steps.map(|(at, fault)| Step { at: Ms(at), fault });
        Self {
            seed,
            seeds: 3,
            members: 3,
            hosts: Hosts::Own,
            rates,
            trusts_refusals: true,
            network: Quality::default(),
            jobs: false,
            forces: false,
            pace: 1,
            samples: None,
            steps: steps.into(),
            heal: Ms(4_900),
        }
    }

    /// Do commands run at this member, if they do? In a long schedule they do not where one is killed again and
    /// again: an agent with commands is dead only by its silence, and whoever is silent often has to stay away.
    #[must_use]
    pub const fn has_jobs(&self, member: Member) -> bool {
        self.samples.is_none() || member.0 < self.seeds
    }

    /// All members that take part at some time.
    pub fn all(&self) -> impl Iterator<Item = Member> + use<> {
        (0..self.rates.len() as u8).map(Member)
    }

    /// Does this member take part from the beginning?
    #[must_use]
    pub const fn is_first(&self, member: Member) -> bool {
        member.0 < self.members
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seeds, members, .. } = self;
        let hosts = match self.hosts {
            Hosts::One => "one host",
            Hosts::Own => "own hosts",
        };
        let jobs = if self.jobs { ", commands" } else { "" };
        let forces = if self.forces { ", by force" } else { "" };
        write!(f, "{members} members ({seeds} seeds, {hosts}{jobs}{forces}): ")?;
        let shown = self.steps.len().min(SHOWN);
        for (number, Step { at, fault }) in self.steps[..shown].iter().enumerate() {
            let comma = if number > 0 { "; " } else { "" };
            write!(f, "{comma}{} {fault}", at.0)?;
        }
        if shown < self.steps.len() {
            write!(f, "; and {} more", self.steps.len() - shown)?;
        }
        write!(f, "; {} heal", self.heal.0)
    }
}

/// Most clocks are as far off as they may be, or right.
fn rate(dice: &mut Dice) -> u32 {
    let any = dice.between(900_000..=1_100_000) as u32;
    dice.pick(&[1_000_000, 1_000_000, 900_000, 1_100_000, any])
}

fn network(dice: &mut Dice) -> Quality {
    let plain = Quality::default();
    let delay = Duration::from_micros(dice.between(100..=2_000));
    let near = Quality { delay, jitter: delay, ..plain };
    let rough = Quality { loss: 5_000, duplicate: 5_000, reorder: 10_000, ..near };
    dice.pick(&[plain, plain, near, near, rough])
}

/// A schedule that is being drawn.
struct Draft {
    dice: Dice,
    seeds: u8,
    members: u8,
    /// How many join that were not there at first.
    joined: u8,
    /// Something was done to a disk.
    disk: bool,
}

impl Draft {
    fn member(&mut self) -> Member {
        Member(self.dice.between(0..=u64::from(self.members) - 1) as u8)
    }

    fn two(&mut self) -> (Member, Member) {
        let all: Vec<Member> = (0..self.members).map(Member).collect();
        let two = self.dice.some(&all, 2);
        (two[0], two[1])
    }

    /// Short of a lease, or well beyond it.
    fn time(&mut self) -> Ms {
        let (short, long) = (self.dice.between(50..=500), self.dice.between(600..=2_000));
        Ms(self.dice.pick(&[short, long, long]))
    }

    fn kill(&mut self) -> (Fault, Ms) {
        let (whom, back) = (Whom::Member(self.member()), self.time());
        (Fault::Kill(whom, back), back)
    }

    fn kill_the_first(&mut self) -> (Fault, Ms) {
        let (whom, back) = (self.dice.pick(&[Whom::Presider, Whom::Leader]), self.time());
        (Fault::Kill(whom, back), back)
    }

    fn kill_all(&mut self) -> (Fault, Ms) {
        let after = self.dice.between(0..=800);
        let back = (0..self.members + self.joined)
            .map(|member| (Member(member), Ms(after + self.dice.between(0..=400))));
        let back: Vec<_> = back.collect();
        let longest = back.iter().map(|(_, back)| *back).max().unwrap_or(Ms(0));
        (Fault::KillAll(back), longest)
    }

    fn stop(&mut self) -> (Fault, Ms) {
        let (whom, time) = (Whom::Member(self.member()), self.time());
        (Fault::Stop(whom, time), time)
    }

    fn stop_the_first(&mut self) -> (Fault, Ms) {
        let (whom, time) = (self.dice.pick(&[Whom::Presider, Whom::Leader]), self.time());
        (Fault::Stop(whom, time), time)
    }

    fn stop_wrapper(&mut self) -> (Fault, Ms) {
        let (member, time) = (self.member(), self.time());
        (Fault::StopWrapper(member, time), time)
    }

    fn stop_command(&mut self) -> (Fault, Ms) {
        let (member, time) = (self.member(), self.time());
        (Fault::StopCommand(member, time), time)
    }

    fn stop_both(&mut self) -> (Fault, Ms) {
        let (member, time) = (self.member(), self.time());
        (Fault::StopBoth(member, time), time)
    }

    fn kill_wrapper(&mut self) -> (Fault, Ms) {
        (Fault::KillWrapper(self.member()), Ms(300))
    }

    fn part(&mut self) -> (Fault, Ms) {
        let all: Vec<Member> = (0..self.members).map(Member).collect();
        let size = self.dice.between(1..=u64::from(self.members) / 2) as usize;
        let mut side = self.dice.some(&all, size);
        side.sort_unstable();
        let time = self.time();
        (Fault::Part(side, time), time)
    }

    fn pair(&mut self) -> (Fault, Ms) {
        let ((one, other), time) = (self.two(), self.time());
        (Fault::Pair(one, other, time), time)
    }

    fn one_way(&mut self) -> (Fault, Ms) {
        let ((from, to), time) = (self.two(), self.time());
        (Fault::OneWay(from, to, time), time)
    }

    fn bad(&mut self, trouble: Trouble) -> (Fault, Ms) {
        let (member, time) = (self.member(), self.time());
        let member = self.dice.happens(50).then_some(member);
        (Fault::Bad(member, trouble, time), time)
    }

    fn loss(&mut self) -> (Fault, Ms) {
        let trouble = self.dice.pick(&[Trouble::Loss, Trouble::Loss, Trouble::Murky]);
        self.bad(trouble)
    }

    fn delay(&mut self) -> (Fault, Ms) {
        self.bad(Trouble::Delay)
    }

    fn narrow(&mut self) -> (Fault, Ms) {
        self.bad(Trouble::Narrow)
    }

    fn reject(&mut self) -> (Fault, Ms) {
        let (member, time) = (self.member(), self.time());
        (Fault::Reject(member, time), time)
    }

    /// One disk at most is touched in a schedule.
    fn wipe(&mut self) -> (Fault, Ms) {
        if self.disk {
            return self.kill();
        }
        self.disk = true;
        let member = Member(self.dice.between(0..=u64::from(self.seeds) - 1) as u8);
        let back = Ms(self.dice.between(50..=1_000));
        (Fault::Wipe(member, back), Ms(back.0 + 1_500))
    }

    fn roll_back(&mut self) -> (Fault, Ms) {
        if self.disk {
            return self.kill();
        }
        self.disk = true;
        let member = Member(self.dice.between(0..=u64::from(self.seeds) - 1) as u8);
        let by = Ms(self.dice.between(500..=1_500));
        (Fault::RollBack(member, by), Ms(by.0 + 1_500))
    }

    fn join(&mut self) -> (Fault, Ms) {
        let member = Member(self.members + self.joined);
        self.joined += 1;
        (Fault::Join(member), Ms(500))
    }

    fn leave(&mut self) -> (Fault, Ms) {
        let (member, back) = (self.member(), Ms(self.dice.between(800..=2_000)));
        (Fault::Leave(member, back), back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_schedule_and_another_one_another() {
        assert_eq!(Schedule::of(7), Schedule::of(7));
        assert_ne!(Schedule::of(7).to_string(), Schedule::of(7 + KINDS.len() as u64).to_string());
    }

    #[test]
    fn schedules_are_within_bounds() {
        for seed in 0..2_000 {
            let schedule = Schedule::of(seed);
            assert!(schedule.heal.0 <= 15_000, "{schedule}");
            assert!(!schedule.steps.is_empty() && schedule.rates.len() <= 9, "{schedule}");
            let disks = schedule.steps.iter().filter(|step| {
                matches!(step.fault, Fault::Wipe(member, _) | Fault::RollBack(member, _)
                    if member.0 < schedule.seeds)
            });
            assert!(disks.count() <= 1, "{schedule}");
            assert!(schedule.rates.iter().all(|rate| (900_000..=1_100_000).contains(rate)));
            assert!(schedule.steps.is_sorted_by_key(|step| step.at), "{schedule}");
        }
    }

    #[test]
    fn what_is_done_to_a_disk_is_done_alone() {
        for seed in 0..2_000 {
            let Schedule { steps, .. } = Schedule::of(seed);
            for (number, step) in steps.iter().enumerate() {
                let (Fault::Wipe(_, Ms(takes)) | Fault::RollBack(_, Ms(takes))) = step.fault else {
                    continue;
                };
                let next = steps.get(number + 1).map_or(u64::MAX, |next| next.at.0);
                assert!(next >= step.at.0 + takes + 1_500, "seed {seed}");
            }
        }
    }

    #[test]
    fn a_long_schedule_leaves_the_seeds_alone_and_ends_in_time() {
        for minutes in [1, 3, 10] {
            let Schedule { steps, heal, seeds, .. } = Schedule::soak(1, minutes);
            assert_eq!((heal, seeds), (Ms(60_000 * minutes), 3));
            assert!(steps.len() as u64 > 10 * minutes, "{}", steps.len());
            for Step { at, fault } in steps {
                let (Fault::Kill(Whom::Member(member), Ms(back))
                | Fault::Stop(Whom::Member(member), Ms(back))
                | Fault::Leave(member, Ms(back))) = fault
                else {
                    panic!("{fault}")
                };
                assert!(member.0 >= seeds && at.0 + back < heal.0, "{fault}");
                assert!(!Schedule::soak(1, minutes).has_jobs(member), "{fault}");
            }
        }
    }

    /// What CI runs has every kind of fault.
    #[test]
    fn as_many_schedules_in_a_row_as_there_are_kinds_have_all_of_them() {
        let first = |seed| {
            let step = Schedule::of(seed).steps.swap_remove(0);
            std::mem::discriminant(&step.fault)
        };
        let count = KINDS.len() as u64;
        let mut kinds: Vec<_> = Vec::new();
        for kind in (100..100 + count).map(first) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        assert_eq!(kinds.len(), 16, "of all faults there are");
    }
}
