//! A query over Parquet files through our footers and through DataFusion's own reader, in turn: from nothing to the
//! last row, in a new session each time.
//!
//! ```sh
//! cargo run --manifest-path crates/datafusion/Cargo.toml --example parquet_tables -- /tmp/wide "sum(c0), sum(c99)"
//! ```

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use sawmill_datafusion::ParquetTable;

/// Counted turns, after one that is not.
const TURNS: usize = 5;

fn context() -> SessionContext {
    SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2))
}

/// The time of a query, and its rows.
async fn query(context: SessionContext, columns: &str, started: Instant) -> Result<(Duration, String)> {
    let rows = context.sql(&format!("SELECT {columns} FROM t")).await?.collect().await?;
    Ok((started.elapsed(), pretty_format_batches(&rows)?.to_string()))
}

async fn ours(files: &str, columns: &str) -> Result<(Duration, String)> {
    let (started, context) = (Instant::now(), context());
    context.register_table("t", Arc::new(ParquetTable::new(files)?))?;
    query(context, columns, started).await
}

async fn theirs(files: &str, columns: &str) -> Result<(Duration, String)> {
    let (started, context) = (Instant::now(), context());
    context.register_parquet("t", files, ParquetReadOptions::default()).await?;
    query(context, columns, started).await
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(files), Some(columns)) = (arguments.next(), arguments.next()) else {
        return Err("give the files, and the columns to select".into());
    };
    let (mut our_times, mut their_times, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..=TURNS {
        let (our_time, our_rows) = ours(&files, &columns).await?;
        let (their_time, their_rows) = theirs(&files, &columns).await?;
        if our_rows != their_rows {
            return Err(format!("the rows differ:\n{our_rows}\n{their_rows}").into());
        }
        if turn > 0 {
            let (our_time, their_time) = (our_time.as_secs_f64(), their_time.as_secs_f64());
            our_times.push(our_time);
            their_times.push(their_time);
            ratios.push(their_time / our_time);
        }
    }
    println!("{our}", our = ours(&files, &columns).await?.1);
    let (ours, theirs) = (median(our_times), median(their_times));
    println!("ours {ours:.3} s, DataFusion's {theirs:.3} s, ratio {:.1}", median(ratios));
    Ok(())
}
