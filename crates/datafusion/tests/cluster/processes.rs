//! Processes of a cluster on the loopback, which end with the test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Output, Stdio};

use tempfile::TempDir;

use crate::command::command;

/// A scheduler and executors of two tasks each.
pub struct Cluster {
    pub url: String,
    scheduler: Child,
    executors: Vec<Child>,
    work: TempDir,
    /// Options of all processes.
    options: Vec<String>,
    /// What no plan has: the password of the database, the keys of a store.
    environment: Vec<(String, String)>,
}

impl Cluster {
    /// Starts a scheduler and `executors`.
    pub fn start(executors: usize) -> Self {
        Self::start_in(executors, Vec::new())
    }

    /// Starts the same with options for all processes.
    pub fn start_protected(executors: usize, options: Vec<String>) -> Self {
        Self::started(executors, options, Vec::new())
    }

    /// Starts the same with the password of a database.
    pub fn start_with(executors: usize, password: String) -> Self {
        Self::start_in(executors, vec![("PGPASSWORD".to_owned(), password)])
    }

    /// Starts the same with variables for all processes.
    pub fn start_in(executors: usize, environment: Vec<(String, String)>) -> Self {
        Self::started(executors, Vec::new(), environment)
    }

    fn started(executors: usize, options: Vec<String>, environment: Vec<(String, String)>) -> Self {
        let mut scheduler = command()
            .envs(environment.clone())
            .args(["scheduler", "--port", "0", "--executor-timeout", "10"])
            .args(&options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(scheduler.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("scheduler ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        let work = tempfile::tempdir().unwrap();
        let mut cluster = Self { url, scheduler, executors: Vec::new(), work, options, environment };
        for _ in 0..executors {
            cluster.add_executor();
        }
        cluster
    }

    pub fn add_executor(&mut self) {
        self.add_executor_with(&[]);
    }

    /// Starts an executor with further options.
    pub fn add_executor_with(&mut self, more: &[&str]) {
        let work = self.work.path().join(self.executors.len().to_string());
        std::fs::create_dir(&work).unwrap();
        let executor = command()
            .args(["executor", "--scheduler", &self.url, "--tasks", "2", "--work-dir"])
            .arg(work)
            .args(&self.options)
            .args(more)
            .envs(self.environment.clone())
            .spawn()
            .unwrap();
        self.executors.push(executor);
    }

    /// Kills an executor as `kill -9` does.
    pub fn kill_executor(&mut self, place: usize) {
        self.executors[place].kill().unwrap();
        self.executors[place].wait().unwrap();
    }

    /// Kills the scheduler as `kill -9` does.
    pub fn kill_scheduler(&mut self) {
        self.scheduler.kill().unwrap();
        self.scheduler.wait().unwrap();
    }

    /// Files in which executors keep rows between stages and for clients.
    pub fn kept_files(&self) -> usize {
        fn below(folder: &Path) -> usize {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| if entry.path().is_dir() { below(&entry.path()) } else { 1 }).sum()
        }
        below(self.work.path())
    }

    /// Runs the command with the cluster's scheduler.
    pub fn run(&self, args: &[&str], folder: &Path) -> Output {
        let mut command = command();
        command
            .args(args)
            .args(["--scheduler", &self.url])
            .args(&self.options)
            .envs(self.environment.clone());
        command.current_dir(folder).output().unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.executors.iter_mut().chain([&mut self.scheduler]) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
