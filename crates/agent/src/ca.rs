//! `quorate ca`: the certificates of a cluster.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use quorate_transport::Name;
use quorate_transport::ca::{self, Rekey};
use quorate_transport::tls::Role;

use crate::Failure;
use crate::options::named;

/// What to do about certificates.
#[derive(Subcommand, Clone, Debug)]
pub enum CaTask {
    /// Make the authority of a cluster: ca.pem, which all members get, and ca.key, which stays here
    Init(Init),
    /// Issue a certificate: NAME.pem and NAME.key
    Issue(Issue),
    /// Issue a certificate again, before it runs out; agents take it up without a restart
    Renew(Renew),
}

/// The authority of a cluster.
#[derive(Args, Clone, Debug)]
pub struct Init {
    /// The cluster's name
    #[arg(long)]
    cluster: String,
    /// Where the files go
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

/// Whose certificate it is.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum For {
    /// A member of the cluster
    Member,
    /// Who uses it through an agent
    Client,
    /// Who may also force locks open
    Admin,
}

impl For {
    const fn role(self) -> Role {
        match self {
            Self::Member => Role::Member,
            Self::Client => Role::Client,
            Self::Admin => Role::Admin,
        }
    }
}

/// A certificate.
#[derive(Args, Clone, Debug)]
pub struct Issue {
    /// The name of its owner
    name: String,
    /// What its owner is
    #[arg(long, value_enum, default_value = "member")]
    role: For,
    /// Where ca.pem and ca.key are
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Where the files go [default: the same directory]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// How long it is valid
    #[arg(long, value_name = "N", default_value_t = ca::DAYS)]
    days: u32,
}

/// A certificate that there is.
#[derive(Args, Clone, Debug)]
pub struct Renew {
    /// The certificate, NAME.pem; its key is NAME.key beside it
    certificate: PathBuf,
    /// Where ca.pem and ca.key are
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// With a new key
    #[arg(long)]
    new_key: bool,
    /// How long it is valid
    #[arg(long, value_name = "N", default_value_t = ca::DAYS)]
    days: u32,
}

impl CaTask {
    /// Does it.
    ///
    /// # Errors
    /// If files cannot be read or written, or are there already.
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Init(Init { cluster, dir }) => {
                let cluster: Name = named(&cluster, "--cluster")?;
                ca::init(&dir, &cluster).map_err(Failure::input)?;
                anstream::println!(
                    "{}  for every member of {cluster}\n{}  keep it to yourself: whoever has it can \
                     make members\n\nNow: quorate ca issue NAME --dir {}",
                    dir.join(ca::CERTIFICATE).display(),
                    dir.join(ca::KEY).display(),
                    dir.display()
                );
            }
            Self::Issue(Issue { name, role, dir, to, days }) => {
                let name: Name = named(&name, "NAME")?;
                let to = to.as_deref().unwrap_or(&dir);
                let made = ca::issue(&dir, role.role(), &name, to, days).map_err(Failure::input)?;
                anstream::println!(
                    "{}  valid for {days} days\n{}\n\nNow: quorate agent --name {name} --ca {} --cert \
                     {} --key {} …",
                    made.certificate.display(),
                    made.key.display(),
                    made.ca.display(),
                    made.certificate.display(),
                    made.key.display()
                );
            }
            Self::Renew(Renew { certificate, dir, new_key, days }) => {
                let rekey = if new_key { Rekey::New } else { Rekey::Keep };
                let key = certificate.with_extension("key");
                let renewed = ca::renew(&dir, &certificate, &key, rekey, days);
                renewed.map_err(Failure::input)?;
                anstream::println!("{}  valid for {days} days more", certificate.display());
            }
        }
        Ok(())
    }
}
