//! The chores of the repository: `cargo xtask` and one of the words below.

mod chores;
mod docs;
mod packages;
mod pictures;
mod servers;
mod shell;
mod source;
mod tidy;
mod upgrade;
mod web;

use std::path::PathBuf;
use std::process::ExitCode;

use shell::step;

const USAGE: &str = "\
usage: cargo xtask CHORE

  verify         checks everything and writes nothing into the work tree; what CI runs
  fix            formats, applies lints, regenerates docs, rewrites golden files
  docs           regenerates docs/algorithms.md, docs/faults.md and parts of README.md
  docs --check   says whether they are up to date
  web            builds the lab page into web/dist
  web --check    says whether it is that of its sources
  web --test     tries it in a browser
  web --pictures makes the pictures of README and guide anew
  pictures       draws one picture per algorithm and kind, on one page below target/
  package        packages every crate, and says whether their rust-version is the lowest possible one
  tidy           checks the rules of STYLE.md that no compiler knows
  chaos          puts real members under real faults, drawn from seeds, and judges what they did
                 (as root; --seed S, --count N, --jobs N, --keep DIR; chaos --help shows all)
  soak           the same, once and long, with nothing done to some members: what these take has to stay flat
                 (as root; --minutes N, 10 if nothing is said)
  upgrade        replaces members of the last release by those of this tree, one after the other
  bench NAME     measures against a reference: check, sim, transport, cluster, locks, group or leaders; what
                 building costs: build; or writes docs/states.md: states";

/// What a chore comes to: a failure is told in words.
type Outcome = Result<(), Failure>;

/// Why a chore was not done.
#[derive(Debug)]
enum Failure {
    /// The command line makes no sense; exit code 2.
    Usage(String),
    /// Something is not as it should be; exit code 1.
    Found(String),
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Found(text)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (text, code) = match run(&words) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(text)) => (text, 2),
        Err(Failure::Found(text)) => (text, 1),
    };
    eprintln!("xtask: {text}");
    ExitCode::from(code)
}

fn run(words: &[&str]) -> Outcome {
    let root = root();
    match words {
        ["verify"] => chores::verify(&root),
        ["fix"] => chores::fix(&root),
        ["docs"] => Ok(docs::write(&root)?),
        ["docs", "--check"] => Ok(docs::check(&root)?),
        ["web"] => Ok(web::build(&root)?),
        ["web", "--check"] => Ok(step("web", || web::check(&root))?),
        ["web", "--test"] => Ok(step("browser", || web::test(&root))?),
        ["web", "--pictures"] => Ok(step("pictures", || web::pictures(&root))?),
        ["pictures"] => Ok(pictures::write(&root)?),
        ["package"] => Ok(step("package", || packages::check(&root))?),
        ["tidy"] => Ok(chores::tidy(&root)?),
        ["chaos", rest @ ..] => Ok(chores::chaos(&root, rest)?),
        ["upgrade"] => Ok(upgrade::upgrade(&root)?),
        ["soak"] => Ok(chores::chaos(&root, &["--soak", "10"])?),
        ["soak", "--minutes", minutes] => Ok(chores::chaos(&root, &["--soak", minutes])?),
        ["bench", "build"] => chores::bench_build(&root),
        ["bench", name, rest @ ..] => Ok(chores::bench(&root, name, rest)?),
        ["bench"] => Err(Failure::Usage(
            "bench needs a NAME: check, sim, transport, cluster, locks, group, leaders, build or states"
                .into(),
        )),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        [] => Err(Failure::Usage(format!("say what to do\n\n{USAGE}"))),
        _ => Err(Failure::Usage(format!("{} is no chore\n\n{USAGE}", words.join(" ")))),
    }
}

/// The root of the repository, wherever the command is run.
fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
