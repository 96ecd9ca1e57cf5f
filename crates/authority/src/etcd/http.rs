//! As much of HTTP/1.1 as the gateway needs: a request with a body, an answer with a length or in chunks.
//! Everything that is read has a limit.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The longest line of a head, and the most lines.
const LINE: u64 = 8 << 10;
const LINES: usize = 64;
/// The longest body, and the longest line of a stream.
const BODY: usize = 16 << 20;

/// A connection to an endpoint, between two questions.
#[derive(Debug)]
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
}

/// How long a body is.
#[derive(Debug)]
enum Framing {
    Length(usize),
    Chunks,
}

impl Connection {
    pub(super) async fn open(endpoint: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(endpoint).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), host: endpoint.to_owned() })
    }

    /// Asks, and reads the whole answer.
    pub(super) async fn post(&mut self, path: &str, body: &str) -> io::Result<Vec<u8>> {
        let (status, framing) = self.ask(path, body).await?;
        let mut answer = Vec::new();
        match framing {
            Framing::Length(length) => self.take(length, &mut answer).await?,
            Framing::Chunks => while self.chunk(&mut answer).await? {},
        }
        if status == 200 { Ok(answer) } else { Err(refused(status)) }
    }

    /// Asks, and leaves the answer to be read line by line.
    pub(super) async fn stream(mut self, path: &str, body: &str) -> io::Result<Lines> {
        match self.ask(path, body).await? {
            (200, Framing::Chunks) => Ok(Lines { connection: self, read: Vec::new() }),
            (status, _) => Err(refused(status)),
        }
    }

    async fn ask(&mut self, path: &str, body: &str) -> io::Result<(u16, Framing)> {
        let (host, length) = (&self.host, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await?;
        let first = self.line().await?;
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(malformed)?;
        let mut framing = None;
        for _ in 0..LINES {
            let line = self.line().await?;
            if line.is_empty() {
                return framing.map(|framing| (status, framing)).ok_or_else(malformed);
            }
            let (name, value) = line.split_once(':').ok_or_else(malformed)?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                framing = Some(Framing::Length(value.parse().map_err(|_| malformed())?));
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                let chunked = value.eq_ignore_ascii_case("chunked");
                framing = Some(chunked.then_some(Framing::Chunks).ok_or_else(malformed)?);
            }
        }
        Err(malformed())
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        (&mut self.stream).take(LINE).read_line(&mut line).await?;
        // One that does not end was cut off, by its sender or by the limit.
        let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(line.to_owned())
    }

    async fn take(&mut self, length: usize, into: &mut Vec<u8>) -> io::Result<()> {
        if length > BODY.saturating_sub(into.len()) {
            return Err(io::Error::other("the answer is too long"));
        }
        let taken = (&mut self.stream).take(length as u64).read_to_end(into).await?;
        if taken == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Reads a chunk; false if it is the last one, which is empty.
    async fn chunk(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        let head = self.line().await?;
        let size = head.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(size, 16).map_err(|_| malformed())?;
        self.take(length, into).await?;
        let end = self.line().await?;
        if end.is_empty() { Ok(length > 0) } else { Err(malformed()) }
    }
}

/// A body that comes line by line, for as long as it comes.
#[derive(Debug)]
pub(super) struct Lines {
    connection: Connection,
    read: Vec<u8>,
}

impl Lines {
    /// The next line. Given up in the middle, the stream cannot be read on.
    pub(super) async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(end + 1);
                return Ok(std::mem::replace(&mut self.read, rest));
            }
            if !self.connection.chunk(&mut self.read).await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn refused(status: u16) -> io::Error {
    io::Error::other(format!("status {status}"))
}

#[cfg(test)]
mod tests;
