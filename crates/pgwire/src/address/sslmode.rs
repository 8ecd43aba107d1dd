//! Whether connections are encrypted, and how the server's certificate is checked: `sslmode` and its
//! companions, as in libpq
//! (<https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION>).

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, SignatureScheme,
    SupportedProtocolVersion,
};
use sawmill_profile::{Error, Kind, Result};
use tokio_postgres::config::SslMode;

use crate::address::parameters::{Parameters, Variable, refused};
use crate::socket::certificates::{authorities, identity};

/// How the server's certificate is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    Nothing,
    Authority,
    AuthorityAndName,
}

/// The TLS mode and its configuration.
///
/// # Errors
/// An unknown mode, certificates that cannot be read.
pub(crate) fn configured(
    given: &Parameters,
    variable: Variable<'_>,
) -> Result<(SslMode, Option<Arc<ClientConfig>>)> {
    let system = given.get("sslrootcert") == Some("system");
    let (mode, check) = match given.get("sslmode").unwrap_or(if system { "verify-full" } else { "prefer" }) {
        // Anyone can get a certificate from a public authority: without the name it proves nothing.
        weak if system && weak != "verify-full" => {
            let what = format!("sslrootcert=system with sslmode={weak}");
            return Err(refused(what).advise("the system's authorities are for sslmode=verify-full"));
        }
        "disable" => return Ok((SslMode::Disable, None)),
        // libpq's `allow` tries without encryption first; here encryption comes first.
        "allow" | "prefer" => (SslMode::Prefer, Check::Nothing),
        "require" => (SslMode::Require, Check::Nothing),
        "verify-ca" => (SslMode::Require, Check::Authority),
        "verify-full" => (SslMode::Require, Check::AuthorityAndName),
        other => {
            return Err(Error::new(Kind::Config, format!("sslmode={other} is unknown"))
                .advise("give disable, allow, prefer, require, verify-ca or verify-full"));
        }
    };
    let files = Files::new(given, variable);
    let versions = versions(given)?;
    let check = match (mode, check, &files.authorities) {
        // "If a root CA file exists, the behavior of sslmode=require will be the same as that of verify-ca."
        (SslMode::Require, Check::Nothing, Some(_)) => Check::Authority,
        (_, check, _) => check,
    };
    Ok((mode, Some(configure(&files, check, &versions)?)))
}

/// The allowed versions of TLS, never older than 1.2.
fn versions(given: &Parameters) -> Result<Vec<&'static SupportedProtocolVersion>> {
    let number = |name: &str, default: usize| {
        let Some(version) = given.get(name) else { return Ok(default) };
        let known = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
        known.iter().position(|known| known.eq_ignore_ascii_case(version)).ok_or_else(|| {
            refused(format!("{name}={version} is not a version of TLS")).advise("give TLSv1.2 or TLSv1.3")
        })
    };
    let allowed = number("ssl_min_protocol_version", 2)?..=number("ssl_max_protocol_version", 3)?;
    let spoken = [(2, &TLS12), (3, &TLS13)].into_iter().filter(|(number, _)| allowed.contains(number));
    let spoken: Vec<_> = spoken.map(|(_, version)| version).collect();
    match spoken.is_empty() {
        true => Err(refused(
            "no version of TLS lies between ssl_min_protocol_version and ssl_max_protocol_version",
        )),
        false => Ok(spoken),
    }
}

/// Where certificates are.
struct Files {
    authorities: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
}

impl Files {
    /// The named files, or the existing ones in `~/.postgresql`.
    fn new(given: &Parameters, variable: Variable<'_>) -> Self {
        let folder = variable("HOME").map(|home| PathBuf::from(home).join(".postgresql"));
        let usual = |name: &str| folder.as_ref().map(|folder| folder.join(name)).filter(|path| path.exists());
        let named = |name: &str| given.get(name).map(PathBuf::from);
        let authorities = match given.get("sslrootcert") {
            Some("system") => None,
            Some(path) => Some(path.into()),
            None => usual("root.crt"),
        };
        let identity = match (named("sslcert"), named("sslkey")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            // The certificate's file may contain the key.
            (Some(certificate), None) => {
                Some((certificate.clone(), usual("postgresql.key").unwrap_or(certificate)))
            }
            (None, key) => usual("postgresql.crt").zip(key.or_else(|| usual("postgresql.key"))),
        };
        Self { authorities, identity }
    }
}

fn configure(
    files: &Files,
    check: Check,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<Arc<ClientConfig>> {
    let failed = |what: String| Error::new(Kind::Config, what);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| failed(format!("cannot set up TLS: {error}")))?;
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
                    Some(built.map_err(|error| failed(format!("cannot use the authorities: {error}")))?)
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
                failed(format!("cannot use the client's certificate: {error}")).at(key.display().to_string())
            })?
        }
    }))
}

/// Accepts certificates for any name: from known authorities, or from anyone. Always checks that the server has its
/// certificate's key.
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
            // The verifier checks the name last: the rest of the certificate is good.
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

    fn parse(address: &str, environment: &[(&str, &str)]) -> Result<(SslMode, bool)> {
        let variable = |name: &str| {
            let found = environment.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        configured(&Parameters::new(address, &variable)?, &variable).map(|(mode, tls)| (mode, tls.is_some()))
    }

    #[test]
    fn the_mode_of_the_address_goes_before_that_of_the_environment() {
        let environment = [("PGSSLMODE", "require")];
        assert_eq!(parse("postgres://h/d", &[]).unwrap(), (SslMode::Prefer, true));
        assert_eq!(parse("postgres://h/d", &environment).unwrap().0, SslMode::Require);
        assert_eq!(
            parse("postgres://h/d?sslmode=disable&connect_timeout=3", &environment).unwrap(),
            (SslMode::Disable, false)
        );
    }

    #[test]
    fn the_systems_authorities_ask_for_the_name_too() {
        assert_eq!(parse("host=h sslrootcert=system", &[]).unwrap(), (SslMode::Require, true));
        assert!(parse("host=h sslrootcert=system sslmode=verify-full", &[]).is_ok());
        let error = parse("host=h sslrootcert=system sslmode=require", &[]).unwrap_err();
        assert!(error.advice().contains("verify-full"), "{error}");
    }

    #[test]
    fn versions_of_tls_can_be_bounded() {
        let spoken = |address: &str| {
            let parameters = Parameters::new(address, &|_| None).unwrap();
            versions(&parameters).map(|versions| versions.len()).map_err(|error| error.what())
        };
        assert_eq!((spoken("host=h"), spoken("ssl_min_protocol_version=TLSv1")), (Ok(2), Ok(2)));
        assert_eq!(spoken("ssl_min_protocol_version=TLSv1.3"), Ok(1));
        assert_eq!(spoken("ssl_max_protocol_version=TLSv1.2"), Ok(1));
        assert!(spoken("ssl_max_protocol_version=TLSv1.1").unwrap_err().contains("no version"));
        assert!(spoken("ssl_min_protocol_version=3").unwrap_err().contains("=3 is not a version"));
    }

    #[test]
    fn unknown_modes_and_missing_files_are_refused() {
        let error = parse("host=h sslmode=always", &[]).unwrap_err();
        assert!(error.to_string().contains("verify-full"), "{error}");
        let error = parse("host=h sslmode=verify-ca sslrootcert=/no/such.crt", &[]).unwrap_err();
        assert!(error.place().contains("/no/such.crt"), "{error}");
        let error =
            parse("host=h sslmode=require sslcert=/no/client.crt sslkey=/no/client.key", &[]).unwrap_err();
        assert!(error.place().contains("/no/client.crt"), "{error}");
    }
}
