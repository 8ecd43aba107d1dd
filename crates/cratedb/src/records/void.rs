//! Loads that were broken off before they had brought a row.

use sawmill_loader::Mode;
use sawmill_source::Result;

use super::checkpoint::{Checkpoints, LoadRow, State};
use super::lease;
use crate::connect::sql::Sql;
use crate::table::names::CrateTable;
use crate::tags::jobs;

/// Whether an interrupted load into a table has brought no row into it, and no request that it left still runs. Rows that
/// no record names show in the count. `by_another` says that another process may run the load.
///
/// # Errors
/// No connection; a statement that does not end.
pub(crate) fn holds_nothing(
    row: &LoadRow,
    by_another: bool,
    (table, checkpoints): (&CrateTable, &Checkpoints),
    sql: &mut Sql<'_>,
) -> Result<bool> {
    if row.state != State::Loading || row.load.facts.replaces {
        return Ok(false);
    }
    let mut records = checkpoints.on(sql);
    if by_another && !lease::alive(&mut records, vec![row.lease_name()])?.is_empty() {
        return Ok(false);
    }
    if row.load.mode != Mode::Append.name() {
        // Its rows gather in another table.
        return Ok(true);
    }
    if !records.units(&row.load.id)?.is_empty() || !jobs::are_shown(sql)? {
        return Ok(false);
    }
    jobs::outlast(sql, table, true)?;
    Ok(sql.count(table)? == row.rows)
}
