//! The admission of a process, of which only the nonce matters.

use quorate_authority::Order;
use quorate_service::{Nonce, Process};

/// Admits a process with this nonce.
pub(crate) fn admit(nonce: u128) -> Order {
    let process = Process {
        nonce: Nonce(nonce),
        boot: 1,
        pid_namespace: 1,
        pid: 1,
        started: 1,
        lock_file: (1, 1),
        address: String::new(),
    };
    Order::Admit { name: "m".to_owned(), process }
}
