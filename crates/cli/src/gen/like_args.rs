//! The options of specs that are inferred from data.

use clap::Args;
#[cfg(feature = "formats")]
use sawmill_generator::Verbatim;

use crate::screen::phases;

/// A spec, and what it does not represent.
#[derive(Debug)]
pub(crate) struct Inferred {
    pub spec: String,
    /// What the user should know before using the spec.
    pub notices: Vec<String>,
}

#[derive(Args, Clone, Debug)]
#[group(skip)]
pub(crate) struct LikeArgs {
    /// How many rows --like samples, in short runs spread over all files and row groups. A sample takes at
    /// most 1 GiB of memory; if rows are wide, it has fewer.
    #[arg(long, value_name = "ROWS", default_value = "1M", value_parser = phases::count)]
    pub sample: u64,
    /// A column that --like and --schema leave out; may be repeated.
    #[arg(long, value_name = "COLUMN")]
    pub exclude: Vec<String>,
    /// Copy the strings of all columns with at most 10,000 distinct strings into the spec. By default only
    /// small sets of categories are copied: at most 256 distinct strings that occur 20 times each on average,
    /// and of these only strings that were sampled at least 5 times. All other strings are made up with the
    /// same lengths and forms. Numbers, dates and times are copied.
    #[arg(long, conflicts_with = "no_verbatim")]
    pub verbatim: bool,
    /// Copy no strings into the spec.
    #[arg(long)]
    pub no_verbatim: bool,
}

#[cfg(feature = "formats")]
impl LikeArgs {
    /// Which strings a spec may copy.
    pub(crate) fn strings(&self) -> Verbatim {
        match (self.verbatim, self.no_verbatim) {
            (true, _) => Verbatim::Always,
            (_, true) => Verbatim::Never,
            _ => Verbatim::Categories,
        }
    }
}
