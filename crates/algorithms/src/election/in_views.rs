//! Any election in views: when somebody crashes, the others agree on who is left, and elect again.
//!
//! # Idea
//! Most of the classic elections are held once: if the leader dies, or somebody on the way of a
//! message, there is no leader any more, and nobody notices. In views (see `membership.rs`) the
//! death of a member ends the view for all who are left, and in the next one the election is held
//! again among them, by all of them.
//!
//! # Assumptions
//! Those of mutual exclusion in views: reliable links that keep the order, the word of a failure
//! detector, a complete graph. Within a view the ring or the tree that the election needs is laid
//! out among the members. Elections that need a bound on delays still do.
//!
//! # Safety
//! `uniqueness`: of each term, which is a view, by the election. Whoever has stopped leads no more and says so
//! (`Event::Leaderless`) before the next view is decided, and a member of the next view has
//! stopped.
//!
//! # Liveness
//! `termination`: as the election's in the last view, in which all members have asked for a leader.
//!
//! # Known limits
//! A leader that is taken for dead by mistake learns of it only when it hears of the next view; by
//! then somebody else may lead, in a later term: the number of the view is the term
//! (`Event::LeadingIn`), and a resource that is told it can refuse the earlier one.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::Solution;
use quorate_core::prelude::*;
use quorate_core::{Family, Input};

use super::{Command, Election, Event, Setup, Term};
use crate::membership::{
    Beginning, Exit, Given, Hall, Majority, MajorityMsg, Running, Tenant, Terms, traits_in_views,
};

/// A node of the election `A` in views.
pub type InViews<A> = Hall<Reign<A>>;

impl<A: Solution<Family = Election>> Solution for InViews<A> {
    type Family = Election;
    type Config = A::Config;

    fn traits(config: &A::Config) -> Traits {
        traits_in_views(A::traits(config))
    }

    fn usual(config: &A::Config) -> A::Config {
        A::usual(config)
    }

    fn promise(config: &A::Config) -> <Election as Family>::Promise {
        A::promise(config)
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        let Scene { setup, config, .. } = scene.clone();
        let all: Vec<_> = NodeId::first(scene.count()).collect();
        let among = setup.among(&all);
        A::admit(&Given { setup, config }.as_given(all.len(), among))
    }

    fn watches(_: Self::Timer) -> bool {
        false
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self::boot_with(&boot, Reign::new(Given::to(&boot)))
    }
}

/// What elections say when a view changes: whether anybody has ever asked for a leader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Asked;

impl Terms for Asked {
    type Ask = ();
    type Report = bool;
    type Agreed = bool;
    type State = ();
    type Authority = Majority<bool>;
    type Vote = MajorityMsg<bool>;
}

/// A reign: the election `A`, held in one view after the other.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reign<A: Solution<Family = Election>> {
    given: Arc<Given<A>>,
    view: ViewId,
    /// The members of the view by rank.
    members: Arc<[NodeId]>,
    /// The election in this view. Invariant: nothing from a FLUSH to the next view.
    running: Option<Running<A>>,
    /// Somebody has asked for a leader, as far as is known here.
    asked: bool,
    /// The local user believes that somebody leads.
    believes: bool,
}

impl<A: Solution<Family = Election>> Reign<A> {
    fn new(given: Given<A>) -> Self {
        Self {
            given: Arc::new(given),
            view: ViewId(0),
            members: Arc::new([]),
            running: None,
            asked: false,
            believes: false,
        }
    }

    /// Hands the election its input, if it runs. What it does is put into the words of this node.
    fn step_inner(&mut self, cx: &mut Ctx<'_, Self>, input: Input<A>) -> Result<(), Refusal> {
        let Self { running, members, believes, view, .. } = self;
        let Some(running) = running else { return Ok(()) };
        let tell = |event| {
            if let Event::Parent(rank) = event {
                return members.get(rank.index()).copied().map(Event::Parent);
            }
            *believes = matches!(event, Event::Leading(_) | Event::Following(_));
            Some(match event {
                Event::Leading(rank) => Event::LeadingIn(rank, Term(view.0)),
                event => event,
            })
        };
        running.step(cx, input, |msg| msg, tell)
    }

    /// As [`Reign::step_inner`], for what cannot be refused.
    fn tell(&mut self, cx: &mut Ctx<'_, Self>, input: Input<A>) {
        let result = self.step_inner(cx, input);
        debug_assert_eq!(result, Ok(()), "only commands are refused");
    }
}

impl<A: Solution<Family = Election>> Tenant for Reign<A> {
    type Terms = Asked;

    fn begin(&mut self, cx: &mut Ctx<'_, Self>, beginning: Beginning<'_, Self>) {
        self.stop(cx);
        let Beginning { view, members, .. } = beginning;
        (self.view, self.members) = (view.id, members.clone());
        self.asked |= view.agreed.unwrap_or_default();
    }

    /// Starts the election in this view. In all but the first, everybody asks for a leader whom
    /// anybody has asked for before.
    fn open(&mut self, cx: &mut Ctx<'_, Self>) {
        let setup = self.given.setup.among(&self.members);
        let scene = self.given.among(self.members.len(), setup);
        self.running = Some(Running::new(scene.boot(cx.me())));
        cx.trace("begin", &[("view", self.view.0), ("rank", cx.me().into())]);
        self.tell(cx, Input::Start);
        if self.asked && !flaw!(ElectOnce) {
            // A refusal means that the start has begun an election already.
            let _ = self.step_inner(cx, Input::Command(Command::Elect));
        }
    }

    /// From now on nobody leads.
    fn stop(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(running) = self.running.take() else { return };
        cx.trace("stop", &[("view", self.view.0)]);
        running.stop(cx);
        if core::mem::take(&mut self.believes) {
            cx.emit(Event::Leaderless);
        }
    }

    fn ask(&mut self) {}

    fn report(&mut self, (): ()) -> Vec<bool> {
        Vec::from([self.asked])
    }

    fn exchange(&mut self, _: &mut Ctx<'_, Self>, _: u32, reports: Vec<(NodeId, Vec<bool>)>) {
        self.asked |= reports.iter().any(|(_, asked)| asked.contains(&true));
    }

    fn agreement(&self) -> Option<bool> {
        Some(self.asked)
    }

    fn state(&self) -> Vec<()> {
        Vec::from([()])
    }

    fn wind_down(&mut self) {}

    fn is_idle(&self) -> bool {
        true
    }

    fn retire(&mut self, cx: &mut Ctx<'_, Self>, _: Exit<'_, Self>) {
        self.stop(cx);
    }
}

impl<A: Solution<Family = Election>> Protocol for Reign<A> {
    type Msg = A::Msg;
    type Timer = A::Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        // While nothing runs, it is asked for in the next view.
        self.step_inner(cx, Input::Command(command))?;
        self.asked = true;
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: A::Msg) {
        if self.running.is_none() {
            return cx.trace("ignore message after the stop", &[("view", self.view.0)]);
        }
        self.asked = true;
        self.tell(cx, Input::Message { from, msg });
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: A::Timer) {
        self.tell(cx, Input::Timer(timer));
    }

    fn assert_invariants(&self) {
        self.running.iter().for_each(Running::assert_invariants);
    }
}

impl Setup {
    /// What these members of a view are told, by rank.
    fn among(&self, members: &[NodeId]) -> Self {
        let ranks = PerNode::new(members.len(), |rank: NodeId| self.ranks[members[rank.index()]]);
        Self { delay_max: self.delay_max, ..Self::with_ranks(ranks) }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use quorate_check::{Network as Channels, Plan, Timers};
    use quorate_core::{Algorithm, Options, Topology};
    use quorate_sim::{Faults, Network};

    use super::*;
    use crate::Catalogued;
    use crate::election::{Bully, ChangRoberts, Initiators, any};
    use crate::faults::crashes;
    use crate::testing::{self, node, units};

    fn scene<A: Algorithm<Family = Election>>(count: usize) -> Scene<InViews<A>> {
        let setup = Setup::ascending(count);
        Scene::new(Topology::complete(count), setup, A::Config::default())
    }

    /// Every one of the catalogue: the best of five leads and crashes, later its successor too. The
    /// survivors agree on a new one each time.
    #[test]
    fn the_death_of_the_leader_is_survived() {
        for meta in Election::CATALOGUE {
            let config = Election::configure(meta.name, &Options(&[])).unwrap().unwrap();
            let best_leads = any::Any::promise(&config).best_leads;
            let setup = Setup::ascending(5);
            let topology = Topology::complete(5);
            let scene = Scene::<InViews<any::Any>>::new(topology, setup, config);
            let faults = crashes(&[(5, 100.0), (4, 200.0)]);
            let faults = Faults { detection: Some(units(3.0)), ..faults };
            let network = Network { fifo: true, ..Network::default() };
            let users = Initiators::at_once([node(2)].into_iter().collect());
            let log = testing::run(&scene, users, &network, &faults);
            let leaders = log.told_of("Leading");
            let last =
                |until: f64| leaders.iter().rfind(|(at, _)| *at < until).map(|(_, node)| *node);
            let led: Vec<_> = [100.0, 200.0, 1e9].map(last).into_iter().flatten().collect();
            assert_eq!(led.len(), 3, "{}: {leaders:?}", meta.name);
            if best_leads {
                assert_eq!(led, [5, 4, 3], "{}", meta.name);
            }
            // All who are left follow the last one.
            let following = log.told_of("Following");
            let told = following.iter().filter(|(at, _)| *at > 200.0).count();
            assert!(told >= 2 || !any::Any::promise(&scene.config).everyone_told, "{}", meta.name);
        }
    }

    fn plan() -> Plan {
        let (network, timers) = (Channels::Fifo, Timers::WhenQuiet);
        Plan { crashes: 1, network, timers, ..Plan::default() }
    }

    #[test]
    fn every_interleaving_with_one_crash_holds() {
        fn states<A: Algorithm<Family = Election>>() -> u64 {
            let users = Initiators::at_once(NodeSet::first(1));
            testing::exhaust(&scene::<A>(3), &users, &plan())
        }
        assert_eq!([states::<ChangRoberts>(), states::<Bully>()], [495, 581]);
    }

    #[test]
    fn an_election_that_is_held_once_is_caught() {
        let users = Initiators::at_once(NodeSet::first(1));
        let (found, _) = testing::catch("ElectOnce", &scene::<ChangRoberts>(3), &users, &plan());
        assert_eq!(found.property, "termination");
    }
}
