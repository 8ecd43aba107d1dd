//! Several runs of `sawmill gen` at once into one place, and runs that are killed there.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{can_trace, command, has_spoken, names, sawmill, signal, start, until, wait};

/// The arguments of a run of a few files with this seed.
fn args<'a>(out: &'a str, seed: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let begin = ["gen", "devices", "--rows", "120k", "--seed", seed, "--threads", "2", "--out", out];
    begin.into_iter().chain(more.iter().copied()).collect()
}

/// All files in a directory with their bytes, manifests left out.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let data = names(directory).into_iter().filter(|name| !name.starts_with("_sawmill"));
    data.map(|name| (name.clone(), fs::read(directory.join(name)).unwrap())).collect()
}

/// What a run alone makes.
fn alone(dir: &Path, seed: &str, more: &[&str]) -> Vec<(String, Vec<u8>)> {
    let out = dir.join(format!("alone-{seed}"));
    sawmill(args(out.to_str().unwrap(), seed, more)).ok();
    files(&out)
}

/// Nothing is left of a run but its files and its manifest.
fn is_tidy(directory: &Path) -> bool {
    names(directory).iter().all(|name| !name.ends_with(".partial") && !name.ends_with(".lock"))
}

#[test]
fn of_two_runs_into_one_directory_one_writes_its_files_and_the_other_fails() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, more) in [("parquet", &["--files", "4"][..]), ("csv", &["--files", "3", "--as", "csv"])] {
        let expected = ["1", "2"].map(|seed| alone(&dir.path().join(kind), seed, more));
        for round in 0..12 {
            let out = dir.path().join(format!("out-{kind}-{round}"));
            let out_text = out.to_str().unwrap();
            // Either both refuse existing files, or both replace them, and then the second waits for the
            // first.
            let replace = round % 2 == 1;
            let runs = ["1", "2"].map(|seed| {
                start(args(out_text, seed, more).into_iter().chain(replace.then_some("--overwrite")))
            });
            let [first, second] = runs.map(wait);
            let made = files(&out);
            match (first.code, second.code) {
                (Some(0), Some(0)) => {
                    assert!(replace, "both runs say that they made the files");
                    assert!(expected.contains(&made));
                }
                (Some(0), _) | (_, Some(0)) if !replace => {
                    let (loser, winner) =
                        if first.code == Some(0) { (second, &expected[0]) } else { (first, &expected[1]) };
                    let said = loser.err.contains("another run") || loser.err.contains("earlier run");
                    assert!(said, "{}", loser.err);
                    assert!(made == *winner);
                }
                codes => panic!("{codes:?}: {} {}", first.err, second.err),
            }
            assert!(is_tidy(&out), "{:?}", names(&out));
        }
    }
}

#[test]
fn of_two_runs_into_one_file_one_fails_or_waits() {
    let dir = tempfile::tempdir().unwrap();
    let expected = ["1", "2"].map(|seed| {
        let out = dir.path().join(format!("alone-{seed}.parquet"));
        sawmill(args(out.to_str().unwrap(), seed, &[])).ok();
        fs::read(out).unwrap()
    });
    for round in 0..12 {
        let out = dir.path().join(format!("out-{round}.parquet"));
        let more: &[&str] = if round % 2 == 1 { &["--overwrite"] } else { &[] };
        let runs = ["1", "2"].map(|seed| start(args(out.to_str().unwrap(), seed, more)));
        let ran = runs.map(wait);
        let made = fs::read(&out).unwrap();
        let well: Vec<bool> = ran.iter().map(|ran| ran.code == Some(0)).collect();
        match round % 2 {
            1 => assert!(well == [true, true] && expected.contains(&made)),
            _ => assert!(made == expected[usize::from(!well[0])] && well[0] != well[1]),
        }
    }
    assert!(is_tidy(dir.path()), "{:?}", names(dir.path()));
}

#[test]
fn a_run_that_keeps_or_replaces_files_waits_for_another_and_reports_it() {
    let dir = tempfile::tempdir().unwrap();
    let expected = alone(dir.path(), "7", &[]);
    for how in ["INT", "KILL"] {
        let out = dir.path().join(how);
        let out_text = out.to_str().unwrap();
        let long = start(["gen", "devices", "--rows", "1B", "--files", "1000", "--out", out_text]);
        until("the first file", || out.join("devices-00000.parquet").exists());
        let error = sawmill(args(out_text, "7", &[])).fails(1);
        assert!(error.contains(&format!("process {}", long.id())) && error.contains(out_text), "{error}");
        // A part of the same dataset is also refused, another dataset is not.
        sawmill(args(out_text, "7", &["--files", "2", "--part", "1/2"])).fails(1);
        sawmill(["gen", "contacts", "--rows", "10", "--out", out_text]).ok();
        let mut waiting = start(args(out_text, "7", &["--overwrite"]));
        until("the second run waits", || has_spoken(&waiting));
        assert!(waiting.try_wait().unwrap().is_none(), "the second run waits");
        signal(&long, how);
        assert_ne!(wait(long).code, Some(0));
        let waited = wait(waiting).ok();
        assert!(waited.err.contains("waiting for it"), "{}", waited.err);
        let made = files(&out);
        let made: Vec<_> = made.into_iter().filter(|(name, _)| name.starts_with("devices")).collect();
        assert!(made == expected);
        assert!(is_tidy(&out), "{:?}", names(&out));
    }
}

#[test]
fn waiting_ends_when_it_is_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let long = start(["gen", "devices", "--rows", "1B", "--files", "1000", "--out", out]);
    until("the first file", || dir.path().join("devices-00000.parquet").exists());
    let waiting = start(args(out, "7", &["--resume"]));
    until("the second run waits", || has_spoken(&waiting));
    signal(&waiting, "INT");
    wait(waiting).fails(130);
    signal(&long, "INT");
    wait(long).fails(130);
}

#[test]
fn leftovers_of_a_killed_run_do_not_disturb_others() {
    let dir = tempfile::tempdir().unwrap();
    for (name, more) in
        [("many", &["--files", "4"][..]), ("one.parquet", &[]), ("one.ndjson", &["--as", "ndjson"])]
    {
        let out = dir.path().join(name);
        let out_text = out.to_str().unwrap();
        let more: Vec<&str> = more.to_vec();
        let mut long = args(out_text, "7", &more);
        let rows = long.iter().position(|arg| *arg == "120k").unwrap();
        long[rows] = "1B";
        let place = if out.extension().is_some() { dir.path() } else { &out };
        let run = start(&long);
        until("a partial file", || {
            place.exists() && names(place).iter().any(|name| name.ends_with(".partial"))
        });
        signal(&run, "KILL");
        wait(run);
        assert!(!is_tidy(place));
        sawmill(args(out_text, "7", &more)).ok();
        assert!(is_tidy(place), "{:?}", names(place));
    }
}

#[test]
fn names_are_on_disk_before_the_manifest_and_the_manifest_before_the_run_ends() {
    if !can_trace() {
        println!("skipped: strace is not installed, or may not trace processes here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    for (name, more) in [
        ("new/directory", &["--files", "3"][..]),
        ("folders", &["--files", "2", "--partition-by", "model"]),
        ("one.parquet", &[]),
        ("one.csv", &["--as", "csv"]),
    ] {
        let out = dir.join(name);
        let log = dir.join("log");
        // On one thread, whose calls strace shows in their order.
        let begin = ["gen", "devices", "--rows", "1000", "--threads", "1", "--out", out.to_str().unwrap()];
        let gen_ = command(begin.iter().copied().chain(more.iter().copied()));
        let run = Command::new("strace")
            .args(["-f", "-y", "-e", "trace=mkdir,mkdirat,rename,renameat,renameat2,fsync,fdatasync", "-o"])
            .arg(&log)
            .arg(gen_.get_program())
            .args(gen_.get_args())
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let mut unsynced: Vec<String> = Vec::new();
        let mut renamed = 0;
        for line in fs::read_to_string(&log).unwrap().lines() {
            if line.contains(" resumed>") {
                // The call's beginning has its arguments.
            } else if line.contains("fsync(") {
                let synced = line.split(['<', '>']).nth(1).unwrap().to_owned();
                unsynced.retain(|directory| *directory != synced);
            } else if line.contains("rename") || (line.contains("mkdir") && !line.contains("= -1")) {
                let path = line.rsplit('"').nth(1).unwrap();
                if path.ends_with(".json") {
                    assert!(unsynced.is_empty(), "{unsynced:?} are not on disk: {line}");
                }
                renamed += usize::from(line.contains("rename"));
                let parent = Path::new(path).parent().unwrap().to_str().unwrap();
                unsynced.push(parent.to_owned());
            }
        }
        assert!(renamed > 0 && unsynced.is_empty(), "{name}: {renamed} names, {unsynced:?} are not on disk");
    }
}
