//! A folder of Parquet files over many nights: columns change, files are corrected and delivered again, loads are killed
//! and cut off. After each night the table has exactly the rows that the test has written to the files.
//!
//! `SAWMILL_NIGHTS=365` makes it a year; `SAWMILL_NIGHTS_SEED` draws other faults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray,
};
use parquet::arrow::ArrowWriter;
use sawmill_cratedb_standin::Fault;

use crate::cratedb;
use crate::harness::{Ran, sawmill, signal, start, until, wait};
use crate::load::Bench;

/// The type of a column in a file.
#[derive(Clone, Copy)]
enum Kind {
    Int,
    Long,
    Real,
    Double,
    Text,
    Price(u8, i8),
    Flag,
    Day,
}

type Columns = Vec<(&'static str, Kind)>;

/// How the columns change from time to time.
const CHANGES: usize = 12;

/// The columns of files after a number of changes.
fn columns(changes: usize) -> Columns {
    let wide = |first: usize, narrow: Kind, wide: Kind| if changes >= first { wide } else { narrow };
    let price = match changes {
        0..5 => Kind::Price(6, 2),
        5..11 => Kind::Price(9, 2),
        _ => Kind::Price(12, 4),
    };
    let mut columns = vec![
        ("id", wide(2, Kind::Int, Kind::Long)),
        ("note", Kind::Text),
        ("amount", wide(3, Kind::Real, Kind::Double)),
    ];
    // It goes, and comes back.
    columns.extend((changes >= 1 && changes != 6).then_some(("region", Kind::Text)));
    columns.extend((changes >= 4).then_some(("price", price)));
    columns.extend((changes >= 8).then_some(("flag", Kind::Flag)));
    columns.extend((changes >= 9).then_some(("day", Kind::Day)));
    if changes >= 10 {
        columns.reverse();
    }
    columns.extend((changes >= 12).then_some(("remark", Kind::Text)));
    columns
}

/// The same for a database that changes no type of a column.
fn columns_that_only_grow(changes: usize) -> Columns {
    let widest = |(name, kind)| match kind {
        Kind::Int => (name, Kind::Long),
        Kind::Real | Kind::Price(..) => (name, Kind::Double),
        // A number of milliseconds there.
        Kind::Day => (name, Kind::Flag),
        other => (name, other),
    };
    columns(changes).into_iter().map(widest).collect()
}

/// The value of a column in row `n` of all that were ever written, as PostgreSQL writes it.
fn value(name: &str, kind: Kind, n: i64) -> Option<String> {
    let text = match (name, kind) {
        ("id", _) => n.to_string(),
        _ if n % 7 == 3 => return None,
        (_, Kind::Text) => format!("{name} {n}"),
        ("price", _) => format!("{}.25", n % 5000),
        (_, Kind::Flag) => (n % 2 == 0).to_string(),
        (_, Kind::Day) => format!("2024-01-{:02}", 1 + n % 28),
        _ => format!("{n}.5"),
    };
    Some(text)
}

fn array(name: &str, kind: Kind, rows: &[i64]) -> ArrayRef {
    let values = || rows.iter().map(|n| value(name, kind, *n));
    let floats = || values().map(|value| value.map(|value| value.parse::<f64>().unwrap()));
    let longs = || values().map(|value| value.map(|value| value.parse::<i64>().unwrap()));
    match kind {
        Kind::Int => Arc::new(longs().map(|value| value.map(|value| value as i32)).collect::<Int32Array>()),
        Kind::Long => Arc::new(longs().collect::<Int64Array>()) as _,
        Kind::Real => {
            Arc::new(floats().map(|value| value.map(|value| value as f32)).collect::<Float32Array>())
        }
        Kind::Double => Arc::new(floats().collect::<Float64Array>()) as _,
        Kind::Text => Arc::new(values().collect::<StringArray>()) as _,
        Kind::Flag => {
            Arc::new(values().map(|value| value.map(|value| value == "true")).collect::<BooleanArray>())
        }
        Kind::Day => {
            // 2024-01-01 is day 19,723.
            let days = values().zip(rows).map(|(value, n)| value.map(|_| 19_723 + (n % 28) as i32));
            Arc::new(days.collect::<Date32Array>())
        }
        Kind::Price(digits, scale) => {
            let unit = 10f64.powi(i32::from(scale));
            let units = floats().map(|value| value.map(|value| (value * unit) as i128));
            Arc::new(units.collect::<Decimal128Array>().with_precision_and_scale(digits, scale).unwrap())
        }
    }
}

/// What a night can suffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Killed,
    Cut,
}

/// The files of a folder, and what they hold.
struct Folder {
    path: PathBuf,
    columns: fn(usize) -> Columns,
    nights: usize,
    /// All contents that a file had, the present one last: the changes of columns before it, and its rows.
    contents: BTreeMap<String, Vec<(usize, Vec<i64>)>>,
    /// The rows that were ever written.
    written: i64,
    seed: u64,
}

impl Folder {
    fn new(dir: &std::path::Path, columns: fn(usize) -> Columns, nights: usize) -> Self {
        let path = dir.join("days");
        std::fs::create_dir(&path).unwrap();
        let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
        let nights = number("SAWMILL_NIGHTS").map_or(nights, |nights| nights as usize);
        let seed = number("SAWMILL_NIGHTS_SEED").unwrap_or(1);
        Self { path, columns, nights, contents: BTreeMap::new(), written: 0, seed }
    }

    /// A number below `below`.
    fn draw(&mut self, below: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.seed >> 33) % below as u64) as usize
    }

    /// Whether something that happens `times` times in all nights, or in every fourth one of few, happens tonight.
    fn happens(&self, night: usize, times: usize) -> bool {
        let times = times.min(self.nights / 4);
        (night + 1) * times / self.nights > night * times / self.nights
    }

    /// The changes of columns up to this night.
    fn changes(&self, night: usize) -> usize {
        ((night + 1) * (CHANGES + 1) / self.nights).min(CHANGES)
    }

    /// Writes a file with new rows.
    fn write(&mut self, name: String, changes: usize) {
        let rows = 20 + self.draw(60) as i64;
        let rows: Vec<i64> = (self.written..self.written + rows).collect();
        self.written += rows.len() as i64;
        let columns = (self.columns)(changes).into_iter();
        let columns = columns.map(|(name, kind)| (name, array(name, kind, &rows), true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let file = std::fs::File::create(self.path.join(&name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        self.contents.entry(name).or_default().push((changes, rows));
    }

    /// Delivers the files of a night. Returns its trouble.
    fn deliver(&mut self, night: usize) -> Option<Trouble> {
        let changes = self.changes(night);
        let earlier: Vec<String> = self.contents.keys().cloned().collect();
        self.write(format!("{night:03}.parquet"), changes);
        if !earlier.is_empty() && self.happens(night, 20) {
            let corrected = self.draw(earlier.len());
            self.write(earlier[corrected].clone(), changes);
        }
        if !earlier.is_empty() && self.happens(night, 10) {
            // The same bytes, in a file that is newer.
            let again = self.draw(earlier.len());
            let name = self.path.join(&earlier[again]);
            let copy = name.with_extension("copy");
            std::fs::copy(&name, &copy).unwrap();
            std::fs::rename(copy, name).unwrap();
        }
        let trouble = [Trouble::Killed, Trouble::Cut][self.draw(2)];
        (night % 5 == 4).then_some(trouble)
    }

    /// The columns that the table has.
    fn table_columns(&self) -> Columns {
        let mut all: BTreeMap<&str, Kind> = BTreeMap::new();
        let changes = self.contents.values().flatten().map(|(changes, _)| *changes).max().unwrap_or_default();
        (0..=changes).for_each(|changes| all.extend((self.columns)(changes)));
        all.into_iter().collect()
    }

    /// The rows that the table must have: of each file the content that it has now.
    fn expected(&self) -> Vec<String> {
        let columns = self.table_columns();
        let mut lines = Vec::new();
        for (file, contents) in &self.contents {
            if let Some((changes, rows)) = contents.last() {
                let own = (self.columns)(*changes);
                for (line, n) in rows.iter().enumerate() {
                    let values = columns.iter().map(|(name, _)| {
                        let column = own.iter().find(|(own, _)| own == name);
                        column.and_then(|(name, kind)| value(name, *kind, *n)).unwrap_or("NULL".to_owned())
                    });
                    let values = values.collect::<Vec<_>>().join("|");
                    lines.push(format!("{file}|{line}|{values}"));
                }
            }
        }
        lines.sort();
        lines
    }
}

fn compare(there: &[String], expected: &[String], night: usize) {
    let differs = there.iter().zip(expected).find(|(there, expected)| there != expected);
    assert_eq!(differs, None, "night {night}");
    assert_eq!(there.len(), expected.len(), "night {night}");
}

/// Kills a load after this time.
fn killed(words: Vec<String>, after: Duration) {
    let run = start(words);
    std::thread::sleep(after);
    signal(&run, "KILL");
    wait(run);
}

struct Postgres {
    bench: Bench,
    folder: Folder,
    /// The time of a load.
    takes: Duration,
}

impl Postgres {
    fn words(&self) -> Vec<String> {
        let options = [
            "--evolve",
            "--rewrite",
            "--file-column",
            "source",
            "--row-column",
            "line",
            "--loaded-at-column",
            "loaded_at",
            "--changed",
            "replace",
            "--verify",
        ];
        self.bench.args("load", &self.folder.path, "days", &options)
    }

    fn load(&mut self) -> Ran {
        let began = Instant::now();
        let ran = sawmill(self.words());
        self.takes = began.elapsed();
        ran
    }

    fn suffer(&mut self, trouble: Trouble) {
        let after = self.takes * self.folder.draw(100) as u32 / 100;
        match trouble {
            Trouble::Killed => killed(self.words(), after),
            Trouble::Cut => {
                let run = start(self.words());
                let mut client = self.bench.client();
                for _ in 0..3 {
                    std::thread::sleep(after / 3);
                    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
                               where datname = current_database() and pid <> pg_backend_pid()";
                    client.execute(cut, &[]).unwrap();
                }
                wait(run);
            }
        }
        let others = "select count(*) from pg_stat_activity \
                      where datname = current_database() and pid <> pg_backend_pid()";
        until("the sessions end", || self.bench.count(others) == 0);
    }

    fn rows(&self) -> Vec<String> {
        let columns = self.folder.table_columns();
        let columns = columns.iter().map(|(name, kind)| match kind {
            Kind::Price(..) | Kind::Real | Kind::Double => format!("{name}::double precision"),
            _ => (*name).to_owned(),
        });
        let columns: Vec<String> =
            columns.map(|column| format!("coalesce(({column})::text, 'NULL')")).collect();
        let query = format!(
            "select concat_ws('|', regexp_replace(source, '.*/', ''), line, {}) from days where loaded_at is not null",
            columns.join(", ")
        );
        let rows = self.bench.client().query(&query, &[]).unwrap();
        let mut rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        rows.sort();
        rows
    }
}

#[test]
fn a_table_has_the_rows_of_its_files_after_each_of_many_nights() {
    let bench = Bench::new();
    let folder = Folder::new(bench.dir.path(), columns, 13);
    let mut nights = Postgres { bench, folder, takes: Duration::from_millis(300) };
    for night in 0..nights.folder.nights {
        if let Some(trouble) = nights.folder.deliver(night) {
            nights.suffer(trouble);
        }
        let ran = nights.load();
        assert_eq!(ran.code, Some(0), "night {night}: {}\n{}", ran.out, ran.err);
        compare(&nights.rows(), &nights.folder.expected(), night);
    }
    let ran = nights.load().ok();
    assert!(ran.out.contains("nothing to do"), "{}", ran.out);
    // Columns that no file has, such as the lineage, are named and not compared.
    sawmill(nights.bench.args("verify", &nights.folder.path, "days", &["--columns", "id,note"])).ok();
    let types = "select string_agg(format_type(atttypid, atttypmod), ', ' order by attnum) from pg_attribute \
                 where attrelid = 'days'::regclass and attname in ('id', 'amount', 'price')";
    let types: String = nights.bench.client().query_one(types, &[]).unwrap().get(0);
    assert_eq!(types, "bigint, double precision, numeric(12,4)");
}

#[test]
fn a_table_of_cratedb_has_the_rows_of_its_files_after_each_of_many_nights() {
    let bench = cratedb::Bench::standin();
    let mut folder = Folder::new(bench.dir.path(), columns_that_only_grow, 13);
    let options = [
        "--row-key",
        "--schema-change",
        "add",
        "--file-column",
        "source",
        "--row-column",
        "line",
        "--changed",
        "replace",
    ];
    let words = |folder: &Folder| bench.args("load", &folder.path, &options);
    let mut takes = Duration::from_millis(300);
    for night in 0..folder.nights {
        match folder.deliver(night) {
            Some(Trouble::Killed) => killed(words(&folder), takes * folder.draw(100) as u32 / 100),
            Some(Trouble::Cut) => {
                let faults =
                    [Fault::DropBefore, Fault::DropInTheMiddle, Fault::DropAfter, Fault::Unavailable];
                bench.faults([Some(faults[folder.draw(4)])]);
            }
            None => {}
        }
        let began = Instant::now();
        let ran = sawmill(words(&folder));
        takes = began.elapsed();
        assert_eq!(ran.code, Some(0), "night {night}: {}\n{}", ran.out, ran.err);
        bench.sql(&format!("REFRESH TABLE doc.{}", bench.table));
        let columns = folder.table_columns();
        let listed: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let query = format!("SELECT source, line, {} FROM doc.{}", listed.join(", "), bench.table);
        let answer = bench.sql(&query);
        let rows = answer["rows"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let mut rows: Vec<String> = rows.iter().map(line).collect();
        rows.sort();
        compare(&rows, &folder.expected(), night);
    }
    let ran = sawmill(words(&folder)).ok();
    assert!(ran.out.contains("nothing to do"), "{}", ran.out);
}

/// A row of CrateDB's answer, as the test writes rows.
fn line(row: &serde_json::Value) -> String {
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.rsplit('/').next().unwrap().to_owned(),
        serde_json::Value::Null => "NULL".to_owned(),
        other => other.to_string(),
    };
    row.as_array().unwrap().iter().map(text).collect::<Vec<_>>().join("|")
}
