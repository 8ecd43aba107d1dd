//! Counts what a user may meet, and compares the table in CONTRIBUTING.md.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{Command, CommandFactory};

use crate::Cli;
use crate::screen::phases::thousands;

#[derive(Default)]
struct Counts {
    commands: u64,
    slots: u64,
    names: BTreeSet<String>,
    groups: BTreeSet<String>,
    words: u64,
}

impl Counts {
    /// Counts a command, and those below it.
    fn add(&mut self, command: &Command) {
        self.commands += 1;
        let help = command.clone().render_long_help().to_string();
        self.words += help.split_whitespace().count() as u64;
        let own = command.get_arguments().filter(|option| !option.is_hide_set() && !option.is_global_set());
        for option in own {
            let Some(name) = option.get_long().filter(|name| !["help", "version"].contains(name)) else {
                continue;
            };
            self.slots += 1;
            self.names.insert(name.to_owned());
            self.groups.extend(option.get_help_heading().map(str::to_owned));
        }
        command.get_subcommands().filter(|sub| sub.get_name() != "help").for_each(|sub| self.add(sub));
    }
}

/// The words and the headings of README and the documents.
fn documents(root: &Path) -> (u64, u64) {
    let docs = root.join("docs").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let texts = pages.chain([root.join("README.md")]).map(|path| std::fs::read_to_string(path).unwrap());
    let (mut words, mut headings) = (0, 0);
    for text in texts {
        words += text.split_whitespace().count() as u64;
        let mut blocks = text.split("\n```").step_by(2).flat_map(str::lines);
        headings += blocks.by_ref().filter(|line| line.starts_with('#')).count() as u64;
    }
    (words, headings)
}

#[test]
fn contributing_says_how_much_there_is_to_know() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut counts, mut command) = (Counts::default(), Cli::command());
    command.build();
    counts.add(&command);
    let (words, headings) = documents(&root);
    let rounded = |number: u64, to: u64| thousands((number + to / 2) / to * to);
    let rows = [
        ("commands and sub-commands", thousands(counts.commands)),
        ("options, counted in each command that has them", thousands(counts.slots)),
        ("names of options", thousands(counts.names.len() as u64)),
        ("groups of options", thousands(counts.groups.len() as u64)),
        ("words of `--help` of all commands, about", rounded(counts.words, 1000)),
        ("words of README and the pages, about (at most 35,000)", rounded(words, 1000)),
        ("headings of README and the pages, about", rounded(headings, 10)),
    ];
    let table: String = rows.iter().map(|(what, count)| format!("| {what} | {count} |\n")).collect();
    let contributing = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    assert!(contributing.contains(&table), "put this table into CONTRIBUTING.md:\n{table}");
    assert!(words <= 35_000, "{words} words in README and the pages");
}
