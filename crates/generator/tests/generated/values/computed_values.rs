//! Fields that are computed from other fields of their record: texts, conditions, branches.

use std::num::NonZeroUsize;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float32Type, Float64Type, Int32Type};
use arrow_array::{Array, RecordBatch};
use sawmill_generator::{Dataset, Job, Layout, Output, write};
use sawmill_profile::Profile;

const SPEC: &str = r#"
name = "people"

[[fields]]
name = "name"
type = "string"
values = "person_name"

[[fields]]
name = "kind"
type = "string"
nulls = 0.1
values = { weights = { gold = 1, silver = 2, bronze = 3 } }

[[fields]]
name = "amount"
type = "double"
values = { uniform = { min = 0, max = 200 } }

[[fields]]
name = "joined"
type = "date"
values = { uniform = { min = 2020-01-01, max = 2024-12-31 } }

[[fields]]
name = "email"
type = "string"
values = { expression = "concat(lower(replace(name, ' ', '.')), '@example.com')" }

[[fields]]
name = "large"
type = "boolean"
values = { expression = "amount > 100 and joined >= '2022-01-01'" }

[[fields]]
name = "discount"
type = "double"
nulls = 0
values = { expression = "case(kind == 'gold', amount * 0.2, kind == 'silver', uniform(1, 2), 0)" }

[[fields]]
name = "label"
type = "string"
nulls = 0
values = { expression = "if(large, format('{}-{:.1}', upper(kind), amount), 'small')" }

[[fields]]
name = "visits"
type = "list"
length = { uniform = { min = 0, max = 3 } }

[fields.element]
type = "struct"

[[fields.element.fields]]
name = "day"
type = "int32"
values = { uniform = { min = 1, max = 28 } }

[[fields.element.fields]]
name = "note"
type = "string"
nulls = 0
values = { expression = "concat(substring(name, 1, 1), day, if(kind in ('gold', 'silver'), '+', '-'))" }
"#;

fn batch(dataset: &Dataset, rows: std::ops::Range<u64>) -> RecordBatch {
    let size = (rows.end - rows.start) as usize;
    dataset.batches(rows, 7, size).next().unwrap().unwrap()
}

#[test]
fn every_computed_value_follows_from_its_operands() {
    let dataset = Dataset::from_toml(SPEC).unwrap();
    let batch = batch(&dataset, 0..5_000);
    let text = |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>().clone();
    let amount = batch.column_by_name("amount").unwrap().as_primitive::<Float64Type>();
    let joined = batch.column_by_name("joined").unwrap().as_primitive::<Date32Type>();
    let large = batch.column_by_name("large").unwrap().as_boolean();
    let discount = batch.column_by_name("discount").unwrap().as_primitive::<Float64Type>();
    let visits = batch.column_by_name("visits").unwrap().as_list::<i32>();
    let (name, kind, email, label) = (text("name"), text("kind"), text("email"), text("label"));
    let (mut larges, mut nulls) = (0, 0);
    for i in 0..batch.num_rows() {
        let expected = format!("{}@example.com", name.value(i).to_lowercase().replace(' ', "."));
        assert_eq!(email.value(i), expected);
        let is_large = amount.value(i) > 100.0 && joined.value(i) >= 18_993;
        assert_eq!(large.value(i), is_large, "row {i}");
        larges += usize::from(is_large);
        assert_eq!(discount.is_null(i), kind.is_null(i), "null where its operand is");
        assert_eq!(label.is_null(i), kind.is_null(i));
        let notes = visits.value(i);
        let notes = notes.as_struct();
        let (days, notes) = (notes.column(0).as_primitive::<Int32Type>(), notes.column(1).as_string::<i32>());
        if kind.is_null(i) {
            nulls += 1;
            assert_eq!(notes.null_count(), notes.len());
            continue;
        }
        match kind.value(i) {
            "gold" => assert_eq!(discount.value(i), amount.value(i) * 0.2),
            "silver" => assert!((1.0..2.0).contains(&discount.value(i))),
            _ => assert_eq!(discount.value(i), 0.0),
        }
        let expected = match is_large {
            true => format!("{}-{:.1}", kind.value(i).to_uppercase(), amount.value(i)),
            false => "small".to_owned(),
        };
        assert_eq!(label.value(i), expected);
        let first: String = name.value(i).chars().take(1).collect();
        let sign = if kind.value(i) == "bronze" { '-' } else { '+' };
        for (day, note) in days.iter().zip(notes) {
            assert_eq!(note.unwrap(), format!("{first}{}{sign}", day.unwrap()));
        }
    }
    assert!(larges > 1000 && nulls > 300, "{larges} {nulls}");
}

#[test]
fn any_rows_and_fields_have_the_values_of_the_whole() {
    let dataset = Dataset::from_toml(SPEC).unwrap();
    let whole = batch(&dataset, 0..5_000);
    assert_eq!(batch(&dataset, 1_500..2_700), whole.slice(1_500, 1_200));
    let place = whole.schema().index_of("label").unwrap();
    let alone = dataset.batches_of(&[place], 0..5_000, 7, 5_000).unwrap().next().unwrap().unwrap();
    assert_eq!(alone.column_by_name("label"), whole.column_by_name("label"));
}

#[test]
fn files_are_the_same_on_any_number_of_threads() {
    let dataset = Dataset::from_toml(SPEC).unwrap();
    let made = |threads: usize| {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::new(20_000, 3).unwrap();
        let output = Output::Directory(directory.path().to_path_buf());
        let profile = Profile::new();
        let phase = profile.phase("generate");
        let cancel = std::sync::atomic::AtomicBool::new(false);
        let job = Job {
            threads: NonZeroUsize::new(threads).unwrap(),
            ..Job::new(&layout, &output, &phase, &cancel)
        };
        let files = write(&dataset, &job).unwrap();
        files.into_iter().map(|file| file.sum.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(made(1), made(3));
}

#[test]
fn weights_by_another_field_are_those_of_its_value() {
    let spec = r#"
name = "d"
[[fields]]
name = "country"
type = "string"
values = { weights = { AT = 1, US = 1, FR = 1 } }
[[fields]]
name = "year"
type = "int16"
nulls = 0.2
values = { uniform = { min = 2020, max = 2022 } }
[[fields]]
name = "language"
type = "string"
values = { weights_by = { field = "country", given = { AT = { de = 9, en = 1 }, US = { en = 3, es = 1 } }, otherwise = { fr = 1 } } }
[[fields]]
name = "price"
type = "decimal"
precision = 5
scale = 2
nulls = 0
values = { weights_by = { field = "year", given = { 2020 = { "1.50" = 1 }, 2021 = { "2.50" = 1, "3" = 1 } }, otherwise = { "9" = 1 } } }
"#;
    let dataset = Dataset::from_toml(spec).unwrap();
    let batch = batch(&dataset, 0..30_000);
    let (country, language) = (batch.column(0).as_string::<i32>(), batch.column(2).as_string::<i32>());
    let year = batch.column(1).as_primitive::<arrow_array::types::Int16Type>();
    let price = batch.column(3).as_primitive::<arrow_array::types::Decimal128Type>();
    let mut counts = std::collections::BTreeMap::<_, f64>::new();
    for i in 0..batch.num_rows() {
        *counts.entry((country.value(i), language.value(i))).or_insert(0.0) += 1.0 / 10_000.0;
        assert_eq!(price.is_null(i), year.is_null(i));
        match (year.is_valid(i), year.value(i)) {
            (true, 2020) => assert_eq!(price.value(i), 150),
            (true, 2021) => assert!([250, 300].contains(&price.value(i))),
            (true, _) => assert_eq!(price.value(i), 900),
            _ => {}
        }
    }
    let expected =
        [("AT", "de", 0.9), ("AT", "en", 0.1), ("FR", "fr", 1.0), ("US", "en", 0.75), ("US", "es", 0.25)];
    let found: Vec<(&str, &str)> = counts.keys().copied().collect();
    assert_eq!(found, expected.map(|(country, language, _)| (country, language)));
    for ((.., share), found) in expected.iter().zip(counts.values()) {
        assert!((found - share).abs() < 0.03, "{counts:?}");
    }
}

#[test]
fn weights_by_a_float_know_values_that_a_double_has_otherwise() {
    let spec = r#"
name = "d"
[[fields]]
name = "rate"
type = "float"
values.weights = { "0.1" = 1, "2.5" = 1 }
[[fields]]
name = "label"
type = "string"
values.weights_by = { field = "rate", given = { "0.1" = { low = 1 }, "2.5" = { high = 1 } }, otherwise = { none = 1 } }
"#;
    let batch = batch(&Dataset::from_toml(spec).unwrap(), 0..1000);
    let rates = batch.column(0).as_primitive::<Float32Type>();
    let labels = batch.column(1).as_string::<i32>();
    for (rate, label) in rates.values().iter().zip(labels) {
        assert_eq!(label.unwrap(), if *rate == 0.1 { "low" } else { "high" });
    }
}

#[test]
fn weights_by_a_field_are_checked_before_a_row_is_made() {
    let wrong = |by: &str| {
        let spec = format!(
            "name = \"d\"\n[[fields]]\nname = \"n\"\ntype = \"int8\"\nvalues = {{ uniform = {{ min = 0, max = 9 }} }}\n\
             [[fields]]\nname = \"x\"\ntype = \"string\"\nvalues = {{ weights_by = {by} }}\n"
        );
        Dataset::from_toml(&spec).unwrap_err().to_string()
    };
    assert!(
        wrong("{ field = 'm', given = {}, otherwise = { a = 1 } }").contains("m is not an earlier field")
    );
    assert!(
        wrong("{ field = 'n', given = { x = { a = 1 } }, otherwise = { a = 1 } }")
            .contains("\"x\" is not an int8")
    );
    assert!(wrong("{ field = 'n', given = { 1 = { a = 1 } } }").contains("otherwise"));
    assert!(
        wrong("{ field = 'n', given = { 1 = { a = 0 } }, otherwise = { a = 1 } }").contains("sum to zero")
    );
    assert!(
        wrong("{ field = 'n', given = { 1 = { a = 1 }, \"+1\" = { a = 1 } }, otherwise = { a = 1 } }")
            .contains("given twice")
    );
}

#[test]
fn formulas_read_a_mebibyte_of_text_and_make_little_of_it() {
    let body = format!(
        "name = \"t\"\n[[fields]]\nname = \"body\"\ntype = \"string\"\nvalues.choice = [\"{}\"]\n",
        "x".repeat(1 << 20)
    );
    let made = |field: &str| Dataset::from_toml(&format!("{body}[[fields]]\nname = \"made\"\n{field}\n"));
    for field in [
        "type = \"int64\"\nvalues.expression = \"length(body)\"",
        "type = \"string\"\nvalues.expression = \"substring(body, 1, 60)\"",
        "type = \"int64\"\nnulls.expression = \"length(body) > 5\"\nvalues.uniform = { min = 0, max = 9 }",
    ] {
        assert!(made(field).is_ok(), "{field}: {:?}", made(field).err());
    }
    let error = made("type = \"string\"\nvalues.expression = \"upper(body)\"").unwrap_err().to_string();
    assert!(error.contains("field made") && error.contains("the fields that the formula names"), "{error}");
}
