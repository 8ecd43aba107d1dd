//! Tables on a cluster have the rows that they have in one process: none is lost, none doubled.

use std::num::NonZeroUsize;

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::SessionContext;
use sawmill_datafusion::cluster::{local_session, remote_session};
use sawmill_generator::{Dataset, Job, Layout, Output, write};

use crate::command::command;
use crate::processes::Cluster;

/// The rows of a query as text.
async fn rows(context: &SessionContext, sql: &str) -> String {
    let rows =
        context.sql(sql).await.unwrap().collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    pretty_format_batches(&rows).unwrap().to_string()
}

/// 24 files of contacts.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let dataset = Dataset::built_in("contacts").unwrap().unwrap();
    let profile = sawmill_profile::Profile::new();
    let layout = Layout::new(24_000, 24).unwrap().with_row_group_rows(600).unwrap();
    let (output, phase, cancel) =
        (Output::Directory(folder.path().into()), profile.phase("write"), false.into());
    let threads = NonZeroUsize::new(1).unwrap();
    write(&dataset, &Job { threads, ..Job::new(&layout, &output, &phase, &cancel) }).unwrap();
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_and_sums_are_those_of_one_process_with_any_number_of_partitions() {
    let folder = files();
    let files = folder.path().display();
    let gen_ =
        |spec: &str, rows: u64| format!("gen('{spec}', rows => {rows}, seed => 7, number => 'row_number')");
    let (contacts, orders) = (gen_("contacts", 100_000), gen_("orders", 60_000));
    let queries = [
        format!(
            "SELECT count(*), count(name), count(phones), sum(row_number), min(name), max(name) FROM {contacts}"
        ),
        format!("SELECT status, count(*), sum(row_number) FROM {orders} GROUP BY status ORDER BY status"),
        format!("SELECT count(*), sum(row_number) FROM {contacts} WHERE row_number BETWEEN 777 AND 55555"),
        format!(
            "SELECT count(*), sum(a.row_number) FROM {contacts} a JOIN {orders} b ON a.row_number = b.row_number * 2"
        ),
        format!("SELECT row_number, name FROM {contacts} ORDER BY name, row_number LIMIT 20"),
        format!(
            "SELECT path, count(*), sum(num_values), sum(compressed_bytes) FROM footer('{files}') GROUP BY path ORDER BY path"
        ),
        format!("SELECT count(*), count(name), min(name), count(phones) FROM parquet('{files}')"),
        "SELECT l_returnflag, count(*), sum(l_quantity), min(l_comment) FROM gen('tpch/lineitem', scale => 0.013) \
         GROUP BY l_returnflag ORDER BY l_returnflag"
            .to_owned(),
        format!("SELECT count(*), sum(row_group_rows) FROM footer('{files}', level => 'row_group')"),
        format!(
            "SELECT count(*), sum(num_rows), sum(file_bytes) FROM footer('{files}/*.parquet', level => 'file')"
        ),
    ];
    let local = local_session(Some(2)).unwrap();
    let cluster = Cluster::start(2);
    let mut expected = Vec::new();
    for query in &queries {
        expected.push(rows(&local, query).await);
    }
    // Two executors run four tasks at a time.
    for partitions in [1, 3, 16] {
        let remote = remote_session(&cluster.url, Some(partitions)).await.unwrap();
        for repeated in 0..3 {
            for (query, expected) in queries.iter().zip(&expected) {
                let found = rows(&remote, query).await;
                assert_eq!(&found, expected, "{query}, {partitions} partitions, run {repeated}");
            }
        }
    }
}

#[test]
fn the_command_runs_on_a_cluster_and_says_what_is_wrong() {
    let folder = files();
    let cluster = Cluster::start(2);
    let run = |sql: &str| cluster.run(&["sql", sql, "--json"], folder.path());
    // A pattern names the files of the folder that the command runs in, wherever scheduler and executors run.
    let found = run("SELECT sum(num_rows) AS rows FROM footer('*.parquet', level => 'file')");
    assert!(found.status.success(), "{found:?}");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "{\"rows\":24000}\n");
    for (level, rows) in [("file", 24), ("row_group", 48), ("chunk", 48 * 3)] {
        let args = ["submit", "footer", "*.parquet", "--level", level, "--json"];
        let found = cluster.run(&args, folder.path());
        let lines = String::from_utf8_lossy(&found.stdout).lines().count();
        assert_eq!(lines, rows, "{level}: {}", String::from_utf8_lossy(&found.stderr));
    }
    let damaged = folder.path().join("damaged.parquet");
    std::fs::write(&damaged, "PAR1 nothing PAR1").unwrap();
    let found = run("SELECT count(*) FROM footer('*.parquet')");
    let message = String::from_utf8_lossy(&found.stderr).into_owned();
    assert_eq!(found.status.code(), Some(1), "{message}");
    assert!(message.contains(&damaged.display().to_string()), "{message}");
}

#[test]
fn executors_refuse_pages_that_are_larger_than_one_may_be() {
    let folder = files();
    let mut cluster = Cluster::start(0);
    cluster.add_executor_with(&["--max-page", "100"]);
    let run = |sql: &str| cluster.run(&["sql", sql, "--json"], folder.path());
    let found = run("SELECT count(*) AS rows FROM parquet('*.parquet')");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "{\"rows\":24000}\n");
    for (sql, part) in [
        ("SELECT max(name) FROM parquet('*.parquet')", "expected pages of at most 100 bytes"),
        (
            "SELECT max(name) FROM parquet('*.parquet', max_page => 1e9)",
            "start the executors with --max-page",
        ),
    ] {
        let found = run(sql);
        let message = String::from_utf8_lossy(&found.stderr).into_owned();
        assert!(!found.status.success() && message.contains(part), "{message}");
    }
}

#[test]
fn the_command_prints_tables_json_and_csv() {
    let run = |args: &[&str]| command().arg("sql").args(args).output().unwrap();
    let sql = "SELECT n, n % 2 = 0 AS even FROM gen('orders', rows => 3, number => 'n') ORDER BY n";
    let table = run(&[sql]);
    let expected = "+---+-------+\n| n | even  |\n+---+-------+\n| 0 | true  |\n| 1 | false |\n| 2 | true  |\n+---+-------+\n";
    assert_eq!(String::from_utf8_lossy(&table.stdout), expected, "{table:?}");
    let json = run(&[sql, "--json"]);
    let expected = "{\"n\":0,\"even\":true}\n{\"n\":1,\"even\":false}\n{\"n\":2,\"even\":true}\n";
    assert_eq!(String::from_utf8_lossy(&json.stdout), expected);
    let csv = run(&[sql, "--csv"]);
    assert_eq!(String::from_utf8_lossy(&csv.stdout), "n,even\n0,true\n1,false\n2,true\n");
    let none = run(&["SELECT n FROM gen('orders', rows => 0, number => 'n')", "--csv"]);
    assert_eq!(String::from_utf8_lossy(&none.stdout), "n\n");
    let long = run(&["SELECT n FROM gen('orders', rows => 2e4, number => 'n')"]);
    assert!(
        String::from_utf8_lossy(&long.stdout)
            .ends_with("These are the first 10000 rows; --json and --csv print all.\n")
    );
    for (args, code, expected) in [
        (
            &["SELECT * FROM gen('contacts', rows => 1)", "--csv"][..],
            1,
            "error: comma-separated values cannot hold nested columns - ",
        ),
        (&["SELECT * FROM gen('contact', rows => 1)"], 1, " - contact - give a TOML file"),
        (&["SELECT 1", "--json", "--csv"], 2, "cannot be used with"),
        (&["SELECT 1", "--scheduler", "df://127.0.0.1:1"], 1, "df://127.0.0.1:1"),
    ] {
        let found = run(args);
        let message = String::from_utf8_lossy(&found.stderr).into_owned();
        assert_eq!(found.status.code(), Some(code), "{args:?}: {message}");
        assert!(message.contains(expected), "{args:?}: {message}");
    }
}
