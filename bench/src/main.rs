//! Measurements against references, in one run.

mod check;
mod election;
mod mutex;
mod sim;
mod states;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("check") => check::run(),
        Some("election") => election::run(),
        Some("mutex") => mutex::run(),
        Some("sim") => sim::run(),
        Some("states") => states::run(),
        _ => {
            eprintln!("quorate-bench: say what to measure: check, election, mutex, sim or states");
            std::process::exit(2);
        }
    }
}
