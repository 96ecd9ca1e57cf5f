//! What the lab needs to know of a family, and the one list of families: from a name to functions.
//!
//! An algorithm on the bare network has a simulator of its own type, which is fast. Everything else
//! (layers, checks, replays, verdicts) runs the family's sum of all algorithms over all layers, and
//! is compiled once for each family.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::sync::LazyLock;

use quorate_algorithms::detector::Detector;
use quorate_algorithms::election::Election;
use quorate_algorithms::group::Group;
use quorate_algorithms::mutex::Mutex;
use quorate_algorithms::{Catalogued, Layer, Maker, Portable, nearest};
use quorate_check::{Plan, Progress, Report as Explored};
use quorate_core::trace::Record;
use quorate_core::{
    Algorithm, BadOption, Fact, Meta, NodeId, Options, Scene, Solution, Span, Topology, Traits,
    Workload,
};
use quorate_service::family::Service;
use quorate_sim::{Observer, Report};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::diagram::Seen;
use crate::effect::is_never;
use crate::exhaust::explore;
use crate::figures::{Figures, Named};
use crate::grown;
use crate::hand::{self, Handed, Move};
#[cfg(feature = "net")]
use crate::net::{self, Place};
use crate::replay::{run_again, states_after};
use crate::simulate::run;
use crate::spec::bad_option;
use crate::text::Unclear;
use crate::trace_file::{BadTrace, TraceFile};
use crate::verify::{Judged, Verified, judge_ours, judge_theirs};
use crate::{BadInput, Replayed, Spec, Watch};

/// A family that can be experimented with.
pub trait Study: Catalogued {
    /// What a run of it is given.
    type Given: Clone + PartialEq + Debug + Default + Serialize + DeserializeOwned;
    /// Its users.
    type Users: Workload<Self::Command, Self::Event>;
    /// What it measures while a run goes on.
    type Measures: Observer<Self::Command, Self::Event>;
    /// What comes of that.
    type Figures: Figures;

    /// Its arguments on the command line.
    const ARGUMENTS: &'static [Argument<Self::Given>];

    /// When a simulation ends if nobody says so: when nothing happens any more, or now at the latest.
    const UNTIL: Span = Span(u64::MAX);

    /// When a simulation of this ends if nobody says so.
    fn until(_spec: &Spec) -> Span {
        Self::UNTIL
    }

    /// What the last node of a run of this algorithm is called, if it is there for the others and does
    /// not count among those that are asked for.
    fn server(_algorithm: &str) -> Option<&'static str> {
        None
    }

    /// What a check is given if nothing is said: less than a simulation.
    fn small() -> Self::Given {
        Self::Given::default()
    }

    /// The same with one of what is repeated, and how often it is.
    fn once(given: &Self::Given) -> (Self::Given, u64) {
        (given.clone(), 1)
    }

    /// How many nodes there are by what is said of them one by one.
    fn counted(_given: &Self::Given) -> Option<usize> {
        None
    }

    /// The election on whose tree it runs.
    fn tree_from(_given: &Self::Given) -> Option<&str> {
        None
    }

    /// The election whose leader is the coordinator.
    fn coordinator_from(_given: &Self::Given) -> Option<&str> {
        None
    }

    /// How many instances run side by side, if several.
    fn regions(_given: &Self::Given) -> Option<u8> {
        None
    }

    /// What all nodes are told, who are linked like this.
    ///
    /// # Errors
    /// The first argument of the family that makes no sense.
    fn setup(spec: &Spec, topology: &Topology) -> Result<Self::Setup, BadInput>;

    /// Can an algorithm that promises this do what it is asked for?
    ///
    /// # Errors
    /// The first argument of the family that it cannot heed.
    fn admit(_spec: &Spec, _promise: &Self::Promise) -> Result<(), BadInput> {
        Ok(())
    }

    /// Does it make sense to explore this?
    ///
    /// # Errors
    /// The first argument of a check that makes no sense for the family.
    fn admit_plan(_plan: &Plan) -> Result<(), BadInput> {
        Ok(())
    }

    /// The users.
    ///
    /// # Errors
    /// The first argument of the family that makes no sense.
    fn users(spec: &Spec, setup: &Self::Setup) -> Result<Self::Users, BadInput>;

    /// Is it followed in this run what happened before what?
    ///
    /// # Errors
    /// If the run is of another family.
    fn follows_causes(_spec: &Spec) -> Result<bool, BadInput> {
        Ok(false)
    }

    /// Measures of a run that has not begun.
    fn measures(spec: &Spec) -> Self::Measures;

    /// What pictures show of something that users wish or are told.
    fn seen(fact: Fact<'_, Self::Command, Self::Event>) -> Seen;

    /// Who is a member from the start, where that changes.
    fn members(_setup: &Self::Setup) -> Vec<NodeId> {
        Vec::new()
    }

    /// The members that an event tells of.
    fn told(_event: &Self::Event) -> Vec<NodeId> {
        Vec::new()
    }

    /// What nodes are called beside their numbers, by node; nothing if nothing.
    fn names(_setup: &Self::Setup) -> Vec<String> {
        Vec::new()
    }

    /// What was measured; times in units of `unit`, T.
    fn figures(measures: &Self::Measures, report: &Report, unit: Span) -> Self::Figures;
}

/// An argument of a family on the command line.
pub struct Argument<G: 'static> {
    /// What can be said of it without the family.
    pub about: About,
    /// Takes over what its text says; of a flag, the text is empty.
    pub read: fn(&mut G, &str) -> Result<(), Unclear>,
}

/// What help says of an argument.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name, without dashes.
    pub name: &'static str,
    /// What follows it; nothing if it is a flag.
    pub value: Option<&'static str>,
    /// What it is about.
    pub help: &'static str,
    /// Is it for simulations only?
    pub simulated: bool,
    /// Can it be given several times?
    pub repeated: bool,
    /// The file that its text names, if it does.
    pub file: fn(&str) -> Option<FileOf<'_>>,
}

impl About {
    /// An argument with a value for all engines, said once and in so many words.
    pub(crate) const fn new(name: &'static str, value: &'static str, help: &'static str) -> Self {
        let value = Some(value);
        Self { name, value, help, simulated: false, repeated: false, file: |_| None }
    }
}

/// A file whose text is to be read in place of its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileOf<'a> {
    /// Where it is.
    pub path: &'a str,
    /// What stands before its text.
    pub before: &'static str,
    /// Is the name no file but the text itself if there is no such file?
    pub may_be_text: bool,
}

/// A family in the list of families.
pub trait Listed: Study {
    /// What the family is given, if it is this one.
    fn given_in(family: &FamilySpec) -> Option<&Self::Given>;

    /// Figures of this family, of whatever family they may be.
    fn measured(figures: Self::Figures) -> Measured;

    /// The figures, if they are of this family.
    fn figures_in(measured: Measured) -> Option<Self::Figures>;
}

/// Runs a simulation.
type Simulation = fn(&Spec, Watch<'_>) -> Result<(Report, Measured), BadInput>;
/// Runs a spec over a real network.
#[cfg(feature = "net")]
type LiveRun = fn(&Spec, &Place, Watch<'_>) -> Result<(Report, Measured), BadInput>;
/// Explores every interleaving.
type Exploration =
    fn(&Spec, &Plan, &mut dyn FnMut(&Progress) -> bool) -> Result<Explored, BadInput>;
/// How the nodes look after these records, by node; nothing for one that is down.
type States = fn(&Spec, &[Record]) -> Result<Vec<Option<String>>, BadInput>;
/// Judges a trace of one of our algorithms.
type Judgement = fn(&Spec, &TraceFile) -> Result<Result<Verified, BadTrace>, BadInput>;

/// An algorithm by name.
pub(crate) struct Entry {
    pub(crate) meta: &'static Meta,
    /// Simulates it on the bare network.
    pub(crate) simulate: Simulation,
    /// Is it meant for graphs without a cycle?
    pub(crate) acyclic: bool,
    /// Does it set timers?
    pub(crate) keeps_timers: bool,
    /// Has it records that survive a crash?
    pub(crate) persists: bool,
}

/// A family by name: what can be done with all of its algorithms, over all of their layers.
pub(crate) struct Problem {
    pub(crate) name: &'static str,
    /// Its arguments on the command line.
    arguments: Vec<&'static About>,
    /// What a simulation is given if nothing is said.
    usual: fn() -> FamilySpec,
    /// What a check is given if nothing is said.
    small: fn() -> FamilySpec,
    /// When a simulation ends if nothing is said, at the latest.
    pub(crate) until: fn(&Spec) -> Span,
    /// What the node is called that is there for the others.
    server: fn(&str) -> Option<&'static str>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) simulate: Simulation,
    #[cfg(feature = "net")]
    pub(crate) net: LiveRun,
    #[cfg(feature = "net")]
    pub(crate) net_node: fn(&Spec, net::Birth) -> std::io::Result<()>,
    pub(crate) explore: Exploration,
    pub(crate) replay: fn(&Spec, &[Record]) -> Result<Replayed, BadInput>,
    pub(crate) states: States,
    pub(crate) by_hand: fn(&Spec, &Plan, &[Move]) -> Result<Handed, BadInput>,
    pub(crate) judge_ours: Judgement,
    pub(crate) judge_theirs: fn(&TraceFile) -> Result<Verified, BadTrace>,
    pub(crate) traits: fn(&Spec) -> Result<Traits, BadInput>,
    pub(crate) scenery: fn(&Spec) -> Result<Scenery, BadInput>,
    sight: Sight,
}

/// What pictures show of what a run is given.
pub(crate) struct Scenery {
    pub(crate) topology: Topology,
    pub(crate) members: Vec<NodeId>,
    pub(crate) names: Vec<String>,
}

/// What pictures show of commands and events that a trace writes as text.
#[derive(Clone, Copy)]
pub(crate) struct Sight {
    pub(crate) command: fn(&str) -> Seen,
    pub(crate) event: fn(&str) -> Seen,
    /// The members that an event tells of.
    pub(crate) members: fn(&str) -> Vec<NodeId>,
}

/// Makes the list of families, and the types that have one of each.
macro_rules! families {
    ($($(#[$about:meta])+ $family:ident),+ $(,)?) => {
        /// What a run is given, by family.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum FamilySpec {
            $($(#[$about])+ $family(<$family as Study>::Given),)+
        }

        impl FamilySpec {
            /// How many nodes there are by what is said of them one by one.
            pub(crate) fn counted(&self) -> Option<usize> {
                match self {
                    $(Self::$family(given) => $family::counted(given),)+
                }
            }

            /// How many instances run side by side, if several.
            pub(crate) fn regions(&self) -> Option<u8> {
                match self {
                    $(Self::$family(given) => $family::regions(given),)+
                }
            }

            /// The same with one of what is repeated, and how often it is.
            pub(crate) fn once(&self) -> (Self, u64) {
                match self {
                    $(Self::$family(given) => {
                        let (once, times) = $family::once(given);
                        (Self::$family(once), times)
                    })+
                }
            }

            /// Takes over what the text of an argument says; nothing if the family has no such one.
            fn read(&mut self, name: &str, text: &str) -> Option<Result<(), Unclear>> {
                match self {
                    $(Self::$family(given) => take::<$family>(given, name, text),)+
                }
            }
        }

        $(impl From<<$family as Study>::Given> for FamilySpec {
            fn from(given: <$family as Study>::Given) -> Self {
                Self::$family(given)
            }
        })+

        /// What was measured, by family.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Measured {
            $($(#[$about])+ $family(<$family as Study>::Figures),)+
        }

        impl Figures for Measured {
            fn named(&self) -> Named {
                match self {
                    $(Self::$family(figures) => figures.named(),)+
                }
            }
        }

        $(impl Listed for $family {
            fn given_in(family: &FamilySpec) -> Option<&Self::Given> {
                match family {
                    FamilySpec::$family(given) => Some(given),
                    _ => None,
                }
            }

            fn measured(figures: Self::Figures) -> Measured {
                Measured::$family(figures)
            }

            fn figures_in(measured: Measured) -> Option<Self::Figures> {
                match measured {
                    Measured::$family(figures) => Some(figures),
                    _ => None,
                }
            }
        })+

        static PROBLEMS: LazyLock<Vec<Problem>> = LazyLock::new(|| vec![$(problem::<$family>()),+]);
    };
}

// A new family is a line here.
families! {
    /// Mutual exclusion.
    Mutex,
    /// Leader election.
    Election,
    /// Failure detection.
    Detector,
    /// Group communication.
    Group,
    /// The parts of the cluster.
    Service,
}

/// Takes over what the text of an argument says; nothing if the family has no such one.
fn take<F: Study>(given: &mut F::Given, name: &str, text: &str) -> Option<Result<(), Unclear>> {
    let argument = F::ARGUMENTS.iter().find(|argument| argument.about.name == name)?;
    Some((argument.read)(given, text))
}

fn problem<F: Listed + Judged>() -> Problem
where
    FamilySpec: From<F::Given>,
{
    Problem {
        name: F::NAME,
        arguments: F::ARGUMENTS.iter().map(|argument| &argument.about).collect(),
        usual: || F::Given::default().into(),
        small: || F::small().into(),
        until: F::until,
        server: F::server,
        entries: F::each::<Bare>(),
        simulate: |spec, watch| run(spec, stacked::<F>(spec)?, watch),
        #[cfg(feature = "net")]
        net: net::run::<F>,
        #[cfg(feature = "net")]
        net_node: net::node::<F>,
        explore: |spec, plan, go_on| explore(spec, stacked::<F>(spec)?, plan, go_on),
        replay: |spec, records| run_again(&stacked::<F>(spec)?, spec.faults()?, records),
        states: |spec, records| states_after(&stacked::<F>(spec)?, spec.faults()?, records),
        by_hand: |spec, plan, moves| hand::run::<F>(spec, &stacked::<F>(spec)?, plan, moves),
        judge_ours: |spec, trace| Ok(judge_ours(&stacked::<F>(spec)?, spec.faults()?, trace)),
        judge_theirs: judge_theirs::<F>,
        traits: |spec| Ok(stacked::<F>(spec)?.traits),
        scenery: |spec| {
            let Scene { topology, setup, .. } = stacked::<F>(spec)?;
            Ok(Scenery { topology, members: F::members(&setup), names: F::names(&setup) })
        },
        sight: Sight {
            members: |text| F::event(text).map_or_else(Vec::new, |event| F::told(&event)),
            command: |text| {
                let command = F::command(text);
                command.map_or_else(Seen::default, |command| F::seen(Fact::Command(&command)))
            },
            event: |text| {
                let event = F::event(text);
                event.map_or_else(Seen::default, |event| F::seen(Fact::Event(&event)))
            },
        },
    }
}

/// Makes the simulator of each algorithm on the bare network.
struct Bare;

impl<F: Listed> Maker<F> for Bare {
    type Made = Entry;

    fn make<A>() -> Entry
    where
        A: Algorithm<Family = F>,
        A::Msg: Portable,
    {
        Entry {
            meta: &A::META,
            acyclic: A::ACYCLIC,
            keeps_timers: !is_never::<A::Timer>(),
            persists: !is_never::<A::Stable>(),
            #[cfg(not(test))]
            simulate: |spec, watch| {
                let given = elected::<F>(spec, &A::META)?;
                let given = given.options_of(&A::META)?;
                let config = A::configure(&Options(&given)).map_err(|bad| unwanted(spec, bad))?;
                run(spec, spec.scene::<A>(config)?, watch)
            },
            // The unit tests of this crate have the sum simulate, which does the same: so the
            // simulators of all algorithms are not compiled for them once more.
            #[cfg(test)]
            simulate: |spec, watch| run(spec, stacked::<F>(spec)?, watch),
        }
    }
}

/// The scene of a run, of whatever algorithm and over whatever layers.
pub(crate) fn stacked<F: Listed>(spec: &Spec) -> Result<Scene<F::Stack>, BadInput> {
    let config = configured::<F>(spec)?;
    let mut layers = spec.over.layers()?;
    if let Some(count) = spec.family.regions() {
        if !layers.is_empty() {
            let reason = "several critical regions run on the bare network, without --over";
            return Err(BadInput::new("--regions", reason));
        }
        layers.push(Layer::Regions(count));
    }
    let stack = F::stack(config, &layers);
    spec.scene(stack.map_err(|bad| BadInput::new("--over", bad))?)
}

/// The algorithm of a run with its options.
pub(crate) fn configured<F: Listed>(spec: &Spec) -> Result<<F::Any as Solution>::Config, BadInput> {
    let meta = meta(&spec.algorithm)?;
    let given = elected::<F>(spec, meta)?;
    let given = given.options_of(meta)?;
    let config = F::configure(&spec.algorithm, &Options(&given));
    config.ok_or_else(|| unknown(&spec.algorithm))?.map_err(|bad| unwanted(spec, bad))
}

/// What is wrong with an option, by the argument that was typed: an election may have given it.
fn unwanted(spec: &Spec, bad: BadOption) -> BadInput {
    match bad.name == COORDINATOR && !spec.options.contains_key(COORDINATOR) {
        true => BadInput::new("--coordinator-from", bad.reason),
        false => bad_option(bad),
    }
}

/// The run with the coordinator that an election names, if it is to name one.
fn elected<'a, F: Listed>(spec: &'a Spec, meta: &Meta) -> Result<Cow<'a, Spec>, BadInput> {
    let Some(election) = F::coordinator_from(spec.given_to::<F>()?) else {
        return Ok(Cow::Borrowed(spec));
    };
    let bad = |reason: String| Err(BadInput::new("--coordinator-from", reason));
    if !meta.options.iter().any(|option| option.name == COORDINATOR) {
        return bad(format!("{} has no coordinator", meta.name));
    }
    if spec.options.contains_key(COORDINATOR) {
        return bad("--coordinator names it already".to_owned());
    }
    let leader = grown::leader(election, spec)?;
    let mut spec = spec.clone();
    spec.options.insert(COORDINATOR.to_owned(), leader.to_string());
    Ok(Cow::Owned(spec))
}

/// The option that names a coordinator.
const COORDINATOR: &str = "coordinator";

/// All algorithms of all families.
pub fn catalogue() -> impl Iterator<Item = &'static Meta> + Clone {
    PROBLEMS.iter().flat_map(|problem| problem.entries.iter().map(|entry| entry.meta))
}

/// The names of all families.
pub fn families() -> impl Iterator<Item = &'static str> + Clone {
    PROBLEMS.iter().map(|problem| problem.name)
}

/// The algorithm of this name.
///
/// # Errors
/// If there is none, with the name that was probably meant.
pub fn meta(name: &str) -> Result<&'static Meta, BadInput> {
    find(name).map(|(_, entry)| entry.meta)
}

/// The algorithm of this name, if there is one.
#[must_use]
pub fn known(name: &str) -> Option<&'static Meta> {
    catalogue().find(|meta| meta.name == name)
}

/// The arguments of all families, each with the name of its family; one that several families have, with
/// that of the first of them.
pub fn arguments() -> impl Iterator<Item = (&'static str, &'static About)> {
    let all =
        || PROBLEMS.iter().flat_map(|p| p.arguments.iter().map(move |about| (p.name, *about)));
    let first = move |name| all().find(|(_, about)| about.name == name).map(|(family, _)| family);
    all().filter(move |(family, about)| first(about.name) == Some(*family))
}

/// What a simulation of this algorithm is given if nothing is said. An algorithm of no family gets
/// that of the first one: it is refused where it is looked for.
pub(crate) fn usual(algorithm: &str) -> FamilySpec {
    let family = algorithm.split('/').next().and_then(family);
    (family.unwrap_or(&PROBLEMS[0]).usual)()
}

impl Spec {
    /// A run of an algorithm for a check: the family is given less than in a simulation.
    ///
    /// # Errors
    /// If there is no such algorithm.
    pub fn small(algorithm: &str, nodes: usize) -> Result<Self, BadInput> {
        let (problem, _) = find(algorithm)?;
        Ok(Self::new(algorithm, nodes).given((problem.small)()))
    }

    /// Takes over what the text of an argument of the family says.
    ///
    /// # Errors
    /// If it says nothing that makes sense, or is the argument of another family.
    pub fn read(&mut self, name: &str, text: &str) -> Result<(), BadInput> {
        let bad = |reason: &dyn fmt::Display| BadInput::new(&format!("--{name}"), reason);
        match self.family.read(name, text) {
            Some(taken) => taken.map_err(|unclear| bad(&unclear)),
            None => {
                let whose = arguments().find(|(_, about)| about.name == name);
                let whose = whose.map_or("other", |(family, _)| family);
                Err(bad(&format!("only {whose} algorithms take it, not {}", self.algorithm)))
            }
        }
    }
}

/// What the last node of a run of this algorithm is called, if it is there for the others: so many nodes as
/// are asked for are there besides.
#[must_use]
pub fn server(algorithm: &str) -> Option<&'static str> {
    let (problem, _) = find(algorithm).ok()?;
    (problem.server)(algorithm)
}

/// What engines have to know of the algorithm of a run, over its layers.
///
/// # Errors
/// The first argument that makes no sense.
pub fn traits(spec: &Spec) -> Result<Traits, BadInput> {
    let (problem, _) = find(&spec.algorithm)?;
    (problem.traits)(spec)
}

/// Who can talk to whom in a run.
///
/// # Errors
/// The first argument that makes no sense.
pub fn topology(spec: &Spec) -> Result<Topology, BadInput> {
    let (problem, _) = find(&spec.algorithm)?;
    (problem.scenery)(spec).map(|scenery| scenery.topology)
}

/// The algorithm of this name, and its family.
pub(crate) fn find(name: &str) -> Result<(&'static Problem, &'static Entry), BadInput> {
    let all = PROBLEMS.iter().flat_map(|problem| problem.entries.iter().map(move |e| (problem, e)));
    let mut named = all.filter(|(_, entry)| entry.meta.name == name);
    named.next().ok_or_else(|| unknown(name))
}

/// The family of this name.
pub(crate) fn family(name: &str) -> Option<&'static Problem> {
    PROBLEMS.iter().find(|problem| problem.name == name)
}

/// What pictures show of commands and events of this algorithm, or of all of a family; nothing if
/// there is no such family.
pub(crate) fn sight(algorithm: &str) -> Sight {
    let blind =
        Sight { command: |_| Seen::default(), event: |_| Seen::default(), members: |_| Vec::new() };
    let problem = algorithm.split('/').next().and_then(family);
    problem.map_or(blind, |problem| problem.sight)
}

fn unknown(name: &str) -> BadInput {
    let hint = match nearest(name, catalogue().map(|meta| meta.name)) {
        Some(near) => format!("did you mean {near}?"),
        None => "quorate algorithms lists what there is".to_owned(),
    };
    BadInput::new("ALGORITHM", format!("there is no {name}; {hint}"))
}
