//! The use of another process and its descendants: a database server and its backends.

use std::time::Duration;

use crate::proc_files::{Stat, numbered, resident_and_shared, storage_bytes};

/// How many samples the list of descendants is used for before the processes are listed anew, which
/// takes about 2 ms on a host with 150 processes.
const LISTED_FOR: u32 = 10;
/// Most processes of one tree that are looked at.
const MOST_PROCESSES: usize = 1024;

/// What a tree of processes has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TreeUse {
    pub(crate) cpu: Duration,
    pub(crate) resident: u64,
    /// Bytes read from and written to storage; `None` where we may not look.
    pub(crate) storage: Option<(u64, u64)>,
    pub(crate) processes: u32,
}

/// A process and its descendants.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    root: u32,
    members: Vec<u32>,
    samples_left: u32,
    /// Sums never run backwards, also while a child is between its end and its parent's wait.
    last_cpu: Duration,
    last_storage: (u64, u64),
}

impl ProcessTree {
    pub(crate) fn new(root: u32) -> Self {
        Self { root, members: Vec::new(), samples_left: 0, last_cpu: Duration::ZERO, last_storage: (0, 0) }
    }

    /// What the tree has used since its processes started; `None` when its root is gone.
    ///
    /// What ended children used is in their parents' numbers once these have waited for them. Memory
    /// is what each process has for itself, plus the largest shared part once: the backends of a
    /// server map the same buffers, and adding those up would count them many times.
    pub(crate) fn usage(&mut self) -> Option<TreeUse> {
        if self.samples_left == 0 {
            self.members = descendants(self.root);
            self.samples_left = LISTED_FOR;
        }
        self.samples_left -= 1;
        Stat::read(&format!("/proc/{}/stat", self.root))?;
        let mut sum = TreeUse::default();
        let (mut shared_most, mut storage) = (0, None);
        for pid in &self.members {
            let Some(stat) = Stat::read(&format!("/proc/{pid}/stat")) else { continue };
            sum.processes += 1;
            sum.cpu += cpu_clock(*pid).unwrap_or(stat.own_cpu) + stat.reaped_cpu;
            if let Some((resident, shared)) = resident_and_shared(&format!("/proc/{pid}/statm")) {
                sum.resident += resident - shared;
                shared_most = shared.max(shared_most);
            }
            if let Some((read, written)) = storage_bytes(&format!("/proc/{pid}/io")) {
                let so_far: &mut (u64, u64) = storage.get_or_insert((0, 0));
                so_far.0 += read;
                so_far.1 += written;
            }
        }
        sum.resident += shared_most;
        self.last_cpu = self.last_cpu.max(sum.cpu);
        sum.cpu = self.last_cpu;
        if let Some((read, written)) = storage {
            self.last_storage = (read.max(self.last_storage.0), written.max(self.last_storage.1));
            sum.storage = Some(self.last_storage);
        }
        Some(sum)
    }
}

/// CPU time of another process by its clock (`clock_getcpuclockid(3)`), which is finer than the
/// 10 ms ticks of `stat`.
fn cpu_clock(pid: u32) -> Option<Duration> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls write to values that are valid for the length of the call; a clock whose
    // process is gone makes the second one fail.
    let told = unsafe {
        libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) == 0
            && libc::clock_gettime(clock, &mut time) == 0
    };
    told.then(|| Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32))
}

/// A process and all that descend from it, the parents first.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = numbered("/proc")
        .into_iter()
        .filter_map(|pid| Some((pid, Stat::read(&format!("/proc/{pid}/stat"))?.parent)))
        .collect();
    let mut members = vec![root];
    let mut next = 0;
    while let Some(parent) = members.get(next).copied() {
        let room = MOST_PROCESSES.saturating_sub(members.len());
        let children = parents.iter().filter(|(pid, of)| *of == parent && *pid != root);
        members.extend(children.map(|(pid, _)| *pid).take(room));
        next += 1;
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn children_of_a_process_are_in_its_tree() {
        let mut shell = Command::new("sh")
            .args(["-c", "while :; do :; done & a=$!; sleep 5 & read line; kill $a $!"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(400));
        let mut tree = ProcessTree::new(shell.id());
        let usage = tree.usage().unwrap();
        let (clock, ticks) = (cpu_clock(1).is_some(), Stat::read("/proc/1/stat").is_some());
        assert_eq!(clock, ticks, "processes of others are told, too");
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(usage.processes, 3);
        assert!(usage.cpu >= Duration::from_millis(20), "{usage:?}");
        assert!(usage.resident > 100_000);
        assert_eq!(tree.usage(), None, "its root is gone");
    }
}
