//! From kill -9 of a member to the next view at all who are left.

use quorate_service::history::Fact;

use crate::fleet::Fleet;

/// When what happened after a death, in milliseconds.
#[derive(Default)]
struct Times {
    stopped: Vec<f64>,
    decided: Vec<f64>,
    installed: Vec<f64>,
}

pub(crate) fn measure(rounds: usize) -> Result<(), String> {
    let mut fleet = Fleet::start(3, "dev")?;
    let (mut first, mut other) = (Times::default(), Times::default());
    for round in 0..rounds {
        // Whoever is the most senior leads changes, and often the consensus, too. Who comes back is the least
        // senior, so one after the other would always be the most senior one.
        let victim = round * 2 % 3;
        let senior = fleet.installed(victim).is_some_and(|view| {
            let mine = fleet.records(victim).into_iter().rev().find_map(|it| match it.fact {
                Fact::Life { life } => Some(life),
                _ => None,
            });
            view.members.first().copied() == mine
        });
        let before = fleet.installed((victim + 1) % 3).map(|view| view.epoch);
        let (killed, _) = quorate_transport::reading();
        fleet.members[victim].kill();
        let views = fleet.until_seated(2)?;
        let times = if senior { &mut first } else { &mut other };
        let since = |t: u64| t.saturating_sub(killed) as f64 / 1e6;
        times.installed.push(views.iter().map(|view| since(view.t)).fold(0.0, f64::max));
        for place in (0..3).filter(|place| *place != victim) {
            for record in fleet.records(place).into_iter().filter(|it| it.t > killed) {
                match record.fact {
                    Fact::Stopped { epoch } if Some(epoch) == before => {
                        times.stopped.push(since(record.t));
                    }
                    Fact::Decided { epoch, .. } if Some(epoch) > before => {
                        times.decided.push(since(record.t));
                    }
                    _ => {}
                }
            }
        }
        fleet.start_member(victim)?;
        fleet.until_seated(3)?;
    }
    println!(
        "kill -9 of one of three members on loopback, dev profile, {rounds} rounds; milliseconds"
    );
    println!("{:<28}{:>8}{:>8}{:>8}", "", "median", "p90", "worst");
    for (who, times) in [("the most senior member", &mut first), ("another member", &mut other)] {
        println!("{who}, {} times", times.installed.len());
        row("  evidence, and all stopped", &mut times.stopped);
        row("  decided by the consensus", &mut times.decided);
        row("  installed at all", &mut times.installed);
    }
    Ok(())
}

pub(crate) fn row(what: &str, times: &mut [f64]) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (times.len() as f64 * share) as usize;
        times.get(place.min(times.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    };
    println!("{what:<28}{:>8.1}{:>8.1}{:>8.1}", at(0.5), at(0.9), at(1.0));
}
