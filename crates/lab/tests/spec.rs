//! A run as data: what stands in a header is what was given, and no more.

use quorate_core::{Span, Time};
use quorate_lab::{BadInput, FamilySpec, Spec, Watch, read, read_time, simulate};

/// A run with everything that can go wrong.
fn rough() -> Result<Spec, BadInput> {
    let mut spec = Spec::new("mutex/central", 5);
    spec.topology = Some(read("--topology", "links:1 2\n2 3\n")?);
    spec.latency = read("--latency", "uniform:0.5..1.5")?;
    spec.latency_table = Some(read("--latency-table", "1 2 3\n")?);
    spec.loss_table = Some(read("--loss-table", "1 2 0.5\n")?);
    spec.over = read("--over", "views,reliable")?;
    spec.partitions = vec![read("--partition", "1,2|3-5@10..20")?];
    spec.cuts = vec![read("--cut", "2-3@5..9")?, read("--cut", "2>3@5..")?];
    spec.crashes = vec![read("--crash", "3@5")?];
    spec.recoveries = vec![read("--recover", "3@7.5")?];
    spec.pauses = vec![read("--pause-node", "4@1..2")?];
    spec.clocks = vec![read("--clock", "4*0.5")?];
    spec.restarts = vec![read("--restart-all", "30")?];
    spec.disk_write = Some(read_time("--disk-write", "30us")?);
    spec.detection = Some(Span::units(2));
    spec.until = Some(Time::ZERO + Span::units(100));
    for (name, text) in [
        ("requests", "2"),
        ("load", "hot:2*5"),
        ("bystanders", "1,4-5"),
        ("quorum", "custom:1,2;2,3"),
        ("holder", "2"),
        ("cs", "2.5"),
    ] {
        spec.read(name, text)?;
    }
    Ok(spec)
}

#[test]
fn a_header_says_all_that_was_given() {
    let spec = rough().expect("it all makes sense");
    let text = serde_json::to_string(&spec).expect("it can be written");
    for part in [
        r#""partitions":["1-2|3-5@10..20"]"#,
        r#""cuts":["2-3@5..9","2>3@5.."]"#,
        r#""crashes":["3@5"],"recoveries":["3@7.5"]"#,
        r#""pauses":["4@1..2"],"clocks":["4*0.5"],"restarts":["30..31"],"disk_write":30000"#,
        r#""family":{"mutex":{"requests":2,"load":"hot:2*5","cs":2500000,"holder":2,"#,
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let again: Spec = serde_json::from_str(&text).expect("it can be read");
    assert_eq!(again, spec);
}

#[test]
fn a_header_says_nothing_that_goes_without_saying() {
    for (algorithm, family) in [
        ("mutex/central", r#"{"mutex":{"requests":3,"load":"heavy","cs":1000000}}"#),
        (
            "election/bully",
            r#"{"election":{"ids":"ascending","initiators":"all","stagger":0,"criterion":"highest"}}"#,
        ),
        ("detector/heartbeat", r#"{"detector":{"interval":10000000}}"#),
        ("group/abcast", r#"{"group":{"messages":5,"uniform":false,"gap":1000000}}"#),
        ("service/seat", r#"{"service":{"lease":100000000}}"#),
    ] {
        let text = serde_json::to_string(&Spec::new(algorithm, 5)).expect("it can be written");
        let usual = r#""latency":"1","loss":0.0,"duplicate":0.0,"reorder":0.0"#;
        let head = format!(r#"{{"algorithm":"{algorithm}","nodes":5,"seed":1,{usual}"#);
        assert_eq!(text, format!(r#"{head},"family":{family}}}"#));
    }
}

#[test]
fn an_argument_of_another_family_is_refused() {
    let mut spec = Spec::new("election/bully", 5);
    let error = spec.read("requests", "2").map_err(|bad| bad.to_string());
    let text = "--requests: only mutex algorithms take it, not election/bully";
    assert_eq!(error, Err(text.to_owned()));
    let error = spec.read("initiators", "some").map_err(|bad| bad.to_string());
    let text = "--initiators: some is not all, one, a number of nodes, or nodes:A,B,…";
    assert_eq!(error, Err(text.to_owned()));
    let FamilySpec::Mutex(mutex) = Spec::new("mutex/central", 5).family else {
        panic!("it is given what a mutex needs");
    };
    let spec = spec.given(mutex);
    let refused = simulate(&spec, Watch::default()).map_err(|bad| bad.to_string());
    let text = "ALGORITHM: election/bully is not given what election algorithms need";
    assert_eq!(refused.err().as_deref(), Some(text));
}

#[test]
fn nodes_that_are_listed_are_counted() {
    let mut spec = Spec::new("election/bully", 5);
    assert_eq!(spec.counted(), None);
    spec.topology = read("--topology", "links:1 2\n2 3\n").ok();
    assert_eq!(spec.counted(), Some(3));
    spec.read("ids", "7\n9 100\n").expect("these are ids");
    assert_eq!(spec.counted(), Some(2));
}
