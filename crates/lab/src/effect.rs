//! Arguments that would change nothing: whoever gives one expects something of it, and is told.

use std::any::TypeId;
use std::convert::Infallible;

use quorate_algorithms::election::{FireWire, ItaiRodeh};
use quorate_core::Algorithm;

use crate::election::{CriterionSpec, Ids};
use crate::registry::{FamilySpec, find, traits};
use crate::{BadInput, CutSpec, Spec};

/// Has this type no values?
pub(crate) fn is_never<T: 'static>() -> bool {
    TypeId::of::<T>() == TypeId::of::<Infallible>()
}

impl Spec {
    /// Refuses what would change nothing in a run.
    ///
    /// # Errors
    /// The first argument without effect, or one that makes no sense.
    pub fn admit(&self) -> Result<(), BadInput> {
        let (problem, entry) = find(&self.algorithm)?;
        let name = &self.algorithm;
        if self.detection.is_some() && self.over.has_detector() {
            return Err(BadInput::new("--detect", "the detector of --over speaks, and no other"));
        }
        if self.detection.is_some() && !traits(self)?.listens {
            let reason = format!("{name} listens to no failure detector");
            return Err(BadInput::new("--detect", reason));
        }
        if !self.clocks.is_empty() && self.over.is_bare() && !entry.keeps_timers {
            return Err(BadInput::new("--clock", format!("{name} keeps no timers")));
        }
        if self.disk_write.is_some() && !self.over.has_views() && !entry.persists {
            return Err(BadInput::new("--disk-write", format!("{name} persists nothing")));
        }
        if let FamilySpec::Election(given) = &self.family
            && self.is_anonymous()
        {
            let argument = match (&given.ids, given.criterion) {
                (Ids::Ascending, CriterionSpec::Highest) => None,
                (Ids::Ascending, CriterionSpec::Lowest) => Some("--criterion"),
                _ => Some("--ids"),
            };
            if let Some(argument) = argument {
                let reason = format!("{name} compares no ids, whoever has them");
                return Err(BadInput::new(argument, reason));
            }
        }
        if !self.cuts.is_empty() {
            let topology = (problem.scenery)(self)?.topology;
            for &CutSpec { from, to, both, .. } in &self.cuts {
                let [one, other] = [self.node("--cut", from)?, self.node("--cut", to)?];
                let back = both && topology.link(other, one).is_some();
                if topology.link(one, other).is_none() && !back {
                    let reason = format!("there is no link from node {one} to node {other}");
                    return Err(BadInput::new("--cut", reason));
                }
            }
        }
        Ok(())
    }

    /// Is it an election that compares no ids?
    fn is_anonymous(&self) -> bool {
        let by_coin = self.options.get("contention").is_none_or(|word| word != "id");
        match self.algorithm.as_str() {
            name if name == ItaiRodeh::META.name => true,
            name if name == FireWire::META.name => by_coin,
            _ => false,
        }
    }
}
