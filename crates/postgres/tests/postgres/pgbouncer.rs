//! Behind a real pgbouncer: a pool by sessions serves like the server, a pool by transactions is refused.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sawmill_postgres::{forget, status, verify};
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{Database, run, small, with_control};
use crate::fixture::people;

struct PgBouncer {
    child: Child,
    url: String,
    _directory: tempfile::TempDir,
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Where pgbouncer is; `/usr/sbin` is not in every user's path.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file());
    if found.is_none() {
        eprintln!("skipped: pgbouncer is not installed");
    }
    found
}

impl PgBouncer {
    fn start(program: &Path, database: &Database, settings: &str) -> Self {
        let config: postgres::Config = database.url.parse().unwrap();
        let user = config.get_user().unwrap();
        let server_port = config.get_ports()[0];
        let password =
            config.get_password().map(|word| format!(" password={}", String::from_utf8_lossy(word)));
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let ini = directory.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={server_port} user={user}{}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\n{settings}\n",
            password.unwrap_or_default()
        );
        std::fs::write(&ini, text).unwrap();
        let mut command = Command::new(program);
        // It refuses to run as root.
        if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
            command.args(["-u", "postgres"]);
        }
        let mut child = command.arg(&ini).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "pgbouncer has ended");
            assert!(started.elapsed() < Duration::from_secs(20), "pgbouncer does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        let url = format!("postgres://{user}@127.0.0.1:{port}/{}", config.get_dbname().unwrap());
        Self { child, url, _directory: directory }
    }
}

fn source(rows: usize) -> (tempfile::TempDir, ParquetFiles) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, rows, 700);
    (directory, ParquetFiles::open(&[path]).unwrap())
}

#[test]
fn a_pool_by_transactions_is_refused_with_advice_and_no_lock_is_left() {
    let Some(program) = program() else { return };
    let (_directory, source) = source(3000);
    for more in ["", "server_round_robin = 1", "default_pool_size = 1"] {
        let database = Database::new();
        let settings = format!("pool_mode = transaction\n{more}");
        let pool = PgBouncer::start(&program, &database, &settings);
        let pooled = database.with_url(pool.url.clone());
        // Processes that earlier users have left in the pool.
        let mut clients: Vec<postgres::Client> = (0..3).map(|_| pooled.client()).collect();
        for client in &mut clients {
            client.batch_execute("SELECT 1").unwrap();
        }
        let error = run(&source, &pooled.target("people"), &small()).unwrap_err();
        assert_eq!(error.kind(), Kind::Config, "{error}");
        assert!(error.what().contains("transaction mode"), "{error}");
        assert!(error.advice().contains("pool_mode = session"), "{error}");
        let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' \
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        assert_eq!(database.client().query_one(locks, &[]).unwrap().get::<_, i64>(0), 0);
        assert!(!database.has("_sawmill.loads") && !database.has("people__sawmill_loading"));
        // Nothing is left in the way.
        run(&source, &database.target("people"), &small()).unwrap();
        let target = pooled.target("people");
        let refused = [
            with_control(|control| verify(&source, &target, &small(), control)).unwrap_err(),
            with_control(|control| forget(&target, false, control)).unwrap_err(),
            with_control(|control| status(&pool.url.parse().unwrap(), "_sawmill", None, control))
                .unwrap_err(),
        ];
        for error in refused {
            assert!(error.what().contains("transaction mode"), "{error}");
        }
    }
}

#[test]
fn a_pool_by_sessions_works_like_the_server() {
    let Some(program) = program() else { return };
    let (_directory, source) = source(3000);
    let database = Database::new();
    let pool = PgBouncer::start(&program, &database, "pool_mode = session");
    let pooled = database.with_url(pool.url.clone());
    let report = run(&source, &pooled.target("people"), &small()).unwrap();
    assert!(report.verified.unwrap().matches());
    let target = pooled.target("people");
    assert!(with_control(|control| verify(&source, &target, &small(), control)).unwrap().matches());
    assert_eq!(database.count("people"), 3000);
}
