//! The `sawmill` command: parses arguments, runs one sub-command, prints results and errors.
//!
//! It wires the libraries together. Each sub-command has a file or folder with its arguments, its calls to
//! the libraries, and its output. Released binaries have the feature `full`, the demo's build does not.

#![cfg_attr(
    not(feature = "full"),
    allow(dead_code, reason = "the demo's build parses options that it refuses")
)]

mod arguments;
#[cfg_attr(not(feature = "full"), path = "demo_build/bench.rs")]
mod bench;
#[cfg_attr(not(feature = "full"), path = "demo_build/convert.rs")]
mod convert;
mod demo;
#[cfg(not(feature = "full"))]
mod demo_build;
mod doctor;
#[cfg_attr(not(feature = "full"), path = "demo_build/drive.rs")]
mod drive;
mod error;
mod footer;
mod forms;
mod r#gen;
mod interrupt;
mod load;
mod memory;
mod screen;
mod sweep;
mod verify;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::error::{Error, Exit, Result};
pub use crate::memory::Watched;
use crate::screen::console::{Console, ScreenArgs};
use crate::sweep::Parameters;

/// Parquet tooling: generate nested data, read footers, load databases.
#[derive(Parser, Debug)]
#[command(
    name = "sawmill",
    version,
    about,
    max_term_width = 100,
    after_help = "\
Examples:
  sawmill demo                       # generate, load into a private PostgreSQL, verify
  sawmill gen contacts --rows 10M --files 4 --out /tmp/contacts
  sawmill footer /tmp/contacts
  sawmill load /tmp/contacts postgres://me@localhost/db/contacts
  sawmill drive gen:events --to local --rate 1000 --for 30s   # needs the full build

Sizes in bytes: 65536, 1.5MB, 64KiB. kB, MB and GB are powers of ten; KiB, MiB, GiB and plain K, M, G are
powers of two. Counts of rows: 1000, 10k, 1.5M, 1B; all are powers of ten.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a benchmark or load test is slower than
allowed, 4 the target differs from the source, 130 interrupted, 141 the reader of the output went away."
)]
struct Cli {
    #[command(flatten)]
    screen: ScreenArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Demo(demo::DemoArgs),
    Gen(r#gen::GenCommand),
    /// Generate more rows like a sample: `gen --like SRC`, with all of its options.
    #[command(after_help = "\
Examples:
  sawmill like trips.parquet --rows 1B --files 100 --out /tmp/trips
  sawmill like orders.csv customers.csv --out /tmp/shop   # keys refer to the other file

`sawmill gen --help` lists the options. Give the samples first. Needs the full build.")]
    Like {
        /// The samples: Parquet files, CSV, NDJSON or folders.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "SRC")]
        words: Vec<OsString>,
    },
    Footer(footer::FooterCommand),
    Load(Box<load::LoadArgs>),
    Verify(verify::VerifyArgs),
    Convert(Box<convert::ConvertArgs>),
    Bench(bench::BenchArgs),
    Drive(Box<drive::DriveCommand>),
    Doctor(doctor::DoctorArgs),
    /// Print a completion script for a shell.
    #[command(after_help = "\
Examples:
  sawmill completions bash > ~/.local/share/bash-completion/completions/sawmill
  sawmill completions zsh > ~/.zfunc/_sawmill")]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write a manual page for each sub-command.
    #[command(after_help = "\
Examples:
  sawmill man ~/.local/share/man/man1

Needs the full build.")]
    Man {
        /// The folder, which is made if it is missing. Pages of the same names are replaced.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let named = words.next().unwrap_or_default();
    let program = std::env::current_exe().map_or(named, OsString::from);
    ExitCode::from(command(vec![program], words.collect()))
}

/// The words that start this command again, and its command line.
static COMMAND: OnceLock<(Vec<OsString>, Vec<OsString>)> = OnceLock::new();

/// The words that start this command again, to measure a run in a separate process.
pub(crate) fn program() -> &'static [OsString] {
    COMMAND.get().map_or(&[], |(program, _)| program)
}

/// The command line, without the program.
pub(crate) fn words() -> &'static [OsString] {
    COMMAND.get().map_or(&[], |(_, words)| words)
}

/// Whether the command line asks for JSON, also one that cannot be parsed.
pub(crate) fn asks_for_json() -> bool {
    let asks = |word: &OsString| word == "--json" || word.as_encoded_bytes().starts_with(b"--json=");
    words().iter().take_while(|word| *word != "--").any(asks)
}

/// Runs a command line in this process, once; returns the exit code. `program` starts the command again, such as
/// `python -m sawmill`.
pub fn command(program: Vec<OsString>, words: Vec<OsString>) -> u8 {
    // Without it, such an end is an abort.
    let _ = memory::end_with_an_error();
    COMMAND.get_or_init(|| (program, words));
    sawmill_source::silence_guarded_panics();
    let points = parse();
    let done = points.and_then(|points| sawmill_profile::caught("main", || run(&points)));
    match done {
        Ok(()) => 0,
        Err(error) => {
            let error = if sawmill_store::has_ended_a_wait() { interrupt::error() } else { error };
            report(&error);
            error.exit as u8
        }
    }
}

/// The command with the help of this build.
fn command_line() -> clap::Command {
    #[cfg(not(feature = "full"))]
    return demo_build::without_full(Cli::command());
    #[cfg(feature = "full")]
    Cli::command()
}

/// Writes a manual page for the command and for each sub-command.
fn write_manual(folder: &std::path::Path) -> Result<()> {
    #[cfg(not(feature = "full"))]
    return Err(Error::not_built(format!("sawmill man {}", folder.display())));
    #[cfg(feature = "full")]
    {
        // An option that short help hides would have no text.
        fn with_all_options(command: clap::Command) -> clap::Command {
            command.mut_args(|option| option.hide_short_help(false)).mut_subcommands(with_all_options)
        }
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(with_all_options(Cli::command()), folder));
        written.map_err(|e| {
            Error::failure(e.to_string(), folder.display().to_string(), "name a folder that you may write")
        })
    }
}

/// Prints the error on standard error: a line for people, or with `--json` an object. If standard error is closed or
/// full, nothing can report it.
fn report(error: &Error) {
    let text = match (error.exit, asks_for_json()) {
        (Exit::BrokenPipe, _) => return,
        (_, true) => error.json(),
        (_, false) => format!("error: {}", screen::escape::message(&error.to_string())),
    };
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The command lines: one, or one for each point of a benchmark's sweep.
fn parse() -> Result<Vec<(Parameters, Cli)>> {
    let whole = std::iter::once("sawmill".into()).chain(words().iter().cloned()).collect();
    let written: Vec<OsString> = forms::written_out(whole);
    if let Some(message) = screen::topic::asked_for(command_line(), &written)? {
        screen::help::exit(&message);
    }
    let points = sweep::points(written)?;
    let parsed = |words: Vec<OsString>| -> Result<Cli> {
        let mut matches =
            screen::help::with_whole_examples(screen::short_help::with_short_help(command_line(), &words))
                .try_get_matches_from(&words)
                .unwrap_or_else(|message| {
                    let mut command = Cli::command();
                    command.build();
                    screen::help::exit(&screen::suggestions::with_suggestion(message, &command, &words))
                });
        let mut cli =
            Cli::from_arg_matches_mut(&mut matches).unwrap_or_else(|message| screen::help::exit(&message));
        if let Command::Convert(args) = &mut cli.command {
            args.take_out()?;
        }
        Ok(cli)
    };
    points.into_iter().map(|point| Ok((point.parameters, parsed(point.words)?))).collect()
}

fn run(points: &[(Parameters, Cli)]) -> Result<()> {
    let Some((_, Cli { screen, command })) = points.first() else { return Ok(()) };
    let (console, flamegraph) = (screen.console(), screen.flamegraph.as_deref());
    interrupt::on_signal().map_err(|e| Error::failure(e.to_string(), "installing signal handlers", ""))?;
    // A benchmark draws an extra run, so that sampling does not disturb the counted ones.
    let drawn = flamegraph.filter(|_| !matches!(command, Command::Bench(_)));
    screen::flame::drawn(drawn, console, || match command {
        Command::Demo(args) => demo::run(args, console),
        Command::Gen(args) => r#gen::run(args, console),
        Command::Like { words } => Err(Error::usage(
            if words.is_empty() { "no sample" } else { "an option before the samples" },
            "sawmill like",
            "give the samples first: sawmill like trips.parquet --rows 1M",
        )),
        Command::Footer(args) => footer::run(args, console),
        Command::Load(args) => load::run(args, console),
        Command::Verify(args) => verify::run(args, console),
        Command::Convert(args) => convert::run(args, console),
        Command::Bench(_) => {
            let benches = points.iter().filter_map(|(parameters, cli)| match &cli.command {
                Command::Bench(args) => Some((parameters, args)),
                _ => None,
            });
            bench::run(&benches.collect::<Vec<_>>(), flamegraph, console)
        }
        Command::Drive(args) => drive::run(args, console),
        Command::Doctor(args) => doctor::run(args, console),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "sawmill", &mut script);
            let script = String::from_utf8_lossy(&script).into_owned();
            Console { json: false, ..console }.document(&script, || script.clone())
        }
        Command::Man { folder } => write_manual(folder),
    })
}
