//! Puts flat tables in place: their final names, and their keys.

use std::collections::HashMap;

use sawmill_loader::{LoadOptions, LoadReport, Mode, TableName, fitted, quote, retry_lost};
use sawmill_pgwire::KnownServer;
use sawmill_source::{Control, Result};

use super::PostgresTables;
use crate::nested::flat_tables::FlatTable;
use crate::table::blockers;
use crate::table::catalogue::{FoundTable, Link, find, name_of};
use crate::table::replaced::{self, Replaced};
use crate::target::Postgres;
use crate::types::made_types;

impl PostgresTables<'_> {
    /// The tables of lists, each with the table that its key refers to.
    pub(super) fn references(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.tables.iter().enumerate().filter_map(|(child, table)| Some((child, table.parent?)))
    }

    /// Puts complete tables in place, all in one transaction. Returns the notes on each.
    pub(super) fn place(
        &self,
        server: &KnownServer,
        targets: &[Postgres],
        reports: &[LoadReport],
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Vec<Vec<String>>> {
        let names: Vec<&TableName> = targets.iter().map(|target| &target.table).collect();
        let checkpoints = self.checkpoints()?;
        retry_lost(options.retries, control, || {
            let connection = server.connect(control)?;
            let link = Link::new(&connection, control);
            let records = checkpoints.on(link);
            records.link.batch("BEGIN")?;
            for (target, report) in targets.iter().zip(reports) {
                records.refuse_lost(target.load_id(), &report.content)?;
            }
            let mut staged: HashMap<usize, TableName> = HashMap::new();
            for (i, name) in names.iter().enumerate() {
                if find(link, &name.staging())?.is_some() {
                    staged.insert(i, name.staging());
                }
            }
            let now = |i: usize| staged.get(&i).unwrap_or(names[i]);
            let created_keys = match self.foreign_keys {
                true => self.add_keys(link, &names, &now)?,
                false => Vec::new(),
            };
            let mut notes: Vec<Vec<String>> = vec![Vec::new(); names.len()];
            let stale = self.stale(link, &names)?;
            let dropped = self.drop_stale(link, &stale)?;
            notes.iter_mut().take(1).for_each(|notes| notes.extend(dropped.clone()));
            let mut replaced = Vec::new();
            // Tables of lists come before those that they refer to.
            for (i, name) in names.iter().enumerate().rev().filter(|(i, _)| staged.contains_key(i)) {
                if let (Mode::Replace, Some(FoundTable { oid, .. })) = (self.postgres.mode, find(link, name)?)
                {
                    let old = blockers::named(link, || Replaced::locked(link, name, oid))?;
                    replaced.push((i, old));
                    records.delete_of_table(oid, targets[i].load_id())?;
                    made_types::drop_table(link, name, oid)?;
                }
                let rename = format!("ALTER TABLE {} RENAME TO {}", now(i).quoted(), quote(name.name()));
                link.batch(&rename)?;
            }
            for (i, key) in created_keys.into_iter().filter(|(i, _)| staged.contains_key(i)) {
                let (table, name) = (names[i].quoted(), key_name(names[i]));
                let rename =
                    format!("ALTER TABLE {table} RENAME CONSTRAINT {} TO {}", quote(&key), quote(&name));
                link.batch(&rename)?;
            }
            for (i, old) in replaced {
                let lost = old.hand_on(link, names[i])?;
                notes[i].extend(replaced::note(names[i], &lost));
            }
            link.commit_durably()?;
            Ok(notes)
        })
    }

    /// Adds the missing keys to the tables, which are called `now`. Returns the primary keys that it created,
    /// by table.
    fn add_keys<'n>(
        &self,
        link: Link<'_>,
        names: &[&TableName],
        now: &dyn Fn(usize) -> &'n TableName,
    ) -> Result<Vec<(usize, String)>> {
        let mut created = Vec::new();
        for (i, table) in self.tables.iter().enumerate() {
            // The index of the replaced table may have the final name: the key is renamed afterwards.
            let key = key_name(now(i));
            if !has_constraint(link, now(i), "contype = 'p'")? {
                link.batch(&self.primary_key(table, now(i), &key))?;
                created.push((i, key));
            }
        }
        for (child, parent) in self.references() {
            let name = reference_name(names[child]);
            let there = format!("contype = 'f' AND conname = '{}'", name.replace('\'', "''"));
            if !has_constraint(link, now(child), &there)? {
                let key = foreign_key(&self.tables[parent], now(child), now(parent), &name);
                link.batch(&key)?;
            }
        }
        Ok(created)
    }

    /// The tables of lists that an earlier load has created and that the source no longer has.
    pub(super) fn stale(&self, link: Link<'_>, names: &[&TableName]) -> Result<Vec<(u32, TableName)>> {
        let (checkpoints, mut stale) = (self.checkpoints()?, Vec::<(u32, TableName)>::new());
        let Some(rows) = names.first().filter(|_| self.postgres.mode == Mode::Replace) else {
            return Ok(stale);
        };
        let records = checkpoints.on(link);
        if !records.exist()? {
            return Ok(stale);
        }
        let prefix = format!("{}_", rows.name());
        for oid in records.tables_of_lists(&rows.to_string())? {
            let Some(name) = name_of(link, oid)? else { continue };
            let below = name.schema() == rows.schema() && name.name().starts_with(&prefix);
            let known = stale.iter().any(|(known, _)| *known == oid);
            if below && !known && !name.is_staging() && !names.contains(&&name) {
                stale.push((oid, name));
            }
        }
        Ok(stale)
    }

    /// Drops such tables, with their records. Returns a note.
    fn drop_stale(&self, link: Link<'_>, stale: &[(u32, TableName)]) -> Result<Option<String>> {
        if stale.is_empty() {
            return Ok(None);
        }
        // In one statement: some refer to others.
        let quoted: Vec<String> = stale.iter().map(|(_, name)| name.quoted()).collect();
        let drop = format!("DROP TABLE {}", quoted.join(", "));
        blockers::named(link, || link.batch(&drop))?;
        let forget = format!("DELETE FROM {} WHERE table_oid = $1", self.checkpoints()?.table("loads"));
        for (oid, _) in stale {
            link.execute(&forget, &[&i64::from(*oid)])?;
        }
        let names: Vec<String> = stale.iter().map(|(_, name)| name.to_string()).collect();
        Ok(Some(format!("dropped, because the files no longer have these lists: {}", names.join(", "))))
    }

    pub(super) fn primary_key(&self, table: &FlatTable, name: &TableName, constraint: &str) -> String {
        let (key, space) = (key_of(table), self.postgres.kind.within_tablespace(" USING INDEX TABLESPACE "));
        let (name, constraint) = (name.quoted(), quote(constraint));
        format!("ALTER TABLE {name} ADD CONSTRAINT {constraint} PRIMARY KEY ({key}){space}")
    }
}

fn has_constraint(link: Link<'_>, table: &TableName, which: &str) -> Result<bool> {
    let sql = format!(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE conrelid = to_regclass($1) AND {which})"
    );
    link.value(&sql, &[&table.quoted()])
}

pub(super) fn key_name(table: &TableName) -> String {
    fitted(table.name(), "_pkey")
}

pub(super) fn reference_name(table: &TableName) -> String {
    fitted(table.name(), "_fkey")
}

/// The foreign key of a table of lists. A table's key begins with the key of its parent table.
pub(super) fn foreign_key(
    parent: &FlatTable,
    child_name: &TableName,
    parent_name: &TableName,
    constraint: &str,
) -> String {
    let (child, constraint, key) = (child_name.quoted(), quote(constraint), key_of(parent));
    format!(
        "ALTER TABLE {child} ADD CONSTRAINT {constraint} FOREIGN KEY ({key}) REFERENCES {} ({key})",
        parent_name.quoted()
    )
}

fn key_of(table: &FlatTable) -> String {
    table.key.iter().map(|name| quote(name)).collect::<Vec<_>>().join(", ")
}
