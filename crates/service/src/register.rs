//! The register: who was admitted, who is seated, and how often each one has renewed.
//!
//! An authority (consensus on disk, etcd, memory) puts orders into one sequence; this is what each of
//! them does. It has no clock: it compares. A member is doomed for its silence by somebody who measured
//! it, and only if it has not renewed since ([`Order::Doom`] names the beat that was seen last). So
//! nobody who renewed can be excluded by a message that was late.
//!
//! | order | commits if | effect |
//! |---|---|---|
//! | [`Admit`](Order::Admit) | – | the next life, waiting; the same nonce gets the same life |
//! | [`Renew`](Order::Renew) | – | per life a beat, or the word that it is out |
//! | [`Bar`](Order::Bar) | in its epoch, and no bar is open | no more beats for these lives; no ground |
//! | [`Doom`](Order::Doom) | at that very beat | the life is over |
//! | [`Leave`](Order::Leave) | seated or waiting | the life is over by its own word |
//! | [`Host`](Order::Host) | seated, and neither left, barred nor doomed | no evidence of its death counts |
//! | [`Decide`](Order::Decide) | in its epoch, and everybody missing has a ground | the next view |
//! | [`Forgive`](Order::Forgive) | – | the strikes against a name are forgotten |
//! | [`Set`](Order::Set) | – | settings for renewals from now on |
//! | [`Voter`](Order::Voter) | there are not too many | whose disk votes under this name |
//! | [`Space`](Order::Space) | it is the first, or says the same | what locks of this namespace are like |
//!
//! Everything else is refused, and changes nothing. Nothing of past lives is kept: who is neither seated
//! nor waiting is out.

mod recovery;
#[cfg(test)]
mod tests;
mod words;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use quorate_core::{Life, Span};

pub use words::*;

/// What an admitted life is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Member {
    /// The name of the member whose life it is.
    pub name: String,
    /// The process that lives it.
    pub process: Process,
    /// Is it in the view?
    pub standing: Standing,
    /// How often it has renewed.
    pub beat: Beat,
    /// The largest number of a renewal of it. What was overtaken by that one on the way says less.
    number: u64,
    /// The longest lease on which it may be acting since its last beat: the others wait for the end of
    /// this one, also if settings have changed meanwhile.
    pub lease: Span,
    /// Whom it does not reach, as it said last.
    pub unreachable: BTreeSet<Life>,
    /// Whose place refuses connections, as it said last, and the beat that it knew then.
    pub refused: BTreeMap<Life, Beat>,
    /// Does it act for processes that outlive it?
    pub hosts: bool,
    /// Why it gets no more beats, if it gets none.
    ended: Option<Ended>,
}

impl Member {
    /// Does it still renew?
    const fn goes_on(&self) -> bool {
        self.ended.is_none()
    }
}

/// Why a life gets no more beats.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Ended {
    /// It said so.
    Left,
    /// A link of it is broken. No ground: its silence has to follow.
    Barred,
    /// Its silence was measured.
    Doomed,
}

/// More strikes make no difference: a pause doubles with each from one lease to 64.
pub(crate) const STRIKES_MAX: u32 = 7;

/// Strikes against so many names are kept.
const NAMES_MAX: usize = 1024;

/// So many names vote: some are being replaced by others.
const VOTERS_MAX: usize = 16;

/// So many namespaces are kept.
pub const SPACES_MAX: usize = 1024;

/// The record that durable consensus keeps.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Register {
    /// Where epochs and lives began.
    founded: u64,
    epoch: Epoch,
    /// The proposal that was decided last: asked for again, it is answered again.
    decided: Option<ProposalId>,
    /// The view: who is seated, the most senior first.
    view: Vec<Life>,
    /// Everybody who is seated or waits.
    members: BTreeMap<Life, Member>,
    next_life: Life,
    settings: Settings,
    /// Who was left out of the view, and why.
    gone: Vec<Gone>,
    /// How often a life of each name was doomed, if it was.
    strikes: BTreeMap<String, u32>,
    voters: BTreeMap<String, u64>,
    spaces: BTreeMap<String, Space>,
}

impl Register {
    /// A cluster without members. Epochs and lives begin here, so that those of a cluster that was
    /// founded anew are larger than all before.
    #[must_use]
    pub const fn founded(from: u64, settings: Settings) -> Self {
        Self {
            founded: from,
            epoch: Epoch(from),
            decided: None,
            view: Vec::new(),
            members: BTreeMap::new(),
            next_life: Life(from),
            settings,
            gone: Vec::new(),
            strikes: BTreeMap::new(),
            voters: BTreeMap::new(),
            spaces: BTreeMap::new(),
        }
    }

    /// Where epochs and lives began: what tells this cluster from one that was founded at another time.
    #[must_use]
    pub const fn founded_at(&self) -> u64 {
        self.founded
    }

    /// The number of the view.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Who is seated, the most senior first.
    #[must_use]
    pub fn view(&self) -> &[Life] {
        &self.view
    }

    /// A life that is seated or waits.
    #[must_use]
    pub fn member(&self, life: Life) -> Option<&Member> {
        self.members.get(&life)
    }

    /// Everybody who is seated or waits.
    pub fn members(&self) -> impl Iterator<Item = (Life, &Member)> {
        self.members.iter().map(|(life, member)| (*life, member))
    }

    /// Those of them that were admitted after this life.
    pub(crate) fn members_after(&self, life: Life) -> impl Iterator<Item = (Life, &Member)> {
        self.members.range(life.next()..).map(|(life, member)| (*life, member))
    }

    /// Who was in the view before this one and is missing from it, and why.
    #[must_use]
    pub fn gone(&self) -> &[Gone] {
        &self.gone
    }

    /// The number of the next life that is given.
    pub(crate) const fn next_life(&self) -> Life {
        self.next_life
    }

    /// How often a life of this name that had a seat was doomed, since that was forgiven last.
    #[must_use]
    pub fn strikes(&self, name: &str) -> u32 {
        self.strikes.get(name).copied().unwrap_or(0)
    }

    /// The names that something is held against.
    pub fn struck(&self) -> impl Iterator<Item = &str> {
        self.strikes.keys().map(String::as_str)
    }

    /// The disks that vote, by name.
    #[must_use]
    pub const fn voters(&self) -> &BTreeMap<String, u64> {
        &self.voters
    }

    /// What locks of this namespace are like, if that was said.
    #[must_use]
    pub fn space(&self, name: &str) -> Option<&Space> {
        self.spaces.get(name)
    }

    /// All namespaces, and what their locks are like.
    pub fn spaces(&self) -> impl Iterator<Item = (&str, &Space)> {
        self.spaces.iter().map(|(name, space)| (name.as_str(), space))
    }

    /// What all go by.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// Who may be missing from the next view, and why, as far as the register knows.
    #[must_use]
    pub fn ground(&self, life: Life) -> Option<Ground> {
        match self.members.get(&life)?.ended? {
            Ended::Left => Some(Ground::Left),
            Ended::Doomed => Some(Ground::Doomed),
            Ended::Barred if flaw!(BarIsGround) => Some(Ground::Doomed),
            Ended::Barred => None,
        }
    }

    /// The word for what a life is: `seated`, `waiting`, or why it goes on no more.
    #[must_use]
    pub fn state(&self, life: Life) -> &'static str {
        match self.members.get(&life).map(|member| (member.ended, member.standing)) {
            None => "out",
            Some((Some(Ended::Left), _)) => "left",
            Some((Some(Ended::Barred), _)) => "barred",
            Some((Some(Ended::Doomed), _)) => "doomed",
            Some((None, Standing::Waiting)) => "waiting",
            Some((None, Standing::Seated)) => "seated",
        }
    }

    /// Does this life still renew: is it there, and neither left, barred nor doomed?
    #[must_use]
    pub fn goes_on(&self, life: Life) -> bool {
        self.members.get(&life).is_some_and(Member::goes_on)
    }

    /// Does one of the two say that it does not reach the other?
    #[must_use]
    pub fn are_apart(&self, one: Life, other: Life) -> bool {
        let says = |by: Life, of: Life| {
            self.members.get(&by).is_some_and(|member| member.unreachable.contains(&of))
        };
        says(one, other) || says(other, one)
    }

    /// Do lives say of each other what they did not say in that state?
    #[must_use]
    pub fn says_other_than(&self, other: &Self) -> bool {
        let said = |register: &Self, life| {
            let member = register.members.get(&life);
            member.map(|member| (member.unreachable.clone(), member.refused.clone()))
        };
        self.members.keys().any(|life| said(self, *life) != said(other, *life))
    }

    /// Is there more in it than in that earlier state, but that lives have renewed?
    #[must_use]
    pub fn is_news_after(&self, before: &Self) -> bool {
        let still = |register: &Self| {
            let mut still = register.clone();
            for member in still.members.values_mut() {
                (member.beat, member.lease) = (Beat(0), Span(0));
            }
            still
        };
        still(self) != still(before)
    }

    /// Is a bar open: is somebody barred and not doomed yet?
    #[must_use]
    pub fn bar_is_open(&self) -> bool {
        self.members.values().any(|member| member.ended == Some(Ended::Barred))
    }

    /// Does an order, or refuses it and changes nothing.
    pub fn apply(&mut self, order: &Order) -> Answer {
        let done = match order {
            Order::Admit { name, process } => return Answer::Life(self.admit(name, process)),
            Order::Renew(renewals) => return Answer::Renewed(self.renew(renewals)),
            Order::Decide { id, .. } if self.decided == Some(*id) => {
                return Answer::Decided(self.epoch);
            }
            Order::Decide { after, id, next, gone } => {
                let decided = self.decide(*after, *id, next, gone);
                return decided.map_or_else(Answer::Refused, Answer::Decided);
            }
            Order::Bar { after, lives } => self.bar(*after, lives),
            Order::Doom { life, beat } => self.doom(*life, *beat),
            Order::Leave(life) => self.leave(*life),
            Order::Host(life, host) => self.host(*life, *host),
            Order::Forgive(name) => {
                self.strikes.remove(name);
                Ok(())
            }
            Order::Set(settings) => {
                self.settings = *settings;
                Ok(())
            }
            Order::Voter { name, id } => put(&mut self.voters, VOTERS_MAX, name, id),
            Order::Space { name, space } => match self.spaces.get(name) {
                Some(known) if known != space => Err(Refused::OtherSpace),
                _ => put(&mut self.spaces, SPACES_MAX, name, space),
            },
        };
        done.map_or_else(Answer::Refused, |()| Answer::Done)
    }

    fn admit(&mut self, name: &str, process: &Process) -> Life {
        let same = |(_, known): &(&Life, &Member)| {
            known.process.nonce == process.nonce || (flaw!(AdmitByName) && known.name == name)
        };
        if let Some((life, _)) = self.members.iter().find(same) {
            return *life;
        }
        let life = self.next_life;
        self.next_life = life.next();
        let member = Member {
            name: name.into(),
            process: process.clone(),
            standing: Standing::Waiting,
            beat: Beat(0),
            number: 0,
            lease: self.settings.lease,
            unreachable: BTreeSet::new(),
            refused: BTreeMap::new(),
            hosts: false,
            ended: None,
        };
        self.members.insert(life, member);
        life
    }

    fn renew(&mut self, renewals: &[Renewal]) -> Vec<(Life, u64, Renewed)> {
        let longest = self.settings.lease;
        let one = |renewal: &Renewal| {
            let going = self.members.get_mut(&renewal.life).filter(|member| member.goes_on());
            let Some(member) = going else { return Renewed::Out };
            let lease = longest.min(renewal.wanted);
            member.beat.0 += 1;
            let relied_on = lease.max(renewal.relied_on);
            if renewal.number > member.number {
                member.number = renewal.number;
                member.lease = relied_on;
                member.unreachable.clone_from(&renewal.unreachable);
                member.refused.clone_from(&renewal.refused);
            } else {
                // It was begun before one that has arrived, and does not know what that one relies on.
                member.lease = member.lease.max(relied_on);
            }
            match member.standing {
                Standing::Waiting => Renewed::Waiting,
                Standing::Seated => Renewed::Beat(member.beat, lease),
            }
        };
        let outcomes: Vec<_> = renewals.iter().map(one).collect();
        let asked = renewals.iter().map(|renewal| (renewal.life, renewal.number));
        asked.zip(outcomes).map(|((life, number), outcome)| (life, number, outcome)).collect()
    }

    fn bar(&mut self, after: Epoch, lives: &BTreeSet<Life>) -> Result<(), Refused> {
        self.in_epoch(after)?;
        if self.bar_is_open() {
            return Err(Refused::BarOpen);
        }
        for life in lives {
            self.going(*life)?;
        }
        for life in lives {
            self.end(*life, Ended::Barred);
        }
        Ok(())
    }

    fn doom(&mut self, life: Life, beat: Beat) -> Result<(), Refused> {
        let member = self.members.get(&life).ok_or(Refused::Out(life))?;
        if matches!(member.ended, Some(Ended::Left | Ended::Doomed)) {
            return Err(Refused::Out(life));
        }
        if member.beat != beat && !flaw!(DoomWithoutCompare) {
            return Err(Refused::Beat(life, member.beat));
        }
        // Whoever had no seat has kept nobody waiting. A name that nobody admits again is not kept for ever.
        if member.standing == Standing::Seated && self.strikes.len() < NAMES_MAX {
            let strikes = self.strikes.entry(member.name.clone()).or_default();
            *strikes = (*strikes + 1).min(STRIKES_MAX);
        }
        self.end(life, Ended::Doomed);
        Ok(())
    }

    fn leave(&mut self, life: Life) -> Result<(), Refused> {
        let member = self.members.get(&life).ok_or(Refused::Out(life))?;
        if member.ended == Some(Ended::Doomed) {
            return Err(Refused::Out(life));
        }
        self.end(life, Ended::Left);
        Ok(())
    }

    fn host(&mut self, life: Life, host: Host) -> Result<(), Refused> {
        self.going(life)?;
        let seated = |member: &&mut Member| member.standing == Standing::Seated;
        let member = self.members.get_mut(&life).filter(seated).ok_or(Refused::Out(life))?;
        member.hosts = host == Host::Begins;
        Ok(())
    }

    fn decide(
        &mut self,
        after: Epoch,
        id: ProposalId,
        next: &[Life],
        gone: &[Gone],
    ) -> Result<Epoch, Refused> {
        self.in_epoch(after)?;
        if next.is_empty() {
            return Err(Refused::Empty);
        }
        let mut chosen = BTreeSet::new();
        for life in next {
            self.going(*life)?;
            if !chosen.insert(*life) {
                return Err(Refused::Twice(*life));
            }
        }
        for life in self.view.iter().filter(|life| !chosen.contains(life)) {
            let named = gone.iter().find(|gone| gone.life == *life);
            let grounded = named.is_some_and(|gone| self.is_ground(*life, gone.ground));
            if !grounded {
                return Err(Refused::NoGround(*life));
            }
        }
        self.gone.clear();
        for life in self.view.iter().filter(|life| !chosen.contains(life)) {
            self.members.remove(life);
            self.gone.extend(gone.iter().find(|gone| gone.life == *life).copied());
        }
        for life in next {
            if let Some(member) = self.members.get_mut(life)
                && member.standing == Standing::Waiting
            {
                member.standing = Standing::Seated;
                // Its silence counts from here, not from when it was admitted.
                member.beat.0 += 1;
                member.lease = self.settings.lease;
            }
        }
        self.view = next.to_vec();
        self.epoch.0 += 1;
        self.decided = Some(id);
        Ok(self.epoch)
    }

    /// Is this what the register knows, or evidence that it cannot gainsay?
    fn is_ground(&self, life: Life, ground: Ground) -> bool {
        match ground {
            Ground::Left | Ground::Doomed => self.ground(life) == Some(ground),
            Ground::Dead(beat) => {
                let dead = |member: &Member| member.beat == beat && !member.hosts;
                self.members.get(&life).is_some_and(dead)
            }
        }
    }

    fn in_epoch(&self, epoch: Epoch) -> Result<(), Refused> {
        if epoch == self.epoch { Ok(()) } else { Err(Refused::Epoch(self.epoch)) }
    }

    fn going(&self, life: Life) -> Result<(), Refused> {
        if self.goes_on(life) { Ok(()) } else { Err(Refused::Out(life)) }
    }

    /// A life gets no more beats. Of one that waits nothing is kept, unless it is only barred.
    fn end(&mut self, life: Life, ended: Ended) {
        let Some(member) = self.members.get_mut(&life) else { return };
        if member.standing == Standing::Waiting && ended != Ended::Barred {
            self.members.remove(&life);
        } else {
            member.ended = Some(ended);
        }
    }
}

/// Puts something under a name, if there is room.
fn put<T: Clone>(
    table: &mut BTreeMap<String, T>,
    most: usize,
    name: &String,
    value: &T,
) -> Result<(), Refused> {
    if table.len() >= most && !table.contains_key(name) {
        return Err(Refused::TooMany);
    }
    table.insert(name.clone(), value.clone());
    Ok(())
}
