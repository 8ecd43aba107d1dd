//! Statements that fill tables with the rows of a cluster: every row once, whatever happens to an executor.

use std::path::Path;
use std::process::{Child, Output, Stdio};

use datafusion::prelude::SessionContext;
use postgres::{Client, NoTls};
use sawmill_cratedb_standin::StandIn;
use sawmill_datafusion::cluster::{local_session, remote_session};
use sawmill_localpg::LocalPg;

use crate::command::{refused, sql, wait_for};
use crate::processes::Cluster;

/// What a statement that succeeded printed as CSV.
#[track_caller]
fn said(output: &Output) -> String {
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{error}");
    out.into_owned()
}

fn number(client: &mut Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).unwrap().get(0)
}

/// What one process reads of the same rows.
fn queried(context: &SessionContext, sql: &str) -> i64 {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Int64Type;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let rows = runtime.block_on(async { context.sql(sql).await?.collect().await }).unwrap();
    rows[0].column(0).as_primitive::<Int64Type>().value(0)
}

#[test]
fn rows_of_a_cluster_arrive_once_with_more_partitions_than_tasks_and_with_fewer() {
    let server = LocalPg::start().unwrap();
    let mut client = Client::connect(&server.url(), NoTls).unwrap();
    let standin = StandIn::start(1);
    let cluster = Cluster::start(2);
    let local = local_session(Some(2)).unwrap();
    let rows = "gen('contacts', rows => 60000, seed => 7, number => 'n')";
    let lengths = queried(&local, &format!("SELECT sum(length(name)) FROM {rows}"));
    for partitions in ["1", "3", "16"] {
        let crate_url = format!("crate://127.0.0.1:{}", standin.port(0));
        let run = |sql: &str| {
            let servers = ["--to", &server.url(), "--to", &crate_url];
            let args = [&["sql", sql, "--csv", "--partitions", partitions][..], &servers].concat();
            said(&cluster.run(&args, Path::new("/")))
        };
        let select = format!("SELECT n, name, length(name) AS l FROM {rows}");
        assert_eq!(run(&format!("CREATE TABLE pg.t{partitions} AS {select}")), "count\n60000\n");
        assert_eq!(run(&format!("INSERT INTO pg.t{partitions} {select} WHERE n < 1000")), "count\n1000\n");
        assert_eq!(run(&format!("COPY ({select} ORDER BY n LIMIT 10) TO pg.t{partitions}")), "count\n10\n");
        let table = format!("t{partitions}");
        assert_eq!(number(&mut client, &format!("select count(*) from {table}")), 61_010);
        assert_eq!(number(&mut client, &format!("select count(distinct n) from {table}")), 60_000);
        assert_eq!(run(&format!("CREATE TABLE crate.t{partitions} AS {select}")), "count\n60000\n");
        // Rows that were made on executors have the values of one process.
        client.batch_execute(&format!("delete from {table}")).unwrap();
        assert_eq!(run(&format!("INSERT INTO pg.t{partitions} {select}")), "count\n60000\n");
        assert_eq!(number(&mut client, &format!("select sum(l)::bigint from {table}")), lengths);
    }
}

#[test]
fn a_statement_that_fails_on_an_executor_leaves_nothing_and_says_why() {
    let server = LocalPg::start().unwrap();
    let mut client = Client::connect(&server.url(), NoTls).unwrap();
    client.batch_execute("create table t (n smallint)").unwrap();
    let cluster = Cluster::start(2);
    let run = |sql: &str| refused(&cluster.run(&["sql", sql, "--to", &server.url()], Path::new("/")));
    for (sql, expected) in [
        (
            "INSERT INTO pg.t SELECT 1 / (70000 - n) FROM gen('contacts', 80000, number => 'n')",
            "DivideByZero",
        ),
        ("INSERT INTO pg.t SELECT n FROM gen('contacts', 80000, number => 'n')", "column \"n\""),
        ("INSERT INTO pg.t SELECT true", "column \"n\" is smallint in the table"),
        ("INSERT INTO pg.absent SELECT 1", "the table does not exist"),
        ("CREATE TABLE pg.t AS SELECT 1 AS n", "there is a table"),
        (
            "CREATE TABLE pg.u AS SELECT count(*) AS n FROM footer('/absent/*')",
            "no Parquet file matches /absent",
        ),
        ("INSERT INTO pg.t SELECT n FROM pg.t", "error: tables of PostgreSQL take rows, and cannot be read"),
        ("SELECT count(*) FROM pg.t", "error: tables of PostgreSQL take rows, and cannot be read"),
        ("EXPLAIN INSERT INTO pg.t SELECT 1", "a scheduler does not plan insertions"),
    ] {
        let error = run(sql);
        assert!(error.contains(expected), "{sql}: {error}");
    }
    assert_eq!(number(&mut client, "select count(*) from t"), 0);
    assert_eq!(number(&mut client, "select count(*) from pg_class where relname = 'u'"), 0);
    // A session of one's own inserts, too.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let written = runtime.block_on(async {
        let context = remote_session(&cluster.url, Some(3)).await?;
        sawmill_datafusion::register_postgres(&context, &server.url())?;
        let rows = context.sql("SELECT n FROM gen('contacts', 9000, number => 'n')").await?;
        rows.write_table("pg.t", Default::default()).await
    });
    written.unwrap();
    assert_eq!(number(&mut client, "select count(*) from t"), 9000);
}

/// Runs a statement in a separate process.
fn start(cluster: &Cluster, to: &str, statement: &str) -> Child {
    let mut command =
        sql(&[statement, "--csv", "--partitions", "24", "--scheduler", &cluster.url, "--to", to]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Creates a table of two million rows, kills an executor when `is_time`, and checks that every row arrived once.
#[track_caller]
fn rows_arrive_once_when_an_executor_is_killed(what: &str, is_time: impl Fn(&Cluster, &mut Client) -> bool) {
    let server = LocalPg::start().unwrap();
    let mut client = Client::connect(&server.url(), NoTls).unwrap();
    let mut cluster = Cluster::start(2);
    let statement =
        "CREATE TABLE pg.c AS SELECT n, name FROM gen('contacts', rows => 2e6, seed => 7, number => 'n')";
    let mut job = start(&cluster, &server.url(), statement);
    wait_for(what, || is_time(&cluster, &mut client));
    cluster.kill_executor(0);
    let ended = job.try_wait().unwrap();
    let output = job.wait_with_output().unwrap();
    assert!(ended.is_none(), "the statement ended at once: {output:?}");
    assert_eq!(said(&output), "count\n2000000\n");
    assert_eq!(number(&mut client, "select count(*) from c"), 2_000_000);
    assert_eq!(number(&mut client, "select count(distinct n) from c"), 2_000_000);
    assert_eq!(number(&mut client, "select sum(n)::bigint from c"), 2_000_000 * 1_999_999 / 2);
}

#[test]
fn an_executor_is_killed_while_it_makes_rows_and_every_row_arrives_once() {
    // Some tasks are done, and others run.
    rows_arrive_once_when_an_executor_is_killed("rows of tasks", |cluster, _| cluster.kept_files() >= 5);
}

#[test]
fn an_executor_is_killed_while_its_rows_are_fetched_and_every_row_arrives_once() {
    let copied = "select coalesce(max(tuples_processed), 0) from pg_stat_progress_copy";
    rows_arrive_once_when_an_executor_is_killed("copied rows", |_, client| number(client, copied) > 10_000);
}
