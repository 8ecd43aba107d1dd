//! What `-h` shows: the options that most people need, three examples, and the way to all others.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::{Arg, Command};

use crate::screen::topic::topics;

/// The options of a command that `-h` shows besides the options of every command; `--help` has the others.
const SHORT: [(&str, &[&str]); 14] = [
    ("", &["version"]),
    ("bench footer", &["column", "tail-hint", "runs", "against", "html", "json-file", "baseline"]),
    ("bench gen", &["rows", "threads", "compression", "runs", "against", "html", "json-file", "baseline"]),
    (
        "bench load",
        &["to", "table", "mode", "connections", "runs", "against", "html", "json-file", "baseline"],
    ),
    ("convert", &["out", "as", "overwrite", "columns", "where", "compression", "rejects"]),
    (
        "drive",
        &["to", "rate", "clients", "connections", "for", "limit", "chaos", "overwrite", "json-file", "html"],
    ),
    ("footer", &["schema", "chunks", "bounds", "sizes", "check", "csv"]),
    ("gen", &["rows", "files", "out", "compression", "overwrite"]),
    ("gen explain", &["rows", "files", "like", "compression"]),
    ("gen fidelity", &["sample", "exclude", "html"]),
    ("gen finish", &["rows", "files", "out", "like", "table-format"]),
    ("gen spec", &["like", "schema-of", "sample", "no-verbatim"]),
    ("load", &["to", "table", "mode", "key", "where", "connections", "verify", "rejects"]),
    ("verify", &["to", "table", "columns", "where", "locate", "rejects", "connections"]),
];
/// What the short help of every command has.
const ALWAYS: [&str; 3] = ["help", "json", "quiet"];
/// Examples of a command in its short help: the first that fit into a terminal of 80 columns.
const MAX_EXAMPLES: usize = 2;
/// Text before a colon that says enough.
const MIN_SUBJECT: usize = 20;
const MAX_EXAMPLE: usize = 78;

/// Gives a command, and those below it, a short help, in which `-h` has no groups.
pub(crate) fn with_short_help(command: Command, words: &[OsString]) -> Command {
    let is_short = words.iter().any(|word| word == "-h") && !words.iter().any(|word| word == "--help");
    let command = below(command, "");
    if is_short { without_groups(command, 0) } else { command }
}

/// Options in one list, without their values, and the commands of a command with what they do in a clause.
fn without_groups(command: Command, depth: usize) -> Command {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let separator = if depth < 2 { None } else { about.find([':', ',']).filter(|at| *at >= MIN_SUBJECT) };
    let clause = about.get(..separator.unwrap_or(about.len())).unwrap_or_default().to_owned();
    let plain = |arg: Arg| {
        // Its long name would move all texts below their options.
        let arg = if arg.get_long() == Some("compression") { arg.value_name("CODEC") } else { arg };
        let takes_values = arg.get_action().takes_values();
        arg.help_heading(None).hide_possible_values(takes_values)
    };
    let below = |sub: Command| without_groups(sub, depth + 1);
    command.about(clause).mut_args(plain).disable_help_subcommand(true).mut_subcommands(below)
}

fn below(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(shortened(command, path), |command, name| {
        let path = format!("{path} {name}");
        command.mut_subcommand(name, |sub| below(sub, path.trim_start()))
    })
}

fn shortened(command: Command, path: &str) -> Command {
    let Some(whole) = command.get_after_help().map(ToString::to_string) else { return command };
    let fits = |line: &&str| line.chars().count() <= MAX_EXAMPLE;
    let Some((_, shown)) = SHORT.iter().find(|(name, _)| *name == path) else {
        let is_shown = |line: &&str| fits(line) || !line.starts_with("  ");
        let short: String = whole.lines().filter(is_shown).map(|line| format!("{line}\n")).collect();
        return command.mut_args(with_short_text).after_help(short).after_long_help(whole);
    };
    let is_shown = |arg: &Arg| {
        arg.get_long().is_none_or(|long| shown.contains(&long) || ALWAYS.contains(&long))
            || arg.is_required_set()
    };
    let examples = whole.lines().take_while(|line| !line.is_empty()).filter(fits).take(1 + MAX_EXAMPLES);
    let short: String = examples.map(|line| format!("{line}\n")).collect();
    let topics = topics(&command);
    let groups = match topics.is_empty() {
        true => String::new(),
        false => format!("\nGroups for --help GROUP: {}.", topics.join(", ")),
    };
    let named = format!("sawmill {path}");
    let short = format!("{short}{groups}\nAll options and examples: {} --help", named.trim_end());
    command.after_help(short).after_long_help(whole).mut_args(|arg| {
        let hidden = !is_shown(&arg);
        with_short_text(arg).hide_short_help(hidden)
    })
}

/// Short help has the first sentence about an option.
fn with_short_text(arg: Arg) -> Arg {
    let text = |text: Option<&StyledStr>| text.map(ToString::to_string);
    let (Some(short), long) = (text(arg.get_help()), text(arg.get_long_help())) else { return arg };
    let ends = short.match_indices(". ").map(|(at, _)| short.split_at(at));
    let mut ends = ends.filter(|(first, rest)| {
        !first.ends_with('.') && rest.trim_start_matches(". ").starts_with(char::is_uppercase)
    });
    let sentence = ends.next().map_or(short.as_str(), |(first, _)| first);
    // A short subject needs what the colon introduces.
    let mut subjects = [": ", "; "].into_iter().filter_map(|mark| sentence.find(mark));
    let subject = subjects.find(|at| *at >= MIN_SUBJECT);
    let first = sentence.get(..subject.unwrap_or(sentence.len())).unwrap_or(sentence).to_owned();
    arg.help(first).long_help(long.unwrap_or(short))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

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
        let command = with_short_help(Cli::command(), &[flag.into()]).term_width(80);
        let words = std::iter::once("sawmill").chain(path.split_whitespace()).chain([flag]);
        command.try_get_matches_from(words).unwrap_err().render().to_string()
    }

    #[test]
    fn short_help_is_one_screen_and_the_long_one_has_all_options() {
        for (path, shown) in SHORT {
            let (short, long) = (help(path, "-h"), help(path, "--help"));
            assert!(short.ends_with(&format!(" {path} --help\n")) || path.is_empty(), "{short}");
            for option in shown {
                assert!(short.contains(&format!("--{option}")), "{path} has no --{option}:\n{short}");
            }
            assert!(long.lines().count() > short.lines().count(), "{path}");
        }
        commands(&Cli::command(), "", &mut |path, _| {
            let short = help(path, "-h");
            // clap wraps no usage.
            let shown = short.lines().filter(|line| !line.starts_with("Usage: "));
            let (lines, widest) = (short.lines().count(), shown.map(|line| line.chars().count()).max());
            assert!(lines <= 40 && widest <= Some(80), "{path}: {lines} lines, {widest:?}\n{short}");
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
        let differ = ["html", "max-footer", "partition-by", "rows", "sample"];
        seen.retain(|long, headings| headings.len() > 1 && !differ.contains(&long.as_str()));
        assert!(seen.is_empty(), "{seen:#?}");
    }

    /// All options with a heading. One that is here by a leak belongs to no group, and has `help_heading = None`.
    const GROUPS: [(&str, &str); 28] = [
        ("Benchmark", "against baseline fail-if-slower html json-file runs warmup"),
        ("Checks", "check pages plan-merge"),
        ("Columns that change", "evolve rewrite schema-change"),
        (
            "Connections",
            "batch-bytes batch-rows checkpoint-schema clients connections patience retries think unit-rows",
        ),
        ("CrateDB", "at-least-once gzip no-columnstore no-index replicas row-key shards transport with"),
        ("CrateDB types", "binary dates long-text objects times"),
        ("Dataset", "exclude like no-verbatim sample scale schema-of verbatim"),
        ("Formats", "csv ndjson"),
        (
            "How files are written",
            "arrow-schema bloom compression data-page-version encoding key-value page-checksums page-index page-size \
             statistics",
        ),
        ("Input", "columns confine hive max-footer max-page no-page-checksums rename rows where"),
        ("Limits", "abort-when find-max limit p99 repeats"),
        ("Lineage", "file-column loaded-at-column row-column"),
        ("Mode", "again changed delete-where key map mode newest"),
        ("Nested columns", "foreign-keys nested"),
        (
            "New table",
            "index key-after keyed lock-timeout partition-by primary-key set strategy table-kind tablespace unlogged",
        ),
        ("Opening", "mapped max-footer strictness tail-hint"),
        ("Order", "index-dir index-memory sort-by"),
        ("Pace", "arrivals for rate start-at warmup-time"),
        ("Plan", "ddl dry-run explain"),
        ("Selection", "column column-number row-group"),
        ("Stores", "read-ahead requests store upload-part uploads"),
        ("Tables", "drop no-proof rows table"),
        (
            "Text",
            "comment delimiter escape format max-record names no-header quote ragged skip-lines text-encoding",
        ),
        ("Text values", "decimal-comma false null null-quoted sample thousands time-format true types"),
        ("Values", "enums max-rejects nul rejects timestamps timezone"),
        ("Views", "bounds chunks data-pages dump metadata page-headers row-groups schema sizes"),
        ("Watching", "hlog html jsonl prometheus"),
        (
            "Which rows go where",
            "file-size files overwrite page-rows part partition-by resume row-group-rows row-group-size rows \
             rows-per-file writers",
        ),
    ];

    #[test]
    fn each_option_with_a_heading_is_in_its_group() {
        let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        commands(&Cli::command(), "", &mut |_, command| {
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let (Some(long), Some(heading)) = (arg.get_long(), arg.get_help_heading()) else { continue };
                seen.entry(heading.to_owned()).or_default().insert(long.to_owned());
            }
        });
        let known = GROUPS.map(|(heading, options)| {
            (heading.to_owned(), options.split(' ').map(str::to_owned).collect::<BTreeSet<_>>())
        });
        assert_eq!(seen, BTreeMap::from(known));
    }

    #[test]
    fn a_group_has_at_most_a_dozen_options() {
        let mut whole = Cli::command();
        whole.build();
        commands(&whole, "", &mut |path, command| {
            let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let group = groups.entry(arg.get_help_heading().unwrap_or("Options")).or_default();
                group.extend(arg.get_long());
            }
            groups.retain(|_, options| options.len() > 12);
            assert!(groups.is_empty(), "{path}: {groups:?}");
        });
    }

    /// A name means one thing, also one that help does not show.
    #[test]
    fn no_hidden_name_is_an_option_of_another_command() {
        let (mut hidden, mut shown) = (BTreeMap::new(), BTreeSet::new());
        commands(&Cli::command(), "", &mut |path, command| {
            for arg in command.get_arguments() {
                let aliases = arg.get_all_aliases().unwrap_or_default().into_iter();
                hidden.extend(aliases.map(|alias| (alias.to_owned(), path.to_owned())));
                shown.extend(arg.get_long().map(str::to_owned));
            }
        });
        hidden.retain(|alias, _| shown.contains(alias));
        assert!(hidden.is_empty(), "{hidden:?}");
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
            ("explain", Some("Plan")),
            ("part", None),
            ("map", Some("Mode")),
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
