//! Named locks among the members of a view.
//!
//! A lock is a name in a namespace. It is used by anybody who names it, and costs nothing while nobody
//! does. Among the members each lock has an *instance* of an algorithm of mutual exclusion, begun by
//! the first wish for it; inside of a process a [`Slot`] has those of its users who wait for it or hold
//! it. Everything of a view is forgotten when it ends, but who holds what, which its holder knows, and
//! who waits, which each process knows of its own users.
//!
//! | what | where |
//! |---|---|
//! | what every step looks at first: the view, whether it is open, the lease | `gate.rs` |
//! | users of one lock at one process | `slot.rs` |
//! | the instance among the members: an algorithm of the catalogue, or a home that gives out rights | `instance.rs`, `plain.rs`, `rights.rs` |
//! | the beginning of a view: everybody says what it holds | `exchange.rs` |
//! | which instance a message belongs to | `steps.rs` |
//! | how what nobody uses is forgotten inside of a view | `collect.rs` |
//! | asking for a lock back, kindly or by force | `revoke.rs` |
//! | who leads: roles, observers, hand-over | `roles.rs` |
//! | who holds what and who waits for what, and circles of them | `census.rs` |
//!
//! # Views
//! From its stop to the next view nobody grants anything. When a view begins, every member says what its
//! users hold (HELD). Only when all have, instances may begin: with the holder that was named, or with
//! none; then wishes are put again, each process its own, the oldest first.
//!
//! # Generations
//! An instance that nobody uses is forgotten by all at once: its *home*, one of the members, asks all
//! whether they use it (CLOSE); who does not answers with the largest counter it knows of and does not
//! begin to use it (IDLE); if nobody does, all forget it (DROP), and nothing remains but a floor for the
//! counters of the namespace. The next instance of that name is another *generation*, numbered by the
//! home; what was said in an earlier one counts no more. Who begins to use a lock and does not know its
//! generation says so to the home, and to nobody else until the home has told.
//!
//! # Fences
//! A grant is numbered (view, counter), where the counter is one more than the largest that its process
//! knows of in this view. Every message carries the largest that its sender knows of, so that it grows
//! from holder to holder as [`InViews`](quorate_algorithms::mutex::InViews) explains.
//!
//! # Roles
//! A role is a lock whose queue is ordered by priority: who holds it leads, and its fence is the term. Every
//! cluster has a namespace for them, [`ROLES`], which nobody has to define.

mod census;
mod collect;
mod exchange;
mod gate;
mod instance;
mod plain;
mod revoke;
mod rights;
mod roles;
mod slot;
mod space;
mod steps;
mod words;

pub use gate::{Gate, Port};
pub use rights::Msg as RightsMsg;
pub use roles::ROLES;
pub use slot::{BURST_MAX, Slot};
pub use space::{BadSpace, Kind, Limits, LockSpace};
pub use words::{
    Body, Event, Fence, Frame, Held, Inner, KINDS, LockId, Loss, Mode, Outlet, Owner, Patience,
    Refused, Report, Revoke, Text, Value, Waits, Wish, WishId, Word,
};

#[cfg(test)]
mod tests;
