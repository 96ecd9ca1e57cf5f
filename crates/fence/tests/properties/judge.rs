//! What is true of every gate, said of what was seen of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use quorate_fence::Fence;

/// One order for what all threads see: the time by which histories are judged.
#[derive(Default)]
pub(crate) struct Clock(AtomicU64);

impl Clock {
    pub(crate) fn now(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// Somebody was let in: from when to when, under which name, with which fence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Visit {
    pub(crate) name: String,
    pub(crate) fence: Fence,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

fn by_name(history: &[Visit]) -> impl Iterator<Item = Vec<&Visit>> {
    let mut names: HashMap<&str, Vec<&Visit>> = HashMap::new();
    for visit in history {
        names.entry(&visit.name).or_default().push(visit);
    }
    names.into_values()
}

/// Who was admitted after the answer to somebody else was there has no smaller fence.
pub(crate) fn older_after_newer(history: &[Visit]) -> Option<String> {
    by_name(history).find_map(|mut visits| {
        let mut ended = visits.clone();
        visits.sort_by_key(|visit| visit.from);
        ended.sort_by_key(|visit| visit.to);
        let mut ended = ended.into_iter().peekable();
        let mut largest: Option<&Visit> = None;
        visits.into_iter().find_map(|visit| {
            while let Some(before) = ended.next_if(|before| before.to < visit.from) {
                if largest.is_none_or(|largest| before.fence > largest.fence) {
                    largest = Some(before);
                }
            }
            let before = largest.filter(|before| before.fence > visit.fence)?;
            Some(format!("{visit:?} after {before:?}"))
        })
    })
}

/// Of two that were inside with different fences, the smaller one had left before the larger one came.
pub(crate) fn together(history: &[Visit]) -> Option<String> {
    by_name(history).find_map(|visits| {
        // For each fence, who came first and who left last.
        let mut fences: BTreeMap<Fence, (&Visit, &Visit)> = BTreeMap::new();
        for visit in visits {
            let (first, last) = fences.entry(visit.fence).or_insert((visit, visit));
            if visit.from < first.from {
                *first = visit;
            }
            if visit.to > last.to {
                *last = visit;
            }
        }
        let mut older: Option<&Visit> = None;
        fences.into_values().find_map(|(first, last)| {
            if let Some(older) = older.filter(|older| older.to > first.from) {
                return Some(format!("{older:?} was still inside when {first:?} came"));
            }
            if older.is_none_or(|older| last.to > older.to) {
                older = Some(last);
            }
            None
        })
    })
}

#[test]
fn a_bad_history_is_known_as_one() {
    let visit =
        |counter, from, to| Visit { name: "a".into(), fence: Fence::new(1, counter), from, to };
    let apart = [visit(1, 0, 1), visit(2, 2, 3), visit(2, 2, 5), visit(3, 6, 7)];
    assert_eq!((older_after_newer(&apart), together(&apart)), (None, None));
    // Calls at the same time may be answered in any order; visits may not be at the same time.
    let crossing = [visit(2, 0, 3), visit(1, 1, 2)];
    assert_eq!(older_after_newer(&crossing), None);
    assert!(together(&crossing).is_some());
    for swapped in [[visit(2, 0, 1), visit(1, 2, 3)], [visit(1, 2, 3), visit(2, 0, 1)]] {
        assert!(older_after_newer(&swapped).is_some());
        assert!(together(&swapped).is_some());
    }
    let long = [visit(1, 0, 9), visit(2, 10, 11), visit(1, 1, 2), visit(3, 8, 12)];
    assert!(together(&long).is_some());
    let mut elsewhere = crossing;
    elsewhere[0].name = "b".into();
    assert_eq!(together(&elsewhere), None);
}
