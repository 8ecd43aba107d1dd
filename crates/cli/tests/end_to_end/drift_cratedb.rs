//! Tables of CrateDB that follow the columns of a folder's files from night to night.

use std::path::PathBuf;

use crate::cratedb;
use crate::harness::{Ran, sawmill, signal, start, until, wait};

/// A table of CrateDB that follows a folder of CSV files.
struct CrateNights {
    bench: cratedb::Bench,
    folder: PathBuf,
}

impl CrateNights {
    fn new() -> Self {
        let bench = cratedb::Bench::standin();
        let folder = bench.dir.path().join("days");
        std::fs::create_dir(&folder).unwrap();
        let nights = Self { bench, folder };
        nights.day("1.csv", "id,v\n1,5\n2,6\n");
        nights.night(&[]).ok();
        nights.day("2.csv", "id,x,v,w\n3,0.5,7,a\n");
        nights
    }

    fn day(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }

    fn words(&self, more: &[&str]) -> Vec<String> {
        self.bench.args("load", &self.folder, &[&["--row-key"], more].concat())
    }

    fn night(&self, more: &[&str]) -> Ran {
        sawmill(self.words(more))
    }

    fn rows(&self) -> String {
        self.bench.sql(&format!("REFRESH TABLE doc.{}", self.bench.table));
        let rows = self.bench.sql(&format!("SELECT id, v, x, w FROM doc.{} ORDER BY id", self.bench.table));
        rows["rows"].to_string()
    }
}

#[test]
fn a_table_of_cratedb_gets_the_columns_that_files_bring() {
    let nights = CrateNights::new();
    let error = nights.night(&[]).fails(1);
    assert!(error.contains("--evolve"), "{error}");
    let plan = nights.night(&["--evolve", "--explain"]).ok().out;
    assert!(plan.contains("ADD COLUMN \"x\" DOUBLE PRECISION, ADD COLUMN \"w\" TEXT"), "{plan}");
    let second = nights.night(&["--evolve", "--verify"]).ok().out;
    assert!(second.contains("adds column \"x\" DOUBLE PRECISION") && second.contains("verified"), "{second}");
    let two = r#"[[1,5,null,null],[2,6,null,null],[3,7,0.5,"a"]]"#;
    assert_eq!(nights.rows(), two);
    assert!(nights.night(&["--evolve"]).ok().out.contains("nothing to do"));
    let compared = nights.night(&["--evolve", "--verify"]).ok().out;
    assert!(compared.contains("whose columns have changed since"), "{compared}");
    // A file of the first night that was touched is compared by the columns that it had then.
    let first = nights.folder.join("1.csv");
    std::fs::File::options()
        .append(true)
        .open(&first)
        .unwrap()
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    assert!(nights.night(&["--evolve"]).ok().out.contains("nothing to do"));
    nights.day("3.csv", "id\n4\n");
    let third = nights.night(&["--schema-change", "add", "--verify"]).ok().out;
    assert!(third.contains("NULL in rows of files that lack it: column \"v\""), "{third}");
    assert_eq!(nights.rows(), two.replace("]]", "],[4,null,null,null]]"));
    let url = &nights.bench.url;
    let history = sawmill(["load", "status", "--to", url, "--history", "--json"]).ok().json();
    assert_eq!(history[1]["columns"]["added"][1]["name"], "w");
    sawmill(nights.bench.args("verify", &nights.folder, &[])).ok();
}

#[test]
fn what_cratedb_cannot_change_is_an_error_that_says_so() {
    let nights = CrateNights::new();
    nights.day("2.csv", "id,v\n3,text\n");
    let single = nights.folder.join("2.csv");
    let words =
        nights.bench.args("load", &single, &["--row-key", "--mode", "append", "--schema-change", "widen"]);
    let error = sawmill(words).fails(1);
    for part in
        ["\"v\" is BIGINT in the table", "CrateDB does not change the type of a column", "--mode replace"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    nights.day("2.csv", "id,x\n3,1\n");
    let words = nights.bench.args("load", &single, &["--row-key", "--mode", "append"]);
    let error = sawmill(words).fails(1);
    for part in ["\"x\" (Int64) of", "2.csv", "--schema-change add adds it as BIGINT"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(nights.night(&["--schema-change", "ignore"]).fails(2).contains("not available for CrateDB"));
    assert!(nights.night(&["--evolve", "--rewrite"]).fails(2).contains("does not change the type"));
}

#[test]
fn two_loads_at_once_and_a_killed_one_add_columns_of_cratedb_once() {
    let nights = CrateNights::new();
    // The second file of each is another one, so that both loads run.
    let rows: String = (10..2_000).map(|id| format!("{id},1,2,b\n")).collect();
    nights.day("2.csv", &format!("id,x,v,w\n{rows}"));
    let killed = start(nights.words(&["--evolve"]));
    let has_column = || {
        let columns = format!(
            "SELECT column_name FROM information_schema.columns WHERE table_name = '{}' AND column_name = 'w'",
            nights.bench.table
        );
        nights.bench.sql(&columns)["rowcount"] == 1
    };
    until("the column is there", has_column);
    signal(&killed, "KILL");
    wait(killed);
    let other = nights.bench.dir.path().join("other.csv");
    std::fs::write(&other, "id,y,v\n5000,1,2\n").unwrap();
    let more = start(nights.bench.args("load", &other, &["--row-key", "--mode", "append", "--evolve"]));
    let both = [start(nights.words(&["--evolve"])), more].map(wait);
    both.into_iter().for_each(|ran| drop(ran.ok()));
    nights.bench.sql(&format!("REFRESH TABLE doc.{}", nights.bench.table));
    assert_eq!(nights.bench.rows(), Some(2 + 1_990 + 1));
    assert!(nights.night(&["--evolve"]).ok().out.contains("nothing to do"));
}

#[test]
fn other_options_for_text_bring_no_row_twice() {
    let nights = CrateNights::new();
    nights.night(&["--evolve"]).ok();
    let rows = nights.rows();
    // Files on record are not read again.
    let said = nights.night(&["--evolve", "--null", "a", "--null", ""]).ok().out;
    assert!(said.contains("nothing to do") && said.contains("by other options for text"), "{said}");
    assert_eq!(nights.rows(), rows);
}
