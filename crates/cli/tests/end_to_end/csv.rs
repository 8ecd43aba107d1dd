//! Delimited text as a source of loads, with PostgreSQL's own COPY as an independent reader.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use sawmill_cratedb_standin::StandIn;

use crate::harness::{command, sawmill, signal, start, until, wait};
use crate::load::Bench;

impl Bench {
    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

/// Trips with quotes, newlines in quotes, NULLs and empty strings.
fn trips(rows: usize, newline: &str) -> String {
    let mut text = ["id", "at", "fare", "paid", "day", "note"].join(",") + newline;
    for id in 0..rows {
        let note = match id % 7 {
            0 => String::new(),
            1 => "\"\"".to_owned(),
            2 => "\"two\nlines, and \"\"quotes\"\"\"".to_owned(),
            3 => "5\" pipe".to_owned(),
            4 => "Zürich".to_owned(),
            _ => format!("note {id}"),
        };
        let fare = if id % 5 == 0 { String::new() } else { format!("{}.{:02}", id % 90, id % 100) };
        let (hour, minute) = (id / 60 % 24, id % 60);
        write!(
            text,
            "{id},2024-03-{:02} {hour:02}:{minute:02}:07.25,{fare},{},2024-02-{:02},{note}{newline}",
            1 + id % 31,
            id % 3 == 0,
            1 + id % 29
        )
        .unwrap();
    }
    text
}

#[test]
fn a_load_of_csv_gives_the_rows_that_the_servers_own_copy_reads() {
    let bench = Bench::new();
    for (name, newline) in [("unix", "\n"), ("windows", "\r\n")] {
        let text = trips(20_000, newline);
        let file = bench.file(&format!("{name}.csv"), &text);
        let report = bench.load(&file, name, &["--verify", "--unit-rows", "1500", "--json"]).ok().json();
        assert_eq!(report["report"]["rows"], 20_000);
        assert_eq!(report["report"]["verified"]["target"], report["report"]["content"]);
        let mut client = bench.client();
        client.batch_execute(&format!("create table copied_{name} (like {name})")).unwrap();
        // COPY takes a quote within an unquoted field for the start of a quoted part.
        let text = text.replace("5\" pipe", "\"5\"\" pipe\"");
        let mut copy =
            client.copy_in(&format!("copy copied_{name} from stdin (format csv, header)")).unwrap();
        copy.write_all(text.as_bytes()).unwrap();
        copy.finish().unwrap();
        for (a, b) in
            [(name.to_owned(), format!("copied_{name}")), (format!("copied_{name}"), name.to_owned())]
        {
            let lacking = format!("select count(*) from (select * from {a} except all select * from {b}) x");
            assert_eq!(bench.count(&lacking), 0, "rows of {a} that {b} lacks");
        }
        sawmill(bench.args("verify", &file, name, &[])).ok();
        client.batch_execute(&format!("update {name} set note = 'x' where id = 77")).unwrap();
        sawmill(bench.args("verify", &file, name, &[])).fails(4);
    }
    let types = "select string_agg(data_type, ',' order by ordinal_position) from information_schema.columns \
                 where table_name = 'unix'";
    let types: String = bench.client().query_one(types, &[]).unwrap().get(0);
    assert_eq!(types, "bigint,timestamp without time zone,double precision,boolean,date,text");
}

#[test]
fn a_killed_load_of_csv_is_finished_by_the_same_command_with_exactly_its_rows() {
    let bench = Bench::new();
    let file = bench.file("trips.csv", &trips(400_000, "\n"));
    let args = bench.args("load", &file, "c", &["--unit-rows", "5k"]);
    let child = start(&args);
    let mut client = bench.client();
    until("the first units", || {
        let units = client.query_one("select count(*) from _sawmill.units", &[]);
        units.is_ok_and(|row| row.get::<_, i64>(0) > 3)
    });
    signal(&child, "KILL");
    wait(child);
    assert!(!bench.exists("c"));
    let json = sawmill(args.iter().map(String::as_str).chain(["--json", "--verify"])).ok().json();
    assert_eq!(json["report"]["rows"], 400_000);
    assert!(json["report"]["units_resumed"].as_u64().unwrap() > 0, "{json}");
    assert_eq!(bench.count("select count(*) from c"), 400_000);
    assert_eq!(bench.count("select count(distinct id) from c"), 400_000);
}

#[test]
fn a_repeated_load_does_nothing_and_another_dialect_is_named() {
    let bench = Bench::new();
    let file = bench.file("a.csv", "a,b\n1,NA\n2,x\n");
    bench.load(&file, "c", &[]).ok();
    assert!(bench.load(&file, "c", &[]).ok().out.contains("nothing to do"));
    let append = ["--mode", "append"];
    bench.load(&file, "c", &append).ok();
    assert_eq!(bench.count("select count(*) from c"), 2, "the file is in the table already");
    let told = bench.load(&file, "c", &["--mode", "append", "--null", "NA"]).ok();
    assert!((told.out + &told.err).contains("1 file on record, read by other options for text; --again"));
    assert_eq!(bench.count("select count(*) from c where b is null"), 0);
    bench.load(&file, "c", &["--mode", "append", "--null", "NA", "--again"]).ok();
    assert_eq!(bench.count("select count(*) from c"), 4, "other values were asked for");
    assert_eq!(bench.count("select count(*) from c where b is null"), 1);
    bench.load(&file, "c", &["--mode", "append", "--null", "NA"]).ok();
    assert_eq!(bench.count("select count(*) from c"), 4);
    // The same length, written by another program while nothing ran.
    fs::write(&file, "a,b\n1,NA\n3,x\n").unwrap();
    let error = bench.load(&file, "c", &append).fails(1);
    assert!(error.contains("--changed append"), "{error}");
    let told = bench.load(&file, "c", &[&append[..], &["--changed", "append"]].concat()).ok();
    assert!((told.out + &told.err).contains("loaded before with other content"));
    assert_eq!(bench.count("select count(*) from c"), 6);
}

#[test]
fn a_file_that_changed_between_two_runs_of_a_load_is_refused() {
    let bench = Bench::new();
    let text = trips(300_000, "\n");
    let file = bench.file("trips.csv", &text);
    let args = bench.args("load", &file, "c", &["--unit-rows", "5k"]);
    let child = start(&args);
    let mut client = bench.client();
    until("the first units", || {
        let units = client.query_one("select count(*) from _sawmill.units", &[]);
        units.is_ok_and(|row| row.get::<_, i64>(0) > 3)
    });
    signal(&child, "KILL");
    wait(child);
    fs::write(&file, text.replacen("note 5", "NOTE 5", 1)).unwrap();
    let error = sawmill(&args).fails(1);
    assert!(error.contains("trips.csv") && error.contains("changed"), "{error}");
    fs::write(&file, text).unwrap();
    sawmill(&args).ok();
    assert_eq!(bench.count("select count(*) from c"), 300_000);
}

#[test]
fn explain_names_the_value_that_decided_each_type() {
    let bench = Bench::new();
    let file = bench.file("a.csv", "id,zip,fare\n1,01234,2.5\n2,99999,x\n3,55555,4\n");
    let plan = bench.load(&file, "c", &["--explain"]).ok().out;
    let line =
        |column: &str| plan.lines().find(|line| line.starts_with(column)).unwrap_or_default().to_owned();
    assert!(line("id").contains("int64"), "{plan}");
    assert!(line("zip").contains("text") && line("zip").contains("\"01234\""), "{plan}");
    assert!(line("fare").contains("\"x\" in") && line("fare").contains("line 3, byte offset 32"), "{plan}");
    let typed =
        bench.load(&file, "c", &["--explain", "--json", "--types", "zip=int32,fare=text"]).ok().json();
    assert_eq!(typed["columns"][1]["type"], "int32");
    assert_eq!(typed["columns"][2]["because"], "given");
    assert_eq!(typed["dialect"][0]["option"], "--delimiter ','");
    let german = bench.file("b.csv", "id;fare\n1;2,50\n2;3,75\n");
    let out = german.with_extension("parquet");
    let plan = sawmill([
        "convert",
        german.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
        "--delimiter",
        ";",
        "--explain",
    ]);
    let plan = plan.ok().out;
    let line = |start: &str| plan.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    assert!(line("--delimiter ';'").contains("3 of 3 records have 2 fields"), "{plan}");
    assert!(
        line("--decimal-comma").contains("\"2,50\"") && line("--decimal-comma").ends_with("no"),
        "{plan}"
    );
    let error = bench.load(&file, "c", &["--types", "fare=decimal(10,2)"]).fails(1);
    for part in ["\"x\" is not of type decimal(10,2)", "line 3, byte offset 32", "column \"fare\"", "--types"]
    {
        assert!(error.contains(part), "{error}");
    }
    assert!(!bench.exists("c"));
}

#[test]
fn inputs_of_both_kinds_and_options_of_the_other_kind_are_refused() {
    let bench = Bench::new();
    let text = bench.file("a.csv", "a\n1\n");
    let parquet = bench.contacts("100");
    let mixed = [parquet.to_str().unwrap()];
    let error = bench.load(&text, "c", &mixed).fails(2);
    assert!(error.contains("files of several formats"), "{error}");
    let error = bench.load(&parquet, "c", &["--delimiter", ";"]).fails(2);
    assert!(error.contains("--delimiter is available for text only"), "{error}");
    let error = bench.load(&text, "c", &["--where", "a = 1"]).fails(2);
    assert!(error.contains("a condition on text"), "{error}");
    let error = bench.load(&text, "c", &["--quote", ","]).fails(2);
    assert!(error.contains("',' is both the delimiter and the quote"), "{error}");
    let url = bench.load(Path::new("https://localhost:1/a.csv"), "c", &[]).fails(1);
    assert!(url.contains("cannot be reached"), "{url}");
}

#[test]
fn several_files_columns_in_another_order_folders_and_chosen_columns_become_one_table() {
    let bench = Bench::new();
    bench.file("day=2024-01-01/a.tsv", "id\tname\n1\tAnn\n");
    bench.file("day=2024-01-02/b.tsv", "name\tid\nBob\t2\n\"C\tD\"\t3\n");
    let pattern = bench.dir.path().join("*/*.tsv");
    bench.load(&pattern, "c", &["--columns", "day,name", "--rename", "name=called", "--verify"]).ok();
    let rows = "select string_agg(day || ' ' || called, ';' order by called) from c";
    let rows: String = bench.client().query_one(rows, &[]).unwrap().get(0);
    assert_eq!(rows, "2024-01-01 Ann;2024-01-02 Bob;2024-01-02 C\tD");
    // The text in a directory without Parquet files is read.
    bench.load(bench.dir.path(), "d", &[]).ok();
    assert_eq!(bench.count("select count(*) from d"), 3);
    bench.file("day=2024-01-03/c.tsv", "id\tother\n1\tx\n");
    let error = bench.load(&pattern, "e", &[]).fails(1);
    assert!(error.contains("[\"name\"] are missing, [\"other\"] are only in this file"), "{error}");
}

#[test]
fn text_on_standard_input_is_loaded_and_its_errors_name_it() {
    let bench = Bench::new();
    let run = |table: &str, input: &str| {
        let args =
            bench.args("load", Path::new("-"), table, &["--format", "csv", "--no-header", "--names", "a,b"]);
        let mut child = command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        wait(child)
    };
    run("c", "1,x\n2,y").ok();
    assert_eq!(bench.count("select sum(a)::bigint from c"), 3);
    let error = run("d", "1,x\n2\n").fails(1);
    assert!(error.contains("standard input, line 2") && !error.contains("sawmill-"), "{error}");
}

#[test]
fn a_header_alone_is_an_empty_table_and_an_empty_file_an_error() {
    let bench = Bench::new();
    bench.load(&bench.file("header.csv", "a,b\n"), "c", &["--verify"]).ok();
    assert_eq!(bench.count("select count(*) from c"), 0);
    let error = bench.load(&bench.file("empty.csv", ""), "d", &[]).fails(1);
    assert!(error.contains("the file has no header") && error.contains("empty.csv"), "{error}");
}

#[test]
fn csv_is_loaded_into_cratedb_and_verified() {
    let bench = tempfile::tempdir().unwrap();
    let file = bench.path().join("trips.csv");
    fs::write(&file, trips(3_000, "\n")).unwrap();
    let standin = StandIn::start(1);
    let run = |verb: &str, more: &[&str]| {
        let url = standin.url();
        sawmill([&[verb, file.to_str().unwrap(), "--to", &url, "--table", "trips", "--json"], more].concat())
    };
    assert_eq!(run("load", &["--primary-key", "id"]).ok().json()["report"]["rows"], 3_000);
    run("verify", &[]).ok();
}

#[test]
fn a_table_takes_back_what_the_server_itself_wrote_of_it() {
    let bench = Bench::new();
    let values = [
        ("bool", "true"),
        ("int2", "-7"),
        ("int4", "7"),
        ("int8", "9223372036854775807"),
        ("float4", "1.5"),
        ("float8", "'-Infinity'"),
        ("numeric", "12345678901234567890.123456789"),
        ("numeric(10,2)", "1.5"),
        ("text", "' a,\"b '"),
        ("varchar(5)", "'x'"),
        ("char(3)", "'x'"),
        ("bytea", "'\\xff00'"),
        ("date", "'infinity'"),
        ("date", "'0044-03-15 BC'"),
        ("time", "'24:00:00'"),
        ("timestamp", "'-infinity'"),
        ("timestamp", "'0044-03-15 12:00:00 BC'"),
        ("timestamptz", "'infinity'"),
        ("timestamptz", "'2024-01-01 00:00:00+05:30'"),
        ("timetz", "'04:05:06.789-08'"),
        ("interval", "'1 year 2 mons -3 days +04:05:06.7'"),
        ("interval", "'-100:00:00'"),
        ("uuid", "'00112233-4455-6677-8899-aabbccddeeff'"),
        ("json", "'{\"a\": 1}'"),
        ("jsonb", "'{\"a\": [1, null]}'"),
        ("inet", "'10.0.0.1/8'"),
        ("cidr", "'10.0.0.0/8'"),
        ("macaddr", "'08:00:2b:01:02:03'"),
        ("macaddr8", "'08:00:2b:01:02:03:04:05'"),
        ("int4[]", "'{1,NULL,3}'"),
        ("text[]", "array['a,b', 'NULL', null, '', 'c\"d\\']"),
        ("int2[]", "'[0:1][1:2]={{1,2},{3,4}}'"),
        ("timestamp[]", "array['2024-01-01 00:00:00'::timestamp, 'infinity']"),
        ("numeric[]", "'{}'"),
        ("int4range", "'[1,10)'"),
        ("numrange", "'(,1.5]'"),
        ("tsrange", "'[2024-01-01 10:00,2024-01-02)'"),
        ("daterange", "'empty'"),
        ("tstzrange", "'[2024-01-01 10:00+00,infinity)'"),
        ("int8range", "'(,)'"),
        ("point", "'(1.5,-2)'"),
        ("lseg", "'[(0,0),(1,1)]'"),
        ("box", "'(1,1),(0,0)'"),
        ("path", "'[(0,0),(1,1)]'"),
        ("path", "'((0,0),(1,1))'"),
        ("polygon", "'((0,0),(1,1),(2,0))'"),
        ("line", "'{1,2,3}'"),
        ("circle", "'<(1,2),3>'"),
        ("bit(10)", "B'1000000011'"),
        ("varbit", "B'101'"),
        ("xml", "'<a>1</a>'"),
        ("oid", "4294967295"),
        ("tsvector", "to_tsvector('simple', 'it''s a fat cat')"),
        ("tsvector", "'a:1A fat:2,4B \\\\'"),
    ];
    let columns: Vec<String> = (0..values.len()).map(|at| format!("c{at}")).collect();
    let list = |item: &dyn Fn(usize) -> String| (0..values.len()).map(item).collect::<Vec<_>>().join(", ");
    let definition = list(&|at| format!("c{at} {}", values[at].0));
    let row = list(&|at| format!("({})::{}", values[at].1, values[at].0));
    let mut client = bench.client();
    client.batch_execute(&format!("set timezone = 'UTC'; create table t ({definition}); insert into t select {row}; create table u (like t)")).unwrap();
    let mut text = Vec::new();
    std::io::Read::read_to_end(
        &mut client.copy_out("copy t to stdout (format csv, header)").unwrap(),
        &mut text,
    )
    .unwrap();
    let file = bench.file("t.csv", std::str::from_utf8(&text).unwrap());
    bench.load(&file, "u", &["--mode", "append", "--types", "table", "--verify"]).ok();
    for column in columns {
        let same =
            format!("select count(*) from t, u where t.{column}::text is not distinct from u.{column}::text");
        assert_eq!(bench.count(&same), 1, "{column} {:?}", values[column[1..].parse::<usize>().unwrap()]);
    }
}

#[test]
fn text_takes_the_types_of_the_tables_columns_if_they_are_asked_for() {
    let bench = Bench::new();
    let table = "create table t (code text, fare numeric(10,2), seats smallint, at timestamp, tags int[], \
                 twice int generated always as (seats * 2) stored)";
    bench.client().batch_execute(table).unwrap();
    let file =
        bench.file("a.csv", "Code,fare,seats,at\n007,12.50,4,2024-03-01 10:00:00\n12,3,1,2024-03-02\n");
    let append = ["--mode", "append", "--rename", "Code=code"];
    let types = ["--types", "table"];
    let loaded = bench.load(&file, "t", &[&append[..], &types, &["--verify"]].concat()).ok();
    assert!(loaded.out.contains("verified"), "{}", loaded.out);
    let rows =
        "select count(*) from t where (code, fare, seats, twice) in (('007', 12.50, 4, 8), ('12', 3, 1, 2))";
    assert_eq!(bench.count(rows), 2);
    sawmill(bench.args("verify", &file, "t", &["--rename", "Code=code", "--types", "table"])).ok();
    // PostgreSQL reads numbers with a plus sign or an exponent.
    let more = bench.file("b.csv", "code,fare,seats,at\n1e3,1e1,+5,2024-03-03\n");
    bench.load(&more, "t", &["--mode", "append", "--types", "table"]).ok();
    assert_eq!(bench.count("select count(*) from t where (code, fare, seats) = ('1e3', 10, 5)"), 1);
    let longer = bench.file("d.csv", "code,fare,seats,at\n1,1e-3,5,2024-03-03\n");
    let error = bench.load(&longer, "t", &["--mode", "append", "--types", "table"]).fails(1);
    assert!(error.contains("decimal(10,2)") && error.contains("fare"), "{error}");
    // A named type overrides the table's type.
    let explained =
        bench.load(&more, "t", &[&types[..], &["--types", "fare=float64", "--explain"]].concat()).ok();
    assert!(explained.out.contains("float64"), "{}", explained.out);
    let error = bench.load(&more, "none", &["--types", "table"]).fails(1);
    assert!(error.contains("the table does not exist") && error.contains("none"), "{error}");
    let json = bench.file("c.ndjson", "{\"code\": 1}\n");
    let error = bench.load(&json, "t", &["--mode", "append", "--types", "table"]).fails(2);
    assert!(error.contains("delimited text"), "{error}");
}

#[test]
fn text_columns_of_an_existing_table_take_the_files_own_text() {
    let bench = Bench::new();
    let tables = "create table t (id int, a text, b varchar(20), c char(5), d text, e text); \
                  create table p (x text, y int); \
                  create table k (code text primary key, v int); insert into k values ('1.50', 1)";
    bench.client().batch_execute(tables).unwrap();
    let rows = |table: &str| -> String {
        let sql = format!("select string_agg(r::text, ';' order by r::text) from {table} r");
        bench.client().query_one(&sql, &[]).unwrap().get(0)
    };
    let append = ["--mode", "append", "--verify"];
    let text =
        "id,a,b,c,d,e\n1,1.50,1e3,true,2024-01-01T00:00,10:00\n2,2.0,2e3,false,2024-01-02T00:00,11:00\n";
    let file = bench.file("a.csv", text);
    let loaded = bench.load(&file, "t", &append).ok();
    assert!(loaded.out.contains("verified"), "{}", loaded.out);
    let first = "(1,1.50,1e3,\"true \",2024-01-01T00:00,10:00);(2,2.0,2e3,false,2024-01-02T00:00,11:00)";
    assert_eq!(rows("t"), first);
    sawmill(bench.args("verify", &file, "t", &[])).ok();
    assert!(bench.load(&file, "t", &append).ok().out.contains("nothing to do"));
    let explained = bench.load(&file, "t", &["--mode", "append", "--explain"]).ok().out;
    assert!(explained.contains("text in the table"), "{explained}");
    // Truncating keeps the table; a given type wins; the objects of NDJSON have their numbers as text, too.
    let number = bench.file("b.csv", "id,a\n3,1.50\n");
    bench.load(&number, "t", &["--mode", "truncate", "--types", "a=float64"]).ok();
    assert_eq!(rows("t"), "(3,1.5,,,,)");
    let lines = bench.file("c.ndjson", "{\"id\": 4, \"a\": 1.50, \"b\": true}\n");
    bench.load(&lines, "t", &append).ok();
    assert_eq!(rows("t"), "(3,1.5,,,,);(4,1.50,true,,,)");
    let placed = bench.file("d.csv", "k,v\n1.50,7\n");
    bench.load(&placed, "p", &[&append[..], &["--map", "position"]].concat()).ok();
    assert_eq!(rows("p"), "(1.50,7)");
    let keyed = bench.file("e.csv", "code,v\n1.50,2\n2.0,3\n");
    bench.load(&keyed, "k", &["--mode", "upsert", "--key", "code", "--verify"]).ok();
    assert_eq!(rows("k"), "(1.50,2);(2.0,3)");
}

#[test]
fn a_first_line_that_names_the_delimiter_is_no_record() {
    let bench = Bench::new();
    let file = bench.file("a.csv", "sep=;\r\nid;name\r\n1;a,b\r\n2;c\r\n");
    let plan = bench.load(&file, "c", &["--explain"]).ok().out;
    for option in ["--skip-lines 1", "--delimiter ';'"] {
        let line = plan.lines().find(|line| line.starts_with(option)).unwrap_or_default();
        assert!(!line.is_empty() && !line.ends_with("no"), "{option}: {plan}");
    }
    bench.load(&file, "c", &["--verify"]).ok();
    assert_eq!(bench.count("select count(*) from c where id = 1 and name = 'a,b'"), 1);
    assert_eq!(bench.count("select count(*) from c"), 2);
    bench.load(&file, "without", &["--no-header"]).ok();
    assert_eq!(bench.count("select count(*) from without"), 3);
    // A given delimiter is kept.
    let commas = bench.file("b.csv", "sep=;\nid,name\n1,a;b\n");
    bench.load(&commas, "commas", &["--delimiter", ","]).ok();
    assert_eq!(bench.count("select count(*) from commas where id = 1 and name = 'a;b'"), 1);
}

#[test]
fn an_error_names_the_line_of_a_value_on_every_way_of_loading() {
    let bench = Bench::new();
    let rows = (0..2000).map(|id| match id {
        1500 => format!("{id},bad \0 nul\n"),
        _ => format!("{id},row {id}\n"),
    });
    let file = bench.file("names.csv", &("id,name\n".to_owned() + &rows.collect::<String>()));
    let by = ["--partition-by", "hash(id,4)"];
    for (table, more) in [
        ("plain", vec![]),
        ("direct", [&["--strategy", "direct"], &by[..]].concat()),
        ("staged", [&["--strategy", "staged"], &by[..]].concat()),
    ] {
        let error = bench.load(&file, table, &more).fails(1);
        assert!(
            error.contains("names.csv, line 1502, byte offset 18788, column \"name\""),
            "{table}: {error}"
        );
    }
}

#[test]
fn twenty_thousand_columns_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (text, parquet) = (folder.path().join("wide.csv"), folder.path().join("wide.parquet"));
    let line = |cell: &dyn Fn(u32) -> String| (0..20_000).map(cell).collect::<Vec<_>>().join(",");
    std::fs::write(&text, format!("{}\n{}\n", line(&|at| format!("c{at}")), line(&|_| "1".into()))).unwrap();
    let limited = "ulimit -v 2000000 && exec \"$0\" convert \"$1\" --out \"$2\"";
    let mut limited_by = std::process::Command::new("sh");
    let ran = limited_by.args(["-c", limited, env!("CARGO_BIN_EXE_sawmill")]).args([&text, &parquet]);
    let ran = ran.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(parquet.is_file());
}
