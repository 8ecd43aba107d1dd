//! Ways that take turns, measured by the CPU time of the thread, and their tables.
#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to measure one table row, and the fewest and most rounds.
const BUDGET: Duration = Duration::from_secs(3);
const MIN: usize = 9;
const MAX: usize = 401;

/// The CPU time of one turn to aim for, in seconds.
const TURN: f64 = 200e-6;

/// A name, and what to run.
pub type Way<'w> = (&'static str, Box<dyn FnMut() + 'w>);

/// The CPU time that the current thread has used.
fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec that the call fills.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "the system has a clock for threads");
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn turn(run: &mut dyn FnMut(), repeats: usize) -> f64 {
    let before = thread_seconds();
    (0..repeats).for_each(|_| run());
    (thread_seconds() - before) / repeats as f64
}

fn quantile(mut values: Vec<f64>, at: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get((values.len() as f64 * at) as usize).copied().unwrap_or(f64::NAN)
}

/// One measured row: the lower quartile of each way in seconds, and how many times as fast as the last way
/// each one is, as the median over the rounds.
pub struct Measured {
    pub title: String,
    pub seconds: Vec<f64>,
    pub times_as_fast: Vec<f64>,
}

/// Runs the ways in turns; the last one is the peer.
pub fn measure(title: String, ways: &mut [Way<'_>]) -> Measured {
    let testing = sawmill_benches::once();
    let repeats: Vec<usize> = ways
        .iter_mut()
        .map(|(_, run)| {
            turn(run, 1);
            if testing { 1 } else { (TURN / turn(run, 1).max(1e-7)).ceil() as usize }
        })
        .collect();
    let mut times = vec![Vec::new(); ways.len()];
    let started = Instant::now();
    for round in 0..if testing { 1 } else { MAX } {
        if round >= MIN && started.elapsed() > BUDGET {
            break;
        }
        for step in 0..ways.len() {
            // Another way first in each round, and every other round backwards.
            let step = if round % 2 == 0 { step } else { ways.len() - 1 - step };
            let way = (step + round / 2) % ways.len();
            times[way].push(turn(&mut ways[way].1, repeats[way]));
        }
    }
    let peer = times.last().cloned().unwrap_or_default();
    let ratios = |own: &Vec<f64>| quantile(peer.iter().zip(own).map(|(peer, own)| peer / own).collect(), 0.5);
    let times_as_fast = times.iter().map(ratios).collect();
    Measured { title, seconds: times.into_iter().map(|times| quantile(times, 0.25)).collect(), times_as_fast }
}

/// Prints a table, rows with the smallest lead of the first way first.
pub fn print(heading: &str, ways: &[&str], mut rows: Vec<Measured>) {
    rows.sort_by(|a, b| a.times_as_fast[0].total_cmp(&b.times_as_fast[0]));
    println!("\n{heading}\n\n| file | {} |\n|---|{}", ways.join(" | "), "---|".repeat(ways.len()));
    for row in rows {
        let cell = |(seconds, ratio): (&f64, &f64)| {
            if seconds.is_nan() {
                return "-".to_owned();
            }
            let time = if *seconds < 1e-3 {
                format!("{:.3} µs", seconds * 1e6)
            } else {
                format!("{:.3} ms", seconds * 1e3)
            };
            format!("{time} ({ratio:.2} x)")
        };
        let cells: Vec<String> = row.seconds.iter().zip(&row.times_as_fast).map(cell).collect();
        println!("| {} | {} |", row.title, cells.join(" | "));
        append(heading, ways, &row);
    }
}

/// Appends the row as a line of JSON to the file that `turns::JSON` names.
fn append(heading: &str, ways: &[&str], row: &Measured) {
    let Some(path) = std::env::var_os(crate::turns::JSON) else { return };
    let figures = row.seconds.iter().zip(&row.times_as_fast);
    let ways: Vec<String> = ways
        .iter()
        .zip(figures)
        .map(|(way, (seconds, ratio))| {
            format!("{{\"way\":{way:?},\"seconds\":{seconds:e},\"times_as_fast\":{ratio}}}")
        })
        .collect();
    let title = format!("{heading}: {}", row.title);
    let line = format!("{{\"title\":{title:?},\"ways\":[{}]}}\n", ways.join(","));
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file of figures can be written");
}

/// The Parquet files to measure, from `SAWMILL_FOREIGN_FOOTERS` or `fixtures/foreign`.
pub fn files() -> Vec<PathBuf> {
    let directory = std::env::var_os("SAWMILL_FOREIGN_FOOTERS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/foreign"), PathBuf::from);
    let entries = std::fs::read_dir(directory).expect("the directory of foreign files can be read");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    files.sort();
    files
}
