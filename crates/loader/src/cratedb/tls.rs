//! What a TLS connection needs: whom to trust, and who we are.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::address::TlsFiles;
use crate::error::{Error, Kind, Result};

/// Reads the certificates. The server's certificate and name are always checked.
pub(crate) fn configure(files: &TlsFiles) -> Result<Arc<ClientConfig>> {
    let failed = |what: String| Error::new(Kind::Config, what);
    let mut roots = RootCertStore::empty();
    match &files.authorities {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| {
                    failed(format!("no certificate of an authority: {error}")).at(path.display().to_string())
                })?;
            }
        }
        None => {
            // Single certificates of the system's that cannot be read do not matter as long as there are others.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(failed("no certificates of authorities were found".to_owned())
            .advise("name the file of the server's authority with ca=FILE"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(format!("TLS cannot be set up: {error}")))?
        .with_root_certificates(roots);
    let config = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates(certificate)?;
            let place = key.display().to_string();
            let secret = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| failed(format!("the client's key cannot be read: {error}")).at(&place))?;
            builder.with_client_auth_cert(chain, secret).map_err(|error| {
                failed(format!("the client's certificate cannot be used: {error}")).at(place)
            })?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let failed = |what: String| {
        Error::new(Kind::Config, what)
            .at(path.display().to_string())
            .advise("give a file of certificates in PEM")
    };
    let read = |error| failed(format!("the certificates cannot be read: {error}"));
    let found: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(read)?.collect::<Result<_, _>>().map_err(read)?;
    match found.is_empty() {
        true => Err(failed("there is no certificate in the file".to_owned())),
        false => Ok(found),
    }
}
