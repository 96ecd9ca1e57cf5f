//! The chain of safety, tried: a lock, its fence, its loss, and the next holder.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hyper::{Method, StatusCode};
use quorate_fence::{Fence, Gate as _, MemoryGate};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::Finding;
use crate::Failure;
use crate::client::call;

/// What a session of the doctor may be silent.
const TTL: Duration = Duration::from_secs(10);
/// How long anything may take that should take no time.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a lock that is held is waited for, to see that it is.
const SHORT: Duration = Duration::from_millis(100);

/// A link of the chain that did not hold: what was seen, and what to do.
type Broken = (String, &'static str);

/// Tries everything; what comes after something broken is not tried.
pub(super) async fn try_all(socket: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let name =
        format!("quorate-doctor-{}-{:08x}", std::process::id(), quorate_transport::nonce() as u32);
    let chain = Chain { socket, name };
    if let Err((what, (seen, advice))) = chain.run(&mut findings).await {
        findings.push(Finding::wrong(what, seen, advice));
    }
    findings
}

struct Chain<'a> {
    socket: &'a Path,
    name: String,
}

/// What was granted.
struct Grant {
    fence: Fence,
    took: Duration,
}

impl Chain<'_> {
    async fn run(&self, findings: &mut Vec<Finding>) -> Result<(), (&'static str, Broken)> {
        let (first, second) = self.both().await.map_err(|broken| ("sessions", broken))?;
        let done = self.through(findings, first, second).await;
        for session in [first, second] {
            // Without an answer it ends by itself.
            let _ = self.ask(Method::DELETE, &format!("/v1/sessions/{session}"), None).await;
        }
        done
    }

    async fn both(&self) -> Result<(u64, u64), Broken> {
        Ok((self.open().await?, self.open().await?))
    }

    async fn through(
        &self,
        findings: &mut Vec<Finding>,
        first: u64,
        second: u64,
    ) -> Result<(), (&'static str, Broken)> {
        let as_in = |what| move |broken| (what, broken);
        let one = self.acquire(first, PATIENCE).await.map_err(as_in("lock"))?;
        findings.push(Finding::well("lock", format!("granted in {:.1} ms", ms(one.took))));
        self.is_taken(second).await.map_err(as_in("exclusion"))?;
        findings.push(Finding::well("exclusion", "a second client does not get it meanwhile"));
        self.lose(first).await.map_err(as_in("loss"))?;
        findings.push(Finding::well("loss", "taken by force, its holder is told that it lost it"));
        let two = self.acquire(second, PATIENCE).await.map_err(as_in("next holder"))?;
        findings.push(Finding::well("next holder", format!("granted in {:.1} ms", ms(two.took))));
        fences(&one, &two).map_err(as_in("fences"))?;
        findings.push(Finding::well(
            "fences",
            format!("{} < {}, and a gate refuses the first after the second", one.fence, two.fence),
        ));
        self.release(second).await.map_err(as_in("release"))?;
        let took = self.kill(first).await.map_err(as_in("killed holder"))?;
        findings.push(Finding::well(
            "killed holder",
            format!("the next one has the lock after {:.0} ms", ms(took)),
        ));
        Ok(())
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<(StatusCode, Value), Broken> {
        let asked = call(self.socket, method, path, body).await;
        asked.map_err(|Failure { sentence, .. }| (sentence, "is the agent still there?"))
    }

    async fn open(&self) -> Result<u64, Broken> {
        let body = json!({ "ttl_ms": TTL.as_millis() as u64, "pid": std::process::id() });
        let (_, said) = self.ask(Method::POST, "/v1/sessions", Some(body)).await?;
        said["session"].as_u64().ok_or_else(|| (sentence(&said), "see quorate status"))
    }

    fn locks(&self, session: u64) -> String {
        format!("/v1/sessions/{session}/locks")
    }

    async fn wish(&self, session: u64, wait: Duration) -> Result<(StatusCode, Value), Broken> {
        let body = json!({
            "name": self.name,
            "owner": "quorate doctor",
            "wait_ms": wait.as_millis() as u64,
        });
        self.ask(Method::POST, &self.locks(session), Some(body)).await
    }

    async fn acquire(&self, session: u64, wait: Duration) -> Result<Grant, Broken> {
        let begun = Instant::now();
        let (_, said) = self.wish(session, wait).await?;
        let took = begun.elapsed();
        let fence = said["fence"].as_str().and_then(|text| text.parse().ok());
        match fence {
            Some(fence) => Ok(Grant { fence, took }),
            None => Err((sentence(&said), "see quorate status and quorate locks")),
        }
    }

    async fn is_taken(&self, session: u64) -> Result<(), Broken> {
        let (code, said) = self.wish(session, SHORT).await?;
        match code {
            StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT => Ok(()),
            _ => Err((
                format!("{code}: {said}"),
                "two were granted one lock: stop what depends on it, keep all data directories, and \
                 report it",
            )),
        }
    }

    /// The lock is taken from a session by force, and the session finds out.
    async fn lose(&self, session: u64) -> Result<(), Broken> {
        let (_, said) = self.ask(Method::DELETE, &format!("/v1/locks/{}", self.name), None).await?;
        if said["held"] != true {
            return Err((
                format!("it is held, and nobody is said to: {said}"),
                "see quorate locks",
            ));
        }
        let path = format!("{}/{}", self.locks(session), self.name);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (code, _) = self.ask(Method::GET, &path, None).await?;
            if code == StatusCode::CONFLICT {
                break;
            }
            if Instant::now() >= deadline {
                return Err(("its holder is not told".into(), "see the log of the agent"));
            }
            sleep(Duration::from_millis(10)).await;
        }
        self.release(session).await
    }

    async fn release(&self, session: u64) -> Result<(), Broken> {
        let path = format!("{}/{}", self.locks(session), self.name);
        self.ask(Method::DELETE, &path, None).await.map(drop)
    }

    /// A wrapper that holds the lock is killed: how long until somebody else has it.
    async fn kill(&self, session: u64) -> Result<Duration, Broken> {
        const ADVICE: &str = "try quorate lock NAME -- true by hand";
        let program = std::env::current_exe().map_err(|error| (error.to_string(), ADVICE))?;
        let mut wrapper = Command::new(program);
        wrapper.arg("lock").arg(&self.name).arg("--connect").arg(self.socket);
        wrapper.args(["--owner", "quorate doctor", "--", "sleep", "60"]);
        wrapper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = wrapper.spawn().map_err(|error| (error.to_string(), ADVICE))?;
        let mut child = Ended(child);
        let deadline = Instant::now() + PATIENCE;
        while self.is_taken(session).await.is_err() {
            // It was granted instead: the wrapper does not have it yet.
            self.release(session).await?;
            if Instant::now() >= deadline {
                return Err(("the wrapper does not take the lock".into(), ADVICE));
            }
            sleep(Duration::from_millis(10)).await;
        }
        let begun = Instant::now();
        child.kill();
        let granted = self.acquire(session, PATIENCE).await;
        let took = begun.elapsed();
        granted?;
        self.release(session).await?;
        Ok(took)
    }
}

/// A process that is ended with this value.
struct Ended(Child);

impl Ended {
    fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.kill();
    }
}

fn fences(one: &Grant, two: &Grant) -> Result<(), Broken> {
    const ADVICE: &str = "stop what depends on fences, keep all data directories, and report it";
    if one.fence >= two.fence {
        return Err((format!("{} was followed by {}", one.fence, two.fence), ADVICE));
    }
    let gate = MemoryGate::new();
    let (newer, older) = (gate.admit("doctor", two.fence), gate.admit("doctor", one.fence));
    match (newer, older) {
        (Ok(_), Err(_)) => Ok(()),
        _ => Err(("a gate let an older fence in after a newer one".into(), ADVICE)),
    }
}

fn sentence(said: &Value) -> String {
    said["sentence"].as_str().map_or_else(|| said.to_string(), str::to_owned)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
