//! `sawmill load` and `sawmill verify` over URLs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::s3::{self, S3};
use super::web::{Asked, Fate, Web};
use super::{contacts, with_s3};
use crate::harness::{Ran, command, sawmill};
use crate::load::Bench;

const FOLDER: &str = "s3://trips/data/contacts-*.parquet";
const OBJECT: &str = "s3://trips/data/contacts-00000.parquet";

/// The arguments of a command over a URL.
fn args(command: &str, url: &str, bench: &Bench, more: &[&str]) -> Vec<String> {
    bench.args(command, Path::new(url), "c", more)
}

#[test]
fn a_load_from_s3_is_complete_and_verified_and_known_to_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    contacts(folder.path(), "60k", "3");
    let Some(s3) = S3::with("trips", &folder.path().join("trips")) else { return };
    let bench = Bench::new();
    s3.sawmill(&args("load", FOLDER, &bench, &["--verify", "--unit-rows", "5000"])).ok();
    assert_eq!(bench.count("select count(*) from c"), 60_000);
    s3.sawmill(&args("verify", FOLDER, &bench, &[])).ok();
    // The files of this machine have the same rows.
    let local = folder.path().join("trips/data");
    sawmill(args("verify", local.to_str().unwrap(), &bench, &[])).ok();
    // An append skips objects that are in the table.
    let json = s3.sawmill(&args("load", FOLDER, &bench, &["--mode", "append", "--json"])).ok().json();
    assert_eq!(bench.count("select count(*) from c"), 60_000, "{json}");
    let secrets = "select count(*) from _sawmill.loads l where l::text like '%EXAMPLE%'";
    assert_eq!(bench.count(secrets), 0);
}

/// A folder with contacts in several row groups, and a server that serves it with these faults.
fn served(
    rows: &str,
    decide: impl Fn(&Asked, usize) -> Fate + Send + Sync + 'static,
) -> (tempfile::TempDir, Web) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("trips/data");
    let out = out.to_str().unwrap();
    sawmill(["gen", "contacts", "--rows", rows, "--row-group-rows", "20k", "--out", out]).ok();
    let web = Web::serve(folder.path(), decide);
    (folder, web)
}

#[test]
fn explain_states_the_requests_and_a_load_makes_no_more() {
    let (folder, web) = served("100k", |_, _| Fate::Answered);
    let bench = Bench::new();
    let json = with_s3(&web, &args("load", OBJECT, &bench, &["--explain", "--json"])).ok().json();
    let bytes = std::fs::metadata(folder.path().join("trips/data/contacts-00000.parquet")).unwrap().len();
    let planned = &json["objects"];
    assert_eq!(planned["requests"], 5, "one for each row group: {planned}");
    assert!(planned["bytes"].as_u64().unwrap() < bytes, "{planned}");
    let before = web.asked().len();
    with_s3(&web, &args("load", OBJECT, &bench, &["--connections", "1"])).ok();
    assert_eq!(bench.count("select count(*) from c"), 100_000);
    // Besides the row groups, the load opens the object and looks at the end whether it has changed.
    let asked = web.asked().len() - before;
    assert!(asked <= 5 + 3, "{asked} requests: {:?}", &web.asked()[before..]);
}

#[test]
fn only_the_chosen_columns_are_requested() {
    let (_folder, web) = served("100k", |_, _| Fate::Answered);
    let bench = Bench::new();
    let explain = |more: &[&str]| {
        let json = with_s3(&web, &args("load", OBJECT, &bench, &[&["--explain", "--json"], more].concat()))
            .ok()
            .json();
        json["objects"]["bytes"].as_u64().unwrap()
    };
    assert!(explain(&["--columns", "name"]) < explain(&[]) / 2);
    with_s3(&web, &args("load", OBJECT, &bench, &["--columns", "name", "--verify"])).ok();
    assert_eq!(bench.count("select count(*) from c"), 100_000);
}

#[test]
fn a_budget_that_row_groups_exceed_and_a_condition_change_no_rows() {
    let (folder, web) = served("100k", |_, _| Fate::Answered);
    let bench = Bench::new();
    with_s3(&web, &args("load", OBJECT, &bench, &["--read-ahead", "256KiB", "--verify"])).ok();
    let local = folder.path().join("trips/data");
    sawmill(args("verify", local.to_str().unwrap(), &bench, &[])).ok();
    let other = Bench::new();
    let condition = ["--where", "name >= 'M'", "--verify"];
    with_s3(&web, &args("load", OBJECT, &other, &condition)).ok();
    sawmill(args("verify", local.to_str().unwrap(), &other, &condition[..2])).ok();
}

#[test]
fn a_load_survives_throttling_cut_transfers_and_late_answers() {
    let (folder, web) = served("100k", |_, before| match before % 6 {
        0 => Fate::Answered,
        4 => Fate::Trickling,
        1 => Fate::Refused(503, "<Error><Code>SlowDown</Code></Error>"),
        2 => Fate::CutAfter(50_000),
        3 => Fate::Late(50),
        _ => Fate::Reset,
    });
    let bench = Bench::new();
    with_s3(&web, &args("load", OBJECT, &bench, &["--verify", "--read-ahead", "1MiB"])).ok();
    assert_eq!(bench.count("select count(*) from c"), 100_000);
    let local = folder.path().join("trips/data");
    sawmill(args("verify", local.to_str().unwrap(), &bench, &[])).ok();
}

#[test]
fn an_object_that_changes_in_mid_load_and_credentials_that_expire_leave_no_table_and_say_why() {
    let expired =
        "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>";
    for (fate, why) in [
        (Fate::OtherTag, "the file changed while it was loaded"),
        (Fate::Refused(403, expired), "403 ExpiredToken"),
        (Fate::Short, "not what was asked for"),
    ] {
        // The object is opened as it was, and broken when its column chunks are read.
        let broken = Arc::new(AtomicBool::new(true));
        let (seen, case) = (Arc::clone(&broken), format!("{fate:?}"));
        let (_folder, web) = served("100k", move |asked, _| {
            let of_chunk = asked
                .range
                .as_ref()
                .is_some_and(|range| range.starts_with("bytes=") && asked.if_match.is_some());
            if of_chunk && seen.load(Relaxed) { fate.clone() } else { Fate::Answered }
        });
        let bench = Bench::new();
        let error = with_s3(&web, &args("load", OBJECT, &bench, &[])).fails(1);
        assert!(error.contains(why) && error.contains(OBJECT), "{case}: {error}");
        assert!(!bench.exists("c"), "{case}");
        // The same command loads the rest.
        broken.store(false, Relaxed);
        with_s3(&web, &args("load", OBJECT, &bench, &["--verify"])).ok();
        assert_eq!(bench.count("select count(*) from c"), 100_000, "{case}");
    }
}

#[test]
fn an_object_that_was_replaced_between_two_runs_is_rejected() {
    // The first run commits some units.
    let (folder, web) =
        served("100k", |_, before| if before > 25 { Fate::Refused(403, "") } else { Fate::Answered });
    let bench = Bench::new();
    let options = ["--unit-rows", "5000", "--connections", "1", "--read-ahead", "64KiB"];
    with_s3(&web, &args("load", OBJECT, &bench, &options)).fails(1);
    let out = folder.path().join("trips/data/contacts-00000.parquet");
    let out = out.to_str().unwrap();
    sawmill([
        "gen",
        "contacts",
        "--rows",
        "100k",
        "--row-group-rows",
        "20k",
        "--seed",
        "8",
        "--out",
        out,
        "--overwrite",
    ])
    .ok();
    let web = Web::serve(folder.path(), |_, _| Fate::Answered);
    let error = with_s3(&web, &args("load", OBJECT, &bench, &options)).fails(1);
    assert!(error.contains("changed since the load began") && error.contains(OBJECT), "{error}");
}

#[test]
fn files_of_a_web_server_with_folders_as_columns_load_together_with_local_ones() {
    let (folder, web) = served("20k", |_, _| Fate::Answered);
    let data = folder.path().join("trips/data");
    let part = folder.path().join("trips/year=2021");
    std::fs::create_dir_all(&part).unwrap();
    std::fs::rename(data.join("contacts-00000.parquet"), part.join("a.parquet")).unwrap();
    let local = folder.path().join("here/year=2022");
    std::fs::create_dir_all(&local).unwrap();
    std::fs::copy(part.join("a.parquet"), local.join("a.parquet")).unwrap();
    let url = format!("http://{}/trips/year=2021/a.parquet?signature=SECRET", web.address);
    let bench = Bench::new();
    let to = bench.server.url();
    let args = ["load", &url, local.to_str().unwrap(), "--to", &to, "--table", "c", "--verify"];
    let ran: Ran = Ran::from(s3::environment(command(args), "http://127.0.0.1:1").output().unwrap()).ok();
    assert!(!ran.out.contains("SECRET") && !ran.err.contains("SECRET"), "{}", ran.out);
    assert_eq!(bench.count("select count(*) from c where year = 2021"), 20_000);
    assert_eq!(bench.count("select count(*) from c where year = 2022"), 20_000);
    assert_eq!(bench.count("select count(*) from _sawmill.loads l where l::text like '%SECRET%'"), 0);
}

#[test]
fn a_condition_reads_the_pages_that_may_match_and_explain_says_how_many_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("trips/data");
    let out = out.to_str().unwrap();
    let spec = folder.path().join("sorted.toml");
    std::fs::write(
        &spec,
        "name = \"contacts\"\n[[fields]]\nname = \"id\"\ntype = \"int64\"\nvalues = { sequence = {} }\n\
         [[fields]]\nname = \"text\"\ntype = \"string\"\nvalues = { unique = \"a text that is rather longer than others {id:020}\" }\n",
    )
    .unwrap();
    let args = ["gen", spec.to_str().unwrap(), "--rows", "400k", "--row-group-rows", "400k"];
    sawmill([&args[..], &["--page-rows", "2k", "--page-checksums", "--out", out]].concat()).ok();
    let size = std::fs::metadata(Path::new(out).join("contacts-00000.parquet")).unwrap().len();
    let web = Web::serve(folder.path(), |_, _| Fate::Answered);
    let bench = Bench::new();
    for (condition, rows, most) in [
        ("id >= 100000 and id < 104000", 4_000, size / 10),
        // Rows at both ends: the pages between them are not read.
        ("id < 10 or id >= 399990", 20, size / 10),
        // Four rows far apart.
        ("id in (5, 100005, 200005, 300005)", 4, size / 4),
    ] {
        let table = format!("c{rows}");
        let run = |more: &[&str]| {
            let args =
                bench.args("load", Path::new(OBJECT), &table, &[&["--where", condition], more].concat());
            let before = web.asked().len();
            let ran = with_s3(&web, &args).ok();
            (ran, web.asked()[before..].iter().map(|asked| asked.bytes).sum::<u64>())
        };
        let planned = run(&["--explain", "--json"]).0.json()["objects"]["bytes"].as_u64().unwrap();
        assert!(planned < most, "{condition}: {planned} of {size} are planned");
        let (_, bytes) = run(&["--connections", "1"]);
        // The footer, its indexes and the pages of the condition's column come before.
        assert!(bytes < 2 * most + (1 << 20), "{condition}: {bytes} of {size} are read");
        assert_eq!(bench.count(&format!("select count(*) from {table}")), rows);
        let local = Path::new(out);
        sawmill(bench.args("verify", local, &table, &["--where", condition])).ok();
    }
}

#[test]
fn connections_that_load_one_row_group_request_its_bytes_once() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("trips/data");
    sawmill([
        "gen",
        "contacts",
        "--rows",
        "300k",
        "--row-group-rows",
        "300k",
        "--out",
        out.to_str().unwrap(),
    ])
    .ok();
    let size = std::fs::metadata(out.join("contacts-00000.parquet")).unwrap().len();
    let web = Web::serve(folder.path(), |_, _| Fate::Late(20));
    let bench = Bench::new();
    let effort = ["--connections", "4", "--unit-rows", "20k", "--verify"];
    with_s3(&web, &args("load", OBJECT, &bench, &effort)).ok();
    assert_eq!(bench.count("select count(*) from c"), 300_000);
    let bytes: u64 = web.asked().iter().map(|asked| asked.bytes).sum();
    assert!(bytes < size + size / 2, "{bytes} of {size} bytes were requested");
}
