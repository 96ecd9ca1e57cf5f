//! The example of a service with a gate, as its clients see it.
#![allow(clippy::unwrap_used, reason = "what is unexpected here is a failed test")]

#[path = "../examples/http/app.rs"]
mod app;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use quorate_fence::{Fence, FileGate};
use tokio::net::TcpListener;

/// A request of which the end of the body is still to come.
struct Half(TcpStream, &'static str);

fn begin(to: SocketAddr, fence: Option<&str>, text: &'static str) -> Half {
    let mut stream = TcpStream::connect(to).unwrap();
    let fence = fence.map(|fence| format!("quorate-fence: {fence}\r\n")).unwrap_or_default();
    let (now, later) = text.split_at(1);
    write!(
        stream,
        "PUT /documents/plan HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{fence}\
         content-length: {}\r\n\r\n{now}",
        text.len()
    )
    .unwrap();
    Half(stream, later)
}

impl Half {
    /// Sends the rest. The status of the answer, and its body.
    fn end(mut self) -> (u16, String) {
        // A refusal may come before all has been sent.
        let _ = self.0.write_all(self.1.as_bytes());
        answer(self.0)
    }
}

fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn put(to: SocketAddr, fence: Fence, text: &'static str) -> (u16, String) {
    begin(to, Some(&fence.to_string()), text).end()
}

fn get(to: SocketAddr) -> (u16, String) {
    let mut stream = TcpStream::connect(to).unwrap();
    write!(stream, "GET /documents/plan HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    answer(stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_stood_still_does_not_overwrite_its_successor() {
    let directory = tempfile::tempdir().unwrap();
    let gate = Arc::new(FileGate::create(directory.path().join(".gate")).unwrap());
    let service = app::documents(directory.path().into(), gate);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, service).await });
    tokio::task::spawn_blocking(move || clients(to)).await.unwrap();
}

fn clients(to: SocketAddr) {
    let (old, new) = (Fence::new(1, 5), Fence::new(1, 6));
    assert_eq!(get(to).0, 404);
    assert_eq!(put(to, old, "first"), (204, String::new()));
    assert_eq!(put(to, old, "second"), (204, String::new()));
    // One begins to write, and stands still half way. Its successor is not held up.
    let paused = begin(to, Some(&old.to_string()), "late");
    assert_eq!(put(to, new, "third"), (204, String::new()));
    let (status, body) = paused.end();
    assert_eq!(status, 412);
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["error"], "stale_fence");
    assert_eq!((&body["fence"], &body["seen"]), (&old.to_string().into(), &new.to_string().into()));
    assert_eq!(get(to), (200, "third".into()));
    for (fence, status, error) in
        [(None, 428, "no_fence"), (Some("6"), 400, "bad_fence"), (Some("\u{e9}"), 400, "bad_fence")]
    {
        let (was, body) = begin(to, fence, "none").end();
        assert_eq!(was, status, "{body}");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["error"], error);
    }
    assert_eq!(get(to), (200, "third".into()));
}
