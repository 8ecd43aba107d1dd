//! `sawmill gen spec`: the spec of a dataset, to be read or edited.

use clap::Args;

use crate::console::Console;
use crate::error::Error;

/// Print the spec of a dataset.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill gen spec contacts > my.toml")]
pub(crate) struct SpecArgs {
    /// A built-in dataset (contacts) or a dataset spec (a TOML file).
    dataset: String,
}

pub(crate) fn run(args: &SpecArgs, console: Console) -> Result<(), Error> {
    let spec = super::spec_text(&args.dataset)?;
    console.result(&spec, || spec.clone())
}
