//! A namespace with one device, and what is run inside of it.

use std::io;
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use nix::sched::{CloneFlags, unshare};
use tun_rs::{DeviceBuilder, SyncDevice};

/// The address of the member of this number.
#[must_use]
pub const fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, number)
}

/// Something that is done inside of a namespace.
type Work = Box<dyn FnOnce() + Send>;

/// A namespace of the network with one device, at which a switch can listen.
///
/// A thread has entered it; sockets that it opens and processes that it starts are in there.
pub struct Port {
    pub(super) device: Arc<SyncDevice>,
    pub(super) address: Ipv4Addr,
    inside: Sender<Work>,
}

impl Port {
    /// Makes a namespace for the member of this number. Only root can.
    ///
    /// # Errors
    /// What the kernel refuses, with what it was.
    pub fn open(number: u8) -> io::Result<Self> {
        let (inside, works) = channel::<Work>();
        let (opened, device) = channel();
        let address = address(number);
        let run = move || {
            let device = enter(address);
            let entered = device.is_ok();
            if opened.send(device).is_ok() && entered {
                works.into_iter().for_each(|work| work());
            }
        };
        thread::Builder::new().name(format!("port-{number}")).spawn(run)?;
        let device = device.recv().map_err(|_| io::Error::other("the thread of a port is gone"))?;
        Ok(Self { device: Arc::new(device?), address, inside })
    }

    /// Where it is.
    #[must_use]
    pub const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Does something inside of the namespace, and waits for it.
    ///
    /// # Panics
    /// If what is done panics.
    pub fn within<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> R {
        let (done, result) = channel();
        let work = move || _ = done.send(work());
        self.inside
            .send(Box::new(work))
            .expect("the thread of a port goes on while there is a port");
        result.recv().expect("what is done in a port does not panic")
    }

    /// Starts a process inside of the namespace.
    ///
    /// # Errors
    /// Those of the start.
    pub fn spawn(&self, mut command: Command) -> io::Result<Child> {
        self.within(move || command.spawn())
    }
}

/// This thread enters a namespace of its own, in which there is one device.
fn enter(address: Ipv4Addr) -> io::Result<SyncDevice> {
    let what =
        |what: &str, error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"));
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| what("a namespace", error.into()))?;
    // Nobody is reached by the own address otherwise.
    let mut ip = Command::new("ip");
    ip.args(["link", "set", "lo", "up"]).stdin(Stdio::null());
    let output = ip.output().map_err(|error| what("ip, of iproute2", error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(format!("ip link set lo up: {said}")));
    }
    let device = DeviceBuilder::new().name("q0").ipv4(address, 24, None).mtu(1500);
    let device = device.build_sync().map_err(|error| what("a TUN device", error))?;
    device.set_nonblocking(true)?;
    Ok(device)
}
