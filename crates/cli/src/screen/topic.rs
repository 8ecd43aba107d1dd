//! `--help csv`: the options of one group, for commands that have many.

use std::ffi::OsString;

use clap::{Arg, Command};

use crate::error::{Error, Result};
use crate::screen::help::with_whole_examples;

/// Groups whose first word says too little, and the words that select them.
const NAMES: [(&str, &[&str]); 12] = [
    ("Checks", &["views", "checks"]),
    ("Columns that change", &["change", "schema"]),
    ("CrateDB", &["crate", "cratedb"]),
    ("CrateDB types", &["crate", "cratedb"]),
    ("Formats", &["views", "formats"]),
    ("How files are written", &["files", "parquet"]),
    ("Nested columns", &["nested"]),
    ("New table", &["table"]),
    ("Stores", &["stores", "s3", "gcs", "azure"]),
    ("Text", &["csv", "text", "ndjson", "json"]),
    ("Text values", &["csv", "text", "ndjson", "json"]),
    ("Which rows go where", &["rows"]),
];

/// The topics of a command, in the order of its groups.
pub(crate) fn topics(command: &Command) -> Vec<String> {
    let mut topics = Vec::new();
    for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
        let Some(heading) = option.get_help_heading() else { continue };
        let topic = names(heading).first().cloned().unwrap_or_default();
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    topics
}

/// The names of a group; the first is the one to show.
fn names(heading: &str) -> Vec<String> {
    match NAMES.iter().find(|(known, _)| *known == heading) {
        Some((_, names)) => names.iter().map(|name| (*name).to_owned()).collect(),
        None => heading.split(' ').take(1).map(str::to_lowercase).collect(),
    }
}

/// Refuses `load FILE -h localhost -p 5432`: other clients name the host so, and a script would load nothing and go on.
fn refuse_host(words: &[OsString]) -> Result<(), Error> {
    let word = |word: &OsString| word.to_string_lossy().into_owned();
    let Some(at) = words.iter().position(|word| word == "-h") else { return Ok(()) };
    let [host, rest @ ..] = &words[at + 1..] else { return Ok(()) };
    let takes_server =
        words[..at].iter().any(|word| ["load", "verify", "drive"].iter().any(|sub| word == sub));
    if !takes_server || word(host).starts_with('-') || !rest.iter().any(|next| word(next).starts_with('-')) {
        return Ok(());
    }
    let advice = format!("-h alone is help; --to names the server: --to postgres://{}/DATABASE", word(host));
    Err(Error::usage("-h takes no value", word(host), advice))
}

/// The message that shows one group of options, if the command line asks for one; it begins with the program.
///
/// # Errors
/// The command has no such group.
pub(crate) fn asked_for(command: Command, words: &[OsString]) -> Result<Option<clap::Error>> {
    refuse_host(words)?;
    let Some(help) = words.iter().position(|word| word == "--help") else { return Ok(None) };
    let Some(topic) = words.get(help + 1).and_then(|word| word.to_str()) else { return Ok(None) };
    let topic = topic.to_lowercase();
    let (mut path, mut found) = (Vec::new(), &command);
    for word in words[1..help].iter().filter_map(|word| word.to_str()) {
        if let Some(sub) = found.find_subcommand(word) {
            path.push(word.to_owned());
            found = sub;
        }
    }
    if topic.starts_with('-') || found.get_arguments().all(|option| option.get_help_heading().is_none()) {
        return Ok(None);
    }
    let is_of = |option: &Arg| {
        !option.is_hide_set()
            && option.get_help_heading().is_some_and(|heading| names(heading).contains(&topic))
    };
    if !found.get_arguments().any(is_of) {
        let (known, shown) = (topics(found).join(", "), path.join(" "));
        let what = format!("sawmill {shown} has no options about {topic}");
        return Err(Error::usage(what, "--help", format!("the groups are {known}; --help alone shows all")));
    }
    let command = only(command, &path, &topic);
    let asked = ["sawmill"].into_iter().chain(path.iter().map(String::as_str)).chain(["--help"]);
    Ok(with_whole_examples(command).try_get_matches_from(asked).err())
}

/// The command with only the groups of this name, of the sub-command at `path`.
fn only(command: Command, path: &[String], topic: &str) -> Command {
    // Options of all commands belong to the first.
    let command = command.mut_args(|option| {
        let is_of = |heading| names(heading).iter().any(|name| name == topic);
        let other = option.is_hide_set() || !option.get_help_heading().is_some_and(is_of);
        option.hide(other)
    });
    match path.split_first() {
        Some((name, rest)) => command.mut_subcommand(name, |sub| only(sub, rest, topic)),
        None => command.mut_subcommands(|sub| sub.hide(true)).after_help("").after_long_help(""),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    fn shown(line: &str) -> Result<Option<String>, String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let asked = asked_for(Cli::command(), &words).map_err(|error| error.to_string())?;
        Ok(asked.map(|message| message.render().to_string()))
    }

    #[test]
    fn a_topic_has_its_options_and_no_other() {
        for (line, has, lacks) in [
            ("sawmill load --help csv", "--delimiter", "--connections"),
            ("sawmill load --help crate", "--gzip", "--where"),
            ("sawmill -q convert --help CSV", "--delimiter", "--sort-by"),
            ("sawmill gen --help files", "--compression", "--seed"),
            ("sawmill footer --help views", "--bounds", "--part"),
        ] {
            let text = shown(line).unwrap().unwrap();
            assert!(
                text.contains(has) && !text.contains(lacks) && !text.contains("Examples"),
                "{line}:\n{text}"
            );
        }
    }

    #[test]
    fn an_unknown_topic_is_answered_with_those_that_exist() {
        let error = shown("sawmill load --help kafka").unwrap_err();
        assert!(error.contains("kafka") && error.contains("csv, stores"), "{error}");
        let error = shown("sawmill load night -h localhost -p 5432").unwrap_err();
        assert!(error.contains("--to postgres://localhost/DATABASE"), "{error}");
        for line in [
            "sawmill load --help",
            "sawmill man --help x",
            "sawmill load a --to b",
            "sawmill load a -h",
            "sawmill load -h -q",
            "sawmill load -h csv",
            "sawmill -h load a --to b",
        ] {
            assert_eq!(shown(line), Ok(None), "{line}");
        }
    }
}
