//! The demo's build: in place of the full build's modules, errors that say how to get it.
//!
//! The demo's build parses the options of `gen`, `footer`, `load` and `verify` as the full build does, and shows those
//! that it refuses in no help. It leaves out `convert`, `bench`, `drive`, Delta tables, stores, text, `--like`, TPC-H and
//! flame graphs, and the crates below them: they take half the time of a build. Each file in this folder replaces a
//! module: the attribute `path` of its `mod` names the file.

use std::ffi::OsString;

use clap::{Args, Command};

/// Only in the full build.
#[derive(Args, Debug)]
pub(crate) struct FullCommand {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<OsString>,
}

/// Commands that only the full build has, below another one or not.
const COMMANDS: &str = "bench bloom cat convert dictionary drive fidelity head like man";
/// Groups of options that only the full build has.
const GROUPS: [&str; 3] = ["Stores", "Text", "Text values"];
/// Other options that only the full build has.
const OPTIONS: &str =
    "as csv-null exclude flamegraph like no-verbatim query sample schema-of table-format verbatim";
/// What an example has that only the full build runs.
const EXAMPLES: &str =
    "--as|.csv|.tsv|--query|s3://|gs://|https://|--like|--table-format| tpch| tpcds|delta:|--schema-of";

/// Whether a list has this word.
fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|other| other == word)
}

/// How to get it.
const FULL: &str =
    "The full build also has convert, bench, drive, like, man, gen fidelity, footer head, cat, bloom and \
     dictionary, CSV and NDJSON, stores, Delta tables, TPC-H and TPC-DS, flame graphs:
  cargo install --path crates/cli --profile dist --features full";

/// The command with help only for what this build has, and a last line about the full build.
pub(crate) fn without_full(command: Command) -> Command {
    let command = below(command);
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    command.after_help(format!("{text}\n\n{FULL}"))
}

fn below(command: Command) -> Command {
    let is_full = |line: &&str| {
        let words = || line.split_whitespace().skip(1);
        EXAMPLES.split('|').any(|word| line.contains(word)) || words().take(2).any(|word| has(COMMANDS, word))
    };
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(text) => {
            let shown = text.lines().filter(|line| !line.starts_with("  ") || !is_full(line));
            command.after_help(shown.collect::<Vec<_>>().join("\n"))
        }
        None => command,
    };
    let command = command.mut_args(|option| {
        let grouped = option.get_help_heading().is_some_and(|heading| GROUPS.contains(&heading));
        let hidden =
            grouped || option.get_long().is_some_and(|long| has(OPTIONS, long)) || option.is_hide_set();
        option.hide(hidden)
    });
    command.mut_subcommands(|sub| {
        let hidden = has(COMMANDS, sub.get_name());
        below(sub).hide(hidden)
    })
}
