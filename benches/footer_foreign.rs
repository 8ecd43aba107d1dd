//! Decodes footers of files by other writers, side by side with the `parquet` crate 60.
//!
//! ```text
//! python scripts/peers/files/foreign_footers.py /tmp/foreign
//! SAWMILL_FOREIGN_FOOTERS=/tmp/foreign cargo bench -p sawmill-benches --bench footer_foreign [-- WORDS]
//! ```
//!
//! Words select the files whose names contain one of them; without the variable, the small files of
//! `fixtures/foreign` are used. Times are CPU times of the measuring thread, so that other work on the
//! machine counts little; the ways take turns, in another order each round, and a footer that takes less than
//! a hundred microseconds is decoded several times in a turn. A table gives the lower quartile of each way
//! and the median of the ratios within a round, rows with the smallest lead first. "Again" is a `Decoder`
//! that has decoded a footer of the same table before.

mod thread_time;
mod turns;

use std::hint::black_box;

use bytes::Bytes;
use parquet60::file::metadata::{
    PageIndexPolicy, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
};
use sawmill_footer::{Decoder, Footer, FooterBytes, Method, Options};
use thread_time::{Measured, Way, files, measure, print};
use turns::chosen;

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

/// Our decoder and the conversion of its result, against the peer's own decoder: metadata of all columns, of half
/// of them, of three. "Again" is a `Decoder` that has decoded a footer with the same schema.
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
    let three = || Options::new().column_roots(roots.iter().step_by(third).cloned());
    let again = |options: Options| {
        let (mut decoder, shared) = (Decoder::new(options), shared.clone());
        move || {
            let footer = decoder.decode(shared.clone()).expect("a valid footer");
            drop(black_box(footer.to_parquet_60(None).expect("metadata of the parquet crate")));
        }
    };
    let mut ways: [Way<'_>; 6] = [
        ("3 columns", Box::new(both(three()))),
        ("3 columns, again", Box::new(again(three()))),
        ("half", Box::new(both(Options::new().column_roots(roots[..half].iter().cloned())))),
        ("all", Box::new(both(Options::new()))),
        ("all, again", Box::new(again(Options::new()))),
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

fn main() {
    let (mut decoded, mut indexed, mut converted) = (Vec::new(), Vec::new(), Vec::new());
    for path in files() {
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
    let ways = ["3 columns", "3 columns, again", "half of them", "all", "all, again", "parquet 60"];
    print("To the metadata of parquet 60", &ways, converted);
}
