//! What the lab needs to know of a family, and the way from a name to a type.

use quorate_algorithms::detector::Detector;
use quorate_algorithms::election::Election;
use quorate_algorithms::group::Group;
use quorate_algorithms::mutex::{InViews, Mutex};
use quorate_algorithms::{Catalogued, Portable, Reliable, Visitor, nearest};
use quorate_core::{Algorithm, Family, Meta, Span, Topology, Workload};
use quorate_sim::{Observer, Report};
use serde_json::Value;

use crate::{BadInput, Over, Spec};

/// A family that can be experimented with.
pub trait Study: Catalogued {
    /// Its users.
    type Users: Workload<Self::Command, Self::Event>;
    /// What it measures while a run goes on.
    type Measures: Observer<Self::Command, Self::Event>;

    /// When a simulation ends if nobody says so: when nothing happens any more, or now at the latest.
    const UNTIL: Span = Span(u64::MAX);

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

    /// The users.
    ///
    /// # Errors
    /// The first argument of the family that makes no sense.
    fn users(spec: &Spec, setup: &Self::Setup) -> Result<Self::Users, BadInput>;

    /// Measures of a run that has not begun.
    fn measures(spec: &Spec) -> Self::Measures;

    /// What was measured, as named in reports, in order; times in units of `unit`, T.
    fn figures(measures: &Self::Measures, report: &Report, unit: Span) -> Figures;
}

/// What was measured: names and values, in the order of the report.
pub type Figures = Vec<(&'static str, Value)>;

/// All algorithms of all families.
#[must_use]
pub fn catalogue() -> Vec<&'static Meta> {
    [Mutex::CATALOGUE, Election::CATALOGUE, Detector::CATALOGUE, Group::CATALOGUE].concat()
}

/// Calls the visitor with the type of the algorithm that a run is of, over what it runs.
///
/// # Errors
/// If there is none, with the name that was probably meant.
pub fn visit<V: Everywhere<R>, R>(spec: &Spec, visitor: V) -> Result<R, BadInput> {
    match spec.over {
        Over::Reliable => visit_named(&spec.algorithm, OnReliable(visitor)),
        Over::Bare | Over::Views => visit_untimed(spec, visitor),
    }
}

/// As [`visit`], for visitors that have no clock, as reliable links need one.
///
/// # Errors
/// As [`visit`], and if the run is over reliable links.
pub(crate) fn visit_untimed<V: Everywhere<R>, R>(spec: &Spec, visitor: V) -> Result<R, BadInput> {
    match spec.over {
        Over::Bare => visit_named(&spec.algorithm, visitor),
        Over::Reliable => {
            let reason =
                "reliable links read a clock, and in a check no time passes; simulate them";
            Err(BadInput::new("--over", reason))
        }
        Over::Views => {
            let name = meta(&spec.algorithm)?.name;
            let only = || format!("only mutex algorithms run in views, not {name}");
            let found = Mutex::visit(name, OnViews(visitor));
            found.unwrap_or_else(|| Err(BadInput::new("--over", only())))
        }
    }
}

/// A visitor of every family.
pub trait Everywhere<R>:
    Visitor<Mutex, Output = Result<R, BadInput>>
    + Visitor<Election, Output = Result<R, BadInput>>
    + Visitor<Detector, Output = Result<R, BadInput>>
    + Visitor<Group, Output = Result<R, BadInput>>
{
}

impl<R, V> Everywhere<R> for V where
    V: Visitor<Mutex, Output = Result<R, BadInput>>
        + Visitor<Election, Output = Result<R, BadInput>>
        + Visitor<Detector, Output = Result<R, BadInput>>
        + Visitor<Group, Output = Result<R, BadInput>>
{
}

/// Does the same with an algorithm over reliable links.
struct OnReliable<V>(V);

impl<F: Family, V: Visitor<F>> Visitor<F> for OnReliable<V> {
    type Output = V::Output;

    fn visit<A>(self) -> V::Output
    where
        A: Algorithm<Family = F>,
        A::Msg: Portable,
    {
        self.0.visit::<Reliable<A>>()
    }
}

/// Does the same with an algorithm of mutual exclusion in views.
struct OnViews<V>(V);

impl<V: Visitor<Mutex>> Visitor<Mutex> for OnViews<V> {
    type Output = V::Output;

    fn visit<A>(self) -> V::Output
    where
        A: Algorithm<Family = Mutex>,
        A::Msg: Portable,
    {
        self.0.visit::<InViews<A>>()
    }
}

fn visit_named<V: Everywhere<R>, R>(name: &str, visitor: V) -> Result<R, BadInput> {
    let known = |catalogue: &[&Meta]| catalogue.iter().any(|meta| meta.name == name);
    let found = if known(Mutex::CATALOGUE) {
        Mutex::visit(name, visitor)
    } else if known(Election::CATALOGUE) {
        Election::visit(name, visitor)
    } else if known(Detector::CATALOGUE) {
        Detector::visit(name, visitor)
    } else {
        Group::visit(name, visitor)
    };
    found.unwrap_or_else(|| Err(unknown(name)))
}

/// The algorithm of this name.
///
/// # Errors
/// If there is none, with the name that was probably meant.
pub fn meta(name: &str) -> Result<&'static Meta, BadInput> {
    catalogue().into_iter().find(|meta| meta.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> BadInput {
    let names = catalogue().into_iter().map(|meta| meta.name);
    let hint = match nearest(name, names) {
        Some(near) => format!("did you mean {near}?"),
        None => "quorate algorithms lists what there is".to_owned(),
    };
    BadInput::new("ALGORITHM", format!("there is no {name}; {hint}"))
}
