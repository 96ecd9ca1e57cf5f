//! A proxy that cuts connections after so many bytes.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Passes bytes on, and cuts each connection when it has passed a number of them.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    /// How many connections it has cut.
    pub(crate) cuts: Arc<AtomicUsize>,
}

impl Proxy {
    /// `limit` says for each connection after how many bytes it is cut; none: never.
    pub(crate) fn start(
        to: SocketAddr,
        mut limit: impl FnMut() -> Option<usize> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&cuts);
        thread::spawn(move || {
            for accepted in listener.incoming() {
                let Ok(near) = accepted else { return };
                let Ok(far) = TcpStream::connect(to) else { continue };
                let left = Arc::new(AtomicUsize::new(limit().unwrap_or(usize::MAX)));
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let pump = Pump {
                        from: from.try_clone().unwrap(),
                        to: to.try_clone().unwrap(),
                        left: Arc::clone(&left),
                        cuts: Arc::clone(&counted),
                    };
                    thread::spawn(move || pump.run());
                }
            }
        });
        Self { address, cuts }
    }
}

struct Pump {
    from: TcpStream,
    to: TcpStream,
    left: Arc<AtomicUsize>,
    cuts: Arc<AtomicUsize>,
}

impl Pump {
    fn run(mut self) {
        let mut bytes = vec![0; 32 * 1024];
        while let Ok(len @ 1..) = self.from.read(&mut bytes) {
            let take = |left: usize| Some(left.saturating_sub(len));
            let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).unwrap();
            if self.to.write_all(&bytes[..len.min(left)]).is_err() {
                break;
            }
            if left <= len {
                self.cuts.fetch_add(1, Ordering::SeqCst);
                break;
            }
        }
        // Both directions, so that neither side waits for the other.
        let _ = self.from.shutdown(Shutdown::Both);
        let _ = self.to.shutdown(Shutdown::Both);
    }
}

/// Passes bytes on, and breaks connections towards one side only when it is told to.
pub(crate) struct Bridge {
    pub(crate) address: SocketAddr,
    /// The sockets of the side that dialled, and of the other one.
    sides: Arc<Mutex<[Vec<TcpStream>; 2]>>,
}

impl Bridge {
    pub(crate) fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let sides = Arc::new(Mutex::new([Vec::new(), Vec::new()]));
        let kept = Arc::clone(&sides);
        thread::spawn(move || {
            for accepted in listener.incoming() {
                let Ok(near) = accepted else { return };
                let Ok(far) = TcpStream::connect(to) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    // What ends on one side stays open on the other.
                    thread::spawn(move || std::io::copy(&mut from, &mut to));
                }
                let mut kept = kept.lock().unwrap();
                kept[0].push(near);
                kept[1].push(far);
            }
        });
        Self { address, sides }
    }

    /// Breaks what there is towards the side that dialled, or the other one.
    pub(crate) fn cut(&self, dialler: bool) {
        for socket in &self.sides.lock().unwrap()[usize::from(!dialler)] {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Numbers from a seed (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
