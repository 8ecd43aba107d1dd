//! The command `sawmill-cluster`: SQL in one process or on a cluster, and the processes of that cluster.

mod access;
mod arguments;
mod demo;
mod engine;
mod executor;
mod load;
mod lost;
mod output;
mod planner;
mod scheduler;
mod session;
mod sql;
mod submit;
mod submit_footer;
mod submit_load;

use std::io::Write;
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
    let asks_for_json = matches!(&arguments.command, Command::Load(args) if args.json);
    match run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let (text, mismatch) = received(&error);
            let text = scheduler.and_then(|scheduler| scheduler.lost(&text)).unwrap_or(text);
            let text = match asks_for_json {
                true => error_object(&text).to_string(),
                false => format!("error: {text}"),
            };
            // If standard error is closed or full, nothing can report it.
            let _ = writeln!(std::io::stderr(), "{text}");
            if mismatch { ExitCode::from(MISMATCH) } else { ExitCode::FAILURE }
        }
    }
}

/// An error as `sawmill --json` prints it, with all parts of its text in one.
fn error_object(text: &str) -> serde_json::Value {
    let error = serde_json::json!({ "code": "failure", "exit": 1, "what": text, "where": "", "advice": "" });
    serde_json::json!({ "error": error })
}

fn run(command: Command) -> Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().thread_stack_size(STACK_BYTES).build()?;
    runtime.block_on(async {
        match command {
            Command::Sql(args) => sql::run(args).await,
            Command::Load(args) => load::run(args).await,
            Command::Scheduler(args) => scheduler::run(args).await,
            Command::Executor(args) => executor::run(args).await,
            Command::Submit(Job::Gen(args)) => submit::generate(args).await,
            Command::Submit(Job::Footer(args)) => submit_footer::footer(args).await,
            Command::Submit(Job::Load(args)) => submit_load::load(args).await,
            Command::Demo(args) => demo::run(args).await,
        }
    })
}
