//! Page indexes and Bloom filters, read with the `parquet` crate.

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::properties::ReaderProperties;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use sawmill_generator::{
    BloomColumn, Dataset, Existing, FileOptions, Job, Layout, Output, PageVersion, StatisticsLevel, write,
};
use sawmill_profile::Profile;

const SPEC: &str = r#"
name = "d"
fields = [
  { name = "id", type = "int64", values = { sequence = { start = 0, step = 2 } } },
  { name = "tags", type = "list", nulls = 0.1, length = { uniform = { min = 0, max = 3 } },
    element = { type = "int32", nulls = 0.2, values = { zipf = { n = 50, s = 1 } } } },
  { name = "word", type = "string", nulls = 0.3, values = { words = { min = 1, max = 2 } } },
]"#;

fn generate(path: &Path, options: FileOptions) {
    let dataset = Dataset::from_toml(SPEC).unwrap();
    let layout = Layout::new(20_000, 1).unwrap().with_page_rows(1_000).unwrap();
    let (profile, output, cancel) = (Profile::new(), Output::from_path(path), false.into());
    let phase = profile.phase("generate");
    let existing = Existing::Replace;
    write(&dataset, &Job { options, existing, ..Job::new(&layout, &output, &phase, &cancel) }).unwrap();
}

#[test]
fn the_page_indexes_find_the_page_of_a_value_and_read_no_other() {
    let dir = tempfile::tempdir().unwrap();
    for version in [PageVersion::V1, PageVersion::V2] {
        for bytes in [1 << 20, 3_000] {
            let path = dir.path().join("d.parquet");
            let mut options = FileOptions::default();
            options.page_version = version;
            options.page_bytes = bytes;
            generate(&path, options);
            let file = File::open(&path).unwrap();
            let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
            let metadata = ArrowReaderMetadata::load(&file, options).unwrap();
            let (columns, offsets) = {
                let metadata = metadata.metadata();
                (&metadata.column_index().unwrap()[0], &metadata.offset_index().unwrap()[0])
            };
            let ColumnIndexMetaData::INT64(index) = &columns[0] else { panic!("ids have no index") };
            let pages = offsets[0].page_locations();
            // The rows of the pages that may contain the value, according to the index.
            let wanted = 2 * 12_345;
            let may = (0..pages.len()).filter(|p| {
                (*index.min_value(*p).unwrap()..=*index.max_value(*p).unwrap()).contains(&wanted)
            });
            let [page] = may.collect::<Vec<_>>()[..] else { panic!("ids grow, so one page has the value") };
            let start = pages[page].first_row_index as usize;
            let end = pages.get(page + 1).map_or(20_000, |p| p.first_row_index as usize);
            assert!((start..end).contains(&12_345));
            let selection =
                RowSelection::from(vec![RowSelector::skip(start), RowSelector::select(end - start)]);
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
            let all = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
            let all = all.with_batch_size(20_000).build().unwrap().next().unwrap().unwrap();
            let mut row = start;
            for batch in reader.with_row_selection(selection).build().unwrap() {
                let batch = batch.unwrap();
                assert!(batch == all.slice(row, batch.num_rows()));
                row += batch.num_rows();
            }
            assert_eq!(row, end);
            assert_eq!(all.column(0).as_primitive::<Int64Type>().value(12_345), wanted);
        }
    }
}

#[test]
fn only_requested_statistics_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.parquet");
    for statistics in StatisticsLevel::ALL {
        for page_index in [true, false] {
            let mut options = FileOptions::default();
            options.statistics = statistics;
            options.page_index = page_index;
            generate(&path, options);
            let properties = ReaderProperties::builder().set_read_page_statistics(true).build();
            let options =
                ReadOptionsBuilder::new().with_page_index().with_reader_properties(properties).build();
            let reader = SerializedFileReader::new_with_options(File::open(&path).unwrap(), options).unwrap();
            let chunk = reader.metadata().row_group(0).column(0);
            let some = statistics != StatisticsLevel::None;
            assert_eq!(chunk.statistics().is_some(), some);
            assert_eq!(chunk.offset_index_offset().is_some(), page_index);
            let indexed = page_index && statistics == StatisticsLevel::Page;
            assert_eq!(chunk.column_index_offset().is_some(), indexed);
            let tags = reader.metadata().row_group(0).column(1);
            assert_eq!(tags.definition_level_histogram().is_some(), some);
            // Without a page index, the bounds of a page are in its header.
            let group = reader.get_row_group(0).unwrap();
            let mut pages = group.get_column_page_reader(0).unwrap();
            let page = pages.get_next_page().unwrap().unwrap();
            let in_header = !page_index && statistics == StatisticsLevel::Page;
            assert_eq!(page.statistics().is_some(), in_header);
            if let Some(statistics) = page.statistics() {
                assert_eq!(statistics.max_bytes_opt().unwrap(), (2i64 * 999).to_le_bytes());
            }
        }
    }
}

#[test]
fn a_bloom_filter_contains_every_value_and_few_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.parquet");
    let mut options = FileOptions::default();
    for column in ["id", "tags", "word"] {
        options.bloom.push(BloomColumn::new(column));
    }
    generate(&path, options);
    let properties = ReaderProperties::builder().set_read_bloom_filter(true).build();
    let options = ReadOptionsBuilder::new().with_reader_properties(properties).build();
    let reader = SerializedFileReader::new_with_options(File::open(&path).unwrap(), options).unwrap();
    let group = reader.get_row_group(0).unwrap();
    let ids = group.get_column_bloom_filter(0).unwrap();
    assert!((0..20_000i64).all(|i| ids.check(&(2 * i))));
    let wrong = (0..20_000i64).filter(|i| ids.check(&(2 * i + 1))).count();
    assert!(wrong < 400, "{wrong} of 20,000");
    let all = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    let all = all.with_batch_size(20_000).build().unwrap().next().unwrap().unwrap();
    let words = group.get_column_bloom_filter(2).unwrap();
    assert!(all.column(2).as_string::<i32>().iter().flatten().all(|word| words.check(&word)));
    assert!(!words.check(&"certainly not one of them"));
    let tags = group.get_column_bloom_filter(1).unwrap();
    assert!((1..=50i32).all(|tag| tags.check(&tag)));
}
