//! One run: loaders with faults, then the same command without, and what must be true after each.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use sawmill_cratedb_standin::Engine;
use sawmill_loader::{LoadOptions, LoadReport, LoadState, Mode, load};
use sawmill_profile::{Profile, caught, joined, scope, spawn_scoped, turns};
use sawmill_source::{Control, Error, Result};

use super::audit::Audit;
use super::coverage::Coverage;
use super::draw::Draw;
use super::fault::{Fault, Step};
use super::mistake::Mistake;
use super::process::Process;
use super::scheduler::Scheduler;
use super::server::{GATHERING, SCHEMA, Server, TABLE};
use super::setting::Setting;
use super::source::{FileState, SimulatedSource};
use super::{State, World};

/// The result of a run.
pub struct Outcome {
    pub violation: Option<String>,
    pub coverage: Coverage,
    pub history: Vec<String>,
    pub turns: u64,
}

/// Runs the simulation that this seed determines.
pub fn run(seed: u64, mistake: Option<Mistake>, trace: bool) -> Outcome {
    let mut draw = Draw::new(seed);
    let mut setting = Setting::drawn(&mut draw);
    if let Some(mistake) = mistake {
        mistake.fit(&mut setting);
    }
    Run::new(seed, setting, draw, mistake, trace).play()
}

struct Run {
    world: Arc<World>,
    draw: Draw,
    /// The files as they were first.
    files: Vec<FileState>,
    /// An event may make a command fail until its user has done something.
    needs_user: bool,
}

impl Run {
    fn new(seed: u64, setting: Setting, mut draw: Draw, mistake: Option<Mistake>, trace: bool) -> Self {
        let before =
            setting.table_before().map(|_| (0..setting.before).map(|row| 0xff << 32 | row).collect());
        let file = |number| FileState {
            number,
            content: 0,
            footer: 0,
            stamp: 0,
            groups: (0..draw.of(&[1, 1, 2])).map(|_| draw.between(1, 4)).collect(),
            is_there: true,
        };
        let files: Vec<FileState> = (0..setting.files).map(file).collect();
        let audit = Audit::new(setting.mode, before);
        let server = Server::new(audit, mistake);
        if setting.keeps_shards_open {
            server.engine.keep_shards_open();
        }
        if setting.kills_nothing {
            server.engine.end_no_jobs();
        }
        let state = State {
            server,
            files: files.clone(),
            draw: Draw::new(draw.next()),
            coverage: Coverage::default(),
            history: trace.then(Vec::new),
        };
        let run = Self {
            world: World::new(Arc::new(Scheduler::new(seed)), setting, mistake, state),
            draw,
            files,
            needs_user: false,
        };
        run.make_table_before();
        run
    }

    /// Makes the table that the first load finds.
    fn make_table_before(&self) {
        let Some(create) = self.world.setting.table_before() else { return };
        let state = self.world.state();
        let engine = &state.server.engine;
        engine.execute(&create);
        let has_place = create.contains("place");
        for row in state.server.audit.before.iter().flatten() {
            let (columns, values) = match has_place {
                true => ("\"place\", \"value\"", format!("'before-{row}', {row}")),
                false => ("\"value\"", row.to_string()),
            };
            engine.execute(&format!("INSERT INTO \"doc\".\"rows\" ({columns}) VALUES ({values})"));
        }
        engine.execute("REFRESH TABLE \"doc\".\"rows\"");
    }

    fn play(mut self) -> Outcome {
        let world = Arc::clone(&self.world);
        let scheduler = Arc::clone(&world.scheduler);
        let tell = |what: String| world.tell(&mut world.state(), || what);
        tell(format!("{:?}", self.world.setting));
        tell(format!("files {:?}", self.files.iter().map(|file| &file.groups).collect::<Vec<_>>()));
        turns::simulated(scheduler, || {
            let played = caught::<_, Error>("main", || {
                self.commands();
                Ok(())
            });
            if let Err(error) = played {
                self.violated(format!("the simulation failed: {error}"));
            }
        });
        world.end();
        let mut state = world.state();
        let violation = world.scheduler.failure().or(state.server.audit.violation.take());
        Outcome {
            violation,
            coverage: state.coverage.clone(),
            history: state.history.take().unwrap_or_default(),
            turns: world.scheduler.turns(),
        }
    }

    fn violated(&self, what: String) {
        self.world.state().server.audit.violated(what);
    }

    fn is_over(&self) -> bool {
        self.world.state().server.audit.violation.is_some() || self.world.scheduler.failure().is_some()
    }

    /// Commands with faults, and the one without.
    fn commands(&mut self) {
        for _ in 0..self.draw.of(&[0, 1, 1, 1, 2, 2, 3]) {
            let faults = self.drawn_faults();
            self.command(faults);
            if self.is_over() {
                return;
            }
        }
        self.quiet();
        let mut ended = self.load_alone();
        if ended.is_err() && self.needs_user && !self.is_over() {
            self.clean_up();
            ended = self.load_alone();
        }
        if let Err(error) = ended {
            self.violated(format!("the same command without faults fails: {error}"));
        }
        if !self.is_over() && self.draw.one_in(4) {
            match self.load_alone() {
                Ok(report) if report.state == LoadState::Complete && report.rows_loaded == 0 => {}
                Ok(report) => self.violated(format!("a complete load is loaded again: {report:?}")),
                Err(error) if self.world.state().server.audit.is_tampered => drop(error),
                Err(error) => self.violated(format!("a complete load fails: {error}")),
            }
        }
        if !self.is_over() {
            self.look_at_the_end();
        }
    }

    fn drawn_faults(&mut self) -> Vec<(u64, Fault)> {
        let steps = self.draw.of(&[20, 60, 60, 120]);
        let number = self.draw.of(&[0, 1, 1, 1, 2, 2, 3]);
        let mut faults: Vec<(u64, Fault)> =
            (0..number).map(|_| (self.draw.below(steps), self.draw.of(&Fault::ALL))).collect();
        faults.sort_unstable_by_key(|(at, _)| *at);
        self.needs_user |= faults.iter().any(|(_, fault)| fault.is_of_source() || fault.is_of_table());
        self.world.state().server.audit.may_have_more |= self.needs_user;
        faults
    }

    fn options(&self) -> LoadOptions {
        let Setting { degree, unit_rows, verify, .. } = self.world.setting;
        // Files are rewritten in this world; what then refuses an append is tested with a server.
        LoadOptions {
            append_changed: true,
            degree,
            unit_rows,
            verify,
            batch_rows: 2,
            ..LoadOptions::default()
        }
    }

    /// The command, perhaps with other options than the last one, perhaps twice at once.
    fn command(&mut self, mut faults: Vec<(u64, Fault)>) {
        let mut options = self.options();
        if self.draw.one_in(4) {
            options.unit_rows = self.draw.between(1, 3);
            options.degree = self.draw.between(1, 2) as usize;
        }
        options.retries = self.draw.of(&[0, 1, 3, 8]);
        options.patience = Duration::from_secs(self.draw.of(&[0, 5, 60, 300]));
        let rate = self.draw.of(&[0, 0, 0, 0, 20, 100]);
        let twice = faults.extract_if(.., |(_, fault)| *fault == Fault::Twice).count() > 0;
        let process = Process::new(&self.world, faults, rate);
        if !twice {
            let _ = self.load(&process, options);
            return;
        }
        self.world.state().coverage.count(Fault::Twice, Step::OpenSource);
        let second = Process::new(&self.world, Vec::new(), rate);
        let this = &*self;
        scope(|scope| {
            let other = options.clone();
            let started = spawn_scoped(scope, "second", || this.load(&second, other));
            let _ = this.load(&process, options);
            let _ = started.map_err(Error::from).and_then(joined);
        });
    }

    /// Runs the command while nothing else happens, and compares its report with its effects.
    fn load_alone(&self) -> Result<LoadReport> {
        let process = Process::new(&self.world, Vec::new(), 0);
        let recorded = recorded_rows(&self.world.state().server.engine);
        let ended = self.load(&process, self.options());
        if let Ok(report) = &ended {
            let least = match report.state {
                LoadState::Complete => 0,
                LoadState::Resumed => report.rows.saturating_sub(recorded),
                LoadState::New if self.world.setting.mode == Mode::Append => 0,
                LoadState::New => report.rows,
            };
            let most = if report.state == LoadState::Complete { 0 } else { report.rows };
            if !(least..=most).contains(&report.rows_loaded) {
                let said = report.rows_loaded;
                self.violated(format!("exit 0 says {said} rows loaded, which are {least} to {most}"));
            }
        }
        ended
    }

    /// Runs the command, and checks its report.
    fn load(&self, process: &Arc<Process>, options: LoadOptions) -> Result<LoadReport> {
        self.world.starts(process);
        let ended = caught("loader", || {
            let source = SimulatedSource::open(process)?;
            let target = self.world.setting.target()?;
            let profile = Profile::new();
            let phase = profile.phase("load");
            load(&source, &target, &options, &Control::new(&process.cancel, &phase))
        });
        self.world.ended(process);
        let said = match &ended {
            Ok(report) => {
                format!("exit 0, {:?}, {} rows, {} loaded", report.state, report.rows, report.rows_loaded)
            }
            Err(error) => format!("exit 1: {error}"),
        };
        self.world.tell(&mut self.world.state(), || format!("loader {} {said}", process.number));
        if let Ok(report) = &ended
            && !process.is_dead.load(SeqCst)
        {
            self.look_at_report(process, report);
        }
        ended
    }

    /// Checks a loader's report at its end.
    fn look_at_report(&self, process: &Process, report: &LoadReport) {
        let mut state = self.world.state();
        let Server { engine, audit, .. } = &mut state.server;
        let opened = audit.opened.get(process.number).cloned().unwrap_or_default();
        if audit.mode == Mode::Append {
            audit.completes(process.number);
        }
        audit.compare(engine, "after exit 0");
        let rows: u64 = opened.iter().flat_map(|file| &file.groups).sum();
        if report.rows != rows {
            audit.violated(format!("exit 0 says {} rows of {rows}", report.rows));
        }
        let is_brought = |file: &&FileState| audit.completed.iter().any(|done| done.has_rows_of(file));
        if let Some(lacking) = opened.iter().find(|file| !is_brought(file)) {
            audit.violated(format!("exit 0 without {}", lacking.name()));
        }
    }

    /// Stops all faults, restores changed files, and lets time pass.
    fn quiet(&mut self) {
        // A job that runs for longer than a load's patience makes the load fail.
        let left = self.time_left().saturating_sub(Duration::from_secs(60));
        self.world.scheduler.advance(left.max(Duration::from_secs(self.draw.of(&[0, 120]))));
        let mut state = self.world.state();
        self.world.tell(&mut state, || "all is quiet, and the files are restored".to_owned());
        let now = self.world.catch_up(&mut state);
        state.server.is_well(now);
        for (file, first) in state.files.iter_mut().zip(&self.files) {
            if file != first {
                *file = FileState { stamp: file.stamp + 1, ..first.clone() };
            }
        }
    }

    /// Forgets the loads and starts from the beginning, as a user does after an error that names another client or
    /// file.
    fn clean_up(&self) {
        self.world.scheduler.advance(self.time_left());
        let mut state = self.world.state();
        self.world.tell(&mut state, || "the user drops the tables and forgets the loads".to_owned());
        self.world.catch_up(&mut state);
        let server = &mut state.server;
        for table in server.engine.table_names() {
            server.engine.execute(&format!("DROP TABLE {}", quoted(&table)));
        }
        let keeps = server.audit.mode == Mode::Append;
        server.audit.before = keeps.then(Vec::new);
        server.audit.completed.clear();
        server.audit.is_tampered = false;
        server.audit.may_have_more = false;
        drop(state);
        if keeps {
            self.make_table_before();
        }
    }

    /// The time until all requests have ended that are under way.
    fn time_left(&self) -> Duration {
        let last = self.world.state().server.last_end();
        last.map_or(Duration::ZERO, |at| at.saturating_sub(self.world.scheduler.elapsed()))
    }

    /// After the last success nothing is left behind, no request comes late, and a crash takes nothing away.
    fn look_at_the_end(&self) {
        self.world.scheduler.advance(self.time_left());
        let mut state = self.world.state();
        self.world.catch_up(&mut state);
        let Server { engine, audit, .. } = &mut state.server;
        audit.compare(engine, "when all requests have ended");
        // A request that ends after its load leaves a lease or a state, until the command runs once more.
        if !self.needs_user && !is_tidy(engine) {
            drop(state);
            if let Err(error) = self.load_alone() {
                self.violated(format!("the same command fails after late requests: {error}"));
            }
            state = self.world.state();
        }
        let Server { engine, audit, .. } = &mut state.server;
        if !self.needs_user {
            let tables = engine.table_names();
            let left = GATHERING.map(|name| format!("{SCHEMA}.{name}"));
            if let Some(left) = tables.iter().find(|name| left.contains(name)) {
                audit.violated(format!("the table {left} is left"));
            }
            let states = engine.values("sawmill", "loads", "state").unwrap_or_default();
            if states != ["\"complete\""] {
                audit.violated(format!("the loads are left {states:?}"));
            }
            let leases = engine.values("sawmill", "leases", "name").unwrap_or_default();
            if !leases.is_empty() {
                audit.violated(format!("leases are left: {leases:?}"));
            }
        }
        if engine.values(SCHEMA, TABLE, "sawmill_batch").is_some() {
            audit.violated("the column of the tags is left".to_owned());
        }
        engine.crash();
        audit.compare(engine, "after a crash at the end");
    }
}

/// Whether no lease is left, and the load is complete.
fn is_tidy(engine: &Engine) -> bool {
    let leases = engine.values("sawmill", "leases", "name").unwrap_or_default();
    leases.is_empty() && engine.values("sawmill", "loads", "state").unwrap_or_default() == ["\"complete\""]
}

/// Rows of all units on record.
fn recorded_rows(engine: &Engine) -> u64 {
    let rows = engine.values("sawmill", "units", "rows").unwrap_or_default();
    rows.iter().filter_map(|rows| rows.parse::<u64>().ok()).sum()
}

fn quoted(table: &str) -> String {
    let (schema, name) = table.split_once('.').unwrap_or(("doc", table));
    format!("\"{schema}\".\"{name}\"")
}
