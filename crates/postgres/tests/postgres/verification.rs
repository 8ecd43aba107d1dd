//! Verification finds the changes in a table, and none in an unchanged one.

use std::sync::Arc;

use arrow_array::builder::{Decimal128Builder, ListBuilder};
use arrow_array::{Array, ArrayRef, Decimal128Array, Int64Array, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use sawmill_loader::{LoadOptions, Verification};
use sawmill_postgres::verify;
use sawmill_source::ParquetFiles;

use crate::database::{Database, run, small, with_control};
use crate::fixture::{file_of, people};

fn loaded(rows: usize) -> (Database, tempfile::TempDir, ParquetFiles) {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, rows, 1500);
    let source = ParquetFiles::open(&[&path]).unwrap();
    run(&source, &database.target("people"), &small()).unwrap();
    (database, directory, source)
}

fn verification(database: &Database, source: &ParquetFiles) -> Verification {
    let options = LoadOptions { degree: 3, ..small() };
    with_control(|control| verify(source, &database.target("people"), &options, control)).unwrap()
}

#[test]
fn changed_deleted_and_duplicated_rows_are_found_and_the_column_is_named() {
    let (database, _directory, source) = loaded(3000);
    let mut client = database.client();
    assert!(verification(&database, &source).matches());

    client.batch_execute("UPDATE people SET amount = amount + 0.125 WHERE id = 1777").unwrap();
    let changed = verification(&database, &source);
    assert!(!changed.matches());
    assert_eq!((changed.target.rows, changed.differing.as_slice()), (3000, ["amount".to_owned()].as_slice()));

    client.batch_execute("UPDATE people SET amount = amount - 0.125 WHERE id = 1777").unwrap();
    assert!(verification(&database, &source).matches(), "the order of rows does not matter");

    client.batch_execute("DELETE FROM people WHERE id = 5").unwrap();
    let deleted = verification(&database, &source);
    assert_eq!((deleted.source.rows, deleted.target.rows, deleted.matches()), (3000, 2999, false));

    client.batch_execute("INSERT INTO people SELECT * FROM people WHERE id = 6").unwrap();
    let doubled = verification(&database, &source);
    assert_eq!((doubled.target.rows, doubled.matches()), (3000, false));

    client.batch_execute("UPDATE people SET name = NULL WHERE id = 7").unwrap();
    let emptied = verification(&database, &source);
    // The name that is missing now, and the name of row 5.
    assert_eq!(emptied.source.non_null[1] - emptied.target.non_null[1], 2);
}

#[test]
fn values_swapped_between_rows_are_found() {
    let (database, _directory, source) = loaded(600);
    let swap = "UPDATE people p SET amount = q.amount FROM people q WHERE (p.id, q.id) IN ((1, 2), (2, 1))";
    database.client().batch_execute(swap).unwrap();
    let swapped = verification(&database, &source);
    // Each column holds the same values as before, but the rows do not.
    assert!(!swapped.matches());
    assert!(swapped.differing.is_empty());
}

#[test]
fn missing_rows_are_located_in_their_units_and_unknown_ones_are_counted() {
    let (database, _directory, source) = loaded(3000);
    let change = "DELETE FROM people WHERE id IN (3, 1499, 1500); UPDATE people SET amount = 0 WHERE id = 2100; \
                  INSERT INTO people SELECT * FROM people WHERE id = 6";
    database.client().batch_execute(change).unwrap();
    let options = LoadOptions { locate: true, ..small() };
    let target = database.target("people");
    let found = with_control(|control| verify(&source, &target, &options, control)).unwrap();
    let located = found.located.unwrap();
    let units: Vec<_> = located
        .units
        .iter()
        .map(|unit| {
            (unit.row_group, unit.first_row..=unit.last_row, unit.missing, unit.first_missing.as_slice())
        })
        .collect();
    let expected = [
        (0, 0..=499, 1, [3].as_slice()),
        (0, 1000..=1499, 1, &[1499]),
        (1, 0..=499, 1, &[0]),
        (1, 500..=999, 1, &[600]),
    ];
    assert_eq!(units, expected);
    // The changed row, and the duplicated one.
    assert_eq!(located.rows_of_none, 2);
}

#[test]
fn a_trigger_that_changes_rows_fails_the_load_before_the_table_is_visible() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 2000, 500);
    let source = ParquetFiles::open(&[&path]).unwrap();
    database
        .client()
        .batch_execute(
            "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN IF NEW.id = 1234 THEN NEW.amount := 0; END IF; RETURN NEW; END $$;
             CREATE FUNCTION watch() RETURNS event_trigger LANGUAGE plpgsql AS $$
             DECLARE made record; BEGIN
               FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE object_identity LIKE 'public.people%' LOOP
                 EXECUTE format('CREATE TRIGGER spoil BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION spoil()', made.object_identity);
               END LOOP; END $$;
             CREATE EVENT TRIGGER watch ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION watch();",
        )
        .unwrap();
    let error = run(&source, &database.target("people"), &small()).unwrap_err();
    assert_eq!(error.kind(), sawmill_source::Kind::Mismatch);
    assert!(error.what().contains("values differ in amount"), "{error}");
    assert!(!database.has("people"));
}

#[test]
fn equal_numerics_are_the_same_with_any_display_scale() {
    let database = Database::new();
    let prices = Decimal128Array::from_iter((0..900).map(|row| (row % 7 != 0).then_some(row * 10)));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..900))),
        ("price", Arc::new(prices.with_precision_and_scale(12, 2).unwrap())),
    ];
    let (_directory, path) = file_of(columns, 300);
    let source = ParquetFiles::open(&[path]).unwrap();
    let mut client = database.client();
    // As another loader would have stored them: 1.5 and 1.500000 where the file has 1.50.
    client
        .batch_execute(
            "CREATE TABLE people (id bigint, price numeric); \
             INSERT INTO people SELECT id, CASE WHEN id % 7 <> 0 THEN CASE WHEN id % 2 = 0 \
               THEN round(id / 10.0, 1) ELSE round(id / 10.0, 6) END END FROM generate_series(0, 899) id",
        )
        .unwrap();
    let same = verification(&database, &source);
    assert!(same.matches(), "{same:?}");
    client.batch_execute("UPDATE people SET price = price + 0.001 WHERE id = 500").unwrap();
    let options = LoadOptions { locate: true, ..small() };
    let changed =
        with_control(|control| verify(&source, &database.target("people"), &options, control)).unwrap();
    assert!(!changed.matches());
    assert_eq!(changed.differing, ["price"]);
    let located = changed.located.unwrap();
    assert_eq!((located.rows_of_none, located.units.len()), (1, 1));
    assert_eq!(located.units[0].first_missing, [200]);
}

#[test]
fn equal_numerics_in_arrays_and_composite_values_are_the_same() {
    const ROWS: i64 = 300;
    let decimals = |values: &mut dyn Iterator<Item = Option<i128>>| -> ArrayRef {
        Arc::new(Decimal128Array::from_iter(values).with_precision_and_scale(12, 2).unwrap())
    };
    let prices = || (0..ROWS).map(|row| (row % 7 != 0).then_some(i128::from(row) * 10));
    let counts: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let mut list = ListBuilder::new(Decimal128Builder::new().with_data_type(DataType::Decimal128(12, 2)));
    for price in prices() {
        list.values().append_option(price);
        list.values().append_value(250);
        list.append(true);
    }
    let field = |name, array: &ArrayRef| Arc::new(Field::new(name, array.data_type().clone(), true));
    let price = decimals(&mut prices());
    let item =
        StructArray::from(vec![(field("price", &price), price), (field("n", &counts), Arc::clone(&counts))]);
    let items = arrow_array::ListArray::new(
        Arc::new(Field::new("item", item.data_type().clone(), true)),
        OffsetBuffer::from_lengths(std::iter::repeat_n(1, ROWS as usize)),
        Arc::new(item.clone()),
        None,
    );
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", counts),
        ("prices", Arc::new(list.finish())),
        ("item", Arc::new(item)),
        ("items", Arc::new(items)),
    ];
    let (_directory, path) = file_of(columns, 300);
    let source = ParquetFiles::open(&[path]).unwrap();
    let database = Database::new();
    let mut client = database.client();
    // As another loader would have stored them: 1.5 and 1.500000 where the file has 1.50.
    client
        .batch_execute(
            "CREATE TYPE item AS (price numeric, n bigint); \
             CREATE TABLE people (id bigint, prices numeric[], item item, items item[]); \
             INSERT INTO people SELECT id, ARRAY[price, 2.500], (price, id)::item, ARRAY[(price, id)::item] \
             FROM (SELECT id, CASE WHEN id % 7 <> 0 THEN CASE WHEN id % 2 = 0 \
               THEN round(id / 10.0, 1) ELSE round(id / 10.0, 6) END END AS price \
               FROM generate_series(0, 299) id) AS prices",
        )
        .unwrap();
    let same = verification(&database, &source);
    assert!(same.matches(), "{same:?}");
    for (change, column) in [
        ("UPDATE people SET prices[2] = 2.501 WHERE id = 50", "prices"),
        ("UPDATE people SET item.price = 7 WHERE id = 60", "item"),
        ("UPDATE people SET items[1].n = -1 WHERE id = 70", "items"),
    ] {
        client.batch_execute(&format!("CREATE TABLE before AS TABLE people; {change}")).unwrap();
        let changed = verification(&database, &source);
        assert!(!changed.matches());
        assert_eq!(changed.differing, [column]);
        client.batch_execute("TRUNCATE people; INSERT INTO people TABLE before; DROP TABLE before").unwrap();
    }
    assert!(verification(&database, &source).matches());
}
