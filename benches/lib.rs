//! What all benchmarks ask; they stand in files of their own.

/// Whether each thing is done once, with few rows, and not measured: with `--test`, and wherever the benchmark is
/// run by something else than `cargo bench`, which says `--bench`.
pub fn once() -> bool {
    let given = |wanted: &str| std::env::args().any(|word| word == wanted);
    given("--test") || !given("--bench")
}
