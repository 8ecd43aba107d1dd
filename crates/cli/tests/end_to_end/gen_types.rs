//! `sawmill gen`: intervals, durations, lists of a fixed size and shapes, in the hands of other readers and of PostgreSQL.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use postgres::{Client, NoTls};

use crate::database::Database;
use crate::harness::sawmill;

const SPEC: &str = r#"
name = "spans"
fields = [
  { name = "id", type = "int64", values = { sequence = {} } },
  { name = "lasts", type = "interval", nulls = 0.1, values = { weights = { "1y 2mo 3d 4h" = 1, "90min" = 1 } } },
  { name = "notice", type = "interval", values = { uniform = { min = "1mo", max = "6mo 20d 12h" } } },
  { name = "took", type = "duration", unit = "ms", nulls = 0.2, values = { uniform = { min = "-1.5s", max = "2h" } } },
  { name = "twice", type = "duration", unit = "ms", nulls = 0, values = { expression = "took * 2" } },
  { name = "vector", type = "list", size = 3, nulls = 0.2, element = { type = "float", nulls = 0.3, values = { normal = { mean = 0, stddev = 1 } } } },
  { name = "tokens", type = "list", size = 2, nulls = 0.1, element = { type = "uuid", values = "uuid" } },
  { name = "spans", type = "list", nulls = 0.2, length = { uniform = { min = 0, max = 3 } }, element = { type = "duration", nulls = 0.1, values = { uniform = { min = "0s", max = "1h" } } } },
  { name = "old", type = "list", legacy = true, length = { uniform = { min = 0, max = 3 } }, element = { type = "interval", values = { constant = "5d" } } },
  { name = "place", type = "geometry", nulls = 0.1, values = { point = { x = [16.2, 16.6], y = [48.1, 48.3] } } },
  { name = "plot", type = "geometry", crs = "EPSG:31256", values = { polygon = { x = [0, 90], y = [34, 35], radius = 4, corners = 6 } } },
]
"#;

fn spec(dir: &Path) -> PathBuf {
    let path = dir.join("spans.toml");
    fs::write(&path, SPEC).unwrap();
    path
}

/// A Python with these modules; CI makes one, others may have it.
pub fn python(modules: &str) -> Option<String> {
    let python = std::env::var("SAWMILL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let there = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    if there.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    println!("skipped: {python} has no {modules}; name one that has in SAWMILL_PYTHON");
    None
}

/// What a script prints of the file.
pub fn run(python: &str, script: &str, path: &Path) -> String {
    let ran = Command::new(python).args(["-c", script, path.to_str().unwrap()]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// Writes 3,000 rows of the spec as a file.
fn file(dir: &Path, format: &str) -> PathBuf {
    let path = dir.join(format!("spans.{format}"));
    let args = ["gen", spec(dir).to_str().unwrap(), "--rows", "3000", "--out", path.to_str().unwrap()]
        .map(str::to_owned);
    let format = (format != "parquet").then(|| ["--as".to_owned(), format.to_owned()]);
    sawmill(args.into_iter().chain(format.into_iter().flatten())).ok();
    path
}

#[test]
fn pyarrow_reads_the_same_values_from_parquet_and_from_arrow() {
    let Some(python) = python("pyarrow.parquet") else { return };
    let dir = tempfile::tempdir().unwrap();
    let parquet = file(dir.path(), "parquet");
    file(dir.path(), "arrow");
    let script = r"
import sys, struct, pyarrow as pa, pyarrow.parquet as pq, pyarrow.ipc as ipc
table = pq.read_table(sys.argv[1])
table.validate(full=True)
source = sys.argv[1].replace('.parquet', '.arrow')
try:
    arrow = ipc.open_file(source).read_all()
except pa.ArrowInvalid:
    arrow = ipc.open_stream(source).read_all()
arrow.validate(full=True)
types = table.schema
assert types.field('took').type == pa.duration('ms'), types
assert types.field('vector').type == pa.list_(pa.field('element', pa.float32()), 3), types
assert types.field('spans').type.value_type == pa.duration('us'), types
for name in ['id', 'took', 'twice', 'vector', 'spans']:
    assert table[name].to_pylist() == arrow[name].to_pylist(), name
for name in ['place', 'plot']:
    storage = [getattr(v, 'as_py', lambda: v)() for v in arrow[name]]
    other = [v.value.as_py() if isinstance(v, pa.ExtensionScalar) and v.is_valid else v.as_py() for v in table[name]]
    assert other == storage, name
assert any(v is None for v in table['vector'].to_pylist())
for name in ['lasts', 'notice', 'old']:
    for stored, value in zip(table[name].to_pylist(), arrow[name].to_pylist()):
        pairs = zip(stored, value) if name == 'old' else [(stored, value)]
        for stored, value in pairs:
            if stored is None:
                assert value is None
                continue
            months, days, milliseconds = struct.unpack('<III', stored)
            assert (months, days, milliseconds * 1_000_000) == tuple(value), (stored, value)
print(table.num_rows)
";
    assert_eq!(run(&python, script, &parquet).trim(), "3000");
}

#[test]
fn duckdb_reads_intervals_and_shapes_as_such() {
    let Some(python) = python("duckdb") else { return };
    let dir = tempfile::tempdir().unwrap();
    let parquet = file(dir.path(), "parquet");
    let script = r#"
import sys, duckdb
def ask(query):
    return duckdb.execute(query.replace("FILE", f"'{sys.argv[1]}'")).fetchall()
types = dict(row[:2] for row in ask("DESCRIBE SELECT * FROM FILE"))
assert types["lasts"] == "INTERVAL" and types["old"] == "INTERVAL[]", types
assert types["vector"] in ("FLOAT[]", "FLOAT[3]") and types["took"] == "BIGINT", types
lasts = {row[0] for row in ask("SELECT DISTINCT lasts::VARCHAR FROM FILE")}
assert lasts == {None, "1 year 2 months 3 days 04:00:00", "01:30:00"}, lasts
part = lambda name: ask(f"SELECT min(datepart('{name}', notice)), max(datepart('{name}', notice)) FROM FILE")[0]
assert part("month") == (1, 6) and part("day") == (0, 20), (part("month"), part("day"))
lengths = ask("SELECT DISTINCT len(vector) FROM FILE WHERE vector IS NOT NULL")
assert lengths == [(3,)], lengths
print(types["place"], types["plot"])
"#;
    let types = run(&python, script, &parquet);
    assert!(types.contains("GEOMETRY") || types.contains("BLOB"), "{types}");
}

#[test]
fn postgresql_gets_intervals_from_files_and_from_specs() {
    let server = Database::new();
    let dir = tempfile::tempdir().unwrap();
    let parquet = file(dir.path(), "parquet");
    let mut client = Client::connect(&server.url(), NoTls).unwrap();
    let generated = format!("gen:{}?rows=3000", spec(dir.path()).display());
    let mut all = Vec::new();
    for (source, table) in [(parquet.to_str().unwrap(), "stored"), (&generated, "made")] {
        sawmill(["load", source, "--to", &server.url(), "--table", table, "--verify"]).ok();
        let columns = "SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY ordinal_position) \
                       FROM information_schema.columns WHERE table_name = $1";
        let columns: String = client.query_one(columns, &[&table]).unwrap().get(0);
        for column in ["lasts interval", "notice interval", "took interval", "twice interval", "place bytea"]
        {
            assert!(columns.contains(column), "{columns}");
        }
        let text = format!("SELECT string_agg(t::text, E'\\n' ORDER BY id) FROM {table} AS t");
        all.push(client.query_one(&text, &[]).unwrap().get::<_, String>(0));
    }
    assert!(all[0].contains("1 year 2 mons 3 days 04:00:00") && all[0] == all[1]);
    let query = "SELECT count(*) FROM stored WHERE twice <> 2 * took OR took > interval '2 hours' OR took < interval '-1.5 s'";
    assert_eq!(client.query_one(query, &[]).unwrap().get::<_, i64>(0), 0);
}

#[test]
fn text_formats_write_them_or_say_which_field_they_cannot_write() {
    let dir = tempfile::tempdir().unwrap();
    let lines =
        sawmill(["gen", spec(dir.path()).to_str().unwrap(), "--rows", "50", "--as", "ndjson", "--out", "-"])
            .ok()
            .out;
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        lines
            .iter()
            .any(|line| line["lasts"] == "P1Y2M3DT4H" || line["lasts"].to_string().contains("14 mons")),
        "{}",
        lines[0]
    );
    let tokens = lines.iter().find_map(|line| line["tokens"].as_array()).unwrap();
    assert!(tokens.iter().all(|token| token.as_str().unwrap().len() == 36), "{tokens:?}");
    let vectors = lines.iter().filter_map(|line| line["vector"].as_array());
    assert!(vectors.map(Vec::len).all(|n| n == 3));
}
