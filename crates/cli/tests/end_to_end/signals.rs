//! Signals that the command was started with: those that it ignores then it keeps ignoring.

use std::process::{Child, Command, Stdio};

use crate::harness::{Ran, names, sawmill, signal, start, until, wait};

/// Starts a generation of some seconds from a shell that ignores `ignored`, and waits until it is at work.
fn generating(out: &std::path::Path, ignored: &str) -> Child {
    let program = env!("CARGO_BIN_EXE_sawmill");
    let script =
        format!("trap '' {ignored}; exec '{program}' gen contacts --rows 4M --files 40 --out \"$0\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).arg(out).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = shell.spawn().unwrap();
    until("the first file", || out.join("contacts-00000.parquet").exists());
    child
}

#[test]
fn a_command_that_was_started_with_a_signal_ignored_keeps_ignoring_it() {
    for name in ["INT", "HUP", "TERM"] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let child = generating(&out, name);
        signal(&child, name);
        signal(&child, name);
        wait(child).ok();
        assert_eq!(names(&out).len(), 41, "40 files and their manifest");
    }
}

#[test]
fn a_command_that_ignores_one_signal_still_obeys_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let child = generating(&out, "INT");
    signal(&child, "TERM");
    let error = wait(child).fails(130);
    assert!(error.contains("interrupted"), "{error}");
}

fn until_it_waits_for_a_pipe(child: &Child) {
    // The thread that waits has this name.
    until("a wait for the pipe", || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let names =
            threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
        names.into_iter().any(|name| name == "pipe\n")
    });
}

#[test]
fn no_command_waits_after_a_signal_for_the_other_end_of_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (pipe, rows, text) = (at("pipe"), at("rows.parquet"), at("short.csv"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    sawmill(["gen", "contacts", "--rows", "10", "--out", &rows]).ok();
    std::fs::write(&text, "a,b\n1,2\n3\n").unwrap();
    let list = format!("@{pipe}");
    for command in [
        &["convert", &rows, "--out", &pipe, "--as", "ndjson"][..],
        &["convert", &text, "--out", &at("x.parquet"), "--rejects", &pipe],
        &["convert", &list, "--out", &at("x.parquet")],
        &["gen", &pipe, "--out", &at("x.parquet")],
        &["drive", &pipe, "--to", "null"],
        &["bench", "report", &pipe, "--html", &at("x.html")],
    ] {
        let child = start(command);
        until_it_waits_for_a_pipe(&child);
        signal(&child, "INT");
        assert!(wait(child).fails(130).contains("interrupted"), "{command:?}");
        assert!(!std::path::Path::new(&at("x.parquet")).exists(), "{command:?}");
    }
}

#[test]
fn no_command_waits_after_a_signal_for_its_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("x.parquet");
    let out = out.to_str().unwrap();
    for command in [&["footer", "-"][..], &["footer", "fix", "-", out], &["convert", "@-", "--out", out]] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_sawmill"));
        program.args(command).env("TMPDIR", dir.path());
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = program.spawn().unwrap();
        let input = child.stdin.take();
        until_it_waits_for_a_pipe(&child);
        signal(&child, "TERM");
        assert!(wait(child).fails(130).contains("interrupted"), "{command:?}");
        assert_eq!(names(dir.path()), [""; 0], "{command:?}");
        drop(input);
    }
}

#[test]
fn the_tests_pass_when_they_are_started_with_sigint_ignored() {
    // As in `cargo test &` of a script, or of a service.
    let tests = std::env::current_exe().unwrap();
    let script = "trap '' INT; exec \"$0\" --exact demo::ctrl_c_at_any_moment_leaves_nothing";
    let ran = Ran::from(Command::new("sh").args(["-c", script]).arg(tests).output().unwrap()).ok();
    assert!(ran.out.contains("1 passed"), "{}", ran.out);
}
