//! `gen` as a table: the rows of the generator, only those and only the fields that a query needs.

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::error::Result;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use sawmill_datafusion::{GeneratedTable, register};
use sawmill_generator::{BUILT_IN, Dataset};

fn context(partitions: usize) -> SessionContext {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(partitions));
    register(&context).unwrap();
    context
}

async fn rows(context: &SessionContext, sql: &str) -> Result<RecordBatch> {
    let frame = context.sql(sql).await?;
    let schema = frame.schema().inner().clone();
    Ok(concat_batches(&schema, &frame.collect().await?)?)
}

async fn number(context: &SessionContext, sql: &str) -> i64 {
    rows(context, sql).await.unwrap().column(0).as_primitive::<Int64Type>().value(0)
}

async fn physical(context: &SessionContext, sql: &str) -> String {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

/// The rows as the generator makes them.
fn generated(spec: &str, rows: std::ops::Range<u64>, seed: u64) -> RecordBatch {
    generated_at(spec, None, rows, seed)
}

/// The same at a scale.
fn generated_at(spec: &str, scale: Option<f64>, rows: std::ops::Range<u64>, seed: u64) -> RecordBatch {
    let dataset = Dataset::named(spec, scale).unwrap();
    let batches: Vec<_> = dataset.batches(rows, seed, 4096).map(|batch| batch.unwrap()).collect();
    concat_batches(&dataset.arrow_schema(), &batches).unwrap()
}

#[tokio::test]
async fn a_table_has_the_rows_of_the_generator_in_any_number_of_partitions() {
    for (spec, _) in BUILT_IN {
        let expected = generated(spec, 0..10_000, 7);
        for partitions in [1, 3, 16] {
            let sql = format!(
                "SELECT * FROM gen('{spec}', rows => 1e4, seed => 7, number => 'row_number') ORDER BY 1"
            );
            let found = rows(&context(partitions), &sql).await.unwrap();
            assert!(found.columns()[1..] == *expected.columns(), "{spec} in {partitions} partitions");
            let numbers = found.column(0).as_primitive::<Int64Type>();
            assert!(numbers.values().iter().copied().eq(0..10_000), "{spec} in {partitions} partitions");
        }
    }
}

#[tokio::test]
async fn tables_of_tpc_h_have_its_rows_in_any_number_of_partitions() {
    for (table, total) in [("nation", 25), ("partsupp", 8000), ("orders", 15_000), ("lineitem", 60_175)] {
        let expected = generated_at(&format!("tpch/{table}"), Some(0.01), 0..total, 42);
        let call = format!("gen('tpch/{table}', scale => 0.01, number => 'n')");
        for partitions in [1, 3, 16] {
            let context = context(partitions);
            let found = rows(&context, &format!("SELECT * FROM {call} ORDER BY 1")).await.unwrap();
            assert!(found.columns()[1..] == *expected.columns(), "{table} in {partitions} partitions");
            let sql = format!("SELECT count(*) FROM {call}");
            assert_eq!(number(&context, &sql).await, total as i64);
            assert!(!physical(&context, &sql).await.contains("GeneratedRows"), "the statistics have it");
        }
    }
    // One column, some rows, and the first ones.
    let expected = generated_at("tpch/lineitem", Some(0.01), 50_000..50_010, 42);
    let sql = "SELECT l_comment FROM gen('tpch/lineitem', scale => 0.01, number => 'n') \
               WHERE n BETWEEN 50000 AND 50009 ORDER BY n";
    let found = rows(&context(3), sql).await.unwrap();
    assert_eq!(found.column(0), expected.column_by_name("l_comment").unwrap());
    let first = rows(&context(1), "SELECT * FROM gen('tpch/orders', scale => 10) LIMIT 7").await.unwrap();
    assert_eq!(first.columns(), generated_at("tpch/orders", Some(10.0), 0..7, 42).columns());
}

#[tokio::test]
async fn tables_of_a_spec_have_its_rows_and_join() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.toml");
    let spec = r#"
        name = "shop"
        [[tables]]
        name = "customers"
        rows = 1_000
        fields = [{ name = "id", type = "int64", values = { sequence = { start = 1 } } }]
        [[tables]]
        name = "orders"
        per = { table = "customers", rows = { uniform = { min = 0, max = 6 } } }
        fields = [
            { name = "id", type = "int64", values = { sequence = { start = 1 } } },
            { name = "customer", type = "int64", values = { parent = "id" } },
        ]"#;
    std::fs::write(&file, spec).unwrap();
    let shop = file.display();
    for (scale, total) in [(None, 3000), (Some(7.5), 22_500)] {
        let scale_of = scale.map(|scale| format!(", scale => {scale}")).unwrap_or_default();
        let expected = generated_at(&format!("{shop}/orders"), scale, 0..total, 7);
        let orders = format!("gen('{shop}/orders', seed => 7, number => 'n'{scale_of})");
        let customers = format!("gen('{shop}/customers', seed => 7{scale_of})");
        for partitions in [1, 3, 16] {
            let context = context(partitions);
            let found = rows(&context, &format!("SELECT * FROM {orders} ORDER BY n")).await.unwrap();
            assert!(found.columns()[1..] == *expected.columns(), "{scale:?} in {partitions} partitions");
            let joined = format!("SELECT count(*) FROM {orders} o JOIN {customers} c ON o.customer = c.id");
            assert_eq!(number(&context, &joined).await, total as i64);
        }
    }
    for (call, expected) in [
        (format!("gen('{shop}')"), "customers, orders"),
        (format!("gen('{shop}/items')"), "its tables are customers, orders"),
        (format!("gen('{shop}/orders', rows => 3001)"), "3001 rows of orders, which has 3000"),
        (format!("gen('{shop}/orders', scale => 0)"), "a scale that is not above 0"),
    ] {
        let error = context(1).sql(&format!("SELECT * FROM {call}")).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{call}: {error}");
    }
}

#[tokio::test]
async fn arguments_have_places_and_names() {
    // Partitions come in any order.
    let context = context(1);
    let by_place = rows(&context, "SELECT * FROM gen('contacts', 2000, 7) LIMIT 2000").await.unwrap();
    let by_name =
        rows(&context, "SELECT g.* FROM gen(seed => 7, spec => 'contacts', rows => 2e3) AS g LIMIT 2000");
    assert_eq!(by_place, by_name.await.unwrap());
    for (call, expected) in [
        ("gen('contacts', rows => 1.5)", "not a whole number from 0 up - gen(.. rows => ..)"),
        ("gen('contacts', rows => 1e19)", "an argument is too large - gen(.. rows => ..)"),
        ("gen('contacts', rows => -1)", "not a whole number from 0 up - gen(.. rows => ..)"),
        ("gen('contacts', rows => 'many')", "not a whole number from 0 up - gen(.. rows => ..)"),
        ("gen('contacts', 5, rows => 6)", "given twice - gen(.. rows => ..)"),
        (
            "gen('contacts', 5, sed => 6)",
            "no such argument - gen(.. sed => ..) - the arguments of gen are: spec, rows",
        ),
        ("gen('contacts', 5, 6, 7)", "no such argument - gen, argument 4"),
        ("gen('contacts')", "the number of rows is missing"),
        ("gen()", "the dataset is missing"),
        ("gen(7)", "not text - gen, argument 1"),
        (
            "gen('contact', 5)",
            "contact - give a TOML file (SPEC/TABLE if it has several tables) or a built-in dataset: contacts, orders",
        ),
        ("gen('contacts', 5, number => 'name')", "the name of a field - name"),
        ("gen('contacts', 5, partitions => 0)", "partitions"),
        ("gen('contacts', 5, scale => 2)", "a scale for a dataset that has a single table - contacts"),
        ("gen('tpch/orders', scale => 'x')", "an argument is not a number - gen(.. scale => ..)"),
        ("gen('tpch/orders', scale => -1)", "a scale factor of -1"),
        ("gen('tpch/orders', 5)", "rows or seed for a table of TPC-H - orders"),
        ("gen('tpch/orders', seed => 5)", "rows or seed for a table of TPC-H - orders"),
        ("gen('tpch/order')", "the tables are region, nation"),
        ("gen('tpch', scale => 1)", "name one: tpch/region, tpch/nation"),
    ] {
        let error = context.sql(&format!("SELECT * FROM {call}")).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{call}: {error}");
    }
}

#[tokio::test]
async fn a_count_reads_the_statistics_and_makes_no_row() {
    let context = context(4);
    let sql = "SELECT count(*) FROM gen('contacts', rows => 1e15)";
    assert_eq!(number(&context, sql).await, 1_000_000_000_000_000);
    let sql =
        "SELECT count(*) FROM gen('contacts', rows => 1e15, number => 'n') WHERE n >= 10 AND n < 1e3::bigint";
    assert_eq!(number(&context, sql).await, 990);
    assert!(!physical(&context, sql).await.contains("GeneratedRows"));
}

#[tokio::test]
async fn a_projection_draws_the_fields_that_it_names() {
    let context = context(2);
    let sql = "SELECT name FROM gen('contacts', rows => 5000, seed => 7)";
    let plan = physical(&context, sql).await;
    assert!(plan.contains("columns=[name]"), "{plan}");
    // The plan has the units below the operator, in memory.
    assert!(plan.contains("DataSourceExec: partitions=2"), "{plan}");
    let sql = "SELECT name FROM gen('contacts', 5000, 7, number => 'n') ORDER BY n";
    let expected = generated("contacts", 0..5000, 7);
    let found = rows(&context, sql).await.unwrap();
    assert_eq!(found.column(0), expected.column_by_name("name").unwrap());
}

#[tokio::test]
async fn conditions_on_the_row_number_choose_the_rows_that_are_made() {
    let context = context(3);
    for (condition, expected) in [
        ("n >= 999999999990", (999_999_999_990..1_000_000_000_000).collect::<Vec<i64>>()),
        ("n BETWEEN 5000 AND 5003", vec![5000, 5001, 5002, 5003]),
        ("n IN (7, 123456789, 7)", vec![7, 123_456_789]),
        ("n < 3 OR n = 1024", vec![0, 1, 2, 1024]),
        ("n < 0", vec![]),
        ("n < 100 AND n % 40 = 0", vec![0, 40, 80]),
    ] {
        let sql = format!(
            "SELECT n, name FROM gen('contacts', rows => 1e12, seed => 7, number => 'n') WHERE {condition} ORDER BY n"
        );
        let found = rows(&context, &sql).await.unwrap();
        assert_eq!(found.column(0).as_primitive::<Int64Type>().values().to_vec(), expected, "{condition}");
        for (place, row) in expected.iter().enumerate() {
            let row = *row as u64;
            let expected = generated("contacts", row..row + 1, 7);
            assert_eq!(
                &found.column(1).slice(place, 1),
                expected.column_by_name("name").unwrap(),
                "row {row}"
            );
        }
    }
}

#[tokio::test]
async fn a_limit_is_the_first_rows_and_ends_the_work() {
    // Partitions come in any order.
    let sql = "SELECT * FROM gen('orders', rows => 1e15, seed => 7) LIMIT 1500";
    let context = context(1);
    assert_eq!(rows(&context, sql).await.unwrap().columns(), generated("orders", 0..1500, 7).columns());
    let context = self::context(4);
    let sql = "SELECT count(*) FROM (SELECT n FROM gen('orders', rows => 1e15, number => 'n') LIMIT 1500) WHERE n < 1500";
    assert_eq!(number(&context, sql).await, 1500);
    // The limit is above the filter, so the number of rows to make is not known beforehand.
    let sql = "SELECT n FROM gen('orders', rows => 1e15, number => 'n') WHERE n % 1000 = 999 LIMIT 5";
    assert_eq!(rows(&context, sql).await.unwrap().num_rows(), 5);
}

#[tokio::test]
async fn providers_are_tables_of_dataframes_too() {
    let context = context(2);
    let table = GeneratedTable::new("contacts").unwrap().with_rows(3000).with_seed(7).with_partitions(5);
    let table = table.with_row_number("n").unwrap();
    context.register_table("contacts", std::sync::Arc::new(table)).unwrap();
    let plan = physical(&context, "SELECT max(name) FROM contacts").await;
    assert!(plan.contains("DataSourceExec: partitions=3"), "{plan}");
    assert_eq!(number(&context, "SELECT sum(n) FROM contacts").await, 2999 * 1500);
    // TPC-H tables have a fixed number of rows, and asking for more adds none.
    let regions = GeneratedTable::with_scale("tpch/region", 0.1).unwrap().with_rows(100);
    context.register_table("regions", std::sync::Arc::new(regions)).unwrap();
    assert_eq!(number(&context, "SELECT count(*) FROM regions").await, 5);
}

#[tokio::test]
async fn a_value_that_its_column_cannot_hold_is_an_error_with_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    let spec = r#"
        name = "d"
        fields = [
            { name = "n", type = "int64", values = { sequence = {} } },
            { name = "x", type = "int32", values = { expression = "n * 1_000_000" } },
        ]"#;
    std::fs::write(&file, spec).unwrap();
    let sql = format!("SELECT sum(x) FROM gen('{}', rows => 5000)", file.display());
    let error = rows(&context(1), &sql).await.unwrap_err().to_string();
    assert!(error.contains("2148000000 does not fit int32") && error.contains("row 2148"), "{error}");
    // A query that does not use the column does not draw it.
    let sql = format!("SELECT sum(n) FROM gen('{}', rows => 5000)", file.display());
    assert_eq!(number(&context(1), &sql).await, 4999 * 2500);
}
