//! What all nodes are told, and an algorithm among the members of a view.

use core::hash::{Hash, Hasher};

use quorate_core::{Family, Scene, Solution};

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
