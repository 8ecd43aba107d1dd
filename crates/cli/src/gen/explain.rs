//! `sawmill gen explain`: describes a dataset before it is generated.

use clap::Args;
use sawmill_generator::Explanation;
use sawmill_profile::{Align, Table, format_bytes, format_count, format_counted};
use serde::Serialize;

use crate::arguments::stores::StoreArgs;
use crate::error::Result;
use crate::r#gen::DEFAULT_SEED;
use crate::r#gen::options::dataset_args::DatasetArgs;
use crate::r#gen::options::file_args::FileArgs;
use crate::r#gen::options::layout_args::LayoutArgs;
use crate::r#gen::options::like_args::Wanted;
use crate::screen::console::Console;

/// Describe a dataset before it is generated: schema, sizes of rows and files, expected values.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill gen explain orders
  sawmill gen explain my.toml --rows 1B --files 64
  sawmill gen explain --like trips.parquet --json")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    dataset: DatasetArgs,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Explained {
    rows: u64,
    files: u32,
    rows_a_file: u64,
    bytes_a_file: u64,
    bytes: u64,
    row_group_rows: u64,
    #[serde(flatten)]
    dataset: Explanation,
}

pub(crate) fn run(args: &ExplainArgs, console: Console) -> Result<()> {
    let wanted = Wanted { rows: args.layout.rows, seed: DEFAULT_SEED };
    let dataset = args.dataset.dataset(wanted, console, &args.stores)?;
    let options = args.files.options(&dataset, args.layout.partition_by.as_deref())?;
    let rows = args.layout.rows_of(&dataset)?;
    args.dataset.check_unique(&dataset, rows)?;
    let layout = args.layout.layout(rows, &dataset, &options, DEFAULT_SEED)?;
    let explanation = dataset.explain();
    let rows_a_file = layout.rows.div_ceil(u64::from(layout.files));
    let bytes_of = |rows: u64| (rows as f64 * explanation.bytes_a_row) as u64;
    let explained = Explained {
        rows: layout.rows,
        files: layout.files,
        rows_a_file,
        bytes_a_file: bytes_of(rows_a_file),
        bytes: bytes_of(layout.rows),
        row_group_rows: layout.row_group_rows,
        dataset: explanation,
    };
    console.result(&explained, || text(&explained))
}

fn text(explained: &Explained) -> String {
    let mut table = Table::new([
        ("column", Align::Left),
        ("type", Align::Left),
        ("entries/row", Align::Right),
        ("values/row", Align::Right),
        ("bytes/row", Align::Right),
        ("drawn", Align::Left),
        ("expected", Align::Left),
    ]);
    for column in &explained.dataset.columns {
        table.row([
            column.path.clone(),
            column.kind.clone(),
            format!("{:.3}", column.entries_a_row),
            format!("{:.3}", column.values_a_row),
            format!("{:.2}", column.bytes_a_row),
            column.values.clone(),
            column.expected.clone(),
        ]);
    }
    let rows = |count| format!("{} {}", format_count(count), if count == 1 { "row" } else { "rows" });
    format!(
        "{}\n{} in {}, about {:.1} bytes each, {} before compression\n\
         {} and about {} per file, row groups of {}\n\n{table}",
        explained.dataset.schema,
        rows(explained.rows),
        format_counted(explained.files.into(), "file"),
        explained.dataset.bytes_a_row,
        format_bytes(explained.bytes),
        rows(explained.rows_a_file),
        format_bytes(explained.bytes_a_file),
        rows(explained.row_group_rows),
    )
}
