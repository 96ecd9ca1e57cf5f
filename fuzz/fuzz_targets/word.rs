//! What one voter says to another: read or refused, and written in one way.
#![no_main]

use quorate_authority::raft::wire::Word;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(word) = Word::decode(bytes) {
        assert!(Word::decode(&word.encode()).is_some());
    }
});
