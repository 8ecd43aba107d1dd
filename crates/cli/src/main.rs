//! The `sawmill` command.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: sawmill_cli::Watched<mimalloc::MiMalloc> = sawmill_cli::Watched(mimalloc::MiMalloc);

fn main() -> ExitCode {
    sawmill_cli::main()
}
