//! Certificates as a process uses them: read from files, read again when these change.

mod validity;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme,
};

pub use crate::subject::{Role, Subject};
pub use validity::{days_left, ends, expires};

/// Where the certificates of a process are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// The certificates of those who are believed, in PEM.
    pub ca: PathBuf,
    /// The certificate of this process, in PEM, with those that lead to one of these, if there are any.
    pub certificate: PathBuf,
    /// Its key, in PEM.
    pub key: PathBuf,
}

/// Certificates that cannot be used, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unusable(pub(crate) String);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

/// Certificates that were read and fit together.
#[derive(Clone, Debug)]
pub struct Keys {
    /// For those who are dialled. It asks for a certificate of the other side.
    pub server: Arc<ServerConfig>,
    /// For those who dial. It believes every certificate of the cluster's authority: whose it is has to be
    /// compared afterwards, by [`Subject::of`].
    pub client: Arc<ClientConfig>,
    /// The owner of the certificate.
    pub subject: Subject,
    /// When the certificate ends.
    pub expires: SystemTime,
}

impl Credentials {
    /// Reads the files.
    ///
    /// # Errors
    /// If a file cannot be read, makes no sense, or does not go with the others.
    pub fn load(&self) -> Result<Keys, Unusable> {
        let mut roots = RootCertStore::empty();
        for root in certificates(&self.ca)? {
            roots.add(root).map_err(|error| unusable(&self.ca, &error))?;
        }
        let chain = certificates(&self.certificate)?;
        let Some(own) = chain.first() else {
            return Err(unusable(&self.certificate, &"there is no certificate in it"));
        };
        let subject = Subject::of(own)?;
        let expires = expires(own)?;
        let key =
            || PrivateKeyDer::from_pem_file(&self.key).map_err(|error| unusable(&self.key, &error));
        let (provider, roots) = (Arc::new(ring::default_provider()), Arc::new(roots));
        let wrong = |error: &dyn fmt::Display| unusable(&self.certificate, error);
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
                .build()
                .map_err(|error| unusable(&self.ca, &error))?;
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| wrong(&error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key()?)
            .map_err(|error| wrong(&error))?;
        // Connections last; what would make the next handshake shorter is one more thing to keep.
        server.send_tls13_tickets = 0;
        let issued = Arc::new(Issued { roots, provider: Arc::clone(&provider) });
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| wrong(&error))?
            .dangerous()
            .with_custom_certificate_verifier(issued)
            .with_client_auth_cert(chain, key()?)
            .map_err(|error| wrong(&error))?;
        client.enable_sni = false;
        client.resumption = Resumption::disabled();
        Ok(Keys { server: Arc::new(server), client: Arc::new(client), subject, expires })
    }

    /// What tells whether the files have changed.
    pub(crate) fn marks(&self) -> Vec<Option<(SystemTime, u64)>> {
        let mark = |path: &PathBuf| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.modified().ok()?, file.len()))
        };
        [&self.ca, &self.certificate, &self.key].map(mark).to_vec()
    }
}

/// The certificates in a file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &dyn fmt::Display) -> Unusable {
    Unusable(format!("{}: {error}", path.display()))
}

/// Believes whom the cluster's authority has given a certificate, whatever its name.
#[derive(Debug)]
struct Issued {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Issued {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.roots,
            intermediates,
            now,
            algorithms,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
