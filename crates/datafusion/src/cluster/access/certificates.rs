//! The certificate of a process, its key and the CA of a cluster, checked before the first connection.
//!
//! Otherwise, a bad certificate shows up as a failed handshake, often on the other side and without a file name.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use datafusion::error::{DataFusionError, Result};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, InconsistentKeys, RootCertStore};
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

use crate::cluster::access::bare;
use crate::error::refused;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(20);

/// The role of a process in a connection.
pub(crate) enum Role<'a> {
    Client,
    /// One that others reach by this host.
    Server(&'a str),
}

/// A certificate, its key and the CA of a cluster.
pub(crate) struct Certificates {
    identity: Identity,
    authority: Certificate,
    chain: Vec<CertificateDer<'static>>,
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
    place: String,
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read or has something else; the key is of another certificate; the CA has expired.
    pub(crate) fn read(certificate: &Path, key: &Path, authority: &Path) -> Result<Self> {
        let (certificate_pem, chain) = certificates(certificate, "--tls-cert")?;
        let (authority_pem, authorities) = certificates(authority, "--tls-ca")?;
        let key_pem = content(key, "--tls-key")?;
        let (place, key_place) = (certificate.display().to_string(), key.display().to_string());
        let private = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|error| {
            let advice = "give --tls-key a file in PEM, with the private key and without a passphrase";
            refused(format!("no private key: {error}"), &key_place, advice)
        })?;
        let provider = Arc::new(ring::default_provider());
        CertifiedKey::from_der(chain.clone(), private, &provider).map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                let what = format!("the key is not that of the certificate {place}");
                refused(what, &key_place, "give --tls-cert and --tls-key files that were made together")
            }
            Error::InvalidCertificate(error) => {
                let advice = "give --tls-cert one of X.509 version 3, with a subjectAltName";
                refused(format!("the certificate cannot be used: {error}"), &place, advice)
            }
            error => {
                refused(format!("the key cannot be used: {error}"), &key_place, "give --tls-key another")
            }
        })?;
        let mut roots = RootCertStore::empty();
        for certificate in &authorities {
            roots.add(certificate.clone()).map_err(|error| {
                let place = authority.display().to_string();
                refused(
                    format!("the CA cannot be used: {error}"),
                    &place,
                    "give --tls-ca the certificate of the CA",
                )
            })?;
        }
        let certificates = Self {
            identity: Identity::from_pem(certificate_pem, key_pem),
            authority: Certificate::from_pem(authority_pem),
            chain,
            roots: Arc::new(roots),
            provider,
            place,
        };
        for certificate in &authorities {
            certificates.check_validity(certificate, &authority.display().to_string())?;
        }
        Ok(certificates)
    }

    /// Checks that the others of the cluster will accept the certificate now.
    ///
    /// # Errors
    /// It has expired, is not one of the CA, or not one for this role or host.
    pub(crate) fn check(&self, role: Role<'_>) -> Result<()> {
        let Some((certificate, intermediates)) = self.chain.split_first() else { return Ok(()) };
        let checked = match role {
            Role::Client => self.verified_client(certificate, intermediates),
            Role::Server(host) => self.verified_server(certificate, intermediates, host),
        };
        checked.map_err(|error| self.refused(error, role))
    }

    fn verified_client(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
    ) -> Result<(), Error> {
        let (roots, provider) = (Arc::clone(&self.roots), Arc::clone(&self.provider));
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
        let verifier = verifier.map_err(|error| Error::General(error.to_string()))?;
        verifier.verify_client_cert(certificate, intermediates, UnixTime::now()).map(drop)
    }

    fn verified_server(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &str,
    ) -> Result<(), Error> {
        let (roots, provider) = (Arc::clone(&self.roots), Arc::clone(&self.provider));
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        let verifier = verifier.map_err(|error| Error::General(error.to_string()))?;
        let name = ServerName::try_from(bare(host)).map_err(|error| Error::General(error.to_string()))?;
        verifier.verify_server_cert(certificate, intermediates, &name, &[], UnixTime::now()).map(drop)
    }

    /// Refuses a CA that is not valid now. Chains are checked without the dates of their CA, so that this takes it for a
    /// client's certificate, whose dates are checked first.
    fn check_validity(&self, authority: &CertificateDer<'_>, place: &str) -> Result<()> {
        match self.verified_client(authority, &[]) {
            Err(Error::InvalidCertificate(error)) if dates(&error).is_some() => {
                let what = format!("the CA {}", dates(&error).unwrap_or_default());
                Err(refused(what, place, "give --tls-ca a certificate that is valid today, or set the clock"))
            }
            _ => Ok(()),
        }
    }

    fn refused(&self, error: Error, role: Role<'_>) -> DataFusionError {
        let Error::InvalidCertificate(error) = error else {
            return refused(
                format!("the certificate cannot be used: {error}"),
                &self.place,
                "give --tls-cert another",
            );
        };
        let (what, advice) = match (&error, role) {
            (error, _) if dates(error).is_some() => {
                let what = format!("the certificate {}", dates(error).unwrap_or_default());
                (what, "give --tls-cert one that is valid today, or set the clock".to_owned())
            }
            (CertificateError::UnknownIssuer | CertificateError::BadSignature, _) => (
                "the certificate is not one of the CA of --tls-ca".to_owned(),
                "give the certificate of the CA that has signed it, or another --tls-cert".to_owned(),
            ),
            (
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                Role::Server(host),
            ) => (
                format!("the certificate does not name the host {host}"),
                format!("give --host a name of the certificate, or make one whose subjectAltName has {host}"),
            ),
            (error, Role::Client) => (
                format!("the certificate cannot be used by a client: {error}"),
                "make one whose extended key usage has clientAuth".to_owned(),
            ),
            (error, Role::Server(_)) => (
                format!("the certificate cannot be used by a server: {error}"),
                "make one whose extended key usage has serverAuth and clientAuth".to_owned(),
            ),
        };
        refused(what, &self.place, &advice)
    }

    /// TLS of a server, whose clients have to show a certificate of the CA.
    pub(crate) fn server(&self) -> ServerTlsConfig {
        let tls = ServerTlsConfig::new().identity(self.identity.clone());
        tls.client_ca_root(self.authority.clone()).timeout(HANDSHAKE)
    }

    /// TLS of a client, which shows its certificate and trusts the CA alone.
    pub(crate) fn client(&self) -> ClientTlsConfig {
        let tls = ClientTlsConfig::new().identity(self.identity.clone());
        tls.ca_certificate(self.authority.clone()).timeout(HANDSHAKE)
    }
}

/// The fault in the dates of a certificate; `None` for other errors.
pub(crate) fn dates(error: &CertificateError) -> Option<&'static str> {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Some("has expired"),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            Some("is not valid yet")
        }
        _ => None,
    }
}

/// The certificates of a file, one at least, with its content.
fn certificates(file: &Path, option: &str) -> Result<(Vec<u8>, Vec<CertificateDer<'static>>)> {
    let pem = content(file, option)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let reason = match found {
        Ok(found) if !found.is_empty() => return Ok((pem, found)),
        Ok(_) => "no certificate".to_owned(),
        Err(error) => format!("the certificate cannot be read: {error}"),
    };
    Err(refused(reason, &file.display().to_string(), &format!("give {option} a file in PEM")))
}

fn content(file: &Path, option: &str) -> Result<Vec<u8>> {
    sawmill_store::read_small(file).map_err(|error| {
        let advice = format!("give {option} a file that this process can read");
        refused(format!("the file cannot be read: {error}"), &file.display().to_string(), &advice)
    })
}
