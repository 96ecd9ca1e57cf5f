//! Histories as text: every fact, and what is refused.

use quorate_core::{Life, Span, Time};

use super::*;
use crate::groups::Order;
use crate::history::{ChildState, Fact, Fence, News, Role};
use crate::register::{Epoch, Nonce};

/// The records of this text.
fn read(text: &str) -> Result<(Vec<Record>, bool), String> {
    read_file(text.as_bytes(), RECORDS_MAX)
}

fn facts() -> Vec<(Fact, &'static str)> {
    [facts_of_seats(), facts_of_locks(), facts_of_roles_and_groups(), facts_of_the_harness()]
        .concat()
}

const EPOCH: Epoch = Epoch(7);
const FENCE: Fence = Fence { epoch: EPOCH, counter: 2 };

fn name() -> String {
    "x".to_owned()
}

fn whom() -> String {
    "a".to_owned()
}

fn facts_of_seats() -> Vec<(Fact, &'static str)> {
    let (epoch, life, at) = (EPOCH, Life(3), Time(9));
    let members = vec![Life(3), Life(4)];
    vec![
        (Fact::Start { pid: 5, role: Role::Member }, r#""start","pid":5,"role":"member""#),
        (Fact::Life { life }, r#""life","life":3"#),
        (
            Fact::Installed { epoch, life, members: members.clone() },
            r#""installed","epoch":7,"life":3,"members":[3,4]"#,
        ),
        (Fact::Stopped { epoch }, r#""stopped","epoch":7"#),
        (Fact::Until { at }, r#""until","at":9"#),
        (Fact::Presides { epoch, until: at }, r#""presides","epoch":7,"until":9"#),
        (Fact::Lost { why: "out".into() }, r#""lost","why":"out""#),
        (Fact::Out { life }, r#""out","life":3"#),
        (Fact::Left, r#""left""#),
        (Fact::Decided { epoch, members }, r#""decided","epoch":7,"members":[3,4]"#),
        (Fact::Exit, r#""exit""#),
    ]
}

fn facts_of_locks() -> Vec<(Fact, &'static str)> {
    let (fence, at) = (FENCE, Time(9));
    vec![
        (Fact::LockWish { name: name() }, r#""lockwish","name":"x""#),
        (
            Fact::Granted { space: None, name: name(), fence, until: at },
            r#""granted","name":"x","fence":{"epoch":7,"counter":2},"until":9"#,
        ),
        (
            Fact::Checked { space: None, name: name(), fence, left: Span(4) },
            r#""checked","name":"x","fence":{"epoch":7,"counter":2},"left":4"#,
        ),
        (
            Fact::Dropped { space: None, name: name(), fence },
            r#""dropped","name":"x","fence":{"epoch":7,"counter":2}"#,
        ),
        (
            Fact::Dropped { space: Some("roles".into()), name: name(), fence },
            r#""dropped","space":"roles","name":"x","fence":{"epoch":7,"counter":2}"#,
        ),
    ]
}

fn facts_of_roles_and_groups() -> Vec<(Fact, &'static str)> {
    let (epoch, fence) = (EPOCH, FENCE);
    vec![
        (
            Fact::Heard { role: name(), news: News::Nobody { after: Some(fence) } },
            r#""heard","role":"x","news":{"is":"nobody","after":{"epoch":7,"counter":2}}"#,
        ),
        (
            Fact::Observed { role: name(), news: News::Nobody { after: None } },
            r#""observed","role":"x","news":{"is":"nobody"}"#,
        ),
        (
            Fact::Observed {
                role: name(),
                news: News::Leads { term: fence, member: whom(), value: "here".into() },
            },
            r#""observed","role":"x","news":{"is":"leads","term":{"epoch":7,"counter":2},"member":"a","value":"here"}"#,
        ),
        (
            Fact::Observed { role: name(), news: News::Unknown },
            r#""observed","role":"x","news":{"is":"unknown"}"#,
        ),
        (
            Fact::Posted { group: name(), stream: 6, number: 1, order: Order::Fifo },
            r#""posted","group":"x","stream":6,"number":1,"order":"Fifo""#,
        ),
        (
            Fact::GroupView {
                group: name(),
                stream: 6,
                epoch,
                number: 1,
                members: vec![whom()],
                digest: Some(8),
            },
            r#""groupview","group":"x","stream":6,"epoch":7,"number":1,"members":["a"],"digest":8"#,
        ),
        (
            Fact::Delivered { group: name(), stream: 6, from: 5, number: 1, order: Order::Uniform },
            r#""delivered","group":"x","stream":6,"from":5,"number":1,"order":"Uniform""#,
        ),
        (
            Fact::GroupEnd { group: name(), stream: 6, left: true },
            r#""groupend","group":"x","stream":6,"left":true"#,
        ),
    ]
}

fn facts_of_the_harness() -> Vec<(Fact, &'static str)> {
    let fence = FENCE;
    vec![
        (
            Fact::Gate { name: name(), fence, accepted: true },
            r#""gate","name":"x","fence":{"epoch":7,"counter":2},"accepted":true"#,
        ),
        (
            Fact::Child { pid: 5, name: name(), fence, state: ChildState::Alive },
            r#""child","pid":5,"name":"x","fence":{"epoch":7,"counter":2},"state":"alive""#,
        ),
        (
            Fact::Call { id: 1, what: "lock".into(), within: Span(4) },
            r#""call","id":1,"what":"lock","within":4"#,
        ),
        (Fact::Return { id: 1, outcome: "ok".into() }, r#""return","id":1,"outcome":"ok""#),
        (Fact::Kill { whom: whom(), pid: 5 }, r#""kill","whom":"a","pid":5"#),
        (Fact::Stop { whom: whom(), pid: 5 }, r#""stop","whom":"a","pid":5"#),
        (Fact::Cont { whom: whom(), pid: 5 }, r#""cont","whom":"a","pid":5"#),
        (Fact::Term { whom: whom(), pid: 5 }, r#""term","whom":"a","pid":5"#),
        (
            Fact::Died { whom: whom(), pid: 5, how: "signal 6".into() },
            r#""died","whom":"a","pid":5,"how":"signal 6""#,
        ),
        (Fact::Cut { links: vec![(whom(), "b".into())] }, r#""cut","links":[["a","b"]]"#),
        (Fact::Fault { what: "loss".into() }, r#""fault","what":"loss""#),
        (Fact::Heal, r#""heal""#),
        (Fact::End, r#""end""#),
    ]
}

/// The format is what other programs write and read.
#[test]
fn every_fact_is_one_line_and_reads_back_as_itself() {
    for (fact, text) in facts() {
        let process = Nonce(0xab);
        let record = Record { t: 1, clock: Time(2), member: "a".into(), process, fact };
        let id = "000000000000000000000000000000ab";
        let line =
            format!(r#"{{"t":1,"clock":2,"member":"a","process":"{id}","fact":{text}}}"#) + "\n";
        assert_eq!(serde_json::to_string(&record).unwrap() + "\n", line);
        assert_eq!(read(&line), Ok((vec![record], false)));
    }
}

const LINE: &str = r#"{"t":1,"clock":2,"member":"a","process":"ab","fact":"exit"}"#;

#[test]
fn half_a_line_at_the_end_is_left_by_who_was_killed() {
    let (records, torn) = read(&format!("{LINE}\n{LINE}\n{}", &LINE[..30])).unwrap();
    assert_eq!((records.len(), torn), (2, true));
    // A whole record that only lacks its end is one.
    let (records, torn) = read(&format!("{LINE}\n{LINE}")).unwrap();
    assert_eq!((records.len(), torn), (2, false));
}

#[test]
fn whatever_is_wrong_is_named_with_its_line() {
    let bad = |text: &str| read(text).unwrap_err();
    assert!(bad(&format!("{LINE}\nnonsense\n{LINE}\n")).starts_with("line 2: "));
    assert!(bad(&LINE.replace("exit", "rest").replace('}', "}\n")).contains("rest"));
    assert!(bad(&format!("{}\n", LINE.replace("\"ab\"", "\"xy\""))).contains("hexadecimal"));
    let long = " ".repeat(LINE_BYTES_MAX as usize + 1);
    assert_eq!(bad(&long), "line 1: it is longer than 65536 bytes");
    let many = read_file(format!("{LINE}\n{LINE}\n{LINE}\n").as_bytes(), 2).unwrap_err();
    assert_eq!(many, "line 3: there are more than 5000000 records");
}

#[test]
fn a_folder_without_histories_is_bad_input() {
    let nowhere = gather(Path::new("no/such/folder")).unwrap_err();
    assert!(nowhere.starts_with("no/such/folder: "), "{nowhere}");
}
