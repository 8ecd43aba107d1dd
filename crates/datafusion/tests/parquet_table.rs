//! `parquet` as a table: the rows that DataFusion's own reader finds, through footers decoded for the scan's columns.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float32Array, Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use sawmill_datafusion::register;
use sawmill_generator::{Dataset, Job, Layout, Output};

fn context() -> SessionContext {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(3));
    register(&context).unwrap();
    context
}

async fn rows(context: &SessionContext, sql: &str) -> Result<String> {
    let rows = context.sql(sql).await?.collect().await?;
    Ok(pretty_format_batches(&rows)?.to_string())
}

fn generate(spec: &str, folder: &Path) {
    let dataset = Dataset::built_in(spec).unwrap().unwrap();
    let profile = sawmill_profile::Profile::new();
    let layout = Layout::new(12_000, 5).unwrap().with_row_group_rows(700).unwrap();
    let (output, phase, cancel) = (Output::Directory(folder.into()), profile.phase("write"), false.into());
    sawmill_generator::write(&dataset, &Job::new(&layout, &output, &phase, &cancel)).unwrap();
}

fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, values)| (name, values, true)),
    );
    let batch = batch.unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(3)).build();
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[tokio::test]
async fn rows_are_those_of_the_engines_own_reader() {
    for (spec, queries) in [
        (
            "contacts",
            &[
                "SELECT count(*) FROM t",
                "SELECT count(*), count(name), min(name), max(name) FROM t",
                "SELECT name, phones FROM t ORDER BY name, phones LIMIT 50",
                "SELECT name FROM t WHERE name LIKE 'A%' ORDER BY name",
            ][..],
        ),
        (
            "orders",
            &[
                "SELECT * FROM t ORDER BY id LIMIT 100",
                "SELECT status, count(*), sum(id) FROM t GROUP BY status ORDER BY status",
                "SELECT id, items FROM t WHERE id BETWEEN 5000 AND 5010 AND status IS NOT NULL ORDER BY id",
                "SELECT count(*) FROM t WHERE id > 11000",
            ],
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        generate(spec, folder.path());
        let folder = folder.path().display().to_string();
        let theirs = context();
        theirs.register_parquet("t", &folder, ParquetReadOptions::default()).await.unwrap();
        for query in queries {
            let expected = rows(&theirs, query).await.unwrap();
            let ours = query.replace("FROM t", &format!("FROM parquet('{folder}') AS t"));
            assert_eq!(rows(&context(), &ours).await.unwrap(), expected, "{ours}");
        }
    }
}

#[tokio::test]
async fn three_of_many_columns_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wide.parquet");
    let names: Vec<String> = (0..3000).map(|column| format!("c{column:04}")).collect();
    let column = |at: usize| -> ArrayRef {
        Arc::new(Float32Array::from_iter_values((0..10).map(|row| (at + row) as f32)))
    };
    write(&file, names.iter().enumerate().map(|(at, name)| (name.as_str(), column(at))).collect());
    let sql = format!("SELECT c2999, c0500 FROM parquet('{}') WHERE c0007 >= 14 ORDER BY 1", file.display());
    let expected = "\
+--------+-------+
| c2999  | c0500 |
+--------+-------+
| 3006.0 | 507.0 |
| 3007.0 | 508.0 |
| 3008.0 | 509.0 |
+--------+-------+";
    assert_eq!(rows(&context(), &sql).await.unwrap(), expected);
}

#[tokio::test]
async fn a_file_may_lack_columns_of_the_first_one() {
    let folder = tempfile::tempdir().unwrap();
    let (numbers, texts): (ArrayRef, ArrayRef) =
        (Arc::new(Int64Array::from(vec![1, 2])), Arc::new(StringArray::from(vec!["a", "b"])));
    write(&folder.path().join("1.parquet"), vec![("n", Arc::clone(&numbers)), ("t", texts)]);
    write(&folder.path().join("2.parquet"), vec![("n", numbers)]);
    let files = folder.path().display();
    for (sql, expected) in [
        (format!("SELECT count(*), count(n), count(t) FROM parquet('{files}')"), "| 4        | 4"),
        (format!("SELECT count(*) FROM parquet('{files}') WHERE t IS NULL"), "| 2 "),
        (format!("SELECT count(t) FROM parquet('{files}')"), "| 2 "),
    ] {
        let found = rows(&context(), &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(found.contains(expected), "{sql}\n{found}");
    }
}

#[tokio::test]
async fn files_that_disagree_on_a_type_are_read_if_no_value_changes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let files = folder.path().display().to_string();
    write(&at("1.parquet"), vec![("n", Arc::new(Int64Array::from(vec![1, 2])))]);
    write(&at("2.parquet"), vec![("n", Arc::new(Int32Array::from(vec![3])))]);
    let sum = format!("SELECT sum(n) FROM parquet('{files}')");
    assert!(rows(&context(), &sum).await.unwrap().contains("| 6 "));
    write(
        &at("3.parquet"),
        vec![("n", Arc::new(Float32Array::from(vec![1.5]))), ("m", Arc::new(Int64Array::from(vec![1])))],
    );
    let error = rows(&context(), &sum).await.unwrap_err().to_string();
    for part in ["3.parquet", "column \"n\" is Float32, but Int64 in the first file"] {
        assert!(error.contains(part), "{error}");
    }
    // Columns that are not read do not matter.
    assert!(rows(&context(), &sum.replace("sum(n)", "count(*)")).await.unwrap().contains("| 4 "));
}

#[tokio::test]
async fn a_file_that_is_damaged_or_missing_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    generate("orders", folder.path());
    let damaged = folder.path().join("zz.parquet");
    std::fs::write(&damaged, "PAR1 nothing PAR1").unwrap();
    let sql = format!("SELECT sum(id) FROM parquet('{}')", folder.path().display());
    let error = rows(&context(), &sql).await.unwrap_err().to_string();
    assert!(error.contains(&damaged.display().to_string()), "{error}");
    // Pages are damaged, the footer is not.
    std::fs::remove_file(&damaged).unwrap();
    let file = folder.path().join("orders-00003.parquet");
    let mut bytes = std::fs::read(&file).unwrap();
    let half = bytes.len() / 2;
    bytes[1000..half].iter_mut().for_each(|byte| *byte ^= 0x5a);
    std::fs::write(&file, bytes).unwrap();
    let error = rows(&context(), &sql.replace("sum(id)", "*")).await.unwrap_err().to_string();
    assert!(error.contains(&format!("- {} - restore the file", file.display())), "{error}");
    let error =
        rows(&context(), "SELECT * FROM parquet('/nothing/*.parquet')").await.unwrap_err().to_string();
    assert!(error.contains("no Parquet file matches /nothing/*.parquet"), "{error}");
    let error = rows(&context(), "SELECT * FROM parquet('')").await.unwrap_err().to_string();
    assert!(error.contains("the path is empty"), "{error}");
}

#[tokio::test]
async fn a_page_that_is_larger_than_one_may_be_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.parquet");
    let (numbers, texts): (ArrayRef, ArrayRef) = (
        Arc::new(Int64Array::from(vec![1, 2])),
        Arc::new(StringArray::from(vec!["x".repeat(3000), "y".repeat(3000)])),
    );
    write(&file, vec![("n", numbers), ("t", texts)]);
    let name = file.display();
    let all = format!("SELECT count(t), max(n) FROM parquet('{name}')");
    assert!(rows(&context(), &all).await.unwrap().contains("| 2        | 2 "));
    let limited = |what: &str| format!("SELECT {what} FROM parquet('{name}', max_page => 1000)");
    // Of other columns nothing is checked.
    assert!(rows(&context(), &limited("max(n)")).await.unwrap().contains("| 2 "));
    for sql in [limited("max(t)"), limited("t") + " WHERE n = 2"] {
        let error = rows(&context(), &sql).await.unwrap_err().to_string();
        for part in
            ["expected pages of at most 1000 bytes", &name.to_string(), "row group 0, column t, page 0"]
        {
            assert!(error.contains(part), "{sql}: {part} in {error}");
        }
    }
}
