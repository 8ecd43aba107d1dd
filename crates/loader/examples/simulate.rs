//! Runs seeds of the simulation of PostgreSQL's protocol: `scripts/simulate --help`.

#[path = "../tests/simulation/shared/command.rs"]
mod command;
#[path = "../tests/simulation/world/mod.rs"]
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    command::main()
}
