//! This machine: what the commands would use, and what they lack.

use std::fs;

use sawmill_inspect::Finding;
use sawmill_localpg::Search;

use super::Report;
use crate::screen::phases::bytes;

/// Less memory than this is short for a load with sorting.
const MEMORY: u64 = 1 << 30;

pub(super) fn check() -> Report {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let memory = available_memory();
    let mut findings = Vec::new();
    if let Some(memory) = memory.filter(|memory| *memory < MEMORY) {
        findings.push(Finding::new(
            format!("{} of memory are free for this process", bytes(memory)),
            "sorting and inference use less, and take longer",
            &[],
            "raise the limit of the container, or give --threads 1 and --connections 1",
        ));
    }
    let mut programs = "no PostgreSQL".to_owned();
    match Search::from_env().find() {
        Ok(Some(found)) => {
            programs = format!("PostgreSQL {} in {}", found.version(), found.bin_dir().display());
        }
        Ok(None) => findings.push(Finding::new(
            "no PostgreSQL programs were found",
            "sawmill demo and load tests against --to local download them first",
            &[],
            "install PostgreSQL, or name its folder: SAWMILL_PG_BIN=/usr/lib/postgresql/16/bin",
        )),
        Err(error) => findings.push(Finding::new(error.what(), error.place(), &[], &error.advice())),
    }
    let has_rings = read("/proc/sys/kernel/io_uring_disabled").is_none_or(|value| value.trim() == "0");
    if !has_rings {
        findings.push(Finding::new(
            "io_uring is disabled",
            "the footers of many files are read one by one on each thread",
            &["sudo sysctl kernel.io_uring_disabled=0"],
            "if the policy of this machine allows it",
        ));
    }
    let has_huge_pages =
        read("/sys/kernel/mm/transparent_hugepage/enabled").is_none_or(|value| !value.contains("[never]"));
    if !has_huge_pages {
        findings.push(Finding::new(
            "huge pages are off",
            "footers of tens of thousands of columns wait longer for fresh memory",
            &["echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"],
            "",
        ));
    }
    let memory = memory.map_or_else(|| "unknown".to_owned(), bytes);
    let state = |name: &str, is_on: bool| format!("{name} {}", if is_on { "on" } else { "off" });
    let (rings, pages) = (state("io_uring", has_rings), state("huge pages", has_huge_pages));
    let looked_at =
        format!("this machine: {cores} cores, {memory} of memory free, {rings}, {pages}, {programs}");
    Report::new(looked_at, findings)
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The memory that is free, within the limit of the control group.
fn available_memory() -> Option<u64> {
    let info = read("/proc/meminfo")?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let free = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10;
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max");
    let used = number("/sys/fs/cgroup/memory.current").unwrap_or(0);
    Some(limit.map_or(free, |limit| free.min(limit.saturating_sub(used))))
}
