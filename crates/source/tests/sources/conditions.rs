//! A condition selects the same rows as a simple test of every value, whatever the file's statistics, pages
//! and encodings are.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    TimestampSecondArray, UInt32Array, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use proptest::prelude::*;
use sawmill_profile::Profile;
use sawmill_source::{Condition, Control, Filtered, ParquetFiles, Source, Unit};

/// Random numbers that one seed determines.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        // SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A value as this test compares it.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Whole(i64),
    Float(f64),
    Text(String),
}

impl Value {
    /// NaN is greater than all numbers and equal to itself.
    fn compared(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Float(a), Self::Float(b)) => {
                a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
            }
            _ => unreachable!("values of one column have one type"),
        }
    }
}

/// The type of a column, and how its values are written in conditions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Column {
    Int16,
    Int32,
    Int64,
    UInt32,
    UInt64,
    Float32,
    Float64,
    Boolean,
    Text,
    Names,
    Day,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    Clock,
    Price,
    Key,
}

const COLUMNS: [Column; 18] = [
    Column::Int16,
    Column::Int32,
    Column::Int64,
    Column::UInt32,
    Column::UInt64,
    Column::Float32,
    Column::Float64,
    Column::Boolean,
    Column::Text,
    Column::Names,
    Column::Day,
    Column::Second,
    Column::Millisecond,
    Column::Microsecond,
    Column::Nanosecond,
    Column::Clock,
    Column::Price,
    Column::Key,
];

impl Column {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Returns a value that roughly increases with `level`.
    fn value(self, level: i64, draws: &mut Draws) -> Value {
        let near = level + draws.below(7) as i64 - 3;
        match self {
            Self::Int16 | Self::Int32 | Self::Int64 | Self::Price => Value::Whole(near - 20),
            Self::UInt32 | Self::UInt64 => Value::Whole(near),
            Self::Float32 | Self::Float64 => Value::Float(match draws.below(20) {
                0 => f64::NAN,
                1 => f64::INFINITY,
                2 => -0.0,
                3 => 0.0,
                _ => (near - 20) as f64 / 4.0,
            }),
            Self::Boolean => Value::Whole(i64::from(near > 20)),
            // Longer than the text that statistics store.
            Self::Text => Value::Text(format!("{}{}", "prefix ".repeat(near.rem_euclid(20) as usize), near)),
            Self::Names => {
                Value::Text(["ann", "bob", "änne", "", "carl"][near.rem_euclid(5) as usize].into())
            }
            Self::Day => Value::Whole(near - 10),
            Self::Second => Value::Whole(near * 3600 - 50_000),
            Self::Millisecond => Value::Whole(near * 1_800_500 - 5_000_000),
            Self::Microsecond | Self::Nanosecond => Value::Whole(near * 1_000_001 - 20_000_000),
            Self::Clock => Value::Whole(near.rem_euclid(24) * 3_600_000_000 + 1),
            Self::Key => Value::Text(format!("{:032x}", near.rem_euclid(40) << 4)),
        }
    }

    fn literal(self, value: &Value) -> String {
        let whole = |value: &Value| match value {
            Value::Whole(whole) => *whole,
            other => unreachable!("{other:?} is not an integer"),
        };
        match (self, value) {
            (Self::Boolean, value) => (whole(value) == 1).to_string(),
            (Self::UInt32, value) => unsigned(whole(value), 31).to_string(),
            (Self::UInt64, value) => unsigned(whole(value), 63).to_string(),
            (Self::Day, value) => moment(whole(value) * 86_400, 0, 0),
            (Self::Second, value) => moment(whole(value), 0, 0),
            (Self::Millisecond, value) => {
                moment(whole(value).div_euclid(1000), whole(value).rem_euclid(1000), 3)
            }
            (Self::Microsecond, value) => {
                moment(whole(value).div_euclid(1_000_000), whole(value).rem_euclid(1_000_000), 6) + "Z"
            }
            (Self::Nanosecond, value) => {
                moment(whole(value).div_euclid(1_000_000_000), whole(value).rem_euclid(1_000_000_000), 9)
            }
            (Self::Clock, value) => {
                let micros = whole(value);
                let seconds = micros / 1_000_000;
                let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
                format!("'{hours:02}:{minutes:02}:{:02}.{:06}'", seconds % 60, micros % 1_000_000)
            }
            (Self::Price, value) => format!("{:.2}", whole(value) as f64 / 100.0),
            (Self::Key, Value::Text(digits)) => format!("x'{digits}'"),
            (_, Value::Whole(whole)) => whole.to_string(),
            (_, Value::Float(float)) if float.is_finite() => float.to_string(),
            (_, Value::Float(float)) => format!("'{float}'"),
            (_, Value::Text(text)) => format!("'{text}'"),
        }
    }

    fn array(self, values: &[Option<Value>]) -> ArrayRef {
        let whole = || {
            values.iter().map(|value| match value {
                Some(Value::Whole(whole)) => Some(*whole),
                _ => None,
            })
        };
        let float = || {
            values.iter().map(|value| match value {
                Some(Value::Float(float)) => Some(*float),
                _ => None,
            })
        };
        let text = || {
            values.iter().map(|value| match value {
                Some(Value::Text(text)) => Some(text.as_str()),
                _ => None,
            })
        };
        match self {
            Self::Int16 => Arc::new(whole().map(|v| v.map(|v| v as i16)).collect::<Int16Array>()),
            Self::Int32 => Arc::new(whole().map(|v| v.map(|v| v as i32)).collect::<Int32Array>()),
            Self::Int64 => Arc::new(whole().collect::<Int64Array>()),
            Self::UInt32 => {
                Arc::new(whole().map(|v| v.map(|v| unsigned(v, 31) as u32)).collect::<UInt32Array>())
            }
            Self::UInt64 => {
                Arc::new(whole().map(|v| v.map(|v| unsigned(v, 63) as u64)).collect::<UInt64Array>())
            }
            Self::Float32 => Arc::new(float().map(|v| v.map(|v| v as f32)).collect::<Float32Array>()),
            Self::Float64 => Arc::new(float().collect::<Float64Array>()),
            Self::Boolean => Arc::new(whole().map(|v| v.map(|v| v == 1)).collect::<BooleanArray>()),
            Self::Text => Arc::new(text().collect::<StringArray>()),
            Self::Names => Arc::new(text().collect::<DictionaryArray<Int32Type>>()),
            Self::Day => Arc::new(whole().map(|v| v.map(|v| v as i32)).collect::<Date32Array>()),
            Self::Second => Arc::new(whole().collect::<TimestampSecondArray>()),
            Self::Millisecond => Arc::new(whole().collect::<TimestampMillisecondArray>()),
            Self::Microsecond => {
                Arc::new(whole().collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
            }
            Self::Nanosecond => Arc::new(whole().collect::<TimestampNanosecondArray>()),
            Self::Clock => Arc::new(whole().collect::<Time64MicrosecondArray>()),
            Self::Price => {
                let decimals = whole().map(|v| v.map(i128::from)).collect::<Decimal128Array>();
                Arc::new(decimals.with_precision_and_scale(20, 2).unwrap())
            }
            Self::Key => {
                let keys = text().map(|digits| {
                    let pair = |at: usize| u8::from_str_radix(&digits.unwrap()[at..at + 2], 16).unwrap();
                    digits.map(|_| (0..32).step_by(2).map(pair).collect::<Vec<u8>>())
                });
                Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(keys, 16).unwrap())
            }
        }
    }
}

/// Returns integers around the first that is negative as a signed number of as many bits.
fn unsigned(value: i64, bits: u32) -> i128 {
    (1 << bits) + i128::from(value) - 20
}

/// Returns seconds since 1970 as a timestamp, computed year by year.
fn moment(seconds: i64, fraction: i64, digits: usize) -> String {
    let (mut days, clock) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while days < 0 {
        year -= 1;
        days += 365 + i64::from(leap(year));
    }
    while days >= 365 + i64::from(leap(year)) {
        days -= 365 + i64::from(leap(year));
        year += 1;
    }
    let february = 28 + i64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hours, minutes, seconds) = (clock / 3600, clock / 60 % 60, clock % 60);
    let fraction = if digits > 0 { format!(".{fraction:0digits$}") } else { String::new() };
    format!("{year:04}-{month:02}-{:02} {hours:02}:{minutes:02}:{seconds:02}{fraction}", days + 1)
}

/// Columns of values with occasional nulls; row `i` is the i-th of each.
type Table = Vec<(Column, Vec<Option<Value>>)>;

fn table(rows: usize, draws: &mut Draws) -> Table {
    let column = |column: Column, draws: &mut Draws| {
        let nulls = [0, 2, 30][draws.below(3) as usize];
        let values = (0..rows).map(|row| {
            // Some ranges of rows have only nulls.
            let null = nulls > 0 && (draws.one_in(nulls) || row / 60 == 3);
            let value = column.value((row / 25) as i64, draws);
            (!null).then_some(value)
        });
        let values = values.collect();
        (column, values)
    };
    COLUMNS.into_iter().map(|name| column(name, draws)).collect()
}

/// Returns a condition, and for each row whether it is true, false or unknown.
fn condition(table: &Table, depth: u64, draws: &mut Draws) -> (String, Vec<Option<bool>>) {
    let kleene_and = |a: Option<bool>, b: Option<bool>| match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    };
    if depth > 0 && !draws.one_in(3) {
        let (left, a) = condition(table, depth - 1, draws);
        if draws.one_in(4) {
            return (format!("not ({left})"), a.into_iter().map(|truth| truth.map(|truth| !truth)).collect());
        }
        let (right, b) = condition(table, depth - 1, draws);
        let pairs = a.into_iter().zip(b);
        return match draws.one_in(2) {
            true => (format!("({left}) and ({right})"), pairs.map(|(a, b)| kleene_and(a, b)).collect()),
            // De Morgan.
            false => {
                let not = |truth: Option<bool>| truth.map(|truth| !truth);
                (
                    format!("({left}) or ({right})"),
                    pairs.map(|(a, b)| not(kleene_and(not(a), not(b)))).collect(),
                )
            }
        };
    }
    let (column, values) = &table[draws.below(table.len() as u64) as usize];
    let name = column.name();
    let any = column.value(draws.below(40) as i64, draws);
    let literal = column.literal(&any);
    let each = |test: &dyn Fn(&Value) -> bool| values.iter().map(|value| value.as_ref().map(test)).collect();
    match draws.below(10) {
        0 => (format!("{name} is null"), values.iter().map(|value| Some(value.is_none())).collect()),
        1 => (format!("{name} is not null"), values.iter().map(|value| Some(value.is_some())).collect()),
        2 => {
            let other = column.value(draws.below(40) as i64, draws);
            let text = format!("{name} in ({literal}, {})", column.literal(&other));
            (text, each(&|value| value.compared(&any).is_eq() || value.compared(&other).is_eq()))
        }
        3 => {
            let other = column.value(draws.below(40) as i64, draws);
            let text = format!("{name} not between {literal} and {}", column.literal(&other));
            (text, each(&|value| value.compared(&any).is_lt() || value.compared(&other).is_gt()))
        }
        4 if matches!(column, Column::Text | Column::Names) => {
            let Value::Text(text) = &any else { unreachable!("text columns contain text") };
            let start: String = text.chars().take(9).collect();
            let truth = each(&|value| matches!(value, Value::Text(text) if text.starts_with(&start)));
            (format!("{name} like '{start}%'"), truth)
        }
        operator => {
            type Test = fn(Ordering) -> bool;
            let all: [(&str, Test); 6] = [
                ("=", Ordering::is_eq),
                ("<>", Ordering::is_ne),
                ("<", Ordering::is_lt),
                ("<=", Ordering::is_le),
                (">", Ordering::is_gt),
                (">=", Ordering::is_ge),
            ];
            let (operator, test) = all[operator as usize % all.len()];
            (format!("{name} {operator} {literal}"), each(&|value| test(value.compared(&any))))
        }
    }
}

/// Writes the table with a column `row` of row numbers, with random settings.
fn write(path: &Path, table: &Table, draws: &mut Draws) {
    let rows = table[0].1.len();
    let mut columns =
        vec![("row".to_owned(), Arc::new(Int64Array::from_iter_values(0..rows as i64)) as ArrayRef, false)];
    columns.extend(table.iter().map(|(column, values)| (column.name(), column.array(values), true)));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let statistics = [EnabledStatistics::None, EnabledStatistics::Chunk, EnabledStatistics::Page];
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(90))
        .set_data_page_row_count_limit(20)
        .set_write_batch_size(10)
        .set_dictionary_enabled(draws.one_in(2))
        .set_statistics_enabled(statistics[draws.below(3) as usize])
        .set_statistics_truncate_length(draws.one_in(2).then_some(4))
        .set_column_index_truncate_length(draws.one_in(2).then_some(4))
        .set_offset_index_disabled(draws.one_in(3))
        .set_writer_version(if draws.one_in(2) {
            WriterVersion::PARQUET_1_0
        } else {
            WriterVersion::PARQUET_2_0
        })
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn with_filtered<T>(files: &ParquetFiles, text: &str, look: impl FnOnce(&Filtered<'_>) -> T) -> T {
    let cancel = AtomicBool::new(false);
    let phase = Profile::new().phase("count");
    let filtered = files.filtered(text.parse().unwrap(), &Control::new(&cancel, &phase)).unwrap();
    let rows: u64 = files.files().iter().map(|file| file.rows).sum();
    assert_eq!(phase.rows(), rows, "the phase counts every row, read or not");
    look(&filtered)
}

/// Returns the values of column `row` in the units of a source, in the order of the plan or `backwards`.
fn rows_of(source: &dyn Source, unit_rows: u64, batch_rows: usize, backwards: bool) -> Vec<i64> {
    let mut units: Vec<_> = source.plan(unit_rows).into_iter().flatten().collect();
    if backwards {
        units.reverse();
    }
    let mut reader = source.reader(batch_rows);
    let mut runs = Vec::new();
    for unit in &units {
        reader.start(unit).unwrap();
        let mut rows = Vec::new();
        while let Some(batch) = reader.next_batch().unwrap() {
            rows.extend_from_slice(
                batch.column_by_name("row").unwrap().as_primitive::<arrow_array::types::Int64Type>().values(),
            );
        }
        assert_eq!(rows.len() as u64, unit.rows, "a unit has as many rows as planned");
        runs.push(rows);
    }
    if backwards {
        runs.reverse();
    }
    runs.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_condition_selects_the_rows_for_which_it_is_true(seed in any::<u64>()) {
        let mut draws = Draws(seed);
        let table = table(400, &mut draws);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table.parquet");
        write(&path, &table, &mut draws);
        let files = ParquetFiles::open(&[&path]).unwrap();
        for _ in 0..8 {
            let (text, truth) = condition(&table, 3, &mut draws);
            let expected: Vec<i64> = (0..).zip(&truth).filter(|(_, truth)| **truth == Some(true)).map(|(row, _)| row).collect();
            with_filtered(&files, &text, |filtered| {
                assert_eq!(filtered.rows(), expected.len() as u64, "{text}");
                let (unit_rows, batch_rows) = (1 + draws.below(60), 1 + draws.below(50) as usize);
                assert_eq!(rows_of(filtered, unit_rows, batch_rows, draws.one_in(2)), expected, "{text}");
            });
        }
    }
}

/// Writes row groups of 1000 rows in pages of 100. `n` and `text` count up; `twin` is null in odd rows.
fn counting(dir: &Path, rows: i64) -> PathBuf {
    let path = dir.join("counting.parquet");
    let columns = [
        ("n", Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef, false),
        ("row", Arc::new(Int64Array::from_iter_values(0..rows)), false),
        ("twin", Arc::new((0..rows).map(|n| (n % 2 == 0).then_some(n)).collect::<Int64Array>()), true),
        ("text", Arc::new(StringArray::from_iter_values((0..rows).map(|n| format!("{n:08}")))), false),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1000))
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(100)
        .set_dictionary_enabled(false)
        .build();
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), batch.schema(), Some(properties))
            .unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

#[test]
fn statistics_skip_row_groups_and_page_indexes_skip_pages() {
    let dir = tempfile::tempdir().unwrap();
    let files = ParquetFiles::open(&[counting(dir.path(), 5000)]).unwrap();
    with_filtered(&files, "n >= 950 and n < 3010", |filtered| {
        let pruned = filtered.pruned().unwrap();
        assert_eq!((pruned.row_groups, pruned.row_groups_pruned, pruned.row_groups_whole), (5, 1, 2));
        // The first and the fourth row group each need one page of ten.
        assert_eq!((pruned.pages, pruned.pages_pruned), (20, 18));
        assert_eq!(rows_of(filtered, 700, 64, false), (950..3010).collect::<Vec<_>>());
    });
    with_filtered(&files, "text like '00004%' or twin is null and n < 0", |filtered| {
        assert_eq!(filtered.pruned().unwrap().row_groups_pruned, 4);
        assert_eq!(filtered.rows(), 1000);
    });
}

#[test]
fn row_groups_that_statistics_exclude_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = counting(dir.path(), 3000);
    // Overwrites the pages of the first row group with bytes that no reader can decode.
    let mut bytes = std::fs::read(&path).unwrap();
    let footer = sawmill_footer::Footer::open(&path).unwrap();
    let chunks = footer.row_group(0).unwrap().columns();
    for chunk in chunks {
        let range = chunk.byte_range();
        bytes[range.start as usize..range.end as usize].fill(0xff);
    }
    std::fs::write(&path, bytes).unwrap();
    let files = ParquetFiles::open(&[&path]).unwrap();
    with_filtered(&files, "n >= 1500", |filtered| {
        assert_eq!(rows_of(filtered, 1000, 100, false), (1500..3000).collect::<Vec<_>>());
    });
    let cancel = AtomicBool::new(false);
    let phase = Profile::new().phase("count");
    let condition: Condition = "twin >= 100".parse().unwrap();
    let error = files.filtered(condition, &Control::new(&cancel, &phase)).err().unwrap().to_string();
    assert!(error.contains("the file is corrupt") && error.contains("row group 0"), "{error}");
}

/// The number in its row group of a row of a unit.
fn row_of(source: &dyn Source, unit: &Unit, row: u64) -> Option<u64> {
    source.rows_in_group(unit.key, &[unit.key.first_row + row]).unwrap().first().copied()
}

#[test]
fn rows_keep_their_numbers_in_the_row_group() {
    let dir = tempfile::tempdir().unwrap();
    let files = ParquetFiles::open(&[counting(dir.path(), 3000)]).unwrap();
    with_filtered(&files, "twin >= 1250", |filtered| {
        let units: Vec<_> = filtered.plan(100).into_iter().flatten().collect();
        // Even numbers from 1250 on: row group 1 starts with the one at its row 250.
        assert_eq!(row_of(filtered, &units[0], 0), Some(250));
        assert_eq!(row_of(filtered, &units[1], 7), Some(250 + 2 * 107));
    });
    with_filtered(&files, "n >= 1000", |filtered| {
        let units: Vec<_> = filtered.plan(100).into_iter().flatten().collect();
        assert_eq!(row_of(filtered, &units[3], 5), Some(305));
    });
}

#[test]
fn columns_that_are_not_loaded_can_be_in_a_condition() {
    let dir = tempfile::tempdir().unwrap();
    let files = ParquetFiles::open(&[counting(dir.path(), 2000)]).unwrap();
    let renamed = [("row".to_owned(), "n".to_owned())];
    let files = files.select(&["row".to_owned()], &renamed).unwrap();
    let cancel = AtomicBool::new(false);
    let phase = Profile::new().phase("count");
    let condition = "text >= '00001990' and n < 1995".parse().unwrap();
    let filtered = files.filtered(condition, &Control::new(&cancel, &phase)).unwrap();
    assert_eq!(filtered.schema().fields().len(), 1);
    assert_eq!(filtered.rows(), 5);
    assert_eq!(filtered.facts().mapping.condition, r#""text" >= '00001990' and "n" < 1995"#);
    assert_ne!(filtered.facts().mapping, files.facts().mapping);
}

#[test]
fn an_invalid_condition_is_rejected_and_the_error_lists_the_columns() {
    let dir = tempfile::tempdir().unwrap();
    let files = ParquetFiles::open(&[counting(dir.path(), 10)]).unwrap();
    let file = &files.files()[0].name;
    let missing = format!(
        "there is no column \"m\" - the condition \"m\" = 1, {file} - the columns are n, row, twin, text"
    );
    let cancel = AtomicBool::new(false);
    let phase = Profile::new().phase("count");
    for (text, what) in [
        ("m = 1", missing.as_str()),
        ("n = 'x'", "column \"n\" is Int64: expected a number, found 'x'"),
        ("text = 5", "column \"text\" is Utf8View: expected text in single quotes, found 5"),
        ("n like 'x'", "only text can be compared with a pattern"),
    ] {
        let condition: Condition = text.parse().unwrap();
        let error = files.filtered(condition, &Control::new(&cancel, &phase)).err().unwrap().to_string();
        assert!(error.contains(what) && error.contains(file), "{error}");
    }
    cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = files.filtered("n = 1".parse().unwrap(), &Control::new(&cancel, &phase)).err().unwrap();
    assert_eq!(error.kind(), sawmill_source::Kind::Cancelled);
}

#[test]
fn large_row_groups_are_filtered_window_by_window() {
    const ROWS: i64 = 2_500_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("one.parquet");
    let columns = [
        ("row", Arc::new(Int64Array::from_iter_values(0..ROWS)) as ArrayRef),
        // The first and the last window have rows that pass; the one between them does not.
        (
            "k",
            Arc::new(Int64Array::from_iter_values(
                (0..ROWS).map(|n| if n / 800_000 == 1 { 0 } else { n % 7 }),
            )),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(4_000_000)).build();
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), batch.schema(), Some(properties))
            .unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let files = ParquetFiles::open(&[path]).unwrap();
    assert_eq!(files.plan(u64::MAX).len(), 1, "one row group");
    let expected: Vec<i64> = (0..ROWS).filter(|n| n / 800_000 != 1 && n % 7 == 3).collect();
    with_filtered(&files, "k = 3", |filtered| {
        assert_eq!(rows_of(filtered, 100_000, 4096, false), expected);
        assert_eq!(rows_of(filtered, 100_000, 4096, true), expected);
        let last = filtered.plan(100_000)[0].last().copied().unwrap();
        let row = row_of(filtered, &last, last.rows - 1);
        assert_eq!(row, expected.last().map(|row| *row as u64));
    });
}
