//! What all nodes are told, and an algorithm among the members of a view.

use core::hash::{Hash, Hasher};

use quorate_core::{Boot, Channels, Family, NodeSet, Scene, Shape, Sole, Solution, Traits};

use super::tenant::Content;
use super::{Founding, Hall, KINDS, Ledger, MAJORITY_KINDS, Majority, Pace, Tenant, Terms};

/// What all nodes are told when a run begins, and what does not change in it.
#[derive(Debug)]
pub(crate) struct Given<A: Solution> {
    pub(crate) setup: <A::Family as Family>::Setup,
    pub(crate) config: A::Config,
}

// It tells no two states of a run apart.
impl<A: Solution> PartialEq for Given<A> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<A: Solution> Eq for Given<A> {}

impl<A: Solution> Hash for Given<A> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<A: Solution> Given<A> {
    /// What the node that boots is given.
    pub(crate) fn to<T>(boot: &Boot<'_, T>) -> Self
    where
        T: Solution<Family = A::Family, Config = A::Config>,
    {
        Self { setup: boot.setup.clone(), config: boot.config.clone() }
    }

    /// The algorithm among so many members who are told this, with the options as given.
    pub(crate) fn as_given(&self, count: usize, setup: <A::Family as Family>::Setup) -> Scene<A> {
        let shape = A::traits(&self.config).shape;
        Scene::new(shape.laid_out(count), setup, self.config.clone())
    }

    /// The algorithm among so many members; options that make no sense there have their defaults.
    pub(crate) fn among(&self, count: usize, setup: <A::Family as Family>::Setup) -> Scene<A> {
        let scene = self.as_given(count, setup);
        match A::admit(&scene) {
            Ok(()) => scene,
            Err(_) => Scene { config: A::usual(&scene.config), ..scene },
        }
    }
}

impl<T: Tenant> Hall<T> {
    /// The node that boots, with this tenant; a majority decides on the views, and everybody whom
    /// it can send to may be a member.
    pub(crate) fn boot_with<D: Content>(boot: &Boot<'_, Self>, tenant: T) -> Self
    where
        T::Terms: Terms<Agreed = D, Authority = Majority<D>>,
        Self: Solution<Stable = Sole<Ledger<D>>>,
    {
        let mut everybody = boot.neighbours.iter().collect::<NodeSet>();
        everybody.insert(boot.me);
        let pace = Pace::default();
        let founding = Founding {
            me: boot.me,
            boot: boot.life,
            everybody,
            founders: boot.view.set(),
            pace: Some(pace),
        };
        let authority = Majority::new(Some(pace.patience), boot.kept.sole().cloned());
        Self::new(founding, authority, tenant)
    }
}

/// What is true of an algorithm in views on which a majority decides, where this is true of it alone.
pub(crate) fn traits_in_views(alone: Traits) -> Traits {
    Traits {
        shape: Shape::Complete,
        channels: Channels::Fifo,
        kinds: alone.kinds.into_iter().chain(KINDS).chain(MAJORITY_KINDS).collect(),
        listens: true,
        ..alone
    }
}
