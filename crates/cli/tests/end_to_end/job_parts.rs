//! Several processes of one job, as job schedulers start them: `--part auto`, and what finishes the job.

use std::fs;
use std::process::{Child, Stdio};

use crate::harness::{command, names, sawmill, signal, until, wait};
use crate::load::Bench;

/// Starts a process of a job whose scheduler sets these variables.
fn process(args: &[&str], variables: &[(&str, &str)]) -> Child {
    let mut command = command(args);
    command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a_job_whose_processes_are_killed_loads_each_row_once() {
    let bench = Bench::new();
    let (url, source) = (bench.server.url(), "gen:contacts?rows=400k&seed=7");
    let target = ["--to", &url, "--table", "c", "--unit-rows", "4k"];
    let load = [&["load", source, "--part", "auto/4"], &target[..]].concat();
    let of = |index: &str| process(&load, &[("JOB_COMPLETION_INDEX", index)]);
    let mut job: Vec<Child> = ["0", "1", "2"].map(of).into();
    let mut client = bench.client();
    until("the first units", || {
        let units = client.query_one("select count(*) from _sawmill.units", &[]);
        units.is_ok_and(|row| row.get::<_, i64>(0) > 8)
    });
    // As after the loss of a node: two are killed, and restarted with the same index.
    for at in [1, 2] {
        signal(&job[at], "KILL");
        let again = of(["0", "1", "2"][at]);
        wait(std::mem::replace(&mut job[at], again));
    }
    // `finish` before the end says how much is missing, or that other processes are at work.
    let finish = ["load", "finish", "--to", &url, "--table", "c", "--verify"];
    let early = sawmill(finish);
    assert!(early.code == Some(1) || early.code == Some(4), "{}{}", early.out, early.err);
    job.push(of("3"));
    for process in job {
        let ran = wait(process).ok();
        assert!(
            ran.out.contains("of the load are recorded") && ran.out.contains("load finish"),
            "{}",
            ran.out
        );
    }
    assert!(!bench.exists("c"));
    let finished = sawmill(finish).ok();
    assert!(finished.err.contains("finishes the load of: sawmill load"), "{}", finished.err);
    assert!(finished.out.contains("400,000 rows") && finished.out.contains("verified"), "{}", finished.out);
    assert_eq!(bench.count("select count(*) from c"), 400_000);
    // Again it finds a complete load.
    sawmill(finish).ok();
    // One process loads the same rows.
    let once = [&["load", source], &["--to", &url, "--table", "once"][..]].concat();
    let sum =
        |out: &str| out.split("content sum ").nth(1).unwrap().split([',', '\n']).next().unwrap().to_owned();
    assert_eq!(sum(&finished.out), sum(&sawmill(&once).ok().out));
}

#[test]
fn parts_of_new_and_corrected_files_are_finished_by_one_command() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    fs::create_dir(&folder).unwrap();
    let write = |name: &str, ids: std::ops::Range<u32>| {
        let rows: String = ids.map(|id| format!("{id}\n")).collect();
        fs::write(folder.join(name), format!("id\n{rows}")).unwrap();
    };
    let (url, days) = (bench.server.url(), folder.to_str().unwrap());
    let target = ["--to", &url, "--table", "days"];
    let lineage = ["--file-column", "source", "--changed", "replace"];
    let load = [&["load", days], &target[..], &lineage, &["--unit-rows", "100"]].concat();
    write("1.csv", 0..1000);
    sawmill(&load).ok();
    // Each night has a new file, and another correction of the first.
    for (night, rows) in [(1, 900), (2, 800), (3, 1100)] {
        write("1.csv", 0..rows);
        write(&format!("n{night}.csv"), night * 10_000..night * 10_000 + 500);
        for part in ["1/2", "2/2"] {
            sawmill([&load[..], &["--part", part, "--verify"]].concat()).ok();
        }
        let finished = sawmill([&["load", "finish"], &target[..], &["--verify"]].concat()).ok();
        assert!(
            !finished.out.contains("not verified") && !finished.out.contains("other rows"),
            "{}",
            finished.out
        );
        let expected = i64::from(rows + night * 500);
        assert_eq!(bench.count("select count(distinct id) from days"), expected);
        assert_eq!(bench.count("select count(*) from days"), expected);
    }
    let said = sawmill([&load[..], &["--verify"]].concat()).ok().out;
    assert!(said.contains("verified") && !said.contains("not verified"), "{said}");
}

#[test]
fn an_array_job_makes_a_dataset_which_another_command_finishes() {
    let dir = tempfile::tempdir().unwrap();
    let (out, whole) = (dir.path().join("job"), dir.path().join("whole"));
    let dataset = ["contacts", "--rows", "60k", "--files", "6", "--out"];
    let out_name = out.to_str().unwrap();
    let array = |id: &'static str| {
        let args = [&["gen"], &dataset[..], &[out_name, "--part", "auto", "--resume"]].concat();
        let ids =
            [("SLURM_ARRAY_TASK_ID", id), ("SLURM_ARRAY_TASK_MIN", "1"), ("SLURM_ARRAY_TASK_COUNT", "3")];
        wait(process(&args, &ids)).ok()
    };
    let finish = [&["gen", "finish"], &dataset[..], &[out_name]].concat();
    let error = sawmill(&finish).fails(4);
    assert!(error.contains("6 of 6 files are missing"), "{error}");
    for id in ["1", "3"] {
        array(id);
    }
    let made = names(&out);
    let error = sawmill(&finish).fails(4);
    assert!(
        error.contains("2 of 6 files are missing or damaged") && error.contains("2/3 is missing"),
        "{error}"
    );
    assert_eq!(names(&out), made, "it changes nothing");
    array("2");
    let finished = sawmill(&finish).ok();
    assert!(finished.out.contains("60,000 rows"), "{}", finished.out);
    sawmill([&["gen"], &dataset[..], &[whole.to_str().unwrap()]].concat()).ok();
    assert_eq!(names(&out), names(&whole));
    for file in names(&whole).iter().filter(|name| name.ends_with(".parquet")) {
        assert!(fs::read(out.join(file)).unwrap() == fs::read(whole.join(file)).unwrap(), "{file}");
    }
    // Again it finds everything in place.
    sawmill(&finish).ok();
}

#[test]
fn the_parts_of_a_listing_of_footers_are_the_whole_listing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("devices");
    sawmill(["gen", "devices", "--rows", "7k", "--files", "7", "--out", out.to_str().unwrap()]).ok();
    let listed = |more: &[&str], index: &str| {
        let args = [&["footer", out.to_str().unwrap(), "--json"], more].concat();
        let ran =
            wait(process(&args, &[("AWS_BATCH_JOB_ARRAY_INDEX", index), ("AWS_BATCH_JOB_ARRAY_SIZE", "3")]));
        let files = ran.ok().json()["files"].as_array().unwrap().clone();
        files.into_iter().map(|file| file["path"].clone()).collect::<Vec<_>>()
    };
    let parts = ["0", "1", "2"].map(|index| listed(&["--part", "auto"], index));
    assert_eq!(parts.each_ref().map(Vec::len), [2, 2, 3]);
    assert_eq!(parts.concat(), listed(&[], "0"));
}

#[test]
fn what_has_no_parts_says_so() {
    let bench = Bench::new();
    let url = bench.server.url();
    let load = |more: &[&str]| {
        sawmill([&["load", "gen:contacts?rows=10", "--to", &url, "--table", "c"], more].concat())
    };
    let error = load(&["--part", "1/2", "--nested", "tables"]).fails(2);
    assert!(error.contains("not in parts") && error.contains("jsonb"), "{error}");
    let error = load(&["--part", "3/2"]).err;
    assert!(error.contains("there is no part 3 of 2"), "{error}");
    let finish = |table: &str, more: &[&str]| {
        sawmill([&["load", "finish", "--to", &url, "--table", table], more].concat())
    };
    let error = finish("c", &["--unit-rows", "20k"]).fails(2);
    assert!(error.contains("takes their options from the record"), "{error}");
    let error = finish("c", &[]).fails(4);
    assert!(error.contains("nothing to finish") && error.contains("--part K/N"), "{error}");
    let crate_db = ["load", "finish", "--to", "crate://localhost", "--table", "c"];
    let error = sawmill(crate_db).fails(2);
    assert!(error.contains("CrateDB has no loads in parts"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    for format in ["parquet", "ndjson"] {
        let gen_part = ["gen", "contacts", "--rows", "10", "--part", "1/2", "--as", format, "--out"];
        let one = dir.path().join(format!("one.{format}"));
        let error = sawmill([&gen_part[..], &[one.to_str().unwrap()]].concat()).fails(2);
        assert!(error.contains("a single file is made as a whole: part 1/2 has none"), "{error}");
    }
    let out = dir.path().join("c.csv");
    let finish = ["gen", "finish", "contacts", "--rows", "10", "--as", "csv", "--out", out.to_str().unwrap()];
    let error = sawmill(finish).fails(2);
    assert!(error.contains("gen finish with --as csv"), "{error}");
}
