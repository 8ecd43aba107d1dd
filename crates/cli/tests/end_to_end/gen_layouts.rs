//! `sawmill gen`: where rows are, which files it makes, and how it treats existing ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::harness::{names, sawmill, signal, start, until, wait};

/// Every file below a directory with its bytes; manifests left out.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for name in names(directory) {
        let path = directory.join(&name);
        if path.is_dir() {
            all.extend(files(&path).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else if !name.starts_with("_sawmill") {
            all.insert(name, fs::read(path).unwrap());
        }
    }
    all
}

/// Generates contacts into a new directory below `dir` and returns its files.
fn make(dir: &Path, name: &str, args: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let out = dir.join(name);
    let out =
        ["gen", "contacts", "--rows", "20k", "--row-group-rows", "3000", "--out", out.to_str().unwrap()];
    sawmill(out.iter().chain(args)).ok();
    files(&dir.join(name))
}

#[test]
fn bytes_are_the_same_whatever_the_threads_and_writers_and_all_parts_together_are_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    for (name, odd) in [
        ("plain", &["--files", "5"][..]),
        ("zstd", &["--files", "5", "--compression", "zstd", "--data-page-version", "2"]),
        ("folders", &["--files", "5", "--partition-by", "name"]),
    ] {
        let spec = dir.path().join("few.toml");
        let few = "values = { weights = { Ada = 3, Bo = 2, \"a/b c\" = 1 } }";
        let contacts = sawmill(["gen", "spec", "contacts"]).ok().out.replace("values = \"person_name\"", few);
        fs::write(&spec, contacts).unwrap();
        let make = |suffix: &str, args: &[&str]| {
            let out = dir.path().join(format!("{name}-{suffix}"));
            let args: Vec<&str> = odd.iter().chain(args).copied().collect();
            let begin = ["gen", spec.to_str().unwrap(), "--rows", "20k", "--row-group-rows", "3000", "--out"];
            sawmill(begin.iter().copied().chain([out.to_str().unwrap()]).chain(args)).ok();
            files(&out)
        };
        let whole = make("one", &["--threads", "1", "--writers", "1"]);
        assert!(whole == make("many", &["--threads", "4", "--writers", "3"]), "{name}");
        assert!(whole == make("few", &["--threads", "2", "--writers", "1"]), "{name}");
        for part in ["1/3", "2/3", "3/3"] {
            make("parts", &["--part", part, "--threads", "2"]);
        }
        assert!(whole == files(&dir.path().join(format!("{name}-parts"))), "{name}");
    }
}

#[test]
fn folders_have_the_rows_of_their_value_and_not_the_column() {
    let dir = tempfile::tempdir().unwrap();
    let spec = dir.path().join("trips.toml");
    fs::write(
        &spec,
        r#"
        name = "trips"
        fields = [
          { name = "city", type = "string", nulls = 0.2, values = { weights = { Graz = 1, "St/P" = 1 } } },
          { name = "stops", type = "list", nulls = 0.1, length = { uniform = { min = 0, max = 3 } },
            element = { type = "int32", nulls = 0.5, values = { zipf = { n = 9, s = 1 } } } },
        ]"#,
    )
    .unwrap();
    let out = dir.path().join("out");
    let (spec, out_text) = (spec.to_str().unwrap(), out.to_str().unwrap());
    let args = ["gen", spec, "--rows", "10k", "--files", "2", "--partition-by", "city", "--out", out_text];
    let made = sawmill(args.iter().copied().chain(["--json"])).ok().json();
    assert_eq!(made["rows"], 10_000);
    assert_eq!(
        names(&out),
        ["_sawmill.trips.json", "city=Graz", "city=St%2FP", "city=__HIVE_DEFAULT_PARTITION__"]
    );
    assert_eq!(names(&out.join("city=Graz")), ["trips-00000.parquet", "trips-00001.parquet"]);
    let footer = sawmill(["footer", out.join("city=Graz").to_str().unwrap()]).ok().out;
    assert!(footer.contains("one schema, of 1 column\n"), "{footer}");
    let error = sawmill(["gen", spec, "--partition-by", "stops.list.element", "--out", out_text]).fails(2);
    assert!(error.contains("inside a list"), "{error}");
}

#[test]
fn an_empty_string_is_no_folder_and_idle_threads_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let spec = "name = 't'\nfields = [\
        { name = 'city', type = 'string', nulls = 0.2, values = { weights = { Graz = 1, '' = 1 } } },\
        { name = 'n', type = 'int32', values = { constant = 1 } } ]";
    fs::write(at("t.toml"), spec).unwrap();
    let args = ["gen", &at("t.toml"), "--rows", "100", "--partition-by", "city", "--out", &at("out")];
    let error = sawmill(args).fails(2);
    assert!(error.contains("column city") && error.contains("an empty string"), "{error}");
    fs::write(at("t.toml"), spec.replace("''", "__HIVE_DEFAULT_PARTITION__")).unwrap();
    let error = sawmill(args).fails(2);
    assert!(error.contains("column city") && error.contains("__HIVE_DEFAULT_PARTITION__, which"), "{error}");
    let args = ["gen", "contacts", "--rows", "1M", "--row-group-rows", "500k", "--out", &at("c.parquet")];
    let made = sawmill(args.iter().chain(&["--threads", "4"]).copied()).ok();
    assert!(made.err.contains("2 of 4 threads have a row group to write"), "{}", made.err);
}

#[test]
fn a_directory_has_a_manifest_of_what_is_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let made = make(dir.path(), "out", &["--files", "3"]);
    let text = fs::read_to_string(dir.path().join("out/_sawmill.contacts.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(manifest["complete"], true);
    assert_eq!((&manifest["rows"], &manifest["seed"]), (&20_000.into(), &42.into()));
    let listed = manifest["files"].as_array().unwrap();
    assert_eq!(listed.len(), 3);
    for file in listed {
        let name = file["name"].as_str().unwrap();
        assert_eq!(file["bytes"], made[name].len());
        let sum = xxhash_rust::xxh3::xxh3_128(&made[name]);
        assert_eq!(file["file_checksum"], format!("{sum:032x}"));
    }
    let out = dir.path().join("again");
    let out = out.to_str().unwrap();
    let args = ["gen", "contacts", "--rows", "20k", "--row-group-rows", "3000", "--files", "3", "--out", out];
    let checksum = format!("file checksum {}", manifest["file_checksum"].as_str().unwrap());
    assert!(sawmill(args).ok().out.contains(&checksum));
}

#[test]
fn files_of_an_earlier_run_are_rejected_kept_or_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let whole = make(dir.path(), "out", &["--files", "4"]);
    let out = dir.path().join("out");
    let run = |more: &[&str]| {
        let begin = ["gen", "contacts", "--rows", "20k", "--row-group-rows", "3000", "--files", "4", "--out"];
        sawmill(begin.iter().copied().chain([out.to_str().unwrap()]).chain(more.iter().copied()))
    };
    let error = run(&[]).fails(2);
    assert!(error.contains("--resume") && error.contains("--overwrite"), "{error}");
    // One is gone, one is damaged, one was never finished.
    fs::remove_file(out.join("contacts-00001.parquet")).unwrap();
    let mut damaged = whole["contacts-00002.parquet"].clone();
    damaged[100] ^= 1;
    fs::write(out.join("contacts-00002.parquet"), damaged).unwrap();
    fs::write(out.join("contacts-00003.parquet.1-2-3.partial"), b"half").unwrap();
    let resumed = run(&["--resume", "--json"]).ok().json();
    let kept: Vec<bool> =
        resumed["files"].as_array().unwrap().iter().map(|f| f["kept"].as_bool().unwrap()).collect();
    assert_eq!(kept, [true, false, false, true]);
    assert!(files(&out) == whole);
    assert!(run(&["--resume"]).ok().out.contains("4 kept"));
    let error = run(&["--resume", "--seed", "43"]).fails(2);
    assert!(error.contains("seed was 42, is 43"), "{error}");
    let error = run(&["--resume", "--compression", "snappy"]).fails(2);
    assert!(error.contains("compression was none, is snappy"), "{error}");
    run(&["--overwrite", "--seed", "43"]).ok();
    assert!(files(&out) != whole && files(&out).len() == 4);
}

#[test]
fn a_part_and_folders_are_resumed_too() {
    let dir = tempfile::tempdir().unwrap();
    let spec = dir.path().join("few.toml");
    let few = "values = { choice = { file = \"names.txt\" } }";
    let contacts = sawmill(["gen", "spec", "contacts"]).ok().out.replace("values = \"person_name\"", few);
    fs::write(&spec, contacts).unwrap();
    fs::write(dir.path().join("names.txt"), "Ada\nBo\n").unwrap();
    for options in [&["--part", "2/3"][..], &["--partition-by", "name"]] {
        let out = dir.path().join(options[0]);
        let begin = ["gen", spec.to_str().unwrap(), "--rows", "20k", "--files", "6", "--out"];
        let run = |more: &[&str]| {
            let args = begin.iter().copied().chain([out.to_str().unwrap()]).chain(options.iter().copied());
            sawmill(args.chain(more.iter().copied()))
        };
        run(&[]).ok();
        let whole = files(&out);
        let (lost, _) = whole.iter().next_back().unwrap();
        fs::remove_file(out.join(lost)).unwrap();
        let resumed = run(&["--resume", "--json"]).ok().json();
        let made = resumed["files"].as_array().unwrap().iter().filter(|file| file["kept"] == false).count();
        // Of folders all files of the same number are made together: two names and null.
        assert_eq!(made, if options[0] == "--part" { 1 } else { 3 });
        assert!(files(&out) == whole, "{options:?}");
        // A list of words is a part of the spec.
        fs::write(dir.path().join("names.txt"), "Ada\nCy\n").unwrap();
        let error = run(&["--resume"]).fails(2);
        assert!(error.contains("another run") && error.contains("spec"), "{error}");
        fs::write(dir.path().join("names.txt"), "Ada\nBo\n").unwrap();
    }
}

#[test]
fn a_run_that_made_no_file_has_none_to_keep() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let out = dir.path().join("file/out");
    let error = sawmill(["gen", "contacts", "--rows", "10", "--out", out.to_str().unwrap()]).fails(1);
    assert!(!error.contains("--resume"), "{error}");
}

#[test]
fn an_interrupted_run_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let args = ["gen", "contacts", "--rows", "4M", "--files", "40", "--out", out.to_str().unwrap()];
    let child = start(args);
    until("the first file", || out.join("contacts-00000.parquet").exists());
    signal(&child, "INT");
    let error = wait(child).fails(130);
    assert!(error.contains("--resume"), "{error}");
    assert!(names(&out).iter().all(|name| !name.ends_with(".partial")), "{:?}", names(&out));
    let resumed = sawmill(args.iter().copied().chain(["--resume", "--json"])).ok().json();
    let list = resumed["files"].as_array().unwrap();
    assert_eq!(list.len(), 40);
    assert!(list.iter().any(|file| file["kept"] == true));
    assert_eq!(resumed["rows"], 4_000_000);
}

#[test]
fn files_and_row_groups_can_be_asked_for_by_rows_and_by_size() {
    let dir = tempfile::tempdir().unwrap();
    let run = |name: &str, args: &[&str]| {
        let out = dir.path().join(name);
        let begin = ["gen", "contacts", "--rows", "100k", "--json", "--out", out.to_str().unwrap()];
        sawmill(begin.iter().chain(args)).ok().json()
    };
    let rows = |json: &serde_json::Value| -> Vec<u64> {
        json["files"].as_array().unwrap().iter().map(|f| f["rows"].as_u64().unwrap()).collect()
    };
    assert_eq!(rows(&run("rows", &["--rows-per-file", "30k"])), [30_000, 30_000, 30_000, 10_000]);
    let sized = run("size", &["--file-size", "500KB", "--compression", "snappy"]);
    let list = sized["files"].as_array().unwrap();
    assert!(list.len() > 2, "{sized}");
    for file in &list[..list.len() - 1] {
        let bytes = file["bytes"].as_u64().unwrap();
        assert!((400_000..600_000).contains(&bytes), "{bytes}");
    }
    let groups = run("groups", &["--row-group-size", "300KB"]);
    let count = groups["files"][0]["row_groups"].as_u64().unwrap();
    assert!((7..13).contains(&count), "{count}");
}

#[test]
fn layouts_that_cannot_be_written_are_rejected_with_advice() {
    for (args, expected) in [
        (vec!["--encoding", "name=delta"], "plain, dict, delta-length, delta-bytearray"),
        (vec!["--encoding", "byte-stream-split"], "no column can be encoded"),
        (vec!["--encoding", "nome=plain"], "name, phones.list.element.number"),
        (vec!["--encoding", "rle"], "byte-stream-split"),
        (vec!["--bloom", "name:2"], "between 0 and 1"),
        (vec!["--bloom", "nobody"], "the columns are"),
        (vec!["--compression", "zstd:99"], "-7 to 22"),
        (vec!["--key-value", "nothing"], "KEY=VALUE"),
        (vec!["--part", "3/2"], "no part 3 of 2"),
        (vec!["--out", "ftp://host/x"], "ftp://"),
        (vec!["--files", "2", "--rows-per-file", "10"], "cannot be used with"),
        (vec!["--resume", "--out", "/dev/null"], "resume"),
        (vec!["--partition-by", "nobody", "--out", "/dev/null"], "nobody"),
    ] {
        let ran = sawmill(["gen", "contacts", "--rows", "10"].iter().chain(&args));
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
    }
}

#[test]
fn the_arrow_schema_and_keys_of_ones_own_are_in_the_footer_when_asked_for() {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let dir = tempfile::tempdir().unwrap();
    let spec = dir.path().join("zoned.toml");
    let at = "type = \"timestamp\", zone = \"Europe/Berlin\", values = { constant = 2024-01-01 }";
    fs::write(&spec, format!("name = \"z\"\nfields = [{{ name = \"at\", {at} }}]")).unwrap();
    let read = |more: &[&str]| {
        let out = dir.path().join("z.parquet");
        let args =
            ["gen", spec.to_str().unwrap(), "--rows", "10", "--overwrite", "--out", out.to_str().unwrap()];
        sawmill(args.iter().chain(more)).ok();
        ParquetRecordBatchReaderBuilder::try_new(fs::File::open(&out).unwrap()).unwrap()
    };
    let zoned = |more: &[&str]| read(more).schema().field(0).data_type().to_string();
    assert!(zoned(&["--arrow-schema", "yes"]).contains("Europe/Berlin"));
    assert!(zoned(&[]).contains("UTC"));
    let footer = read(&["--key-value", "owner=me=you", "--key-value", "empty="]);
    let pairs = footer.metadata().file_metadata().key_value_metadata().unwrap();
    let pairs: Vec<(&str, Option<&str>)> =
        pairs.iter().map(|p| (p.key.as_str(), p.value.as_deref())).collect();
    assert_eq!(pairs, [("owner", Some("me=you")), ("empty", Some(""))]);
}

/// Rows of every kind of column, plain and nested.
const COLUMNS: &str = r#"
name = "all"
fields = [
  { name = "id", type = "int64", values = { sequence = {} } },
  { name = "small", type = "uint8", nulls = 0.2, values = { uniform = { min = 0, max = 255 } } },
  { name = "price", type = "decimal", precision = 20, scale = 3, nulls = 0.1, values = { uniform = { min = -5, max = 5 } } },
  { name = "ratio", type = "double", nulls = 0.1, values = { choice = [0.1, -0.0, nan, inf] } },
  { name = "day", type = "date", values = { uniform = { min = 1950-01-01, max = 2050-01-01 } } },
  { name = "at", type = "timestamp", zone = "Europe/Vienna", values = { walk = { start = 2024-01-01T00:00:00Z, step = "1s", jitter = 1 } } },
  { name = "old", type = "timestamp", unit = "int96", values = { constant = 2024-01-01T00:00:00.5 } },
  { name = "key", type = "uuid", nulls = 0.1, values = "uuid" },
  { name = "word", type = "enum", values = { choice = ["a", "b", "ö"] } },
  { name = "empty", type = "string", values = { choice = ["a", ""] } },
  { name = "document", type = "json", nulls = 0.1, values = { choice = ['{"a": 1}', '[]'] } },
  { name = "raw", type = "binary", nulls = 0.1, values = { bytes = { min = 0, max = 9 } } },
  { name = "tags", type = "list", nulls = 0.1, length = { uniform = { min = 0, max = 3 } }, element = { type = "uuid", nulls = 0.2, values = "uuid" } },
  { name = "point", type = "struct", nulls = 0.1, fields = [
    { name = "x", type = "float", values = { normal = { mean = 0, stddev = 1 } } },
    { name = "document", type = "json", values = { constant = "{}" } },
    { name = "word", type = "enum", values = { constant = "w" } } ] },
  { name = "counts", type = "map", length = { constant = 2 }, key = { type = "int32", values = { sequence = {} } }, value = { type = "string", nulls = 0.3, values = "words" } },
]"#;

#[test]
fn the_content_sum_of_rows_is_that_of_a_load_whatever_the_layout_and_format() {
    let bench = crate::load::Bench::new();
    let spec = bench.dir.path().join("all.toml");
    fs::write(&spec, COLUMNS).unwrap();
    let run = |out: &str, more: &[&str]| {
        let begin = ["gen", spec.to_str().unwrap(), "--rows", "5000", "--content-sum", "--json", "--out"];
        sawmill(begin.iter().copied().chain([out]).chain(more.iter().copied())).ok().json()
    };
    let at = |name: &str| bench.dir.path().join(name);
    let sum = |json: &serde_json::Value| json["content_sum"].as_str().unwrap().to_owned();
    let whole = run(at("one").to_str().unwrap(), &["--threads", "1"]);
    let layouts: &[&[&str]] = &[
        &["--files", "3", "--row-group-rows", "700", "--threads", "3"],
        &["--compression", "zstd", "--data-page-version", "2", "--page-rows", "64"],
        &["--as", "arrow"],
        &["--as", "ndjson", "--files", "2"],
    ];
    for (i, layout) in layouts.iter().enumerate() {
        let made = run(at(&format!("out-{i}")).to_str().unwrap(), layout);
        assert_eq!(sum(&made), sum(&whole), "{layout:?}");
        assert_ne!(made["file_checksum"], whole["file_checksum"], "{layout:?}");
    }
    for (source, table) in [(at("one"), "one"), (at("out-0"), "three"), (at("out-1"), "pages")] {
        let loaded = bench.load(&source, table, &["--verify", "--json"]).ok().json();
        assert_eq!(loaded["report"]["content"]["content_sum"], sum(&whole), "{table}");
    }
    let generated = format!("gen:{}?rows=5000", spec.display());
    let loaded = bench.load(Path::new(&generated), "generated", &["--json"]).ok().json();
    assert_eq!(loaded["report"]["content"]["content_sum"], sum(&whole));
    // The sums of parts add up.
    let parts = (1..=3).map(|part| {
        let made = run(at("parts").to_str().unwrap(), &["--files", "5", "--part", &format!("{part}/3")]);
        u128::from_str_radix(&sum(&made), 16).unwrap()
    });
    let total = parts.fold(0, u128::wrapping_add);
    assert_eq!(format!("{total:032x}"), sum(&whole));
    // It is in the manifest, even if the rest is generated later.
    let manifest = |directory: &Path| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(directory.join("_sawmill.all.json")).unwrap()).unwrap()
    };
    assert_eq!(manifest(&at("out-0"))["content_sum"], sum(&whole));
    fs::remove_file(at("out-0").join("all-00001.parquet")).unwrap();
    let args = [
        "gen",
        spec.to_str().unwrap(),
        "--rows",
        "5000",
        "--files",
        "3",
        "--row-group-rows",
        "700",
        "--resume",
    ];
    let out = at("out-0");
    let resumed = sawmill(args.iter().copied().chain(["--out", out.to_str().unwrap()])).ok().out;
    assert!(
        resumed.contains("file checksum") && resumed.contains("content sum not computed (add --content-sum"),
        "{resumed}"
    );
    assert_eq!(manifest(&out)["content_sum"], sum(&whole));
    // Adopted files, also from parts, have the sum of the whole.
    let adopted = run(at("parts").to_str().unwrap(), &["--files", "5", "--resume"]);
    assert!(adopted["files"].as_array().unwrap().iter().all(|file| file["kept"] == true));
    assert_eq!(sum(&adopted), sum(&whole));
    assert_eq!(manifest(&at("parts"))["content_sum"], sum(&whole));
    // In folders the column is last and has the type of its text; the sum covers the rows as they are loaded.
    let folders = run(at("folders").to_str().unwrap(), &["--partition-by", "word", "--files", "2"]);
    let loaded = bench.load(&at("folders"), "folders", &["--verify", "--json"]).ok().json();
    assert_eq!(loaded["report"]["content"]["content_sum"], sum(&folders));
    let again = run(at("folders").to_str().unwrap(), &["--partition-by", "word", "--files", "2", "--resume"]);
    assert_eq!(sum(&again), sum(&folders));
}
