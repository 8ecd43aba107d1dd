//! The inputs and the measurements of arrow-rs's benchmark `metadata` (`parquet/benches/metadata.rs`), by the `parquet`
//! crate 60 and by this workspace's decoder.
//!
//! ```text
//! SAWMILL_PARQUET_TESTING=~/parquet-testing cargo bench -p sawmill-benches --features newest --bench footer_metadata
//! ```
//!
//! The small file is `alltypes_tiny_pages.parquet` of apache/parquet-testing, and left out without the variable. The wide
//! footers have 10 row groups of 10,000 columns, which the `parquet` crate writes: floats, floats without paths, and
//! nullable lists with size statistics. "To parquet" adds the conversion to the crate's metadata: of what the peer's
//! options keep, and of three columns. "All by a constructor" is what the conversion would cost if the crate could make
//! its chunks of parts: it decodes, and copies the chunks that the crate has made. Times are CPU times of the thread; ways take turns.

mod thread_time;
mod turns;

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use parquet60::basic::{Compression, Encoding, PageType, Type as PhysicalType};
use parquet60::file::metadata::{
    ColumnChunkMetaData, FileMetaData, LevelHistogram, PageEncodingStats, ParquetMetaData,
    ParquetMetaDataOptions, ParquetMetaDataReader, ParquetMetaDataWriter, ParquetStatisticsPolicy,
    RowGroupMetaData,
};
use parquet60::file::reader::FileReader;
use parquet60::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use parquet60::file::statistics::Statistics;
use parquet60::schema::types::{SchemaDescriptor, Type};
use sawmill_footer::{Footer, Options, StatisticsPolicy};
use thread_time::{Measured, Way, measure, print};
use turns::chosen;

const COLUMNS: usize = 10_000;
const ROW_GROUPS: usize = 10;

/// Numbers that look random, the same in every run: SplitMix64 (Steele and others, 2014).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % end as u64) as i64
    }
}

/// Which wide footer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wide {
    Floats,
    WithoutPaths,
    SizeStatistics,
}

fn chunk(schema: &SchemaDescriptor, at: usize, kind: Wide, numbers: &mut Numbers) -> ColumnChunkMetaData {
    let pages = |page_type, encoding, count| PageEncodingStats { page_type, encoding, count };
    let sized = kind == Wide::SizeStatistics;
    ColumnChunkMetaData::builder(schema.column(at))
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE_DICTIONARY])
        .set_compression(Compression::UNCOMPRESSED)
        .set_num_values(1 + numbers.below(1_000_000))
        .set_total_compressed_size(50_000 + numbers.below(5_000_000))
        .set_data_page_offset(4 + numbers.below(2_000_000_000))
        .set_dictionary_page_offset(Some(4 + numbers.below(2_000_000_000)))
        .set_statistics(Statistics::float(Some(0.25), Some(0.75), None, Some(0), false))
        .set_page_encoding_stats(vec![
            pages(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1),
            pages(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, 10),
        ])
        .set_offset_index_offset(Some(numbers.below(2_000_000_000)))
        .set_offset_index_length(Some(1 + numbers.below(100_000) as i32))
        .set_column_index_offset(Some(numbers.below(2_000_000_000)))
        .set_column_index_length(Some(1 + numbers.below(100_000) as i32))
        .set_unencoded_byte_array_data_bytes(sized.then_some(123_456_789))
        .set_repetition_level_histogram(sized.then(|| LevelHistogram::from(vec![1_500; 2])))
        .set_definition_level_histogram(sized.then(|| LevelHistogram::from(vec![1_000; 3])))
        .build()
        .expect("a column chunk")
}

/// A wide footer without its length and magic.
fn wide(kind: Wide) -> Vec<u8> {
    let mut numbers = Numbers(42);
    let float = |at: usize| {
        Arc::new(Type::primitive_type_builder(&at.to_string(), PhysicalType::FLOAT).build().expect("a type"))
    };
    let root = Type::group_type_builder("test_schema").with_fields((0..COLUMNS).map(float).collect()).build();
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(root.expect("a schema"))));
    let group = |at: usize| {
        let chunks = (0..COLUMNS).map(|column| chunk(&schema, column, kind, &mut numbers)).collect();
        RowGroupMetaData::builder(Arc::clone(&schema))
            .set_column_metadata(chunks)
            .set_total_byte_size(1_000_000_000)
            .set_num_rows(1_000_000)
            .set_ordinal(at as _)
            .build()
            .expect("a row group")
    };
    let groups = (0..ROW_GROUPS).map(group).collect();
    let rows = 1_000_000 * ROW_GROUPS as i64;
    let file = FileMetaData::new(1, rows, Some("parquet-rs".to_owned()), None, Arc::clone(&schema), None);
    let mut bytes = Vec::new();
    ParquetMetaDataWriter::new(&mut bytes, &ParquetMetaData::new(file, groups))
        .with_write_path_in_schema(kind != Wide::WithoutPaths)
        .finish()
        .expect("a footer");
    let start = bytes.len()
        - 8
        - u32::from_le_bytes(*bytes[..bytes.len() - 4].last_chunk().expect("a length")) as usize;
    bytes[start..bytes.len() - 8].to_vec()
}

/// What is measured of a footer: a name, the peer's options, and ours.
fn cases(bytes: &[u8]) -> Vec<(&'static str, ParquetMetaDataOptions, Options)> {
    let exact = || ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
    let skip = || ParquetStatisticsPolicy::SkipAll;
    let without = || Options::new().statistics(StatisticsPolicy::None);
    let footer = Footer::decode(bytes, &Options::new().row_groups(0..0)).expect("a valid footer");
    let schema = ParquetMetaDataReader::decode_schema(bytes).expect("a valid footer");
    vec![
        ("decode", exact(), Options::new()),
        ("with schema", exact().with_schema(schema), Options::new().schema(footer.shared_schema())),
        ("stats mask", ParquetMetaDataOptions::new().with_encoding_stats_as_mask(true), Options::new()),
        (
            "skip page encodings",
            ParquetMetaDataOptions::new().with_encoding_stats_policy(skip()),
            Options::new(),
        ),
        ("skip column stats", exact().with_column_stats_policy(skip()), without()),
        ("skip size stats", exact().with_size_stats_policy(skip()), Options::new()),
        (
            "skip all stats",
            ParquetMetaDataOptions::new()
                .with_column_stats_policy(skip())
                .with_encoding_stats_policy(skip())
                .with_size_stats_policy(skip()),
            without(),
        ),
    ]
}

const WAYS: [&str; 5] =
    ["sawmill", "to parquet, 3 columns", "to parquet, all", "all by a constructor", "parquet 60"];

fn footers(title: &str, bytes: &[u8]) -> Vec<Measured> {
    let shared: Arc<[u8]> = bytes.into();
    let columns =
        Footer::decode(bytes, &Options::new().row_groups(0..0)).expect("a valid footer").num_columns();
    let row = |(name, theirs, options): (&str, ParquetMetaDataOptions, Options)| {
        let three = options.clone().columns([0, columns / 2, columns - 1]);
        let decode =
            |options: &Options| Footer::decode(Arc::clone(&shared), options).expect("a valid footer");
        let convert = |options: &Options| decode(options).to_parquet_60(None).expect("the crate's metadata");
        let made = ParquetMetaDataReader::decode_metadata_with_options(bytes, Some(&theirs));
        let made = made.expect("a valid footer");
        let mut ways: [Way<'_>; 5] = [
            (WAYS[0], Box::new(|| drop(black_box(decode(&options))))),
            (WAYS[1], Box::new(|| drop(black_box(convert(&three))))),
            (WAYS[2], Box::new(|| drop(black_box(convert(&options))))),
            (WAYS[3], Box::new(|| drop(black_box((decode(&options), made.row_groups().to_vec()))))),
            (
                WAYS[4],
                Box::new(|| {
                    let made = ParquetMetaDataReader::decode_metadata_with_options(bytes, Some(&theirs));
                    drop(black_box(made.expect("a valid footer")));
                }),
            ),
        ];
        measure(format!("{title}, {name}"), &mut ways)
    };
    cases(bytes).into_iter().map(row).collect()
}

/// Opens a whole file in memory, with its page indexes or without.
fn open(file: &Bytes, page_indexes: bool) -> Measured {
    let footer = |options: &Options| Footer::from_file_bytes(file, options).expect("a valid file");
    let convert = |options: &Options| {
        let footer = footer(options);
        match page_indexes {
            true => footer.to_parquet_60_with_page_indexes(None, file.as_ref()),
            false => footer.to_parquet_60(None),
        }
        .expect("the crate's metadata")
    };
    let all = Options::new();
    let three = Options::new().columns([0, 1, 2]);
    let read = || {
        let options = ReadOptionsBuilder::new().with_encoding_stats_as_mask(false);
        let options = if page_indexes { options.with_page_index() } else { options };
        SerializedFileReader::new_with_options(file.clone(), options.build()).expect("a valid file")
    };
    let made = read();
    let mut ways: [Way<'_>; 5] = [
        (
            WAYS[0],
            Box::new(|| {
                let footer = footer(&all);
                if page_indexes {
                    drop(black_box(footer.read_page_indexes(file.as_ref()).expect("valid page indexes")));
                }
                drop(black_box(footer));
            }),
        ),
        (WAYS[1], Box::new(|| drop(black_box(convert(&three))))),
        (WAYS[2], Box::new(|| drop(black_box(convert(&all))))),
        (WAYS[3], Box::new(|| drop(black_box((footer(&all), made.metadata().clone()))))),
        (WAYS[4], Box::new(|| drop(black_box(read())))),
    ];
    measure(format!("tiny pages, open{}", if page_indexes { " with page indexes" } else { "" }), &mut ways)
}

fn main() {
    let mut rows = Vec::new();
    if let Some(directory) = std::env::var_os("SAWMILL_PARQUET_TESTING").filter(|_| chosen("tiny pages")) {
        let path = std::path::Path::new(&directory).join("data/alltypes_tiny_pages.parquet");
        let file = Bytes::from(std::fs::read(path).expect("a file of apache/parquet-testing"));
        rows.extend([open(&file, false), open(&file, true)]);
        let footer = Footer::from_file_bytes(&file, &Options::new()).expect("a valid file");
        rows.extend(footers("tiny pages", footer.bytes()));
    }
    let kinds = [
        ("wide", Wide::Floats),
        ("wide, no paths", Wide::WithoutPaths),
        ("wide, sizes", Wide::SizeStatistics),
    ];
    for (title, kind) in kinds {
        if chosen(title) {
            rows.extend(footers(title, &wide(kind)));
        }
    }
    print("arrow-rs's benchmark `metadata`", &WAYS, rows);
}
