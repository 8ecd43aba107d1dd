//! The `sawmill` command from end to end: the binary, real files, a real PostgreSQL.

mod addresses;
mod bench;
mod bench_inside;
mod bench_work;
mod cratedb;
mod cratedb_memory;
mod demo;
mod directories;
mod existing_tables;
mod flamegraph;
mod footer;
mod r#gen;
mod gen_datasets;
mod gen_layouts;
mod gen_together;
mod harness;
mod load;
mod load_memory;
mod nested;
mod parquet_files;
mod partitions;
mod readme;
mod rows;
mod screen;
mod signals;
mod sources;
