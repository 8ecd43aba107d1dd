//! A panic in a thread ends its command with an error, and no other thread waits for ever.

use std::time::{Duration, Instant};

use crate::harness::{Ran, command};
use crate::load::Bench;

/// Runs a command whose thread of this name panics.
fn panicking(thread: &str, args: &[String]) -> Ran {
    let mut child = command(args);
    child.env("SAWMILL_TEST_PANIC", thread).env("RUST_BACKTRACE", "0");
    child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = child.spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{thread}: the command does not end: {args:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ran::from(child.wait_with_output().unwrap())
}

#[track_caller]
fn is_reported(thread: &str, args: &[String]) {
    let ran = panicking(thread, args);
    let what = format!("error: the thread {thread} panicked: asked for by a test - ");
    assert!(ran.code == Some(1) && ran.err.contains(&what), "{thread}: {:?} {}", ran.code, ran.err);
    assert!(ran.err.contains("report it"), "{}", ran.err);
}

#[test]
fn a_panic_in_a_thread_of_a_load_is_its_error_and_the_same_command_finishes() {
    let bench = Bench::new();
    let file = bench.contacts("5k");
    let verified = ["--verify", "--degree", "2", "--unit-rows", "500"];
    for thread in ["main", "opener-0", "encoder-1", "sender-1"] {
        let args = bench.args("load", &file, "c", &verified);
        is_reported(thread, &args);
        bench.load(&file, "c", &verified).ok();
        assert_eq!(bench.count("select count(*) from c"), 5_000, "{thread}");
        bench.client().batch_execute("drop table c").unwrap();
    }
}

#[test]
fn a_panic_while_rows_are_generated_is_an_error() {
    let args = "gen contacts --rows 10 --out /dev/null".split(' ').map(str::to_owned).collect::<Vec<_>>();
    is_reported("main", &args);
    is_reported("generate-0", &args);
}
