//! What a voter does, one rule at a time: three voters with perfect links and disks.

mod admission;

use std::collections::{BTreeMap, BTreeSet};

use quorate_authority::raft::{
    ChangeError, Conf, Disk, DiskError, FoundError, Options, Out, Standing, Stored, Voter, Word,
    Write,
};
use quorate_authority::{Answer, Order, Register};
use quorate_core::{Life, Span};
use quorate_service::{Refused, Renewal, Settings};

use admission::admit;

/// A disk that forgets, and looks at what it is given.
struct Critic(Option<Stored>);

impl Disk for Critic {
    fn start(&mut self) -> Result<Stored, DiskError> {
        self.0.take().ok_or_else(|| DiskError("one start".to_owned()))
    }

    fn write(&mut self, write: &Write<'_>) -> Result<(), DiskError> {
        let hard = write.hard.expect("what is promised is part of every transaction");
        if let Some(applied) = write.applied {
            assert!(hard.commit >= applied.index, "what is applied is committed");
        }
        let needed = write.reset.is_some() || !write.entries.is_empty();
        assert!(write.sync || !needed, "what others are told of is durable");
        Ok(())
    }
}

/// Voters whose words arrive at once, unless their receiver is gone.
struct Circle {
    voters: BTreeMap<u64, Voter<Critic>>,
    answers: BTreeMap<u64, Answer>,
    reads: BTreeMap<u64, u64>,
    unknown: BTreeSet<u64>,
    /// Orders that were passed on.
    forwarded: Vec<Word>,
}

const TICKS: usize = 10;

impl Circle {
    fn found(ids: &[u64]) -> Self {
        let register = Register::founded(5, Settings { lease: Span(1) });
        let founding = |id: &u64| {
            let stored = Stored::founding(*id, ids.to_vec(), register.clone()).expect("founders");
            (*id, voter(stored))
        };
        Self {
            voters: ids.iter().map(founding).collect(),
            answers: BTreeMap::new(),
            reads: BTreeMap::new(),
            unknown: BTreeSet::new(),
            forwarded: Vec::new(),
        }
    }

    /// Everybody does what there is to do, until there is nothing.
    fn run(&mut self) {
        let mut words = Vec::new();
        loop {
            let (answers, reads, unknown) = (&mut self.answers, &mut self.reads, &mut self.unknown);
            for (id, voter) in &mut self.voters {
                let out = &mut |out| match out {
                    Out::Send(said) => {
                        words.extend(said.into_iter().map(|(to, word)| (*id, to, word)));
                    }
                    Out::Answer { ticket, answer } => {
                        assert_eq!(answers.insert(ticket, answer), None, "answered once");
                    }
                    Out::Read { ticket, register } => {
                        reads.insert(ticket, register.settings().lease.0);
                    }
                    Out::Unknown { ticket } => {
                        unknown.insert(ticket);
                    }
                    Out::Committed(_) | Out::Members(_) => {}
                };
                voter.turn(out).expect("the disk works");
            }
            if words.is_empty() {
                return;
            }
            for (from, to, word) in std::mem::take(&mut words) {
                if matches!(word, Word::Orders(_)) {
                    self.forwarded.push(word.clone());
                }
                if let Some(voter) = self.voters.get_mut(&to) {
                    voter.receive(from, word);
                }
            }
        }
    }

    fn tick(&mut self) {
        self.voters.values_mut().for_each(Voter::tick);
        self.run();
    }

    fn leader(&self) -> Option<u64> {
        let mut leaders = self.voters.iter().filter(|(_, voter)| voter.leads());
        leaders.next().map(|(id, _)| *id)
    }

    /// Lets time pass until somebody leads.
    fn elected(&mut self) -> u64 {
        loop {
            self.tick();
            if let Some(leader) = self.leader() {
                return leader;
            }
        }
    }

    fn voter(&mut self, id: u64) -> &mut Voter<Critic> {
        self.voters.get_mut(&id).expect("it is there")
    }

    fn other(&self, than: u64) -> u64 {
        self.voters.keys().copied().find(|id| *id != than).expect("another one")
    }
}

fn voter(stored: Stored) -> Voter<Critic> {
    let options = Options { seed: 3, election: TICKS, heartbeat: 2, patience: 50, tail: 8 };
    Voter::new(Critic(Some(stored)), options).expect("a voter")
}

fn set(lease: u64) -> Order {
    Order::Set(Settings { lease: Span(lease) })
}

fn renew() -> Order {
    Order::Renew(vec![Renewal::new(Life(5), 1)])
}

#[test]
fn one_three_or_five_found() {
    let register = Register::founded(5, Settings { lease: Span(1) });
    let found = |id, voters: &[u64]| Stored::founding(id, voters.to_vec(), register.clone()).err();
    assert_eq!(found(1, &[1]), None);
    assert_eq!(found(3, &[1, 2, 3]), None);
    assert_eq!(found(1, &[1, 2]), Some(FoundError::Count(2)));
    assert_eq!(found(1, &[1, 2, 2]), Some(FoundError::Count(2)));
    assert_eq!(found(1, &[]), Some(FoundError::Count(0)));
    assert_eq!(found(4, &[1, 2, 3]), Some(FoundError::Id(4)));
    assert_eq!(found(0, &[0]), Some(FoundError::Id(0)));
}

#[test]
fn one_voter_leads_and_commits_without_a_tick() {
    let mut circle = Circle::found(&[4]);
    circle.voter(4).order(1, set(9));
    circle.voter(4).read(2);
    circle.run();
    assert_eq!(circle.answers[&1], Answer::Done);
    assert_eq!(circle.reads[&2], 9);
}

#[test]
fn renewals_wait_for_the_tick_and_are_one_entry() {
    let mut circle = Circle::found(&[1, 2, 3]);
    let leader = circle.elected();
    let before = circle.voter(leader).applied().index;
    for ticket in 1..=5 {
        circle.voter(leader).order(ticket, renew());
    }
    circle.run();
    assert_eq!(circle.voter(leader).applied().index, before, "they wait");
    circle.tick();
    assert_eq!(circle.voter(leader).applied().index, before + 1, "they are one entry");
    assert_eq!(circle.answers.len(), 5);
    // Somebody who waits takes them along.
    circle.voter(leader).order(6, renew());
    circle.voter(leader).order(7, Order::Leave(Life(70)));
    circle.run();
    assert_eq!(circle.voter(leader).applied().index, before + 2);
    assert_eq!(circle.answers[&7], Answer::Refused(Refused::Out(Life(70))));
}

#[test]
fn an_order_is_passed_on_once_and_answered_where_it_was_given() {
    let mut circle = Circle::found(&[1, 2, 3]);
    let leader = circle.elected();
    let follower = circle.other(leader);
    circle.voter(follower).order(1, set(7));
    circle.run();
    assert_eq!(circle.answers[&1], Answer::Done);
    circle.voter(follower).read(2);
    circle.run();
    assert_eq!(circle.reads[&2], 7);
    // The leader is gone when it arrives: it is not sent again, and its outcome is unknown.
    circle.voters.remove(&leader);
    circle.voter(follower).order(3, set(8));
    circle.run();
    let forwarded = circle.forwarded.len();
    for _ in 0..60 {
        circle.tick();
    }
    assert_eq!(circle.forwarded.len(), forwarded);
    assert!(circle.unknown.contains(&3) && !circle.answers.contains_key(&3));
    circle.voter(follower).read(4);
    circle.run();
    circle.tick();
    assert_eq!(circle.reads[&4], 7);
}

#[test]
fn an_order_that_was_doubled_is_done_once() {
    let mut circle = Circle::found(&[1, 2, 3]);
    let leader = circle.elected();
    let follower = circle.other(leader);
    circle.voter(follower).order(1, admit(1));
    circle.run();
    assert_eq!(circle.answers[&1], Answer::Life(Life(5)));
    circle.voter(follower).order(2, Order::Leave(Life(5)));
    circle.run();
    // The first one comes again, late: of a life that has ended nothing is kept, so it would be another.
    let late = circle.forwarded[0].clone();
    circle.voter(leader).receive(follower, late);
    circle.tick();
    assert_eq!(circle.voter(leader).committed().register.members().count(), 0);
    assert_eq!(circle.answers.len(), 2);
}

#[test]
fn evidence_of_the_leaders_death_makes_another_one_at_once() {
    let mut circle = Circle::found(&[1, 2, 3, 4, 5]);
    let leader = circle.elected();
    circle.voters.remove(&leader);
    circle.voters.values_mut().for_each(|voter| voter.dead(leader));
    circle.run();
    let next = circle.leader().expect("without a tick");
    assert_eq!(Some(&next), circle.voters.keys().next(), "the first of the living");
    circle.voter(next).order(1, set(4));
    circle.run();
    assert_eq!(circle.answers[&1], Answer::Done);
}

#[test]
fn who_is_next_waits_for_the_first_of_the_living() {
    let mut circle = Circle::found(&[1, 2, 3, 4, 5]);
    let leader = circle.elected();
    circle.voters.remove(&leader);
    let first = *circle.voters.keys().next().unwrap();
    // The first is gone as well, and nobody knows that yet.
    circle.voters.remove(&first);
    circle.voters.values_mut().for_each(|voter| voter.dead(leader));
    circle.run();
    assert_eq!(circle.leader(), None);
    for _ in 0..3 {
        circle.tick();
    }
    assert_eq!(circle.leader(), circle.voters.keys().next().copied());
}

#[test]
fn votes_that_were_split_are_asked_for_again_by_turns() {
    let mut circle = Circle::found(&[1, 2, 3]);
    let leader = circle.elected();
    circle.voters.remove(&leader);
    let [first, second] = *circle.voters.keys().copied().collect::<Vec<_>>() else { panic!() };
    // It takes itself for the first of the living.
    circle.voter(second).dead(first);
    circle.voters.values_mut().for_each(|voter| voter.dead(leader));
    circle.run();
    assert_eq!(circle.leader(), None, "each has its own vote");
    for _ in 0..3 {
        circle.tick();
    }
    assert_eq!(circle.leader(), Some(second), "its turn");
}

#[test]
fn false_evidence_at_one_voter_changes_nothing() {
    let mut circle = Circle::found(&[1, 2, 3]);
    let leader = circle.elected();
    let term = circle.voter(leader).term();
    let follower = circle.other(leader);
    for _ in 0..30 {
        circle.voter(follower).dead(leader);
        circle.tick();
    }
    assert_eq!((circle.leader(), circle.voter(leader).term()), (Some(leader), term));
}

#[test]
fn members_change_one_at_a_time() {
    let mut circle = Circle::found(&[1, 2, 3]);
    let leader = circle.elected();
    let follower = circle.other(leader);
    let follows = circle.voter(follower).change(Conf::Learn(9));
    assert_eq!(follows, Err(ChangeError::NotLeader));
    let voter = circle.voter(leader);
    assert_eq!(voter.change(Conf::Promote(9)), Err(ChangeError::Behind));
    assert_eq!(voter.change(Conf::Remove(9)), Err(ChangeError::Already));
    assert_eq!(voter.change(Conf::Learn(leader)), Err(ChangeError::Already));
    assert_eq!(voter.change(Conf::Learn(9)), Ok(()));
    assert_eq!(voter.change(Conf::Learn(8)), Err(ChangeError::Pending));
    circle.run();
    // It has not been heard of yet.
    assert_eq!(circle.voter(leader).change(Conf::Promote(9)), Err(ChangeError::Behind));
    circle.voters.insert(9, self::voter(Stored::joining(9)));
    for _ in 0..2 * TICKS {
        circle.tick();
    }
    assert_eq!(circle.voter(leader).change(Conf::Promote(9)), Ok(()));
    circle.run();
    assert_eq!(circle.voter(9).applied().members.voters, [1, 2, 3, 9]);
    assert_eq!(circle.voters[&9].applied(), circle.voters[&leader].applied());
    // Who leads can be removed, and another one leads then.
    assert_eq!(circle.voter(leader).change(Conf::Remove(leader)), Ok(()));
    circle.run();
    assert!(!circle.voter(leader).leads());
    let next = circle.elected();
    assert_ne!(next, leader);
    assert!(!circle.voter(next).applied().members.contains(leader));
}

#[test]
fn the_last_voter_stays() {
    let mut circle = Circle::found(&[4]);
    circle.run();
    assert_eq!(circle.voter(4).change(Conf::Remove(4)), Err(ChangeError::Last));
}

#[test]
fn words_that_are_not_what_they_say_are_ignored() {
    let mut circle = Circle::found(&[1, 2, 3]);
    let leader = circle.elected();
    let before = circle.voter(leader).applied().clone();
    let follower = circle.other(leader);
    // An order in the name of somebody else, and orders of a stranger.
    circle.voter(follower).order(1, set(66));
    let mut forged = None;
    let take = &mut |out| {
        if let Out::Send(words) = out {
            forged = words
                .into_iter()
                .map(|(_, word)| word)
                .find(|word| matches!(word, Word::Orders(_)));
        }
    };
    circle.voter(follower).turn(take).unwrap();
    let forged = forged.expect("it is passed on");
    let third = *circle.voters.keys().find(|id| ![leader, follower].contains(id)).unwrap();
    circle.voter(leader).receive(third, forged.clone());
    circle.voter(leader).receive(77, forged.clone());
    circle.tick();
    assert_eq!(*circle.voter(leader).applied(), before);
    circle.voter(leader).receive(follower, forged);
    circle.tick();
    assert_eq!(circle.voter(leader).committed().register.settings().lease, Span(66));
}

#[test]
fn who_stands_behind_what_it_promised_is_not_trusted() {
    let mut circle = Circle::found(&[1, 2, 3]);
    let leader = circle.elected();
    let follower = circle.other(leader);
    let elected = circle.voters[&follower].standing();
    circle.voter(leader).order(1, set(2));
    circle.run();
    let now = circle.voters[&follower].standing();
    assert!(now > elected);
    let voter = circle.voter(leader);
    assert!(voter.trusts(follower, now));
    assert!(!voter.trusts(follower, elected), "it has acknowledged more");
    assert!(!voter.trusts(follower, Standing { term: now.term - 1, ..now }));
    // In a later term its log may be shorter: it was not the leader's.
    assert!(voter.trusts(follower, Standing { term: now.term + 1, last: 1 }));
    assert!(voter.trusts(77, Standing::default()), "a stranger has promised nothing");
}
