//! The records of loads whose units have rows of several files, when rows of one of these are replaced.

use sawmill_loader::{LoadRecord, REPLACED, Tally};
use sawmill_source::Result;

use crate::records::checkpoint::{Records, UNITS, UNITS_UNLOGGED, signed};

/// The condition that the units of a load `l` have rows of several files.
pub(crate) const IS_IN_ORDER: &str = "(strpos(coalesce(l.facts, ''), '\"order\":\"') > 0)";

/// The sum of rows without others, which may be of other columns.
pub(crate) fn without(rows: &Tally, others: &Tally) -> Tally {
    let of_others = others.non_null.iter().copied().chain(std::iter::repeat(0));
    Tally {
        rows: rows.rows.saturating_sub(others.rows),
        content_sum: rows.content_sum.minus(others.content_sum),
        non_null: rows.non_null.iter().zip(of_others).map(|(all, of)| all.saturating_sub(of)).collect(),
    }
}

impl Records<'_> {
    /// The loads into the table of `but`, except that one, whose rows are in order over all files and still contain rows of
    /// some of these.
    pub(crate) fn in_order_with(&self, but: &LoadRecord, names: &[String]) -> Result<Vec<LoadRecord>> {
        let condition = format!(
            "table_oid = $1 AND load_id <> $2 AND mode <> 'upsert' AND {IS_IN_ORDER} \
             AND EXISTS (SELECT FROM unnest(l.files, l.fingerprints) f(name, print) \
               WHERE name = ANY ($3) AND right(print, $4) <> $5) ORDER BY begun"
        );
        let length = REPLACED.len() as i32;
        self.loads(&condition, &[&i64::from(but.table_oid), &but.id, &names, &length, &REPLACED])
    }

    /// The units of the other loads into that table that have rows of these files alone.
    pub(crate) fn units_of_files(&self, but: &LoadRecord, names: &[String]) -> Result<Vec<Tally>> {
        let sql = format!(
            "SELECT u.rows, u.content_sum, u.non_null FROM {} u JOIN {} l USING (load_id) \
             WHERE l.table_oid = $1 AND l.load_id <> $2 AND l.mode <> 'upsert' \
             AND NOT {IS_IN_ORDER} AND l.files[u.file + 1] = ANY ($3)",
            self.all_units(),
            self.table("loads")
        );
        let rows = self.link.rows(&sql, &[&i64::from(but.table_oid), &but.id, &names])?;
        rows.into_iter().map(|unit| self.tally(unit)).collect()
    }

    /// Leaves a load one unit: the sum of those that it has, without these rows.
    pub(crate) fn take_rows(&self, id: &str, rows: &Tally) -> Result<()> {
        let mut there = Tally::default();
        self.units(id)?.values().for_each(|unit| there.add(unit));
        let left = without(&there, rows);
        for table in [UNITS, UNITS_UNLOGGED] {
            let delete = format!("DELETE FROM {} WHERE load_id = $1", self.table(table));
            self.link.execute(&delete, &[&id])?;
        }
        let insert = format!(
            "INSERT INTO {} (load_id, file, row_group, first_row, rows, content_sum, non_null) \
             VALUES ($1, 0, 0, 0, $2, $3, $4)",
            self.units_table()
        );
        let (count, sum) = (left.rows as i64, left.content_sum.to_string());
        self.link.execute(&insert, &[&id, &count, &sum, &signed(&left.non_null)]).map(drop)
    }
}
