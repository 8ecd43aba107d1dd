//! Interrupted loads of files that are read by other options now, or have other content.

use std::collections::BTreeMap;

use sawmill_source::{Control, Kind, Result, Source, UnitKey};

use crate::engine::load::LoadOptions;
use crate::history::append::History;
use crate::history::portion::Portion;
use crate::history::record::{LoadRecord, RecordedUnit};
use crate::identity::recheck::unit_sums;

/// Whether all rows that an interrupted load has committed are those that its files, `portion`, have now, unit by unit: if
/// so, it may go on with these. False if it has committed none, or if some cannot be compared.
///
/// # Errors
/// No connection; a file that cannot be read.
pub fn still_holds(
    history: &dyn History,
    load: &LoadRecord,
    portion: &Portion<'_>,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<bool> {
    let units: BTreeMap<UnitKey, RecordedUnit> = history.units(load)?.into_iter().collect();
    if units.is_empty() || units.values().any(|unit| unit.rejected > 0) {
        return Ok(false);
    }
    let Some(encoding) = history.encoding(load, portion, &units)? else { return Ok(false) };
    let mut runs = portion.plan(load.unit_rows);
    runs.iter_mut().for_each(|run| run.retain(|unit| units.contains_key(&unit.key)));
    runs.retain(|run| !run.is_empty());
    let now = match unit_sums(portion, runs, &*encoding.encoders, options, control) {
        Err(error) if error.kind() == Kind::Value => return Ok(false),
        now => now?,
    };
    Ok(units.iter().all(|(key, unit)| now.get(key) == Some(&unit.tally)))
}
