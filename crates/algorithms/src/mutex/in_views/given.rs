//! What all nodes are told, and the algorithm among the members of a view.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use quorate_core::{NodeId, Scene, Shape, Solution, Topology};

use crate::mutex::{Mutex, Setup};

/// What all nodes are told when a run begins, and what does not change in it.
#[derive(Debug)]
pub(super) struct Given<A: Solution<Family = Mutex>> {
    pub(super) setup: Setup,
    pub(super) config: A::Config,
}

// It tells no two states of a run apart.
impl<A: Solution<Family = Mutex>> PartialEq for Given<A> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<A: Solution<Family = Mutex>> Eq for Given<A> {}

impl<A: Solution<Family = Mutex>> Hash for Given<A> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<A: Solution<Family = Mutex>> Given<A> {
    /// The algorithm among so many members, with the options as given.
    pub(super) fn as_given(&self, count: usize, holder: Option<NodeId>) -> Scene<A> {
        let setup = self.setup.in_view(count, holder);
        let shape = A::traits(&self.config).shape;
        Scene::new(laid_out(shape, count, &setup), setup, self.config.clone())
    }

    /// The algorithm among so many members; options that make no sense there have their defaults.
    pub(super) fn scene(&self, count: usize, holder: Option<NodeId>) -> Scene<A> {
        let scene = self.as_given(count, holder);
        match A::admit(&scene) {
            Ok(()) => scene,
            Err(_) => Scene { config: A::usual(&scene.config), ..scene },
        }
    }
}

/// Members linked in the way that an algorithm needs.
fn laid_out(shape: Shape, count: usize, setup: &Setup) -> Topology {
    match shape {
        Shape::Complete => Topology::complete(count),
        Shape::Ring => Topology::ring(count),
        Shape::TwoWayRing => Topology::ring(count).two_way(),
        Shape::Tree | Shape::Graph => {
            let edges: Vec<_> = setup.edges().collect();
            Topology::undirected(count, &edges).expect("each member has one parent among them")
        }
    }
}
