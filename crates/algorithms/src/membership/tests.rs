//! Schedules that once broke a hall, and what it does about them.

use core::convert::Infallible;
use std::boxed::Box;
use std::collections::BTreeSet;
use std::vec::Vec;

use quorate_core::Solution;
use quorate_core::Topology;
use quorate_core::prelude::*;

use super::hall::EARLY_MAX;
use super::stage::Stage;
use super::*;
use crate::group::{self, VirtualSynchrony, virtual_synchrony};
use crate::mutex::{self, Central, Command, InViews, central};
use crate::testing::node;

fn staged<A: Solution>(scene: Scene<A>) -> Stage<A> {
    Stage::new(scene.count(), move |node, life, kept| scene.reboot(node, life, kept))
}

type Locks = Stage<InViews<Central>>;

fn locks(count: usize) -> Locks {
    let (setup, config) = (mutex::Setup::new(count), central::Config::default());
    staged(Scene::new(Topology::complete(count), setup, config))
}

fn group(
    members: usize,
    others: usize,
    authority: virtual_synchrony::By,
) -> Stage<VirtualSynchrony> {
    let topology = Topology::complete(members + others);
    let setup = group::Setup { members: NodeSet::first(members), ..group::Setup::along(&topology) };
    let config = virtual_synchrony::Config { authority, ..Default::default() };
    staged(Scene::new(topology, setup, config))
}

/// The members of the view of a node, if it is in it.
fn members<T: Tenant>(hall: &Hall<T>) -> Option<Vec<u32>> {
    let members = hall.view().members.iter().map(|member| member.node.number());
    hall.is_open().then(|| members.collect())
}

/// Enters and leaves at each of these nodes, one after the other.
fn all_can_enter(stage: &mut Locks, numbers: &[u32]) {
    let before = stage.told.len();
    for number in numbers {
        stage.command(*number, Command::Acquire);
        stage.settle();
        let (who, what) = stage.told.last().expect("somebody is told something");
        assert!(who == number && what.starts_with("Fenced"), "{:?}", stage.told);
        stage.command(*number, Command::Release);
        stage.settle();
    }
    assert_eq!(stage.told.len(), before + numbers.len());
}

/// The link between 2 and 3 is cut, and 1, the coordinator, reaches both. It goes on with 2, who is
/// the senior of the two; 3 is let in again when the link is whole, and not before.
#[test]
fn a_cut_link_between_two_others_costs_the_junior_its_seat() {
    let mut stage = locks(3);
    stage.cut(2, 3);
    stage.wait();
    for number in [1, 2] {
        assert_eq!(members(stage.node(number)), Some([1, 2].into()));
    }
    assert_eq!(members(stage.node(3)), None);
    let ViewId(view) = stage.node(1).view().id;
    stage.wait();
    assert_eq!(stage.node(1).view().id, ViewId(view), "the group does not come to rest");
    all_can_enter(&mut stage, &[1, 2]);
    stage.heal();
    stage.wait();
    all_can_enter(&mut stage, &[1, 2, 3]);
    assert_eq!(members(stage.node(3)).map(|members| members.len()), Some(3));
}

/// The same where only one direction is cut, whichever, and so only one of the two notices.
#[test]
fn a_link_that_is_cut_in_one_direction_costs_a_seat() {
    for (from, to) in [(2, 3), (3, 2)] {
        let mut stage = locks(3);
        stage.cut_one_way(from, to);
        stage.wait();
        assert_eq!(members(stage.node(2)), Some([1, 2].into()), "{from} to {to}");
        all_can_enter(&mut stage, &[1, 2]);
        stage.heal();
        stage.wait();
        all_can_enter(&mut stage, &[1, 2, 3]);
    }
}

/// 1 reaches only 2, and all others reach each other: they go on, without the most senior member.
#[test]
fn most_go_on_without_a_senior_that_reaches_few() {
    let mut stage = locks(5);
    for other in [3, 4, 5] {
        stage.cut(1, other);
    }
    stage.wait();
    for number in [2, 3, 4, 5] {
        assert_eq!(members(stage.node(number)), Some([2, 3, 4, 5].into()), "{number}");
    }
    all_can_enter(&mut stage, &[2, 3, 4, 5]);
    stage.heal();
    stage.wait();
    all_can_enter(&mut stage, &[1, 2, 3, 4, 5]);
}

/// 4 takes its seniors for dead for a moment, and begins a change; when it reaches 1 and 2 again it goes
/// on with them, and without 3, which it does not reach and therefore does not tell. 1 has been
/// coordinator all the time, but of another change: it has to tell 3, which waits and says nothing more.
#[test]
fn who_is_left_out_by_a_junior_hears_of_it_from_the_coordinator() {
    let mut stage = locks(4);
    stage.command(1, Command::Acquire);
    stage.settle();
    stage.command(3, Command::Acquire);
    stage.settle();
    stage.detect(4, 1, Liveness::Down);
    stage.detect(4, 2, Liveness::Down);
    stage.cut(3, 4);
    stage.detect(4, 1, Liveness::Up);
    stage.detect(4, 2, Liveness::Up);
    stage.settle();
    assert!(stage.node(4).view().id > ViewId(1), "there is no change");
    assert!(stage.node(3).view().id > ViewId(1), "3 does not hear of it");
    stage.heal();
    stage.command(1, Command::Release);
    stage.wait();
    assert!(stage.told.iter().any(|(who, what)| *who == 3 && what.starts_with("Fenced")));
}

/// Everybody crashes and comes up again: a majority of the last view decides on the next one, in
/// which nobody is inside. Tokens go on growing.
#[test]
fn all_restart_at_once() {
    let mut stage = locks(3);
    // A first change, so that there is something to remember.
    stage.crash(3);
    stage.detect(1, 3, Liveness::Down);
    stage.detect(2, 3, Liveness::Down);
    stage.settle();
    stage.recover(3);
    stage.wait();
    assert_eq!(stage.node(1).view().id, ViewId(3));
    stage.command(2, Command::Acquire);
    stage.settle();
    for number in [1, 2, 3] {
        stage.crash(number);
    }
    for number in [3, 2, 1] {
        stage.recover(number);
    }
    stage.wait();
    assert!(stage.node(2).view().id > ViewId(3));
    all_can_enter(&mut stage, &[1, 2, 3]);
    let tokens: Vec<&str> = stage
        .told
        .iter()
        .filter_map(|(_, told)| told.strip_prefix("Fenced(")?.strip_suffix(')'))
        .collect();
    let grown: BTreeSet<_> = tokens.iter().collect();
    assert!(tokens.is_sorted() && grown.len() == tokens.len(), "{tokens:?}");
}

/// Two of three restart, and the third one still is in the last view: its vote alone is too few, but
/// those who came up again are the same voters as before.
#[test]
fn who_came_up_again_still_has_a_vote() {
    let mut stage = locks(3);
    stage.command(1, Command::Acquire);
    stage.settle();
    for number in [2, 3] {
        stage.crash(number);
        stage.detect(1, number, Liveness::Down);
    }
    stage.settle();
    assert_eq!(stage.node(1).view().id, ViewId(1));
    for number in [2, 3] {
        stage.recover(number);
        stage.detect(1, number, Liveness::Up);
    }
    stage.wait();
    assert_eq!(members(stage.node(3)).map(|members| members.len()), Some(3));
    // 1 was inside all the time.
    stage.command(2, Command::Acquire);
    stage.settle();
    assert_eq!(stage.told.len(), 1, "{:?}", stage.told);
    stage.command(1, Command::Release);
    stage.settle();
    assert_eq!(stage.told.len(), 2, "{:?}", stage.told);
}

/// Links that repeat what was lost hand on, late, what was said of a life that is over: that nobody
/// reached it. The next life of that node does not take it for its own, however many views later:
/// it would go on alone, and most would let it, whoever is inside.
#[test]
fn what_was_said_of_a_life_is_not_held_against_the_next() {
    let mut stage = locks(3);
    let restart = |stage: &mut Locks, number: u32| {
        stage.crash(number);
        let others = [1, 2, 3].into_iter().filter(|other| *other != number);
        others.clone().for_each(|other| stage.detect(other, number, Liveness::Down));
        stage.wait();
        stage.recover(number);
        others.for_each(|other| stage.detect(other, number, Liveness::Up));
        stage.wait();
    };
    let (life, view) = (super::Life::default(), ViewId(1));
    let unreached = [Member { node: node(3), life }];
    for number in [3, 2] {
        restart(&mut stage, number);
        stage.command(1, Command::Acquire);
        stage.settle();
        let before: Vec<ViewId> = [1, 2, 3].map(|number| stage.node(number).view().id).into();
        for (from, to) in [(1, 3), (2, 3), (2, 1)] {
            let doubt = Notice::Doubt { view, life, unreached: unreached.into() };
            stage.hand(to, from, Msg::Membership(Box::new(doubt)));
        }
        stage.wait();
        let after: Vec<ViewId> = [1, 2, 3].map(|number| stage.node(number).view().id).into();
        assert_eq!(before, after, "a view is changed by what was said of an earlier life");
        stage.command(1, Command::Release);
        stage.settle();
        all_can_enter(&mut stage, &[1, 2, 3]);
    }
}

/// All members of a group restart, whoever decides; what they had delivered is forgotten.
#[test]
fn all_members_of_a_group_restart_at_once() {
    use virtual_synchrony::By;
    for (authority, registers) in [(By::Majority, 0), (By::Register, 1)] {
        let mut stage = group(3, registers, authority);
        for number in [1, 2, 3] {
            stage.crash(number);
        }
        for number in [2, 3, 1] {
            stage.recover(number);
        }
        stage.wait();
        for number in [1, 2, 3] {
            let members = members(stage.node(number));
            assert_eq!(members.map(|members| members.len()), Some(3), "{authority:?} {number}");
        }
    }
}

/// A wish to join that is lost is put again. Here everybody else is down when 3 asks, and no
/// detector tells it that they are back.
#[test]
fn a_wish_to_join_is_put_again_until_it_is_heard() {
    let mut stage = group(2, 1, virtual_synchrony::By::Majority);
    for number in [1, 2] {
        stage.cut_one_way(3, number);
    }
    stage.command(3, group::Command::Join);
    stage.settle();
    // What was sent is lost with the links.
    stage.lose_all();
    stage.wait();
    assert_eq!(members(stage.node(3)).map(|members| members.len()), Some(3));
}

/// The user of 2 wishes to leave while it is inside: it is let go only when it is outside, so that
/// nobody enters before.
#[test]
fn nobody_leaves_with_the_lock() {
    let mut stage = locks(3);
    stage.command(2, Command::Acquire);
    stage.settle();
    assert_eq!(stage.with(2, Hall::leave), Ok(()));
    stage.settle();
    stage.command(3, Command::Acquire);
    stage.settle();
    assert_eq!(stage.told.len(), 1, "{:?}", stage.told);
    // It may not begin anything new, and leaves when it is outside.
    assert_eq!(stage.with(2, Hall::leave), Err(Refusal::NotMember));
    stage.command(2, Command::Release);
    stage.settle();
    assert_eq!(stage.told.len(), 2, "{:?}", stage.told);
    assert_eq!(members(stage.node(3)), Some([1, 3].into()));
    assert_eq!(members(stage.node(2)), None);
}

/// 3 cannot keep all that comes for a view that it has not heard of: it says so, is left out, and
/// let in again as a new member.
#[test]
fn too_many_early_messages_cost_the_seat_and_are_told() {
    let mut stage = locks(3);
    let early = || {
        let msg = mutex::in_views::Counted { counter: 0, msg: central::Msg::Request };
        Msg::Inside { view: ViewId(2), msg }
    };
    for _ in 0..EARLY_MAX {
        stage.hand(3, 2, early());
    }
    assert_eq!(stage.node(3).early(), EARLY_MAX);
    assert!(stage.node(3).is_member());
    stage.hand(3, 2, early());
    assert_eq!((stage.node(3).early(), stage.node(3).is_member()), (0, false));
    assert!(stage.sent.contains(&"GONE"));
    stage.wait();
    assert_eq!(members(stage.node(3)).map(|members| members.len()), Some(3));
    all_can_enter(&mut stage, &[1, 2, 3]);
}

/// All that is sent is of a kind that the algorithm says it has.
#[test]
fn every_kind_is_among_those_of_the_algorithm() {
    let views = || KINDS.into_iter().chain(MAJORITY_KINDS);
    let wrapped = InViews::<Central>::traits(&central::Config::default()).kinds;
    assert!(wrapped.into_iter().eq(Central::META.kinds.iter().copied().chain(views())));
    for kind in views() {
        assert!(VirtualSynchrony::META.kinds.contains(&kind), "{kind}");
    }
}

/// A tenant that has a list, which all members of a view have alike.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct List(Vec<u8>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Entry(u8);

impl Message for Entry {
    fn kind(&self) -> &'static str {
        "ENTRY"
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Entries;

impl Terms for Entries {
    type Ask = ();
    type Report = u8;
    type Agreed = Vec<u8>;
    type State = u8;
    type Authority = Majority<Vec<u8>>;
    type Vote = MajorityMsg<Vec<u8>>;
}

impl Protocol for List {
    type Msg = Entry;
    type Timer = Infallible;
    type Command = u8;
    type Event = u8;
    type Stable = Infallible;

    /// Adds an entry to this node's own list: the others have it after the next change.
    fn on_command(&mut self, _: &mut Ctx<'_, Self>, entry: u8) -> Result<(), Refusal> {
        self.0.push(entry);
        Ok(())
    }

    fn on_message(&mut self, _: &mut Ctx<'_, Self>, _: NodeId, _: Entry) {}
}

impl Tenant for List {
    type Terms = Entries;

    fn begin(&mut self, _: &mut Ctx<'_, Self>, beginning: Beginning<'_, Self>) {
        match beginning.origin {
            Origin::Founding => {}
            Origin::Before => self.0 = beginning.view.agreed.clone().unwrap_or_default(),
            Origin::Told(pieces) => self.0 = pieces,
            Origin::Nothing => self.0.clear(),
        }
    }

    fn open(&mut self, _: &mut Ctx<'_, Self>) {}

    fn stop(&mut self, _: &mut Ctx<'_, Self>) {}

    fn ask(&mut self) {}

    /// One entry in each piece, and one piece more.
    fn report(&mut self, (): ()) -> Vec<u8> {
        [0].into_iter().chain(self.0.iter().copied()).collect()
    }

    fn exchange(&mut self, _: &mut Ctx<'_, Self>, _: u32, reports: Vec<(NodeId, Vec<u8>)>) {
        let entries = reports.into_iter().flat_map(|(_, entries)| entries);
        self.0.extend(entries.filter(|entry| *entry > 0));
        self.0.sort_unstable();
    }

    fn agreement(&self) -> Option<Vec<u8>> {
        Some(self.0.clone())
    }

    fn state(&self) -> Vec<u8> {
        self.0.clone()
    }

    fn wind_down(&mut self) {}

    fn is_idle(&self) -> bool {
        true
    }

    fn retire(&mut self, _: &mut Ctx<'_, Self>, _: Exit<'_, Self>) {}
}

/// Reports and states come in as many pieces as there are. 4 joins three members whose lists differ;
/// the coordinator has none of the entries.
#[test]
fn reports_and_states_come_in_pieces() {
    let founders = NodeSet::first(3);
    let mut stage = Stage::new(4, move |me, boot, kept| {
        let pace = Some(Pace::default());
        let everybody = NodeSet::first(4);
        let founding = Founding { me, boot, everybody, founders: &founders, pace };
        Hall::new(founding, Majority::new(None, kept.sole().cloned()), List::default())
    });
    for (number, entries) in [(2, 1..=5), (3, 6..=9)] {
        entries.for_each(|entry| stage.command(number, entry));
    }
    assert_eq!(stage.with(4, Hall::join), Ok(()));
    stage.settle();
    let count = |kind| stage.sent.iter().filter(|sent| **sent == kind).count();
    assert_eq!((count("FLUSH-OK"), count("REPORT"), count("STATE")), (2, 9, 8));
    for number in [1, 2, 3, 4] {
        assert_eq!(stage.node(number).tenant().0, (1..=9).collect::<Vec<u8>>(), "{number}");
    }
}
