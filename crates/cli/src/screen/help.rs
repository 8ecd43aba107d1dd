//! Help with examples that can be pasted into a shell: each stays on one line, however narrow the terminal
//! is.

use std::io::Write;

use clap::Command;
use clap::builder::StyledStr;
use clap::error::ErrorKind;
use sawmill_inspect::escaped;

use super::escape::{lines, short};
use crate::error::{Error, Exit};

/// Replaces the blanks of examples while clap wraps the help, which it does only at blanks.
const UNBROKEN_BLANK: char = '\u{a0}';

/// Protects the examples of a command and its sub-commands from being wrapped.
pub(crate) fn with_whole_examples(command: Command) -> Command {
    let whole = |text: Option<&StyledStr>| text.map(|text| unbroken(&text.to_string()));
    let (short, long) = (whole(command.get_after_help()), whole(command.get_after_long_help()));
    let command = match short {
        Some(text) => command.after_help(text),
        None => command,
    };
    let command = match long {
        Some(text) => command.after_long_help(text),
        None => command,
    };
    command.mut_subcommands(with_whole_examples)
}

/// Replaces blanks in indented lines, which are examples. All other lines are prose: the lines of a paragraph are
/// joined, for clap to wrap.
fn unbroken(text: &str) -> String {
    let mut unbroken = String::with_capacity(text.len());
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with("  ");
    let mut goes_on = false;
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            unbroken.push(if goes_on && is_prose(line) { ' ' } else { '\n' });
        }
        match line.starts_with("  ") {
            true => unbroken.push_str(&line.replace(' ', &UNBROKEN_BLANK.to_string())),
            false => unbroken.push_str(line),
        }
        // A colon introduces examples.
        goes_on = is_prose(line) && !line.ends_with(':');
    }
    unbroken
}

/// Prints clap's message, such as help or an error, and ends the process.
pub(crate) fn exit(message: &clap::Error) -> ! {
    match message.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::DisplayVersion => {
            let help = message.render().ansi().to_string().replace(UNBROKEN_BLANK, " ");
            // The stream drops colours unless it is a terminal. A reader that went away has read enough.
            let written = match message.use_stderr() {
                true => anstream::stderr().write_all(help.as_bytes()),
                false => anstream::stdout().write_all(help.as_bytes()),
            };
            if let Err(error) = written.map_err(|e| Error::output(&e))
                && error.exit == Exit::Failure
            {
                crate::report(&error);
                std::process::exit(error.exit as i32);
            }
            std::process::exit(message.exit_code())
        }
        _ => {
            let plain = message.render().to_string();
            let safe = without_sequences(&plain);
            if message.use_stderr() && crate::asks_for_json() {
                let _ = writeln!(std::io::stderr(), "{}", as_error(&safe).json());
                std::process::exit(message.exit_code())
            }
            if safe == plain {
                message.exit();
            }
            let _ = anstream::stderr().write_all(safe.as_bytes());
            std::process::exit(message.exit_code())
        }
    }
}

/// A message of the parser with the words of the command line escaped and shortened, but for the sequences that clap takes
/// for its own colours.
fn without_sequences(plain: &str) -> String {
    let words = crate::words().iter().map(|word| word.to_string_lossy().into_owned());
    let values = words.flat_map(|word| {
        let value = word.split_once('=').map(|(_, value)| value.to_owned());
        [Some(word), value].into_iter().flatten()
    });
    let shown = |value: &str| escaped(&short(value)).into_owned();
    let hostile = values.filter(|value| shown(value) != *value);
    let safe = hostile.fold(plain.to_owned(), |text, value| {
        let printed = StyledStr::from(value.clone()).to_string();
        if printed.is_empty() { text } else { text.replace(&printed, &shown(&value)) }
    });
    lines(&safe.split('\n').map(short).collect::<Vec<_>>().join("\n"))
}

/// A message of the parser in the parts of our errors: its first paragraph names the fault, a tip or the usage the way
/// out.
pub(crate) fn as_error(message: &str) -> Error {
    let paragraphs: Vec<String> =
        message.split("\n\n").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let what = paragraphs.first().map(|text| text.trim_start_matches("error: ")).unwrap_or_default();
    let begins = |start: &'static str| paragraphs.iter().find_map(move |text| text.strip_prefix(start));
    let usage = || paragraphs.iter().find(|text| text.starts_with("Usage: ")).map(String::as_str);
    let advice = begins("tip: ").or_else(usage).unwrap_or("sawmill --help lists the commands");
    Error::usage(what, "the command line", advice)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::process::{Command as Process, Stdio};

    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::Cli;
    use crate::sweep;

    /// The names of each command, and its examples as in the source.
    fn examples(command: &Command, names: &[String], found: &mut Vec<(Vec<String>, Vec<String>)>) {
        let text =
            command.get_after_help().unwrap_or_else(|| panic!("{names:?} has no examples")).to_string();
        let lines = text.lines().skip_while(|line| *line != "Examples:").skip(1);
        let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect();
        assert!(!lines.is_empty(), "{names:?} has no examples");
        assert!(lines.iter().all(|line| line.starts_with("  ")), "{lines:?}");
        found.push((names.to_vec(), lines));
        for sub in command.get_subcommands() {
            let names: Vec<String> = names.iter().cloned().chain([sub.get_name().to_owned()]).collect();
            examples(sub, &names, found);
        }
    }

    fn all_examples() -> Vec<(Vec<String>, Vec<String>)> {
        let mut found = Vec::new();
        examples(&Cli::command(), &["sawmill".to_owned()], &mut found);
        found
    }

    /// What `--help` prints in a terminal of this width.
    fn help(names: &[String], width: usize) -> String {
        let command = with_whole_examples(Cli::command()).term_width(width);
        let words = names.iter().map(String::as_str).chain(["--help"]);
        let message = command.try_get_matches_from(words).unwrap_err();
        assert_eq!(message.kind(), ErrorKind::DisplayHelp, "{names:?}: {message}");
        message.render().to_string().replace(UNBROKEN_BLANK, " ")
    }

    #[test]
    fn examples_are_whole_lines_at_every_width_of_the_terminal() {
        for (names, lines) in all_examples() {
            for width in [60, 80, 100, 200] {
                let help = help(&names, width);
                for line in &lines {
                    assert!(help.lines().any(|shown| shown == line), "{width} columns: {line:?} of {help}");
                }
            }
        }
    }

    #[test]
    fn a_message_of_the_parser_has_the_parts_of_an_error() {
        for (line, what, advice) in [
            (
                "gen contacts --row 5",
                "unexpected argument '--row' found",
                "a similar argument exists: '--rows'",
            ),
            (
                "load a --to h",
                "the following required arguments were not provided: --table <NAME>",
                "Usage: sawmill load",
            ),
        ] {
            let words = std::iter::once("sawmill").chain(line.split(' '));
            let message = Cli::command().try_get_matches_from(words).unwrap_err().to_string();
            let error: serde_json::Value = serde_json::from_str(&as_error(&message).json()).unwrap();
            let error = &error["error"];
            assert_eq!((&error["code"], &error["exit"]), (&"usage".into(), &2.into()), "{line}");
            assert_eq!(error["what"], what, "{line}");
            assert!(error["advice"].as_str().unwrap().starts_with(advice), "{error}");
        }
    }

    #[test]
    fn prose_is_wrapped() {
        let longest = |width| {
            let help = help(&["sawmill".to_owned(), "load".to_owned()], width);
            let prose =
                help.lines().filter(|line| !line.starts_with("  sawmill") && !line.starts_with("  find"));
            prose.map(|line| line.chars().count()).max().unwrap()
        };
        assert!(longest(80) <= 80, "{}", longest(80));
    }

    #[test]
    fn the_lines_of_a_paragraph_are_joined_and_all_others_stay() {
        let text = "Examples:\n  a b\n  c\n\nOne\ntwo\nthree.\n\nFour\nfive:\n  {1: 2}\nsix";
        let expected = "Examples:\n  a b\n  c\n\nOne two three.\n\nFour five:\n  {1: 2}\nsix";
        assert_eq!(unbroken(text).replace(UNBROKEN_BLANK, " "), expected);
    }

    /// The words that a shell passes to `sawmill` if a line is pasted into it; none for a comment.
    fn pasted(line: &str, home: &std::path::Path) -> Vec<OsString> {
        use std::os::unix::ffi::OsStringExt;
        let words = home.join("words");
        let _ = std::fs::remove_file(&words);
        let script = format!("sawmill() {{ printf '%s\\0' \"$@\" > {}; }}\n{line}\n", words.display());
        let mut shell = Process::new("sh");
        shell.args(["-c", &script]).current_dir(home).env("HOME", home);
        shell
            .env_remove("SAWMILL_BENCH_URL")
            .env_remove("SAWMILL_BENCH_TABLE")
            .env_remove("SAWMILL_BENCH_OUT");
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        let Ok(bytes) = std::fs::read(&words) else { return Vec::new() };
        let mut words: Vec<_> = bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        words.pop();
        std::iter::once("sawmill".into()).chain(words.into_iter().map(OsString::from_vec)).collect()
    }

    #[test]
    fn a_pasted_example_is_a_valid_command_line() {
        let home = tempfile::tempdir().unwrap();
        for folder in [".local/share/bash-completion/completions", ".zfunc"] {
            std::fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        for line in all_examples().into_iter().flat_map(|(_, lines)| lines) {
            let line = line.trim_start();
            let words = pasted(line, home.path());
            if line.starts_with('#') {
                continue;
            }
            assert!(words.len() > 1, "no sawmill is run by {line:?}");
            let points = sweep::points(crate::forms::written_out(words.clone()))
                .unwrap_or_else(|error| panic!("{line:?}: {error}"));
            for point in points {
                Cli::try_parse_from(point.words).unwrap_or_else(|error| panic!("{line:?}: {error}"));
            }
            for variable in ["$SAWMILL_BENCH_URL", "$SAWMILL_BENCH_TABLE", "$SAWMILL_BENCH_OUT"] {
                let kept = words.iter().any(|word| word.to_string_lossy().contains(variable));
                assert!(kept || !line.contains(variable), "the shell replaces {variable} in {line:?}");
            }
        }
    }
}
