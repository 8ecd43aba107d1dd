//! Compares the encoder with the simplest one possible, which appends one value after the other to one
//! vector.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringDictionaryBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date32Array, DictionaryArray, FixedSizeBinaryArray,
    Float64Array, Int16Array, Int32Array, Int64Array, LargeBinaryArray, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema};

use bytes::Bytes;

use crate::rows::buffers::Buffers;
use crate::rows::encoder::*;
use crate::rows::observer::{EncodedRows, RowObserver};
use crate::types::column_type::{Attribute, ColumnType, Composite, Part};
use crate::types::pg_type::PgType;
use crate::types::value_options::ValueOptions;

/// Returns the bytes of a value on the wire.
fn value(array: &ArrayRef, row: usize) -> Vec<u8> {
    match array.data_type() {
        DataType::Boolean => vec![u8::from(array.as_boolean().value(row))],
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).to_be_bytes().to_vec(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_be_bytes().to_vec(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_be_bytes().to_vec(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_be_bytes().to_vec(),
        DataType::Date32 => (array.as_primitive::<Date32Type>().value(row) - 10_957).to_be_bytes().to_vec(),
        DataType::Timestamp(..) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            (micros - 946_684_800_000_000).to_be_bytes().to_vec()
        }
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::Utf8View => array.as_string_view().value(row).into(),
        DataType::LargeBinary => array.as_binary::<i64>().value(row).into(),
        DataType::BinaryView => array.as_binary_view().value(row).into(),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row).into(),
        DataType::Dictionary(..) => {
            let dictionary = array.as_dictionary::<Int16Type>();
            value(dictionary.values(), dictionary.keys().value(row) as usize)
        }
        other => unreachable!("{other} is not among the columns"),
    }
}

fn one_by_one(batch: &RecordBatch) -> Vec<Vec<u8>> {
    let row = |row: usize| {
        let mut bytes = (batch.num_columns() as u16).to_be_bytes().to_vec();
        for array in batch.columns() {
            if array.is_null(row) {
                bytes.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            }
            let value = value(array, row);
            bytes.extend_from_slice(&(value.len() as u32).to_be_bytes());
            bytes.extend_from_slice(&value);
        }
        bytes
    };
    (0..batch.num_rows()).map(row).collect()
}

/// An observer that records its rows.
struct Seen {
    rows: Vec<Vec<u8>>,
    non_null: Vec<usize>,
}

impl RowObserver for Seen {
    fn rows(&mut self, rows: &EncodedRows<'_>) {
        self.rows.extend(rows.iter().map(<[u8]>::to_vec));
        for (count, values) in self.non_null.iter_mut().zip(rows.non_null()) {
            *count += values;
        }
    }
}

/// Generates random columns; `nulls` percent of the values are NULL.
struct Draw {
    state: u64,
    rows: usize,
    nulls: u64,
}

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % limit
    }

    fn column<T>(&mut self, mut value: impl FnMut(&mut Self) -> T) -> Vec<Option<T>> {
        let rows = 0..self.rows;
        rows.map(|_| (self.below(100) >= self.nulls).then(|| value(self))).collect()
    }

    fn text(&mut self) -> String {
        let length = self.below(40);
        (0..length).map(|_| char::from(b'a' + self.below(26) as u8)).collect()
    }

    fn array(&mut self, kind: u64) -> ArrayRef {
        match kind {
            0 => Arc::new(BooleanArray::from(self.column(|draw| draw.below(2) == 0))),
            1 => Arc::new(Int16Array::from(self.column(|draw| draw.below(65_536) as u16 as i16))),
            2 => Arc::new(Int32Array::from(self.column(|draw| draw.below(1 << 31) as i32))),
            3 => Arc::new(Int64Array::from(self.column(|draw| draw.below(1 << 31) as i64 - (1 << 30)))),
            4 => Arc::new(Float64Array::from(self.column(|draw| draw.below(1 << 31) as f64 / 7.0))),
            5 => Arc::new(Date32Array::from(self.column(|draw| draw.below(40_000) as i32))),
            6 => Arc::new(TimestampMicrosecondArray::from(
                self.column(|draw| draw.below(1 << 31) as i64 * 999),
            )),
            7 => Arc::new(StringArray::from(self.column(Self::text))),
            8 => {
                let mut views = StringViewBuilder::new();
                self.column(Self::text).iter().for_each(|text| views.append_option(text.as_deref()));
                Arc::new(views.finish())
            }
            9 => {
                let mut views = BinaryViewBuilder::new();
                // Binary values may contain zeros.
                let bytes = |draw: &mut Self| vec![0; draw.below(30) as usize];
                self.column(bytes).iter().for_each(|bytes| views.append_option(bytes.as_deref()));
                Arc::new(views.finish())
            }
            10 => {
                let bytes = self.column(|draw| draw.text().into_bytes());
                Arc::new(LargeBinaryArray::from_iter(bytes))
            }
            11 => {
                let bytes = self.column(|draw| [draw.below(256) as u8; 5]);
                Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), 5).unwrap())
            }
            _ => {
                let mut words = StringDictionaryBuilder::<Int16Type>::new();
                let text =
                    self.column(|draw| "abcdefghijklmnopqrstuvwxyz"[draw.below(26) as usize..].to_owned());
                text.iter().for_each(|word| words.append_option(word.as_deref()));
                Arc::new(words.finish())
            }
        }
    }
}

#[test]
fn rows_equal_those_of_the_simplest_encoder() {
    for seed in 0..150u64 {
        let mut draw = Draw { state: seed, rows: 1, nulls: [0, 5, 50, 100][seed as usize % 4] };
        draw.rows = 1 + draw.below(700) as usize;
        let arrays: Vec<ArrayRef> = (0..1 + draw.below(12))
            .map(|_| {
                let kind = draw.below(13);
                draw.array(kind)
            })
            .collect();
        let named = arrays.iter().enumerate();
        let fields: Vec<Field> =
            named.map(|(i, array)| Field::new(format!("c{i}"), array.data_type().clone(), true)).collect();
        let columns: Vec<Column> = fields
            .iter()
            .enumerate()
            .map(|(i, field)| {
                Column::new(
                    field,
                    i,
                    ColumnType::Plain(PgType::natural(field).unwrap()),
                    &ValueOptions::default(),
                )
                .unwrap()
            })
            .collect();
        let whole = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
        // A batch may start in the middle of its arrays.
        let skipped = draw.below(whole.num_rows() as u64) as usize;
        let batch = whole.slice(skipped, whole.num_rows() - skipped);

        let expected = one_by_one(&batch);
        let mut encoder = CopyEncoder::new(Arc::new(columns), Buffers::new(4096));
        let (mut bytes, mut rows) = (Vec::new(), 0);
        let mut emit = |block: Bytes, of_block: u64| -> Result<(), ()> {
            bytes.extend_from_slice(&block);
            rows += of_block;
            Ok(())
        };
        let mut seen = Seen { rows: Vec::new(), non_null: vec![0; batch.num_columns()] };
        let encoded = encoder.observed_batch(&batch, &mut seen, &mut emit);
        assert!(encoded.is_ok() && encoder.flush(&mut emit).is_ok());
        assert!(bytes == expected.concat(), "the bytes differ with seed {seed}");
        assert_eq!(rows, batch.num_rows() as u64);
        assert!(seen.rows == expected, "the rows seen differ with seed {seed}");
        let non_null: Vec<usize> =
            batch.columns().iter().map(|array| array.len() - array.null_count()).collect();
        assert_eq!(seen.non_null, non_null);
    }
}

#[test]
fn an_unencodable_dictionary_entry_is_rejected_in_the_batch_whose_row_refers_to_it() {
    let entries: ArrayRef = Arc::new(StringArray::from(vec!["fits", "does\0not"]));
    let batch = |keys: Vec<u32>| {
        let array = DictionaryArray::<UInt32Type>::new(keys.into(), Arc::clone(&entries));
        RecordBatch::try_from_iter([("words", Arc::new(array) as ArrayRef)]).unwrap()
    };
    let first = batch(vec![0, 0]);
    let field = first.schema_ref().field(0).clone();
    let column_type = ColumnType::Plain(PgType::natural(&field).unwrap());
    let column = Column::new(&field, 0, column_type, &ValueOptions::default()).unwrap();
    let mut encoder = CopyEncoder::new(Arc::new(vec![column]), Buffers::new(4096));
    let mut emit = |_: Bytes, _: u64| -> Result<(), ()> { Ok(()) };
    assert!(encoder.batch(&first, &mut emit).is_ok());
    match encoder.batch(&batch(vec![0, 0, 1]), &mut emit) {
        Err(Stop::Refused(refused)) => assert_eq!((refused.row, refused.column.as_str()), (2, "words")),
        _ => panic!("the second batch has a row with 0x00"),
    }
}

#[test]
fn the_error_for_a_row_beyond_the_limit_names_the_column_of_its_longest_value() {
    // Zeroed memory that is never read takes no physical memory.
    let gigabyte = arrow_buffer::Buffer::from(vec![0u8; 1 << 30]);
    let view: u128 = 1 << 30;
    let long = BinaryViewArray::try_new(vec![view].into(), vec![gigabyte], None).unwrap();
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(vec![7])) as ArrayRef),
        ("word", Arc::new(StringArray::from(vec!["short"])) as ArrayRef),
        ("blob", Arc::new(long) as ArrayRef),
    ])
    .unwrap();
    let columns = batch.schema_ref().fields().iter().enumerate().map(|(i, field)| {
        let column_type = ColumnType::Plain(PgType::natural(field).unwrap());
        Column::new(field, i, column_type, &ValueOptions::default()).unwrap()
    });
    let mut encoder = CopyEncoder::new(Arc::new(columns.collect()), Buffers::new(4096));
    let mut emit = |_: Bytes, _: u64| -> Result<(), ()> { Ok(()) };
    match encoder.batch(&batch, &mut emit) {
        Err(Stop::Refused(refused)) => {
            assert_eq!((refused.row, refused.column.as_str()), (0, "blob"));
            assert!(refused.what.contains("1 GiB"), "{}", refused.what);
        }
        _ => panic!("the row is too long"),
    }
}

#[test]
fn a_column_of_nothing_but_null_is_null_in_a_column_of_any_type() {
    let batch = RecordBatch::try_from_iter_with_nullable([(
        "c",
        Arc::new(arrow_array::NullArray::new(2)) as ArrayRef,
        true,
    )]);
    let batch = batch.unwrap();
    let part = || Part { column_type: ColumnType::Plain(PgType::Int4), oid: 23 };
    let attributes = vec![Attribute { name: "x".to_owned(), part: part() }];
    let composite = Composite { name: "point".to_owned(), attributes };
    for column_type in [
        ColumnType::Plain(PgType::Jsonb),
        ColumnType::Enumeration("mood".to_owned()),
        ColumnType::Array(Arc::new(part())),
        ColumnType::Composite(Arc::new(composite)),
    ] {
        let column = Column::new(batch.schema_ref().field(0), 0, column_type, &ValueOptions::default());
        let mut encoder = CopyEncoder::new(Arc::new(vec![column.unwrap()]), Buffers::new(4096));
        let mut rows = Vec::new();
        let mut emit = |block: Bytes, _: u64| -> Result<(), std::io::Error> {
            rows.extend_from_slice(&block);
            Ok(())
        };
        encoder.batch(&batch, &mut emit).unwrap();
        encoder.flush(&mut emit).unwrap();
        assert_eq!(rows, [0, 1, 255, 255, 255, 255, 0, 1, 255, 255, 255, 255]);
    }
}
