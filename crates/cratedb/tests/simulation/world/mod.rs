//! A world of one seed: files, a cluster, loaders, and faults.

pub mod audit;
#[path = "../../../../loader/tests/simulation/shared/coverage.rs"]
pub mod coverage;
#[path = "../../../../loader/tests/simulation/shared/draw.rs"]
pub mod draw;
pub mod fault;
#[path = "../../../../loader/tests/simulation/shared/fibers.rs"]
pub mod fibers;
#[path = "../../../../loader/tests/simulation/shared/loads.rs"]
pub mod loads;
pub mod mistake;
#[path = "../../../../loader/tests/simulation/shared/outcome.rs"]
pub mod outcome;
#[path = "../../../../loader/tests/simulation/shared/process.rs"]
pub mod process;
pub mod run;
#[path = "../../../../loader/tests/simulation/shared/scheduler.rs"]
pub mod scheduler;
pub mod server;
pub mod setting;
pub mod socket;
#[path = "../../../../loader/tests/simulation/shared/source.rs"]
pub mod source;

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sawmill_profile::turns::{self, Socket};
use sawmill_source::{Error, Result};

use coverage::Coverage;
use draw::Draw;
use fault::{Fault, Step};
use mistake::Mistake;
use process::Process;
use scheduler::{Scheduler, Site};
use server::{GATHERING, Server, TABLE};
use setting::{Repeated, Setting};
use socket::Pipe;
use source::FileState;

/// The simulation's name on the command line.
pub const PROTOCOL: &str = "cratedb";
/// Seeds that the tests run.
pub const SEEDS: u64 = 150;

pub struct World {
    pub scheduler: Arc<Scheduler>,
    pub setting: Setting,
    pub mistake: Option<Mistake>,
    state: Mutex<State>,
    /// The loaders, by number; whether each runs, and on which machine.
    loaders: Mutex<Vec<Loader>>,
}

pub struct State {
    pub server: Server,
    pub files: Vec<FileState>,
    pub draw: Draw,
    pub coverage: Coverage,
    /// Who did what, and when; `None` if it is not recorded.
    pub history: Option<Vec<String>>,
}

struct Loader {
    process: Arc<Process>,
    machine: u64,
    has_ended: AtomicBool,
}

impl World {
    pub fn new(
        scheduler: Arc<Scheduler>,
        setting: Setting,
        mistake: Option<Mistake>,
        state: State,
    ) -> Arc<Self> {
        let world = Arc::new(Self {
            scheduler,
            setting,
            mistake,
            state: Mutex::new(state),
            loaders: Mutex::default(),
        });
        let site: Arc<dyn Site> = Arc::clone(&world) as Arc<dyn Site>;
        world.scheduler.settle(Arc::downgrade(&site));
        world
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loaders(&self) -> MutexGuard<'_, Vec<Loader>> {
        self.loaders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A loader starts on one of the machines.
    pub fn starts(&self, process: &Arc<Process>) {
        let machine = self.state().draw.below(2);
        let loader = Loader { process: Arc::clone(process), machine, has_ended: AtomicBool::new(false) };
        self.loaders().push(loader);
        self.scheduler.enter(process.number as u32);
    }

    pub fn ended(&self, process: &Process) {
        let loaders = self.loaders();
        let own = loaders.iter().filter(|loader| loader.process.number == process.number);
        own.for_each(|loader| loader.has_ended.store(true, SeqCst));
    }

    /// Forgets the loaders, which know their world.
    pub fn end(&self) {
        self.loaders().clear();
    }

    /// Records what happened.
    pub fn tell(&self, state: &mut State, what: impl FnOnce() -> String) {
        let told = std::mem::take(&mut state.server.told);
        if let Some(history) = &mut state.history {
            let time = self.scheduler.elapsed().as_secs_f64();
            history.extend(told.into_iter().map(|line| format!("{time:>12.6} {:<11} {line}", "server")));
            history.push(format!("{time:>12.6} {:<11} {}", self.scheduler.thread(), what()));
        }
    }

    /// Lets the server come as far as the time.
    pub fn catch_up(&self, state: &mut State) -> Duration {
        let now = self.scheduler.elapsed();
        state.server.run_until(now, self.scheduler.since_1970());
        now
    }

    /// A step of a loader in which it opens or reads a file.
    pub fn step(&self, process: &Process, step: Step) -> Result<()> {
        self.step_of(process, step, &String::new).map(drop)
    }

    /// A step of a loader: other threads may run first, and something may happen. Returns what becomes of the request.
    pub fn step_of(
        &self,
        process: &Process,
        step: Step,
        shown: &dyn Fn() -> String,
    ) -> Result<Option<Fault>> {
        turns::step();
        if process.is_dead.load(SeqCst) {
            return Err(Error::cancelled());
        }
        let number = process.steps.fetch_add(1, SeqCst);
        let mut faults = process.due(number, step);
        if process.rate > 0 {
            let mut state = self.state();
            if state.draw.below(1_000) < process.rate {
                faults.push(state.draw.of(&Fault::ALL[..Fault::LostShard as usize + 1]));
                faults.retain(|fault| fault.happens_at(step));
            }
        }
        self.tell(&mut self.state(), || {
            let happens = if faults.is_empty() { String::new() } else { format!("  <== {faults:?}") };
            format!("loader {} {number:>3} {step:?}{happens} {}", process.number, shown())
        });
        let mut fate = None;
        for fault in faults {
            if fault.is_of_table() && !self.has_table() {
                continue;
            }
            self.state().coverage.count(fault, step);
            match fault {
                fault if fault.is_of_request() => fate = Some(fault),
                Fault::ClockJumps => self.clocks_jump(),
                Fault::Killed => {
                    process.is_dead.store(true, SeqCst);
                    process.cancel.store(true, SeqCst);
                    let mut state = self.state();
                    let fates = [Fault::CutBefore, Fault::CutBetween, Fault::CutAfter, Fault::RunsOn];
                    fate = Some(state.draw.of(&fates)).filter(|fate| fate.happens_at(step));
                    if step == Step::Insert && state.draw.one_in(4) {
                        fate = Some(Fault::ArrivesLate);
                    }
                    fate = fate.or(Some(Fault::CutBefore));
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
        let engine = &self.state().server.engine;
        let mut names = GATHERING.into_iter().chain([TABLE]);
        names.any(|name| engine.values(server::SCHEMA, name, "value").is_some())
    }

    fn clocks_jump(&self) {
        let seconds: i64 = self.state().draw.of(&[1, 60, 3_600, -1, -3_600]);
        match u64::try_from(seconds) {
            Ok(ahead) if self.state().draw.one_in(2) => self.scheduler.advance(Duration::from_secs(ahead)),
            _ => self.scheduler.jump(seconds),
        }
    }

    /// Something that happens to the server, the table or a file.
    fn happens_outside(&self, fault: Fault) {
        let mut state = self.state();
        let now = self.catch_up(&mut state);
        let State { server, files, draw, .. } = &mut *state;
        let chosen = draw.below(files.len() as u64) as usize;
        match fault {
            Fault::Crash => {
                let away = Duration::from_millis(draw.of(&[0, 200, 3_000, 40_000]));
                let recovering = Duration::from_millis(draw.of(&[0, 300, 5_000]));
                server.crash(now, away, recovering);
            }
            Fault::Refuses => {
                server.refuses_until = now + Duration::from_millis(draw.of(&[200, 3_000, 40_000]));
            }
            fault if fault.is_of_source() => files[chosen].suffers(fault),
            fault => self.happens_to_table(fault, server, draw),
        }
    }

    /// Another client changes the table that is written, or the one that is seen.
    fn happens_to_table(&self, fault: Fault, server: &mut Server, draw: &mut Draw) {
        let mut names = [GATHERING[0], GATHERING[1], TABLE];
        if draw.one_in(4) {
            names.reverse();
        }
        let engine = &server.engine;
        let found = names.iter().find(|name| engine.values(server::SCHEMA, name, "value").is_some());
        let Some(name) = found.copied() else { return };
        // The audit of the tags finds rows that were lost while the table gathered; afterwards no fault may touch it.
        let is_audited = self.setting.repeated == Repeated::Tags && name == GATHERING[0];
        let is_found =
            fault == Fault::Alters || is_audited && (fault != Fault::Renames || self.setting.verify);
        server.audit.is_tampered |= !is_found;
        let table = format!("\"doc\".\"{name}\"");
        let run = |statement: String| drop(engine.execute(&statement));
        match fault {
            Fault::Drops => run(format!("DROP TABLE {table}")),
            Fault::Renames => {
                run(format!("ALTER TABLE {table} RENAME TO \"elsewhere\""));
                // Another table under its name.
                if draw.one_in(2) {
                    run(format!("CREATE TABLE {table} (\"value\" BIGINT)"));
                    run(format!("INSERT INTO {table} (\"value\") VALUES (7)"));
                }
            }
            Fault::Alters => run(format!("ALTER TABLE {table} ADD COLUMN \"more\" BIGINT")),
            _ => {
                run(format!("REFRESH TABLE {table}"));
                let rows = engine.values(server::SCHEMA, name, "value").unwrap_or_default();
                if !rows.is_empty() {
                    let row = &rows[draw.below(rows.len() as u64) as usize];
                    run(format!("DELETE FROM {table} WHERE \"value\" = {row}"));
                }
            }
        }
    }
}

impl Site for World {
    fn machine(&self, process: u32) -> String {
        let loaders = self.loaders();
        let own = loaders.iter().find(|loader| loader.process.number == process as usize);
        format!("machine-{}", own.map_or(0, |loader| loader.machine))
    }

    fn is_running(&self, machine: &str, process: u32) -> bool {
        let loaders = self.loaders();
        let own = loaders.iter().find(|loader| loader.process.number == process as usize);
        own.is_some_and(|loader| {
            let has_ended = loader.has_ended.load(SeqCst) || loader.process.is_dead.load(SeqCst);
            machine == format!("machine-{}", loader.machine) && !has_ended
        })
    }

    fn connect(&self, process: u32) -> io::Result<Box<dyn Socket>> {
        let own = self
            .loaders()
            .iter()
            .find(|loader| loader.process.number == process as usize)
            .map(|loader| Arc::clone(&loader.process));
        let Some(process) = own else { return Err(io::ErrorKind::AddrNotAvailable.into()) };
        Pipe::open(process).map(|pipe| Box::new(pipe) as Box<dyn Socket>)
    }
}
