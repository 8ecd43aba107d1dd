//! The resource usage of another process and its descendants, such as a database server and its backends.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::watch::proc_files::{
    Stat, last_started, numbered, resident_and_shared, since_boot, storage_bytes,
};

/// The most processes of one tree to look at.
const MAX_PROCESSES: usize = 1024;
/// The accuracy of the system's start times.
const TICK: Duration = Duration::from_millis(10);

/// The total usage of a process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TreeUse {
    pub(crate) cpu: Duration,
    pub(crate) resident: u64,
    /// Bytes read from and written to storage; `None` if we may not look.
    pub(crate) storage: Option<(u64, u64)>,
    pub(crate) processes: u32,
}

/// A process and its descendants.
#[derive(Debug, Default)]
pub(crate) struct ProcessTree {
    root: u32,
    members: Vec<u32>,
    /// The most recently started process on the system when the members were listed. Listing takes about 2 ms
    /// on a host with 150 processes and is needed only if something was started since.
    listed_at: Option<u32>,
    /// The usage of each member at the last look.
    before: BTreeMap<u32, Looked>,
    /// CPU time already counted for ended children, until it appears in their parent's figures.
    ended: BTreeMap<u32, Duration>,
    /// The time of the last look, relative to the start of the system.
    looked_at: Option<Duration>,
    cpu: Duration,
    /// Sums never run backwards, even between a child's end and its parent's wait.
    last_storage: (u64, u64),
}

/// One member at one look.
#[derive(Debug)]
struct Looked {
    parent: u32,
    started: Duration,
    own: Duration,
    reaped: Duration,
}

impl ProcessTree {
    pub(crate) fn new(root: u32) -> Self {
        Self { root, ..Self::default() }
    }

    /// The tree's usage since its processes started; `None` once its root is gone.
    ///
    /// Memory is the sum of every process's unshared memory plus the largest shared part once: the backends
    /// of a server map the same buffers, which must not be counted repeatedly.
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

    /// Adds the CPU time since the last look, so that no look gets time that belongs to an earlier one.
    ///
    /// The time of ended children appears in their parents' figures once these have waited for them; time that was
    /// counted while they ran is not counted again.
    fn count(&mut self, now: BTreeMap<u32, Looked>) {
        let (first, since) = (self.looked_at.is_none(), self.looked_at.unwrap_or_default());
        let there =
            |pid: &u32, looked: &Looked| now.get(pid).is_some_and(|now| now.started == looked.started);
        for (pid, gone) in self.before.iter().filter(|(pid, looked)| !there(pid, looked)) {
            // A process that only left the tree because its parent ended is waited for elsewhere.
            let stat = Stat::read(&format!("/proc/{pid}/stat"));
            if stat.is_some_and(|stat| stat.started == gone.started) {
                continue;
            }
            // A parent that has ended too has passed on its children's time.
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
                // A process that joined the tree after its start used its earlier time outside the tree.
                None if first || there.started + TICK >= since => self.cpu += there.own + there.reaped,
                None => {}
            }
        }
        self.before = now;
        self.looked_at = since_boot().or(self.looked_at).or(Some(Duration::ZERO));
    }
}

/// CPU time of another process by its clock (`clock_getcpuclockid(3)`), which is finer than the 10 ms ticks
/// of `stat`.
fn cpu_clock(pid: u32) -> Option<Duration> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls write to values that are valid during the call; for a process that is gone the
    // second call fails.
    let reported = unsafe {
        libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) == 0
            && libc::clock_gettime(clock, &mut time) == 0
    };
    reported.then(|| Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32))
}

/// A process and all its descendants, parents first.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = numbered("/proc")
        .into_iter()
        .filter_map(|pid| Some((pid, Stat::read(&format!("/proc/{pid}/stat"))?.parent)))
        .collect();
    let mut members = vec![root];
    let mut next = 0;
    while let Some(parent) = members.get(next).copied() {
        let room = MAX_PROCESSES.saturating_sub(members.len());
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

    /// Waits until `holds` does, for at most a minute, and looks at it this often.
    fn until(what: &str, pause: Duration, mut holds: impl FnMut() -> bool) {
        let started = Instant::now();
        while !holds() {
            assert!(started.elapsed() < Duration::from_secs(60), "{what} did not happen within a minute");
            std::thread::sleep(pause);
        }
    }

    const SOON: Duration = Duration::from_millis(5);

    #[test]
    fn children_of_a_process_are_in_its_tree() {
        let mut shell = Command::new("sh")
            .args(["-c", "while :; do :; done & a=$!; sleep 600 & read line; kill $a $!"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut tree = ProcessTree::new(shell.id());
        let mut usage = TreeUse::default();
        until("the work of a child", SOON, || {
            // The first look, at processes that already run.
            tree = ProcessTree::new(shell.id());
            usage = tree.usage().unwrap();
            usage.processes == 3 && usage.cpu >= Duration::from_millis(20)
        });
        let (clock, ticks) = (cpu_clock(1).is_some(), Stat::read("/proc/1/stat").is_some());
        assert_eq!(clock, ticks, "processes of other users are reported too");
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(usage.resident > 100_000);
        assert_eq!(tree.usage(), None, "its root is gone");
    }

    /// A shell that runs its standard input line by line.
    fn shell() -> Child {
        Command::new("sh").stdin(Stdio::piped()).spawn().unwrap()
    }

    fn say(shell: &mut Child, line: &str) {
        shell.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// The tree's usage over a time, in processors.
    fn processors(tree: &mut ProcessTree, time: Duration) -> f64 {
        let (started, before) = (Instant::now(), tree.usage().unwrap().cpu);
        std::thread::sleep(time);
        let used = tree.usage().unwrap().cpu - before;
        used.as_secs_f64() / started.elapsed().as_secs_f64()
    }

    #[test]
    fn a_child_is_counted_from_its_start_and_never_above_the_machines_processors() {
        let most = std::thread::available_parallelism().unwrap().get() as f64 * 1.2;
        let mut shell = shell();
        let mut tree = ProcessTree::new(shell.id());
        let before = tree.usage().unwrap().cpu;
        say(&mut shell, "(while :; do :; done) & a=$!\n");
        let mut own = Duration::ZERO;
        until("the work of a child", SOON, || {
            let child = descendants(shell.id()).get(1).copied();
            let clock =
                |pid| cpu_clock(pid).or_else(|| Some(Stat::read(&format!("/proc/{pid}/stat"))?.own_cpu));
            own = child.and_then(clock).unwrap_or_default();
            own > 2 * TICK
        });
        let counted = tree.usage().unwrap().cpu - before;
        let seen: Vec<f64> = (0..20).map(|_| processors(&mut tree, Duration::from_millis(50))).collect();
        say(&mut shell, "kill $a; wait\nexit\n");
        shell.wait().unwrap();
        assert!(counted + TICK >= own, "it is counted immediately: {counted:?} of {own:?}");
        assert!(seen.iter().all(|used| *used < most), "of {most}: {seen:?}");
    }

    #[test]
    fn a_childs_time_counts_once_after_its_parent_waited_for_it() {
        let mut shell = shell();
        let mut tree = ProcessTree::new(shell.id());
        let before = tree.usage().unwrap().cpu;
        say(&mut shell, "sh -c 'i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done'\n");
        let reaped = || Stat::read(&format!("/proc/{}/stat", shell.id())).unwrap().reaped_cpu;
        let mut alive = Duration::ZERO;
        until("the end of a child", Duration::from_millis(20), || {
            let used = tree.usage().unwrap().cpu - before;
            let ended = !reaped().is_zero();
            alive = if ended { alive } else { used };
            ended
        });
        let after = tree.usage().unwrap().cpu - before;
        let reported = reaped();
        say(&mut shell, "exit\n");
        shell.wait().unwrap();
        assert!(alive > Duration::from_millis(40), "{alive:?}");
        assert!(after < reported + 5 * TICK, "counted twice: {after:?}, the system says {reported:?}");
    }

    #[test]
    fn children_that_end_between_looks_count_once_waited_for() {
        let mut shell = shell();
        let mut tree = ProcessTree::new(shell.id());
        let before = tree.usage().unwrap().cpu;
        say(
            &mut shell,
            "for i in 1 2 3 4 5 6 7 8; do sh -c 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done'; done\n",
        );
        // One of the eight is there at a time, and these two after them.
        say(&mut shell, "sleep 600 & a=$!; sleep 600 & read line; kill $a $!\n");
        until("the end of the children", Duration::from_millis(100), || tree.usage().unwrap().processes == 3);
        let used = tree.usage().unwrap().cpu - before;
        let reported = Stat::read(&format!("/proc/{}/stat", shell.id())).unwrap().reaped_cpu;
        say(&mut shell, "\n");
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(
            used + 3 * TICK >= reported && used < reported + 5 * TICK,
            "{used:?}, the system says {reported:?}"
        );
    }
}
