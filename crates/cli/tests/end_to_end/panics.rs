//! A panic in a thread ends its command with an error, and the other threads do not wait for ever.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::harness::{Ran, command, sawmill};
use crate::load::Bench;
use sawmill_cratedb_standin::StandIn;

/// Runs a command whose thread of this name panics, or any thread of the pool of this name.
fn panicking(thread: &str, args: &[String]) -> Ran {
    panicking_in(Path::new("."), thread, args)
}

fn panicking_in(folder: &Path, thread: &str, args: &[String]) -> Ran {
    let mut child = command(args);
    child.current_dir(folder).env("SAWMILL_TEST_PANIC", thread).env("RUST_BACKTRACE", "0");
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
    let what = (format!("error: the thread {thread}"), " panicked: asked for by a test - ");
    let named = ran.err.contains(&what.0) && ran.err.contains(what.1);
    assert!(ran.code == Some(1) && named, "{thread}: {:?} {}", ran.code, ran.err);
    assert!(ran.err.contains("report it"), "{}", ran.err);
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_panic_in_any_thread_of_a_load_is_its_error_and_the_same_command_finishes() {
    let bench = Bench::new();
    let file = bench.contacts("5k");
    let verified = ["--verify", "--connections", "2", "--unit-rows", "500"];
    for thread in ["main", "opener", "encoder-1", "sender-1", "encoder-2", "sender-2", "reader-1", "reader-2"]
    {
        let args = bench.args("load", &file, "c", &verified);
        is_reported(thread, &args);
        bench.load(&file, "c", &verified).ok();
        assert_eq!(bench.count("select count(*) from c"), 5_000, "{thread}");
        bench.client().batch_execute("drop table c").unwrap();
    }
    bench.load(&file, "c", &[]).ok();
    for thread in ["source-1", "source-2", "reader-1"] {
        is_reported(thread, &bench.args("verify", &file, "c", &["--connections", "2"]));
    }
    let partitioned = ["--partition-by", "hash(name,4)", "--connections", "2"];
    for (thread, strategy) in [("surveyor", "staged"), ("encoder-2", "staged"), ("sender-1", "direct")] {
        let more = [&partitioned[..], &["--strategy", strategy]].concat();
        is_reported(thread, &bench.args("load", &file, strategy, &more));
    }
}

#[test]
fn a_load_needs_neither_the_thread_that_watches_it_nor_the_one_that_samples_it() {
    let bench = Bench::new();
    let file = bench.contacts("5k");
    for thread in ["watcher", "sampler"] {
        panicking(thread, &bench.args("load", &file, thread, &["--verify"])).ok();
    }
}

#[test]
fn a_panic_while_text_is_read_is_an_error() {
    let bench = Bench::new();
    let text: String = (0..50_000).map(|id| format!("{id},name {id}\n")).collect();
    let file = bench.dir.path().join("names.csv");
    std::fs::write(&file, format!("id,name\n{text}")).unwrap();
    for thread in ["opener", "boundaries", "sampler", "encoder-1"] {
        is_reported(thread, &bench.args("load", &file, "t", &[]));
    }
    let wide = bench.dir.path().join("wide.csv");
    let utf_16: Vec<u8> = format!("id,name\n{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(&wide, utf_16).unwrap();
    is_reported("spool", &bench.args("load", &wide, "t", &["--text-encoding", "utf-16le"]));
}

#[test]
fn a_panic_while_a_file_is_converted_is_an_error_and_leaves_no_output() {
    let dir = tempfile::tempdir().unwrap();
    let run = |line: &str| command(words(line)).current_dir(dir.path()).output().unwrap();
    let rows = "--columns id,status,ordered_at";
    let by = "--partition-by list(status)";
    Ran::from(run("gen orders --rows 20k --out orders.parquet")).ok();
    Ran::from(run(&format!("convert orders.parquet {rows} --out orders.csv"))).ok();
    for (thread, line) in [
        ("reader", "convert orders.parquet --out out --as ndjson".to_owned()),
        ("reader", "convert orders.parquet --out out --as csv --columns id".to_owned()),
        ("reader", "convert orders.csv --out out --as parquet".to_owned()),
        ("encoder-1", "convert orders.parquet --out out --as parquet".to_owned()),
        ("writer", format!("convert orders.parquet --out out --as parquet {rows} {by}")),
        ("merge", format!("convert orders.csv --out out --sort-by ordered_at {by}")),
        ("sampler", format!("convert orders.csv --out out {by}")),
        ("parser", "convert orders.csv --parse-only".to_owned()),
    ] {
        let args = words(&line);
        let ran = panicking_in(dir.path(), thread, &args);
        let what = (format!("the thread {thread}"), " panicked: asked for by a test");
        let named = ran.err.contains(&what.0) && ran.err.contains(what.1);
        assert!(ran.code == Some(1) && named, "{thread}: {:?} {}", ran.code, ran.err);
        assert!(!dir.path().join("out").exists(), "{thread}");
    }
}

#[test]
fn a_panic_while_rows_are_generated_is_an_error_and_the_same_command_finishes() {
    let dir = tempfile::tempdir().unwrap();
    for (thread, format) in [("generate", "parquet"), ("generate", "ndjson")] {
        let out = dir.path().join(format!("{thread}-{format}"));
        let line =
            format!("gen orders --rows 50k --files 4 --threads 2 --as {format} --out {}", out.display());
        is_reported(thread, &words(&line));
        sawmill(words(&line)).ok();
    }
}

#[test]
fn a_panic_in_a_load_test_ends_it_with_an_error() {
    let bench = Bench::new();
    let url = bench.server.url();
    for (thread, more) in
        [("connection", vec![]), ("rows", vec![]), ("chaos", vec!["--chaos", "true every 1s"])]
    {
        let line = format!("drive gen:events --to {url} --table d_{thread} --rate 200 --for 20s");
        let args = words(&line).into_iter().chain(more.into_iter().map(str::to_owned)).collect::<Vec<_>>();
        is_reported(thread, &args);
    }
}

#[test]
fn a_panic_in_a_load_into_cratedb_is_its_error_and_the_same_command_finishes() {
    let bench = Bench::new();
    let standin = StandIn::start(1);
    let file = bench.contacts("5k");
    let (file, url) = (file.display(), standin.url());
    for thread in ["encoder-1", "sender-1"] {
        let line = format!("load {file} --to {url} --table c");
        is_reported(thread, &words(&line));
    }
    sawmill(words(&format!("load {file} --to {url} --table c"))).ok();
    let verify = words(&format!("verify {file} --to {url} --table c"));
    is_reported("source-1", &verify);
    sawmill(verify).ok();
}
