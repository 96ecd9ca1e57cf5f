//! What every table that is a gate has to keep, whatever the database.

use std::fmt::Debug;

use quorate_fence::sql::{self, Dialect, SqlError, Transaction};
use quorate_fence::{Fence, NAME_MAX, Refusal};

pub(crate) fn stale<E>(seen: Fence) -> SqlError<E> {
    SqlError::Refused(Refusal::Stale { seen })
}

/// Of a table that is empty.
pub(crate) fn what_is_below_is_refused_and_what_is_equal_is_not<T>(gate: &mut T, dialect: &Dialect)
where
    T: Transaction<Error: PartialEq + Debug>,
{
    assert_eq!(sql::highest(gate, dialect), Ok(None));
    // Beyond what a signed number holds, and where digits become letters.
    let fences = [
        Fence::MIN,
        Fence::new(0, 9),
        Fence::new(0, 10),
        Fence::new(9, u64::MAX),
        Fence::new(10, 0),
        Fence::new(u64::MAX >> 1, 1),
        Fence::new(1 << 63, 0),
        Fence::new(u64::MAX, u64::MAX),
    ];
    for (index, fence) in fences.into_iter().enumerate() {
        for _ in 0..2 {
            assert_eq!(sql::admit(gate, dialect, "it's", fence), Ok(()));
        }
        for older in &fences[..index] {
            assert_eq!(sql::admit(gate, dialect, "it's", *older), Err(stale(fence)));
        }
        assert_eq!(sql::seen(gate, dialect, "it's"), Ok(Some(fence)));
    }
    assert_eq!(sql::seen(gate, dialect, "its"), Ok(None));
    assert_eq!(sql::admit(gate, dialect, "its", fences[0]), Ok(()));
    assert_eq!(sql::highest(gate, dialect), Ok(Some(fences[7])));
    for bad in ["", "\0", &"n".repeat(NAME_MAX + 1)] {
        let refused = sql::admit(gate, dialect, bad, fences[7]);
        assert_eq!(refused, Err(SqlError::Refused(Refusal::Name)));
    }
}
