//! What `-h` shows: the options that most people need, three examples, and the way to all others.

use clap::{Arg, Command};

use crate::screen::topic::topics;

/// The options of a command that `-h` shows besides the options of every command; `--help` has the others.
const SHORT: [(&str, &[&str]); 13] = [
    ("bench footer", &["column", "tail-hint", "runs", "against", "html", "save", "baseline"]),
    ("bench gen", &["rows", "threads", "compression", "runs", "against", "html", "save", "baseline"]),
    ("bench load", &["to", "table", "mode", "connections", "runs", "against", "html", "save", "baseline"]),
    (
        "convert",
        &["out", "as", "overwrite", "columns", "where", "compression", "sort-by", "partition-by", "rejects"],
    ),
    (
        "drive",
        &["to", "rate", "clients", "connections", "for", "limit", "chaos", "overwrite", "json-file", "html"],
    ),
    ("footer", &["schema", "row-groups", "chunks", "bounds", "sizes", "check", "pages", "csv", "ndjson"]),
    ("gen", &["rows", "files", "out", "as", "compression", "like", "overwrite"]),
    ("gen explain", &["rows", "files", "like", "compression"]),
    ("gen fidelity", &["sample", "exclude", "html"]),
    ("gen finish", &["rows", "files", "out", "like", "table-format"]),
    ("gen spec", &["like", "schema-of", "sample", "no-verbatim"]),
    (
        "load",
        &["to", "table", "mode", "key", "columns", "where", "connections", "verify", "rejects", "explain"],
    ),
    ("verify", &["to", "table", "columns", "where", "locate", "rejects", "connections"]),
];
/// What the short help of every command has.
const ALWAYS: [&str; 3] = ["help", "json", "quiet"];
/// Examples of a command in its short help.
const MAX_EXAMPLES: usize = 3;

/// Gives a command, and those below it, a short help.
pub(crate) fn with_short_help(command: Command) -> Command {
    below(command, "")
}

fn below(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(shortened(command, path), |command, name| {
        let path = format!("{path} {name}");
        command.mut_subcommand(name, |sub| below(sub, path.trim_start()))
    })
}

fn shortened(command: Command, path: &str) -> Command {
    let Some((_, shown)) = SHORT.iter().find(|(name, _)| *name == path) else { return command };
    let is_shown = |arg: &Arg| {
        arg.get_long().is_none_or(|long| shown.contains(&long) || ALWAYS.contains(&long))
            || arg.is_required_set()
    };
    let Some(whole) = command.get_after_help().map(ToString::to_string) else { return command };
    let lines = whole.lines().scan(0, |examples, line| {
        *examples += usize::from(line.starts_with("  "));
        (*examples <= MAX_EXAMPLES && !line.is_empty()).then_some(line)
    });
    let short: String = lines.map(|line| format!("{line}\n")).collect();
    let topics = topics(&command);
    let groups = match topics.is_empty() {
        true => String::new(),
        false => format!("\nGroups for --help GROUP: {}.", topics.join(", ")),
    };
    let short = format!("{short}{groups}\nAll options and examples: sawmill {path} --help");
    let command = command.after_help(short).after_long_help(whole);
    command.mut_args(|arg| {
        let hidden = !is_shown(&arg);
        arg.hide_short_help(hidden)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    /// Calls `each` with every command and its path.
    fn commands(command: &Command, path: &str, each: &mut impl FnMut(&str, &Command)) {
        each(path, command);
        for sub in command.get_subcommands() {
            commands(sub, format!("{path} {}", sub.get_name()).trim_start(), each);
        }
    }

    fn help(path: &str, flag: &str) -> String {
        let command = with_short_help(Cli::command()).term_width(100);
        let words = std::iter::once("sawmill").chain(path.split(' ')).chain([flag]);
        command.try_get_matches_from(words).unwrap_err().render().to_string()
    }

    #[test]
    fn short_help_is_one_screen_and_the_long_one_has_all_options() {
        for (path, shown) in SHORT {
            let (short, long) = (help(path, "-h"), help(path, "--help"));
            assert!(short.lines().count() <= 60, "{path}: {} lines\n{short}", short.lines().count());
            assert!(short.ends_with(&format!("sawmill {path} --help\n")), "{short}");
            for option in shown {
                assert!(short.contains(&format!("--{option}")), "{path} has no --{option}:\n{short}");
            }
            assert!(long.lines().count() > short.lines().count(), "{path}");
        }
        commands(&Cli::command(), "", &mut |path, _| {
            let lines = if path.is_empty() { 0 } else { help(path, "-h").lines().count() };
            assert!(lines <= 60, "{path}: {lines} lines");
        });
        assert!(
            !help("load", "-h").contains("--decimal-comma")
                && help("load", "--help").contains("--decimal-comma")
        );
    }

    /// A heading that begins in a group of options would go on to the options that follow it.
    #[test]
    fn an_option_has_one_heading_in_all_commands_that_group_it() {
        let mut seen: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        commands(&Cli::command(), "", &mut |path, command| {
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let (Some(long), Some(heading)) = (arg.get_long(), arg.get_help_heading()) else { continue };
                seen.entry(long.to_owned())
                    .or_default()
                    .entry(heading.to_owned())
                    .or_default()
                    .push(path.to_owned());
            }
        });
        // These mean something else in another command.
        let differ = ["html", "max-footer", "partition-by", "row-group-rows", "rows"];
        seen.retain(|long, headings| headings.len() > 1 && !differ.contains(&long.as_str()));
        assert!(seen.is_empty(), "{seen:#?}");
    }

    /// A user who has learnt an option in one command may expect it to take a value, or none, in all others.
    #[test]
    fn an_option_is_a_flag_in_all_commands_or_in_none() {
        let mut seen: BTreeMap<String, BTreeMap<bool, Vec<String>>> = BTreeMap::new();
        commands(&Cli::command(), "", &mut |path, command| {
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let Some(long) = arg.get_long() else { continue };
                let takes = arg.get_action().takes_values();
                seen.entry(long.to_owned()).or_default().entry(takes).or_default().push(path.to_owned());
            }
        });
        seen.retain(|_, kinds| kinds.len() > 1);
        assert!(seen.is_empty(), "{seen:#?}");
    }

    #[test]
    fn options_of_loads_are_in_groups_of_their_kind() {
        let mut headings = BTreeMap::new();
        commands(&Cli::command(), "", &mut |path, command| {
            if path == "load" {
                let of =
                    |arg: &Arg| Some((arg.get_long()?.to_owned(), arg.get_help_heading().map(str::to_owned)));
                headings.extend(command.get_arguments().filter_map(of));
            }
        });
        for (option, heading) in [
            ("verify", None),
            ("explain", None),
            ("part", None),
            ("map", None),
            ("where", Some("Input")),
            ("nested", Some("Nested columns")),
            ("connections", Some("Connections")),
            ("sort-by", Some("Order")),
            ("rejects", Some("Values")),
            ("gzip", Some("CrateDB")),
        ] {
            assert_eq!(headings[option].as_deref(), heading, "--{option}");
        }
    }
}
