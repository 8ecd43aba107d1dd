//! Generates the whole contacts dataset without storing it: ours, and a plain pipeline of Arrow builders and
//! the `parquet` crate's `ArrowWriter`, with the same codec, each on one thread and on two. `cargo bench -p
//! sawmill-benches --bench contacts`.

#[path = "contacts_pipeline.rs"]
mod contacts_pipeline;
#[path = "generator_run.rs"]
mod generator_run;

use std::time::Duration;

use contacts_pipeline::write_part;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use generator_run::generate;
use parquet60::basic::{Compression as PeerCompression, ZstdLevel};
use sawmill_generator::{Compression, Dataset, FileOptions};

/// The peer pipeline, with one part per thread.
fn pipeline(rows: u64, threads: u64, codec: PeerCompression) -> u64 {
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| scope.spawn(move || write_part(std::io::sink(), part, rows / threads, codec)))
            .collect();
        parts.into_iter().map(|part| part.join().unwrap()).sum()
    })
}

fn contacts(criterion: &mut Criterion) {
    let testing = sawmill_benches::once();
    let rows = if testing { 20_000 } else { 1_000_000 };
    let dataset = Dataset::built_in("contacts").unwrap().unwrap();
    // Both at compression level 1.
    let codecs = [
        ("none", Compression::None, PeerCompression::UNCOMPRESSED),
        ("snappy", Compression::Snappy, PeerCompression::SNAPPY),
        ("zstd", Compression::Zstd(1), PeerCompression::ZSTD(ZstdLevel::try_new(1).unwrap())),
    ];
    for (codec, ours, theirs) in codecs {
        let mut group = criterion.benchmark_group(format!("contacts/{codec}"));
        group.throughput(Throughput::Elements(rows));
        group
            .sample_size(10)
            .warm_up_time(Duration::from_millis(500))
            .measurement_time(Duration::from_secs(2));
        let mut options = FileOptions::default();
        options.compression = ours;
        for threads in [1, 2] {
            group.bench_function(format!("sawmill/{threads}"), |bench| {
                bench.iter(|| generate(&dataset, rows, threads, &options));
            });
            group.bench_function(format!("ArrowWriter 60/{threads}"), |bench| {
                bench.iter(|| assert_eq!(pipeline(rows, threads as u64, theirs), rows));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, contacts);
criterion_main!(benches);
