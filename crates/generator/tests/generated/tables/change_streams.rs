//! Tables derived from another one: a change stream leads to the promised state, and arrivals have every row.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use sawmill_generator::Dataset;

const CRM: &str = r#"
name = "crm"
[[tables]]
name = "regions"
rows = 50
fields = [
  { name = "id", type = "int32", values = { sequence = {} } },
  { name = "label", type = "string", values = { words = { min = 1, max = 3 } } },
]
[[tables]]
name = "customers"
rows = 3_000
fields = [
  { name = "id", type = "int64", values = { sequence = { start = 1 } } },
  { name = "code", type = "string", values = { unique = "C{id:05}" } },
  { name = "name", type = "string", values = "person_name" },
  { name = "region", type = "int32", values = { ref = "regions.id" } },
  { name = "label", type = "string", values = { lookup = { by = "region", column = "label" } } },
  { name = "city", type = "string", values = { choice = ["Graz", "Linz", "Wien"] } },
  { name = "credit", type = "decimal", precision = 9, scale = 2, values = { expression = "if(city == 'Wien', 2, 1) * uniform(100, 200)" } },
  { name = "token", type = "uuid", values = "uuid" },
  { name = "active", type = "boolean", values = { weights = { true = 3, false = 1 } } },
  { name = "score", type = "double", values = { normal = { mean = 0, stddev = 1 } } },
  { name = "since", type = "date", values = { uniform = { min = 2020-01-01, max = 2024-12-31 } } },
  { name = "notice", type = "interval", values = { uniform = { min = "1d", max = "30d" } } },
]
[[tables]]
name = "changes"
changes = { of = "customers", updates = { geometric = { p = 0.4, max = 20 } }, deletes = 0.2, columns = ["city", "region", "score"] }
fields = [{ name = "lsn", type = "int64", values = { sequence = {} } }]
[[tables]]
name = "now"
state_of = "changes"
[[tables]]
name = "received"
arrivals = { of = "customers", late = { share = 0.1, by = { exponential = { mean = 30 } } }, twice = { share = 0.02, by = { constant = 5 } } }
"#;

fn dataset(table: &str) -> Dataset {
    Dataset::table_from_toml(CRM, table, None).unwrap_or_else(|error| panic!("{error}"))
}

fn all(table: &str, batch_rows: usize) -> RecordBatch {
    let dataset = dataset(table);
    let batches: Vec<RecordBatch> =
        dataset.batches(0..dataset.rows().unwrap(), 7, batch_rows).map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&dataset.arrow_schema(), &batches).unwrap()
}

/// Each row as the texts of its columns, the key first.
fn texts(record: &StructArray) -> Vec<Vec<String>> {
    let options = FormatOptions::new();
    let columns: Vec<ArrayFormatter<'_>> =
        record.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
    (0..record.len())
        .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect())
        .collect()
}

fn rows(table: &str) -> Vec<Vec<String>> {
    texts(&StructArray::from(all(table, 1024)))
}

#[test]
fn replaying_the_stream_leads_to_the_state_that_the_spec_promises() {
    let stream = all("changes", 1000);
    let op = stream.column_by_name("op").unwrap().as_string::<i32>();
    let image = |name: &str| stream.column_by_name(name).unwrap().as_struct().clone();
    let (before, after) = (image("before"), image("after"));
    let (old, new) = (texts(&before), texts(&after));
    let base: HashMap<String, Vec<String>> =
        rows("customers").into_iter().map(|row| (row[0].clone(), row)).collect();
    let mut state: HashMap<String, Vec<String>> = HashMap::new();
    let mut counts: HashMap<&str, u64> = HashMap::new();
    let mut changed = [0; 12];
    for row in 0..stream.num_rows() {
        *counts.entry(op.value(row)).or_default() += 1;
        match op.value(row) {
            "insert" => {
                assert!(before.is_null(row) && after.is_valid(row));
                assert_eq!(new[row], base[&new[row][0]], "rows are inserted as they are in the table");
                assert_eq!(state.insert(new[row][0].clone(), new[row].clone()), None);
            }
            "update" => {
                assert!(before.is_valid(row) && after.is_valid(row));
                let known = state.get_mut(&new[row][0]).unwrap();
                assert_eq!(*known, old[row], "the image before is the state");
                for (i, (old, new)) in old[row].iter().zip(&new[row]).enumerate() {
                    changed[i] += u64::from(old != new);
                }
                known.clone_from(&new[row]);
            }
            _ => {
                assert!(before.is_valid(row) && after.is_null(row));
                assert_eq!(state.remove(&old[row][0]).as_ref(), Some(&old[row]));
            }
        }
    }
    let now: HashMap<String, Vec<String>> =
        rows("now").into_iter().map(|row| (row[0].clone(), row)).collect();
    assert_eq!(now, state);
    assert_eq!((counts["insert"], counts["delete"]), (3_000, 600));
    assert!((4_000..5_000).contains(&counts["update"]), "{counts:?}");
    // The listed columns change, and the columns computed from them; the others do not.
    let names = [
        "id", "code", "name", "region", "label", "city", "credit", "token", "active", "score", "since",
        "notice",
    ];
    for (name, n) in names.iter().zip(changed) {
        let expected = ["region", "label", "city", "credit", "score"].contains(name);
        assert_eq!(n > 500, expected, "{name} changed {n} times");
        assert!(expected || n == 0, "{name} changed {n} times");
    }
    for row in new.iter().enumerate().filter(|(row, _)| after.is_valid(*row)).map(|(_, row)| row) {
        let credit: f64 = row[6].parse().unwrap();
        assert_eq!(credit > 200.0, row[5] == "Wien", "formulas hold in every version: {row:?}");
    }
}

#[test]
fn a_change_depends_on_its_number_alone() {
    for table in ["changes", "now", "received"] {
        let dataset = dataset(table);
        let whole = all(table, 4096);
        for start in [1, 777, 1023, 2100] {
            let part = dataset.batches(start..start + 300, 7, 256).map(Result::unwrap).collect::<Vec<_>>();
            let part = arrow_select::concat::concat_batches(&dataset.arrow_schema(), &part).unwrap();
            assert_eq!(part, whole.slice(start as usize, part.num_rows()), "{table} from {start}");
        }
        let rows = dataset.rows().unwrap();
        assert_eq!(dataset.most_rows(), Some(rows));
        let beyond = dataset.batches(rows..rows + 1, 7, 1).next().unwrap();
        assert!(beyond.unwrap_err().to_string().contains("no row of the other table"), "{table}");
    }
}

#[test]
fn arrivals_have_every_row_once_or_twice_and_some_late() {
    let base: HashMap<String, Vec<String>> =
        rows("customers").into_iter().map(|row| (row[0].clone(), row)).collect();
    let mut times: HashMap<String, u64> = HashMap::new();
    let received = rows("received");
    for row in &received {
        assert_eq!(*row, base[&row[0]]);
        *times.entry(row[0].clone()).or_default() += 1;
    }
    assert_eq!((times.len(), received.len()), (3_000, 3_060));
    let ids = all("received", 512);
    let ids = ids.column_by_name("id").unwrap().as_primitive::<Int64Type>().values().to_vec();
    let late = ids.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!((150..600).contains(&late), "{late} rows after a later one");
}

#[test]
fn mistakes_name_the_table_and_what_is_wrong() {
    let refused = |from: &str, to: &str, table: &str| {
        let spec = CRM.replace(from, to);
        assert_ne!(spec, CRM);
        Dataset::table_from_toml(&spec, table, None).expect_err("the spec is wrong").to_string()
    };
    let error = refused("columns = [\"city\"", "columns = [\"town\"", "changes");
    assert!(error.contains("customers has no column \"town\"") && error.contains("city"), "{error}");
    let error = refused("state_of = \"changes\"", "state_of = \"customers\"", "now");
    assert!(error.contains("\"customers\" is not a table with `changes`"), "{error}");
    let error = refused("state_of = \"changes\"", "state_of = \"changes\"\nrows = 5", "now");
    assert!(error.contains("`rows` of a table with `state_of`"), "{error}");
    let listed =
        "type = \"list\", length = { constant = 1 }, element = { type = \"uuid\", values = \"uuid\" } }";
    let error = refused("type = \"uuid\", values = \"uuid\" }", listed, "changes");
    assert!(error.contains("the column token of customers is not a plain value"), "{error}");
    let error = refused("{ name = \"lsn\"", "{ name = \"after\"", "changes");
    assert!(error.contains("a field \"after\", which the table has already"), "{error}");
    let error = refused("deletes = 0.2", "deletes = 1.5", "changes");
    assert!(error.contains("deletes"), "{error}");
    let error = refused("changes = { of = \"customers\"", "changes = { of = \"changes\"", "changes");
    assert!(error.contains("name another table"), "{error}");
}

#[test]
fn updates_keep_uuids_and_all_rows_may_be_deleted() {
    let spec = CRM.replace(", columns = [\"city\", \"region\", \"score\"]", "");
    assert_ne!(spec, CRM);
    let changes = Dataset::table_from_toml(&spec, "changes", None).unwrap();
    let batch = changes.batches(0..5_000, 7, 5_000).next().unwrap().unwrap();
    let [before, after] =
        ["before", "after"].map(|name| texts(batch.column_by_name(name).unwrap().as_struct()));
    let places = ["code", "token", "score"].map(|name| {
        let fields = batch.column_by_name("after").unwrap().as_struct().column_names().to_vec();
        fields.iter().position(|field| *field == name).unwrap()
    });
    let operations = batch.column_by_name("op").unwrap().as_string::<i32>();
    let updates = (0..batch.num_rows()).filter(|row| operations.value(*row) == "update");
    let changed =
        |place: usize| updates.clone().filter(|row| before[*row][place] != after[*row][place]).count();
    let [codes, tokens, scores] = places.map(changed);
    assert!((codes, tokens) == (0, 0) && scores > 1_000, "{codes} {tokens} {scores}");

    let spec = CRM.replace("deletes = 0.2", "deletes = 1");
    let now = Dataset::table_from_toml(&spec, "now", None).unwrap();
    assert_eq!((now.rows(), now.batches(0..0, 7, 10).count()), (Some(0), 0));
}
