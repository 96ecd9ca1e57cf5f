//! Exhaustive exploration of the algorithms.
