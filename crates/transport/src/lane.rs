//! The two ends of a stream: what is kept until it is acknowledged, and what has come.

use std::collections::VecDeque;

use crate::wire::{FrameHeader, Malformed, SEGMENT_MAX, Segment, Stream};

/// What a buffer may keep when it is empty.
const SPARE: usize = 256 * 1024;

/// The sending end: bytes are kept until the other side has them.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// From `base` on.
    bytes: VecDeque<u8>,
    /// The position of the first byte that is kept: all before it is acknowledged.
    base: u64,
    /// The position of the next byte to be sent on the present connection. Never before `base`.
    next: u64,
}

impl Outgoing {
    /// How much is kept.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How much is to be sent on the present connection.
    pub(crate) fn unsent(&self) -> usize {
        self.bytes.len() - (self.next - self.base) as usize
    }

    /// Appends a frame.
    pub(crate) fn push(&mut self, founding: bool, frame: &[u8]) {
        let (header, len) = FrameHeader { len: frame.len(), founding }.encode();
        self.bytes.extend(&header[..len]);
        self.bytes.extend(frame);
    }

    /// Moves at most `room` unsent bytes into `out`, as segments.
    pub(crate) fn stage(&mut self, stream: Stream, mut room: usize, out: &mut Vec<u8>) {
        while room > 0 && self.unsent() > 0 {
            let len = self.unsent().min(SEGMENT_MAX).min(room);
            Segment::begin_stream(stream, len, out);
            let from = (self.next - self.base) as usize;
            let (front, back) = self.bytes.as_slices();
            let in_front = front.get(from..).unwrap_or(&[]);
            let in_front = &in_front[..in_front.len().min(len)];
            out.extend_from_slice(in_front);
            let from = from.saturating_sub(front.len());
            out.extend_from_slice(&back[from..from + len - in_front.len()]);
            self.next += len as u64;
            room -= len;
        }
    }

    /// The other side has everything before this position.
    pub(crate) fn acknowledge(&mut self, to: u64) -> Result<(), Malformed> {
        if to > self.base + self.bytes.len() as u64 {
            return Err(Malformed("what was never sent is acknowledged"));
        }
        // What came by an earlier connection is sent again by this one, as positions on a connection have
        // no gaps.
        let to = to.min(self.next);
        if to > self.base {
            self.bytes.drain(..(to - self.base) as usize);
            self.base = to;
            if self.bytes.is_empty() && self.bytes.capacity() > SPARE {
                self.bytes = VecDeque::new();
            }
        }
        Ok(())
    }

    /// A new connection goes on at this position.
    pub(crate) fn rewind(&mut self, to: u64) -> Result<(), Malformed> {
        let end = self.base + self.bytes.len() as u64;
        if !(self.base..=end).contains(&to) {
            return Err(Malformed("the session cannot go on there"));
        }
        self.next = to;
        self.acknowledge(to)
    }
}

/// The receiving end: what has come, and the frame that has come in part.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    /// So much has come.
    received: u64,
    /// The beginning of the next frame, or, if `whole`, the frame that was handed out last.
    partial: Vec<u8>,
    whole: bool,
}

/// A frame, as it comes out of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) founding: bool,
    pub(crate) bytes: &'a [u8],
}

impl Incoming {
    /// So much has come.
    pub(crate) const fn received(&self) -> u64 {
        self.received
    }

    /// Takes what is new of bytes at this position. Positions on a connection have no gaps and begin at
    /// one that was received.
    pub(crate) fn accept<'a>(&mut self, position: u64, bytes: &'a [u8]) -> &'a [u8] {
        let known = self.received.saturating_sub(position);
        let new = bytes.get(usize::try_from(known).unwrap_or(usize::MAX)..).unwrap_or(&[]);
        self.received += new.len() as u64;
        new
    }

    /// The next frame of accepted bytes. To be called until there is none, which uses the bytes up.
    pub(crate) fn next<'s, 'b: 's>(
        &'s mut self,
        bytes: &mut &'b [u8],
        max: usize,
    ) -> Result<Option<Frame<'s>>, Malformed> {
        if self.whole {
            self.whole = false;
            self.partial.clear();
            self.partial.shrink_to(SPARE);
        }
        if self.partial.is_empty()
            && let Some((FrameHeader { len, founding }, at)) = FrameHeader::decode(bytes, max)?
            && let Some(frame) = bytes.get(at..at + len)
        {
            *bytes = &bytes[at + len..];
            return Ok(Some(Frame { founding, bytes: frame }));
        }
        self.complete(bytes, max)
    }

    /// Completes the partial frame as far as the bytes go.
    fn complete(&mut self, bytes: &mut &[u8], max: usize) -> Result<Option<Frame<'_>>, Malformed> {
        loop {
            let header = FrameHeader::decode(&self.partial, max)?;
            // Without a header, one byte at a time: what follows it may belong to another frame.
            let missing = header.map_or(1, |(header, at)| at + header.len - self.partial.len());
            if let Some((FrameHeader { founding, .. }, at)) = header
                && missing == 0
            {
                self.whole = true;
                return Ok(Some(Frame { founding, bytes: &self.partial[at..] }));
            }
            let (now, later) = bytes.split_at(missing.min(bytes.len()));
            if now.is_empty() {
                return Ok(None);
            }
            self.partial.extend_from_slice(now);
            *bytes = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Decoder;

    /// What the segments in `wire` carry.
    fn carried(wire: &[u8]) -> Vec<u8> {
        let (mut bytes, mut at, mut decoder) = (Vec::new(), 0, Decoder::default());
        while let Some((segment, used)) = decoder.next(&wire[at..]).unwrap() {
            let Segment::Stream(Stream::Data, piece) = segment else { panic!("{segment:?}") };
            bytes.extend_from_slice(piece);
            at += used;
        }
        bytes
    }

    fn frames(incoming: &mut Incoming, position: u64, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut rest = incoming.accept(position, bytes);
        let mut frames = Vec::new();
        while let Some(frame) = incoming.next(&mut rest, 1 << 20).unwrap() {
            frames.push(frame.bytes.to_vec());
        }
        assert!(rest.is_empty());
        frames
    }

    #[test]
    fn frames_come_out_however_they_are_cut() {
        let sent: Vec<Vec<u8>> =
            [0, 1, 63, 64, 200, 16_384, 40_000].iter().map(|len| vec![*len as u8; *len]).collect();
        let mut outgoing = Outgoing::default();
        sent.iter().for_each(|frame| outgoing.push(false, frame));
        let mut wire = Vec::new();
        outgoing.stage(Stream::Data, usize::MAX, &mut wire);
        let bytes = carried(&wire);
        for size in [1, 2, 3, 7, 1000, bytes.len()] {
            let (mut incoming, mut got, mut position) = (Incoming::default(), Vec::new(), 0);
            for piece in bytes.chunks(size) {
                got.extend(frames(&mut incoming, position, piece));
                position += piece.len() as u64;
            }
            assert!(got == sent, "pieces of {size}");
            assert_eq!(incoming.received(), bytes.len() as u64);
        }
    }

    #[test]
    fn a_stream_goes_on_at_any_position() {
        let mut outgoing = Outgoing::default();
        (0..10_u8).for_each(|number| outgoing.push(false, &[number; 9]));
        let mut incoming = Incoming::default();
        let mut got = Vec::new();
        // Each connection carries 13 bytes, of which the other side acknowledges fewer.
        while got.len() < 10 {
            let from = incoming.received();
            outgoing.rewind(from).unwrap();
            let mut wire = Vec::new();
            outgoing.stage(Stream::Data, 13, &mut wire);
            got.extend(frames(&mut incoming, from, &carried(&wire)));
            outgoing.acknowledge(incoming.received().saturating_sub(5)).unwrap();
        }
        assert!(got.iter().zip(0..).all(|(frame, number)| *frame == vec![number; 9]));
        outgoing.acknowledge(incoming.received()).unwrap();
        assert_eq!((outgoing.len(), outgoing.unsent()), (0, 0));
    }

    #[test]
    fn what_came_by_another_connection_is_passed_over() {
        let mut outgoing = Outgoing::default();
        (0..3_u8).for_each(|number| outgoing.push(false, &[number]));
        let mut wire = Vec::new();
        outgoing.stage(Stream::Data, usize::MAX, &mut wire);
        let bytes = carried(&wire);
        let mut incoming = Incoming::default();
        assert_eq!(frames(&mut incoming, 0, &bytes[..3]), [vec![0]]);
        assert_eq!(frames(&mut incoming, 0, &bytes[..2]), [] as [Vec<u8>; 0]);
        assert_eq!(frames(&mut incoming, 2, &bytes[2..]), [vec![1], vec![2]]);
    }

    #[test]
    fn an_acknowledgement_never_overtakes_what_is_sent_on_this_connection() {
        let mut outgoing = Outgoing::default();
        outgoing.push(false, &[1; 99]);
        outgoing.stage(Stream::Data, usize::MAX, &mut Vec::new());
        outgoing.rewind(0).unwrap();
        outgoing.acknowledge(100).unwrap();
        assert_eq!(outgoing.unsent(), 101);
        assert!(outgoing.acknowledge(102).is_err());
        assert!(outgoing.rewind(102).is_err());
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_by_its_header() {
        let mut outgoing = Outgoing::default();
        outgoing.push(false, &[1; 99]);
        let mut wire = Vec::new();
        outgoing.stage(Stream::Data, 2, &mut wire);
        let bytes = carried(&wire);
        let mut incoming = Incoming::default();
        let mut rest = incoming.accept(0, &bytes);
        assert!(incoming.next(&mut rest, 98).is_err());
    }
}
