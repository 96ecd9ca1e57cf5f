//! As much of the extensible data notation as histories are written in.

use crate::trace_file::{BadTrace, RECORDS_MAX};

/// How deep values stand in values.
const DEPTH_MAX: usize = 32;

/// A value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Edn {
    /// A word, a keyword without its colon, a number, a text.
    Word(String),
    List(Vec<Self>),
    Map(Vec<(Self, Self)>),
}

impl Edn {
    /// What stands under this keyword.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Map(entries) = self else { return None };
        let found = entries.iter().find(|(key, _)| matches!(key, Self::Word(word) if word == name));
        found.map(|(_, value)| value)
    }

    /// The word that it is.
    pub(super) fn word(&self) -> Option<String> {
        match self {
            Self::Word(word) => Some(word.clone()),
            Self::List(_) | Self::Map(_) => None,
        }
    }
}

/// All values of a text; those of a list, if it is one.
pub(super) fn read_all(text: &str) -> Result<Vec<Edn>, BadTrace> {
    let mut reader = Reader { text: text.as_bytes(), at: 0 };
    let mut all = Vec::new();
    while reader.skip().is_some() {
        all.push(reader.value(0).map_err(|fault| reader.fault(fault))?);
        if all.len() > RECORDS_MAX {
            return Err(reader.fault("there are too many operations"));
        }
    }
    match &mut all[..] {
        [Edn::List(list)] => Ok(std::mem::take(list)),
        _ => Ok(all),
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn fault(&self, fault: &str) -> BadTrace {
        let read = &self.text[..self.at.min(self.text.len())];
        let line = read.iter().filter(|byte| **byte == b'\n').count() + 1;
        BadTrace { line, fault: fault.to_owned() }
    }

    /// The next byte that is not between values.
    fn skip(&mut self) -> Option<u8> {
        loop {
            match *self.text.get(self.at)? {
                b';' => {
                    let rest = &self.text[self.at..];
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                byte if byte == b',' || byte.is_ascii_whitespace() => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Edn, &'static str> {
        if depth > DEPTH_MAX {
            return Err("values stand too deep in values");
        }
        match self.skip().ok_or("a value is missing")? {
            b'{' => {
                let values = self.values(b'}', depth)?;
                let mut pairs = values.into_iter();
                let mut entries = Vec::new();
                while let Some(key) = pairs.next() {
                    entries.push((key, pairs.next().ok_or("a key has no value")?));
                }
                Ok(Edn::Map(entries))
            }
            b'[' => self.values(b']', depth).map(Edn::List),
            b'(' => self.values(b')', depth).map(Edn::List),
            b'"' => self.string(),
            b'#' if self.text.get(self.at + 1) == Some(&b'{') => {
                self.at += 1;
                self.values(b'}', depth).map(Edn::List)
            }
            // A tag says of what kind the next value is.
            b'#' => {
                self.at += 1;
                self.word()?;
                self.value(depth + 1)
            }
            b'}' | b']' | b')' => Err("something ends that has not begun"),
            b':' => {
                self.at += 1;
                self.word()
            }
            _ => self.word(),
        }
    }

    fn values(&mut self, end: u8, depth: usize) -> Result<Vec<Edn>, &'static str> {
        self.at += 1;
        let mut values = Vec::new();
        loop {
            if self.skip().ok_or("something has no end")? == end {
                self.at += 1;
                return Ok(values);
            }
            values.push(self.value(depth + 1)?);
        }
    }

    fn string(&mut self) -> Result<Edn, &'static str> {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let byte = *self.text.get(self.at).ok_or("a text has no end")?;
            self.at += 1;
            match byte {
                b'"' => return Ok(Edn::Word(String::from_utf8_lossy(&text).into_owned())),
                b'\\' => {
                    text.push(*self.text.get(self.at).ok_or("a text has no end")?);
                    self.at += 1;
                }
                byte => text.push(byte),
            }
        }
    }

    fn word(&mut self) -> Result<Edn, &'static str> {
        let rest = &self.text[self.at..];
        let ends = |byte: &u8| b",;{}[]()\"".contains(byte) || byte.is_ascii_whitespace();
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        if length == 0 {
            return Err("a word is missing");
        }
        self.at += length;
        Ok(Edn::Word(String::from_utf8_lossy(&rest[..length]).into_owned()))
    }
}
