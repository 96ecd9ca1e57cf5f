//! Gates as one might write them in a hurry, each with a mistake.

use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use quorate_fence::{Fence, Gate, MemoryGate, Pass, Refusal};

type Make = fn() -> Box<dyn Gate>;

/// Each mistake in words, and a gate that makes it.
pub(crate) const GATES: [(&str, Make); 5] = [
    ("it compares the counters and not the epochs", || Box::new(Counting::default())),
    ("it looks first and remembers later", || Box::new(Gap::default())),
    ("it forgets a name to make room for another", || Box::new(Forgetful::default())),
    ("it forgets everything when it is opened again", || Box::new(MemoryGate::new())),
    ("it lets somebody in while an older one is inside", || Box::new(Open::default())),
];

fn stale(seen: Fence) -> Result<(), Refusal> {
    Err(Refusal::Stale { seen })
}

/// A pass that keeps nobody out.
fn loose(name: &str, fence: Fence) -> Result<Pass, Refusal> {
    MemoryGate::new().enter(name, fence, Duration::ZERO)
}

macro_rules! gate {
    ($gate:ty, $admit:expr) => {
        impl Gate for $gate {
            fn admit(&self, name: &str, fence: Fence) -> Result<(), Refusal> {
                let admit: fn(&Self, &str, Fence) -> Result<(), Refusal> = $admit;
                admit(self, name, fence)
            }

            fn enter(&self, name: &str, fence: Fence, _: Duration) -> Result<Pass, Refusal> {
                self.admit(name, fence)?;
                loose(name, fence)
            }

            fn seen(&self, _: &str) -> Option<Fence> {
                None
            }

            fn highest(&self) -> Option<Fence> {
                None
            }
        }
    };
}

#[derive(Default)]
struct Counting(Mutex<HashMap<String, Fence>>);

gate!(Counting, |gate, name, fence| {
    let mut names = gate.0.lock().unwrap();
    let seen = names.entry(name.into()).or_insert(fence);
    if fence.counter < seen.counter {
        return stale(*seen);
    }
    *seen = fence;
    Ok(())
});

#[derive(Default)]
struct Gap(Mutex<HashMap<String, Fence>>);

gate!(Gap, |gate, name, fence| {
    let seen = gate.0.lock().unwrap().get(name).copied().unwrap_or_default();
    if fence < seen {
        return stale(seen);
    }
    thread::yield_now();
    gate.0.lock().unwrap().insert(name.into(), fence);
    Ok(())
});

#[derive(Default)]
struct Forgetful(Mutex<Vec<(String, Fence)>>);

gate!(Forgetful, |gate, name, fence| {
    let mut names = gate.0.lock().unwrap();
    if let Some((_, seen)) = names.iter_mut().find(|(known, _)| known == name) {
        if fence < *seen {
            return stale(*seen);
        }
        *seen = fence;
        return Ok(());
    }
    if names.len() == 2 {
        names.remove(0);
    }
    names.push((name.into(), fence));
    Ok(())
});

#[derive(Default)]
struct Open(MemoryGate);

gate!(Open, |gate, name, fence| gate.0.admit(name, fence));
