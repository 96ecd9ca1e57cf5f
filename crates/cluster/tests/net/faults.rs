//! Nodes that crash and come back, and what they kept.

use quorate_algorithms::Catalogued;
use quorate_algorithms::group::{self, Event, Group, Pattern, Senders};
use quorate_cluster::{Audience, Config, Ends, Local, Plan};
use quorate_core::trace::{Happening, Outcome, Record};
use quorate_core::{Fact, NodeId, NodeSet, Options, Scene, Span, Time, Topology};
use tokio::time::Duration;

use crate::party;

/// What is to be seen: views as they are installed, and every step.
#[derive(Default)]
struct Seen {
    installed: Vec<(NodeId, Vec<NodeId>)>,
    steps: Vec<Record>,
}

impl<C> Audience<C, Event> for Seen {
    fn fact(&mut self, _: Time, at: NodeId, fact: Fact<'_, C, Event>) {
        if let Fact::Event(Event::Installed { members, .. }) = fact {
            self.installed.push((at, members.to_vec()));
        }
    }

    fn step(&mut self, record: Record) {
        self.steps.push(record);
    }
}

/// Every configuration is persisted before it is used: over sockets too, and over a crash.
#[test]
fn configurations_change_over_a_crash_and_a_recovery() {
    let topology = Topology::complete(3);
    let delay_max = Span::units(60_000);
    let setup = group::Setup { delay_max, ..group::Setup::along(&topology) };
    let config = Group::configure("group/extended-virtual-synchrony", &Options(&[]));
    let config = config.unwrap().unwrap();
    let scene = Scene::<group::any::Any>::new(topology, setup, config);
    let all = NodeSet::first(3);
    let users = Senders::new(3, &all, &all, 2, Pattern::default());
    let plan = Plan {
        crashes: vec![(party::node(2), Duration::from_millis(500))],
        recoveries: vec![(party::node(2), Duration::from_secs(2))],
        until: party::PATIENCE,
        quiet: Duration::from_secs(2),
        ends: Ends::Quiet,
        ..Plan::default()
    };
    let mut seen = Seen::default();
    let outcome = party::run(async {
        let detect = Some(Duration::from_millis(200));
        let mut crew = Local::new(&scene, Config { detect, ..Config::default() }).unwrap();
        let outcome = quorate_cluster::run(&scene, users, &plan, &mut crew, &mut seen).await;
        assert_eq!(crew.casualties().await, []);
        outcome.unwrap()
    });
    assert_eq!(outcome.violations().next(), None, "{:?}", seen.installed);
    assert!(outcome.quiet);
    let without = seen.installed.iter().position(|(_, members)| members.len() == 2).unwrap();
    let again = &seen.installed[without..];
    for node in NodeId::first(3) {
        let whole = again.iter().any(|(at, members)| *at == node && members.len() == 3);
        assert!(whole, "node {node} is not with all others again: {again:?}");
    }
    let back = seen.steps.iter().position(|step| step.input == Happening::Recover).unwrap();
    let persists = |step: &&Record| {
        step.node == party::node(2)
            && step.effects.iter().any(|effect| matches!(effect, Outcome::Persist(_)))
    };
    assert!(seen.steps[back..].iter().any(|step| persists(&step)));
}
