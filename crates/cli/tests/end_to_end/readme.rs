//! Runs every command of the README, and the tasks of a new user.

use std::path::Path;
use std::process::Command;

use crate::database::Database;

/// The lines of the README's shell blocks.
fn commands() -> Vec<String> {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let blocks = readme.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    blocks.flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// The server's address with a table behind the database.
fn with_table(url: &str, table: &str) -> String {
    let (server, query) = url.split_once('?').unwrap_or((url, ""));
    format!("'{server}/{table}?{query}'")
}

#[test]
fn every_command_of_the_readme_runs() {
    let dir = tempfile::tempdir().unwrap();
    let server = Database::new();
    let sawmill = env!("CARGO_BIN_EXE_sawmill");
    let mut ran = 0;
    for line in commands() {
        // These are the tests themselves.
        if line == "cargo test --workspace" {
            continue;
        }
        // The directory first: the path of the binary may also begin with /tmp.
        let command = line
            .replace("/tmp/", &format!("{}/", dir.path().display()))
            .replace("postgres://localhost/db/contacts", &with_table(&server.url(), "contacts"))
            .replace("postgres://localhost/db", &server.url())
            .replace("cargo run --release --", sawmill);
        let command = match command.strip_prefix("sawmill ") {
            Some(rest) => format!("{sawmill} {rest}"),
            None => command,
        };
        assert!(command.starts_with(sawmill), "no test runs {line:?}");
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        // A load test rightly complains of a machine that is busy with other tests.
        let busy = error.contains("the result is invalid: ")
            && (error.contains("the driver did not run for") || error.contains(" for a processor"));
        assert!(output.status.success() || busy, "{line}\n{error}");
        ran += 1;
    }
    assert!(ran >= 7, "{ran} commands");
}

#[test]
fn the_first_hour_leads_from_each_mistake_to_the_right_command() {
    let bench = crate::load::Bench::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/first_hour");
    let url = bench.server.url();
    let python = std::env::var("SAWMILL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let played = Command::new(python)
        .arg(script)
        .args(["--to", &url, "--command", env!("CARGO_BIN_EXE_sawmill")])
        .output()
        .expect("python3 runs");
    let (out, err) = (String::from_utf8_lossy(&played.stdout), String::from_utf8_lossy(&played.stderr));
    assert!(played.status.success() && out.contains("a load every night"), "{out}{err}");
}
