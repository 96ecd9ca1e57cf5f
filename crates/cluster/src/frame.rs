//! Frames: a length of four bytes, the least significant first, and so many bytes.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::Reject;

/// The length of the length.
pub(crate) const HEADER: usize = 4;

/// How much is read at a time.
const CHUNK: usize = 64 << 10;

/// A value that does not fit into a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLong;

/// Replaces `buf` by one frame that holds `prefix` and then `value`.
pub(crate) fn seal<T: Serialize>(
    buf: &mut Vec<u8>,
    prefix: &[u8],
    value: &T,
    payload_max: usize,
) -> Result<(), TooLong> {
    buf.clear();
    buf.extend_from_slice(&[0; HEADER]);
    buf.extend_from_slice(prefix);
    *buf = postcard::to_extend(value, std::mem::take(buf)).map_err(|_| TooLong)?;
    let length = buf.len() - HEADER;
    if length > payload_max {
        return Err(TooLong);
    }
    let length = u32::try_from(length).map_err(|_| TooLong)?;
    buf[..HEADER].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Decodes a payload, all of it.
pub(crate) fn open<T: DeserializeOwned>(payload: &[u8]) -> Result<T, Reject> {
    match postcard::take_from_bytes(payload) {
        Ok((value, [])) => Ok(value),
        _ => Err(Reject::Malformed),
    }
}

/// Bytes that came in, cut into frames. It grows with what has arrived, never with what a header
/// claims will.
#[derive(Debug)]
pub(crate) struct Inflow {
    buf: Vec<u8>,
    /// Where the first frame begins that was not taken yet.
    start: usize,
    payload_max: usize,
}

impl Inflow {
    pub(crate) const fn new(payload_max: usize) -> Self {
        Self { buf: Vec::new(), start: 0, payload_max }
    }

    /// From now on, payloads may be so long.
    pub(crate) const fn set_max(&mut self, payload_max: usize) {
        self.payload_max = payload_max;
    }

    /// The payload of the next complete frame, if there is one.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Reject> {
        let Some(length) = self.complete()? else { return Ok(None) };
        let begin = self.start + HEADER;
        self.start = begin + length;
        Ok(Some(&self.buf[begin..self.start]))
    }

    /// The length of the next payload, if all of it is there.
    pub(crate) fn complete(&self) -> Result<Option<usize>, Reject> {
        let Some((header, rest)) = self.buf[self.start..].split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*header) as usize;
        if length > self.payload_max {
            return Err(Reject::Oversized);
        }
        Ok((rest.len() >= length).then_some(length))
    }

    /// Has a frame begun that is not complete? Asked when [`Inflow::next`] gives none.
    pub(crate) fn is_partial(&self) -> bool {
        self.start < self.buf.len()
    }

    /// Reads more bytes; how many, 0 at the end of the stream. Loses none when dropped.
    pub(crate) async fn fill(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        self.buf.drain(..self.start);
        self.start = 0;
        self.buf.reserve(CHUNK);
        from.read_buf(&mut self.buf).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_cut_whatever_the_pieces() {
        let (mut frame, mut all) = (Vec::new(), Vec::new());
        for number in [0_u64, 300, u64::MAX] {
            seal(&mut frame, &[], &number, 64).unwrap();
            all.extend_from_slice(&frame);
        }
        let mut inflow = Inflow::new(64);
        let mut seen = Vec::new();
        for byte in all {
            inflow.buf.push(byte);
            while let Some(payload) = inflow.next().unwrap() {
                seen.push(open::<u64>(payload).unwrap());
            }
        }
        assert_eq!(seen, [0, 300, u64::MAX]);
        assert!(!inflow.is_partial());
    }

    #[test]
    fn a_long_claim_is_refused_before_its_bytes_come() {
        let mut inflow = Inflow::new(64);
        inflow.buf.extend_from_slice(&65_u32.to_le_bytes());
        assert_eq!(inflow.next(), Err(Reject::Oversized));
    }

    #[test]
    fn a_payload_with_a_tail_is_malformed() {
        assert_eq!(open::<u8>(&[1]), Ok(1));
        assert_eq!(open::<u8>(&[1, 2]), Err(Reject::Malformed));
        assert_eq!(open::<u8>(&[]), Err(Reject::Malformed));
    }

    #[test]
    fn what_is_too_long_is_not_sealed() {
        let mut frame = Vec::new();
        assert_eq!(seal(&mut frame, &[], &[0_u8; 32].as_slice(), 16), Err(TooLong));
    }
}
