//! Rows in another order, compared with a sort in memory of what another reader reads.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use proptest::prelude::*;
use sawmill_profile::Profile;
use sawmill_source::{
    Addressed, ByRow, Control, DelimitedFiles, DelimitedOptions, IndexPlace, Order, OrderedRows, Slot, Source,
};

/// A row of a test: its time and its text.
type Row = (Option<i64>, String);

fn text_of(row: &Row) -> String {
    let quoted = row.1.replace('"', "\"\"");
    let time = row.0.map(|seconds| {
        let (day, second) = (seconds / 86_400, seconds % 86_400);
        format!("2024-01-{:02} {:02}:{:02}:{:02}", 1 + day, second / 3600, second / 60 % 60, second % 60)
    });
    format!("\"{quoted}\",{}", time.unwrap_or_default())
}

fn write(directory: &Path, files: &[Vec<Row>], newline: &str, last_newline: bool) -> Vec<PathBuf> {
    let write = |(number, rows): (usize, &Vec<Row>)| {
        let path = directory.join(format!("{number}.csv"));
        let mut lines = vec!["note,at".to_owned()];
        lines.extend(rows.iter().map(text_of));
        let end = if last_newline { newline } else { "" };
        std::fs::write(&path, lines.join(newline) + end).unwrap();
        path
    };
    files.iter().enumerate().map(write).collect()
}

fn order(sort_by: Option<&str>, by: Option<&str>) -> Order {
    Order { sort_by: sort_by.map(str::to_owned), partition_by: by.map(|by| by.parse().unwrap()) }
}

fn with_control<T>(work: impl FnOnce(&Control<'_>) -> T) -> T {
    let (cancel, phase) = (AtomicBool::new(false), Profile::new().phase("index"));
    work(&Control::new(&cancel, &phase))
}

fn open_text(paths: &[PathBuf], chunk: u64) -> DelimitedFiles {
    let types = ["note=text", "at=timestamp"].map(|of| {
        let (name, of) = of.split_once('=').unwrap();
        (name.to_owned(), of.parse().unwrap())
    });
    let options = DelimitedOptions { types: types.to_vec(), ..DelimitedOptions::default() };
    with_control(|control| DelimitedFiles::open_in_chunks(paths, &options, chunk, control)).unwrap()
}

/// The rows of each partition, read in units of `unit_rows` rows.
fn read(source: &OrderedRows<'_>, unit_rows: u64, batch_rows: usize) -> Vec<(Slot, Vec<Row>)> {
    let mut reader = source.reader(batch_rows);
    let mut partitions: Vec<(Slot, Vec<Row>)> =
        source.partitions().into_iter().map(|partition| (partition.slot, Vec::new())).collect();
    let mut units = source.plan(unit_rows).concat();
    units.sort_by_key(|unit| unit.key);
    for unit in units {
        reader.start(&unit).unwrap();
        let rows = &mut partitions[unit.key.row_group as usize].1;
        assert_eq!(unit.key.first_row, rows.len() as u64);
        while let Some(batch) = reader.next_batch().unwrap() {
            rows.extend(rows_of(&batch));
        }
        assert_eq!(unit.key.first_row + unit.rows, rows.len() as u64);
    }
    partitions
}

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let notes = batch.column_by_name("note").unwrap().as_string_view();
    let times = batch.column_by_name("at").unwrap().as_primitive::<TimestampMicrosecondType>();
    let start = 1_704_067_200;
    let times = times.iter().map(|time| time.map(|time| time / 1_000_000 - start));
    times.zip(notes.iter()).map(|(time, note)| (time, note.unwrap().to_owned())).collect()
}

/// The same by a stable sort of everything.
fn expected(files: &[Vec<Row>], sorted: bool, by_day: bool) -> Vec<(Option<i64>, Vec<Row>)> {
    let mut rows: Vec<Row> = files.concat();
    let day = |row: &Row| if by_day { row.0.map(|time| time / 86_400) } else { Some(0) };
    let last = |key: Option<i64>| (key.is_none(), key);
    if sorted {
        rows.sort_by_key(|row| last(row.0));
    }
    rows.sort_by_key(|row| last(day(row)));
    rows.chunk_by(|a, b| day(a) == day(b)).map(|rows| (day(&rows[0]), rows.to_vec())).collect()
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let time = prop_oneof![1 => Just(None), 9 => (0..4_i64 * 86_400).prop_map(Some), 2 => Just(Some(90_000))];
    prop::collection::vec((time, "[a-z\" ,\r\n;é]{0,12}"), 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rows_come_by_day_and_time_and_ties_in_the_order_of_the_input(
        files in prop::collection::vec(rows(), 1..4),
        (windows, last_newline, sorted, by_day) in any::<(bool, bool, bool, bool)>(),
        (chunk, unit_rows, batch_rows) in (40..400_u64, 1..50_u64, 1..40_usize),
        few in any::<bool>(),
    ) {
        prop_assume!(sorted || by_day);
        let directory = tempfile::tempdir().unwrap();
        let paths = write(directory.path(), &files, if windows { "\r\n" } else { "\n" }, last_newline);
        let text = open_text(&paths, chunk);
        let by_row = ByRow::new(&text);
        let order = order(sorted.then_some("at"), by_day.then_some("day(at)"));
        let memory = if few { 1 } else { IndexPlace::MEMORY };
        let place = IndexPlace { directory: directory.path().join("index"), memory };
        let wanted = expected(&files, sorted, by_day);
        for addressed in [&text as &dyn Addressed, &by_row] {
            let ordered = with_control(|control| OrderedRows::open(addressed, &order, &place, control)).unwrap();
            let found = read(&ordered, unit_rows, batch_rows);
            let rows: Vec<&Vec<Row>> = found.iter().map(|(_, rows)| rows).collect();
            prop_assert_eq!(&rows, &wanted.iter().map(|(_, rows)| rows).collect::<Vec<_>>());
            if by_day {
                let days = wanted.iter().map(|(day, _)| match day {
                    None => Slot::Null,
                    Some(day) => Slot::Number(i128::from(*day) + 19_723),
                });
                prop_assert_eq!(found.iter().map(|(slot, _)| slot.clone()).collect::<Vec<_>>(), days.collect::<Vec<_>>());
            }
            drop(ordered);
            prop_assert_eq!(std::fs::read_dir(&place.directory).unwrap().count(), 0, "the index has no name");
        }
    }
}

#[test]
fn many_runs_are_merged() {
    let directory = tempfile::tempdir().unwrap();
    let row = |n: i64| (Some(n * 7919 % 400_000), format!("row {n}"));
    let files: Vec<Vec<Row>> = vec![(0..60_000).map(row).collect(), (60_000..100_000).map(row).collect()];
    let paths = write(directory.path(), &files, "\n", true);
    let text = open_text(&paths, 1 << 20);
    let place = IndexPlace { directory: directory.path().join("index"), memory: 1 };
    for by_day in [false, true] {
        let order = order(Some("at"), by_day.then_some("day(at)"));
        let ordered = with_control(|control| OrderedRows::open(&text, &order, &place, control)).unwrap();
        assert_eq!(ordered.rows(), 100_000);
        let found: Vec<Vec<Row>> = read(&ordered, 30_000, 4096).into_iter().map(|(_, rows)| rows).collect();
        assert!(
            found == expected(&files, true, by_day).into_iter().map(|(_, rows)| rows).collect::<Vec<_>>()
        );
    }
}

#[test]
fn columns_that_cannot_decide_the_order_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let paths = write(directory.path(), &[vec![(Some(1), "a".into())]], "\n", true);
    let text = open_text(&paths, 1 << 20);
    let error = |sort_by, by| OrderedRows::check(&text, &order(sort_by, by)).unwrap_err().to_string();
    assert!(error(Some("att"), None).contains("\"att\" is not among those that are read"));
    assert!(error(Some("att"), None).contains("at"), "a name that is alike is shown");
    assert!(error(Some("note"), None).contains("is text, neither a date nor a timestamp"));
    assert!(error(Some("at"), Some("day(note)")).contains("neither a date nor a timestamp"));
    assert!(error(None, Some("list(at)")).contains("cannot be a list"));
}

#[test]
fn a_time_that_does_not_parse_is_named_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.csv");
    std::fs::write(&path, "note,at\nx,2024-01-01\ny,soon\n").unwrap();
    let text = open_text(&[path], 1 << 20);
    let place = IndexPlace { directory: directory.path().join("index"), memory: IndexPlace::MEMORY };
    let order = order(Some("at"), None);
    let error = with_control(|control| OrderedRows::open(&text, &order, &place, control).err()).unwrap();
    for part in ["\"soon\" is not of type timestamp", "a.csv, line 3, byte offset 23", "column \"at\""] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let left = std::fs::read_dir(&place.directory).map_or(0, Iterator::count);
    assert_eq!(left, 0, "the index has no name");
}
