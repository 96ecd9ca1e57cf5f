//! Several critical regions side by side: one instance of an algorithm for each, none of which knows of
//! the others.
//!
//! Each region has a coordinator, or a first holder of its token, of its own: the roles that the
//! algorithm gives to a single node are moved on by one node from region to region
//! ([`Setup::in_region`]). A user waits for one region at a time, or is inside of it; which one it
//! wishes for is drawn by lot with each wish. So two may be inside at once, but not in the same.

use alloc::vec::Vec;
use core::fmt::{self, Debug};

use quorate_core::prelude::*;
use quorate_core::{Effect, Solution};

#[cfg(doc)]
use super::Setup;
use super::{Command, Event, Mutex, Promise, Region};

/// The algorithm `A` once for each critical region.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Regions<A> {
    /// By region: what runs for it.
    each: Vec<A>,
    /// The region that the user waits for, or is inside of.
    wished: Option<Region>,
}

/// The number of regions, and the options of the algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config<C> {
    /// How many regions there are.
    pub count: u8,
    /// The options, the same in all of them.
    pub inner: C,
}

/// A message, a timer, a record or a key of one region; prints as what it is, with the region behind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct In<T> {
    /// The region.
    pub region: Region,
    /// What is of it.
    pub what: T,
}

impl<T: Debug> Debug for In<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in {:?}", self.what, self.region)
    }
}

impl<M: Message> Message for In<M> {
    fn kind(&self) -> &'static str {
        self.what.kind()
    }
}

impl<R: Durable> Durable for In<R> {
    type Key = In<R::Key>;

    fn key(&self) -> In<R::Key> {
        In { region: self.region, what: self.what.key() }
    }
}

#[cfg(feature = "serde")]
impl<R: quorate_core::Stored> quorate_core::Stored for In<R> {
    fn store<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stowed = In { region: self.region, what: quorate_core::Stowed(&self.what) };
        serde::Serialize::serialize(&stowed, serializer)
    }

    fn load<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let In { region, what } =
            <In<quorate_core::Stowed<R>> as serde::Deserialize>::deserialize(input)?;
        Ok(Self { region, what: what.0 })
    }
}

impl<A: Solution<Family = Mutex>> Regions<A> {
    /// So many regions with these options.
    pub const fn over(count: u8, inner: A::Config) -> Config<A::Config> {
        Config { count, inner }
    }

    /// Runs what is there for one region.
    fn run<R>(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        region: Region,
        run: impl FnOnce(&mut A, &mut Ctx<'_, A>) -> R,
    ) -> R {
        let it = &mut self.each[usize::from(region.0)];
        let mut map = |effect: Effect<A>| {
            Some(match effect {
                Effect::Send { to, msg } => Effect::Send { to, msg: In { region, what: msg } },
                Effect::Multicast { to, msg } => {
                    Effect::Multicast { to, msg: In { region, what: msg } }
                }
                Effect::SetTimer { timer, after } => {
                    Effect::SetTimer { timer: In { region, what: timer }, after }
                }
                Effect::CancelTimer(timer) => Effect::CancelTimer(In { region, what: timer }),
                Effect::Persist(record) => Effect::Persist(In { region, what: record }),
                Effect::Emit(Event::Granted(stamp)) => Effect::Emit(Event::Entered(region, stamp)),
                Effect::Emit(event) => Effect::Emit(event),
            })
        };
        cx.mapped(&mut map, |cx| run(it, cx))
    }

    /// All regions.
    fn regions(&self) -> impl Iterator<Item = Region> + use<A> {
        (0..self.each.len()).map(|index| Region(index as u8))
    }
}

impl<A: Solution<Family = Mutex>> Protocol for Regions<A> {
    type Msg = In<A::Msg>;
    type Timer = In<A::Timer>;
    type Command = Command;
    type Event = Event;
    type Stable = In<A::Stable>;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        for region in self.regions() {
            self.run(cx, region, |it, cx| it.on_start(cx));
        }
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, self.wished) {
            (Command::Acquire, Some(_)) => Err(Refusal::Busy),
            (Command::Acquire, None) => {
                let region = Region(cx.choose(self.each.len() as u32) as u8);
                self.run(cx, region, |it, cx| it.on_command(cx, command))?;
                self.wished = Some(region);
                Ok(())
            }
            (Command::Release, None) => Err(Refusal::NotHeld),
            (Command::Release, Some(region)) => {
                self.run(cx, region, |it, cx| it.on_command(cx, command))?;
                self.wished = None;
                Ok(())
            }
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: In<A::Msg>) {
        let In { region, what } = msg;
        if usize::from(region.0) >= self.each.len() {
            return cx.trace("foreign", &[("from", from.number().into())]);
        }
        self.run(cx, region, |it, cx| it.on_message(cx, from, what));
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: In<A::Timer>) {
        self.run(cx, timer.region, |it, cx| it.on_timer(cx, timer.what));
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        for region in self.regions() {
            self.run(cx, region, |it, cx| it.on_liveness(cx, peer, now));
        }
    }

    fn is_outdated(&self, from: NodeId, msg: &In<A::Msg>) -> bool {
        let it = self.each.get(usize::from(msg.region.0));
        it.is_some_and(|it| it.is_outdated(from, &msg.what))
    }

    fn assert_invariants(&self) {
        self.each.iter().for_each(A::assert_invariants);
    }
}

impl<A: Solution<Family = Mutex>> Solution for Regions<A> {
    type Family = Mutex;
    type Config = Config<A::Config>;

    fn traits(config: &Self::Config) -> Traits {
        A::traits(&config.inner)
    }

    fn usual(config: &Self::Config) -> Self::Config {
        Config { inner: A::usual(&config.inner), ..*config }
    }

    fn promise(config: &Self::Config) -> Promise {
        A::promise(&config.inner)
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        A::admit(&scene.inner(scene.config.inner.clone()))
    }

    fn watches(timer: In<A::Timer>) -> bool {
        A::watches(timer.what)
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Boot { me, view, neighbours, setup, config, life, kept } = boot;
        let Config { count, inner: config } = config;
        let one = |region| {
            let kept = &kept.map(|record| (record.region == region).then(|| record.what.clone()));
            let setup = &setup.in_region(region);
            A::boot(Boot { me, view, neighbours, setup, config, life, kept })
        };
        Self { each: (0..*count).map(Region).map(one).collect(), wished: None }
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use quorate_core::{Input, Topology};
    use quorate_sim::{Faults, Network};

    use super::*;
    use crate::mutex::{Central, Load, RicartAgrawala, Setup, SuzukiKasami, Users, central};
    use crate::testing::{Log, exhaust, feed, ignores, node, run, units};

    fn scene<A: Solution<Family = Mutex>>(
        nodes: usize,
        count: u8,
        inner: A::Config,
    ) -> Scene<Regions<A>> {
        Scene::new(Topology::complete(nodes), Setup::new(nodes), Regions::<A>::over(count, inner))
    }

    /// Everybody always wants, and stays for 5 units.
    fn heavy<A: Solution<Family = Mutex>>(scene: &Scene<Regions<A>>) -> Log {
        let users = Users::new(scene.count(), &scene.setup, 5, Load::Heavy, units(5.0));
        run(scene, users, &Network::default(), &Faults::default())
    }

    /// When which node entered which region; stays are of 5 units.
    fn entries(log: &Log) -> Vec<(f64, u32, &str)> {
        let mut entries = Vec::new();
        for (at, node, text) in &log.told {
            let region = text.strip_prefix("Entered(").and_then(|told| told.split(',').next());
            entries.push((*at, *node, region.expect("users are told nothing else")));
        }
        entries
    }

    #[test]
    fn two_are_inside_at_once_in_two_regions_and_never_in_one() {
        for log in [
            heavy(&scene::<Central>(4, 2, central::Config::default())),
            heavy(&scene::<RicartAgrawala>(4, 2, ())),
            heavy(&scene::<SuzukiKasami>(4, 2, ())),
        ] {
            let entries = entries(&log);
            assert_eq!(entries.len(), 20);
            let mut together = 0;
            for (place, (at, node, region)) in entries.iter().enumerate() {
                for (later, other, its) in &entries[place + 1..] {
                    if later - at < 5.0 {
                        assert!(node != other && region != its, "{entries:?}");
                        together += 1;
                    }
                }
            }
            assert!(together > 0, "{entries:?}");
        }
    }

    /// Of region k of up to 8 the coordinator is node k.
    #[test]
    fn each_region_has_a_coordinator_of_its_own() {
        let mut asked = NodeSet::new();
        for count in 2..=8 {
            let scene = scene::<Central>(9, count, central::Config::default());
            let mut it = scene.boot(node(9));
            let effects = feed(&mut it, 9, Input::Command(Command::Acquire)).unwrap();
            let Some(region) = it.wished else { panic!("{effects:?}") };
            let coordinator = NodeId::at(region.0.into());
            assert_eq!(
                effects,
                [format!("Send {{ to: {coordinator}, msg: Request in {region:?} }}")]
            );
            assert_eq!(feed(&mut it, 9, Input::Command(Command::Acquire)), Err(Refusal::Busy));
            asked.insert(coordinator);
        }
        assert!(asked.len() > 2, "the lot decides");
    }

    #[test]
    fn what_is_of_no_region_is_ignored() {
        let it = scene::<Central>(3, 2, central::Config::default()).boot(node(1));
        ignores(&it, 1, 2, In { region: Region(2), what: central::Msg::Request });
        let release = feed(&mut it.clone(), 1, Input::Command(Command::Release));
        assert_eq!(release, Err(Refusal::NotHeld));
    }

    /// Two nodes, two regions: every interleaving, and every lot.
    #[test]
    fn every_interleaving_holds() {
        let scene = scene::<RicartAgrawala>(2, 2, ());
        let users = Users::new(2, &scene.setup, 1, Load::Heavy, units(1.0));
        assert_eq!(exhaust(&scene, &users, &quorate_check::Plan::default()), 101);
    }
}
