//! Files that a cluster makes: the bytes of one machine, whole or not there, whatever happens to an executor.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::command::{command, wait_for};
use crate::processes::Cluster;
use crate::s3::below;

/// The Parquet files of a folder with their bytes, and the names of all other files.
pub fn contents(folder: &Path) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    let (mut files, mut others) = (BTreeMap::new(), Vec::new());
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match name.ends_with(".parquet") {
            true => _ = files.insert(name, fs::read(path).unwrap()),
            false => others.push(name),
        }
    }
    others.sort();
    (files, others)
}

/// The files as one process makes them: by the `sawmill` command if it is named, else by this command.
pub fn of_one_process(args: &[&str], out: &Path) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    let sawmill = std::env::var_os("SAWMILL_COMMAND");
    let mut process = match &sawmill {
        Some(sawmill) => {
            let mut process = Command::new(sawmill);
            process.arg("gen");
            process
        }
        None => {
            println!("SAWMILL_COMMAND is not set: skipped the comparison with `sawmill gen`");
            let mut process = command();
            process.args(["submit", "gen"]);
            process
        }
    };
    let made = process.args(args).arg("--out").arg(out).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    contents(out)
}

fn submit(cluster: &Cluster, args: &[&str], out: &Path) -> Output {
    let out = out.to_str().unwrap();
    cluster.run(&[&["submit", "gen"], args, &["--out", out]].concat(), Path::new("/"))
}

#[track_caller]
pub fn assert_made(output: &Output) -> String {
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{error}");
    out.into_owned()
}

#[test]
fn files_are_those_of_one_machine_and_are_kept_by_the_same_command() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(2);
    for (name, args) in [
        ("contacts", &["contacts", "--rows", "300k", "--files", "7"][..]),
        ("orders", &["orders", "--rows", "50k", "--files", "3", "--seed", "7", "--compression", "zstd"]),
        ("codecs", &["orders", "--rows=5k", "--files=2", "--compression=lz4", "--compression=items=zstd:3"]),
        ("wide", &["wide:300", "--rows", "20k", "--files", "2"]),
    ] {
        let expected = of_one_process(args, &folder.path().join(format!("{name}-expected")));
        let out = folder.path().join(name);
        let said = assert_made(&submit(&cluster, args, &out));
        assert!(said.contains("made, 0 kept, all compared with their checksums"), "{said}");
        assert!(contents(&out) == expected, "{name}");
        // One file is gone: the same command makes it again, and keeps the others.
        let gone = expected.0.keys().next_back().unwrap();
        fs::remove_file(out.join(gone)).unwrap();
        let said = assert_made(&submit(&cluster, args, &out));
        let kept = expected.0.len() - 1;
        assert!(said.contains(&format!(": 1 made, {kept} kept, all compared")), "{said}");
        assert!(contents(&out) == expected, "{name}");
    }
    // A folder of another seed is not touched.
    let out = folder.path().join("contacts");
    let before = contents(&out);
    let refused = submit(&cluster, &["contacts", "--rows", "300k", "--files", "7", "--seed", "8"], &out);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{message}");
    assert!(message.contains("seed"), "{message}");
    // The first task that fails ends the command; others may end after it.
    wait_for("folder as it was", || contents(&out) == before);
}

const SHOP: &str = r#"
name = "shop"
[[tables]]
name = "customers"
rows = 1_000
fields = [
    { name = "id", type = "int64", values = { sequence = { start = 1 } } },
    { name = "waited", type = "duration", unit = "ms", values = { uniform = { min = 0, max = 9000 } } },
]
[[tables]]
name = "orders"
per = { table = "customers", rows = { uniform = { min = 0, max = 6 } } }
fields = [{ name = "customer", type = "int64", values = { parent = "id" } }]
"#;

#[test]
fn of_several_tables_each_has_a_folder_with_the_files_of_one_machine() {
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("shop.toml");
    fs::write(&spec, SHOP).unwrap();
    let (spec, cluster) = (spec.to_str().unwrap(), Cluster::start(2));
    let all = |folder: &Path| {
        let mut files = BTreeMap::new();
        below(folder, "", &mut files);
        files
    };
    for (name, args, tables) in [
        ("tpch", &["tpch", "--scale", "0.01", "--files", "2"][..], 8),
        ("shop", &[spec, "--scale", "2", "--files", "3", "--seed", "7"], 2),
    ] {
        let expected = folder.path().join(format!("{name}-expected"));
        of_one_process(args, &expected);
        let out = folder.path().join(name);
        let said = assert_made(&submit(&cluster, args, &out));
        assert_eq!(said.matches("made, 0 kept").count(), tables, "{said}");
        let (made, expected) = (all(&out), all(&expected));
        assert!(made.keys().eq(expected.keys()), "{:?}", made.keys());
        let differs =
            made.iter().find(|(name, bytes)| name.ends_with(".parquet") && expected[*name] != **bytes);
        assert!(differs.is_none(), "{:?}", differs.map(|(name, _)| name));
    }
    let alone = folder.path().join("alone");
    assert_made(&submit(&cluster, &[&format!("{spec}/orders"), "--scale", "2", "--seed", "7"], &alone));
    for (args, expected) in [
        (&[spec, "--rows", "10"][..], "--rows cannot be used for all tables of "),
        (&["tpch", "--seed", "7"], "rows or seed for a table of TPC-H"),
        (&["tpch/orders", "--rows", "7"], "rows or seed for a table of TPC-H"),
        (&["tpch", "--scale", "0"], "a scale factor of 0"),
        (&["contacts", "--scale", "2"], "a scale for a dataset that has a single table"),
    ] {
        let refused = submit(&cluster, args, &folder.path().join("refused"));
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && message.contains(expected), "{message}");
    }
    assert!(!folder.path().join("refused").exists());
}

#[test]
fn an_executor_is_killed_in_the_middle_and_the_job_ends_with_exactly_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let (out, args) = (folder.path().join("out"), ["contacts", "--rows", "24M", "--files", "24"]);
    let expected = of_one_process(&args, &folder.path().join("expected"));
    let mut cluster = Cluster::start(2);
    let job = std::thread::scope(|scope| {
        let (url, out_) = (cluster.url.clone(), out.clone());
        let job = scope.spawn(move || {
            let mut job = command();
            job.args(["submit", "gen"]).args(args).arg("--out").arg(out_).args(["--scheduler", &url]);
            job.output().unwrap()
        });
        // When some files are there, and others are under way.
        let started = Instant::now();
        while fs::read_dir(&out).map_or(0, |entries| entries.filter(is_complete).count()) < 6 {
            assert!(started.elapsed() < Duration::from_secs(60), "no files");
            std::thread::sleep(Duration::from_millis(5));
        }
        cluster.kill_executor(0);
        assert!(!job.is_finished(), "the job ended before the executor was killed");
        job.join().unwrap()
    });
    let said = assert_made(&job);
    assert!(said.contains("24 files with 24,000,000 rows"), "{said}");
    assert!(contents(&out) == expected);
}

fn is_complete(entry: &std::io::Result<fs::DirEntry>) -> bool {
    entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().ends_with(".parquet"))
}

#[test]
fn the_scheduler_is_killed_and_the_same_command_finishes_on_another() {
    let folder = tempfile::tempdir().unwrap();
    let (out, args) = (folder.path().join("out"), ["contacts", "--rows", "12M", "--files", "12"]);
    let expected = of_one_process(&args, &folder.path().join("expected"));
    let cluster = Cluster::start(1);
    let url = cluster.url.clone();
    let job = std::thread::scope(|scope| {
        let out_ = out.clone();
        let job = scope.spawn(move || {
            let mut job = command();
            job.args(["submit", "gen"]).args(args).arg("--out").arg(out_).args(["--scheduler", &url]);
            job.output().unwrap()
        });
        let started = Instant::now();
        while fs::read_dir(&out).map_or(0, |entries| entries.filter(is_complete).count()) < 3 {
            assert!(started.elapsed() < Duration::from_secs(60), "no files");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(cluster);
        job.join().unwrap()
    });
    assert_eq!(job.status.code(), Some(1), "{job:?}");
    let said = assert_made(&submit(&Cluster::start(1), &args, &out));
    assert!(said.contains("12 files with 12,000,000 rows") && !said.contains(" 0 kept"), "{said}");
    assert!(contents(&out) == expected);
}

#[test]
fn the_demo_runs() {
    let demo = command().args(["demo", "--rows", "200k", "--files", "4"]).output().unwrap();
    let said = assert_made(&demo);
    assert!(said.contains("4 files with 200,000 rows in ") && said.contains("4 made, 0 kept"), "{said}");
    assert!(said.contains("| name "), "{said}");
    assert!(
        said.contains("200,000 rows in table contacts, content sum ") && said.contains(", verified"),
        "{said}"
    );
}
