//! Measures what a span costs: `cargo run --release -p sawmill-profile --example span_cost`.

use std::hint::black_box;
use std::time::Instant;

use sawmill_profile::{Profile, WaitKind, cpu_time, span, wait};

const SPANS: u32 = 1_000_000;
const ROUNDS: usize = 9;

/// The median cost of one call in ns of CPU time, over some rounds; CPU time, so that other programs
/// on the machine do not enter.
fn cost(mut work: impl FnMut()) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = cpu_time();
            (0..SPANS).for_each(|_| work());
            (cpu_time() - start).as_nanos() as f64 / f64::from(SPANS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn main() {
    println!("monotonic clock   {:6.1} ns a reading", cost(|| _ = black_box(Instant::now())));
    println!("span, detached    {:6.1} ns", cost(|| drop(black_box(span("work")))));
    let phase = Profile::new().phase("cost");
    let attached = phase.attach("main");
    println!("span, attached    {:6.1} ns", cost(|| drop(black_box(span("work")))));
    println!("wait, attached    {:6.1} ns", cost(|| drop(black_box(wait(WaitKind::Disk)))));
    let nested = cost(|| {
        let outer = black_box(span("outer"));
        for name in ["a", "b", "c"] {
            black_box(span(name)).add_rows(1);
        }
        drop(outer);
    });
    println!("nested, attached  {:6.1} ns a span", nested / 4.0);
    drop(attached);
    drop(phase.finish());
}
