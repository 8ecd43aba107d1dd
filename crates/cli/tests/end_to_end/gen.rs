//! `sawmill gen`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{command, names, sawmill, signal, start, until, wait};

#[test]
fn files_are_the_same_for_a_seed_and_differ_between_seeds() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str, seed: &str, threads: &str| {
        let out = dir.path().join(name);
        let out = out.to_str().unwrap();
        sawmill([
            "gen",
            "contacts",
            "--rows",
            "10k",
            "--files",
            "2",
            "--out",
            out,
            "--seed",
            seed,
            "--threads",
            threads,
        ])
        .ok();
        let whole = |n: &&String| n.ends_with(".parquet");
        names(Path::new(out))
            .iter()
            .filter(whole)
            .map(|n| fs::read(Path::new(out).join(n)).unwrap())
            .collect::<Vec<_>>()
    };
    let first = make("a", "7", "1");
    assert_eq!(first.len(), 2);
    assert!(first == make("b", "7", "3"));
    assert!(first != make("c", "8", "1"));
}

#[test]
fn a_summary_for_people_and_one_for_programs() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("x.parquet");
    let out = out.to_str().unwrap();
    let text = sawmill(["gen", "contacts", "--rows", "1500", "--out", out]).ok().out;
    assert!(text.contains("1 file") && text.contains("1,500 rows") && text.contains("rows/s"), "{text}");
    let json =
        sawmill(["gen", "contacts", "--rows", "1.5k", "--out", out, "--overwrite", "--json"]).ok().json();
    assert_eq!(json["rows"], 1500);
    assert_eq!(json["files"][0]["path"], out);
    assert_eq!(json["files"][0]["bytes"], fs::metadata(out).unwrap().len());
    assert!(json["phase"]["wall"].as_f64().unwrap() > 0.0, "{json}");
}

#[test]
fn a_single_file_is_replaced_only_when_asked_to() {
    let dir = tempfile::tempdir().unwrap();
    for (name, format) in [("x.parquet", "parquet"), ("x.csv", "csv"), ("x.ndjson", "ndjson")] {
        let out = dir.path().join(name);
        let args = ["gen", "devices", "--rows", "10", "--as", format, "--out", out.to_str().unwrap()];
        fs::write(&out, "precious").unwrap();
        let error = sawmill(args).fails(2);
        assert!(error.contains(name) && error.contains("--overwrite"), "{error}");
        assert_eq!(fs::read(&out).unwrap(), b"precious");
        sawmill(args.iter().chain(&["--overwrite"])).ok();
        assert_ne!(fs::read(&out).unwrap(), b"precious");
    }
    let link = dir.path().join("link.parquet");
    std::os::unix::fs::symlink(dir.path().join("nowhere"), &link).unwrap();
    sawmill(["gen", "devices", "--rows", "10", "--out", link.to_str().unwrap()]).fails(2);
    assert!(link.is_symlink());
}

#[test]
fn the_file_that_a_dataset_is_taken_from_is_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let source = at("x.parquet");
    sawmill(["gen", "devices", "--rows", "100", "--out", &source]).ok();
    let before = fs::read(&source).unwrap();
    fs::hard_link(&source, at("hard.parquet")).unwrap();
    std::os::unix::fs::symlink(&source, at("soft.parquet")).unwrap();
    fs::create_dir(at("out")).unwrap();
    fs::hard_link(&source, at("out/x-00000.parquet")).unwrap();
    for out in ["x.parquet", "hard.parquet", "soft.parquet", "./out/../x.parquet", "out"] {
        for way in ["--like", "--schema-of"] {
            let args = ["gen", way, &source, "--rows", "5", "--overwrite", "--out", &at(out)];
            let error = sawmill(args).fails(2);
            assert!(error.contains("would be replaced"), "{out}: {error}");
            assert_eq!(fs::read(at("out/x-00000.parquet")).unwrap(), before, "{out}");
            assert_eq!(fs::read(&source).unwrap(), before, "{out}");
        }
    }
    let spec = at("spec.csv");
    fs::write(&spec, sawmill(["gen", "spec", "devices"]).ok().out).unwrap();
    let args = ["gen", &spec, "--rows", "5", "--as", "csv", "--overwrite", "--out", &spec];
    assert!(sawmill(args).fails(2).contains("would be replaced"));
}

#[test]
fn a_file_can_go_to_standard_output() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("x.parquet");
    sawmill(["gen", "contacts", "--rows", "100", "--out", out.to_str().unwrap()]).ok();
    let piped = command(["gen", "contacts", "--rows", "100", "--out", "-"]).output().unwrap();
    assert!(piped.status.success() && piped.stderr.is_empty());
    assert!(piped.stdout == fs::read(out).unwrap());
}

#[test]
fn a_spec_file_is_generated_and_a_wrong_one_is_rejected_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let spec = dir.path().join("mine.toml");
    let out = dir.path().join("out");
    fs::write(&spec, sawmill(["gen", "spec", "contacts"]).ok().out.replace("\"contacts\"", "\"mine\""))
        .unwrap();
    sawmill(["gen", spec.to_str().unwrap(), "--rows", "10", "--out", out.to_str().unwrap()]).ok();
    assert_eq!(names(&out), ["_sawmill.mine.json", "mine-00000.parquet"]);
    fs::write(&spec, "name = \"mine\"\n[[fields]]\nname = \"x\"\ntype = \"int33\"\n").unwrap();
    let error = sawmill(["gen", spec.to_str().unwrap()]).fails(2);
    assert!(error.contains("int33") && error.contains("mine.toml, line 4, column 8"), "{error}");
}

#[test]
fn wrong_arguments_are_rejected_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.parquet");
    for (args, expected) in [
        (vec!["gen", "nothing"], "contacts"),
        (vec!["gen", "contacts", "--rows", "1.5"], "not a whole count"),
        (vec!["gen", "contacts", "--files", "0"], "1 to"),
        (vec!["gen", "contacts", "--files", "2", "--out", file.to_str().unwrap()], "into one"),
        (vec!["gen", "contacts", "--row-group-rows", "0"], "row groups of 0"),
    ] {
        let ran = sawmill(&args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
    }
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let error = sawmill(["gen", "contacts", "--rows", "1M", "--out", "/dev/full"]).fails(1);
    assert!(error.contains("/dev/full") && error.contains("No space left"), "{error}");
}

#[test]
fn a_limit_on_file_sizes_leaves_no_file_that_looks_whole() {
    let dir = tempfile::tempdir().unwrap();
    // 512 KiB a file, far less than a million rows take. The signal that goes with the limit is
    // ignored, as `trap` hands it down, so that the write fails instead.
    let script = format!(
        "trap '' XFSZ; ulimit -f 512; exec {} gen contacts --rows 1M --out {}",
        env!("CARGO_BIN_EXE_sawmill"),
        dir.path().display()
    );
    let ran = Command::new("bash").args(["-c", &script]).output().unwrap();
    let error = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(1), "{error}");
    assert!(error.contains("contacts-00000.parquet") && error.contains("bytes"), "{error}");
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn ctrl_c_leaves_whole_files_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let args = ["gen", "contacts", "--rows", "1B", "--files", "1000", "--out", out.to_str().unwrap()];
    let child = start(args);
    until("the first file", || out.join("contacts-00000.parquet").exists());
    signal(&child, "INT");
    let error = wait(child).fails(130);
    assert!(error.contains("interrupted"), "{error}");
    let whole = |name: &String| name.ends_with(".parquet") || name == "_sawmill.contacts.json";
    assert!(names(&out).iter().all(whole), "{:?}", names(&out));
    sawmill(["footer", out.to_str().unwrap()]).ok();
}

#[test]
fn python_reads_what_was_written() {
    // An interpreter with pyarrow; CI makes one, others may have it.
    let python = std::env::var("SAWMILL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let there = Command::new(&python).args(["-c", "import pyarrow.parquet"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        println!("skipped: {python} has no pyarrow; name one that has in SAWMILL_PYTHON");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    sawmill(["gen", "contacts", "--rows", "50000", "--files", "3", "--out", dir.path().to_str().unwrap()])
        .ok();
    let script = r"
import glob, sys, pyarrow as pa, pyarrow.parquet as pq, pyarrow.compute as pc
rows = 0
for path in sorted(glob.glob(sys.argv[1] + '/*.parquet')):
    file = pq.ParquetFile(path)
    table = file.read()
    table.validate(full=True)
    phone = pa.struct([pa.field('number', pa.string()), pa.field('phone_type', pa.string())])
    assert table.schema.field('name').type == pa.string(), table.schema
    assert table.schema.field('phones').type.value_type == phone, table.schema
    rows += table.num_rows
    for group in range(file.num_row_groups):
        part = file.read_row_group(group)
        flat = pc.list_flatten(part['phones']).combine_chunks()
        columns = [part['name'], flat.field('number'), flat.field('phone_type')]
        for index, values in enumerate(columns):
            statistics = file.metadata.row_group(group).column(index).statistics
            bounds = pc.min_max(values).as_py()
            assert (statistics.min, statistics.max) == (bounds['min'], bounds['max']), statistics
print(rows)
";
    let ran = Command::new(&python).args(["-c", script, dir.path().to_str().unwrap()]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), "50000");
}
