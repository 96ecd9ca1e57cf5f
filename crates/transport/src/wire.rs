//! What stands on the wire, and how it is read. Everything here is a function of the bytes alone.
//!
//! A connection carries *greetings* first ([`Greeting`]), then *segments* ([`Segment`]). Each of the two
//! streams of a session, control and data, is a sequence of bytes that is cut into segments anywhere, and
//! holds frames, each after its length. Positions in a stream are counted from the start of the session:
//! they are acknowledged, and a new connection goes on at one.

mod greeting;
mod number;

pub(crate) use greeting::GREETING_MAX;
pub use greeting::{Greeting, Hello, PAYLOAD_MAX, Refusal, Resume, Welcome};
pub use number::Malformed;

use number::{put, take};

/// The longest piece of a stream in one segment: control waits for no more than this.
pub const SEGMENT_MAX: usize = 16 * 1024;
/// The longest reason that is given for closing a connection.
pub const REASON_MAX: usize = 512;

/// A part of what is sent on an established connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment<'a> {
    /// The next bytes of a stream.
    Stream(Stream, &'a [u8]),
    /// So much of the streams has been received.
    Ack([u64; 2]),
    /// A question that is answered at once.
    Ping(u64),
    /// The answer to a question.
    Pong(u64),
    /// Nothing: the sender lives.
    Keepalive,
    /// The connection is closed on purpose, and this is why.
    Bye(&'a str),
}

/// One of the two sequences of bytes that a session is made of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stream {
    /// What goes first.
    Control = 0,
    /// The rest.
    Data = 1,
}

const CONTROL: u8 = 1;
const DATA: u8 = 2;
const ACK: u8 = 3;
const PING: u8 = 4;
const PONG: u8 = 5;
const KEEPALIVE: u8 = 6;
const BYE: u8 = 7;

/// Cuts what comes on a connection into segments. Of a long one it hands out what is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decoder {
    /// The segment that has come in part, and how many bytes of it are missing.
    rest: Option<(Stream, usize)>,
}

impl Decoder {
    /// The next segment or part of one, and how many bytes it takes; none if more has to come.
    ///
    /// # Errors
    /// If it cannot be a segment, however it goes on.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<(Segment<'a>, usize)>, Malformed> {
        let mut after = bytes;
        if self.rest.is_none() {
            let Some((kind, rest)) = bytes.split_first() else { return Ok(None) };
            after = rest;
            let segment = match *kind {
                CONTROL | DATA => {
                    let Some(len) = length(&mut after, SEGMENT_MAX)? else { return Ok(None) };
                    let stream = if *kind == CONTROL { Stream::Control } else { Stream::Data };
                    self.rest = Some((stream, len));
                    None
                }
                kind => match Segment::short(kind, &mut after)? {
                    Some(segment) => Some(segment),
                    None => return Ok(None),
                },
            };
            if let Some(segment) = segment {
                return Ok(Some((segment, bytes.len() - after.len())));
            }
        }
        let Some((stream, missing)) = self.rest else { return Ok(None) };
        let (now, later) = after.split_at(missing.min(after.len()));
        self.rest = (now.len() < missing).then(|| (stream, missing - now.len()));
        let used = bytes.len() - later.len();
        Ok((used > 0).then_some((Segment::Stream(stream, now), used)))
    }

    /// Is what was handed out last whole?
    #[must_use]
    pub const fn is_between(&self) -> bool {
        self.rest.is_none()
    }
}

impl<'a> Segment<'a> {
    /// A segment that is not part of a stream; none if it is not all there yet.
    fn short(kind: u8, rest: &mut &'a [u8]) -> Result<Option<Self>, Malformed> {
        Ok(match kind {
            ACK => match (take(rest)?, take(rest)?) {
                (Some(control), Some(data)) => Some(Self::Ack([control, data])),
                _ => None,
            },
            PING => take(rest)?.map(Self::Ping),
            PONG => take(rest)?.map(Self::Pong),
            KEEPALIVE => Some(Self::Keepalive),
            BYE => {
                let Some(len) = length(rest, REASON_MAX)? else { return Ok(None) };
                let Some((text, after)) = rest.split_at_checked(len) else { return Ok(None) };
                *rest = after;
                let text = std::str::from_utf8(text);
                Some(Self::Bye(text.map_err(|_| Malformed("a reason is not text"))?))
            }
            _ => return Err(Malformed("there is no such segment")),
        })
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Stream(stream, bytes) => {
                Self::begin_stream(*stream, bytes.len(), out);
                out.extend_from_slice(bytes);
            }
            Self::Ack([control, data]) => {
                out.push(ACK);
                put(*control, out);
                put(*data, out);
            }
            Self::Ping(number) => {
                out.push(PING);
                put(*number, out);
            }
            Self::Pong(number) => {
                out.push(PONG);
                put(*number, out);
            }
            Self::Keepalive => out.push(KEEPALIVE),
            Self::Bye(text) => {
                let text = head(text, REASON_MAX);
                out.push(BYE);
                put(text.len() as u64, out);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// Appends what stands before so many bytes of a stream.
    pub(crate) fn begin_stream(stream: Stream, len: usize, out: &mut Vec<u8>) {
        out.push(if stream == Stream::Control { CONTROL } else { DATA });
        put(len as u64, out);
    }
}

/// What stands before a frame in its stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHeader {
    /// The frame's length.
    pub len: usize,
    /// May it be sent between members that do not belong to the same cluster yet?
    pub founding: bool,
}

impl FrameHeader {
    /// The header at the start of these bytes, and its length; none if it is not all there yet.
    ///
    /// # Errors
    /// If it cannot be one, or if the frame is longer than `max`.
    pub fn decode(bytes: &[u8], max: usize) -> Result<Option<(Self, usize)>, Malformed> {
        let mut rest = bytes;
        let Some(number) = take(&mut rest)? else { return Ok(None) };
        let len = usize::try_from(number >> 1).unwrap_or(usize::MAX);
        if len > max {
            return Err(Malformed("a frame is too long"));
        }
        let header = Self { len, founding: number & 1 == 1 };
        Ok(Some((header, bytes.len() - rest.len())))
    }

    /// The encoded header.
    pub(crate) fn encode(self) -> ([u8; number::LEN_MAX], usize) {
        number::encode((self.len as u64) << 1 | u64::from(self.founding))
    }
}

/// The beginning of a text, so many bytes of it at most, and no letter cut in two.
fn head(text: &str, most: usize) -> &str {
    let fits = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=most.min(text.len())).rev().find(fits);
    &text[..end.unwrap_or(0)]
}

/// A length that is at most `max`; none if it is not all there yet.
fn length(rest: &mut &[u8], max: usize) -> Result<Option<usize>, Malformed> {
    let Some(len) = take(rest)? else { return Ok(None) };
    match usize::try_from(len) {
        Ok(len) if len <= max => Ok(Some(len)),
        _ => Err(Malformed("a segment is too long")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Segment<'static>; 7] = [
        Segment::Stream(Stream::Control, b"abc"),
        Segment::Stream(Stream::Data, &[7; 300]),
        Segment::Ack([0, u64::MAX]),
        Segment::Ping(128),
        Segment::Pong(1),
        Segment::Keepalive,
        Segment::Bye("that is all"),
    ];

    /// What comes out if so many bytes come at a time, parts of a stream put together again.
    fn decoded(bytes: &[u8], size: usize) -> Vec<(Option<Stream>, Vec<u8>)> {
        let (mut decoder, mut all, mut inbox) = (Decoder::default(), Vec::new(), Vec::new());
        let mut whole = true;
        for piece in bytes.chunks(size) {
            inbox.extend_from_slice(piece);
            while let Some((segment, used)) = decoder.next(&inbox).unwrap() {
                match segment {
                    Segment::Stream(stream, bytes) if whole => {
                        all.push((Some(stream), bytes.to_vec()));
                    }
                    Segment::Stream(_, bytes) => all.last_mut().unwrap().1.extend(bytes),
                    other => {
                        let mut bytes = Vec::new();
                        other.encode(&mut bytes);
                        all.push((None, bytes));
                    }
                }
                whole = decoder.is_between();
                inbox.drain(..used);
            }
        }
        assert!(inbox.is_empty() && whole);
        all
    }

    #[test]
    fn segments_come_back_however_they_are_cut() {
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for segment in ALL {
            let begun = bytes.len();
            segment.encode(&mut bytes);
            expected.push(match segment {
                Segment::Stream(stream, bytes) => (Some(stream), bytes.to_vec()),
                _ => (None, bytes[begun..].to_vec()),
            });
        }
        for size in [1, 2, 3, 5, 100, bytes.len()] {
            assert_eq!(decoded(&bytes, size), expected, "pieces of {size}");
        }
    }

    #[test]
    fn lengths_are_checked_before_anything_is_waited_for() {
        let decode = |bytes: &[u8]| Decoder::default().next(bytes).map(drop);
        let mut long = vec![DATA];
        put(SEGMENT_MAX as u64 + 1, &mut long);
        assert!(decode(&long).is_err());
        let (bytes, len) = FrameHeader { len: 1001, founding: false }.encode();
        assert!(FrameHeader::decode(&bytes[..len], 1000).is_err());
        assert!(FrameHeader::decode(&bytes[..len], 1001).is_ok());
        assert!(decode(&[0]).is_err() && decode(&[99]).is_err());
    }

    #[test]
    fn a_long_reason_is_cut() {
        let mut bytes = Vec::new();
        Segment::Bye(&"ö".repeat(REASON_MAX)).encode(&mut bytes);
        let decoded = Decoder::default().next(&bytes).unwrap().unwrap();
        let (Segment::Bye(text), _) = decoded else { panic!() };
        assert_eq!(text, "ö".repeat(REASON_MAX / 2));
    }
}
