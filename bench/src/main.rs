//! Measurements against references, in one run.

fn main() {}
