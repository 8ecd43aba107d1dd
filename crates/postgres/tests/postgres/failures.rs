//! Failures before or while rows are read, reported so that a person can act on them.

use std::time::{Duration, Instant};

use sawmill_loader::LoadOptions;
use sawmill_pgwire::Server;
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{Database, run, small};
use crate::fixture::people;

fn refused(bytes: &[u8]) -> sawmill_source::Error {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("broken.parquet");
    std::fs::write(&path, bytes).unwrap();
    let Err(error) = ParquetFiles::open(&[&path]) else { panic!("a broken file was opened") };
    assert_eq!(error.kind(), Kind::Source);
    assert!(error.place().contains("broken.parquet"), "{error}");
    error
}

fn good_file() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 2000, 1000);
    std::fs::read(path).unwrap()
}

#[test]
fn files_that_are_not_parquet_truncated_or_missing_are_refused() {
    refused(b"id,name\n1,Ann\n2,Bo\n3,Cy\n");
    refused(b"");
    let good = good_file();
    for end in [4, 11, good.len() / 2, good.len() - 1] {
        refused(&good[..end]);
    }
    let Err(error) = ParquetFiles::open(&["/nowhere/at/all.parquet"]) else { panic!("opened nothing") };
    assert!(error.place().contains("/nowhere/at/all.parquet"), "{error}");
}

#[test]
fn a_corrupt_page_is_located_by_file_row_group_and_column_and_no_table_appears() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    let mut bytes = good_file();
    // In the middle of the first row group's amounts.
    let metadata = parquet::file::metadata::ParquetMetaDataReader::new()
        .parse_and_finish(&bytes::Bytes::from(bytes.clone()))
        .unwrap();
    let (start, length) = metadata.row_group(1).column(1).byte_range();
    bytes[start as usize..(start + length) as usize].fill(0xff);
    std::fs::write(&path, &bytes).unwrap();
    let source = ParquetFiles::open(&[&path]).unwrap();
    let error = run(&source, &database.target("t"), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Source);
    for part in ["people.parquet", "row group 1", "column \"name\""] {
        assert!(error.place().contains(part), "{error}");
    }
    assert!(!database.has("t"));
}

#[test]
fn units_cut_differently_than_recorded_are_not_loaded_a_second_time() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 2000, 1000);
    let source = ParquetFiles::open(&[&path]).unwrap();
    database.client().batch_execute("CREATE TABLE t (id bigint CHECK (id < 1500), name text)").unwrap();
    let source = source.select(&["id".into(), "name".into()], &[]).unwrap();
    let target = database.target("t").mode(sawmill_loader::Mode::Append);
    assert!(run(&source, &target, &small()).unwrap_err().to_string().contains("t_id_check"));
    let before = database.count("t");
    let moved =
        "UPDATE _sawmill.units SET first_row = first_row + 7; ALTER TABLE t DROP CONSTRAINT t_id_check";
    database.client().batch_execute(moved).unwrap();
    for then in ["UPDATE _sawmill.units SET first_row = first_row - 7, rows = rows + 1000", ""] {
        let error = run(&source, &target, &small()).unwrap_err();
        assert_eq!(error.kind(), Kind::Changed);
        assert!(error.what().contains("would divide some of them differently"), "{error}");
        assert!(error.advice().contains("forget"), "{error}");
        database.client().batch_execute(then).unwrap();
    }
    assert!(before > 0 && database.count("t") == before);
    // A complete load stays complete, however it was cut.
    let target = database.target("whole");
    run(&source, &target, &small()).unwrap();
    database.client().batch_execute("UPDATE _sawmill.units SET first_row = first_row + 7").unwrap();
    let again = run(&source, &target, &small()).unwrap();
    assert_eq!((again.state, again.rows, again.rows_loaded), (sawmill_loader::LoadState::Complete, 2000, 0));
}

#[test]
fn a_file_that_shrinks_or_changes_while_it_is_loaded_is_refused() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 2000, 1000);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = run(&source, &database.target("t"), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Changed);
    assert!(!database.has("t"));
}

#[test]
fn an_unreachable_server_is_soon_reported_by_its_address() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 10, 10);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let table = || "t".parse().unwrap();
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let server: Server = format!("postgres://x@127.0.0.1:{closed}/d").parse().unwrap();
    let error = run(&source, &sawmill_postgres::Postgres::new(server, table()), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Connection);
    assert!(error.place().contains(&format!("127.0.0.1:{closed}")), "{error}");

    // One that accepts and never answers.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("postgres://x@{}/d?connect_timeout=1", mute.local_addr().unwrap());
    let started = Instant::now();
    let server: Server = address.parse().unwrap();
    let error = run(&source, &sawmill_postgres::Postgres::new(server, table()), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Connection);
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    // As in libpq, one second is taken as two.
    assert!(error.what().contains("no answer within 2 s"), "{error}");

    let error = "postgres://x@host:port/d".parse::<Server>().unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
}

#[test]
fn a_wrong_password_a_missing_database_and_missing_permissions_are_distinguished() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 10, 10);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let attempt = |address: String| {
        let target = sawmill_postgres::Postgres::new(address.parse().unwrap(), "t".parse().unwrap());
        let error = run(&source, &target, &LoadOptions::default()).unwrap_err();
        assert_eq!(error.kind(), Kind::Server, "{error}");
        assert!(!error.advice().is_empty(), "{error}");
        error
    };
    let (before, host) = database.url.rsplit_once('@').unwrap();
    let (user, _) = before.rsplit_once(':').unwrap();
    let error = attempt(format!("{user}:wrong@{host}"));
    assert!(error.what().contains("password"), "{error}");
    let (without, _) = database.url.rsplit_once('/').unwrap();
    let error = attempt(format!("{without}/missing"));
    assert!(error.what().contains("missing"), "{error}");
    let name = database.url.rsplit_once('/').unwrap().1.to_owned();
    database.client().batch_execute(&format!("CREATE ROLE guest_{name} LOGIN PASSWORD 'guest'")).unwrap();
    let error = attempt(format!("postgres://guest_{name}:guest@{host}"));
    assert!(error.what().contains("this user may not create it"), "{error}");
}
