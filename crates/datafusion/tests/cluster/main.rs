//! Queries and jobs on a scheduler and executors in processes of their own.

mod generation;
mod processes;
mod queries;
