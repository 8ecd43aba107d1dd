//! The use of another process and its descendants: a database server and its backends.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::watch::proc_files::{
    Stat, last_started, numbered, resident_and_shared, since_boot, storage_bytes,
};

/// Most processes of one tree that are looked at.
const MOST_PROCESSES: usize = 1024;
/// What the system's times of a start are exact to.
const TICK: Duration = Duration::from_millis(10);

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
    /// The last process that had been started anywhere when the members were listed. Listing takes about 2 ms
    /// on a host with 150 processes, and is needed only when something was started since.
    listed_at: Option<u32>,
    /// What each member had used at the last look.
    before: BTreeMap<u32, Looked>,
    /// CPU time that has been counted of children which have ended, until their parent is seen to have it.
    ended: BTreeMap<u32, Duration>,
    /// When the last look was taken, counted from the start of the system.
    looked_at: Option<Duration>,
    cpu: Duration,
    /// Sums never run backwards, also while a child is between its end and its parent's wait.
    last_storage: (u64, u64),
}

/// A member at one look.
#[derive(Debug)]
struct Looked {
    parent: u32,
    started: Duration,
    own: Duration,
    reaped: Duration,
}

impl ProcessTree {
    pub(crate) fn new(root: u32) -> Self {
        Self {
            root,
            members: Vec::new(),
            listed_at: None,
            before: BTreeMap::new(),
            ended: BTreeMap::new(),
            looked_at: None,
            cpu: Duration::ZERO,
            last_storage: (0, 0),
        }
    }

    /// What the tree has used since its processes started; `None` when its root is gone.
    ///
    /// Memory is what each process has for itself, plus the largest shared part once: the backends of a
    /// server map the same buffers, and adding those up would count them many times.
    pub(crate) fn usage(&mut self) -> Option<TreeUse> {
        let newest = last_started();
        if newest.is_none() || newest != self.listed_at || self.members.is_empty() {
            self.members = descendants(self.root);
            self.listed_at = newest;
        }
        Stat::read(&format!("/proc/{}/stat", self.root))?;
        let mut sum = TreeUse::default();
        let (mut shared_most, mut storage) = (0, None);
        let mut now = BTreeMap::new();
        for pid in &self.members {
            let Some(stat) = Stat::read(&format!("/proc/{pid}/stat")) else { continue };
            sum.processes += 1;
            let own = cpu_clock(*pid).unwrap_or(stat.own_cpu);
            let Stat { parent, started, reaped_cpu: reaped, .. } = stat;
            now.insert(*pid, Looked { parent, started, own, reaped });
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
        self.count(now);
        sum.cpu = self.cpu;
        if let Some((read, written)) = storage {
            self.last_storage = (read.max(self.last_storage.0), written.max(self.last_storage.1));
            sum.storage = Some(self.last_storage);
        }
        Some(sum)
    }

    /// Adds the CPU time since the last look, so that a look never has what an earlier one should have had.
    ///
    /// What ended children used is in their parents' numbers once these have waited for them; what was counted
    /// of them while they ran is not counted again there.
    fn count(&mut self, now: BTreeMap<u32, Looked>) {
        let (first, since) = (self.looked_at.is_none(), self.looked_at.unwrap_or_default());
        let there =
            |pid: &u32, looked: &Looked| now.get(pid).is_some_and(|now| now.started == looked.started);
        for (pid, gone) in self.before.iter().filter(|(pid, looked)| !there(pid, looked)) {
            // One that only left the tree, because its parent has ended, is waited for elsewhere.
            let stat = Stat::read(&format!("/proc/{pid}/stat"));
            if stat.is_some_and(|stat| stat.started == gone.started) {
                continue;
            }
            // A parent that has ended, too, has handed on what it had of its children.
            let mut parent = gone.parent;
            while !now.contains_key(&parent)
                && let Some(ended) = self.before.get(&parent)
            {
                parent = ended.parent;
            }
            let counted = gone.own + gone.reaped + self.ended.remove(pid).unwrap_or_default();
            *self.ended.entry(parent).or_default() += counted;
        }
        self.ended.retain(|parent, _| now.contains_key(parent));
        for (pid, there) in &now {
            match self.before.get(pid).filter(|before| before.started == there.started) {
                Some(before) => {
                    self.cpu += there.own.saturating_sub(before.own);
                    let reaped = there.reaped.saturating_sub(before.reaped);
                    let counted = self.ended.get_mut(pid).map_or(Duration::ZERO, |ended| {
                        let counted = reaped.min(*ended);
                        *ended -= counted;
                        counted
                    });
                    self.cpu += reaped - counted;
                }
                // One that came into the tree later than it started used its time before that.
                None if first || there.started + TICK >= since => self.cpu += there.own + there.reaped,
                None => {}
            }
        }
        self.before = now;
        self.looked_at = since_boot().or(self.looked_at).or(Some(Duration::ZERO));
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
    use std::io::Write;
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

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

    /// A shell that runs one line of its standard input after the other.
    fn shell() -> Child {
        Command::new("sh").stdin(Stdio::piped()).spawn().unwrap()
    }

    fn say(shell: &mut Child, line: &str) {
        shell.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// What the tree uses in a time, in processors.
    fn processors(tree: &mut ProcessTree, time: Duration) -> f64 {
        let (started, before) = (Instant::now(), tree.usage().unwrap().cpu);
        std::thread::sleep(time);
        let used = tree.usage().unwrap().cpu - before;
        used.as_secs_f64() / started.elapsed().as_secs_f64()
    }

    #[test]
    fn a_child_is_counted_from_its_first_moment_and_never_more_than_the_machine_has() {
        let most = std::thread::available_parallelism().unwrap().get() as f64 * 1.2;
        let mut shell = shell();
        let mut tree = ProcessTree::new(shell.id());
        tree.usage().unwrap();
        say(&mut shell, "(while :; do :; done) & a=$!\n");
        let mut seen = Vec::new();
        for _ in 0..20 {
            seen.push(processors(&mut tree, Duration::from_millis(50)));
        }
        say(&mut shell, "kill $a; wait\nexit\n");
        shell.wait().unwrap();
        assert!(seen[..6].iter().any(|used| *used > 0.2), "it is seen at once: {seen:?}");
        assert!(seen.iter().all(|used| *used < most), "of {most}: {seen:?}");
    }

    #[test]
    fn what_a_child_used_counts_once_when_its_parent_has_waited_for_it() {
        let mut shell = shell();
        let mut tree = ProcessTree::new(shell.id());
        let before = tree.usage().unwrap().cpu;
        say(&mut shell, "timeout 0.4 sh -c 'while :; do :; done'\n");
        let mut alive = Duration::ZERO;
        for _ in 0..30 {
            std::thread::sleep(Duration::from_millis(20));
            alive = alive.max(tree.usage().unwrap().cpu - before);
        }
        let after = tree.usage().unwrap().cpu - before;
        let told = Stat::read(&format!("/proc/{}/stat", shell.id())).unwrap().reaped_cpu;
        say(&mut shell, "exit\n");
        shell.wait().unwrap();
        assert!(alive > Duration::from_millis(40), "{alive:?}");
        assert!(after < told + 5 * TICK, "counted twice: {after:?}, the system says {told:?}");
    }

    #[test]
    fn children_that_live_shorter_than_a_look_count_when_they_were_waited_for() {
        let mut shell = shell();
        let mut tree = ProcessTree::new(shell.id());
        let before = tree.usage().unwrap().cpu;
        say(
            &mut shell,
            "for i in 1 2 3 4 5 6 7 8; do sh -c 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done'; done\n",
        );
        say(&mut shell, "echo done >&2; read line\n");
        let started = Instant::now();
        while tree.usage().unwrap().processes > 1 || started.elapsed() < Duration::from_millis(300) {
            std::thread::sleep(Duration::from_millis(100));
        }
        let used = tree.usage().unwrap().cpu - before;
        let told = Stat::read(&format!("/proc/{}/stat", shell.id())).unwrap().reaped_cpu;
        say(&mut shell, "\n");
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(used + 3 * TICK >= told && used < told + 5 * TICK, "{used:?}, the system says {told:?}");
    }
}
