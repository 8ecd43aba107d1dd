//! Whether connections are encrypted, and what the server's certificate is held against: `sslmode` and its
//! companions, as libpq has them
//! (<https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION>).
//!
//! The parameters are taken out of the address before the rest of it is parsed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, SignatureScheme};
use tokio_postgres::config::SslMode;

use super::parameters;
use crate::certificates::{authorities, identity};
use crate::error::{Error, Kind, Result};

/// The parameters of an address that are about encryption, with the variables that stand in for them.
const PARAMETERS: [(&str, &str); 4] = [
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
];

/// How the server's certificate is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    Nothing,
    Authority,
    AuthorityAndName,
}

/// The address without these parameters, whether TLS is asked for, and with what.
///
/// # Errors
/// An unknown mode, certificates that cannot be read.
pub(crate) fn of_address(
    address: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(String, SslMode, Option<Arc<ClientConfig>>)> {
    let names = PARAMETERS.map(|(name, _)| name);
    let (rest, mut given) = parameters::take(address, &names);
    for (name, stand_in) in PARAMETERS {
        if let (false, Some(value)) = (given.contains_key(name), variable(stand_in)) {
            given.insert(name.to_owned(), value);
        }
    }
    let (mode, check) = match given.get("sslmode").map_or("prefer", String::as_str) {
        "disable" => return Ok((rest, SslMode::Disable, None)),
        // libpq's `allow` begins without encryption; here the better way is tried first.
        "allow" | "prefer" => (SslMode::Prefer, Check::Nothing),
        "require" => (SslMode::Require, Check::Nothing),
        "verify-ca" => (SslMode::Require, Check::Authority),
        "verify-full" => (SslMode::Require, Check::AuthorityAndName),
        other => {
            return Err(Error::new(Kind::Config, format!("sslmode={other} is none"))
                .advise("give disable, allow, prefer, require, verify-ca or verify-full"));
        }
    };
    let files = Files::new(&given, variable);
    let check = match (mode, check, &files.authorities) {
        // "If a root CA file exists, the behavior of sslmode=require will be the same as that of verify-ca."
        (SslMode::Require, Check::Nothing, Some(_)) => Check::Authority,
        (_, check, _) => check,
    };
    Ok((rest, mode, Some(configure(&files, check)?)))
}

/// Where certificates are.
struct Files {
    authorities: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
}

impl Files {
    /// Those that are named, else those in `~/.postgresql` that are there.
    fn new(given: &BTreeMap<String, String>, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let folder = variable("HOME").map(|home| PathBuf::from(home).join(".postgresql"));
        let usual = |name: &str| folder.as_ref().map(|folder| folder.join(name)).filter(|path| path.exists());
        let named = |name: &str| given.get(name).map(PathBuf::from);
        let authorities = match given.get("sslrootcert").map(String::as_str) {
            Some("system") => None,
            Some(path) => Some(path.into()),
            None => usual("root.crt"),
        };
        let identity = match (named("sslcert"), named("sslkey")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            // The key may stand in the certificate's file.
            (Some(certificate), None) => {
                Some((certificate.clone(), usual("postgresql.key").unwrap_or(certificate)))
            }
            (None, key) => usual("postgresql.crt").zip(key.or_else(|| usual("postgresql.key"))),
        };
        Self { authorities, identity }
    }
}

fn configure(files: &Files, check: Check) -> Result<Arc<ClientConfig>> {
    let failed = |what: String| Error::new(Kind::Config, what);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(format!("TLS cannot be set up: {error}")))?;
    let advice = "name the file of the server's authority with sslrootcert=FILE";
    let builder = match check {
        Check::AuthorityAndName => {
            builder.with_root_certificates(authorities(files.authorities.as_deref(), advice)?)
        }
        Check::Authority | Check::Nothing => {
            let verifier = match check {
                Check::Nothing => None,
                _ => {
                    let roots = Arc::new(authorities(files.authorities.as_deref(), advice)?);
                    let built =
                        WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
                    Some(built.map_err(|error| failed(format!("authorities cannot be used: {error}")))?)
                }
            };
            let without_name = WithoutName::new(verifier, &provider);
            builder.dangerous().with_custom_certificate_verifier(Arc::new(without_name))
        }
    };
    Ok(Arc::new(match &files.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let (chain, secret) = identity(certificate, key)?;
            builder.with_client_auth_cert(chain, secret).map_err(|error| {
                failed(format!("the client's certificate cannot be used: {error}"))
                    .at(key.display().to_string())
            })?
        }
    }))
}

/// Accepts certificates for any name: of known authorities, or of anybody. That the server has the key of
/// its certificate is always checked.
#[derive(Debug)]
struct WithoutName {
    authority: Option<Arc<WebPkiServerVerifier>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl WithoutName {
    fn new(authority: Option<Arc<WebPkiServerVerifier>>, provider: &CryptoProvider) -> Self {
        Self { authority, algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for WithoutName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The name is looked at last, of a certificate that is good.
            Err(TlsError::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                Ok(ServerCertVerified::assertion())
            }
            found => found,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(address: &str, environment: &[(&str, &str)]) -> Result<(String, SslMode, bool)> {
        let variable = |name: &str| {
            let found = environment.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        of_address(address, &variable).map(|(rest, mode, tls)| (rest, mode, tls.is_some()))
    }

    #[test]
    fn the_mode_of_the_address_goes_before_that_of_the_environment() {
        let environment = [("PGSSLMODE", "require")];
        assert_eq!(parse("postgres://h/d", &[]).unwrap(), ("postgres://h/d".into(), SslMode::Prefer, true));
        assert_eq!(parse("postgres://h/d", &environment).unwrap().1, SslMode::Require);
        let (rest, mode, tls) =
            parse("postgres://h/d?sslmode=disable&connect_timeout=3", &environment).unwrap();
        assert_eq!((rest.as_str(), mode, tls), ("postgres://h/d?connect_timeout=3", SslMode::Disable, false));
    }

    #[test]
    fn what_is_no_mode_and_files_that_are_not_there_are_refused() {
        let error = parse("host=h sslmode=always", &[]).unwrap_err();
        assert!(error.to_string().contains("verify-full"), "{error}");
        let error = parse("host=h sslmode=verify-ca sslrootcert=/no/such.crt", &[]).unwrap_err();
        assert!(error.place().contains("/no/such.crt"), "{error}");
        let error =
            parse("host=h sslmode=require sslcert=/no/client.crt sslkey=/no/client.key", &[]).unwrap_err();
        assert!(error.place().contains("/no/client.crt"), "{error}");
    }
}
