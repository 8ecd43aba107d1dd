//! Other programs as sides of a benchmark.

use std::sync::atomic::AtomicBool;

use sawmill_profile::{CommandLine, Output, Run, split_command};

use crate::error::Error;

/// The name of our side.
pub(crate) const OURS: &str = "sawmill";

/// A program that is measured from outside.
pub(crate) struct Other {
    /// The program's name, with a number where there are several of it.
    pub name: String,
    line: CommandLine,
}

impl Other {
    /// The programs of these command lines, with variables for their environment.
    pub(crate) fn all(commands: &[String], environment: &[(&str, String)]) -> Result<Vec<Self>, Error> {
        let mut others: Vec<Self> = Vec::new();
        for command in commands {
            let words = split_command(command)?;
            let program = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
            let taken = |name: &str| name == OURS || others.iter().any(|other| other.name == name);
            let numbered = (2..).map(|n: u32| format!("{program} {n}"));
            let mut names = std::iter::once(program.to_owned()).chain(numbered);
            let name = names.find(|name| !taken(name)).unwrap_or_default();
            let mut line = CommandLine::new(words)?.output(Output::Capture);
            for (variable, value) in environment {
                line = line.environment(variable, value);
            }
            others.push(Other { name, line });
        }
        Ok(others)
    }

    pub(crate) fn command(&self) -> String {
        self.line.text()
    }

    /// Runs it once; a failure of it is an error.
    pub(crate) fn run(&self, cancel: &AtomicBool) -> Result<Run, Error> {
        Ok(self.line.run(cancel)?.checked()?.figures())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_names_of_their_own() {
        let commands = ["/usr/bin/psql -c 'select 1'", "psql", "/old/sawmill gen"].map(str::to_owned);
        let others = Other::all(&commands, &[]).unwrap();
        let names: Vec<&str> = others.iter().map(|other| other.name.as_str()).collect();
        assert_eq!(names, ["psql", "psql 2", "sawmill 2"]);
        assert!(Other::all(&["".to_owned()], &[]).is_err());
    }
}
