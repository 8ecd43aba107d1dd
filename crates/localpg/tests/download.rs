//! Downloads PostgreSQL from Maven Central: 10 MB over the network, so only on request.
#![cfg(feature = "download")]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use sawmill_localpg::{DownloadProgress, LocalPg, Search};

#[test]
fn postgresql_is_downloaded_once_and_runs() {
    if std::env::var_os("SAWMILL_TEST_DOWNLOAD").is_none_or(|value| value != "1") {
        println!("skipped: set SAWMILL_TEST_DOWNLOAD=1 to download PostgreSQL from Maven Central");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let search = Search { caches: vec![place.path().join("cache")], ..Search::default() };
    assert_eq!(search.find().unwrap(), None);

    let mut steps = Vec::new();
    let binaries = search.find_or_download(&mut |step| steps.push(step)).unwrap();
    assert!(matches!(
        &steps[..],
        [
            DownloadProgress::Resolving,
            DownloadProgress::Downloading { .. },
            DownloadProgress::Extracting { bytes: 1_000_000.., .. },
            DownloadProgress::Done { .. }
        ]
    ));
    let again = search.find_or_download(&mut |step| panic!("already installed, yet {step:?}")).unwrap();
    assert_eq!(again, binaries);

    let server = LocalPg::builder().binaries(binaries.clone()).start().unwrap();
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    let version: String = client.query_one("show server_version", &[]).unwrap().get(0);
    assert_eq!(version, binaries.version());
    server.stop().unwrap();
}
