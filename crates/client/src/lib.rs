//! A client of an agent: locks, leaders and groups of a cluster without being a member of it.
//!
//! A [`Client`] has a session with an agent, and keeps it up from a thread of its own: it works under any
//! runtime, and without one. What it may rely on is what the agent answered last: from when it asked, nine
//! tenths of the time that its session may be silent, or what the agent itself had left, whichever is less
//! ([`Lease`](quorate_member::Lease)). So a client that stood still, or whose agent is gone, finds out by
//! looking at its clock.
//!
//! A wish is put again at another agent of the list if one goes, and an observer asks another one; a guard, a
//! leadership and a group never move: they end with their agent.
//!
//! | what | where |
//! |---|---|
//! | one question and its answer, over the socket or HTTP, and what an agent goes on telling | `http.rs` |
//! | the session: what may be relied on, what is lost | `session.rs` |
//! | a wish, from agent to agent | `asking.rs` |
//! | what is held | `guard.rs` |
//! | roles: who stands, who leads, who observes | `roles.rs` |
//! | groups: what is sent, and what is told | `groups.rs` |

mod asking;
mod client;
mod groups;
mod guard;
pub mod http;
mod roles;
mod session;

pub use asking::Asking;
pub use client::{Client, ConnectError};
pub use groups::{Group, Sender};
pub use guard::Guard;
pub use http::Place;
pub use roles::{Campaign, Leadership, Observer};
