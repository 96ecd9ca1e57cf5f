//! The pictures of a few runs, byte for byte, and that no trace breaks one.
//!
//! `UPDATE=1` rewrites the files under `golden`. Look at them before you keep them.
#![allow(clippy::unwrap_used, reason = "what is unexpected here is a failed test")]

#[path = "diagram/driver.rs"]
mod driver;
#[path = "diagram/runs.rs"]
mod runs;

use std::borrow::Cow;
use std::path::Path;

use quorate_core::trace::{Happening, Outcome, Parcel, Record};
use quorate_core::{NodeId, Time};
use quorate_lab::Spec;
use quorate_lab::diagram::{Fate, Mark, Phase, Picture, Style, TooLarge, What, listing};

fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(found == expected, "{name} differs; UPDATE=1 rewrites it");
}

fn draw(name: &str, family: &str, title: &str, nodes: usize, records: &[Record]) -> Picture {
    let picture = Picture::from_trace(family, nodes, records);
    let style = Style { title: title.into(), ..Style::default() };
    let svg = picture.svg(&style).unwrap();
    assert_well_formed(&svg);
    golden(&format!("{name}.svg"), &svg);
    golden(&format!("{name}.txt"), &picture.unicode(100));
    picture
}

#[test]
fn ricart_agrawala_as_a_picture() {
    let records = runs::ricart_agrawala(3, &[(0, 1), (5, 2)], runs::uneven);
    let picture = draw("ricart_agrawala", "mutex", "Ricart-Agrawala: 2 waits for 1", 3, &records);
    golden("ricart_agrawala_listing.txt", &listing(&records));
    let phases: Vec<_> = picture.bars.iter().map(|bar| (bar.node.number(), bar.phase)).collect();
    let expected =
        [(1, Phase::Wanting), (2, Phase::Wanting), (1, Phase::Inside), (2, Phase::Inside)];
    assert_eq!(phases, expected);
    assert!(picture.violation.is_none());
    assert_eq!(picture.summary(), "3 nodes · 8 messages (4 REQUEST, 4 REPLY) · 5.3 time units");
}

#[test]
fn five_nodes_fill_a_picture() {
    let records = runs::ricart_agrawala(5, &[(0, 1), (5, 4), (30, 2)], runs::uneven);
    draw("ricart_agrawala_5", "mutex", "Ricart-Agrawala, five nodes", 5, &records);
}

#[test]
fn a_violation_turns_the_strip_red() {
    let records = runs::ricart_agrawala(3, &[(0, 1), (5, 2)], runs::doubling);
    let picture = draw("violation", "mutex", "Ricart-Agrawala, a reply comes twice", 3, &records);
    let fault = picture.violation.as_ref().unwrap();
    let text = "safety violated at 2.8: node 2 enters while node 1 is inside";
    assert_eq!((fault.node, fault.to_string()), (NodeId::at(1), text.to_string()));
    assert_eq!(picture.arrows.iter().filter(|arrow| arrow.copy_of.is_some()).count(), 1);
}

#[test]
fn a_crash_and_a_loss_are_seen() {
    let picture =
        draw("bully", "election", "Bully: 5 crashes, 4 leads until 5 is back", 5, &runs::bully());
    let outages: Vec<_> =
        picture.outages.iter().map(|outage| (outage.node.number(), outage.until)).collect();
    assert_eq!(outages, [(5, Some(Time(7_500_000)))]);
    let lost = picture.arrows.iter().filter(|arrow| matches!(arrow.fate, Fate::Lost(_)));
    assert_eq!(lost.count(), 4);
    let leaders: Vec<_> = picture.bars.iter().map(|bar| (bar.node.number(), bar.is_open)).collect();
    assert_eq!(leaders, [(4, false), (5, true)]);
}

#[test]
fn a_ring_as_a_picture() {
    draw(
        "chang_roberts",
        "election",
        "Chang-Roberts: only 6 comes round",
        6,
        &runs::chang_roberts(),
    );
}

#[test]
fn a_large_run_is_drawn_and_a_huge_one_refused() {
    let wishes: Vec<_> = (0..30).map(|i| (i * 13, (i * 7 % 10) as u32 + 1)).collect();
    let records = runs::ricart_agrawala(10, &wishes, runs::uneven);
    let picture = Picture::from_trace("mutex", 10, &records);
    assert_well_formed(&picture.svg(&Style::default()).unwrap());

    let to: Vec<_> = NodeId::first(10_001).collect();
    let send = Outcome::Send { id: 1, to, kind: "K".into(), text: "K".into() };
    let record = step(0, 1, Happening::Start, vec![send]);
    let refused = Picture::from_trace("mutex", 10_001, &[record]).svg(&Style::default());
    assert_eq!(refused, Err(TooLarge::Arrows(10_001)));
    let sentence = "the run has 201 nodes, and a picture shows at most 200";
    let refused = Picture::from_trace("mutex", 201, &[]).svg(&Style::default());
    assert_eq!(refused.unwrap_err().to_string(), sentence);
}

fn step(at: u64, node: u32, input: Happening, effects: Vec<Outcome>) -> Record {
    let node = NodeId::new(node).unwrap();
    let (choices, steps, violation) = (vec![], vec![], None);
    Record { at: Time(at), node, input, choices, steps, effects, violation }
}

fn parcel(from: u32, id: u64) -> Parcel {
    let from = NodeId::new(from).unwrap();
    Parcel { from, id, kind: Cow::Borrowed("K<&>"), text: "K(\"<&>\u{1b}[2J\u{1}\")".into() }
}

fn send(id: u64, to: &[u32]) -> Outcome {
    let to = to.iter().map(|&to| NodeId::new(to).unwrap()).collect();
    Outcome::Send { id, to, kind: "K<&>".into(), text: "]]>\u{0}\u{fffe}'".into() }
}

/// Everything that a well-behaved engine does not write.
fn odd() -> Vec<Record> {
    vec![
        step(0, 1, Happening::Start, vec![send(1, &[1, 2, 99])]),
        step(0, 2, Happening::Command("Release".into()), vec![]),
        step(1, 1, Happening::Receive(parcel(1, 1)), vec![]),
        step(5, 1, Happening::Receive(parcel(2, 7)), vec![Outcome::Emit("Granted(None)".into())]),
        step(3, 2, Happening::Lose(parcel(1, 9)), vec![]),
        step(3, 7, Happening::Crash, vec![]),
        step(3, 2, Happening::Receive(parcel(9, 1)), vec![]),
        step(u64::MAX, 2, Happening::Recover, vec![send(1, &[1])]),
        step(u64::MAX - 1, 1, Happening::Refused("A<".into(), "&".into()), vec![]),
        step(u64::MAX, 1, Happening::Timer("Late".into()), vec![]),
    ]
}

#[test]
fn no_trace_breaks_a_picture() {
    for nodes in 0..4 {
        for count in 0..=odd().len() {
            let mut records = odd()[..count].to_vec();
            let title = "<title> & \"more\" \u{7}".to_string();
            let style = Style { title: title.clone(), caption: title, font_px: Some(22.0) };
            for _ in 0..2 {
                let picture = Picture::from_trace("mutex", nodes, &records);
                let svg = picture.svg(&style).unwrap();
                assert_well_formed(&svg);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                for width in [0, 1, 20, 60, 200] {
                    let text = picture.unicode(width);
                    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
                }
                records.reverse();
            }
        }
    }
    assert!(!listing(&odd()).contains('\u{1b}'));
}

#[test]
fn what_is_known_only_in_part_is_drawn_in_part() {
    let picture = Picture::from_trace("mutex", 2, &odd()[..5]);
    let fates: Vec<_> = picture.arrows.iter().map(|arrow| (arrow.sent, arrow.fate)).collect();
    let expected = [
        (Some(Time(0)), Fate::Received(Time(1))),
        (Some(Time(0)), Fate::InFlight),
        (None, Fate::Received(Time(5))),
        (None, Fate::Lost(Time(3))),
    ];
    assert_eq!(fates, expected);
    // Node 2 leaves without having entered: it was booted as the holder.
    assert_eq!((picture.bars[0].node.number(), picture.bars[0].phase), (2, Phase::Inside));
    let is_told =
        |what: &What| matches!(what, What::Mark(Mark::Told, text) if text == "Granted(None)");
    assert!(picture.events.iter().any(|event| is_told(&event.what)));
}

/// A bar for each view of each member, from installing it to the next one or to leaving.
#[test]
fn views_are_bars() {
    let told = |at, node, event: &str| {
        step(at, node, Happening::Timer("Views".into()), vec![Outcome::Emit(event.into())])
    };
    let records = [
        told(1, 1, "install 2 1,2,3 0/0"),
        told(2, 2, "install 2 1,2,3 0/0"),
        told(3, 1, "deliver 2:1"),
        told(4, 3, "excluded"),
        told(5, 1, "install 3 1,2 1/af"),
        told(6, 2, "left"),
        told(7, 1, "deliver 1:1"),
    ];
    let picture = Picture::from_trace("group", 3, &records);
    let bars: Vec<_> =
        picture.bars.iter().map(|bar| (bar.node.number(), bar.from.0, bar.until.0)).collect();
    assert_eq!(bars, [(1, 1, 5), (2, 2, 6), (1, 5, 7)]);
    assert!(picture.bars.iter().all(|bar| bar.phase == Phase::Member));
    let svg = picture.svg(&Style::default()).unwrap();
    assert_well_formed(&svg);
    assert!(svg.contains("1 is a member from") && svg.contains("install 3 1,2 1/af"));
    assert!(svg.contains("member of a view") && svg.contains(">delivers<"));
    assert!(picture.unicode(100).contains("▒ member"));
}

#[test]
fn a_terminal_gets_no_more_than_its_width() {
    let records = runs::bully();
    let picture = Picture::from_trace("election", 5, &records);
    for width in [40, 60, 80, 120] {
        let text = picture.unicode(width);
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(width), "{longest:?} columns of {width}");
        assert!(text.contains("COORDINATOR"), "{text}");
    }
}

/// Thirty nodes have columns of their own in any terminal, and every word is there.
#[test]
fn many_nodes_are_drawn_in_narrow_columns() {
    let records = runs::ricart_agrawala(30, &[(0, 1), (5, 30)], runs::uneven);
    let picture = Picture::from_trace("mutex", 30, &records);
    for width in [60, 80, 100, 200] {
        let text = picture.unicode(width);
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(width), "{longest:?} columns of {width}");
        let column_of_last = text.lines().find(|line| line.contains('▶')).unwrap();
        assert!(column_of_last.contains("receives"), "{text}");
        assert!(text.matches('◀').count() > 20, "{text}");
        assert!(width > 100 || text.contains("narrow: a stroke"), "{text}");
    }
    let list = picture.unicode(50);
    assert!(list.contains("a list: 30 nodes"), "{list}");
}

/// Views are strokes: nothing but bars and heads covers what is below.
#[test]
fn views_cover_nothing() {
    let told = |at, node, event: &str| {
        step(at, node, Happening::Timer("Views".into()), vec![Outcome::Emit(event.into())])
    };
    let records = [1, 2, 3].map(|n| told(u64::from(n), n, "install 2 1,2,3 0/0"));
    let svg = Picture::from_trace("group", 3, &records).svg(&Style::default()).unwrap();
    let barrier = svg.lines().find(|line| line.contains("stroke-dasharray=\"7 3\"")).unwrap();
    assert!(barrier.contains("fill=\"none\""), "{barrier}");
}

/// More kinds than colours are told apart by their strokes and heads.
#[test]
fn no_two_kinds_look_alike() {
    let sends = (0..10).map(|i| Outcome::Send {
        id: i,
        to: vec![NodeId::at(1)],
        kind: format!("KIND{i}").into(),
        text: "K".into(),
    });
    let records = [step(0, 1, Happening::Start, sends.collect())];
    let svg = Picture::from_trace("mutex", 2, &records).svg(&Style::default()).unwrap();
    let sign = |kind: usize| {
        let is_legend =
            |line: &&str| line.contains(&format!(">KIND{kind}<")) && line.contains("<path");
        let line = svg.lines().find(is_legend).unwrap();
        line.split_once("<path").unwrap().1.split_once("<text").unwrap().0.to_string()
    };
    let signs: std::collections::BTreeSet<_> = (0..10).map(sign).collect();
    assert_eq!(signs.len(), 10);
}

/// Of a window only what is in it is drawn, and nothing runs out of the picture.
#[test]
fn a_stretch_of_time_can_be_drawn_alone() {
    let records = runs::ricart_agrawala(3, &[(0, 1), (5, 2)], runs::uneven);
    let picture = Picture::from_trace("mutex", 3, &records);
    let (from, to) = (Time(1_000_000), Time(2_000_000));
    let part = picture.clone().between(Some(from), Some(to));
    assert!(part.events.len() < picture.events.len() && !part.events.is_empty());
    assert!(part.events.iter().all(|event| (from..=to).contains(&event.at)));
    assert!(part.arrows.len() < picture.arrows.len());
    let svg = part.svg(&Style::default()).unwrap();
    assert_well_formed(&svg);
    let width: f64 =
        svg.split_once("width=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap();
    for path in svg.split("<path d=\"M").skip(1) {
        let x: f64 = path.split([' ', 'V', 'H', 'L']).next().unwrap().parse().unwrap();
        assert!((0.0..=width).contains(&x), "{x} of {width}: {path}");
    }
    assert_eq!(picture.clone().between(None, None), picture);
}

/// What a run was given is read from the header of its trace.
#[test]
fn a_picture_tells_what_the_run_was_given() {
    let mut spec = Spec::new("group/virtual-synchrony", 4);
    spec.read("members", "3").unwrap();
    spec.crashes = vec!["2@8".parse().unwrap()];
    let told = |at, node, event: &str| {
        step(at, node, Happening::Timer("Views".into()), vec![Outcome::Emit(event.into())])
    };
    let records = [told(0, 1, "deliver 2:1"), told(9, 1, "install 2 1,3 0/0")];
    let picture = Picture::of(&spec.header("sim"), &records);
    assert!(picture.setting.words.contains("seed 1") && picture.setting.words.contains("2@8"));
    let members: Vec<_> = picture.bars.iter().map(|bar| bar.node.number()).collect();
    assert_eq!(members, [1, 2, 3, 1], "three from the start, and 1 again in view 2");
    let svg = picture.svg(&Style::default()).unwrap();
    assert_well_formed(&svg);
    assert!(svg.contains("view 2 {1,3}") && svg.contains("crash 2@8"), "{svg}");
    let first = picture.unicode(100).lines().nth(3).unwrap().to_string();
    assert_eq!(first.matches('▒').count(), 3, "{first}");

    let mut ring = Spec::new("election/chang-roberts", 3);
    ring.read("ids", "descending").unwrap();
    let picture =
        Picture::of(&ring.header("check"), &[step(2_000_000, 1, Happening::Start, vec![])]);
    assert_eq!(picture.setting.names, ["id 3", "id 2", "id 1"]);
    assert_eq!(picture.setting.links.len(), 3);
    assert!(picture.summary().ends_with("0 steps"), "{}", picture.summary());
}

/// A suspicion lasts from a failure detector's word to its next one.
#[test]
fn suspicions_are_bars() {
    let told = |at, event: &str| {
        step(at, 1, Happening::Timer("Silence(2)".into()), vec![Outcome::Emit(event.into())])
    };
    let records = [told(1, "Suspect(2)"), told(5, "Trust(2)"), told(7, "Suspect(3)")];
    let picture = Picture::from_trace("detector", 3, &records);
    let lasting: Vec<_> = picture
        .suspicions
        .iter()
        .map(|one| (one.peer.number(), one.from.0, one.until.map(|until| until.0)))
        .collect();
    assert_eq!(lasting, [(2, 1, Some(5)), (3, 7, None)]);
    assert!(picture.svg(&Style::default()).unwrap().contains("suspects a node"));
}

/// As much of XML as the pictures use: elements are closed in order, attributes are quoted, text
/// has no stray markup and no characters that XML forbids.
fn assert_well_formed(xml: &str) {
    assert!(xml.chars().all(|c| c == '\n' || (!c.is_control() && c != '\u{fffe}')));
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml;
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains('>') && !text.contains("]]>"), "stray: {text}");
        for entity in text.split('&').skip(1) {
            let (name, _) = entity.split_once(';').expect("an entity ends");
            assert!(["amp", "lt", "gt", "quot"].contains(&name), "unknown entity {name}");
        }
        let (tag, after) = after.split_once('>').expect("a tag ends");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.split([' ', '/']).next().unwrap();
        let unquoted: String = tag.split('"').step_by(2).collect();
        let attributes = unquoted.matches('=').count();
        assert_eq!(attributes * 2, tag.matches('"').count(), "{tag}");
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "left open: {open:?}");
}
