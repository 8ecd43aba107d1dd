//! The `sawmill` command from end to end: the binary, real files, a real PostgreSQL.

mod bench;
mod cratedb;
mod demo;
mod footer;
mod r#gen;
mod harness;
mod load;
mod parquet_files;
mod readme;
mod screen;
