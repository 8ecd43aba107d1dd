//! One case: the counted runs of ours and of the other programs, interleaved.

use std::sync::atomic::AtomicBool;

use sawmill_profile::{Case, PhaseReport, Run, Side, SideResult, run_interleaved};

use crate::bench::against::{OURS, Other};
use crate::bench::plan::PlanArgs;
use crate::bench::sweep::Parameters;
use crate::console::Console;
use crate::error::Error;

/// What every case of a benchmark is measured with.
pub(crate) struct Measurement<'a> {
    pub name: &'static str,
    pub parameters: &'a Parameters,
    pub plan: &'a PlanArgs,
    pub console: Console,
    pub cancel: &'a AtomicBool,
}

/// What one run of ours did: its measured phase, and a text that is equal for the same work.
pub(crate) struct Done {
    pub phase: PhaseReport,
    pub rows: Option<u64>,
    pub bytes: u64,
    pub checksum: Option<String>,
}

impl Measurement<'_> {
    /// Runs `ours` and the other programs, which get `environment`.
    pub(crate) fn case(
        &self,
        environment: &[(&str, String)],
        mut ours: impl FnMut() -> Result<Done, Error>,
    ) -> Result<Case, Error> {
        let plan = self.plan.run_plan();
        let others = Other::all(&self.plan.against, environment)?;
        let title = Case { name: self.name.into(), parameters: self.parameters.clone(), ..Case::default() };
        self.console.step(&format!("{}: {} runs, {} before", title.title(), plan.runs, plan.warmup));
        let mut phases: Vec<PhaseReport> = Vec::new();
        let mut sides = vec![Side::new(OURS, |number| {
            let done = ours()?;
            let run = Run {
                wall: done.phase.wall,
                // Of our own process the sum of both is known.
                user: done.phase.cpu,
                peak_memory: done.phase.peak_memory,
                rows: done.rows,
                bytes: Some(done.bytes),
                checksum: done.checksum,
                ..Run::default()
            };
            if !number.warmup {
                phases.push(done.phase);
            }
            Ok::<_, Error>(run)
        })];
        for other in &others {
            sides.push(Side::new(&other.name, |_| other.run(self.cancel)));
        }
        let mut runs = run_interleaved(&mut sides, plan, self.cancel)?.into_iter();
        drop(sides);
        let mut ours = SideResult::new(OURS, plan.warmup, runs.next().unwrap_or_default());
        if let Some(median) = ours.median_run().filter(|place| *place < phases.len()) {
            ours = ours.with_phases(vec![phases.swap_remove(median)]);
        }
        let mut results = vec![ours];
        for (other, runs) in others.iter().zip(runs) {
            let result = SideResult::new(&other.name, plan.warmup, runs);
            results.push(SideResult { command: Some(other.command()), ..result });
        }
        Ok(Case::new(self.name, self.parameters.clone(), results)?)
    }
}
