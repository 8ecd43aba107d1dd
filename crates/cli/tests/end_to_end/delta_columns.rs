//! Columns and rows of Delta tables: types, nested moments, mapped names and deleted rows.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Decimal128Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray, TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::properties::WriterProperties;

use crate::delta::{deltalake, url};
use crate::harness::sawmill;
use crate::load::Bench;

/// Writes a table of one file, whose Parquet file has these columns; returns its name as an input.
fn table(
    folder: &Path,
    schema: &str,
    configuration: &str,
    add: &str,
    columns: Vec<(Field, ArrayRef)>,
    properties: Option<WriterProperties>,
) -> String {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
    fs::create_dir_all(folder.join("_delta_log")).unwrap();
    let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true);
    let options = options.with_properties(properties.unwrap_or_default());
    let file = fs::File::create(folder.join("p.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let size = folder.join("p.parquet").metadata().unwrap().len();
    let schema = serde_json::to_string(&format!(r#"{{"type":"struct","fields":[{schema}]}}"#)).unwrap();
    let log = format!(
        r#"{{"protocol":{{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["columnMapping","deletionVectors"],"writerFeatures":["columnMapping","deletionVectors"]}}}}
{{"metaData":{{"id":"x","format":{{"provider":"parquet","options":{{}}}},"schemaString":{schema},"partitionColumns":{},"configuration":{{{configuration}}},"createdTime":1}}}}
{{"add":{{"path":"p.parquet","size":{size},"modificationTime":1,"dataChange":true,{}}}}}"#,
        if add.contains("col-3") { r#"["part"]"# } else { "[]" },
        if add.is_empty() { r#""partitionValues":{}"# } else { add },
    );
    fs::write(folder.join("_delta_log/00000000000000000000.json"), log).unwrap();
    format!("delta:{}", folder.display())
}

/// The rows of an input as lines of JSON.
fn rows(input: &str, more: &[&str]) -> Vec<String> {
    let args = [&["convert", input, "--as", "ndjson", "--out", "-"], more].concat();
    sawmill(args).ok().out.lines().map(str::to_owned).collect()
}

fn column(name: &str, array: impl Array + 'static) -> (Field, ArrayRef) {
    (Field::new(name, array.data_type().clone(), true), Arc::new(array))
}

#[test]
fn timestamps_are_moments_if_the_table_says_so_whatever_the_files_leave_out() {
    let noon = 1_704_110_400_000_i64;
    let simple = r#"{"name":"at","type":"timestamp","nullable":true,"metadata":{}}"#;
    let in_struct = format!(
        r#"{{"name":"at","type":{{"type":"struct","fields":[{simple}]}},"nullable":true,"metadata":{{}}}}"#
    );
    let in_list = r#"{"name":"at","type":{"type":"array","elementType":"timestamp","containsNull":true},"nullable":true,"metadata":{}}"#;
    let nested = |of: ArrayRef, name: &str| -> ArrayRef {
        let field = Arc::new(Field::new(name, of.data_type().clone(), true));
        match name {
            "at" => Arc::new(StructArray::from(vec![(field, of)])),
            _ => Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([1]), of, None)),
        }
    };
    for (array, text) in [
        (Arc::new(TimestampMicrosecondArray::from(vec![noon * 1000])) as ArrayRef, "2024-01-01T12:00:00Z"),
        (Arc::new(TimestampMillisecondArray::from(vec![noon + 5])) as ArrayRef, "2024-01-01T12:00:00.005Z"),
        (
            Arc::new(TimestampMillisecondArray::from(vec![noon + 5]).with_timezone("UTC")) as ArrayRef,
            "2024-01-01T12:00:00.005Z",
        ),
        (
            Arc::new(TimestampNanosecondArray::from(vec![noon * 1_000_000 + 1])) as ArrayRef,
            "2024-01-01T12:00:00.000000001Z",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let column = |array: ArrayRef| vec![(Field::new("at", array.data_type().clone(), true), array)];
        for (schema, array, row) in [
            (simple, Arc::clone(&array), format!(r#"{{"at":"{text}"}}"#)),
            (in_struct.as_str(), nested(Arc::clone(&array), "at"), format!(r#"{{"at":{{"at":"{text}"}}}}"#)),
            (in_list, nested(Arc::clone(&array), "element"), format!(r#"{{"at":["{text}"]}}"#)),
        ] {
            let input = table(folder.path(), schema, "", "", column(array), None);
            assert_eq!(rows(&input, &[]), [row]);
        }
        let input = table(folder.path(), simple, "", "", column(array), None);
        assert_eq!(rows(&input, &["--where", "at >= '2024-01-01T12:00:00Z'"]).len(), 1);
        assert_eq!(rows(&input, &["--where", "at > '2024-01-01T12:00:01Z'"]).len(), 0);
    }
}

#[test]
fn int96_is_a_moment_in_structs_and_lists_too() {
    let script = r#"
import sys, datetime as d, pyarrow as pa, pyarrow.parquet as pq
at = pa.array([d.datetime(2024, 1, 1, 12)], pa.timestamp("us"))
table = pa.table({"s": pa.StructArray.from_arrays([at], ["at"]), "l": pa.ListArray.from_arrays([0, 1], at)})
pq.write_table(table, sys.argv[1] + "/p.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
"#;
    let folder = tempfile::tempdir().unwrap();
    let schema = r#"{"name":"s","type":{"type":"struct","fields":[{"name":"at","type":"timestamp","nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}},{"name":"l","type":{"type":"array","elementType":"timestamp","containsNull":true},"nullable":true,"metadata":{}}"#;
    let input = table(folder.path(), schema, "", "", vec![column("x", Int64Array::from(vec![1]))], None);
    if deltalake(script, &[folder.path()]).is_none() {
        return;
    }
    let log = folder.path().join("_delta_log/00000000000000000000.json");
    let text = fs::read_to_string(&log).unwrap();
    let (before, after) = text.split_once(r#""size":"#).unwrap();
    let (_, after) = after.split_once(',').unwrap();
    let size = folder.path().join("p.parquet").metadata().unwrap().len();
    fs::write(&log, format!(r#"{before}"size":{size},{after}"#)).unwrap();
    assert_eq!(rows(&input, &[]), [r#"{"s":{"at":"2024-01-01T12:00:00Z"},"l":["2024-01-01T12:00:00Z"]}"#]);
}

#[test]
fn columns_that_a_table_maps_are_found_by_their_names_or_numbers_in_the_files() {
    let ids =
        |field: Field, id: i32| field.with_metadata([("PARQUET:field_id".to_owned(), id.to_string())].into());
    let mapped = |name: &str, id: i32, of: &str| {
        format!(
            r#"{{"name":"{name}","type":{of},"nullable":true,"metadata":{{"delta.columnMapping.id":{id},"delta.columnMapping.physicalName":"col-{id}"}}}}"#
        )
    };
    let inner = mapped("b", 6, r#""string""#);
    let of_struct = format!(r#"{{"type":"struct","fields":[{inner}]}}"#);
    let of_list = format!(r#"{{"type":"array","elementType":{of_struct},"containsNull":true}}"#);
    let schema = [
        // The file has another column of this name, which the table has dropped.
        mapped("id", 1, r#""long""#),
        mapped("s", 4, &of_struct),
        mapped("l", 5, &of_list),
        mapped("part", 3, r#""integer""#),
        mapped("lacking", 9, r#""double""#),
    ]
    .join(",");
    for mode in ["name", "id"] {
        // By numbers, names mean nothing.
        let physical = |id: i32| if mode == "name" { format!("col-{id}") } else { format!("n{}", 10 - id) };
        let b = Arc::new(ids(Field::new(physical(6), DataType::Utf8, true), 6));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
        let structs = StructArray::from(vec![(b, texts)]);
        let item = Arc::new(Field::new("element", structs.data_type().clone(), true));
        let lists =
            ListArray::new(item, OffsetBuffer::from_lengths([2, 0, 1]), Arc::new(structs.clone()), None);
        let columns = vec![
            column("id", Int64Array::from(vec![100, 200, 300])),
            column(&physical(5), lists),
            column(&physical(1), Int64Array::from(vec![1, 2, 3])),
            column(&physical(4), structs),
        ];
        let columns = columns.into_iter().zip([90, 5, 1, 4]);
        let columns = columns.map(|((field, array), id)| (ids(field, id), array)).collect();
        let folder = tempfile::tempdir().unwrap();
        let configuration = format!(r#""delta.columnMapping.mode":"{mode}""#);
        let add = r#""partitionValues":{"col-3":"7"}"#;
        let input = table(folder.path(), &schema, &configuration, add, columns, None);
        assert_eq!(
            rows(&input, &[]),
            [
                r#"{"id":1,"s":{"b":"x"},"l":[{"b":"x"},{"b":"y"}],"part":7}"#,
                r#"{"id":2,"s":{"b":"y"},"l":[],"part":7}"#,
                r#"{"id":3,"s":{"b":"z"},"l":[{"b":"z"}],"part":7}"#,
            ]
        );
        // Statistics belong to this column, not to the other one of the same name.
        assert_eq!(rows(&input, &["--where", "id = 2", "--columns", "id"]), [r#"{"id":2}"#]);
        assert!(rows(&input, &["--where", "id >= 100"]).is_empty());
        assert_eq!(rows(&input, &["--where", "part = 7 and lacking is null", "--columns", "part"]).len(), 3);
    }
}

#[test]
fn rows_that_a_deletion_vector_names_are_not_read() {
    let many = WriterProperties::builder().set_max_row_group_row_count(Some(10)).build();
    let folder = tempfile::tempdir().unwrap();
    let schema = r#"{"name":"id","type":"long","nullable":true,"metadata":{}}"#;
    // Rows 3, 4, 7, 11, 18 and 29, as in the description of Delta's protocol.
    let vector = r#""partitionValues":{},"deletionVector":{"storageType":"i","pathOrInlineDv":"^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L","sizeInBytes":44,"cardinality":6}"#;
    let ids = || vec![column("id", Int64Array::from((0..40).collect::<Vec<_>>()))];
    let input = table(folder.path(), schema, "", vector, ids(), Some(many.clone()));
    let kept: Vec<i64> = (0..40).filter(|id| ![3, 4, 7, 11, 18, 29].contains(id)).collect();
    let lines = |ids: &[i64]| ids.iter().map(|id| format!(r#"{{"id":{id}}}"#)).collect::<Vec<_>>();
    assert_eq!(rows(&input, &[]), lines(&kept));
    assert_eq!(rows(&input, &["--where", "id between 2 and 8"]), lines(&[2, 5, 6, 8]));
    assert_eq!(rows(&input, &["--where", "id >= 0"]), lines(&kept));
    assert_eq!(rows(&input, &["--where", "id in (3, 29)"]), lines(&[]));
    assert_eq!(rows(&input, &["--rows", "4"]), lines(&kept[..4]));
    let bench = Bench::new();
    sawmill(bench.args("load", &url(&input), "c", &["--verify", "--unit-rows", "4"])).ok();
    assert_eq!(bench.count("select count(*) from c"), 34);
    assert_eq!(bench.count("select count(*) from c where id in (3, 4, 7, 11, 18, 29)"), 0);
    sawmill(bench.args("verify", &url(&input), "c", &[])).ok();
    let outside = vector.replace("^Bg9^0", "^Bg8^0");
    let input = table(folder.path(), schema, "", &outside, ids(), Some(many.clone()));
    let error = sawmill(["convert", &input, "--as", "ndjson", "--out", "-"]).fails(1);
    assert!(error.contains("deletion vector"), "{error}");
    let input = table(folder.path(), schema, "", vector, vec![column("id", Int64Array::from(vec![1]))], None);
    let error = sawmill(["convert", &input, "--as", "ndjson", "--out", "-"]).fails(1);
    assert!(error.contains("the table deletes row 30, and the file has 1"), "{error}");
}

#[test]
fn a_file_from_before_its_table_got_fields_and_wider_numbers_has_its_values_and_nulls() {
    let folder = tempfile::tempdir().unwrap();
    let simple =
        |name: &str, of: &str| format!(r#"{{"name":"{name}","type":{of},"nullable":true,"metadata":{{}}}}"#);
    let inner = format!(
        r#"{{"type":"struct","fields":[{},{},{}]}}"#,
        simple("new", r#""timestamp""#),
        simple("b", r#""string""#),
        simple("a", r#""long""#),
    );
    let list = format!(r#"{{"type":"array","elementType":{inner},"containsNull":true}}"#);
    let of_schema = [
        simple("n", r#""long""#),
        simple("d", r#""decimal(20,3)""#),
        simple("s", &inner),
        simple("l", &list),
        simple("added", &inner),
    ];
    let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let b: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
    let fields =
        |name: &str| vec![Field::new("a", DataType::Int64, true), Field::new(name, DataType::Utf8, true)];
    let inner = |name| StructArray::new(fields(name).into(), vec![Arc::clone(&a), Arc::clone(&b)], None);
    let listed = |name| {
        let item = Arc::new(Field::new("item", DataType::Struct(fields(name).into()), true));
        ListArray::new(item, OffsetBuffer::from_lengths([2, 0, 1]), Arc::new(inner(name)), None)
    };
    let decimal =
        Decimal128Array::from(vec![Some(150), None, Some(-1)]).with_precision_and_scale(9, 2).unwrap();
    let columns = |name| {
        vec![
            column("n", Int32Array::from(vec![Some(7), None, Some(-9)])),
            column("d", decimal.clone()),
            column("s", inner(name)),
            column("l", listed(name)),
        ]
    };
    let input = table(folder.path(), &of_schema.join(","), "", "", columns("b"), None);
    assert_eq!(
        rows(&input, &[]),
        [
            r#"{"n":7,"d":1.500,"s":{"b":"x","a":1},"l":[{"b":"x","a":1},{"b":"y"}]}"#,
            r#"{"s":{"b":"y"},"l":[]}"#,
            r#"{"n":-9,"d":-0.010,"s":{"b":"z","a":3},"l":[{"b":"z","a":3}]}"#,
        ]
    );
    assert_eq!(rows(&input, &["--where", "n > 6", "--columns", "n,d"]), [r#"{"n":7,"d":1.500}"#]);
    // A field or a column that is only written otherwise is not NULL.
    let case = tempfile::tempdir().unwrap();
    let input = table(case.path(), &simple("N", r#""long""#), "", "", columns("b"), None);
    let error = sawmill(["convert", &input, "--as", "ndjson", "--out", "-"]).fails(1);
    assert!(error.contains("column \"N\" is \"n\" in the file"), "{error}");
    let other = tempfile::tempdir().unwrap();
    let input = table(other.path(), &of_schema.join(","), "", "", columns("B"), None);
    let error = sawmill(["convert", &input, "--as", "ndjson", "--out", "-"]).fails(1);
    assert!(error.contains("column \"s\" is Struct(") && error.contains("in the table's schema"), "{error}");
}
