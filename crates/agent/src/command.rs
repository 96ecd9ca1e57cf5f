//! The commands of the cluster.

use std::sync::Arc;

use clap::{Args, Subcommand};
use quorate_member::Member;

use crate::ca::CaTask;
use crate::client::Where;
use crate::dev::DevOptions;
use crate::doctor::DoctorOptions;
use crate::drain::DrainOptions;
use crate::elect::ElectOptions;
use crate::group::GroupTask;
use crate::lock::LockOptions;
use crate::observe::{ObserveOptions, ResignOptions};
use crate::options::{AgentOptions, SpaceOptions};
use crate::recover::{BackupOptions, RecoverOptions, RestoreOptions};
use crate::serve::Beside;
use crate::show::View;
use crate::{
    Failure, dev, doctor, drain, elect, events, group, lock, observe, recover, serve, show,
};

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
    Roles(ShowArguments),
    /// Ask whoever leads in a role to give it up
    #[command(after_help = RESIGN_EXAMPLES)]
    Resign(ResignArguments),
    /// What a command is before it begins
    #[command(hide = true)]
    LockChild(ChildArguments),
    /// Who holds which lock, and who waits for it
    Locks(ShowArguments),
    /// Take a lock from whoever holds it
    Unlock(UnlockArguments),
    /// What locks are like: namespaces, with their algorithms, permits and delays
    #[command(after_help = SPACES_EXAMPLES)]
    Spaces(SpacesArguments),
    /// Messages to all members of a group
    #[command(subcommand, after_help = GROUP_EXAMPLES)]
    Group(GroupTask),
    /// How things stand with a cluster
    Status(ShowArguments),
    /// Who is in a cluster
    Members(ShowArguments),
    /// What happened, and why somebody was excluded
    #[command(after_help = EVENTS_EXAMPLES)]
    Events(EventsArguments),
    /// Try the whole chain on the live cluster, and say what is wrong
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArguments),
    /// Have an agent grant nothing more, wait for those who hold something, and end
    #[command(after_help = DRAIN_EXAMPLES)]
    Drain(DrainArguments),
    /// Write down what a cluster has agreed on
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(BackupArguments),
    /// Go on with what a backup says, on an empty disk
    Restore(RestoreArguments),
    /// Go on with one seed whose fellows are lost for good
    #[command(after_help = RECOVER_EXAMPLES)]
    Recover(RecoverArguments),
    /// The certificates of a cluster
    #[command(subcommand)]
    Ca(CaTask),
}

const DEV_EXAMPLES: &str = "Examples:
  quorate dev                      three members, until Ctrl-C
  quorate dev --demo               what becomes of a lock when things go wrong, step by step
  quorate dev --members 5 --dir d  five, which remember where they were the next time
  quorate dev --lab                watch it in the browser, kill members, cut links";

const AGENT_EXAMPLES: &str = "Examples:
  quorate agent --name a --data /var/lib/quorate --seeds a=h1:7400,b=h2:7400,c=h3:7400 \\
      --ca ca.pem --cert a.pem --key a.key --found
  quorate agent --config /etc/quorate.toml";

const LOCK_EXAMPLES: &str = "Examples:
  quorate lock nightly -- ./backup.sh          one at a time, everywhere
  quorate lock --timeout 10s nightly -- make   exit code 75 if it is not granted in time
  quorate lock --shared table -- ./report.sh   together with others who share it
  quorate lock --permits 3 crawl -- ./crawl.sh three at a time, everywhere

The command finds QUORATE_FENCE in its environment: give it to what it writes to. Its exit code is
passed on; 76 if the lock was lost, and the command ended for that reason.";

const SPACES_EXAMPLES: &str = "Examples:
  quorate spaces                                 all of them
  quorate spaces define pool --permits 4         each lock in pool has four places
  quorate spaces define slow --lock-delay 30s    what a lost member held stays closed for 30 s
  quorate spaces define ring --algorithm naimi-trehel
  quorate lock --space pool --permits 4 gpu -- ./train.sh

The first word on a namespace counts, for the whole cluster and for good.";

const GROUP_EXAMPLES: &str = "Examples:
  quorate group send news 'it rains'          one message
  quorate group send news --order uniform < f  every line of a file
  quorate group tail news --json               what is told from now on, a line of JSON each";

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

const EVENTS_EXAMPLES: &str = "Examples:
  quorate events            the latest 100 of each kind, also from before a restart
  quorate events --why      only who was excluded, and for what reason
  quorate events --watch    go on";

const DOCTOR_EXAMPLES: &str = "Examples:
  quorate doctor            takes, loses and takes a lock of its own; exit code 1 if something is wrong
  quorate doctor --look     only looks
  quorate doctor --clear-pledge --data /var/lib/quorate    at a seed that does not run";

const DRAIN_EXAMPLES: &str = "Examples:
  quorate drain                  before an upgrade: exit code 0 when the agent has ended
  quorate drain --timeout 5m     what still runs after five minutes is ended";

const BACKUP_EXAMPLES: &str = "Examples:
  quorate backup prod.json
  quorate restore prod.json --name a --data /var/lib/quorate --seeds a=h1:7400,… --force";

const RECOVER_EXAMPLES: &str = "Examples:
  quorate recover --force --data /var/lib/quorate --seeds a=h1:7400,b=h2:7400,c=h3:7400

The new cluster has another id: members of the old one never speak with it. It begins when the longest
lease is over, and its fences are larger than all before, if the calendar of this machine is right.";

/// What an agent is drained with.
#[derive(Args, Clone, Debug)]
pub struct DrainArguments {
    #[command(flatten)]
    options: DrainOptions,
}

/// What is examined.
#[derive(Args, Clone, Debug)]
pub struct DoctorArguments {
    #[command(flatten)]
    options: DoctorOptions,
}

/// Where a backup goes.
#[derive(Args, Clone, Debug)]
pub struct BackupArguments {
    #[command(flatten)]
    options: BackupOptions,
}

/// Where a backup is put back.
#[derive(Args, Clone, Debug)]
pub struct RestoreArguments {
    #[command(flatten)]
    options: RestoreOptions,
}

/// Which seed goes on alone.
#[derive(Args, Clone, Debug)]
pub struct RecoverArguments {
    #[command(flatten)]
    options: RecoverOptions,
}

/// Which events are shown.
#[derive(Args, Clone, Debug)]
pub struct EventsArguments {
    #[command(flatten)]
    at: Where,
    /// Only who was excluded, and for what reason
    #[arg(long)]
    why: bool,
    /// For programs
    #[arg(long)]
    json: bool,
    /// Go on, and show what comes
    #[arg(long)]
    watch: bool,
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

/// Which lock.
#[derive(Args, Clone, Debug)]
pub struct UnlockArguments {
    /// The lock's name
    name: String,
    /// The namespace of the lock
    #[arg(long, value_name = "NAME", default_value = quorate_member::SPACE)]
    space: String,
    /// Though its holder may be at work: it loses the lock, and is not waited for longer than its lease
    #[arg(long, required = true)]
    force: bool,
    #[command(flatten)]
    at: Where,
}

/// Namespaces.
#[derive(Args, Clone, Debug)]
pub struct SpacesArguments {
    #[command(subcommand)]
    task: Option<SpacesTask>,
    #[command(flatten)]
    at: Where,
    /// For programs
    #[arg(long)]
    json: bool,
}

/// What to do with namespaces.
#[derive(Subcommand, Clone, Debug)]
enum SpacesTask {
    /// Say what the locks of a namespace are like
    Define {
        /// The namespace's name
        name: String,
        #[command(flatten)]
        space: SpaceOptions,
        #[command(flatten)]
        at: Where,
    },
}

/// Which agent is asked, and how that is shown.
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
    perform(task, None)
}

/// Does a task; if it is to be an agent, that of a program which uses the cluster in the same process.
///
/// # Errors
/// A sentence, and the exit code that goes with it.
pub fn run_beside(task: Task, beside: impl FnOnce(Arc<Member>) + 'static) -> Result<u8, Failure> {
    perform(task, Some(Box::new(beside)))
}

fn perform(task: Task, beside: Option<Beside>) -> Result<u8, Failure> {
    let done = match task {
        Task::Lock(LockArguments { options }) => return lock::lock(&options),
        Task::Elect(ElectArguments { options }) => return elect::elect(&options),
        Task::Observe(ObserveArguments { options }) => {
            asking()?.block_on(observe::observe(&options))
        }
        Task::Roles(ShowArguments { at, json, watch }) => {
            let socket = at.find()?;
            asking()?.block_on(observe::roles(&socket, json, watch))
        }
        Task::Resign(ResignArguments { options }) => asking()?.block_on(observe::resign(&options)),
        Task::Dev(DevArguments { options }) => dev::dev(&options),
        Task::Agent(arguments) => serve::agent(arguments.options, beside),
        Task::LockChild(ChildArguments { command }) => return lock::become_command(&command),
        Task::Doctor(DoctorArguments { options }) => {
            return asking()?.block_on(doctor::doctor(&options));
        }
        Task::Events(EventsArguments { at, why, json, watch }) => {
            let socket = at.find()?;
            asking()?.block_on(events::events(&socket, why, json, watch))
        }
        Task::Drain(DrainArguments { options }) => asking()?.block_on(drain::drain(&options)),
        Task::Backup(BackupArguments { options }) => asking()?.block_on(recover::backup(&options)),
        Task::Restore(RestoreArguments { options }) => recover::restore(&options),
        Task::Recover(RecoverArguments { options }) => recover::recover(&options),
        Task::Locks(ShowArguments { at, json, watch }) => {
            let socket = at.find()?;
            asking()?.block_on(show::locks(&socket, json, watch))
        }
        Task::Unlock(UnlockArguments { name, space, at, .. }) => {
            let socket = at.find()?;
            asking()?.block_on(show::force(&socket, &space, &name))
        }
        Task::Spaces(SpacesArguments { task: None, at, json }) => {
            let socket = at.find()?;
            asking()?.block_on(show::spaces(&socket, json))
        }
        Task::Spaces(SpacesArguments { task: Some(task), .. }) => {
            let SpacesTask::Define { name, space, at } = task;
            let (socket, space) = (at.find()?, space.to_json()?);
            asking()?.block_on(show::define(&socket, &name, &space))
        }
        Task::Group(task) => asking()?.block_on(group::run(task)),
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
