//! Values that the type sample missed: the error's advice lets the load finish.

use std::fs;
use std::path::Path;

use crate::harness::Ran;
use crate::load::Bench;

/// Writes 40,000 rows; one of them has the value `late`.
fn write(folder: &Path, name: &str, first: usize, late: &str) {
    let rows = (0..40_000).map(|row| match row {
        30_003 => format!("{},{late}\n", first + row),
        _ => format!("{},{row}\n", first + row),
    });
    fs::write(folder.join(name), "id,v\n".to_owned() + &rows.collect::<String>()).unwrap();
}

fn night(bench: &Bench, folder: &Path, table: &str, more: &[&str]) -> Ran {
    bench.load(folder, table, &[&["--unit-rows", "5000", "--connections", "1"][..], more].concat())
}

/// A folder in the bench.
fn folder(bench: &Bench, name: &str) -> std::path::PathBuf {
    let folder = bench.dir.path().join(name);
    fs::create_dir(&folder).unwrap();
    folder
}

#[test]
fn what_the_error_advises_finishes_the_load_on_the_first_night_and_on_later_ones() {
    let bench = Bench::new();
    let bad = bench.dir.path().join("bad.csv");
    let rejects = ["--rejects", bad.to_str().unwrap()];
    let advised: [(&str, &[&str], Option<&str>); 5] = [
        ("007", &["--types", "v=text"], None),
        ("007", &["--sample", "all"], None),
        ("word", &rejects, None),
        ("word", &["--null", "word", "--null", ""], None),
        ("word", &[], Some("123456")),
    ];
    for (number, (late, more, corrected)) in advised.into_iter().enumerate() {
        for later in [false, true] {
            let table = format!("t{number}_{later}");
            let (folder, first) = (folder(&bench, &table), 40_000 * usize::from(later));
            if later {
                write(&folder, "1.csv", 0, "1");
                night(&bench, &folder, &table, &[]).ok();
            }
            write(&folder, "2.csv", first, late);
            let error = night(&bench, &folder, &table, &[]).fails(1);
            assert!(error.contains(late) && error.contains("line 30005"), "{error}");
            if let Some(corrected) = corrected {
                write(&folder, "2.csv", first, corrected);
            }
            let said = night(&bench, &folder, &table, &[more, &["--verify"]].concat()).ok().out;
            assert!(said.contains("verified") && !said.contains("not verified"), "{table}: {said}");
            let left_out = i64::from(more.contains(&"--rejects"));
            let rows = first as i64 + 40_000 - left_out;
            let counted =
                format!("select count(distinct id) from {table} having count(*) = count(distinct id)");
            assert_eq!(bench.count(&counted), rows, "{table}");
            // A night without that option leaves all files alone.
            let said = night(&bench, &folder, &table, &["--verify"]).ok().out;
            assert!(said.contains("nothing to do") && !said.contains("not verified"), "{table}: {said}");
        }
    }
}

#[test]
fn a_new_table_gets_the_types_that_the_advice_gives() {
    let bench = Bench::new();
    for (number, (late, more, of)) in [
        ("word", &["--types", "v=text"][..], "text"),
        ("word", &["--sample", "all"], "text"),
        ("1.5", &["--sample", "all"], "double precision"),
    ]
    .into_iter()
    .enumerate()
    {
        for mode in ["auto", "replace"] {
            let table = format!("n{number}_{mode}");
            let folder = folder(&bench, &table);
            write(&folder, "1.csv", 0, late);
            night(&bench, &folder, &table, &["--mode", mode]).fails(1);
            let said =
                night(&bench, &folder, &table, &[more, &["--mode", mode, "--verify"]].concat()).ok().out;
            assert!(said.contains("from the beginning"), "{table}: {said}");
            let counted = format!(
                "select count(distinct id) from {table} where v::text <> '' and pg_typeof(v)::text = '{of}'"
            );
            assert_eq!(bench.count(&counted), 40_000, "{table}");
        }
    }
}

#[test]
fn a_file_on_record_is_not_read_again_by_the_options_of_another_night() {
    let bench = Bench::new();
    let folder = folder(&bench, "days");
    write(&folder, "1.csv", 0, "1.5");
    night(&bench, &folder, "days", &["--sample", "all"]).ok();
    let bad = bench.dir.path().join("bad.csv");
    for (name, more) in [
        ("2.csv", &[][..]),
        ("3.csv", &["--types", "v=float64"]),
        ("4.csv", &["--rejects", bad.to_str().unwrap()]),
        ("5.csv", &["--null", "NA", "--null", ""]),
    ] {
        write(&folder, name, 40_000 * (name.as_bytes()[0] - b'1') as usize, "7");
        let said = night(&bench, &folder, "days", &[more, &["--verify"]].concat()).ok().out;
        assert!(said.contains("1 new file") && !said.contains("not verified"), "{name}: {said}");
    }
    assert_eq!(bench.count("select count(distinct id) from days having count(*) = 200000"), 200_000);
    // Other columns of the same files are still refused.
    let error = night(&bench, &folder, "days", &["--mode", "append", "--columns", "id"]).fails(1);
    assert!(error.contains("by a load with other options"), "{error}");
}

/// The second and the third file have as many units after the unreadable record as before it.
#[test]
fn rows_behind_a_record_that_is_left_out_are_loaded_once_whichever_connection_was_quicker() {
    let bench = Bench::new();
    let (folder, bad) = (folder(&bench, "many"), bench.dir.path().join("bad.csv"));
    let write = |name: &str, first: usize| {
        let late = |row| if row == 100_003 || row == 130_500 { "word".to_owned() } else { format!("{row}") };
        let rows = (0..160_000).map(|row| format!("{},{}\n", first + row, late(row)));
        fs::write(folder.join(name), "id,v\n".to_owned() + &rows.collect::<String>()).unwrap();
    };
    self::write(&folder, "1.csv", 0, "1");
    night(&bench, &folder, "many", &[]).ok();
    let several = ["--connections", "4", "--unit-rows", "1000"];
    let rejects = ["--rejects", bad.to_str().unwrap()];
    for (name, first) in [("2.csv", 40_000), ("3.csv", 200_000)] {
        write(name, first);
        bench.load(&folder, "many", &several).fails(1);
        let behind = format!("select count(*) from many where id > {}", first + 100_003);
        assert!(bench.count(&behind) > 0, "no unit behind the record is in the table");
        let said = bench.load(&folder, "many", &[&several[..], &rejects, &["--verify"]].concat()).ok().out;
        assert!(said.contains("verified") && !said.contains("not verified"), "{said}");
        let counted = "select count(distinct id) from many having count(*) = count(distinct id)";
        assert_eq!(bench.count(counted), first as i64 + 160_000 - if first == 40_000 { 2 } else { 4 });
        let said = bench.load(&folder, "many", &[&rejects[..], &["--verify"]].concat()).ok().out;
        assert!(said.contains("nothing to do") && !said.contains("not verified"), "{said}");
    }
}
