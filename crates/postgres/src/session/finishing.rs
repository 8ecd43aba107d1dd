//! The end of a load: its part tables become one table, the table takes its name and place, and the record is
//! marked complete.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use sawmill_loader::{
    LoadFacts, LoadState, Mode, Note, Session, Share, TableName, Tally, Target, and_more_files, quote,
};
use sawmill_pgwire::Connection;
use sawmill_profile::{format_counted, turns};
use sawmill_source::{Control, Error, Kind, Result};

use super::PostgresSession;
use crate::partition::tables;
use crate::records::presence::Scope;
use crate::table::catalogue::{FoundTable, Link, find};
use crate::table::planned_columns::another_table;
use crate::table::replaced::{self, Replaced};
use crate::table::{blockers, columns, new_table, part_tables};
use crate::types::made_types;
use crate::write::replace_files::ReplacedFiles;
use crate::write::upsert::{self, Merge, Merged, OnConflict};

impl PostgresSession<'_> {
    /// Completes the load, in one transaction. If the rows do not allow a key, this is recorded: the next run then
    /// takes rows that are missing for corrected ones.
    pub(super) fn complete(&self, total: &Tally, control: &Control<'_>) -> Result<()> {
        let completed = self.put_all_in_place(total, control);
        if completed.is_err() && self.keys_refused.load(Relaxed) {
            let (checkpoints, id) = (&self.plan.checkpoints, &self.plan.load_id);
            // The first error is the one to tell.
            let _ = self.with_connection(control, |link| checkpoints.on(link).set(id, "keys_refused", &true));
        }
        completed
    }

    fn put_all_in_place(&self, total: &Tally, control: &Control<'_>) -> Result<()> {
        if self.parts.is_some() {
            let attaching = control.phase().phase("attach");
            self.assemble(control).map_err(|error| match error.kind() {
                Kind::Server => self.explained(error, control),
                _ => error,
            })?;
            self.index_partitions(control)?;
            attaching.finish();
        }
        let id = &self.plan.load_id;
        self.with_connection(control, |link| self.write_rejects(link))?;
        self.with_connection(control, |link| {
            let records = self.plan.checkpoints.on(link);
            // After a lost connection the commit may have happened.
            if records.find(id)?.is_some_and(|record| record.complete) {
                return Ok(());
            }
            link.begin()?;
            let facts = self.facts();
            records.refuse_lost(id, total)?;
            if !self.postgres.mode.gathers() {
                self.refuse_another_table(link)?;
            }
            if self.postgres.several.is_some() {
                records.complete(id, total, &facts)?;
                return link.commit_durably();
            }
            if let OnConflict::ReplaceFiles(column) = &self.postgres.on_conflict {
                self.replace_files(column, total, link)?;
                records.complete(id, total, &facts)?;
                return link.commit_durably();
            }
            if self.postgres.mode == Mode::Upsert {
                self.merge(total, link)?;
            }
            let old = match self.postgres.mode {
                Mode::Replace => find(link, &self.table)?,
                _ => None,
            };
            let replaced = |old: FoundTable| -> Result<_> {
                records.delete_of_table(old.oid, id)?;
                let replaced = blockers::named(link, || Replaced::locked(link, &self.table, old.oid))?;
                made_types::drop_table(link, &self.table, old.oid)?;
                Ok(replaced)
            };
            let replaced = old.map(replaced).transpose()?;
            if self.postgres.mode.makes_the_table() {
                self.put_in_place(link)?;
            }
            if let Some(replaced) = replaced {
                let lost = replaced.hand_on(link, &self.table)?;
                self.note_at_the_end(replaced::note(&self.table, &lost));
            }
            records.complete(id, total, &facts)?;
            link.commit_durably()
        })
    }

    fn note_at_the_end(&self, notes: impl IntoIterator<Item = String>) {
        *self.at_the_end.lock().unwrap_or_else(PoisonError::into_inner) = notes.into_iter().collect();
    }

    /// Merges the gathered rows into the table, and notes what became of them.
    fn merge(&self, total: &Tally, link: Link<'_>) -> Result<()> {
        let matching = self.postgres.matching();
        let (gathered, table) = (&self.written, &self.table);
        let verify = self.options.verify;
        let merge = Merge { link, gathered, table, columns: &self.columns, matching, verify };
        let Merged { rows: merged, closed, without_key, skipped, deleted } =
            blockers::named(link, || merge.run().map_err(|error| self.refused_in_merge(error, link)))?;
        let (planned, oid) = (&self.plan.planned, self.record.table_oid);
        planned.refuse_converted(link, &self.table, oid)?;
        let left = total.rows.saturating_sub(merged);
        self.there_before.store(left, Relaxed);
        let others = left.saturating_sub(skipped as u64).saturating_sub(deleted.marked);
        let why = (others > 0).then(|| match matching.on_conflict {
            OnConflict::Update if upsert::may_leave(&self.columns, matching) => None,
            OnConflict::Update => {
                let why = "a trigger or a rule of the table skipped the others";
                Some(format!("{merged} of {} rows were merged: {why}", total.rows))
            }
            OnConflict::ReplaceFiles(_) => None,
            OnConflict::History(None) => {
                Some("the other rows equal the current versions of their keys".to_owned())
            }
            OnConflict::History(Some(newest)) => Some(format!(
                "the other rows equal the current versions of their keys, or are not newer, by {newest}"
            )),
            OnConflict::Keep => Some(
                "the keys of the other rows are in the table, or came elsewhere in the files, too".to_owned(),
            ),
            OnConflict::KeepNewest(newest) => {
                Some(format!("the other rows are not newer than rows with their keys, by {newest}"))
            }
        });
        let versions = (closed > 0).then(|| match closed {
            1 => "1 version was closed: its row has changed".to_owned(),
            _ => format!("{} were closed: their rows have changed", format_counted(closed, "version")),
        });
        let touched = skipped as u64 + deleted.kept;
        let touched = (touched > 0).then(|| {
            let rows = format_counted(touched, "row");
            format!("a trigger or a rule of the table skipped or changed {rows}")
        });
        let added = (without_key > 0).then(|| {
            let (rows, mode) = (format_counted(without_key as u64, "row"), self.postgres.name_of_mode());
            format!("{rows} with a null in the key equal no row of the table: each {mode} adds them again")
        });
        let notes = deleted.note(matching.on_conflict).into_iter().chain(versions).chain(touched);
        self.note_at_the_end(notes.chain(why.flatten()).chain(added));
        Ok(())
    }

    /// Replaces the earlier rows of corrected files with the gathered ones.
    fn replace_files(&self, column: &str, total: &Tally, link: Link<'_>) -> Result<()> {
        let names: Vec<String> = self.source.files().iter().map(|file| file.name.clone()).collect();
        let files = ReplacedFiles {
            gathered: &self.written,
            table: &self.table,
            columns: &self.columns,
            loaded_at: self.postgres.loaded_at.as_deref(),
            column,
            names: &names,
            checkpoints: &self.plan.checkpoints,
            record: &self.record,
            mapping: &self.postgres.mapping_of_files(self.source),
        };
        let replace = || files.replace(total, self.options.verify, link);
        let deleted = blockers::named(link, replace)
            .map_err(|error| self.refused_in_replacement(error, &files, link))?;
        let planned = &self.plan.planned;
        planned.refuse_converted(link, &self.table, self.record.table_oid)?;
        let (rows, earlier) = (format_counted(total.rows, "row"), format_counted(deleted, "row"));
        let note = match &names[..] {
            [name] => format!("{rows} of {name} replaced {earlier} that it had"),
            [first, others @ ..] => {
                let more = and_more_files(others.len());
                format!("{rows} of {first}{more} replaced {earlier} that they had")
            }
            [] => return Ok(()),
        };
        self.note_at_the_end([note]);
        Ok(())
    }

    /// How the load was run, up to now.
    fn facts(&self) -> LoadFacts {
        let (run, how) =
            (turns::now().saturating_duration_since(self.started), (self.options, self.source.files()));
        let (merge, keeps_newer) = (self.postgres.merge(), self.postgres.keeps_newer());
        LoadFacts { merge, keeps_newer, ..self.record.facts.after(run, self.changes_so_far(), how) }
    }

    /// Makes the committed part tables partitions of the staging table, unless they are already.
    pub(super) fn assemble(&self, control: &Control<'_>) -> Result<()> {
        let Some(parts) = &self.parts else { return Ok(()) };
        self.with_connection(control, |link| {
            let records = self.plan.checkpoints.on(link);
            link.begin()?;
            if records.unlogged {
                part_tables::drop_emptied(&records, &self.table)?;
            }
            let filled = tables::filled(&records, &self.plan.load_id, &parts.partitions)?;
            tables::attach(link, &filled, &parts.partitions, &self.written)?;
            link.commit()
        })
    }

    /// Builds the keys and indexes of separately filled partitions, several at a time. The key or index of
    /// the whole table then only attaches them.
    fn index_partitions(&self, control: &Control<'_>) -> Result<()> {
        let Some(partitions) = self.parts.as_ref().map(|parts| &parts.partitions) else { return Ok(()) };
        let kind = self.postgres.kind_for(self.route.staged);
        if kind.complete(&self.table).is_empty() || !self.postgres.mode.makes_the_table() {
            return Ok(());
        }
        let (checkpoints, id) = (&self.plan.checkpoints, &self.plan.load_id);
        let filled =
            self.with_connection(control, |link| tables::filled(&checkpoints.on(link), id, partitions))?;
        let names = partitions.names(&self.table);
        let index = |link: Link<'_>, (part, number, _): &(TableName, u32, _)| {
            let name = names.get(*number as usize).unwrap_or(part);
            link.begin()?;
            let sql = "SELECT count(*) FROM pg_catalog.pg_index WHERE indrelid = to_regclass($1)";
            // An interrupted run has committed all indexes of a part or none.
            if link.value::<i64>(sql, &[&part.quoted()])? == 0 {
                for statement in kind.complete_partition(part, name, link)? {
                    link.batch(&statement).map_err(|error| self.unkeyed(&error, &statement))?;
                }
            }
            link.commit()
        };
        if self.server.allows_one_connection() {
            return self
                .with_connection(control, |link| filled.iter().try_for_each(|part| index(link, part)));
        }
        let none = || None::<Connection>;
        control.on_all_cores("indexer", &filled, none, |connection, part, control| {
            let connection = match connection {
                Some(connection) => connection,
                none => none.insert(self.server.connect(control)?),
            };
            index(Link::new(connection, control), part)
        })
    }

    /// Names the partitions of the table after it.
    fn rename_partitions(&self, link: Link<'_>) -> Result<()> {
        let (checkpoints, id) = (&self.plan.checkpoints, &self.plan.load_id);
        let Some(partitions) = &self.postgres.partitions else { return Ok(()) };
        let mut now: HashMap<u32, TableName> = (0..).zip(partitions.gathering_names(&self.table)).collect();
        if self.route.staged {
            now.retain(|partition, _| partitions.is_empty(*partition));
            let filled = tables::filled(&checkpoints.on(link), id, partitions)?;
            now.extend(filled.into_iter().map(|(name, partition, _)| (partition, name)));
        }
        for name in tables::rename(link, &now, partitions, &self.table)? {
            new_table::rename_key(link, &name)?;
        }
        Ok(())
    }

    /// Renames the staging table to its final name, and creates the keys and indexes that waited for the
    /// rows.
    fn put_in_place(&self, link: Link<'_>) -> Result<()> {
        if find(link, &self.table)?.is_some() {
            return Err(Error::new(Kind::Exists, "a table of this name was created while the load ran")
                .at(format!("table {}, {}", self.table, link.place()))
                .advise("all rows are loaded: drop or rename that table and run the same command again, or forget the load"));
        }
        let (schema, nested) = (self.source.schema(), self.postgres.nested);
        let values = &self.postgres.values;
        let from = columns::natural(schema, &self.written, nested, values)?.types;
        let to = columns::natural(schema, &self.table, nested, values)?.types;
        made_types::rename(link, &from, &to)?;
        let rename = format!("ALTER TABLE {} RENAME TO {}", self.written.quoted(), quote(self.table.name()));
        link.batch(&rename)?;
        // The rename has locked the table, so that this is the one that takes the name.
        if find(link, &self.table)?.map(|found| found.oid) != Some(self.record.table_oid) {
            let what =
                format!("another table has taken the place of {}, where the rows were loaded", self.written);
            return Err(Error::new(Kind::Mismatch, what)
                .at(format!("table {}, {}", self.table, link.place()))
                .advise("drop or rename that table, and run the same command again"));
        }
        new_table::rename_key(link, &self.table)?;
        self.rename_partitions(link)?;
        for statement in self.postgres.kind_for(self.route.staged).complete(&self.table) {
            link.batch(&statement).map_err(|error| self.unkeyed(&error, &statement))?;
        }
        Ok(())
    }

    /// The error for a key or an index that the rows do not allow.
    fn unkeyed(&self, error: &Error, statement: &str) -> Error {
        if error.kind() == Kind::Server {
            self.keys_refused.store(true, Relaxed);
        }
        // Corrected rows are no longer those of the files.
        let without = if self.options.verify { ", without --verify" } else { "" };
        Error::new(error.kind(), error.what()).at(format!("{statement}, {}", error.place())).advise(format!(
            "all rows are loaded: correct the named rows in {} and run the same command again{without}; or forget the load, \
             and correct the files",
            self.written
        ))
    }

    /// The error, or the change of the table's columns that is its cause.
    pub(super) fn explained(&self, error: Error, control: &Control<'_>) -> Error {
        let change = self.with_connection(control, |link| self.plan.planned.change(link));
        change.ok().flatten().unwrap_or(error)
    }

    /// Checks, in the transaction that completes the load, that the table with this name is the one that was
    /// loaded, and that it was not emptied with its file. Rows that others have deleted one by one are not
    /// noticed here: only `--verify` reads the table.
    pub(super) fn refuse_another_table(&self, link: Link<'_>) -> Result<()> {
        let place = || format!("table {}, {}", self.table, link.place());
        let oid = self.record.table_oid;
        if find(link, &self.table)?.is_none_or(|found| found.oid != oid) {
            return Err(another_table(place()));
        }
        let records = self.plan.checkpoints.on(link);
        if !records.is_rewritten(&self.plan.load_id)? {
            return Ok(());
        }
        let presence = records.presence(Scope::Table(oid), &self.table)?;
        match presence.lacks_rows() {
            false => Ok(()),
            true => Err(presence.error(
                place(),
                "forget the load (sawmill load forget), remove what is left of its rows, and load again",
            )),
        }
    }
}

impl PostgresSession<'_> {
    /// All notes, in the order in which they are shown.
    pub(super) fn all_notes(&self) -> Vec<Note> {
        let found = self.found_notes.iter().cloned().chain(self.server.changes());
        let mut notes: Vec<Note> = found.map(Note::from).collect();
        if self.postgres.partitions.is_some() && self.state != LoadState::Complete {
            notes.push(Note::Route(self.route.to_string()));
        }
        if !self.not_filled.is_empty() && self.state != LoadState::Complete {
            let lacking = self.not_filled.join(", ");
            notes.push(format!("columns of the table that the files lack: {lacking}").into());
        }
        notes.extend(self.column_changes().lines().into_iter().map(Note::from));
        let at_the_end = self.at_the_end.lock().unwrap_or_else(PoisonError::into_inner);
        notes.extend(at_the_end.iter().cloned().map(Note::from));
        if self.overlaid && self.options.verify {
            notes.push(Note::Unverified(
                "not verified: since this load began, another load has brought other rows or columns of its files into the \
                 table, or merged rows into it (sawmill verify compares whole tables)"
                    .to_owned(),
            ));
        } else if self.retyped && self.options.verify {
            notes.push(Note::Unverified(
                "not verified: the table's columns have changed since this load (sawmill verify compares whole tables)"
                    .to_owned(),
            ));
        } else if self.state == LoadState::Complete
            && self.postgres.mode == Mode::Upsert
            && !matches!(self.postgres.on_conflict, OnConflict::ReplaceFiles(_))
        {
            let mode = self.postgres.merge().unwrap_or_else(|| self.postgres.mode.name().to_owned());
            let note = format!(
                "not verified: an earlier run merged these rows, and mode {mode} verifies only while it merges; --again \
                 merges them again"
            );
            notes.push(Note::Unverified(note));
        }
        match (self.rejected(), &self.postgres.rejects) {
            (0, _) => {}
            (rows, to) => {
                let where_to = match to {
                    _ if matches!(self.options.share, Share::Part(_)) => {
                        "so far; the run that finishes the load writes them to the file of --rejects"
                            .to_owned()
                    }
                    Some(to) if to.path.exists() => format!("and went to {}", to.path.display()),
                    _ => "in earlier runs; the same command with --rejects FILE writes them to a file"
                        .to_owned(),
                };
                let rows = format_counted(rows, "row");
                notes.push(Note::Rejected(format!("{rows} could not be loaded {where_to}")));
            }
        }
        notes
    }
}
