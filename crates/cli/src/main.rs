//! The command quorate.

fn main() {}
