//! Queries and jobs on a scheduler and executors in processes of their own.

mod generation;
mod inserting;
mod loading;
mod objects;
mod processes;
mod queries;
