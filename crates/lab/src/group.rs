//! Group communication in the lab: its arguments, its senders, what a multicast costs.

use std::collections::{BTreeMap, BTreeSet};

use quorate_algorithms::Catalogued;
use quorate_algorithms::group::{
    Command, Event, Group, MessageId, Newcomers, Order, Ordering, Pattern, Promise, Senders, Setup,
    TotalBy, VirtualSynchrony,
};
use quorate_core::{Algorithm, Fact, NodeId, NodeSet, Solution, Span, Time, Topology, ViewId};
use quorate_sim::{Observer, Report};
use serde::{Deserialize, Serialize};

use crate::diagram::{Change, Phase, Seen};
use crate::figures::{Named, by_kind};
use crate::registry::{Study, configured};
use crate::text::{choice, number, span};
use crate::{About, Argument, BadInput, Figure, NodeAt, Numbers, Spec};

/// The most nodes of a group: each of them keeps something of each.
const NODES_MAX: usize = 4_096;

/// What a run of group communication is given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GroupSpec {
    /// How many nodes send, the first ones; all if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub senders: Option<usize>,
    /// Who of them does not send after all.
    #[serde(skip_serializing_if = "Numbers::is_empty")]
    pub bystanders: Numbers,
    /// How many messages each of them sends.
    pub messages: u32,
    /// In what order messages are asked to be delivered; as the algorithm does it if not given, and in
    /// one order for all where virtual synchrony leaves it to the users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderSpec>,
    /// Are they asked to be delivered uniformly?
    pub uniform: bool,
    /// How long a sender waits before each message.
    pub gap: Span,
    /// How many nodes are members from the start, the first ones; all if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<usize>,
    /// Who joins when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joins: Vec<NodeAt>,
    /// Who leaves when, if it has sent all of its messages then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<NodeAt>,
}

impl Default for GroupSpec {
    fn default() -> Self {
        Self {
            senders: None,
            bystanders: Numbers::default(),
            messages: 5,
            order: None,
            uniform: false,
            gap: Span::UNIT,
            members: None,
            joins: Vec::new(),
            leaves: Vec::new(),
        }
    }
}

/// In what order messages are asked to be delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderSpec {
    /// As their sender sent them.
    Fifo,
    /// After what their sender knew.
    Causal,
    /// In one order for all, however it is made.
    Total,
    /// In one order for all, by a sequencer.
    TotalSequencer,
    /// In one order for all, by a token.
    TotalToken,
    /// One in each order, in turn.
    Mixed,
}

impl OrderSpec {
    /// What users ask for if nothing is said. Virtual synchrony is atomic, totally ordered multicast
    /// in views; other orders are there for those who need less.
    fn usual(algorithm: &str) -> Self {
        if algorithm == VirtualSynchrony::META.name { Self::Total } else { Self::Fifo }
    }

    /// All of them, as typed.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("fifo", Self::Fifo),
        ("causal", Self::Causal),
        ("total", Self::Total),
        ("total-sequencer", Self::TotalSequencer),
        ("total-token", Self::TotalToken),
        ("mixed", Self::Mixed),
    ];

    fn orders(self) -> Vec<Order> {
        match self {
            Self::Fifo => vec![Order::Fifo],
            Self::Causal => vec![Order::Causal],
            Self::Total | Self::TotalSequencer | Self::TotalToken => vec![Order::Total],
            Self::Mixed => vec![Order::Fifo, Order::Causal, Order::Total],
        }
    }

    /// Is this what an algorithm does that has only one order?
    const fn is_plainly(self, order: Order) -> bool {
        matches!(
            (self, order),
            (Self::Fifo, Order::Fifo) | (Self::Causal, Order::Causal) | (Self::Total, Order::Total)
        )
    }
}

impl Study for Group {
    type Given = GroupSpec;
    type Users = Senders;
    type Measures = Traffic;
    type Figures = Figures;

    const ARGUMENTS: &'static [Argument<GroupSpec>] = &[
        Argument {
            about: About::new("senders", "K", "How many nodes send, the first ones [default: all]"),
            read: |given, text| number(text).map(|senders| given.senders = Some(senders)),
        },
        Argument {
            about: About::new(
                "messages",
                "M",
                "How many messages each of them sends [default: 5; 1 for check]",
            ),
            read: |given, text| number(text).map(|messages| given.messages = messages),
        },
        Argument {
            about: About::new(
                "order",
                "ORDER",
                "fifo, causal, total, total-sequencer, total-token or mixed (one in each order, in \
                 turn) [default: as the algorithm does it; total for virtual synchrony]",
            ),
            read: |given, text| {
                choice(text, &OrderSpec::NAMES).map(|order| given.order = Some(order))
            },
        },
        Argument {
            about: About { value: None, ..About::new("uniform", "", "Ask for uniform delivery") },
            read: |given, _| {
                given.uniform = true;
                Ok(())
            },
        },
        Argument {
            about: About::new(
                "members",
                "K",
                "How many nodes are members from the start, the first ones [default: all]",
            ),
            read: |given, text| number(text).map(|members| given.members = Some(members)),
        },
        Argument {
            about: About { repeated: true, ..About::new("join", "NODE@TIME", "A node joins") },
            read: |given, text| text.parse().map(|join| given.joins.push(join)),
        },
        Argument {
            about: About {
                repeated: true,
                ..About::new(
                    "leave",
                    "NODE@TIME",
                    "A node leaves; of a group, when it has sent all of its messages",
                )
            },
            read: |given, text| text.parse().map(|leave| given.leaves.push(leave)),
        },
        Argument {
            about: About {
                simulated: true,
                ..About::new(
                    "gap",
                    "TIME",
                    "How long a sender waits before each message [default: 1]",
                )
            },
            read: |given, text| span(text).map(|gap| given.gap = gap),
        },
    ];

    fn small() -> GroupSpec {
        GroupSpec { messages: 1, ..GroupSpec::default() }
    }

    fn once(given: &GroupSpec) -> (GroupSpec, u64) {
        (GroupSpec { messages: 1, ..given.clone() }, given.messages.into())
    }

    fn setup(spec: &Spec, topology: &Topology) -> Result<Setup, BadInput> {
        if spec.nodes > NODES_MAX {
            let reason = format!("{} is not a number of nodes from 1 to {NODES_MAX}", spec.nodes);
            return Err(BadInput::new("--nodes", reason));
        }
        let given = spec.given_to::<Self>()?;
        let members = some_of(spec, "--members", given.members)?;
        let total = match given.order {
            Some(OrderSpec::TotalToken) => TotalBy::Token,
            _ => TotalBy::Sequencer,
        };
        let delay_max = spec.latency().max();
        Ok(Setup { members, total, delay_max, ..Setup::along(topology) })
    }

    fn admit(spec: &Spec, promise: &Promise) -> Result<(), BadInput> {
        let (group, name) = (spec.given_to::<Self>()?, &spec.algorithm);
        for (argument, changes) in [("--join", &group.joins), ("--leave", &group.leaves)] {
            if !changes.is_empty() && promise.newcomers == Newcomers::None {
                let reason = format!(
                    "the members of {name} are the same from start to end: all of them make its \
                     order, and without views nobody could say where a newcomer begins"
                );
                return Err(BadInput::new(argument, reason));
            }
        }
        if group.uniform && !promise.uniform {
            let reason = format!("{name} delivers no message uniformly");
            return Err(BadInput::new("--uniform", reason));
        }
        match (group.order, promise.order) {
            (Some(_), Ordering::None) => {
                let reason = format!("{name} delivers messages as they come");
                Err(BadInput::new("--order", reason))
            }
            (Some(asked), Ordering::Always(order)) if !asked.is_plainly(order) => {
                let known = Order::NAMES.iter().find(|(_, known)| *known == order);
                let order = known.map_or("", |(order, _)| order);
                Err(BadInput::new("--order", format!("the order of {name} is always {order}")))
            }
            _ => Ok(()),
        }
    }

    fn users(spec: &Spec, setup: &Setup) -> Result<Senders, BadInput> {
        let group = spec.given_to::<Self>()?;
        if group.messages == 0 {
            return Err(BadInput::new("--messages", "0 is not a number of messages from 1 on"));
        }
        let mut senders = some_of(spec, "--senders", group.senders)?;
        for node in &spec.node_set("--bystanders", &group.bystanders)? {
            senders.remove(node);
        }
        let joins = changes(spec, "--join", &group.joins)?;
        if let Some((node, _)) = joins.iter().find(|(node, _)| setup.members.contains(*node)) {
            let reason = format!("node {node} is a member from the start");
            return Err(BadInput::new("--join", reason));
        }
        let leaves = changes(spec, "--leave", &group.leaves)?;
        let joiners: NodeSet = joins.iter().map(|(node, _)| *node).collect();
        let stranger = |node| !setup.members.contains(node) && !joiners.contains(node);
        if let Some((node, _)) = leaves.iter().find(|(node, _)| stranger(*node)) {
            let reason = format!("node {node} is no member and never joins");
            return Err(BadInput::new("--leave", reason));
        }
        let pattern = Pattern {
            gap: group.gap,
            orders: group.order.unwrap_or_else(|| OrderSpec::usual(&spec.algorithm)).orders(),
            uniform: group.uniform,
            joins,
            leaves,
            ..Pattern::default()
        };
        Ok(Senders::new(spec.nodes, &setup.members, &senders, group.messages, pattern))
    }

    fn measures(_: &Spec) -> Traffic {
        Traffic::default()
    }

    fn seen(fact: Fact<'_, Command, Event>) -> Seen {
        match fact {
            Fact::Command(Command::Multicast(_)) => Seen::word("sends to the group"),
            Fact::Event(Event::Delivered(_)) => Seen::word("delivers"),
            Fact::Event(Event::Installed { view, .. }) => {
                Seen { view: Some(*view), ..Seen::begin(Phase::Member) }
            }
            Fact::Event(Event::Joined) => Seen::begin(Phase::Member),
            Fact::Event(Event::Left | Event::Excluded) => Seen::change(Change::End),
            Fact::Event(Event::Transitional { .. }) => Seen::word("goes on with some members"),
            Fact::Command(Command::Join) => Seen::word("asks to join"),
            Fact::Command(Command::Leave) => Seen::word("asks to leave"),
            Fact::Crashed | Fact::Recovered => Seen::default(),
        }
    }

    fn members(setup: &Setup) -> Vec<NodeId> {
        setup.members.iter().collect()
    }

    fn told(event: &Event) -> Vec<NodeId> {
        match event {
            Event::Installed { members, .. } => members.to_vec(),
            _ => Vec::new(),
        }
    }

    fn figures(traffic: &Traffic, report: &Report, unit: Span) -> Figures {
        let in_units = |nanos: f64| nanos / unit.0.max(1) as f64;
        let per = |a: f64, b: u64| (b > 0).then(|| a / b as f64);
        let Traffic { delivered, received, waited, .. } = *traffic;
        let multicasts = traffic.sent.len() as u64;
        Figures {
            delivered,
            messages: report.messages,
            by_kind: report.by_kind.clone(),
            nacks: report.tally("nack").sum,
            repairs: report.tally("repair").sum,
            duplicates: report.tally("duplicate").sum,
            views: traffic.views.len() as u64,
            multicasts,
            sendings: report.sendings,
            sendings_per_multicast: per(report.sendings as f64, multicasts),
            latency: Waited {
                mean: per(in_units(waited as f64), received),
                max: traffic.longest.map(|span| in_units(span.0 as f64)),
            },
            buffer_max: report.tally("buffered").max,
        }
    }
}

/// What multicasts came to, and what they cost. Times are in units.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// How often somebody delivered a message.
    pub delivered: u64,
    /// Messages sent, each receiver of a multicast counted.
    pub messages: u64,
    /// Messages by kind, in the order of the paper.
    pub by_kind: Vec<(&'static str, u64)>,
    /// How often somebody complained that something is missing.
    pub nacks: u64,
    /// How often something was sent again.
    pub repairs: u64,
    /// How often something arrived that was there already.
    pub duplicates: u64,
    /// Views that were installed, without the first one.
    pub views: u64,
    /// Messages that users sent.
    pub multicasts: u64,
    /// Sendings: a multicast counts once.
    pub sendings: u64,
    /// Sendings for each message that a user sent.
    pub sendings_per_multicast: Option<f64>,
    /// From sending to delivery at others.
    pub latency: Waited,
    /// The most messages that one node kept.
    pub buffer_max: u64,
}

/// How long it took from sending to delivery.
#[derive(Clone, PartialEq, Debug)]
pub struct Waited {
    /// On average over messages and receivers.
    pub mean: Option<f64>,
    /// At most.
    pub max: Option<f64>,
}

impl crate::Figures for Figures {
    fn named(&self) -> Named {
        let Waited { mean, max } = self.latency;
        vec![
            ("delivered", self.delivered.into()),
            ("messages", self.messages.into()),
            ("by_kind", by_kind(&self.by_kind)),
            ("nacks", self.nacks.into()),
            ("repairs", self.repairs.into()),
            ("duplicates", self.duplicates.into()),
            ("views", self.views.into()),
            ("multicasts", self.multicasts.into()),
            ("sendings", self.sendings.into()),
            ("sendings_per_multicast", self.sendings_per_multicast.into()),
            ("latency", Figure::Parts(vec![("mean", mean.into()), ("max", max.into())])),
            ("buffer_max", self.buffer_max.into()),
        ]
    }
}

/// What the algorithm of a run promises, with its options.
///
/// # Errors
/// If there is no such algorithm, or an option makes no sense.
pub fn promise(spec: &Spec) -> Result<Promise, BadInput> {
    Ok(<Group as Catalogued>::Any::promise(&configured::<Group>(spec)?))
}

/// The first so many nodes; all if nothing is said.
fn some_of(spec: &Spec, argument: &str, count: Option<usize>) -> Result<NodeSet, BadInput> {
    match count.unwrap_or(spec.nodes) {
        count if (1..=spec.nodes).contains(&count) => Ok(NodeSet::first(count)),
        count => {
            let reason = format!("{count} is not a number of nodes from 1 to {}", spec.nodes);
            Err(BadInput::new(argument, reason))
        }
    }
}

/// Who joins or leaves when; nobody twice.
fn changes(spec: &Spec, argument: &str, given: &[NodeAt]) -> Result<Vec<(NodeId, Span)>, BadInput> {
    let mut named = NodeSet::new();
    let mut changes = Vec::new();
    for &NodeAt { node: number, at } in given {
        let node = spec.node(argument, number)?;
        if !named.insert(node) {
            return Err(BadInput::new(argument, format!("node {node} is named twice")));
        }
        changes.push((node, at.since(Time::ZERO)));
    }
    Ok(changes)
}

/// What was sent and delivered, measured as a run goes on.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// When each message was sent.
    sent: BTreeMap<MessageId, Time>,
    delivered: u64,
    /// How often somebody else than the sender delivered something, and after how long in all.
    received: u64,
    waited: u64,
    longest: Option<Span>,
    /// The views that were installed, without the first one.
    views: BTreeSet<ViewId>,
}

impl Observer<Command, Event> for Traffic {
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        match fact {
            Fact::Command(Command::Multicast(wish)) => {
                self.sent.insert(MessageId { sender: at, number: wish.number }, now);
            }
            Fact::Event(Event::Delivered(id)) => {
                self.delivered += 1;
                if let Some(sent) = self.sent.get(id).filter(|_| id.sender != at) {
                    let waited = now.since(*sent);
                    self.received += 1;
                    self.waited += waited.0;
                    self.longest = self.longest.max(Some(waited));
                }
            }
            Fact::Event(Event::Installed { view, .. }) if *view > ViewId(1) => {
                self.views.insert(*view);
            }
            Fact::Event(
                Event::Installed { .. }
                | Event::Transitional { .. }
                | Event::Joined
                | Event::Left
                | Event::Excluded,
            )
            | Fact::Command(Command::Join | Command::Leave)
            | Fact::Crashed
            | Fact::Recovered => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(node: u32, nanos: u64) -> NodeAt {
        NodeAt::new(node, Time(nanos))
    }

    /// What a run with views would be told.
    fn told(change: impl FnOnce(&mut GroupSpec)) -> Result<(Setup, Senders), String> {
        let mut given = GroupSpec::default();
        change(&mut given);
        let spec = Spec::new("group/ack-multicast", 5).given(given);
        let open = Promise::always(Order::Fifo).with(Newcomers::Known);
        let views = Promise { order: Ordering::AsWished, uniform: true, ..open };
        let made = || {
            let setup = Group::setup(&spec, &Topology::complete(5))?;
            Group::admit(&spec, &views)?;
            let users = Group::users(&spec, &setup)?;
            Ok((setup, users))
        };
        made().map_err(|bad: BadInput| bad.to_string())
    }

    #[test]
    fn the_first_nodes_are_members_and_the_others_may_join() {
        let (setup, _) = told(|group| {
            group.members = Some(3);
            group.joins = vec![at(4, 10), at(5, 20)];
            group.leaves = vec![at(1, 30), at(4, 40)];
            group.order = Some(OrderSpec::TotalToken);
        })
        .unwrap();
        assert_eq!((setup.members, setup.total), (NodeSet::first(3), TotalBy::Token));
        let error = |change: fn(&mut GroupSpec)| told(change).unwrap_err();
        assert_eq!(
            error(|group| group.members = Some(6)),
            "--members: 6 is not a number of nodes from 1 to 5"
        );
        assert_eq!(
            error(|group| group.joins = vec![at(2, 1)]),
            "--join: node 2 is a member from the start"
        );
        assert_eq!(
            error(|group| (group.members, group.leaves) = (Some(3), vec![at(4, 1)])),
            "--leave: node 4 is no member and never joins"
        );
        assert_eq!(
            error(|group| group.leaves = vec![at(1, 1), at(1, 2)]),
            "--leave: node 1 is named twice"
        );
    }

    #[test]
    fn nodes_join_and_leave_where_no_order_of_all_is_made_without_views() {
        let admit = |name: &str| {
            let joins = vec![at(3, 1)];
            let given = GroupSpec { members: Some(2), joins, ..GroupSpec::default() };
            let spec = Spec::new(name, 3).given(given);
            Group::admit(&spec, &promise(&spec).unwrap()).map_err(|bad| bad.to_string())
        };
        for name in ["ack-multicast", "nack-multicast", "srm", "virtual-synchrony"] {
            assert_eq!(admit(&format!("group/{name}")), Ok(()));
        }
        for name in ["sequencer", "abcast", "lamport-order", "token-order"] {
            let refused = admit(&format!("group/{name}")).unwrap_err();
            let begin =
                format!("--join: the members of group/{name} are the same from start to end");
            assert!(refused.starts_with(&begin), "{refused}");
        }
    }

    #[test]
    fn an_order_that_is_not_made_is_refused() {
        let admit = |asked, order| {
            let given = GroupSpec { order: Some(asked), ..GroupSpec::default() };
            let spec = Spec::new("group/ack-multicast", 3).given(given);
            let promise = Promise { order, ..Promise::always(Order::Fifo) };
            Group::admit(&spec, &promise).is_ok()
        };
        let fifo = Ordering::Always(Order::Fifo);
        assert_eq!(
            [OrderSpec::Fifo, OrderSpec::Mixed].map(|asked| admit(asked, fifo)),
            [true, false]
        );
        let total = Ordering::Always(Order::Total);
        assert!(admit(OrderSpec::Total, total) && !admit(OrderSpec::TotalToken, total));
        assert!(OrderSpec::NAMES.iter().all(|(_, asked)| admit(*asked, Ordering::AsWished)));
        assert!(!OrderSpec::NAMES.iter().any(|(_, asked)| admit(*asked, Ordering::None)));
    }
}
