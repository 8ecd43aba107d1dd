//! Loads into a real server, in the ways they go well and in the ways they fail.

mod conversions;
mod database;
mod enums;
mod failures;
mod faults;
mod fixture;
mod full_disk;
mod intervals;
mod modes;
mod native;
mod nested;
mod new_tables;
mod partitions;
mod proxy;
mod put_aside;
mod records;
mod refusals;
mod rejects;
mod rejects_in_parts;
mod staged;
mod tables;
mod tables_rejects;
mod taxi;
mod tls;
mod types;
mod verification;
