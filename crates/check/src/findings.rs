//! What is not in the tables yet: found out while the tables can only be read, kept afterwards.

use hashbrown::HashSet;
use quorate_core::{Family, Scene, Solution, Violation, Workload};
use rustc_hash::FxBuildHasher;

use crate::choices::Odometer;
use crate::local::Response;
use crate::tables::{Code, Tables, pair};
use crate::watch::Watch;

/// Things that had to be found out, in the order in which they were asked for.
pub(crate) struct Findings<A: Solution, W> {
    deeds: Vec<(u64, Vec<Way<A>>)>,
    heard: Vec<Hearing<W, <A::Family as Family>::Monitor>>,
    deeds_seen: HashSet<u64, FxBuildHasher>,
    heard_seen: HashSet<u64, FxBuildHasher>,
    /// How often something was not known.
    pub(crate) missed: u64,
}

/// One way to choose and what it leads to.
#[derive(Debug)]
pub(crate) struct Way<A: Solution> {
    pub(crate) choices: Vec<u32>,
    pub(crate) response: Response<A>,
}

/// What users and monitor make of a tale, and the key under which that is to be found.
struct Hearing<W, M> {
    key: u64,
    result: Result<Watch<W, M>, Violation>,
}

impl<A: Solution, W: Workload<A::Command, A::Event>> Findings<A, W> {
    /// Nothing found out.
    pub(crate) fn new() -> Self {
        Self {
            deeds: Vec::new(),
            heard: Vec::new(),
            deeds_seen: HashSet::default(),
            heard_seen: HashSet::default(),
            missed: 0,
        }
    }

    /// Finds out what a node in this state makes of a cause, for every way to choose.
    pub(crate) fn find_deeds(
        &mut self,
        scene: &Scene<A>,
        tables: &Tables<A, W>,
        local: u32,
        code: Code,
    ) {
        self.missed += 1;
        let key = pair(local, code.0);
        if !self.deeds_seen.insert(key) {
            return;
        }
        let (local, cause) = (&tables.locals[local], tables.cause(code));
        let mut odometer = Odometer::default();
        let mut ways = Vec::new();
        loop {
            if let Some(response) = local.respond(scene, &cause, &mut odometer, 0, None) {
                ways.push(Way { choices: odometer.chosen().collect(), response });
            }
            if !odometer.advance() {
                break;
            }
        }
        self.deeds.push((key, ways));
    }

    /// Finds out what users and monitor in this state make of a tale.
    pub(crate) fn find_heard(&mut self, tables: &Tables<A, W>, watch: u32, tale: u32) {
        self.missed += 1;
        let key = pair(watch, tale);
        if self.heard_seen.insert(key) {
            let result = tables.watches[watch].after(&tables.tales[tale]);
            self.heard.push(Hearing { key, result });
        }
    }

    /// Puts everything found into the tables.
    pub(crate) fn keep(&mut self, scene: &Scene<A>, tables: &mut Tables<A, W>) {
        for (key, ways) in self.deeds.drain(..) {
            tables.add_deeds(scene, key, ways);
        }
        for Hearing { key, result } in self.heard.drain(..) {
            tables.add_heard(scene.count(), key, result);
        }
        self.deeds_seen.clear();
        self.heard_seen.clear();
    }
}
