//! The numbers of a nested source's records, with which the keys of its flat tables begin.

use sawmill_source::{Source, Unit, UnitKey};

/// The number of each record, from 0, in the order of files, of their row groups, and of the rows in these.
#[derive(Debug)]
pub(crate) struct RecordNumbers {
    /// The number of the first record of each row group, with file and row group.
    groups: Vec<(u64, (u32, u32))>,
}

impl RecordNumbers {
    pub(crate) fn new(source: &dyn Source) -> Self {
        // One unit for a row group.
        let mut units: Vec<Unit> = source.plan(u64::MAX).into_iter().flatten().collect();
        units.sort_unstable_by_key(|unit| unit.key);
        let mut groups: Vec<(u64, (u32, u32))> = Vec::new();
        let mut records = 0;
        for unit in units {
            let group = (unit.key.file, unit.key.row_group);
            if groups.last().is_none_or(|(_, last)| *last != group) {
                groups.push((records, group));
            }
            records += unit.rows;
        }
        Self { groups }
    }

    /// The number of the first record of a row group; 0 if the source lacks it.
    pub(crate) fn of_group(&self, file: u32, row_group: u32) -> u64 {
        let at = self.groups.binary_search_by_key(&(file, row_group), |(_, group)| *group);
        at.ok().and_then(|at| self.groups.get(at)).map_or(0, |(first, _)| *first)
    }

    /// The number of a unit's first record.
    pub(crate) fn of_unit(&self, unit: UnitKey) -> u64 {
        self.of_group(unit.file, unit.row_group) + unit.first_row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_numbered_across_row_groups_and_files() {
        let numbers = RecordNumbers { groups: vec![(0, (0, 0)), (10, (0, 2)), (15, (1, 0))] };
        let key = |file, row_group, first_row| UnitKey { file, row_group, first_row };
        for (unit, number) in [(key(0, 0, 9), 9), (key(0, 2, 4), 14), (key(1, 0, 0), 15)] {
            assert_eq!(numbers.of_unit(unit), number);
        }
    }
}
