//! Delimited text as a source: the same records as another writer wrote, and errors with their places.

use std::sync::atomic::AtomicBool;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use proptest::prelude::*;
use sawmill_source::{
    ColumnType, Control, DelimitedFiles, DelimitedOptions, Dialect, Formats, Hive, Ragged, RecordForm,
    Result, Source, TextColumns,
};

/// Opens one file with these bytes, all columns as text, in chunks of this size.
pub(super) fn opened(bytes: &[u8], options: &DelimitedOptions, chunk: u64) -> Result<DelimitedFiles> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.csv");
    std::fs::write(&path, bytes).unwrap();
    let (cancel, profile) = (AtomicBool::new(false), sawmill_profile::Profile::new());
    let phase = profile.phase("open");
    let files = DelimitedFiles::open_in_chunks(&[&path], options, chunk, &Control::new(&cancel, &phase));
    // The files are read later, by their path.
    std::mem::forget(directory);
    files
}

pub(super) fn batches(files: &DelimitedFiles, unit_rows: u64, batch_rows: usize) -> Result<Vec<RecordBatch>> {
    let mut reader = files.reader(batch_rows);
    let mut batches = Vec::new();
    // In an order in which each unit needs a mark.
    let mut units = files.plan(unit_rows).concat();
    units.reverse();
    for unit in units {
        reader.start(&unit)?;
        let mut of_unit = Vec::new();
        while let Some(batch) = reader.next_batch()? {
            of_unit.push(batch);
        }
        of_unit.reverse();
        batches.extend(of_unit);
    }
    batches.reverse();
    Ok(batches)
}

/// The records as texts; NULL is `None`.
pub(super) fn texts(batches: &[RecordBatch]) -> Vec<Vec<Option<String>>> {
    let mut records = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let value = |column: &arrow_array::ArrayRef| {
                let strings = column.as_string_view();
                strings.is_valid(row).then(|| strings.value(row).to_owned())
            };
            records.push(batch.columns().iter().map(value).collect());
        }
    }
    records
}

pub(super) fn all_text(columns: usize) -> Vec<(String, ColumnType)> {
    (0..columns).map(|column| (format!("c{column}"), ColumnType::Text)).collect()
}

fn options_of(text: &str) -> (Vec<u8>, DelimitedOptions) {
    (text.as_bytes().to_vec(), DelimitedOptions::default())
}

pub(super) fn refused(text: &str, options: &DelimitedOptions) -> String {
    let read = opened(text.as_bytes(), options, 1 << 20).and_then(|files| batches(&files, 100, 100));
    read.expect_err("an error").to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_independent_writers_records_are_cut_the_same_in_chunks_of_any_size(
        records in prop::collection::vec(prop::collection::vec("[a,\"\n\r;é\\\\ ]{0,6}", 3), 0..40),
        crlf: bool,
        delimiter in prop::sample::select(vec![b',', b';', b'\t']),
        always: bool,
        chunk in 1_u64..80,
        unit_rows in 1_u64..9,
        batch_rows in 1_usize..9,
    ) {
        let mut writer = csv_core::WriterBuilder::new()
            .delimiter(delimiter)
            .terminator(if crlf { csv_core::Terminator::CRLF } else { csv_core::Terminator::Any(b'\n') })
            .quote_style(if always { csv_core::QuoteStyle::Always } else { csv_core::QuoteStyle::Necessary })
            .build();
        let mut bytes = Vec::new();
        write_record(&mut writer, &["c0", "c1", "c2"].map(str::to_owned), &mut bytes);
        records.iter().for_each(|record| write_record(&mut writer, record, &mut bytes));
        let dialect = Dialect { delimiter: Some(delimiter), nulls: Vec::new(), ..Dialect::default() };
        let options = DelimitedOptions { dialect, types: all_text(3), hive: Hive::Ignored, ..DelimitedOptions::default() };
        let files = opened(&bytes, &options, chunk).unwrap();
        prop_assert_eq!(files.rows(), records.len() as u64);
        let read: Vec<Vec<String>> = texts(&batches(&files, unit_rows, batch_rows).unwrap())
            .into_iter()
            .map(|record| record.into_iter().map(Option::unwrap).collect())
            .collect();
        prop_assert_eq!(read, records);
    }

    #[test]
    fn any_bytes_are_records_or_an_error_and_the_same_in_chunks_of_any_size(
        text in "[a,\"\n\r#]{0,60}",
        columns in 1_usize..3,
        chunk in 1_u64..20,
    ) {
        let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
        let dialect = Dialect { header: false, names, comment: Some(b'#'), nulls: Vec::new(), ..Dialect::default() };
        let options = DelimitedOptions { dialect, types: all_text(columns), hive: Hive::Ignored, ..DelimitedOptions::default() };
        let read = |chunk| {
            let files = opened(text.as_bytes(), &options, chunk).map_err(|error| error.what())?;
            let records = texts(&batches(&files, 3, 2).map_err(|error| error.what())?);
            prop_assert_eq_rows(files.rows(), records.len());
            Ok::<_, String>(records)
        };
        // Which of several errors is found first depends on where the marks are.
        prop_assert_eq!(read(chunk).ok(), read(1 << 20).ok());
    }
}

/// Writes a record by `csv-core`.
fn write_record(writer: &mut csv_core::Writer, record: &[String], bytes: &mut Vec<u8>) {
    let mut buffer = [0; 256];
    let mut taken = |written: usize, buffer: &[u8]| bytes.extend_from_slice(&buffer[..written]);
    for (place, field) in record.iter().enumerate() {
        if place > 0 {
            let (_, written) = writer.delimiter(&mut buffer);
            taken(written, &buffer);
        }
        let (_, _, written) = writer.field(field.as_bytes(), &mut buffer);
        taken(written, &buffer);
    }
    let (_, written) = writer.terminator(&mut buffer);
    taken(written, &buffer);
}

fn prop_assert_eq_rows(planned: u64, read: usize) {
    assert_eq!(planned, read as u64, "planned and read records");
}

#[test]
fn an_empty_field_is_null_and_a_quoted_empty_field_is_not() {
    let (text, mut options) = options_of("a,b\n,\"\"\nNA,\"NA\"\n");
    options.types = vec![("a".into(), ColumnType::Text), ("b".into(), ColumnType::Text)];
    let read =
        |options: &DelimitedOptions| texts(&batches(&opened(&text, options, 64).unwrap(), 9, 9).unwrap());
    let word = |word: &str| Some(word.to_owned());
    assert_eq!(read(&options), [[None, word("")], [word("NA"), word("NA")]]);
    options.dialect.nulls = vec!["NA".into()];
    assert_eq!(read(&options), [[word(""), word("")], [None, word("NA")]]);
    options.dialect.nulls = vec!["NA".into(), String::new()];
    options.dialect.quoted_nulls = true;
    assert_eq!(read(&options), [[None, None], [None, None]]);
}

#[test]
fn the_last_line_needs_no_newline_and_blank_lines_are_records_of_a_single_column() {
    let read = |text: &str, names: &str| {
        let (text, mut options) = options_of(text);
        options.types = names.split(',').map(|name| (name.to_owned(), ColumnType::Text)).collect();
        texts(&batches(&opened(&text, &options, 3).unwrap(), 1, 1).unwrap())
    };
    let word = |word: &str| Some(word.to_owned());
    assert_eq!(read("a,b\r\n1,2", "a,b"), [[word("1"), word("2")]]);
    assert_eq!(read("a,b\n\n1,2\n\r\n\n3,4\n\n", "a,b"), [[word("1"), word("2")], [word("3"), word("4")]]);
    assert_eq!(read("a\n1\n\n2\n", "a"), [[word("1")], [None], [word("2")]]);
    assert_eq!(read("a,b\n", "a,b"), Vec::<Vec<Option<String>>>::new());
    assert_eq!(read("a,b", "a,b"), Vec::<Vec<Option<String>>>::new());
    assert_eq!(read("\u{feff}a\n1\n", "a"), [[word("1")]], "a byte order mark is not part of the name");
}

#[test]
fn lines_before_the_header_comments_and_escapes_are_read_as_the_dialect_says() {
    let text = "made by hand\n\n# units: km\na;b\n# no \"quote\n1;'it\\'s;'\n";
    let (text, mut options) = options_of(text);
    options.dialect = Dialect {
        delimiter: Some(b';'),
        quote: Some(b'\''),
        escape: Some(b'\\'),
        comment: Some(b'#'),
        skip_lines: 1,
        ..Dialect::default()
    };
    let files = opened(&text, &options, 5).unwrap();
    assert_eq!(files.inferred()[0].data_type, "int64");
    let batch = &batches(&files, 9, 9).unwrap()[0];
    assert_eq!(batch.column(1).as_string_view().value(0), "it's;");
}

#[test]
fn a_record_of_another_length_is_named_by_line_and_offset() {
    let error = refused("a,b\n1,2\n\"x\ny\",3\n4\n", &DelimitedOptions::default());
    assert!(error.contains("the record has 1 field, and the file has 2 columns"), "{error}");
    assert!(error.contains("a.csv, line 5, byte offset 16"), "{error}");
}

#[test]
fn a_value_of_another_type_is_named_with_its_line_column_and_what_to_do() {
    let mut text = "id,fare\n".to_owned();
    // Between the pieces of the sample.
    (0..105_000).for_each(|id| text += &format!("{id},{}.5\n", id % 7));
    let offset = text.len() + "105000,".len();
    text += "105000,n/a\n";
    (0..45_000).for_each(|id| text += &format!("{id},1.5\n"));
    let error = refused(&text, &DelimitedOptions::default());
    assert!(error.contains("\"n/a\" is not of type float64"), "{error}");
    assert!(error.contains(&format!("line 105002, byte offset {offset}, column \"fare\"")), "{error}");
    assert!(error.contains("--types 'fare=text'"), "{error}");
}

#[test]
fn a_quote_that_never_closes_is_named_where_it_opened() {
    let mut text = "a,b\n1,2\n3,\"four\n".to_owned();
    let open = text.len() - "\"four\n".len();
    (0..1000).for_each(|row| text += &format!("{row},x\n"));
    for chunk in [16, 1 << 20] {
        let error = opened(text.as_bytes(), &DelimitedOptions::default(), chunk).err().unwrap().to_string();
        assert!(error.contains("does not end before the end of the file"), "{error}");
        assert!(error.contains(&format!("line 3, byte offset {open}")), "{error}");
    }
    // The next quote would open another field: there it shows that the first was never closed.
    text += "5,\"six\"\n";
    for chunk in [16, 1 << 20] {
        let error = opened(text.as_bytes(), &DelimitedOptions::default(), chunk).err().unwrap().to_string();
        assert!(error.contains("the quoted field that starts here ends in line 1004"), "{error}");
        assert!(error.contains(&format!("line 3, byte offset {open}")), "{error}");
    }
    let dialect = Dialect { longest_record: 100, ..Dialect::default() };
    let options = DelimitedOptions { dialect, ..DelimitedOptions::default() };
    let error = opened(text.as_bytes(), &options, 16).err().unwrap().to_string();
    assert!(error.contains("does not end within the 100 bytes"), "{error}");
}

#[test]
fn text_columns_of_the_target_are_text_and_leave_the_identity_of_a_load_as_it_is() {
    let text = b"a,b,t,z\n1.50,7,10:00,x\n";
    let lines = br#"{"a": 1.50, "b": 7, "t": "10:00", "z": [1]}"#;
    let columns =
        TextColumns { names: ["a", "t", "z", "none"].map(str::to_owned).to_vec(), ..Default::default() };
    for (records, bytes) in [(RecordForm::Delimited, &text[..]), (RecordForm::Json, &lines[..])] {
        let dialect = Dialect { records, ..Dialect::default() };
        let open = |columns: &TextColumns, given: &[(&str, ColumnType)]| {
            let types = given.iter().map(|(name, of)| ((*name).to_owned(), *of)).collect();
            let (dialect, text_columns) = (dialect.clone(), columns.clone());
            let options = DelimitedOptions { dialect, types, text_columns, ..DelimitedOptions::default() };
            let files = opened(bytes, &options, 64).unwrap();
            let types = files.inferred().into_iter().take(3).map(|of| of.data_type.to_string());
            (types.collect::<Vec<_>>().join(" "), files.facts().mapping)
        };
        let inferred = open(&TextColumns::default(), &[]);
        assert_eq!(inferred.0, "float64 int64 time");
        assert_eq!(open(&columns, &[]), ("text int64 text".to_owned(), inferred.1.clone()));
        let but_times = TextColumns { but_times: true, ..columns.clone() };
        assert_eq!(open(&but_times, &[]), ("text int64 time".to_owned(), inferred.1));
        assert_eq!(open(&columns, &[("a", ColumnType::Decimal(9, 2))]).0, "decimal(9,2) int64 text");
        let second = TextColumns { places: vec![1], ..TextColumns::default() };
        assert_eq!(open(&second, &[]).0, "float64 text time");
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_named() {
    let mut bytes = b"a,b\n1,x\n2,".to_vec();
    bytes.extend([0xe9, b'\n']);
    let types = vec![("a".to_owned(), ColumnType::Int64), ("b".to_owned(), ColumnType::Text)];
    let options = DelimitedOptions { types, ..DelimitedOptions::default() };
    let files = opened(&bytes, &options, 64).unwrap();
    let error = batches(&files, 9, 9).unwrap_err().to_string();
    assert!(error.contains("not UTF-8") && error.contains("line 3, byte offset 10"), "{error}");
}

#[test]
fn files_of_other_kinds_and_wrong_delimiters_are_named() {
    let tar = format!("a.csv{}ustar\0{}a\n1\n", "\0".repeat(252), "\0".repeat(249));
    let kinds = [
        ("PAR1....", "a Parquet file"),
        ("PK\u{3}\u{4}\n,\n", "a ZIP archive"),
        ("SQLite format 3\0", "a SQLite database"),
        (&tar, "a tar archive"),
    ];
    for (text, kind) in kinds {
        let error = refused(text, &DelimitedOptions::default());
        assert!(error.contains(&format!("expected text, found {kind}")), "{error}");
    }
    let error = refused("a;b;c\n1;2;3\n4;5\n", &DelimitedOptions::default());
    assert!(error.contains("--delimiter ';'"), "{error}");
    let error = refused("a,b\r1,2\r\n", &DelimitedOptions::default());
    assert!(error.contains("contains a carriage return: \"b\\r1\""), "{error}");
    assert!(refused("", &DelimitedOptions::default()).contains("has no header"));
    let dialect = Dialect { names: vec!["a".into(), "a".into()], ..Dialect::default() };
    let error = refused("a,b\n", &DelimitedOptions { dialect, ..DelimitedOptions::default() });
    assert!(error.contains("columns 1 and 2 have the same name, \"a\""), "{error}");
    let types = vec![("c".to_owned(), ColumnType::Int64)];
    let error = refused("a,b\n", &DelimitedOptions { types, ..DelimitedOptions::default() });
    assert!(error.contains("the columns are a, b"), "{error}");
}

/// The columns with their types, and the rows as a writer of CSV shows them.
fn read(text: &str, options: &DelimitedOptions) -> (String, Vec<String>) {
    let files = opened(text.as_bytes(), options, 64).unwrap();
    let inferred = files.inferred().into_iter().map(|column| format!("{} {}", column.name, column.data_type));
    let columns = inferred.collect::<Vec<_>>().join(", ");
    let rows = batches(&files, 9, 9).unwrap().into_iter().flat_map(|batch| {
        let shown = |row: usize| {
            let value = |array| arrow_cast::display::array_value_to_string(array, row).unwrap();
            batch.columns().iter().map(|array| value(array.as_ref())).collect::<Vec<_>>().join("|")
        };
        (0..batch.num_rows()).map(shown).collect::<Vec<_>>()
    });
    (columns, rows.collect())
}

#[test]
fn names_that_a_header_has_twice_get_numbers() {
    let (columns, rows) = read("a,b,a\n1,2,3\n", &DelimitedOptions::default());
    assert_eq!((columns.as_str(), rows), ("a int64, b int64, a_2 int64", vec!["1|2|3".to_owned()]));
}

#[test]
fn blanks_around_values_are_part_of_text_alone() {
    let text = "n,f,b,d,t\n1, 2.5 ,true, 2024-01-31, x \n 2,\t3,false , 2024-02-01,y\n3, , ,,\" \"\n";
    let (columns, rows) = read(text, &DelimitedOptions::default());
    assert_eq!(columns, "n int64, f float64, b bool, d date, t text");
    assert_eq!(rows, ["1|2.5|true|2024-01-31| x ", "2|3.0|false|2024-02-01|y", "3|||| "]);
    // A value in quotes has its blanks.
    let (columns, _) = read("n\n\" 1\"\n", &DelimitedOptions::default());
    assert_eq!(columns, "n text");
}

#[test]
fn a_delimiter_has_several_characters_or_none_of_ascii() {
    for (delimiter, text) in [
        ("||", "a||b||c\n1||\"x||\"\"y\"||z|\n2||||\"\n\"\n"),
        ("\u{a7}", "a\u{a7}b\u{a7}c\n1\u{a7}\"x||\"\"y\"\u{a7}z|\n2\u{a7}\u{a7}\"\n\"\n"),
    ] {
        let dialect = Dialect { long_delimiter: Some(delimiter.into()), ..Dialect::default() };
        let options = DelimitedOptions { dialect, ..DelimitedOptions::default() };
        let (columns, rows) = read(text, &options);
        assert_eq!(columns, "a int64, b text, c text");
        assert_eq!(rows, ["1|x||\"y|z|", "2||\n"]);
    }
}

#[test]
fn the_error_of_a_text_that_does_not_fit_names_the_options_that_would() {
    for (text, named) in [
        ("a;b\n1;x\n2;y\n3\n", "--delimiter ';' (3 of 4 records have 2 fields)"),
        ("Report, of 2024\n\na,b,c\n1,x,y\n2,y,z\n", "--skip-lines 2 (line 3 is the first with 3 fields)"),
        ("a,b\n\"6\" pipe,1\n\"7\" pipe,2\n8,3\n", "--quote none"),
    ] {
        let error = refused(text, &DelimitedOptions::default());
        assert!(error.contains("the start of the file fits") && error.contains(named), "{error}");
    }
    // A delimiter or a quote that fits all records is taken where the text would be refused.
    let files = opened(b"a,b\n1, \"x, y\"\n2,z\n", &DelimitedOptions::default(), 64).unwrap();
    assert_eq!(batches(&files, 9, 4096).unwrap()[0].column(1).as_string_view().value(0), "x, y");
    let files = opened(b"a,b\n1,'x,y'\n2,z\n", &DelimitedOptions::default(), 64).unwrap();
    assert_eq!(batches(&files, 9, 4096).unwrap()[0].column(1).as_string_view().value(0), "x,y");
    let read = opened(b"a,b\nZo\xeb,1\n", &DelimitedOptions::default(), 64);
    let error = read.err().unwrap().to_string();
    assert!(error.contains("fits --text-encoding windows-1252"), "{error}");
    // The text fits the options in effect, so the error proposes nothing else.
    let error = refused("a,b\n1,2\n3,4\n5\n", &DelimitedOptions::default());
    assert!(!error.contains("fits"), "{error}");
}

#[test]
fn ten_thousand_columns_and_fields_of_megabytes_are_read_within_the_buffer() {
    let names: Vec<String> = (0..10_000).map(|column| format!("c{column}")).collect();
    let row = vec!["7"; 10_000].join(",");
    let text = format!("{}\n{row}\n{row}\n", names.join(","));
    let batches_of =
        batches(&opened(text.as_bytes(), &DelimitedOptions::default(), 1 << 20).unwrap(), 9, 4096).unwrap();
    assert_eq!(batches_of.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
    assert_eq!(batches_of[0].num_columns(), 10_000);

    let long = "x,\n\"\"".repeat(1 << 20);
    let text = format!("a,b\n1,\"{long}\"\n2,y\n");
    let files = opened(text.as_bytes(), &DelimitedOptions::default(), 1 << 16).unwrap();
    assert_eq!(files.rows(), 2);
    let read = batches(&files, 9, 4096).unwrap();
    let values: Vec<_> =
        read.iter().flat_map(|batch| batch.column(1).as_string_view().iter().flatten()).collect();
    assert_eq!(values.iter().map(|value| value.len()).collect::<Vec<_>>(), [4 << 20, 1]);
    let dialect = Dialect { longest_record: 1 << 20, ..Dialect::default() };
    let options = DelimitedOptions { dialect, ..DelimitedOptions::default() };
    let error = opened(text.as_bytes(), &options, 1 << 16).err().unwrap().to_string();
    assert!(error.contains("does not end within"), "{error}");
}

#[test]
fn a_dialect_or_a_type_is_part_of_the_identity_and_content_of_the_fingerprint() {
    let (text, options) = options_of("a,b\n1,2\n");
    let first = opened(&text, &options, 64).unwrap();
    let same = opened(&text, &options, 64).unwrap();
    assert_eq!(
        (first.facts().mapping, &first.files()[0].fingerprint),
        (same.facts().mapping, &same.files()[0].fingerprint)
    );
    let mut other = options.clone();
    other.dialect.nulls = vec!["2".into()];
    assert_ne!(opened(&text, &other, 64).unwrap().facts().mapping, first.facts().mapping);
    let typed = DelimitedOptions { types: vec![("a".into(), ColumnType::Text)], ..options.clone() };
    assert_ne!(opened(&text, &typed, 64).unwrap().facts().mapping, first.facts().mapping);
    let changed = opened(b"a,b\n1,3\n", &options, 64).unwrap();
    assert_eq!(changed.facts().mapping, first.facts().mapping);
    assert_ne!(changed.files()[0].fingerprint, first.files()[0].fingerprint);
    let renamed = opened(b"a,c\n1,2\n", &options, 64).unwrap();
    assert_ne!(renamed.files()[0].fingerprint, first.files()[0].fingerprint);
}

#[test]
fn the_error_of_a_record_that_can_be_left_out_names_the_option_for_it() {
    let named = |text| refused(text, &DelimitedOptions::default()).contains("--rejects FILE.csv");
    assert!(named("a,b\n1,2\n3\n"), "too few fields");
    assert!(named("a,b\n1,2\n\"3\"x,4\n"), "more than a quoted field");
    assert!(!named("a,b\n1,2\n\"3,4\n"), "a quote that never closes");
}

#[test]
fn records_with_fewer_or_more_fields_are_filled_or_cut_if_the_dialect_says_so() {
    let text = "a,b,c\n1\n1,2\n1,2,3\n1,2,3,4\n";
    let (bytes, mut options) = options_of(text);
    options.types = ["a", "b", "c"].map(|name| (name.to_owned(), ColumnType::Text)).into();
    assert!(refused(text, &options).contains("--ragged fill"));
    options.dialect.ragged = Ragged::Filled;
    let error = refused(text, &options);
    assert!(error.contains("4 fields") && error.contains("line 5"), "{error}");
    options.dialect.ragged = Ragged::FilledAndCut;
    let read = texts(&batches(&opened(&bytes, &options, 4).unwrap(), 2, 2).unwrap());
    let record = |fields: [&str; 3]| fields.map(|text| (!text.is_empty()).then(|| text.to_owned()));
    assert_eq!(read, [["1", "", ""], ["1", "2", ""], ["1", "2", "3"], ["1", "2", "3"]].map(record));
}

#[test]
fn numbers_words_and_dates_of_other_countries_are_inferred_and_read() {
    let text = "betrag;ja;tag;um\n1.234,50;ja;31.12.2024;1700000000\n-0,5;Nein;01.01.2025;1700000000.25\n";
    let mut formats = Formats {
        decimal_comma: true,
        thousands: Some(b'.'),
        true_words: vec!["ja".into()],
        false_words: vec!["nein".into()],
        ..Formats::default()
    };
    formats.add("%d.%m.%Y".parse().unwrap()).unwrap();
    let dialect = Dialect { delimiter: Some(b';'), formats, ..Dialect::default() };
    let types = vec![("um".to_owned(), "epoch_s".parse().unwrap())];
    let options = DelimitedOptions { dialect, types, ..DelimitedOptions::default() };
    let mut text = text.replace("1700000000.25", "1700000000,25").into_bytes();
    let files = opened(&text, &options, 64).unwrap();
    let types: Vec<String> = files.inferred().into_iter().map(|column| column.data_type).collect();
    assert_eq!(types, ["float64", "bool", "date", "epoch_s"]);
    assert!(files.inferred()[2].because.ends_with("by %d.%m.%Y"), "{:?}", files.inferred()[2]);
    let read = batches(&files, 9, 9).unwrap();
    let floats = read[0].column(0).as_primitive::<arrow_array::types::Float64Type>();
    assert_eq!(floats.values(), &[1234.5, -0.5]);
    assert_eq!(read[0].column(1).as_boolean().values().iter().collect::<Vec<_>>(), [true, false]);
    let days = read[0].column(2).as_primitive::<arrow_array::types::Date32Type>();
    assert_eq!(days.values(), &[20_088, 20_089]);
    let points = read[0].column(3).as_primitive::<arrow_array::types::TimestampMicrosecondType>();
    assert_eq!(points.values(), &[1_700_000_000_000_000, 1_700_000_000_250_000]);
    text.extend(b"1.23,5;ja;31.12.2024;1\n");
    let typed = vec![("betrag".to_owned(), ColumnType::Float64)];
    let error = refused(std::str::from_utf8(&text).unwrap(), &DelimitedOptions { types: typed, ..options });
    assert!(error.contains("\"1.23,5\" is not of type float64"), "{error}");
}

#[test]
fn a_number_beyond_a_float_is_not_infinity() {
    let types = vec![("a".to_owned(), ColumnType::Float64)];
    let options = DelimitedOptions { types, ..DelimitedOptions::default() };
    assert!(refused("a,b\n1e400,x\n", &options).contains("\"1e400\" is not of type float64"));
}

#[test]
fn records_that_cannot_be_read_are_left_out_with_their_places_and_reasons() {
    let mut text = "a,b\n".to_owned();
    let mut expected = Vec::new();
    for id in 0..3000 {
        match id % 100 {
            7 => text += &format!("x{id},1\n"),
            13 => text += &format!("{id}\n"),
            29 => text += &format!("{id},\"q\"q,\n"),
            _ => {
                expected.push(vec![Some(id.to_string()), Some("1,\n\"".to_owned())]);
                text += &format!("{id},\"1,\n\"\"\"\n");
            }
        }
    }
    let types = vec![("a".to_owned(), ColumnType::Int64), ("b".to_owned(), ColumnType::Text)];
    let options = DelimitedOptions { types, most_rejected: Some(90), ..DelimitedOptions::default() };
    for chunk in [40, 1000, 1 << 20] {
        let files = opened(text.as_bytes(), &options, chunk).unwrap();
        assert_eq!((files.rows(), files.rejected().len()), (2910, 90), "chunk {chunk}");
        for (unit, batch) in [(7, 5), (1000, 64), (100_000, 100_000)] {
            let read = batches(&files, unit, batch).unwrap();
            let mut records = Vec::new();
            for batch in &read {
                let ids = batch.column(0).as_primitive::<arrow_array::types::Int64Type>();
                let notes = batch.column(1).as_string_view();
                let rows = 0..batch.num_rows();
                records.extend(
                    rows.map(|row| vec![Some(ids.value(row).to_string()), Some(notes.value(row).to_owned())]),
                );
            }
            assert!(records == expected, "chunk {chunk}, units of {unit}, batches of {batch}");
        }
        let first = &files.rejected()[0];
        assert_eq!((first.line, first.record.as_str()), (Some(16), "x7,1\n"));
        assert!(first.reason.contains("\"x7\" is not of type int64"), "{}", first.reason);
        assert_eq!(files.rejected()[1].reason, "the record has 1 field, and the file has 2 columns");
        assert!(files.rejected()[2].reason.contains("after a closing quote"));
        assert_eq!(files.rejected()[2].record, "29,\"q\"q,\n");
        assert_ne!(
            files.facts().mapping,
            opened(b"a,b\n1,2\n", &DelimitedOptions::default(), 9).unwrap().facts().mapping
        );
    }
    let fewer = DelimitedOptions { most_rejected: Some(89), ..options };
    let error = opened(text.as_bytes(), &fewer, 1 << 20).err().unwrap().to_string();
    assert!(error.contains("more than 89 records cannot be read"), "{error}");
}

#[test]
fn records_that_are_not_utf_8_are_rejected_wherever_the_sample_meets_them() {
    let mut text = b"a,b\n".to_vec();
    for id in 0..3000 {
        text.extend_from_slice(format!("{id},caf").as_bytes());
        text.extend_from_slice(if id % 100 == 7 { b"\xe9\n" } else { "é\n".as_bytes() });
    }
    let strict = opened(&text, &DelimitedOptions::default(), 1 << 20).err().unwrap().to_string();
    assert!(strict.contains("not UTF-8") && strict.contains("line 9"), "{strict}");
    let options = DelimitedOptions { most_rejected: Some(30), ..DelimitedOptions::default() };
    for chunk in [40, 1 << 20] {
        let files = opened(&text, &options, chunk).unwrap();
        assert_eq!((files.rows(), files.rejected().len()), (2970, 30), "chunk {chunk}");
        let first = &files.rejected()[0];
        assert_eq!((first.line, first.record.as_str()), (Some(9), "7,caf\u{fffd}\n"));
        assert!(first.reason.contains("not UTF-8"), "{}", first.reason);
        let schema = files.schema();
        assert_eq!(schema.field(0).data_type(), &arrow_schema::DataType::Int64, "{schema}");
    }
}

/// Records of one value, and of another that a small sample does not have.
fn with_late(sampled: &str, late: &str) -> String {
    let value = |row| if row == 100 { late } else { sampled };
    (0..2000).fold("v,w\n".to_owned(), |text, row| text + value(row) + ",x\n")
}

#[test]
fn a_value_that_the_sample_has_not_is_one_that_inference_takes_or_an_error() {
    let small = DelimitedOptions { sample: Some(1), ..DelimitedOptions::default() };
    let (digits, moment) = ("99999999999999.999", "2024-02-01T10:00:00Z");
    for (of, sampled, changed, kept) in [
        ("int64", "7", &["007", "-0"][..], &["0", "-12"][..]),
        ("float64", "1.5", &["007.5", "1e-400", "9007199254740993"], &["-0", "-.5", "NaN", "1E300"]),
        ("float64", "1.5", &["1.23456789012345678901", digits], &["0.30000000000000004", "5e-324"]),
        ("decimal(38,3)", digits, &["01.5", "-0.0", "1e3"], &["12345678901234567890", "0.50", "1.5000"]),
        ("bool", "true", &["1", "no"], &["FALSE"]),
        ("timestamptz", moment, &["2024-02-01 10:00:00", "2024-02-01"], &["2024-02-01 10:00+02"]),
        ("text", "x", &[], &["007"]),
    ] {
        for late in changed {
            let text = with_late(sampled, late);
            let error = refused(&text, &small);
            let what = format!("{late:?} is not of type {of} - ");
            for part in [&what, "line 102, byte", "column \"v\"", "--types 'v=text'", "--sample all"] {
                assert!(error.contains(part), "{late}: {error}");
            }
            // Who names the type wants the conversion, which a time without a zone and a number beyond the type do not have.
            let types = vec![("v".to_owned(), of.parse().unwrap())];
            let options = DelimitedOptions { types, ..small.clone() };
            let read = batches(&opened(text.as_bytes(), &options, 1 << 20).unwrap(), 999, 99);
            assert_eq!(read.is_ok(), of != "timestamptz" && *late != "1e-400", "{late}");
        }
        for late in kept {
            let files = opened(with_late(sampled, late).as_bytes(), &small, 1 << 20).unwrap();
            assert_eq!(files.inferred()[0].data_type, of);
            assert!(batches(&files, 999, 99).is_ok(), "{late}");
        }
    }
}
