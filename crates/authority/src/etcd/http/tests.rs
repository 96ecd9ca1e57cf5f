//! Answers that a server may give, well made and not.

use tokio::net::TcpListener;

use super::*;

/// Asks a server that answers this, whatever it is asked.
async fn answered(answer: &str) -> io::Result<Vec<u8>> {
    let mut connection = connected(answer).await;
    connection.post("/v3/kv/range", "{}").await
}

async fn connected(answer: &str) -> Connection {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap().to_string();
    let answer = answer.to_owned();
    tokio::spawn(async move {
        let (mut peer, _) = listener.accept().await.unwrap();
        let mut asked = [0; 1024];
        let _ = peer.read(&mut asked).await.unwrap();
        // Who asked may have read enough.
        let _ = peer.write_all(answer.as_bytes()).await;
    });
    Connection::open(&endpoint).await.unwrap()
}

#[tokio::test]
async fn answers_have_a_length_or_come_in_chunks() {
    let long = answered("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDate: x\r\n\r\nhello").await;
    assert_eq!(long.unwrap(), b"hello");
    let chunks =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n";
    assert_eq!(answered(chunks).await.unwrap(), b"hello");
}

#[tokio::test]
async fn lines_are_put_together_from_chunks() {
    let chunks =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na\nbc\r\n3\r\nd\ne\r\n0\r\n\r\n";
    let mut lines = connected(chunks).await.stream("/v3/watch", "{}").await.unwrap();
    assert_eq!(lines.line().await.unwrap(), b"a\n");
    assert_eq!(lines.line().await.unwrap(), b"bcd\n");
    lines.line().await.unwrap_err();
}

#[tokio::test]
async fn what_is_too_long_cut_off_or_malformed_is_an_error() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(1 << 14));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(100));
    let bad = [
        long.as_str(),
        many.as_str(),
        "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "SSH-2.0-x\r\n",
        "",
    ];
    for answer in bad {
        answered(answer).await.unwrap_err();
    }
}
