//! A certificate authority of one's own, in a directory: one per cluster, for certificates of members,
//! clients and admins.
//!
//! The authority can only name owners in its own cluster: that stands in its certificate, and is checked
//! with every certificate that it has signed.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, NameConstraints, SerialNumber,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use time::{Duration, OffsetDateTime};
use webpki::EndEntityCert;

use crate::Name;
use crate::tls::{Credentials, Role, Subject, Unusable};

/// The authority's certificate, in its directory.
pub const CERTIFICATE: &str = "ca.pem";
/// The authority's key, in its directory. Whoever has it can make members.
pub const KEY: &str = "ca.key";

/// How long an authority lasts, in days.
const AUTHORITY_DAYS: i64 = 20 * 365;
/// How long other certificates last unless something else is asked for, in days.
pub const DAYS: u32 = 365;

/// Who may read a file.
#[derive(Clone, Copy)]
enum Readers {
    Owner = 0o600,
    All = 0o644,
}

/// What becomes of the key when a certificate is renewed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rekey {
    /// It stays.
    Keep,
    /// A new one is made.
    New,
}

/// Makes an authority for a cluster.
///
/// # Errors
/// If there is one in that directory, or if it cannot be written.
pub fn init(directory: &Path, cluster: &Name) -> Result<(), Unusable> {
    make(directory)?;
    let key = KeyPair::generate().map_err(wrong)?;
    let mut params = authority(cluster)?;
    lasting(&mut params, AUTHORITY_DAYS);
    let certificate = params.self_signed(&key).map_err(wrong)?;
    // The key first: without it the certificate is of no use.
    write_new(&directory.join(KEY), &key.serialize_pem(), Readers::Owner)?;
    write_new(&directory.join(CERTIFICATE), &certificate.pem(), Readers::All)
}

/// Issues a certificate and a key, as `NAME.pem` and `NAME.key` in the directory `to`, and says where what
/// its owner needs is.
///
/// # Errors
/// If there are such files, or if there is no authority in `directory`.
pub fn issue(
    directory: &Path,
    role: Role,
    name: &Name,
    to: &Path,
    days: u32,
) -> Result<Credentials, Unusable> {
    let signer = Signer::read(directory)?;
    let subject = Subject { role, name: name.clone(), cluster: signer.cluster.clone() };
    make(to)?;
    let credentials = Credentials {
        ca: directory.join(CERTIFICATE),
        certificate: to.join(format!("{name}.pem")),
        key: to.join(format!("{name}.key")),
    };
    let key = KeyPair::generate().map_err(wrong)?;
    let certificate = signer.sign(&subject, &key, days)?;
    write_new(&credentials.key, &key.serialize_pem(), Readers::Owner)?;
    if let Err(error) = write_new(&credentials.certificate, &certificate, Readers::All) {
        // Half of it would keep the next attempt from being made.
        let _ = fs::remove_file(&credentials.key);
        return Err(error);
    }
    Ok(credentials)
}

/// Renews a certificate, for the same owner. A process that uses it takes it up by itself.
///
/// # Errors
/// If it is not of this authority, or if it cannot be written.
pub fn renew(
    directory: &Path,
    certificate: &Path,
    key: &Path,
    rekey: Rekey,
    days: u32,
) -> Result<(), Unusable> {
    let signer = Signer::read(directory)?;
    let old = CertificateDer::from_pem_file(certificate)
        .map_err(|error| Unusable(format!("{}: {error}", certificate.display())))?;
    let subject = Subject::of(&old)?;
    if subject.cluster != signer.cluster {
        let cluster = &signer.cluster;
        return Err(Unusable(format!("{subject} does not belong to cluster {cluster}")));
    }
    let pair = match rekey {
        Rekey::Keep => KeyPair::from_pem(&read(key)?).map_err(wrong)?,
        Rekey::New => KeyPair::generate().map_err(wrong)?,
    };
    let renewed = signer.sign(&subject, &pair, days)?;
    if rekey == Rekey::New {
        replace(key, &pair.serialize_pem(), Readers::Owner)?;
    }
    replace(certificate, &renewed, Readers::All)
}

/// An authority that can sign.
struct Signer {
    cluster: Name,
    key: KeyPair,
}

impl Signer {
    fn read(directory: &Path) -> Result<Self, Unusable> {
        let path = directory.join(CERTIFICATE);
        let certificate = CertificateDer::from_pem_file(&path)
            .map_err(|error| Unusable(format!("{}: {error}", path.display())))?;
        let cluster = cluster_of(&certificate)
            .ok_or_else(|| Unusable(format!("{} is no authority of ours", path.display())))?;
        let key = KeyPair::from_pem(&read(&directory.join(KEY))?).map_err(wrong)?;
        Ok(Self { cluster, key })
    }

    fn sign(&self, subject: &Subject, key: &KeyPair, days: u32) -> Result<String, Unusable> {
        let mut params = CertificateParams::new([subject.to_string()]).map_err(wrong)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, subject.to_string());
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // Only members are dialled.
        params.extended_key_usages = match subject.role {
            Role::Member => {
                vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth]
            }
            Role::Client | Role::Admin => vec![ExtendedKeyUsagePurpose::ClientAuth],
        };
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(SerialNumber::from_slice(&crate::nonce().to_be_bytes()));
        lasting(&mut params, days.into());
        let issuer = Issuer::new(authority(&self.cluster)?, &self.key);
        Ok(params.signed_by(key, &issuer).map_err(wrong)?.pem())
    }
}

/// What an authority's certificate says. What it has signed refers to it by the same words.
fn authority(cluster: &Name) -> Result<CertificateParams, Unusable> {
    let domain = domain(cluster);
    let mut params = CertificateParams::new([domain.clone()]).map_err(wrong)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, format!("authority of {domain}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName(domain)],
        excluded_subtrees: Vec::new(),
    });
    Ok(params)
}

fn domain(cluster: &Name) -> String {
    format!("{cluster}.quorate")
}

/// The cluster of an authority.
fn cluster_of(certificate: &CertificateDer<'_>) -> Option<Name> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let name = certificate.valid_dns_names().next()?;
    name.strip_suffix(".quorate")?.parse().ok()
}

/// Valid from a while ago, for clocks that are behind, and for so many days.
fn lasting(params: &mut CertificateParams, days: i64) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - Duration::HOUR;
    params.not_after = now + Duration::days(days);
}

fn make(directory: &Path) -> Result<(), Unusable> {
    fs::create_dir_all(directory).map_err(|error| at(directory, &error))
}

fn read(path: &Path) -> Result<String, Unusable> {
    fs::read_to_string(path).map_err(|error| at(path, &error))
}

/// Writes a file that is not there yet: all of it or nothing.
fn write_new(path: &Path, text: &str, readers: Readers) -> Result<(), Unusable> {
    let draft = write_draft(path, text, readers)?;
    // Unlike a rename, a link never replaces anything.
    let linked = fs::hard_link(&draft, path);
    let _ = fs::remove_file(&draft);
    linked.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Unusable(format!("{} exists, and is not overwritten", path.display()))
        }
        _ => at(path, &error),
    })
}

/// Writes a file anew: whoever reads it sees the old one or the new one.
fn replace(path: &Path, text: &str, readers: Readers) -> Result<(), Unusable> {
    let draft = write_draft(path, text, readers)?;
    fs::rename(&draft, path).map_err(|error| {
        let _ = fs::remove_file(&draft);
        at(path, &error)
    })
}

fn write_draft(path: &Path, text: &str, readers: Readers) -> Result<PathBuf, Unusable> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{:08x}.tmp", crate::nonce() as u32));
    let draft = PathBuf::from(draft);
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(readers as u32).open(&draft);
    let written =
        file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|error| {
        let _ = fs::remove_file(&draft);
        at(&draft, &error)
    })?;
    Ok(draft)
}

fn at(path: &Path, error: &std::io::Error) -> Unusable {
    Unusable(format!("{}: {error}", path.display()))
}

fn wrong(error: rcgen::Error) -> Unusable {
    Unusable(format!("certificates: {error}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::tls::days_left;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_issued_can_be_used() {
        let place = tempfile::tempdir().unwrap();
        let (ca, members) = (place.path().join("ca"), place.path().join("members"));
        init(&ca, &name("prod")).unwrap();
        for role in [Role::Member, Role::Client, Role::Admin] {
            let credentials = issue(&ca, role, &name(&role.to_string()), &members, 30).unwrap();
            let keys = credentials.load().unwrap();
            assert_eq!(keys.subject.to_string(), format!("{role}.{role}.prod.quorate"));
            assert_eq!(days_left(&credentials.certificate).unwrap(), Some(29));
            let mode = fs::metadata(&credentials.key).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(days_left(&ca.join(CERTIFICATE)).unwrap(), Some(20 * 365 - 1));
        let mode = fs::metadata(ca.join(KEY)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&ca).unwrap().count(), 2, "no drafts are left");
    }

    #[test]
    fn nothing_is_overwritten() {
        let place = tempfile::tempdir().unwrap();
        init(place.path(), &name("prod")).unwrap();
        let key = read(&place.path().join(KEY)).unwrap();
        let error = init(place.path(), &name("prod")).unwrap_err().to_string();
        assert!(error.ends_with("exists, and is not overwritten"), "{error}");
        issue(place.path(), Role::Member, &name("a"), place.path(), DAYS).unwrap();
        assert!(issue(place.path(), Role::Admin, &name("a"), place.path(), DAYS).is_err());
        assert_eq!(read(&place.path().join(KEY)).unwrap(), key);
    }

    #[test]
    fn a_renewed_certificate_is_the_same_owners() {
        let place = tempfile::tempdir().unwrap();
        init(place.path(), &name("prod")).unwrap();
        let old = issue(place.path(), Role::Member, &name("a"), place.path(), 3).unwrap();
        let (certificate, key) = (read(&old.certificate).unwrap(), read(&old.key).unwrap());
        renew(place.path(), &old.certificate, &old.key, Rekey::Keep, 90).unwrap();
        assert_eq!(read(&old.key).unwrap(), key);
        assert_ne!(read(&old.certificate).unwrap(), certificate);
        assert_eq!(days_left(&old.certificate).unwrap(), Some(89));
        renew(place.path(), &old.certificate, &old.key, Rekey::New, 90).unwrap();
        assert_ne!(read(&old.key).unwrap(), key);
        assert_eq!(old.load().unwrap().subject.to_string(), "a.member.prod.quorate");
    }

    #[test]
    fn an_authority_renews_only_its_own() {
        let place = tempfile::tempdir().unwrap();
        let (ours, theirs) = (place.path().join("ours"), place.path().join("theirs"));
        init(&ours, &name("prod")).unwrap();
        init(&theirs, &name("test")).unwrap();
        let issued = issue(&theirs, Role::Member, &name("a"), &theirs, 3).unwrap();
        let error = renew(&ours, &issued.certificate, &issued.key, Rekey::Keep, 3).unwrap_err();
        assert_eq!(error.to_string(), "a.member.test.quorate does not belong to cluster prod");
    }

    #[test]
    fn a_key_that_does_not_fit_is_noticed() {
        let place = tempfile::tempdir().unwrap();
        init(place.path(), &name("prod")).unwrap();
        let a = issue(place.path(), Role::Member, &name("a"), place.path(), 3).unwrap();
        let b = issue(place.path(), Role::Member, &name("b"), place.path(), 3).unwrap();
        assert!(Credentials { key: b.key, ..a }.load().is_err());
    }
}
