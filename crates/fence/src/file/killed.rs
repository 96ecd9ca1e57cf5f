//! A process that ends before every single step that it takes on its file, and in the middle of those that
//! write.

use std::collections::BTreeMap;
use std::env;
use std::process::{Command, Stdio};

use super::*;

const PATH: &str = "QUORATE_TEST_GATE";
/// The step before which the process ends, and `half` if that step is begun.
const STEP: &str = "QUORATE_TEST_STEP";
/// How many are admitted by a process that does not end early.
const ADMISSIONS: u64 = 20;
/// What a child says yes with, before fence and name.
const YES: &str = "yes ";

/// A disk in a process that ends without a word, as one that is killed: nothing is cleaned up.
struct Ending {
    disk: Disk,
    steps_left: usize,
    half: bool,
}

impl Ending {
    /// Is this the last step? Ends here if it is not even begun.
    fn is_last(&mut self) -> bool {
        let last = self.steps_left == 0;
        if last && !self.half {
            std::process::abort();
        }
        self.steps_left = self.steps_left.saturating_sub(1);
        last
    }

    fn step(&mut self, step: impl FnOnce(&mut Disk) -> io::Result<()>) -> io::Result<()> {
        if self.is_last() {
            std::process::abort();
        }
        step(&mut self.disk)
    }

    fn step_writing(
        &mut self,
        bytes: &[u8],
        step: impl FnOnce(&mut Disk, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.is_last() {
            step(&mut self.disk, &bytes[..bytes.len() / 2])?;
            std::process::abort();
        }
        step(&mut self.disk, bytes)
    }
}

impl Storage for Ending {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        self.disk.read()
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        self.step_writing(bytes, |disk, bytes| disk.write(at, bytes))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.step(Disk::sync)
    }

    fn write_new(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.step_writing(bytes, Disk::write_new)
    }

    fn sync_new(&mut self) -> io::Result<()> {
        self.step(Disk::sync_new)
    }

    fn install(&mut self) -> io::Result<()> {
        self.step(Disk::install)
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        self.step(Disk::sync_directory)
    }
}

/// Opens the gate, admits a few, and says what was admitted.
fn child(path: &str) {
    let step = env::var(STEP).unwrap();
    let (step, half) = step.strip_suffix("half").map_or((&*step, false), |step| (step, true));
    let (disk, lock) = Disk::take(path.as_ref()).unwrap().unwrap();
    let mut ending = Ending { disk, steps_left: step.parse().unwrap(), half };
    let names = load(&ending.read().unwrap(), NAMES_DEFAULT).unwrap();
    let first = names.highest().map_or(0, |highest| highest.counter + 1);
    // Written anew after every few records, and longer after each of them.
    let growth = Growth { step: 32, slack: 0 };
    let writer = Writer::begin(Box::new(ending), &names, growth).unwrap();
    let gate = FileGate::new(writer, Doors::new(names, Some(lock)));
    for number in first..first + ADMISSIONS {
        let (name, fence) = (format!("name {}", number % 5), Fence::new(1, number));
        gate.admit(&name, fence).unwrap();
        println!("{YES}{fence} {name}");
    }
}

#[test]
fn a_process_may_end_before_any_step() {
    if let Ok(path) = env::var(PATH) {
        return child(&path);
    }
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = directory.path().join("gate");
    drop(FileGate::create(&path).unwrap());
    let mut promised: BTreeMap<String, Fence> = BTreeMap::new();
    let mut step = 0;
    loop {
        let mut ended = 0;
        for half in ["", "half"] {
            let mut child = Command::new(env::current_exe().unwrap());
            child.args([
                "--exact",
                "file::killed::a_process_may_end_before_any_step",
                "--nocapture",
            ]);
            child.env(PATH, &path).env(STEP, format!("{step}{half}"));
            let output = child.stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
            for line in String::from_utf8(output.stdout).unwrap().lines() {
                let Some(yes) = line.strip_prefix(YES) else { continue };
                let (fence, name) = yes.split_once(' ').unwrap();
                promised.insert(name.into(), fence.parse().unwrap());
            }
            let names = load(&read_all(&path).unwrap(), NAMES_DEFAULT);
            let names = names.unwrap_or_else(|damage| panic!("step {step}{half}: {damage}"));
            for (name, fence) in &promised {
                assert!(names.seen(name) >= Some(*fence), "step {step}{half}: {name} {fence}");
            }
            ended += usize::from(output.status.success());
        }
        match ended {
            0 => step += 1,
            ended => {
                assert_eq!(ended, 2, "a process with fewer steps left has more of them");
                break;
            }
        }
    }
    // Four steps to begin, two for each that is added, and four each time that the file is written anew.
    assert!(step > 4 + 2 * ADMISSIONS, "{step}");
    assert_eq!(promised.len(), 5);
}
