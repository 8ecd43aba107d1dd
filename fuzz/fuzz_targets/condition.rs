//! Any text as a condition: printed and parsed again it is the same, and it selects the same rows with statistics
//! that skip row groups and pages as without, and no row together with its negation.
#![no_main]

mod reading;

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use libfuzzer_sys::fuzz_target;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use reading::{refusal, rows, with_control, written};
use sawmill_source::{Condition, ParquetFiles, silence_guarded_panics};

const ROWS: i32 = 24;

/// A row number, and a column of each kind with values at and beside the ends of their ranges, and NULL.
fn table() -> RecordBatch {
    let some = |row: i32| (row % 5 > 0).then_some(row);
    let words = ["", "a", "ab", "a%b", "a_b", "\u{fc}", "zz"];
    let floats = [0.0, -0.0, 1.5, f64::NAN, f64::INFINITY, -1e300];
    let whole = [0, 1, -1, i32::MAX, i32::MIN, 7];
    let at = |row: i32| row as usize / 2;
    let moments = (0..ROWS).map(|row| some(row).map(|row| i64::from(row) * 86_400_000_000 / 2));
    let decimals = Decimal128Array::from_iter((0..ROWS).map(|row| some(row).map(|row| i128::from(row) * 50)));
    let columns: [(&str, ArrayRef); 9] = [
        ("row", Arc::new(Int32Array::from_iter_values(0..ROWS))),
        ("i", Arc::new(Int32Array::from_iter((0..ROWS).map(|row| some(row).map(|row| whole[at(row) % 6]))))),
        (
            "f",
            Arc::new(Float64Array::from_iter((0..ROWS).map(|row| some(row).map(|row| floats[at(row) % 6])))),
        ),
        ("t", Arc::new(StringArray::from_iter((0..ROWS).map(|row| some(row).map(|row| words[at(row) % 7]))))),
        ("b", Arc::new(BooleanArray::from_iter((0..ROWS).map(|row| some(row).map(|row| row % 2 == 0))))),
        ("d", Arc::new(Date32Array::from_iter((0..ROWS).map(some)))),
        ("ts", Arc::new(TimestampMicrosecondArray::from_iter(moments).with_timezone("UTC"))),
        ("n", Arc::new(decimals.with_precision_and_scale(9, 2).expect("nine digits"))),
        ("x", Arc::new(BinaryArray::from_iter((0..ROWS).map(|row| some(row).map(|row| [row as u8, 0]))))),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of the same length")
}

/// The same rows in row groups and pages of a few rows that have statistics, and in one without.
static FILES: LazyLock<[ParquetFiles; 2]> = LazyLock::new(|| {
    // libFuzzer ends with any panic, but panics of the `parquet` crate are caught.
    drop(std::panic::take_hook());
    silence_guarded_panics();
    [("pruned.parquet", 6, EnabledStatistics::Page), ("whole.parquet", 100, EnabledStatistics::None)].map(
        |(name, rows, statistics)| {
            let properties = WriterProperties::builder()
                .set_statistics_enabled(statistics)
                .set_max_row_group_row_count(Some(rows))
                .set_data_page_row_count_limit(2)
                .set_write_batch_size(1);
            let (mut bytes, table) = (Vec::new(), table());
            let writer = ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties.build()));
            let mut writer = writer.expect("a schema that Parquet has");
            writer.write(&table).expect("written to memory");
            writer.close().expect("written to memory");
            ParquetFiles::open(&[written(name, &bytes)]).expect("a file just written")
        },
    )
});

fn selected(files: &ParquetFiles, condition: &Condition) -> Result<Vec<i32>, String> {
    with_control(|control| {
        let filtered = files.filtered(condition.clone(), control).map_err(|error| refusal(&error))?;
        let batch = rows(&filtered, 5, 3).map_err(|error| refusal(&error))?;
        Ok(batch.column(0).as_primitive::<Int32Type>().values().to_vec())
    })
}

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let [pruned, whole] = &*FILES;
    let condition: Condition = match text.parse() {
        Ok(condition) => condition,
        Err(error) => return drop(refusal(&error)),
    };
    let printed = condition.to_string();
    match printed.parse::<Condition>() {
        Ok(again) => assert_eq!(again, condition, "{printed}"),
        Err(error) => panic!("{printed}: {error}"),
    }
    let (of_pruned, of_whole) = (selected(pruned, &condition), selected(whole, &condition));
    match (&of_pruned, &of_whole) {
        (Ok(_), Ok(_)) => assert_eq!(of_pruned, of_whole, "{printed}"),
        (Err(_), Err(_)) => return,
        _ => panic!("{printed}: {of_pruned:?}, {of_whole:?}"),
    }
    let negated = selected(pruned, &condition.negated()).expect("the negation has the same columns");
    let both = of_whole.iter().flatten().filter(|row| negated.contains(row)).collect::<Vec<_>>();
    assert!(both.is_empty(), "{printed}: rows {both:?} pass it and its negation");
});
