//! The cost of a span in ns: on an attached thread, on an unattached one, as a wait, and nested. `cargo bench
//! --bench span`. The documentation of spans states the figures.

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use sawmill_profile::{Profile, WaitKind, span, wait};

fn spans(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("span");
    group.bench_function("clock_reading", |bench| bench.iter(|| black_box(Instant::now())));
    group.bench_function("detached", |bench| bench.iter(|| drop(black_box(span("work")))));
    let phase = Profile::new().phase("cost");
    let attached = phase.attach("main");
    group.bench_function("attached", |bench| bench.iter(|| drop(black_box(span("work")))));
    group.bench_function("wait", |bench| bench.iter(|| drop(black_box(wait(WaitKind::Disk)))));
    group.bench_function("outer_with_three_inner", |bench| {
        bench.iter(|| {
            let outer = black_box(span("outer"));
            for name in ["a", "b", "c"] {
                black_box(span(name)).add_rows(1);
            }
            drop(outer);
        });
    });
    drop(attached);
    drop(phase.finish());
    group.finish();
}

criterion_group!(benches, spans);
criterion_main!(benches);
