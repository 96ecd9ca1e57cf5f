//! Random runs of virtual synchrony, of one part and of every part of a network, over bad links, with
//! crashes, recoveries, joins, leaves and cuts.

mod random;

use quorate_algorithms::Reliable;
use quorate_algorithms::group::virtual_synchrony::{By, Config, VirtualSynchrony};
use quorate_algorithms::group::{
    ExtendedVirtualSynchrony, Group, Order, Pattern, Senders, Setup, TotalBy,
};
use quorate_core::trace::Record;
use quorate_core::{Algorithm, NodeId, NodeSet, Scene, Span, Topology};
use random::{Cut, Dice, Mishaps, every_run_keeps_all_promises};

/// How many runs with one sequence of views, and with views in every part.
const RUNS: u64 = 20_000;
const RUNS_IN_PARTS: u64 = 5_000;

/// Everything that a run is given. Times are in units.
#[derive(Clone, Debug)]
struct Schedule {
    seed: u64,
    goes_on: GoesOn,
    members: usize,
    joiners: usize,
    authority: By,
    total: TotalBy,
    orders: Vec<Order>,
    uniform: bool,
    window: u32,
    senders: usize,
    messages: u32,
    gap: u64,
    joins: Vec<(usize, u64)>,
    leaves: Vec<(usize, u64)>,
    mishaps: Mishaps,
}

/// Who goes on when the network is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GoesOn {
    OnePart,
    EveryPart,
}

impl Schedule {
    fn drawn(goes_on: GoesOn, seed: u64) -> Self {
        let dice = &mut Dice::new(seed);
        // Small groups have most of the faults, and large ones most of the cost.
        let most = dice.one_of(&[3, 3, 10]);
        let members = 3 + dice.below(most) as usize;
        let joiners = dice.below(4) as usize;
        let joins = (0..joiners).map(|joiner| (members + joiner, 0)).collect::<Vec<_>>();
        let leaves = dice.some(2, members);
        let crashes = dice.some(members as u64 / 2, members + joiners);
        let recoveries = crashes.iter().filter(|(node, _)| (seed + *node as u64).is_multiple_of(3));
        let recoveries = recoveries.map(|(node, at)| (*node, at + 1 + at % 37)).collect();
        let cuts = (0..dice.below(3)).map(|_| Cut::through(dice, members)).collect();
        let herd = dice.below(2) * 30;
        let mut schedule = Self {
            seed,
            goes_on,
            members,
            joiners,
            authority: dice.one_of(&[By::Majority, By::Register]),
            total: dice.one_of(&[TotalBy::Sequencer, TotalBy::Token]),
            orders: match dice.below(4) {
                0 => vec![Order::Fifo],
                1 => vec![Order::Causal],
                2 => vec![Order::Total],
                _ => vec![Order::Fifo, Order::Total, Order::Causal],
            },
            uniform: dice.below(3) == 0,
            window: dice.one_of(&[1, 4, 64]),
            senders: 1 + dice.below(members as u64) as usize,
            messages: 1 + dice.below(6) as u32,
            gap: 1 + dice.below(20),
            mishaps: Mishaps {
                latency: dice.one_of(&["1", "uniform:0.2..3", "exp:1"]),
                bad: dice.one_of(&[0, 0, 5, 20]),
                crashes,
                recoveries,
                cuts,
            },
            joins: joins.into_iter().map(|(node, at)| (node, at + herd + dice.below(40))).collect(),
            leaves,
        };
        if goes_on == GoesOn::OnePart && seed % 3 == 2 {
            schedule.mishap(dice);
        }
        schedule
    }

    /// Something worse than usual happens.
    fn mishap(&mut self, dice: &mut Dice) {
        let nodes = self.members + self.joiners;
        let mishaps = &mut self.mishaps;
        match dice.below(3) {
            0 => mishaps.restart_all(dice, self.members),
            1 => {
                let later = |&(node, at): &(usize, u64)| (node, at + 1 + dice.below(40));
                mishaps.recoveries = mishaps.crashes.iter().map(later).collect();
            }
            _ => {}
        }
        let links = dice.below(3);
        mishaps.cuts.extend((0..links).map(|_| Cut::of_a_link(dice, nodes)));
    }

    /// Is the group sure to go on? Then what is owed must be paid in the end; otherwise only what
    /// happens is judged.
    fn is_sure_to_go_on(&self) -> bool {
        let stay = self.members - self.leaves.len();
        let few = self.mishaps.crashes.len() * 2 < stay;
        let whole = self.mishaps.cuts.is_empty();
        // If the last member leaves, the group is over.
        let all = self.mishaps.all_recover() && self.leaves.is_empty();
        self.goes_on == GoesOn::EveryPart || whole && few || all
    }

    fn play<A: Algorithm<Family = Group>>(
        &self,
        registers: usize,
        config: A::Config,
        watch: Option<&mut dyn FnMut(Record)>,
    ) -> Option<String> {
        let count = self.members + self.joiners + registers;
        let topology = Topology::complete(count);
        let members = NodeSet::first(self.members);
        let setup = Setup { members, total: self.total, ..Setup::along(&topology) };
        let scene = Scene::<Reliable<A>>::new(topology, setup, config);
        let at = |&(node, at): &(usize, u64)| (NodeId::at(node), Span::units(at));
        let pattern = Pattern {
            gap: Span::units(self.gap),
            orders: self.orders.clone(),
            uniform: self.uniform,
            joins: self.joins.iter().map(at).collect(),
            leaves: self.leaves.iter().map(at).collect(),
            ..Pattern::default()
        };
        let senders = NodeSet::first(self.senders.min(self.members));
        let users = Senders::new(count, &scene.setup.members, &senders, self.messages, pattern);
        let Some((report, ())) = random::play(&scene, users, (), &self.mishaps, self.seed, watch)
        else {
            return Some("it does not come to rest".to_owned());
        };
        // At the end of a group that cannot go on, members may be left with different messages.
        let excused = |text: &str| !self.is_sure_to_go_on() && text.contains(" never ");
        let mut violations = report.violations().map(|(_, violation)| violation.to_string());
        violations.find(|text| !excused(text))
    }
}

impl random::Schedule for Schedule {
    fn run(&self, watch: Option<&mut dyn FnMut(Record)>) -> Option<String> {
        match self.goes_on {
            GoesOn::OnePart => {
                let Self { authority, window, .. } = *self;
                let register = usize::from(authority == By::Register);
                let config = Config { authority, window, ..Config::default() };
                self.play::<VirtualSynchrony>(register, config, watch)
            }
            GoesOn::EveryPart => self.play::<ExtendedVirtualSynchrony>(0, (), watch),
        }
    }

    fn smaller(&self) -> Vec<Self> {
        let less = self.mishaps.smaller().into_iter();
        let mut all: Vec<_> = less.map(|mishaps| Self { mishaps, ..self.clone() }).collect();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut smaller = self.clone();
            change(&mut smaller);
            all.push(smaller);
        };
        for place in 0..self.leaves.len() {
            with(&|it| _ = it.leaves.remove(place));
        }
        for place in 0..self.joins.len() {
            with(&|it| _ = it.joins.remove(place));
        }
        if self.messages > 1 {
            with(&|it| it.messages -= 1);
        }
        if self.senders > 1 {
            with(&|it| it.senders -= 1);
        }
        if self.uniform {
            with(&|it| it.uniform = false);
        }
        if self.orders != [Order::Fifo] {
            with(&|it| it.orders = vec![Order::Fifo]);
        }
        all
    }
}

#[test]
fn random_runs_with_one_sequence_of_views() {
    every_run_keeps_all_promises(RUNS, |seed| Schedule::drawn(GoesOn::OnePart, seed));
}

#[test]
fn random_runs_with_views_in_every_part() {
    every_run_keeps_all_promises(RUNS_IN_PARTS, |seed| Schedule::drawn(GoesOn::EveryPart, seed));
}
