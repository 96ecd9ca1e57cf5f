//! Runs `properties::segments` on whatever libFuzzer comes up with.
#![no_main]

#[allow(dead_code, reason = "each target checks one of them")]
#[path = "../properties.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::segments(bytes));
