//! One question to an agent, and its answer.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
pub use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// An answer may be so long.
const ANSWER_MAX: usize = 16 << 20;

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
    sender.send_request(request).await.map_err(|error| odd(place, &error))
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

async fn answer(
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
    fn names_are_no_paths() {
        assert_eq!(escaped("a/b c?ä"), "a%2Fb%20c%3F%C3%A4");
        assert_eq!(escaped("nightly-1.2_x~"), "nightly-1.2_x~");
    }
}
