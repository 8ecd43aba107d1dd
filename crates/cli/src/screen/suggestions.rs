//! Translates option names of other tools into ours: `--threads` of a load is `--connections`.
//!
//! clap suggests names that are spelled alike. If the user typed a word of a group below, we suggest the
//! sub-command's own option from that group instead.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use sawmill_store::Scheme;

use crate::forms::is_address;

/// Options for one thing; of several that a sub-command has, the first is suggested.
const OPTIONS: [&str; 29] = [
    "connections degree threads clients jobs parallel parallelism concurrency workers processes",
    "for duration time seconds run-time",
    "out output dir output-dir output-file outfile dest destination save-to json-file",
    "rows limit count num-rows nrows records max-rows n",
    "overwrite force clobber",
    "where filter predicate",
    "query sql",
    "to url uri dsn database db connection-string host dest-uri tgt-conn",
    "table table-name dest-table tgt-object stream",
    "primary-key pk",
    "key unique-key update-key merge-key",
    "delimiter sep separator delim field-delimiter",
    "null nulls null-value na na-values nullstr",
    "columns select fields include-columns column",
    "batch-rows batch-size chunk-size chunksize page-size",
    "compression codec compress",
    "scale scale-factor sf",
    "row-group-rows row-group-size rows-per-group",
    "files parts num-files partitions",
    "rate rps qps tps throughput",
    "rejects bad-rows error-file rejected on-error",
    "part shard split chunk",
    "verbose debug log-level",
    "runs iterations repeat repetitions",
    "bounds statistics stats",
    "data-pages page-index",
    "metadata key-value meta",
    "schema-of schema",
    "as format output-format",
];

/// Options of other tools that are an option with a value here: sub-command, their name, ours.
const VALUES: [(&str, &str, &str); 7] = [
    ("load", "overwrite", "--mode replace"),
    ("load", "force", "--mode replace"),
    ("load", "truncate", "--mode truncate"),
    ("load", "append", "--mode append"),
    ("load", "upsert", "--mode upsert"),
    ("load", "if-exists", "--mode"),
    ("load", "write-disposition", "--mode"),
];

/// Options of other tools for which there is another way: sub-command, their names, the way.
const WAYS: [(&str, &[&str], &str); 16] = [
    ("gen spec", &["out", "output", "o"], "redirect the output: sawmill gen spec contacts > my.toml"),
    (
        "drive",
        &["query", "sql"],
        "write it in a plan: [[operations]] sql = '...'; then sawmill drive PLAN --to URL",
    ),
    ("drive", &["output", "out", "o"], "--json-file FILE writes the result, --html FILE draws it"),
    ("footer fix", &["output", "out", "o"], "name it after the input: sawmill footer fix IN OUT"),
    ("footer extract", &["output", "out", "o"], "name it after the input: sawmill footer extract IN OUT"),
    ("footer", &["output", "out", "o"], "redirect the output: sawmill footer FILE --csv > FILE.csv"),
    ("footer", &["query", "where"], "sawmill footer cat FILE shows rows"),
    ("load", &["output", "out", "o"], "--json prints the report"),
    ("footer", &["verify"], "--check finds what is wrong; --strictness LEVEL refuses it"),
    ("gen", &["table"], "tpch/lineitem names a table; --table-format delta writes one"),
    ("convert", &["to", "format-to"], "--as parquet, or the end of the output's name"),
    ("bench", &["duration", "time"], "--runs says how often it is measured"),
    ("bench", &["save"], "--json-file FILE keeps the result; --baseline FILE compares with it"),
    ("gen", &["print"], "sawmill gen spec DATASET prints the spec"),
    ("footer", &["bench"], "sawmill bench footer FILE measures how long decoding takes"),
    ("footer", &["row-group-rows", "row-group-bytes"], "--row-group rows=..5000, --row-group bytes=0..64MB"),
];

/// The values of --mode, and the words of other tools for them.
const MODES: [(&str, &[&str]); 3] = [
    ("replace", &["overwrite", "full", "full-refresh", "drop"]),
    ("upsert", &["merge", "update"]),
    ("append", &["insert", "incremental", "add"]),
];

/// Words for a sub-command.
const COMMANDS: [(&str, &[&str]); 7] = [
    ("load", &["import", "copy", "ingest", "insert", "push", "upload", "sync", "run"]),
    ("gen", &["generate", "synth", "fake", "create", "make", "tpch", "tpcds"]),
    ("footer", &["metadata", "meta", "inspect", "info", "show", "schema", "ls", "stat"]),
    ("convert", &["export", "transform", "to-parquet", "csv"]),
    ("verify", &["check", "compare", "diff", "validate", "reconcile"]),
    ("drive", &["loadtest", "load-test", "stress", "pgbench", "k6"]),
    ("doctor", &["diagnose", "advise", "lint"]),
];

fn suggest(error: &mut Error, advice: String) {
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(advice)]));
}

/// The parser's error with a suggestion in the words of the command line.
pub(crate) fn with_suggestion(mut error: Error, command: &Command, words: &[OsString]) -> Error {
    let sub_command = sub_command(command, words);
    let conflicting = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) if error.kind() == ErrorKind::ArgumentConflict => Some(word.clone()),
        _ => None,
    };
    // A word too many, which clap takes for a sub-command.
    if let Some(word) = conflicting.filter(|word| sub_command.find_subcommand(word).is_none()) {
        error = Error::new(ErrorKind::UnknownArgument).with_cmd(sub_command);
        error.insert(ContextKind::InvalidArg, ContextValue::String(word));
        error.insert(ContextKind::Usage, ContextValue::StyledStr(sub_command.clone().render_usage()));
    }
    match error.kind() {
        ErrorKind::UnknownArgument => suggest_option(&mut error, command, sub_command, words),
        ErrorKind::InvalidSubcommand => suggest_sub_command(&mut error, command, sub_command),
        ErrorKind::InvalidValue => suggest_mode(&mut error),
        ErrorKind::MissingRequiredArgument => suggest_whole(&mut error, sub_command, words),
        _ => {}
    }
    error
}

/// What to write instead of an option that does not exist.
fn suggest_option(error: &mut Error, command: &Command, sub_command: &Command, words: &[OsString]) {
    let whole = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => return,
    };
    // clap's own names whatever options were given.
    let usage = sub_command.clone().render_usage();
    error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    let typed = whole.trim_start_matches('-');
    let typed = typed.split(['=', ' ']).next().unwrap_or_default().to_owned();
    let bin = sub_command.get_bin_name().and_then(|bin| bin.strip_prefix("sawmill ")).unwrap_or_default();
    // All benchmarks have the same options.
    let bin = if bin.starts_with("bench ") { "bench" } else { bin };
    let way = WAYS.iter().find(|(name, typed_as, _)| *name == bin && typed_as.contains(&typed.as_str()));
    let saves = words.windows(2).any(|pair| pair[0] == "--json" && pair[1] == typed.as_str());
    let way = match on_record(command, sub_command, &typed) {
        None if !whole.starts_with('-') && has_only_options_for_records(command, sub_command) => {
            Some(format!("--table {typed} names the table"))
        }
        None if saves => Some(format!("--json prints the result; --json-file {typed} writes it")),
        None => way.map(|(_, _, way)| (*way).to_owned()),
        Some(reason) => Some(reason.to_owned()),
    };
    if let Some(way) = way {
        error.remove(ContextKind::SuggestedArg);
        suggest(error, way);
    } else if let Some(ours) = option(sub_command, &typed) {
        // clap's own suggestion: a name that is spelled alike, or the word as a value.
        error.remove(ContextKind::Suggested);
        error.insert(ContextKind::SuggestedArg, ContextValue::String(ours));
    } else if let Some(option) = before_number(words, &typed) {
        suggest(error, format!("{option} takes no number below 0"));
    } else if !is_alike(error, &typed) {
        // clap's suggestions are a name with as many other letters, or to take the option for a value.
        error.remove(ContextKind::SuggestedArg);
        let name = sub_command.get_bin_name().unwrap_or("sawmill");
        suggest(error, format!("{name} --help lists the options"));
    }
}

fn suggest_sub_command(error: &mut Error, command: &Command, sub_command: &Command) {
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => return,
    };
    let ours = COMMANDS.iter().find(|(_, others)| others.contains(&typed.as_str()));
    let below = command.get_subcommands().find(|sub| sub.find_subcommand(&typed).is_some());
    let below = below.map(|sub| format!("{} {typed}", sub.get_name()));
    let ours = ours.map(|(ours, _)| (*ours).to_owned()).or(below);
    if let Some(ours) = ours.filter(|_| sub_command.get_name() == command.get_name()) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![ours]));
    }
}

fn suggest_mode(error: &mut Error) {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let (option, value) = (said(ContextKind::InvalidArg), said(ContextKind::InvalidValue));
    let ours = MODES.iter().find(|(_, others)| others.contains(&value.as_str()));
    if let Some((ours, _)) = ours.filter(|_| option.starts_with("--mode ")) {
        error.insert(ContextKind::SuggestedValue, ContextValue::String((*ours).to_owned()));
    }
}

/// Suggests the whole command if a main word is missing.
fn suggest_whole(error: &mut Error, sub_command: &Command, words: &[OsString]) {
    let bench = words.iter().any(|word| word == "bench");
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.as_slice(),
        _ => &[],
    };
    // If another option needs this one, the whole command does not help.
    let is_main = |arg: &String| ["<", "--to ", "--table "].iter().any(|main| arg.starts_with(main));
    let meant = whole_command(bench, sub_command.get_name(), words);
    if let Some(meant) = meant.filter(|_| missing.iter().any(is_main)) {
        suggest(error, meant);
    }
}

/// The sub-command that the words name, or the command itself.
fn sub_command<'c>(command: &'c Command, words: &[OsString]) -> &'c Command {
    let mut found = command;
    for word in words.iter().skip(1).filter(|word| !word.as_encoded_bytes().starts_with(b"-")) {
        match found.find_subcommand(word) {
            Some(sub) => found = sub,
            None => break,
        }
    }
    found
}

/// Whether the option that clap suggests begins as the user's word does.
fn is_alike(error: &Error, typed: &str) -> bool {
    match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(option)) => option.trim_start_matches('-').get(..1) == typed.get(..1),
        _ => false,
    }
}

/// The option of a sub-command for what another tool calls `typed`.
fn option(command: &Command, typed: &str) -> Option<String> {
    let value = VALUES.iter().find(|(name, other, _)| *name == command.get_name() && *other == typed);
    if let Some((_, _, ours)) = value {
        return Some((*ours).to_owned());
    }
    let group = OPTIONS.iter().find(|group| group.split(' ').any(|name| name == typed))?;
    let has = |name: &&str| command.get_arguments().any(|option| option.get_long() == Some(*name));
    group.split(' ').filter(|name| *name != typed).find(has).map(|name| format!("--{name}"))
}

/// Why a command that works on the records of loads does not take an option of `sawmill load`.
fn on_record(command: &Command, sub_command: &Command, typed: &str) -> Option<&'static str> {
    let load = command.find_subcommand("load")?;
    let of_records = load.get_subcommands().any(|sub| std::ptr::eq(sub, sub_command));
    if !of_records || !load.get_arguments().any(|option| option.get_long() == Some(typed)) {
        return None;
    }
    Some(match sub_command.get_name() {
        "finish" => {
            "leave it out: load finish is for all parts together, and takes their options from the record"
        }
        _ => "leave it out: the command works on the records of loads, and reads no files",
    })
}

/// Whether a command works on the records of loads, and takes no files.
fn has_only_options_for_records(command: &Command, sub_command: &Command) -> bool {
    let of_load = command.find_subcommand("load").into_iter().flat_map(Command::get_subcommands);
    let mut without_files = of_load.filter(|sub| sub.get_positionals().next().is_none());
    without_files.any(|sub| std::ptr::eq(sub, sub_command))
}

/// The option before a negative number, which it does not take.
fn before_number<'w>(words: &'w [OsString], typed: &str) -> Option<&'w str> {
    typed.parse::<f64>().ok()?;
    let pair = words
        .windows(2)
        .find(|pair| pair[1].to_str().and_then(|word| word.strip_prefix('-')) == Some(typed))?;
    pair[0].to_str().filter(|option| option.starts_with("--"))
}

/// The whole command for one that lacks its main words.
fn whole_command(bench: bool, command: &str, words: &[OsString]) -> Option<String> {
    match command {
        "gen" if bench => Some("name what to generate: sawmill bench gen contacts --rows 1M".to_owned()),
        "load" if bench => {
            Some("name the files: sawmill bench load FILE postgres://HOST/DATABASE/TABLE".to_owned())
        }
        "gen" => Some("name what to generate: sawmill gen contacts --rows 1k --out DIR".to_owned()),
        "drive" => Some("name the plan and the server: sawmill drive gen:orders --to local".to_owned()),
        "completions" => Some("name the shell: sawmill completions bash".to_owned()),
        "load" | "verify" => {
            let server = words.iter().filter_map(|word| word.to_str());
            let server = server.map(|word| word.strip_prefix("--to=").unwrap_or(word));
            if let Some(scheme) = server.clone().find_map(other_scheme) {
                return Some(format!(
                    "{scheme}:// is neither PostgreSQL nor CrateDB: give postgres://HOST/DATABASE/TABLE or \
                     crate://HOST:4200/SCHEMA/TABLE"
                ));
            }
            let host = server.clone().zip(server.skip(1)).find(|(option, _)| *option == "--to");
            let host = host.map(|(_, host)| host).filter(|host| !host.contains(['/', '=', '-']));
            let to = match words.iter().any(|word| word.to_string_lossy().contains("crate://")) {
                true => "crate://HOST:4200/SCHEMA/TABLE".to_owned(),
                false => format!("postgres://{}/DATABASE/TABLE", host.unwrap_or("HOST")),
            };
            Some(format!("name the files, the server and the table: sawmill {command} FILE {to}"))
        }
        _ => None,
    }
}

/// The scheme of an address that names neither a database of ours nor a store.
fn other_scheme(word: &str) -> Option<&str> {
    let (scheme, _) = word.split_once("://")?;
    let is_scheme = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+');
    let is_known = is_address(word) || scheme == "file" || Scheme::named(scheme).is_some();
    (is_scheme && !is_known).then_some(scheme)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    fn suggested(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Cli::command().try_get_matches_from(&words).unwrap_err();
        let mut command = Cli::command();
        command.build();
        let text = with_suggestion(error, &command, &words).render().to_string();
        let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: ")).unwrap_or_default();
        tip.to_owned()
    }

    #[test]
    fn names_of_other_tools_lead_to_ours() {
        for (line, ours) in [
            ("sawmill load a --threads 4", "'--connections'"),
            ("sawmill load a --overwrite", "'--mode replace'"),
            ("sawmill verify a --filter x", "'--where'"),
            ("sawmill load finish --to h --table t --part 1/2", "takes their options from the record"),
            ("sawmill load finish --to h --table t --where a>1", "takes their options from the record"),
            ("sawmill load status --to h --mode append", "works on the records"),
            ("sawmill load forget --to h --table t --verify", "works on the records"),
            ("sawmill load a --pk id", "'--primary-key'"),
            ("sawmill load a --merge-key id", "'--key'"),
            ("sawmill gen contacts --output x", "'--out'"),
            ("sawmill gen contacts --connections 4", "'--threads'"),
            ("sawmill drive gen:orders --to local --duration 3s", "'--for'"),
            ("sawmill drive gen:orders --to local --rps 3", "'--rate'"),
            ("sawmill convert a.csv --output=x", "'--out'"),
            ("sawmill convert x.csv --to parquet", "--as parquet"),
            ("sawmill convert x.csv --zap 3", "sawmill convert --help lists the options"),
            ("sawmill bench gen contacts --iterations 2", "'--runs'"),
            ("sawmill footer c --stats", "'--bounds'"),
            ("sawmill footer c --statistics", "'--bounds'"),
            ("sawmill footer c --bench", "sawmill bench footer"),
            ("sawmill footer c --output x", "--csv > FILE.csv"),
            ("sawmill footer c --row-group-rows 1k", "--row-group rows=..5000"),
            ("sawmill gen contacts --print", "sawmill gen spec DATASET"),
            ("sawmill drive gen:orders --to local --warmup 3s", "'--warmup-time'"),
            ("sawmill footer c --columns name", "'--column'"),
            ("sawmill footer c --page-index", "'--data-pages'"),
            ("sawmill footer c --key-value", "'--metadata'"),
            ("sawmill footer --verify c", "--strictness LEVEL"),
            ("sawmill gen --schema a.parquet", "'--schema-of'"),
            ("sawmill gen contacts --format csv", "'--as'"),
            ("sawmill gen tpch --table lineitem", "tpch/lineitem"),
            ("sawmill load a --to h --table t --limit 5", "'--rows'"),
            ("sawmill drive merge a b --out c", "'--json-file'"),
            ("sawmill gen contacts --rows 100 200", "sawmill gen --help lists the options"),
            ("sawmill gen contacts --json out.json", "--json-file out.json writes it"),
            ("sawmill load a --to h --table t --mode overwrite", "'replace'"),
            ("sawmill load forget night --to h --table t", "--table night"),
            ("sawmill load status night --to h", "--table night"),
            ("sawmill load status --zap --to h", "sawmill load status --help lists the options"),
            ("sawmill head a", "'footer head'"),
            ("sawmill status", "'load status'"),
            ("sawmill import a", "'load'"),
            ("sawmill generate contacts", "'gen'"),
            ("sawmill inspect a", "'footer'"),
            ("sawmill load --to localhost", "sawmill load FILE postgres://localhost/DATABASE/TABLE"),
            ("sawmill verify a", "sawmill verify FILE postgres://HOST/DATABASE/TABLE"),
            ("sawmill load a mysql://h/db/t", "mysql:// is neither PostgreSQL nor CrateDB"),
            ("sawmill load s3://b/a", "sawmill load FILE postgres://HOST/DATABASE/TABLE"),
            ("sawmill drive gen:orders", "sawmill drive gen:orders --to local"),
            ("sawmill completions", "sawmill completions bash"),
            ("sawmill gen spec contacts --out x", "sawmill gen spec contacts > my.toml"),
            ("sawmill gen --rows 10", "sawmill gen contacts --rows 1k --out DIR"),
            ("sawmill bench gen", "sawmill bench gen contacts"),
            ("sawmill bench load", "sawmill bench load FILE postgres://"),
            ("sawmill gen contacts --rows -5", "--rows takes no number below 0"),
            ("sawmill drive gen:orders --to h --query x", "write it in a plan"),
            ("sawmill bench gen contacts --duration 3s", "--runs"),
            ("sawmill load contacts --to crate://h", "FILE crate://HOST:4200/SCHEMA/TABLE"),
            ("sawmill drive gen:orders --to h --think 1s", ""),
            ("sawmill load a --to h --table t --locate", ""),
            ("sawmill footer c --limit 3", "sawmill footer --help lists the options"),
            ("sawmill bench gen contacts --json r.json", "--json-file r.json writes it"),
            // Spelled alike, as clap finds it.
            ("sawmill gen contacts --row 5", "'--rows'"),
        ] {
            let tip = suggested(line);
            assert!(tip.contains(ours) && tip.is_empty() == ours.is_empty(), "{line}: {tip:?}");
        }
    }

    #[test]
    fn what_is_suggested_exists() {
        let command = Cli::command();
        for (name, _, ours) in VALUES {
            let option = ours.split(' ').next().unwrap().trim_start_matches("--");
            let sub = command.find_subcommand(name).unwrap();
            assert!(sub.get_arguments().any(|argument| argument.get_long() == Some(option)), "{ours}");
        }
        for (name, others) in COMMANDS {
            assert!(command.find_subcommand(name).is_some(), "{name}");
            assert!(others.iter().all(|other| command.find_subcommand(other).is_none()), "{others:?}");
        }
        let has =
            |sub: &Command, name: &str| sub.get_arguments().any(|argument| argument.get_long() == Some(name));
        for group in OPTIONS {
            let mut all =
                command.get_subcommands().flat_map(|sub| std::iter::once(sub).chain(sub.get_subcommands()));
            let known = all.any(|sub| group.split(' ').any(|name| has(sub, name)));
            assert!(known || group.contains("verbose"), "{group:?}");
        }
    }
}
