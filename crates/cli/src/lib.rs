//! The `sawmill` command: arguments in, one sub-command run, results and errors out.
//!
//! It wires the libraries together and has no logic of its own. Each sub-command has a file:
//! its arguments, what it calls, what it prints.

mod arguments;
mod bench;
mod demo;
mod demo_directory;
mod error;
mod footer;
mod r#gen;
mod interrupt;
mod load;
mod load_tables;
mod screen;
mod verify;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::bench::sweep::{self, Parameters};
use crate::error::{Error, Exit};
use crate::screen::console::Console;

/// Parquet tooling: generate nested data, read footers, load databases.
#[derive(Parser, Debug)]
#[command(
    name = "sawmill",
    version,
    about,
    max_term_width = 100,
    after_help = "\
Examples:
  sawmill demo                                   # generate, load into a PostgreSQL of its own, verify
  sawmill gen contacts --rows 10M --files 4 --out /tmp/contacts
  sawmill footer /tmp/contacts
  sawmill load /tmp/contacts --to postgres://me@localhost/db --table contacts

Sizes in bytes: 65536, 1.5MB, 64KiB. kB, MB and GB are powers of ten; KiB, MiB, GiB and K, M, G alone powers
of two. Counts of rows: 1000, 10k, 1.5M, 1B, all powers of ten.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 slower than a benchmark allows, 4 the target differs
from the source, 130 interrupted."
)]
struct Cli {
    /// Print results as JSON.
    #[arg(long, global = true)]
    json: bool,
    /// Say how things are done, on standard error.
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// No progress bars and steps.
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Draw where the CPU time goes, thread by thread, as an SVG for a browser; of a benchmark in a run
    /// that does not count. Requires the feature `flamegraph`, which released binaries have.
    #[arg(long, global = true, value_name = "FILE.svg")]
    flamegraph: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Demo(demo::DemoArgs),
    Gen(r#gen::GenCommand),
    Footer(footer::FooterCommand),
    Load(Box<load::LoadArgs>),
    Verify(verify::VerifyArgs),
    Bench(bench::BenchArgs),
    /// Print the completion script of a shell.
    #[command(after_help = "\
Examples:
  sawmill completions bash > ~/.local/share/bash-completion/completions/sawmill
  sawmill completions zsh > ~/.zfunc/_sawmill")]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    sawmill_source::silence_guarded_panics();
    match parse().and_then(|points| run(&points)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if error.exit() != Exit::BrokenPipe {
                eprintln!("error: {error}");
            }
            ExitCode::from(error.exit() as u8)
        }
    }
}

/// The command line; of a benchmark that sweeps, one for each of its points.
fn parse() -> Result<Vec<(Parameters, Cli)>, Error> {
    let points = sweep::points(std::env::args_os())?;
    let parsed = |words: Vec<OsString>| {
        let mut matches = screen::help::with_whole_examples(Cli::command())
            .try_get_matches_from(words)
            .unwrap_or_else(|message| screen::help::exit(&message));
        Cli::from_arg_matches_mut(&mut matches).unwrap_or_else(|message| screen::help::exit(&message))
    };
    Ok(points.into_iter().map(|point| (point.parameters, parsed(point.words))).collect())
}

fn run(points: &[(Parameters, Cli)]) -> Result<(), Error> {
    let Some((_, Cli { json, quiet, verbose, flamegraph, command })) = points.first() else { return Ok(()) };
    let console = Console { json: *json, quiet: *quiet, verbose: *verbose };
    let cancel = interrupt::on_signal()
        .map_err(|e| Error::failure(e.to_string(), "installing signal handlers", ""))?;
    // A benchmark draws runs of its own, so that those that count are not sampled.
    let drawn = flamegraph.as_deref().filter(|_| !matches!(command, Command::Bench(_)));
    screen::flame::drawn(drawn, console, || match command {
        Command::Demo(args) => demo::run(args, console, &cancel),
        Command::Gen(args) => r#gen::run(args, console, &cancel),
        Command::Footer(args) => footer::run(args, console, &cancel),
        Command::Load(args) => load::run(args, console, &cancel),
        Command::Verify(args) => verify::run(args, console, &cancel),
        Command::Bench(_) => {
            let benches = points.iter().filter_map(|(parameters, cli)| match &cli.command {
                Command::Bench(args) => Some((parameters, args)),
                _ => None,
            });
            bench::run(&benches.collect::<Vec<_>>(), flamegraph.as_deref(), console, &cancel)
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "sawmill", &mut script);
            let script = String::from_utf8_lossy(&script).into_owned();
            Console { json: false, ..console }.result(&script, || script.clone())
        }
    })
}
