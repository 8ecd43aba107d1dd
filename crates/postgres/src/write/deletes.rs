//! Rows that delete: a mark of the source says which ones, and each removes the row of its key before the others are
//! merged. In mode history it closes the current version.

use std::sync::Arc;

use arrow_schema::Schema;
use sawmill_loader::{TableName, quote};
use sawmill_pgcopy::{Column, ColumnType, PgType};
use sawmill_profile::format_counted;
use sawmill_source::{DELETES, Error, Kind, Result};

use crate::table::columns::{self, TableColumn, list};
use crate::target::Postgres;
use crate::write::refusals::LEAVE_OUT;
use crate::write::upsert::{Matching, Merge, OnConflict};

/// The SQL type `boolean`.
const BOOLEAN: u32 = 16;

/// The end of a clause that selects the first row.
const FIRST: &str = " ORDER BY ctid LIMIT 1";

impl Postgres {
    /// The columns with these names that the source fills, matched by name. With deletes the mark is one of them, and
    /// columns of their condition that the table lacks are left out.
    pub(crate) fn matched(
        &self,
        names: &[String],
        schema: &Schema,
        existing: &[TableColumn],
        table: &TableName,
    ) -> Result<Arc<Vec<Column>>> {
        let Some(tested) = &self.deletes else {
            return columns::matched_of(names, schema, existing, table, &self.values);
        };
        let has = |name: &str| existing.iter().any(|column| column.name == name);
        if has(DELETES) {
            let what = format!("the table has a column {DELETES:?}, whose name the load needs for its mark");
            return Err(Error::new(Kind::Schema, what)
                .at(format!("table {table}"))
                .advise("rename the table's column"));
        }
        let names = names.iter().filter(|name| has(name) || !tested.contains(name));
        let names: Vec<String> = names.cloned().collect();
        let mark = TableColumn {
            name: DELETES.to_owned(),
            type_name: "boolean".to_owned(),
            type_oid: BOOLEAN,
            modifier: -1,
            column_type: Some(ColumnType::Plain(PgType::Bool)),
            ..TableColumn::default()
        };
        let existing: Vec<TableColumn> = existing.iter().cloned().chain([mark]).collect();
        columns::matched_of(&names, schema, &existing, table, &self.values)
    }

    /// The columns of a new table, without the mark and the columns of its condition.
    pub(crate) fn without_tested(&self, columns: Arc<Vec<Column>>) -> Arc<Vec<Column>> {
        let Some(tested) = &self.deletes else { return columns };
        let mut columns = without_mark(&columns);
        let is_needed = |name: &String| self.key.contains(name) || self.on_conflict.newest() == Some(name);
        columns.retain(|column| is_needed(&column.name) || !tested.contains(&column.name));
        Arc::new(columns)
    }

    /// What the table that gathers the rows of an upsert selects from the target, so that it has its types.
    pub(crate) fn gathered(&self, columns: &[Column]) -> String {
        match self.deletes.is_some() {
            true => format!("{}, false AS {}", list(&without_mark(columns)), quote(DELETES)),
            false => list(columns),
        }
    }
}

impl Matching<'_> {
    /// The columns that are merged: all but the mark.
    pub(crate) fn merged(self, columns: &[Column]) -> Vec<Column> {
        if self.deletes { without_mark(columns) } else { columns.to_vec() }
    }

    /// The clause that selects the first gathered row that is to delete another and has a null in its key.
    pub(crate) fn first_without_key(self) -> String {
        let null = self.each(|name| name + " IS NULL", " OR ");
        format!("WHERE {} AND ({null}){FIRST}", quote(DELETES))
    }
}

fn without_mark(columns: &[Column]) -> Vec<Column> {
    columns.iter().filter(|column| column.name != DELETES).cloned().collect()
}

/// What the marked rows did.
#[derive(Default)]
pub(crate) struct Deleted {
    /// Marked rows, the newest of each key.
    pub marked: u64,
    /// Rows of the table that they deleted, or versions that they closed.
    pub rows: u64,
    /// Rows that are still there: a trigger or a rule kept them.
    pub kept: u64,
}

impl Merge<'_> {
    /// Deletes the rows of the table that the marked rows name, and then takes these out of the staging table. With
    /// [`OnConflict::KeepNewest`] it deletes no row that is newer.
    ///
    /// # Errors
    /// A marked row has a null in its key, or shares it with another row; errors of the server. With `verify`, a row that
    /// is still there.
    pub(super) fn delete_marked(&self) -> Result<Deleted> {
        let (link, mark) = (self.link, quote(DELETES));
        let (into, from) = (self.table.quoted(), self.gathered.quoted());
        self.refuse_nulls()?;
        // The newest row of a key is the only one that is left.
        self.refuse_shared()?;
        let found = self.is_deleted();
        let delete = match self.matching.on_conflict {
            OnConflict::History(_) => {
                self.lock()?;
                format!("UPDATE {into} t SET valid_to = now(), \"current\" = false FROM {from} w")
            }
            _ => format!("DELETE FROM {into} t USING {from} w"),
        };
        let rows = link.execute(&format!("{delete} WHERE w.{mark} AND {found}"), &[])?;
        // Deferred triggers would put rows back after the comparison.
        link.batch("SET CONSTRAINTS ALL IMMEDIATE")?;
        let still = format!(
            "SELECT count(*) FROM {from} w WHERE w.{mark} AND EXISTS (SELECT FROM {into} t WHERE {found})"
        );
        let kept = link.value::<i64>(&still, &[])? as u64;
        if self.verify && kept > 0 {
            let what =
                format!("a trigger or a rule of the table keeps {} to delete", format_counted(kept, "row"));
            return Err(Error::new(Kind::Mismatch, what)
                .at(self.place())
                .advise("nothing was merged; a load without --verify deletes the others"));
        }
        let marked = link.execute(&format!("DELETE FROM {from} w WHERE w.{mark}"), &[])?;
        Ok(Deleted { marked, rows, kept })
    }

    /// The condition that the row `t` of the table is the one that the marked row `w` deletes.
    fn is_deleted(&self) -> String {
        let same_key = self.matching.same_key();
        match self.matching.on_conflict {
            OnConflict::History(_) => format!("t.\"current\" AND {same_key}"),
            OnConflict::KeepNewest(newest) => {
                let newest = quote(newest);
                format!("{same_key} AND (t.{newest} IS NULL OR t.{newest} <= w.{newest})")
            }
            OnConflict::Update | OnConflict::Keep | OnConflict::ReplaceFiles(_) => same_key,
        }
    }

    fn refuse_nulls(&self) -> Result<()> {
        let (from, clause) = (self.gathered.quoted(), self.matching.first_without_key());
        let count = clause.replace(FIRST, "");
        let sql = format!(
            "SELECT (SELECT count(*) FROM {from} {count}), left(w::text, 200) FROM {from} w {clause}"
        );
        let found: Option<(i64, String)> = self.link.first(&sql, &[])?;
        let Some((nulls, first)) = found else { return Ok(()) };
        let rows = format_counted(nulls as u64, "row");
        let what = format!("the key of {rows} to delete has a null; the first is {first}");
        Err(self.refused_deletion(&what, LEAVE_OUT))
    }

    fn refuse_shared(&self) -> Result<()> {
        let Some(twice) = self.doubled(&format!("bool_or({})", quote(DELETES)))? else { return Ok(()) };
        let key = self.matching.listed();
        let what = format!("a row to delete and other rows of the source have the same key ({key}): {twice}");
        let advice = "name the column that says which row of a key is the newest (--newest)";
        Err(self.refused_deletion(&what, advice))
    }

    fn refused_deletion(&self, what: &str, otherwise: &str) -> Error {
        Error::new(Kind::Value, what).at(self.place()).advise(format!(
            "correct the rows, and run the same command again; or forget the load (sawmill load forget), and {otherwise}"
        ))
    }
}

impl Deleted {
    /// The line of the report; none without marked rows.
    pub(crate) fn note(&self, on_conflict: &OnConflict) -> Option<String> {
        let &Self { marked, rows, kept } = self;
        let done = match on_conflict {
            OnConflict::History(_) => format!("closed {}", format_counted(rows, "version")),
            _ => format!("deleted {}", format_counted(rows, "row")),
        };
        let without = match (marked.saturating_sub(rows).saturating_sub(kept), on_conflict) {
            (0, _) => "",
            (_, OnConflict::KeepNewest(_)) => "; it has no row with the other keys, or a newer one",
            _ => "; it has no row with the other keys",
        };
        (marked > 0).then(|| format!("{} {done} of the table{without}", format_counted(marked, "marked row")))
    }
}
