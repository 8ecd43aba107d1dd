//! Other programs as sides of a benchmark, and their own reports.
//!
//! A program can report its work in the last line of its output, as a JSON object:
//! `{"rows": 1000, "checksum": "...", "bytes": 5000, "versions": {"duckdb": "1.4"}}`, each part optional.

use std::collections::BTreeMap;

use sawmill_profile::{CommandLine, Output, Run, split_command};
use serde::Deserialize;

use crate::error::Result;
use crate::{forms, interrupt};

/// The name of our side.
pub(crate) const OURS: &str = "sawmill";

/// Another program, measured from outside.
pub(crate) struct OtherProgram {
    /// The name that the user gave it, else the program's, with a number if it is taken.
    pub name: String,
    line: CommandLine,
}

/// A program's report of its work.
#[derive(Debug, Default, Deserialize, PartialEq)]
pub(crate) struct ReportedWork {
    pub rows: Option<u64>,
    pub bytes: Option<u64>,
    pub checksum: Option<String>,
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
}

impl ReportedWork {
    /// Parses the last line of an output; empty if it is not such an object.
    fn new(output: &str) -> Self {
        let last = output.lines().rev().find(|line| !line.trim().is_empty());
        let object = last.map(str::trim).filter(|line| line.starts_with('{'));
        object.and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default()
    }
}

impl OtherProgram {
    /// The programs of these command lines. `NAME=COMMAND` names a side.
    pub(crate) fn all(commands: &[String]) -> Result<Vec<Self>> {
        let mut others: Vec<Self> = Vec::new();
        for command in commands {
            let (named, command) = named(command);
            let words = split_command(command)?;
            let program = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
            let program = named.unwrap_or(program);
            let taken = |name: &str| name == OURS || others.iter().any(|other| other.name == name);
            let numbered = (2..).map(|n: u32| format!("{program} {n}"));
            let mut names = std::iter::once(program.to_owned()).chain(numbered);
            let name = names.find(|name| !taken(name)).unwrap_or_default();
            let line = CommandLine::new(words)?.output(Output::Capture);
            others.push(OtherProgram { name, line });
        }
        Ok(others)
    }

    pub(crate) fn command(&self) -> String {
        forms::without_secrets(&self.line.text())
    }

    /// Runs the program once with these environment variables. Its failure is an error.
    pub(crate) fn run(&self, environment: &[(&str, String)]) -> Result<(Run, ReportedWork)> {
        let mut line = self.line.clone();
        for (variable, value) in environment {
            line = line.environment(variable, value);
        }
        let run = line.run(interrupt::flag())?.checked()?;
        let work = ReportedWork::new(&run.stdout.text());
        let checksum = work.checksum.clone();
        Ok((Run { rows: work.rows, bytes: work.bytes, checksum, ..run.figures() }, work))
    }
}

/// Splits `polars=python3 load.py` into a name and a command line. Text with a path or an option before the
/// equals sign has no name.
fn named(command: &str) -> (Option<&str>, &str) {
    let Some((name, rest)) = command.split_once('=') else { return (None, command) };
    let plain = |c: char| c.is_alphanumeric() || " -_.,()+".contains(c);
    let is_name = name.starts_with(char::is_alphabetic) && name.chars().all(plain);
    if is_name && !name.contains(" -") { (Some(name.trim()), rest) } else { (None, command) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_a_unique_name() {
        let commands = ["/usr/bin/psql -c 'select 1'", "psql", "/old/sawmill gen"].map(str::to_owned);
        let others = OtherProgram::all(&commands).unwrap();
        let names: Vec<&str> = others.iter().map(|other| other.name.as_str()).collect();
        assert_eq!(names, ["psql", "psql 2", "sawmill 2"]);
        assert!(OtherProgram::all(&["".to_owned()]).is_err());
    }

    #[test]
    fn a_name_before_an_equals_sign_is_the_sides_name() {
        assert_eq!(named("polars=python3 a.py --x=1"), (Some("polars"), "python3 a.py --x=1"));
        assert_eq!(named("psql copy, CSV=psql -c x"), (Some("psql copy, CSV"), "psql -c x"));
        assert_eq!(named("DuckDB (postgres)=x"), (Some("DuckDB (postgres)"), "x"));
        for line in ["python3 a.py --rows=5", "./a=b", "a/b=c d", "tool -x=1"] {
            assert_eq!(named(line), (None, line));
        }
    }

    #[test]
    fn a_program_reports_its_work_in_the_last_line() {
        let work =
            ReportedWork::new("reading\n{\"rows\": 7, \"versions\": {\"x\": \"1.2\"}, \"more\": 1}\n\n");
        assert_eq!((work.rows, work.versions.len(), work.checksum), (Some(7), 1, None));
        for output in ["", "{\"rows\": 7}\ndone", "{not json}", "[1]"] {
            assert_eq!(ReportedWork::new(output), ReportedWork::default());
        }
    }
}
