//! Loads into CrateDB: into a strict stand-in, or into a real cluster where `SAWMILL_CRATEDB_URL` (its HTTP
//! address) and `SAWMILL_CRATEDB_PG_URL` (its PostgreSQL wire) name one. Faults need the stand-in.

mod addresses;
mod cluster;
mod counts;
mod delivered_twice;
mod equal_keys;
mod faults;
mod filtered;
mod hostile_servers;
mod keys;
mod modes;
mod native_types;
mod objects;
mod other_options;
mod out_of_range;
mod patience;
mod remembered;
mod replaced_files;
mod restarts;
mod rows;
mod runs;
mod statements;
mod tags;
mod there_before;
mod tiny_files;
mod tls;
mod types;
mod unnest_postgres;
mod wide;
