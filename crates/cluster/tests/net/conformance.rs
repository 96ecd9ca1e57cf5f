//! One body, two arms: every algorithm of the catalogues does the same in the simulator and over
//! sockets, before the same monitors.

use quorate_algorithms::detector::{self, Detector, Listeners};
use quorate_algorithms::election::{self, Criterion, Election, Initiators};
use quorate_algorithms::group::{self, Group, Pattern, Senders};
use quorate_algorithms::mutex::{self, Load, Mutex, Users};
use quorate_algorithms::{Catalogued, Portable};
use quorate_cluster::{Audience, Config, Ends, Local, Plan};
use quorate_core::{
    Fact, Meta, Monitor, NodeId, NodeSet, Options, Protocol, Scene, Shape, Solution, Span, System,
    Time, Topology, Workload,
};
use quorate_sim::{Crash, Faults, Network, Observer, World};
use tokio::time::Duration;

use crate::party;

/// What was said at a node.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Said<C, E> {
    Command(C),
    Event(E),
}

type Facts<A> = Vec<(NodeId, Said<<A as Protocol>::Command, <A as Protocol>::Event>)>;

/// Lets the same users act in both arms, and hands what was said to the same judge.
fn both_arms<A, W>(scene: &Scene<A>, users: &W, judge: impl Fn(&Facts<A>))
where
    A: Solution,
    A::Msg: Portable,
    W: Workload<A::Command, A::Event>,
{
    for facts in [simulated(scene, users.clone()), party::run(over_sockets(scene, users.clone()))] {
        let mut monitor = scene.monitor();
        for (node, said) in &facts {
            let fact = match said {
                Said::Command(command) => Fact::Command(command),
                Said::Event(event) => Fact::Event(event),
            };
            monitor.observe(*node, fact).unwrap_or_else(|wrong| panic!("{wrong}: {facts:?}"));
        }
        assert_eq!(monitor.settle(), [], "{facts:?}");
        judge(&facts);
    }
}

struct Notes<C, E>(Vec<(NodeId, Said<C, E>)>);

impl<C: Clone, E: Clone> Observer<C, E> for Notes<C, E> {
    fn fact(&mut self, _: Time, at: NodeId, fact: Fact<'_, C, E>) {
        match fact {
            Fact::Command(command) => self.0.push((at, Said::Command(command.clone()))),
            Fact::Event(event) => self.0.push((at, Said::Event(event.clone()))),
            Fact::Crashed | Fact::Recovered => {}
        }
    }
}

/// Long after everybody has done what it wanted, and all timers have run out.
const ENOUGH: Span = Span::units(1_000_000);

/// The first arm.
fn simulated<A, W>(scene: &Scene<A>, users: W) -> Facts<A>
where
    A: Solution,
    W: Workload<A::Command, A::Event>,
{
    let (network, faults) = (Network::default(), Faults::default());
    let mut world = World::new(scene, users, Notes(Vec::new()), &network, &faults, 1);
    // Not to rest: a token that goes round for ever never comes to it.
    world.start();
    world.run(u64::MAX, Time::ZERO + ENOUGH);
    let (report, notes) = world.finish();
    assert!(report.holds(), "{report:?}");
    notes.0
}

impl<C: Clone, E: Clone> Audience<C, E> for Notes<C, E> {
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, C, E>) {
        Observer::fact(self, now, at, fact);
    }
}

/// The second arm.
async fn over_sockets<A, W>(scene: &Scene<A>, users: W) -> Facts<A>
where
    A: Solution,
    A::Msg: Portable,
    W: Workload<A::Command, A::Event>,
{
    watched(scene, users, &Plan::default()).await
}

/// Runs a plan over sockets, until the monitor is content.
async fn watched<A, W>(scene: &Scene<A>, users: W, plan: &Plan) -> Facts<A>
where
    A: Solution,
    A::Msg: Portable,
    W: Workload<A::Command, A::Event>,
{
    let plan = Plan { ends: Ends::Content, until: party::PATIENCE, ..plan.clone() };
    let config = Config { seed: Some(1), ..Config::default() };
    let mut crew = Local::new(scene, config).expect("there are ports");
    let mut notes = Notes(Vec::new());
    let outcome = quorate_cluster::run(scene, users, &plan, &mut crew, &mut notes).await;
    let outcome = outcome.expect("all nodes run");
    assert_eq!(outcome.violations().next(), None, "{:?}", notes.0);
    assert!(outcome.quiet && outcome.refused == 0, "{outcome:?}");
    assert_eq!(crew.casualties().await, []);
    notes.0
}

/// A topology that the algorithm can run on.
fn topology(shape: Shape, count: usize) -> Topology {
    let links = |ends: &dyn Fn(usize) -> (usize, usize), count: usize| -> Vec<_> {
        let ids = |(a, b)| (NodeId::at(a), NodeId::at(b));
        (0..count).map(|i| ids(ends(i))).collect()
    };
    let ring = links(&|i| (i, (i + 1) % count), count);
    let tree = links(&|i| (i / 2, i + 1), count - 1);
    match shape {
        Shape::Complete => Topology::complete(count),
        Shape::Ring => Topology::ring(count),
        Shape::TwoWayRing | Shape::Graph => Topology::undirected(count, &ring).unwrap(),
        Shape::Tree => Topology::undirected(count, &tree).unwrap(),
    }
}

struct Enter {
    nodes: usize,
    times: u32,
}

impl Enter {
    fn run(self, meta: &Meta) {
        let Self { nodes, times } = self;
        // Nobody may be taken for dead because this machine is busy.
        let delay_max = Span::units(60_000);
        let setup = mutex::Setup { delay_max, ..mutex::Setup::new(nodes) };
        let config = Mutex::configure(meta.name, &Options(&[]))
            .expect("it is in the catalogue")
            .expect("its options make sense");
        if !mutex::any::Any::promise(&config).live {
            return;
        }
        let scene =
            Scene::<mutex::any::Any>::new(topology(meta.shape, nodes), setup.clone(), config);
        // Inside for so long that anybody else who is let in is seen.
        let users = Users::new(nodes, &setup, times, Load::Heavy, Span::units(2));
        both_arms(&scene, &users, |facts| {
            for node in NodeId::first(nodes) {
                let count = |command| {
                    let given = (node, Said::Command(command));
                    facts.iter().filter(|fact| **fact == given).count()
                };
                assert_eq!(count(mutex::Command::Acquire), times as usize);
                assert_eq!(count(mutex::Command::Release), times as usize);
                let mine = facts.iter().filter(|fact| fact.0 == node);
                let granted = mine.filter(|fact| matches!(fact.1, Said::Event(_))).count();
                assert_eq!(granted, times as usize, "{}", meta.name);
            }
        });
    }
}

#[test]
fn mutual_exclusion_in_both_arms() {
    assert!(!Mutex::CATALOGUE.is_empty());
    for meta in Mutex::CATALOGUE {
        Enter { nodes: 3, times: 5 }.run(meta);
    }
}

struct Elect {
    ids: &'static [u32],
    asking: usize,
}

impl Elect {
    fn run(self, meta: &Meta) {
        let Self { ids, asking } = self;
        let mut setup = election::Setup::with_ids(ids, Criterion::Highest);
        // No timeout may run out because this machine is busy; but one that must run out before
        // anybody leads should do so soon.
        setup.delay_max = Span::units(match meta.name {
            "election/bully" | "election/bully-broadcast" => 1_500,
            "election/firewire" => 10,
            _ => 60_000,
        });
        let best = NodeId::first(ids.len()).max_by_key(|&node| setup.ranks[node]).unwrap();
        let rank = setup.ranks[best];
        // A bus must be a tree.
        let is_bus = meta.name == "election/firewire";
        let waits = [("fast", "20..30"), ("slow", "200..210")];
        let config = Election::configure(meta.name, &Options(if is_bus { &waits } else { &[] }))
            .expect("it is in the catalogue")
            .expect("its options make sense");
        let best_leads = election::any::Any::promise(&config).best_leads;
        let shape = if is_bus { Shape::Tree } else { meta.shape };
        let scene = Scene::<election::any::Any>::new(topology(shape, ids.len()), setup, config);
        let users = Initiators::at_once(NodeSet::first(asking));
        both_arms(&scene, &users, |facts| {
            let mut leading = None;
            for (node, said) in facts {
                match said {
                    Said::Event(
                        election::Event::Leading(rank) | election::Event::LeadingIn(rank, _),
                    ) => leading = Some((*node, *rank)),
                    Said::Event(election::Event::Following(to)) => {
                        assert!(*to == rank || !best_leads);
                    }
                    Said::Command(election::Command::Elect)
                    | Said::Event(election::Event::Parent(_)) => {}
                    Said::Event(election::Event::Leaderless) => {
                        leading = leading.filter(|(at, _)| at != node);
                    }
                }
            }
            assert!(leading.is_some(), "{}", meta.name);
            assert!(!best_leads || leading == Some((best, rank)), "{}: {leading:?}", meta.name);
        });
    }
}

#[test]
fn election_in_both_arms() {
    assert!(!Election::CATALOGUE.is_empty());
    for meta in Election::CATALOGUE {
        for (ids, asking) in [(&[3, 1, 5, 2, 4][..], 5), (&[20, 30, 10], 1), (&[1, 2, 3, 4], 2)] {
            Elect { ids, asking }.run(meta);
        }
    }
}

/// Three nodes, of which the last one dies: the two others are to notice.
struct Notice;

impl Notice {
    fn run(self, meta: &Meta) {
        let (victim, count) = (NodeId::at(2), 3);
        // Beats may be late because this machine is busy: who is suspected wrongly is trusted again.
        let setup = detector::Setup { interval: Span::units(20) };
        let config = Detector::configure(meta.name, &Options(&[]))
            .expect("it is in the catalogue")
            .expect("its options make sense");
        let scene = Scene::<detector::any::Any>::new(topology(meta.shape, count), setup, config);
        let crash = Crash { node: victim, at: Time::ZERO + Span::units(50) };
        let faults = Faults { crashes: vec![crash], ..Faults::default() };
        let network = Network::default();
        let mut world = World::new(&scene, Listeners, (), &network, &faults, 1);
        world.start();
        world.run(u64::MAX, Time::ZERO + Span::units(1_000));
        assert!(world.finish().0.holds(), "{}", meta.name);
        let crashes = vec![(victim, Duration::from_millis(50))];
        let plan = Plan { crashes, ..Plan::default() };
        let facts = party::run(watched(&scene, Listeners, &plan));
        for survivor in NodeId::first(count).filter(|&node| node != victim) {
            let mut words = facts.iter().rev().filter_map(|(node, said)| match said {
                Said::Event(event) if *node == survivor => Some(*event),
                _ => None,
            });
            let about = |event: &detector::Event| match event {
                detector::Event::Suspect(peer) | detector::Event::Trust(peer) => *peer == victim,
            };
            let last = words.find(about);
            assert_eq!(last, Some(detector::Event::Suspect(victim)), "{}", meta.name);
        }
    }
}

#[test]
fn failure_detection_in_both_arms() {
    assert!(!Detector::CATALOGUE.is_empty());
    for meta in Detector::CATALOGUE {
        Notice.run(meta);
    }
}

struct Multicast {
    nodes: usize,
    messages: u32,
}

impl Multicast {
    fn run(self, meta: &Meta) {
        let Self { nodes, messages } = self;
        let topology = topology(meta.shape, nodes);
        // Nobody may be taken for dead because this machine is busy.
        let delay_max = Span::units(60_000);
        let setup = group::Setup { delay_max, ..group::Setup::along(&topology) };
        let config = Group::configure(meta.name, &Options(&[]))
            .expect("it is in the catalogue")
            .expect("its options make sense");
        let scene = Scene::<group::any::Any>::new(topology, setup, config);
        let all = NodeSet::first(nodes);
        let users = Senders::new(nodes, &all, &all, messages, Pattern::default());
        both_arms(&scene, &users, |facts| {
            for node in NodeId::first(nodes) {
                let delivered = |fact: &&(NodeId, _)| {
                    fact.0 == node && matches!(fact.1, Said::Event(group::Event::Delivered(_)))
                };
                let count = facts.iter().filter(delivered).count();
                assert_eq!(count, nodes * messages as usize, "{}", meta.name);
            }
        });
    }
}

#[test]
fn group_communication_in_both_arms() {
    assert!(!Group::CATALOGUE.is_empty());
    for meta in Group::CATALOGUE {
        let multicast = Multicast { nodes: 3, messages: 5 };
        multicast.run(meta);
    }
}
