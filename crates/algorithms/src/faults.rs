//! Faults as tests write them: who crashes and who comes back, when.

use quorate_core::Time;
use quorate_sim::{Crash, Faults, Recovery};

use crate::testing::{node, units};

/// So many units after the beginning.
pub(crate) fn time(at: f64) -> Time {
    Time::ZERO + units(at)
}

/// These nodes crash at these times, in units, and nobody notices by itself.
pub(crate) fn crashes(crashes: &[(u32, f64)]) -> Faults {
    crashes_and_returns(crashes, &[])
}

/// As [`crashes`], and these come back at these times.
pub(crate) fn crashes_and_returns(crashes: &[(u32, f64)], returns: &[(u32, f64)]) -> Faults {
    let crash = |&(number, at): &(u32, f64)| Crash { node: node(number), at: time(at) };
    let recovery = |&(number, at): &(u32, f64)| Recovery { node: node(number), at: time(at) };
    Faults {
        crashes: crashes.iter().map(crash).collect(),
        recoveries: returns.iter().map(recovery).collect(),
        ..Faults::default()
    }
}
