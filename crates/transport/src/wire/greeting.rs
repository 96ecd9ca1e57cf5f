//! What is said before a connection is established: who one is, and where the session goes on.

use super::number::{Malformed, put, take};
use super::{REASON_MAX, head};
use crate::Name;

/// What every greeting begins with: the last byte is the version of this format, which everything else
/// negotiates in.
const MAGIC: [u8; 4] = *b"qrt\x01";
/// The longest thing that a handler says in a handshake.
pub const PAYLOAD_MAX: usize = 64 * 1024;
/// The longest body of a greeting.
const BODY_MAX: usize = PAYLOAD_MAX + 1024;
/// What stands before the body: magic, kind, length.
const HEAD: usize = 4 + 1 + 4;
/// The longest greeting.
pub(crate) const GREETING_MAX: usize = HEAD + BODY_MAX;
/// The most sessions that a hello offers to go on with.
const RESUME_MAX: usize = 2;

/// A step of a handshake: the side that dialled says hello, the other one welcomes it, the first is ready.
/// Either may refuse.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Greeting {
    /// Who dials.
    Hello(Hello),
    /// Who was dialled, and which session it is.
    Welcome(Welcome),
    /// The dialling process lives and has heard the welcome.
    Ready,
    /// There will be no session.
    Refusal(Refusal),
}

/// What the dialling side says first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The lowest wire version that it can speak.
    pub version_min: u16,
    /// The highest.
    pub version_max: u16,
    /// Its cluster's id, if it has one.
    pub cluster: Option<u128>,
    /// Its cluster's name.
    pub cluster_name: Name,
    /// Its name.
    pub from: Name,
    /// Whom it means to reach.
    pub to: Name,
    /// Its process.
    pub nonce: u128,
    /// The number of this attempt to connect, counted by its process for this name.
    pub attempt: u64,
    /// Attempts of the other side that have ended here: of which process, and up to which number.
    pub closed: Option<(u128, u64)>,
    /// The sessions that it can go on with.
    pub resume: Vec<Resume>,
    /// What its handler says.
    pub payload: Vec<u8>,
}

/// A session, and how much of its streams has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resume {
    /// The session.
    pub session: u128,
    /// How much of the two streams has come.
    pub received: [u64; 2],
}

/// What the dialled side answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Welcome {
    /// The wire version that is spoken.
    pub version: u16,
    /// Its cluster's id, if it has one.
    pub cluster: Option<u128>,
    /// Its cluster's name.
    pub cluster_name: Name,
    /// Its name.
    pub from: Name,
    /// Its process.
    pub nonce: u128,
    /// The session, and how much of its streams has come here. If it was not offered, it is a new one.
    pub resume: Resume,
    /// What its handler says.
    pub payload: Vec<u8>,
}

/// Why there is no session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// It is only that the other side's own attempt goes before this one.
    pub crossed: bool,
    /// In words.
    pub why: String,
}

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const READY: u8 = 3;
const REFUSAL: u8 = 4;

impl Greeting {
    /// The first greeting of these bytes, and its length; none if it is not all there yet.
    ///
    /// # Errors
    /// If it cannot be one, however it goes on.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let begun = bytes.len().min(MAGIC.len());
        if bytes[..begun] != MAGIC[..begun] {
            return Err(Malformed("this is not a member that speaks this protocol"));
        }
        let Some((head, rest)) = bytes.split_at_checked(HEAD) else { return Ok(None) };
        let len = u32::from_le_bytes([head[5], head[6], head[7], head[8]]) as usize;
        if len > BODY_MAX {
            return Err(Malformed("a greeting is too long"));
        }
        let Some(body) = rest.get(..len) else { return Ok(None) };
        let mut body = Body(body);
        let greeting = match head[4] {
            HELLO => Self::Hello(body.hello()?),
            WELCOME => Self::Welcome(body.welcome()?),
            READY => Self::Ready,
            REFUSAL => {
                Self::Refusal(Refusal { crossed: body.flag()?, why: body.text(REASON_MAX)?.into() })
            }
            _ => return Err(Malformed("there is no such greeting")),
        };
        if body.0.is_empty() {
            Ok(Some((greeting, HEAD + len)))
        } else {
            Err(Malformed("a greeting is longer than what it says"))
        }
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        let kind = match self {
            Self::Hello(hello) => {
                hello.encode(&mut body);
                HELLO
            }
            Self::Welcome(welcome) => {
                welcome.encode(&mut body);
                WELCOME
            }
            Self::Ready => READY,
            Self::Refusal(refusal) => {
                body.push(u8::from(refusal.crossed));
                let why = head(&refusal.why, REASON_MAX);
                put_bytes(why.as_bytes(), &mut body);
                REFUSAL
            }
        };
        out.extend_from_slice(&MAGIC);
        out.push(kind);
        out.extend_from_slice(&(body.len() as u32).to_le_bytes());
        out.append(&mut body);
    }
}

impl Hello {
    fn encode(&self, out: &mut Vec<u8>) {
        put(self.version_min.into(), out);
        put(self.version_max.into(), out);
        put_id(self.cluster, out);
        put_bytes(self.cluster_name.as_str().as_bytes(), out);
        put_bytes(self.from.as_str().as_bytes(), out);
        put_bytes(self.to.as_str().as_bytes(), out);
        out.extend_from_slice(&self.nonce.to_le_bytes());
        put(self.attempt, out);
        put_id(self.closed.map(|(process, _)| process), out);
        put(self.closed.map_or(0, |(_, attempt)| attempt), out);
        put(self.resume.len() as u64, out);
        self.resume.iter().for_each(|resume| resume.encode(out));
        put_bytes(&self.payload, out);
    }
}

impl Welcome {
    fn encode(&self, out: &mut Vec<u8>) {
        put(self.version.into(), out);
        put_id(self.cluster, out);
        put_bytes(self.cluster_name.as_str().as_bytes(), out);
        put_bytes(self.from.as_str().as_bytes(), out);
        out.extend_from_slice(&self.nonce.to_le_bytes());
        self.resume.encode(out);
        put_bytes(&self.payload, out);
    }
}

impl Resume {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.session.to_le_bytes());
        put(self.received[0], out);
        put(self.received[1], out);
    }
}

fn put_id(id: Option<u128>, out: &mut Vec<u8>) {
    out.push(u8::from(id.is_some()));
    if let Some(id) = id {
        out.extend_from_slice(&id.to_le_bytes());
    }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// What is left of a body: it is all there, so whatever is missing is an error.
struct Body<'a>(&'a [u8]);

const SHORT: Malformed = Malformed("a greeting ends too early");

impl<'a> Body<'a> {
    fn hello(&mut self) -> Result<Hello, Malformed> {
        Ok(Hello {
            version_min: self.version()?,
            version_max: self.version()?,
            cluster: self.id()?,
            cluster_name: self.name()?,
            from: self.name()?,
            to: self.name()?,
            nonce: self.wide()?,
            attempt: self.number()?,
            closed: match (self.id()?, self.number()?) {
                (Some(process), attempt) => Some((process, attempt)),
                (None, 0) => None,
                (None, _) => return Err(Malformed("an attempt is nobody's")),
            },
            resume: {
                let count = usize::try_from(self.number()?).unwrap_or(usize::MAX);
                if count > RESUME_MAX {
                    return Err(Malformed("too many sessions to go on with"));
                }
                (0..count).map(|_| self.resume()).collect::<Result<_, _>>()?
            },
            payload: self.bytes(PAYLOAD_MAX)?.into(),
        })
    }

    fn welcome(&mut self) -> Result<Welcome, Malformed> {
        Ok(Welcome {
            version: self.version()?,
            cluster: self.id()?,
            cluster_name: self.name()?,
            from: self.name()?,
            nonce: self.wide()?,
            resume: self.resume()?,
            payload: self.bytes(PAYLOAD_MAX)?.into(),
        })
    }

    fn resume(&mut self) -> Result<Resume, Malformed> {
        Ok(Resume { session: self.wide()?, received: [self.number()?, self.number()?] })
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        take(&mut self.0)?.ok_or(SHORT)
    }

    fn version(&mut self) -> Result<u16, Malformed> {
        u16::try_from(self.number()?).map_err(|_| Malformed("there is no such version"))
    }

    fn exactly<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn wide(&mut self) -> Result<u128, Malformed> {
        self.exactly().map(u128::from_le_bytes)
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.exactly()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Malformed("neither yes nor no")),
        }
    }

    fn id(&mut self) -> Result<Option<u128>, Malformed> {
        if self.flag()? { self.wide().map(Some) } else { Ok(None) }
    }

    fn bytes(&mut self, max: usize) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if len > max {
            return Err(Malformed("a field is too long"));
        }
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(SHORT)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self, max: usize) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes(max)?).map_err(|_| Malformed("a field is not text"))
    }

    fn name(&mut self) -> Result<Name, Malformed> {
        self.text(64)?.parse().map_err(|_| Malformed("a name is none"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn all() -> Vec<Greeting> {
        let resume = Resume { session: 9, received: [0, 1 << 40] };
        vec![
            Greeting::Hello(Hello {
                version_min: 1,
                version_max: 3,
                cluster: Some(u128::MAX),
                cluster_name: name("prod"),
                from: name("a"),
                to: name("b"),
                nonce: 7,
                attempt: 300,
                closed: Some((5, 2)),
                resume: vec![resume; 2],
                payload: vec![1; 500],
            }),
            Greeting::Welcome(Welcome {
                version: 2,
                cluster: None,
                cluster_name: name("prod"),
                from: name("b"),
                nonce: 8,
                resume,
                payload: Vec::new(),
            }),
            Greeting::Ready,
            Greeting::Refusal(Refusal { crossed: true, why: "no".into() }),
        ]
    }

    #[test]
    fn greetings_come_back_and_are_waited_for() {
        for greeting in all() {
            let mut bytes = Vec::new();
            greeting.encode(&mut bytes);
            for end in 0..bytes.len() {
                assert_eq!(Greeting::decode(&bytes[..end]), Ok(None), "{greeting:?} to {end}");
            }
            let len = bytes.len();
            bytes.push(0);
            assert_eq!(Greeting::decode(&bytes), Ok(Some((greeting, len))));
        }
    }

    #[test]
    fn strangers_are_known_by_their_first_bytes() {
        assert!(Greeting::decode(b"G").is_err());
        assert!(Greeting::decode(&[0x16, 3, 1]).is_err());
        assert_eq!(Greeting::decode(b"q"), Ok(None));
    }

    #[test]
    fn nothing_may_follow_in_a_body() {
        let mut bytes = Vec::new();
        Greeting::Ready.encode(&mut bytes);
        bytes[5] = 1;
        bytes.push(0);
        assert!(Greeting::decode(&bytes).is_err());
    }

    #[test]
    fn a_long_greeting_is_refused_before_it_has_come() {
        let mut bytes = Vec::new();
        Greeting::Ready.encode(&mut bytes);
        bytes[5..9].copy_from_slice(&(BODY_MAX as u32 + 1).to_le_bytes());
        assert!(Greeting::decode(&bytes).is_err());
    }
}
