//! What an agent is started with: flags, and a file that says the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use quorate_member::{Config, Engine, Namespace, Profile, Seed, Timers, TraceConfig, VERSIONS};
use quorate_transport::{Name, Security};
use serde::Deserialize;
use serde_json::json;

use crate::Failure;
use crate::log::Style;

/// A configuration file may be so long.
const FILE_MAX: u64 = 1 << 20;
/// How long those who hold something have when an agent is told to end.
const DRAIN: Duration = Duration::from_secs(10);

/// What an agent is started with. Every flag can stand in the file, under its name; flags come first.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct AgentOptions {
    /// A file in TOML with any of these, such as name = "a"
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,
    /// The member's name
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The cluster's name, as in certificates
    #[arg(long)]
    pub(crate) cluster: Option<String>,
    /// Where it listens for members
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<String>,
    /// Where others reach it, if that is another address
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) advertise: Option<String>,
    /// One, three or five members that vote, the same everywhere: a=HOST:PORT,b=HOST:PORT,…
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) seeds: Vec<String>,
    /// Where it keeps what it must not forget
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// The socket for programs on this machine [default: agent.sock in the data directory]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Who may use that socket, as a file mode in octal digits [default: 600]
    #[arg(long, value_name = "MODE")]
    pub(crate) socket_mode: Option<String>,
    /// Where it listens for HTTP, on loopback; none for nowhere [default: none]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) http: Option<String>,
    /// Show the cluster in the lab page, below /lab/ of --http [default address: any port of loopback]
    #[arg(long)]
    pub(crate) lab: bool,
    /// How far members are from each other: dev, lan, cloud or wan [default: lan]
    #[arg(long)]
    pub(crate) profile: Option<String>,
    /// How long a lease is, instead of what the profile says, such as 600ms
    #[arg(long, value_name = "TIME")]
    pub(crate) lease: Option<String>,
    /// Found the cluster if there is none: only the first of the seeds, and only once
    #[arg(long)]
    pub(crate) found: bool,
    /// As --found, if this is the member's name: where all are started with the same flags
    #[arg(long, value_name = "NAME")]
    pub(crate) founder: Option<String>,
    /// The certificates of who is believed
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// The certificate of this member
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Without certificates, also where others can listen in
    #[arg(long)]
    pub(crate) plaintext: bool,
    /// A place that refuses connections has nobody: no firewall or proxy refuses for who is alive
    #[arg(long)]
    pub(crate) trust_refusal: bool,
    /// Keep the register in this etcd instead of on the seeds' disks: HOST:PORT,…
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) etcd: Vec<String>,
    /// The key in etcd [default: /quorate/CLUSTER]
    #[arg(long, value_name = "KEY")]
    pub(crate) etcd_key: Option<String>,
    /// Namespaces that are to be there, by name: only in the file
    #[arg(skip)]
    pub(crate) spaces: BTreeMap<String, SpaceOptions>,
    /// How long those who hold something have when the agent is told to end, such as 30s [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub(crate) drain: Option<String>,
    /// Write down what clients do with locks, for quorate import member and quorate verify
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Of one in so many locks, picked by their names [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) trace_sample: Option<u32>,
    /// How the log is written: text or json
    #[arg(long, value_name = "STYLE")]
    pub(crate) log: Option<String>,
    /// Write down what happens, for `quorate verify --cluster`
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) history: Option<PathBuf>,
    /// Let whoever has the socket cut links
    #[arg(long, hide = true)]
    #[serde(skip)]
    pub(crate) faults: bool,
    /// End with the process that started this one
    #[arg(long, hide = true)]
    #[serde(skip)]
    pub(crate) with_parent: bool,
}

/// What the locks of a namespace are like.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct SpaceOptions {
    /// What decides who holds one: a mutex of quorate algorithms [default: home]
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    /// How many may hold one at a time [default: 1]
    #[arg(long, value_name = "N")]
    permits: Option<u32>,
    /// How long nobody gets what a member may have held that is gone and did not leave [default: 0s]
    #[arg(long, value_name = "TIME")]
    lock_delay: Option<String>,
}

impl SpaceOptions {
    /// What they come to.
    ///
    /// # Errors
    /// If a time makes no sense. Whether there can be such locks, an agent says.
    pub(crate) fn settle(&self) -> Result<Namespace, Failure> {
        let usual = Namespace::default();
        let delay = self.lock_delay.as_deref().map(span).transpose();
        let delay = delay.map_err(|error| Failure::input(format!("--lock-delay: {error}")))?;
        Ok(Namespace {
            algorithm: self.algorithm.clone().unwrap_or(usual.algorithm),
            permits: self.permits.unwrap_or(usual.permits),
            lock_delay: delay.unwrap_or(usual.lock_delay),
        })
    }

    /// As an agent is told.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub(crate) fn to_json(&self) -> Result<serde_json::Value, Failure> {
        let Namespace { algorithm, permits, lock_delay } = self.settle()?;
        let delay = lock_delay.as_millis() as u64;
        Ok(json!({ "algorithm": algorithm, "permits": permits, "lock_delay_ms": delay }))
    }
}

/// What comes of the options.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) member: Config,
    pub(crate) socket: PathBuf,
    pub(crate) socket_mode: u32,
    pub(crate) http: Option<String>,
    /// Namespaces that are to be there.
    pub(crate) spaces: Vec<(String, Namespace)>,
    pub(crate) lab: bool,
    pub(crate) faults: bool,
    pub(crate) log: Style,
    /// How long those who hold something have at the end.
    pub(crate) drain: Duration,
    pub(crate) with_parent: bool,
}

impl AgentOptions {
    /// With what the file says, where no flag says otherwise.
    fn with_file(self) -> Result<Self, Failure> {
        let Some(path) = &self.config else { return Ok(self) };
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::input(format!("--config {}: {why}", path.display()))
        };
        let size = fs::metadata(path).map_err(|error| wrong(&error))?.len();
        if size > FILE_MAX {
            return Err(wrong(&"it is too long"));
        }
        let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let file: Self = toml::from_str(&text)
            .map_err(|error| wrong(&error.to_string().lines().collect::<Vec<_>>().join(" ")))?;
        let list = |flag: Vec<String>, file| if flag.is_empty() { file } else { flag };
        Ok(Self {
            config: self.config.clone(),
            name: self.name.or(file.name),
            cluster: self.cluster.or(file.cluster),
            listen: self.listen.or(file.listen),
            advertise: self.advertise.or(file.advertise),
            seeds: list(self.seeds, file.seeds),
            data: self.data.or(file.data),
            socket: self.socket.or(file.socket),
            socket_mode: self.socket_mode.or(file.socket_mode),
            http: self.http.or(file.http),
            lab: self.lab || file.lab,
            profile: self.profile.or(file.profile),
            lease: self.lease.or(file.lease),
            found: self.found || file.found,
            founder: self.founder.or(file.founder),
            ca: self.ca.or(file.ca),
            cert: self.cert.or(file.cert),
            key: self.key.or(file.key),
            plaintext: self.plaintext || file.plaintext,
            trust_refusal: self.trust_refusal || file.trust_refusal,
            etcd: list(self.etcd, file.etcd),
            etcd_key: self.etcd_key.or(file.etcd_key),
            spaces: file.spaces,
            drain: self.drain.or(file.drain),
            trace: self.trace.or(file.trace),
            trace_sample: self.trace_sample.or(file.trace_sample),
            log: self.log.or(file.log),
            history: self.history.or(file.history),
            faults: self.faults,
            with_parent: self.with_parent,
        })
    }

    /// What they come to.
    ///
    /// # Errors
    /// If something is missing or makes no sense.
    pub(crate) fn settle(self) -> Result<Setting, Failure> {
        let all = self.with_file()?;
        let (security, trace) = (all.security()?, all.traced()?);
        let (drain, socket_mode) = (all.patience()?, all.mode()?);
        let (http, spaces) = (all.address()?, all.namespaces()?);
        let needed = |what: Option<String>, flag: &str| {
            what.ok_or_else(|| {
                Failure::input(format!("{flag} is missing; see quorate agent --help"))
            })
        };
        let name: Name = named(&needed(all.name, "--name")?, "--name")?;
        let cluster: Name = named(&all.cluster.unwrap_or_else(|| "main".into()), "--cluster")?;
        let data = all.data.ok_or_else(|| Failure::input("--data is missing: a directory"))?;
        let seeds = all.seeds.iter().map(|text| text.parse()).collect::<Result<Vec<Seed>, _>>();
        let seeds = seeds.map_err(|error| Failure::input(format!("--seeds {error}")))?;
        let own = seeds.iter().find(|seed| seed.name == name).map(|seed| seed.address.clone());
        let listen = needed(all.listen.or(own), "--listen")?;
        let profile: Profile = match &all.profile {
            None => Profile::Lan,
            Some(text) => {
                text.parse().map_err(|error| Failure::input(format!("--profile: {error}")))?
            }
        };
        let timers = match &all.lease {
            None => profile.timers(),
            Some(text) => span(text)
                .and_then(Timers::of)
                .map_err(|error| Failure::input(format!("--lease {text}: {error}")))?,
        };
        let engine = match all.etcd.is_empty() {
            true => Engine::Embedded,
            false => Engine::Etcd {
                endpoints: all.etcd,
                key: all.etcd_key.unwrap_or_else(|| format!("/quorate/{cluster}")),
            },
        };
        let log = all.log.as_deref().unwrap_or("text").parse();
        let log = log.map_err(|error| Failure::input(format!("--log: {error}")))?;
        let founder = all.founder.is_some_and(|founder| founder == name.as_str());
        let member = Config {
            name,
            cluster,
            listen,
            advertise: all.advertise,
            seeds,
            timers,
            found: all.found || founder,
            trust_refusal: all.trust_refusal || profile == Profile::Dev,
            security,
            versions: VERSIONS,
            engine,
            history: all.history,
            trace,
            data: data.clone(),
        };
        member.check().map_err(Failure::input)?;
        let socket = all.socket.unwrap_or_else(|| data.join("agent.sock"));
        let (lab, faults, with_parent) = (all.lab, all.faults, all.with_parent);
        Ok(Setting {
            member,
            socket,
            socket_mode,
            http,
            spaces,
            lab,
            faults,
            log,
            drain,
            with_parent,
        })
    }

    /// Where HTTP is served, if it is.
    fn address(&self) -> Result<Option<String>, Failure> {
        match self.http.as_deref() {
            Some("none") if self.lab => {
                Err(Failure::input("--lab needs an address: --http none gives none"))
            }
            None if self.lab => Ok(Some("127.0.0.1:0".to_owned())),
            http => Ok(http.filter(|http| *http != "none").map(str::to_owned)),
        }
    }

    /// Namespaces that are to be there.
    fn namespaces(&self) -> Result<Vec<(String, Namespace)>, Failure> {
        self.spaces.iter().map(|(name, space)| Ok((name.clone(), space.settle()?))).collect()
    }

    /// How long those who hold something have at the end.
    fn patience(&self) -> Result<Duration, Failure> {
        let drain = self.drain.as_deref().map_or(Ok(DRAIN), span);
        drain.map_err(|error| Failure::input(format!("--drain: {error}")))
    }

    /// Who may use the socket.
    fn mode(&self) -> Result<u32, Failure> {
        let text = self.socket_mode.as_deref().unwrap_or("600");
        let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
        mode.ok_or_else(|| {
            Failure::input(format!("--socket-mode {text}: a file mode, such as 660"))
        })
    }

    /// Where a trace is written, and of which locks.
    fn traced(&self) -> Result<Option<TraceConfig>, Failure> {
        let one_in = self.trace_sample.unwrap_or(1);
        if one_in == 0 {
            let sentence = "--trace-sample 0: one in how many locks? 1 is all of them";
            return Err(Failure::input(sentence));
        }
        Ok(self.trace.clone().map(|path| TraceConfig { path, one_in }))
    }

    fn security(&self) -> Result<Security, Failure> {
        match (&self.ca, &self.cert, &self.key) {
            (Some(ca), Some(certificate), Some(key)) => {
                let (ca, certificate, key) = (ca.clone(), certificate.clone(), key.clone());
                Ok(Security::Tls(quorate_transport::tls::Credentials { ca, certificate, key }))
            }
            (None, None, None) => Ok(Security::Plain { anywhere: self.plaintext }),
            _ => Err(Failure::input(
                "--ca, --cert and --key go together; quorate ca makes all three",
            )),
        }
    }
}

pub(crate) fn named(text: &str, flag: &str) -> Result<Name, Failure> {
    text.parse().map_err(|error| Failure::input(format!("{flag} {text}: {error}")))
}

/// A length of time, such as 600ms, 1.5s or 2m.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("a time is a number with a unit: ms, s, m or h".into()),
    };
    let number: f64 = digits.parse().map_err(|_| "a time begins with a number")?;
    let seconds = number * unit;
    if !(0.0..=1e9).contains(&seconds) {
        return Err("a time is neither negative nor for ever".into());
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(span("600ms"), Ok(Duration::from_millis(600)));
        assert_eq!(span("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(span("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "5", "s", "-1s", "1x", "1e99h", "NaNs"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }

    fn options(text: &str) -> AgentOptions {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let refused = |text: &str| options(text).settle().unwrap_err().sentence;
        assert!(refused("").contains("--name"));
        assert!(refused("name = 'a'").contains("--data"));
        assert!(refused("name = 'a'\ndata = 'x'\nseeds = ['a']").contains("NAME=HOST:PORT"));
        let two = "name = 'a'\ndata = 'x'\nseeds = ['a=h:1', 'b=h:2']";
        assert!(refused(two).contains("2 seeds"));
        let one = "name = 'a'\ndata = 'x'\nseeds = ['a=h:1']";
        assert!(refused(&format!("{one}\nca = 'c'")).contains("go together"));
        assert!(refused(&format!("{one}\nprofile = 'moon'")).contains("moon"));
        assert!(refused(&format!("{one}\nlease = '1ms'")).contains("--lease"));
        let setting = options(one).settle().unwrap();
        assert_eq!(setting.member.listen, "h:1");
        assert!(!setting.member.found);
        let founds = |founder: &str| {
            options(&format!("{one}\nfounder = '{founder}'")).settle().unwrap().member.found
        };
        assert!(founds("a") && !founds("b"));
        assert!(refused(&format!("{one}\nsocket-mode = '9'")).contains("--socket-mode 9"));
        assert!(refused(&format!("{one}\ndrain = 'soon'")).contains("--drain"));
        assert!(refused(&format!("{one}\ntrace = 't'\ntrace-sample = 0")).contains("0"));
    }

    #[test]
    fn an_unknown_key_is_an_error() {
        assert!(toml::from_str::<AgentOptions>("nmae = 'a'").is_err());
    }
}
