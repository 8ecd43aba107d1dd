//! Decodes footers of files by other writers, side by side with the `parquet` crate 60.
//!
//! ```text
//! python scripts/foreign_footers.py /tmp/foreign
//! SAWMILL_FOREIGN_FOOTERS=/tmp/foreign cargo bench -p sawmill-benches --bench footer_foreign [-- WORDS]
//! ```
//!
//! Words select the files whose names contain one of them; without the variable, the small files of
//! `fixtures/foreign` are used. Times are CPU times of the measuring thread, so that other work on the
//! machine counts little; the ways take turns, in another order each round, and a footer that takes less than
//! a hundred microseconds is decoded several times in a turn. A table gives the lower quartile of each way
//! and the median of the ratios within a round, rows with the smallest lead first. "Again" is a `Decoder`
//! that has decoded a footer of the same table before.

mod turns;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parquet60::file::metadata::{
    PageIndexPolicy, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
};
use sawmill_footer::{Decoder, Footer, FooterBytes, Method, Options};
use turns::chosen;

/// How long to measure one table row, and the fewest and most rounds.
const BUDGET: Duration = Duration::from_secs(3);
const LEAST: usize = 9;
const MOST: usize = 401;

/// The CPU time of one turn to aim for, in seconds.
const TURN: f64 = 200e-6;

type Way<'w> = (&'static str, Box<dyn FnMut() + 'w>);

/// The CPU time that the current thread has used.
fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec that the call fills.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "the system has a clock for threads");
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn turn(run: &mut dyn FnMut(), repeats: usize) -> f64 {
    let before = thread_seconds();
    (0..repeats).for_each(|_| run());
    (thread_seconds() - before) / repeats as f64
}

fn quantile(mut values: Vec<f64>, at: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get((values.len() as f64 * at) as usize).copied().unwrap_or(f64::NAN)
}

/// One measured row: the lower quartile of each way in seconds, and how many times as fast as the last way
/// each one is, as the median over the rounds.
struct Measured {
    title: String,
    seconds: Vec<f64>,
    times_as_fast: Vec<f64>,
}

/// Runs the ways in turns; the last one is the peer.
fn measure(title: String, ways: &mut [Way<'_>]) -> Measured {
    let testing = sawmill_benches::once();
    let repeats: Vec<usize> = ways
        .iter_mut()
        .map(|(_, run)| {
            turn(run, 1);
            if testing { 1 } else { (TURN / turn(run, 1).max(1e-7)).ceil() as usize }
        })
        .collect();
    let mut times = vec![Vec::new(); ways.len()];
    let started = Instant::now();
    for round in 0..if testing { 1 } else { MOST } {
        if round >= LEAST && started.elapsed() > BUDGET {
            break;
        }
        for step in 0..ways.len() {
            // Another way first in each round, and every other round backwards.
            let step = if round % 2 == 0 { step } else { ways.len() - 1 - step };
            let way = (step + round / 2) % ways.len();
            times[way].push(turn(&mut ways[way].1, repeats[way]));
        }
    }
    let peer = times.last().cloned().unwrap_or_default();
    let ratios = |own: &Vec<f64>| quantile(peer.iter().zip(own).map(|(peer, own)| peer / own).collect(), 0.5);
    let times_as_fast = times.iter().map(ratios).collect();
    Measured { title, seconds: times.into_iter().map(|times| quantile(times, 0.25)).collect(), times_as_fast }
}

fn print(heading: &str, ways: &[&str], mut rows: Vec<Measured>) {
    rows.sort_by(|a, b| a.times_as_fast[0].total_cmp(&b.times_as_fast[0]));
    println!("\n{heading}\n\n| file | {} |\n|---|{}", ways.join(" | "), "---|".repeat(ways.len()));
    for row in rows {
        let cell = |(seconds, ratio): (&f64, &f64)| {
            let time = if *seconds < 1e-3 {
                format!("{:.3} µs", seconds * 1e6)
            } else {
                format!("{:.3} ms", seconds * 1e3)
            };
            format!("{time} ({ratio:.2} x)")
        };
        let cells: Vec<String> = row.seconds.iter().zip(&row.times_as_fast).map(cell).collect();
        println!("| {} | {} |", row.title, cells.join(" | "));
    }
}

/// The peer's options that skip everything possible.
fn skip_all() -> ParquetMetaDataOptions {
    ParquetMetaDataOptions::new()
        .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
}

fn footers(title: &str, file: &[u8]) -> Measured {
    let footer = Footer::from_file_bytes(file, &Options::new()).expect("a valid file");
    let bytes = footer.bytes().to_vec();
    let shared = FooterBytes::from(bytes.clone());
    let ours = |options: Options| {
        let shared = shared.clone();
        move || drop(black_box(Footer::decode(shared.clone(), &options).expect("a valid footer")))
    };
    let skips = skip_all();
    let mut decoder = Decoder::new(Options::new());
    let again = shared.clone();
    let mut ways: [Way<'_>; 4] = [
        ("sawmill", Box::new(ours(Options::new()))),
        (
            "sawmill, again",
            Box::new(move || drop(black_box(decoder.decode(again.clone()).expect("a valid footer")))),
        ),
        ("sawmill, scalar", Box::new(ours(Options::new().method(Method::Scalar)))),
        (
            "parquet 60, skips",
            Box::new(|| {
                let meta = ParquetMetaDataReader::decode_metadata_with_options(&bytes, Some(&skips));
                drop(black_box(meta.expect("a valid footer")));
            }),
        ),
    ];
    measure(title.to_owned(), &mut ways)
}

/// Our decoder and the conversion of what it decoded, against the peer's own decoder: metadata of all columns,
/// of the first half of them, of three.
fn conversions(title: &str, file: &[u8]) -> Measured {
    let footer = Footer::from_file_bytes(file, &Options::new()).expect("a valid file");
    let (bytes, leaves) = (footer.bytes().to_vec(), footer.schema().num_leaves());
    // Half of the roots: a part of a map cannot be converted.
    let roots: Vec<String> = footer.schema().root().children().map(|root| root.name().to_owned()).collect();
    let (half, third) = (roots.len().div_ceil(2), roots.len().div_ceil(3));
    let shared = FooterBytes::from(bytes.clone());
    let both = |options: Options| {
        let shared = shared.clone();
        move || {
            let footer = Footer::decode(shared.clone(), &options).expect("a valid footer");
            drop(black_box(footer.to_parquet_60(None).expect("metadata of the parquet crate")));
        }
    };
    let exact = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
    let theirs = || {
        let meta = ParquetMetaDataReader::decode_metadata_with_options(&bytes, Some(&exact));
        drop(black_box(meta.expect("a valid footer")));
    };
    let mut ways: [Way<'_>; 5] = [
        ("3 columns", Box::new(both(Options::new().column_roots(roots.iter().step_by(third).cloned())))),
        ("half", Box::new(both(Options::new().column_roots(roots[..half].iter().cloned())))),
        ("all, with our decoding", Box::new(both(Options::new()))),
        (
            "all, conversion alone",
            Box::new(|| drop(black_box(footer.to_parquet_60(None).expect("metadata of the parquet crate")))),
        ),
        ("parquet 60", Box::new(theirs)),
    ];
    measure(format!("{title} ({leaves} columns)"), &mut ways)
}

fn page_indexes(title: &str, file: &[u8]) -> Option<Measured> {
    let footer = Footer::from_file_bytes(file, &Options::new()).expect("a valid file");
    let mut chunks = footer.row_groups().flat_map(|group| group.columns());
    chunks.find(|chunk| matches!(chunk.offset_index_range(), Ok(Some(_))))?;
    let bytes = Bytes::from(file.to_vec());
    let mut meta = Some(ParquetMetaDataReader::new().parse_and_finish(&bytes).expect("a valid file"));
    let convert = || footer.to_parquet_60_with_page_indexes(None, file).expect("valid page indexes");
    let mut ways: [Way<'_>; 3] = [
        (
            "sawmill",
            Box::new(|| drop(black_box(footer.read_page_indexes(file).expect("valid page indexes")))),
        ),
        ("sawmill, to parquet's metadata", Box::new(|| drop(black_box(convert())))),
        (
            "parquet 60",
            Box::new(|| {
                // The reader gives its metadata back, so that no copy of it is measured.
                let reader = ParquetMetaDataReader::new_with_metadata(meta.take().expect("metadata"))
                    .with_page_index_policy(PageIndexPolicy::Optional);
                let (back, found) = reader.read_page_index_and_finish(&bytes).expect("valid page indexes");
                drop(black_box(found));
                meta = Some(back);
            }),
        ),
    ];
    Some(measure(title.to_owned(), &mut ways))
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the directory of foreign files can be read");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    files.sort();
    files
}

fn main() {
    let directory = std::env::var_os("SAWMILL_FOREIGN_FOOTERS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/foreign"), PathBuf::from);
    let (mut decoded, mut indexed, mut converted) = (Vec::new(), Vec::new(), Vec::new());
    for path in files(&directory) {
        let title = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !chosen(&title) {
            continue;
        }
        let file = std::fs::read(&path).expect("the file can be read");
        decoded.push(footers(&title, &file));
        indexed.extend(page_indexes(&title, &file));
        converted.push(conversions(&title, &file));
    }
    print("Footers", &["sawmill", "sawmill, again", "sawmill, scalar", "parquet 60, skips"], decoded);
    print("Page indexes", &["sawmill", "sawmill, to parquet's metadata", "parquet 60"], indexed);
    let ways = ["3 columns", "half of them", "all, with our decoding", "all, conversion alone", "parquet 60"];
    print("To the metadata of parquet 60", &ways, converted);
}
