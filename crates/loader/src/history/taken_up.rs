//! Interrupted loads of files that are read by other options now, or have other content.

use std::collections::{BTreeMap, HashMap};

use sawmill_source::{Control, Kind, Result, Source, Unit, UnitKey};

use crate::engine::load::LoadOptions;
use crate::history::append::History;
use crate::history::portion::Portion;
use crate::history::record::{LoadRecord, RecordedUnit};
use crate::identity::recheck::unit_sums;

/// The units that an interrupted load has committed, if all of their rows are those that its files, `portion`, have now, so
/// that it may go on with these. Each is where its rows are if the records that are left out now do not count. `None` if it
/// has committed no unit, or if some cannot be compared.
///
/// # Errors
/// No connection; a file that cannot be read.
pub fn held_units(
    history: &dyn History,
    load: &LoadRecord,
    portion: &Portion<'_>,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<Option<BTreeMap<UnitKey, Unit>>> {
    let units: BTreeMap<UnitKey, RecordedUnit> = history.units(load)?.into_iter().collect();
    if units.is_empty() || units.values().any(|unit| unit.rejected > 0) {
        return Ok(None);
    }
    let Some(encoding) = history.encoding(load, portion, &units)? else { return Ok(None) };
    let now_at = |key: &UnitKey| {
        let name = load.files.names.get(key.file as usize)?;
        let counted = load.facts.records_left_out.contains_key(name);
        let left_out = options.records_left_out.get(name).filter(|_| !counted);
        let before = left_out.map_or(0, |numbers| numbers.partition_point(|row| *row < key.first_row));
        Some(UnitKey { first_row: key.first_row.checked_sub(before as u64)?, ..*key })
    };
    let moved = |(key, unit): (&UnitKey, &RecordedUnit)| {
        Some((*key, Unit { key: now_at(key)?, rows: unit.tally.rows, bytes: 0 }))
    };
    let Some(moved) = units.iter().map(moved).collect::<Option<BTreeMap<UnitKey, Unit>>>() else {
        return Ok(None);
    };
    let groups = portion.plan(u64::MAX).into_iter().flatten();
    let groups: HashMap<(u32, u32), u64> =
        groups.map(|group| ((group.key.file, group.key.row_group), group.rows)).collect();
    let is_there = |unit: &Unit| {
        let rows = groups.get(&(unit.key.file, unit.key.row_group));
        rows.is_some_and(|rows| unit.key.first_row + unit.rows <= *rows)
    };
    let is_apart = |(unit, next): (&Unit, &Unit)| {
        (unit.key.file, unit.key.row_group) != (next.key.file, next.key.row_group)
            || unit.key.first_row + unit.rows <= next.key.first_row
    };
    if !moved.values().all(is_there) || !moved.values().zip(moved.values().skip(1)).all(is_apart) {
        return Ok(None);
    }
    let runs = moved.values().map(|unit| vec![*unit]).collect();
    let now = match unit_sums(portion, runs, &*encoding.encoders, options, control) {
        Err(error) if error.kind() == Kind::Value => return Ok(None),
        now => now?,
    };
    let is_same = |(key, unit): (&UnitKey, &Unit)| {
        units.get(key).is_some_and(|was| now.get(&unit.key) == Some(&was.tally))
    };
    Ok(moved.iter().all(is_same).then_some(moved))
}
