//! The parts of the cluster in the lab: their arguments, their users, what a run of them came to.

mod course;

use std::fmt;
use std::str::FromStr;

use quorate_core::{Algorithm, Fact, NodeId, NodeSet, Span, Time, Topology, ViewId};
use quorate_service::family::{
    Bounds, Command, Event, Promise, RegisterNode, SeatNode, Seats, SeedNode, Seeds, Service,
    Setup, Users, Wish,
};
use quorate_service::{Deed, founding, seat};
use quorate_sim::Report;
use serde::{Deserialize, Serialize};

use crate::diagram::{Change, Phase, Seen};
use crate::registry::Study;
use crate::text::{Unclear, number, span, stands_as_text, time, typed};
use crate::{About, Argument, BadInput, NodeAt, Numbers, Spec};
pub use course::{Course, Figures};

/// The shortest lease: a seat looks around ten times in it.
const LEASE_MIN: Span = Span(1_000);
/// A run goes on for so many leases after the last thing that is said to happen.
const LEASES: u64 = 15;

/// What a run of a part of the cluster is given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServiceSpec {
    /// How long a lease is at first.
    pub lease: Span,
    /// Is evidence of a death believed?
    #[serde(skip_serializing_if = "is_so")]
    pub evidence: bool,
    /// Are refused connections?
    #[serde(skip_serializing_if = "is_not_so")]
    pub trust_refusal: bool,
    /// Whose kernel tells of processes that are over; everybody's if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witnesses: Option<Numbers>,
    /// Who asks for a seat when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joins: Vec<NodeAt>,
    /// Who gives its seat up when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<NodeAt>,
    /// Who finds when that somebody's place refuses connections.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<BetweenSpec>,
    /// Who finds when that something between it and somebody else is lost for good.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub severed: Vec<BetweenSpec>,
    /// When leases become how long.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<LeaseSpec>,
    /// Which seeds are replaced by blank ones, and when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<NodeAt>,
    /// How often seeds ask after each start; as often as it takes if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<u8>,
    /// Is so little ordered of a register that all of it can be tried?
    #[serde(skip_serializing_if = "is_not_so")]
    pub exhaustible: bool,
    /// How many lives a register gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lives: Option<u64>,
    /// How often each of them renews.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beats: Option<u64>,
    /// How many views are decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub views: Option<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
const fn is_so(flag: &bool) -> bool {
    *flag
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
const fn is_not_so(flag: &bool) -> bool {
    !*flag
}

impl Default for ServiceSpec {
    fn default() -> Self {
        let Setup { lease, evidence, trust_refusal, .. } = Setup::default();
        Self {
            lease,
            evidence,
            trust_refusal,
            witnesses: None,
            joins: Vec::new(),
            leaves: Vec::new(),
            refusals: Vec::new(),
            severed: Vec::new(),
            leases: Vec::new(),
            replaced: Vec::new(),
            asks: None,
            exhaustible: false,
            lives: None,
            beats: None,
            views: None,
        }
    }
}

/// A node finds something about another one: `1:2@500`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BetweenSpec {
    /// Who finds it.
    pub by: u32,
    /// About whom.
    pub of: u32,
    /// When.
    pub at: Time,
}

impl FromStr for BetweenSpec {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let form = || Unclear::new(format!("{text} is not of the form NODE:NODE@TIME"));
        let (nodes, at) = text.split_once('@').ok_or_else(form)?;
        let (by, of) = nodes.split_once(':').ok_or_else(form)?;
        let number = |text: &str| text.parse().map_err(|_| form());
        Ok(Self { by: number(by)?, of: number(of)?, at: time(at)? })
    }
}

impl fmt::Display for BetweenSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.by, self.of, typed(self.at.since(Time::ZERO)))
    }
}

/// Leases become so long: `250@500`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseSpec {
    /// How long.
    pub lease: Span,
    /// When.
    pub at: Time,
}

impl FromStr for LeaseSpec {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let form = || Unclear::new(format!("{text} is not of the form TIME@TIME"));
        let (lease, at) = text.split_once('@').ok_or_else(form)?;
        Ok(Self { lease: span(lease)?, at: time(at)? })
    }
}

impl fmt::Display for LeaseSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", typed(self.lease), typed(self.at.since(Time::ZERO)))
    }
}

stands_as_text!(BetweenSpec, LeaseSpec);

impl Study for Service {
    type Given = ServiceSpec;
    type Users = Users;
    type Measures = Course;
    type Figures = Figures;

    const ARGUMENTS: &'static [Argument<ServiceSpec>] = &[
        Argument {
            about: About::new("lease", "TIME", "How long a lease is at first [default: 100]"),
            read: |given, text| span(text).map(|lease| given.lease = lease),
        },
        Argument {
            about: About {
                value: None,
                ..About::new("no-evidence", "", "Believe no kernel that a process is over")
            },
            read: |given, _| {
                given.evidence = false;
                Ok(())
            },
        },
        Argument {
            about: About {
                value: None,
                ..About::new(
                    "trust-refusal",
                    "",
                    "Take connections that two members find refused for a death",
                )
            },
            read: |given, _| {
                given.trust_refusal = true;
                Ok(())
            },
        },
        Argument {
            about: About::new(
                "witnesses",
                "NODE,…",
                "Whose kernel tells of processes that are over, or none [default: all]",
            ),
            read: |given, text| {
                let numbers = match text {
                    "none" => Numbers::default(),
                    text => text.parse()?,
                };
                given.witnesses = Some(numbers);
                Ok(())
            },
        },
        Argument {
            about: About { repeated: true, ..About::new("join", "NODE@TIME", "A node joins") },
            read: |given, text| text.parse().map(|join| given.joins.push(join)),
        },
        Argument {
            about: About { repeated: true, ..About::new("leave", "NODE@TIME", "A node leaves") },
            read: |given, text| text.parse().map(|leave| given.leaves.push(leave)),
        },
        Argument {
            about: About {
                repeated: true,
                ..About::new(
                    "refused",
                    "NODE:NODE@TIME",
                    "A node finds that the place of another one refuses connections: 1:2@500",
                )
            },
            read: |given, text| text.parse().map(|refusal| given.refusals.push(refusal)),
        },
        Argument {
            about: About {
                repeated: true,
                ..About::new(
                    "sever",
                    "NODE:NODE@TIME",
                    "A node finds that something between it and another one is lost for good",
                )
            },
            read: |given, text| text.parse().map(|severed| given.severed.push(severed)),
        },
        Argument {
            about: About {
                repeated: true,
                ..About::new("set-lease", "TIME@TIME", "Leases become so long: 250@500")
            },
            read: |given, text| text.parse().map(|lease| given.leases.push(lease)),
        },
        Argument {
            about: About {
                repeated: true,
                ..About::new(
                    "replace",
                    "NODE@TIME",
                    "A seed loses its disk and comes up blank, if another one knows of its cluster",
                )
            },
            read: |given, text| text.parse().map(|replaced| given.replaced.push(replaced)),
        },
        Argument {
            about: About::new(
                "asks",
                "K",
                "How often a seed asks after each start, or forever [default: forever; 1 for check]",
            ),
            read: |given, text| {
                given.asks = match text {
                    "forever" => None,
                    text => Some(number(text)?),
                };
                Ok(())
            },
        },
        Argument {
            about: About::new(
                "lives",
                "K",
                "How many lives a register gives [default: 1000; as many as nodes for check]",
            ),
            read: |given, text| number(text).map(|lives| given.lives = Some(lives)),
        },
        Argument {
            about: About::new(
                "beats",
                "K",
                "How often each of them renews [default: 3; 1 for check]",
            ),
            read: |given, text| number(text).map(|beats| given.beats = Some(beats)),
        },
        Argument {
            about: About::new(
                "views",
                "K",
                "How many views a register decides [default: 1000; 2 for check]",
            ),
            read: |given, text| number(text).map(|views| given.views = Some(views)),
        },
    ];

    /// As long as a register is ordered about.
    const UNTIL: Span = Span::units(1_500);

    fn small() -> ServiceSpec {
        ServiceSpec { exhaustible: true, asks: Some(1), ..ServiceSpec::default() }
    }

    fn server(algorithm: &str) -> Option<&'static str> {
        (algorithm == SeatNode::META.name).then_some("the register")
    }

    fn until(spec: &Spec) -> Span {
        let Ok(given) = spec.given_to::<Self>() else { return Self::UNTIL };
        let longest = given.leases.iter().map(|it| it.lease).fold(given.lease, Span::max);
        let wishes = given.joins.iter().chain(&given.leaves).chain(&given.replaced);
        let faults = spec.crashes.iter().chain(&spec.recoveries);
        let mut times: Vec<Time> = wishes.chain(faults).map(|it| it.at).collect();
        times.extend(given.refusals.iter().chain(&given.severed).map(|it| it.at));
        times.extend(given.leases.iter().map(|it| it.at));
        times.extend(spec.restarts.iter().map(|it| it.up));
        times.extend(spec.pauses.iter().map(|it| it.until));
        times.extend(spec.partitions.iter().map(|it| it.until));
        times.extend(spec.cuts.iter().filter_map(|it| it.during.until));
        let last = times.into_iter().max().unwrap_or(Time::ZERO).since(Time::ZERO);
        Self::UNTIL.max(last + longest.times(LEASES))
    }

    fn setup(spec: &Spec, _: &Topology) -> Result<Setup, BadInput> {
        let given = spec.given_to::<Self>()?;
        let leases = given.leases.iter().map(|it| ("--set-lease", it.lease));
        for (argument, lease) in leases.chain([("--lease", given.lease)]) {
            if lease < LEASE_MIN {
                return Err(BadInput::new(argument, "it is shorter than a microsecond"));
            }
        }
        let usual = match given.exhaustible {
            true => Bounds::default(),
            false => Bounds { lives: Some(1_000), beats: 3, views: 1_000 },
        };
        if given.asks == Some(0) {
            return Err(BadInput::new("--asks", "0 is not a number from 1 to 255, or forever"));
        }
        let bounds = Bounds {
            lives: given.lives.or(usual.lives),
            beats: given.beats.unwrap_or(usual.beats),
            views: given.views.unwrap_or(usual.views),
        };
        /// More beats than these are not all told apart.
        const BEATS_MAX: u64 = 1_000;
        if bounds.beats > BEATS_MAX {
            let reason = format!("{} is not a number from 0 to {BEATS_MAX}", bounds.beats);
            return Err(BadInput::new("--beats", reason));
        }
        Ok(Setup {
            lease: given.lease,
            evidence: given.evidence,
            trust_refusal: given.trust_refusal,
            outside: outside(spec)?,
            asks: given.asks,
            bounds,
        })
    }

    fn admit(spec: &Spec, promise: &Promise) -> Result<(), BadInput> {
        let (given, usual) = (spec.given_to::<Self>()?, ServiceSpec::default());
        let of_seats = [
            ("--lease", given.lease != usual.lease && *promise != Promise::Register),
            ("--no-evidence", !given.evidence),
            ("--trust-refusal", given.trust_refusal),
            ("--witnesses", given.witnesses.is_some()),
            ("--join", !given.joins.is_empty()),
            ("--leave", !given.leaves.is_empty()),
            ("--refused", !given.refusals.is_empty()),
            ("--sever", !given.severed.is_empty()),
            ("--set-lease", !given.leases.is_empty()),
        ];
        let of_seeds = [("--replace", !given.replaced.is_empty())];
        let of_registers = [
            ("--lives", given.lives.is_some()),
            ("--beats", given.beats.is_some()),
            ("--views", given.views.is_some()),
        ];
        let (seats, seeds, registers) =
            (SeatNode::META.name, SeedNode::META.name, RegisterNode::META.name);
        let mine = spec.algorithm.as_str();
        let given = [(seats, &of_seats[..]), (seeds, &of_seeds), (registers, &of_registers)];
        for (owner, arguments) in given.into_iter().filter(|(owner, _)| *owner != mine) {
            if let Some((argument, _)) = arguments.iter().find(|(_, given)| *given) {
                return Err(BadInput::new(argument, format!("only {owner} takes it, not {mine}")));
            }
        }
        Ok(())
    }

    fn users(spec: &Spec, _: &Setup) -> Result<Users, BadInput> {
        let given = spec.given_to::<Self>()?;
        if spec.algorithm == RegisterNode::META.name {
            return Ok(Users::Orders);
        }
        if spec.algorithm == SeedNode::META.name {
            let replaced = given.replaced.iter().map(|it| at(spec, "--replace", it));
            let replaced = replaced.collect::<Result<Vec<_>, _>>()?;
            return Ok(Users::Seeds(Seeds::new(spec.nodes, &replaced)));
        }
        let mut seats = Seats::new(spec.nodes.saturating_sub(1));
        let mut wishes: Vec<(NodeId, Span, Wish)> = Vec::new();
        for (argument, changes, command) in
            [("--join", &given.joins, Command::Join), ("--leave", &given.leaves, Command::Leave)]
        {
            for change in changes {
                let (node, at) = at(spec, argument, change)?;
                wishes.push((member(spec, argument, node)?, at, Wish::Give(command.clone())));
            }
        }
        let refused: fn(NodeId) -> Wish = Wish::Refused;
        for (argument, found, wish) in
            [("--refused", &given.refusals, refused), ("--sever", &given.severed, Wish::Severed)]
        {
            for BetweenSpec { by, of, at } in found {
                let node = |number| member(spec, argument, spec.node(argument, number)?);
                wishes.push((node(*by)?, at.since(Time::ZERO), wish(node(*of)?)));
            }
        }
        for LeaseSpec { lease, at } in &given.leases {
            let set = Wish::Give(Command::Lease(*lease));
            wishes.push((NodeId::at(0), at.since(Time::ZERO), set));
        }
        for (node, at, wish) in wishes {
            seats.plans[node.index()].push((at, wish));
        }
        seats.plans.iter_mut().for_each(|plan| plan.sort_by_key(|(at, _)| *at));
        seats.witnesses = match &given.witnesses {
            Some(numbers) => spec.node_set("--witnesses", numbers)?,
            None => NodeSet::first(spec.nodes.saturating_sub(1)),
        };
        Ok(Users::Seats(seats))
    }

    fn measures(spec: &Spec) -> Course {
        Course::new(&spec.algorithm)
    }

    fn seen(fact: Fact<'_, Command, Event>) -> Seen {
        let event = match fact {
            Fact::Event(Event::Seat(event)) => event,
            Fact::Event(Event::Founding(event)) => {
                return match event {
                    founding::Event::Founded(_) => Seen::begin(Phase::Leading),
                    founding::Event::Joined(_) => Seen::begin(Phase::Member),
                    founding::Event::Pledged(_) => Seen::word("pledges itself"),
                    founding::Event::Taken(..) | founding::Event::OtherList(_) => {
                        Seen::word("finds a seed that will not follow")
                    }
                };
            }
            Fact::Command(Command::Replace) => {
                return Seen { change: Some(Change::End), ..Seen::word("loses its disk") };
            }
            Fact::Command(Command::Join) => return Seen::word("wants a seat"),
            Fact::Command(Command::Leave) => return Seen::word("gives its seat up"),
            Fact::Command(Command::Exited(..)) => return Seen::word("hears of a death"),
            Fact::Command(_) | Fact::Crashed | Fact::Recovered => return Seen::default(),
        };
        match event {
            seat::Event::Installed { epoch, .. } => {
                Seen { view: Some(ViewId(epoch.0)), ..Seen::begin(Phase::Member) }
            }
            seat::Event::Presides { .. } => Seen::begin(Phase::Leading),
            seat::Event::Lost => Seen::begin(Phase::Member),
            seat::Event::Out(_) | seat::Event::Left => Seen::change(Change::End),
            seat::Event::Lives(_) => Seen::word("is given a life"),
            seat::Event::Stopped(_) => Seen::word("grants nothing more"),
            seat::Event::Until(_) | seat::Event::Register(Deed::Renewed(..)) => Seen::nothing(),
            seat::Event::Register(Deed::Decided { .. }) => Seen::word("decides a view"),
            seat::Event::Register(_) => Seen::word("does what it is ordered"),
        }
    }

    fn figures(course: &Course, report: &Report, _: Span) -> Figures {
        Figures {
            course: course.at(report.end),
            messages: report.messages,
            by_kind: report.by_kind.clone(),
        }
    }
}

/// A node and a time.
fn at(spec: &Spec, argument: &str, change: &NodeAt) -> Result<(NodeId, Span), BadInput> {
    Ok((spec.node(argument, change.node)?, change.at.since(Time::ZERO)))
}

/// A node that may be a member.
fn member(spec: &Spec, argument: &str, node: NodeId) -> Result<NodeId, BadInput> {
    match node.index() + 1 < spec.nodes {
        true => Ok(node),
        false => Err(BadInput::new(argument, format!("node {node} has the register"))),
    }
}

/// Who joins before it leaves: it was no member from the start.
fn outside(spec: &Spec) -> Result<NodeSet, BadInput> {
    let given = spec.given_to::<Service>()?;
    let joins_first = |join: &&NodeAt| {
        let earlier = given.leaves.iter().chain(&given.joins);
        earlier.filter(|it| it.node == join.node).all(|it| it.at >= join.at)
    };
    let first = given.joins.iter().filter(joins_first);
    first.map(|join| spec.node("--join", join.node)).collect()
}
