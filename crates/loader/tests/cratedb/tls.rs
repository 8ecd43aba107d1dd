//! TLS: whom the loader trusts, and how it says who it is.

use std::fs;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use sawmill_cratedb_standin::StandIn;
use sawmill_loader::{CrateDb, LoadOptions, Transport};

use crate::cluster::{keyed, people, run, small};

#[test]
fn a_server_is_trusted_by_its_authority_and_asks_for_a_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
    fs::write(at("ca.pem"), authority.pem()).unwrap();
    for name in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let parameters =
            CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        let certificate = parameters.signed_by(&key, &authority).unwrap();
        fs::write(at(&format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(at(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(at("ca.pem")).unwrap()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![CertificateDer::from_pem_file(at("server.pem")).unwrap()],
            PrivateKeyDer::from_pem_file(at("server.key")).unwrap(),
        )
        .unwrap();
    let standin = StandIn::start_tls(Arc::new(config));
    let (_kept, source) = people(2_000);
    let load = |options: &str| {
        let url = format!("crates://127.0.0.1:{}/doc{options}", standin.port(0));
        let target = CrateDb::new(url.parse().unwrap(), "t".parse().unwrap()).options(keyed(Transport::Auto));
        run(&source, &target, &LoadOptions { verify: true, retries: 0, ..small() })
    };
    let shown = |name: &str| at(name).display().to_string();
    // Neither an unknown authority nor an unknown client passes.
    load("").unwrap_err();
    load(&format!("?ca={}", shown("ca.pem"))).unwrap_err();
    let error = load(&format!("?ca={}", shown("nothing.pem"))).unwrap_err();
    assert!(error.place().contains("nothing.pem"), "{error}");
    let all = format!("?ca={}&cert={}&key={}", shown("ca.pem"), shown("client.pem"), shown("client.key"));
    assert_eq!(load(&all).unwrap().rows, 2_000);
}
