mod folds;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_select::concat::concat_batches;
use proptest::prelude::*;

use crate::{Dataset, Job, Layout, Output, Part, write};

/// Orders with sums of their items, items with running balances, a stream of changes of rows with nulls.
const SHOP: &str = r#"
name = "shop"
[[tables]]
name = "customers"
rows = 3_000
fields = [
  { name = "id", type = "int64", values.sequence = { start = 1 } },
  { name = "region", type = "string", values.choice = ["north", "south"] },
  { name = "mail", type = "string", nulls.expression = "region == 'south' and uniform(0, 1) < 0.5", values.unique = "c{id}@x.at" },
  { name = "spent", type = "decimal", precision = 15, scale = 2, values.sum = { of = "orders.total" } },
  { name = "level", type = "string", values.expression = "if(spent > 200, 'gold', 'none')" },
]
[[tables]]
name = "orders"
per = { table = "customers", rows.uniform = { min = 1, max = 4 } }
fields = [
  { name = "customer", type = "int64", values.parent = "id" },
  { name = "mood", type = "double", hidden = true, values.uniform = { min = 0, max = 1 } },
  { name = "tags", type = "list", hidden = true, length.constant = 2, element = { type = "string", values = "words" } },
  { name = "happy", type = "boolean", values.expression = "mood > 0.8" },
  { name = "id", type = "int64", values.sequence = {} },
  { name = "list", type = "list", nulls.expression = "mood < 0.3", length.uniform = { min = 0, max = 3 }, element = { type = "int32", nulls.expression = "happy", values.uniform = { min = 0, max = 9 } } },
  { name = "total", type = "decimal", precision = 12, scale = 2, values.sum = { of = "items.amount" } },
  { name = "items", type = "int32", values.count = { of = "items" } },
  { name = "taxed", type = "decimal", precision = 12, scale = 2, values.expression = "total * 1.2" },
  { name = "first", type = "date", values.min = { of = "payments.day" } },
  { name = "last", type = "date", values.max = { of = "payments.day" } },
  { name = "state", type = "string", values.expression = "case(previous(state, 'none') == 'none', 'new', previous(state, '') == 'new' and uniform(0, 1) < 0.5, 'paid', 'sent')" },
]
[[tables]]
name = "items"
per = { table = "orders", rows = { weights = { 0 = 2, 1 = 5, 3 = 4, 900 = 0.01 } } }
fields = [
  { name = "order", type = "int64", values.parent = "id" },
  { name = "amount", type = "decimal", precision = 7, scale = 2, values.uniform = { min = -5, max = 99.99 } },
  { name = "balance", type = "decimal", precision = 12, scale = 2, values.expression = "previous(balance, 0) + amount" },
  { name = "before", type = "decimal", precision = 7, scale = 2, values.expression = "previous(amount, 7)" },
  { name = "total", type = "decimal", precision = 12, scale = 2, values.parent = "total" },
  { name = "share", type = "double", values.expression = "if(total == 0, 0, amount / total)" },
]
[[tables]]
name = "payments"
per = { table = "orders", rows.uniform = { min = 1, max = 5 } }
fields = [
  { name = "day", type = "date", values.uniform = { min = 2024-01-01, max = 2024-12-31 } },
]
[[tables]]
name = "visits"
rows = 2_000
fields = [
  { name = "customer", type = "int64", values.ref = "customers.id" },
  { name = "mail", type = "string", nulls = 0, values.lookup = { by = "customer", column = "mail" } },
  { name = "spent", type = "decimal", precision = 15, scale = 2, values.lookup = { by = "customer", column = "spent" } },
  { name = "item", type = "int64", hidden = true, values.ref = "lines.id" },
  { name = "balance", type = "int32", values.lookup = { by = "item", column = "reading" } },
]
[[tables]]
name = "lines"
per = { table = "customers", rows.uniform = { min = 0, max = 7 } }
fields = [
  { name = "id", type = "int64", values.sequence = {} },
  { name = "reading", type = "int32", values.expression = "previous(reading, 100) + uniform(0, 9)" },
]
[[tables]]
name = "people"
rows = 3_000
fields = [
  { name = "id", type = "int64", values.sequence = {} },
  { name = "city", type = "string", nulls = 0.2, values.choice = ["Graz", "Linz", "Wien"] },
  { name = "noise", type = "int32", hidden = true, values.uniform = { min = 0, max = 1_000_000 } },
  { name = "zone", type = "int32", nulls = 0.1, values.expression = "length(city) + noise" },
  { name = "fixed", type = "double", nulls.expression = "id % 7 == 0", values.normal = { mean = 0, stddev = 1 } },
]
[[tables]]
name = "stream"
changes = { of = "people", updates = { geometric = { p = 0.4, max = 20 } }, deletes = 0.1, columns = ["city", "noise"] }
[[tables]]
name = "now"
state_of = "stream"
[[tables]]
name = "received"
arrivals = { of = "people", late = { share = 0.1, by = { exponential = { mean = 30 } } }, twice = { share = 0.02, by = { constant = 5 } } }
"#;

const TABLES: [&str; 9] =
    ["customers", "orders", "items", "visits", "lines", "people", "stream", "now", "received"];

fn dataset(table: &str) -> Dataset {
    Dataset::table_from_toml(SHOP, table, None).unwrap_or_else(|error| panic!("{table}: {error}"))
}

fn rows(dataset: &Dataset, rows: Range<u64>, batch: usize) -> RecordBatch {
    let batches: Vec<RecordBatch> = dataset.batches(rows, 7, batch).map(Result::unwrap).collect();
    concat_batches(&dataset.arrow_schema(), &batches).unwrap()
}

fn all(table: &str) -> RecordBatch {
    let dataset = dataset(table);
    rows(&dataset, 0..dataset.rows().unwrap(), 1024)
}

fn whole(batch: &RecordBatch, name: &str) -> Vec<i128> {
    batch.column_by_name(name).unwrap().as_primitive::<Decimal128Type>().values().to_vec()
}

fn ids(batch: &RecordBatch, name: &str) -> Vec<i64> {
    batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().values().to_vec()
}

/// Each row as text.
fn texts(batch: &RecordBatch, columns: &[&str]) -> Vec<String> {
    let columns: Vec<_> = columns.iter().map(|name| batch.column_by_name(name).unwrap()).collect();
    let row = |row| columns.iter().map(|column| format!("{:?}", column.slice(row, 1))).collect();
    (0..batch.num_rows()).map(row).collect()
}

#[test]
fn a_hidden_field_is_in_no_file_and_in_the_formulas() {
    let orders = dataset("orders");
    assert_eq!((orders.columns(), orders.arrow_schema().fields().len()), (10, 10));
    let explained = orders.explain();
    assert!(!explained.schema.contains("mood"), "{}", explained.schema);
    let mood = explained.columns.iter().find(|column| column.path == "mood").unwrap();
    assert!(mood.values.starts_with("hidden: ") && mood.bytes_a_row == 0.0);
    let made = all("orders");
    let happy = made.column_by_name("happy").unwrap().as_boolean();
    let share = happy.true_count() as f64 / happy.len() as f64;
    assert!((share - 0.2).abs() < 0.03, "{share}");
}

#[test]
fn nulls_are_where_the_condition_holds() {
    let customers = all("customers");
    let (region, mail) = (customers.column(1).as_string::<i32>(), customers.column(2));
    let nulls = (0..customers.num_rows()).filter(|row| mail.is_null(*row)).collect::<Vec<_>>();
    assert!(nulls.iter().all(|row| region.value(*row) == "south"));
    assert!((600..900).contains(&nulls.len()), "{}", nulls.len());
    let orders = all("orders");
    let (happy, list) =
        (orders.column_by_name("happy").unwrap().as_boolean(), orders.column_by_name("list").unwrap());
    let share = list.null_count() as f64 / list.len() as f64;
    assert!((share - 0.3).abs() < 0.03, "{share}");
    for row in (0..list.len()).filter(|row| list.is_valid(*row)) {
        let elements = list.as_list::<i32>().value(row);
        assert_eq!(elements.null_count(), if happy.value(row) { elements.len() } else { 0 });
    }
}

#[test]
fn sums_are_those_of_the_children() {
    let (customers, orders, items) = (all("customers"), all("orders"), all("items"));
    let mut sums: HashMap<i64, (i128, i32)> = HashMap::new();
    for (order, amount) in ids(&items, "order").into_iter().zip(whole(&items, "amount")) {
        let sum = sums.entry(order).or_default();
        *sum = (sum.0 + amount, sum.1 + 1);
    }
    let counts = orders.column_by_name("items").unwrap().as_primitive::<Int32Type>();
    let mut of_customers: HashMap<i64, i128> = HashMap::new();
    for (row, (id, customer)) in ids(&orders, "id").into_iter().zip(ids(&orders, "customer")).enumerate() {
        let expected = sums.get(&id).copied().unwrap_or_default();
        assert_eq!((whole(&orders.slice(row, 1), "total")[0], counts.value(row)), expected, "order {id}");
        *of_customers.entry(customer).or_default() += expected.0;
    }
    for (id, spent) in ids(&customers, "id").into_iter().zip(whole(&customers, "spent")) {
        assert_eq!(Some(&spent), of_customers.get(&id), "customer {id}");
    }
    let texts = texts(&orders, &["first", "last"]);
    assert!(texts.len() > 1000 && orders.column_by_name("first").unwrap().null_count() == 0);
    // Children see the sum of their parent.
    let shares = items.column_by_name("share").unwrap().as_primitive::<Float64Type>();
    assert!(shares.values().iter().any(|share| *share > 0.0 && *share < 1.0));
    for (order, total) in ids(&items, "order").into_iter().zip(whole(&items, "total")) {
        assert_eq!(total, sums[&order].0);
    }
}

#[test]
fn a_row_continues_the_row_before_of_its_parent() {
    let items = all("items");
    let (orders, amounts) = (ids(&items, "order"), whole(&items, "amount"));
    let (balances, before) = (whole(&items, "balance"), whole(&items, "before"));
    let mut longest = 0;
    let mut number = 0;
    for row in 0..orders.len() {
        let is_first = row == 0 || orders[row] != orders[row - 1];
        number = if is_first { 0 } else { number + 1 };
        longest = longest.max(number);
        let (balance, amount) = if is_first { (0, 700) } else { (balances[row - 1], amounts[row - 1]) };
        assert_eq!((balances[row], before[row]), (balance + amounts[row], amount), "row {row}");
    }
    assert_eq!(longest, 899);
    let orders = all("orders");
    let state = orders.column_by_name("state").unwrap().as_string::<i32>();
    let customers = ids(&orders, "customer");
    for row in 0..state.len() {
        let is_first = row == 0 || customers[row] != customers[row - 1];
        match state.value(row) {
            "new" => assert!(is_first),
            "paid" => assert_eq!(state.value(row - 1), "new"),
            _ => assert!(!is_first),
        }
    }
}

#[test]
fn look_ups_have_nulls_sums_and_chains() {
    let (visits, customers, lines) = (all("visits"), all("customers"), all("lines"));
    let wanted = texts(&customers, &["mail", "spent"]);
    let found = texts(&visits, &["mail", "spent"]);
    for (customer, found) in ids(&visits, "customer").into_iter().zip(found) {
        assert_eq!(found, wanted[customer as usize - 1]);
    }
    let readings = lines.column_by_name("reading").unwrap().as_primitive::<Int32Type>().values();
    let balances = visits.column_by_name("balance").unwrap().as_primitive::<Int32Type>().values();
    assert!(balances.iter().all(|balance| readings.contains(balance)));
}

#[test]
fn changes_and_arrivals_keep_nulls() {
    let (people, received, stream, now) = (all("people"), all("received"), all("stream"), all("now"));
    let columns = ["id", "city", "zone", "fixed"];
    let of_id = |batch: &RecordBatch| -> HashMap<i64, String> {
        ids(batch, "id").into_iter().zip(texts(batch, &columns)).collect()
    };
    let base = of_id(&people);
    assert_eq!(base.len(), 3_000);
    assert!(people.column_by_name("zone").unwrap().null_count() > 700);
    for (id, row) in ids(&received, "id").into_iter().zip(texts(&received, &columns)) {
        assert_eq!(row, base[&id]);
    }
    let op = stream.column_by_name("op").unwrap().as_string::<i32>();
    let image = |name: &str| {
        RecordBatch::from(stream.column_by_name(name).unwrap().as_struct().clone_without_nulls())
    };
    let (before, after) = (image("before"), image("after"));
    let (old, new) = (texts(&before, &columns), texts(&after, &columns));
    let mut state: HashMap<i64, String> = HashMap::new();
    let mut changed = 0;
    for row in 0..stream.num_rows() {
        let id = ids(if op.value(row) == "delete" { &before } else { &after }, "id")[row];
        if op.value(row) != "insert" {
            assert_eq!(state.remove(&id).as_ref(), Some(&old[row]), "row {row}");
        }
        if op.value(row) == "insert" {
            assert_eq!(new[row], base[&id]);
        }
        if op.value(row) != "delete" {
            changed += usize::from(op.value(row) == "update" && old[row] != new[row]);
            state.insert(id, new[row].clone());
        }
    }
    assert!(changed > 2_000, "{changed}");
    assert_eq!(of_id(&now), state);
}

/// The columns of a struct as they are where it is null, too.
trait CloneWithoutNulls {
    fn clone_without_nulls(&self) -> arrow_array::StructArray;
}

impl CloneWithoutNulls for arrow_array::StructArray {
    fn clone_without_nulls(&self) -> arrow_array::StructArray {
        let (fields, columns, _) = self.clone().into_parts();
        let nullable: arrow_schema::Fields =
            fields.iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        arrow_array::StructArray::new(nullable, columns, None)
    }
}

#[test]
fn a_table_has_the_rows_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("geo.toml");
    let text = r#"
name = "geo"
[[tables]]
name = "countries"
file = "countries.csv"
fields = [
  { name = "id", type = "int32", hidden = true, values.sequence = {} },
  { name = "code", type = "string", values = "column" },
  { name = "people", type = "int64", values = "column" },
]
[[tables]]
name = "cities"
rows = 100
fields = [
  { name = "key", type = "int32", hidden = true, values.ref = { to = "countries.id", s = 0 } },
  { name = "country", type = "string", values.lookup = { by = "key", column = "code" } },
  { name = "people", type = "int64", values.lookup = { by = "key", column = "people" } },
]
"#;
    let csv = "people,code,note\n9,AT,\"a, b\"\n84,DE,\n10,CH,x\n";
    std::fs::write(&spec, text).unwrap();
    std::fs::write(folder.path().join("countries.csv"), csv).unwrap();
    let read = |table: &str| Dataset::table_of_file(&spec, table, Some(10.0));
    let countries = read("countries").unwrap();
    assert_eq!((countries.rows(), countries.files().len()), (Some(3), 1));
    let made = rows(&countries, 0..3, 10);
    assert_eq!(made.column(0).as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["AT", "DE", "CH"]);
    assert_eq!(made.column(1).as_primitive::<Int64Type>().values(), &[9, 84, 10]);
    let cities = rows(&read("cities").unwrap(), 0..1000, 100);
    for (country, people) in cities.column(0).as_string::<i32>().iter().zip(ids(&cities, "people")) {
        assert_eq!(people, HashMap::from([("AT", 9), ("DE", 84), ("CH", 10)])[country.unwrap()]);
    }
    for (from, to, complaint) in [
        ("AT", "AT,1", "row 1 of countries.csv has not 3 cells"),
        ("84", "many", "row 2 of countries.csv has no int64 in people"),
        ("code", "kode", "countries.csv has no column \"code\""),
        ("note", "code", "countries.csv has two columns \"code\""),
        ("84", "\"84", "the quote in line 3 of countries.csv is not closed"),
    ] {
        std::fs::write(folder.path().join("countries.csv"), csv.replace(from, to)).unwrap();
        let error = read("countries").unwrap_err().to_string();
        assert!(error.contains(complaint), "{complaint}: {error}");
    }
}

#[test]
fn a_table_has_the_rows_of_its_parquet_file() {
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("d.toml");
    let fields = |values: &str| -> String {
        let types = [
            "'string', values = 'words'",
            "'int64', values.uniform = { min = -5, max = 5 }",
            "'uint64', values.uniform = { min = 0, max = 9 }",
            "'float', values.normal = { mean = 0, stddev = 1 }",
            "'double', values.normal = { mean = 0, stddev = 1e9 }",
            "'decimal', precision = 10, scale = 2, values.uniform = { min = -1, max = 1 }",
            "'date', values.uniform = { min = 1960-01-01, max = 2020-01-01 }",
            "'time', unit = 'us', values.uniform = { min = 00:00:00, max = 23:59:59 }",
            "'timestamp', unit = 'ns', values.uniform = { min = 1960-01-01T00:00:00, max = 2020-01-01T00:00:00 }",
            "'timestamp', unit = 'ms', zone = 'UTC', values.uniform = { min = 1960-01-01T00:00:00Z, max = 2020-01-01T00:00:00Z }",
            "'uuid', values = 'uuid'",
            "'binary', values.choice = ['0x', '0x00ff']",
            "'fixed_binary', width = 3, values = 'bytes'",
            "'json', values.choice = ['{}', '[1, 2]']",
        ];
        let field = |(n, kind): (usize, &&str)| {
            let kind = if values.is_empty() { kind } else { kind.split(", values").next().unwrap() };
            format!("{{ name = 'f{n}', type = {kind}{values} }},\n")
        };
        types.iter().enumerate().map(field).collect()
    };
    let note = "{ name = 'note', type = 'string', nulls = 1, values = 'words' },\n\
                { name = 'list', type = 'list', length.constant = 2, element = { type = 'int32', values.constant = 1 } },\n";
    let made =
        Dataset::from_toml(&format!("name = 'd'\nrows = 50\nfields = [{}{note}]", fields(""))).unwrap();
    let made = rows(&made, 0..50, 50);
    let file = std::fs::File::create(folder.path().join("d.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, made.schema(), None).unwrap();
    writer.write(&made).unwrap();
    writer.close().unwrap();
    let read = |more: &str| {
        let fields = fields(", values = 'column'") + more;
        let text = format!("name = 'g'\n[[tables]]\nname = 'd'\nfile = 'd.parquet'\nfields = [{fields}]");
        std::fs::write(&spec, text).unwrap();
        Dataset::table_of_file(&spec, "d", None)
    };
    let copy = read("").unwrap();
    assert_eq!((copy.rows(), copy.files().len()), (Some(50), 1));
    let columns: Vec<usize> = (0..14).collect();
    assert_eq!(rows(&copy, 0..50, 20).columns(), made.project(&columns).unwrap().columns());
    for (name, complaint) in
        [("note", "row 1 of d.parquet has no string in note"), ("list", "d.parquet has no column \"list\"")]
    {
        let error = read(&format!("{{ name = '{name}', type = 'string', values = 'column' }}")).unwrap_err();
        assert!(error.to_string().contains(complaint), "{error}");
    }
    std::fs::write(folder.path().join("d.parquet"), "PAR1").unwrap();
    let error = read("").unwrap_err().to_string();
    assert!(error.contains("cannot read the rows in"), "{error}");
}

#[test]
fn mistakes_name_the_field_and_the_way_out() {
    for (table, from, to, complaint) in [
        (
            "orders",
            "sum = { of = \"items.amount\" }",
            "sum = { of = \"items.taxes\" }",
            "items has no column \"taxes\"",
        ),
        (
            "orders",
            "sum = { of = \"items.amount\" }",
            "sum = { of = \"people.id\" }",
            "\"people\" is not a table with rows for each row of orders",
        ),
        (
            "orders",
            "sum = { of = \"items.amount\" }",
            "sum = { of = \"payments.day\" }",
            "the sum of payments.day is a date",
        ),
        (
            "orders",
            "sum = { of = \"items.amount\" }",
            "sum = { of = \"items.total\" }",
            "look one another up: orders, items.total, orders.total, items.total",
        ),
        ("orders", "count = { of = \"items\" }", "count = { of = \"items.id\" }", "it counts rows"),
        (
            "orders",
            "min = { of = \"payments.day\" }",
            "min = { of = \"items.order\" }",
            "the min of items.order is an int64, and the field is a date",
        ),
        (
            "customers",
            "sum = { of = \"orders.total\" }",
            "sum = { of = \"customers.id\" }",
            "is not a table with rows for each row of customers",
        ),
        ("items", "previous(balance, 0)", "previous(balance)", "without its first value"),
        ("items", "previous(balance, 0) + amount", "balance + amount", "previous(balance, FIRST)"),
        ("items", "previous(amount, 7)", "previous(later, 7)", "later is not an earlier field"),
        ("items", "previous(amount, 7)", "previous(amount, 'x')", "a text at character"),
        ("orders", "'paid', 'sent')", "'paid', concat(previous(state, ''), 'x'))", "texts that can grow"),
        ("people", "length(city) + noise", "previous(noise, 1)", "a table without a parent"),
        ("people", "id % 7 == 0", "id % 7", "the formula is a number"),
        ("people", "id % 7 == 0", "zones > 1", "zones is not an earlier field"),
        ("orders", "hidden = true", "hidden = 1", "use true or false"),
        ("visits", "nulls = 0, values.lookup", "values.lookup", "add `nulls = 0`"),
    ] {
        assert!(SHOP.contains(from), "{from}");
        let error = Dataset::table_from_toml(&SHOP.replacen(from, to, 1), table, None);
        let error =
            error.map(|_| format!("{from} -> {to} is accepted")).unwrap_or_else(|error| error.to_string());
        assert!(error.contains(complaint), "{complaint}: {error}");
    }
}

#[test]
fn a_table_depends_on_what_formulas_name_and_on_no_word_of_a_text() {
    // The label has the word `total` in a text, the total depends on the label. The copula needs the total, the label
    // does not follow the copula.
    let spec = r#"
name = "words"
[[tables]]
name = "customers"
rows = 40
copula = [{ field = "mood" }, { field = "size", with = [0.5] }]
fields = [
  { name = "total", type = "int64", values.sum = { of = "orders.amount" } },
  { name = "mood", type = "string", nulls.expression = "total > 15", values.weights = { good = 1, bad = 2 } },
  { name = "size", type = "double", values.quantiles = { values = [1, 9] } },
  { name = "name", type = "string", values.choice = ["a", "bcd"] },
  { name = "label", type = "string", values.expression = "concat('total ', name)" },
]
[[tables]]
name = "orders"
per = { table = "customers", rows.constant = 2 }
fields = [
  { name = "label", type = "string", values.parent = "label" },
  { name = "amount", type = "int64", values.expression = "length(label)" },
]
"#;
    let customers = Dataset::table_from_toml(spec, "customers", None).unwrap();
    let made = rows(&customers, 0..40, 1024);
    let labels = made.column_by_name("label").unwrap().as_string::<i32>();
    let mood = made.column_by_name("mood").unwrap();
    for (row, total) in ids(&made, "total").into_iter().enumerate() {
        assert_eq!(total, 2 * labels.value(row).len() as i64);
        assert_eq!(mood.is_null(row), total > 15);
    }
    // A cycle through a formula is one.
    let cycle = spec.replace("concat('total ', name)", "concat(total, name)");
    let error = Dataset::table_from_toml(&cycle, "customers", None).unwrap_err().to_string();
    assert!(
        error.contains("look one another up: customers, orders.amount, customers.label, orders.amount"),
        "{error}"
    );
}

#[test]
fn a_column_of_another_table_sees_the_fields_that_its_own_table_sees() {
    // Inside the struct, `size` is the field before it, and the condition names a field `true`.
    let spec = r#"
name = "names"
[[tables]]
name = "boxes"
rows = 50
fields = [
  { name = "id", type = "int64", values.sequence = {} },
  { name = "true", type = "boolean", values.expression = "id % 2 == 0" },
  { name = "size", type = "int64", values.expression = "id * 10" },
  { name = "inner", type = "struct", fields = [
    { name = "size", type = "int64", values.expression = "if(true, size, 7)" },
  ] },
]
[[tables]]
name = "parts"
per = { table = "boxes", rows.constant = 1 }
fields = [
  { name = "box", type = "int64", values.parent = "id" },
  { name = "size", type = "int64", values.parent = "inner.size" },
]
"#;
    let parts = Dataset::table_from_toml(spec, "parts", None).unwrap();
    let made = rows(&parts, 0..50, 1024);
    for (id, size) in ids(&made, "box").into_iter().zip(ids(&made, "size")) {
        assert_eq!(size, if id % 2 == 0 { id * 10 } else { 7 });
    }
}

/// The files of a table, written by `threads` with these row groups, part by part.
fn files(dataset: &Dataset, threads: usize, group: u64, parts: u32) -> Vec<Vec<u8>> {
    let layout = Layout::new(dataset.rows().unwrap().min(5_000), 3).unwrap();
    let layout = layout.with_row_group_rows(group).unwrap();
    let profile = sawmill_profile::Profile::new();
    let (phase, cancel) = (profile.phase("generate"), false.into());
    let mut made = Vec::new();
    for part in Part::all(parts) {
        let folder = tempfile::tempdir().unwrap();
        let output = Output::Directory(folder.path().into());
        let job = Job {
            threads: NonZeroUsize::new(threads).unwrap(),
            seed: 7,
            part,
            ..Job::new(&layout, &output, &phase, &cancel)
        };
        let mut written = write(dataset, &job).unwrap();
        written.sort_by_key(|file| file.file);
        made.extend(written.iter().map(|file| std::fs::read(&file.path).unwrap()));
    }
    made
}

#[test]
fn files_have_the_same_bytes_with_any_threads_and_parts() {
    for table in TABLES {
        let dataset = dataset(table);
        for group in [1_500, 700] {
            let one = files(&dataset, 1, group, 1);
            assert_eq!(one.len(), 3);
            assert!(one == files(&dataset, 3, group, 1), "{table}: threads");
            assert!(one == files(&dataset, 2, group, 3), "{table}: parts");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]
    #[test]
    fn any_rows_are_those_of_the_whole(table in 0..TABLES.len(), start in 0u64..2_900, count in 1u64..3_000, batch in 1usize..3_000) {
        let dataset = dataset(TABLES[table]);
        let end = dataset.rows().unwrap().min(start + count);
        let start = start.min(end - 1);
        let batch = batch.max(50);
        let made = rows(&dataset, start..end, batch);
        let whole = rows(&dataset, 0..end, 4096);
        prop_assert_eq!(&made, &whole.slice(start as usize, made.num_rows()), "{} from {}", TABLES[table], start);
        for place in 0..made.num_columns() {
            let alone = dataset.batches_of(&[place], start..end, 7, 5_000).unwrap().next().unwrap().unwrap();
            prop_assert_eq!(alone.column(0), made.column(place), "{} column {}", TABLES[table], place);
        }
    }
}
