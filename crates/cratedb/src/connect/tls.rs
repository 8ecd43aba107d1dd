//! TLS to CrateDB: the trusted authorities and the client's certificate.

use std::sync::Arc;

use rustls::ClientConfig;
use sawmill_pgwire::certificates::{authorities, identity};
use sawmill_source::{Error, Kind, Result};

use crate::connect::address::TlsFiles;

/// Reads the certificates. The server's certificate and name are always checked.
pub(crate) fn configure(files: &TlsFiles) -> Result<Arc<ClientConfig>> {
    let advice = "name the file of the server's authority with ca=FILE";
    let roots = authorities(files.authorities.as_deref(), advice)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let failed = |what: String| Error::new(Kind::Config, what);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(format!("cannot set up TLS: {error}")))?
        .with_root_certificates(roots);
    let config = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => {
            let (chain, secret) = identity(certificate, key)?;
            builder.with_client_auth_cert(chain, secret).map_err(|error| {
                failed(format!("cannot use the client's certificate: {error}")).at(key.display().to_string())
            })?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}
