//! Fences, and the gate that verifies them at the guarded resource.
//!
//! A lock keeps others out for as long as its holder *knows* that it has it. A holder that stands still
//! (a long collection of garbage, a suspended machine, a write that is stuck in a queue) does not know
//! when its time is over, and what it sends then comes after what the next holder sends. No lock service
//! can prevent that: only the resource sees both. So every grant carries a [`Fence`], a number that grows
//! with every grant, and the resource has a [`Gate`], which refuses what is older than what it has seen.
//!
//! This crate is for resources. It depends on nothing and knows nothing of clusters, and it serves any
//! lock whose tokens grow.
//!
//! | | remembers | for |
//! |---|---|---|
//! | [`MemoryGate`] | until the process ends | what ends with the process too |
//! | [`FileGate`] | over crashes, in a file of its own | a server that keeps its data in files |
//! | [`sql`] | in a table beside the data, in the same transaction | PostgreSQL, SQLite |
//!
//! The guide is `docs/guide/fencing.md`; an HTTP service with a gate is `examples/http.rs`.

mod doors;
mod fence;
mod file;
mod gate;
mod memory;
mod names;
pub mod sql;

pub use fence::{Fence, ParseFenceError, TEXT_LEN};
pub use file::{Contents, Damage, FileGate, OpenError};
pub use gate::{Gate, NAME_MAX, NAMES_DEFAULT, NAMES_MAX, Pass, Refusal, of_place};
pub use memory::MemoryGate;

/// The examples of the documents are tested as they stand there.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide/fencing.md")]
    struct Guide;
}
