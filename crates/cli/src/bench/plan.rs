//! Arguments of all benchmarks: how often to run, what to compare with, and where results go.

use std::path::PathBuf;

use clap::{Args, value_parser};

/// How often to run, what to compare with, and where results go.
#[derive(Args, Debug)]
#[command(next_help_heading = "Benchmark")]
pub(crate) struct PlanArgs {
    /// Counted runs; six or more give medians with 95 % intervals.
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Runs before the counted ones.
    #[arg(long, default_value_t = 1)]
    pub warmup: u32,
    /// The command line of another program to compare with, in one argument. It runs as a whole process after
    /// each of our runs. For a shell, write sh -c '...'. NAME=COMMAND names the side. May be repeated.
    #[arg(long, value_name = "COMMAND")]
    pub against: Vec<String>,
    /// Write the results with all raw samples to this file, as JSON.
    #[arg(long, alias = "results", value_name = "FILE")]
    pub json_file: Option<PathBuf>,
    /// Draw the results as a self-contained HTML page, with a flame graph of one more run.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Compare with the results in this file, which --json-file wrote.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Exit with code 3 if ours is slower than the other side by more than this.
    #[arg(long, value_name = "N%", value_parser = percent)]
    pub fail_if_slower: Option<f64>,
}

/// Parses a percentage: `5%`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|digits| digits.trim().parse::<f64>().ok());
    match number {
        Some(number) if number.is_finite() && number >= 0.0 => Ok(number / 100.0),
        _ => Err(format!("{text:?} is not a percentage: write one like 5%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_needs_its_sign_and_is_not_negative() {
        assert_eq!(percent("5%"), Ok(0.05));
        assert_eq!(percent("0%"), Ok(0.0));
        for text in ["5", "-1%", "%", "NaN%", "inf%", "five%"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
