//! `sawmill gen`: sizes of files and row groups, in folders and of long values, and the memory they take.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::harness::{peak, sawmill, start, wait};

/// Writes a spec and returns its path.
fn spec(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(format!("{name}.toml"));
    fs::write(&path, format!("name = \"{name}\"\n{text}")).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Blobs of up to 1 MB, with what else is drawn value by value.
const BLOBS: &str = r#"fields = [
    { name = "id", type = "int64", values = { sequence = { start = 1, step = 1 } } },
    { name = "blob", type = "binary", nulls = 0.1, values = { bytes = { min = 0, max = 1_000_000 } } },
    { name = "parts", type = "list", nulls = 0.1, length = { uniform = { min = 0, max = 3 } },
      element = { type = "string", nulls = 0.2, values = { words = { min = 0, max = 9 } } } },
    { name = "key", type = "uuid", values = "uuid" },
]"#;

#[test]
fn the_files_and_row_groups_of_the_largest_folder_have_the_size_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let cities: Vec<String> = (0..15).map(|city| format!("\"city {city}\"")).collect();
    let cities = cities.join(", ");
    let even = format!("values = {{ choice = [{cities}] }}");
    let skewed = "values = { weights = { most = 8, some = 3, few = 1 } }";
    for (name, city) in [("even", even.as_str()), ("skewed", skewed)] {
        let fields = format!(
            r#"fields = [
                {{ name = "city", type = "string", {city} }},
                {{ name = "n", type = "int64", values = {{ uniform = {{ min = 0, max = 1_000_000_000_000 }} }} }},
            ]"#
        );
        let spec = spec(dir.path(), name, &fields);
        let out = dir.path().join(format!("{name}-out"));
        let sizes = ["--file-size", "500KB", "--row-group-size", "100KB", "--rows", "1500k"];
        let args = ["gen", &spec, "--partition-by", "city", "--json", "--out", out.to_str().unwrap()];
        let made = sawmill(args.iter().chain(&sizes)).ok().json();
        let files = made["files"].as_array().unwrap();
        let last = files.iter().map(|file| file["file"].as_u64().unwrap()).max().unwrap();
        let mut largest = 0;
        for file in files.iter().filter(|file| file["file"].as_u64().unwrap() < last) {
            let bytes = file["bytes"].as_u64().unwrap();
            assert!(bytes < 650_000, "{name}: {bytes}");
            if name == "even" || file["path"].as_str().unwrap().contains("city=most") {
                assert!(bytes > 400_000, "{name}: {bytes}");
            }
            if bytes > largest {
                largest = bytes;
                let groups = file["row_groups"].as_u64().unwrap();
                assert!((4..=7).contains(&groups), "{name}: {groups} row groups in {bytes} bytes");
            }
        }
        assert!(last >= 1, "{name}: {last}");
    }
}

#[test]
fn row_groups_of_long_values_and_their_memory_stay_small() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), "blobs", BLOBS);
    let args = ["gen", &spec, "--rows", "1000", "--threads", "2", "--json", "--out", "/dev/null"];
    let child = start(args);
    let pid = child.id();
    let watch = std::thread::spawn(move || {
        let mut most = 0;
        while let Some(now) = peak(pid).filter(|now| *now >= most) {
            most = now;
            std::thread::sleep(Duration::from_millis(2));
        }
        most
    });
    let made = wait(child).ok().json();
    let most = watch.join().unwrap();
    let file = &made["files"][0];
    let group = file["bytes"].as_u64().unwrap() / file["row_groups"].as_u64().unwrap();
    assert!(group < 80 << 20, "row groups of {group} bytes");
    assert!(most < 600 << 20, "{} MiB", most >> 20);
}

#[test]
fn rows_are_the_same_in_row_groups_of_part_of_a_block_and_bytes_whatever_the_threads() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), "blobs", &BLOBS.replace("1_000_000", "500"));
    let make = |name: &str, more: &[&str]| {
        let out = dir.path().join(format!("{name}.parquet"));
        let args = ["gen", &spec, "--rows", "2500", "--out", out.to_str().unwrap()];
        sawmill(args.iter().chain(more)).ok();
        out
    };
    let read = |path: &Path| {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        let mut batches: Vec<RecordBatch> =
            reader.with_batch_size(2500).build().unwrap().map(Result::unwrap).collect();
        assert_eq!(batches.len(), 1);
        batches.remove(0)
    };
    let whole = read(&make("whole", &[]));
    assert_eq!((whole.num_rows(), whole.column(1).null_count() > 0), (2500, true));
    for (rows, page) in [("7", "3"), ("700", "16"), ("1000", "999")] {
        let sizes = ["--row-group-rows", rows, "--page-rows", page];
        let one = make(&format!("one-{rows}"), &[&sizes[..], &["--threads", "1"]].concat());
        let many = make(&format!("many-{rows}"), &[&sizes[..], &["--threads", "4"]].concat());
        assert!(fs::read(&one).unwrap() == fs::read(many).unwrap());
        assert!(read(&one) == whole, "{rows}");
    }
}

#[test]
fn a_row_group_ends_at_its_rows_or_at_its_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("x.parquet");
    let groups = |rows: &str, size: &str| {
        let args = ["gen", "contacts", "--rows", "20k", "--overwrite", "--out", out.to_str().unwrap()];
        sawmill(args.iter().chain(&["--row-group-rows", rows, "--row-group-size", size])).ok();
        SerializedFileReader::new(File::open(&out).unwrap()).unwrap().metadata().num_row_groups()
    };
    assert_eq!(groups("2k", "1MB"), 10);
    assert!((4..=8).contains(&groups("1M", "100KB")));
}

/// One record of a hundred thousand takes 2 MB: in some of the samples that row groups are measured by there
/// is none.
const RARE: &str = r#"fields = [
    { name = "id", type = "int64", values = { sequence = { start = 1, step = 1 } } },
    { name = "parts", type = "list", length = { weights = { 0 = 99_999, 20 = 1 } },
      element = { type = "binary", values = { bytes = { min = 100_000, max = 100_000 } } } },
    { name = "city", type = "int32", values = { zipf = { n = 4, s = 1.5 } } },
]"#;

#[test]
fn row_groups_end_at_their_bytes_where_a_sample_has_none_of_the_long_rows() {
    let dir = tempfile::tempdir().unwrap();
    let rare = spec(dir.path(), "rare", RARE);
    let make = |name: &str, seed: &str, more: &[&str]| {
        let out = dir.path().join(name);
        let sizes = ["--rows", "400k", "--row-group-size", "1MB", "--page-rows", "1024", "--seed", seed];
        let args = ["gen", &rare, "--overwrite", "--out", out.to_str().unwrap()];
        sawmill(args.iter().chain(&sizes).chain(more)).ok();
        out
    };
    let mut groups = 0;
    for seed in ["1", "2", "3", "4"] {
        let one = make("one.parquet", seed, &["--threads", "1"]);
        let many = make("many.parquet", seed, &["--threads", "4"]);
        assert!(fs::read(&one).unwrap() == fs::read(many).unwrap(), "seed {seed}");
        let file = SerializedFileReader::new(File::open(&one).unwrap()).unwrap();
        assert_eq!(file.metadata().file_metadata().num_rows(), 400_000);
        for group in file.metadata().row_groups() {
            // A quarter more than asked for, and the page that reaches it, which has two of the long rows at
            // most.
            assert!(group.compressed_size() < 1_250_000 + 4_100_000, "seed {seed}: {group:?}");
            groups += 1;
        }
    }
    assert!(groups > 4, "{groups}");
    let folders = make("folders", "1", &["--partition-by", "city"]);
    let footers = sawmill(["footer", folders.to_str().unwrap(), "--json"]).ok().json();
    let rows: u64 =
        footers["files"].as_array().unwrap().iter().map(|file| file["rows"].as_u64().unwrap()).sum();
    assert_eq!(rows, 400_000);
}

#[test]
fn sizes_beyond_memory_are_rejected_with_the_largest_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = spec(dir.path(), "blobs", BLOBS);
    let long = r#"fields = [{ name = "all", type = "list", length = { uniform = { min = 0, max = 4000 } },
        element = { type = "binary", values = { bytes = { min = 0, max = 1_000_000 } } } }]"#;
    let long = spec(dir.path(), "long", long);
    for (args, expected) in [
        (vec![blobs.as_str(), "--rows", "1M", "--row-group-rows", "100k"], "use at most 2"),
        (vec![&blobs, "--rows", "1M", "--row-group-size", "500KB"], "a value may take 1000000 bytes"),
        (vec![&long, "--rows", "1"], "4000 values of up to 1000000 bytes in one record"),
    ] {
        let error = sawmill(["gen"].iter().chain(&args).chain(&["--out", "/dev/null"])).fails(2);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}
