//! `sawmill gen spec`: prints the spec of a dataset, to read or edit.

use clap::Args;

use crate::error::Error;
use crate::r#gen::options::dataset_args::DatasetArgs;
use crate::screen::console::Console;

/// Print the spec of a dataset, or one inferred from a file.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill gen spec contacts > my.toml
  sawmill gen spec --like trips.parquet > trips.toml
  sawmill gen spec --schema trips.parquet > trips.toml")]
pub(crate) struct SpecArgs {
    #[command(flatten)]
    dataset: DatasetArgs,
}

pub(crate) fn run(args: &SpecArgs, console: Console) -> Result<(), Error> {
    let spec = args.dataset.spec(console)?;
    console.result(&spec, || spec.clone())
}
