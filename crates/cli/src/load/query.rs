//! `sawmill load --query`: the program `sawmill-cluster`, which has an SQL engine, loads the rows of a SELECT.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use sawmill_profile::CommandLine;

use crate::arguments::given::Given;
use crate::arguments::target::{ModeArg, TargetArgs};
use crate::error::{Error, Result};
use crate::load::LoadArgs;
use crate::screen::console::Console;

/// The program, beside this one or on PATH.
const PROGRAM: &str = "sawmill-cluster";

/// The options that it takes.
const TAKEN: [&str; 5] = ["--to", "--table", "--mode", "--connections", "--query"];

/// Loads the rows of a query over these files as the program, whose signals and exit code are then this process's.
pub(super) fn run(
    query: &str,
    files: &[PathBuf],
    (target, mode): (&TargetArgs, ModeArg),
    degree: Option<NonZeroUsize>,
    given: &Given,
    console: Console,
) -> Result<()> {
    if let Some(option) = given.first_of::<LoadArgs>(&TAKEN) {
        let what = "the option does not apply to the rows of a query";
        let advice = "leave it out; conditions, casts and the choice of columns belong in the SELECT";
        return Err(Error::usage(what, option, advice));
    }
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
