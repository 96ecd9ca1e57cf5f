//! What a certificate says of its owner: a role, a name and a cluster, in one domain name.

use std::fmt;
use std::str::FromStr;

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use crate::Name;
use crate::tls::Unusable;

/// What every domain name of ours ends with.
const SUFFIX: &str = "quorate";

/// What a certificate is good for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// To be a member of the cluster.
    Member,
    /// To use the cluster through an agent.
    Client,
    /// To administer it.
    Admin,
}

/// The owner of a certificate. As a domain name: `NAME.ROLE.CLUSTER.quorate`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Subject {
    /// What the certificate is good for.
    pub role: Role,
    /// The owner's name.
    pub name: Name,
    /// The cluster's name.
    pub cluster: Name,
}

impl Subject {
    /// The owner of a certificate. It must name exactly one.
    ///
    /// # Errors
    /// If it is not a certificate of ours.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, Unusable> {
        let certificate = EndEntityCert::try_from(certificate)
            .map_err(|error| Unusable(format!("the certificate cannot be read: {error}")))?;
        let mut subjects = certificate.valid_dns_names().filter_map(|name| name.parse().ok());
        match (subjects.next(), subjects.next()) {
            (Some(subject), None) => Ok(subject),
            (None, _) => Err(Unusable("the certificate is for no member, client or admin".into())),
            (Some(_), Some(_)) => Err(Unusable("the certificate is for several".into())),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}.{SUFFIX}", self.name, self.role, self.cluster)
    }
}

impl FromStr for Subject {
    type Err = Unusable;

    fn from_str(text: &str) -> Result<Self, Unusable> {
        let wrong = || Unusable(format!("`{text}` is not NAME.ROLE.CLUSTER.{SUFFIX}"));
        let parts: Vec<&str> = text.split('.').collect();
        let [name, role, cluster, SUFFIX] = parts[..] else { return Err(wrong()) };
        let role = role.parse().map_err(|_| wrong())?;
        let name = name.parse().map_err(|_| wrong())?;
        let cluster = cluster.parse().map_err(|_| wrong())?;
        Ok(Self { role, name, cluster })
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Member => "member",
            Self::Client => "client",
            Self::Admin => "admin",
        })
    }
}

impl FromStr for Role {
    type Err = Unusable;

    fn from_str(text: &str) -> Result<Self, Unusable> {
        match text {
            "member" => Ok(Self::Member),
            "client" => Ok(Self::Client),
            "admin" => Ok(Self::Admin),
            _ => Err(Unusable(format!("`{text}` is not a role: member, client or admin"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_a_domain_name() {
        let subject: Subject = "q-0.member.prod.quorate".parse().unwrap();
        assert_eq!(subject.role, Role::Member);
        assert_eq!(subject.to_string(), "q-0.member.prod.quorate");
        for bad in ["", "a.member.prod", "a.chief.prod.quorate", "*.member.prod.quorate", "a.b.c.d"]
        {
            assert!(bad.parse::<Subject>().is_err(), "{bad}");
        }
    }
}
