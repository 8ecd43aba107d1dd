//! The loads of a run: commands with faults, then the same command without. Each target's `world/run.rs` says what to
//! check after each.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use sawmill_loader::{LoadOptions, LoadReport, LoadState, Mode, Part, Share, load};
use sawmill_profile::{Profile, caught, joined, scope, spawn_scoped, turns};
use sawmill_source::{Control, Error, Result};

use super::audit::Audit;
use super::draw::Draw;
use super::fault::{Fault, Step};
use super::outcome::{Outcome, starts_twice};
use super::process::Process;
use super::source::{FileState, SimulatedSource};
use super::{State, World};

pub struct Run {
    pub world: Arc<World>,
    pub draw: Draw,
    /// The files as they were at first.
    pub files: Vec<FileState>,
    /// An event may make a command fail until its user has done something.
    pub needs_user: bool,
}

impl Run {
    /// Plays the run, with faults spread over `steps`, the steps of a loader without faults. Also returns the steps of
    /// the first loader.
    pub fn play(mut self, steps: u64) -> (Outcome, u64) {
        let world = Arc::clone(&self.world);
        let scheduler = Arc::clone(&world.scheduler);
        let tell = |what: String| world.tell(&mut world.state(), || what);
        tell(world.setting.in_words());
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
        let outcome = Outcome {
            violation,
            coverage: state.coverage.clone(),
            history: state.history.take().unwrap_or_default(),
            turns: world.scheduler.turns(),
        };
        (outcome, first)
    }

    pub fn violated(&self, what: String) {
        self.world.state().server.audit.violated(what);
    }

    fn is_over(&self) -> bool {
        self.world.state().server.audit.violation.is_some() || self.world.scheduler.failure().is_some()
    }

    /// A loader without faults.
    pub fn faultless(&self) -> Arc<Process> {
        Process::new(&self.world, Vec::new(), 0)
    }

    /// Runs commands with faults, then the one without. Returns the steps of the first.
    fn commands(&mut self, steps: u64) -> u64 {
        let mut first = None;
        for _ in 0..self.drawn_commands(steps) {
            let faults = self.drawn_faults(steps);
            self.needs_user |= faults.iter().any(|(_, fault)| fault.is_of_source() || fault.is_of_table());
            self.expect_faults();
            let process = self.command(faults);
            first.get_or_insert(process.steps.load(SeqCst));
            if self.is_over() {
                return first.unwrap_or(0);
            }
        }
        self.quiet();
        let last = self.faultless();
        let mut ended = self.load_all(&last);
        if ended.is_err() && self.needs_user && !self.is_over() {
            self.clean_up();
            ended = self.load_all(&self.faultless());
        }
        if let Err(error) = ended {
            self.violated(format!("the same command without faults fails: {error}"));
        }
        if !self.is_over() && self.draw.one_in(4) {
            let share = self.drawn_share();
            match self.load_alone(&self.faultless(), share) {
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

    /// Runs the command without faults: the whole load, or all parts in any order, one of them twice, and the end.
    /// The first of its processes is given.
    fn load_all(&mut self, first: &Arc<Process>) -> Result<LoadReport> {
        let parts = self.parts();
        let mut shares: Vec<Share> = (1..=parts).filter_map(|number| part(number, parts)).collect();
        if let Some(again) = (parts > 0).then(|| self.drawn_share()).filter(|share| *share != Share::Finish) {
            shares.push(again);
        }
        let mut process = Arc::clone(first);
        while !shares.is_empty() {
            let next = self.draw.below(shares.len() as u64) as usize;
            self.load_alone(&process, shares.swap_remove(next))?;
            process = self.faultless();
        }
        self.load_alone(&process, if parts > 0 { Share::Finish } else { Share::Whole })
    }

    /// A part, the end of a load by parts, or the whole load.
    fn drawn_share(&mut self) -> Share {
        let parts = self.parts();
        if parts == 0 {
            return Share::Whole;
        }
        match self.draw.below(10) {
            0 => Share::Whole,
            1 | 2 => Share::Finish,
            _ => part(self.draw.between(1, u64::from(parts)) as u32, parts).unwrap_or_default(),
        }
    }

    /// The shares of the processes that start together: one, two, or as many as there are parts. One process in a while
    /// divides the load into another number of parts.
    fn drawn_shares(&mut self, twice: bool) -> Vec<Share> {
        let parts = self.parts();
        let number = match parts {
            0 => 1,
            _ => self.draw.between(1, u64::from(parts)) as usize,
        };
        let mut shares: Vec<Share> = (0..number + usize::from(twice)).map(|_| self.drawn_share()).collect();
        if parts > 0 && self.draw.one_in(8) {
            shares[0] = part(1, parts + 1).unwrap_or_default();
        }
        shares
    }

    /// Runs the command, perhaps with other options than the last one, perhaps several times at once.
    fn command(&mut self, mut faults: Vec<(u64, Fault)>) -> Arc<Process> {
        let mut options = self.options();
        if self.draw.one_in(4) {
            options.unit_rows = self.draw.between(1, 3);
            options.degree = self.draw.between(1, 2) as usize;
        }
        options.retries = self.draw.of(&[0, 1, 3, 8]);
        self.draw_patience(&mut options);
        let rate = self.draw.of(&[0, 0, 0, 0, 20, 100]);
        let twice = starts_twice(&mut faults);
        if twice {
            self.world.state().coverage.count(Fault::Twice, Step::OpenSource);
        }
        let process = Process::new(&self.world, faults, rate);
        let shares = self.drawn_shares(twice);
        options.share = shares[0];
        let others: Vec<_> = shares[1..]
            .iter()
            .map(|share| {
                let options = LoadOptions { share: *share, ..options.clone() };
                (Process::new(&self.world, Vec::new(), rate), options)
            })
            .collect();
        if others.is_empty() {
            let _ = self.load(&process, options);
            return process;
        }
        let this = &*self;
        scope(|scope| {
            let started: Vec<_> = others
                .iter()
                .map(|(other, options)| {
                    spawn_scoped(scope, "second", move || this.load(other, options.clone()))
                })
                .collect();
            let _ = this.load(&process, options);
            for started in started {
                let _ = started.map_err(Error::from).and_then(joined);
            }
        });
        process
    }

    /// Runs the command, and checks its report.
    pub fn load(&self, process: &Arc<Process>, options: LoadOptions) -> Result<LoadReport> {
        self.world.starts(process);
        let ended = caught("loader", || {
            let source = SimulatedSource::open(process)?;
            let target = self.target(process)?;
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
        if let Ok(report) = &ended {
            self.look_at_report(process, report);
        }
        ended
    }

    /// Restores changed files.
    pub fn restore_files(&self, state: &mut State) {
        for (file, first) in state.files.iter_mut().zip(&self.files) {
            if file != first {
                *file = FileState { stamp: file.stamp + 1, ..first.clone() };
            }
        }
    }
}

fn part(number: u32, of: u32) -> Option<Share> {
    Part::new(number, of).map(Share::Part)
}

impl Fault {
    /// Whether it changes a file.
    pub fn is_of_source(self) -> bool {
        matches!(self, Self::RewrittenAlike | Self::Rewritten | Self::Grows | Self::Removed)
    }

    /// Whether another client changes the table.
    pub fn is_of_table(self) -> bool {
        matches!(self, Self::Drops | Self::Renames | Self::Alters | Self::Deletes)
    }
}

impl Audit {
    pub fn violated(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// The rows that the table must have; `None` if there must be no table.
    pub fn expected(&self) -> Option<Vec<u64>> {
        let keeps = self.completed.is_empty() || self.mode == Mode::Append;
        let mut rows = match &self.before {
            None if self.completed.is_empty() => return None,
            Some(before) if keeps => before.clone(),
            _ => Vec::new(),
        };
        rows.extend(self.completed.iter().flat_map(FileState::rows));
        rows.sort_unstable();
        Some(rows)
    }

    /// A report of success names all rows of the files that its loader opened, and these are in the table.
    pub fn names_all(&mut self, opened: &[FileState], rows: u64) {
        let expected: u64 = opened.iter().flat_map(|file| &file.groups).sum();
        if rows != expected {
            self.violated(format!("exit 0 says {rows} rows of {expected}"));
        }
        let is_there = |file: &&FileState| self.completed.iter().any(|done| done.has_rows_of(file));
        if let Some(lacking) = opened.iter().find(|file| !is_there(file)) {
            self.violated(format!("exit 0 without {}", lacking.name()));
        }
    }
}
