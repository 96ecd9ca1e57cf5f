//! Messages in the short notation of papers: `REQUEST(3.2)`, `FLUSH(view 1)`.
//!
//! A trace has the kind of a message, which is the paper's word for it, and all of it as debug text.
//! The notation is made from these two, so that it is the same for every algorithm, every layer and
//! every trace, whoever wrote it: the kind, and in parentheses what the message carries. Names of
//! types go, as do wrappers around the message that the kind is about, and fields that say nothing
//! (`0`, `None`, `false`, nothing in a list).

/// The most entries of a list that are shown.
const ENTRIES_MAX: usize = 8;
/// What stands behind a message of one of several critical regions, before the name of the region.
const IN_REGION: &str = "in ";
/// Values inside of values are read so deep.
const DEPTH_MAX: usize = 64;

/// A message in the notation of papers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Notation {
    /// The paper's word for it.
    pub(super) kind: String,
    /// What it carries, with the names of fields; empty if it carries nothing.
    pub(super) full: String,
    /// The same without names, and of what has parts the first part only.
    pub(super) short: String,
    /// It carries nothing itself: what is told is the view that it is sent in.
    pub(super) is_of_view: bool,
    /// The critical region that it is about, where there are several.
    region: Option<String>,
}

impl Notation {
    /// The message of this kind and text.
    pub(super) fn new(kind: &str, text: &str) -> Self {
        let (value, rest) = Reader { rest: text }.all();
        let region = rest.strip_prefix(IN_REGION);
        let rest = if region.is_some() { "" } else { rest };
        let mut path = Vec::new();
        let core = value.named(&plain(kind), &mut path);
        let mut parts = core.map_or_else(|| value.parts_of_other(rest), Value::parts);
        let is_of_view = parts.is_empty();
        if is_of_view {
            parts.extend(path.iter().rev().find_map(|outer| outer.view()).map(|it| ("", it)));
        }
        let mut full = list(&parts, Value::full_field);
        let mut short = list(&parts, |_, value| value.short());
        // What a link adds: the number of the packet, and all that it says.
        if !rest.is_empty() {
            let number = rest.split_whitespace().next().unwrap_or_default();
            full = format!("{full} {rest}").trim_start().to_string();
            short = format!("{short} {number}").trim_start().to_string();
        }
        let region = region.map(super::printable);
        Self { kind: super::printable(kind), full, short, is_of_view, region }
    }

    /// The whole, with so many characters at most inside the parentheses.
    pub(super) fn within(&self, chars_max: usize) -> String {
        let fits = |text: &&String| text.chars().count() <= chars_max;
        match [&self.full, &self.short].into_iter().find(fits) {
            Some(content) => self.with(content),
            None => {
                let start: String = self.short.chars().take(chars_max.saturating_sub(1)).collect();
                self.with(&format!("{start}…"))
            }
        }
    }

    /// The kind with this in parentheses.
    pub(super) fn with(&self, content: &str) -> String {
        let said = match content {
            "" => self.kind.clone(),
            _ => format!("{}({})", self.kind, super::printable(content)),
        };
        match &self.region {
            Some(region) => format!("{said} {IN_REGION}{region}"),
            None => said,
        }
    }
}

/// An event or a command as people read it: `Granted(Some(3.2))` is `Granted(3.2)`.
#[must_use]
pub fn brief(text: &str) -> String {
    let (value, rest) = Reader { rest: text }.all();
    let content = list(&value.parts(), |_, value| value.short());
    match &value {
        Value::Tuple(name, _) | Value::Struct(name, _) if rest.is_empty() && !name.is_empty() => {
            match content.as_str() {
                "" => (*name).to_string(),
                content => format!("{name}({content})"),
            }
        }
        _ => text.to_string(),
    }
}

/// A value as debug text shows it.
#[derive(Clone, PartialEq, Debug)]
enum Value<'a> {
    /// A number, a word, a text: whatever has no parts.
    Atom(&'a str),
    /// `Name(a, b)`, or `(a, b)` without a name.
    Tuple(&'a str, Vec<Self>),
    /// `Name { a: 1 }`.
    Struct(&'a str, Vec<(&'a str, Self)>),
    /// `[a, b]` and `{a, b}`, with the sign that opens it.
    List(char, Vec<Self>),
}

impl<'a> Value<'a> {
    /// What is directly inside, with names where there are some.
    fn parts(&self) -> Vec<(&'a str, &Self)> {
        match self {
            Self::Atom(_) | Self::List(..) => Vec::new(),
            Self::Tuple(_, parts) => match &parts[..] {
                // `Token(Token { hop: 3 })` carries what the token has.
                [Self::Struct(_, fields)] => says_something(fields),
                _ => {
                    let said = parts.iter().filter(|part| **part != Self::Atom("None"));
                    said.map(|part| ("", part)).collect()
                }
            },
            Self::Struct(_, fields) => says_something(fields),
        }
    }

    /// What a message carries whose kind is not to be found in its text.
    fn parts_of_other(&self, rest: &str) -> Vec<(&'a str, &Self)> {
        match self {
            Self::Atom(text) if rest.is_empty() && is_word(text) => Vec::new(),
            Self::Atom(_) | Self::List(..) => vec![("", self)],
            _ => self.parts(),
        }
    }

    /// The innermost value with this name, and what it is inside of.
    fn named<'b>(&'b self, kind: &str, path: &mut Vec<&'b Self>) -> Option<&'b Self> {
        path.push(self);
        let inner: Vec<&Self> = match self {
            Self::Atom(_) => Vec::new(),
            Self::Tuple(_, parts) | Self::List(_, parts) => parts.iter().collect(),
            Self::Struct(_, fields) => fields.iter().map(|(_, value)| value).collect(),
        };
        if let Some(found) = inner.into_iter().find_map(|value| value.named(kind, path)) {
            return Some(found);
        }
        path.pop();
        let (Self::Atom(name) | Self::Tuple(name, _) | Self::Struct(name, _)) = self else {
            return None;
        };
        (plain(name) == kind).then_some(self)
    }

    /// The view that stands directly inside.
    fn view(&self) -> Option<&Self> {
        let is_view = |value: &&Self| matches!(value, Self::Tuple("ViewId", _));
        match self {
            Self::Tuple(_, parts) => parts.iter().find(is_view),
            Self::Struct(_, fields) => fields.iter().map(|(_, value)| value).find(is_view),
            _ => None,
        }
    }

    fn says_nothing(&self) -> bool {
        match self {
            Self::Atom(text) => matches!(*text, "0" | "None" | "false" | "()" | "\"\""),
            Self::Tuple("ViewId", _) => false,
            Self::Tuple(_, parts) => parts.iter().all(Self::says_nothing),
            Self::List(_, parts) => parts.is_empty(),
            Self::Struct(_, fields) => fields.iter().all(|(_, value)| value.says_nothing()),
        }
    }

    fn full_field(name: &str, value: &Self) -> String {
        match value {
            Self::Atom("true") if !name.is_empty() => name.to_string(),
            // A view says what it is.
            Self::Tuple("ViewId", _) => value.full(),
            _ => {
                let (name, full) = (name.replace('_', " "), value.full());
                let inner = full.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
                match inner {
                    Some(inner) if inner.starts_with(&name) => inner.to_string(),
                    _ => format!("{name} {full}").trim_start().to_string(),
                }
            }
        }
    }

    /// All that says something.
    fn full(&self) -> String {
        match self {
            Self::Atom(text) => (*text).to_string(),
            Self::Tuple("ViewId", parts) => {
                format!("view {}", list(&unnamed(parts), |_, it| it.full()))
            }
            Self::Tuple(_, parts) => match &parts[..] {
                [inner] => inner.full(),
                _ => format!("({})", list(&unnamed(parts), Self::full_field)),
            },
            Self::List(open, parts) => entries(*open, parts),
            Self::Struct(_, fields) => match &says_something(fields)[..] {
                [] => "0".to_string(),
                [(_, only)] => only.full(),
                several => format!("{{{}}}", list(several, Self::full_field)),
            },
        }
    }

    /// Its first part, if it has parts.
    fn short(&self) -> String {
        match self {
            Self::Struct(_, fields) => match says_something(fields).first() {
                Some((name, Self::Atom("true"))) => (*name).to_string(),
                Some((_, first)) => first.short(),
                None => "0".to_string(),
            },
            Self::Tuple("ViewId", _) | Self::Atom(_) | Self::List(..) => self.full(),
            Self::Tuple(_, parts) => match &parts[..] {
                [inner] => inner.short(),
                _ => list(&unnamed(parts), |_, value| value.short()),
            },
        }
    }
}

fn says_something<'a, 'b>(fields: &'b [(&'a str, Value<'a>)]) -> Vec<(&'a str, &'b Value<'a>)> {
    let fields = fields.iter().filter(|(_, value)| !value.says_nothing());
    fields.map(|(name, value)| (*name, value)).collect()
}

fn unnamed<'a, 'b>(parts: &'b [Value<'a>]) -> Vec<(&'a str, &'b Value<'a>)> {
    parts.iter().map(|part| ("", part)).collect()
}

fn list<'a>(parts: &[(&'a str, &Value<'a>)], shown: impl Fn(&str, &Value<'a>) -> String) -> String {
    let parts = parts.iter().map(|(name, value)| match (value, name) {
        (Value::Atom("true"), name) if !name.is_empty() => (*name).to_string(),
        _ => shown(name, value),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// A list, with as many entries as one can take in.
fn entries(open: char, parts: &[Value<'_>]) -> String {
    let close = if open == '[' { ']' } else { '}' };
    let mut shown: Vec<_> = parts.iter().take(ENTRIES_MAX).map(Value::short).collect();
    if parts.len() > ENTRIES_MAX {
        shown.push("…".to_string());
    }
    format!("{open}{}{close}", shown.join(","))
}

/// A name without what differs between a kind and a type: `FLUSH-OK` and `FlushOk` are the same.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Reads debug text from left to right. What is not understood is an atom.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// The value, and what stands behind it.
    fn all(mut self) -> (Value<'a>, &'a str) {
        let whole = self.rest;
        match self.value(0) {
            Some(value) => (value, self.rest.trim()),
            None => (Value::Atom(whole), ""),
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value<'a>> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.rest = self.rest.trim_start();
        if let Some(open) = self.rest.chars().next().filter(|c| "[{".contains(*c)) {
            let close = if open == '[' { ']' } else { '}' };
            self.rest = &self.rest[1..];
            return Some(Value::List(open, self.values(close, depth)?));
        }
        if self.rest.starts_with('"') {
            return self.quoted();
        }
        let name_len = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let (name, after) = self.rest.split_at(name_len.unwrap_or(self.rest.len()));
        if let Some(inside) = after.strip_prefix('(') {
            self.rest = inside;
            return Some(Value::Tuple(name, self.values(')', depth)?));
        }
        if let Some(inside) = after.strip_prefix(" { ")
            && !name.is_empty()
        {
            self.rest = inside;
            return Some(Value::Struct(name, self.fields(depth)?));
        }
        if is_word(name) && name.starts_with(char::is_uppercase) {
            self.rest = after;
            return Some(Value::Atom(name));
        }
        let end = self.rest.find([',', ')', ']', '}']).unwrap_or(self.rest.len());
        let (text, after) = self.rest.split_at(end);
        self.rest = after;
        Some(Value::Atom(text.trim()))
    }

    /// Values up to the sign that closes them.
    fn values(&mut self, close: char, depth: usize) -> Option<Vec<Value<'a>>> {
        let mut values = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            if let Some(after) = self.rest.strip_prefix(close) {
                self.rest = after;
                return Some(values);
            }
            values.push(self.value(depth + 1)?);
            self.next(close)?;
        }
    }

    fn fields(&mut self, depth: usize) -> Option<Vec<(&'a str, Value<'a>)>> {
        let mut fields = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            if let Some(after) = self.rest.strip_prefix('}') {
                self.rest = after;
                return Some(fields);
            }
            let (name, after) = self.rest.split_once(": ")?;
            if !is_word(name) {
                return None;
            }
            self.rest = after;
            fields.push((name, self.value(depth + 1)?));
            self.next('}')?;
        }
    }

    /// Goes over a comma; before what closes there need not be one.
    fn next(&mut self, close: char) -> Option<()> {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(',') {
            Some(after) => self.rest = after,
            None if self.rest.starts_with(close) => {}
            None => return None,
        }
        Some(())
    }

    fn quoted(&mut self) -> Option<Value<'a>> {
        let mut is_escaped = false;
        let end = self.rest.char_indices().skip(1).find(|&(_, c)| {
            let is_end = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        let (text, after) = self.rest.split_at(end?.0 + 1);
        self.rest = after;
        Some(Value::Atom(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(kind: &str, text: &str) -> String {
        let notation = Notation::new(kind, text);
        notation.with(&notation.full)
    }

    fn short(kind: &str, text: &str) -> String {
        let notation = Notation::new(kind, text);
        notation.with(&notation.short)
    }

    #[test]
    fn messages_are_written_as_in_papers() {
        assert_eq!(full("REQUEST", "Request(1.1)"), "REQUEST(1.1)");
        assert_eq!(full("REPLY", "Reply"), "REPLY");
        assert_eq!(full("REQUEST", "Request(3.2) in b"), "REQUEST(3.2) in b");
        assert_eq!(short("REPLY", "Reply in aa"), "REPLY in aa");
        assert_eq!(full("FROM", "From { rank: 1, hops: 2 }"), "FROM(rank 1, hops 2)");
        assert_eq!(short("FROM", "From { rank: 1, hops: 2 }"), "FROM(1, 2)");
        assert_eq!(full("CANDIDACY", "Msg { rank: 1, opens: true }"), "CANDIDACY(rank 1, opens)");
        assert_eq!(full("REPLY", "Reply { deferred: false }"), "REPLY");
        assert_eq!(full("LOCKED", "Locked(Tenure(2))"), "LOCKED(2)");
        assert_eq!(full("PROPOSE", "Propose(1, 2.2)"), "PROPOSE(1, 2.2)");
        let token = "Token(Token { served: [0, 3, 0, 0], queue: [] })";
        assert_eq!(full("TOKEN", token), "TOKEN(served [0,3,0,0])");
        let token = "Token(Token { starter: 4, best: 4, list: {1, 2} })";
        assert_eq!(short("TOKEN", token), "TOKEN(4, 4, {1,2})");
        assert_eq!(full("ALIVE?", "Probe"), "ALIVE?");
    }

    #[test]
    fn what_is_around_a_message_is_left_off() {
        let text = "Inside { view: ViewId(3), msg: Counted { counter: 1, msg: Request(7.2) } }";
        assert_eq!(full("REQUEST", text), "REQUEST(7.2)");
        let text = "Inside { view: ViewId(3), msg: Counted { counter: 1, msg: Token } }";
        assert_eq!(full("TOKEN", text), "TOKEN(view 3)");
        let text = "Membership(Flush { round: 0, view: Charter { id: ViewId(1), members: [Member { \
                    node: 2, life: Life { boot: 0, stay: 0 } }] } })";
        assert_eq!(full("FLUSH", text), "FLUSH(view 1, members [2])");
        assert_eq!(short("FLUSH", text), "FLUSH(view 1)");
        let text = "Membership(Authority(Ballot(ViewId(2), Ballot { round: 1 }, Prepare)))";
        assert_eq!(full("PREPARE", text), "PREPARE(view 2)");
        assert_eq!(full("TOKEN", "Token #4 ack 1"), "TOKEN(#4 ack 1)");
        assert_eq!(short("TOKEN", "Token #4 ack 1"), "TOKEN(#4)");
        assert_eq!(short("RESEND", "Token #0 again ack 1"), "RESEND(Token #0)");
        assert_eq!(short("LINK-ACK", "ack 1"), "LINK-ACK(ack 1)");
    }

    #[test]
    fn long_messages_are_cut_and_odd_ones_are_left_as_they_are() {
        let many: Vec<u32> = (1..=20).collect();
        let text = format!("Ack({many:?})");
        assert_eq!(full("ACK", &text), "ACK([1,2,3,4,5,6,7,8,…])");
        assert_eq!(Notation::new("ACK", &text).within(6), "ACK([1,2,…)");
        for odd in ["K(\"<&>", "((((", "a: {b", "]", "", "Name { x }", "\"\\\"a\" b"] {
            let _ = full("K", odd);
        }
        let deep = "(".repeat(100_000);
        assert!(!full("K", &deep).is_empty());
    }

    #[test]
    fn events_are_brief() {
        assert_eq!(brief("Granted(None)"), "Granted");
        assert_eq!(brief("Granted(Some(3.2))"), "Granted(3.2)");
        assert_eq!(brief("Leading(5)"), "Leading(5)");
        assert_eq!(brief("Acquire"), "Acquire");
        assert_eq!(brief("install 2 1,2,3 0/0"), "install 2 1,2,3 0/0");
    }
}
