//! What a gate costs, next to what the same machine takes for the least that it could do.
//!
//! `cargo run --release -p quorate-fence --example cost [-- DIRECTORY]`: in that directory are the files, in
//! the present one by default. All numbers are of one run: only their ratios say something.

use std::collections::HashMap;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quorate_fence::{Fence, FileGate, Gate, MemoryGate};

const IN_MEMORY: u32 = 2_000_000;
const ON_DISK: usize = 400;
const THREADS: u64 = 16;
/// As long as a record of a gate is with a short name.
const RECORD: [u8; 40] = [7; 40];

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    let directory = tempfile::tempdir_in(directory)?;
    in_memory()?;
    on_disk(directory.path())
}

fn in_memory() -> Result<(), Box<dyn Error>> {
    let each = |work: &mut dyn FnMut(u32)| {
        let runs = (0..5).map(|run| {
            let begun = Instant::now();
            for number in 0..IN_MEMORY {
                work(run * IN_MEMORY + number);
            }
            begun.elapsed()
        });
        runs.min().unwrap_or_default().as_secs_f64() * 1e9 / f64::from(IN_MEMORY)
    };
    let map = Mutex::new(HashMap::from([("name".to_owned(), Fence::MIN)]));
    let bare = each(&mut |_| {
        black_box(map.lock().is_ok_and(|map| map.contains_key(black_box("name"))));
    });
    println!("a look into a map behind a mutex       {bare:8.1} ns");
    let gate = MemoryGate::new();
    let line = |what: &str, ns: f64| println!("{what:<38} {ns:8.1} ns   {:5.2} x", ns / bare);
    let admit = each(&mut |number| {
        assert!(gate.admit("name", Fence::new(1, u64::from(number))).is_ok());
    });
    line("in memory: admit, a larger one", admit);
    let gate = MemoryGate::new();
    gate.admit("name", Fence::new(1, 1))?;
    line(
        "in memory: admit, the same one",
        each(&mut |_| {
            assert!(gate.admit("name", Fence::new(1, 1)).is_ok());
        }),
    );
    line(
        "in memory: refuse an older one",
        each(&mut |_| {
            assert!(gate.admit("name", Fence::new(1, 0)).is_err());
        }),
    );
    line(
        "in memory: enter and leave",
        each(&mut |_| {
            assert!(gate.enter("name", Fence::new(1, 1), Duration::ZERO).is_ok());
        }),
    );
    Ok(())
}

fn on_disk(directory: &Path) -> Result<(), Box<dyn Error>> {
    let open = |name| {
        OpenOptions::new().read(true).write(true).create_new(true).open(directory.join(name))
    };
    let (mut growing, mut fixed) = (open("growing")?, open("fixed")?);
    fixed.write_all(&vec![0; 1 << 20])?;
    fixed.sync_all()?;
    fixed.seek(SeekFrom::Start(0))?;
    let gate = FileGate::create(directory.join("gate"))?;
    let write = |file: &mut File| file.write_all(&RECORD).and_then(|()| file.sync_data());
    // By turns, as others use the disk too.
    let mut times: [Vec<Duration>; 4] = Default::default();
    for number in 0..ON_DISK {
        let mut time = |index: usize, begun: Instant| times[index].push(begun.elapsed());
        let begun = Instant::now();
        write(&mut growing)?;
        time(0, begun);
        let begun = Instant::now();
        write(&mut fixed)?;
        time(1, begun);
        let begun = Instant::now();
        gate.admit("name", Fence::new(1, number as u64 + 1))?;
        time(2, begun);
        let begun = Instant::now();
        gate.admit("name", Fence::new(1, number as u64 + 1))?;
        time(3, begun);
    }
    let medians = times.map(|mut times| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e6
    });
    let what = [
        "write and sync, the file grows",
        "write and sync, over zeros",
        "in a file: admit, a larger one",
        "in a file: admit, the same one",
    ];
    for (what, median) in what.into_iter().zip(medians) {
        println!("{what:<38} {median:8.1} µs   {:5.2} x (median)", median / medians[0]);
    }
    together(&gate, medians[0])
}

/// Threads that come at the same time share their syncs.
fn together(gate: &FileGate, bare: f64) -> Result<(), Box<dyn Error>> {
    let counter = AtomicU64::new(0);
    let begun = Instant::now();
    let admitted: Result<u64, _> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (gate, counter) = (&gate, &counter);
                scope.spawn(move || {
                    let name = thread.to_string();
                    (0..ON_DISK as u64).try_fold(0, |admitted, _| {
                        let number = counter.fetch_add(1, Ordering::Relaxed);
                        gate.admit(&name, Fence::new(2, number)).map(|()| admitted + 1)
                    })
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(0))).sum()
    });
    let each = begun.elapsed().as_secs_f64() * 1e6 / admitted? as f64;
    println!(
        "in a file: admit, {THREADS} threads at once     {each:8.1} µs   {:5.2} x (mean)",
        each / bare
    );
    Ok(())
}
