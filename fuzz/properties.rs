//! What must be true of every decoder, whatever the bytes: it never panics, what it reads is written in
//! one way only, and it does not matter how the bytes were cut.

use quorate_transport::tls::{Subject, expires};
use quorate_transport::wire::{Decoder, FrameHeader, Greeting, Segment};

/// The longest frame, for headers.
const FRAME_MAX: usize = 1 << 20;

/// A greeting that can be read comes back as the same bytes.
pub(crate) fn greeting(bytes: &[u8]) {
    if let Ok(Some((greeting, used))) = Greeting::decode(bytes) {
        let mut again = Vec::new();
        greeting.encode(&mut again);
        assert_eq!(again, bytes[..used], "{greeting:?}");
        for end in [0, used / 2, used - 1] {
            assert_eq!(Greeting::decode(&bytes[..end]), Ok(None), "to {end}");
        }
    }
}

/// Segments are the same however they come. The first byte says how long the pieces are.
pub(crate) fn segments(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let (whole, pieces) = (read(bytes, bytes.len()), read(bytes, usize::from(*size)));
    assert_eq!(whole, pieces);
    if let Ok(Some((header, used))) = FrameHeader::decode(bytes, FRAME_MAX) {
        assert!(header.len <= FRAME_MAX && used <= bytes.len());
    }
}

/// What is in a connection's bytes, if so many come at a time: what the streams carry, the rest in short,
/// and whether it ends with nonsense.
fn read(bytes: &[u8], size: usize) -> ([Vec<u8>; 2], Vec<String>, bool) {
    let (mut streams, mut rest) = (<[Vec<u8>; 2]>::default(), Vec::new());
    let (mut decoder, mut inbox) = (Decoder::default(), Vec::new());
    for piece in bytes.chunks(size.max(1)) {
        inbox.extend_from_slice(piece);
        loop {
            match decoder.next(&inbox) {
                Ok(None) => break,
                Ok(Some((segment, used))) => {
                    assert!((1..=inbox.len()).contains(&used));
                    match segment {
                        Segment::Stream(stream, bytes) => streams[stream as usize].extend(bytes),
                        other => rest.push(format!("{other:?}")),
                    }
                    inbox.drain(..used);
                }
                Err(_) => return (streams, rest, false),
            }
        }
    }
    (streams, rest, true)
}

/// A certificate is read or refused.
pub(crate) fn certificate(bytes: &[u8]) {
    let _ = expires(&bytes.into());
    let _ = Subject::of(&bytes.into());
}
