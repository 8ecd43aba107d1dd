//! `sawmill gen --part`, several datasets in one directory, and what a manifest says of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::harness::{Ran, names, sawmill};

/// All files below a directory with their bytes, manifests left out.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for name in names(directory).into_iter().filter(|name| !name.starts_with("_sawmill")) {
        let path = directory.join(&name);
        match path.is_dir() {
            true => {
                all.extend(files(&path).into_iter().map(|(file, bytes)| (format!("{name}/{file}"), bytes)))
            }
            false => drop(all.insert(name, fs::read(path).unwrap())),
        }
    }
    all
}

/// Generates devices in six files.
fn run(out: &Path, more: &[&str]) -> Ran {
    let begin = ["gen", "devices", "--rows", "6k", "--files", "6", "--out", out.to_str().unwrap()];
    sawmill(begin.iter().chain(more))
}

fn manifest(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn kept(ran: &Ran) -> Vec<bool> {
    ran.json()["files"].as_array().unwrap().iter().map(|file| file["kept"] == true).collect()
}

#[test]
fn the_whole_adopts_the_parts_that_are_whole_and_names_those_that_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    for more in [&[][..], &["--partition-by", "model"]] {
        let at = |name: &str| dir.path().join(format!("{name}-{}", more.len()));
        run(&at("whole"), more).ok();
        let whole = files(&at("whole"));
        let out = at("parts");
        let part = |part| run(&out, &[more, &["--part", part][..]].concat());
        part("1/3").ok();
        part("3/3").ok();
        // One file of the last part is damaged.
        let (last, mut bytes) = files(&out).into_iter().next_back().unwrap();
        bytes[100] ^= 1;
        fs::write(out.join(last), bytes).unwrap();
        let resumed = run(&out, &[more, &["--resume", "--json"][..]].concat()).ok();
        assert!(resumed.err.contains("complete parts: 1/3"), "{}", resumed.err);
        let missing = "parts whose missing files are made now: 2/3 is missing, 3/3 has 1 of 2 files";
        assert!(resumed.err.contains(missing), "{}", resumed.err);
        assert!(kept(&resumed).contains(&true) && kept(&resumed).contains(&false));
        assert!(files(&out) == whole);
        let manifests: Vec<String> = names(&out).into_iter().filter(|n| n.starts_with("_sawmill")).collect();
        assert_eq!(manifests, ["_sawmill.devices.json"]);
        assert!(
            manifest(&out.join("_sawmill.devices.json"))
                == manifest(&at("whole").join("_sawmill.devices.json"))
        );
        // Nothing is left to do, or to say.
        let again = run(&out, &[more, &["--resume", "--json"][..]].concat()).ok();
        assert!(again.err.is_empty() && !kept(&again).contains(&false), "{}", again.err);
    }
}

#[test]
fn parts_of_another_seed_or_layout_are_not_mixed_with() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    run(&out, &["--part", "1/2"]).ok();
    for (args, difference) in [
        (&["--part", "2/2", "--seed", "43"][..], "seed was 42, is 43"),
        (&["--part", "2/3", "--resume", "--rows", "7k"], "rows was 6000, is 7000"),
        (&["--resume", "--seed", "43"], "seed was 42, is 43"),
    ] {
        let begin = ["gen", "devices", "--files", "6", "--out", out.to_str().unwrap()];
        let rows: &[&str] = if args.contains(&"--rows") { &[] } else { &["--rows", "6k"] };
        let error = sawmill(begin.iter().chain(rows).chain(args)).fails(2);
        assert!(error.contains(difference) && error.contains("_sawmill.devices.part-1-of-2.json"), "{error}");
    }
    run(&out, &["--overwrite", "--seed", "43"]).ok();
    assert!(!names(&out).contains(&"_sawmill.devices.part-1-of-2.json".to_owned()));
}

#[test]
fn a_part_that_replaces_files_of_the_whole_removes_the_outdated_manifest() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), &[]).ok();
    run(dir.path(), &["--part", "2/3", "--overwrite", "--seed", "43"]).ok();
    let whole = manifest(&dir.path().join("_sawmill.devices.json"));
    assert_eq!((&whole["complete"], whole["files"].as_array().unwrap().len()), (&false.into(), 4));
}

#[test]
fn datasets_in_one_directory_have_a_manifest_each_and_are_resumed_by_it() {
    let dir = tempfile::tempdir().unwrap();
    let contacts = ["gen", "contacts", "--rows", "1000", "--out", dir.path().to_str().unwrap()];
    run(dir.path(), &[]).ok();
    sawmill(contacts).ok();
    assert!(run(dir.path(), &["--resume"]).ok().out.contains("6 kept"));
    assert!(sawmill(contacts.iter().chain(&["--resume"])).ok().out.contains("1 kept"));
    let manifests: Vec<String> =
        names(dir.path()).into_iter().filter(|n| n.starts_with("_sawmill")).collect();
    assert_eq!(manifests, ["_sawmill.contacts.json", "_sawmill.devices.json"]);
}

#[test]
fn overwriting_with_other_folders_or_fewer_files_leaves_none_of_the_old_ones() {
    let dir = tempfile::tempdir().unwrap();
    for (first, second) in [
        (&["--partition-by", "model"][..], &[][..]),
        (&[], &["--partition-by", "model"]),
        (&["--as", "csv"], &["--as", "csv", "--part", "1/1", "--rows", "5k"]),
    ] {
        let out = dir.path().join(format!("{}-{}", first.len(), second.len()));
        let small = |more: &[&str]| {
            let begin = ["gen", "devices", "--overwrite", "--files", "2", "--out", out.to_str().unwrap()];
            let rows: &[&str] = if more.contains(&"--rows") { &[] } else { &["--rows", "6k"] };
            sawmill(begin.iter().chain(rows).chain(more))
        };
        run(&out, first).ok();
        let error = small(second).ok();
        assert!(error.err.is_empty(), "{}", error.err);
        let left = files(&out);
        assert!(
            left.keys().all(|name| name.contains("-00000.") || name.contains("-00001.")),
            "{:?}",
            left.keys()
        );
        assert_eq!(left.keys().any(|name| name.contains('=')), second.contains(&"--partition-by"));
        let folders = names(&out).iter().filter(|name| name.contains('=')).count();
        assert_eq!(folders > 0, second.contains(&"--partition-by"));
    }
}

#[test]
fn each_part_has_files_or_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let make = |out: &str, more: &[&str]| {
        sawmill([&["gen", "contacts", "--rows", "3k", "--out", &at(out)], more].concat())
    };
    // Without --files there is one for each part, and they are the files of the whole.
    for part in ["1/3", "2/3", "3/3"] {
        assert!(make("parts", &["--part", part]).ok().out.starts_with("1 file in "), "{part}");
    }
    make("whole", &["--files", "3"]).ok();
    assert!(files(Path::new(&at("parts"))) == files(Path::new(&at("whole"))));
    // The manifests of the parts say how many files there are.
    let finish = ["gen", "finish", "contacts", "--rows", "3k", "--out", &at("parts")];
    let finished = sawmill(finish).ok().out;
    assert!(finished.starts_with("complete in ") && finished.contains(": 3 files, 3,000 rows"), "{finished}");
    // Fewer files than parts would end well with nothing made.
    for more in [["--files", "2"], ["--file-size", "1GB"], ["--rows-per-file", "1500"]] {
        let error = make("none", &[&more[..], &["--part", "1/3"]].concat()).fails(2);
        assert!(error.contains("for 3 parts - --part - give --files 3 or more"), "{error}");
    }
    assert!(!Path::new(&at("none")).exists());
    // Of several tables, the largest has to have enough; a small one may have no file.
    let tpch = |more: &[&str]| {
        sawmill([&["gen", "tpch", "--scale", "0.001", "--part", "1/3", "--out", &at("tpch")], more].concat())
    };
    let error = tpch(&["--file-size", "1GB"]).fails(2);
    assert!(error.contains("1 file for 3 parts"), "{error}");
    tpch(&["--rows-per-file", "1k"]).ok();
    assert!(files(Path::new(&at("tpch"))).keys().any(|name| name.starts_with("lineitem/")));
    let made = make("many", &["--files", "1k", "--json"]).ok().json();
    assert_eq!(made["files"].as_array().unwrap().len(), 1000);
}
