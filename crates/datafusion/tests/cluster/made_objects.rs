//! Objects that a cluster makes and loads: the bytes of one machine, whole or not there, whatever happens to an executor.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use sawmill_localpg::LocalPg;

use crate::command::command;
use crate::generation::{assert_made, of_one_process};
use crate::loading::without_password;
use crate::processes::Cluster;
use crate::s3::S3;

/// The Parquet files among objects.
fn parquet(objects: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    objects.into_iter().filter(|(name, _)| name.ends_with(".parquet")).collect()
}

#[test]
fn objects_are_made_kept_read_and_loaded_by_a_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = S3::with(folder.path()) else { return };
    let database = LocalPg::start().unwrap();
    let (to, password) = without_password(&database.url());
    let mut environment = server.environment();
    environment.push(("PGPASSWORD".to_owned(), password));
    let cluster = Cluster::start_in(2, environment);
    let run = |args: &[&str]| cluster.run(args, Path::new("/"));
    // Objects of one request, and of several parts.
    for (name, args) in [
        ("small", &["orders", "--rows", "5k", "--files", "5", "--seed", "7", "--compression", "zstd"][..]),
        ("large", &["contacts", "--rows", "900k", "--files", "2"]),
    ] {
        let (expected, others) = of_one_process(args, &folder.path().join(name));
        let out = format!("s3://data/{name}");
        let made = [&["submit", "gen"], args, &["--out", &out]].concat();
        let files = expected.len();
        let said = assert_made(&run(&made));
        assert!(
            said.contains(&format!("{files} made, 0 kept, all compared with their sizes and ETags")),
            "{said}"
        );
        let objects = server.objects(name);
        let manifests: Vec<&String> = objects.keys().filter(|name| !name.ends_with(".parquet")).collect();
        assert!(manifests.into_iter().eq(&others), "{:?}", objects.keys());
        assert!(parquet(objects) == expected, "{name}");
        let said = assert_made(&run(&made));
        assert!(said.contains(&format!(": 0 made, {files} kept")), "{said}");
    }
    // Objects of another seed are not touched.
    let other = ["submit", "gen", "orders", "--rows", "5k", "--files", "5", "--out", "s3://data/small"];
    let refused = run(&other);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && message.contains("seed was 7, is 42"), "{message}");
    // The objects can be loaded, by URL and by pattern, and their footers read.
    for (table, source) in [("folder", "s3://data/large"), ("pattern", "s3://data/**/contacts-*.parquet")] {
        let args = ["submit", "load", source, "--to", &to, "--table", table, "--parts", "3", "--verify"];
        let said = assert_made(&run(&args));
        assert!(said.contains("900,000 rows in table") && said.contains(", verified"), "{said}");
    }
    let rows: i64 = {
        let mut client = Client::connect(&database.url(), NoTls).unwrap();
        client.query_one("select count(*) from pattern", &[]).unwrap().get(0)
    };
    assert_eq!(rows, 900_000);
    let footers = run(&["submit", "footer", "s3://data/small", "--level", "file", "--json"]);
    assert_eq!(assert_made(&footers).matches("\"num_rows\":1000").count(), 5);
    let absent = run(&["submit", "load", "s3://absent/**", "--to", &to, "--table", "t"]);
    let message = String::from_utf8_lossy(&absent.stderr).into_owned();
    assert!(absent.status.code() == Some(1) && message.contains("s3://absent"), "{message}");
}

#[test]
fn an_executor_is_killed_while_it_sends_objects_and_the_job_ends_with_exactly_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = S3::with(folder.path()) else { return };
    let args = ["contacts", "--rows", "6M", "--files", "12"];
    let (expected, _) = of_one_process(&args, &folder.path().join("expected"));
    let mut cluster = Cluster::start_in(2, server.environment());
    let job = std::thread::scope(|scope| {
        let (url, environment) = (cluster.url.clone(), server.environment());
        let job = scope.spawn(move || {
            let mut job = command();
            job.args(["submit", "gen"]).args(args).args(["--out", "s3://data/killed", "--scheduler", &url]);
            job.envs(environment).output().unwrap()
        });
        // When some objects are there, and others are under way.
        let started = Instant::now();
        while server.complete("killed") < 3 || server.uploads() == 0 {
            assert!(started.elapsed() < Duration::from_secs(60), "no objects");
            std::thread::sleep(Duration::from_millis(2));
        }
        cluster.kill_executor(0);
        assert!(!job.is_finished(), "the job ended before the executor was killed");
        // All objects there are whole.
        for (name, bytes) in parquet(server.objects("killed")) {
            assert!(expected[&name] == bytes, "{name}");
        }
        job.join().unwrap()
    });
    let said = assert_made(&job);
    assert!(said.contains("12 files with 6,000,000 rows"), "{said}");
    assert!(parquet(server.objects("killed")) == expected);
    assert_eq!(server.uploads(), 0);
}

/// Stores have no locks. One job may report that the other was in its way. All objects are whole, and running the
/// command again completes them.
#[test]
fn two_jobs_that_make_the_same_objects_at_once_harm_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = S3::with(folder.path()) else { return };
    let args = ["contacts", "--rows", "1M", "--files", "4"];
    let (expected, _) = of_one_process(&args, &folder.path().join("expected"));
    let cluster = Cluster::start_in(2, server.environment());
    let args = [&["submit", "gen"], &args[..], &["--out", "s3://data/twice"]].concat();
    std::thread::scope(|scope| {
        let jobs = [0, 1].map(|_| scope.spawn(|| cluster.run(&args, Path::new("/"))));
        for job in jobs.map(|job| job.join().unwrap()) {
            let message = String::from_utf8_lossy(&job.stderr).into_owned();
            assert!(job.status.success() || message.contains("s3://data/twice"), "{message}");
        }
    });
    for (name, bytes) in parquet(server.objects("twice")) {
        assert!(expected[&name] == bytes, "{name}");
    }
    let said = assert_made(&cluster.run(&args, Path::new("/")));
    assert!(said.contains("4 files with 1,000,000 rows"), "{said}");
    assert!(parquet(server.objects("twice")) == expected);
    assert_eq!(server.uploads(), 0);
}
