//! Measurements against references, in one run.

mod check;
mod election;
mod mutex;
mod sim;
mod states;
mod transport;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("check") => check::run(),
        Some("election") => election::run(),
        Some("mutex") => mutex::run(),
        Some("sim") => sim::run(),
        Some("states") => states::run(),
        Some("transport") => transport::run(),
        _ => {
            eprintln!(
                "quorate-bench: say what to measure: check, election, mutex, sim, states or transport"
            );
            std::process::exit(2);
        }
    }
}
