//! The commands of the cluster.

use clap::{Args, Subcommand};

use crate::ca::CaTask;
use crate::client::Where;
use crate::dev::DevOptions;
use crate::elect::ElectOptions;
use crate::lock::LockOptions;
use crate::observe::{ObserveOptions, ResignOptions};
use crate::options::AgentOptions;
use crate::show::View;
use crate::{Failure, dev, elect, lock, observe, serve, show};

/// What to do with a cluster.
#[derive(Subcommand, Clone, Debug)]
pub enum Task {
    /// A cluster on this machine, to try: real processes, no configuration
    #[command(after_help = DEV_EXAMPLES)]
    Dev(DevArguments),
    /// Be a member of a cluster
    #[command(after_help = AGENT_EXAMPLES)]
    Agent(Box<AgentArguments>),
    /// Run a command while a lock is held
    #[command(after_help = LOCK_EXAMPLES)]
    Lock(LockArguments),
    /// Run a command while this process leads in a role
    #[command(after_help = ELECT_EXAMPLES)]
    Elect(ElectArguments),
    /// Who leads in a role, and every change of it
    #[command(after_help = OBSERVE_EXAMPLES)]
    Observe(ObserveArguments),
    /// Who leads in which role, and who stands for it
    Roles(LocksArguments),
    /// Ask whoever leads in a role to give it up
    #[command(after_help = RESIGN_EXAMPLES)]
    Resign(ResignArguments),
    /// What a command is before it begins
    #[command(hide = true)]
    LockChild(ChildArguments),
    /// Who holds which lock, and who waits for it
    Locks(LocksArguments),
    /// Take a lock from whoever holds it
    Unlock(UnlockArguments),
    /// How things stand with a cluster
    Status(ShowArguments),
    /// Who is in a cluster
    Members(ShowArguments),
    /// The certificates of a cluster
    #[command(subcommand)]
    Ca(CaTask),
}

const DEV_EXAMPLES: &str = "Examples:
  quorate dev                      three members, until Ctrl-C
  quorate dev --members 5 --dir d  five, which remember where they were the next time";

const AGENT_EXAMPLES: &str = "Examples:
  quorate agent --name a --data /var/lib/quorate --seeds a=h1:7400,b=h2:7400,c=h3:7400 \\
      --ca ca.pem --cert a.pem --key a.key --found
  quorate agent --config /etc/quorate.toml";

const LOCK_EXAMPLES: &str = "Examples:
  quorate lock nightly -- ./backup.sh          one at a time, everywhere
  quorate lock --timeout 10s nightly -- make   exit code 75 if it is not granted in time

The command finds QUORATE_FENCE in its environment: give it to what it writes to. Its exit code is
passed on; 76 if the lock was lost, and the command ended for that reason.";

const ELECT_EXAMPLES: &str = "Examples:
  quorate elect web -- ./serve.sh                      one leader, everywhere
  quorate elect web --priority 5 --value 10.0.0.1:80 --yield -- ./serve.sh

The command finds QUORATE_TERM in its environment, which grows from leader to leader: it is the
fence, too. Its exit code is passed on; 75 if it did not come to lead in time; 76 if the role was
lost or given up, and the command ended for that reason.";

const OBSERVE_EXAMPLES: &str = "Examples:
  quorate observe web                  term, member and value of each leader
  quorate observe web --json | jq -r .leader.value";

const RESIGN_EXAMPLES: &str = "Examples:
  quorate resign web                   the best of those who stand is next
  quorate resign web --to b            a candidate at the member b is, if there is one";

/// What a command is run as the leader of.
#[derive(Args, Clone, Debug)]
pub struct ElectArguments {
    #[command(flatten)]
    options: ElectOptions,
}

/// What is observed.
#[derive(Args, Clone, Debug)]
pub struct ObserveArguments {
    #[command(flatten)]
    options: ObserveOptions,
}

/// Which role is to be given up.
#[derive(Args, Clone, Debug)]
pub struct ResignArguments {
    #[command(flatten)]
    options: ResignOptions,
}

/// What a command is run under.
#[derive(Args, Clone, Debug)]
pub struct LockArguments {
    #[command(flatten)]
    options: LockOptions,
}

/// What a cluster of this machine is like.
#[derive(Args, Clone, Debug)]
pub struct DevArguments {
    #[command(flatten)]
    options: DevOptions,
}

/// What an agent is started with.
#[derive(Args, Clone, Debug)]
pub struct AgentArguments {
    #[command(flatten)]
    options: AgentOptions,
}

/// A command to become.
#[derive(Args, Clone, Debug)]
pub struct ChildArguments {
    #[arg(last = true, required = true)]
    command: Vec<std::ffi::OsString>,
}

/// Which agent is asked, and how it is shown.
#[derive(Args, Clone, Debug)]
pub struct LocksArguments {
    #[command(flatten)]
    at: Where,
    /// For programs
    #[arg(long)]
    json: bool,
}

/// Which lock.
#[derive(Args, Clone, Debug)]
pub struct UnlockArguments {
    /// The lock's name
    name: String,
    /// Though its holder may be at work: it loses the lock, and is not waited for longer than its lease
    #[arg(long, required = true)]
    force: bool,
    #[command(flatten)]
    at: Where,
}

/// What is shown, and how.
#[derive(Args, Clone, Debug)]
pub struct ShowArguments {
    #[command(flatten)]
    at: Where,
    /// For programs
    #[arg(long)]
    json: bool,
    /// Go on, and show every change
    #[arg(long)]
    watch: bool,
}

/// Does a task; the exit code of the process.
///
/// # Errors
/// A sentence, and the exit code that goes with it.
pub fn run(task: Task) -> Result<u8, Failure> {
    let done = match task {
        Task::Lock(LockArguments { options }) => return lock::lock(&options),
        Task::Elect(ElectArguments { options }) => return elect::elect(&options),
        Task::Observe(ObserveArguments { options }) => {
            asking()?.block_on(observe::observe(&options))
        }
        Task::Roles(LocksArguments { at, json }) => {
            let socket = at.find()?;
            asking()?.block_on(observe::roles(&socket, json))
        }
        Task::Resign(ResignArguments { options }) => asking()?.block_on(observe::resign(&options)),
        Task::Dev(DevArguments { options }) => dev::dev(&options),
        Task::Agent(arguments) => serve::agent(arguments.options),
        Task::LockChild(ChildArguments { command }) => return lock::become_command(&command),
        Task::Locks(LocksArguments { at, json }) => {
            let socket = at.find()?;
            asking()?.block_on(show::locks(&socket, json))
        }
        Task::Unlock(UnlockArguments { name, at, .. }) => {
            let socket = at.find()?;
            asking()?.block_on(show::force(&socket, &name))
        }
        Task::Status(arguments) => shown(arguments, View::Status),
        Task::Members(arguments) => shown(arguments, View::Members),
        Task::Ca(task) => task.run(),
    };
    done.map(|()| 0)
}

fn shown(ShowArguments { at, json, watch }: ShowArguments, view: View) -> Result<(), Failure> {
    let socket = at.find()?;
    asking()?.block_on(show::show(&socket, view, json, watch))
}

/// Where an agent is asked from.
fn asking() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::broken)
}
