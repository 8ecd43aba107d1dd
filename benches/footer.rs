//! Decodes footers with this workspace's decoder and with the `parquet` crate 60, side by side.
//!
//! `cargo bench -p sawmill-benches --bench footer` uses footers of up to 10,000 columns; `SAWMILL_BIG=1` adds
//! 100,000 columns (240 MB each). A filter such as `-- float_10000` selects some. The footers are synthetic,
//! in the layouts of the `parquet` crate's writer: in `float` and `text` all columns are alike, `mixed`
//! resembles real tables. Every time includes dropping the result.

#[path = "../crates/footer/tests/footer/synthetic.rs"]
mod synthetic;
#[path = "../crates/footer/src/interop/writer.rs"]
#[allow(dead_code, reason = "the benchmark needs some of its methods")]
mod thrift_writer;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use parquet60::file::metadata::{ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy};
use sawmill_footer::{Footer, FooterBytes, Method, Options};
use synthetic::{SyntheticColumns, SyntheticFooter};

/// The `parquet` crate's options that skip everything possible.
fn skip_all() -> ParquetMetaDataOptions {
    ParquetMetaDataOptions::new()
        .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
}

/// Like `skip_all`, except for these columns.
fn skip_except(columns: &[usize]) -> ParquetMetaDataOptions {
    ParquetMetaDataOptions::new()
        .with_column_stats_policy(ParquetStatisticsPolicy::skip_except(columns))
        .with_encoding_stats_policy(ParquetStatisticsPolicy::skip_except(columns))
        .with_size_stats_policy(ParquetStatisticsPolicy::skip_except(columns))
}

struct Case {
    name: &'static str,
    kind: SyntheticColumns,
    columns: usize,
    row_groups: usize,
    big: bool,
}

const fn case(name: &'static str, kind: SyntheticColumns, columns: usize, row_groups: usize) -> Case {
    Case { name, kind, columns, row_groups, big: columns * row_groups > 300_000 }
}

const CASES: [Case; 11] = [
    case("float_100", SyntheticColumns::Float, 100, 20),
    case("float_1000", SyntheticColumns::Float, 1_000, 20),
    case("float_10000", SyntheticColumns::Float, 10_000, 20),
    case("float_100000", SyntheticColumns::Float, 100_000, 20),
    case("text_100", SyntheticColumns::Text, 100, 20),
    case("text_1000", SyntheticColumns::Text, 1_000, 20),
    case("text_10000", SyntheticColumns::Text, 10_000, 20),
    case("text_100000", SyntheticColumns::Text, 100_000, 20),
    case("mixed_50x4000", SyntheticColumns::Mixed, 50, 4_000),
    case("mixed_500x400", SyntheticColumns::Mixed, 500, 400),
    case("mixed_5000x40", SyntheticColumns::Mixed, 5_000, 40),
];

fn ours(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, bytes: &FooterBytes, options: &Options) {
    group.bench_function(name, |bench| {
        bench.iter(|| Footer::decode(black_box(bytes.clone()), options).unwrap());
    });
}

fn theirs(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    bytes: &[u8],
    options: &ParquetMetaDataOptions,
) {
    group.bench_function(name, |bench| {
        bench.iter(|| {
            ParquetMetaDataReader::decode_metadata_with_options(black_box(bytes), Some(options)).unwrap()
        });
    });
}

fn footers(criterion: &mut Criterion) {
    let filters: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let testing = sawmill_benches::once();
    let big = std::env::var_os("SAWMILL_BIG").is_some();
    for case in CASES {
        let named =
            filters.iter().any(|filter| filter.contains(case.name) || case.name.contains(filter.as_str()));
        if (case.big && !big) || (testing && !named && case.columns * case.row_groups > 20_000) {
            continue;
        }
        if !filters.is_empty() && !named {
            continue;
        }
        let Case { kind, columns, row_groups, .. } = case;
        let bytes = Arc::new(SyntheticFooter { columns, row_groups, kind, seed: 1 }.bytes());
        let shared = FooterBytes::from(Arc::clone(&bytes));
        let mut group = criterion.benchmark_group(case.name);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group
            .sample_size(10)
            .warm_up_time(Duration::from_millis(300))
            .measurement_time(Duration::from_secs(2));
        let wanted: Vec<usize> = (0..10).map(|i| i * columns / 10 + i % (columns / 10).max(1)).collect();
        theirs(&mut group, "parquet60_default", &bytes, &ParquetMetaDataOptions::new());
        theirs(&mut group, "parquet60_skip_all", &bytes, &skip_all());
        theirs(&mut group, "parquet60_skip_except_10", &bytes, &skip_except(&wanted));
        ours(&mut group, "fastest", &shared, &Options::new());
        ours(&mut group, "portable", &shared, &Options::new().method(Method::Portable));
        ours(&mut group, "scalar", &shared, &Options::new().method(Method::Scalar));
        let ten = Options::new().columns(wanted.iter().copied());
        group.bench_function("fastest_10_columns_and_statistics", |bench| {
            bench.iter(|| {
                let footer = Footer::decode(black_box(shared.clone()), &ten).unwrap();
                for chunk in footer.row_groups().flat_map(|group| group.columns()) {
                    black_box(chunk.statistics().unwrap());
                }
                footer
            });
        });
        group.bench_function("fastest_all_statistics", |bench| {
            bench.iter(|| {
                let footer = Footer::decode(black_box(shared.clone()), &Options::new()).unwrap();
                for chunk in footer.row_groups().flat_map(|group| group.columns()) {
                    black_box(chunk.statistics().unwrap());
                }
                footer
            });
        });
        ours(&mut group, "fastest_first_row_group", &shared, &Options::new().row_groups(0..1));
        group.finish();
    }
}

criterion_group!(benches, footers);
criterion_main!(benches);
