//! One case: the counted runs of ours and of the other programs, interleaved, with what was seen of
//! ours from inside.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use sawmill_profile::{
    Case, CpuSampler, PhaseReport, Profile, Run, SampledStacks, Sampler, SamplerOptions, Side, SideResult,
    Target, run_interleaved,
};

use crate::bench::against::{OURS, Other, Told};
use crate::bench::own_process::{self, Once, Seen};
use crate::bench::plan::PlanArgs;
use crate::bench::sweep::Parameters;
use crate::error::Error;
use crate::screen::console::Console;

/// What every case of a benchmark is measured with.
pub(crate) struct Measurement<'a> {
    pub name: &'static str,
    pub parameters: &'a Parameters,
    /// The number of these parameters in the sweep.
    pub point: usize,
    /// Where this process is one run of ours, for another one that measures it.
    pub once: Option<&'a Once>,
    pub plan: &'a PlanArgs,
    /// Whether a flame graph is drawn, for which a run is added.
    pub flame: bool,
    pub console: Console,
    pub cancel: &'a AtomicBool,
}

/// What one run of ours did: its measured phase, and a text that is equal for the same work.
pub(crate) struct Done {
    pub phase: PhaseReport,
    pub rows: Option<u64>,
    pub bytes: u64,
    /// The size of what it left, where that was asked for.
    pub stored: Option<u64>,
    pub checksum: Option<String>,
}

/// What surrounds the runs of a case: where other programs put their work, and other processes that are
/// worth watching.
pub(crate) trait Surroundings {
    /// Makes room for one run of another program; its environment says where.
    fn before(&mut self) -> Result<Vec<(&'static str, String)>, Error> {
        Ok(Vec::new())
    }

    /// Enters what that run is seen to have done, and clears the room.
    fn after(&mut self, _side: &str, _run: &mut Run, _told: &Told) -> Result<(), Error> {
        Ok(())
    }

    /// Makes room for a run of ours in a process of its own; its environment says where.
    fn before_ours(&mut self) -> Result<Vec<(&'static str, String)>, Error> {
        Ok(Vec::new())
    }

    /// Enters the size of what such a run left, and clears the room.
    fn after_ours(&mut self, _run: &mut Run) -> Result<(), Error> {
        Ok(())
    }

    /// Clears the room after a run that failed.
    fn abandon(&mut self) {}

    /// Processes that are sampled beside ours.
    fn watched(&self) -> Vec<(&'static str, Target)> {
        Vec::new()
    }

    /// Folders that data is in.
    fn folders(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Nothing surrounds the runs but these folders.
pub(crate) struct Folders(pub Vec<PathBuf>);

impl Surroundings for Folders {
    fn folders(&self) -> Vec<PathBuf> {
        self.0.clone()
    }
}

/// A measured case, and what was learnt on the way.
#[derive(Default)]
pub(crate) struct Measured {
    pub case: Case,
    pub versions: BTreeMap<String, String>,
    pub folders: Vec<PathBuf>,
    /// The stacks of a run of ours that does not count. Their names are looked up when all cases are measured: it takes
    /// memory that the next case would show as its own.
    pub stacks: Option<SampledStacks>,
}

impl Measurement<'_> {
    /// Runs `ours`, each time with a new profile, and the other programs.
    pub(crate) fn case(
        &self,
        mut surroundings: impl Surroundings,
        mut ours: impl FnMut(&Profile) -> Result<Done, Error>,
    ) -> Result<Measured, Error> {
        if let Some(once) = self.once {
            once.leave(&observed(&mut ours, &surroundings.watched())?)?;
            return Ok(Measured::default());
        }
        let plan = self.plan.run_plan();
        let others = Other::all(&self.plan.against)?;
        let title = Case { name: self.name.into(), parameters: self.parameters.clone(), ..Case::default() };
        self.console.step(&format!("{}: {} runs, {} before", title.title(), plan.runs, plan.warmup));
        let (watched, folders) = (surroundings.watched(), surroundings.folders());
        let versions = RefCell::new(BTreeMap::new());
        let surroundings = RefCell::new(&mut surroundings);
        let silent = Cell::new(None);
        let mut seen: Vec<Seen> = Vec::new();
        let mut sides = vec![Side::new(OURS, |number| {
            // Beside another program ours is measured as that is: as a whole process.
            let of = match others.is_empty() {
                true => observed(&mut ours, &watched)?,
                false => {
                    let mut around = surroundings.borrow_mut();
                    let environment = around.before_ours()?;
                    let mut of = own_process::run(self.point, &environment, self.cancel)
                        .inspect_err(|_| around.abandon())?;
                    around.after_ours(&mut of.run)?;
                    of
                }
            };
            let run = of.run.clone();
            if !number.warmup {
                seen.push(of);
            }
            Ok::<_, Error>(run)
        })];
        for other in &others {
            let (versions, surroundings, silent) = (&versions, &surroundings, &silent);
            sides.push(Side::new(&other.name, move |_| {
                let mut around = surroundings.borrow_mut();
                let environment = around.before()?;
                let (mut run, told) =
                    other.run(&environment, self.cancel).inspect_err(|_| around.abandon())?;
                around.after(&other.name, &mut run, &told)?;
                if run.rows.is_none() && run.checksum.is_none() {
                    silent.set(Some(other.name.as_str()));
                }
                versions.borrow_mut().extend(told.versions);
                Ok(run)
            }));
        }
        let mut runs = run_interleaved(&mut sides, plan, self.cancel)?.into_iter();
        drop(sides);
        if let Some(name) = silent.get() {
            self.console.step(&format!("{name} does not tell what it did: only its time is compared"));
        }
        let mut result = SideResult::new(OURS, plan.warmup, runs.next().unwrap_or_default());
        if let Some(median) = result.median_run().filter(|place| *place < seen.len()) {
            let Seen { phases, timeline, .. } = seen.swap_remove(median);
            result = SideResult { timeline: Some(timeline), ..result.with_phases(phases) };
        }
        let stacks = self.flame.then(|| self.stacks(&mut ours)).transpose()?;
        if !others.is_empty() {
            // As of other programs: each run was a process of its own.
            result.command = Some(format!("{OURS} bench {}, one run a process", self.name));
        }
        let mut results = vec![result];
        for (other, runs) in others.iter().zip(runs) {
            let result = SideResult::new(&other.name, plan.warmup, runs);
            results.push(SideResult { command: Some(other.command()), ..result });
        }
        let case = Case::new(self.name, self.parameters.clone(), results)?;
        Ok(Measured { case, versions: versions.into_inner(), folders, stacks })
    }

    /// The stacks of a run that does not count.
    fn stacks(&self, ours: &mut impl FnMut(&Profile) -> Result<Done, Error>) -> Result<SampledStacks, Error> {
        self.console.step("one more run for the flame graph");
        let sampler = CpuSampler::start()?;
        let ran = ours(&Profile::new());
        let stacks = sampler.stop()?;
        ran?;
        Ok(stacks)
    }
}

/// One run of ours with everything that can be seen of it from inside.
fn observed(
    ours: &mut impl FnMut(&Profile) -> Result<Done, Error>,
    watched: &[(&'static str, Target)],
) -> Result<Seen, Error> {
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
    Ok(Seen { run, phases: profile.phases(), timeline })
}
