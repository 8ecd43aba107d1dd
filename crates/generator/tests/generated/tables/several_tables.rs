//! Specs with several tables: parents and children, and columns of the rows that a row refers to.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_select::take::take;
use sawmill_generator::Dataset;

/// Customers have columns of many kinds; orders look all of them up, and items belong to orders.
fn spec() -> String {
    let columns = [
        ("country", "type = \"string\"\nvalues = { weights = { AT = 1, DE = 5, US = 10 } }"),
        (
            "language",
            "type = \"string\"\nvalues = { weights_by = { field = \"country\", given = { US = { en = 8, es = 2 } }, otherwise = { de = 1 } } }",
        ),
        ("name", "type = \"string\"\nvalues = \"person_name\""),
        (
            "mail",
            "type = \"string\"\nvalues = { expression = \"concat(lower(replace(name, ' ', '.')), '@x.at')\" }",
        ),
        ("address", "type = \"string\"\nvalues = \"email\""),
        ("code", "type = \"string\"\nvalues = { unique = \"C{id:06}\" }"),
        ("born", "type = \"date\"\nvalues = { uniform = { min = 1950-01-01, max = 2005-12-31 } }"),
        (
            "limit",
            "type = \"decimal\"\nprecision = 9\nscale = 2\nvalues = { expression = \"100 + exponential(50)\" }",
        ),
        ("score", "type = \"double\"\nvalues = { normal = { mean = 0, stddev = 1 } }"),
        ("active", "type = \"boolean\"\nvalues = { weights = { true = 3, false = 1 } }"),
        (
            "seen",
            "type = \"timestamp\"\nvalues = { walk = { start = 2024-01-01T00:00:00, step = \"1m\", jitter = 1 } }",
        ),
        ("token", "type = \"uuid\"\nvalues = \"uuid\""),
        ("rank", "type = \"int32\"\nvalues = { zipf = { n = 100, s = 1 } }"),
        (
            "wide",
            "type = \"decimal\"\nprecision = 30\nvalues = { uniform = { min = 0, max = \"123456789012345678901234567890\" } }",
        ),
        ("wider", "type = \"decimal\"\nprecision = 76\nvalues = { uniform = { min = 0, max = \"1e75\" } }"),
    ];
    let mut spec = String::from(
        "name = \"shop\"\n[[tables]]\nname = \"orders\"\nrows = 20_000\n\
         [[tables.fields]]\nname = \"id\"\ntype = \"int64\"\nvalues = { sequence = { start = 100, step = 10 } }\n\
         [[tables.fields]]\nname = \"customer\"\ntype = \"int64\"\nvalues = { ref = { to = \"customers.id\", s = 1, shuffled = true } }\n",
    );
    for (name, kind) in columns {
        let kind = kind.split("\nvalues").next().unwrap();
        spec += &format!(
            "[[tables.fields]]\nname = \"{name}\"\n{kind}\nvalues = {{ lookup = {{ by = \"customer\", column = \"{name}\" }} }}\n"
        );
    }
    spec += "[[tables]]\nname = \"customers\"\nrows = 3_000\n\
             [[tables.fields]]\nname = \"id\"\ntype = \"int64\"\nvalues = { sequence = { start = 1 } }\n";
    for (name, kind) in columns {
        spec += &format!("[[tables.fields]]\nname = \"{name}\"\n{kind}\n");
    }
    spec += r#"
[[tables]]
name = "items"
per = { table = "orders", rows = { weights = { 0 = 1, 1 = 5, 3 = 4 } } }
[[tables.fields]]
name = "order"
type = "int64"
values = { parent = "id" }
[[tables.fields]]
name = "line"
type = "int32"
values = "child_number"
[[tables.fields]]
name = "country"
type = "string"
values = { lookup = { by = "order", column = "country" } }
[[tables.fields]]
name = "price"
type = "double"
values = { expression = "if(country == 'US', uniform(10, 20), uniform(1, 2))" }
[[tables]]
name = "returns"
rows = 5_000
fields = [
  { name = "item", type = "int64", hidden = true, values.ref = { to = "items", s = 1, shuffled = true } },
  { name = "order", type = "int64", values.lookup = { by = "item", column = "order" } },
  { name = "line", type = "int32", values.lookup = { by = "item", column = "line" } },
]
"#;
    spec
}

fn rows(table: &str, rows: Range<u64>) -> RecordBatch {
    let dataset = Dataset::table_from_toml(&spec(), table, None).unwrap();
    let size = (rows.end - rows.start) as usize;
    dataset.batches(rows, 11, size).next().unwrap().unwrap()
}

#[test]
fn a_look_up_has_the_values_of_the_row_that_the_key_names() {
    let (orders, customers) = (rows("orders", 0..20_000), rows("customers", 0..3_000));
    let keys = orders.column_by_name("customer").unwrap().as_primitive::<Int64Type>();
    let places = arrow_array::UInt32Array::from_iter_values(keys.values().iter().map(|key| *key as u32 - 1));
    for (name, column) in
        customers.schema().fields().iter().map(|f| f.name()).zip(customers.columns()).skip(1)
    {
        let expected: ArrayRef = take(column, &places, None).unwrap();
        assert_eq!(orders.column_by_name(name).unwrap(), &expected, "{name}");
    }
}

#[test]
fn look_ups_by_one_drawn_row_are_a_key_of_two_columns() {
    let pairs = |table: &str, n: u64| -> Vec<(i64, i32)> {
        let rows = rows(table, 0..n);
        let [orders, lines] = ["order", "line"].map(|name| rows.column_by_name(name).unwrap().clone());
        let (orders, lines) = (orders.as_primitive::<Int64Type>(), lines.as_primitive::<Int32Type>());
        orders.values().iter().copied().zip(lines.values().iter().copied()).collect()
    };
    let items = Dataset::table_from_toml(&spec(), "items", None).unwrap().rows().unwrap();
    let keys = pairs("items", items);
    let returned = pairs("returns", 5_000);
    let all: HashSet<&(i64, i32)> = keys.iter().collect();
    assert_eq!(all.len(), keys.len());
    assert!(returned.iter().all(|pair| all.contains(pair)));
    let most = returned.iter().filter(|pair| pair.1 > 1).count();
    assert!((1_500..3_500).contains(&most), "{most}");
}

#[test]
fn frequent_keys_are_spread_over_the_table_if_they_are_shuffled() {
    let orders = rows("orders", 0..20_000);
    let mut counts: HashMap<i64, u64> = HashMap::new();
    for key in orders.column_by_name("customer").unwrap().as_primitive::<Int64Type>().values() {
        *counts.entry(*key).or_default() += 1;
    }
    let mut counts: Vec<(u64, i64)> = counts.into_iter().map(|(key, count)| (count, key)).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // Under Zipf with s = 1 over 3,000 ranks, the first rank has 1 / 8.6 of all rows.
    assert!((2_100..2_550).contains(&counts[0].0), "{:?}", counts[0]);
    let mean = counts[..50].iter().map(|(_, key)| key).sum::<i64>() / 50;
    assert!((1_000..2_000).contains(&mean), "{mean}");
}

#[test]
fn each_parent_has_its_declared_number_of_children() {
    let items = Dataset::table_from_toml(&spec(), "items", None).unwrap();
    let count = items.rows().unwrap();
    let items = rows("items", 0..count);
    let orders = rows("orders", 0..20_000);
    let countries: HashMap<i64, String> = (orders.column(0).as_primitive::<Int64Type>().values().iter())
        .zip(orders.column_by_name("country").unwrap().as_string::<i32>())
        .map(|(id, country)| (*id, country.unwrap().to_owned()))
        .collect();
    let mut counts: HashMap<i64, i32> = HashMap::new();
    let line = items.column_by_name("line").unwrap().as_primitive::<Int32Type>();
    let price = items.column_by_name("price").unwrap().as_primitive::<arrow_array::types::Float64Type>();
    let country = items.column_by_name("country").unwrap().as_string::<i32>();
    for (i, order) in items.column(0).as_primitive::<Int64Type>().values().iter().enumerate() {
        let so_far = counts.entry(*order).or_default();
        *so_far += 1;
        assert_eq!(line.value(i), *so_far);
        assert_eq!(country.value(i), countries[order]);
        assert_eq!(price.value(i) >= 10.0, country.value(i) == "US");
    }
    for (children, share) in [(0, 0.1), (1, 0.5), (3, 0.4)] {
        let found = match children {
            0 => 20_000 - counts.len(),
            n => counts.values().filter(|count| **count == n).count(),
        };
        assert!((found as f64 / 20_000.0 - share).abs() < 0.002, "{children}: {found}");
    }
}

#[test]
fn any_rows_of_a_table_are_those_of_the_whole() {
    for table in ["orders", "items"] {
        let whole = rows(table, 0..9_000);
        assert_eq!(rows(table, 1_000..1_003), whole.slice(1_000, 3), "{table}");
        assert_eq!(rows(table, 5_000..9_000), whole.slice(5_000, 4_000), "{table}");
    }
}

#[test]
fn a_scale_multiplies_the_rows_of_all_tables() {
    let scaled = |table| Dataset::table_from_toml(&spec(), table, Some(0.1)).unwrap().rows().unwrap();
    let whole = |table| Dataset::table_from_toml(&spec(), table, None).unwrap().rows().unwrap();
    assert_eq!((scaled("customers"), scaled("orders")), (300, 2_000));
    assert!(scaled("items").abs_diff(whole("items") / 10) < 5);
    let orders = Dataset::table_from_toml(&spec(), "orders", Some(0.1)).unwrap();
    let orders = orders.batches(0..2_000, 1, 2_000).next().unwrap().unwrap();
    let most = orders.column_by_name("customer").unwrap().as_primitive::<Int64Type>().values().iter().max();
    assert!(*most.unwrap() <= 300);
}

#[test]
fn a_table_of_children_has_no_rows_beyond_its_last_parent() {
    let items = Dataset::table_from_toml(&spec(), "items", None).unwrap();
    let rows = items.most_rows().unwrap();
    let drawn = |rows: Range<u64>| items.batches(rows, 1, 10).find_map(Result::err);
    assert!(drawn(rows - 5..rows).is_none());
    let error = drawn(rows - 5..rows + 1).unwrap().to_string();
    assert!(error.contains(&format!("row {rows}")) && error.contains("no row of the other table"), "{error}");
}

#[test]
fn what_is_wrong_with_a_table_is_said_with_its_line() {
    let table = |name: &str, rest: &str, values: &str| {
        format!(
            "[[tables]]\nname = \"{name}\"\n{rest}\n[[tables.fields]]\nname = \"id\"\ntype = \"int64\"\nvalues = {values}\n"
        )
    };
    let a = table("a", "rows = 10", "{ sequence = {} }");
    let wrong = |b: String, name: &str| {
        let spec = format!("name = \"s\"\n{a}{b}");
        Dataset::table_from_toml(&spec, name, None).unwrap_err().to_string()
    };
    let field =
        |values: &str| format!("[[tables.fields]]\nname = \"x\"\ntype = \"int64\"\nvalues = {values}\n");
    for (b, complaint) in [
        (
            table("b", "per = { table = \"c\", rows = { constant = 1 } }", "{ sequence = {} }"),
            "no table is named \"c\"",
        ),
        (
            table("b", "per = { table = \"b\", rows = { constant = 1 } }", "{ sequence = {} }"),
            "one another's parents",
        ),
        (
            table("b", "per = { table = \"a\", rows = { constant = 0 } }", "{ sequence = {} }"),
            "have no rows of b",
        ),
        (
            table("b", "rows = 3\nper = { table = \"a\", rows = { constant = 1 } }", "{ sequence = {} }"),
            "remove one",
        ),
        (table("b", "rows = 3", "{ parent = \"id\" }"), "a table without a parent"),
        (
            table("b", "per = { table = \"a\", rows = { constant = 1 } }", "{ parent = \"ID\" }"),
            "no column \"ID\"",
        ),
        (table("b", "rows = 3", "{ ref = \"a.ix\" }"), "a has no key \"ix\""),
        (
            table("b", "rows = 3", "{ sequence = {} }")
                + &field("{ lookup = { by = \"id\", column = \"id\" } }"),
            "does not refer to a table",
        ),
        (table("b", "rows = 3", "{ ref = \"b.id\" }"), "b has no key"),
        (table("a", "rows = 3", "{ sequence = {} }"), "two tables are named \"a\""),
        (table("A", "rows = 3", "{ sequence = {} }"), "\"a\" and \"A\", one folder where case is ignored"),
        (table("../b", "rows = 3", "{ sequence = {} }"), "\"../b\" cannot be the name of a table"),
        (table("b", "rows = 0", "{ sequence = {} }"), "`rows = 0` of the table b"),
        (table("b", "row = 3", "{ sequence = {} }"), "unknown key `row` of a table"),
    ] {
        let error = wrong(b, "b");
        assert!(error.contains(complaint) && error.contains("line"), "{complaint}: {error}");
    }
    assert!(wrong(String::new(), "b").contains("no table \"b\""));
    let pair: String = [("p", "q"), ("q", "p")]
        .map(|(name, other)| {
            let refers = field(&format!("{{ ref = \"{other}.id\" }}")).replace("\"x\"", "\"r\"");
            let looks_up = field("{ lookup = { by = \"r\", column = \"x\" } }");
            table(name, "rows = 5", "{ sequence = {} }") + &refers + &looks_up
        })
        .concat();
    let cycle = wrong(pair, "p");
    assert!(cycle.starts_with("tables that look one another up: p, q.x, p.x, q.x - line "), "{cycle}");
    let spec = format!("name = \"s\"\n{a}");
    assert!(Dataset::from_toml(&spec).unwrap_err().to_string().contains("several tables"));
    assert!(Dataset::table_from_toml(&spec, "a", Some(0.0)).unwrap_err().to_string().contains("scale"));
}

const UUID_KEYS: &str = r#"
name = "shop"
[[tables]]
name = "visits"
rows = 9_000
fields = [
  { name = "customer", type = "uuid", nulls = 0.2, values.ref = { to = "customers.id", s = 1, shuffled = true } },
  { name = "country", type = "string", nulls = 0.1, values.lookup = { by = "customer", column = "country" } },
  { name = "token", type = "string", nulls = 0.1, values.ref = "customers.token" },
  { name = "code", type = "string", values.ref = { to = "customers.code", s = 1, shuffled = true } },
  { name = "by_token", type = "string", nulls = 0, values.lookup = { by = "token", column = "country" } },
  { name = "by_code", type = "string", values.lookup = { by = "code", column = "country" } },
  { name = "initial", type = "string", values.expression = "substring(code, 1, 1)" },
  { name = "lost", type = "uuid", values.ref = { to = "customers.id", orphans = 0.25 } },
  { name = "friends", type = "list", length.constant = 2, element = { type = "uuid", values.ref = "customers.id" } },
]
[[tables]]
name = "customers"
rows = 3_000
fields = [
  { name = "id", type = "uuid", values = "uuid" },
  { name = "token", type = "string", values = "uuid" },
  { name = "code", type = "string", values.pattern = { unique = { "[A-Z]{3}" = 2, "[a-z][0-9]{3}" = 1 } } },
  { name = "country", type = "string", values.pattern = "[A-Z]{2}[0-9]{6}" },
  { name = "referrer", type = "uuid", nulls = 0.5, values.ref = "customers.id" },
]
"#;

#[test]
fn uuids_are_keys_that_references_and_look_ups_use() {
    let made = |table: &str, rows: Range<u64>| {
        let dataset = Dataset::table_from_toml(UUID_KEYS, table, None).unwrap();
        let size = (rows.end - rows.start) as usize;
        dataset.batches(rows, 11, size).next().unwrap().unwrap()
    };
    let (visits, customers) = (made("visits", 0..9_000), made("customers", 0..3_000));
    let ids = |batch: &RecordBatch, name: &str| -> Vec<Option<Vec<u8>>> {
        let column = batch.column_by_name(name).unwrap().as_fixed_size_binary();
        column.iter().map(|id| id.map(<[u8]>::to_vec)).collect()
    };
    let strings = |batch: &RecordBatch, name: &str| -> Vec<Option<String>> {
        let column = batch.column_by_name(name).unwrap().as_string::<i32>();
        column.iter().map(|text| text.map(str::to_owned)).collect()
    };
    let countries: HashMap<_, _> =
        ids(&customers, "id").into_iter().zip(strings(&customers, "country")).collect();
    assert_eq!(countries.len(), 3_000);
    let mut looked_up = 0;
    for (customer, country) in ids(&visits, "customer").into_iter().zip(strings(&visits, "country")) {
        assert!(customer.is_some() || country.is_none());
        looked_up += usize::from(country.is_some());
        assert!(country.is_none() || country == countries[&customer]);
    }
    assert!((6_000..7_000).contains(&looked_up), "{looked_up}");
    let is_known = |id: &Option<Vec<u8>>| countries.contains_key(id);
    let known = ids(&visits, "lost").iter().filter(|id| is_known(id)).count();
    assert!((6_500..7_000).contains(&known), "{known}");
    assert!(ids(&customers, "referrer").iter().all(|id| id.is_none() || is_known(id)));
    for (key, looked_up) in [("token", "by_token"), ("code", "by_code")] {
        let countries: HashMap<_, _> =
            strings(&customers, key).into_iter().zip(strings(&customers, "country")).collect();
        for (key, country) in strings(&visits, key).into_iter().zip(strings(&visits, looked_up)) {
            assert_eq!(country, key.clone().and_then(|_| countries[&key].clone()), "{key:?}");
        }
    }
    let initials = strings(&visits, "code").into_iter().map(|code| code.map(|code| code[..1].to_owned()));
    assert!(initials.eq(strings(&visits, "initial")));
    let friends = visits.column_by_name("friends").unwrap().as_list::<i32>().values().clone();
    assert!(friends.as_fixed_size_binary().iter().all(|id| is_known(&id.map(<[u8]>::to_vec))));
    // A range of rows alone equals the same range of the whole table.
    assert_eq!(made("visits", 5_000..5_100), visits.slice(5_000, 100));
}

#[test]
fn the_children_of_a_parent_refer_to_different_rows() {
    let spec = |rows: u32, more: &str| {
        format!(
            "name = \"school\"\n[[tables]]\nname = \"students\"\nrows = 2_500\n\
             fields = [{{ name = \"id\", type = \"int64\", values.sequence = {{}} }}]\n\
             [[tables]]\nname = \"courses\"\nrows = {rows}\nfields = [\n\
             {{ name = \"id\", type = \"uuid\", values = \"uuid\" }},\n\
             {{ name = \"code\", type = \"string\", values.unique = \"C{{id:03}}\" }},\n\
             {{ name = \"number\", type = \"int64\", values.sequence = {{ start = 7, step = 3 }} }},\n]\n\
             [[tables]]\nname = \"enrolments\"\nper = {{ table = \"students\", rows.uniform = {{ min = 0, max = 12 }} }}\n\
             fields = [\n{{ name = \"student\", type = \"int64\", values.parent = \"id\" }},\n\
             {{ name = \"course\", type = \"uuid\", values.ref = {{ to = \"courses.id\", distinct = true{more} }} }},\n\
             {{ name = \"code\", type = \"string\", values.ref = {{ to = \"courses.code\", distinct = true }} }},\n\
             {{ name = \"number\", type = \"int64\", nulls = 0.1, values.ref = {{ to = \"courses.number\", distinct = true }} }},\n\
             {{ name = \"same\", type = \"string\", values.lookup = {{ by = \"course\", column = \"code\" }} }},\n]\n"
        )
    };
    let dataset = Dataset::table_from_toml(&spec(40, ""), "enrolments", None).unwrap();
    let rows = dataset.rows().unwrap();
    let made = dataset.batches(0..rows, 3, rows as usize).next().unwrap().unwrap();
    let students = made.column_by_name("student").unwrap().as_primitive::<Int64Type>().values();
    let mut courses: HashMap<String, u32> = HashMap::new();
    for name in ["course", "code", "number", "same"] {
        let column = texts(made.column_by_name(name).unwrap());
        let pairs: Vec<_> = students.iter().zip(&column).filter(|(_, course)| course.is_some()).collect();
        let different: std::collections::HashSet<_> = pairs.iter().collect();
        assert_eq!(different.len(), pairs.len(), "{name}");
        for course in column.into_iter().flatten() {
            *courses.entry(course).or_default() += 1;
        }
    }
    // Each of the 40 courses has a fortieth of the rows, under each of its three keys.
    assert_eq!(courses.len(), 3 * 40);
    assert!(courses.values().all(|n| (u64::from(*n)) > rows / 60), "{courses:?}");
    let refused = |spec: &str| Dataset::table_from_toml(spec, "enrolments", None).unwrap_err().to_string();
    assert!(refused(&spec(11, "")).contains("a parent has up to 12 children, but there are 11 rows"));
    assert!(refused(&spec(40, ", s = 1")).contains("`distinct` with `s`"));
}

/// The values of a column as texts.
fn texts(column: &ArrayRef) -> Vec<Option<String>> {
    use arrow_array::Array;
    (0..column.len())
        .map(|i| {
            let text = || match column.data_type() {
                arrow_schema::DataType::Int64 => column.as_primitive::<Int64Type>().value(i).to_string(),
                arrow_schema::DataType::Utf8 => column.as_string::<i32>().value(i).to_owned(),
                _ => format!("{:?}", column.as_fixed_size_binary().value(i)),
            };
            column.is_valid(i).then(text)
        })
        .collect()
}
