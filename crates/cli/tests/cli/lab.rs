//! `quorate lab`: what it serves, to whom, and what it does with those who ask for something else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A lab that is being served, until this is dropped.
struct Lab {
    child: Child,
    place: String,
}

impl Lab {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.args(["lab", "--no-open"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it can be started");
        let mut said = String::new();
        let out = child.stdout.as_mut().expect("it is piped");
        BufReader::new(out).read_line(&mut said).expect("it says where it is");
        let place = said.trim().strip_prefix("the lab is at http://").expect("an address");
        let place = place.trim_end_matches('/').to_owned();
        Self { child, place }
    }

    /// Sends these bytes; the head of the answer and its body.
    fn ask(&self, request: &[u8]) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.place).expect("somebody listens");
        stream.write_all(request).expect("it takes requests");
        let mut answer = Vec::new();
        // Who is refused early may be cut off while still speaking.
        let _ = stream.read_to_end(&mut answer);
        let end = answer.windows(4).position(|part| part == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        (head, answer[end + 4..].to_vec())
    }

    fn get(&self, path: &str, fields: &str) -> (String, Vec<u8>) {
        self.ask(format!("GET {path} HTTP/1.1\r\nHost: here\r\n{fields}\r\n").as_bytes())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_and_its_engines_are_served_on_loopback() {
    let lab = Lab::start();
    assert!(lab.place.starts_with("127.0.0.1:"), "{}", lab.place);
    let (head, body) = lab.get("/", "");
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("text/html"), "{head}");
    assert!(head.contains("Content-Security-Policy: default-src 'self'"), "{head}");
    let page = String::from_utf8(body).expect("text");
    for name in ["lab.js", "lab.css", "engine.wasm"] {
        assert!(page.contains(name), "{name}");
        assert!(lab.get(&format!("/{name}"), "").0.starts_with("HTTP/1.1 200"), "{name}");
    }
    let (head, packed) = lab.get("/engine.wasm", "Accept-Encoding: gzip, br\r\n");
    assert!(head.contains("application/wasm") && head.contains("Content-Encoding: br"), "{head}");
    let (_, plain) = lab.get("/engine.wasm", "");
    assert_eq!(plain[..4], *b"\0asm");
    assert!(packed.len() < plain.len() / 3);
}

#[test]
fn whatever_is_no_request_for_a_file_is_refused() {
    let lab = Lab::start();
    let status = |request: &[u8]| {
        let (head, _) = lab.ask(request);
        head.split(' ').nth(1).expect("a status").to_owned()
    };
    assert_eq!(status(b"GET /etc/passwd HTTP/1.1\r\n\r\n"), "404");
    assert_eq!(status(b"GET /../Cargo.toml HTTP/1.1\r\n\r\n"), "404");
    assert_eq!(status(b"POST / HTTP/1.1\r\n\r\n"), "405");
    assert_eq!(status(b"\xff\xfe nonsense\r\n\r\n"), "400");
    let long = [b"GET / HTTP/1.1\r\nX: ".to_vec(), vec![b'x'; 20_000]].concat();
    assert_eq!(status(&long), "431");
    assert_eq!(status(b"GET / HTTP/1.1\r\n\r\n"), "200");
}

#[test]
fn who_says_nothing_keeps_nobody_waiting() {
    let lab = Lab::start();
    let silent: Vec<_> = (0..10).map(|_| TcpStream::connect(&lab.place).expect("room")).collect();
    assert!(lab.get("/", "").0.starts_with("HTTP/1.1 200"));
    drop(silent);
}

#[test]
fn the_page_can_be_written_as_files() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab-files");
    let _ = std::fs::remove_dir_all(&folder);
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    let status = command.arg("lab").arg("--export").arg(&folder).status().expect("it runs");
    assert!(status.success());
    let page = std::fs::read_to_string(folder.join("index.html")).expect("it is there");
    assert!(page.starts_with("<!doctype html>"));
    let engine = std::fs::read(folder.join("engine.wasm")).expect("it is there");
    assert_eq!(engine[..4], *b"\0asm");
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(["lab", "--export", "/dev/null/lab"]).stderr(Stdio::piped());
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let lab = Lab::start();
    let port = lab.place.split(':').nth(1).expect("a port");
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    let output = command.args(["lab", "--no-open", "--port", port]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.starts_with("quorate: --port: 127.0.0.1:"), "{text}");
}
