//! Numbers on the wire: seven bits per byte, the low ones first, each number in one way only.

use std::fmt;

/// The most bytes that a number takes.
pub(crate) const LEN_MAX: usize = 10;

/// Bytes that mean nothing, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed(pub(crate) &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// A number's bytes, and how many they are.
pub(super) fn encode(mut number: u64) -> ([u8; LEN_MAX], usize) {
    let mut bytes = [0; LEN_MAX];
    let mut len = 0;
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        bytes[len] = if number == 0 { low } else { low | 0x80 };
        len += 1;
        if number == 0 {
            return (bytes, len);
        }
    }
}

/// Appends a number.
pub(super) fn put(number: u64, out: &mut Vec<u8>) {
    let (bytes, len) = encode(number);
    out.extend_from_slice(&bytes[..len]);
}

/// Takes a number off the front; none if it is not all there yet.
pub(super) fn take(rest: &mut &[u8]) -> Result<Option<u64>, Malformed> {
    let mut number = 0;
    for (index, byte) in rest.iter().take(LEN_MAX).enumerate() {
        let low = u64::from(byte & 0x7f);
        let shift = 7 * index as u32;
        if index == LEN_MAX - 1 && low > 1 {
            return Err(Malformed("a number is too large"));
        }
        number |= low << shift;
        if byte & 0x80 == 0 {
            if low == 0 && index > 0 {
                return Err(Malformed("a number is longer than it has to be"));
            }
            *rest = &rest[index + 1..];
            return Ok(Some(number));
        }
    }
    if rest.len() < LEN_MAX { Ok(None) } else { Err(Malformed("a number is too long")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::MAX >> 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(number, &mut bytes);
            assert_eq!(take(&mut &bytes[..]), Ok(Some(number)));
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), Ok(None));
        }
    }

    #[test]
    fn a_number_is_written_in_one_way() {
        assert!(take(&mut &[0x80, 0][..]).is_err());
        assert!(take(&mut &[0xff; 10][..]).is_err());
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert!(take(&mut &too_large[..]).is_err());
    }
}
