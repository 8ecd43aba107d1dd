//! `sawmill doctor`: files, a server, this machine.

use std::io::{Read, Write};
use std::net::TcpListener;

use sawmill_cratedb_standin::StandIn;
use sawmill_localpg::LocalPg;

use crate::harness::sawmill;
use crate::load::Bench;

#[test]
fn files_of_tiny_row_groups_without_compression_are_found_with_the_command_that_mends_them() {
    let dir = tempfile::tempdir().unwrap();
    let (bad, good) = (dir.path().join("bad file.parquet"), dir.path().join("good.parquet"));
    let make = |out: &std::path::Path, more: &[&str]| {
        let args = ["gen", "contacts", "--rows", "50k", "--out", out.to_str().unwrap()];
        sawmill([&args[..], more].concat()).ok();
    };
    make(&bad, &["--row-group-rows", "1000"]);
    make(&good, &["--compression", "zstd"]);
    let text = sawmill(["doctor", bad.to_str().unwrap()]).ok().out;
    assert!(text.contains("row groups have fewer than 5,000 rows"), "{text}");
    assert!(text.contains("are not compressed"), "{text}");
    // The command can be pasted.
    let command = text.lines().find(|line| line.contains("--row-group-rows 128k")).unwrap();
    assert!(
        command.contains(&format!("'{}' OUT --row-group-rows 128k --compression zstd", bad.display())),
        "{command}"
    );
    // All files are converted, not only the first.
    let both = sawmill(["doctor", bad.to_str().unwrap(), good.to_str().unwrap()]).ok().out;
    assert!(both.contains(&format!("convert '{}' {} OUT", bad.display(), good.display())), "{both}");
    let one = sawmill(["doctor", bad.to_str().unwrap(), "/nothing.parquet"]);
    assert!(one.out.contains("convert '") && !one.out.contains("nothing.parquet"), "{}", one.out);
    let json = sawmill(["doctor", good.to_str().unwrap(), "--json"]).ok().json();
    assert_eq!(json["findings"].as_array().unwrap().len(), 0, "{json}");
}

/// Pastes the only line of a report that begins with `->` into a shell.
fn pasted(report: &str, folder: &std::path::Path) {
    let mut lines = report.lines().filter_map(|line| line.trim().strip_prefix("-> "));
    let (line, None) = (lines.next().unwrap(), lines.next()) else { panic!("{report}") };
    let line = line.replacen("sawmill", env!("CARGO_BIN_EXE_sawmill"), 1);
    let ran = std::process::Command::new("sh").args(["-c", &line]).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "{line}\n{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn one_command_that_can_be_pasted_mends_all_findings_the_greatest_gain_first() {
    let dir = tempfile::tempdir().unwrap();
    let in_folder = |args: &[&str]| {
        crate::harness::Ran::from(crate::harness::command(args).current_dir(dir.path()).output().unwrap())
    };
    let make =
        |out: &str, more: &[&str]| in_folder(&[&["gen", "contacts", "--out", out][..], more].concat()).ok();
    make("odd.parquet", &["--rows", "60k", "--row-group-rows", "1000"]);
    std::fs::rename(dir.path().join("odd.parquet"), dir.path().join("--odd.parquet")).unwrap();
    let order = |text: &str, findings: &[&str]| {
        let places: Vec<_> = findings.iter().map(|finding| text.find(finding)).collect();
        assert!(places.is_sorted() && !places.contains(&None), "{places:?}\n{text}");
    };
    let odd = in_folder(&["doctor", "--", "--odd.parquet"]).ok().out;
    order(&odd, &["fewer than 5,000 rows", "not compressed", "one command for all"]);
    pasted(&odd, dir.path());
    assert!(in_folder(&["doctor", "OUT"]).ok().out.contains("nothing to change"));
    // Ascending and descending columns sort a file. A constant column does not.
    let rows = |name: &str, value: &dyn Fn(u32) -> u32| {
        let lines: String = (0..80_000).map(|row| format!("{},7\n", value(row))).collect();
        std::fs::write(dir.path().join(name), format!("a,b\n{lines}")).unwrap();
        let parquet = format!("{name}.parquet");
        in_folder(&["convert", name, &parquet, "--row-group-rows", "10k", "--compression", "zstd"]).ok();
        in_folder(&["doctor", &parquet]).ok().out
    };
    for sorted in [rows("up.csv", &|row| row), rows("down.csv", &|row| 80_000 - row)] {
        assert!(sorted.contains("nothing to change"), "{sorted}");
    }
    let mixed = rows("mixed.csv", &|row| row.wrapping_mul(2_654_435_761));
    assert!(mixed.contains("1 of 1 files is sorted by no column"), "{mixed}");
    assert!(mixed.contains("convert --sort-by COLUMN"), "{mixed}");
    // As many names as a shell writes for a pattern.
    make("tiny", &["--rows", "100k", "--files", "12"]);
    let tiny: Vec<String> = (0..12).map(|file| format!("tiny/contacts-{file:05}.parquet")).collect();
    let named: Vec<&str> = tiny.iter().map(String::as_str).collect();
    let all = in_folder(&[&["doctor"], &named[..]].concat()).ok().out;
    assert!(all.contains("convert 'tiny/*.parquet' OUT/ --file-size 256MiB"), "{all}");
    let some = in_folder(&[&["doctor"], &named[..10]].concat()).ok().out;
    assert!(some.contains("contacts-00009.parquet OUT/ --file-size"), "{some}");
    // No command converts files whose columns differ.
    in_folder(&["gen", "orders", "--rows", "1k", "--out", "tiny/other.parquet"]).ok();
    let differ = in_folder(&["doctor", "tiny"]).ok().out;
    assert!(!differ.contains("->") && differ.contains("those of each schema alone"), "{differ}");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_beside_the_findings_of_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let good = dir.path().join("good.parquet");
    let args = ["gen", "contacts", "--rows", "50k", "--compression", "zstd", "--out", good.to_str().unwrap()];
    sawmill(args).ok();
    std::fs::write(dir.path().join("cut.parquet"), &std::fs::read(&good).unwrap()[..5000]).unwrap();
    let folder = dir.path().to_str().unwrap();
    for more in [&[][..], &["--quiet"], &["--json"]] {
        let ran = sawmill([&["doctor", folder], more].concat());
        assert!(ran.out.contains("1 file, 1 row group, 3 column chunks"), "{}", ran.out);
        assert!(!ran.out.contains("nothing to change"), "{}", ran.out);
        assert_eq!(ran.out.contains("cut.parquet"), more == ["--json"], "{}", ran.out);
        assert!(ran.fails(1).contains("cut.parquet"));
    }
    let none = sawmill(["doctor", "/nothing/a.parquet", "/nothing/b.parquet"]);
    assert_eq!(none.out, "");
    assert_eq!(none.code, Some(1));
    assert!(none.err.contains("a.parquet") && none.err.contains("2 of 2 files"), "{}", none.err);
}

#[test]
fn a_role_is_told_which_privileges_and_connections_it_lacks() {
    // A server for this test alone: roles and connections belong to a whole server.
    let server = LocalPg::builder().setting("max_connections", "20").start().unwrap();
    let url = server.url();
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    client
        .batch_execute("REVOKE CREATE ON SCHEMA public FROM public; CREATE ROLE plain LOGIN PASSWORD 'p'")
        .unwrap();
    let (_, place) = url.split_once('@').unwrap();
    let plain = format!("postgres://plain:p@{place}");
    let found = || sawmill(["doctor", &plain]).ok().out;
    for (lack, given) in [
        ("may not create the schema _sawmill", "GRANT CREATE ON DATABASE "),
        ("may not create tables", "GRANT CREATE ON SCHEMA public TO plain"),
    ] {
        let text = found();
        assert!(text.contains(lack), "{text}");
        let (_, command) = text.split_once(given).unwrap();
        let command = format!("{given}{}", command.lines().next().unwrap());
        client.batch_execute(&command).unwrap();
        assert!(!found().contains(lack));
    }
    // pg_stat_activity hides the sessions of other roles.
    let others: Vec<_> = (0..10).map(|_| postgres::Client::connect(&url, postgres::NoTls).unwrap()).collect();
    let text = found();
    assert!(text.contains(" connections free for this role"), "{text}");
    drop(others);
    for (limit, lack) in [
        ("CONNECTION LIMIT 1", "1 connection free for this role"),
        ("SET default_transaction_read_only = on", "read-only"),
    ] {
        assert!(!found().contains(lack));
        client.batch_execute(&format!("ALTER ROLE plain {limit}")).unwrap();
        assert!(found().contains(lack), "{lack}");
    }
}

#[test]
fn a_server_and_the_machine_are_looked_at_without_changing_them() {
    let bench = Bench::new();
    let json = sawmill(["doctor", &bench.server.url(), "--json"]).ok().json();
    assert!(json["looked_at"].as_str().unwrap().starts_with("PostgreSQL "), "{json}");
    let names = json["findings"].as_array().unwrap().iter().map(|finding| finding["what"].to_string());
    let names = names.collect::<Vec<_>>().join(",");
    // Test servers are set up for speed.
    assert!(names.contains("fsync is off"), "{names}");
    let looked_at = json["looked_at"].as_str().unwrap();
    assert!(
        looked_at.contains("(fixes until November 20") && looked_at.contains(" free on its disk"),
        "{json}"
    );
    // Each command is a statement alone, as ALTER SYSTEM requires.
    let mut client = postgres::Client::connect(&bench.server.url(), postgres::NoTls).unwrap();
    for finding in json["findings"].as_array().unwrap() {
        for command in finding["commands"].as_array().unwrap() {
            let command = command.as_str().unwrap();
            assert!(!command.contains([';', ',']) || command.starts_with("SELECT "), "{command}");
            client.prepare(command).unwrap_or_else(|error| panic!("{command}: {error}"));
        }
    }
    let machine = sawmill(["doctor"]).ok().out;
    for part in ["looked at this machine: ", "io_uring o", "huge pages o", "PostgreSQL"] {
        assert!(machine.contains(part), "{part}: {machine}");
    }
    sawmill(["doctor", "/nothing/here.parquet"]).fails(1);
}

#[test]
fn a_cluster_is_looked_at_and_its_own_checks_are_reported() {
    if let Ok(real) = std::env::var("SAWMILL_CRATEDB_URL") {
        let url = real.replacen("http://", "crate://", 1);
        let json = sawmill(["doctor", &url, "--json"]).ok().json();
        assert!(json["looked_at"].as_str().unwrap().starts_with("CrateDB "), "{json}");
        return;
    }
    let cluster = StandIn::start(1);
    let found = || {
        let json = sawmill(["doctor", &cluster.url(), "--json"]).ok().json();
        let findings = json["findings"].as_array().unwrap().iter().map(|finding| finding["what"].to_string());
        (json["looked_at"].as_str().unwrap().to_owned(), findings.collect::<Vec<_>>().join("\n"))
    };
    let (looked_at, findings) = found();
    assert!(
        looked_at.starts_with("CrateDB 6.4.3, 127.0.0.1:") && looked_at.ends_with(", 1 node"),
        "{looked_at}"
    );
    assert!(findings.contains("a heap of 537 MB"), "{findings}");
    // One cluster check and one node check fail.
    assert_eq!(findings.matches("low disk watermark").count(), 2, "{findings}");
    assert_eq!(findings.lines().count(), 3, "{findings}");
    cluster.engine().list_no_jobs();
    assert!(found().1.contains("stats.enabled is off"));
    cluster.engine().deny_sys();
    assert!(found().1.contains("may not read sys.nodes"));
}

#[test]
fn a_cluster_that_refuses_the_user_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("crate://ann:wrong@{}/doc", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 4096]);
            let _ = client.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let error = sawmill(["doctor", &url]).fails(1);
    assert!(error.contains("refuses the request: status 401"), "{error}");
}

#[test]
fn a_cluster_that_answers_more_than_it_was_asked_for_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("crate://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let body = format!("{{\"cols\":[\"a\"],\"rows\":[{}[1]]}}", "[1],".repeat(2 << 20));
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            // The client goes away.
            let _ = client.read(&mut [0; 4096]).and_then(|_| client.write_all((head + &body).as_bytes()));
        }
    });
    let error = sawmill(["doctor", &url]).fails(1);
    assert!(error.contains("where at most 4194304 are read"), "{error}");
}
