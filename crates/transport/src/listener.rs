//! The socket on which a member is reached.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Weak};

/// The socket on which a member is reached. It listens until this value is dropped, whatever becomes of
/// the transport: others may take its being closed for the end of the process.
///
/// Nobody else can listen on the same address meanwhile, and children do not inherit it.
#[derive(Debug)]
pub struct Listener {
    socket: Arc<TcpListener>,
}

/// What the thread of a transport has of a listener: it keeps nothing open.
#[derive(Debug)]
pub(crate) struct Accepts(Weak<TcpListener>);

impl Listener {
    /// Listens on an address. Bind before anything else is done.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket: Arc::new(socket) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(crate) fn accepts(&self) -> Accepts {
        Accepts(Arc::downgrade(&self.socket))
    }
}

impl Accepts {
    /// For registration; none if the listener is gone.
    pub(crate) fn fd(&self) -> Option<RawFd> {
        self.0.upgrade().map(|socket| socket.as_raw_fd())
    }

    /// The next connection; none if the listener is gone.
    pub(crate) fn accept(&self) -> Option<io::Result<(TcpStream, SocketAddr)>> {
        self.0.upgrade().map(|socket| socket.accept())
    }
}
