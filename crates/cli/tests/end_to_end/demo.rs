//! `sawmill demo`: the main job, against servers that are really there.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use postgres::{Client, NoTls};
use sawmill_localpg::LocalPg;
use tempfile::TempDir;

use crate::harness::{Ran, command, names, signal, until, wait};

/// A temporary directory that every account may use, as `/tmp` is.
fn temporary() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    dir
}

/// The demo with its temporary directories inside `tmp`.
fn demo(tmp: &Path, args: &[&str]) -> Command {
    let mut command = command([&["demo", "--rows", "20k"], args].concat());
    command.env("TMPDIR", tmp).env_remove("SAWMILL_PG_DIR");
    command
}

fn run(tmp: &Path, args: &[&str]) -> Ran {
    Ran::from(demo(tmp, args).output().unwrap())
}

fn count(url: &str, query: &str) -> i64 {
    Client::connect(url, NoTls).unwrap().query_one(query, &[]).unwrap().get(0)
}

#[test]
fn the_demo_generates_loads_verifies_and_leaves_nothing() {
    let tmp = temporary();
    let ran = run(tmp.path(), &["--files", "3"]).ok();
    for expected in
        ["contacts-00002.parquet", "3 files", "verified", "20,000", "generate", "load", "verify", "rows/s"]
    {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
    assert_eq!(ran.err, "", "quiet in a pipe");
    assert_eq!(names(tmp.path()), [""; 0]);
}

#[test]
fn the_demo_as_json_has_every_figure() {
    let tmp = temporary();
    let json = run(tmp.path(), &["--json", "--files", "2"]).ok().json();
    assert_eq!(json["generated"].as_array().unwrap().len(), 2);
    assert_eq!(json["footers"][1]["rows"], 10_000);
    assert_eq!(json["load"]["rows"], 20_000);
    let (source, target) = (&json["verification"]["source"], &json["verification"]["target"]);
    assert_eq!(source, target);
    assert_eq!(source["content_sum"], json["load"]["content"]["content_sum"]);
    let all = json["phases"].as_array().unwrap();
    // Loading has phases within it, too.
    let phases: Vec<&str> =
        all.iter().filter(|p| p["depth"] == 0).map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(phases, ["generate", "footers", "start server", "load", "verify"]);
    assert!(json["kept"].is_null());
}

#[test]
fn no_rows_at_all_are_loaded_and_verified_too() {
    let tmp = temporary();
    let json = Ran::from(
        command(["demo", "--rows", "0", "--json"])
            .env("TMPDIR", tmp.path())
            .env_remove("SAWMILL_PG_DIR")
            .output()
            .unwrap(),
    );
    assert_eq!(json.ok().json()["verification"]["target"]["rows"], 0);
}

#[test]
fn files_stay_where_a_directory_was_named() {
    let tmp = temporary();
    let dir = tmp.path().join("kept");
    run(tmp.path(), &["--files", "2", "--out", dir.to_str().unwrap()]).ok();
    assert_eq!(names(&dir), ["_sawmill.contacts.json", "contacts-00000.parquet", "contacts-00001.parquet"]);
    assert_eq!(names(tmp.path()), ["kept"]);
}

#[test]
fn a_kept_server_answers_and_goes_with_the_command_that_was_printed() {
    let tmp = temporary();
    let json = run(tmp.path(), &["--keep", "--json"]).ok().json();
    let (url, stop) = (json["kept"]["url"].as_str().unwrap(), json["kept"]["stop"].as_str().unwrap());
    assert_eq!(count(url, "select count(*) from contacts"), 20_000);
    let nulls = "select count(*) from contacts where phones is null";
    assert!((7_000..9_000).contains(&count(url, nulls)));
    let mobile = "select count(*) from contacts where phones @> '[{\"phone_type\": \"Mobile\"}]'";
    assert!((5_000..9_000).contains(&count(url, mobile)));
    // A shell runs the printed query as it is.
    let psql = json["kept"]["psql"].as_str().unwrap();
    match Command::new("sh").args(["-c", psql]).output() {
        Ok(output) if output.status.success() => {
            assert!(String::from_utf8_lossy(&output.stdout).contains("(10 rows)"));
        }
        output => println!("skipped the psql line: {output:?}"),
    }
    assert!(Command::new("sh").args(["-c", stop]).stdout(Stdio::null()).status().unwrap().success());
    until("the server's end", || names(tmp.path()).is_empty());
    assert!(Client::connect(url, NoTls).is_err());
}

#[test]
fn a_server_of_ones_own_is_used_and_left_as_it_was() {
    let tmp = temporary();
    let server = LocalPg::start().unwrap();
    let url = server.url();
    run(tmp.path(), &["--to", &url]).ok();
    let ours = "select count(*) from pg_namespace where nspname = '_sawmill'";
    let tables = "select count(*) from pg_tables where schemaname = 'public'";
    assert_eq!((count(&url, ours), count(&url, tables)), (0, 0));
    let kept = run(tmp.path(), &["--to", &url, "--keep"]).ok();
    let password = url.split([':', '@']).nth(2).unwrap();
    assert!(kept.out.contains("psql 'postgres://") && !kept.out.contains(password), "{}", kept.out);
    assert_eq!(count(&url, "select count(*) from contacts"), 20_000);
    // An existing table is left alone, and so are its records.
    let error = run(tmp.path(), &["--to", &url]).fails(1);
    assert!(error.contains("contacts"), "{error}");
    assert_eq!((count(&url, ours), count(&url, tables)), (1, 1));
    assert_eq!(count(&url, "select count(*) from contacts"), 20_000);
    assert_eq!(names(tmp.path()), [""; 0]);
}

#[test]
fn ctrl_c_at_any_moment_leaves_nothing() {
    let tmp = temporary();
    for moment in [0, 60, 300, 700, 1_100, 1_500] {
        let mut demo = command(["demo", "--rows", "3M"]);
        demo.env("TMPDIR", tmp.path())
            .env_remove("SAWMILL_PG_DIR")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = demo.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(moment));
        signal(&child, "INT");
        let ran = wait(child);
        // A very early signal finds no handler yet.
        assert!(
            matches!(ran.code, Some(130) | None),
            "{moment} ms: {:?}\n{}\n{}",
            ran.code,
            ran.out,
            ran.err
        );
        assert_eq!(names(tmp.path()), [""; 0], "{moment} ms");
    }
}

#[test]
fn what_a_killed_demo_leaves_goes_with_the_next() {
    let tmp = temporary();
    let mut killed = command(["demo", "--rows", "3M"]);
    let mut killed =
        killed.env("TMPDIR", tmp.path()).env_remove("SAWMILL_PG_DIR").stdout(Stdio::null()).spawn().unwrap();
    until("the server's directory", || names(tmp.path()).iter().any(|name| name.starts_with("sawmill-pg-")));
    signal(&killed, "KILL");
    killed.wait().unwrap();
    assert_ne!(names(tmp.path()), [""; 0]);
    run(tmp.path(), &[]).ok();
    assert_eq!(names(tmp.path()), [""; 0]);
}

#[test]
fn a_failure_on_the_way_leaves_nothing() {
    let tmp = temporary();
    let error = run(tmp.path(), &["--to", "postgres://nobody@127.0.0.1:1/none"]).fails(1);
    assert!(error.contains("127.0.0.1:1"), "{error}");
    let error = run(tmp.path(), &["--table", "a.b.c"]).fails(2);
    assert!(error.contains("a.b.c"), "{error}");
    let none = tmp.path().join("no-such-bin");
    let mut command = demo(tmp.path(), &[]);
    let error = Ran::from(command.env("SAWMILL_PG_BIN", &none).output().unwrap()).fails(1);
    assert!(error.contains("no-such-bin"), "{error}");
    assert_eq!(names(tmp.path()), [""; 0]);
}

#[test]
fn an_ordinary_user_can_run_it_as_well_as_root() {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root can become another user; the other tests ran as an ordinary user");
        return;
    }
    let tmp = temporary();
    // Where the account can reach it, whatever the permissions of the build directory.
    let binary = tmp.path().join("sawmill");
    // A separate process copies it. If this one did, a child that another test forks could keep the copy open
    // for writing, and running it would fail with "Text file busy".
    let copied =
        Command::new("install").args(["-m", "755", env!("CARGO_BIN_EXE_sawmill")]).arg(&binary).status();
    assert!(copied.unwrap().success());
    let nobody = 65_534;
    let output = Command::new(&binary)
        .args(["demo", "--rows", "1000", "--json"])
        .env("TMPDIR", tmp.path())
        .env_remove("SAWMILL_PG_DIR")
        .env("HOME", tmp.path())
        .current_dir("/")
        .uid(nobody)
        .gid(nobody)
        .output()
        .unwrap();
    assert_eq!(Ran::from(output).ok().json()["verification"]["target"]["rows"], 1000);
    assert_eq!(names(tmp.path()), ["sawmill"]);
}
