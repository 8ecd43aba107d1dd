//! Short forms of command lines, written out before the command line is parsed.
//!
//! ```text
//! like SRC ...                      gen --like SRC ...
//! gen like SRC, gen a.parquet       gen --like SRC ..., gen --like a.parquet
//! gen contacts 100                  gen contacts --rows 100
//! footer ls FILE                    footer FILE
//! footer check FILE                 footer --check FILE, also for the other views
//! load IN postgres://h/db/s.t       load IN --to postgres://h/db --table s.t, also for verify, drive and bench load
//! bench load IN --grid              bench load IN --table-kind logged,unlogged --keyed yes,no --connections '1..16*2'
//! ```
//!
//! All other words stay as they are, so that the parser's messages name what the user typed.

use std::ffi::{OsStr, OsString};

use sawmill_profile::{CommandLine, parse_count};
use sawmill_store::percent_decoded;

/// The addresses that need no `--to` before them.
const SCHEMES: [&str; 4] = ["postgres://", "postgresql://", "crate://", "crates://"];

/// What `bench load --grid` measures: four kinds of tables, each filled over 1 to 16 connections.
const GRID: [&str; 6] = ["--table-kind", "logged,unlogged", "--keyed", "yes,no", "--connections", "1..16*2"];

/// The views of footers that may stand before the files.
const VIEWS: [&str; 6] = ["check", "schema", "bounds", "chunks", "sizes", "metadata"];

/// Whether a word is the address of a server.
pub(crate) fn is_address(word: &str) -> bool {
    SCHEMES.iter().any(|scheme| word.starts_with(scheme))
}

/// The command line with its short forms written out.
pub(crate) fn written_out(words: Vec<OsString>) -> Vec<OsString> {
    let is_flag = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let Some(command) = words.iter().skip(1).position(|word| !is_flag(word)).map(|at| at + 1) else {
        return words;
    };
    let rest = command + 1;
    match words[command].to_str() {
        Some("like") if !words.get(rest).is_none_or(asks_for_help) => like(words, command),
        Some("gen") => generation(words, command),
        Some("footer") => footer(words, rest),
        Some("load" | "verify" | "drive") => with_address(words, rest),
        Some("bench") if words.get(rest).is_some_and(|word| word == "load") => {
            with_address(with_grid(words), rest + 1)
        }
        _ => words,
    }
}

fn asks_for_help(word: &OsString) -> bool {
    word == "-h" || word == "--help"
}

/// `gen --like` for each of the words up to the first option.
fn like(words: Vec<OsString>, command: usize) -> Vec<OsString> {
    let mut written = words;
    let sources = written.split_off(command + 1);
    if sources.first().is_none_or(|first| first.as_encoded_bytes().starts_with(b"-")) {
        written.extend(sources);
        return written;
    }
    written[command] = "gen".into();
    let mut sources = sources.into_iter().peekable();
    while let Some(source) = sources.next_if(|word| !word.as_encoded_bytes().starts_with(b"-")) {
        written.extend(["--like".into(), source]);
    }
    written.extend(sources);
    written
}

/// A sample in place of a dataset, and a number of rows behind it.
fn generation(mut words: Vec<OsString>, command: usize) -> Vec<OsString> {
    let word = |at: usize| words.get(at).and_then(|word| word.to_str()).filter(|word| !word.starts_with('-'));
    let (Some(dataset), second) = (word(command + 1), word(command + 2)) else { return words };
    if dataset == "like" && second.is_some() {
        words.remove(command);
        return like(words, command);
    }
    if dataset.ends_with(".parquet") {
        return like(words, command);
    }
    if second.is_some_and(|word| parse_count(word).is_ok()) {
        words.insert(command + 2, "--rows".into());
    }
    words
}

fn footer(mut words: Vec<OsString>, rest: usize) -> Vec<OsString> {
    match words.get(rest).and_then(|word| word.to_str()) {
        Some("ls") => drop(words.remove(rest)),
        Some("stats") => words[rest] = "--bounds".into(),
        Some("meta") => words[rest] = "--metadata".into(),
        Some(view) if VIEWS.contains(&view) => words[rest] = format!("--{view}").into(),
        _ => {}
    }
    words
}

/// The lists of options for `--grid`.
fn with_grid(mut words: Vec<OsString>) -> Vec<OsString> {
    if let Some(grid) = words.iter().position(|word| word == "--grid") {
        words.splice(grid..=grid, GRID.map(OsString::from));
    }
    words
}

/// Writes `--to` before an address that stands alone, and `--table` for a table behind the database.
fn with_address(words: Vec<OsString>, rest: usize) -> Vec<OsString> {
    let has = |option: &str| {
        let with_value = format!("{option}=");
        words.iter().any(|word| word == option || word.as_encoded_bytes().starts_with(with_value.as_bytes()))
    };
    let has_to = has("--to");
    let mut written: Vec<OsString> = Vec::with_capacity(words.len() + 4);
    let mut before: Option<&OsStr> = None;
    for (at, word) in words.iter().enumerate() {
        let text = word.to_str().unwrap_or_default();
        let (given, address) = match text.strip_prefix("--to=") {
            Some(address) => (true, address),
            None => (before == Some(OsStr::new("--to")), text),
        };
        before = Some(word);
        if at < rest || !is_address(address) || given != has_to {
            written.push(word.clone());
            continue;
        }
        written.pop_if(|word| word == "--to");
        // With --table, too: clap then says that there are two.
        let (server, table) = without_table(address);
        written.extend(["--to".into(), server.into()]);
        written.extend(table.into_iter().flat_map(|table| ["--table".into(), table.into()]));
    }
    written
}

/// A command line for the records of loads: without servers, and without possible secrets in other addresses.
pub(crate) fn recorded(words: &[OsString]) -> String {
    let words = hidden(words.iter()).filter(|word| word != "--to" && word != HIDDEN);
    text(std::iter::once("sawmill".to_owned()).chain(words))
}

/// A command line for results: `...` in place of servers, and without possible secrets in other addresses.
pub(crate) fn shown<'a>(words: impl Iterator<Item = &'a OsString>) -> String {
    text(hidden(words))
}

/// In place of a server.
const HIDDEN: &str = "...";

fn hidden<'a>(words: impl Iterator<Item = &'a OsString>) -> impl Iterator<Item = String> {
    let mut is_server = false;
    words.map(move |word| {
        let word = word.to_string_lossy().into_owned();
        let is_value = std::mem::replace(&mut is_server, word == "--to");
        let hides = is_value || word.starts_with("--to=") || is_address(&word);
        if hides { HIDDEN.to_owned() } else { without_secrets(&word) }
    })
}

fn text(words: impl Iterator<Item = String>) -> String {
    CommandLine::new(words).map(|line| line.text()).unwrap_or_default()
}

/// A word, or a command line in one word, without passwords, and its URLs without user and query.
pub(crate) fn without_secrets(word: &str) -> String {
    word.split(' ').map(without_secret).collect::<Vec<_>>().join(" ")
}

fn without_secret(word: &str) -> String {
    if let Some(at) = word.to_ascii_lowercase().find("password=") {
        return format!("{}{HIDDEN}", &word[..at + "password=".len()]);
    }
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let path = rest.split('?').next().unwrap_or_default();
    let host = path.split('/').next().unwrap_or_default();
    let user = host.rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &path[user..])
}

/// The address of a server without its password, which clients ask for.
pub(crate) fn without_password(address: &str) -> String {
    let is_shown = |word: &&str| !word.starts_with("password=");
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.split(' ').filter(is_shown).collect::<Vec<_>>().join(" ");
    };
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = match path.split_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => path.to_owned(),
    };
    let query = query.split('&').filter(is_shown).collect::<Vec<_>>().join("&");
    format!("{scheme}://{path}{}{query}", if query.is_empty() { "" } else { "?" })
}

/// `postgres://host/db/table?x=y` as `postgres://host/db?x=y` and `table`, which may have `%20` for a blank.
pub(crate) fn without_table(address: &str) -> (String, Option<String>) {
    let (path, query) = address.find('?').map_or((address, ""), |at| address.split_at(at));
    let begin = path.find("://").map_or(0, |at| at + 3);
    let mut slashes = path.char_indices().skip_while(|(at, _)| *at < begin).filter(|(_, c)| *c == '/');
    match (slashes.next(), slashes.next()) {
        (Some(_), Some((second, _))) if second + 1 < path.len() => {
            let encoded = &path[second + 1..];
            (
                format!("{}{query}", &path[..second]),
                Some(percent_decoded(encoded).unwrap_or_else(|| encoded.to_owned())),
            )
        }
        _ => (address.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_behind_the_database_is_decoded() {
        let table = |address: &str| without_table(address).1.unwrap();
        for (written, meant) in [
            ("my%20table", "my table"),
            ("%C3%A4.t%2e1?sslmode=require", "ä.t.1"),
            ("100%", "100%"),
            ("%zz%4", "%zz%4"),
            ("%ff", "%ff"),
        ] {
            assert_eq!(table(&format!("postgres://h/db/{written}")), meant);
        }
    }

    fn written(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        written_out(words).join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn recorded_commands_have_no_secrets() {
        let line =
            "load https://u:pw@host/a@b.parquet?sig=x postgres://u:pw@h/db/t --to=x --to host=y --where a>1";
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        assert_eq!(recorded(&words), "sawmill load https://host/a@b.parquet --where 'a>1'");
    }

    #[test]
    fn shown_commands_have_no_server() {
        for line in [
            "bench load a postgres://me:secret@h/db",
            "drive a --to postgres://h/db?user=me&password=secret",
            "drive a --to=host=h|password=secret",
            "bench load a https://me:secret@h/b.parquet?sig=secret --to postgres://me:secret@h/db",
        ] {
            let words: Vec<OsString> = line.split(' ').map(|word| word.replace('|', " ").into()).collect();
            let text = shown(words.iter());
            assert!(text.contains("...") && !text.contains("secret") && text.contains(" a"), "{text}");
        }
        let line = "psql postgres://u:secret@h/db \"host=h password=secret\" PGPASSWORD=secret";
        assert_eq!(without_secrets(line), "psql postgres://h/db \"host=h password=... PGPASSWORD=...");
        for (address, shown) in [
            ("postgres://u:p@h/db", "postgres://u@h/db"),
            ("postgres://h/db?password=p&user=u", "postgres://h/db?user=u"),
            ("host=h password=p", "host=h"),
            ("postgres://u@h:5432/db", "postgres://u@h:5432/db"),
        ] {
            assert_eq!(without_password(address), shown);
        }
    }

    #[test]
    fn recorded_commands_have_the_words_of_the_command_line() {
        let words =
            ["load", "a b.csv", "--null", "", "--null", "it's", "--quote", "\\", "--where", "a = 'x y'"];
        let recorded = recorded(&words.map(OsString::from));
        assert_eq!(sawmill_profile::split_command(&recorded).unwrap()[1..], words);
    }

    #[test]
    fn short_forms_are_written_out() {
        for (short, long) in [
            ("sawmill like a.parquet --rows 5", "sawmill gen --like a.parquet --rows 5"),
            ("sawmill -q like a b --out x", "sawmill -q gen --like a --like b --out x"),
            ("sawmill gen like a b --out x", "sawmill gen --like a --like b --out x"),
            ("sawmill gen a.parquet --rows 5", "sawmill gen --like a.parquet --rows 5"),
            ("sawmill gen a.parquet b.csv", "sawmill gen --like a.parquet --like b.csv"),
            ("sawmill gen contacts 100 --out x", "sawmill gen contacts --rows 100 --out x"),
            ("sawmill -q gen contacts 1.5M", "sawmill -q gen contacts --rows 1.5M"),
            ("sawmill gen contacts 10_000", "sawmill gen contacts --rows 10_000"),
            ("sawmill footer ls a", "sawmill footer a"),
            ("sawmill footer check a --pages", "sawmill footer --check a --pages"),
            ("sawmill footer schema a", "sawmill footer --schema a"),
            ("sawmill footer stats a", "sawmill footer --bounds a"),
            ("sawmill footer meta a", "sawmill footer --metadata a"),
            ("sawmill like a.parquet --help", "sawmill gen --like a.parquet --help"),
            (
                "sawmill bench load s3://b/t --grid --runs 3",
                "sawmill bench load s3://b/t --table-kind logged,unlogged --keyed yes,no --connections 1..16*2 --runs 3",
            ),
            ("sawmill load a postgres://h/db/t", "sawmill load a --to postgres://h/db --table t"),
            ("sawmill load a --to postgres://h/db/s.t", "sawmill load a --to postgres://h/db --table s.t"),
            // Two tables, which is an error of the parser.
            (
                "sawmill load a --to postgres://h/db/x --table t",
                "sawmill load a --to postgres://h/db --table x --table t",
            ),
            ("sawmill load a --to=postgres://h/db/t -q", "sawmill load a --to postgres://h/db --table t -q"),
            (
                "sawmill verify a postgresql://u:p@h:5/db/t?sslmode=require",
                "sawmill verify a --to postgresql://u:p@h:5/db?sslmode=require --table t",
            ),
            ("sawmill load a crate://h:4200/doc/t", "sawmill load a --to crate://h:4200/doc --table t"),
            ("sawmill load status postgres://h/db", "sawmill load status --to postgres://h/db"),
            ("sawmill drive p.toml postgres://h/db/t", "sawmill drive p.toml --to postgres://h/db --table t"),
            ("sawmill bench load a postgres://h/db/t", "sawmill bench load a --to postgres://h/db --table t"),
        ] {
            assert_eq!(written(short), long);
        }
    }

    #[test]
    fn other_command_lines_stay_as_they_are() {
        for line in [
            "sawmill",
            "sawmill --help",
            "sawmill like",
            "sawmill like --help",
            "sawmill gen contacts --rows 100",
            "sawmill gen spec.csv --rows 100",
            "sawmill gen like",
            "sawmill gen contacts infinity",
            "sawmill gen spec contacts",
            "sawmill gen mine.toml 5kk",
            "sawmill footer lsof",
            "sawmill footer a ls",
            "sawmill convert like footer",
            "sawmill load a --to postgres://h/db --table t",
            "sawmill load a --to host=h --table postgres://x",
            "sawmill bench gen contacts --grid",
            "sawmill load https://host/a.parquet --to postgres://h/db --table t",
        ] {
            let same = written(line);
            assert_eq!(same, line);
        }
    }
}
