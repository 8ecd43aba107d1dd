//! The command `sawmill-cluster`: SQL in one process or on a cluster, and the processes of that cluster.

mod access;
mod arguments;
mod demo;
mod engine;
mod executor;
mod lost;
mod output;
mod planner;
mod scheduler;
mod session;
mod sql;
mod submit;
mod submit_footer;
mod submit_load;

use std::process::ExitCode;

use clap::Parser;
use datafusion::error::Result;

use arguments::{Arguments, Command, Job};

use crate::error::received;

pub use session::{local_session, remote_session};

/// Deep plans recurse deeply, in the optimizer and in the codecs.
const STACK_BYTES: usize = 16 << 20;

/// As in `sawmill verify`: a table does not hold what its source holds.
const MISMATCH: u8 = 4;

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let scheduler = lost::Scheduler::find(&arguments.command);
    match run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let (text, mismatch) = received(&error);
            let text = scheduler.and_then(|scheduler| scheduler.lost(&text)).unwrap_or(text);
            eprintln!("error: {text}");
            if mismatch { ExitCode::from(MISMATCH) } else { ExitCode::FAILURE }
        }
    }
}

fn run(command: Command) -> Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().thread_stack_size(STACK_BYTES).build()?;
    runtime.block_on(async {
        match command {
            Command::Sql(args) => sql::run(args).await,
            Command::Scheduler(args) => scheduler::run(args).await,
            Command::Executor(args) => executor::run(args).await,
            Command::Submit(Job::Gen(args)) => submit::generate(args).await,
            Command::Submit(Job::Footer(args)) => submit_footer::footer(args).await,
            Command::Submit(Job::Load(args)) => submit_load::load(args).await,
            Command::Demo(args) => demo::run(args).await,
        }
    })
}
