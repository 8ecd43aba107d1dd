//! Processes of a cluster on the loopback, which end with the test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// The command under test.
pub fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sawmill-cluster"))
}

/// A scheduler and executors of two tasks each.
pub struct Cluster {
    pub url: String,
    scheduler: Child,
    executors: Vec<Child>,
    work: TempDir,
    /// The password of the database, which no plan has.
    password: String,
}

impl Cluster {
    /// Starts a scheduler and `executors`.
    pub fn start(executors: usize) -> Self {
        Self::start_with(executors, String::new())
    }

    /// Starts the same with PGPASSWORD set to `password` for all but the scheduler.
    pub fn start_with(executors: usize, password: String) -> Self {
        let mut scheduler = command()
            .args(["scheduler", "--port", "0", "--executor-timeout", "10"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(scheduler.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("scheduler ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        let mut cluster =
            Self { url, scheduler, executors: Vec::new(), work: tempfile::tempdir().unwrap(), password };
        for _ in 0..executors {
            cluster.add_executor();
        }
        cluster
    }

    pub fn add_executor(&mut self) {
        let work = self.work.path().join(self.executors.len().to_string());
        std::fs::create_dir(&work).unwrap();
        let executor = command()
            .args(["executor", "--scheduler", &self.url, "--tasks", "2", "--work-dir"])
            .arg(work)
            .env("PGPASSWORD", &self.password)
            .spawn()
            .unwrap();
        self.executors.push(executor);
    }

    /// Kills an executor as `kill -9` does.
    pub fn kill_executor(&mut self, place: usize) {
        self.executors[place].kill().unwrap();
        self.executors[place].wait().unwrap();
    }

    /// Runs the command with the cluster's scheduler.
    pub fn run(&self, args: &[&str], folder: &Path) -> Output {
        let mut command = command();
        command.args(args).args(["--scheduler", &self.url]).env("PGPASSWORD", &self.password);
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
