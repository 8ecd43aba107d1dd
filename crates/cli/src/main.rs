//! The `sawmill` command.

fn main() {}
