//! Sources that are in order already: their statistics show it, and reading the time of each row makes sure.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sawmill_profile::{Control, Result};

use super::Order;
use super::addressed::{RowAddress, address_of};
use super::index::{Index, Part, Stretch};
use super::keys::{Keying, whole};
use super::partition::Slot;
use crate::condition::pruning::{Bounds, Known, Nulls};
use crate::units::{Source, Unit};

/// A row group within one partition.
struct Group {
    slot: Slot,
    /// Its times, if the rows are sorted.
    times: (i128, i128),
    unit: Unit,
}

/// Returns the index of a source whose row groups each lie in one partition, do not overlap and are sorted;
/// `None` for others. `time` is the column to sort by.
pub(super) fn in_order(
    source: &dyn Source,
    order: &Order,
    keying: &Keying,
    control: &Control<'_>,
) -> Result<Option<Index>> {
    let time = order.sort_by.as_deref().and_then(|name| source.schema().index_of(name).ok());
    let Some(mut groups) = groups(source, order, keying, time)? else { return Ok(None) };
    if groups.is_empty() {
        return Ok(None);
    }
    groups.sort_by(|a, b| (&a.slot, a.times, a.unit.key).cmp(&(&b.slot, b.times, b.unit.key)));
    let overlaps = |a: &Group, b: &Group| {
        // Rows with the same time keep the order of the input.
        let follows = a.times.1 < b.times.0 || (a.times.1 == b.times.0 && a.unit.key < b.unit.key);
        a.slot == b.slot && !follows
    };
    if time.is_some() && groups.windows(2).any(|pair| overlaps(&pair[0], &pair[1])) {
        return Ok(None);
    }
    if let Some(time) = time
        && !are_sorted(source, time, &groups, control)?
    {
        return Ok(None);
    }
    let (mut parts, mut stretches) = (Vec::<Part>::new(), Vec::new());
    let mut first = 0;
    for Group { slot, unit, .. } in groups {
        let len = u32::try_from(unit.bytes / unit.rows.max(1)).unwrap_or(u32::MAX);
        let Some(at) = address_of(unit.key) else { return Ok(None) };
        let address = RowAddress { file: unit.key.file, at, len };
        stretches.push(Stretch { first, rows: unit.rows, address });
        match parts.last_mut().filter(|part| part.slot == slot) {
            Some(part) => {
                part.rows += unit.rows;
                part.bytes += unit.bytes;
            }
            None => parts.push(Part { slot, first, rows: unit.rows, bytes: unit.bytes }),
        }
        first += unit.rows;
    }
    Ok(Some(Index::of_row_groups(parts, stretches)))
}

/// The row groups, if each lies in one partition according to its statistics.
fn groups(
    source: &dyn Source,
    order: &Order,
    keying: &Keying,
    time: Option<usize>,
) -> Result<Option<Vec<Group>>> {
    if !source.facts().counts_all_rows {
        return Ok(None);
    }
    let by = order.partition_by.as_ref();
    let decides = by.and_then(|by| source.schema().index_of(by.column()).ok());
    let (mut groups, mut file) = (Vec::new(), None);
    let (mut of_time, mut of_partition) = (Vec::new(), Vec::new());
    let mut units = source.plan(u64::MAX).concat();
    units.sort_unstable_by_key(|unit| unit.key);
    for unit in units {
        if file != Some(unit.key.file) {
            let known = |column: Option<usize>| match column {
                Some(column) => source.known(unit.key.file, column),
                None => Ok(Vec::new()),
            };
            (of_time, of_partition) = (known(time)?, known(decides)?);
            file = Some(unit.key.file);
        }
        let row_group = unit.key.row_group as usize;
        let times = match (time, of_time.get(row_group)) {
            (None, _) => (0, 0),
            (_, Some(Known { bounds: Some(Bounds::Whole(low, high)), nulls: Nulls::None })) => (*low, *high),
            _ => return Ok(None),
        };
        let slot = match decides {
            None => Some(Slot::All),
            Some(_) => of_partition.get(row_group).and_then(|known| keying.slot_of(known)),
        };
        let Some(slot) = slot else { return Ok(None) };
        groups.push(Group { slot, times, unit });
    }
    Ok(Some(groups))
}

/// Reads the times of all rows, on all cores, until one is before the one above it or missing.
fn are_sorted(source: &dyn Source, time: usize, groups: &[Group], control: &Control<'_>) -> Result<bool> {
    let sorted = AtomicBool::new(true);
    let reader = || source.reader_of(&[time], 8192);
    control.on_all_cores("order", groups, reader, |reader, group, control| {
        if !sorted.load(Relaxed) {
            return Ok(());
        }
        reader.start(&group.unit)?;
        let mut last = i64::MIN;
        while let Some(batch) = reader.next_batch()? {
            control.check()?;
            let times = batch.columns().first().and_then(|column| whole(column.as_ref())).unwrap_or_default();
            for time in times {
                if time.is_none_or(|time| time < last) {
                    sorted.store(false, Relaxed);
                    // The rest of the unit is not read.
                    return Ok(());
                }
                last = time.unwrap_or(last);
            }
        }
        Ok(())
    })?;
    Ok(sorted.into_inner())
}
