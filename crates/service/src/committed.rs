//! States of the register as consensus has committed them, in their order.

use alloc::sync::Arc;

use crate::register::Register;

/// How far the register has come: a larger number is a later state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Revision(pub u64);

/// A state of the register, as committed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Committed {
    /// Which.
    pub revision: Revision,
    /// What it is.
    pub register: Arc<Register>,
}
