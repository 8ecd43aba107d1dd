//! Rows that cannot be loaded are rejected, each once, with the reason; all others arrive.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::*;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sawmill_loader::{LoadOptions, LoadReport, Mode, RejectOptions};
use sawmill_source::{Kind, ParquetFiles, Result};

use crate::database::{Database, run, small, with_control};
use crate::fixture::file_of;

/// Row group, row and reason of each rejected row, in the order of the file.
pub fn read_rejects(path: &Path) -> Vec<(i32, i64, String)> {
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    let mut rows = Vec::new();
    for batch in reader.map(|batch| batch.unwrap()) {
        let groups = batch.column_by_name("_sawmill_row_group").unwrap().as_primitive::<Int32Type>().clone();
        let numbers = batch.column_by_name("_sawmill_row").unwrap().as_primitive::<Int64Type>().clone();
        let reasons = batch.column_by_name("_sawmill_reason").unwrap().as_string::<i32>().clone();
        for row in 0..batch.num_rows() {
            rows.push((groups.value(row), numbers.value(row), reasons.value(row).to_owned()));
        }
    }
    rows
}

pub struct Case {
    pub database: Database,
    pub directory: tempfile::TempDir,
    pub source: ParquetFiles,
}

impl Case {
    /// Rows of `id bigint, word text` in row groups of 700 rows, for a table with this definition.
    pub fn new(rows: Vec<(i64, String)>, table: &str) -> Self {
        let (ids, words): (Vec<i64>, Vec<String>) = rows.into_iter().unzip();
        let columns: Vec<(&str, ArrayRef)> =
            vec![("id", Arc::new(Int64Array::from(ids))), ("word", Arc::new(StringArray::from(words)))];
        let (directory, path) = file_of(columns, 700);
        let database = Database::new();
        database.client().batch_execute(&format!("CREATE TABLE t {table}")).unwrap();
        Self { database, directory, source: ParquetFiles::open(&[path]).unwrap() }
    }

    pub fn file(&self) -> std::path::PathBuf {
        self.directory.path().join("rejects.parquet")
    }

    pub fn load(&self, most: Option<u64>, options: &LoadOptions) -> Result<LoadReport> {
        let rejects = RejectOptions { path: self.file(), most };
        run(&self.source, &self.database.target("t").mode(Mode::Append).rejects(Some(rejects)), options)
    }
}

pub fn words(rows: i64) -> Vec<(i64, String)> {
    (0..rows).map(|id| (id, format!("word {id}"))).collect()
}

#[test]
fn values_that_cannot_be_encoded_and_rows_that_the_server_refuses_are_both_rejected() {
    let mut rows = words(2000);
    rows[3].1 = "nul\0".into();
    rows[4].1 = "nul\0 again".into();
    rows[699].0 = 1 << 40;
    rows[700].0 = 12; // Again.
    rows[1500].0 = -1;
    rows[1999].1 = "forbidden".into();
    let case =
        Case::new(rows, "(id integer PRIMARY KEY CHECK (id >= 0), word text CHECK (word <> 'forbidden'))");
    // One connection: which of two rows with the same key comes first is known.
    let report = case.load(None, &LoadOptions { degree: 1, ..small() }).unwrap();
    assert_eq!((report.rows, report.rows_rejected), (1994, 6));
    assert!(report.verified.unwrap().matches());
    assert_eq!(case.database.count("t"), 1994);
    let rejected = read_rejects(&case.file());
    let places: Vec<(i32, i64)> = rejected.iter().map(|(group, row, _)| (*group, *row)).collect();
    assert_eq!(places, [(0, 3), (0, 4), (0, 699), (1, 0), (2, 100), (2, 599)]);
    let reasons = ["0x00", "0x00", "1099511627776", "duplicate key", "t_id_check", "t_word_check"];
    for ((_, _, reason), expected) in rejected.iter().zip(reasons) {
        assert!(reason.contains(expected), "{reason}");
    }
    // The file has the source's values.
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(case.file()).unwrap()).unwrap();
    let batch = reader.build().unwrap().next().unwrap().unwrap();
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[3, 4, 1 << 40, 12, -1, 1999]);
    // The same load again has nothing to do, and changes nothing.
    let again = case.load(None, &small()).unwrap();
    assert_eq!((again.rows_loaded, again.rows_rejected), (0, 6));
    assert_eq!(read_rejects(&case.file()).len(), 6);
}

#[test]
fn the_first_bad_row_ends_a_load_without_rejects_and_is_located() {
    let mut rows = words(1500);
    rows[1234].1 = "forbidden".into();
    let case = Case::new(rows, "(id integer, word text CHECK (word <> 'forbidden'))");
    let target = case.database.target("t").mode(Mode::Append);
    let error = run(&case.source, &target, &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Server);
    assert!(error.what().contains("t_word_check") && error.what().contains("forbidden"), "{error}");
    assert!(error.place().ends_with("data.parquet, row group 1, row 534"), "{error}");
}

#[test]
fn a_row_that_is_too_large_for_a_page_or_for_an_index_is_rejected() {
    let mut rows = words(2000);
    // Without a pattern, so that it does not become short when it is compressed.
    let long: String = (0..20_000u64)
        .map(|i| char::from(b'a' + ((i.wrapping_mul(i) * 2_654_435_761) >> 29) as u8 % 26))
        .collect();
    rows[1234].1 = long;
    let case = Case::new(rows, "(id integer, word text UNIQUE)");
    let target = case.database.target("t").mode(Mode::Append);
    let error = run(&case.source, &target, &LoadOptions { degree: 1, ..small() }).unwrap_err();
    assert!(error.place().ends_with("data.parquet, row group 1, row 534"), "{error}");
    case.database.client().batch_execute("TRUNCATE t; DROP SCHEMA _sawmill CASCADE").unwrap();
    let report = case.load(None, &small()).unwrap();
    assert_eq!((report.rows, report.rows_rejected), (1999, 1));
    let rejected = read_rejects(&case.file());
    assert_eq!((rejected[0].0, rejected[0].1), (1, 534));
    assert!(rejected[0].2.contains("54000"), "{}", rejected[0].2);
}

#[test]
fn more_rejects_than_allowed_end_the_load() {
    let mut rows = words(1000);
    for row in &mut rows[100..110] {
        row.1 = "nul\0".into();
    }
    let case = Case::new(rows, "(id integer, word text)");
    let error = case.load(Some(9), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Value);
    assert!(error.what().contains("10 rows cannot be loaded"), "{error}");
    assert!(error.place().contains("row group 0, row 109"), "{error}");
    assert!(!case.file().exists());
    let report = case.load(Some(10), &small()).unwrap();
    assert_eq!((report.rows, read_rejects(&case.file()).len()), (990, 10));
}

#[test]
fn all_rows_may_be_rejected_or_none() {
    let all = Case::new(words(1200), "(id integer CHECK (id < 0), word text)");
    assert_eq!(all.load(None, &small()).unwrap().rows_rejected, 1200);
    assert_eq!(read_rejects(&all.file()).len(), 1200);
    let none = Case::new(words(1200), "(id integer, word text)");
    assert_eq!(none.load(None, &small()).unwrap().rows, 1200);
    assert!(read_rejects(&none.file()).is_empty());
}

#[test]
fn rows_refused_by_deferred_constraints_and_triggers_are_located_too() {
    let mut rows = words(800);
    rows[5].0 = 4;
    rows[90].1 = "raise".into();
    let case = Case::new(rows, "(id integer UNIQUE DEFERRABLE INITIALLY DEFERRED, word text)");
    case.database
        .client()
        .batch_execute(
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF NEW.word = 'raise' THEN RAISE EXCEPTION 'not this one'; END IF; RETURN NEW; END $$;
         CREATE TRIGGER no BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION no()",
        )
        .unwrap();
    let report = case.load(None, &LoadOptions { degree: 1, ..small() }).unwrap();
    assert_eq!(report.rows_rejected, 2);
    let rejected = read_rejects(&case.file());
    assert!(rejected[0].2.contains("duplicate key") && rejected[0].1 == 5, "{rejected:?}");
    assert!(rejected[1].2.contains("not this one") && rejected[1].1 == 90, "{rejected:?}");
}

/// Texts similar to valid values: the seeds with a few characters changed.
fn mutations(seeds: &[&str], alphabet: &str, count: usize) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let alphabet: Vec<char> = alphabet.chars().collect();
    let edits = (0..seeds.len(), proptest::collection::vec((0usize..40, 0..alphabet.len() * 3), 0..4));
    let mut texts: Vec<String> = seeds.iter().map(|seed| (*seed).to_owned()).collect();
    while texts.len() < count {
        let (seed, edits) = edits.new_tree(&mut runner).unwrap().current();
        let mut text: Vec<char> = seeds[seed].chars().collect();
        for (place, what) in edits {
            let place = place % (text.len() + 1);
            match what % 3 {
                0 => text.insert(place, alphabet[what / 3]),
                1 if place < text.len() => text[place] = alphabet[what / 3],
                _ if place < text.len() => drop(text.remove(place)),
                _ => {}
            }
        }
        texts.push(text.into_iter().collect());
    }
    texts
}

#[test]
fn accepted_text_becomes_what_the_servers_own_cast_makes_of_it() {
    let digits = "0123456789-+.:eE /TZ";
    let cases: &[(&str, &[&str], &str)] = &[
        (
            "date",
            &["2024-02-29", "0001-01-01 BC", "5874897-12-31", "-infinity", "1900-02-28"],
            "0123456789- BC",
        ),
        ("time", &["23:59:59.999999", "24:00:00", "00:00", "12:34:56.5"], digits),
        (
            "timestamp",
            &[
                "2024-02-29T12:00:00",
                "0044-03-15 01:02:03.5 BC",
                "294276-12-31 23:59:59.999999",
                "2024-12-31 24:00",
            ],
            digits,
        ),
        (
            "timestamptz",
            &[
                "2024-02-29T12:00:00Z",
                "2024-02-29 12:00:00.25+05:30",
                "1999-01-01 00:00:00 -0800",
                "4714-11-24 00:00:00+00 BC",
            ],
            digits,
        ),
        ("uuid", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}"], "0aF-{}"),
        (
            "numeric",
            &["123.4500", "-1e-7", "NaN", ".5", "5.", "1E+30", "99999999999999999999.00001"],
            "0123456789.-+eE ",
        ),
        ("numeric(6,3)", &["123.450", "-1e-3", "999.999", "0.0005e1"], "0123456789.-+eE"),
        ("integer", &["2147483647", " -2147483648 ", "+7"], "0123456789+- "),
        ("double precision", &["1.5e300", "-0", "infinity", "4.9e-324", ".1"], "0123456789.-+eEinf"),
        ("real", &["3.4e38", "-0.1", "nan", "1e-45"], "0123456789.-+eE"),
        ("boolean", &["true", "FALSE", "on", "of", "1", "y"], "trueofnys01 "),
        (
            "inet",
            &["192.168.0.1/24", "::1", "2001:db8::8a2e:370:7334/64", "::ffff:1.2.3.4"],
            "0123456789abcdef:./",
        ),
        ("cidr", &["192.168.0.0/24", "2001:db8::/32", "10.0.0.0/8"], "0123456789abcdef:./"),
        ("bytea", &["\\xdeadbeef", "\\x00"], "\\x0aF "),
        (
            "jsonb",
            &[
                "{\"b\": [1.50, 1e3, -0.0], \"a\": \"\\u00e9\\ud83d\\ude00\\n\"}",
                "[true,false,null,{}]",
                "{\"a\":1,\"aa\":{\"x\":[]},\"a\":2}",
            ],
            "{}[]\",:0123456789.eE-\\u tn",
        ),
    ];
    for (kind, seeds, alphabet) in cases {
        let texts: Vec<(i64, String)> = (0..).zip(mutations(seeds, alphabet, 1500)).collect();
        let texts: StringArray = texts.iter().map(|(_, text)| Some(text.as_str())).collect();
        let texts: ArrayRef = Arc::new(texts);
        let (directory, path) = file_of(vec![("written", Arc::clone(&texts)), ("value", texts)], 10_000);
        let database = Database::new();
        let mut client = database.client();
        client.batch_execute(&format!("CREATE TABLE t (written text, value {kind})")).unwrap();
        let rejects = RejectOptions { path: directory.path().join("rejects.parquet"), most: None };
        let target = database.target("t").mode(Mode::Append).rejects(Some(rejects));
        let report = run(&ParquetFiles::open(&[path]).unwrap(), &target, &small()).unwrap();
        assert!(report.rows >= 5 && report.verified.unwrap().matches(), "{kind}: {}", report.rows);
        let differing = format!(
            "SELECT written, value::text, (written::{kind})::text FROM t WHERE value::text IS DISTINCT FROM (written::{kind})::text"
        );
        let rows = client.query(&differing, &[]).unwrap_or_else(|error| {
            panic!("{kind}: {error}: {}", error.as_db_error().map_or("", |db| db.message()))
        });
        let shown =
            |row: &postgres::Row| (0..3).map(|i| row.get::<_, String>(i)).collect::<Vec<_>>().join(" | ");
        assert!(rows.is_empty(), "{kind}: {:?}", rows.iter().map(shown).collect::<Vec<_>>());
    }
}

#[test]
fn a_row_that_a_later_column_refuses_counts_in_no_column() {
    // Integers, text, numerics and dictionaries come before the timestamp that the server's type cannot hold.
    let rows = 3000i64;
    let far = |row: &i64| [5, 699, 700, 1500, 1501, 2999].contains(row);
    let ids = Int64Array::from_iter((0..rows).map(|row| (row % 7 != 0).then_some(row)));
    let words = StringArray::from_iter((0..rows).map(|row| (row % 5 != 0).then(|| format!("word {row}"))));
    let prices = Decimal128Array::from_iter((0..rows).map(|row| (row % 3 != 0).then_some(i128::from(row))));
    let moments = (0..rows).map(|row| Some(if far(&row) { i64::MAX - 1 } else { row * 1000 }));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(ids)),
        ("word", Arc::new(words)),
        ("price", Arc::new(prices.with_precision_and_scale(12, 2).unwrap())),
        ("at", Arc::new(TimestampMillisecondArray::from_iter(moments))),
        ("id2", Arc::new(Int64Array::from_iter_values(0..rows))),
    ];
    let (directory, path) = file_of(columns, 700);
    let source = ParquetFiles::open(&[path]).unwrap();
    for mode in [Mode::Create, Mode::Append] {
        for strategy in [sawmill_postgres::Strategy::Direct, sawmill_postgres::Strategy::Staged] {
            if mode == Mode::Append && strategy == sawmill_postgres::Strategy::Staged {
                continue;
            }
            let database = Database::new();
            if mode == Mode::Append {
                let table = "CREATE TABLE t (id bigint, word text, price numeric, at timestamp, id2 bigint)";
                database.client().batch_execute(table).unwrap();
            }
            let file = directory.path().join(format!("{mode:?}{strategy:?}.parquet"));
            let rejects = RejectOptions { path: file, most: None };
            let mut target = database.target("t").mode(mode).strategy(strategy).rejects(Some(rejects));
            if strategy == sawmill_postgres::Strategy::Staged {
                let by = "hash(id2, 3)".parse().unwrap();
                target = with_control(|control| target.partitioned(&by, &source, control)).unwrap();
            }
            let report = run(&source, &target, &small()).unwrap();
            assert_eq!((report.rows, report.rows_rejected), (2994, 6));
            let verified = report.verified.unwrap();
            assert!(verified.matches(), "{verified:?}");
            let counts = database.rows("SELECT non_null FROM _sawmill.loads");
            let counted = database
                .rows("SELECT ARRAY[count(id), count(word), count(price), count(at), count(id2)] FROM t");
            assert_eq!(counts, counted);
        }
    }
}
