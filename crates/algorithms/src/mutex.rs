//! Mutual exclusion: at most one node inside the critical section, and everybody who wants gets in.
//!
//! There are four classes. *Central*: one node decides
//! ([`central`]). *Distributed*: everybody is asked ([`lamport`], [`ricart_agrawala`],
//! [`carvalho_roucairol`]). *Quorum*: a part of the nodes is asked, in which any two askers have
//! somebody in common ([`majority`], [`maekawa`], [`sanders`], [`cao_singhal`]). *Token*: whoever has
//! it may enter; it moves by itself, in a ring ([`token_ring`]), or when asked for, to whoever asks
//! ([`suzuki_kasami`], [`singhal`]) or along a tree ([`raymond`], [`naimi_trehel`]), or as a queue says
//! that one node keeps ([`home`]). [`in_views`] runs any of them in a group whose members come and go,
//! [`regions`] several of them side by side.

mod asker;
pub mod cao_singhal;
pub mod carvalho_roucairol;
pub mod central;
pub mod home;
pub mod in_views;
pub mod lamport;
pub mod maekawa;
pub mod maekawa_basic;
pub mod majority;
mod monitor;
pub mod naimi_trehel;
mod phase;
#[cfg(test)]
mod quorum_fixtures;
pub mod raymond;
pub mod regions;
pub mod ricart_agrawala;
pub mod ricart_agrawala_acked;
pub mod sanders;
mod setup;
pub mod singhal;
pub mod suzuki_kasami;
#[cfg(test)]
mod testing;
pub mod token_ring;
mod users;
mod votes;
mod words;

use quorate_core::Family;

pub use cao_singhal::CaoSinghal;
pub use carvalho_roucairol::CarvalhoRoucairol;
pub use central::Central;
pub use home::Home;
pub use in_views::InViews;
pub use lamport::Lamport;
pub use maekawa::Maekawa;
pub use maekawa_basic::MaekawaBasic;
pub use majority::Majority;
pub use monitor::Exclusion;
pub use naimi_trehel::NaimiTrehel;
pub use raymond::Raymond;
pub use regions::Regions;
pub use ricart_agrawala::RicartAgrawala;
pub use ricart_agrawala_acked::RicartAgrawalaAcked;
pub use sanders::Sanders;
pub use setup::{Quorums, Setup, Tree};
pub use singhal::Singhal;
pub use suzuki_kasami::SuzukiKasami;
pub use token_ring::TokenRing;
pub use users::{Load, Users};
pub use words::{Command, Event, Fence, Region};

crate::catalogue::catalogue! { Mutex:
    Central,
    Lamport,
    RicartAgrawala,
    RicartAgrawalaAcked,
    Majority,
    CarvalhoRoucairol,
    MaekawaBasic,
    Maekawa,
    Sanders,
    CaoSinghal,
    TokenRing,
    SuzukiKasami,
    Raymond,
    Singhal,
    NaimiTrehel,
    Home,
}
crate::stack::stack!(Mutex in InViews, Regions);

/// The family of mutual exclusion.
#[derive(Debug)]
pub struct Mutex;

/// A promise of an algorithm, beyond safety.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// Wishes are granted in the order of their stamps.
    pub fair: bool,
    /// Every wish is granted. Liveness is judged all the same: this says what to expect.
    pub live: bool,
    /// Users are given tokens that grow from entry to entry.
    pub fenced: bool,
}

impl Family for Mutex {
    const NAME: &'static str = "mutex";
    type Command = Command;
    type Event = Event;
    type Setup = Setup;
    type Promise = Promise;
    type Monitor = Exclusion;

    fn monitor(count: usize, setup: &Setup, promise: &Promise) -> Exclusion {
        Exclusion::new(count, setup, promise)
    }

    fn command(text: &str) -> Option<Command> {
        Command::read(text)
    }

    fn event(text: &str) -> Option<Event> {
        Event::read(text)
    }
}
