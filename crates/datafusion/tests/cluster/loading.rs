//! Loads that a cluster makes: every row once, whatever happens to an executor.

use std::path::Path;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use sawmill_localpg::LocalPg;

use crate::command::command;
use crate::processes::Cluster;

fn submit(cluster: &Cluster, source: &str, to: &str, table: &str, parts: &str) -> std::process::Output {
    let args = ["submit", "load", source, "--to", to, "--table", table, "--parts", parts, "--verify"];
    cluster.run(&args, Path::new("/"))
}

/// What a load that succeeded said.
#[track_caller]
fn said(output: &std::process::Output) -> String {
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{error}");
    out.into_owned()
}

/// The address of a server without its password, and the password.
pub fn without_password(url: &str) -> (String, String) {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (user, place) = rest.split_once('@').unwrap();
    let (user, password) = user.split_once(':').unwrap();
    (format!("{scheme}://{user}@{place}"), password.to_owned())
}

fn count(client: &mut Client, table: &str) -> i64 {
    client.query_one(&format!("select count(*) from {table}"), &[]).unwrap().get(0)
}

#[test]
fn rows_arrive_once_with_more_parts_than_tasks_at_a_time_and_with_fewer() {
    let server = LocalPg::start().unwrap();
    let mut client = Client::connect(&server.url(), NoTls).unwrap();
    let (to, password) = without_password(&server.url());
    let cluster = Cluster::start_with(2, password);
    for (table, parts) in [("one", "1"), ("three", "3"), ("twelve", "12")] {
        let source = "gen:contacts?rows=600k&seed=7";
        for _ in 0..2 {
            let out = said(&submit(&cluster, source, &to, table, parts));
            assert!(out.contains("600,000 rows in table") && out.contains(", verified"), "{out}");
            assert_eq!(count(&mut client, table), 600_000);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let out_folder = folder.path().to_str().unwrap();
    let made = ["submit", "gen", "orders", "--rows", "50k", "--files", "5", "--out", out_folder];
    said(&cluster.run(&made, Path::new("/")));
    let out = said(&submit(&cluster, out_folder, &to, "orders", "4"));
    assert!(out.contains("50,000 rows in table orders") && out.contains(", verified"), "{out}");
    // Units are recorded, but a row of theirs is gone.
    client.execute("delete from orders where ctid = (select min(ctid) from orders)", &[]).unwrap();
    let differs = submit(&cluster, out_folder, &to, "orders", "4");
    let error = String::from_utf8_lossy(&differs.stderr).into_owned();
    assert_eq!(differs.status.code(), Some(4), "{error}");
    let expected =
        "error: the table has 49,999 rows; according to the records 50,000 were loaded into it - table ";
    assert!(error.contains(expected) && error.trim_end().ends_with("load in mode replace"), "{error}");
    let secret = submit(&cluster, "gen:orders?rows=5", "postgres://me:secret@host/db", "t", "1");
    let error = String::from_utf8_lossy(&secret.stderr).into_owned();
    assert!(error.contains("a password in an address") && !error.contains("secret"), "{error}");
}

#[test]
fn an_executor_is_killed_in_the_middle_of_a_load_and_every_row_arrives_once() {
    let server = LocalPg::start().unwrap();
    let mut client = Client::connect(&server.url(), NoTls).unwrap();
    let (to, password) = without_password(&server.url());
    let mut cluster = Cluster::start_with(2, password.clone());
    let job = std::thread::scope(|scope| {
        let url = cluster.url.clone();
        let job = scope.spawn(move || {
            let args = [
                "submit",
                "load",
                "gen:contacts?rows=6M&seed=7",
                "--to",
                &to,
                "--table",
                "c",
                "--parts",
                "12",
            ];
            let mut job = command();
            job.args(args)
                .args(["--verify", "--scheduler", &url])
                .env("PGPASSWORD", password)
                .output()
                .unwrap()
        });
        let started = Instant::now();
        let mut units =
            || client.query_one("select count(*) from _sawmill.units", &[]).map_or(0, |row| row.get(0));
        while units() < 8_i64 {
            assert!(started.elapsed() < Duration::from_secs(60), "no units");
            std::thread::sleep(Duration::from_millis(5));
        }
        cluster.kill_executor(0);
        assert!(!job.is_finished(), "the job ended before the executor was killed");
        job.join().unwrap()
    });
    let out = said(&job);
    assert!(out.contains("6,000,000 rows in table c") && out.contains(", verified"), "{out}");
    assert_eq!(count(&mut client, "c"), 6_000_000);
}
