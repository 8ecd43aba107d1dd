//! A world of one seed: files, a server, loaders, and faults.

pub mod audit;
pub mod connection;
#[path = "../shared/coverage.rs"]
pub mod coverage;
#[path = "../shared/draw.rs"]
pub mod draw;
pub mod fault;
#[path = "../shared/fibers.rs"]
pub mod fibers;
#[path = "../shared/loads.rs"]
pub mod loads;
pub mod mistake;
#[path = "../shared/outcome.rs"]
pub mod outcome;
#[path = "../shared/process.rs"]
pub mod process;
pub mod remembered;
pub mod run;
#[allow(dead_code, reason = "these loaders need no machines and no sockets")]
#[path = "../shared/scheduler.rs"]
pub mod scheduler;
pub mod server;
pub mod session;
#[path = "../shared/source.rs"]
pub mod source;
pub mod target;
pub mod writer;

use std::panic::resume_unwind;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sawmill_loader::Mode;
use sawmill_profile::turns;
use sawmill_source::{Error, Result};

use connection::Fate;
use coverage::Coverage;
use draw::Draw;
use fault::{Fault, Step};
use mistake::Mistake;
use process::Process;
use scheduler::Scheduler;
use server::{Change, STAGING, Server, TABLE};
use source::FileState;

/// The simulation's name on the command line.
pub const PROTOCOL: &str = "postgres";
/// Seeds that the tests run.
pub const SEEDS: u64 = 5_000;

/// The setting of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    pub mode: ModeNumber,
    pub files: u64,
    pub degree: usize,
    pub unit_rows: u64,
    /// Units of a transaction.
    pub grouped: usize,
    pub verify: bool,
    /// Rows of the table before.
    pub before: u64,
    pub synchronous: bool,
    /// The parts of the load; 0 if it is loaded as a whole.
    pub parts: u32,
}

/// A mode, in an order.
pub type ModeNumber = u8;

pub const MODES: [Mode; 4] = [Mode::Create, Mode::Append, Mode::Replace, Mode::Truncate];

impl Setting {
    pub fn in_words(&self) -> String {
        format!("{:?} {self:?}", self.mode())
    }

    pub fn mode(&self) -> Mode {
        MODES[usize::from(self.mode) % MODES.len()]
    }
}

pub struct World {
    pub scheduler: Arc<Scheduler>,
    pub setting: Setting,
    pub mistake: Option<Mistake>,
    state: Mutex<State>,
}

pub struct State {
    pub server: Server,
    pub files: Vec<FileState>,
    pub draw: Draw,
    pub coverage: Coverage,
    /// Who did what, and when; `None` if it is not recorded.
    pub history: Option<Vec<String>>,
}

impl World {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A loader starts; these loaders need no machines.
    pub fn starts(&self, _: &Process) {}

    pub fn ended(&self, _: &Process) {}

    /// Records what happened.
    pub fn tell(&self, state: &mut State, what: impl FnOnce() -> String) {
        if let Some(history) = &mut state.history {
            let time = self.scheduler.elapsed().as_secs_f64();
            history.push(format!("{time:>12.6} {:<11} {}", self.scheduler.thread(), what()));
        }
    }

    /// A step of a loader: other threads may run first, and something may happen.
    pub fn step(&self, process: &Process, step: Step) -> Result<Fate> {
        turns::step();
        if process.is_dead.load(SeqCst) {
            return Err(Error::cancelled());
        }
        let number = process.steps.fetch_add(1, SeqCst);
        let mut faults = process.due(number, step);
        if process.rate > 0 {
            let mut state = self.state();
            if state.draw.below(1_000) < process.rate {
                faults.push(state.draw.of(&[Fault::CutBefore, Fault::CutAfter, Fault::Late, Fault::RunsOn]));
                faults.retain(|fault| fault.happens_at(step));
            }
        }
        self.tell(&mut self.state(), || {
            let happens = if faults.is_empty() { String::new() } else { format!("  <== {faults:?}") };
            format!("loader {} {number:>3} {step:?}{happens}", process.number)
        });
        let mut fate = Fate::Answered;
        for fault in faults {
            if fault.is_of_table() && !self.has_table() {
                continue;
            }
            self.state().coverage.count(fault, step);
            match fault {
                Fault::CutBefore => fate = Fate::LostBefore,
                Fault::CutAfter => fate = Fate::LostAfter,
                Fault::RunsOn => fate = Fate::RunsOn,
                Fault::Late => {
                    let seconds = self.state().draw.of(&[1, 10, 400]);
                    turns::sleep(Duration::from_secs(seconds));
                }
                Fault::ClockJumps => {
                    let seconds = self.state().draw.of(&[1, 60, 3_600]);
                    self.scheduler.advance(Duration::from_secs(seconds));
                }
                Fault::Killed => {
                    process.is_dead.store(true, SeqCst);
                    process.cancel.store(true, SeqCst);
                    let fates: &[Fate] = match step.commits() {
                        true => &[Fate::LostBefore, Fate::LostAfter, Fate::RunsOn],
                        false => &[Fate::LostBefore, Fate::LostAfter],
                    };
                    fate = self.state().draw.of(fates);
                }
                Fault::Cancelled => process.cancel.store(true, SeqCst),
                Fault::Panics => resume_unwind(Box::new("a panic of the simulation".to_owned())),
                Fault::Twice => {}
                fault => self.happens_outside(fault),
            }
        }
        Ok(fate)
    }

    /// Whether there is a table that another client can change.
    fn has_table(&self) -> bool {
        let data = &self.state().server.data;
        [STAGING, TABLE].iter().any(|name| data.table(name).is_some())
    }

    /// Something that happens to the server, the table or a file.
    fn happens_outside(&self, fault: Fault) {
        let now = self.scheduler.elapsed();
        let mut state = self.state();
        let State { server, files, draw, .. } = &mut *state;
        let chosen = draw.below(files.len() as u64) as usize;
        match fault {
            Fault::Crash | Fault::CrashLosing => {
                server.run_until(now);
                server.crash(fault == Fault::CrashLosing);
                let millis = draw.of(&[0, 200, 3_000, 40_000]);
                server.refuses_until = now + Duration::from_millis(millis);
            }
            Fault::Refuses => {
                let millis = draw.of(&[200, 3_000, 40_000]);
                server.refuses_until = now + Duration::from_millis(millis);
            }
            Fault::DiskFull => server.without_room = draw.between(1, 3),
            fault if fault.is_of_source() => files[chosen].suffers(fault),
            fault => self.happens_to_table(fault, server, draw),
        }
    }

    /// Another client changes the table that is written, or the one that is seen.
    fn happens_to_table(&self, fault: Fault, server: &mut Server, draw: &mut Draw) {
        let names = if draw.one_in(4) { [TABLE, STAGING] } else { [STAGING, TABLE] };
        let written = names.iter().find_map(|name| server.data.table(name));
        let Some((oid, name)) = written.map(|(oid, table)| (oid, table.name.clone())) else { return };
        let is_seen = name == TABLE;
        server.audit.is_tampered |= is_seen && fault != Fault::Alters;
        match fault {
            Fault::Drops => server.change_at_once(Change::DropTable(oid)),
            Fault::Renames => {
                server.change_at_once(Change::Rename(oid, "elsewhere"));
                // Another table under its name.
                if draw.one_in(2) {
                    let oid = server.new_oid();
                    let name = if is_seen { TABLE } else { STAGING };
                    server.change_at_once(Change::CreateTable(oid, name, vec![u64::MAX]));
                }
            }
            Fault::Alters => {
                if let Some(table) = server.data.tables.get_mut(&oid) {
                    table.columns += 1;
                }
            }
            _ => {
                if let Some(table) = server.data.tables.get_mut(&oid) {
                    let rows = table.rows.len() as u64;
                    if rows > 0 {
                        table.rows.swap_remove(draw.below(rows) as usize);
                        server.audit.is_tampered = true;
                    }
                }
            }
        }
    }
}
