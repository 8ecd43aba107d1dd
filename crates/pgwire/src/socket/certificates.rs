//! Certificates from files: the trusted authorities and the client's identity.

use std::fmt::Display;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sawmill_profile::{Error, Kind, Result, read_small};

/// The authorities in a file, or the system's if `file` is `None`. `advice` says how to name a file.
pub fn authorities(file: Option<&Path>, advice: &str) -> Result<RootCertStore> {
    let failed = |what: String| Error::new(Kind::Config, what);
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            for certificate in read(path)? {
                roots.add(certificate).map_err(|error| {
                    failed(format!("not a certificate of an authority: {error}"))
                        .at(path.display().to_string())
                })?;
            }
        }
        None => {
            // Single certificates of the system's that cannot be read do not matter as long as there are
            // others.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    match roots.is_empty() {
        true => Err(failed("no certificates of authorities were found".to_owned()).advise(advice)),
        false => Ok(roots),
    }
}

/// A client's certificates and its key.
pub fn identity(
    certificate: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let chain = read(certificate)?;
    let failed = |error: &dyn Display| {
        Error::new(Kind::Config, format!("cannot read the client's key: {error}"))
            .at(key.display().to_string())
            .advise("give a file of one private key in PEM")
    };
    let bytes = read_small(key).map_err(|error| failed(&error))?;
    Ok((chain, PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| failed(&error))?))
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let failed = |what: String| {
        Error::new(Kind::Config, what)
            .at(path.display().to_string())
            .advise("give a file of certificates in PEM")
    };
    let unreadable = |error: &dyn Display| failed(format!("cannot read the certificates: {error}"));
    let bytes = read_small(path).map_err(|error| unreadable(&error))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| unreadable(&error))?;
    if found.is_empty() { Err(failed("there is no certificate in the file".to_owned())) } else { Ok(found) }
}
