//! Source files that change, while they are loaded and between two runs; queries over files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::harness::{Ran, sawmill, signal, start, until, wait};
use crate::load::Bench;

/// Starts a load and waits until some of its units are in.
fn begun(bench: &Bench, args: &[String]) -> std::process::Child {
    let child = start(args);
    let mut client = bench.client();
    until("the first unit", || {
        let units = client.query_one("select count(*) from _sawmill.units", &[]);
        units.is_ok_and(|row| row.get::<_, i64>(0) > 3)
    });
    child
}

#[test]
fn a_file_that_is_cut_off_in_mid_load_is_named_and_the_load_goes_on_when_it_is_back() {
    let bench = Bench::new();
    let file = bench.contacts("1M");
    let bytes = fs::read(&file).unwrap();
    let args = bench.args("load", &file, "c", &["--unit-rows", "5000", "--verify"]);
    let child = begun(&bench, &args);
    let cut = fs::OpenOptions::new().write(true).open(&file).unwrap();
    cut.set_len(bytes.len() as u64 / 20).unwrap();
    let error = wait(child).fails(1);
    assert!(error.contains("the file changed while it was loaded"), "{error}");
    assert!(error.contains("contacts-1M.parquet") && error.contains("bring back the file"), "{error}");
    assert!(!bench.exists("c"));
    fs::write(&file, &bytes).unwrap();
    let json = sawmill(args.iter().map(String::as_str).chain(["--json"])).ok().json();
    assert!(json["report"]["units_resumed"].as_u64().unwrap() > 0, "{json}");
    assert_eq!(bench.count("select count(*) from c"), 1_000_000);
}

#[test]
fn a_file_that_was_replaced_between_two_runs_is_rejected() {
    let bench = Bench::new();
    let file = bench.contacts("1M");
    let args = bench.args("load", &file, "c", &["--unit-rows", "5000"]);
    let child = begun(&bench, &args);
    signal(&child, "KILL");
    wait(child);
    let path = file.to_str().unwrap();
    sawmill(["gen", "contacts", "--rows", "1M", "--seed", "8", "--out", path, "--overwrite"]).ok();
    let error = sawmill(&args).fails(1);
    assert!(error.contains("changed since the load began") && error.contains(path), "{error}");
    assert!(!bench.exists("c"));
}

#[test]
fn a_file_that_is_replaced_while_its_last_rows_are_sent_does_not_count_as_loaded() {
    let bench = Bench::new();
    let file = bench.contacts("300k");
    bench.client().batch_execute("create table c (name text, phones jsonb)").unwrap();
    // The lock holds up the first insert, so that the file is replaced long before the load ends.
    let mut client = bench.client();
    let mut holding = client.transaction().unwrap();
    holding.batch_execute("lock table c in share row exclusive mode").unwrap();
    let child = start(bench.args("load", &file, "c", &["--mode", "append"]));
    until("the load waits for the table", || {
        bench.count(
            "select count(*) from pg_stat_activity where query like 'COPY%' and wait_event_type = 'Lock' \
             and datname = current_database()",
        ) > 0
    });
    let other = bench.contacts("200k");
    replace(&other, &file);
    holding.commit().unwrap();
    let error = wait(child).fails(1);
    assert!(error.contains("the file changed while it was loaded"), "{error}");
}

fn replace(other: &Path, file: &Path) {
    fs::rename(other, file).unwrap();
}

/// A copy of `sawmill` in a separate folder without `sawmill-cluster` beside it, and a folder for PATH.
struct Installed {
    dir: tempfile::TempDir,
}

impl Installed {
    fn new() -> Self {
        let built = Path::new(env!("CARGO_BIN_EXE_sawmill"));
        // In the same file system a hard link can replace a copy.
        let dir = tempfile::tempdir_in(built.parent().unwrap()).unwrap();
        fs::hard_link(built, dir.path().join("sawmill")).unwrap();
        fs::create_dir(dir.path().join("path")).unwrap();
        Self { dir }
    }

    /// Puts a fake engine into `folder`, which prints its name and arguments and exits with `code`.
    fn engine(&self, folder: &str, code: u8) {
        let path = self.dir.path().join(folder).join("sawmill-cluster");
        fs::write(&path, format!("#!/bin/sh\nprintf '%s\\n' '{folder}' \"$@\"\nexit {code}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Loads the rows of a query.
    fn load(&self, more: &[&str]) -> Ran {
        let mut command = Command::new(self.dir.path().join("sawmill"));
        command.args(["load", "data/*.parquet", "--query", "SELECT a FROM read", "--table", "s.t"]);
        command.args(["--to", "postgres://me:secret@h/db"]).args(more);
        Ran::from(command.env("PATH", self.dir.path().join("path")).output().unwrap())
    }
}

#[test]
fn the_rows_of_a_query_are_loaded_by_the_engine_which_gets_the_options_and_decides_the_exit_code() {
    let installed = Installed::new();
    installed.engine("path", 7);
    let handed = ["load", "data/*.parquet", "--query=SELECT a FROM read", "--table=s.t", "--mode=create"];
    let to = "--to=postgres://me:secret@h/db";
    let ran = installed.load(&[]);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    assert_eq!(ran.out.lines().collect::<Vec<_>>(), [&["path"][..], &handed, &[to]].concat());
    // The engine beside the command comes first.
    installed.engine(".", 0);
    let ran = installed.load(&["--mode", "append", "--connections", "3", "--json", "--quiet"]).ok();
    let options = ["--mode=append", "--partitions=3", "--json", "--quiet", to];
    assert_eq!(ran.out.lines().collect::<Vec<_>>(), [&["."][..], &handed[..4], &options].concat());
}

#[test]
fn without_the_engine_the_error_says_how_to_build_it_and_what_it_would_run() {
    let error = Installed::new().load(&[]).fails(2);
    assert!(error.contains("neither beside sawmill nor on PATH") && error.contains("cargo build"), "{error}");
    let command = "sawmill-cluster load 'data/*.parquet' '--query=SELECT a FROM read' --table=s.t --mode=create --to=URL";
    assert!(error.contains(command) && !error.contains("secret"), "{error}");
}

#[test]
fn a_query_takes_no_option_that_its_engine_cannot_follow() {
    let installed = Installed::new();
    installed.engine("path", 0);
    for (more, expected) in [
        (&["--where", "a > 1"][..], "--where"),
        (&["--verify"], "--verify"),
        (&["--key", "a", "--mode", "upsert"], "--key"),
        (&["--part", "1/2"], "--part"),
        (&["--mode", "replace"], "neither replace nor change rows - --mode"),
        (&["other.parquet"], "a query has one source"),
    ] {
        let error = installed.load(more).fails(2);
        assert!(error.contains(expected), "{more:?}: {error}");
    }
    let to = ["--to", "postgres://h/db", "--table", "t", "--query", "SELECT 1 FROM read"];
    for source in ["gen:contacts", "@files.txt", "-"] {
        let error = sawmill([&["load", source][..], &to].concat()).fails(2);
        assert!(error.contains("a query has one source"), "{source}: {error}");
    }
}
