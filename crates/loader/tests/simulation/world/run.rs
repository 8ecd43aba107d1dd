//! One run: loaders with faults, then the same command without, and what must be true after each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
use super::server::{Change, STAGING, Server, TABLE};
use super::source::{FileState, named};
use super::target::SimulatedTarget;
use super::writer::sum_of;
use super::{MODES, Setting, State, World};

/// Runs the simulation that this seed determines.
pub fn run(seed: u64, mistake: Option<Mistake>, trace: bool) -> Outcome {
    let mut draw = Draw::new(seed);
    let setting = Setting { parts: drawn_parts(seed), ..drawn_setting(&mut draw) };
    let steps = steps_of(setting);
    new_run(seed, setting, draw, mistake, trace).play(steps).0
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
        parts: 0,
    }
}

/// Another stream of numbers than the rest of the setting.
const PARTS: u64 = 0x7061_727e;

/// The parts of a load by parts; the seeds of `failed.rs` draw none.
fn drawn_parts(seed: u64) -> u32 {
    Draw::new(seed ^ PARTS).of(&[0, 0, 0, 2, 3])
}

/// The steps of a loader in this setting to which nothing happens.
fn steps_of(setting: Setting) -> u64 {
    static KNOWN: Mutex<BTreeMap<Setting, u64>> = Mutex::new(BTreeMap::new());
    if let Some(steps) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&setting) {
        return *steps;
    }
    let steps = new_run(0, setting, Draw::new(0), None, false).play(0).1;
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(setting, steps);
    steps
}

pub fn new_run(seed: u64, setting: Setting, mut draw: Draw, mistake: Option<Mistake>, trace: bool) -> Run {
    let mode = setting.mode();
    let before = match mode {
        Mode::Create => None,
        Mode::Replace if setting.before == 0 => None,
        _ => Some((0..setting.before).map(|row| 0xff << 32 | row).collect()),
    };
    let files = FileState::drawn(setting.files, &mut draw);
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
    Run { world: Arc::new(world), draw, files, needs_user: false }
}

impl Run {
    /// How many commands with faults there are; none without steps to spread these over.
    pub fn drawn_commands(&mut self, steps: u64) -> u64 {
        if steps == 0 { 0 } else { self.draw.of(&[1, 1, 1, 2, 2, 3]) }
    }

    pub fn drawn_faults(&mut self, steps: u64) -> Vec<(u64, Fault)> {
        let number = self.draw.of(&[0, 1, 1, 1, 2, 2, 3]);
        drawn_faults(&mut self.draw, number, steps + 1)
    }

    /// The audit needs to know of no fault before it happens.
    pub fn expect_faults(&self) {}

    /// The parts of the load; 0 if it is loaded as a whole.
    pub fn parts(&self) -> u32 {
        self.world.setting.parts
    }

    /// This target waits for no server.
    pub fn draw_patience(&mut self, _: &mut LoadOptions) {}

    pub fn target(&self, process: &Arc<Process>) -> Result<SimulatedTarget> {
        Ok(SimulatedTarget { process: Arc::clone(process), mode: self.world.setting.mode() })
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

    /// Runs the command while nothing else happens, and compares its report with its effects.
    pub fn load_alone(&self, process: &Arc<Process>, share: Share) -> Result<LoadReport> {
        let before = self.world.state().server.data.clone();
        let ended = self.load(process, LoadOptions { share, ..self.options() });
        let mut state = self.world.state();
        let Server { data, audit, .. } = &mut state.server;
        let written = data.table(STAGING).or(data.table(TABLE));
        if let (Ok(report), Some((oid, _))) = (&ended, written) {
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

    /// Checks a loader's report at its end.
    pub fn look_at_report(&self, process: &Process, report: &LoadReport) {
        let mut state = self.world.state();
        let State { server, .. } = &mut *state;
        let Server { data, audit, .. } = server;
        if let Some(part) = &report.part {
            if part.rows_recorded < report.rows_loaded {
                audit.violated(format!(
                    "a part loaded {} rows, {} on record",
                    report.rows_loaded, part.rows_recorded
                ));
            }
            return;
        }
        audit.compare(data, "after exit 0");
        let opened = audit.opened.get(process.number).cloned().unwrap_or_default();
        let rows: Vec<u64> = opened.iter().flat_map(FileState::rows).collect();
        audit.names_all(&opened, report.rows);
        if report.content != sum_of(&rows) {
            audit.violated("exit 0 names other contents".to_owned());
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
        self.restore_files(&mut state);
    }

    /// Forgets the loads and starts from the beginning, as a user does after an error that names another client or
    /// file.
    pub fn clean_up(&self) {
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
    pub fn look_at_the_end(&self) {
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
