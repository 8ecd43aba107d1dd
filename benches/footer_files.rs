//! Footers in files: page indexes, many small files, and few columns of a very wide file.
//!
//! `cargo bench -p sawmill-benches --bench footer_files [-- page_indexes small_files mapped]`; with
//! `SAWMILL_BIG=1` the wide file has 100,000 columns instead of 10,000. The `parquet` crate 60 writes the
//! files to a directory that is removed at the end; they are in the page cache.

mod turns;

use std::fs::File;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use parquet60::data_type::FloatType;
use parquet60::file::metadata::{
    ColumnChunkMask, PageIndexPolicy, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
};
use parquet60::file::properties::WriterProperties;
use parquet60::file::writer::SerializedFileWriter;
use parquet60::schema::parser::parse_message_type;
use sawmill_footer::{Footer, Options};
use turns::{Turns, chosen};

/// A file of FLOAT columns with statistics and page indexes.
fn file(columns: usize, row_groups: usize, rows: usize) -> Vec<u8> {
    let fields: String = (0..columns).map(|column| format!("required float column_{column:05}; ")).collect();
    let schema = Arc::new(parse_message_type(&format!("message m {{ {fields} }}")).expect("a schema"));
    let properties = Arc::new(WriterProperties::builder().set_dictionary_enabled(false).build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).expect("a writer");
    for group in 0..row_groups {
        let mut row_group = writer.next_row_group().expect("a row group");
        let mut column = 0;
        while let Some(mut chunk) = row_group.next_column().expect("a column") {
            let values: Vec<f32> =
                (0..rows).map(|row| (group * 31 + column * 7 + row) as f32 / 8.0).collect();
            chunk.typed::<FloatType>().write_batch(&values, None, None).expect("memory");
            chunk.close().expect("memory");
            column += 1;
        }
        row_group.close().expect("memory");
    }
    writer.into_inner().expect("memory")
}

/// The peer's options that skip everything possible.
fn skip_all() -> ParquetMetaDataOptions {
    ParquetMetaDataOptions::new()
        .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
}

/// Decodes only the page indexes, of all columns and of ten, after the footer.
fn page_indexes(columns: usize) {
    let file = file(columns, 20, 10);
    let bytes = Bytes::from(file.clone());
    let footer = Footer::from_file_bytes(&file, &Options::new()).expect("the file was just written");
    let meta = ParquetMetaDataReader::new().parse_and_finish(&bytes).expect("the file was just written");
    let ten: Vec<usize> = (0..10).map(|at| at * columns / 10).collect();
    let of_ten = Footer::from_file_bytes(&file, &Options::new().columns(ten.iter().copied()))
        .expect("the file was just written");
    let mut turns = Turns::new(format!("page indexes of {columns} columns x 20 row groups"));
    let theirs = |mask: Option<ColumnChunkMask>| {
        let (meta, bytes) = (meta.clone(), bytes.clone());
        move || {
            let mut reader = ParquetMetaDataReader::new_with_metadata(meta.clone())
                .with_page_index_policy(PageIndexPolicy::Required);
            if let Some(mask) = &mask {
                reader = reader.with_page_index_mask(mask.clone());
            }
            let started = Instant::now();
            reader.read_page_indexes(&bytes).expect("the page indexes were just written");
            let time = started.elapsed();
            black_box(reader.finish().expect("metadata"));
            time
        }
    };
    turns.timed_peer("parquet 60, all columns", theirs(None));
    turns.timed("sawmill, all columns", || {
        let started = Instant::now();
        let found = footer.read_page_indexes(file.as_slice()).expect("the page indexes were just written");
        let time = started.elapsed();
        black_box(found);
        time
    });
    turns.at_least(4.0);
    turns.timed("parquet 60, 10 columns", theirs(Some(ColumnChunkMask::columns(ten.iter().copied()))));
    turns.way_of("sawmill, 10 columns", "parquet 60, 10 columns", || {
        drop(black_box(
            of_ten.read_page_indexes(file.as_slice()).expect("the page indexes were just written"),
        ));
    });
    turns.run();
}

/// Reads the footers of many small files, including opening them.
fn small_files(directory: &Path, count: usize) {
    let small = file(10, 1, 100);
    let paths: Vec<PathBuf> = (0..count).map(|at| directory.join(format!("small-{at:05}.parquet"))).collect();
    paths.iter().for_each(|path| std::fs::write(path, &small).expect("the disk has room"));
    let options = skip_all();
    let mut turns = Turns::new(format!("footers of {count} files of {} bytes", small.len()));
    let theirs = |threads: usize| {
        let (paths, options) = (&paths, &options);
        move || {
            std::thread::scope(|scope| {
                for part in paths.chunks(paths.len().div_ceil(threads)) {
                    scope.spawn(move || {
                        for path in part {
                            let file = File::open(path).expect("the file was just written");
                            let meta = ParquetMetaDataReader::new()
                                .with_metadata_options(Some(options.clone()))
                                .parse_and_finish(&file);
                            black_box(meta.expect("the file was just written"));
                        }
                    });
                }
            });
        }
    };
    let ours = |threads: usize| {
        let paths = &paths;
        move || {
            Footer::open_many(paths, &Options::new().threads(threads), |_, footer| {
                black_box(footer.expect("the file was just written"));
                ControlFlow::Continue(())
            });
        }
    };
    turns.peer("parquet 60, 1 thread", theirs(1));
    turns.way("sawmill, 1 thread", ours(1));
    turns.at_least(2.5);
    turns.way("parquet 60, 2 threads", theirs(2));
    turns.way_of("sawmill, 2 threads", "parquet 60, 2 threads", ours(2));
    turns.at_least(2.5);
    turns.run();
}

/// Reads three columns of a wide file from the page cache.
fn mapped(directory: &Path, columns: usize) {
    let path = directory.join("wide.parquet");
    std::fs::write(&path, file(columns, 20, 1)).expect("the disk has room");
    let three = Options::new().columns([5, columns / 2, columns - 1]);
    let mut turns = Turns::new(format!("3 of {columns} columns x 20 row groups, from a file"));
    let theirs = |options: ParquetMetaDataOptions| {
        let path = &path;
        move || {
            let file = File::open(path).expect("the file was just written");
            let reader = ParquetMetaDataReader::new().with_metadata_options(Some(options.clone()));
            drop(black_box(reader.parse_and_finish(&file).expect("the file was just written")));
        }
    };
    turns.way("parquet 60, default", theirs(ParquetMetaDataOptions::new()));
    turns.peer("parquet 60, skips", theirs(skip_all()));
    turns.way("sawmill, read", || {
        drop(black_box(Footer::open_with(&path, &three).expect("the file was just written")))
    });
    turns.way("sawmill, mapped", || {
        // SAFETY: this program alone uses the file.
        drop(black_box(unsafe { Footer::open_mapped(&path, &three) }.expect("the file was just written")));
    });
    turns.at_least(10.0);
    turns.run();
}

fn main() {
    let testing = sawmill_benches::once();
    let directory = tempfile::tempdir().expect("the disk has room");
    if chosen("page_indexes") {
        page_indexes(if testing { 100 } else { 10_000 });
    }
    if chosen("small_files") {
        small_files(directory.path(), if testing { 100 } else { 10_000 });
    }
    if chosen("mapped") {
        let wide = if std::env::var_os("SAWMILL_BIG").is_some() { 100_000 } else { 10_000 };
        mapped(directory.path(), if testing { 100 } else { wide });
    }
}
