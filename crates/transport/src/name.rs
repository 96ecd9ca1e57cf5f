//! Names of members and clusters: what stands in a certificate must be a label of a domain name.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The name of a member or of a cluster: 1 to 63 small letters, digits and `-`, which neither begins nor
/// ends it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let inside = !text.starts_with('-') && !text.ends_with('-');
        if (1..=63).contains(&text.len()) && text.bytes().all(letter) && inside {
            Ok(Self(text.into()))
        } else {
            Err(NotAName)
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A text that is not a [`Name`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAName;

impl fmt::Display for NotAName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a name has 1 to 63 small letters, digits or -, which neither begins nor ends it",
        )
    }
}

impl std::error::Error for NotAName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels() {
        for good in ["a", "q-0", "7", &"x".repeat(63)] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        for bad in ["", "A", "a.b", "-a", "a-", "a b", "ä", "a_b", &"x".repeat(64)] {
            assert_eq!(bad.parse::<Name>(), Err(NotAName), "{bad}");
        }
    }
}
