//! Loads into a real server, in the ways they go well and in the ways they fail.

mod database;
mod fixture;
mod nested;
mod taxi;
mod types;
