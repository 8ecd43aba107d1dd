//! The work of a loading thread without a server: decodes, encodes and sums up a file, into blocks that are
//! discarded.
//!
//! `cargo bench -p sawmill-benches --bench load_client [-- FILE|DATASET...] [ROUNDS]`. Datasets are taxi,
//! orders and lineitem, the specs in `fixtures/`; a million rows of each are written to a file. Reports the
//! thread's CPU seconds per million rows, minimum and median, for reading alone and for everything.

mod datasets;

use std::hint::black_box;
use std::path::{Path, PathBuf};

use datasets::{DATASETS, write_file};
use sawmill_loader::{Block, LoadOptions};
use sawmill_postgres::Postgres;
use sawmill_source::{ParquetFiles, Source};

/// CPU seconds used by this thread so far (proc(5): the first number is nanoseconds on a processor).
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

/// The number of rows, and their content sum if they are encoded.
fn run(source: &ParquetFiles, encoded: bool) -> String {
    let options = LoadOptions::default();
    let target = Postgres::new(
        "postgres://me@localhost/db".parse().expect("an address"),
        "t".parse().expect("a name"),
    );
    let mut encoder = target.encoder(source, options.batch_bytes).expect("every column has a type");
    let mut reader = source.reader(options.batch_rows);
    let mut emit = |block: Block| {
        black_box(&block);
        Ok(())
    };
    for unit in source.plan(u64::MAX).into_iter().flatten() {
        reader.start(&unit).expect("the file can be read");
        while let Some(batch) = reader.next_batch().expect("the file can be read") {
            match encoded {
                true => encoder.encode(&batch, &mut emit).expect("every value can be encoded"),
                false => drop(black_box(batch)),
            }
        }
    }
    let tally = encoder.end_unit(&mut emit).expect("the rows can be sent");
    tally.content_sum.to_string()
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let (numbers, names): (Vec<_>, Vec<_>) = words.iter().partition(|word| word.parse::<usize>().is_ok());
    let testing = sawmill_benches::once();
    let rounds = numbers.first().and_then(|word| word.parse().ok()).unwrap_or(if testing { 1 } else { 15 });
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let mut paths: Vec<PathBuf> = names.iter().map(PathBuf::from).filter(|path| path.exists()).collect();
    for (name, spec, ..) in DATASETS {
        if names.is_empty() || names.iter().any(|chosen| *chosen == name) {
            let path = directory.path().join(format!("{name}.parquet"));
            write_file(&path, spec, if testing { 10_000 } else { 1_000_000 });
            paths.push(path);
        }
    }
    println!("\n| file | work | least CPU s | median | content sum |\n|---|---|---|---|---|");
    for path in &paths {
        measure(path, rounds);
    }
}

fn measure(path: &Path, rounds: usize) {
    let name = path.file_stem().unwrap_or_default().display();
    let source = ParquetFiles::open(&[path]).expect("the file can be read");
    let millions = source.rows() as f64 / 1e6;
    for (work, encoded) in [("decode", false), ("decode, encode, sum", true)] {
        let mut sum = String::new();
        let mut times: Vec<f64> = (0..rounds)
            .map(|_| {
                let before = cpu();
                sum = run(&source, encoded);
                (cpu() - before) / millions
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let (least, median) =
            (times.first().unwrap_or(&f64::NAN), times.get(times.len() / 2).unwrap_or(&f64::NAN));
        println!("| {name} | {work} | {least:.4} | {median:.4} | {sum} |");
    }
}
