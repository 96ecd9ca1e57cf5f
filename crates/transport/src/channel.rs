//! A connection as bytes: a socket, and TLS around it if it is secured. It knows no segments.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

use crate::stats::{Stats, add, count};

/// A socket, and what is to be written to it.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: TcpStream,
    tls: Option<Box<Connection>>,
    /// What is to be written: in the clear, or, with TLS, what is to be encrypted next.
    out: Vec<u8>,
    /// So much of `out` is written.
    written: usize,
    stats: Arc<Stats>,
}

/// What came of reading.
#[derive(Debug)]
pub(crate) enum Got {
    /// Bytes came, and there may be more.
    More,
    /// Bytes came, and most likely all of them.
    All,
    /// Nothing was there.
    Blocked,
    /// The other side has ended the stream. With TLS, did it say so itself?
    End { announced: bool },
}

/// What came of writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrote {
    /// All of it.
    All,
    /// The socket takes no more for now.
    Blocked,
}

impl Channel {
    /// Without encryption.
    pub(crate) const fn plain(socket: TcpStream, stats: Arc<Stats>) -> Self {
        Self { socket, tls: None, out: Vec::new(), written: 0, stats }
    }

    /// As the side that dialled.
    pub(crate) fn client(
        socket: TcpStream,
        config: Arc<ClientConfig>,
        stats: Arc<Stats>,
    ) -> Result<Self, rustls::Error> {
        // Who is reached is checked by the certificate against the name that is meant; see `tls`.
        let name = ServerName::try_from("member.quorate")
            .map_err(|_| rustls::Error::General("a constant is no name".to_owned()))?;
        let tls = Connection::from(ClientConnection::new(config, name)?);
        Ok(Self::secured(socket, tls, stats))
    }

    /// As the side that was dialled.
    pub(crate) fn server(
        socket: TcpStream,
        config: Arc<ServerConfig>,
        stats: Arc<Stats>,
    ) -> Result<Self, rustls::Error> {
        let tls = Connection::from(ServerConnection::new(config)?);
        Ok(Self::secured(socket, tls, stats))
    }

    fn secured(socket: TcpStream, mut tls: Connection, stats: Arc<Stats>) -> Self {
        // What is encrypted is bounded by what is staged.
        tls.set_buffer_limit(None);
        Self { socket, tls: Some(Box::new(tls)), out: Vec::new(), written: 0, stats }
    }

    pub(crate) const fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(crate) const fn socket_mut(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Is the TLS handshake still going on?
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// The other side's certificate, which was verified in the handshake.
    pub(crate) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.tls.as_ref()?.peer_certificates()?.first()
    }

    /// Is anything left to be written?
    pub(crate) fn is_pending(&self) -> bool {
        !self.out.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Where bytes to be written are appended. More than a turn's worth only if nothing is pending.
    pub(crate) const fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Writes what is pending, with one call to the system.
    pub(crate) fn write(&mut self) -> io::Result<Wrote> {
        let Self { socket, tls, out, written, stats } = self;
        let result = if let Some(tls) = tls {
            if !out.is_empty() && !tls.is_handshaking() {
                tls.writer().write_all(out)?;
                out.clear();
            }
            if !tls.wants_write() {
                return Ok(Wrote::All);
            }
            tls.write_tls(&mut *socket)
        } else {
            if out.is_empty() {
                return Ok(Wrote::All);
            }
            socket.write(&out[*written..])
        };
        count(&stats.writes);
        match result {
            Ok(len) => add(&stats.bytes_out, len as u64),
            Err(error) if is_blocked(&error) => return Ok(Wrote::Blocked),
            Err(error) => return Err(error),
        }
        if let Some(tls) = tls {
            return Ok(if tls.wants_write() { Wrote::Blocked } else { Wrote::All });
        }
        *written += result.unwrap_or(0);
        if *written < out.len() {
            return Ok(Wrote::Blocked);
        }
        out.clear();
        *written = 0;
        Ok(Wrote::All)
    }

    /// Reads what is there, with one call to the system, and appends what it says to `into`.
    pub(crate) fn read(&mut self, scratch: &mut [u8], into: &mut Vec<u8>) -> io::Result<Got> {
        count(&self.stats.reads);
        let len = match self.socket.read(scratch) {
            Ok(0) => return Ok(Got::End { announced: false }),
            Ok(len) => len,
            Err(error) if is_blocked(&error) => return Ok(Got::Blocked),
            Err(error) => return Err(error),
        };
        add(&self.stats.bytes_in, len as u64);
        let more = if len == scratch.len() { Got::More } else { Got::All };
        let Some(tls) = &mut self.tls else {
            into.extend_from_slice(&scratch[..len]);
            return Ok(more);
        };
        let mut encrypted = &scratch[..len];
        while !encrypted.is_empty() {
            tls.read_tls(&mut encrypted)?;
            let state = tls.process_new_packets().map_err(io::Error::other)?;
            let clear = state.plaintext_bytes_to_read();
            if clear > 0 {
                let begun = into.len();
                into.resize(begun + clear, 0);
                tls.reader().read_exact(&mut into[begun..])?;
            }
            if state.peer_has_closed() {
                return Ok(Got::End { announced: true });
            }
        }
        Ok(more)
    }

    /// Ends the stream in this direction, after what is pending, as far as the socket takes it.
    pub(crate) fn finish(&mut self) {
        if let Some(tls) = &mut self.tls {
            if !self.out.is_empty() && !tls.is_handshaking() {
                // A stream that ends has no use for the error.
                let _ = tls.writer().write_all(&self.out);
                self.out.clear();
            }
            tls.send_close_notify();
        }
        let _ = self.write();
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

fn is_blocked(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
