//! Random runs of mutual exclusion in views, of several algorithms over bad links, with crashes,
//! recoveries and cuts, of single links too.

mod random;

use quorate_algorithms::Reliable;
use quorate_algorithms::mutex::{
    Central, Command, Event, Fence, InViews, Lamport, Load, Maekawa, Mutex, NaimiTrehel, Raymond,
    RicartAgrawala, Setup, SuzukiKasami, Users,
};
use quorate_core::trace::Record;
use quorate_core::{Algorithm, Fact, NodeId, Scene, Span, Time, Topology, ViewId};
use quorate_sim::Observer;
use random::{Cut, Dice, Mishaps, every_run_keeps_all_promises};

/// How many runs.
const RUNS: u64 = 10_000;

/// Everything that a run is given. Times are in units.
#[derive(Clone, Debug)]
struct Schedule {
    seed: u64,
    algorithm: Which,
    nodes: usize,
    wishes: u32,
    /// The mean time between two wishes of a user; 0 if it always wants.
    gap: u64,
    stay: u64,
    mishaps: Mishaps,
}

#[derive(Clone, Copy, Debug)]
enum Which {
    Central,
    Lamport,
    RicartAgrawala,
    Maekawa,
    SuzukiKasami,
    Raymond,
    NaimiTrehel,
}

impl Schedule {
    fn drawn(seed: u64) -> Self {
        let dice = &mut Dice::new(seed);
        let nodes = 3 + dice.below(7) as usize;
        let all = [
            Which::Central,
            Which::Lamport,
            Which::RicartAgrawala,
            Which::Maekawa,
            Which::SuzukiKasami,
            Which::Raymond,
            Which::NaimiTrehel,
        ];
        let crashes = dice.some(nodes as u64 / 2 + 1, nodes);
        let mut mishaps = Mishaps {
            latency: dice.one_of(&["1", "uniform:0.2..3", "exp:1"]),
            bad: dice.one_of(&[0, 0, 0, 5, 20]),
            crashes,
            recoveries: Vec::new(),
            cuts: Vec::new(),
        };
        let later = |(node, at): (usize, u64), dice: &mut Dice| (node, at + 1 + dice.below(40));
        match dice.below(4) {
            0 => {}
            1 => mishaps.restart_all(dice, nodes),
            some => {
                let back = mishaps.crashes.clone().into_iter();
                let back = back.filter(|_| some == 2 || dice.below(2) == 0).collect::<Vec<_>>();
                mishaps.recoveries = back.into_iter().map(|crash| later(crash, dice)).collect();
            }
        }
        for _ in 0..dice.one_of(&[0, 0, 1, 1, 2, 3]) {
            let cut = match dice.below(2) {
                0 => Cut::through(dice, nodes),
                _ => Cut::of_a_link(dice, nodes),
            };
            mishaps.cuts.push(cut);
        }
        Self {
            seed,
            algorithm: dice.one_of(&all),
            nodes,
            wishes: 1 + dice.below(4) as u32,
            gap: dice.below(3) * 15,
            stay: 1 + dice.below(6),
            mishaps,
        }
    }

    /// Are all sure to be served in the end? If there is no cut, a majority is up all the time; or
    /// whoever was in the last view comes up again.
    fn is_sure_to_go_on(&self) -> bool {
        let Mishaps { crashes, cuts, .. } = &self.mishaps;
        let few = crashes.len() * 2 < self.nodes;
        cuts.is_empty() && few || self.mishaps.all_recover()
    }

    /// May somebody be taken for dead by mistake? Then it learns of that only after a while, and
    /// goes on in its view: tokens tell it from those in the next.
    fn may_err(&self) -> bool {
        !self.mishaps.cuts.is_empty() || !self.mishaps.recoveries.is_empty()
    }

    fn play<A: Algorithm<Family = Mutex>>(
        &self,
        watch: Option<&mut dyn FnMut(Record)>,
    ) -> Option<String> {
        let topology = Topology::complete(self.nodes);
        let setup = Setup::new(self.nodes);
        let load = match self.gap {
            0 => Load::Heavy,
            gap => Load::Poisson { mean: Span::units(gap) },
        };
        let users = Users::new(self.nodes, &setup, self.wishes, load, Span::units(self.stay));
        let scene = Scene::<Reliable<InViews<A>>>::new(topology, setup, A::Config::default());
        let guard = Guard::default();
        let Some((report, guard)) =
            random::play(&scene, users, guard, &self.mishaps, self.seed, watch)
        else {
            return Some("it does not come to rest".to_owned());
        };
        let judged = |property: &str| match property {
            "liveness" => self.is_sure_to_go_on(),
            _ => !self.may_err(),
        };
        let mut violations = report.violations().filter(|(_, broken)| judged(broken.property));
        guard.broken.or_else(|| violations.next().map(|(_, broken)| broken.to_string()))
    }
}

/// What is guarded: within a view nobody is inside together with another, and tokens grow.
#[derive(Default)]
struct Guard {
    inside: Vec<(NodeId, Fence)>,
    /// The last token of each view.
    last: Vec<(ViewId, u64)>,
    broken: Option<String>,
}

impl Guard {
    fn enter(&mut self, at: NodeId, fence: Fence) {
        let Fence { epoch, counter } = fence;
        if let Some((other, _)) = self.inside.iter().find(|(_, it)| it.epoch == epoch) {
            let text = format!("safety: {at} enters with {fence:?} while {other} is inside");
            self.broken.get_or_insert(text);
        }
        match self.last.iter_mut().find(|(view, _)| *view == epoch) {
            Some((_, last)) if *last >= counter => {
                let text = format!("fencing: {at} is given {fence:?} after {last}");
                self.broken.get_or_insert(text);
            }
            Some((_, last)) => *last = counter,
            None => self.last.push((epoch, counter)),
        }
        self.inside.push((at, fence));
    }
}

impl Observer<Command, Event> for Guard {
    fn fact(&mut self, _: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        match fact {
            Fact::Event(Event::Fenced(fence)) => self.enter(at, *fence),
            Fact::Event(Event::Granted(_) | Event::Entered(..)) => {
                self.broken.get_or_insert(format!("fencing: {at} is given no token"));
            }
            Fact::Command(Command::Release) | Fact::Event(Event::Lost) | Fact::Crashed => {
                self.inside.retain(|(node, _)| *node != at);
            }
            Fact::Command(Command::Acquire) | Fact::Recovered => {}
        }
    }
}

impl random::Schedule for Schedule {
    fn run(&self, watch: Option<&mut dyn FnMut(Record)>) -> Option<String> {
        match self.algorithm {
            Which::Central => self.play::<Central>(watch),
            Which::Lamport => self.play::<Lamport>(watch),
            Which::RicartAgrawala => self.play::<RicartAgrawala>(watch),
            Which::Maekawa => self.play::<Maekawa>(watch),
            Which::SuzukiKasami => self.play::<SuzukiKasami>(watch),
            Which::Raymond => self.play::<Raymond>(watch),
            Which::NaimiTrehel => self.play::<NaimiTrehel>(watch),
        }
    }

    fn smaller(&self) -> Vec<Self> {
        let less = self.mishaps.smaller().into_iter();
        let mut all: Vec<_> = less.map(|mishaps| Self { mishaps, ..self.clone() }).collect();
        if self.wishes > 1 {
            all.push(Self { wishes: self.wishes - 1, ..self.clone() });
        }
        if !matches!(self.algorithm, Which::Central) {
            all.push(Self { algorithm: Which::Central, ..self.clone() });
        }
        all
    }
}

#[test]
fn random_runs_of_mutual_exclusion_in_views() {
    every_run_keeps_all_promises(RUNS, Schedule::drawn);
}
