//! Part tables: each is filled by one worker, found by the records of its units, and becomes a partition of the
//! staging table.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use sawmill_loader::{PART, Share, TableName};
use sawmill_source::Result;

use crate::records::checkpoint::Records;

/// A committed part table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartTable {
    pub name: TableName,
    /// The table is already its parent.
    pub attached: bool,
}

/// The part tables of a load, in the order of creation.
pub(crate) fn of_load(records: &Records<'_>, id: &str) -> Result<Vec<PartTable>> {
    let sql = format!(
        "SELECT n.nspname::text, c.relname::text, EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhrelid = c.oid) \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.oid IN (SELECT part_oid FROM {} u WHERE load_id = $1) ORDER BY c.oid",
        records.all_units()
    );
    let part = |(schema, name, attached): (String, String, bool)| {
        Ok(PartTable { name: TableName::new(Some(&schema), &name)?, attached })
    };
    records.link.rows(&sql, &[&id])?.into_iter().map(part).collect()
}

/// A number higher than any of the load's part tables has.
pub(crate) fn next_number(parts: &[PartTable]) -> u32 {
    let number = |part: &PartTable| {
        let (_, digits) = part.name.name().rsplit_once('_')?;
        digits.parse::<u32>().ok()
    };
    parts.iter().filter_map(number).max().map_or(1, |highest| highest.saturating_add(1))
}

/// The numbers of the part tables that a run creates.
pub(crate) struct Numbers {
    next: AtomicU32,
    step: u32,
}

impl Numbers {
    /// The numbers from `first`; of several parts of a load each has its own.
    pub(crate) fn from(first: u32, share: Share) -> Self {
        let (step, place) = match share {
            Share::Part(part) => (part.parts(), part.number() - 1),
            Share::Whole | Share::Finish => (1, 0),
        };
        let next = first.saturating_add((place + step - first % step) % step);
        Self { next: AtomicU32::new(next), step }
    }

    /// The next number.
    pub(crate) fn next(&self) -> u32 {
        self.next.fetch_add(self.step, Relaxed)
    }
}

/// Drops unlogged part tables without records: a crash of the server has emptied them and the records of
/// their units.
pub(crate) fn drop_emptied(records: &Records<'_>, table: &TableName) -> Result<()> {
    let Some(schema) = table.schema() else { return Ok(()) };
    // Before it commits, another run's part table is not visible, and then its records are.
    let sql = format!(
        "SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relpersistence = 'u' AND strpos(c.relname::text, $2) > 0 \
         AND NOT EXISTS (SELECT FROM {} u WHERE u.part_oid = c.oid)",
        records.all_units()
    );
    for name in records.link.list::<String>(&sql, &[&schema, &PART])? {
        if table.has_part(&name) {
            let part = TableName::new(Some(schema), &name)?;
            records.link.batch(&format!("DROP TABLE {}", part.quoted()))?;
        }
    }
    Ok(())
}

/// Drops the part tables of a load, which needs them no more, in the caller's transaction.
pub(crate) fn drop_of_load(records: &Records<'_>, id: &str) -> Result<()> {
    for part in of_load(records, id)? {
        records.link.batch(&format!("DROP TABLE IF EXISTS {}", part.name.quoted()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sawmill_loader::Part;

    #[test]
    fn parts_of_a_load_never_number_their_tables_alike() {
        for first in [1, 5, 8] {
            let mut all = Vec::new();
            for part in 1..=3 {
                // A process that begins later finds some of the tables of the others.
                for first in first..first + 4 {
                    let numbers = Numbers::from(first, Share::Part(Part::new(part, 3).unwrap()));
                    let own: Vec<u32> = (0..4).map(|_| numbers.next()).collect();
                    assert!(own.iter().all(|number| *number >= first));
                    all.extend(own.into_iter().map(|number| (number, part)));
                }
            }
            all.sort_unstable();
            assert!(all.windows(2).all(|two| two[0].0 != two[1].0 || two[0].1 == two[1].1));
        }
        let alone = Numbers::from(7, Share::Whole);
        assert_eq!([alone.next(), alone.next()], [7, 8]);
    }
}
