//! A fence: the number that says which of two grants is the later one.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// How long the text of a fence is: two numbers of 16 digits and a hyphen.
pub const TEXT_LEN: usize = 33;
/// Where the hyphen stands.
const HYPHEN: usize = 16;

/// The number of a grant. Of two exclusive grants of one lock, the later one has the larger fence, over
/// the whole life of a cluster; what is granted to several at once has one fence for all of them.
///
/// The text, `%016x-%016x`, has always the same length and sorts as the fence does, so that whatever can
/// compare texts byte by byte (a database, a shell, a file system) can compare fences.
///
/// ```
/// use quorate_fence::Fence;
///
/// let old = Fence::new(7, 255);
/// let new = Fence::new(8, 1);
/// assert!(old < new);
/// assert_eq!(old.to_string(), "0000000000000007-00000000000000ff");
/// assert!(old.to_string() < new.to_string());
/// assert_eq!("0000000000000008-0000000000000001".parse(), Ok(new));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Fence {
    // The order of the fields is the order of fences.
    /// The view of the cluster in which it was granted. Epochs only grow.
    pub epoch: u64,
    /// Which grant of that view it was.
    pub counter: u64,
}

impl Fence {
    /// The smallest fence: nothing is below it.
    pub const MIN: Self = Self { epoch: 0, counter: 0 };

    /// A fence of these two numbers.
    #[must_use]
    pub const fn new(epoch: u64, counter: u64) -> Self {
        Self { epoch, counter }
    }

    /// Sixteen bytes, epoch first, each number with its highest byte first: they sort as the fence does.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        (((self.epoch as u128) << 64) | self.counter as u128).to_be_bytes()
    }

    /// The fence that these bytes are.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_be_bytes(bytes);
        Self { epoch: (both >> 64) as u64, counter: both as u64 }
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:016x}", self.epoch, self.counter)
    }
}

/// This text is not one of a fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseFenceError;

impl fmt::Display for ParseFenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fence is 16 digits, a hyphen and 16 digits, all of 0-9 and a-f")
    }
}

impl Error for ParseFenceError {}

impl FromStr for Fence {
    type Err = ParseFenceError;

    /// Takes what `Display` writes and nothing else: a fence has one text, for texts are compared.
    fn from_str(text: &str) -> Result<Self, ParseFenceError> {
        let bytes = text.as_bytes();
        if bytes.len() != TEXT_LEN || bytes[HYPHEN] != b'-' {
            return Err(ParseFenceError);
        }
        let number = |digits: &[u8]| {
            digits.iter().try_fold(0_u64, |number, digit| {
                let value = match digit {
                    b'0'..=b'9' => digit - b'0',
                    b'a'..=b'f' => digit - b'a' + 10,
                    _ => return Err(ParseFenceError),
                };
                Ok(number << 4 | u64::from(value))
            })
        };
        Ok(Self { epoch: number(&bytes[..HYPHEN])?, counter: number(&bytes[HYPHEN + 1..])? })
    }
}

/// Text where people read it, sixteen bytes elsewhere.
#[cfg(feature = "serde")]
mod wire {
    use std::fmt;

    use serde::de::{Deserialize, Deserializer, Error, Visitor};
    use serde::ser::{Serialize, Serializer};

    use super::Fence;

    impl Serialize for Fence {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if serializer.is_human_readable() {
                serializer.collect_str(self)
            } else {
                self.to_bytes().serialize(serializer)
            }
        }
    }

    struct Text;

    impl Visitor<'_> for Text {
        type Value = Fence;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the text of a fence")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Fence, E> {
            text.parse().map_err(E::custom)
        }
    }

    impl<'de> Deserialize<'de> for Fence {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            if deserializer.is_human_readable() {
                deserializer.deserialize_str(Text)
            } else {
                Ok(Self::from_bytes(<[u8; 16]>::deserialize(deserializer)?))
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn it_travels_as_text_or_as_bytes() {
            let fence = Fence::new(10, u64::MAX);
            let json = serde_json::to_string(&fence).unwrap();
            assert_eq!(json, "\"000000000000000a-ffffffffffffffff\"");
            assert_eq!(serde_json::from_str::<Fence>(&json).unwrap(), fence);
            assert!(serde_json::from_str::<Fence>("\"a-f\"").is_err());
            assert!(serde_json::from_str::<Fence>("[10, 3]").is_err());
            let bytes = postcard::to_allocvec(&fence).unwrap();
            assert_eq!(bytes, fence.to_bytes());
            assert_eq!(postcard::from_bytes::<Fence>(&bytes).unwrap(), fence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers at which something changes: digits, signs, lengths.
    const EDGES: [u64; 9] = [0, 1, 9, 10, 15, 16, i64::MAX as u64, 1 << 63, u64::MAX];

    fn fences() -> Vec<Fence> {
        let pairs = EDGES.iter().flat_map(|epoch| EDGES.map(|counter| (*epoch, counter)));
        pairs.map(|(epoch, counter)| Fence::new(epoch, counter)).collect()
    }

    #[test]
    fn texts_and_bytes_sort_as_fences_do() {
        for a in fences() {
            for b in fences() {
                assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()), "{a} {b}");
                assert_eq!(a.cmp(&b), a.to_bytes().cmp(&b.to_bytes()), "{a} {b}");
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for fence in fences() {
            assert_eq!(fence.to_string().parse(), Ok(fence));
            assert_eq!(fence.to_string().len(), TEXT_LEN);
            assert_eq!(Fence::from_bytes(fence.to_bytes()), fence);
        }
    }

    #[test]
    fn a_fence_has_one_text() {
        let text = "000000000000000a-000000000000000b";
        assert_eq!(text.parse(), Ok(Fence::new(10, 11)));
        for bad in [
            "",
            "-",
            "a-b",
            "10-11",
            "000000000000000A-000000000000000b",
            "000000000000000a_000000000000000b",
            "+00000000000000a-000000000000000b",
            "000000000000000a--00000000000000b",
            " 00000000000000a-000000000000000b",
            "000000000000000a-000000000000000b\n",
            "0000000000000a-0000000000000000b",
            "000000000000000a-00000000000000é",
        ] {
            assert_eq!(bad.parse::<Fence>(), Err(ParseFenceError), "{bad:?}");
        }
    }
}
