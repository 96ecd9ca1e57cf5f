//! The engine over a gateway that does as it was told.

use std::collections::VecDeque;

use quorate_core::Span;
use quorate_service::Settings;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A gateway that does as it was told: what is under the key, and what becomes of one transaction after
/// the other. To those that nothing was said of it never answers, and of a watch nothing is heard.
#[derive(Default)]
struct Gateway {
    key: Option<Value>,
    transactions: VecDeque<Value>,
    asked: Vec<Value>,
}

type Told = Arc<StdMutex<Gateway>>;

async fn serve(mut peer: TcpStream, told: Told) -> io::Result<()> {
    let mut request = vec![0; 1 << 16];
    loop {
        let length = peer.read(&mut request).await?;
        if length == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&request[..length]).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        let answer = {
            let mut told = told.lock().unwrap();
            if head.starts_with("POST /v3/kv/range") {
                told.key.clone()
            } else if head.starts_with("POST /v3/kv/txn") {
                told.asked.push(serde_json::from_str(body).unwrap());
                told.transactions.pop_front()
            } else {
                None
            }
        };
        let Some(answer) = answer.map(|answer| answer.to_string()) else {
            return std::future::pending().await;
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len());
        peer.write_all((head + &answer).as_bytes()).await?;
    }
}

fn register(lease: u64) -> Register {
    Register::founded(3, Settings { lease: Span(lease) })
}

fn set(lease: u64) -> Order {
    Order::Set(Settings { lease: Span(lease) })
}

fn kv(lease: u64, revision: u64) -> Value {
    let value = base64::encode(&postcard::to_stdvec(&(1_u8, register(lease))).unwrap());
    json!({ "value": value, "mod_revision": revision.to_string() })
}

/// This is under the key.
fn found(lease: u64, revision: u64) -> Value {
    json!({ "kvs": [kv(lease, revision)] })
}

/// The swap was made.
fn made(revision: u64) -> Value {
    json!({ "succeeded": true, "header": { "revision": revision.to_string() } })
}

/// Somebody else was first, and this is there now.
fn lost(lease: u64, revision: u64) -> Value {
    json!({ "responses": [{ "response_range": { "kvs": [kv(lease, revision)] } }] })
}

/// An authority over a gateway that has a register of revision 5.
async fn connected() -> (Etcd, Told) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap().to_string();
    let told = Told::default();
    told.lock().unwrap().key = Some(found(1, 5));
    let shared = Arc::clone(&told);
    tokio::spawn(async move {
        while let Ok((peer, _)) = listener.accept().await {
            tokio::spawn(serve(peer, Arc::clone(&shared)));
        }
    });
    let patience = Duration::from_millis(500);
    let place = Place { endpoints: vec![endpoint], key: "k".to_owned(), patience };
    (Etcd::connect(place, None).await.unwrap(), told)
}

fn compared(transaction: &Value) -> &str {
    transaction["compare"][0]["mod_revision"].as_str().unwrap()
}

#[tokio::test]
async fn an_order_is_tried_again_on_what_somebody_else_has_made() {
    let (etcd, told) = connected().await;
    told.lock().unwrap().transactions.extend([lost(2, 8), made(9)]);
    assert_eq!(etcd.order(set(3)).await, Ok(Answer::Done));
    let asked = told.lock().unwrap().asked.clone();
    assert_eq!(asked.iter().map(compared).collect::<Vec<_>>(), ["5", "8"]);
    assert_eq!(etcd.watch().borrow().register.settings().lease, Span(3));
}

#[tokio::test]
async fn what_changes_nothing_is_compared_and_not_put() {
    let (etcd, told) = connected().await;
    told.lock().unwrap().transactions.push_back(made(7));
    let refused = etcd.order(Order::Leave(quorate_core::Life(1))).await;
    assert!(matches!(refused, Ok(Answer::Refused(_))));
    let asked = told.lock().unwrap().asked.clone();
    assert_eq!((compared(&asked[0]), &asked[0]["success"]), ("5", &json!([])));
    // The register is still that of revision 5, whatever else happened in etcd.
    told.lock().unwrap().transactions.push_back(made(9));
    assert_eq!(etcd.order(set(2)).await, Ok(Answer::Done));
    assert_eq!(compared(&told.lock().unwrap().asked[1]), "5");
}

#[tokio::test]
async fn what_is_not_answered_in_time_is_unknown_and_not_asked_twice() {
    let (etcd, told) = connected().await;
    assert_eq!(etcd.order(set(2)).await, Err(Unknown));
    assert_eq!(told.lock().unwrap().asked.len(), 1);
    assert_eq!(etcd.watch().borrow().register.settings().lease, Span(1));
    told.lock().unwrap().key = None;
    assert_eq!(etcd.read().await, Err(Unknown));
}

#[tokio::test]
async fn an_etcd_that_went_back_is_not_believed() {
    let (etcd, told) = connected().await;
    told.lock().unwrap().key = Some(found(9, 4));
    assert_eq!(etcd.read().await, Err(Unknown));
    told.lock().unwrap().transactions.push_back(lost(9, 4));
    assert_eq!(etcd.order(set(2)).await, Err(Unknown));
    assert_eq!(etcd.watch().borrow().register.settings().lease, Span(1));
}

#[tokio::test]
async fn what_is_no_register_is_not_read_as_one() {
    for value in ["", "AQ==", "Ag==", "!"] {
        let kv = json!({ "value": value, "mod_revision": "4" });
        let reply = json!({ "kvs": [kv] }).to_string();
        let error = gateway::read(reply.as_bytes()).unwrap_err();
        assert_eq!(ConnectError::from(error), ConnectError::Unreadable, "{value}");
    }
    let none = gateway::read(b"{\"header\":{}}").unwrap_err();
    assert_eq!(ConnectError::from(none), ConnectError::Missing);
    gateway::read(b"{").unwrap_err();
}
