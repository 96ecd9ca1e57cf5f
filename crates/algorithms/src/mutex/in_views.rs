//! Any algorithm of mutual exclusion in views: when somebody crashes, the others agree on who is
//! left and who is inside, and start it anew from that.
//!
//! # Idea
//! Most of the classic algorithms stop for ever when one node does: an answer, a vote or the token
//! does not come. To teach each of them what to do is as many problems as there are algorithms. But
//! all of them can be started with a given holder. So time is cut into *views*: numbered lists of
//! members, within which nobody fails by definition. When somebody does fail, all stop, say whether
//! they are inside, agree on the next view and on the holder, and start the algorithm again among
//! those who are left. Whoever was waiting asks again. What the algorithm knew before is forgotten,
//! and with it whatever a dead node owed to anybody.
//!
//! # Paper
//! None of its own. Views as barriers are those of K. P. Birman and T. A. Joseph (SOSP 1987), see
//! `group/virtual-synchrony`; tokens that grow with every entry are those of leases, as C. G. Gray
//! and D. R. Cheriton (SOSP 1989) have them, numbered.
//!
//! # Assumptions
//! Links are reliable and keep the order. Processes may crash, and come up again as new members. A
//! failure detector speaks; it may be wrong. Complete graph, whatever the algorithm needs: within a
//! view its ring or tree is laid out among the members. No timing, also where the bare algorithm
//! needs a bound on delays: timers that watch for failures (`Algorithm::watches`) are not set,
//! for within a view silence means nothing. A member that has stopped is silent, and alive.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | its own | as it says; with the number of the view and the largest counter | as it says |
//! | JOIN | a node comes up again, or was left out; again after a while | it is a member of the next view |
//! | LEAVE | a node wants to go, and its user is outside | it is not a member of the next view |
//! | FLUSH | the most senior member finds that a change is due | all stop |
//! | FLUSH-OK(inside), REPORT | stopped | the coordinator knows the holder |
//! | PREPARE, ACCEPT, ... | all have answered | a majority decides: the members, and the holder |
//! | VIEW, STATE | it is decided | the algorithm starts anew |
//! | DOUBT | a member has not been reached for some time | one of the two is left out |
//! | GONE, OUT | somebody counts on a life that is over | it does so no more |
//!
//! ```text
//! 3 is inside, 2 waits, 1 crashes with the token, the queue, the votes: whatever there was
//! 2  --FLUSH-->  3             2 is the most senior now
//! 2  <--FLUSH-OK(inside)--  3
//! 2  --PREPARE, ACCEPT-->  3   both are a majority of {1,2,3}
//! 2  --VIEW {2,3}, 3 is inside-->  3
//! 2 asks again, in the new view; 3 leaves, and 2 enters
//! ```
//!
//! # State
//! | field | meaning |
//! |---|---|
//! | the hall's | who belongs to the view, the change that is going on, early messages |
//! | `user` | what the local user has been told and wishes, which survives the view |
//! | `running` | the algorithm in this view; nothing from the moment when all stop |
//! | `counter` | the largest counter of an entry in this view that is known here |
//!
//! Members are named by rank within a view: node 1 of the algorithm is the most senior one. So are
//! nodes in the fields of its steps.
//!
//! # Safety
//! `safety`: within a view by the algorithm. From its answer to the next view nobody enters, so who
//! is inside at the end of a view is who said so; all members of the next one have answered. It is
//! the holder with whom the algorithm starts. `fencing`: an entry is given the token (view,
//! counter), where the counter is one more than the largest that its node knows of, and each
//! message carries the largest that its sender knows of. Of two entries in a view, a chain of
//! messages leads from the leaving of the first to the entering of the second: without one the
//! second node could not tell this run from one in which the first is still inside. The chain
//! carries the counter along.
//!
//! # Liveness
//! `liveness`: as the algorithm's in the last view, where all open wishes have been put again.
//! There is a last one if crashes and cuts end; it is reached if of each view a majority (or half,
//! with the most senior member) survives until the next one is decided, or comes up again. Users
//! whose node crashed do not wait any more, and nobody is inside after all have crashed.
//!
//! # Cost
//! That of the algorithm. A change of view with s members that go on: s-1 FLUSH, s-1 FLUSH-OK,
//! 2(s-1) to decide, or 4(s-1) if the most senior member is gone, s-1 VIEW; and each open wish
//! costs again.
//!
//! # Deviations
//! Fairness is not promised: stamps start anew with each view, and so do queues. What the algorithm
//! would persist is dropped, since whoever comes up again is a new member; what is kept are its votes
//! on views. Options that make no
//! sense in a smaller view (`--coordinator 5` of four) give way to their defaults; quorums are
//! those of the same system for fewer nodes, or rows and columns of a grid where there is none.
//!
//! # Known limits
//! A node that is taken for dead by mistake while it is inside learns of it (`Event::Lost`) only
//! when it hears of the next view; by then another one may be inside. This is what the tokens are
//! for: the guarded resource refuses the older one. Nobody is granted anything while a view
//! changes.

mod lock;

use quorate_core::{BadOption, Boot, Scene, Solution, Timing, Traits};

use super::{Mutex, Promise};
use crate::membership::{Given, Hall, traits_in_views};
pub use lock::{Counted, Holding, Lock};

impl<A: Solution<Family = Mutex>> Solution for InViews<A> {
    type Family = Mutex;
    type Config = A::Config;

    fn traits(config: &A::Config) -> Traits {
        let mut traits = traits_in_views(A::traits(config));
        if traits.timing == Timing::Synchronous {
            traits.timing = Timing::Asynchronous;
        }
        traits
    }

    fn usual(config: &A::Config) -> A::Config {
        A::usual(config)
    }

    fn promise(config: &A::Config) -> Promise {
        let mut promise = A::promise(config);
        (promise.fair, promise.fenced) = (false, true);
        promise
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        let Scene { setup, config, .. } = scene.clone();
        let holder = setup.holder;
        let setup_in_view = setup.in_view(scene.count(), holder);
        A::admit(&Given { setup, config }.as_given(scene.count(), setup_in_view))
    }

    fn watches(_: Self::Timer) -> bool {
        false
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let inside = boot.life.is_first() && boot.setup.holder == Some(boot.me);
        Self::boot_with(&boot, Lock::new(Given::to(&boot), inside))
    }
}

/// A node of the algorithm `A` in views.
pub type InViews<A> = Hall<Lock<A>>;

#[cfg(test)]
mod tests;
