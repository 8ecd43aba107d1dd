//! A tablespace that fills up during a load: the error says so, and with more space the same command
//! finishes.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use sawmill_loader::{LoadOptions, LoadState, Mode};
use sawmill_localpg::LocalPg;
use sawmill_postgres::{Postgres, Strategy, TableKind};
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{run, small, with_control};
use crate::fixture::people;

/// A file system of a few megabytes in memory, for as long as the value lives.
struct Small(tempfile::TempDir);

impl Small {
    /// `None` if this user may not mount file systems.
    fn mount(megabytes: u32) -> Option<Self> {
        let directory = tempfile::Builder::new().prefix("sawmill-full").tempdir_in("/tmp").unwrap();
        let size = format!("size={megabytes}m");
        mount(&["-t", "tmpfs", "-o", &size, "tmpfs"], directory.path()).then(|| Self(directory))
    }

    fn grow(&self, megabytes: u32) {
        assert!(mount(&["-o", &format!("remount,size={megabytes}m")], self.0.path()));
    }
}

fn mount(args: &[&str], place: &Path) -> bool {
    let output = Command::new("mount").args(args).arg(place).output();
    output.is_ok_and(|output| output.status.success())
}

impl Drop for Small {
    fn drop(&mut self) {
        // The server may still have its files open.
        Command::new("umount").arg("-l").arg(self.0.path()).status().ok();
    }
}

#[test]
fn a_full_tablespace_is_named_and_with_more_space_the_load_resumes() {
    const ROWS: usize = 200_000;
    let Some(disk) = Small::mount(6) else {
        println!("skipped: no file system can be mounted by this user");
        return;
    };
    let server = LocalPg::start().unwrap();
    let owner = std::fs::metadata(server.data_dir()).unwrap();
    std::os::unix::fs::chown(disk.0.path(), Some(owner.uid()), Some(owner.gid())).unwrap();
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    client.batch_execute(&format!("CREATE TABLESPACE small LOCATION '{}'", disk.0.path().display())).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, ROWS, 50_000);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let options = LoadOptions { unit_rows: 5000, batch_rows: 1000, ..small() };
    let kind = TableKind { tablespace: Some("small".into()), ..TableKind::default() };
    let target = Postgres::new(server.url().parse().unwrap(), "t".parse().unwrap()).kind(kind);
    let (mut at, mut room) = (target.clone(), 6);
    for strategy in [Strategy::Direct, Strategy::Staged] {
        disk.grow(room);
        at = at.strategy(strategy).mode(Mode::Replace);
        if strategy == Strategy::Staged {
            let by = "hash(id, 10)".parse().unwrap();
            at = with_control(|control| at.partitioned(&by, &source, control)).unwrap();
        }
        let error = run(&source, &at, &options).unwrap_err();
        assert_eq!(error.kind(), Kind::Server);
        // The first message if not a byte of a page fits, the second if some do.
        let full = ["No space left on device", "wrote only"].iter().any(|words| error.what().contains(words));
        assert!(full && error.what().contains("[53100]"), "{error}");
        assert!(error.advice().contains("tablespace") && error.advice().contains("same command"), "{error}");
        disk.grow(room + 58);
        let report = run(&source, &at, &options).unwrap();
        assert_eq!(report.state, LoadState::Resumed);
        assert!(report.units_resumed > 0 && report.verified.unwrap().matches());
        let row = client.query_one("SELECT count(*), count(DISTINCT id) FROM t", &[]).unwrap();
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (ROWS as i64, ROWS as i64));
        // The next load finds as little space beside the existing table.
        let used: i64 = client.query_one("SELECT pg_tablespace_size('small')", &[]).unwrap().get(0);
        room = (used >> 20) as u32 + 6;
    }
}
