//! `sawmill bench`: measures whole runs of the other sub-commands, compares and saves them.
//!
//! ```text
//! arguments ─sweep─▶ points ─case─▶ our runs and other programs' runs, interleaved ─▶ cases
//!                                        cases ─outcome─▶ table, JSON, HTML, exit code
//! ```
//!
//! Each sub-command that can be measured has a file below `bench/`. Each run has its own profile.

mod against;
mod case;
mod footers;
mod generate;
mod history;
mod loads;
mod outcome;
mod own_process;
mod plan;

use std::path::Path;

use clap::{Args, Subcommand};
use sawmill_profile::CpuSampler;

use crate::bench::case::{Measured, Measurement};
use crate::bench::outcome::Outcome;
use crate::bench::own_process::Once;
use crate::bench::plan::PlanArgs;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::console::Console;
use crate::screen::flame;
use crate::sweep::Parameters;

/// Measure whole runs and compare them with another program or with a saved result.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill bench gen contacts --rows 10M --out /dev/null --threads 1,2,4
  sawmill bench gen contacts --rows 1M --json-file before.json
  sawmill bench gen contacts --rows 1M --baseline before.json --fail-if-slower 5%
  sawmill bench footer /data/trips --against 'python3 footers.py /data/trips' --html footers.html
  sawmill bench load /data/trips --connections 1..8*2 --json-file load.json
  sawmill bench load /data/trips --table-kind logged,unlogged --keyed yes,no --primary-key id --connections 1,2,4
  sawmill bench report monday.json tuesday.json --html history.html

Sweeps: some options take a list (1,2,4) or an inclusive range (1..4, 10..30+10, 1024..16384*2), and sawmill
measures all combinations: --threads, --writers, --files, --row-group-rows, --page-rows, --page-size and
--compression of gen; --tail-hint of footer; --connections, --unit-rows, --batch-rows, --batch-bytes, --table-kind,
--keyed and --strategy of load. A codec of one column is repeated: --compression id=none,id=zstd.

With --against, both sides are timed from the start of a process to its end; each of our runs is a process of
its own, too. Without it, our runs are timed inside this process. It is an error if the sides did not do the
same work.

Exit code 3: slower than --fail-if-slower allows.")]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    Gen(Box<generate::GenBench>),
    Footer(Box<footers::FooterBench>),
    Load(Box<loads::LoadBench>),
    Report(history::ReportArgs),
}

impl What {
    fn plan(&self) -> Option<(&'static str, &PlanArgs)> {
        match self {
            What::Gen(args) => Some(("gen", &args.plan)),
            What::Footer(args) => Some(("footer", &args.plan)),
            What::Load(args) => Some(("load", &args.plan)),
            What::Report(_) => None,
        }
    }

    fn measure(
        &self,
        server: Option<&loads::Server>,
        measurement: &Measurement<'_>,
    ) -> Option<Result<Measured>> {
        Some(match self {
            What::Gen(args) => generate::measure(args, measurement),
            What::Footer(args) => footers::measure(args, measurement),
            What::Load(args) => loads::measure(args, server, measurement),
            What::Report(_) => return None,
        })
    }
}

/// Does one run of one point, and leaves its own measurements to the process that started it.
fn run_once(
    once: &Once,
    points: &[(&Parameters, &BenchArgs)],
    (name, plan): (&'static str, &PlanArgs),
    console: Console,
) -> Result<()> {
    let Some((parameters, args)) = points.get(once.point) else { return Ok(()) };
    let (point, once) = (once.point, Some(once));
    let measurement = Measurement { name, parameters, point, once, plan, flame: false, console };
    args.what.measure(None, &measurement).transpose().map(drop)
}

/// Measures every point of a sweep; without a sweep, the only point has no parameters.
pub(crate) fn run(
    points: &[(&Parameters, &BenchArgs)],
    flamegraph: Option<&Path>,
    console: Console,
) -> Result<()> {
    let Some((_, first)) = points.first() else { return Ok(()) };
    if let What::Report(args) = &first.what {
        if flamegraph.is_some() {
            let advice = "leave it out";
            return Err(Error::usage("a report runs nothing that could be drawn", "--flamegraph", advice));
        }
        return history::run(args, console);
    }
    let Some((name, plan)) = first.what.plan() else { return Ok(()) };
    if let Some(once) = Once::asked() {
        return run_once(&once, points, (name, plan), console);
    }
    if let Some(path) = flamegraph {
        flame::check(path)?;
        // Fail before spending time. An HTML page does without a flame graph if sampling is not available.
        CpuSampler::available()?;
    }
    let flame = flamegraph.is_some() || (plan.html.is_some() && CpuSampler::available().is_ok());
    let mut outcome = Outcome::new(plan)?;
    let server = match &first.what {
        What::Load(args) => loads::Server::start(args, console)?,
        _ => None,
    };
    for (point, (parameters, args)) in points.iter().enumerate() {
        let measurement = Measurement { name, parameters, point, once: None, plan, flame, console };
        let Some(measured) = args.what.measure(server.as_ref(), &measurement) else { continue };
        // Whatever error a cancelled run returned, the user interrupted it.
        let measured = measured.map_err(|error| interrupt::check().err().unwrap_or(error))?;
        outcome.add(measured)?;
    }
    if let Some(server) = server {
        outcome.version("PostgreSQL", &server.version);
        server.stop()?;
    }
    outcome.report(flamegraph, console)
}
