//! The register, order by order. What every order does in every state, the checker tries (`family`).

use std::vec::Vec;

use super::*;

const LEASE: Span = Span(1_500);

fn process(nonce: u128) -> Process {
    Process {
        nonce: Nonce(nonce),
        boot: 1,
        pid_namespace: 1,
        pid: nonce as u32,
        started: 1,
        lock_file: (1, nonce as u64),
        address: "127.0.0.1:1".into(),
    }
}

fn admit(nonce: u128) -> Order {
    Order::Admit { name: std::format!("m{nonce}"), process: process(nonce) }
}

fn renew(life: u64) -> Order {
    Order::Renew(vec![Renewal::new(Life(life), 1)])
}

fn decide(after: u64, next: &[u64], gone: &[Gone]) -> Order {
    let next = next.iter().map(|life| Life(*life)).collect::<Vec<_>>();
    // A proposal is told by what it says, so that the same one twice is the same.
    let members = next.iter().fold(0, |id, life| id * 16 + u128::from(life.0) + 1);
    let id = ProposalId(u128::from(after) << 64 | members);
    Order::Decide { after: Epoch(after), id, next, gone: gone.to_vec() }
}

fn gone(life: u64, ground: Ground) -> Gone {
    Gone { life: Life(life), ground }
}

fn founded() -> Register {
    Register::founded(0, Settings { lease: LEASE })
}

/// Three lives are admitted and seated: 0, 1, 2, each with beat 1, in epoch 1.
fn seated() -> Register {
    let mut register = founded();
    for nonce in 0..3 {
        register.apply(&admit(nonce));
    }
    assert_eq!(register.apply(&decide(0, &[0, 1, 2], &[])), Answer::Decided(Epoch(1)));
    register
}

#[test]
fn a_start_has_one_life_however_often_it_asks() {
    let mut register = founded();
    assert_eq!(register.apply(&admit(7)), Answer::Life(Life(0)));
    assert_eq!(register.apply(&admit(7)), Answer::Life(Life(0)));
    assert_eq!(register.apply(&admit(8)), Answer::Life(Life(1)));
}

#[test]
fn who_waits_has_no_lease_and_who_is_out_no_beat() {
    let mut register = founded();
    register.apply(&admit(1));
    assert_eq!(register.apply(&renew(0)), Answer::Renewed(vec![(Life(0), 1, Renewed::Waiting)]));
    assert_eq!(register.apply(&renew(5)), Answer::Renewed(vec![(Life(5), 1, Renewed::Out)]));
    register.apply(&decide(0, &[0], &[]));
    let beat = Renewed::Beat(Beat(3), LEASE);
    assert_eq!(register.apply(&renew(0)), Answer::Renewed(vec![(Life(0), 1, beat)]));
}

#[test]
fn who_has_renewed_is_not_doomed() {
    let mut register = seated();
    register.apply(&renew(1));
    let late = Order::Doom { life: Life(1), beat: Beat(1) };
    assert_eq!(register.apply(&late), Answer::Refused(Refused::Beat(Life(1), Beat(2))));
    let doom = Order::Doom { life: Life(1), beat: Beat(2) };
    assert_eq!(register.apply(&doom), Answer::Done);
    assert_eq!(register.apply(&renew(1)), Answer::Renewed(vec![(Life(1), 1, Renewed::Out)]));
}

#[test]
fn nobody_is_missing_without_a_ground() {
    let mut register = seated();
    let no_ground = Answer::Refused(Refused::NoGround(Life(2)));
    assert_eq!(register.apply(&decide(1, &[0, 1], &[])), no_ground);
    assert_eq!(register.apply(&decide(1, &[0, 1], &[gone(2, Ground::Left)])), no_ground);
    // Evidence that is older than its last beat is none.
    register.apply(&renew(2));
    assert_eq!(register.apply(&decide(1, &[0, 1], &[gone(2, Ground::Dead(Beat(1)))])), no_ground);
    let dead = gone(2, Ground::Dead(Beat(2)));
    assert_eq!(register.apply(&decide(1, &[0, 1], &[dead])), Answer::Decided(Epoch(2)));
    assert_eq!(register.member(Life(2)), None);
}

/// A bar stops beats and is no ground: its silence has to follow.
#[test]
fn who_is_barred_may_be_missing_only_when_it_was_doomed_too() {
    let mut register = seated();
    let bar = |lives: &[u64]| Order::Bar {
        after: Epoch(1),
        lives: lives.iter().map(|life| Life(*life)).collect(),
    };
    assert_eq!(register.apply(&bar(&[2])), Answer::Done);
    assert_eq!(register.apply(&bar(&[1])), Answer::Refused(Refused::BarOpen));
    assert_eq!(register.apply(&renew(2)), Answer::Renewed(vec![(Life(2), 1, Renewed::Out)]));
    let without = decide(1, &[0, 1], &[gone(2, Ground::Doomed)]);
    assert_eq!(register.apply(&without), Answer::Refused(Refused::NoGround(Life(2))));
    let with = decide(1, &[0, 1, 2], &[]);
    assert_eq!(register.apply(&with), Answer::Refused(Refused::Out(Life(2))));
    register.apply(&Order::Doom { life: Life(2), beat: Beat(1) });
    assert!(!register.bar_is_open());
    assert_eq!(register.apply(&without), Answer::Decided(Epoch(2)));
}

/// No evidence of death counts while somebody acts for others, whose work outlives it.
#[test]
fn who_hosts_is_not_taken_for_dead_by_evidence() {
    let mut register = seated();
    assert_eq!(register.apply(&Order::Host(Life(2), Host::Begins)), Answer::Done);
    let dead = decide(1, &[0, 1], &[gone(2, Ground::Dead(Beat(1)))]);
    assert_eq!(register.apply(&dead), Answer::Refused(Refused::NoGround(Life(2))));
    register.apply(&Order::Host(Life(2), Host::Ends));
    assert_eq!(register.apply(&dead), Answer::Decided(Epoch(2)));
}

#[test]
fn the_same_proposal_again_has_the_same_answer() {
    let mut register = seated();
    let again = decide(0, &[0, 1, 2], &[]);
    assert_eq!(register.apply(&again), Answer::Decided(Epoch(1)));
    let other = decide(0, &[0, 1], &[]);
    assert_eq!(register.apply(&other), Answer::Refused(Refused::Epoch(Epoch(1))));
    let twice = decide(1, &[0, 0], &[]);
    assert_eq!(register.apply(&twice), Answer::Refused(Refused::Twice(Life(0))));
    assert_eq!(register.apply(&decide(1, &[], &[])), Answer::Refused(Refused::Empty));
}

/// A lease that is changed does not change the one that was given with a beat.
#[test]
fn a_beat_keeps_the_lease_it_was_given_under() {
    let mut register = seated();
    register.apply(&Order::Set(Settings { lease: Span(9) }));
    assert_eq!(register.member(Life(0)).map(|member| member.lease), Some(LEASE));
    let beat = Renewed::Beat(Beat(2), Span(9));
    assert_eq!(register.apply(&renew(0)), Answer::Renewed(vec![(Life(0), 1, beat)]));
}

/// A renewal that a later one has overtaken does not know what that one relies on.
#[test]
fn a_renewal_that_was_overtaken_does_not_shorten_a_lease() {
    let mut register = seated();
    let short = Renewal { wanted: Span(100), ..Renewal::new(Life(0), 1) };
    let reaches_nobody = Renewal { unreachable: [Life(1)].into(), ..short };
    let long = Renewal { wanted: LEASE, relied_on: Span(100), ..Renewal::new(Life(0), 2) };
    register.apply(&Order::Renew(vec![long]));
    let answer = register.apply(&Order::Renew(vec![reaches_nobody]));
    let beat = Renewed::Beat(Beat(3), Span(100));
    assert_eq!(answer, Answer::Renewed(vec![(Life(0), 1, beat)]));
    let member = register.member(Life(0)).unwrap();
    assert_eq!((member.lease, member.unreachable.len()), (LEASE, 0));
    register.apply(&Order::Renew(vec![Renewal { wanted: Span(9), ..Renewal::new(Life(0), 3) }]));
    assert_eq!(register.member(Life(0)).map(|member| member.lease), Some(Span(9)));
}
