//! Runs seeds of the simulation of an object store: `scripts/simulate --help`.

#[path = "../../loader/tests/simulation/shared/command.rs"]
mod command;
#[path = "../tests/simulation/world/mod.rs"]
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    command::main()
}
