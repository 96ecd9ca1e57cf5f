//! The register of a cluster that goes on after its majority is gone for good, by a person's decision.

use quorate_core::{Life, Span};

use super::{Epoch, Register};

impl Register {
    /// What a cluster goes on with that lost most of its voters: nobody is a member or votes, and epochs
    /// and lives begin above everything that this register knows, and not below `from`. Settings and
    /// namespaces stay. So fences go on growing, if `from` is no earlier than what others have seen since.
    #[must_use]
    pub fn recovered(&self, from: u64) -> Self {
        let (Epoch(epoch), Life(life)) = (self.epoch, self.next_life);
        let from = from.max(epoch.saturating_add(1)).max(life.saturating_add(1));
        Self { spaces: self.spaces.clone(), ..Self::founded(from, self.settings) }
    }

    /// The longest lease on which anybody may still act.
    #[must_use]
    pub fn longest_lease(&self) -> Span {
        let leases = self.members.values().map(|member| member.lease);
        leases.fold(self.settings.lease, Span::max)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;
    use crate::register::{Order, Settings, Space};

    #[test]
    fn a_recovered_register_begins_above_what_is_known_and_keeps_namespaces() {
        let mut register = Register::founded(100, Settings { lease: Span(7) });
        let space = Space { algorithm: String::from("home"), permits: 3, lock_delay: Span(0) };
        register.apply(&Order::Space { name: String::from("jobs"), space: space.clone() });
        let anew = register.recovered(5);
        assert_eq!((anew.epoch(), anew.founded_at()), (Epoch(101), 101));
        assert_eq!(anew.space("jobs"), Some(&space));
        assert!(anew.view().is_empty() && anew.members().next().is_none());
        assert_eq!(register.recovered(5_000).epoch(), Epoch(5_000));
        assert_eq!(register.longest_lease(), Span(7));
    }
}
