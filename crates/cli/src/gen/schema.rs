//! `sawmill gen schema`: prints the JSON schema of dataset specs, for editors.

use clap::Args;
use sawmill_generator::json_schema;

use crate::error::Result;
use crate::screen::console::Console;

/// Print the JSON schema of dataset specs, for editors that check and complete TOML.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill gen schema > sawmill-dataset.schema.json
  # then, as the first line of a spec:
  #:schema ./sawmill-dataset.schema.json")]
pub(crate) struct SchemaArgs {}

pub(crate) fn run(console: Console) -> Result<()> {
    let schema = json_schema();
    console.result(&schema, || format!("{schema:#}\n"))
}
