//! The sums of a source's rows, before there is a table to load them into.

use sawmill_loader::{LoadOptions, TableName, Tally};
use sawmill_pgcopy::ValueOptions;
use sawmill_source::{Control, Result, Source};

use crate::table::columns::natural;
use crate::types::natural::Nested;
use crate::verify::source_sums::SourceSums;

/// The number of rows of `source`, their content sum and the non-null values of each column, as a load into a
/// new table of PostgreSQL with default options reports them. Rows are encoded by as many threads as
/// `options` has connections.
///
/// ```
/// use sawmill_loader::LoadOptions;
/// use sawmill_postgres::content;
/// use sawmill_source::{Control, GeneratedRows};
/// let devices = sawmill_generator::Dataset::built_in("devices").unwrap()?;
/// let profile = sawmill_profile::Profile::new();
/// let (phase, cancel) = (profile.phase("sum"), false.into());
/// let source = GeneratedRows::new(devices, 1000, 42);
/// let tally = content(&source, &LoadOptions::default(), &Control::new(&cancel, &phase))?;
/// assert_eq!(tally.rows, 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A column or a value that PostgreSQL cannot represent; errors of the source.
pub fn content(source: &dyn Source, options: &LoadOptions, control: &Control<'_>) -> Result<Tally> {
    // The sum does not depend on the name.
    let table: TableName = "content".parse()?;
    let planned = natural(source.schema(), &table, Nested::default(), &ValueOptions::default())?;
    let sums = SourceSums {
        source,
        columns: &planned.columns,
        options,
        unit_rows: options.unit_rows,
        each_column: false,
        by_value: false,
        leave_out: false,
        refused: None,
    };
    Ok(sums.run(control)?.0.whole)
}
