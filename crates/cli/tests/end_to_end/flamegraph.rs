//! `--flamegraph FILE.svg` on every sub-command.

use serde_json::Value;

use crate::bench::{bench, contacts, home};
use crate::database::Database;
use crate::harness::sawmill;

/// The picture in a file, which must be one.
#[track_caller]
fn picture(path: &std::path::Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{text}");
    text
}

#[test]
fn threads_are_named_and_frames_tell_their_module() {
    let home = home();
    let svg = home.path().join("gen.svg");
    let path = svg.display().to_string();
    // A busy machine may run one thread alone for a while: then more rows are drawn.
    let of = |rows: &str| {
        let args = [
            "gen",
            "contacts",
            "--rows",
            rows,
            "--out",
            "/dev/null",
            "--threads",
            "2",
            "--flamegraph",
            &path,
        ];
        sawmill(args).ok();
        picture(&svg)
    };
    let has_both = |text: &String| text.contains("generate-0") && text.contains("generate-1");
    let text = ["3M", "6M", "12M", "24M"].into_iter().map(of).find(has_both);
    let text = text.expect("threads by their names");
    assert!(text.contains("generator::"), "functions with their modules");
    assert!(!text.contains("17h0") && !text.contains("_ZN"), "no mangled names");
}

#[test]
fn every_sub_command_draws_one() {
    let home = home();
    let files = contacts(&home);
    let server = Database::new();
    let url = server.url();
    let svg = home.path().join("any.svg");
    let path = svg.display().to_string();
    for command in [
        vec!["footer", files.as_str()],
        vec!["load", &files, "--to", &url, "--table", "t"],
        vec!["verify", &files, "--to", &url, "--table", "t"],
        vec!["demo", "--rows", "1000", "--to", &url],
    ] {
        sawmill([&command[..], &["--flamegraph", &path]].concat()).ok();
        assert!(picture(&svg).contains(&format!("sawmill {}", command[0])), "{command:?}");
        std::fs::remove_file(&svg).unwrap();
    }
    bench(&home, &["gen", "contacts", "--rows", "2000", "--runs", "1", "--flamegraph", &path]).ok();
    picture(&svg);
}

#[test]
fn a_picture_that_cannot_be_written_is_an_error_before_any_work() {
    let home = home();
    let made = home.path().join("made");
    let made = made.display().to_string();
    let svg = home.path().join("no/such/folder/a.svg").display().to_string();
    sawmill(["gen", "contacts", "--rows", "10", "--out", &made, "--flamegraph", &svg]).fails(2);
    assert!(!std::path::Path::new(&made).exists());
}

#[test]
fn peak_memory_is_the_works_and_not_the_pictures() {
    let home = home();
    let path = home.path().join("gen.svg").display().to_string();
    let args = ["gen", "contacts", "--rows", "2M", "--out", "/dev/null", "--threads", "2", "--json"];
    let peak = |args: &[&str]| sawmill(args).ok().json()["phase"]["peak_memory"].as_u64().unwrap();
    let (plain, drawn) = (peak(&args), peak(&[&args[..], &["--flamegraph", &path]].concat()));
    assert!(drawn < plain + (24 << 20), "{drawn} bytes with a picture, {plain} without");
}

#[test]
fn a_benchmarks_picture_is_in_no_figure_of_its_cases() {
    let home = home();
    let args = ["gen", "contacts", "--rows", "4M", "--out", "/dev/null", "--threads", "1,2", "--runs", "1"];
    let cases = |more: &[&str]| {
        bench(&home, &[&args[..], &["--warmup", "0", "--json-file", "r.json"], more].concat()).ok();
        let result = crate::bench::read(&home.path().join("r.json"));
        result["cases"].as_array().unwrap().clone()
    };
    let peak = |case: &Value| case["sides"][0]["runs"][0]["peak_memory"].as_u64().unwrap();
    let (plain, drawn) = (cases(&[]), cases(&["--html", "page.html"]));
    assert_eq!((plain.len(), drawn.len()), (2, 2));
    for (plain, drawn) in plain.iter().zip(&drawn) {
        let peaks = [plain, drawn].map(peak);
        assert!(peaks[1] < peaks[0] + (16 << 20), "{}: {peaks:?} bytes", drawn["parameters"]);
        // Which of the threads makes the row groups is up to the machine.
        assert!(drawn["sides"][0]["folded_stacks"].as_str().unwrap().contains("generate-"));
    }
}

#[test]
fn a_run_that_is_too_short_is_reported() {
    let home = home();
    let svg = home.path().join("gen.svg");
    let path = svg.display().to_string();
    sawmill(["gen", "contacts", "--rows", "10", "--out", "/dev/null", "--flamegraph", &path]).ok();
    assert!(picture(&svg).contains("too short for a flame graph"));
}
