//! `sawmill load --query`: the program `sawmill-cluster`, which has an SQL engine, loads the rows of a SELECT.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ArgMatches;
use clap::parser::ValueSource;
use sawmill_profile::CommandLine;

use crate::arguments::target::{ModeArg, TargetArgs};
use crate::error::{Error, Result};
use crate::screen::console::Console;

/// The program, beside this one or on PATH.
const PROGRAM: &str = "sawmill-cluster";

/// The options that it takes.
const TAKEN: [&str; 9] = ["files", "to", "table", "mode", "degree", "query", "json", "quiet", "verbose"];

/// Refuses options of a load that have no meaning for the rows of a query. `command` describes all options.
pub(crate) fn check(matches: &ArgMatches, command: fn() -> clap::Command) -> Result<()> {
    let Some(("load", given)) = matches.subcommand() else { return Ok(()) };
    let of_command_line = |id: &str| {
        given.ids().any(|given| given == id) && given.value_source(id) == Some(ValueSource::CommandLine)
    };
    if !of_command_line("query") {
        return Ok(());
    }
    let mut command = command();
    command.build();
    let mut options = command.find_subcommand("load").into_iter().flat_map(clap::Command::get_arguments);
    let refused = options.find(|option| {
        let id = option.get_id().as_str();
        !TAKEN.contains(&id) && of_command_line(id)
    });
    match refused {
        Some(option) => Err(Error::usage(
            "the option does not apply to the rows of a query",
            format!("--{}", option.get_long().unwrap_or_default()),
            "leave it out; conditions, casts and the choice of columns belong in the SELECT",
        )),
        None => Ok(()),
    }
}

/// Loads the rows of a query over these files as the program, whose signals and exit code are then this process's.
pub(super) fn run(
    query: &str,
    files: &[PathBuf],
    (target, mode): (&TargetArgs, ModeArg),
    degree: Option<NonZeroUsize>,
    console: Console,
) -> Result<()> {
    let mode = match mode {
        ModeArg::Auto | ModeArg::Create => "create",
        ModeArg::Append => "append",
        _ => {
            let what =
                "the rows of a query make a table or are added to one; they neither replace nor change rows";
            let advice = "load them into another table, and do the rest on the server";
            return Err(Error::usage(what, "--mode", advice));
        }
    };
    let source = match files {
        [source] if !is_other_form(source) => source,
        _ => {
            let advice = "name one file, folder or pattern of Parquet files, which the query reads as the table `read`";
            return Err(Error::usage("a query has one source", "--query", advice));
        }
    };
    let mut words: Vec<OsString> = vec!["load".into(), source.into()];
    words.push(format!("--query={query}").into());
    words.push(format!("--table={}", target.table()).into());
    words.push(format!("--mode={mode}").into());
    words.extend(degree.map(|degree| format!("--partitions={degree}").into()));
    words.extend(console.json.then(|| "--json".into()));
    words.extend(console.quiet.then(|| "--quiet".into()));
    let beside = std::env::current_exe().map(|own| own.with_file_name(PROGRAM));
    let program = beside.ok().filter(|path| path.is_file()).unwrap_or_else(|| PROGRAM.into());
    let failed = Command::new(program).args(&words).arg(format!("--to={}", target.server()?)).exec();
    let what = match failed.kind() {
        ErrorKind::NotFound => {
            format!("queries need {PROGRAM}, which is neither beside sawmill nor on PATH")
        }
        _ => format!("queries need {PROGRAM}, which does not start: {failed}"),
    };
    // An address may hold a password.
    let words = CommandLine::new(words.iter().map(|word| word.to_string_lossy().into_owned()));
    let words = words.map(|line| line.text()).unwrap_or_default();
    let advice = format!(
        "build it: cargo build --release --manifest-path crates/datafusion/Cargo.toml --features cluster; then this load is \
         {PROGRAM} {words} --to=URL"
    );
    Err(Error::usage(what, "--query", advice))
}

/// Whether a source is a stream, a list of paths or a dataset, which the program does not read.
fn is_other_form(source: &Path) -> bool {
    let source = source.as_os_str().as_encoded_bytes();
    ["-", "@", "gen:"].iter().any(|form| source.starts_with(form.as_bytes()))
}
