//! The engines of the lab for a page in a browser.
//!
//! A page asks in JSON and is answered in JSON, with tables of numbers behind it where there are many
//! ([`Answer`]). A [`Desk`] remembers the runs that it was asked for, so that details of them can be
//! asked for later. [`Desk::ask`] knows nothing of WebAssembly, and so it is tested like anything else;
//! `exports.rs` is the thin part that only browsers see.

mod answer;
mod catalogue;
mod desk;
#[cfg(target_arch = "wasm32")]
mod exports;
mod measure;
mod quorums;
mod story;

pub use answer::Answer;
pub use desk::Desk;
