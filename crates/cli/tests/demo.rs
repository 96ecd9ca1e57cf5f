//! The demonstration of `quorate dev --lab`: what a page can ask of it, and who else cannot.

mod processes;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use processes::Running;

/// Longer than anything here takes on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// `quorate dev --lab`, ended with the test.
struct Demo {
    /// Its members end with it.
    _dev: Running,
    /// Where the page is, and the key for orders.
    place: String,
    key: String,
    /// The socket of a member.
    socket: String,
}

impl Demo {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.args(["dev", "--lab", "--json", "--lease", "900ms"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut dev = Running(command.spawn().expect("it runs"));
        let mut line = String::new();
        let out = dev.0.stdout.take().expect("it is read");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let ready: Value = serde_json::from_str(&line).expect("JSON");
        let page = ready["lab"].as_str().expect("an address");
        let (place, key) = page.split_once("/#/live?key=").expect("a key");
        let place = place.strip_prefix("http://").expect("HTTP").to_owned();
        let socket = ready["members"][0]["socket"].as_str().expect("a socket").to_owned();
        Self { _dev: dev, place, key: key.to_owned(), socket }
    }

    /// Asks for something, as whom is said: the head of the answer and its body.
    fn ask(&self, request: &str, fields: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.place).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        write!(stream, "{request} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n").expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), body.to_owned())
    }

    fn order(&self, path: &str) -> String {
        let fields = format!("Host: {}\r\nx-quorate-key: {}\r\n", self.place, self.key);
        self.ask(&format!("POST {path}"), &fields).0
    }

    /// Everything that is told, until something is.
    fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        let begun = Instant::now();
        let mut stream = TcpStream::connect(&self.place).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        write!(stream, "GET /live/feed HTTP/1.1\r\nHost: {}\r\n\r\n", self.place).expect("sent");
        for line in BufReader::new(stream).lines() {
            let line = line.expect("a line");
            let told = line.strip_prefix("data: ");
            let told = told.map(|text| serde_json::from_str(text).expect("JSON"));
            if told.is_some_and(|told| holds(&told)) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{what}");
        }
        panic!("the feed has ended before {what}");
    }
}

fn seated(told: &Value, name: &str, count: usize) -> bool {
    let status = &told["status"];
    let members = status["members"].as_array().into_iter().flatten();
    status["name"] == name && members.filter(|it| it["state"] == "seated").count() == count
}

#[test]
fn a_page_sees_the_cluster_and_may_kill_pause_and_cut() {
    let demo = Demo::start();
    let (_, page) = demo.ask("GET /", &format!("Host: {}\r\n", demo.place));
    assert!(page.contains("<meta name=\"live\" content=\"demo\">"), "{page}");

    assert!(demo.order("/live/members/c/kill").starts_with("HTTP/1.1 204"));
    demo.until("a fact of the death", |told| told["fact"] == "kill" && told["whom"] == "c");
    demo.until("a view of two", |told| seated(told, "a", 2));
    assert!(demo.order("/live/members/c/kill").starts_with("HTTP/1.1 409"), "it is dead");
    assert!(demo.order("/live/members/c/restart").starts_with("HTTP/1.1 204"));
    demo.until("a view of three", |told| seated(told, "a", 3));

    assert!(demo.order("/live/members/b/pause").starts_with("HTTP/1.1 204"));
    demo.until("a view without who stands still", |told| seated(told, "a", 2));
    assert!(demo.order("/live/members/b/continue").starts_with("HTTP/1.1 204"));
    demo.until("a view of three again", |told| seated(told, "a", 3));

    let link = |told: &Value, state: &str| {
        let links = told["status"]["links"].as_array().into_iter().flatten();
        let is = |it: &&Value| it["name"] == "b" && (it["state"] == "up") == (state == "up");
        told["status"]["name"] == "a" && links.filter(is).count() == 1
    };
    assert!(demo.order("/live/links/b/a/cut").starts_with("HTTP/1.1 204"));
    demo.until("a link that is down", |told| link(told, "down"));
    assert!(demo.order("/live/links/a/b/heal").starts_with("HTTP/1.1 204"));
    demo.until("a link that is up", |told| link(told, "up"));
    demo.until("messages", |told| told["is"] == "message" && told["from"] == "a");
}

#[test]
fn a_page_is_told_who_leads() {
    let demo = Demo::start();
    let mut elect = Command::new(env!("CARGO_BIN_EXE_quorate"));
    elect.args(["elect", "captain", "--connect", &demo.socket, "--", "cat"]);
    elect.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let _elect = Running(elect.spawn().expect("it runs"));
    let (begun, host) = (Instant::now(), format!("Host: {}\r\n", demo.place));
    loop {
        let (head, body) = demo.ask("GET /live/roles", &host);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let roles: Value = serde_json::from_str(&body).expect("JSON");
        let captain = roles.as_array().into_iter().flatten().find(|it| it["role"] == "captain");
        if captain.is_some_and(|it| it["leader"]["member"] == "a" && it["term"].is_string()) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{roles}");
    }
}

#[test]
fn who_has_no_key_or_comes_by_another_name_is_turned_away() {
    let demo = Demo::start();
    let host = format!("Host: {}\r\n", demo.place);
    let refused = |request: &str, fields: &str, code: &str| {
        let (head, _) = demo.ask(request, fields);
        assert!(head.starts_with(&format!("HTTP/1.1 {code}")), "{request}: {head}");
    };
    refused("POST /live/members/a/kill", &host, "403");
    refused("POST /live/members/a/kill", &format!("{host}x-quorate-key: 0\r\n"), "403");
    refused("POST /live/links/a/b/cut", &host, "403");
    refused("GET /live/members/a/kill", &host, "405");
    refused("GET /live/locks", "Host: evil.example\r\n", "403");
    refused("GET /", "Host: evil.example:80\r\n", "403");
    let key = format!("{host}x-quorate-key: {}\r\n", demo.key);
    refused("POST /live/members/z/kill", &key, "409");
    refused("POST /live/members/a/praise", &key, "404");
    refused("POST /live/links/a/a/cut", &key, "409");
    refused("POST /live/links/a/z/cut", &key, "409");
}
