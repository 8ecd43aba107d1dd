//! Directories as Spark and Hive write them, in every command that walks one.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::sawmill;
use crate::load::Bench;

/// What Spark leaves while a job is under way and after it: 300 rows in three parts, and a copy of them in
/// `_temporary` that is not yet, or no longer, part of the data.
fn spark_output(dir: &Path) -> PathBuf {
    let job = dir.join("job");
    let made = dir.join("made.parquet");
    sawmill(["gen", "contacts", "--rows", "100", "--out", made.to_str().unwrap()]).ok();
    for name in ["part-00000", "part-00001", "day/part-00002"] {
        put(&made, &job.join(format!("{name}.snappy.parquet")));
        put(&made, &job.join(format!("_temporary/0/task_202611/{name}.snappy.parquet")));
        put(&made, &job.join(format!(".spark-staging-1/{name}.snappy.parquet")));
    }
    put(&made, &job.join("_part-00003.parquet"));
    for name in ["_SUCCESS", "._SUCCESS.crc", ".part-00000.snappy.parquet.crc", "_metadata.parquet"] {
        fs::write(job.join(name), "no rows").unwrap();
    }
    job
}

fn put(file: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(file, to).unwrap();
}

#[test]
fn unfinished_output_is_left_out_of_a_directory_and_of_patterns() {
    let bench = Bench::new();
    let job = spark_output(bench.dir.path());
    bench.load(&job, "walked", &["--verify"]).ok();
    assert_eq!(bench.count("select count(*) from walked"), 300);
    for pattern in ["**/*.parquet", "**", "*"] {
        let pattern = job.join(pattern);
        bench.load(&pattern, "matched", &["--mode", "replace"]).ok();
        assert_eq!(bench.count("select count(*) from matched"), 300, "{}", pattern.display());
    }
    sawmill(bench.args("verify", &job, "walked", &[])).ok();
    let footers = sawmill(["footer", job.to_str().unwrap(), "--json"]).ok().json();
    assert_eq!(footers["files"].as_array().map(Vec::len), Some(3), "{footers}");
    let spec = sawmill(["gen", "spec", "--like", job.to_str().unwrap()]).ok().out;
    assert!(spec.contains("phones"), "{spec}");
}

#[test]
fn what_is_named_itself_is_taken_whatever_its_name() {
    let bench = Bench::new();
    let job = spark_output(bench.dir.path());
    bench.load(&job.join("_part-00003.parquet"), "file", &["--verify"]).ok();
    assert_eq!(bench.count("select count(*) from file"), 100);
    bench.load(&job.join("_temporary"), "directory", &["--verify"]).ok();
    assert_eq!(bench.count("select count(*) from directory"), 300);
    bench.load(&job.join("_temporary/*/*/*.parquet"), "pattern", &["--verify"]).ok();
    assert_eq!(bench.count("select count(*) from pattern"), 200);
}

#[test]
fn a_directory_of_unfinished_output_only_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("made.parquet");
    sawmill(["gen", "contacts", "--rows", "10", "--out", made.to_str().unwrap()]).ok();
    put(&made, &dir.path().join("job/_temporary/0/part-0.parquet"));
    let error = sawmill(["footer", dir.path().join("job").to_str().unwrap()]).fails(1);
    assert!(error.contains("names that start with _ or ."), "{error}");
    let error = sawmill(["footer", dir.path().join("job/*").to_str().unwrap()]).fails(1);
    assert!(error.contains("names that start with _ or ."), "{error}");
}
