//! Addresses that lead to another kind of server than they say.

use std::sync::atomic::AtomicBool;

use sawmill_cratedb::{CrateDb, Transport};
use sawmill_cratedb_standin::StandIn;
use sawmill_loader::{LoadOptions, LoadReport, Target, load};
use sawmill_postgres::Postgres;
use sawmill_profile::Profile;
use sawmill_source::{Control, Error, Kind};

use crate::cluster::{Cluster, keyed, people};

fn into(target: &dyn Target) -> Result<LoadReport, Error> {
    let (_kept, source) = people(3);
    let cancel = AtomicBool::new(false);
    let profile = Profile::new();
    let phase = profile.phase("load");
    load(&source, target, &LoadOptions::default(), &Control::new(&cancel, &phase))
}

#[test]
fn an_address_of_postgresql_that_leads_to_cratedb_is_an_error_with_the_right_address() {
    let cluster = Cluster::any();
    let wire = format!("postgres://crate@{}/doc", cluster.pg_address());
    let error = into(&Postgres::new(wire.parse().unwrap(), "t".parse().unwrap())).unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    assert!(error.what().contains("the server is CrateDB 6.4.3, not PostgreSQL"), "{error}");
    assert!(error.advice().contains("crate://user:password@HOST:4200"), "{error}");
    assert!(!error.to_string().contains(".java"), "{error}");
    let http = format!("postgres://crate@{}/doc?connect_timeout=2", cluster.http_address());
    let error = into(&Postgres::new(http.parse().unwrap(), "t".parse().unwrap())).unwrap_err();
    assert!(error.what().contains("PostgreSQL protocol"), "{error}");
}

#[test]
fn a_port_of_postgresql_for_the_wire_of_cratedb_is_an_error_that_says_so() {
    let postgres = sawmill_localpg::LocalPg::start().unwrap();
    let url = postgres.url();
    let (account, server) = url.trim_start_matches("postgres://").split_once('@').unwrap();
    let port: String =
        server.chars().skip_while(|c| *c != ':').skip(1).take_while(char::is_ascii_digit).collect();
    let standin = StandIn::start(1);
    // PostgreSQL has this user, this password and this database; the stand-in takes any.
    let address = format!("crate://{account}@127.0.0.1:{}/postgres?pg_port={port}", standin.port(0));
    let target =
        |transport| CrateDb::new(address.parse().unwrap(), "t".parse().unwrap()).options(keyed(transport));
    let error = into(&target(Transport::Pg)).unwrap_err();
    assert!(error.what().contains("the server is not CrateDB"), "{error}");
    assert!(error.advice().contains("pg_port"), "{error}");
    // Where the transport is free, the report says why it was HTTP.
    let report = into(&target(Transport::Auto)).unwrap();
    let way = report.notes.iter().map(|note| &**note).collect::<Vec<_>>().join("\n");
    assert!(way.starts_with("transport http: 3 rows") && way.contains("the server is not CrateDB"), "{way}");
}

#[test]
fn a_port_of_postgresql_for_the_http_endpoint_of_cratedb_is_an_error_at_once() {
    let postgres = sawmill_localpg::LocalPg::start().unwrap();
    let url = postgres.url();
    let (_, server) = url.split_once('@').unwrap();
    let port: String =
        server.chars().skip_while(|c| *c != ':').skip(1).take_while(char::is_ascii_digit).collect();
    let cluster = Cluster::any();
    for address in [format!("127.0.0.1:{port}"), cluster.pg_address()] {
        let target = CrateDb::new(format!("crate://{address}/doc").parse().unwrap(), "t".parse().unwrap());
        let started = std::time::Instant::now();
        let error = into(&target.options(keyed(Transport::Http))).unwrap_err();
        assert!(error.what().contains("does not answer as CrateDB's HTTP endpoint does"), "{error}");
        assert!(error.advice().contains("?pg_port=N"), "{error}");
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
