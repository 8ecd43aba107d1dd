//! Keys of two columns: the lines of orders, and returns of lines.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};

use crate::{Dataset, InferredSpec, InferredTables, KeyColumn};

const ORDERS: i64 = 3000;

fn batch(columns: [(&str, &dyn Fn(usize) -> i64); 2], rows: usize) -> RecordBatch {
    let column =
        |value: &dyn Fn(usize) -> i64| -> ArrayRef { Arc::new((0..rows).map(value).collect::<Int64Array>()) };
    RecordBatch::try_from_iter(columns.map(|(name, value)| (name, column(value)))).unwrap()
}

fn sample(name: &str, batch: &RecordBatch) -> InferredSpec {
    let mut sample = InferredSpec::new(name, &batch.schema(), &[]).unwrap().with_keys(&batch.schema());
    sample.add(batch).unwrap();
    sample.set_rows(batch.num_rows() as u64);
    for column in sample.may_be_keys() {
        let mut key = KeyColumn::new(batch.column(column).data_type()).unwrap();
        key.add(batch.column(column)).unwrap();
        sample.set_key(column, &key);
    }
    sample
}

/// Orders of one to four lines, and returns of lines, each of the first lines many times.
fn shop() -> InferredTables {
    let lines: Vec<(i64, i64)> =
        (0..ORDERS).flat_map(|order| (1..=order * 7 % 4 + 1).map(move |line| (10 + order, line))).collect();
    let mixed = |row: usize| ((row + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    let returned = |row: usize| lines[(mixed(row) % 71 * (mixed(row + 9999) % 101)) as usize % lines.len()];
    let tables = [
        ("orders", batch([("id", &|row| 10 + row as i64), ("n", &|row| mixed(row) as i64 % 90)], 3000)),
        ("lines", batch([("order_id", &|row| lines[row].0), ("line", &|row| lines[row].1)], lines.len())),
        ("returns", batch([("order_id", &|row| returned(row).0), ("line", &|row| returned(row).1)], 9000)),
    ];
    InferredTables::new(tables.iter().map(|(name, batch)| sample(name, batch)).collect()).unwrap()
}

/// All rows that the spec makes of a table.
fn made(spec: &str, table: &str) -> RecordBatch {
    let dataset =
        Dataset::table_from_toml(spec, table, None).unwrap_or_else(|error| panic!("{error}\n{spec}"));
    let rows = dataset.rows().unwrap();
    dataset.batches(0..rows, 5, rows as usize).next().unwrap().unwrap()
}

fn pairs(batch: &RecordBatch) -> Vec<(i64, i64)> {
    let [a, b] =
        ["order_id", "line"].map(|name| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>());
    a.values().iter().copied().zip(b.values().iter().copied()).collect()
}

#[test]
fn pairs_that_are_a_key_stay_one_and_references_to_them_name_its_rows() {
    let shop = shop();
    let spec = shop.to_toml().unwrap();
    let [lines, returns] = ["lines", "returns"].map(|table| made(&spec, table));
    let keys: HashSet<(i64, i64)> = pairs(&lines).into_iter().collect();
    assert_eq!(keys.len(), lines.num_rows(), "{spec}");
    assert_eq!(returns.num_rows(), 9000);
    assert!(pairs(&returns).iter().all(|pair| keys.contains(pair)), "{spec}");
    let said = shop.evidence();
    for part in [
        "lines.line numbers the rows of each orders.id",
        "returns.order_id, returns.line refer to lines.order_id, lines.line: all 9000 sampled pairs are keys",
    ] {
        assert!(said.iter().any(|line| line.starts_with(part)), "{part}: {said:?}");
    }
}

/// Students take different courses, and grades are of a course that the student takes.
#[test]
fn pairs_of_references_stay_a_key_and_references_to_them_name_its_rows() {
    let spec = "name = 's'\ntables = [
        { name = 'students', rows = 400, fields = [{ name = 'id', type = 'int64', values.sequence = { start = 1000 } }] },
        { name = 'courses', rows = 60, fields = [{ name = 'id', type = 'int64', values.sequence = { start = 7 } }] },
        { name = 'enrolments', per = { table = 'students', rows.uniform = { min = 1, max = 30 } }, fields = [{ name = 'student_id', type = 'int64', values.parent = 'id' }, { name = 'course_id', type = 'int64', values.ref = { to = 'courses.id', distinct = true } }] },
        { name = 'grades', rows = 9000, fields = [{ name = 'row', type = 'int64', hidden = true, values.ref = { to = 'enrolments', s = 0.3 } }, { name = 'student_id', type = 'int64', values.lookup = { by = 'row', column = 'student_id' } }, { name = 'course_id', type = 'int64', values.lookup = { by = 'row', column = 'course_id' } }] }]";
    let names = ["students", "courses", "enrolments", "grades"];
    let found = names.map(|table| sample(table, &made(spec, table)));
    let found = InferredTables::new(found.into()).unwrap();
    let learned = found.to_toml().unwrap();
    let [enrolments, grades] = ["enrolments", "grades"].map(|table| {
        let batch = made(&learned, table);
        let [a, b] = [0, 1].map(|column| batch.column(column).as_primitive::<Int64Type>().values().to_vec());
        a.into_iter().zip(b).collect::<Vec<(i64, i64)>>()
    });
    let keys: HashSet<(i64, i64)> = enrolments.iter().copied().collect();
    assert_eq!(keys.len(), enrolments.len(), "{learned}");
    assert!(grades.len() == 9000 && grades.iter().all(|pair| keys.contains(pair)), "{learned}");
    assert!(
        found
            .evidence()
            .contains(&"enrolments.student_id, enrolments.course_id are a key together".to_owned())
    );
    let copies = names.map(|table| sample(table, &made(&learned, table)));
    let kept = found.compare(&copies).into_iter().find(|of| of.relation.starts_with("equal pairs")).unwrap();
    assert_eq!((kept.source, kept.generated), (0.0, 0.0));
}

#[test]
fn references_to_uuids_are_found_and_kept() {
    let spec = "name = 's'\ntables = [
        { name = 'users', rows = 500, fields = [{ name = 'id', type = 'uuid', values = 'uuid' }, { name = 'code', type = 'string', values = 'uuid' }] },
        { name = 'visits', rows = 4000, fields = [{ name = 'user_id', type = 'uuid', values.ref = { to = 'users.id', s = 0.5 } }, { name = 'user_code', type = 'string', values.ref = { to = 'users.code', s = 0.5 } }] }]";
    let batches = ["users", "visits"].map(|table| (table, made(spec, table)));
    let found =
        InferredTables::new(batches.iter().map(|(name, batch)| sample(name, batch)).collect()).unwrap();
    assert!(found.evidence().iter().all(|line| line.contains("all 4000 sampled values are keys")));
    let learned = found.to_toml().unwrap();
    let [users, visits] = ["users", "visits"].map(|table| made(&learned, table));
    for column in 0..2 {
        let texts = |batch: &RecordBatch| -> Vec<String> {
            let format =
                arrow_cast::display::ArrayFormatter::try_new(batch.column(column), &Default::default());
            let format = format.unwrap();
            (0..batch.num_rows()).map(|row| format.value(row).to_string()).collect()
        };
        let keys: HashSet<String> = texts(&users).into_iter().collect();
        assert_eq!(keys.len(), 500, "{learned}");
        assert!(texts(&visits).iter().all(|key| keys.contains(key)), "{learned}");
    }
}

#[test]
fn lost_references_to_pairs_are_told() {
    let shop = shop();
    let spec = shop.to_toml().unwrap();
    let alike = ["orders", "lines", "returns"].map(|table| sample(table, &made(&spec, table)));
    let orphans = |generated: &[InferredSpec]| {
        let relations = shop.compare(generated);
        let name = "orphans of returns.order_id, returns.line, no keys of lines.order_id, lines.line";
        relations.into_iter().find(|of| of.relation == name).unwrap().generated
    };
    assert_eq!(orphans(&alike), 0.0);
    let [orders, lines, _] = alike;
    let returns =
        batch([("order_id", &|row| 10 + row as i64 % ORDERS), ("line", &|row| 1 + row as i64 % 5)], 9000);
    assert!(orphans(&[orders, lines, sample("returns", &returns)]) > 0.3);
}
