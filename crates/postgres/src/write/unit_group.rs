//! Small units that are committed together: a commit waits for the disk, which takes longer than sending a
//! small file.

use sawmill_loader::Arrived;
use sawmill_source::Unit;

/// Limits of a transaction with several units; its last unit may exceed them. After a lost connection or a
/// value that cannot be loaded, the units of the open transaction are sent again, so they are kept few.
const MAX_ROWS: u64 = 64 << 10;
const MAX_BYTES: u64 = 8 << 20;
const MAX_UNITS: usize = 512;

/// The units of the open transaction.
#[derive(Default)]
pub(crate) struct UnitGroup {
    pub units: Vec<Arrived>,
    /// Rows that were sent and not rejected.
    pub rows: u64,
    bytes: u64,
}

impl UnitGroup {
    /// Adds a unit whose rows took `bytes` bytes.
    pub(crate) fn add(&mut self, unit: Arrived, bytes: u64) {
        self.rows += unit.tally.rows;
        self.bytes += bytes;
        self.units.push(unit);
    }

    /// Whether it is time to commit the units. No unit has more than `unit_rows` rows.
    pub(crate) fn is_full(&self, unit_rows: u64) -> bool {
        let most = MAX_ROWS.min(unit_rows);
        // Planned rows also count, since a unit may have no rows in a flat table.
        self.rows.max(self.planned_rows()) >= most || self.bytes >= MAX_BYTES || self.units.len() >= MAX_UNITS
    }

    /// Rows of the units as planned, rejected ones included.
    pub(crate) fn planned_rows(&self) -> u64 {
        self.units.iter().map(|arrived| arrived.unit.rows).sum()
    }

    /// Finds the unit of the n-th row that was sent, counted from 0, and the row's number in it. Rows after
    /// the group's belong to the unit `under_way`.
    pub(crate) fn unit_of<'u>(&'u self, row: u64, under_way: Option<&'u Unit>) -> Option<(&'u Unit, u64)> {
        let mut row = row;
        for Arrived { unit, tally } in &self.units {
            match row.checked_sub(tally.rows) {
                None => return Some((unit, row)),
                Some(behind) => row = behind,
            }
        }
        under_way.map(|unit| (unit, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sawmill_loader::Tally;
    use sawmill_source::UnitKey;

    fn unit(file: u32, rows: u64) -> Unit {
        Unit { key: UnitKey { file, row_group: 0, first_row: 0 }, rows, bytes: 0 }
    }

    fn group(units: &[u64]) -> UnitGroup {
        let mut group = UnitGroup::default();
        for (file, rows) in (0..).zip(units) {
            group
                .add(Arrived { unit: unit(file, *rows), tally: Tally { rows: *rows, ..Tally::empty(0) } }, 1);
        }
        group
    }

    #[test]
    fn a_group_is_full_with_as_many_rows_as_one_unit_may_have() {
        assert!(!group(&[40, 59]).is_full(100));
        assert!(group(&[40, 60]).is_full(100));
        assert!(group(&[1000]).is_full(100));
        assert!(!group(&[60_000]).is_full(1 << 20));
        assert!(group(&[60_000, 6000]).is_full(1 << 20));
        assert!(group(&[1; MAX_UNITS]).is_full(1 << 20));
    }

    #[test]
    fn a_row_that_was_sent_is_found_in_its_unit() {
        let (group, last) = (group(&[3, 0, 2]), unit(9, 5));
        let found = |row| group.unit_of(row, Some(&last)).map(|(unit, row)| (unit.key.file, row));
        assert_eq!([0, 2, 3, 4].map(found), [(0, 0), (0, 2), (2, 0), (2, 1)].map(Some));
        assert_eq!(found(6), Some((9, 1)));
        assert_eq!(group.unit_of(5, None).map(|(unit, _)| unit.key.file), None);
    }
}
