//! Queries and jobs on a scheduler and executors in processes of their own.

mod access;
#[path = "../command/mod.rs"]
mod command;
mod generation;
mod inserting;
mod loading;
mod lost;
mod made_objects;
mod objects;
mod processes;
mod queries;
mod s3;
