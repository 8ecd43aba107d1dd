//! Rows of a source that are equal to each other; under a primary key, only one of them fits into a table.
//!
//! Two readings of the source find them by the hashes of their rows. If there are more rows than
//! [`LoadOptions::locate_rows`](sawmill_loader::LoadOptions::locate_rows), the first reading is repeated for one
//! part of the hashes after the other. So that option and the number of equal rows bound the memory.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use sawmill_loader::{Block, LoadOptions, Mark, Reread, Tally};
use sawmill_source::{Control, Result, Source, Unit, UnitKey};
use xxhash_rust::xxh3::xxh3_128;

use crate::encode::canonical;
use crate::encode::encoder::EncodePlan;
use crate::verify::table::reread;
use crate::write::writer::{shown_key, values_of};

/// A row of the source, by file, row group and number in the row group.
pub(crate) type Place = (u32, u32, u64);

/// Rows with equal values.
#[derive(Debug, Default)]
pub(crate) struct Equal {
    /// Each with its unit, in the order of the source.
    pub rows: Vec<(Place, UnitKey)>,
    /// Their key, for messages.
    pub key: String,
    /// The sum of one of them.
    pub one: Tally,
}

/// Finds all rows that are equal to another one. `names` are the columns of the primary key.
pub(crate) fn equal_rows(
    source: &dyn Source,
    encode: &Arc<EncodePlan>,
    (options, unit_rows): (&LoadOptions, u64),
    names: &[String],
    control: &Control<'_>,
) -> Result<Vec<Equal>> {
    let parts = u128::from(source.rows().div_ceil(options.locate_rows.max(1)).max(1));
    let mut repeated = HashSet::new();
    for part in 0..parts {
        let look = |hashes: &mut Vec<u128>, found: Reread<'_>| {
            if let Reread::Rows(block) = found {
                let of_rows = rows_of(encode, block).map(|(_, values)| xxh3_128(values));
                hashes.extend(of_rows.filter(|hash| hash % parts == part));
            }
            Ok(())
        };
        let mut hashes = reread(source, encode, options, unit_rows, control, Vec::new, look)?.concat();
        hashes.sort_unstable();
        repeated.extend(hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
    }
    if repeated.is_empty() {
        return Ok(Vec::new());
    }
    let look = |located: &mut Located, found: Reread<'_>| {
        match (found, located.unit) {
            (Reread::Unit(unit), _) => located.unit = Some(*unit),
            (Reread::Rows(block), Some(unit)) => {
                for (mark, values) in rows_of(encode, block) {
                    let hash = xxh3_128(values);
                    if !repeated.contains(&hash) {
                        continue;
                    }
                    let row = unit.key.first_row + u64::from(mark.row);
                    located.rows.push((hash, ((unit.key.file, unit.key.row_group, row), unit.key)));
                    let key = located.keys.entry(hash);
                    key.or_insert_with(|| {
                        let one = canonical::sent_row(values, encode.plan.columns.len());
                        (shown_key(&encode.plan, names, values), one)
                    });
                }
            }
            _ => {}
        }
        Ok(())
    };
    let threads = reread(source, encode, options, unit_rows, control, Located::default, look)?;
    let mut groups: BTreeMap<u128, Equal> = BTreeMap::new();
    for Located { rows, keys, .. } in threads {
        rows.into_iter().for_each(|(hash, row)| groups.entry(hash).or_default().rows.push(row));
        for (hash, (key, one)) in keys {
            let equal = groups.entry(hash).or_default();
            (equal.key, equal.one) = (key, one);
        }
    }
    let mut groups: Vec<Equal> = groups.into_values().collect();
    groups.iter_mut().for_each(|equal| equal.rows.sort_unstable());
    groups.sort_unstable_by(|a, b| a.rows.cmp(&b.rows));
    Ok(groups)
}

#[derive(Default)]
struct Located {
    unit: Option<Unit>,
    rows: Vec<(u128, (Place, UnitKey))>,
    keys: BTreeMap<u128, (String, Tally)>,
}

/// Each row's mark and values.
pub(crate) fn rows_of<'b>(
    encode: &'b EncodePlan,
    block: &'b Block,
) -> impl Iterator<Item = (Mark, &'b [u8])> + 'b {
    block.marks.iter().flat_map(move |marks| {
        let numbered = marks.rows.iter().enumerate();
        numbered.map(move |(i, mark)| (*mark, values_of(&encode.plan, &block.bytes, marks, i)))
    })
}
