//! Tables of CrateDB that statements fill: a new one has all rows or is not there, and no row is doubled.
//!
//! They run against the stand-in, or against the cluster that `SAWMILL_CRATEDB_URL` names (its HTTP address). Faults need
//! the stand-in.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::prelude::{SessionConfig, SessionContext};
use sawmill_cratedb_standin::{Fault, StandIn};
use serde_json::Value;

use crate::command::{refused, sql, wait_for};

mod command;

/// A session with our functions and the tables of a cluster.
struct Tables {
    standin: Option<StandIn>,
    /// Host and port of the HTTP endpoint.
    address: String,
    context: SessionContext,
    runtime: tokio::runtime::Runtime,
}

impl Tables {
    fn standin(partitions: usize) -> Self {
        let standin = StandIn::start(1);
        let address = format!("127.0.0.1:{}", standin.port(0));
        Self { standin: Some(standin), ..Self::at(address, partitions) }
    }

    /// The stand-in, unless the environment names a cluster.
    fn any(partitions: usize) -> Self {
        match std::env::var("SAWMILL_CRATEDB_URL") {
            Ok(url) => {
                let address = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                Self::at(address.trim_end_matches('/').to_owned(), partitions)
            }
            Err(_) => Self::standin(partitions),
        }
    }

    fn at(address: String, partitions: usize) -> Self {
        let context =
            SessionContext::new_with_config(SessionConfig::new().with_target_partitions(partitions));
        sawmill_datafusion::register(&context).unwrap();
        sawmill_datafusion::register_crate_db(&context, &format!("crate://{address}")).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        Self { standin: None, address, context, runtime }
    }

    fn url(&self) -> String {
        format!("crate://{}", self.address)
    }

    fn faults(&self, faults: impl IntoIterator<Item = Option<Fault>>) {
        if let Some(standin) = &self.standin {
            standin.faults().plan(faults);
        }
    }

    /// A name that is unique among the tests.
    fn table(&self) -> String {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        format!("sinks_{}_{}", std::process::id(), NUMBER.fetch_add(1, Relaxed))
    }

    /// The number that a statement returns, or its error.
    fn run(&self, sql: &str) -> Result<u64, String> {
        let ran = self.runtime.block_on(async {
            let rows = sawmill_datafusion::sql(&self.context, sql).await?.collect().await?;
            Ok(rows[0].column(0).as_primitive::<UInt64Type>().value(0))
        });
        ran.map_err(|error: datafusion::error::DataFusionError| error.to_string())
    }

    /// Rows as the server returns them.
    fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        let body = serde_json::json!({ "stmt": sql }).to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head =
            "POST /_sql HTTP/1.1\r\nHost: c\r\nContent-Type: application/json\r\nConnection: close\r\n";
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert!(answer.get("error").is_none(), "{sql}: {answer}");
        serde_json::from_value(answer["rows"].clone()).unwrap()
    }

    fn count(&self, table: &str) -> u64 {
        self.rows(&format!("REFRESH TABLE \"doc\".\"{table}\""));
        self.rows(&format!("SELECT count(*) FROM \"doc\".\"{table}\""))[0][0].as_u64().unwrap()
    }

    /// Tables whose names begin so.
    fn tables(&self, beginning: &str) -> Vec<String> {
        let names = self.rows("SELECT table_name FROM information_schema.tables");
        let names = names.iter().map(|row| row[0].as_str().unwrap().to_owned());
        names.filter(|name| name.starts_with(beginning)).collect()
    }

    /// What a query of DataFusion returns.
    fn queried(&self, sql: &str) -> i64 {
        let rows = self.runtime.block_on(async { self.context.sql(sql).await?.collect().await }).unwrap();
        rows[0].column(0).as_primitive::<Int64Type>().value(0)
    }
}

#[test]
fn a_new_table_has_the_rows_of_the_query_whatever_its_partitions() {
    for partitions in [1, 3, 8] {
        let tables = Tables::any(partitions);
        let (orders, contacts) = (tables.table(), tables.table());
        // CrateDB keeps milliseconds.
        let error =
            tables.run(&format!("CREATE TABLE crate.{orders} AS SELECT * FROM gen('orders', rows => 5)"));
        let error = error.unwrap_err();
        assert!(
            error.contains("finer than a millisecond") && error.contains("date_trunc('millisecond'"),
            "{error}"
        );
        let rows = "(SELECT * REPLACE (date_trunc('millisecond', ordered_at) AS ordered_at, \
                    date_trunc('millisecond', shipped_at) AS shipped_at) FROM gen('orders', rows => 50000, seed => 7))";
        assert_eq!(tables.run(&format!("CREATE TABLE crate.{orders} AS SELECT * FROM {rows}")), Ok(50_000));
        assert_eq!(tables.count(&orders), 50_000);
        // Into the same columns once more, and into a schema that is named.
        let inserted = tables.run(&format!("INSERT INTO crate.doc.{orders} SELECT * FROM {rows}"));
        assert_eq!(inserted, Ok(50_000));
        assert_eq!(tables.count(&orders), 100_000);
        // Nested values, too.
        let nested = format!("CREATE TABLE crate.{contacts} AS SELECT * FROM gen('contacts', rows => 3e4)");
        assert_eq!(tables.run(&nested), Ok(30_000));
        let phones = "SELECT count(*) FROM gen('contacts', rows => 3e4) WHERE phones IS NULL";
        let without =
            tables.rows(&format!("SELECT count(*) FROM \"doc\".\"{contacts}\" WHERE \"phones\" IS NULL"));
        assert_eq!(without[0][0].as_i64(), Some(tables.queried(phones)));
        assert_eq!(tables.tables(&format!("{orders}__")), [""; 0]);
    }
}

#[test]
fn requests_that_fail_double_no_row_and_lose_none() {
    let tables = Tables::standin(4);
    let table = tables.table();
    let faults = [
        Some(Fault::DropAfter),
        Some(Fault::DropInTheMiddle),
        None,
        Some(Fault::DropBefore),
        Some(Fault::Unavailable),
        Some(Fault::DropAfter),
        None,
        Some(Fault::LostShard),
    ];
    tables.faults(faults);
    let sql = format!(
        "CREATE TABLE crate.{table} AS SELECT n, name FROM gen('contacts', rows => 200000, number => 'n')"
    );
    assert_eq!(tables.run(&sql), Ok(200_000));
    assert_eq!(tables.count(&table), 200_000);
    assert_eq!(tables.standin.as_ref().unwrap().faults().left(), 0);
    // With a key the same holds for a table that was there.
    let keyed = tables.table();
    tables.rows(&format!("CREATE TABLE \"doc\".\"{keyed}\" (\"n\" BIGINT PRIMARY KEY, \"name\" TEXT)"));
    let rows = |n: u32| format!("SELECT n, name FROM gen('contacts', rows => {n}, number => 'n')");
    tables.faults(faults);
    assert_eq!(tables.run(&format!("INSERT INTO crate.{keyed} {}", rows(8000))), Ok(8000));
    assert_eq!(tables.count(&keyed), 8000);
    assert_eq!(tables.run(&format!("INSERT INTO crate.{keyed} {}", rows(9000))), Ok(1000));
    assert_eq!(tables.count(&keyed), 9000);
}

#[test]
fn columns_are_those_of_the_statement_and_the_others_have_their_defaults() {
    let tables = Tables::any(2);
    let table = tables.table();
    let columns = "\"a\" INTEGER, \"b\" TEXT, \"at\" TIMESTAMP WITHOUT TIME ZONE, \"tags\" ARRAY(TEXT)";
    tables.rows(&format!("CREATE TABLE \"doc\".\"{table}\" ({columns})"));
    assert_eq!(
        tables.run(&format!("INSERT INTO crate.{table} (b, at) VALUES ('x', DATE '2024-02-29')")),
        Ok(1)
    );
    assert_eq!(tables.run(&format!("INSERT INTO crate.{table} (\"b\", A) SELECT 'y', 3::int")), Ok(1));
    // Without names: the first columns, in their order. A column with nothing but NULL goes into any.
    assert_eq!(tables.run(&format!("INSERT INTO crate.{table} SELECT 4::int, 'z', NULL, NULL")), Ok(1));
    let copied = format!("COPY (SELECT 5::int AS x, ['t', 'u']) TO crate.{table} (a, tags)");
    assert_eq!(tables.run(&copied), Ok(1));
    let select = format!("SELECT \"a\", \"b\", \"at\", \"tags\" FROM \"doc\".\"{table}\" ORDER BY \"a\"");
    let mut found: Vec<String> =
        tables.rows(&select).into_iter().map(|row| Value::Array(row).to_string()).collect();
    found.sort();
    let mut expected = [
        r#"[3,"y",null,null]"#,
        r#"[4,"z",null,null]"#,
        r#"[5,null,null,["t","u"]]"#,
        r#"[null,"x",1709164800000,null]"#,
    ];
    expected.sort_unstable();
    assert_eq!(found, expected);
    let written = tables.runtime.block_on(async {
        let rows = tables.context.sql("SELECT 7::int AS a, 'w' AS b").await?;
        rows.write_table(&format!("crate.{table}"), DataFrameWriteOptions::new()).await
    });
    assert_eq!(written.unwrap()[0].column(0).as_primitive::<UInt64Type>().value(0), 1);
}

#[test]
fn what_does_not_fit_is_refused_before_a_row_is_sent() {
    let tables = Tables::any(2);
    let table = tables.table();
    tables.rows(&format!("CREATE TABLE \"doc\".\"{table}\" (\"a\" INTEGER, \"b\" BOOLEAN)"));
    for (statement, parts) in [
        ("INSERT INTO crate.T SELECT true, false", &["column \"a\"", "INTEGER", "cast"][..]),
        ("INSERT INTO crate.T (c) SELECT 1", &["column \"c\" is not in the table"]),
        ("INSERT INTO crate.T (a, b) SELECT 1", &["the query has 1 columns, the insertion 2"]),
        ("INSERT INTO crate.T SELECT 1, true, 3 AS c", &["the query has 3 columns, the insertion 2"]),
        ("INSERT INTO crate.T_absent SELECT 1", &["the table does not exist", "create it"]),
        ("INSERT OVERWRITE crate.T SELECT 1, true", &["this form of INSERT", "tables of CrateDB"]),
        ("COPY (SELECT 1) TO crate.T STORED AS PARQUET", &["this form of COPY", "STORED AS PARQUET"]),
        ("COPY (SELECT 1) TO crate.T (a) OPTIONS ('x' 'y')", &["this form of COPY", "OPTIONS"]),
        ("CREATE TABLE crate.T AS SELECT 1 AS a", &["there is a table or view", "insert into it"]),
        ("CREATE TABLE crate.T_u (a int)", &["this form of CREATE TABLE"]),
        ("CREATE TABLE IF NOT EXISTS crate.T_u AS SELECT 1 AS a", &["this form of CREATE TABLE"]),
        (
            "CREATE TABLE crate.T_u AS SELECT 1 AS \"a.b\"",
            &["column \"a.b\"", "has a dot: rename it, 'a.b=a_b'"],
        ),
        ("SELECT count(*) FROM crate.T", &["tables of CrateDB take rows, and cannot be read"]),
    ] {
        let statement = statement.replace("crate.T", &format!("crate.{table}"));
        let error = tables.run(&statement).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{statement}: {error}");
        assert!(!error.contains("--rename"), "{statement}: {error}");
    }
    assert_eq!(tables.count(&table), 0);
    assert_eq!(tables.tables(&table), [table]);
}

#[test]
fn a_statement_that_fails_says_what_it_leaves() {
    let tables = Tables::any(1);
    let (created, keyless, keyed) = (tables.table(), tables.table(), tables.table());
    let fails = "SELECT n, 1 / (45000 - n) AS d FROM gen('contacts', 60000, number => 'n')";
    let error = tables.run(&format!("CREATE TABLE crate.{created} AS {fails}")).unwrap_err();
    assert!(error.to_lowercase().contains("divide by zero"), "{error}");
    assert!(error.ends_with("the table was not created, and no row of the statement was kept"), "{error}");
    assert_eq!(tables.tables(&created), [""; 0]);
    for (table, key, parts) in [
        (&keyless, "", &["would insert these rows again", "use a table with a primary key"][..]),
        (
            &keyed,
            " PRIMARY KEY",
            &["run the same statement again: it skips the rows that the table already has"],
        ),
    ] {
        tables.rows(&format!("CREATE TABLE \"doc\".\"{table}\" (\"n\" BIGINT{key}, \"d\" BIGINT)"));
        let error = tables.run(&format!("INSERT INTO crate.{table} {fails}")).unwrap_err();
        assert!(error.to_lowercase().contains("divide by zero"), "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        // It names the number of rows that are there: two requests.
        assert!(error.contains("40,000 rows of the statement are in the table; "), "{error}");
        assert_eq!(tables.count(table), 40_000);
    }
    let mends = "SELECT n, 0 AS d FROM gen('contacts', 60000, number => 'n') WHERE n >= 39000";
    assert_eq!(tables.run(&format!("INSERT INTO crate.{keyed} {mends}")), Ok(20_000));
    assert_eq!(tables.count(&keyed), 60_000);
}

#[test]
fn the_command_is_killed_in_the_middle_and_the_same_command_fills_the_table() {
    let tables = Tables::any(1);
    let (url, table) = (tables.url(), tables.table());
    let statement = format!("CREATE TABLE crate.{table} AS SELECT * FROM gen('contacts', rows => 400000)");
    let mut killed = sql(&["--to", &url, "--partitions", "2", &statement]).spawn().unwrap();
    let gathering = format!("{table}__sawmill_loading");
    wait_for("rows", || !tables.tables(&gathering).is_empty() && tables.count(&gathering) >= 40_000);
    // Another statement for the same table waits for nothing, and is refused.
    let error = refused(&sql(&["--to", &url, &statement]).output().unwrap());
    assert!(error.contains("another run is loading") && error.contains("run the statement again"), "{error}");
    killed.kill().unwrap();
    assert!(!killed.wait().unwrap().success());
    assert_eq!(tables.tables(&table), [gathering]);
    let made = sql(&["--to", &url, "--csv", &statement]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&made.stdout), "count\n400000\n", "{made:?}");
    assert_eq!(tables.count(&table), 400_000);
    assert_eq!(tables.tables(&table), [table]);
}

#[test]
fn the_command_takes_an_address_of_each_database_and_names_the_one_that_is_missing() {
    let tables = Tables::any(1);
    let error = refused(&sql(&["INSERT INTO crate.t SELECT 1"]).output().unwrap());
    assert!(error.contains("table `crate.t` needs a server: pass --to crate://host:4200"), "{error}");
    let both = ["--to", "crate://a:1", "--to", "crate://b:1", "INSERT INTO crate.t SELECT 1"];
    let error = refused(&sql(&both).output().unwrap());
    assert!(error.contains("there are two servers for the tables crate.*"), "{error}");
    let error =
        refused(&sql(&["--to", "crate://127.0.0.1:1", "INSERT INTO crate.t SELECT 1"]).output().unwrap());
    assert!(error.contains("127.0.0.1:1"), "{error}");
    let table = tables.table();
    let statement = format!("CREATE TABLE crate.{table} AS SELECT 1 AS a");
    let servers = ["--to", "postgres://me@localhost/none", "--to", &tables.url(), "--json", &statement];
    let made = sql(&servers).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&made.stdout), "{\"count\":1}\n", "{made:?}");
    assert_eq!(tables.count(&table), 1);
}
