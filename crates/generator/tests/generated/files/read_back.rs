//! Generated files, read with the `parquet` crate.

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::reader::SerializedFileReader;
use parquet::record::reader::RowIter;
use proptest::prelude::*;
use sawmill_generator::{Dataset, Error, Existing, Job, Layout, Output, WrittenFile, write};
use sawmill_profile::Profile;

fn generate(
    dataset: &Dataset,
    layout: &Layout,
    out: &Path,
    threads: usize,
) -> Result<Vec<WrittenFile>, Error> {
    let (profile, output, cancel) = (Profile::new(), Output::from_path(out), AtomicBool::new(false));
    let phase = profile.phase("generate");
    write(
        dataset,
        &Job {
            threads: NonZeroUsize::new(threads).unwrap(),
            existing: Existing::Replace,
            ..Job::new(layout, &output, &phase, &cancel)
        },
    )
}

fn contacts() -> Dataset {
    Dataset::built_in("contacts").unwrap().unwrap()
}

/// Most features of specs, nested.
const DEEP: &str = r#"
name = "deep"
[[fields]]
name = "id"
type = "int64"
values = { uniform = { min = -5, max = 9223372036854775807 } }
[[fields]]
name = "flag"
type = "boolean"
nulls = 0.5
values = { weights = { true = 3, false = 1 } }
[[fields]]
name = "price"
type = "double"
nulls = 0
values = { uniform = { min = -1.5, max = 2 } }
[[fields]]
name = "ratio"
type = "float"
values = { weights = { "0.5" = 1, "-2" = 1 } }
[[fields]]
name = "day"
type = "date"
nulls = 1
values = { uniform = { min = 2024-01-01, max = 2024-12-31 } }
[[fields]]
name = "at"
type = "timestamp"
values = { uniform = { min = 1969-12-31T00:00:00, max = 2024-02-29T23:59:59.999999 } }
[[fields]]
name = "rank"
type = "int32"
values = { zipf = { n = 1000, s = 1.2 } }
[[fields]]
name = "country"
type = "string"
nulls = 0.1
values = { constant = "Österreich" }
[[fields]]
name = "box"
type = "struct"
nulls = 0.3
[[fields.fields]]
name = "tags"
type = "list"
length = { uniform = { min = 0, max = 3 } }
[fields.fields.element]
type = "list"
nulls = 0.2
length = { weights = { 0 = 1, 1 = 2, 12 = 1 } }
[fields.fields.element.element]
type = "struct"
nulls = 0.1
present = [{ fields = ["a", "inner"], weight = 2 }, { fields = ["a"], weight = 1 }, { fields = [], weight = 1 }]
[[fields.fields.element.element.fields]]
name = "a"
type = "string"
values = { unique = "k{id:04}" }
[[fields.fields.element.element.fields]]
name = "inner"
type = "list"
length = { zipf = { n = 3, s = 1 } }
element = { type = "int64", values = { constant = 7 } }
[[fields.fields.element.element.fields]]
name = "who"
type = "string"
values = "person_name"
"#;

/// All rows of the files as text, from the record reader of the `parquet` crate.
fn rows(files: &[WrittenFile]) -> Vec<String> {
    files
        .iter()
        .flat_map(|file| {
            let reader = SerializedFileReader::new(File::open(&file.path).unwrap()).unwrap();
            RowIter::from_file_into(Box::new(reader)).map(|row| row.unwrap().to_string())
        })
        .collect()
}

fn batches(path: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.with_batch_size(100_000).build().unwrap().map(Result::unwrap).collect()
}

#[test]
fn contacts_has_the_distributions_of_its_spec() {
    let dir = tempfile::tempdir().unwrap();
    let n = 200_000;
    let files = generate(&contacts(), &Layout::new(n, 2).unwrap(), dir.path(), 2).unwrap();
    let (mut nulls, mut lengths, mut types, mut both) = (0, [0; 6], [0; 3], [0; 4]);
    let mut numbers = std::collections::HashSet::new();
    for batch in files.iter().flat_map(|file| batches(&file.path)) {
        let name = batch.column(0).as_string::<i32>();
        nulls += name.null_count();
        assert!(name.iter().flatten().all(|n| n.split(' ').count() == 2));
        let phones = batch.column(1).as_list::<i32>();
        for i in 0..phones.len() {
            let length = phones.value_length(i) as usize;
            assert_eq!(phones.is_null(i), length == 0);
            lengths[length] += 1;
        }
        let phone = phones.values().as_struct();
        assert_eq!(phone.null_count(), 0);
        let (number, kind) = (phone.column(0).as_string::<i32>(), phone.column(1).as_string::<i32>());
        for (number, kind) in number.iter().zip(kind) {
            both[usize::from(number.is_none()) * 2 + usize::from(kind.is_none())] += 1;
            if let Some(kind) = kind {
                types[["Mobile", "Work", "Home"].iter().position(|k| *k == kind).unwrap()] += 1;
            }
            if let Some(number) = number {
                let digits = number.strip_prefix("+91-").unwrap();
                assert!(digits.len() == 10 && digits.bytes().all(|b| b.is_ascii_digit()));
                assert!(numbers.insert(number.to_owned()), "{number} twice");
            }
        }
    }
    // Within six standard deviations of each share; the seed is fixed.
    let share = |count: usize, of: usize, expected: f64| {
        let deviation = (expected * (1.0 - expected) / of as f64).sqrt();
        let got = count as f64 / of as f64;
        assert!((got - expected).abs() < 6.0 * deviation, "{got} instead of {expected}");
    };
    share(nulls, n as usize, 0.2);
    for (count, expected) in [(lengths[0], 0.4), (lengths[1], 0.45), (lengths[2], 0.1)] {
        share(count, n as usize, expected);
    }
    share(lengths[3..].iter().sum(), n as usize, 0.05);
    for (count, expected) in types.into_iter().zip([0.55, 0.35, 0.1]) {
        share(count, types.iter().sum(), expected);
    }
    for (count, expected) in both.into_iter().zip([0.9, 0.05, 0.04, 0.01]) {
        share(count, both.iter().sum(), expected);
    }
}

#[test]
fn any_number_of_threads_writes_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::new(30_000, 3).unwrap().with_row_group_rows(3_000).unwrap();
    for spec in [contacts(), Dataset::from_toml(DEEP).unwrap()] {
        let one = generate(&spec, &layout, &dir.path().join("one"), 1).unwrap();
        let many = generate(&spec, &layout, &dir.path().join("many"), 5).unwrap();
        for (one, many) in one.iter().zip(&many) {
            assert!(fs::read(&one.path).unwrap() == fs::read(&many.path).unwrap(), "{}", one.path.display());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn rows_are_the_same_whatever_the_layout(n in 1u64..5_000, files in 1u32..5, group in 1u64..3_000) {
        let dir = tempfile::tempdir().unwrap();
        for spec in [contacts(), Dataset::from_toml(DEEP).unwrap()] {
            let plain = generate(&spec, &Layout::new(n, 1).unwrap(), &dir.path().join("a"), 1).unwrap();
            let layout = Layout::new(n, files).unwrap().with_row_group_rows(group).unwrap();
            let other = generate(&spec, &layout, &dir.path().join("b"), 2).unwrap();
            prop_assert_eq!(rows(&plain), rows(&other));
            fs::remove_dir_all(dir.path().join("b")).unwrap();
        }
    }
}

#[test]
fn statistics_and_page_indexes_match_the_values() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = Dataset::from_toml(DEEP).unwrap();
    let layout = Layout::new(40_000, 1).unwrap();
    let files = generate(&dataset, &layout, dir.path(), 2).unwrap();
    let file = File::open(&files[0].path).unwrap();
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let metadata = ArrowReaderMetadata::load(&file, options).unwrap().metadata().clone();
    assert_eq!(metadata.file_metadata().num_rows(), 40_000);
    let batch = {
        let all = batches(&files[0].path);
        assert_eq!(all.len(), 1);
        all.into_iter().next().unwrap()
    };
    let chunk = |column: usize| metadata.row_group(0).column(column);
    let bounds = |column: usize| {
        let statistics = chunk(column).statistics().unwrap();
        (statistics.min_bytes_opt().unwrap().to_vec(), statistics.max_bytes_opt().unwrap().to_vec())
    };
    let ids = batch.column(0).as_primitive::<Int64Type>().values();
    let (low, high) = bounds(0);
    assert_eq!(low, ids.iter().min().unwrap().to_le_bytes());
    assert_eq!(high, ids.iter().max().unwrap().to_le_bytes());
    let ranks = batch.column(6).as_primitive::<Int32Type>().values();
    assert_eq!(bounds(6).1, ranks.iter().max().unwrap().to_le_bytes());
    assert_eq!(bounds(1), (vec![0], vec![1]));
    assert_eq!(bounds(7).0, "Österreich".as_bytes());
    // A column of nulls has a null count but no bounds.
    let days = chunk(4).statistics().unwrap();
    assert_eq!((days.null_count_opt(), days.min_bytes_opt()), (Some(40_000), None));
    for column in 0..10 {
        let statistics = chunk(column).statistics().unwrap();
        let index = metadata.offset_index().unwrap()[0][column].page_locations();
        assert_eq!(index.len(), 3);
        assert_eq!(index[1].first_row_index, 16_384);
        if column < 8 {
            assert_eq!(statistics.null_count_opt().unwrap(), batch.column(column).null_count() as u64);
        }
    }
    let sizes = chunk(7).unencoded_byte_array_data_bytes().unwrap() as usize;
    let there = 40_000 - batch.column(7).null_count();
    assert_eq!(sizes, there * "Österreich".len());
    let levels = chunk(8).definition_level_histogram().unwrap().values();
    assert_eq!(levels.iter().sum::<i64>(), chunk(8).num_values());
    let rows = chunk(8).repetition_level_histogram().unwrap().values()[0];
    assert_eq!(rows, 40_000);
}

#[test]
fn files_without_rows_have_no_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let files = generate(&contacts(), &Layout::new(2, 5).unwrap(), dir.path(), 2).unwrap();
    assert_eq!(files.len(), 5);
    assert_eq!(files.iter().map(|f| f.rows).collect::<Vec<_>>(), [0, 0, 1, 0, 1]);
    assert_eq!(rows(&files).len(), 2);
}

#[test]
fn a_full_disk_is_an_error_with_the_file_and_leaves_no_files() {
    let error = generate(&contacts(), &Layout::new(1_000_000, 1).unwrap(), Path::new("/dev/full"), 2);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("/dev/full") && error.contains("make room"), "{error}");
}

#[test]
fn a_cancelled_job_leaves_only_complete_files() {
    let dir = tempfile::tempdir().unwrap();
    let profile = Profile::new();
    let cancel = AtomicBool::new(false);
    let phase = profile.phase("generate");
    let layout = Layout::new(50_000_000, 100).unwrap();
    let dataset = contacts();
    let output = Output::from_path(dir.path());
    let threads = NonZeroUsize::new(2).unwrap();
    let job = Job { threads, ..Job::new(&layout, &output, &phase, &cancel) };
    let result = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&dataset, &job));
        while phase.rows() < 1_000_000 {
            std::thread::yield_now();
        }
        cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(result.unwrap_err().to_string().contains("interrupted"));
    for entry in fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("_sawmill.contacts.json") {
            continue;
        }
        assert_eq!(path.extension().unwrap(), "parquet", "{}", path.display());
        SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    }
}

#[test]
fn several_files_do_not_fit_into_a_single_file() {
    let dir = tempfile::tempdir().unwrap();
    let error = generate(&contacts(), &Layout::new(10, 2).unwrap(), &dir.path().join("a.parquet"), 1);
    assert!(error.unwrap_err().to_string().contains("2 files do not fit into one"));
}

#[test]
fn a_list_of_a_fixed_size_lies_in_structs_that_are_null() {
    let spec = "name = \"d\"\nrows = 60\n[[fields]]\nname = \"a\"\ntype = \"struct\"\nnulls = 0.3\nfields = [{ name = \"b\", \
                type = \"struct\", fields = [{ name = \"c\", type = \"list\", size = 2, element = { type = \"int32\", \
                values = { uniform = { min = 0, max = 9 } } } }] }]\n";
    let dataset = Dataset::from_toml(spec).unwrap();
    let batch = dataset.batches(0..60, 1, 60).next().unwrap().unwrap();
    let outer = batch.column(0).as_struct();
    assert!((1..60).contains(&outer.null_count()));
    assert_eq!(outer.column(0).as_struct().column(0).null_count(), outer.null_count());
}
