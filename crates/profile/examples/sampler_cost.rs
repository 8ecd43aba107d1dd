//! Measures what the samplers cost a busy process, as ratios of interleaved runs:
//! `cargo run --release -p sawmill-profile --features flamegraph --example sampler_cost`.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sawmill_profile::{
    Comparison, CpuSampler, Error, Run, RunPlan, Sampler, SamplerOptions, Side, cpu_time, run_interleaved,
};

/// Two threads of work that takes the same number of instructions every time.
fn work() {
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..150_000_000u64).fold(7u64, |sum, n| std::hint::black_box(sum ^ n) + 1));
        }
    });
}

/// Measures CPU time, which other programs on the machine do not affect.
fn counted(body: impl FnOnce() -> Result<(), Error>) -> Result<Run, Error> {
    let before = cpu_time();
    body()?;
    let used: Duration = cpu_time() - before;
    Ok(Run { wall: used, user: used, ..Run::default() })
}

fn main() -> Result<(), Error> {
    // CPU time of the sampler's own thread, and how long it ran.
    let own = std::cell::Cell::new((0.0, 0.0));
    let plain = Side::new("plain", |_| {
        counted(|| {
            work();
            Ok(())
        })
    });
    let sampled = Side::new("sampler", |_| {
        counted(|| {
            let sampler = Sampler::start(SamplerOptions::new())?;
            work();
            let timeline = sampler.stop();
            let busy = timeline.thread_totals().into_iter().find(|(name, _)| *name == "sampler");
            let time = timeline.samples.last().map_or(0.0, |sample| sample.at.as_secs_f64());
            own.set((own.get().0 + busy.map_or(0.0, |(_, cpu)| cpu), own.get().1 + time));
            Ok(())
        })
    });
    let mut sides = vec![plain, sampled];
    if CpuSampler::start().is_ok() {
        sides.push(Side::new("CPU sampler", |_| {
            let sampler = CpuSampler::start()?;
            // Reading the samples back is not part of the run.
            let run = counted(|| {
                work();
                Ok(())
            });
            sampler.stop()?;
            run
        }));
    }
    let plan = RunPlan { warmup: 2, runs: 41 };
    let runs = run_interleaved(&mut sides, plan, &AtomicBool::new(false))?;
    let (busy, time) = own.get();
    println!("the sampler's own thread: {:.3} % of one processor", 100.0 * busy / time);
    let walls = |runs: &[Run]| -> Vec<f64> { runs.iter().map(|run| run.wall.as_secs_f64()).collect() };
    let plain = walls(&runs[0]);
    for (side, runs) in sides.iter().zip(&runs).skip(1) {
        println!("{}: {}", side.name(), Comparison::paired(&walls(runs), &plain)?);
    }
    Ok(())
}
