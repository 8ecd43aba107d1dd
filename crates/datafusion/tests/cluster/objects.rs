//! Objects of a store: an S3 server by others (moto, from PyPI) has the files of a folder.

use std::path::Path;
use std::process::Output;

use crate::command::command;
use crate::processes::Cluster;
use crate::s3::S3;

#[track_caller]
fn rows(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn objects_have_the_rows_of_files_in_one_process_and_on_a_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let made = ["submit", "gen", "contacts", "--rows", "60k", "--files", "6", "--out", out];
    rows(&command().args(made).output().unwrap());
    let Some(server) = S3::with(folder.path()) else { return };
    let cluster = Cluster::start_in(2, server.environment());
    let alone =
        |sql: &str| command().args(["sql", sql, "--csv"]).envs(server.environment()).output().unwrap();
    let together = |sql: &str| cluster.run(&["sql", sql, "--csv"], Path::new("/"));
    let footers = [
        "SELECT count(*), sum(compressed_bytes), min(min), max(max) FROM footer('FILES')",
        "SELECT path, sum(num_values) FROM footer('FILES') WHERE path IN ('name', 'none') GROUP BY path",
        "SELECT count(*), sum(row_group_rows) FROM footer('FILES', level => 'row_group')",
        "SELECT sum(num_rows), sum(file_bytes) FROM footer('FILES', level => 'file') WHERE file LIKE '%-00003.parquet'",
    ];
    for sql in footers {
        let expected = rows(&alone(&sql.replace("FILES", out)));
        for named in ["s3://data/contacts", "s3://data/contacts/*.parquet", "s3://data/**/*.parquet"] {
            let sql = sql.replace("FILES", named);
            assert_eq!(rows(&alone(&sql)), expected, "{sql}");
            assert_eq!(rows(&together(&sql)), expected, "{sql}");
        }
    }
    for sql in [
        "SELECT count(*), max(name), count(phones) FROM parquet('FILES')",
        "SELECT name, count(*) FROM parquet('FILES') WHERE name < 'Aarav B' GROUP BY name ORDER BY name",
    ] {
        let json =
            |sql: &str| command().args(["sql", sql, "--json"]).envs(server.environment()).output().unwrap();
        let expected = rows(&json(&sql.replace("FILES", out)));
        assert_eq!(rows(&json(&sql.replace("FILES", "s3://data/contacts"))), expected, "{sql}");
    }
    let one = "SELECT count(*) FROM parquet('s3://data/contacts/contacts-00002.parquet')";
    assert_eq!(rows(&alone(one)), "count(*)\n10000\n");
    let found = error(&together(one));
    assert!(found.contains("a cluster does not read rows of objects - s3://"), "{found}");
    assert!(!found.contains("bug"), "{found}");
    for (files, what) in [
        ("s3://data/none", "no Parquet file matches s3://data/none"),
        ("s3://data/none.parquet", "s3://data/none.parquet"),
        ("s3://absent/*.parquet", "s3://absent"),
        ("https://host/a.parquet?X-Amz-Signature=S", "a URL with a query cannot be used"),
    ] {
        let found = error(&alone(&format!("SELECT count(*) FROM footer('{files}')")));
        assert!(found.contains(what) && !found.contains("Signature"), "{files}: {found}");
    }
}
