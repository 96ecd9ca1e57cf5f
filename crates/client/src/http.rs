//! One question to an agent, and its answer.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
pub use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// An answer may be so long.
const ANSWER_MAX: usize = 16 << 20;
/// An agent from which nothing has come for so long is gone. One that has nothing to tell says that every
/// fifteen seconds.
const QUIET: Duration = Duration::from_secs(45);

/// Where an agent is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// Its socket on this machine.
    Socket(PathBuf),
    /// Its HTTP address on this machine, `host:port`.
    Http(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Http(address) => write!(f, "http://{address}"),
        }
    }
}

impl From<&str> for Place {
    /// `http://HOST:PORT`, or else the path of a socket.
    fn from(text: &str) -> Self {
        match text.strip_prefix("http://") {
            Some(address) => Self::Http(address.trim_end_matches('/').to_owned()),
            None => Self::Socket(text.into()),
        }
    }
}

impl From<String> for Place {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<&Path> for Place {
    fn from(path: &Path) -> Self {
        Self::Socket(path.into())
    }
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Self::Socket(path)
    }
}

impl FromStr for Place {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.into())
    }
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Silence {
    /// Nobody is there.
    Nobody(String),
    /// Somebody is, and does not answer, or nothing that makes sense.
    Odd(String),
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody(why) => write!(f, "no agent answers at {why}"),
            Self::Odd(why) => write!(f, "the agent at {why}"),
        }
    }
}

impl std::error::Error for Silence {}

fn odd(place: &Place, why: &dyn fmt::Display) -> Silence {
    Silence::Odd(format!("{place}: {why}"))
}

/// Asks an agent something.
///
/// # Errors
/// If it cannot be asked.
pub async fn exchange(
    place: &Place,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Result<Response<Incoming>, Silence> {
    ask(place, method, path, body.map(json)).await
}

/// What a question carries: of what kind, and the bytes.
type Carried = (&'static str, Bytes);

fn json(body: Value) -> Carried {
    ("application/json", Bytes::from(body.to_string()))
}

async fn ask(
    place: &Place,
    method: Method,
    path: &str,
    body: Option<Carried>,
) -> Result<Response<Incoming>, Silence> {
    let nobody = |error: std::io::Error| Silence::Nobody(format!("{place}: {error}"));
    match place {
        Place::Socket(socket) => {
            let stream = UnixStream::connect(socket).await.map_err(nobody)?;
            over(place, stream, (method, path, body)).await
        }
        Place::Http(address) => {
            let stream = TcpStream::connect(address.as_str()).await.map_err(nobody)?;
            over(place, stream, (method, path, body)).await
        }
    }
}

async fn over(
    place: &Place,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    (method, path, body): (Method, &str, Option<Carried>),
) -> Result<Response<Incoming>, Silence> {
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| odd(place, &error))?;
    // It ends with its last answer; what went wrong with it is seen there.
    tokio::spawn(async move { drop(connection.await) });
    let mut request = hyper::Request::builder().method(method).uri(path).header("host", "agent");
    if let Some((kind, _)) = &body {
        request = request.header("content-type", *kind);
    }
    let body = Full::new(body.map(|(_, bytes)| bytes).unwrap_or_default());
    let request = request.body(body).map_err(|error| odd(place, &error))?;
    sender.send_request(request).await.map_err(|error| match error.is_incomplete_message() {
        // It went away while it was asked.
        true => Silence::Nobody(format!("{place}: {error}")),
        false => odd(place, &error),
    })
}

/// Has an agent do something: the status of its answer, and what it says in JSON.
///
/// # Errors
/// If there is no agent, or what it answers makes no sense.
pub async fn call(
    place: &Place,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Result<(StatusCode, Value), Silence> {
    answer(place, exchange(place, method, path, body).await?).await
}

/// The same with bytes.
///
/// # Errors
/// As [`call`].
pub async fn call_with(
    place: &Place,
    method: Method,
    path: &str,
    bytes: Vec<u8>,
) -> Result<(StatusCode, Value), Silence> {
    let body = Some(("application/octet-stream", Bytes::from(bytes)));
    answer(place, ask(place, method, path, body).await?).await
}

/// What an agent says in JSON, and the status of that.
pub(crate) async fn answer(
    place: &Place,
    response: Response<Incoming>,
) -> Result<(StatusCode, Value), Silence> {
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
    let bytes = body.map_err(|error| odd(place, &error))?.to_bytes();
    if bytes.is_empty() {
        return Ok((status, Value::Null));
    }
    let said = serde_json::from_slice(&bytes);
    Ok((status, said.unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into()))))
}

/// What an agent tells as server-sent events, each in JSON.
#[derive(Debug)]
pub struct Events {
    place: Place,
    body: Incoming,
    text: Vec<u8>,
    /// No event ends before here.
    searched: usize,
}

impl Events {
    /// Those that an answer is made of.
    #[must_use]
    pub fn of(place: &Place, response: Response<Incoming>) -> Self {
        let (place, body) = (place.clone(), response.into_body());
        Self { place, body, text: Vec::new(), searched: 0 }
    }

    /// The next one; nothing when the agent tells nothing more.
    ///
    /// # Errors
    /// If the agent is gone, or what it tells makes no sense.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Silence> {
        loop {
            while let Some(event) = self.split() {
                let data = |line: &'_ [u8]| line.strip_prefix(b"data: ").map(<[u8]>::to_vec);
                // One without data says only that the agent is there.
                if let Some(data) = event.split(|byte| *byte == b'\n').find_map(data) {
                    let told = serde_json::from_slice(&data);
                    return told.map(Some).map_err(|error| odd(&self.place, &error));
                }
            }
            let frame = timeout(QUIET, self.body.frame()).await;
            let frame = frame.map_err(|_| odd(&self.place, &"it does not go on"))?;
            let Some(frame) = frame.transpose().map_err(|error| odd(&self.place, &error))? else {
                return Ok(None);
            };
            self.text.extend_from_slice(frame.data_ref().map_or(&[], |data| &data[..]));
            if self.text.len() > ANSWER_MAX {
                return Err(odd(&self.place, &"too much at once"));
            }
        }
    }

    /// The next event, if all of it is there.
    fn split(&mut self) -> Option<Vec<u8>> {
        let found = self.text[self.searched..].windows(2).position(|two| two == b"\n\n");
        match found {
            Some(at) => {
                let end = self.searched + at + 2;
                self.searched = 0;
                Some(self.text.drain(..end).collect())
            }
            None => {
                self.searched = self.text.len().saturating_sub(1);
                None
            }
        }
    }
}

/// Bytes as base64, if they are no text: what an agent writes beside the text that is nearest to them.
#[must_use]
pub fn no_text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).err().map(|_| BASE64_STANDARD.encode(bytes))
}

/// The bytes that a text in base64 means, if it is one.
#[must_use]
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(text).ok()
}

/// Bytes that were written as a text, or as base64 beside it.
pub(crate) fn bytes(text: &Value, base64: &Value) -> Vec<u8> {
    let plain = || text.as_str().unwrap_or_default().as_bytes().to_vec();
    base64.as_str().and_then(from_base64).unwrap_or_else(plain)
}

/// A text as a part of a path or of a query.
#[must_use]
pub fn escaped(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match plain(&byte) {
            true => escaped.push(char::from(byte)),
            false => escaped += &format!("%{byte:02X}"),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart() {
        assert_eq!(Place::from("http://127.0.0.1:80/"), Place::Http("127.0.0.1:80".into()));
        assert_eq!(Place::from("/run/a.sock"), Place::Socket("/run/a.sock".into()));
    }

    #[test]
    fn bytes_that_are_no_text_come_as_they_are() {
        let written = |bytes: &[u8]| {
            let (text, base64) = (String::from_utf8_lossy(bytes), no_text(bytes));
            super::bytes(&text.into(), &base64.into())
        };
        assert_eq!(no_text("grün".as_bytes()), None);
        assert_eq!(written("grün".as_bytes()), "grün".as_bytes());
        assert_eq!(written(&[0xff, 0, 7]), [0xff, 0, 7]);
        assert_eq!(from_base64("no base64"), None);
    }

    #[test]
    fn names_are_no_paths() {
        assert_eq!(escaped("a/b c?ä"), "a%2Fb%20c%3F%C3%A4");
        assert_eq!(escaped("nightly-1.2_x~"), "nightly-1.2_x~");
    }
}
