//! The `sawmill` command from end to end: the binary, real files, a real PostgreSQL.

mod footer;
mod r#gen;
mod harness;
mod parquet_files;
mod screen;
