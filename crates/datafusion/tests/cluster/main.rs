//! Queries and jobs on a scheduler and executors in processes of their own.

mod processes;
mod queries;
