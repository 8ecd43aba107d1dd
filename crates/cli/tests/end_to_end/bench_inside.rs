//! `sawmill bench` reports on its own runs: phases, bottleneck, samples over time, the kinds of tables.

use serde_json::Value;

use crate::bench::{GEN, bench, contacts, contacts_of, home, read};

#[test]
fn a_load_shows_its_phases_its_bottleneck_and_the_servers_use_of_the_machine() {
    let home = home();
    let files = contacts_of(&home, "100000");
    let args = ["load", &files, "--runs", "2", "--json-file", "r.json", "--html", "r.html"];
    let table = bench(&home, &args).ok().out;
    let file = read(&home.path().join("r.json"));
    let side = &file["cases"][0]["sides"][0];
    // When our threads and the server are equally busy, neither the screen nor the file gives a verdict.
    let verdict = &side["bottleneck"];
    assert_eq!(
        table.contains("load: ") && table.contains(" % of its time"),
        verdict["limit"].is_string(),
        "{table}"
    );
    assert!(verdict.is_null() || verdict["share"].as_f64().unwrap() > 0.0, "{verdict}");
    let names: Vec<&str> =
        side["phases"].as_array().unwrap().iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["load", "prepare", "copy", "finish"]);
    let load = &side["phases"][0];
    let threads: Vec<&str> =
        load["threads"].as_array().unwrap().iter().map(|thread| thread["name"].as_str().unwrap()).collect();
    assert!(threads.contains(&"sender 1") && threads.contains(&"encoder 1"), "{threads:?}");
    let state = load["hardware"]["state"].as_str().unwrap();
    assert!(["counted", "not_available"].contains(&state), "{state}");
    let timeline = &side["timeline"];
    assert_eq!(timeline["watched"][0], "PostgreSQL");
    let last = timeline["samples"].as_array().unwrap().last().unwrap();
    assert!(last["wire_sent"].as_u64().unwrap() > 10_000, "{last}");
    assert!(last["watched"][0]["resident"].as_u64().unwrap() > 1_000_000, "{last}");
    let cpu = last["watched"][0]["cpu"].as_f64().unwrap();
    assert!(cpu > 0.0, "a load of less than a second sees the server, too: {last}");
    assert!(file["filesystems"].as_array().unwrap().len() >= 2, "of the files and of the server's data");
    let run = &side["runs"][0];
    let cpu = run["user"].as_f64().unwrap() + run["system"].as_f64().unwrap();
    assert!(cpu > 0.0 && (cpu - load["cpu"].as_f64().unwrap()).abs() < 10.0);
    let page = std::fs::read_to_string(home.path().join("r.html")).unwrap();
    assert!(page.contains("waited: network") || page.contains("copy"), "the waterfall");
    assert!(page.contains("Memory") || page.contains("memory"), "memory over time");
    assert!(page.contains("class=\"flame\""), "the flame graph is in the page");
}

#[test]
fn the_commit_of_the_code_is_on_record_where_there_is_one() {
    let home = home();
    bench(&home, &[&GEN[..], &["--runs", "1", "--json-file=r.json"]].concat()).ok();
    let file = read(&home.path().join("r.json"));
    let git = std::process::Command::new("git")
        .args(["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "HEAD"])
        .output();
    match git.ok().filter(|output| output.status.success()) {
        Some(output) => assert_eq!(file["commit"]["hash"], String::from_utf8(output.stdout).unwrap().trim()),
        None => assert_eq!(file["commit"], Value::Null),
    }
}

#[test]
fn data_is_not_written_over_by_results() {
    let home = home();
    let files = contacts(&home);
    let data = std::fs::read_dir(&files).unwrap().next().unwrap().unwrap().path().display().to_string();
    let before = std::fs::read(&data).unwrap();
    for option in ["--json-file", "--html", "--flamegraph"] {
        let error = bench(&home, &["footer", &files, option, &data]).fails(2);
        assert!(error.contains("of another kind"), "{error}");
    }
    assert_eq!(std::fs::read(&data).unwrap(), before);
}

#[test]
fn four_kinds_of_tables_over_connections_come_out_as_four_tables() {
    let home = home();
    let spec = home.path().join("keyed.toml");
    std::fs::write(
        &spec,
        "name = \"keyed\"\n[[fields]]\nname = \"note\"\ntype = \"int32\"\nvalues = { constant = 1 }\n\
         [[fields]]\nname = \"id\"\ntype = \"string\"\nvalues = { unique = \"{id:08}\" }\n",
    )
    .unwrap();
    let (spec, files) = (spec.display().to_string(), home.path().join("files").display().to_string());
    crate::harness::sawmill(["gen", &spec, "--rows", "3000", "--out", &files]).ok();
    let kinds =
        ["--table-kind", "logged,unlogged", "--keyed=yes,no", "--primary-key", "id", "--connections", "1,2"];
    let once = ["--runs", "1", "--warmup", "0", "--json-file", "r.json"];
    let table = bench(&home, &[&["load", &files], &kinds[..], &once].concat()).ok().out;
    for kind in [
        "keyed=no table_kind=logged",
        "keyed=no table_kind=unlogged",
        "keyed=yes table_kind=logged",
        "keyed=yes table_kind=unlogged",
    ] {
        let title = format!("load {kind}\nconnections");
        assert!(table.contains(&title), "{title}: {table}");
    }
    assert_eq!(table.matches("speed-up").count(), 4, "{table}");
    assert_eq!(read(&home.path().join("r.json"))["cases"].as_array().unwrap().len(), 8);
    // The default key is the first column, whose values here are all the same.
    let error = bench(&home, &["load", &files, "--keyed", "yes", "--runs", "1"]).fails(1);
    assert!(error.contains("duplicate key"), "{error}");
    let error = bench(&home, &["load", &files, "--keyed", "yes", "--primary-key", "nobody"]).fails(2);
    assert!(error.contains("no column \"nobody\""), "{error}");
}

#[test]
fn batches_are_swept_by_a_range() {
    let home = home();
    let files = contacts(&home);
    let sweep =
        ["--batch-rows", "256..1024*2", "--connections", "1", "--runs", "1", "--warmup", "0", "--json"];
    let json = bench(&home, &[&["load", &files], &sweep[..]].concat()).ok().json();
    let rows: Vec<&str> = json["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["parameters"]["batch_rows"].as_str().unwrap())
        .collect();
    assert_eq!(rows, ["256", "512", "1024"]);
    bench(&home, &["load", &files, "--batch-rows", "0"]).fails(2);
}

#[test]
fn rows_of_the_generator_are_loaded_and_tables_that_are_there_are_emptied_or_replaced() {
    let home = home();
    let once = ["--runs", "1", "--warmup", "0", "--json"];
    let generated = "gen:contacts?rows=3000";
    for mode in ["create", "append", "truncate", "replace"] {
        let json = bench(&home, &[&["load", generated, "--mode", mode], &once[..]].concat()).ok().json();
        assert_eq!(json["cases"][0]["sides"][0]["runs"][0]["rows"], 3000, "{mode}");
    }
    bench(&home, &[&["load", generated, "--mode", "upsert"], &once[..]].concat()).fails(2);
    bench(&home, &[&["load", generated, "--mode", "replace", "--strategy", "staged"], &once[..]].concat())
        .fails(2);
}
