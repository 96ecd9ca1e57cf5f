//! What is asked of the gateway, and what it answers, in JSON. Bytes are base64 there, numbers are text.

use std::io;
use std::sync::Arc;

use quorate_service::{Committed, Register, Revision};
use serde_json::{Value, json};

use super::base64;

/// The version of the value under the key, its first byte.
const VERSION: u8 = 1;

/// A register, and the revision of etcd that made it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) revision: u64,
    pub(super) register: Arc<Register>,
}

impl Known {
    /// The register as all engines tell of it.
    pub(super) fn committed(&self) -> Committed {
        Committed { revision: Revision(self.revision), register: Arc::clone(&self.register) }
    }

    /// An error if etcd has gone back behind this revision, which was seen already.
    pub(super) fn not_before(self, revision: u64) -> io::Result<Self> {
        if self.revision >= revision { Ok(self) } else { Err(io::Error::other("etcd went back")) }
    }
}

/// What came of a swap.
pub(super) enum Swap {
    /// It was done.
    Done {
        /// The revision of etcd now.
        revision: u64,
    },
    /// The key had been changed; this is there now.
    Other(Known),
}

fn value(register: &Register) -> String {
    let bytes = postcard::to_stdvec(&(VERSION, register)).unwrap_or_default();
    base64::encode(&bytes)
}

pub(super) fn range(key: &str) -> String {
    json!({ "key": base64::encode(key.as_bytes()) }).to_string()
}

/// Puts the register if there is nothing under the key.
pub(super) fn found(key: &str, register: &Register) -> String {
    let key = base64::encode(key.as_bytes());
    let absent =
        json!({ "key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0" });
    let put = json!({ "request_put": { "key": key, "value": value(register) } });
    json!({ "compare": [absent], "success": [put], "failure": [] }).to_string()
}

/// Puts the register, or nothing, if the key is still as this revision made it.
pub(super) fn swap(key: &str, revision: u64, register: Option<&Register>) -> String {
    let key = base64::encode(key.as_bytes());
    let (target, result, revision) = ("MOD", "EQUAL", revision.to_string());
    let same = json!({ "key": key, "target": target, "result": result, "mod_revision": revision });
    let put = |register| json!({ "request_put": { "key": key, "value": value(register) } });
    let puts: Vec<_> = register.into_iter().map(put).collect();
    let range = json!({ "request_range": { "key": key } });
    json!({ "compare": [same], "success": puts, "failure": [range] }).to_string()
}

pub(super) fn watch(key: &str, from: u64) -> String {
    let key = base64::encode(key.as_bytes());
    json!({ "create_request": { "key": key, "start_revision": from.to_string() } }).to_string()
}

pub(super) fn read(reply: &[u8]) -> io::Result<Known> {
    known(&parsed(reply)?["kvs"][0])
}

pub(super) fn swapped(reply: &[u8]) -> io::Result<Swap> {
    let reply = parsed(reply)?;
    // What is false is left out.
    if reply["succeeded"] == Value::Bool(true) {
        return Ok(Swap::Done { revision: number(&reply["header"]["revision"])? });
    }
    known(&reply["responses"][0]["response_range"]["kvs"][0]).map(Swap::Other)
}

/// The registers of one line of a watch; a deleted key and a watch that was ended are errors.
pub(super) fn events(line: &[u8]) -> io::Result<Vec<Known>> {
    let line = parsed(line)?;
    let result = &line["result"];
    if result["canceled"] == Value::Bool(true) || !line["error"].is_null() {
        return Err(io::Error::other("the watch was ended"));
    }
    let events = result["events"].as_array().map_or(&[][..], Vec::as_slice);
    events.iter().map(|event| known(&event["kv"])).collect()
}

fn known(kv: &Value) -> io::Result<Known> {
    if kv.is_null() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let bytes = kv["value"].as_str().and_then(base64::decode).ok_or(io::ErrorKind::InvalidData)?;
    let (version, rest) = bytes.split_first().ok_or(io::ErrorKind::InvalidData)?;
    match postcard::take_from_bytes(rest) {
        Ok((register, [])) if *version == VERSION => {
            Ok(Known { revision: number(&kv["mod_revision"])?, register: Arc::new(register) })
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn number(value: &Value) -> io::Result<u64> {
    let number = value.as_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn parsed(bytes: &[u8]) -> io::Result<Value> {
    serde_json::from_slice(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}
