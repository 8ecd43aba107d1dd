//! The other sub-commands treat URLs as they treat paths.

use std::path::Path;

use super::s3::S3;
use super::web::{Fate, Web};
use super::{contacts, served, with_s3};
use crate::harness::{Ran, sawmill};
use crate::load::Bench;

const OBJECT: &str = "s3://trips/data/contacts-00000.parquet";

const TEXT: &str = "id,name,at\n1,a,2024-01-01\n2,\"b, c\",2024-01-02\n3,,2024-01-03\n";

/// A command prints the same for a path and for a URL, apart from their names.
fn same(web: &Web, file: &Path, args: &[&str]) {
    let of = |place: &str| args.iter().map(|arg| arg.replace("PLACE", place)).collect::<Vec<String>>();
    let here = sawmill(of(file.to_str().unwrap())).ok().out.replace(file.to_str().unwrap(), "");
    let there = with_s3(web, &of(OBJECT)).ok().out.replace(OBJECT, "");
    assert_eq!(there, here, "{args:?}");
    assert!(!here.is_empty());
}

#[test]
fn rows_differences_and_bloom_filters_of_an_object_are_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("trips/data");
    let gen_args = ["gen", "contacts", "--rows", "5k", "--bloom", "name", "--out"];
    sawmill([&gen_args[..], &[out.to_str().unwrap()]].concat()).ok();
    let web = Web::serve(folder.path(), |_, _| Fate::Answered);
    let file = out.join("contacts-00000.parquet");
    same(&web, &file, &["footer", "head", "PLACE", "-n", "3", "--skip", "100"]);
    same(&web, &file, &["footer", "cat", "PLACE", "--column", "name"]);
    same(&web, &file, &["footer", "bloom", "PLACE", "--column", "name", "--value", "1"]);
    with_s3(&web, &["footer", "diff", OBJECT, file.to_str().unwrap()]).ok();
    let missing = "s3://trips/data/none.parquet";
    for verb in [&["head"][..], &["cat"], &["bloom", "--column", "name", "--value", "a"], &["diff", OBJECT]] {
        let error = with_s3(&web, &[&["footer"], verb, &[missing]].concat()).fails(1);
        assert!(error.contains("there is no such object") && error.contains(missing), "{error}");
    }
}

#[test]
fn specs_are_inferred_from_objects_as_from_files() {
    let folder = tempfile::tempdir().unwrap();
    contacts(folder.path(), "6k", "3");
    let data = folder.path().join("trips/data");
    let Some(s3) = S3::with("trips", &folder.path().join("trips")) else { return };
    for option in ["--like", "--schema-of"] {
        let here = sawmill(["gen", "spec", option, data.to_str().unwrap()]).ok().out;
        assert_eq!(s3.sawmill(&["gen", "spec", option, "s3://trips/data"]).ok().out, here, "{option}");
    }
    let of = |source: &str| {
        let args = ["gen", "fidelity", source, data.to_str().unwrap(), "--json"];
        s3.sawmill(&args).ok().json()
    };
    assert_eq!(of("s3://trips/data/*.parquet"), of(data.to_str().unwrap()));
    // A spec's source is not replaced.
    let before = s3.object("trips", "data/contacts-00000.parquet");
    let args = ["gen", "--like", OBJECT, "--rows", "10", "--out", OBJECT, "--overwrite"];
    let ran = s3.sawmill(&args);
    assert_ne!(ran.code, Some(0), "{}", ran.out);
    assert_eq!(s3.object("trips", "data/contacts-00000.parquet"), before);
}

#[test]
fn text_and_parquet_are_converted_between_objects() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), TEXT).unwrap();
    let Some(s3) = S3::with("raw", folder.path()) else { return };
    let local = folder.path().join("a.parquet");
    let text = folder.path().join("a.csv");
    sawmill(["convert", text.to_str().unwrap(), "--out", local.to_str().unwrap()]).ok();
    s3.sawmill(&["convert", "s3://raw/a.csv", "--out", "s3://raw/out/a.parquet"]).ok();
    assert_eq!(s3.object("raw", "out/a.parquet").unwrap(), std::fs::read(&local).unwrap());
    s3.sawmill(&["convert", "s3://raw/out/a.parquet", "--out", "s3://raw/out/back.csv"]).ok();
    let back = String::from_utf8(s3.object("raw", "out/back.csv").unwrap()).unwrap();
    assert!(back.contains("2,\"b, c\",2024-01-02"), "{back}");
    // Neither an input nor, unless told to, another object is replaced; what fails leaves nothing.
    for (out, why) in [
        ("s3://raw/a.csv", "the output is one of the inputs"),
        ("s3://raw/out/back.csv", "the object exists already"),
        ("s3://raw/out.x", "the format to write is not known"),
        ("s3://raw/out/", "other objects than part-NNNNN"),
    ] {
        let error = s3.sawmill(&["convert", "s3://raw/a.csv", "--out", out]).fails(2);
        assert!(error.contains(why) && error.contains(out.trim_end_matches('/')), "{error}");
    }
    s3.sawmill(&["convert", "s3://raw/a.csv", "--out", "s3://raw/out/back.csv", "--overwrite"]).ok();
    s3.put("raw", "broken.csv", b"a,b\n1,2\n\"3\n");
    let error = s3.sawmill(&["convert", "s3://raw/broken.csv", "--out", "s3://raw/broken.parquet"]).fails(1);
    assert!(error.contains("s3://raw/broken.csv") && !error.contains("/sawmill-"), "{error}");
    assert_eq!(s3.object("raw", "broken.parquet"), None);
    assert_eq!(s3.uploads("raw"), [""; 0]);
}

#[test]
fn folders_of_a_store_take_the_files_of_a_conversion_when_all_are_complete() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..30_000).map(|id| format!("{id},2024-01-0{} 00:00:00\n", 1 + id % 3)).collect();
    std::fs::write(folder.path().join("a.csv"), format!("id,at\n{lines}")).unwrap();
    let Some(s3) = S3::with("raw", folder.path()) else { return };
    let ordered = ["--sort-by", "at", "--partition-by", "day(at)"];
    for (to, options) in [("days", &ordered[..]), ("parts", &["--file-size", "100kB"])] {
        let (local, url) = (folder.path().join(to), format!("s3://raw/out/{to}"));
        let of = |out| [&["convert", "s3://raw/a.csv", "--out", out], options].concat();
        s3.sawmill(&of(local.to_str().unwrap())).ok();
        s3.sawmill(&of(&url)).ok();
        let rows = s3.sawmill(&["convert", &url, "--parse-only", "--json"]).ok().json()["rows"].clone();
        assert_eq!(rows, 30_000);
        let name = if to == "days" { "day=2024-01-02/part-0.parquet" } else { "part-00001.parquet" };
        let sent = s3.object("raw", &format!("out/{to}/{name}")).unwrap();
        assert_eq!(sent, std::fs::read(local.join(name)).unwrap());
        assert_eq!(s3.object("raw", &format!("out/{to}/_unfinished_by_sawmill_convert")), None);
        // Existing objects stay, unless --overwrite is given or an unfinished run left them.
        assert!(s3.sawmill(&of(&url)).fails(2).contains("--overwrite replaces them"));
        let stale = format!(
            "out/{to}/{}",
            if to == "days" { "day=1999-01-01/part-0.parquet" } else { "part-00099.parquet" }
        );
        s3.put("raw", &stale, b"stale");
        s3.put("raw", &format!("out/{to}/_unfinished_by_sawmill_convert"), b"");
        for read in [&["convert", &url, "--parse-only"][..], &["footer", &url], &["doctor", &url]] {
            let error = s3.sawmill(read).fails(1);
            assert!(error.contains("the folder is unfinished: a convert into it was interrupted"), "{error}");
        }
        // A part of the folder, by its name or a pattern, is as unfinished as all of it.
        for part in ["day=2024-01-02", "day=2024-01-02/", "day=2024-01-02/*.parquet"] {
            let error = s3.sawmill(&["convert", &format!("s3://raw/out/days/{part}"), "--parse-only"]);
            assert_eq!(error.err.contains("the folder is unfinished"), to == "days", "{}", error.err);
        }
        let some = ["convert", &format!("{url}/{name}"), "--parse-only"];
        s3.sawmill(&some).ok();
        s3.sawmill(&of(&url)).ok();
        assert_eq!(s3.object("raw", &stale), None, "the rows of the run that did not finish are gone");
        assert_eq!(s3.object("raw", &format!("out/{to}/_unfinished_by_sawmill_convert")), None);
        s3.put("raw", &format!("out/{to}/mine.txt"), b"mine");
        let error = s3.sawmill(&[&of(&url)[..], &["--overwrite"]].concat()).fails(2);
        assert!(error.contains("mine.txt"), "{error}");
    }
    let sorted = ["convert", "s3://raw/a.csv", "--sort-by", "at", "--out", "s3://raw/sorted.parquet"];
    s3.sawmill(&sorted).ok();
    assert!(s3.object("raw", "sorted.parquet").is_some());
    assert_eq!(s3.uploads("raw"), [""; 0]);
}

#[test]
fn text_loads_from_folders_of_a_store_and_from_web_servers() {
    let folder = tempfile::tempdir().unwrap();
    for day in 1..=3 {
        let below = folder.path().join(format!("raw/data/day=2024-01-0{day}"));
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(below.join("x.csv"), TEXT).unwrap();
    }
    let bench = Bench::new();
    if let Some(s3) = S3::with("raw", &folder.path().join("raw")) {
        let args = bench.args("load", Path::new("s3://raw/data"), "c", &["--verify"]);
        s3.sawmill(&args).ok();
        assert_eq!(bench.count("select count(*) from c where day >= date '2024-01-02'"), 6);
        let args = bench.args("verify", &folder.path().join("raw/data"), "c", &[]);
        sawmill(args).ok();
        // The same command finds its load complete: copies of objects are known by their URLs.
        s3.sawmill(&bench.args("load", Path::new("s3://raw/data"), "c", &["--mode", "append"])).ok();
        assert_eq!(bench.count("select count(*) from c"), 9);
    }
    let web = Web::serve(folder.path(), |_, _| Fate::Answered);
    let url = format!("http://{}/raw/data/day=2024-01-01/x.csv", web.address);
    sawmill(bench.args("load", Path::new(&url), "w", &["--verify"])).ok();
    assert_eq!(bench.count("select count(*) from w"), 3);
}

#[test]
fn benchmarks_measure_objects_and_leave_none() {
    let (_folder, web) = served("2k", |_, _| Fate::Answered);
    let runs = ["--runs", "1", "--warmup", "0"];
    let ok = |ran: Ran| assert!(!ran.ok().out.is_empty());
    ok(with_s3(&web, &[&["bench", "footer", OBJECT], &runs[..]].concat()));
    let bench = Bench::new();
    let mut args = bench.args("load", Path::new(OBJECT), "b", &runs);
    args.insert(0, "bench".to_owned());
    ok(with_s3(&web, &args));
    let Some(s3) = S3::empty("out") else { return };
    for out in ["s3://out/scratch", "s3://out/scratch/one.parquet"] {
        ok(s3.sawmill(&[&["bench", "gen", "contacts", "--rows", "2k", "--out", out], &runs[..]].concat()));
        assert_eq!(s3.objects("out"), [""; 0]);
    }
}

#[test]
fn a_folder_that_a_table_format_manages_is_not_taken_as_its_files() {
    let folder = tempfile::tempdir().unwrap();
    contacts(folder.path(), "1k", "1");
    let data = folder.path().join("trips/data");
    std::fs::create_dir(data.join("_delta_log")).unwrap();
    std::fs::write(data.join("_delta_log/00000000000000000000.json"), "{}").unwrap();
    let bench = Bench::new();
    let load = |place: &str| bench.args("load", Path::new(place), "c", &[]);
    let error = sawmill(load(data.to_str().unwrap())).fails(1);
    assert!(error.contains("a Delta table"), "{error}");
    sawmill(["footer", data.to_str().unwrap()]).ok();
    let Some(s3) = S3::with("trips", &folder.path().join("trips")) else { return };
    let error = s3.sawmill(&load("s3://trips/data")).fails(1);
    assert!(error.contains("a Delta table") && error.contains("s3://trips/data"), "{error}");
    s3.sawmill(&load("s3://trips/data/*.parquet")).ok();
    assert_eq!(bench.count("select count(*) from c"), 1000);
}
