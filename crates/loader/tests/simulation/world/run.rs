//! One run: loaders with faults, then the same command without, and what must be true after each.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
use super::server::{Change, STAGING, Server, TABLE};
use super::source::{FileState, SimulatedSource, named};
use super::target::SimulatedTarget;
use super::writer::sum_of;
use super::{MODES, Setting, State, World};

/// The result of a run.
pub struct Outcome {
    pub violation: Option<String>,
    pub coverage: Coverage,
    pub history: Vec<String>,
    pub turns: u64,
    /// Steps of the first loader.
    pub steps: u64,
}

/// Runs the simulation that this seed determines.
pub fn run(seed: u64, mistake: Option<Mistake>, trace: bool) -> Outcome {
    let mut draw = Draw::new(seed);
    let setting = drawn_setting(&mut draw);
    let steps = steps_of(setting);
    Run::new(seed, setting, draw, mistake, trace).play(steps)
}

fn drawn_setting(draw: &mut Draw) -> Setting {
    let mode = draw.below(MODES.len() as u64) as u8;
    Setting {
        mode,
        files: draw.of(&[1, 1, 1, 2]),
        degree: draw.of(&[1, 1, 2, 2, 3]),
        unit_rows: draw.between(1, 3),
        grouped: draw.of(&[1, 1, 2]),
        verify: draw.one_in(3),
        before: draw.below(3),
        synchronous: draw.one_in(3),
    }
}

/// The steps of a loader in this setting to which nothing happens.
fn steps_of(setting: Setting) -> u64 {
    static KNOWN: Mutex<BTreeMap<Setting, u64>> = Mutex::new(BTreeMap::new());
    if let Some(steps) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&setting) {
        return *steps;
    }
    let steps = Run::new(0, setting, Draw::new(0), None, false).play(0).steps;
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(setting, steps);
    steps
}

/// The commands of one world.
pub struct Run {
    pub world: Arc<World>,
    draw: Draw,
    /// The files as they were first.
    pub files: Vec<FileState>,
    /// An event may make a command fail until its user has done something.
    needs_user: bool,
}

impl Run {
    pub fn new(seed: u64, setting: Setting, mut draw: Draw, mistake: Option<Mistake>, trace: bool) -> Self {
        let mode = setting.mode();
        let before = match mode {
            Mode::Create => None,
            Mode::Replace if setting.before == 0 => None,
            _ => Some((0..setting.before).map(|row| 0xff << 32 | row).collect()),
        };
        let file = |number| FileState {
            number,
            content: 0,
            footer: 0,
            stamp: 0,
            groups: (0..draw.of(&[1, 1, 2])).map(|_| draw.between(1, 4)).collect(),
            is_there: true,
        };
        let files: Vec<FileState> = (0..setting.files).map(file).collect();
        let audit = Audit::new(mode, before.clone());
        let mut server = Server::new(setting.synchronous, mistake, audit, Draw::new(draw.next()));
        if let Some(rows) = before {
            server.change_at_once(Change::CreateTable(1, TABLE, rows));
        }
        let state = State {
            server,
            files: files.clone(),
            draw: Draw::new(draw.next()),
            coverage: Coverage::default(),
            history: trace.then(Vec::new),
        };
        let world =
            World { scheduler: Arc::new(Scheduler::new(seed)), setting, mistake, state: Mutex::new(state) };
        Self { world: Arc::new(world), draw, files, needs_user: false }
    }

    /// The loaders' steps count up to `steps`, over which faults are spread; 0 for none.
    fn play(mut self, steps: u64) -> Outcome {
        let world = Arc::clone(&self.world);
        let scheduler = Arc::clone(&world.scheduler);
        let tell = |what: String| world.tell(&mut world.state(), || what);
        tell(format!("{:?} {:?}", self.world.setting.mode(), self.world.setting));
        tell(format!("files {:?}", self.files.iter().map(|file| &file.groups).collect::<Vec<_>>()));
        let first = turns::simulated(scheduler, || {
            let played = caught::<_, Error>("main", || Ok(self.commands(steps)));
            played.unwrap_or_else(|error| {
                self.violated(format!("the simulation failed: {error}"));
                0
            })
        });
        let mut state = world.state();
        let violation = world.scheduler.failure().or(state.server.audit.violation.take());
        Outcome {
            violation,
            coverage: state.coverage.clone(),
            history: state.history.take().unwrap_or_default(),
            turns: world.scheduler.turns(),
            steps: first,
        }
    }

    fn violated(&self, what: String) {
        self.world.state().server.audit.violated(what);
    }

    fn is_over(&self) -> bool {
        self.world.state().server.audit.violation.is_some() || self.world.scheduler.failure().is_some()
    }

    /// Commands with faults, and the one without. Returns the steps of the first.
    fn commands(&mut self, steps: u64) -> u64 {
        let mut first = None;
        let commands = if steps == 0 { 0 } else { self.draw.of(&[1, 1, 1, 2, 2, 3]) };
        for _ in 0..commands {
            let faults = self.drawn_faults(steps);
            let process = self.command(faults);
            first.get_or_insert(process.steps.load(SeqCst));
            if self.is_over() {
                return first.unwrap_or(0);
            }
        }
        self.quiet();
        let last = Process::new(&self.world, Vec::new(), 0);
        let mut ended = self.load_alone(&last);
        if ended.is_err() && self.needs_user && !self.is_over() {
            self.clean_up();
            ended = self.load_alone(&Process::new(&self.world, Vec::new(), 0));
        }
        if let Err(error) = ended {
            self.violated(format!("the same command without faults fails: {error}"));
        }
        if !self.is_over() && self.draw.one_in(4) {
            let again = Process::new(&self.world, Vec::new(), 0);
            match self.load_alone(&again) {
                Ok(report) if report.state == LoadState::Complete && report.rows_loaded == 0 => {}
                Ok(report) => self.violated(format!("a complete load is loaded again: {report:?}")),
                Err(error) if self.world.state().server.audit.is_tampered => drop(error),
                Err(error) => self.violated(format!("a complete load fails: {error}")),
            }
        }
        if !self.is_over() {
            self.look_at_the_end();
        }
        first.unwrap_or(last.steps.load(SeqCst))
    }

    fn drawn_faults(&mut self, steps: u64) -> Vec<(u64, Fault)> {
        let number = self.draw.of(&[0, 1, 1, 1, 2, 2, 3]);
        let mut faults: Vec<(u64, Fault)> =
            (0..number).map(|_| (self.draw.below(steps + 1), self.draw.of(&Fault::ALL))).collect();
        faults.sort_unstable_by_key(|(at, _)| *at);
        self.needs_user |= faults.iter().any(|(_, fault)| fault.is_of_source() || fault.is_of_table());
        faults
    }

    pub fn options(&self) -> LoadOptions {
        let Setting { degree, unit_rows, verify, .. } = self.world.setting;
        // Files are rewritten in this world; what then refuses an append is tested with real databases.
        LoadOptions {
            append_changed: true,
            degree,
            unit_rows,
            verify,
            batch_rows: 2,
            batch_bytes: 16,
            retries: 5,
            ..LoadOptions::default()
        }
    }

    /// The command, perhaps with other options than the last one, perhaps twice at once.
    fn command(&mut self, mut faults: Vec<(u64, Fault)>) -> Arc<Process> {
        let mut options = self.options();
        if self.draw.one_in(4) {
            options.unit_rows = self.draw.between(1, 3);
            options.degree = self.draw.between(1, 2) as usize;
        }
        options.retries = self.draw.of(&[0, 1, 3, 8]);
        let rate = self.draw.of(&[0, 0, 0, 0, 20, 100]);
        let twice = faults.extract_if(.., |(_, fault)| *fault == Fault::Twice).count() > 0;
        let process = Process::new(&self.world, faults, rate);
        if !twice {
            let _ = self.load(&process, options);
            return process;
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
        process
    }

    /// Runs the command while nothing else happens, and compares its report with its effects.
    fn load_alone(&self, process: &Arc<Process>) -> Result<LoadReport> {
        let before = self.world.state().server.data.clone();
        let ended = self.load(process, self.options());
        let mut state = self.world.state();
        let Server { data, audit, .. } = &mut state.server;
        if let (Ok(report), Some((oid, _))) = (&ended, data.table(TABLE)) {
            let (rows, now) = (before.recorded_into(oid), data.recorded_into(oid));
            let other = report.rows_loaded != now - rows.min(now);
            let is_known = audit.mode != Mode::Truncate || report.state == LoadState::Resumed;
            if is_known && other && !audit.is_tampered {
                let said = report.rows_loaded;
                audit.violated(format!(
                    "exit 0 says {said} rows loaded, and {rows} recorded rows became {now}"
                ));
            }
        }
        ended
    }

    /// Runs the command, and checks its report.
    pub fn load(&self, process: &Arc<Process>, options: LoadOptions) -> Result<LoadReport> {
        let ended = caught("loader", || {
            let source = SimulatedSource::open(process)?;
            let target = SimulatedTarget { process: Arc::clone(process), mode: self.world.setting.mode() };
            let profile = Profile::new();
            let phase = profile.phase("load");
            load(&source, &target, &options, &Control::new(&process.cancel, &phase))
        });
        let said = match &ended {
            Ok(report) => {
                format!("exit 0, {:?}, {} rows, {} loaded", report.state, report.rows, report.rows_loaded)
            }
            Err(error) => format!("exit 1: {error}"),
        };
        self.world.tell(&mut self.world.state(), || format!("loader {} {said}", process.number));
        if let Ok(report) = &ended {
            self.look_at_report(process, report);
        }
        ended
    }

    /// Checks a loader's report at its end.
    fn look_at_report(&self, process: &Process, report: &LoadReport) {
        let mut state = self.world.state();
        let State { server, .. } = &mut *state;
        let Server { data, audit, .. } = server;
        audit.compare(data, "after exit 0");
        let opened = audit.opened.get(process.number).cloned().unwrap_or_default();
        let rows: Vec<u64> = opened.iter().flat_map(FileState::rows).collect();
        if report.rows != rows.len() as u64 || report.content != sum_of(&rows) {
            audit.violated(format!("exit 0 says {} rows of {}", report.rows, rows.len()));
        }
        let is_brought = |file: &&FileState| audit.completed.iter().any(|done| done.has_rows_of(file));
        if let Some(lacking) = opened.iter().find(|file| !is_brought(file)) {
            audit.violated(format!("exit 0 without {}", lacking.name()));
        }
        let loaded = match report.state {
            LoadState::Complete => 0,
            LoadState::New if audit.mode != Mode::Append => report.rows,
            _ => report.rows_loaded,
        };
        if report.rows_loaded != loaded {
            audit.violated(format!("exit 0 says {} rows loaded of {loaded}", report.rows_loaded));
        }
        if report.verified.is_none() {
            return;
        }
        let verified = audit.verified.get_mut(process.number).and_then(Option::take);
        let Some((oid, mut rows)) = verified else {
            return audit.violated("verified without a look at the table".to_owned());
        };
        rows.sort_unstable();
        let (rows, expected) = (Some(rows), audit.expected());
        let is_known = audit.mode.gathers() || !audit.is_tampered;
        if rows != expected && is_known {
            audit.violated(format!("verified {} instead of {}", named(&rows), named(&expected)));
        } else if !data.loads.values().any(|row| row.record.complete && row.record.table_oid == oid) {
            audit.violated(format!("verified table {oid}, which is another one"));
        }
    }

    /// Stops all faults, restores changed files, and lets time pass.
    pub fn quiet(&self) {
        self.world.scheduler.advance(Duration::from_secs(120));
        let now = self.world.scheduler.elapsed();
        let mut state = self.world.state();
        self.world.tell(&mut state, || "all is quiet, and the files are restored".to_owned());
        state.server.run_until(now);
        state.server.without_room = 0;
        state.server.refuses_until = now;
        for (file, first) in state.files.iter_mut().zip(&self.files) {
            if file != first {
                *file = FileState { stamp: file.stamp + 1, ..first.clone() };
            }
        }
    }

    /// Forgets the loads and starts from the beginning, as a user does after an error that names another client or
    /// file.
    fn clean_up(&self) {
        let mut state = self.world.state();
        self.world.tell(&mut state, || "the user drops the tables and forgets the loads".to_owned());
        let server = &mut state.server;
        server.data = Default::default();
        let keeps = matches!(server.audit.mode, Mode::Append | Mode::Truncate);
        server.audit.before = keeps.then(Vec::new);
        server.audit.completed.clear();
        server.audit.is_tampered = false;
        if keeps {
            let oid = server.new_oid();
            server.change_at_once(Change::CreateTable(oid, TABLE, Vec::new()));
        }
    }

    /// After the last success nothing is left behind, and a crash takes nothing away.
    fn look_at_the_end(&self) {
        let mut state = self.world.state();
        let server = &mut state.server;
        if let Some(left) = server.left_behind() {
            server.audit.violated(format!("left on the server: {left}"));
        }
        if server.data.table(STAGING).is_some() && !self.needs_user {
            server.audit.violated("the staging table is left".to_owned());
        }
        if let Some((id, _)) =
            server.data.loads.iter().find(|(_, row)| !row.record.complete && !self.needs_user)
        {
            let what = format!("load {id} is left unfinished");
            server.audit.violated(what);
        }
        server.crash(true);
        let Server { data, audit, .. } = server;
        audit.compare(data, "after a crash at the end");
    }
}
