//! `--bench`: how long decoding a file's footer takes, with this decoder and with the `parquet` crate's, in
//! one run.
//!
//! The footer is in memory. The decoders take turns, so that a machine that slows down slows all of them. The
//! time includes dropping the result.

use std::hint::black_box;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parquet::file::metadata::{ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy};
use sawmill_footer::{Footer, FooterBytes, Method, Options};
use sawmill_inspect::OpenFile;
use serde::Serialize;

use crate::interrupt;
use crate::screen::phases::{bytes, seconds, table, thousands};

/// The time for all decoders together, and the fewest and most runs of each.
const BUDGET: Duration = Duration::from_secs(3);
const MIN: usize = 3;
const MAX: usize = 1001;

/// Columns of a projection, spread evenly over the schema.
const PROJECTED: usize = 10;

/// A decoder and its median.
#[derive(Serialize)]
struct Timed {
    way: &'static str,
    median_seconds: f64,
    /// How many times as long the `parquet` crate takes with everything skipped.
    times_as_fast: f64,
}

/// The figures of a file.
#[derive(Serialize)]
pub(crate) struct Bench {
    footer_bytes: usize,
    column_chunks: usize,
    runs: usize,
    ways: Vec<Timed>,
}

/// A decoder by name; it returns whether it succeeded.
type Way<'a> = (&'static str, Box<dyn Fn() -> bool + 'a>);

/// The decoder that all are compared with.
const PEER: &str = "parquet crate, all statistics skipped";

pub(crate) fn bench(file: &OpenFile) -> Bench {
    let footer = file.footer();
    let bytes = Arc::new(footer.bytes().to_vec());
    let shared = FooterBytes::from(Arc::clone(&bytes));
    let leaves = footer.schema().num_leaves();
    let some: Vec<usize> = (0..PROJECTED.min(leaves)).map(|i| i * leaves / PROJECTED.min(leaves)).collect();
    let ours = |options: Options| -> Box<dyn Fn() -> bool + '_> {
        let shared = shared.clone();
        Box::new(move || black_box(Footer::decode(shared.clone(), &options)).is_ok())
    };
    let theirs = |options: ParquetMetaDataOptions| -> Box<dyn Fn() -> bool + '_> {
        let bytes = Arc::clone(&bytes);
        Box::new(move || {
            black_box(ParquetMetaDataReader::decode_metadata_with_options(&bytes, Some(&options))).is_ok()
        })
    };
    let skip = |policy: fn() -> ParquetStatisticsPolicy| {
        ParquetMetaDataOptions::new()
            .with_column_stats_policy(policy())
            .with_encoding_stats_policy(policy())
            .with_size_stats_policy(policy())
    };
    let statistics_of = |options: Options| -> Box<dyn Fn() -> bool + '_> {
        let shared = shared.clone();
        Box::new(move || {
            let Ok(footer) = Footer::decode(shared.clone(), &options) else { return false };
            let chunks = footer.row_groups().flat_map(|group| group.columns());
            chunks.fold(true, |fine, chunk| fine & black_box(chunk.statistics()).is_ok())
        })
    };
    let all_statistics = statistics_of(Options::new());
    let with_statistics = statistics_of(Options::new().columns(some.iter().copied()));
    let ways: Vec<Way<'_>> = vec![
        ("parquet crate, default", theirs(ParquetMetaDataOptions::new())),
        (PEER, theirs(skip(|| ParquetStatisticsPolicy::SkipAll))),
        ("sawmill, all chunks", ours(Options::new())),
        ("sawmill, all chunks, portable", ours(Options::new().method(Method::Portable))),
        ("sawmill, all chunks, a byte at a time", ours(Options::new().method(Method::Scalar))),
        ("sawmill, all chunks and their statistics", all_statistics),
        ("sawmill, all chunks, values checked", ours(Options::new().verify(sawmill_footer::Verify::Values))),
        ("sawmill, 10 columns with statistics", with_statistics),
        ("sawmill, first row group", ours(Options::new().row_groups(0..1))),
    ];
    measure(ways, footer.footer_len(), footer.num_columns() * footer.num_row_groups())
}

fn measure(ways: Vec<Way<'_>>, footer_bytes: usize, column_chunks: usize) -> Bench {
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    let mut works = vec![true; ways.len()];
    let started = Instant::now();
    let mut runs = 0;
    // The first round warms up caches and the allocator; it is not counted.
    for round in 0..=MAX {
        if interrupt::asked() || (round > MIN && started.elapsed() > BUDGET) {
            break;
        }
        for ((_, way), (times, works)) in ways.iter().zip(times.iter_mut().zip(&mut works)) {
            let before = Instant::now();
            *works &= way();
            if round > 0 {
                times.push(before.elapsed().as_secs_f64());
            }
        }
        runs = round;
    }
    let mut timed: Vec<Timed> = ways
        .iter()
        .zip(times.iter_mut().zip(works))
        // The time of a decoder that fails means nothing.
        .filter(|(_, (times, works))| *works && !times.is_empty())
        .map(|((way, _), (times, _))| {
            times.sort_by(f64::total_cmp);
            Timed { way, median_seconds: times[times.len() / 2], times_as_fast: 0.0 }
        })
        .collect();
    let peer = timed.iter().find(|timed| timed.way == PEER).map(|timed| timed.median_seconds);
    for timed in &mut timed {
        timed.times_as_fast = peer.map_or(0.0, |peer| peer / timed.median_seconds);
    }
    Bench { footer_bytes, column_chunks, runs, ways: timed }
}

/// The figures for people.
pub(crate) fn text(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let Bench { footer_bytes, column_chunks, runs, ways } = bench(file);
    writeln!(
        out,
        "a footer of {} with {} column chunks, in memory; medians of {} runs, including dropping the result",
        bytes(footer_bytes as u64),
        thousands(column_chunks as u64),
        thousands(runs as u64)
    )?;
    let mut rows = vec![["decoder", "median", "GB/s", "times as fast"].map(str::to_owned)];
    rows.extend(ways.iter().map(|Timed { way, median_seconds, times_as_fast }| {
        [
            (*way).to_owned(),
            seconds(Duration::from_secs_f64(*median_seconds)),
            format!("{:.2}", footer_bytes as f64 / median_seconds / 1e9),
            format!("{times_as_fast:.1}"),
        ]
    }));
    out.write_all(table(&rows).as_bytes())?;
    if !ways.iter().any(|timed| timed.way == PEER) {
        writeln!(out, "the parquet crate cannot decode this footer")?;
    }
    Ok(())
}
