//! Decodes footers of files by other writers with other readers in Rust, and with what proposals for new footers
//! would put in their place.
//!
//! ```text
//! SAWMILL_FOREIGN_FOOTERS=/tmp/foreign cargo bench -p sawmill-benches --features peers --bench footer_peers
//! ```
//!
//! Files, words and times are the same as in `footer_foreign.rs`. The peers are `polars-parquet`, polars's own
//! decoder, and `parquet2`, from which it descends. The proposals: a FlatBuffer of the tables that the
//! prototypes of parquet-format #544 write (`flat_footer.rs`), verified and read as its generated code would be,
//! and Thrift footers without `path_in_schema` (#563, `without_paths.rs`).

mod flat_footer;
mod thread_time;
#[path = "../crates/footer/src/interop/writer.rs"]
#[allow(dead_code, reason = "the benchmark needs some of its methods")]
mod thrift_writer;
mod turns;
mod without_paths;

use std::hint::black_box;

use parquet60::file::metadata::{ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy};
use sawmill_footer::{Footer, FooterBytes, Options};
use thread_time::{Measured, Way, files, measure, print};
use turns::chosen;

/// Other readers. They all decode everything; ours and `parquet` 60's skip statistics.
fn readers(title: &str, bytes: &[u8]) -> Measured {
    let shared = FooterBytes::from(bytes.to_vec());
    let polars = polars_buffer::Buffer::from(bytes.to_vec());
    let skips = ParquetMetaDataOptions::new()
        .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
    let mut ways: Vec<Way<'_>> = vec![
        (
            "sawmill",
            Box::new(|| {
                drop(black_box(Footer::decode(shared.clone(), &Options::new()).expect("a valid footer")))
            }),
        ),
        (
            "polars-parquet",
            Box::new(|| {
                let found = polars_parquet::parquet::read::deserialize_metadata(polars.clone());
                drop(black_box(found.expect("a footer that polars reads")));
            }),
        ),
        (
            "parquet2",
            // Its limit counts the bytes that it allocates.
            Box::new(|| {
                drop(black_box(parquet2::read::deserialize_metadata(bytes, 100 * bytes.len() + 1024)))
            }),
        ),
        (
            "parquet 60, skips",
            Box::new(|| {
                let meta = ParquetMetaDataReader::decode_metadata_with_options(bytes, Some(&skips));
                drop(black_box(meta.expect("a valid footer")));
            }),
        ),
    ];
    let mut measured = measure(title.to_owned(), &mut ways);
    if parquet2::read::deserialize_metadata(bytes, 100 * bytes.len() + 1024).is_err() {
        // It rejects types that are newer than itself.
        measured.seconds[2] = f64::NAN;
    }
    measured
}

/// The same content in other footers, against our decoder on the file's own.
fn proposals(title: &str, bytes: &[u8]) -> Measured {
    let footer = Footer::decode(bytes.to_vec(), &Options::new()).expect("a valid footer");
    let flat = flat_footer::flat(&footer);
    let bare = FooterBytes::from(without_paths::without_paths(bytes));
    let shared = FooterBytes::from(bytes.to_vec());
    let (groups, columns) = (footer.num_row_groups(), footer.num_columns());
    let expected = flat_footer::sum_of(&footer);
    assert_eq!(
        flat_footer::verified(&flat).sum(0..groups, 0..columns),
        expected,
        "the same sizes and offsets"
    );
    let three = columns.min(3);
    let title = format!("{title} ({} bytes; {} flat, {} without paths)", bytes.len(), flat.len(), bare.len());
    let mut ways: Vec<Way<'_>> = vec![
        (
            "flat, verified, all read",
            Box::new(|| drop(black_box(flat_footer::verified(&flat).sum(0..groups, 0..columns)))),
        ),
        (
            "flat, unverified, all read",
            Box::new(|| drop(black_box(flat_footer::trusted(&flat).sum(0..groups, 0..columns)))),
        ),
        (
            "flat, unverified, 3 columns",
            Box::new(|| drop(black_box(flat_footer::trusted(&flat).sum(0..groups, 0..three)))),
        ),
        (
            "sawmill, 3 columns",
            Box::new(|| {
                let options = Options::new().columns(0..three);
                let footer = Footer::decode(shared.clone(), &options).expect("a valid footer");
                drop(black_box(flat_footer::sum_of(&footer)));
            }),
        ),
        (
            "sawmill, without paths",
            Box::new(|| {
                drop(black_box(Footer::decode(bare.clone(), &Options::new()).expect("valid without them")))
            }),
        ),
        (
            "sawmill",
            Box::new(|| {
                let footer = Footer::decode(shared.clone(), &Options::new()).expect("a valid footer");
                drop(black_box(flat_footer::sum_of(&footer)));
            }),
        ),
    ];
    measure(title, &mut ways)
}

fn main() {
    let (mut read, mut proposed) = (Vec::new(), Vec::new());
    for path in files() {
        let title = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !chosen(&title) {
            continue;
        }
        let file = std::fs::read(&path).expect("the file can be read");
        let footer = Footer::from_file_bytes(&file, &Options::new()).expect("a valid file");
        read.push(readers(&title, footer.bytes()));
        proposed.push(proposals(&title, footer.bytes()));
    }
    print("Readers", &["sawmill", "polars-parquet", "parquet2", "parquet 60, skips"], read);
    let ways = [
        "flat, verified, all read",
        "flat, unverified, all read",
        "flat, unverified, 3 columns",
        "sawmill, 3 columns",
        "sawmill, without paths",
        "sawmill",
    ];
    print("Footers that are proposed", &ways, proposed);
}
