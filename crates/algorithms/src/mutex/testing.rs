//! What the tests of this family have in common: how a trial begins, and what users wish in it.

use std::vec::Vec;

use quorate_core::{Algorithm, NodeId, PerNode, Refusal, Scene, Span, Topology};

use super::{Command, Load, Mutex, Setup, Users};
use crate::testing::{self, Log, node, units};

/// A trial of mutual exclusion.
pub(crate) type Trial<A> = testing::Trial<A, Wishes>;

/// Wishes to enter, as often as the load does not say itself.
#[derive(Clone)]
pub(crate) struct Wishes {
    load: Load,
    times: u32,
    stay: Span,
}

impl<A: Algorithm<Family = Mutex>> testing::Wishes<A> for Wishes {
    type Users = Users;

    fn users(&self, scene: &Scene<A>) -> Users {
        let Self { load, times, stay } = self.clone();
        Users::new(scene.count(), &scene.setup, times, load, stay)
    }
}

impl<A: Algorithm<Family = Mutex>> Trial<A> {
    /// So many nodes, all linked with each other. Everybody wants to enter once, as soon as it can,
    /// and stays for one unit.
    pub(crate) fn of(count: usize) -> Self {
        Self::given(Setup::new(count))
    }

    /// As [`Trial::of`], with this setup.
    pub(crate) fn given(setup: Setup) -> Self {
        Self::on(Topology::complete(setup.count), setup)
    }

    /// As [`Trial::given`], with these links.
    pub(crate) fn on(topology: Topology, setup: Setup) -> Self {
        let wishes = Wishes { load: Load::Heavy, times: 1, stay: Span::UNIT };
        let scene = Scene::new(topology, setup, A::Config::default());
        Self::new(scene, wishes)
    }

    /// This node is inside when the run begins.
    pub(crate) fn holder(mut self, number: u32) -> Self {
        self.scene.setup.holder = Some(node(number));
        self
    }

    /// Everybody wants to enter so many times, as soon as it can.
    pub(crate) fn wishes(self, times: u32) -> Self {
        self.load(Load::Heavy, times)
    }

    /// Everybody wants to enter so many times, but only one at a time.
    pub(crate) fn in_turn(self, times: u32) -> Self {
        self.load(Load::Light { gap: units(100.0) }, times)
    }

    /// Everybody wants to enter so many times, when the load says.
    pub(crate) fn load(mut self, load: Load, times: u32) -> Self {
        (self.wishes.load, self.wishes.times) = (load, times);
        self
    }

    /// These want to enter, each as often as it is named, as soon as they can.
    pub(crate) fn wanting(self, numbers: &[u32]) -> Self {
        let wishes: Vec<_> = numbers.iter().map(|&number| (number, 0.0)).collect();
        self.wanting_at(&wishes)
    }

    /// These want to enter, each at a time in units.
    pub(crate) fn wanting_at(self, wishes: &[(u32, f64)]) -> Self {
        let of = |n: NodeId| {
            let mine = wishes.iter().filter(|(number, _)| node(*number) == n);
            mine.map(|(_, at)| units(*at)).collect::<Vec<_>>()
        };
        let script = PerNode::new(self.scene.count(), of);
        self.load(Load::Script(script.into()), 0)
    }

    /// Whoever is inside stays for so many units.
    pub(crate) fn stay(mut self, stay: f64) -> Self {
        self.wishes.stay = units(stay);
        self
    }

    /// A node can be booted inside. It stays for five units; then these enter. Meanwhile, wishes out
    /// of turn are refused.
    pub(crate) fn boots_inside<const ENTRIES: usize>(self, entries: [(f64, u32); ENTRIES]) -> Self {
        let trial = self.stay(5.0);
        assert_eq!(trial.run().entries(), entries);
        trial.refuses_out_of_turn();
        trial
    }

    /// Who is inside cannot wish to enter, and who is outside cannot leave.
    pub(crate) fn refuses_out_of_turn(&self) {
        let Setup { count, holder, .. } = self.scene.setup;
        assert!(holder.is_some() && count > 1, "there is somebody inside, and somebody outside");
        for node in NodeId::first(count) {
            let (command, refusal) = match holder {
                Some(holder) if holder == node => (Command::Acquire, Refusal::Busy),
                _ => (Command::Release, Refusal::NotHeld),
            };
            assert_eq!(self.refusal(node.number(), command), refusal);
        }
    }
}

impl Log {
    /// The entries: when, in units, and who.
    pub(crate) fn entries(&self) -> Vec<(f64, u32)> {
        self.told_of("Granted")
    }

    /// The mean number of messages per entry.
    pub(crate) fn per_entry(&self) -> f64 {
        self.report.messages as f64 / self.entries().len() as f64
    }

    /// The mean time from an exit to the next entry, where everybody always wants and stays for so
    /// many units.
    pub(crate) fn sync_delay(&self, stay: f64) -> f64 {
        let entries = self.entries();
        let delays: f64 = entries.windows(2).map(|two| two[1].0 - two[0].0 - stay).sum();
        delays / (entries.len() - 1) as f64
    }
}
