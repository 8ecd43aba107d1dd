//! Any text as a saved result, of a benchmark or of a load test: written and read again it is the same, and tables,
//! pages and merged results can be made of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sawmill_drive::{DriveResult, NamedResult, merge};
use sawmill_profile::{ResultFile, results_table, sweep_tables};

fn of_benchmark(text: &str) {
    let file = match ResultFile::from_json(text, "a.json") {
        Ok(file) => file,
        Err(error) => return assert_eq!(error.place(), "a.json"),
    };
    let again = file.to_json().and_then(|text| ResultFile::from_json(&text, "b.json"));
    assert_eq!(again.as_ref(), Ok(&file));
    let _ = results_table(&file).to_string();
    for (title, table) in sweep_tables(&file.cases, "degree") {
        assert!(!table.is_empty(), "{title}");
    }
    let mut compared = file.clone();
    for case in &mut compared.cases {
        let _ = case.compare_with_baseline(&file);
    }
    let page = sawmill_profile::html_report(&[file, compared]);
    assert!(page.is_err() || page.is_ok_and(|page| page.ends_with("</html>\n")));
}

fn of_load_test(text: &str) {
    let result = match DriveResult::from_json(text, "a.json") {
        Ok(result) => result,
        Err(error) => return assert_eq!(error.place(), "a.json"),
    };
    assert!(DriveResult::is_in(text));
    let written = serde_json::to_string(&result).expect("a result is JSON");
    assert_eq!(DriveResult::from_json(&written, "b.json").as_ref(), Ok(&result));
    let named = |part: &str| {
        let mut result = result.clone();
        result.run.part = Some(part.to_owned());
        NamedResult { name: part.to_owned(), result }
    };
    for results in [vec![named("1/1")], vec![named("1/2"), named("2/2")]] {
        assert!(sawmill_drive::html_report(&results).is_ok());
        if let Ok(merged) = merge(&results) {
            assert_eq!(merged.operations.len(), result.operations.len());
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    of_benchmark(text);
    of_load_test(text);
});
