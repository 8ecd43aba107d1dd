//! Whether a load makes the server write its log ahead: by the messages in the log's files.

use sawmill_localpg::LocalPg;
use sawmill_postgres::{Postgres, TableKind};
use sawmill_source::ParquetFiles;

use crate::database::{run, small};
use crate::fixture::people;

/// Messages called "sawmill" without content in the files of the server's log: length of the name with its
/// end, length of the content, the name (`xl_logical_message` in PostgreSQL's message.h).
fn messages(server: &LocalPg) -> usize {
    let wanted = [&8u64.to_le_bytes()[..], &0u64.to_le_bytes(), b"sawmill\0"].concat();
    let files = std::fs::read_dir(server.data_dir().join("pg_wal")).unwrap();
    let logs = files.filter_map(|file| std::fs::read(file.unwrap().path()).ok());
    logs.map(|log| log.windows(wanted.len()).filter(|window| *window == wanted).count()).sum()
}

fn load_into(server: &LocalPg, table: &str, unlogged: bool) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 50_000, 50_000);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let kind = TableKind { unlogged, ..TableKind::default() };
    let target = Postgres::new(server.url().parse().unwrap(), table.parse().unwrap()).kind(kind);
    assert_eq!(run(&source, &target, &small()).unwrap().rows, 50_000);
}

#[test]
fn the_log_is_written_ahead_for_logged_tables() {
    let server = LocalPg::start().unwrap();
    load_into(&server, "unlogged", true);
    assert_eq!(messages(&server), 0);
    load_into(&server, "logged", false);
    assert!(messages(&server) > 0);
}

#[test]
fn a_logical_decoder_sees_only_rows() {
    let server = LocalPg::builder().setting("wal_level", "logical").start().unwrap();
    load_into(&server, "logged", false);
    assert_eq!(messages(&server), 0);
}
