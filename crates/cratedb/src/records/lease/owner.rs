//! The owner of a lease: one load of one process, and whether it may still be running.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use sawmill_profile::turns::{self, Process};
use serde::{Deserialize, Serialize};

/// A load of a process. Two owners are never equal: boot, process number and start time identify the process, and
/// its loads are numbered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    host: String,
    boot: String,
    /// The namespace that the process's number counts in: containers of one machine have several.
    namespace: String,
    process: u32,
    started: String,
    load: u64,
}

/// Numbers of the loads of this process that hold leases or try to.
static LOADS: Mutex<Option<HashSet<u64>>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Owner {
    /// A new load of this process; [`leave`](Self::leave) says that it is over.
    pub(super) fn here() -> Self {
        let load = NEXT.fetch_add(1, Relaxed);
        let mut loads = LOADS.lock().unwrap_or_else(PoisonError::into_inner);
        loads.get_or_insert_default().insert(load);
        let here = machine();
        Self { load, started: state_of(here.process).map(|(_, started)| started).unwrap_or_default(), ..here }
    }

    /// The owner as the table of leases has it.
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// This load of this process is over.
    pub(super) fn leave(&self) {
        if let Some(loads) = LOADS.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            loads.remove(&self.load);
        }
    }

    /// Whether the load is of this machine, so that [`is_gone`](Self::is_gone) knows all about it.
    pub(super) fn is_here(&self) -> bool {
        let here = machine();
        !self.boot.is_empty() && self.boot == here.boot && self.namespace == here.namespace
    }

    /// Whether the load cannot be under way any more. Processes of other machines cannot be checked.
    pub(super) fn is_gone(&self) -> bool {
        if !self.is_here() {
            return false;
        }
        match state_of(self.process) {
            // If the number was reused, its process started later. A zombie, which waits for its parent, does
            // nothing any more.
            Some((state, started)) if started == self.started && !matches!(state, 'Z' | 'X') => {
                let loads = LOADS.lock().unwrap_or_else(PoisonError::into_inner);
                self.process == machine().process
                    && !loads.as_ref().is_some_and(|loads| loads.contains(&self.load))
            }
            _ => true,
        }
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {}", self.process)?;
        if self.host.is_empty() { Ok(()) } else { write!(f, " on {}", self.host) }
    }
}

/// This process on this machine, as far as the system tells it; empty where it does not.
fn machine() -> Owner {
    if let Some(Process { machine, number }) = turns::process() {
        return Owner { host: machine.clone(), boot: machine, process: number, ..Owner::default() };
    }
    let read =
        |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").map(|link| link.display().to_string());
    Owner {
        host: read("/proc/sys/kernel/hostname"),
        boot: read("/proc/sys/kernel/random/boot_id"),
        namespace: namespace.unwrap_or_default(),
        process: std::process::id(),
        ..Owner::default()
    }
}

/// State and start of a process, from `/proc/PID/stat` (proc_pid_stat(5)): the 3rd and the 22nd field. Counted
/// after the name, because the name may contain anything.
fn state_of(process: u32) -> Option<(char, String)> {
    if turns::process().is_some() {
        return turns::is_running(process).then(|| ('R', String::new()));
    }
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_there_until_it_leaves_and_its_process_until_it_ends() {
        let owner = Owner::here();
        assert!(!owner.is_gone());
        assert_ne!(owner, Owner::here());
        owner.leave();
        assert!(owner.is_gone());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (_, started) = state_of(child.id()).unwrap();
        let of_child = Owner { process: child.id(), started, ..owner };
        assert!(!of_child.is_gone());
        // Another process may get the same number later: the start time tells them apart.
        assert!(Owner { started: "1".into(), ..of_child.clone() }.is_gone());
        // The processes of another machine or container cannot be seen.
        assert!(!Owner { boot: "another".into(), ..of_child.clone() }.is_gone());
        child.kill().unwrap();
        while !of_child.is_gone() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        child.wait().unwrap();
        assert!(of_child.is_gone());
        assert!(!Owner { namespace: "pid:[1]".into(), ..of_child }.is_gone());
    }
}
