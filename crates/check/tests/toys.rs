//! Toy protocols, each made for one thing that the checker can do.

use quorate_check::{
    Counterexample, Discards, Network, Outcome, Plan, Reduction, Report, Timers, check, check_while,
};
use quorate_core::trace::{Happening, Outcome as Effect};
use quorate_core::{
    Algorithm, BadOption, Boot, Channels, Ctx, Fact, Family, Life, Message, Meta, Monitor, NodeId,
    NodeSet, Options, Paper, Protocol, Refusal, Scene, Shape, Sole, Span, Timing, Topology,
    Violation, Wait, Workload,
};

/// The problem: whoever says go gets a number, but not the forbidden one.
#[derive(Debug)]
struct Toys;

impl Family for Toys {
    const NAME: &'static str = "toys";
    type Command = Go;
    type Event = u32;
    type Setup = u32;
    type Promise = ();
    type Monitor = Judge;

    fn monitor(_: usize, forbidden: &u32, (): &()) -> Judge {
        Judge { forbidden: *forbidden, waiting: NodeSet::new() }
    }

    fn command(_: &str) -> Option<Go> {
        Some(Go)
    }

    fn event(text: &str) -> Option<u32> {
        text.parse().ok()
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Go;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Judge {
    forbidden: u32,
    waiting: NodeSet,
}

impl Monitor<Go, u32> for Judge {
    const PROPERTIES: &'static [&'static str] = &["taboo", "answer"];

    fn observe(&mut self, at: NodeId, fact: Fact<'_, Go, u32>) -> Result<(), Violation> {
        match fact {
            Fact::Command(Go) => {
                self.waiting.insert(at);
            }
            Fact::Event(number) if *number == self.forbidden => {
                return Err(Violation { property: "taboo", text: format!("{at} says {number}") });
            }
            Fact::Event(_) | Fact::Crashed => {
                self.waiting.remove(at);
            }
            Fact::Recovered => {}
        }
        Ok(())
    }

    fn owed(&self) -> NodeSet {
        self.waiting.clone()
    }

    fn settle(&self) -> Vec<Violation> {
        let text = format!("no answer for {:?}", self.waiting);
        let open = (!self.waiting.is_empty()).then_some(Violation { property: "answer", text });
        open.into_iter().collect()
    }
}

/// The user at the first node says go, once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Once(bool);

impl Workload<Go, u32> for Once {
    fn next(&self, node: NodeId) -> Option<(Go, Wait)> {
        (self.0 && node.index() == 0).then_some((Go, Wait::For(Span::ZERO)))
    }

    fn gave(&mut self, _: NodeId, Go: &Go) -> Option<NodeId> {
        self.0 = false;
        None
    }

    fn told(&mut self, _: NodeId, _: &u32) -> Option<NodeId> {
        None
    }

    fn crashed(&mut self, node: NodeId) -> Option<NodeId> {
        self.0 &= node.index() != 0;
        None
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
enum Game {
    /// Says 10 a + b for chosen a < 3 and b <= a.
    #[default]
    Dice,
    /// As it comes up, says 0 or 1.
    EarlyDice,
    /// A timer fires again and again; if `hopeful`, the node may say something every time.
    Clock { hopeful: bool },
    /// Persists 7, says 0; after a recovery says ten times what it kept plus the number of its life.
    Memory,
    /// Asks the other node, which echoes; says how many echoes it has heard, each time.
    Echo,
    /// As `Echo`, but says 99 if a timer fires first.
    Deadline,
    /// Sends 1 and 2; the other node says what comes first.
    Race,
    /// Sends 1 and 2; the other node says 2 only after 1, and claims that before it is outdated.
    Hasty,
    /// Never answers, and lets nothing be known of it.
    Mute,
    /// Refuses.
    Stubborn,
    /// Sends to itself.
    Lonely,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Player {
    game: Game,
    kept: Option<u32>,
    life: Life,
    heard: u32,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Note(u32);

impl Message for Note {
    fn kind(&self) -> &'static str {
        "NOTE"
    }
}

impl Protocol for Player {
    type Msg = Note;
    type Timer = u8;
    type Command = Go;
    type Event = u32;
    type Stable = Sole<u32>;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.game == Game::EarlyDice && cx.me().index() == 1 {
            self.heard = cx.choose(2);
            cx.emit(self.heard);
        }
        if let Some(kept) = self.kept {
            cx.emit(10 * kept + self.life.0 as u32);
        }
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, Go: Go) -> Result<(), Refusal> {
        match self.game {
            Game::Dice => {
                let first = cx.choose(3);
                let second = cx.choose(first + 1);
                cx.emit(10 * first + second);
            }
            Game::Clock { .. } => cx.set_timer(1, Span::ZERO..Span::UNIT),
            Game::Memory => {
                cx.persist(Sole(7));
                cx.emit(0);
            }
            Game::Echo => cx.send(NodeId::at(1), Note(1)),
            Game::Deadline => {
                cx.send(NodeId::at(1), Note(1));
                cx.set_timer(1, Span::UNIT..Span::UNIT);
            }
            Game::Race | Game::Hasty => {
                cx.send(NodeId::at(1), Note(1));
                cx.send(NodeId::at(1), Note(2));
                cx.emit(0);
            }
            Game::EarlyDice | Game::Mute => {}
            Game::Stubborn => return Err(Refusal::Busy),
            Game::Lonely => cx.send(cx.me(), Note(1)),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, Note(number): Note) {
        match self.game {
            Game::Echo | Game::Deadline if cx.me().index() == 1 => cx.send(from, Note(number)),
            Game::Echo | Game::Deadline => {
                self.heard += number;
                cx.cancel_timer(1);
                cx.emit(self.heard);
            }
            Game::Hasty if number == 1 => self.heard = 1,
            Game::Hasty if self.heard == 0 => {}
            Game::Hasty => cx.emit(number),
            _ if self.heard == 0 => {
                self.heard = number;
                cx.emit(number);
            }
            _ => {}
        }
    }

    fn is_outdated(&self, _: NodeId, Note(number): &Note) -> bool {
        match self.game {
            Game::Race => self.heard != 0,
            Game::Hasty => *number == 2 && self.heard == 0,
            _ => false,
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: u8) {
        if self.game == Game::Deadline {
            return cx.emit(99);
        }
        if self.game == (Game::Clock { hopeful: true }) && cx.choose(2) == 1 {
            return cx.emit(1);
        }
        self.heard = 1 - self.heard;
        cx.set_timer(timer, Span::ZERO..Span::UNIT);
    }
}

impl Algorithm for Player {
    type Family = Toys;
    type Config = Game;
    const META: Meta = Meta {
        name: "toys/player",
        summary: "",
        paper: Paper { authors: "", title: "", venue: "", year: 0, doi: "" },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "",
        kinds: &["NOTE"],
        options: &[],
        costs: &[],
        source: "",
    };

    fn promise(_: &Game) {}

    fn configure(_: &Options<'_>) -> Result<Game, BadOption> {
        Ok(Game::default())
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Boot { life, kept, config, .. } = boot;
        Self { game: *config, kept: kept.sole().copied(), life, heard: 0 }
    }
}

const NOTHING: u32 = u32::MAX;

fn play(game: Game, forbidden: u32, plan: Plan) -> Report {
    let scene = Scene::<Player>::new(Topology::complete(2), forbidden, game);
    check(&scene, &Once(true), &Plan { threads: 1, ..plan }, &mut |_| {})
}

fn violated(report: Report) -> Counterexample {
    let Outcome::Violated(found) = report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(found.violation.property, "taboo");
    found
}

fn inputs(found: &Counterexample) -> String {
    let name = |input: &Happening| match input {
        Happening::Receive(parcel) => format!("receive {} from {}", parcel.id, parcel.from),
        Happening::Lose(parcel) => format!("lose {} from {}", parcel.id, parcel.from),
        other => format!("{other:?}").to_lowercase(),
    };
    found.trace.iter().map(|record| name(&record.input)).collect::<Vec<_>>().join(", ")
}

#[test]
fn every_choice_is_tried() {
    let report = play(Game::Dice, NOTHING, Plan::default());
    // Before and after: what is said changes nobody, so that all six ways lead to the same state.
    assert_eq!((report.states, report.transitions), (2, 1 + 6));
    assert_eq!(report.outcome, Outcome::Holds);
    for (first, second) in [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)] {
        let found = violated(play(Game::Dice, 10 * first + second, Plan::default()));
        assert_eq!(found.trace.last().unwrap().choices, [first, second]);
    }
}

#[test]
fn a_node_may_choose_when_it_comes_up() {
    let report = play(Game::EarlyDice, NOTHING, Plan::default());
    assert!(matches!(report.outcome, Outcome::Deadlock(_)));
    let found = violated(play(Game::EarlyDice, 1, Plan::default()));
    assert_eq!(inputs(&found), "start, start");
    assert_eq!(found.trace[1].choices, [1]);
}

#[test]
fn a_clock_that_ticks_for_ever_starves_its_user() {
    let report = play(Game::Clock { hopeful: false }, NOTHING, Plan::default());
    let Outcome::Starvation(found) = report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(found.violation.property, "answer");
    assert_eq!(inputs(&found), "start, start, command(\"go\"), settle");
    let report = play(Game::Clock { hopeful: true }, NOTHING, Plan::default());
    assert_eq!(report.outcome, Outcome::Holds);
}

#[test]
fn a_debt_is_a_debt_even_if_a_crash_would_cancel_it() {
    let crash = Plan { crashes: 1, ..Plan::default() };
    let report = play(Game::Clock { hopeful: false }, NOTHING, crash.clone());
    assert!(matches!(report.outcome, Outcome::Starvation(_)));
    let report = play(Game::Mute, NOTHING, crash);
    let Outcome::Deadlock(found) = report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(inputs(&found), "start, start, command(\"go\"), settle");
}

#[test]
fn what_was_persisted_survives_a_crash() {
    let plan = Plan { crashes: 1, recoveries: 1, ..Plan::default() };
    assert_eq!(play(Game::Memory, NOTHING, plan.clone()).outcome, Outcome::Holds);
    let found = violated(play(Game::Memory, 71, plan.clone()));
    assert_eq!(inputs(&found), "start, start, command(\"go\"), crash, recover");
    assert_eq!(found.trace[2].effects[0], Effect::Persist("7".into()));
    assert_eq!(play(Game::Memory, 70, plan).outcome, Outcome::Holds);
}

#[test]
fn messages_are_lost_and_doubled_as_often_as_allowed() {
    let holds = play(Game::Echo, 2, Plan::default());
    assert_eq!((holds.states, holds.outcome), (4, Outcome::Holds));
    let report = play(Game::Echo, 2, Plan { losses: 1, ..Plan::default() });
    let Outcome::Deadlock(found) = report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(inputs(&found), "start, start, command(\"go\"), lose 1 from 1, settle");
    for network in [Network::Fifo, Network::Unordered] {
        let plan = Plan { network, duplicates: 1, ..Plan::default() };
        let found = violated(play(Game::Echo, 2, plan));
        let twice = "receive 1 from 1, receive 1 from 2, receive 1 from 2";
        assert_eq!(inputs(&found), format!("start, start, command(\"go\"), {twice}"));
    }
}

#[test]
fn messages_overtake_each_other_unless_links_keep_the_order() {
    let found = violated(play(Game::Race, 2, Plan::default()));
    assert_eq!(inputs(&found), "start, start, command(\"go\"), receive 2 from 1");
    let fifo = Plan { network: Network::Fifo, ..Plan::default() };
    assert_eq!(play(Game::Race, 2, fifo.clone()).outcome, Outcome::Holds);
    violated(play(Game::Race, 2, Plan { losses: 1, ..fifo }));
}

#[test]
fn what_has_no_consequence_may_be_left_out() {
    let states = |discards| play(Game::Race, NOTHING, Plan { discards, ..Plan::default() }).states;
    // The second note changes nothing: with discards ignored it stays where it is.
    assert_eq!((states(Discards::Count), states(Discards::Ignore)), (6, 4));
}

#[test]
fn a_refused_command_is_no_step() {
    let report = play(Game::Stubborn, NOTHING, Plan::default());
    assert_eq!((report.states, report.transitions), (1, 1));
    assert_eq!(report.outcome, Outcome::Holds);
}

#[test]
fn timers_of_a_synchronous_system_wait_for_messages() {
    violated(play(Game::Deadline, 99, Plan::default()));
    let quiet = Plan { timers: Timers::WhenQuiet, ..Plan::default() };
    assert_eq!(play(Game::Deadline, 99, quiet.clone()).outcome, Outcome::Holds);
    let found = violated(play(Game::Deadline, 99, Plan { losses: 1, ..quiet }));
    assert_eq!(inputs(&found), "start, start, command(\"go\"), lose 1 from 1, timer(\"1\")");
}

#[test]
fn a_search_stops_at_its_bound() {
    let report = play(Game::Echo, NOTHING, Plan { states_max: 2, ..Plan::default() });
    assert_eq!(report.outcome, Outcome::Bounded);
    assert!(report.frontier > 0);
}

#[test]
fn a_search_stops_when_it_is_told_to() {
    let scene = Scene::<Player>::new(Topology::complete(2), NOTHING, Game::Echo);
    let all = check(&scene, &Once(true), &Plan::default(), &mut |_| {});
    let mut asked = 0;
    let report = check_while(&scene, &Once(true), &Plan::default(), &mut |_| {
        asked += 1;
        false
    });
    assert_eq!((asked, report.outcome), (1, Outcome::Bounded));
    assert!(report.frontier > 0 && report.states < all.states);
}

#[test]
fn a_message_to_a_stranger_is_a_mistake_of_the_protocol() {
    let panic = std::panic::catch_unwind(|| play(Game::Lonely, NOTHING, Plan::default()));
    let text = *panic.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(text, "node 1 sends Note(1) to node 1, which is not its neighbour");
}

#[test]
fn progress_is_told() {
    let scene = Scene::<Player>::new(Topology::complete(2), NOTHING, Game::Echo);
    let mut told = Vec::new();
    let report = check(&scene, &Once(true), &Plan::default(), &mut |p| told.push(*p));
    let last = told.last().unwrap();
    assert_eq!((last.states, last.depth, last.frontier), (report.states, report.depth, 0));
}

fn reduced() -> Plan {
    Plan { reduction: Reduction::Outdated, ..Plan::default() }
}

/// Both nodes go: what comes second at node 2 does nothing, and never will.
#[test]
fn outdated_messages_are_delivered_at_once() {
    let (full, less) = (Plan::default(), reduced());
    let (all, fewer) = (play(Game::Race, NOTHING, full), play(Game::Race, NOTHING, less));
    assert_eq!((&all.outcome, &fewer.outcome), (&Outcome::Holds, &Outcome::Holds));
    assert_eq!(all.depth, fewer.depth);
    assert!(fewer.transitions <= all.transitions, "{} {}", fewer.transitions, all.transitions);
    for number in [1, 2] {
        violated(play(Game::Race, number, reduced()));
    }
}

#[test]
fn where_faults_can_happen_nothing_is_left_out() {
    let lossy = |plan| play(Game::Race, NOTHING, Plan { losses: 1, ..plan });
    assert_eq!(lossy(Plan::default()), lossy(reduced()));
}

/// The message does nothing now, but it would later: what it would say then must not be missed.
#[test]
#[should_panic(expected = "Note(2) } was claimed to be outdated and is not")]
fn a_claim_that_is_true_only_now_is_found_out() {
    violated(play(Game::Hasty, 2, Plan::default()));
    play(Game::Hasty, 2, reduced());
}
