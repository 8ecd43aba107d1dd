//! The arguments that all benchmarks share: how often, against what, and where results go.

use std::path::PathBuf;

use clap::{Args, value_parser};
use sawmill_profile::RunPlan;

/// How often, against what, and where results go.
#[derive(Args, Debug)]
#[command(next_help_heading = "Benchmark")]
pub(crate) struct PlanArgs {
    /// Runs that count; from five on, medians have intervals.
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..))]
    runs: u32,
    /// Runs before those that count.
    #[arg(long, default_value_t = 1)]
    warmup: u32,
    /// Another program to compare with, as one text; it runs as a whole process after each run of
    /// ours. There is no shell: write sh -c '...' for one. NAME=COMMAND names the side. May be given
    /// more than once.
    #[arg(long, value_name = "COMMAND")]
    pub against: Vec<String>,
    /// Write the results, with all raw samples, as JSON into this file; --json FILE does the same. Of
    /// --json without a file the results go to standard output.
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// Draw the results as a page that needs no network, with a flame graph of one more run.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Keep the results under this name, for --baseline.
    #[arg(long, value_name = "NAME")]
    pub save: Option<String>,
    /// Compare with the results kept under this name.
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// End with exit code 3 when ours is seen to be slower than the other side by more than this.
    #[arg(long, value_name = "N%", value_parser = percent)]
    pub fail_if_slower: Option<f64>,
}

impl PlanArgs {
    pub(crate) fn run_plan(&self) -> RunPlan {
        RunPlan { warmup: self.warmup, runs: self.runs }
    }
}

/// A share as a user writes it: `5%`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|digits| digits.trim().parse::<f64>().ok());
    match number {
        Some(number) if number.is_finite() && number >= 0.0 => Ok(number / 100.0),
        _ => Err(format!("{text:?} is no percentage: give one like 5%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_has_its_sign_and_is_not_negative() {
        assert_eq!(percent("5%"), Ok(0.05));
        assert_eq!(percent("0%"), Ok(0.0));
        for text in ["5", "-1%", "%", "NaN%", "inf%", "five%"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
