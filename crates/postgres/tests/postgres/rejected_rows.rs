//! Rejected rows: in unlogged tables, with conditions, after a killed run, in verifications.

use std::sync::Arc;

use arrow_array::*;
use arrow_schema::{DataType, Field, Fields};
use sawmill_loader::{LoadOptions, LoadState, Mode, RejectOptions, Verification};
use sawmill_localpg::LocalPg;
use sawmill_postgres::{OnConflict, Postgres, TableKind, verify};
use sawmill_source::{Kind, ParquetFiles, Source};

use crate::database::{Database, run, small, with_control};
use crate::fixture::{file_of, people};
use crate::rejects::{Case, read_rejects, words};

/// One connection, for which the order of rows is known.
fn in_order() -> LoadOptions {
    LoadOptions { degree: 1, ..small() }
}

#[test]
fn rejected_rows_have_their_numbers_in_the_file_even_if_only_some_rows_are_selected() {
    let mut rows = words(2000);
    for bad in [2, 3, 699, 703, 1999] {
        rows[bad].1 = "forbidden".into();
    }
    rows[1003].1 = "nul\0".into();
    let case = Case::new(rows, "(id integer, word text CHECK (word <> 'forbidden'))");
    let load = |condition: &str, file: &str| {
        let condition = condition.parse().unwrap();
        let some = with_control(|control| case.source.filtered(condition, control)).unwrap();
        let path = case.directory.path().join(file);
        let rejects = RejectOptions { path: path.clone(), most: None };
        let target = case.database.target("t").mode(Mode::Append).rejects(Some(rejects));
        let report = run(&some, &target, &in_order()).unwrap();
        assert!(report.verified.unwrap().matches());
        let rejected = read_rejects(&path);
        assert_eq!(report.rows_rejected, rejected.len() as u64);
        rejected.into_iter().map(|(group, row, _)| (group, row)).collect::<Vec<_>>()
    };
    // Some rows of every row group are selected, with others before and between them; of the second and third
    // all.
    assert_eq!(
        load("id between 3 and 3 or id > 600 and id <> 1000", "a"),
        [(0, 3), (0, 699), (1, 3), (1, 303), (2, 599)]
    );
    assert_eq!(load("id > 702", "b"), [(1, 3), (1, 303), (2, 599)]);
    let condition = "word like 'f%'".parse().unwrap();
    let some = with_control(|control| case.source.filtered(condition, control)).unwrap();
    let error = run(&some, &case.database.target("t").mode(Mode::Append), &in_order()).unwrap_err();
    assert!(error.place().ends_with("row group 0, row 0 of those that are loaded"), "{error}");
}

#[test]
fn rejected_rows_count_once_when_a_killed_run_commits_while_the_next_one_begins() {
    let mut rows = words(2000);
    for row in &mut rows[720..730] {
        row.1 = "nul\0".into();
    }
    let case = Case::new(rows, "(id integer PRIMARY KEY, word text)");
    assert_eq!(case.load(None, &in_order()).unwrap().rows_rejected, 10);
    let mut client = case.database.client();
    // As it was before the unit of those rows was committed.
    let of_unit = "row_group = 1 AND first_row = 0";
    client
        .batch_execute(&format!(
            "CREATE TABLE unit AS SELECT * FROM _sawmill.units WHERE {of_unit};
             CREATE TABLE rejected AS SELECT * FROM _sawmill.rejects WHERE {of_unit};
             CREATE TABLE rows AS SELECT * FROM t WHERE id BETWEEN 700 AND 1199;
             DELETE FROM _sawmill.units WHERE {of_unit}; DELETE FROM _sawmill.rejects WHERE {of_unit};
             DELETE FROM t WHERE id BETWEEN 700 AND 1199; UPDATE _sawmill.loads SET completed = NULL"
        ))
        .unwrap();
    // The next run has read which units are committed, and waits for the rejected rows.
    client.batch_execute("BEGIN; LOCK TABLE _sawmill.rejects").unwrap();
    let report = std::thread::scope(|scope| {
        let next = scope.spawn(|| case.load(Some(10), &LoadOptions { verify: false, ..in_order() }));
        let mut watching = case.database.client();
        let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                     AND datname = current_database() AND query LIKE '%rejects%')";
        while !watching.query_one(waits, &[]).unwrap().get::<_, bool>(0) {
            assert!(!next.is_finished(), "it did not wait");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        client
            .batch_execute(
                "INSERT INTO _sawmill.units SELECT * FROM unit; INSERT INTO _sawmill.rejects SELECT * FROM rejected;
                 INSERT INTO t SELECT * FROM rows; COMMIT",
            )
            .unwrap();
        next.join().unwrap().unwrap()
    });
    assert_eq!((report.state, report.rows, report.rows_rejected), (LoadState::Resumed, 1990, 10));
    assert_eq!((case.database.count("t"), read_rejects(&case.file()).len()), (1990, 10));
}

#[test]
fn a_crash_that_empties_an_unlogged_table_empties_the_record_of_its_rejected_rows_too() {
    let mut server = LocalPg::start().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1500, 700);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let address = server.url();
    let rejected = directory.path().join("rejects.parquet");
    let target = |table: &str| {
        let rejects = RejectOptions { path: rejected.clone(), most: None };
        Postgres::new(address.parse().unwrap(), table.parse().unwrap()).rejects(Some(rejects))
    };
    let client = || postgres::Client::connect(&address, postgres::NoTls).unwrap();
    let table = "CREATE UNLOGGED TABLE t (id bigint CHECK (id % 100 <> 7), name text, amount float8)";
    client().batch_execute(table).unwrap();
    let append = target("t").mode(Mode::Append);
    let report = run(&source, &append, &small()).unwrap();
    assert_eq!((report.rows, report.rows_rejected), (1485, 15));
    // As if the crash had come before the end.
    client().batch_execute("UPDATE _sawmill.loads SET completed = NULL").unwrap();
    server.restart_immediate().unwrap();
    let again = run(&source, &append, &small()).unwrap();
    assert_eq!((again.state, again.rows_loaded, again.rows_rejected), (LoadState::Resumed, 1485, 15));
    assert_eq!(read_rejects(&rejected).len(), 15);
    let kind = TableKind { unlogged: true, ..TableKind::default() };
    let report = run(&source, &target("made").kind(kind), &small()).unwrap();
    assert_eq!((report.rows, report.rows_rejected), (1500, 0));
    for table in ["t", "made"] {
        with_control(|control| sawmill_postgres::forget(&target(table), true, control)).unwrap();
    }
    let left = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('_sawmill')";
    assert_eq!(client().query_one(left, &[]).unwrap().get::<_, i64>(0), 0);
}

fn compared(case: &Case, options: &LoadOptions) -> sawmill_source::Result<Verification> {
    let rejects = RejectOptions { path: case.file(), most: None };
    let target = case.database.target("t").rejects(Some(rejects));
    with_control(|control| verify(&case.source, &target, options, control))
}

/// Words with six bad ones: three cannot be stored, and the table refuses three.
fn with_six_bad_rows() -> Case {
    let mut rows = words(2000);
    for bad in [3, 4, 710] {
        rows[bad].1 = "nul\0".into();
    }
    for bad in [50, 800, 1999] {
        rows[bad].1 = "forbidden".into();
    }
    Case::new(rows, "(id integer, word text CHECK (word <> 'forbidden'))")
}

#[test]
fn the_table_and_the_rejected_rows_together_are_verified_against_the_source() {
    let case = with_six_bad_rows();
    case.load(None, &small()).unwrap();
    let plain = case.database.target("t");
    let error = with_control(|control| verify(&case.source, &plain, &small(), control)).unwrap_err();
    assert_eq!(error.kind(), Kind::Value);
    assert!(
        error.place().contains("data.parquet, row group") && error.advice().contains("--rejects"),
        "{error}"
    );
    let same = compared(&case, &small()).unwrap();
    assert!(same.matches());
    assert_eq!((same.source.rows, same.target.rows, same.rejected), (1994, 1994, 6));
    // A row that is in neither is found, in few passes and in many.
    case.database.client().batch_execute("DELETE FROM t WHERE id = 801").unwrap();
    for locate_rows in [4 << 20, 100] {
        let options = LoadOptions { locate: true, locate_rows, ..small() };
        let found = compared(&case, &options).unwrap();
        assert!(!found.matches());
        let located = found.located.unwrap();
        assert_eq!((located.units.len(), located.rows_of_none), (1, 0));
        assert_eq!(
            (located.units[0].row_group, located.units[0].first_missing.as_slice()),
            (1, [101].as_slice())
        );
    }
    case.database.client().batch_execute("INSERT INTO t VALUES (802, 'word 801')").unwrap();
    assert_eq!(compared(&case, &small()).unwrap().differing, ["id"]);
    // Rows that another load has rejected, and files that no load has written.
    case.database.client().batch_execute("DELETE FROM t WHERE id = 802 AND word = 'word 801'").unwrap();
    let other = Case::new(words(10), "(id integer CHECK (id < 0), word text)");
    other.load(None, &small()).unwrap();
    std::fs::copy(other.file(), case.file()).unwrap();
    let error = compared(&case, &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Mismatch);
    assert!(error.what().contains("3 rows of the files cannot be stored"), "{error}");
    std::fs::copy(case.directory.path().join("data.parquet"), case.file()).unwrap();
    assert!(compared(&case, &small()).unwrap_err().what().contains("_sawmill_reason"));
}

#[test]
fn a_file_that_cannot_be_written_or_was_not_written_by_a_load_is_refused_before_a_row_is_sent() {
    let case = Case::new(words(10), "(id integer, word text)");
    let refused = |path: std::path::PathBuf, what: &str| {
        let target = case.database.target("t").mode(Mode::Append);
        let target = target.rejects(Some(RejectOptions { path: path.clone(), most: None }));
        let error = run(&case.source, &target, &small()).unwrap_err();
        assert_eq!(
            (error.kind(), error.place().to_owned()),
            (Kind::Config, path.display().to_string()),
            "{error}"
        );
        assert!(error.what().contains(what) && error.advice().contains("--rejects"), "{error}");
        assert_eq!(case.database.count("t"), 0);
    };
    refused(case.directory.path().join("nowhere/rejects.parquet"), "cannot be written");
    refused(case.directory.path().join("data.parquet"), "already exists");
    std::fs::write(case.directory.path().join("notes.txt"), "mine").unwrap();
    refused(case.directory.path().join("notes.txt"), "already exists");
    // A file that a load has written is replaced.
    case.load(None, &small()).unwrap();
    case.database.client().batch_execute("DELETE FROM _sawmill.loads").unwrap();
    case.load(None, &small()).unwrap();
}

#[test]
fn nested_values_are_rejected_unchanged() {
    let id = Field::new("id", DataType::FixedSizeBinary(16), true)
        .with_metadata([("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())].into());
    let ids = FixedSizeBinaryArray::try_from_iter((0..4u8).map(|row| [row; 16])).unwrap();
    let inner: ArrayRef = Arc::new(StructArray::new(Fields::from(vec![id]), vec![Arc::new(ids)], None));
    let columns: Vec<(&str, ArrayRef)> =
        vec![("n", Arc::new(Int64Array::from(vec![1, -2, 3, -4]))), ("of", inner)];
    let (directory, path) = file_of(columns, 10);
    let database = Database::new();
    database.client().batch_execute("CREATE TABLE t (n bigint CHECK (n > 0), \"of\" jsonb)").unwrap();
    let source = ParquetFiles::open(&[path]).unwrap();
    let rejects = RejectOptions { path: directory.path().join("rejects.parquet"), most: None };
    let target = database.target("t").mode(Mode::Append).rejects(Some(rejects.clone()));
    assert_eq!(run(&source, &target, &small()).unwrap().rows_rejected, 2);
    let corrected =
        ParquetFiles::open(&[&rejects.path]).unwrap().select(&["n".into(), "of".into()], &[]).unwrap();
    assert_eq!(corrected.rows(), 2);
    run(&corrected, &database.target("others"), &small()).unwrap();
    let shown = "SELECT \"of\"->>'id' FROM others WHERE n = -2";
    let shown: String = database.client().query_one(shown, &[]).unwrap().get(0);
    assert_eq!(shown, "01010101-0101-0101-0101-010101010101");
}

#[test]
fn a_failed_verification_does_not_report_rejected_rows_as_missing() {
    let case = with_six_bad_rows();
    let spoil = "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$
                 BEGIN IF NEW.id = 801 THEN NEW.word := 'spoiled'; END IF; RETURN NEW; END $$;
                 CREATE TRIGGER spoil BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION spoil()";
    case.database.client().batch_execute(spoil).unwrap();
    let rejects = RejectOptions { path: case.file(), most: None };
    let target = case.database.target("t").mode(Mode::Append).rejects(Some(rejects));
    let options = LoadOptions { locate: true, ..small() };
    let error = run(&case.source, &target, &options).unwrap_err();
    assert_eq!(error.kind(), Kind::Mismatch);
    let what = error.what();
    let is_place = |part: &&str| part.contains("not in the ") || part.contains("the files lack");
    let located: Vec<&str> = what.split("; ").filter(is_place).collect();
    assert_eq!(located.len(), 2, "{error}");
    assert!(located[0].contains("row group 1, rows ") && located[0].ends_with("1 not in the table (101)"));
    assert_eq!(located[1], "the table has 1 row that the files lack");
    let differing: Vec<&str> = what.split("; ").filter(|part| part.contains("differ")).collect();
    assert_eq!(differing, ["values differ in word"], "{error}");
    // The same with a condition: rows are then named as the selected ones are counted.
    let some = with_control(|control| case.source.filtered("id <> 702".parse().unwrap(), control)).unwrap();
    case.database.client().batch_execute("TRUNCATE t").unwrap();
    let rejects = RejectOptions { path: case.directory.path().join("some"), most: None };
    let target = case.database.target("t").mode(Mode::Append).rejects(Some(rejects));
    let error = run(&some, &target, &LoadOptions { again: true, ..options }).unwrap_err();
    let what = error.what();
    let located: Vec<&str> = what.split("; ").filter(is_place).collect();
    assert!(located.len() == 2 && located[0].ends_with("1 not in the table (100)"), "{error}");
}

#[test]
fn a_merge_rejects_rows_that_a_check_or_not_null_refuses_and_names_a_way_out_for_others() {
    let file = |words: &[&str]| {
        let rows = words.len() as i64;
        let words: StringArray = words.iter().map(|word| (!word.is_empty()).then_some(*word)).collect();
        let columns: Vec<(&str, ArrayRef)> =
            vec![("id", Arc::new(Int64Array::from_iter_values(0..rows))), ("word", Arc::new(words))];
        file_of(columns, 2)
    };
    let create = "CREATE TABLE t (id integer PRIMARY KEY, word text NOT NULL UNIQUE CHECK (word <> 'forbidden'), \
                  more integer DEFAULT 1 CHECK (more > 0))";
    for on_conflict in [OnConflict::Update, OnConflict::Keep, OnConflict::KeepNewest("word".to_owned())] {
        let database = Database::new();
        database.client().batch_execute(create).unwrap();
        let (directory, path) = file(&["a", "forbidden", "b", "", "c"]);
        let rejects = RejectOptions { path: directory.path().join("rejects.parquet"), most: None };
        let target = database.target("t").mode(Mode::Upsert).key(vec!["id".to_owned()]);
        let target = target.on_conflict(on_conflict).rejects(Some(rejects.clone()));
        let report = run(&ParquetFiles::open(&[path]).unwrap(), &target, &small()).unwrap();
        assert_eq!((report.rows, report.rows_rejected, database.count("t")), (3, 2, 3));
        let rejected = read_rejects(&rejects.path);
        assert_eq!((rejected[0].0, rejected[0].1, rejected[1].0, rejected[1].1), (0, 1, 1, 1));
        assert!(rejected[0].2.contains("t_word_check") && rejected[1].2.contains("null"), "{rejected:?}");

        // A second unique key is known to the table alone.
        let (_directory, path) = file(&["x", "c"]);
        let error = run(&ParquetFiles::open(&[path]).unwrap(), &target, &small()).unwrap_err();
        assert!(error.what().contains("t_word_key") && error.what().contains("(c)"), "{error}");
        assert!(error.advice().contains("another unique key"), "{error}");
    }
}

#[test]
fn a_merge_leaves_to_a_trigger_what_it_mends() {
    let (directory, path) = file_of(
        vec![
            ("id", Arc::new(Int64Array::from(vec![1])) as ArrayRef),
            ("word", Arc::new(StringArray::from(vec![None::<&str>]))),
        ],
        2,
    );
    let database = Database::new();
    let create = "CREATE TABLE t (id integer PRIMARY KEY, word text NOT NULL); \
        CREATE FUNCTION mend() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.word = 'mended'; RETURN NEW; END $$; \
        CREATE TRIGGER mend BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION mend()";
    database.client().batch_execute(create).unwrap();
    let rejects = RejectOptions { path: directory.path().join("rejects.parquet"), most: None };
    let target = database.target("t").mode(Mode::Upsert).key(vec!["id".to_owned()]).rejects(Some(rejects));
    let options = LoadOptions { verify: false, ..small() };
    let report = run(&ParquetFiles::open(&[path]).unwrap(), &target, &options).unwrap();
    assert_eq!((report.rows_rejected, database.count("t WHERE word = 'mended'")), (0, 1));
}
