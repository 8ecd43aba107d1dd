//! A panic in a thread ends its command with an error, and no other thread waits for ever.

use std::time::{Duration, Instant};

use crate::harness::{Ran, command, sawmill};
use crate::load::Bench;
use sawmill_cratedb_standin::StandIn;

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

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_panic_in_any_thread_of_a_load_is_its_error_and_the_same_command_finishes() {
    let bench = Bench::new();
    let file = bench.contacts("5k");
    let verified = ["--verify", "--degree", "2", "--unit-rows", "500"];
    for thread in ["main", "opener-0", "encoder-1", "sender-1", "encoder-2", "sender-2", "reader-1"] {
        let args = bench.args("load", &file, "c", &verified);
        is_reported(thread, &args);
        bench.load(&file, "c", &verified).ok();
        assert_eq!(bench.count("select count(*) from c"), 5_000, "{thread}");
        bench.client().batch_execute("drop table c").unwrap();
    }
    // Without these threads a load goes on.
    let args = bench.args("load", &file, "c", &verified);
    assert_eq!(panicking("watcher", &args).code, Some(0));
    let args = bench.args("verify", &file, "c", &[]);
    is_reported("source-1", &args);
    is_reported("reader-1", &args);
    let partitioned = ["--partition-by", "hash(name,4)", "--degree", "2"];
    for (thread, strategy) in [("surveyor-0", "staged"), ("encoder-1", "staged"), ("sender-2", "direct")] {
        let more = [&partitioned[..], &["--strategy", strategy]].concat();
        is_reported(thread, &bench.args("load", &file, "p", &more));
    }
    let filtered = ["--where", "name > 'M'"];
    is_reported("counter-0", &bench.args("load", &file, "w", &filtered));
}

#[test]
fn a_panic_while_text_is_read_is_an_error() {
    let bench = Bench::new();
    let text: String = (0..50_000).map(|id| format!("{id},name {id}\n")).collect();
    let file = bench.dir.path().join("names.csv");
    std::fs::write(&file, format!("id,name\n{text}")).unwrap();
    for thread in ["opener-0", "boundaries-0", "sampler-0", "encoder-1"] {
        is_reported(thread, &bench.args("load", &file, "t", &[]));
    }
    let utf16 = bench.dir.path().join("wide.csv");
    let wide: Vec<u8> = format!("id,name\n{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(&utf16, wide).unwrap();
    let ran = panicking("spool", &bench.args("load", &utf16, "t", &["--encoding", "utf-16le"]));
    assert!(ran.code == Some(1) && ran.err.contains("the thread spool panicked"), "{}", ran.err);
}

#[test]
fn a_panic_while_a_file_is_converted_is_an_error_and_leaves_no_output() {
    let bench = Bench::new();
    let orders = bench.dir.path().join("orders.parquet");
    let orders = orders.to_str().unwrap();
    sawmill(["gen", "orders", "--rows", "20k", "--out", orders]).ok();
    let out = bench.dir.path().join("out");
    let shown = out.to_str().unwrap();
    let by = "--columns id,status,ordered_at --partition-by list(status)";
    for (thread, line) in [
        ("reader-0", format!("convert {orders} --out {shown} --format ndjson")),
        ("encoder-0", format!("convert {orders} --out {shown} --format parquet")),
        ("writer-0", format!("convert {orders} --out {shown} --format parquet {by}")),
        ("index-0", format!("convert {orders} --out {shown} --format parquet {by}")),
        ("parser-0", format!("convert {orders} --parse-only")),
    ] {
        let ran = panicking(thread, &words(&line));
        let what = format!("the thread {thread} panicked: asked for by a test");
        assert!(ran.code == Some(1) && ran.err.contains(&what), "{thread}: {:?} {}", ran.code, ran.err);
        assert!(!out.exists(), "{thread}");
    }
}

#[test]
fn a_panic_while_rows_are_generated_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("orders");
    for (thread, format) in [("generate-0", "parquet"), ("generate-1", "parquet"), ("generate-0", "ndjson")] {
        let line =
            format!("gen orders --rows 50k --files 4 --threads 2 --format {format} --out {}", out.display());
        is_reported(thread, &words(&line));
    }
    let line = format!("gen orders --rows 50k --files 4 --out {}", out.display());
    sawmill(words(&line)).ok();
}

#[test]
fn a_panic_in_a_load_test_ends_it_with_an_error() {
    let bench = Bench::new();
    let url = bench.server.url();
    let chaos = "--chaos every:300ms:true";
    for (thread, more) in [("connection", ""), ("rows", ""), ("watcher", ""), ("chaos", chaos)] {
        let line = format!("drive gen:events --to {url} --table d_{thread} --rate 200 --for 20s {more}");
        is_reported(thread, &words(&line));
    }
}

#[test]
fn a_panic_in_a_load_into_cratedb_is_its_error() {
    let bench = Bench::new();
    let standin = StandIn::start(1);
    let file = bench.contacts("5k");
    let url = standin.url();
    for thread in ["encoder-1", "sender-1", "source-1"] {
        let line =
            format!("load {} --to {url} --table c_{} --verify", file.display(), thread.replace('-', "_"));
        is_reported(thread, &words(&line));
    }
}
