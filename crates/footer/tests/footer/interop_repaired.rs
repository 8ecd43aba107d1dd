//! Fields that the `parquet` crate refuses or stumbles over, and the format's other readers accept: one wrong number
//! costs a fact about a column, never the file.

use arrow_schema::DataType;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::basic::ConvertedType;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use sawmill_footer::{Footer, Options};

use crate::equality::by_parquet;
use crate::handmade::{self, I32, I64, STRUCT};
use crate::thrift_writer::ThriftWriter;

/// Four columns; `odd` writes the fields of the third one's metadata that are not required.
fn footer(odd: impl Fn(&mut ThriftWriter)) -> Vec<u8> {
    handmade::footer(4, |writer, column| {
        handmade::chunk(writer, |writer| {
            if column == 2 {
                odd(writer);
            } else {
                writer.begin(12);
                writer.i64(3, column as i64);
                writer.stop();
            }
        });
    })
}

/// The metadata of the whole footer. Compares the third column with its projection, and the others with the same file
/// without the odd fields.
fn converted(odd: impl Fn(&mut ThriftWriter)) -> ParquetMetaData {
    let whole = Footer::decode(footer(odd), &Options::new()).unwrap();
    let metadata = whole.to_parquet_59(None).unwrap();
    let alone = whole.to_parquet_59(Some(&[2])).unwrap();
    assert_eq!(alone.row_group(0).column(0), metadata.row_group(0).column(2));
    let theirs = by_parquet(&footer(|_| {})).unwrap();
    for column in [0, 1, 3] {
        assert_eq!(metadata.row_group(0).column(column), theirs.row_group(0).column(column));
    }
    assert!(whole.unreadable_by_parquet_59().is_empty());
    metadata
}

fn third(metadata: &ParquetMetaData) -> &ColumnChunkMetaData {
    metadata.row_group(0).column(2)
}

#[test]
fn a_dictionary_offset_that_cannot_be_is_left_out() {
    for offset in [0, -1, i64::MIN, 4, 5] {
        let metadata = converted(|writer| writer.i64(11, offset));
        assert_eq!(third(&metadata).dictionary_page_offset(), None, "{offset}");
        assert_eq!(third(&metadata).byte_range(), (4, 100), "{offset}");
    }
}

#[test]
fn a_negative_null_count_costs_the_count_and_not_the_bounds() {
    let metadata = converted(|writer| {
        writer.begin(12);
        writer.i64(3, -1);
        writer.binary(5, &9_i64.to_le_bytes());
        writer.binary(6, &(-9_i64).to_le_bytes());
        writer.stop();
    });
    let statistics = third(&metadata).statistics().unwrap();
    assert_eq!(statistics.null_count_opt(), None);
    assert_eq!(statistics.max_bytes_opt(), Some(&9_i64.to_le_bytes()[..]));
    assert_eq!(statistics.min_bytes_opt(), Some(&(-9_i64).to_le_bytes()[..]));
}

#[test]
fn a_bound_of_another_length_than_its_type_costs_the_bound_and_not_the_count() {
    let metadata = converted(|writer| {
        writer.begin(12);
        writer.i64(3, 3);
        writer.binary(5, &[0; 3]);
        writer.binary(6, &[0; 8]);
        writer.stop();
    });
    let statistics = third(&metadata).statistics().unwrap();
    assert_eq!(statistics.null_count_opt(), Some(3));
    assert_eq!((statistics.max_bytes_opt(), statistics.min_bytes_opt()), (None, Some(&[0; 8][..])));
}

#[test]
fn lists_of_other_types_and_negative_sizes_cost_only_themselves() {
    let metadata = converted(|writer| {
        writer.list(13, I32, 1);
        writer.integer(0);
        writer.i64(14, 200);
        writer.i32(15, -7);
        writer.begin(16);
        writer.i64(1, -5);
        writer.list(2, I64, 2);
        writer.integer(4);
        writer.integer(6);
        writer.stop();
    });
    let chunk = third(&metadata);
    assert_eq!(chunk.page_encoding_stats(), None);
    assert_eq!(chunk.bloom_filter_offset(), Some(200));
    assert_eq!(chunk.bloom_filter_length(), None);
    assert_eq!(chunk.unencoded_byte_array_data_bytes(), None);
    assert_eq!(chunk.repetition_level_histogram().map(|levels| levels.values()), Some(&[4, 6][..]));
}

#[test]
fn a_chunk_without_a_file_offset_is_converted() {
    let bytes = handmade::footer(2, |writer, column| {
        writer.begin_element();
        if column == 0 {
            writer.i64(2, 0);
        }
        writer.begin(3);
        handmade::required(writer, &format!("c{column}"), 200, 4);
        writer.stop();
        writer.stop();
    });
    assert!(by_parquet(&bytes).is_err(), "the crate requires it");
    let metadata = Footer::decode(bytes, &Options::new()).unwrap().to_parquet_59(None).unwrap();
    assert_eq!(metadata.row_group(0).column(1).byte_range(), (4, 100));
}

/// A leaf whose element `odd` writes, between two others.
fn of_element(odd: impl Fn(&mut ThriftWriter)) -> Footer {
    let bytes = handmade::footer_of(|writer| {
        writer.list(2, STRUCT, 4);
        writer.begin_element();
        writer.binary(4, b"root");
        writer.i32(5, 3);
        writer.stop();
        for column in 0..3 {
            writer.begin_element();
            if column == 1 {
                odd(writer);
            } else {
                writer.i32(1, 2);
                writer.i32(3, 0);
                writer.binary(4, format!("c{column}").as_bytes());
            }
            writer.stop();
        }
    });
    Footer::decode(bytes, &Options::new()).unwrap()
}

#[test]
fn a_leaf_without_a_repetition_is_required() {
    let footer = of_element(|writer| {
        writer.i32(1, 1);
        writer.binary(4, b"c1");
    });
    let metadata = footer.to_parquet_59(None).unwrap();
    let column = metadata.file_metadata().schema_descr().column(1);
    assert_eq!((column.name(), column.max_def_level()), ("c1", 0));
}

fn decimal(writer: &mut ThriftWriter, scale: Option<i32>, precision: impl Into<Option<i32>>) {
    writer.i32(1, 2);
    writer.i32(3, 1);
    writer.binary(4, b"c1");
    writer.i32(6, 5);
    if let Some(scale) = scale {
        writer.i32(7, scale);
    }
    if let Some(precision) = precision.into() {
        writer.i32(8, precision);
    }
}

#[test]
fn a_decimal_without_a_scale_has_the_scale_0() {
    let footer = of_element(|writer| decimal(writer, None, 12));
    let metadata = footer.to_parquet_59(None).unwrap();
    let column = metadata.file_metadata().schema_descr().column(1);
    assert_eq!((column.type_precision(), column.type_scale()), (12, 0));
}

/// A leaf of this physical type with a converted type and maybe the struct of a logical type.
fn annotated(physical: i32, converted: i32, logical: fn(&mut ThriftWriter)) -> Footer {
    of_element(|writer| {
        writer.i32(1, physical);
        writer.i32(3, 1);
        writer.binary(4, b"c1");
        writer.i32(6, converted);
        logical(writer);
    })
}

#[test]
fn a_logical_type_comes_before_a_converted_type_that_is_unknown_or_contradicts_it() {
    let millis = |writer: &mut ThriftWriter| {
        writer.begin(10);
        writer.begin(8);
        writer.bool(1, false);
        writer.begin(2);
        writer.begin(1);
        (0..4).for_each(|_| writer.stop());
    };
    type Logical = fn(&mut ThriftWriter);
    let text: Logical = |writer| {
        writer.begin(10);
        writer.begin(1);
        (0..2).for_each(|_| writer.stop());
    };
    let of_the_future: Logical = |writer| {
        writer.begin(10);
        writer.begin(40);
        (0..2).for_each(|_| writer.stop());
    };
    for (physical, converted, logical, expected, finding) in [
        (
            2,
            10,
            millis as Logical,
            ConvertedType::TIMESTAMP_MILLIS,
            "the converted type of TIMESTAMP(MILLIS,false)",
        ),
        (6, 5, text, ConvertedType::UTF8, "the converted type of STRING"),
        (6, 99, text, ConvertedType::UTF8, "a converted type of the format"),
        // Old writers called a column of nulls that.
        (6, 24, |_| {}, ConvertedType::NONE, "a converted type of the format"),
        (6, 0, of_the_future, ConvertedType::NONE, ""),
        (1, 6, of_the_future, ConvertedType::NONE, ""),
        (2, 10, of_the_future, ConvertedType::NONE, ""),
    ] {
        let footer = annotated(physical, converted, logical);
        let metadata = footer.to_parquet_59(None).unwrap();
        assert!(footer.unreadable_by_parquet_59().is_empty(), "{converted}");
        let schema = metadata.file_metadata().schema_descr_ptr();
        assert_eq!(schema.column(1).converted_type(), expected, "{converted}");
        let arrow = parquet_to_arrow_schema(&schema, None).unwrap();
        assert_eq!(arrow.fields().len(), 3, "{arrow}");
        if finding.is_empty() {
            assert_eq!(findings(&footer), [""; 0]);
        } else {
            assert_found(&findings(&footer), &format!("expected {finding} for `c1`, found "));
        }
    }
}

#[test]
fn a_list_is_one_by_its_logical_type_whatever_its_converted_type_is() {
    for (logical, converted) in [(3, 4), (3, 1), (3, 99), (3, 3)] {
        let bytes = handmade::footer_of(|writer| {
            let group = |writer: &mut ThriftWriter, name: &str, repetition| {
                writer.begin_element();
                writer.i32(3, repetition);
                writer.binary(4, name.as_bytes());
                writer.i32(5, 1);
            };
            writer.list(2, STRUCT, 4);
            group(writer, "root", 0);
            writer.stop();
            group(writer, "items", 1);
            writer.i32(6, converted);
            writer.begin(10);
            writer.begin(logical);
            (0..3).for_each(|_| writer.stop());
            group(writer, "list", 2);
            writer.stop();
            writer.begin_element();
            writer.i32(1, 2);
            writer.i32(3, 1);
            writer.binary(4, b"element");
            writer.stop();
        });
        let metadata = Footer::decode(bytes, &Options::new()).unwrap().to_parquet_59(None).unwrap();
        let arrow = parquet_to_arrow_schema(metadata.file_metadata().schema_descr(), None).unwrap();
        assert!(matches!(arrow.field(0).data_type(), DataType::List(_)), "{converted}: {arrow}");
    }
}

#[test]
fn columns_that_cannot_be_read_are_left_out_and_named_with_what_is_wrong() {
    let footer = of_element(|writer| decimal(writer, Some(2), 77));
    let metadata = footer.to_parquet_59(None).unwrap();
    assert_eq!(metadata.file_metadata().schema_descr().num_columns(), 2);
    let [(leaf, error)] = footer.unreadable_by_parquet_59().try_into().unwrap();
    assert_eq!(leaf, 1);
    assert!(error.what().contains("`c1`") && error.what().contains("precision"), "{error}");
    let error = footer.to_parquet_59(Some(&[0, 1])).unwrap_err();
    assert!(error.what().contains("`c1`"), "{error}");
}

fn findings(footer: &Footer) -> Vec<String> {
    let mut found = Vec::new();
    sawmill_inspect::check(footer, |finding| found.push(finding.to_string()));
    found
}

fn assert_found(found: &[String], expected: &str) {
    assert!(found.iter().any(|one| one.starts_with(expected)), "{expected}: {found:?}");
}

#[test]
fn the_check_finds_impossible_digits_lengths_and_a_missing_repetition() {
    let without = findings(&of_element(|writer| decimal(writer, Some(2), None::<i32>)));
    assert_found(&without, "expected a precision of 1 to 18, found none of the decimal `c1`");
    for (scale, precision, expected) in [
        (Some(2), 0, "expected a precision of 1 to 18, found 0 of the decimal `c1` - schema[2].precision"),
        (Some(2), 19, "expected a precision of 1 to 18, found 19 of the decimal `c1` - schema[2].precision"),
        (Some(-1), 9, "expected a scale of 0 to 9, found -1 of the decimal `c1` - schema[2].scale"),
        (Some(10), 9, "expected a scale of 0 to 9, found 10 of the decimal `c1` - schema[2].scale"),
    ] {
        assert_found(&findings(&of_element(|writer| decimal(writer, scale, precision))), expected);
    }
    assert_eq!(findings(&of_element(|writer| decimal(writer, None, 18))), [""; 0]);
    let footer = of_element(|writer| {
        writer.i32(1, 7);
        writer.i32(2, -3);
        writer.binary(4, b"c1");
    });
    let found = findings(&footer);
    assert_found(
        &found,
        "expected a positive length of the values of `c1`, found -3 - schema[2].type_length",
    );
    assert_found(
        &found,
        "expected a repetition of the format for `c1`, found none - schema[2].repetition_type",
    );
}

#[test]
fn the_check_finds_missing_fields_that_the_decoder_does_without() {
    let bytes = handmade::footer(1, |writer, _| {
        writer.begin_element();
        writer.begin(3);
        writer.i32(1, 2);
        writer.list(2, I32, 0);
        writer.i32(4, 6);
        for (field, value) in [(5, 10), (6, 200), (7, 100), (9, 4), (10, -8)] {
            writer.i64(field, value);
        }
        writer.stop();
        writer.stop();
    });
    let found = findings(&Footer::decode(bytes, &Options::new()).unwrap());
    let chunk = "row_groups[0].columns[0]";
    assert_found(
        &found,
        &format!("expected the required field `file_offset`, found none - {chunk}.file_offset"),
    );
    let path = format!("{chunk}.meta_data.path_in_schema");
    assert_found(&found, &format!("expected the required field `path_in_schema`, found none - {path}"));
    let index = format!("{chunk}.meta_data.index_page_offset");
    assert_found(&found, &format!("expected an index page within the file, found one at -8 - {index}"));
}

#[test]
fn the_check_finds_a_data_page_behind_the_chunk_of_its_dictionary() {
    let bytes = |data| {
        handmade::footer(1, |writer, _| {
            writer.begin_element();
            writer.i64(2, 0);
            writer.begin(3);
            writer.i32(1, 2);
            writer.list(2, I32, 0);
            writer.list(3, 8, 0);
            writer.i32(4, 0);
            for (field, value) in [(5, 10), (6, 200), (7, 100), (9, data), (11, 4)] {
                writer.i64(field, value);
            }
            writer.stop();
            writer.stop();
        })
    };
    let found = |data| findings(&Footer::decode(bytes(data), &Options::new()).unwrap());
    let expected = "expected a data page within bytes 4..104, found one at 105";
    assert_found(&found(105), expected);
    assert!(!found(104).iter().any(|one| one.contains("data page")), "{:?}", found(104));
}
