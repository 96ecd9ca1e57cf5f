//! The switch: carries packets between ports, each as its link allows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tun_rs::SyncDevice;

use super::link::{Link, Quality};
use super::packet;
use super::port::Port;

/// The largest packet that a device gives.
const PACKET_MAX: usize = 1 << 16;
/// The most bytes that are under way; more are lost.
const UNDER_WAY_MAX: usize = 64 << 20;
/// How often it is looked whether all is over, at least.
const LOOK: Duration = Duration::from_millis(20);

/// What links do, and who is refused.
struct Rules {
    links: BTreeMap<(Ipv4Addr, Ipv4Addr), Link>,
    /// In whose name everything is rejected that is sent to them.
    rejected: BTreeSet<Ipv4Addr>,
}

impl Rules {
    /// Where a packet goes, and when it arrives; the answer if it is rejected.
    fn route(&mut self, now: Instant, packet: Vec<u8>) -> Vec<Parcel> {
        let Some((from, to)) = packet::ends(&packet) else { return Vec::new() };
        if self.rejected.contains(&to) {
            let Some(answer) = packet::reset_for(&packet) else { return Vec::new() };
            return self.carry(now, (to, from), answer);
        }
        self.carry(now, (from, to), packet)
    }

    fn carry(&mut self, now: Instant, ends: (Ipv4Addr, Ipv4Addr), packet: Vec<u8>) -> Vec<Parcel> {
        let Some(link) = self.links.get_mut(&ends) else { return Vec::new() };
        let packet = Arc::<[u8]>::from(packet);
        let arrivals = link.pass(now, packet.len()).into_iter().flatten();
        arrivals.map(|due| Parcel { due, to: ends.1, packet: Arc::clone(&packet) }).collect()
    }
}

/// A packet that is under way.
struct Parcel {
    due: Instant,
    to: Ipv4Addr,
    packet: Arc<[u8]>,
}

/// The switch. It carries packets until it is dropped.
pub struct Switch {
    rules: Arc<Mutex<Rules>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Switch {
    /// Connects these ports. What is drawn for each link comes from the seed and the two ends alone.
    ///
    /// # Errors
    /// If there cannot be a thread.
    pub fn connect<'a>(ports: impl IntoIterator<Item = &'a Port>, seed: u64) -> io::Result<Self> {
        let ports: Vec<&Port> = ports.into_iter().collect();
        let mut links = BTreeMap::new();
        for from in &ports {
            for to in ports.iter().filter(|to| to.address != from.address) {
                let ends =
                    u64::from(from.address.to_bits()) << 32 | u64::from(to.address.to_bits());
                links.insert((from.address, to.address), Link::new(seed ^ ends));
            }
        }
        let rules = Arc::new(Mutex::new(Rules { links, rejected: BTreeSet::new() }));
        let over = Arc::new(AtomicBool::new(false));
        let devices = ports.iter().map(|port| (port.address, Arc::clone(&port.device)));
        let carrier = Carrier {
            devices: devices.collect(),
            rules: Arc::clone(&rules),
            waiting: BinaryHeap::new(),
            parcels: BTreeMap::new(),
            count: 0,
            bytes: 0,
        };
        let ended = Arc::clone(&over);
        let run = move || carrier.run(&ended);
        let thread = Some(thread::Builder::new().name("switch".into()).spawn(run)?);
        Ok(Self { rules, over, thread })
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what a link does to packets.
    pub fn change(&self, from: Ipv4Addr, to: Ipv4Addr, change: impl FnOnce(&mut Quality)) {
        if let Some(link) = self.rules().links.get_mut(&(from, to)) {
            change(&mut link.quality);
        }
    }

    /// Everything that is sent to this address is answered with a reset, in its name; or no more.
    pub fn reject(&self, address: Ipv4Addr, rejected: bool) {
        let rejects = &mut self.rules().rejected;
        if rejected {
            rejects.insert(address);
        } else {
            rejects.remove(&address);
        }
    }

    /// All links do this to packets, and nobody is rejected.
    pub fn set_all(&self, quality: Quality) {
        let mut rules = self.rules();
        rules.rejected.clear();
        rules.links.values_mut().for_each(|link| link.quality = quality);
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// The thread's side.
struct Carrier {
    devices: Vec<(Ipv4Addr, Arc<SyncDevice>)>,
    rules: Arc<Mutex<Rules>>,
    /// What arrives when: earlier first, and of the same time what was sent first.
    waiting: BinaryHeap<Reverse<(Instant, u64)>>,
    parcels: BTreeMap<u64, Parcel>,
    count: u64,
    bytes: usize,
}

impl Carrier {
    fn run(mut self, over: &AtomicBool) {
        let mut buffer = vec![0; PACKET_MAX];
        while !over.load(Ordering::Relaxed) {
            self.deliver(Instant::now());
            if self.wait().is_err() {
                return;
            }
            self.collect(&mut buffer);
        }
    }

    /// Waits for a packet, or until one is due.
    fn wait(&self) -> io::Result<()> {
        let now = Instant::now();
        let next = self.waiting.peek().map(|Reverse((due, _))| due.saturating_duration_since(now));
        let time = next.unwrap_or(LOOK).min(LOOK);
        let time = Timespec { tv_sec: 0, tv_nsec: time.as_nanos() as _ };
        let mut ready: Vec<_> =
            self.devices.iter().map(|(_, device)| PollFd::new(device, PollFlags::IN)).collect();
        match poll(&mut ready, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes in what the devices have.
    fn collect(&mut self, buffer: &mut [u8]) {
        let mut taken = Vec::new();
        for (_, device) in &self.devices {
            while let Ok(length) = device.recv(buffer) {
                let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
                taken.extend(rules.route(Instant::now(), buffer[..length].to_vec()));
            }
        }
        for parcel in taken {
            if self.bytes + parcel.packet.len() <= UNDER_WAY_MAX {
                self.bytes += parcel.packet.len();
                self.waiting.push(Reverse((parcel.due, self.count)));
                self.parcels.insert(self.count, parcel);
                self.count += 1;
            }
        }
    }

    /// Hands over what is due. What a device does not take is lost.
    fn deliver(&mut self, now: Instant) {
        while let Some(Reverse((due, number))) = self.waiting.peek().copied()
            && due <= now
        {
            self.waiting.pop();
            let Some(parcel) = self.parcels.remove(&number) else { continue };
            self.bytes -= parcel.packet.len();
            let to = self.devices.iter().find(|(address, _)| *address == parcel.to);
            if let Some((_, device)) = to {
                _ = device.send(&parcel.packet);
            }
        }
    }
}
