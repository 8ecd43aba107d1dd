//! Measures the table of `docs/footer.md`: decodes each footer in all ways, interleaved.
//!
//! `cargo bench -p sawmill-benches --bench footer_table [-- WORDS]` selects the footers whose names contain one of
//! the words, by default all of up to 10,000 columns; `SAWMILL_BIG=1` adds footers of 100,000 (240 MB each). Other
//! work on the machine slows down interleaved ways alike, so their ratios are steadier than with ways measured one
//! after the other. The feature `old-peers` adds the releases 56 and 57 of the `parquet` crate, in every fifth
//! round. Every time includes dropping the result.

#[path = "../crates/footer/tests/footer/synthetic.rs"]
mod synthetic;
#[path = "../crates/footer/src/interop/writer.rs"]
#[allow(dead_code, reason = "the benchmark needs some of its methods")]
mod thrift_writer;
mod turns;

use std::hint::black_box;
use std::sync::Arc;

use parquet60::file::metadata::{ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy};
use sawmill_footer::{Footer, FooterBytes, Method, Options};
use synthetic::{SyntheticColumns, SyntheticFooter};
use turns::{Turns, chosen};

/// The footers: name, contents, columns, row groups.
const FOOTERS: [(&str, SyntheticColumns, usize, usize); 11] = [
    ("float_100", SyntheticColumns::Float, 100, 20),
    ("float_1000", SyntheticColumns::Float, 1_000, 20),
    ("float_10000", SyntheticColumns::Float, 10_000, 20),
    ("float_100000", SyntheticColumns::Float, 100_000, 20),
    ("text_100", SyntheticColumns::Text, 100, 20),
    ("text_1000", SyntheticColumns::Text, 1_000, 20),
    ("text_10000", SyntheticColumns::Text, 10_000, 20),
    ("text_100000", SyntheticColumns::Text, 100_000, 20),
    ("mixed_50x4000", SyntheticColumns::Mixed, 50, 4_000),
    ("mixed_500x400", SyntheticColumns::Mixed, 500, 400),
    ("mixed_5000x40", SyntheticColumns::Mixed, 5_000, 40),
];

/// The peer with one policy for everything that it can skip.
fn peer(policy: impl Fn() -> ParquetStatisticsPolicy) -> ParquetMetaDataOptions {
    ParquetMetaDataOptions::new()
        .with_column_stats_policy(policy())
        .with_encoding_stats_policy(policy())
        .with_size_stats_policy(policy())
}

/// Decodes with `options`, then decodes all statistics of the result.
fn with_statistics(bytes: &FooterBytes, options: &Options) -> Footer {
    let footer = Footer::decode(bytes.clone(), options).expect("a synthetic footer is valid");
    for chunk in footer.row_groups().flat_map(|group| group.columns()) {
        // Examined in place: moving them costs as much as decoding them.
        black_box(&chunk.statistics()).as_ref().expect("synthetic statistics are valid");
    }
    footer
}

fn main() {
    let big = std::env::var_os("SAWMILL_BIG").is_some();
    for (name, kind, columns, row_groups) in FOOTERS {
        if (columns * row_groups > 300_000 && !big) || !chosen(name) {
            continue;
        }
        let bytes = Arc::new(SyntheticFooter { columns, row_groups, kind, seed: 1 }.bytes());
        let shared = FooterBytes::from(Arc::clone(&bytes));
        let ten: Vec<usize> = (0..10).map(|i| i * columns / 10 + i % (columns / 10).max(1)).collect();
        let of_ten = Options::new().columns(ten.iter().copied());
        let mut turns = Turns::new(format!("{name}, {} bytes", bytes.len()));
        #[cfg(feature = "old-peers")]
        {
            turns.way("parquet 56, default", || {
                let meta = parquet56::file::metadata::ParquetMetaDataReader::decode_metadata(&bytes);
                drop(black_box(meta.expect("a synthetic footer is valid")));
            });
            turns.seldom();
            turns.way("parquet 57, default", || {
                let meta = parquet57::file::metadata::ParquetMetaDataReader::decode_metadata(&bytes);
                drop(black_box(meta.expect("a synthetic footer is valid")));
            });
            turns.seldom();
        }
        let theirs = |options: ParquetMetaDataOptions| {
            let bytes = Arc::clone(&bytes);
            move || {
                let meta = ParquetMetaDataReader::decode_metadata_with_options(&bytes, Some(&options));
                drop(black_box(meta.expect("a synthetic footer is valid")));
            }
        };
        let ours = |options: Options| {
            let shared = shared.clone();
            move || {
                drop(black_box(
                    Footer::decode(shared.clone(), &options).expect("a synthetic footer is valid"),
                ))
            }
        };
        turns.way("parquet 60, default", theirs(ParquetMetaDataOptions::new()));
        turns.peer("parquet 60, skips", theirs(peer(|| ParquetStatisticsPolicy::SkipAll)));
        // The target of each way: higher for footers whose chunks are all alike.
        let mixed = kind == SyntheticColumns::Mixed;
        let chunks = columns * row_groups;
        turns.way("all chunks", ours(Options::new()));
        turns.at_least(if mixed {
            6.0
        } else if chunks > 20_000 {
            8.0
        } else {
            7.0
        });
        turns.way("all chunks, portable", ours(Options::new().method(Method::Portable)));
        if mixed || columns >= 10_000 {
            turns.at_least(if mixed { 2.5 } else { 3.0 });
        }
        turns.way("all chunks, scalar", ours(Options::new().method(Method::Scalar)));
        turns.way_of("all chunks and their statistics", "parquet 60, default", || {
            drop(black_box(with_statistics(&shared, &Options::new())));
        });
        turns.at_least(6.0);
        turns.way("parquet 60, skips except 10", theirs(peer(|| ParquetStatisticsPolicy::skip_except(&ten))));
        turns.way_of("10 columns and their statistics", "parquet 60, skips except 10", || {
            drop(black_box(with_statistics(&shared, &of_ten)));
        });
        if columns >= 100_000 {
            turns.at_least(9.0);
        }
        turns.way("first row group", ours(Options::new().row_groups(0..1)));
        if columns >= 10_000 {
            turns.at_least(90.0);
        }
        turns.run();
        let decoded = Footer::decode(shared.clone(), &Options::new()).expect("a synthetic footer is valid");
        println!(
            "decoded: {:.1} bytes per chunk besides the footer's own",
            decoded.heap_bytes() as f64 / chunks as f64
        );
    }
}
