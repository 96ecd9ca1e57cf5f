//! Certificates: whose they are, and how they are replaced while a process runs.

use std::fs;

use quorate_transport::ca::{self, Rekey};
use quorate_transport::tls::{Credentials, Role};
use quorate_transport::{Config, Lane, Security, Transport};

use crate::log;
use crate::node::{Node, Seen, config, name};

/// An authority in a directory of its own.
pub(crate) struct Authority {
    pub(crate) place: tempfile::TempDir,
}

impl Authority {
    pub(crate) fn new(cluster: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        ca::init(place.path(), &name(cluster)).unwrap();
        Self { place }
    }

    pub(crate) fn issue(&self, role: Role, owner: &str) -> Credentials {
        let to = self.place.path().join(role.to_string());
        ca::issue(self.place.path(), role, &name(owner), &to, 30).unwrap()
    }

    /// The usual configuration, with a certificate. The certificate is issued once.
    pub(crate) fn config(&self, member: &str) -> Config {
        let place = self.place.path().join("member");
        let (certificate, key) =
            (place.join(format!("{member}.pem")), place.join(format!("{member}.key")));
        let credentials = if certificate.exists() {
            Credentials { ca: self.place.path().join(ca::CERTIFICATE), certificate, key }
        } else {
            self.issue(Role::Member, member)
        };
        config(member, Security::Tls(credentials))
    }
}

#[test]
fn members_with_certificates_exchange_frames() {
    let authority = Authority::new("prod");
    let (a, b) = (Node::start(authority.config("a")), Node::echoing(authority.config("b")));
    a.dial_node(&b);
    a.until_up();
    for len in [0, 1, 100, 16_384, 5_000_000] {
        a.send(&b.name, Lane::Data, &vec![3; len]);
        assert_eq!(a.frame(), (Lane::Data, vec![3; len]));
    }
    a.transport.stop();
    b.until(|seen| matches!(seen, Seen::Down { why, .. } if why.is_announced()));
}

#[test]
fn a_process_starts_with_its_own_certificate_only() {
    let authority = Authority::new("prod");
    let wrong = |security: Credentials, member: &str| {
        let config = config(member, Security::Tls(security));
        let started = Transport::start(config, None, |_| crate::sessions::Never);
        started.map(drop).unwrap_err().to_string()
    };
    let error = wrong(authority.issue(Role::Member, "b"), "a");
    assert!(error.contains("is for b.member.prod.quorate, and this is member a"), "{error}");
    let error = wrong(authority.issue(Role::Admin, "a"), "a");
    assert!(error.contains("is for a.admin.prod.quorate"), "{error}");
    let mut missing = authority.issue(Role::Member, "c");
    missing.key = authority.place.path().join("nowhere.key");
    let error = wrong(missing, "c");
    assert!(error.contains("nowhere.key: "), "{error}");
}

#[test]
fn certificates_are_replaced_while_the_process_runs() {
    log::keep();
    let authority = Authority::new("prod");
    let (first, second) = (authority.config("a"), authority.config("b"));
    let Security::Tls(ours) = first.security.clone() else { panic!() };
    let (a, b) = (Node::start(first), Node::start(second));
    a.dial_node(&b);
    a.until_up();
    // A bad file is not used.
    let good = fs::read(&ours.certificate).unwrap();
    fs::write(&ours.certificate, "not a certificate").unwrap();
    a.run(|io| io.reload());
    a.run(|io| io.reload());
    let path = ours.certificate.display().to_string();
    assert_eq!(log::lines(&path).len(), 1, "one line, however often it is looked at");
    let again = |node: &Node| {
        node.run(|io| {
            let peer = io.peer(&name("b")).unwrap();
            io.close(peer, "again");
        });
        node.until_up();
    };
    again(&a);
    // A new certificate with a new key is, for the connections to come.
    fs::write(&ours.certificate, good).unwrap();
    let place = authority.place.path();
    ca::renew(place, &ours.certificate, &ours.key, Rekey::New, 90).unwrap();
    a.run(|io| io.reload());
    again(&a);
    // An authority that nobody else knows shows that it is this file that counts.
    let other = Authority::new("prod");
    let theirs = other.issue(Role::Member, "a");
    fs::copy(&theirs.certificate, &ours.certificate).unwrap();
    fs::copy(&theirs.key, &ours.key).unwrap();
    a.run(|io| {
        io.reload();
        let peer = io.peer(&name("b")).unwrap();
        io.close(peer, "again");
    });
    a.until(|seen| matches!(seen, Seen::Unreachable { .. }));
}
