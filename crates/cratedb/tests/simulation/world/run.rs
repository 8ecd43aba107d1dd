//! One run: loaders with faults, then the same command without, and what must be true after each.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use sawmill_cratedb::CrateDb;
use sawmill_cratedb_standin::Engine;
use sawmill_loader::{LoadOptions, LoadReport, LoadState, Mode, Share};
use sawmill_source::Result;

use super::audit::Audit;
use super::coverage::Coverage;
use super::draw::Draw;
use super::fault::Fault;
use super::loads::Run;
use super::mistake::Mistake;
use super::outcome::{Outcome, drawn_faults};
use super::process::Process;
use super::scheduler::Scheduler;
use super::server::{GATHERING, SCHEMA, Server, TABLE};
use super::setting::{Repeated, Setting};
use super::source::FileState;
use super::{State, World};

/// Runs the simulation that this seed determines.
pub fn run(seed: u64, mistake: Option<Mistake>, trace: bool) -> Outcome {
    let mut draw = Draw::new(seed);
    let mut setting = Setting::drawn(&mut draw);
    if let Some(mistake) = mistake {
        mistake.fit(&mut setting);
    }
    let run = new_run(seed, setting, draw, mistake, trace);
    let world = Arc::clone(&run.world);
    let (outcome, _) = run.play(0);
    world.end();
    outcome
}

fn new_run(seed: u64, setting: Setting, mut draw: Draw, mistake: Option<Mistake>, trace: bool) -> Run {
    let before = setting.table_before().map(|_| (0..setting.before).map(|row| 0xff << 32 | row));
    let mut before: Option<Vec<u64>> = before.map(Iterator::collect);
    let files = FileState::drawn(setting.files, &mut draw);
    if let Some(before) = before.as_mut().filter(|_| setting.has_rows_of_files(seed)) {
        before.extend(files[0].rows().into_iter().step_by(2));
    }
    let audit = Audit::new(setting.mode, setting.repeated == Repeated::OwnKey, before);
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
    let run = Run {
        world: World::new(Arc::new(Scheduler::new(seed)), setting, mistake, state),
        draw,
        files,
        needs_user: false,
    };
    run.make_table_before();
    run
}

impl Run {
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

    pub fn drawn_commands(&mut self, _: u64) -> u64 {
        self.draw.of(&[0, 1, 1, 1, 2, 2, 3])
    }

    pub fn drawn_faults(&mut self, _: u64) -> Vec<(u64, Fault)> {
        let steps = self.draw.of(&[20, 60, 60, 120]);
        let number = self.draw.of(&[0, 1, 1, 1, 2, 2, 3]);
        let faults = drawn_faults(&mut self.draw, number, steps);
        // A crash takes rows that only tags tell from those of other runs: the user forgets the load.
        let Setting { asynchronous, repeated, .. } = self.world.setting;
        let takes_rows = asynchronous && repeated != Repeated::Tags;
        self.needs_user |= takes_rows && faults.iter().any(|(_, fault)| *fault == Fault::Crash);
        faults
    }

    /// An append leaves the rows of a file that has changed.
    pub fn expect_faults(&self) {
        self.world.state().server.audit.may_have_more |= self.needs_user;
    }

    /// A load into CrateDB cannot be divided.
    pub fn parts(&self) -> u32 {
        0
    }

    pub fn draw_patience(&mut self, options: &mut LoadOptions) {
        options.patience = Duration::from_secs(self.draw.of(&[0, 5, 60, 300]));
    }

    pub fn target(&self, _: &Process) -> Result<CrateDb> {
        self.world.setting.target()
    }

    pub fn options(&self) -> LoadOptions {
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

    /// Runs the command while nothing else happens, and compares its report with its effects.
    pub fn load_alone(&self, process: &Arc<Process>, share: Share) -> Result<LoadReport> {
        let (recorded, there_before) = {
            let server = &self.world.state().server;
            (recorded_rows(&server.engine), server.audit.rows_of_files_before())
        };
        let ended = self.load(process, LoadOptions { share, ..self.options() });
        if let Ok(report) = &ended {
            let least = match report.state {
                LoadState::Complete => 0,
                LoadState::Resumed => report.rows.saturating_sub(recorded + there_before),
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

    /// Checks a loader's report at its end.
    pub fn look_at_report(&self, process: &Process, report: &LoadReport) {
        if process.is_dead.load(SeqCst) {
            return;
        }
        let mut state = self.world.state();
        let Server { engine, audit, .. } = &mut state.server;
        let opened = audit.opened.get(process.number).cloned().unwrap_or_default();
        if audit.mode == Mode::Append {
            audit.completes(process.number);
        }
        audit.compare(engine, "after exit 0");
        audit.names_all(&opened, report.rows);
        audit.claims(engine, report.rows_loaded);
    }

    /// Stops all faults, restores changed files, and lets time pass.
    pub fn quiet(&mut self) {
        // A job that runs for longer than a load's patience makes the load fail.
        let left = self.time_left().saturating_sub(Duration::from_secs(60));
        self.world.scheduler.advance(left.max(Duration::from_secs(self.draw.of(&[0, 120]))));
        let mut state = self.world.state();
        self.world.tell(&mut state, || "all is quiet, and the files are restored".to_owned());
        let now = self.world.catch_up(&mut state);
        state.server.is_well(now);
        self.restore_files(&mut state);
    }

    /// Forgets the loads and starts from the beginning, as a user does after an error that names another client or
    /// file.
    pub fn clean_up(&self) {
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
        server.audit.claimed = 0;
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
    pub fn look_at_the_end(&self) {
        self.world.scheduler.advance(self.time_left());
        let mut state = self.world.state();
        self.world.catch_up(&mut state);
        let Server { engine, audit, .. } = &mut state.server;
        audit.compare(engine, "when all requests have ended");
        // A request that ends after its load leaves a lease, a state or an empty table, until the command runs once more.
        if !self.needs_user && !is_tidy(engine) {
            drop(state);
            if let Err(error) = self.load_alone(&self.faultless(), Share::Whole) {
                self.violated(format!("the same command fails after late requests: {error}"));
            }
            state = self.world.state();
        }
        let Server { engine, audit, .. } = &mut state.server;
        if !self.needs_user {
            if let Some(left) = left_table(engine) {
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

/// The table that gathers, or the sealed one.
fn left_table(engine: &Engine) -> Option<String> {
    let left = GATHERING.map(|name| format!("{SCHEMA}.{name}"));
    engine.table_names().into_iter().find(|name| left.contains(name))
}

/// Whether no lease and no other table is left, and the load is complete.
fn is_tidy(engine: &Engine) -> bool {
    let leases = engine.values("sawmill", "leases", "name").unwrap_or_default();
    leases.is_empty()
        && left_table(engine).is_none()
        && engine.values("sawmill", "loads", "state").unwrap_or_default() == ["\"complete\""]
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
