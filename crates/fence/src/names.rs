//! What a gate remembers of each name, without locks and without disk.

use std::collections::HashMap;

use crate::Fence;
use crate::gate::{Refusal, check_name};

/// What is known of a name.
#[derive(Debug)]
struct Entry {
    /// The largest fence that was let in.
    seen: Fence,
    /// The write by which that becomes durable, where it does.
    ticket: u64,
    /// Who is inside. All of them have one fence, which is not above `seen`.
    inside: Option<Inside>,
}

#[derive(Debug)]
struct Inside {
    fence: Fence,
    /// At least one.
    count: usize,
}

/// The answer to a fence that is not old.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// It has been here before; this is the write by which that becomes durable.
    Known(u64),
    /// It is larger than what has been here.
    Raised,
}

/// All names of a gate.
#[derive(Debug)]
pub(crate) struct Names {
    entries: HashMap<Box<str>, Entry>,
    names_max: usize,
    /// Below this nothing is let in, whatever the name. So it is no loss to forget a name that has
    /// seen no more than this.
    floor: Fence,
    highest: Option<Fence>,
}

impl Names {
    pub(crate) fn new(names_max: usize) -> Self {
        Self { entries: HashMap::new(), names_max, floor: Fence::MIN, highest: None }
    }

    /// Compares, and remembers what is new.
    pub(crate) fn admit(&mut self, name: &str, fence: Fence) -> Result<Admission, Refusal> {
        if fence < self.floor {
            return Err(Refusal::Stale { seen: self.seen(name).unwrap_or(self.floor) });
        }
        match self.entries.get_mut(name) {
            Some(entry) if fence < entry.seen => return Err(Refusal::Stale { seen: entry.seen }),
            Some(entry) if fence == entry.seen => return Ok(Admission::Known(entry.ticket)),
            Some(entry) => entry.seen = fence,
            None => {
                check_name(name)?;
                if self.entries.len() >= self.names_max {
                    return Err(Refusal::Full { names_max: self.names_max });
                }
                self.insert(name, fence);
            }
        }
        self.highest = self.highest.max(Some(fence));
        Ok(Admission::Raised)
    }

    /// Notes by which write the largest fence of a name becomes durable.
    pub(crate) fn note_ticket(&mut self, name: &str, ticket: u64) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.ticket = ticket;
        }
    }

    /// Lets somebody in that was admitted, unless somebody older is inside or somebody newer has been
    /// admitted since.
    pub(crate) fn enter(&mut self, name: &str, fence: Fence) -> Result<(), Refusal> {
        let seen = self.seen(name).unwrap_or(self.floor);
        // A name that is gone was covered by the floor.
        let Some(entry) = self.entries.get_mut(name).filter(|_| seen <= fence) else {
            return Err(Refusal::Stale { seen });
        };
        let inside = entry.inside.get_or_insert(Inside { fence, count: 0 });
        if inside.fence != fence {
            return Err(Refusal::Busy { inside: inside.fence });
        }
        inside.count += 1;
        Ok(())
    }

    /// Somebody leaves. Says whether nobody is left.
    pub(crate) fn leave(&mut self, name: &str) -> bool {
        let entry = self.entries.get_mut(name).expect("a name is kept while somebody is inside");
        let inside = entry.inside.as_mut().expect("who leaves was inside");
        inside.count -= 1;
        let empty = inside.count == 0;
        if empty {
            entry.inside = None;
        }
        empty
    }

    /// Lets nothing in below this from now on, and forgets the names that have seen no more.
    pub(crate) fn raise_floor(&mut self, floor: Fence) {
        if floor > self.floor {
            self.floor = floor;
            self.highest = self.highest.max(Some(floor));
            self.entries.retain(|_, entry| entry.seen > floor || entry.inside.is_some());
        }
    }

    /// Remembers what was remembered before, whatever the limits are now.
    pub(crate) fn recall(&mut self, name: &str, fence: Fence) {
        match self.entries.get_mut(name) {
            Some(entry) => entry.seen = entry.seen.max(fence),
            None if fence > self.floor => self.insert(name, fence),
            None => {}
        }
        self.highest = self.highest.max(Some(fence));
    }

    pub(crate) fn seen(&self, name: &str) -> Option<Fence> {
        let floor = (self.floor > Fence::MIN).then_some(self.floor);
        self.entries.get(name).map(|entry| entry.seen).max(floor)
    }

    pub(crate) const fn set_names_max(&mut self, names_max: usize) {
        self.names_max = names_max;
    }

    pub(crate) const fn highest(&self) -> Option<Fence> {
        self.highest
    }

    pub(crate) const fn floor(&self) -> Fence {
        self.floor
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Every name with the largest fence that it has seen, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Fence)> {
        self.entries.iter().map(|(name, entry)| (&**name, entry.seen))
    }

    fn insert(&mut self, name: &str, fence: Fence) {
        self.entries.insert(name.into(), Entry { seen: fence, ticket: 0, inside: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn fence(counter: u64) -> Fence {
        Fence::new(1, counter)
    }

    fn stale(counter: u64) -> Refusal {
        Refusal::Stale { seen: fence(counter) }
    }

    #[test]
    fn what_is_below_is_refused_and_what_is_equal_is_not() {
        let mut names = Names::new(9);
        assert_eq!(names.admit("a", fence(5)), Ok(Admission::Raised));
        assert_eq!(names.admit("a", fence(5)), Ok(Admission::Known(0)));
        assert_eq!(names.admit("a", fence(4)), Err(stale(5)));
        assert_eq!(names.admit("b", fence(4)), Ok(Admission::Raised));
        assert_eq!(names.admit("a", fence(6)), Ok(Admission::Raised));
        names.note_ticket("a", 3);
        assert_eq!(names.admit("a", fence(6)), Ok(Admission::Known(3)));
        assert_eq!(names.highest(), Some(fence(6)));
        assert_eq!((names.seen("a"), names.seen("c")), (Some(fence(6)), None));
    }

    #[test]
    fn a_full_gate_refuses_and_forgets_nothing() {
        let mut names = Names::new(2);
        names.admit("a", fence(5)).unwrap();
        names.admit("b", fence(6)).unwrap();
        assert_eq!(names.admit("c", fence(7)), Err(Refusal::Full { names_max: 2 }));
        assert_eq!(names.highest(), Some(fence(6)));
        assert_eq!(names.admit("a", fence(4)), Err(stale(5)));
        assert_eq!(names.admit("a", fence(7)), Ok(Admission::Raised));
        // What the floor covers need not be known by name.
        names.raise_floor(fence(6));
        assert_eq!(names.len(), 1);
        assert_eq!(names.admit("c", fence(7)), Ok(Admission::Raised));
        assert_eq!(names.admit("b", fence(5)), Err(stale(6)));
        assert_eq!(names.admit("d", fence(5)), Err(stale(6)));
        assert_eq!(names.admit("a", fence(5)), Err(stale(7)));
    }

    #[test]
    fn a_floor_never_sinks() {
        let mut names = Names::new(2);
        names.raise_floor(fence(6));
        names.raise_floor(fence(5));
        assert_eq!((names.floor(), names.highest()), (fence(6), Some(fence(6))));
        assert_eq!(names.seen("a"), Some(fence(6)));
        assert_eq!(names.admit("a", fence(5)), Err(stale(6)));
    }

    #[test]
    fn a_newer_one_waits_for_those_inside_and_an_older_one_does_not_get_in() {
        let mut names = Names::new(2);
        names.admit("a", fence(5)).unwrap();
        names.enter("a", fence(5)).unwrap();
        names.enter("a", fence(5)).unwrap();
        names.admit("a", fence(6)).unwrap();
        assert_eq!(names.enter("a", fence(6)), Err(Refusal::Busy { inside: fence(5) }));
        assert_eq!(names.enter("a", fence(5)), Err(stale(6)));
        assert!(!names.leave("a"));
        assert_eq!(names.enter("a", fence(6)), Err(Refusal::Busy { inside: fence(5) }));
        assert!(names.leave("a"));
        names.enter("a", fence(6)).unwrap();
    }

    #[test]
    fn a_name_with_somebody_inside_is_kept_below_the_floor() {
        let mut names = Names::new(2);
        names.admit("a", fence(5)).unwrap();
        names.enter("a", fence(5)).unwrap();
        names.raise_floor(fence(7));
        assert_eq!(names.enter("a", fence(5)), Err(stale(7)));
        assert_eq!(names.admit("a", fence(7)), Ok(Admission::Raised));
        assert_eq!(names.enter("a", fence(7)), Err(Refusal::Busy { inside: fence(5) }));
        assert!(names.leave("a"));
        names.enter("a", fence(7)).unwrap();
        assert_eq!(names.enter("b", fence(6)), Err(stale(7)));
    }
}
