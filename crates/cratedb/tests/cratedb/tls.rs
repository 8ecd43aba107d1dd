//! TLS: whom the loader trusts, and how it says who it is, over HTTP and over the PostgreSQL wire.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use sawmill_cratedb::{CrateDb, Transport};
use sawmill_cratedb_standin::StandIn;
use sawmill_loader::{LoadOptions, LoadReport};
use sawmill_source::Error;

use crate::cluster::{keyed, people, run, small};

/// Certificates of an authority for a server and a client, in files; and what the server needs, which asks
/// its clients for theirs.
fn certificates(directory: &Path) -> Arc<ServerConfig> {
    let at = |name: &str| directory.join(name);
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
    Arc::new(config)
}

/// `ca`, `cert` and `key` of an address.
fn options(directory: &Path) -> [String; 2] {
    let shown = |name: &str| directory.join(name).display().to_string();
    [format!("ca={}", shown("ca.pem")), format!("cert={}&key={}", shown("client.pem"), shown("client.key"))]
}

fn load(url: &str, transport: Transport) -> Result<LoadReport, Error> {
    let (_kept, source) = people(2_000);
    let target = CrateDb::new(url.parse().unwrap(), "t".parse().unwrap()).options(keyed(transport));
    run(&source, &target, &LoadOptions { verify: true, retries: 0, ..small() })
}

#[test]
fn a_server_is_trusted_by_its_authority_and_asks_for_a_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let config = certificates(directory.path());
    let [ca, cert] = options(directory.path());
    for transport in [Transport::Http, Transport::Pg, Transport::Auto] {
        let standin = StandIn::start_tls(Arc::clone(&config));
        let address = format!("crates://127.0.0.1:{}/doc?pg_port={}", standin.port(0), standin.pg_port());
        // Neither an unknown authority nor an unknown client passes.
        load(&address, transport).unwrap_err();
        load(&format!("{address}&{ca}"), transport).unwrap_err();
        let missing = directory.path().join("nothing.pem").display().to_string();
        let error = load(&format!("{address}&ca={missing}"), transport).unwrap_err();
        assert!(error.place().contains("nothing.pem"), "{error}");
        assert_eq!(load(&format!("{address}&{ca}&{cert}"), transport).unwrap().rows, 2_000);
        assert_eq!(standin.unnests() > 0, transport != Transport::Http);
    }
}

#[test]
fn what_is_to_be_encrypted_never_goes_over_a_postgresql_wire_in_the_clear() {
    let directory = tempfile::tempdir().unwrap();
    let encrypted = StandIn::start_tls(certificates(directory.path()));
    let plain = StandIn::start(1);
    let [ca, cert] = options(directory.path());
    let address = |pg: &StandIn| {
        format!("crate://localhost:{}?ssl=true&pg_port={}&{ca}&{cert}", encrypted.port(0), pg.pg_port())
    };
    let error = load(&address(&plain), Transport::Pg).unwrap_err();
    assert!(error.what().contains("TLS"), "{error}");
    // Without the wire it goes over HTTP.
    assert_eq!(load(&address(&plain), Transport::Auto).unwrap().rows, 2_000);
    assert_eq!((plain.unnests(), encrypted.unnests()), (0, 0));
}
