//! Shared by all benchmarks, which are separate binaries.

/// Whether to run everything once, with few rows and without measuring: with `--test`, and whenever the
/// benchmark is not run by `cargo bench`, which passes `--bench`.
pub fn once() -> bool {
    let given = |wanted: &str| std::env::args().any(|word| word == wanted);
    given("--test") || !given("--bench")
}
