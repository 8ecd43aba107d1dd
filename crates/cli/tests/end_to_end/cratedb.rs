//! `sawmill load` and `sawmill verify` with CrateDB: a strict stand-in in this process, or a real server
//! where `SAWMILL_CRATEDB_URL` (its HTTP address) and `SAWMILL_CRATEDB_PG_URL` (its PostgreSQL wire) name
//! one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sawmill_cratedb_standin::{Fault, StandIn};
use serde_json::{Value, json};

use crate::harness::{Ran, command, sawmill, signal, start, wait};

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A cluster, a table of it, and a directory for files.
pub struct Bench {
    standin: Option<StandIn>,
    pub url: String,
    pub table: String,
    pub dir: tempfile::TempDir,
}

impl Bench {
    /// The stand-in, for tests that need faults or look at its state.
    pub fn standin() -> Self {
        let standin = StandIn::start(1);
        let url = standin.url();
        Bench { standin: Some(standin), url, table: "c".to_owned(), dir: tempfile::tempdir().unwrap() }
    }

    /// A real server where one is named, else the stand-in.
    fn any() -> Self {
        let Ok(named) = std::env::var("SAWMILL_CRATEDB_URL") else { return Self::standin() };
        let address = named.split_once("://").map_or(named.as_str(), |(_, rest)| rest);
        let address = address.split(['/', '?']).next().unwrap();
        let wire = std::env::var("SAWMILL_CRATEDB_PG_URL").unwrap_or_default();
        let port = wire.rsplit(':').next().and_then(|rest| rest.split(['/', '?']).next()?.parse().ok());
        let table = format!("sawmill_cli_{}_{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        Bench {
            standin: None,
            url: format!("crate://{address}/doc?pg_port={}", port.unwrap_or(5432u16)),
            table,
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn contacts(&self, rows: &str) -> PathBuf {
        let path = self.dir.path().join(format!("contacts-{rows}.parquet"));
        sawmill(["gen", "contacts", "--rows", rows, "--out", path.to_str().unwrap()]).ok();
        path
    }

    pub fn args(&self, verb: &str, file: &Path, more: &[&str]) -> Vec<String> {
        let mut args = [verb, file.to_str().unwrap(), "--to", &self.url, "--table", &self.table]
            .map(str::to_owned)
            .to_vec();
        args.extend(more.iter().map(|s| (*s).to_owned()));
        args
    }

    pub fn load(&self, file: &Path, more: &[&str]) -> Ran {
        sawmill(self.args("load", file, more))
    }

    /// Plans faults for the next batches over both transports.
    pub fn faults(&self, faults: impl IntoIterator<Item = Option<Fault>> + Clone) {
        let standin = self.standin.as_ref().unwrap();
        standin.faults().plan(faults.clone());
        standin.pg_faults().plan(faults);
    }

    /// What a statement answers, errors included.
    pub fn sql(&self, statement: &str) -> Value {
        let authority = self.url.split("://").nth(1).unwrap().split('/').next().unwrap();
        let (credentials, host) = authority.rsplit_once('@').unwrap_or(("crate:", authority));
        let host = if host.contains(':') { host.to_owned() } else { format!("{host}:4200") };
        let credentials = BASE64_STANDARD.encode(credentials);
        let body = json!({ "stmt": statement }).to_string();
        let mut stream = TcpStream::connect(host).unwrap();
        let head = format!(
            "POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Basic {credentials}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// Rows of the table, where there is one.
    pub fn rows(&self) -> Option<u64> {
        let refreshed = self.sql(&format!("REFRESH TABLE \"doc\".\"{}\"", self.table));
        let counted = self.sql(&format!("SELECT count(*) FROM \"doc\".\"{}\"", self.table));
        refreshed.get("error").is_none().then(|| counted["rows"][0][0].as_u64())?
    }
}

impl Bench {
    /// Takes the table and the records of its loads away.
    fn remove(&self) {
        sawmill(["load", "forget", "--to", &self.url, "--table", &self.table]);
        self.sql(&format!("DROP TABLE IF EXISTS \"doc\".\"{}\"", self.table));
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if self.standin.is_none() {
            self.remove();
        }
    }
}

#[test]
fn nested_contacts_arrive_over_both_transports_and_are_verified() {
    for transport in ["http", "pg", "auto"] {
        let bench = Bench::any();
        let file = bench.contacts("5k");
        let json =
            bench.load(&file, &["--row-key", "--transport", transport, "--verify", "--json"]).ok().json();
        assert_eq!(json["report"]["rows"], 5_000);
        assert_eq!(json["report"]["verified"]["target"], json["report"]["content"]);
        assert_eq!(bench.rows(), Some(5_000));
        assert!(
            bench.standin.as_ref().is_none_or(|standin| (standin.unnests() > 0) == (transport != "http"))
        );
        assert!(sawmill(bench.args("verify", &file, &[])).ok().out.contains("verified"));
        assert!(bench.load(&file, &["--row-key"]).ok().out.contains("nothing to do"));
        let other = bench.contacts("4k");
        let ran = sawmill(bench.args("verify", &other, &[]));
        assert!(ran.out.contains("they differ"), "{}", ran.out);
        ran.fails(4);
    }
}

#[test]
fn an_append_without_a_key_asks_for_consent_before_it_starts() {
    let bench = Bench::any();
    // A new table needs neither key nor consent.
    bench.load(&bench.contacts("100"), &[]).ok();
    assert_eq!(bench.rows(), Some(100));
    let more = bench.contacts("200");
    let error = bench.load(&more, &["--mode", "append"]).fails(2);
    assert!(error.contains("at least once") && error.contains("--at-least-once"), "{error}");
    assert_eq!(bench.rows(), Some(100));
    bench.load(&more, &["--mode", "append", "--at-least-once"]).ok();
    assert_eq!(bench.rows(), Some(300));
}

#[test]
fn one_command_adds_the_new_files_of_a_folder_every_night() {
    let bench = Bench::any();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    let day = |name: &str, ids: std::ops::Range<u32>| {
        let rows: String = ids.map(|id| format!("{id},note {id}\n")).collect();
        std::fs::write(folder.join(name), format!("id,note\n{rows}")).unwrap();
    };
    let night = |more: &[&str]| bench.load(&folder, &[&["--primary-key", "id"], more].concat());
    day("1.csv", 0..100);
    night(&[]).ok();
    assert!(night(&[]).ok().out.contains("nothing to do"));
    day("2.csv", 100..150);
    let second = night(&["--verify"]).ok();
    assert!(second.out.contains("1 new file"), "{}", second.out);
    assert_eq!(bench.rows(), Some(150));
    day("2.csv", 200..210);
    let error = night(&[]).fails(1);
    assert!(error.contains("2.csv") && error.contains("--changed append"), "{error}");
    assert_eq!(bench.rows(), Some(150));
}

#[test]
fn the_rows_of_a_corrected_file_of_a_folder_are_replaced() {
    let bench = Bench::any();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    let day = |name: &str, rows: &str| std::fs::write(folder.join(name), format!("id,s\n{rows}")).unwrap();
    day("1.csv", "1,POINT (7.1 50.7)\n2,\n");
    day("2.csv", "3,\n");
    let lineage = ["--file-column", "source", "--loaded-at-column", "loaded_at"];
    let options = [&["--row-key", "--types", "s=geo_shape"], &lineage[..]].concat();
    bench.load(&folder, &options).ok();
    day("1.csv", "7,\n8,\n9,\n");
    assert!(bench.load(&folder, &options).fails(1).contains("1.csv"));
    let replace = [&options[..], &["--changed", "replace", "--verify"]].concat();
    let out = bench.load(&folder, &replace).ok().out;
    assert!(out.contains("replaced 2 rows"), "{out}");
    bench.sql(&format!("REFRESH TABLE \"doc\".\"{}\"", bench.table));
    let answer = bench.sql(&format!("SELECT id FROM \"doc\".\"{}\" ORDER BY id", bench.table));
    assert_eq!(answer["rows"], json!([[3], [7], [8], [9]]));
    assert!(bench.load(&folder, &replace).ok().out.contains("nothing to do"));
}

#[test]
fn the_plan_is_printed_without_a_server() {
    let bench = Bench::standin();
    let file = bench.contacts("1000");
    bench.standin.as_ref().unwrap().stop(0);
    let text = bench.load(&file, &["--row-key", "--explain"]).ok().out;
    for part in [
        "exactly once",
        "ARRAY(OBJECT(STRICT) AS (",
        "CREATE TABLE \"doc\".\"c\"",
        "1,000 rows",
        "encoded rows in memory",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = bench.load(&file, &["--row-key", "--explain", "--json", "--batch-bytes", "1M"]).ok().json();
    assert_eq!((&json["rows"], &json["batch_bytes"]), (&1000.into(), &(1 << 20).into()));
    let ddl = bench.load(&file, &["--ddl", "--objects", "ignored", "--shards", "3"]).ok().out;
    assert!(ddl.contains("OBJECT(IGNORED)") && ddl.contains("CLUSTERED INTO 3 SHARDS"), "{ddl}");
}

#[test]
fn options_of_cratedb_are_rejected_for_postgresql() {
    let bench = Bench::any();
    let file = bench.contacts("10");
    let file = file.to_str().unwrap();
    let error =
        sawmill(["load", file, "--to", "postgres://localhost/db", "--table", "c", "--row-key"]).fails(2);
    assert!(error.contains("--row-key is available for CrateDB only"), "{error}");
}

#[test]
fn a_stream_on_standard_input_is_loaded_once_however_often_it_comes() {
    let bench = Bench::any();
    let bytes = std::fs::read(bench.contacts("3k")).unwrap();
    for expected in ["3,000 rows", "nothing to do"] {
        let args = bench.args("load", Path::new("-"), &["--row-key"]);
        let mut child = command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let text = wait(child).ok().out;
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(bench.rows(), Some(3_000));
}

#[test]
fn columns_are_chosen_and_renamed_and_a_table_replaced() {
    let bench = Bench::any();
    let file = bench.contacts("500");
    bench.load(&file, &["--row-key"]).ok();
    let more = ["--row-key", "--mode", "replace", "--columns", "name", "--rename", "name=who", "--verify"];
    bench.load(&file, &more).ok();
    assert_eq!(bench.rows(), Some(500));
    let error = bench.load(&file, &["--row-key", "--columns", "nothing"]).fails(2);
    assert!(error.contains("no column \"nothing\""), "{error}");
}

#[test]
fn a_load_that_is_killed_again_and_again_ends_with_exactly_the_rows_of_the_source() {
    for (key, transport) in [("--row-key", "auto"), ("", "http"), ("", "pg")] {
        kill_again_and_again(key, transport);
    }
}

/// With a key, or with batch tags, which need none.
fn kill_again_and_again(key: &str, transport: &str) {
    let bench = Bench::any();
    // A real server takes its time without being asked.
    let rows = if bench.standin.is_some() { 40_000 } else { 400_000 };
    let file = bench.contacts(&rows.to_string());
    let args = bench.args(
        "load",
        &file,
        &["--transport", transport, "--unit-rows", "2000", "--batch-rows", "200", "--connections", "2"],
    );
    let args: Vec<String> = args.into_iter().chain((!key.is_empty()).then(|| key.to_owned())).collect();
    // Each batch takes its time, so that there is something to kill.
    let slow = || Some(Fault::Slow(Duration::from_millis(40)));
    let mut kills = 0;
    // Times between starts and kills spread by a multiplicative hash: the same in each run, and uneven.
    let mut random = 0x2545_F491_4F6C_DD1Du64;
    while kills < 20 {
        if let Some(standin) = &bench.standin {
            standin.faults().plan((0..60).map(|_| slow()));
            standin.pg_faults().plan((0..60).map(|_| slow()));
        }
        let child = start(&args);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(100 + (random >> 33) % 150));
        signal(&child, "KILL");
        if wait(child).code == Some(0) {
            // It was quicker than all kills: once more from the beginning.
            assert_eq!(bench.rows(), Some(rows));
            bench.remove();
            continue;
        }
        kills += 1;
        let seen = bench.rows();
        assert!(seen.is_none_or(|seen| seen == rows), "the table is seen before it is complete: {seen:?}");
    }
    let json = sawmill(args.iter().map(String::as_str).chain(["--verify", "--json"])).ok().json();
    assert_eq!(json["report"]["rows"], rows);
    assert_eq!(bench.rows(), Some(rows));
}

/// Seconds of waits in a tree of spans; waits inside waits count once.
fn waited(spans: &Value) -> f64 {
    let of = |span: &Value| match span["wait"].is_string() {
        true => span["wall"].as_f64().unwrap(),
        false => waited(&span["children"]),
    };
    spans.as_array().map_or(0.0, |spans| spans.iter().map(of).sum())
}

#[test]
fn waiting_for_the_server_is_not_blamed_on_the_processors() {
    for transport in ["http", "pg"] {
        let bench = Bench::standin();
        let file = bench.contacts("60000");
        let more = ["--row-key", "--transport", transport, "--connections", "1", "--json"];
        let json = bench.load(&file, &more).ok().json();
        let threads = json["phase"]["threads"].as_array().unwrap();
        let sender = threads.iter().find(|thread| thread["name"] == "sender 1").unwrap();
        let of = |figure: &str| sender[figure].as_f64().unwrap_or(0.0);
        // On a busy machine it is ready and has no processor.
        let known = waited(&sender["spans"]) + of("cpu") + of("ready");
        assert!(known > 0.8 * of("wall"), "{transport}: {known} of {}\n{sender:#}", of("wall"));
        assert_ne!(json["bottleneck"]["limit"], "unseen", "{transport}");
        let last = json["over_time"]["samples"].as_array().unwrap().last().unwrap();
        assert_eq!(last["rows"], 60_000, "{transport}");
        assert!(last["wire_sent"].as_u64().unwrap() > 500_000, "{transport}: {last}");
        assert!(json["maxima"]["rows_per_second"].as_f64().unwrap() > 0.0, "{transport}: {}", json["maxima"]);
    }
}

#[test]
fn types_of_the_server_s_own_are_made_from_text_and_from_parquet() {
    let bench = Bench::any();
    let csv = bench.dir.path().join("hosts.csv");
    std::fs::write(&csv, "id,p,a,b\n1,POINT (7.1 50.7),::FFFF:192.0.2.1,00001111\n2,,::1,10000000\n")
        .unwrap();
    let types = ["--types", "p=geo_point,a=ip,b=bit(8)"];
    let parquet = bench.dir.path().join("hosts.parquet");
    let out = ["--out", parquet.to_str().unwrap(), "--types", "b=text"];
    sawmill([&["convert", csv.to_str().unwrap()], &out[..]].concat()).ok();
    for (file, mode) in [(&csv, "create"), (&parquet, "replace")] {
        bench.load(file, &[&types[..], &["--mode", mode, "--verify"]].concat()).ok();
        sawmill(bench.args("verify", file, &types)).ok();
        bench.sql(&format!("REFRESH TABLE \"doc\".\"{}\"", bench.table));
        let answer = bench.sql(&format!("SELECT p, a, b FROM \"doc\".\"{}\" ORDER BY id", bench.table));
        let first = json!([[7.1, 50.7], "192.0.2.1", "B'00001111'"]);
        assert_eq!(answer["rows"], json!([first, [null, "::1", "B'10000000'"]]));
    }
    let ddl = bench.load(&parquet, &[&types[..], &["--ddl"]].concat()).ok().out;
    assert!(ddl.contains("\"p\" GEO_POINT") && ddl.contains("\"b\" BIT(8)"), "{ddl}");
    let error = bench.load(&parquet, &["--types", "p=int32"]).fails(2);
    assert!(error.contains("text only"), "{error}");
}

#[test]
fn text_columns_of_an_existing_table_take_the_files_own_text_but_times_stay_times() {
    let bench = Bench::any();
    let days = bench.dir.path().join("days");
    std::fs::create_dir(&days).unwrap();
    for (name, row, mode) in [("1.csv", "1,x,10:00", "create"), ("2.csv", "2,1.50,11:00", "append")] {
        let file = days.join(name);
        std::fs::write(&file, format!("id,a,at\n{row}\n")).unwrap();
        bench.load(&file, &["--row-key", "--verify", "--mode", mode]).ok();
    }
    bench.sql(&format!("REFRESH TABLE \"doc\".\"{}\"", bench.table));
    let answer = bench.sql(&format!("SELECT a FROM \"doc\".\"{}\" ORDER BY id", bench.table));
    assert_eq!(answer["rows"], json!([["x"], ["1.50"]]));
    // A load has made the column of times, and stores all times in the same form.
    sawmill(bench.args("verify", &days, &[])).ok();
}

#[test]
fn a_text_column_of_a_table_that_no_load_has_made_takes_times_as_they_are_written() {
    let bench = Bench::any();
    bench.sql(&format!("CREATE TABLE \"doc\".\"{}\" (\"id\" BIGINT PRIMARY KEY, \"at\" TEXT)", bench.table));
    let file = bench.dir.path().join("times.csv");
    std::fs::write(&file, "id,at\n1,10:00\n2,11:00\n").unwrap();
    bench.load(&file, &["--verify", "--mode", "append"]).ok();
    let answer = bench.sql(&format!("SELECT \"at\" FROM \"doc\".\"{}\" ORDER BY \"id\"", bench.table));
    assert_eq!(answer["rows"], json!([["10:00"], ["11:00"]]));
    sawmill(bench.args("verify", &file, &[])).ok();
}

#[test]
fn the_first_rows_of_a_file_with_other_content_than_before_are_refused() {
    let bench = Bench::any();
    let file = bench.dir.path().join("ids.csv");
    std::fs::write(&file, "id\n1\n2\n").unwrap();
    bench.load(&file, &["--row-key"]).ok();
    std::fs::write(&file, "id\n3\n4\n5\n").unwrap();
    let error = bench.load(&file, &["--row-key", "--mode", "append", "--rows", "1"]).fails(1);
    for part in ["ids.csv", "with other content", "--changed append"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(bench.rows(), Some(2));
}
