//! What every sub-command shares: help, completions, pipes.

use std::io::Read;
use std::process::Stdio;

use crate::harness::{command, sawmill};

#[test]
fn every_sub_command_has_help_with_examples() {
    for sub in ["demo", "gen", "footer", "load", "verify", "bench", "completions"] {
        let help = sawmill([sub, "--help"]).ok().out;
        assert!(help.contains("Examples:") && help.contains("Usage:"), "{help}");
    }
    for sub in ["gen", "footer", "load", "report"] {
        let help = sawmill(["bench", sub, "--help"]).ok().out;
        assert!(help.contains(&format!("  sawmill bench {sub} ")), "{help}");
    }
    assert!(sawmill(["--version"]).ok().out.starts_with("sawmill 0."));
    assert_eq!(sawmill(["no-such-command"]).code, Some(2));
}

#[test]
fn help_lists_the_options_of_text_apart_from_those_of_all_sources() {
    for sub in ["load", "verify", "convert"] {
        let help = sawmill([sub, "--help"]).ok().out;
        let section: Vec<_> = help.lines().skip_while(|line| *line != "Text:").skip(1).collect();
        // The next heading is the next line that is not indented.
        let section: Vec<_> =
            section.into_iter().take_while(|line| line.is_empty() || line.starts_with(' ')).collect();
        let has = |option: &str| section.iter().any(|line| line.trim_start().starts_with(option));
        assert!(has("--delimiter") && has("--max-record") && !has("--where") && !has("--rows"), "{help}");
    }
}

#[test]
fn examples_are_printed_as_lines_that_can_be_pasted_however_narrow_the_terminal_is() {
    for columns in ["60", "80", "100", "200"] {
        let help = command(["load", "--help"]).env("COLUMNS", columns).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let examples: Vec<_> = help.lines().skip_while(|line| *line != "Examples:").skip(1).collect();
        let examples: Vec<_> = examples.into_iter().take_while(|line| !line.is_empty()).collect();
        for example in &examples {
            assert!(
                example.starts_with("  sawmill load ") || example.starts_with("  find "),
                "{columns}: {example}"
            );
            assert!(!example.contains('\u{a0}'), "{example}");
        }
        assert!(examples.len() > 10, "{help}");
    }
}

#[test]
fn completions_name_the_sub_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = sawmill(["completions", shell]).ok().out;
        assert!(script.contains("footer") && script.contains("demo"), "{shell}");
    }
}

#[test]
fn each_sub_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    sawmill(["man", pages.to_str().unwrap()]).ok();
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    for sub in ["demo", "gen", "like", "footer", "load", "verify", "convert", "bench", "drive", "doctor"] {
        assert!(page(&format!("sawmill-{sub}.1")).starts_with(".ie"), "{sub}");
    }
    assert!(page("sawmill.1").contains("sawmill\\-load(1)"));
    assert!(page("sawmill-load.1").contains("\\-\\-connections"));
    assert!(page("sawmill-gen.1").contains("Report details on standard error"));

    let refused = sawmill(["man", "/dev/null/pages"]).fails(1);
    assert!(refused.contains("/dev/null/pages"), "{refused}");
}

#[test]
fn a_reader_that_goes_away_does_not_cause_a_crash() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let rows = ["gen", "contacts", "--rows", "1000", "--out", "-"];
    for line in [&["completions", "zsh"][..], &rows, &[&rows[..], &["--as", "ndjson"]].concat()] {
        let writer = writer.try_clone().unwrap();
        let mut child = command(line).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let mut error = String::new();
        child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        assert_eq!(error, "", "{line:?}");
        assert_eq!(child.wait().unwrap().code(), Some(141), "{line:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    for line in [&["completions", "bash"][..], &["load", "-h"], &["help", "gen"], &["--version"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(line).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{line:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("standard output"), "{line:?}");
    }
}

#[test]
fn errors_of_the_command_line_are_json_like_all_others() {
    for line in [
        "gen contacts --row 5 --json",
        "--json load a.parquet",
        "bench load a --connections 4..1 --json",
        "load --help kafka --json",
        "convert a.csv --json",
        "footer /nothing/here.parquet --json",
    ] {
        let ran = sawmill(line.split(' '));
        let (code, err) = (ran.code, ran.err);
        let error: serde_json::Value =
            serde_json::from_str(&err).unwrap_or_else(|e| panic!("{line}: {e}: {err}"));
        let error = &error["error"];
        assert_eq!(error["exit"].as_i64(), code.map(i64::from), "{line}: {error}");
        let named = if code == Some(2) { "usage" } else { "failure" };
        assert_eq!(error["code"], named, "{line}: {error}");
        let said = |part: &str| error[part].as_str().is_some_and(|text| !text.is_empty());
        assert!(said("what") && said("where"), "{line}: {error}");
        assert!(said("advice") || code != Some(2), "{line}: {error}");
    }
    assert!(sawmill(["gen", "contacts", "--row", "5"]).fails(2).contains("Usage:"));
}

#[test]
fn a_quiet_job_says_nothing_but_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (parquet, csv) = (path("a.parquet"), path("a.csv"));
    for line in [
        &["gen", "contacts", "--rows", "10", "--out", &parquet][..],
        &["convert", &parquet, &csv, "--columns", "name"],
    ] {
        let ran = sawmill([line, &["-q"]].concat()).ok();
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""), "{line:?}");
    }
    let again = sawmill(["gen", "contacts", "--rows", "10", "--out", &parquet, "-q"]);
    assert!(again.out.is_empty() && again.fails(2).starts_with("error: "));
    // --quiet leaves out summaries, not the result itself.
    assert!(sawmill(["footer", &parquet, "--quiet"]).ok().out.contains("a.parquet"));
}

#[test]
fn a_log_gets_lines_of_progress() {
    let line = ["gen", "contacts", "--rows", "1M", "--threads", "1", "--out", "/dev/null"];
    let run = |more: &[&str]| {
        let mut process = command([&line[..], more].concat());
        crate::harness::Ran::from(process.env("SAWMILL_PROGRESS", "0.01").output().unwrap()).ok().err
    };
    let told = run(&[]);
    let lines: Vec<&str> = told.lines().collect();
    let is_progress = |line: &&str| line.starts_with("generate: ") && line.contains(" of 1,000,000 rows, ");
    assert!(!lines.is_empty() && lines.iter().all(is_progress), "{told}");
    assert_eq!(run(&["--quiet"]), "");
    // Without the variable a line is due after ten seconds.
    assert!(
        !sawmill(["gen", "contacts", "--rows", "1000", "--out", "/dev/null"]).ok().err.contains("generate: ")
    );
}

#[test]
fn short_forms_and_mistakes_lead_to_what_was_meant() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.parquet");
    let file = file.to_str().unwrap();
    sawmill(["gen", "contacts", "--rows", "100", "--out", file]).ok();
    // Help after the samples, too.
    for help in ["-h", "--help"] {
        assert!(sawmill(["like", file, help]).ok().out.contains("--rows"), "{help}");
    }
    let late = sawmill(["like", "--rows", "10", file]).fails(2);
    assert!(late.contains("an option before the samples"), "{late}");
    for (word, option) in [("schema", "--schema"), ("stats", "--bounds"), ("meta", "--metadata")] {
        assert_eq!(sawmill(["footer", word, file]).ok().out, sawmill(["footer", option, file]).ok().out);
    }
    // A file that is missing is one, even if the rows of the others suffice.
    assert!(sawmill(["footer", "head", file, "/no/file.parquet"]).fails(1).contains("/no/file.parquet"));
    for value in ["--json=out.json", "--json=1"] {
        let error = sawmill(["footer", file, value]).fails(2);
        let error: serde_json::Value = serde_json::from_str(error.trim()).unwrap();
        assert_eq!(error["error"]["code"], "usage", "{error}");
    }
    let host = sawmill(["load", file, "-h", "localhost", "-p", "5432"]).fails(2);
    assert!(host.contains("--to postgres://localhost/DATABASE"), "{host}");
    let many = sawmill(["gen", "contacts", "100", "200"]).fails(2);
    assert!(many.contains("unexpected argument '200'") && !many.contains("subcommand"), "{many}");
    let out = dir.path().join("d.csv");
    sawmill(["convert", file, "-o", out.to_str().unwrap(), "--columns", "name"]).ok();
    assert!(out.exists());
}
