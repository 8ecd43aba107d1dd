//! SQL over wide Parquet files, through DataFusion's own format and through one that decodes footers with
//! `sawmill-footer`: seconds from a new session to the last row, and of the same query again in that session.
//!
//! ```sh
//! sawmill gen fixtures/hits.toml --rows 1M --files 100 --out /tmp/hits       # as ClickBench's hits_partitioned
//! sawmill gen wide:10000 --rows 1000 --row-group-rows 100 --out /tmp/wide
//! cd crates/footer/examples/datafusion
//! cargo run --release -- /tmp/hits queries/hits.sql
//! cargo run --release -- /tmp/wide queries/wide.sql
//! ```
//!
//! Each line of the second argument is a query of the table `hits` or `t`, which are the same. Ways take turns, and
//! their rows are compared.

mod format;

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::file_format::{FileFormat, parquet::ParquetFormat};
use datafusion::datasource::listing::ListingOptions;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use format::FooterFormat;

/// Counted turns, after one that is not.
const TURNS: usize = 7;

const TABLES: [&str; 2] = ["hits", "t"];

/// The ways, of which the last one is the peer.
#[derive(Clone, Copy)]
enum Way {
    Sawmill,
    /// DataFusion's format, which does not infer statistics of files that plans would use.
    WithoutStatistics,
    DataFusion,
}

const WAYS: [(&str, Way); 3] = [
    ("sawmill", Way::Sawmill),
    ("DataFusion, no statistics", Way::WithoutStatistics),
    ("DataFusion", Way::DataFusion),
];

/// The seconds of a query in a new session and again in the same session, and its rows.
async fn query(way: Way, files: &str, sql: &str) -> Result<([f64; 2], String)> {
    let started = Instant::now();
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .with_collect_statistics(matches!(way, Way::DataFusion));
    let context = SessionContext::new_with_config(config);
    let format: Arc<dyn FileFormat> = match way {
        Way::Sawmill => Arc::new(FooterFormat::default()),
        _ => Arc::new(ParquetFormat::default()),
    };
    let options = ListingOptions::new(format);
    let name = TABLES.iter().find(|name| sql.contains(&format!("FROM {name}"))).unwrap_or(&TABLES[1]);
    context.register_listing_table(*name, files, options, None, None).await?;
    let rows = context.sql(sql).await?.collect().await?;
    let first = started.elapsed().as_secs_f64();
    let started = Instant::now();
    context.sql(sql).await?.collect().await?;
    Ok(([first, started.elapsed().as_secs_f64()], pretty_format_batches(&rows)?.to_string()))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints the medians of a query as a row of a table.
async fn measure(files: &str, sql: &str, turns: usize) -> Result<(), Box<dyn Error>> {
    let mut seconds = vec![[const { Vec::new() }; 2]; WAYS.len()];
    for turn in 0..=turns {
        let mut expected: Option<String> = None;
        for step in 0..WAYS.len() {
            let at = (step + turn) % WAYS.len();
            let (took, rows) = query(WAYS[at].1, files, sql).await?;
            if expected.get_or_insert_with(|| rows.clone()) != &rows {
                return Err(format!("the rows of {sql} differ: {rows}").into());
            }
            if turn > 0 {
                seconds[at].iter_mut().zip(took).for_each(|(all, one)| all.push(one));
            }
        }
    }
    let cells: Vec<String> = seconds
        .into_iter()
        .map(|[first, again]| format!("{:.3} / {:.3}", median(first), median(again)))
        .collect();
    println!("| `{sql}` | {} |", cells.join(" | "));
    Ok(())
}

async fn measure_all(files: &str, queries: &str, turns: usize) -> Result<(), Box<dyn Error>> {
    let names: Vec<&str> = WAYS.iter().map(|(name, _)| *name).collect();
    println!(
        "Seconds: in a new session / again\n\n| query | {} |\n|---|{}",
        names.join(" | "),
        "---|".repeat(WAYS.len())
    );
    for sql in queries.lines().filter(|line| !line.trim().is_empty()) {
        measure(files, sql, turns).await?;
    }
    Ok(())
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(files), Some(queries)) = (arguments.next(), arguments.next()) else {
        return Err("give a directory of Parquet files, and a file of queries".into());
    };
    measure_all(&files, &std::fs::read_to_string(queries)?, TURNS).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, Float32Array, RecordBatch, StringArray};
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::file::properties::WriterProperties;

    /// Files of 300 columns and four row groups, of which the columns `c1` and `c299` are text.
    fn write(path: &std::path::Path, file: usize) {
        let column = |at: usize| -> (String, ArrayRef) {
            let rows = (0..20).map(|row| at + row + 100 * file);
            let values: ArrayRef = match at {
                1 | 299 => Arc::new(StringArray::from_iter_values(rows.map(|row| format!("text {row}")))),
                _ => Arc::new(Float32Array::from_iter_values(rows.map(|row| row as f32))),
            };
            (format!("c{at}"), values)
        };
        let batch = RecordBatch::try_from_iter((0..300).map(column)).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(5)).build();
        let file = std::fs::File::create(path.join(format!("{file}.parquet"))).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    #[tokio::test]
    async fn both_formats_return_the_same_rows() {
        let directory = tempfile::tempdir().unwrap();
        (0..3).for_each(|file| write(directory.path(), file));
        let queries = "SELECT count(*) FROM t
            SELECT c7, c1 FROM t WHERE c250 >= 260 ORDER BY c7 LIMIT 9
            SELECT c299, max(c0) FROM t WHERE c1 <> 'text 3' GROUP BY c299 ORDER BY 1
            SELECT a.c2, b.c3 FROM t a JOIN t b ON a.c4 = b.c5 ORDER BY 1, 2
            SELECT * FROM t WHERE c1 = 'text 104'";
        measure_all(directory.path().to_str().unwrap(), queries, 1).await.unwrap();
    }
}
