//! One case: our counted runs interleaved with the other programs' runs. Ours are also measured from inside.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use sawmill_profile::{
    Case, CpuSampler, PhaseReport, Profile, Run, RunPlan, SampledStacks, Sampler, SamplerOptions, Side,
    SideResult, Target, run_interleaved,
};

use crate::bench::against::{OURS, OtherProgram, ReportedWork};
use crate::bench::own_process::{self, Observed, Once};
use crate::bench::plan::PlanArgs;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::console::Console;
use crate::sweep::Parameters;

/// How to measure a case.
pub(crate) struct Measurement<'a> {
    pub name: &'static str,
    pub parameters: &'a Parameters,
    /// The number of these parameters in the sweep.
    pub point: usize,
    /// Set if this process is a single run, started by the one that measures it.
    pub once: Option<&'a Once>,
    pub plan: &'a PlanArgs,
    /// Whether to draw a flame graph, which takes one more run.
    pub flame: bool,
    pub console: Console,
}

/// What one of our runs did: its measured phase, and a checksum that is equal for the same work.
pub(crate) struct Done {
    pub phase: PhaseReport,
    pub rows: Option<u64>,
    pub bytes: u64,
    /// The bytes that it stored, if `bench` asked for them.
    pub stored: Option<u64>,
    pub checksum: Option<String>,
}

/// What surrounds the runs of a case: places for the output of other programs, and other processes to watch.
pub(crate) trait Surroundings {
    /// Prepares a place for one run of another program. The returned environment variables name it.
    fn before(&mut self) -> Result<Vec<(&'static str, String)>> {
        Ok(Vec::new())
    }

    /// Completes that run's figures by its output, and removes the output.
    fn after(&mut self, _side: &str, _run: &mut Run, _work: &ReportedWork) -> Result<()> {
        Ok(())
    }

    /// The same for one of our runs in a separate process.
    fn before_ours(&mut self) -> Result<Vec<(&'static str, String)>> {
        Ok(Vec::new())
    }

    /// Adds the size of that run's output to its figures, and removes the output.
    fn after_ours(&mut self, _run: &mut Run) -> Result<()> {
        Ok(())
    }

    /// Removes the output of a run that failed.
    fn abandon(&mut self) {}

    /// Other processes to sample.
    fn watched(&self) -> Vec<(&'static str, Target)> {
        Vec::new()
    }

    /// Folders that hold data.
    fn folders(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Runs beside a server, if there is one, with data in these folders.
pub(crate) struct Beside {
    pub server: Option<(&'static str, Target)>,
    pub folders: Vec<PathBuf>,
}

impl Surroundings for Beside {
    fn watched(&self) -> Vec<(&'static str, Target)> {
        self.server.clone().into_iter().collect()
    }

    fn folders(&self) -> Vec<PathBuf> {
        self.folders.clone()
    }
}

/// A measured case, with versions, folders and stacks for the report.
#[derive(Default)]
pub(crate) struct Measured {
    pub case: Case,
    pub versions: BTreeMap<String, String>,
    pub folders: Vec<PathBuf>,
    /// The stacks of an extra run. They get names only after all cases are measured: the lookup takes memory
    /// that the next case would count as its own.
    pub stacks: Option<SampledStacks>,
}

/// The other programs' versions, and one that reports nothing.
#[derive(Default)]
struct Notes {
    versions: BTreeMap<String, String>,
    /// A program that does not report its work.
    silent: Option<String>,
}

impl Measurement<'_> {
    /// Runs `ours` and the other programs in turn; each of our runs has a new profile.
    pub(crate) fn case(
        &self,
        mut surroundings: impl Surroundings,
        mut ours: impl FnMut(&Profile) -> Result<Done>,
    ) -> Result<Measured> {
        if let Some(once) = self.once {
            once.report(&observed(&mut ours, &surroundings.watched())?)?;
            return Ok(Measured::default());
        }
        let plan = RunPlan { warmup: self.plan.warmup, runs: self.plan.runs };
        let others = OtherProgram::all(&self.plan.against)?;
        let title = Case { name: self.name.into(), parameters: self.parameters.clone(), ..Case::default() };
        self.console.step(&format!("{}: {} runs, {} before", title.title(), plan.runs, plan.warmup));
        let (watched, folders) = (surroundings.watched(), surroundings.folders());
        let notes = RefCell::new(Notes::default());
        let surroundings: RefCell<&mut dyn Surroundings> = RefCell::new(&mut surroundings);
        let mut seen: Vec<Observed> = Vec::new();
        let mut sides = vec![Side::new(OURS, |number| {
            // Against another program, our runs are measured like that program: as whole processes.
            let observation = match others.is_empty() {
                true => observed(&mut ours, &watched)?,
                false => self.run_ours(*surroundings.borrow_mut())?,
            };
            let run = observation.run.clone();
            if !number.warmup {
                seen.push(observation);
            }
            Ok::<_, Error>(run)
        })];
        for other in &others {
            let (notes, surroundings) = (&notes, &surroundings);
            sides.push(Side::new(&other.name, move |_| {
                self.run_other(other, *surroundings.borrow_mut(), &mut notes.borrow_mut())
            }));
        }
        let mut runs = run_interleaved(&mut sides, plan, interrupt::flag())?.into_iter();
        drop(sides);
        let Notes { versions, silent } = notes.into_inner();
        if let Some(name) = silent {
            self.console.step(&format!("{name} does not report what it did: only its time is compared"));
        }
        let mut result = SideResult::new(OURS, plan.warmup, runs.next().unwrap_or_default());
        if let Some(median) = result.median_run().filter(|place| *place < seen.len()) {
            let Observed { phases, timeline, .. } = seen.swap_remove(median);
            result = SideResult { timeline: Some(timeline), ..result.with_phases(phases) };
        }
        let stacks = self.flame.then(|| self.stacks(&mut ours)).transpose()?;
        if !others.is_empty() {
            // Each run was a separate process, as with other programs.
            result.command = Some(format!("{OURS} bench {}, one run a process", self.name));
        }
        let mut results = vec![result];
        for (other, runs) in others.iter().zip(runs) {
            let result = SideResult::new(&other.name, plan.warmup, runs);
            results.push(SideResult { command: Some(other.command()), ..result });
        }
        let case = Case::new(self.name, self.parameters.clone(), results)?;
        Ok(Measured { case, versions, folders, stacks })
    }

    /// Does one of our runs in a separate process.
    fn run_ours(&self, around: &mut dyn Surroundings) -> Result<Observed> {
        let environment = around.before_ours()?;
        let mut observation = own_process::run(self.point, &environment).inspect_err(|_| around.abandon())?;
        around.after_ours(&mut observation.run)?;
        Ok(observation)
    }

    /// Does one run of another program.
    fn run_other(
        &self,
        other: &OtherProgram,
        around: &mut dyn Surroundings,
        notes: &mut Notes,
    ) -> Result<Run> {
        let environment = around.before()?;
        let (mut run, work) = other.run(&environment).inspect_err(|_| around.abandon())?;
        around.after(&other.name, &mut run, &work)?;
        if run.rows.is_none() && run.checksum.is_none() {
            notes.silent = Some(other.name.clone());
        }
        notes.versions.extend(work.versions);
        Ok(run)
    }

    /// The stacks of a run that does not count.
    fn stacks(&self, ours: &mut impl FnMut(&Profile) -> Result<Done>) -> Result<SampledStacks> {
        self.console.step("one more run for the flame graph");
        let sampler = CpuSampler::start()?;
        let ran = ours(&Profile::new());
        let stacks = sampler.stop()?;
        ran?;
        Ok(stacks)
    }
}

/// Does one of our runs and measures it from inside.
fn observed(
    ours: &mut impl FnMut(&Profile) -> Result<Done>,
    watched: &[(&'static str, Target)],
) -> Result<Observed> {
    let profile = Profile::with_hardware();
    let mut options = SamplerOptions::new().profile(&profile);
    for (name, target) in watched {
        options = options.watch(name, target);
    }
    let sampler = Sampler::start(options)?;
    let done = ours(&profile)?;
    let timeline = sampler.stop();
    let run = Run {
        wall: done.phase.wall,
        user: done.phase.cpu.saturating_sub(done.phase.system),
        system: done.phase.system,
        peak_memory: done.phase.peak_memory,
        rows: done.rows,
        bytes: Some(done.bytes),
        stored: done.stored,
        checksum: done.checksum,
    };
    Ok(Observed { run, phases: profile.phases(), timeline })
}
