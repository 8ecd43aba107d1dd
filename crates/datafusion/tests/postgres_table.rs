//! Tables of PostgreSQL that statements fill: all rows of a statement, or none.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::parquet::data_type::{FixedLenByteArray, FixedLenByteArrayType};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;
use datafusion::prelude::{SessionConfig, SessionContext};
use postgres::{Client, NoTls};
use sawmill_localpg::LocalPg;

use crate::command::{command, refused, sql, wait_for};

mod command;

/// A session with our functions and the tables of a server.
struct Tables {
    server: LocalPg,
    client: Client,
    context: SessionContext,
    runtime: tokio::runtime::Runtime,
}

impl Tables {
    fn start(partitions: usize) -> Self {
        let server = LocalPg::start().unwrap();
        let client = Client::connect(&server.url(), NoTls).unwrap();
        let config = SessionConfig::new().with_target_partitions(partitions);
        let context = SessionContext::new_with_config(config);
        sawmill_datafusion::register(&context).unwrap();
        sawmill_datafusion::register_postgres(&context, &server.url()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        Self { server, client, context, runtime }
    }

    /// The number that a statement returns, or its error.
    fn run(&self, sql: &str) -> Result<u64, String> {
        let ran = self.runtime.block_on(async {
            let rows = sawmill_datafusion::sql(&self.context, sql).await?.collect().await?;
            Ok(rows[0].column(0).as_primitive::<UInt64Type>().value(0))
        });
        ran.map_err(|error: datafusion::error::DataFusionError| error.to_string())
    }

    /// What the table holds, as the server sees it.
    fn number(&mut self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).unwrap().get(0)
    }

    fn exists(&mut self, table: &str) -> bool {
        self.client.query_one("select to_regclass($1) is not null", &[&table]).unwrap().get(0)
    }

    /// The same from a query of DataFusion.
    fn queried(&self, sql: &str) -> i64 {
        let rows = self.runtime.block_on(async { self.context.sql(sql).await?.collect().await }).unwrap();
        rows[0].column(0).as_primitive::<Int64Type>().value(0)
    }
}

#[test]
fn a_new_table_has_the_rows_of_the_query_whatever_its_partitions() {
    for partitions in [1, 3, 8] {
        let mut tables = Tables::start(partitions);
        let rows = "gen('orders', rows => 50000, seed => 7)";
        assert_eq!(tables.run(&format!("CREATE TABLE pg.orders AS SELECT * FROM {rows}")), Ok(50_000));
        assert_eq!(tables.number("select count(*) from orders"), 50_000);
        // Into the same columns once more, and into a schema that is named.
        assert_eq!(tables.run(&format!("INSERT INTO pg.public.orders SELECT * FROM {rows}")), Ok(50_000));
        assert_eq!(tables.number("select count(*) from orders"), 100_000);
        let copied =
            "CREATE TABLE pg.contacts AS SELECT name, length(name) AS n FROM gen('contacts', rows => 3e4)";
        assert_eq!(tables.run(copied), Ok(30_000));
        let length = tables.queried("SELECT sum(length(name)) FROM gen('contacts', rows => 3e4)");
        assert_eq!(tables.number("select sum(n)::bigint from contacts"), length);
        assert_eq!(tables.number("select sum(length(name))::bigint from contacts"), length);
        assert_eq!(tables.run("CREATE TABLE pg.none AS SELECT * FROM gen('contacts', rows => 0)"), Ok(0));
        assert!(tables.exists("none"));
    }
}

#[test]
fn columns_are_those_of_the_statement_and_the_others_have_their_defaults() {
    let mut tables = Tables::start(2);
    let table = "create table t (id bigint generated always as identity, a int not null default 7, b text, \
                 at date, twice int generated always as (a * 2) stored)";
    tables.client.batch_execute(table).unwrap();
    assert_eq!(tables.run("INSERT INTO pg.t (b, at) VALUES ('x', '2024-02-29'), (null, null)"), Ok(2));
    assert_eq!(tables.run("INSERT INTO pg.t (\"b\", A) SELECT 'y', 3"), Ok(1));
    assert_eq!(tables.number("select count(*) from t where a = 7 and twice = 14 and id in (1, 2)"), 2);
    assert_eq!(tables.number("select count(*) from t where b = 'x' and at = '2024-02-29'"), 1);
    assert_eq!(tables.number("select count(*) from t where b = 'y' and a = 3 and id = 3"), 1);
    // Without names: the first columns, in their order.
    tables.client.batch_execute("create table u (k int, v text, w text default 'w')").unwrap();
    assert_eq!(
        tables.run("INSERT INTO pg.u SELECT number, name FROM gen('contacts', 5, number => 'number')"),
        Ok(5)
    );
    assert_eq!(tables.number("select count(*) from u where w = 'w' and k between 0 and 4"), 5);
}

#[test]
fn rows_of_a_data_frame_keep_their_types() {
    let mut tables = Tables::start(3);
    tables.client.batch_execute("create table t (n smallint, name text)").unwrap();
    let written = tables.runtime.block_on(async {
        let rows = tables.context.sql("SELECT n, name FROM gen('contacts', 20000, number => 'n')").await?;
        rows.write_table("pg.t", DataFrameWriteOptions::new()).await
    });
    assert_eq!(written.unwrap()[0].column(0).as_primitive::<UInt64Type>().value(0), 20_000);
    assert_eq!(tables.number("select sum(n)::bigint from t"), (0..20_000).sum::<i64>());
}

#[test]
fn what_does_not_fit_is_refused_before_a_row_is_sent() {
    let mut tables = Tables::start(2);
    tables.client.batch_execute("create table t (a int, b boolean); create view v as select 1 as a").unwrap();
    for (statement, parts) in [
        ("INSERT INTO pg.t SELECT true, false", &["column \"a\" is integer", "Boolean", "cast"][..]),
        ("INSERT INTO pg.t SELECT 1.5e0, true", &["1.5 cannot be stored exactly", "column \"a\"", "row 1"]),
        ("INSERT INTO pg.t (b, a) SELECT DATE '2024-01-01', 1", &["column \"b\" is boolean", "Date32"]),
        ("INSERT INTO pg.t (c) SELECT 1", &["column \"c\" is not in the table"]),
        ("INSERT INTO pg.t (a, b) SELECT 1", &["the query has 1 columns, the insertion 2"]),
        ("INSERT INTO pg.t SELECT 1, true, 3 AS c", &["the query has 3 columns, the insertion 2"]),
        ("INSERT INTO pg.absent SELECT 1", &["the table does not exist", "absent", "create it"]),
        ("INSERT INTO pg.v SELECT 1", &["it is a view, not a table"]),
        ("INSERT OVERWRITE pg.t SELECT 1, true", &["this form of INSERT"]),
        ("CREATE TABLE pg.t AS SELECT 1 AS a", &["there is a table", "table t", "insert into it"]),
        ("CREATE TABLE pg.u (a int)", &["this form of CREATE TABLE"]),
        ("CREATE TABLE pg.u AS SELECT INTERVAL '1 month' AS a, 1 AS ctid", &["column \"ctid\""]),
        ("SELECT count(*) FROM pg.t", &["cannot be read", "query it on the server"]),
        ("INSERT INTO pg.t SELECT a, b FROM pg.t", &["cannot be read"]),
    ] {
        let error = tables.run(statement).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{statement}: {error}");
    }
    assert_eq!(tables.number("select count(*) from t"), 0);
    assert!(!tables.exists("u"));
}

#[test]
fn a_statement_that_fails_in_the_middle_leaves_nothing() {
    let mut tables = Tables::start(3);
    tables.client.batch_execute("create table t (n smallint check (n <> 31000), name text)").unwrap();
    let rows = |rows: u32| format!("SELECT n, name FROM gen('contacts', {rows}, number => 'n')");
    // A value that the column cannot hold, one that the server refuses, and a query that fails.
    let error = tables.run(&format!("INSERT INTO pg.t {}", rows(40_000))).unwrap_err();
    assert!(error.contains("column \"n\"") && error.contains("32768") && error.contains("row "), "{error}");
    let error = tables.run(&format!("INSERT INTO pg.t {}", rows(32_000))).unwrap_err();
    assert!(error.contains("check constraint") && error.contains("no row of the statement is in"), "{error}");
    let fails = "SELECT 1 / (30000 - n) AS n, name FROM gen('contacts', 40000, number => 'n')";
    for statement in [format!("INSERT INTO pg.t {fails}"), format!("CREATE TABLE pg.u AS {fails}")] {
        let error = tables.run(&statement).unwrap_err();
        assert!(error.to_lowercase().contains("divide by zero"), "{error}");
    }
    assert_eq!(tables.number("select count(*) from t"), 0);
    assert!(!tables.exists("u"));
    // The connection has gone, too, and the same table takes rows.
    assert_eq!(tables.run(&format!("INSERT INTO pg.t {}", rows(30_000))), Ok(30_000));
    assert_eq!(tables.number("select count(*) from t"), 30_000);
}

#[test]
fn the_command_is_killed_in_the_middle_and_the_same_command_fills_the_table() {
    let mut tables = Tables::start(1);
    let url = tables.server.url();
    let statement = "CREATE TABLE pg.c AS SELECT * FROM gen('contacts', rows => 2e6)";
    let mut killed = sql(&["--to", &url, statement]).spawn().unwrap();
    let copied = "select coalesce(max(tuples_processed), 0) from pg_stat_progress_copy";
    wait_for("rows", || tables.number(copied) >= 100_000);
    killed.kill().unwrap();
    assert!(!killed.wait().unwrap().success());
    assert!(!tables.exists("c"));
    let made = sql(&["--to", &url, "--csv", statement]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&made.stdout), "count\n2000000\n", "{made:?}");
    assert_eq!(tables.number("select count(*) from c"), 2_000_000);
}

#[test]
fn a_table_without_a_server_is_refused_with_the_address_to_give() {
    let error = refused(&sql(&["INSERT INTO pg.t SELECT 1"]).output().unwrap());
    assert!(
        error.contains("table `pg.t` needs a server: pass --to postgres://user@host/database"),
        "{error}"
    );
    let error = refused(&sql(&["COPY (SELECT 1) TO pg.public.t"]).output().unwrap());
    assert!(error.contains("table `pg.public.t` needs a server: pass --to postgres://"), "{error}");
}

#[test]
fn copy_fills_a_table_as_insert_does() {
    let mut tables = Tables::start(3);
    tables.client.batch_execute("create table t (n bigint, name text, w text default 'w')").unwrap();
    let rows = "SELECT n, name FROM gen('contacts', 20000, number => 'n')";
    assert_eq!(tables.run(&format!("COPY ({rows}) TO pg.t")), Ok(20_000));
    assert_eq!(tables.run(&format!("copy ({rows}) to pg.public.t (n, w);")), Ok(20_000));
    assert_eq!(tables.number("select count(*) from t where w = 'w'"), 20_000);
    assert_eq!(tables.number("select count(*) from t where name is null and w <> ''"), 20_000);
    for (statement, parts) in [
        ("COPY (SELECT 1) TO pg.t STORED AS PARQUET", &["this form of COPY", "STORED AS PARQUET"][..]),
        ("COPY (SELECT 1) TO pg.t PARTITIONED BY (n)", &["this form of COPY", "PARTITIONED BY"]),
        ("COPY (SELECT 1) TO pg.t OPTIONS ('a' 'b')", &["this form of COPY", "OPTIONS"]),
        ("COPY (SELECT 1) TO pg.absent", &["the table does not exist", "absent"]),
        ("COPY pg.t TO pg.t", &["cannot be read"]),
        ("COPY (SELECT 1, 2) TO pg.t (n, n)", &["column \"n\" is named twice"]),
        ("COPY (SELECT 1) TO pg.t (absent)", &["column \"absent\" is not in the table"]),
    ] {
        let error = tables.run(statement).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{statement}: {error}");
    }
    assert_eq!(tables.number("select count(*) from t"), 40_000);
}

#[test]
fn a_column_of_nothing_but_null_goes_into_a_column_of_any_type() {
    let mut tables = Tables::start(2);
    let types = "create type point3 as (x int, y int, z int); create type mood as enum ('sad', 'ok')";
    tables.client.batch_execute(types).unwrap();
    let table =
        "create table t (n bigint, a int[], b point3, c jsonb, d mood, e point3[], f inet, g text[][])";
    tables.client.batch_execute(table).unwrap();
    let nulls = ", null, null, null, null, null, null, null";
    assert_eq!(tables.run(&format!("INSERT INTO pg.t SELECT 1{nulls}")), Ok(1));
    let many = format!("COPY (SELECT n{nulls} FROM gen('contacts', 20000, number => 'n')) TO pg.t");
    assert_eq!(tables.run(&many), Ok(20_000));
    let all =
        "select count(*) from t where num_nulls(a, b, c, d, e, f, g) = 7 and b is null and n is not null";
    assert_eq!(tables.number(all), 20_001);
}

#[test]
fn columns_that_the_server_fills_are_refused_by_name_and_left_out_without() {
    let mut tables = Tables::start(2);
    let table = "create table t (id bigint generated always as identity, a int, \
                 twice int generated always as (a * 2) stored, free bigint generated by default as identity, b text)";
    tables.client.batch_execute(table).unwrap();
    for (statement, parts) in [
        (
            "INSERT INTO pg.t (id, a) SELECT 5, 1",
            &["numbers column \"id\" itself", "IDENTITY", "leave out"][..],
        ),
        ("COPY (SELECT 5, 1) TO pg.t (id, a)", &["numbers column \"id\" itself"]),
        ("INSERT INTO pg.t (twice) SELECT 5", &["computes column \"twice\" (GENERATED ALWAYS AS)"]),
        // The query has more columns than the server leaves to it.
        ("INSERT INTO pg.t SELECT 1, 2, 'b', 4", &["the query has 4 columns, the insertion 3"]),
    ] {
        let error = tables.run(statement).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{statement}: {error}");
    }
    assert_eq!(tables.number("select count(*) from t"), 0);
    assert_eq!(tables.run("INSERT INTO pg.t SELECT 1, 70, 'b'"), Ok(1));
    assert_eq!(tables.number("select count(*) from t where id = 1 and a = 1 and free = 70 and b = 'b'"), 1);
}

#[test]
fn explained_statements_are_planned_as_they_are_run() {
    let mut tables = Tables::start(2);
    tables.client.batch_execute("create table ea (a bigint, b int default 5, c text default 'd')").unwrap();
    let explained = |tables: &Tables, sql: &str| {
        let rows = tables
            .runtime
            .block_on(async { sawmill_datafusion::sql(&tables.context, sql).await?.collect().await });
        rows.map(|rows| pretty_format_batches(&rows).unwrap().to_string()).map_err(|error| error.to_string())
    };
    let error = explained(&tables, "EXPLAIN ANALYZE INSERT INTO pg.ea (a, c) SELECT 1.9, 'x'").unwrap_err();
    assert!(error.contains("\"a\""), "{error}");
    assert_eq!(tables.number("select count(*) from ea"), 0);
    explained(&tables, "EXPLAIN ANALYZE INSERT INTO pg.ea (a) SELECT 1").unwrap();
    assert_eq!(tables.number("select count(*) from ea where a = 1 and b = 5 and c = 'd'"), 1);
    // Lists: the plan shows their columns as text, to which SQL cannot convert them.
    tables.run("CREATE TABLE pg.orders AS SELECT * FROM gen('orders', rows => 10)").unwrap();
    let plan = explained(&tables, "EXPLAIN INSERT INTO pg.orders SELECT * FROM gen('orders', rows => 10)");
    assert!(plan.unwrap().contains("InsertExec: PostgreSQL table=orders"));
    assert_eq!(tables.number("select count(*) from orders"), 10);
}

#[test]
fn statements_that_would_do_something_else_are_refused() {
    let mut tables = Tables::start(2);
    tables.client.batch_execute("create table t (a bigint)").unwrap();
    let error = tables.run("PREPARE x AS INSERT INTO pg.t SELECT 1").unwrap_err();
    assert!(error.contains("this form of PREPARE cannot be used") && error.contains("itself"), "{error}");
    let error = tables.run("DROP TABLE pg.t").unwrap_err();
    assert!(error.contains("tables of PostgreSQL cannot be dropped here"), "{error}");
    assert!(tables.exists("t"));
    tables.client.batch_execute("create table n (a text)").unwrap();
    let error = tables.run("INSERT INTO pg.n SELECT arrow_cast(x'4100', 'Utf8')").unwrap_err();
    assert!(error.contains("0x00") && !error.contains("--nul"), "{error}");
}

#[test]
fn uuids_of_files_are_uuids_of_the_table() {
    let mut tables = Tables::start(2);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("u.parquet");
    let schema = "message u { optional fixed_len_byte_array(16) id (UUID); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer =
        SerializedFileWriter::new(File::create(&file).unwrap(), schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let value = FixedLenByteArray::from(vec![7u8; 16]);
    column.typed::<FixedLenByteArrayType>().write_batch(&[value], Some(&[1]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let sql = format!("CREATE TABLE pg.u AS SELECT * FROM parquet('{}')", file.display());
    assert_eq!(tables.run(&sql), Ok(1));
    assert_eq!(
        tables.number("select count(*) from u where id = '07070707-0707-0707-0707-070707070707'::uuid"),
        1
    );
}

#[test]
fn a_load_of_a_query_makes_a_table_and_adds_rows_to_the_columns_of_their_names() {
    let mut tables = Tables::start(2);
    let (folder, url) = (tempfile::tempdir().unwrap(), tables.server.url());
    let files = folder.path().join("contacts");
    let files = files.to_str().unwrap();
    let made = ["submit", "gen", "contacts", "--rows", "5000", "--files", "3", "--out", files];
    assert!(command().args(made).output().unwrap().status.success());
    let load = |query: &str, more: &[&str]| {
        let to = ["--query", query, "--table", "Sums"];
        command().args(["load", files]).args(to).args(more).output().unwrap()
    };
    let to = ["--to", url.as_str(), "--json"];
    let query = "SELECT length(name) AS length, count(*) AS n FROM read GROUP BY 1;";
    let made = load(query, &to);
    let said = String::from_utf8(made.stdout).unwrap();
    let groups = tables.number("select count(*) from \"Sums\"");
    assert_eq!(said, format!("{{\"rows\":{groups},\"table\":\"Sums\"}}\n"));
    assert_eq!(tables.number("select sum(n)::bigint from \"Sums\""), 5000);
    let error = refused(&load(query, &to));
    assert!(error.starts_with("{\"error\":") && error.contains("there is a table"), "{error}");
    let append = [&to[..2], &["--mode", "append"]].concat();
    let added = load("SELECT 7 AS n, -1 AS length FROM read LIMIT 2", &append);
    assert_eq!(String::from_utf8(added.stdout).unwrap(), "2 rows stored in table Sums\n");
    assert_eq!(tables.number("select count(*) from \"Sums\" where n = 7 and length = -1"), 2);
    for (query, more, expected) in [
        ("SELECT 1 AS other FROM read", &append[..], "other"),
        ("DROP TABLE read", &to, "DDL not supported"),
        (
            "SELECT 1 AS n FROM read",
            &["--to", "crate://h", "--mode", "append"],
            "CrateDB has no transactions",
        ),
    ] {
        let error = refused(&load(query, more));
        assert!(error.contains(expected), "{query}: {error}");
    }
}
