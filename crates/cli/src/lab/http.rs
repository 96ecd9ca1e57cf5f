//! A small server for a few files that never change: one answer for each connection, and a limit for
//! everything that a client can do.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quorate_site::{Asset, POLICY};

/// The longest head of a request that is read.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// How long a client may take to ask, and to take an answer in.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most clients that are answered at a time; others are turned away.
const CLIENTS_MAX: usize = 64;

/// Answers clients until the listener fails.
pub(super) fn serve(listener: &TcpListener) -> io::Result<()> {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // A client that went away again is no reason to stop.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => return Err(error),
        };
        if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
            clients.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let clients = Arc::clone(&clients);
        let answered = std::thread::Builder::new().spawn(move || {
            // Whatever is wrong with a connection concerns nobody else.
            let _ = answer(&stream);
            clients.fetch_sub(1, Ordering::Relaxed);
        });
        drop(answered);
    }
}

fn answer(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (head, body) = match read_head(stream)? {
        Some(text) => Request::read(&text).map_or_else(refusal, |request| respond(&request)),
        None => refusal(Refused::TooLong),
    };
    let mut out = stream;
    out.write_all(head.as_bytes())?;
    out.write_all(&body)?;
    out.flush()
}

/// The head of a request; nothing if it is too long.
fn read_head(mut stream: &TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        match stream.read(&mut part)? {
            0 => break,
            count => head.extend_from_slice(&part[..count]),
        }
    }
    Ok(Some(String::from_utf8_lossy(&head).into_owned()))
}

/// What a client asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Request {
    path: String,
    /// It wants the head of the answer only.
    is_head: bool,
    /// It unpacks what is packed.
    unpacks: bool,
    /// What it has already.
    has: Option<String>,
}

/// Why a request is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Refused {
    NotUnderstood,
    NotAllowed,
    TooLong,
    NotThere,
}

impl Request {
    fn read(head: &str) -> Result<Self, Refused> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Refused::NotUnderstood);
        };
        if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
            return Err(Refused::NotUnderstood);
        }
        if !["GET", "HEAD"].contains(&method) {
            return Err(Refused::NotAllowed);
        }
        let field = |name: &str| {
            let fields = lines.clone().filter_map(|line| line.split_once(':'));
            let mut named = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name));
            named.next().map(|(_, value)| value.trim())
        };
        let accepts = field("accept-encoding").unwrap_or_default().split(',');
        let mut accepts = accepts.map(|one| one.split(';').next().unwrap_or_default().trim());
        Ok(Self {
            path: target.split(['?', '#']).next().unwrap_or_default().to_owned(),
            is_head: method == "HEAD",
            unpacks: accepts.any(|one| one.eq_ignore_ascii_case("br")),
            has: field("if-none-match").map(str::to_owned),
        })
    }
}

/// The head of an answer and its body.
type Response = (String, Vec<u8>);

fn respond(request: &Request) -> Response {
    let Some(asset) = Asset::at(&request.path) else { return refusal(Refused::NotThere) };
    let tag = asset.tag();
    let common = format!(
        "ETag: {tag}\r\nCache-Control: no-cache\r\nVary: Accept-Encoding\r\n\
         Content-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\n\
         Referrer-Policy: no-referrer\r\nConnection: close\r\n"
    );
    if request.has.as_deref() == Some(&tag) {
        return (format!("HTTP/1.1 304 Not Modified\r\n{common}\r\n"), Vec::new());
    }
    let packed = asset.is_packed && request.unpacks;
    let Ok(body) = (if packed { Ok(asset.bytes.into()) } else { asset.plain() }) else {
        return refusal(Refused::NotThere);
    };
    let encoding = if packed { "Content-Encoding: br\r\n" } else { "" };
    let (kind, length) = (asset.kind, body.len());
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{encoding}{common}\r\n"
    );
    (head, if request.is_head { Vec::new() } else { body.into_owned() })
}

fn refusal(why: Refused) -> Response {
    let (status, text) = match why {
        Refused::NotUnderstood => ("400 Bad Request", "this is no request"),
        Refused::NotAllowed => ("405 Method Not Allowed", "there are only files to be read"),
        Refused::TooLong => ("431 Request Header Fields Too Large", "the request is too long"),
        Refused::NotThere => ("404 Not Found", "there is no such file"),
    };
    let length = text.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    (head, text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(head: &str) -> Result<Request, Refused> {
        Request::read(head)
    }

    #[test]
    fn a_request_is_its_path_and_what_the_client_understands() {
        let asked = request(
            "GET /lab.js?x=1 HTTP/1.1\r\nHost: here\r\naccept-encoding: gzip, br;q=1\r\n\
             If-None-Match: \"a\"\r\n\r\n",
        );
        let has = Some("\"a\"".to_owned());
        let wanted = Request { path: "/lab.js".into(), is_head: false, unpacks: true, has };
        assert_eq!(asked, Ok(wanted));
        let plain = request("HEAD / HTTP/1.0\r\n\r\n").unwrap();
        assert!(plain.is_head && !plain.unpacks);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for bad in
            ["", "GET", "GET /", "GET  / HTTP/1.1", "GET x HTTP/1.1", "GET / FTP/1.1", "\0\0"]
        {
            assert_eq!(request(bad), Err(Refused::NotUnderstood), "{bad:?}");
        }
        assert_eq!(request("POST / HTTP/1.1\r\n\r\n"), Err(Refused::NotAllowed));
    }

    #[test]
    fn who_has_a_file_already_gets_no_other() {
        let first = request("GET / HTTP/1.1\r\nAccept-Encoding: br\r\n\r\n").unwrap();
        let (head, body) = respond(&first);
        assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("Content-Encoding: br"));
        assert!(!body.is_empty());
        let tag = head.lines().find_map(|line| line.strip_prefix("ETag: ")).unwrap().to_owned();
        let (head, body) = respond(&Request { has: Some(tag), ..first });
        assert!(head.starts_with("HTTP/1.1 304") && body.is_empty());
    }

    #[test]
    fn who_unpacks_nothing_gets_it_plain() {
        let (head, body) = respond(&request("GET / HTTP/1.1\r\n\r\n").unwrap());
        assert!(!head.contains("Content-Encoding") && body.starts_with(b"<!doctype html>"));
        let (head, body) = respond(&request("HEAD / HTTP/1.1\r\n\r\n").unwrap());
        assert!(head.contains("Content-Length: ") && body.is_empty());
    }
}
