//! `sawmill gen spec`: prints the spec of a dataset, to read or edit.

use clap::Args;

use crate::arguments::stores::StoreArgs;
use crate::error::Result;
use crate::r#gen::DEFAULT_SEED;
use crate::r#gen::options::dataset_args::DatasetArgs;
use crate::r#gen::options::like_args::Wanted;
use crate::screen::console::Console;

/// Print the spec of a dataset, or one inferred from a file.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill gen spec contacts > my.toml
  sawmill gen spec --like trips.parquet > trips.toml
  sawmill gen spec --like s3://bucket/trips > trips.toml
  sawmill gen spec --schema-of trips.parquet > trips.toml")]
pub(crate) struct SpecArgs {
    #[command(flatten)]
    dataset: DatasetArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

pub(crate) fn run(args: &SpecArgs, console: Console) -> Result<()> {
    let wanted = Wanted { rows: None, seed: DEFAULT_SEED };
    let spec = args.dataset.spec(wanted, console, &args.stores)?;
    console.document(&spec, || spec.clone())
}
