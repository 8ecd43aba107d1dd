//! Addresses that lead to another server during a load: a replica that became the primary, or an unrelated
//! one.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, ListArray};
use postgres::{Client, NoTls};
use sawmill_loader::{LoadOptions, Mode, load};
use sawmill_localpg::LocalPg;
use sawmill_postgres::{Postgres, PostgresTables, status, verify};
use sawmill_profile::Profile;
use sawmill_source::{Control, Kind, ParquetFiles};

use crate::database::{run, small, with_control};
use crate::fixture::{file_of, people};

const ROWS: usize = 6_000;

/// A copy of a server that follows it.
struct Replica {
    directory: PathBuf,
    process: Child,
    port: u16,
    url: String,
}

impl Replica {
    /// Copies the server and starts the copy as its replica.
    fn new(primary: &LocalPg) -> Self {
        let owner = std::fs::metadata(primary.data_dir()).unwrap();
        let directory = std::env::temp_dir().join(format!("sawmill-replica-{}", primary.port()));
        std::fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
        chown(&directory, Some(owner.uid()), Some(owner.gid())).unwrap();
        let program = |name: &str| {
            let mut command = Command::new(primary.binaries().bin_dir().join(name));
            command.current_dir(&directory).stdin(Stdio::null());
            if owner.uid() != std::fs::metadata("/proc/self").unwrap().uid() {
                command.gid(owner.gid()).uid(owner.uid());
            }
            command
        };
        let data = directory.join("data");
        let copied = program("pg_basebackup")
            .args(["-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", &primary.url(), "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = program("postgres")
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k"])
            .arg(&directory)
            .stderr(std::fs::File::create(directory.join("log")).unwrap())
            .spawn()
            .unwrap();
        let url = primary.url().replace(&format!(":{}/", primary.port()), &format!(":{port}/"));
        let replica = Self { directory, process, port, url };
        replica.client();
        replica
    }

    /// A connection, as soon as it answers.
    fn client(&self) -> Client {
        let connect = || Client::connect(&self.url, NoTls);
        for _ in 0..500 {
            if let Ok(client) = connect() {
                return client;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        connect().unwrap()
    }

    /// Receives nothing more from the primary.
    fn cut_off(&self) {
        let mut client = self.client();
        client.batch_execute("ALTER SYSTEM SET primary_conninfo = ''").unwrap();
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
        let following = "SELECT count(*) FROM pg_stat_wal_receiver";
        while client.query_one(following, &[]).unwrap().get::<_, i64>(0) > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A port whose connections lead to the server at `to`; the number of those is counted.
struct Address {
    port: u16,
    to: Arc<AtomicU16>,
}

impl Address {
    /// Leads to `first`, and from its connection number `until` on to `then`.
    fn switching(first: u16, until: u32, then: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (to, seen) = (Arc::new(AtomicU16::new(first)), AtomicU32::new(0));
        let target = Arc::clone(&to);
        // Ends with the test process; nothing waits for it.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                if seen.fetch_add(1, Relaxed) + 1 == until {
                    target.store(then, Relaxed);
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", target.load(Relaxed))) else { return };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { port, to }
    }
}

/// Two unrelated servers that accept the same role, and its credentials.
fn strangers() -> (LocalPg, LocalPg, String) {
    let (first, second) = (LocalPg::start().unwrap(), LocalPg::start().unwrap());
    let credentials = first.url().split_once('@').unwrap().0.to_owned();
    let password = credentials.rsplit_once(':').unwrap().1;
    let change = format!("ALTER ROLE CURRENT_USER PASSWORD '{password}'");
    Client::connect(&second.url(), NoTls).unwrap().batch_execute(&change).unwrap();
    (first, second, credentials)
}

fn target(url: &str, table: &str) -> Postgres {
    Postgres::new(url.parse().unwrap(), table.parse().unwrap())
}

#[test]
fn a_lagging_replica_that_became_the_primary_is_named_and_gets_what_it_lacks() {
    let primary = LocalPg::start().unwrap();
    // Each transaction takes a while.
    Client::connect(&primary.url(), NoTls)
        .unwrap()
        .batch_execute(
            "CREATE TABLE people (id bigint, name text, amount float8); \
             CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS \
               'BEGIN PERFORM pg_sleep(0.1); RETURN NULL; END'; \
             CREATE TRIGGER slowly BEFORE INSERT ON people EXECUTE FUNCTION slowly()",
        )
        .unwrap();
    let replica = Replica::new(&primary);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, ROWS, 1000);
    let source = ParquetFiles::open(&[path]).unwrap();
    let both = primary.url().replace("/postgres", &format!(",127.0.0.1:{}/postgres", replica.port));
    let target = target(&format!("{both}?target_session_attrs=read-write"), "people").mode(Mode::Append);
    let options = LoadOptions { unit_rows: 100, degree: 2, ..small() };
    let (cancel, phase) = (AtomicBool::new(false), Profile::new().phase("load"));
    let report = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&source, &target, &options, &Control::new(&cancel, &phase)));
        let until = |rows| {
            while phase.rows() < rows && !loading.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        until(ROWS as u64 / 4);
        replica.cut_off();
        until(ROWS as u64 / 2);
        drop(primary);
        replica.client().batch_execute("SELECT pg_promote()").unwrap();
        loading.join().unwrap().unwrap()
    });
    assert!(report.units_lost > 0, "the replica lacked nothing");
    assert!(report.verified.unwrap().matches());
    let named = "another server took the place of the first (a fail-over: timeline 00000002 after 00000001";
    assert!(report.notes.iter().any(|note| note.contains(named)), "{:?}", report.notes);
    let sql = "SELECT count(*), count(DISTINCT id) FROM people";
    let row = replica.client().query_one(sql, &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (ROWS as i64, ROWS as i64));
}

#[test]
fn a_table_of_another_server_is_not_verified() {
    let (first, second, credentials) = strangers();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 500, 500);
    let source = ParquetFiles::open(&[path]).unwrap();
    run(&source, &target(&first.url(), "people"), &small()).unwrap();
    let second_url = format!("{credentials}@127.0.0.1:{}/postgres", second.port());
    run(&source, &target(&second_url, "people"), &small()).unwrap();
    // The third connection is the first that reads rows.
    let address = Address::switching(first.port(), 3, second.port());
    let target = target(&format!("{credentials}@127.0.0.1:{}/postgres", address.port), "people");
    let error = with_control(|control| verify(&source, &target, &small(), control)).unwrap_err();
    assert_eq!(error.kind(), Kind::Changed, "{error}");
    assert!(error.what().contains("another server now"), "{error}");
}

#[test]
fn tables_of_one_load_never_end_up_on_two_servers() {
    let (first, second, credentials) = strangers();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..300));
    let lists = (0..300).map(|row| Some((0..3).map(move |item| Some(row * 3 + item))));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
    let (_directory, path) = file_of(vec![("id", ids), ("list", lists)], 100);
    let source = ParquetFiles::open(&[path]).unwrap();
    let address = Address::switching(first.port(), u32::MAX, first.port());
    let target = target(&format!("{credentials}@127.0.0.1:{}/postgres", address.port), "records");
    let tables = PostgresTables::new(&source, target, false).unwrap();
    let mut next = |table: &sawmill_loader::TableName| {
        if table.to_string().ends_with("_list") {
            address.to.store(second.port(), Relaxed);
        }
    };
    let error = with_control(|control| tables.load(&small(), control, &mut next)).unwrap_err();
    assert_eq!(error.kind(), Kind::Changed, "{error}");
    assert!(error.what().contains("another server now"), "{error}");
    let second_url = format!("{credentials}@127.0.0.1:{}/postgres", second.port());
    let made = "SELECT count(*) FROM pg_class WHERE relname LIKE 'records%'";
    let made: i64 = Client::connect(&second_url, NoTls).unwrap().query_one(made, &[]).unwrap().get(0);
    assert_eq!(made, 0);
}

#[test]
fn a_replica_reports_loads_and_can_be_verified_but_not_loaded() {
    let primary = LocalPg::start().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 500, 500);
    let source = ParquetFiles::open(&[path]).unwrap();
    run(&source, &target(&primary.url(), "people"), &small()).unwrap();
    let replica = Replica::new(&primary);
    let address = replica.url.parse().unwrap();
    let loads = with_control(|control| status(&address, Postgres::CHECKPOINT_SCHEMA, None, control)).unwrap();
    assert_eq!((loads.len(), loads[0].rows, loads[0].completed.is_some()), (1, 500, true));
    let on_replica = target(&replica.url, "people");
    assert!(with_control(|control| verify(&source, &on_replica, &small(), control)).unwrap().matches());
    for target in [on_replica.mode(Mode::Append), self::target(&replica.url, "other")] {
        let error = run(&source, &target, &small()).unwrap_err();
        assert!(error.advice().contains("name the primary server"), "{error}");
    }
}
