//! `footer` as a table: what the files' footers state, compared with the `parquet` crate's metadata.

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::error::Result;
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use sawmill_datafusion::register;
use sawmill_generator::{Dataset, Job, Layout, Output, write};
use tempfile::TempDir;

fn context() -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(3).with_batch_size(100);
    let context = SessionContext::new_with_config(config);
    register(&context).unwrap();
    context
}

async fn rows(context: &SessionContext, sql: &str) -> Result<RecordBatch> {
    let frame = context.sql(sql).await?;
    let schema = frame.schema().inner().clone();
    Ok(concat_batches(&schema, &frame.collect().await?)?)
}

async fn number(sql: &str) -> i64 {
    rows(&context(), sql).await.unwrap().column(0).as_primitive::<Int64Type>().value(0)
}

fn numbers(rows: &RecordBatch, column: &str) -> Vec<Option<i64>> {
    rows.column_by_name(column).unwrap().as_primitive::<Int64Type>().iter().collect()
}

fn texts(rows: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let column = rows.column_by_name(column).unwrap().as_string_view();
    column.iter().map(|text| text.map(str::to_owned)).collect()
}

/// Files of `spec` with several row groups.
fn files_of(spec: &str, files: u64, folder: &Path) -> Vec<PathBuf> {
    let dataset = Dataset::built_in(spec).unwrap().unwrap();
    let profile = sawmill_profile::Profile::new();
    let layout = Layout::new(900 * files, files as u32).unwrap().with_row_group_rows(400).unwrap();
    let (output, phase, cancel) = (Output::Directory(folder.into()), profile.phase("write"), false.into());
    let threads = NonZeroUsize::new(1).unwrap();
    let written = write(&dataset, &Job { threads, ..Job::new(&layout, &output, &phase, &cancel) }).unwrap();
    assert_eq!(written.len() as u64, files);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    paths.sort();
    paths
}

fn metadata(path: &Path) -> ParquetMetaData {
    ParquetMetaDataReader::new().parse_and_finish(&File::open(path).unwrap()).unwrap()
}

/// 40 files of orders, and their metadata as the `parquet` crate reads it.
fn orders() -> (TempDir, Vec<(PathBuf, ParquetMetaData)>) {
    let folder = tempfile::tempdir().unwrap();
    let files = files_of("orders", 40, folder.path());
    let files = files.into_iter().map(|path| (path.clone(), metadata(&path))).collect();
    (folder, files)
}

/// A column chunk as the `parquet` crate sees it.
struct Row<'a> {
    path: &'a Path,
    row_group: i64,
    rows: i64,
    column: i64,
    chunk: &'a ColumnChunkMetaData,
}

#[tokio::test]
async fn a_row_is_a_column_chunk_as_another_reader_sees_it() {
    let (folder, files) = orders();
    let sql =
        format!(r#"SELECT * FROM footer('{}') ORDER BY file, row_group, "column""#, folder.path().display());
    let found = rows(&context(), &sql).await.unwrap();
    let mut expected = Vec::new();
    for (path, file) in &files {
        for (row_group, group) in file.row_groups().iter().enumerate() {
            for (column, chunk) in group.columns().iter().enumerate() {
                let row_group = row_group as i64;
                expected.push(Row { path, row_group, rows: group.num_rows(), column: column as i64, chunk });
            }
        }
    }
    assert_eq!(found.num_rows(), expected.len());
    let number = |column: &str, value: fn(&Row<'_>) -> Option<i64>| {
        assert_eq!(numbers(&found, column), expected.iter().map(value).collect::<Vec<_>>(), "{column}");
    };
    number("row_group", |row| Some(row.row_group));
    number("row_group_rows", |row| Some(row.rows));
    number("column", |row| Some(row.column));
    number("num_values", |row| Some(row.chunk.num_values()));
    number("compressed_bytes", |row| Some(row.chunk.compressed_size()));
    number("uncompressed_bytes", |row| Some(row.chunk.uncompressed_size()));
    number("data_page_offset", |row| Some(row.chunk.data_page_offset()));
    number("dictionary_page_offset", |row| row.chunk.dictionary_page_offset());
    number("null_count", |row| row.chunk.statistics()?.null_count_opt().map(|nulls| nulls as i64));
    let text = |column: &str, value: fn(&Row<'_>) -> String| {
        let expected: Vec<_> = expected.iter().map(|row| Some(value(row))).collect();
        assert_eq!(texts(&found, column), expected, "{column}");
    };
    text("path", |row| row.chunk.column_path().string());
    text("codec", |row| row.chunk.compression().to_string().split('(').next().unwrap().to_owned());
    text("file", |row| row.path.display().to_string());
}

#[tokio::test]
async fn bounds_are_text_as_people_write_values() {
    let (folder, _) = orders();
    let sql = format!(
        "SELECT path, min, max FROM footer('{}/*-00000*.parquet') WHERE row_group = 0 ORDER BY path",
        folder.path().display()
    );
    let found = rows(&context(), &sql).await.unwrap();
    for path in ["id", "status"] {
        let at = texts(&found, "path").iter().position(|found| found.as_deref() == Some(path)).unwrap();
        let (min, max) =
            (texts(&found, "min")[at].clone().unwrap(), texts(&found, "max")[at].clone().unwrap());
        assert!(min <= max && !min.starts_with("0x"), "{path}: {min} to {max}");
    }
}

#[tokio::test]
async fn a_row_is_a_row_group_or_a_file() {
    let (folder, files) = orders();
    let folder = folder.path().display();
    let sql = format!("SELECT * FROM footer('{folder}', level => 'row_group') ORDER BY file, row_group");
    let found = rows(&context(), &sql).await.unwrap();
    let groups: Vec<_> = files.iter().flat_map(|(_, file)| file.row_groups()).collect();
    let expected: Vec<_> = groups.iter().map(|group| Some(group.num_rows())).collect();
    assert_eq!(numbers(&found, "row_group_rows"), expected);
    let expected: Vec<_> = groups.iter().map(|group| Some(group.total_byte_size())).collect();
    assert_eq!(numbers(&found, "uncompressed_bytes"), expected);

    let sql = format!("SELECT * FROM footer('{folder}', level => 'file') ORDER BY file");
    let found = rows(&context(), &sql).await.unwrap();
    let each =
        |value: fn(&(PathBuf, ParquetMetaData)) -> i64| files.iter().map(|file| Some(value(file))).collect();
    let expected: Vec<_> = each(|(_, file)| file.file_metadata().num_rows());
    assert_eq!(numbers(&found, "num_rows"), expected);
    let expected: Vec<_> = each(|(_, file)| file.num_row_groups() as i64);
    assert_eq!(numbers(&found, "num_row_groups"), expected);
    let expected: Vec<_> = each(|(path, _)| std::fs::metadata(path).unwrap().len() as i64);
    assert_eq!(numbers(&found, "file_bytes"), expected);
    let expected: Vec<_> = each(|(_, file)| file.file_metadata().schema_descr().num_columns() as i64);
    assert_eq!(numbers(&found, "num_columns"), expected);
    let created: Vec<_> =
        files.iter().map(|(_, file)| file.file_metadata().created_by().map(str::to_owned)).collect();
    assert_eq!(texts(&found, "created_by"), created);
}

#[tokio::test]
async fn conditions_reach_the_decoder_and_the_list_of_files() {
    let (folder, files) = orders();
    let groups: usize = files.iter().map(|(_, file)| file.num_row_groups()).sum();
    let folder = folder.path().display();
    let context = context();
    let sql = format!(
        "SELECT file FROM footer('{folder}') WHERE path IN ('id', 'status') AND row_group >= 1 AND file LIKE '%-00007%'"
    );
    let plan = context.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
    let plan = displayable(plan.as_ref()).indent(false).to_string();
    assert!(plan.contains("FooterRows: level=Chunk, columns=[file,"), "{plan}");
    assert!(plan.contains("paths=[id, status], row_groups=1.."), "{plan}");
    assert!(plan.contains("DataSourceExec: partitions=1"), "{plan}");
    assert_eq!(rows(&context, &sql).await.unwrap().num_rows(), 2 * (groups / files.len() - 1));
    let count = |condition: &str| format!("SELECT count(*) FROM footer('{folder}') WHERE {condition}");
    assert_eq!(number(&count("path = 'id'")).await, groups as i64);
    // A condition that contradicts another, a path that no file has, a row group that no file has.
    assert_eq!(number(&count("path = 'id' AND path = 'status'")).await, 0);
    assert_eq!(number(&count("path = 'nothing'")).await, 0);
    assert_eq!(number(&count("row_group > 50")).await, 0);
    assert_eq!(number(&count("row_group < 0")).await, 0);
}

#[tokio::test]
async fn files_of_different_columns_are_one_table() {
    let folder = tempfile::tempdir().unwrap();
    for spec in ["contacts", "orders"] {
        std::fs::create_dir(folder.path().join(spec)).unwrap();
        files_of(spec, 20, &folder.path().join(spec));
    }
    let pattern = folder.path().join("**/*.parquet").display().to_string();
    let sql = format!("SELECT count(*) FROM footer('{pattern}') WHERE path IN ('status', 'name')");
    assert_eq!(number(&sql).await, 2 * 20 * 3);
    let sql = format!("SELECT sum(num_rows) FROM footer('{pattern}', level => 'file')");
    assert_eq!(number(&sql).await, 2 * 20 * 900);
}

#[tokio::test]
async fn a_limit_reads_no_more_files_than_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let files = files_of("orders", 3, folder.path());
    // The last file is not a Parquet file, but the limit keeps the query from reading it.
    std::fs::write(&files[2], "PAR1 nothing PAR1").unwrap();
    let pattern = folder.path().display();
    let found =
        rows(&context(), &format!("SELECT * FROM footer('{pattern}', 'file') LIMIT 2")).await.unwrap();
    assert_eq!(found.num_rows(), 2);
    let found = rows(&context(), &format!("SELECT * FROM footer('{pattern}') LIMIT 7")).await.unwrap();
    assert_eq!(found.num_rows(), 7);
}

#[tokio::test]
async fn a_file_that_is_damaged_or_missing_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let files = files_of("orders", 3, folder.path());
    std::fs::write(&files[1], "PAR1 nothing PAR1").unwrap();
    let pattern = folder.path().display();
    for level in ["chunk", "row_group", "file"] {
        let sql = format!("SELECT * FROM footer('{pattern}', level => '{level}')");
        let error = rows(&context(), &sql).await.unwrap_err().to_string();
        assert!(error.contains(&files[1].display().to_string()), "{error}");
    }
    for (call, expected) in [
        ("footer('/nothing/here')", "/nothing/here"),
        ("footer('/nothing/*.parquet')", "no Parquet file matches /nothing/*.parquet"),
        (
            "footer('data', level => 'page')",
            "no such level - page - give one of 'chunk', 'row_group', 'file'",
        ),
        ("footer('data', levels => 'file')", "no such argument - footer(.. levels => ..)"),
        ("footer()", "the files are missing"),
        ("footer('ftp://bucket/a')", "files cannot be read from ftp://"),
    ] {
        let error = rows(&context(), &format!("SELECT * FROM {call}")).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{call}: {error}");
    }
}
