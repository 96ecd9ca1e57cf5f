//! Values that were computed independently: every system with all its properties and measures.

use num_rational::Ratio;

use crate::verify::{self, Domination};
use crate::{Examined, Kind, Load, System, availability, examine, load, truth::Truth};

const P: f64 = 0.1;

/// One line of the table.
struct Golden {
    kind: &'static str,
    nodes: usize,
    count: u128,
    sizes: (usize, usize),
    /// Coterie, symmetric, ideal, non-dominated: `y` or `n`.
    is: &'static str,
    load: (i128, i128),
    resilience: usize,
    failure: f64,
    /// None where it was not computed.
    probes: Option<usize>,
}

/// Kind, nodes, number of quorums, sizes, properties, load, resilience, failure, probes.
type Row = (
    &'static str,
    usize,
    u128,
    (usize, usize),
    &'static str,
    (i128, i128),
    usize,
    f64,
    Option<usize>,
);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("singleton", 1, 1, (1, 1), "yyyy", (1, 1), 0, 0.1, Some(1)),
    ("all", 4, 1, (4, 4), "yyyn", (1, 1), 0, 0.3439, Some(4)),
    ("majority", 3, 3, (2, 2), "yyyy", (2, 3), 1, 0.028, Some(3)),
    ("majority", 4, 4, (3, 3), "yynn", (3, 4), 1, 0.0523, Some(4)),
    ("majority", 5, 10, (3, 3), "yyny", (3, 5), 2, 0.00856, Some(5)),
    ("majority", 7, 35, (4, 4), "yyny", (4, 7), 3, 0.002728, Some(7)),
    ("weighted:3,1,1,1,1", 5, 5, (2, 4), "ynny", (4, 7), 1, 0.03448, Some(5)),
    ("weighted:2,1,1,1", 4, 4, (2, 3), "ynny", (3, 5), 1, 0.028, Some(4)),
    ("weighted:3,2,2,1", 4, 3, (2, 3), "ynnn", (2, 3), 1, 0.0361, Some(4)),
    ("grid", 3, 3, (2, 3), "nnnn", (1, 1), 0, 0.109, Some(3)),
    ("grid", 4, 4, (3, 3), "yynn", (3, 4), 1, 0.0523, Some(4)),
    ("grid", 5, 5, (3, 4), "nnnn", (2, 3), 1, 0.05959, Some(5)),
    ("grid", 6, 6, (4, 4), "yynn", (2, 3), 1, 0.074899, Some(6)),
    ("grid", 7, 7, (3, 5), "nnnn", (3, 5), 1, 0.0498943, Some(7)),
    ("grid", 8, 8, (4, 5), "ynnn", (1, 2), 1, 0.03664837, Some(8)),
    ("grid", 9, 9, (5, 5), "yynn", (5, 9), 2, 0.033308821, Some(9)),
    ("grid", 12, 12, (6, 6), "yynn", (1, 2), 2, 0.043108061599, None),
    ("grid", 16, 16, (7, 7), "yynn", (7, 16), 3, 0.0248890823536483, None),
    ("projective-plane", 7, 7, (3, 3), "yyyy", (3, 7), 2, 0.0068104, Some(7)),
    ("projective-plane", 13, 13, (4, 4), "yyyn", (4, 13), 3, 0.0014167723402, None),
    ("crumbling-wall:1,2", 3, 3, (2, 2), "yyyy", (2, 3), 1, 0.028, Some(3)),
    ("crumbling-wall:1,3", 4, 4, (2, 3), "ynny", (3, 5), 1, 0.028, Some(4)),
    ("crumbling-wall:1,2,2", 5, 7, (2, 3), "ynny", (4, 7), 1, 0.01504, Some(5)),
    ("crumbling-wall:1,2,3", 6, 10, (3, 3), "ynny", (1, 2), 2, 0.00856, Some(6)),
    ("crumbling-wall:1,2,2,2", 7, 15, (2, 4), "ynny", (8, 15), 1, 0.0127072, Some(7)),
    ("crumbling-wall:1,2,2,3", 8, 22, (3, 4), "ynny", (6, 13), 2, 0.0050608, Some(8)),
    ("crumbling-wall", 8, 22, (3, 4), "ynny", (6, 13), 2, 0.0050608, Some(8)),
    ("crumbling-wall:1,2,3,4", 10, 41, (4, 4), "ynny", (2, 5), 3, 0.003042928, None),
    ("crumbling-wall:2,2", 4, 3, (2, 3), "ynnn", (2, 3), 1, 0.0442, Some(4)),
    ("crumbling-wall:2,3", 5, 4, (3, 3), "ynnn", (3, 5), 1, 0.0523, Some(5)),
    ("crumbling-wall:2,2,3", 7, 10, (3, 4), "ynnn", (1, 2), 2, 0.012934, Some(7)),
    ("tree", 3, 3, (2, 2), "yyyy", (2, 3), 1, 0.028, Some(3)),
    ("tree", 7, 15, (3, 4), "ynny", (1, 2), 2, 0.0062272, Some(7)),
    ("tree", 15, 255, (4, 8), "ynny", (2, 5), 3, 0.001276462415872, None),
    ("nucleus", 7, 10, (3, 3), "ynny", (1, 2), 2, 0.00856, Some(5)),
];

fn goldens() -> impl Iterator<Item = Golden> {
    ROWS.iter().map(|&(kind, nodes, count, sizes, is, load, resilience, failure, probes)| Golden {
        kind,
        nodes,
        count,
        sizes,
        is,
        load,
        resilience,
        failure,
        probes,
    })
}

fn system(golden: &Golden) -> System {
    System::new(golden.kind.parse().unwrap(), golden.nodes).unwrap()
}

fn compare(golden: &Golden, found: &Examined) {
    let name = (golden.kind, golden.nodes);
    assert_eq!(found.count, Some(golden.count), "{name:?}");
    assert_eq!(found.sizes, golden.sizes, "{name:?}");
    let is = [Some(found.coterie), found.symmetric, found.ideal, found.non_dominated()];
    let wanted: alloc::vec::Vec<_> = golden.is.chars().map(|c| Some(c == 'y')).collect();
    assert_eq!(is[..], wanted[..], "{name:?}: coterie, symmetric, ideal, non-dominated");
    let (numerator, denominator) = golden.load;
    assert_eq!(found.load, Load::Exact(Ratio::new(numerator, denominator)), "{name:?}");
    assert_eq!(found.resilience, Some(golden.resilience), "{name:?}");
    let failure = found.failure.value();
    assert!((failure - golden.failure).abs() < 1e-15, "{name:?}: {failure}");
    if golden.probes.is_some() {
        assert_eq!(found.probes, golden.probes, "{name:?}");
    }
}

#[test]
fn every_row_of_the_table() {
    for golden in goldens() {
        compare(&golden, &examine(&system(&golden), P, 1).unwrap());
    }
}

/// The same measures once more from the bare list, without any closed form.
#[test]
fn every_row_of_the_table_from_its_list() {
    for golden in goldens() {
        let system = system(&golden);
        let list = Kind::Custom(system.minimal().unwrap().sets().to_vec());
        let custom = System::new(list, golden.nodes).unwrap();
        let found = examine(&custom, P, 1).unwrap();
        let minimal = Golden { count: found.count.unwrap(), sizes: found.sizes, ..golden };
        let is = [Some(found.coterie), found.symmetric, found.ideal];
        assert_eq!(is[0], Some(true));
        if minimal.is.starts_with('y') {
            compare(&minimal, &found);
        } else {
            assert_eq!(found.non_dominated(), Some(false));
            assert_eq!(found.load.exact(), load::load(&system).exact());
            assert_eq!(found.resilience, Some(minimal.resilience));
            assert!((found.failure.value() - minimal.failure).abs() < 1e-15);
        }
    }
}

#[test]
fn domination_agrees_with_self_duality_on_all_rows_and_on_random_systems() {
    let rows = goldens().map(|golden| system(&golden).minimal().unwrap());
    let random = (0..200).map(|seed| crate::random::coterie(seed, 2 + seed as usize % 7));
    for quorums in rows.chain(random) {
        let dual = Truth::of(&quorums).unwrap().dominating();
        let transversals = verify::transversals(&quorums, 1 << 24).unwrap();
        let by_berge = transversals != quorums.sets();
        assert_eq!(by_berge, dual.is_some(), "{quorums:?}");
        match verify::domination(&quorums) {
            Domination::None => assert!(!by_berge, "{quorums:?}"),
            Domination::By(set) => {
                assert!(by_berge);
                assert!(quorums.sets().iter().all(|q| !q.intersection(&set).is_empty()));
                assert!(!quorums.sets().iter().any(|quorum| quorum.is_subset(&set)));
            }
            Domination::Unknown => panic!("{quorums:?} is small"),
        }
    }
}

#[test]
fn every_dominating_set_of_a_structure_dominates_it() {
    for nodes in 1..20 {
        for kind in Kind::usual(nodes) {
            let system = System::new(kind, nodes).unwrap();
            let Ok(quorums) = system.minimal() else { continue };
            let dual = Truth::of(&quorums).unwrap().dominating();
            match verify::dominated(&system) {
                Domination::None => assert_eq!(dual, None, "{system:?}"),
                Domination::By(set) => {
                    assert!(quorums.sets().iter().all(|q| !q.intersection(&set).is_empty()));
                    assert!(!quorums.sets().iter().any(|quorum| quorum.is_subset(&set)));
                }
                Domination::Unknown => panic!("{system:?} is small"),
            }
        }
    }
}

#[test]
fn non_dominated_walls_are_counted_by_fibonacci() {
    let walls = |nodes: usize| {
        // Every way to cut the nodes into rows is a set of cuts.
        let cuts = 0..1usize << (nodes - 1);
        let widths = cuts.map(|cuts| {
            let mut widths = alloc::vec![1];
            for at in 0..nodes - 1 {
                match cuts >> at & 1 {
                    1 => widths.push(1),
                    _ => *widths.last_mut().unwrap() += 1,
                }
            }
            widths
        });
        let good = widths.filter(|widths| {
            let kind = Kind::CrumblingWall(Some(widths.clone()));
            let quorums = System::new(kind, nodes).unwrap().quorums().unwrap();
            verify::nested(&quorums).is_none() && verify::domination(&quorums) == Domination::None
        });
        good.count()
    };
    assert_eq!([3, 4, 5, 6, 7].map(walls), [1, 1, 2, 3, 5]);
}

#[test]
fn a_row_of_one_makes_what_is_above_redundant() {
    let system = System::new("crumbling-wall:1,1,2".parse().unwrap(), 4).unwrap();
    let found = examine(&system, P, 1).unwrap();
    assert!(!found.coterie && found.disjoint.is_none());
    assert_eq!(found.non_dominated(), Some(true));
    let triangle = system.minimised().unwrap().quorums().unwrap();
    let texts: alloc::vec::Vec<_> = triangle.sets().iter().map(crate::quorums::written).collect();
    assert_eq!(texts, ["{2,3}", "{2,4}", "{3,4}"]);
}

#[test]
fn wheels_have_the_load_that_was_derived() {
    for nodes in 3..30 {
        let kind = Kind::CrumblingWall(Some(alloc::vec![1, nodes - 1]));
        let n = nodes as i128;
        let load = load::load(&System::new(kind, nodes).unwrap());
        assert_eq!(load, Load::Exact(Ratio::new(n - 1, 2 * n - 3)));
    }
}

#[test]
fn non_dominated_coteries_fail_half_the_time_at_one_half() {
    for golden in goldens().filter(|golden| golden.is.ends_with('y')) {
        let failure = availability::failure(&system(&golden), 0.5, 1).unwrap().value();
        assert!((failure - 0.5).abs() < 1e-12, "{} {failure}", golden.kind);
    }
}

#[test]
fn probing_all_nodes_is_the_most() {
    for seed in 0..60 {
        let quorums = crate::random::coterie(seed, 2 + seed as usize % 7);
        let probes = crate::probes::probes(&quorums).unwrap();
        let smallest = quorums.sizes().0;
        assert!(probes <= quorums.nodes());
        if verify::domination(&quorums) == Domination::None {
            assert!(probes >= 2 * smallest - 1, "{quorums:?}");
        }
    }
}
