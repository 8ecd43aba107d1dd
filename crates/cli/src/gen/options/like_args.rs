//! The options of specs that are inferred from data, and of comparisons with that data.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::stores::StoreArgs;
use crate::screen::phases;

/// An inferred spec, and notices about its gaps.
#[derive(Debug)]
pub(crate) struct Inferred {
    pub spec: String,
    /// What the user should know before using the spec.
    pub notices: Vec<String>,
}

/// The rows and the seed to make from a spec that is learned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The rows of a single table, unless they are the source's.
    pub rows: Option<u64>,
    pub seed: u64,
}

/// The number of rows of a sample.
fn sampled(text: &str) -> Result<u64, String> {
    match phases::count(text)? {
        0 => Err("a sample has at least one row; --schema-of takes the types alone".to_owned()),
        rows => Ok(rows),
    }
}

#[derive(Args, Clone, Debug)]
#[group(skip)]
pub(crate) struct LikeArgs {
    /// How many rows --like samples, in short runs spread over all files and row groups. A sample takes at
    /// most 1 GiB of memory; if rows are wide, it has fewer.
    #[arg(long, value_name = "ROWS", requires = "like", default_value = "1M", value_parser = sampled)]
    pub sample: u64,
    /// A column that --like and --schema-of leave out; may be repeated.
    #[arg(long, value_name = "COLUMN", conflicts_with = "dataset")]
    pub exclude: Vec<String>,
    /// Copy the strings of all columns with at most 10,000 distinct strings into the spec.
    ///
    /// By default the spec has only strings sampled at least 5 times, of columns with at most 256 distinct strings that
    /// occur 20 times each on average. From other columns it has strings of at least 1 % of the values, and up to 8
    /// letters and digits that all strings share, such as ORD in ORD-00017. All other strings are made up with the
    /// same lengths and forms. Numbers, dates and times are copied, and ids that count from 0 come out the same.
    #[arg(long, requires = "like", conflicts_with = "no_verbatim")]
    pub verbatim: bool,
    /// Copy no strings into the spec: neither whole ones nor letters and digits that all have in common. The spec
    /// still has the punctuation between them, their lengths, and the numbers, dates and times of the data.
    #[arg(long, requires = "like")]
    pub no_verbatim: bool,
}

/// Compare generated data with its source: columns, pairs of columns, the order of rows, and keys.
#[derive(Args, Debug)]
#[command(after_help = "\
For columns of at most 1,000 distinct values, the distance is the total variation of their values. For numbers that
occur fewer than 500 times on average, it is the Kolmogorov-Smirnov distance; for other strings, bytes and lists, the
Kolmogorov-Smirnov distance of their lengths. If there are many different strings, their characters by class and the
shares of strings of 1 % or more count, too; the greatest distance wins. 0 means equal, 1 entirely different; random
samples of the same distribution differ a little. `frequencies` ignores the values, for strings that were made up.

Pairs are compared in up to 32,768 rows: numbers by their rank correlation, categories by Cramér's V, a number and a
category by the correlation ratio, also of a number's 20 bins. Equal values and nulls count, too. For values that both
have, `means` tells whether a number is high for the same ones, `same combinations` whether they go together. A
pair is kept if each measure differs by at most 0.1, or by three standard deviations if rows are few. A column keeps its
order if each row's correlation with the 1st, 2nd, 10th and 100th row before it, and with the last one of its category,
differs as little; a sorted column must stay sorted. Steps across a multiple of the source's rows, after which
sorted columns start again, do not count. A decision tree learns to tell half of the rows apart; its AUC on the other
half is 0.5 if it cannot.

Examples:
  sawmill gen --like trips.parquet --out /tmp/trips
  sawmill gen fidelity trips.parquet /tmp/trips
  sawmill gen fidelity trips.parquet /tmp/trips --json
  sawmill gen fidelity trips.csv /tmp/trips --html fidelity.html
  sawmill gen fidelity orders.parquet /tmp/shop/orders customers.parquet /tmp/shop/customers
  sawmill gen fidelity s3://bucket/trips /tmp/trips")]
pub(crate) struct FidelityArgs {
    /// The source: a Parquet, Arrow, JSON or CSV file, a directory of Parquet files, a pattern, or a URL of one
    /// of these.
    pub source: PathBuf,
    /// The generated data: also a file, a directory or a pattern.
    pub generated: PathBuf,
    /// More tables, each a source and its generated data. The command then also compares the references
    /// between them: the share of orphans, and the skew of the keys.
    #[arg(value_names = ["SOURCE", "GENERATED"], num_args = 0..)]
    pub others: Vec<PathBuf>,
    /// How many rows of each to sample, in short runs spread over all files and row groups. A sample takes at
    /// most 1 GiB of memory; if rows are wide, it has fewer.
    #[arg(long, value_name = "ROWS", default_value = "1M", value_parser = sampled)]
    pub sample: u64,
    /// A column to leave out; may be repeated.
    #[arg(long, value_name = "COLUMN")]
    pub exclude: Vec<String>,
    /// Also write the comparison to this file, as a page of HTML.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub stores: StoreArgs,
}

impl FidelityArgs {
    /// How both are sampled. Their specs are not shown, so it does not matter which strings they hold.
    pub(crate) fn like(&self) -> LikeArgs {
        LikeArgs { sample: self.sample, exclude: self.exclude.clone(), verbatim: false, no_verbatim: false }
    }
}
