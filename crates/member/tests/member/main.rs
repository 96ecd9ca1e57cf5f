//! Members of one process, over real sockets and disks.

mod groups;
mod locks;
mod plan;
mod roles;
mod seats;
