//! Mode history: each change of a row is a version, and each night's file adds only what has changed.

use std::path::{Path, PathBuf};

use crate::harness::{sawmill, signal, start, until, wait};
use crate::load::Bench;

const MODE: [&str; 5] = ["--mode", "history", "--key", "id", "--verify"];

fn night(folder: &Path, name: &str, rows: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, format!("id,name,price\n{rows}")).unwrap();
    path
}

#[test]
fn a_row_that_changes_gets_a_version_and_one_that_does_not_stays() {
    let bench = Bench::new();
    let folder = bench.dir.path();
    let first = night(folder, "1.csv", "1,saw,10.5\n2,axe,\n3,file,4\n");
    let ran = bench.load(&first, "tools", &MODE).ok();
    assert!(ran.out.contains("verified"), "{}", ran.out);
    assert_eq!(bench.count("select count(*) from tools where current and valid_to is null"), 3);

    // One price changes, one appears, one row stays, one is new, one is not in the file.
    let second = night(folder, "2.csv", "1,saw,11\n2,axe,7\n4,plane,30\n");
    let ran = bench.load(&second, "tools", &MODE).ok();
    assert!(ran.out.contains("2 versions were closed"), "{}", ran.out);
    assert_eq!(bench.count("select count(*) from tools"), 6);
    assert_eq!(bench.count("select count(*) from tools where current"), 4);
    assert_eq!(bench.count("select count(*) from tools where current = (valid_to is null)"), 6);
    let then = "select count(*) from tools a join tools b using (id) \
                where not a.current and b.current and a.valid_to = b.valid_from and a.valid_from < a.valid_to";
    assert_eq!(bench.count(then), 2);
    assert_eq!(bench.count("select count(*) from tools where id = 2 and not current and price is null"), 1);

    // A file that says the same, under another name; and the same file again.
    let third = night(folder, "3.csv", "4,plane,30\n1,saw,11.0\n");
    let ran = bench.load(&third, "tools", &MODE).ok();
    assert!(ran.out.contains("equal the current versions"), "{}", ran.out);
    assert!(bench.load(&third, "tools", &MODE).ok().out.contains("nothing to do"));
    assert_eq!(bench.count("select count(*) from tools"), 6);
    // A row that has its first values again is another version.
    let back = night(folder, "4.csv", "1,saw,10.5\n");
    bench.load(&back, "tools", &MODE).ok();
    assert_eq!(bench.count("select count(*) from tools where id = 1"), 3);
    assert_eq!(bench.count("select count(*) from tools where id = 1 and current and price = 10.5"), 1);
}

#[test]
fn what_has_no_clear_version_is_refused_and_changes_nothing() {
    let bench = Bench::new();
    let folder = bench.dir.path();
    let first = night(folder, "1.csv", "1,saw,10\n");
    bench.load(&first, "tools", &MODE).ok();
    for (name, rows, what) in [
        ("twice.csv", "1,saw,11\n1,saw,12\n", "same key"),
        ("null.csv", ",saw,11\n2,axe,1\n", "a null in the key"),
    ] {
        let file = night(folder, name, rows);
        let err = bench.load(&file, "tools", &MODE).fails(1);
        assert!(err.contains(what) && err.contains("forget"), "{err}");
        assert_eq!(bench.count("select count(*) from tools"), 1);
        sawmill(["load", "forget", "--to", &bench.server.url(), "--table", "tools"]).ok();
    }
    assert_eq!(bench.count("select count(*) from tools"), 1);
    let own = folder.join("own.csv");
    std::fs::write(&own, "id,valid_to\n1,2024-01-01\n").unwrap();
    assert!(bench.load(&own, "own", &MODE).fails(1).contains("--rename"));
    assert!(!bench.exists("own"));
    bench.client().batch_execute("create table plain (id bigint, name text, price bigint)").unwrap();
    assert!(bench.load(&first, "plain", &MODE).fails(1).contains("\"valid_from\""));
    assert!(bench.load(&first, "tools", &["--mode", "history"]).fails(2).contains("--key"));
    let other = ["--mode", "history", "--key", "nr"];
    assert!(bench.load(&first, "tools", &other).fails(1).contains("\"nr\""));
}

#[test]
fn forgetting_loads_that_failed_removes_the_table_that_the_first_one_made() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    let fails = || {
        let error = bench.load(&folder, "tools", &MODE).fails(1);
        assert!(error.contains("same key"), "{error}");
    };
    night(&folder, "1.csv", "1,saw,11\n1,saw,12\n");
    fails();
    // The file comes with other rows, and then another file beside it.
    night(&folder, "1.csv", "1,saw,11\n1,saw,12\n3,file,4\n");
    fails();
    night(&folder, "2.csv", "2,axe,1\n");
    fails();
    assert!(bench.exists("tools"));
    sawmill(["load", "forget", "--to", &bench.server.url(), "--table", "tools"]).ok();
    assert!(!bench.exists("tools") && !bench.exists("tools__sawmill_loading"));
}

#[test]
fn a_killed_load_is_finished_by_the_same_command_and_two_at_once_add_one_version() {
    let bench = Bench::new();
    let folder = bench.dir.path();
    let rows = |price: u32| (0..20_000).map(|id| format!("{id},tool {id},{price}\n")).collect::<String>();
    let first = night(folder, "1.csv", &rows(1));
    bench.load(&first, "tools", &MODE).ok();
    let second = night(folder, "2.csv", &rows(2));
    let slow = [&MODE[..], &["--unit-rows", "500", "--connections", "1"]].concat();
    let child = start(bench.args("load", &second, "tools", &slow));
    until("a staging table", || {
        bench.count("select count(*) from pg_class where relname like 'tools\\_%' and relkind = 'r'") > 0
    });
    signal(&child, "KILL");
    wait(child);
    assert_eq!(bench.count("select count(*) from tools"), 20_000);
    bench.load(&second, "tools", &slow).ok();
    let all = "select count(*) from tools where current = (price = 2)";
    assert_eq!((bench.count("select count(*) from tools"), bench.count(all)), (40_000, 40_000));

    let (third, same) = (night(folder, "3.csv", &rows(3)), night(folder, "4.csv", &rows(3)));
    let both = [&third, &same].map(|file| start(bench.args("load", file, "tools", &MODE)));
    let ended = both.map(|child| wait(child).code);
    // One of them may be told that a load into the table is running: then it is run again.
    assert!(ended.contains(&Some(0)), "{ended:?}");
    for file in [&third, &same] {
        bench.load(file, "tools", &MODE).ok();
    }
    assert_eq!(bench.count("select count(*) from tools"), 60_000);
    assert_eq!(bench.count("select count(*) from tools where current and price = 3"), 20_000);
}

#[test]
fn the_same_row_of_another_file_is_no_other_version() {
    let bench = Bench::new();
    let folder = bench.dir.path();
    let lineage = [&MODE[..], &["--file-column", "source", "--row-column", "line"]].concat();
    let first = night(folder, "1.csv", "1,saw,10\n2,axe,5\n");
    bench.load(&first, "tools", &lineage).ok();
    // One row is in another place, the other one has changed.
    let second = night(folder, "2.csv", "2,axe,6\n1,saw,10\n");
    let ran = bench.load(&second, "tools", &lineage).ok();
    assert!(ran.out.contains("1 version was closed"), "{}", ran.out);
    assert_eq!(bench.count("select count(*) from tools"), 3);
    let current = "select count(*) from tools where current and (id, right(source, 5), line) in \
                   ((1, '1.csv', 0), (2, '2.csv', 0))";
    assert_eq!(bench.count(current), 2);
}
