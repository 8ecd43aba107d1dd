//! The interface that a database implements so that units arrive in it exactly once.
//!
//! A [`Target`] opens a [`Session`]: it prepares the table and finds out what earlier runs of the same load
//! committed. Each connection then has an encoder on a decoding thread and a writer on a sending thread;
//! blocks of rows pass between them through a bounded channel. A writer commits a unit together with its
//! record. When all units are committed, the session checks the content and finishes: it renames a staging
//! table to its final name.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;
use bytes::Bytes;
use sawmill_source::{Control, Error, Mapping, Result, Source, Unit, UnitKey};
use serde::Serialize;

use crate::engine::load::LoadOptions;
use crate::engine::note::Note;
use crate::engine::server_waits::ServerWaits;
use crate::engine::verification::{Tally, Verification};
use crate::history::lookup::adds_files;
use crate::history::record::{LoadRecord, Remembered, loaded_files};
use crate::identity::RecordedFiles;
use crate::identity::recheck::Encoders;
use crate::table::schema_change::ColumnChanges;

/// A table in a database at an address.
pub trait Target: Sync {
    /// The target's knowledge of each file of the source when rows are appended; `None` if the whole source
    /// has to be loaded.
    ///
    /// # Errors
    /// No connection; a loaded file whose content has changed since; a target that has lost rows; an
    /// interrupted load that cannot be finished with these files.
    fn remembered(
        &self,
        _source: &dyn Source,
        _options: &LoadOptions,
        _control: &Control<'_>,
    ) -> Result<Option<Remembered>> {
        Ok(None)
    }

    /// The loads on record into the table, if it exists, in the order in which they began.
    ///
    /// # Errors
    /// No connection, or no permission.
    fn loads_here(&self, _options: &LoadOptions, _control: &Control<'_>) -> Result<Vec<LoadRecord>> {
        Ok(Vec::new())
    }

    /// What a load takes of its files.
    fn mapping_of_files(&self, source: &dyn Source) -> Mapping {
        source.facts().mapping
    }

    /// Whether loads of the same rows and columns have made the table and hold some of the source's files. If
    /// so, the other files must be appended.
    ///
    /// # Errors
    /// No connection, or no permission.
    fn adds_files(&self, source: &dyn Source, options: &LoadOptions, control: &Control<'_>) -> Result<bool> {
        if !source.facts().whole_files {
            return Ok(false);
        }
        let (loads, mapping) = (self.loads_here(options, control)?, self.mapping_of_files(source));
        let here: Vec<_> = loads.iter().filter(|load| load.takes(&mapping)).collect();
        Ok(adds_files(source, &here, &mapping, options))
    }

    /// The names and fingerprints of the files whose rows complete loads have added to the table: of any loads, or of
    /// those that take the same rows and columns as `source`.
    ///
    /// # Errors
    /// No connection, or no permission.
    fn loaded_files(
        &self,
        source: Option<&dyn Source>,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<HashSet<(String, String)>> {
        let mapping = source.map(|source| self.mapping_of_files(source));
        Ok(loaded_files(&self.loads_here(options, control)?, mapping.as_ref()))
    }

    /// The same target for files with changed content: the files' rows replace their earlier ones. `None` if the target
    /// cannot replace the rows of a file.
    fn replacing(&self) -> Option<Box<dyn Target + '_>> {
        None
    }

    /// Whether it replaces the rows of several files in one step.
    fn replaces_together(&self) -> bool {
        false
    }

    /// Whether the target has answered since it was named: a connection that is lost then is opened again.
    fn has_answered(&self) -> bool;

    /// Prepares the target for the source, or finds out how far an earlier run progressed.
    ///
    /// # Errors
    /// Everything that can be detected before a row is sent: no connection, no permission, a table
    /// that exists or whose columns do not match, a type that cannot be represented, a source
    /// that changed since the load began, another run of the same load.
    fn prepare<'a>(
        &'a self,
        source: &'a dyn Source,
        options: &'a LoadOptions,
        control: &Control<'_>,
    ) -> Result<Box<dyn Session + 'a>>;
}

/// The state in which a load finds its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadState {
    /// This load has not been here before.
    #[default]
    New,
    /// An earlier run was interrupted.
    Resumed,
    /// An earlier run completed the load; nothing is left to do.
    Complete,
}

/// A load in progress.
pub trait Session: Sync {
    /// The state in which the load found the target.
    fn state(&self) -> LoadState;

    /// Maximum rows of a unit. A resumed load keeps its earlier value, so that units stay the same.
    fn unit_rows(&self) -> u64;

    /// The source in the order in which the target takes it, if that differs from the source's own order.
    fn source(&self) -> Option<&dyn Source> {
        None
    }

    /// Units that the target already holds.
    fn done(&self) -> &HashMap<UnitKey, Tally>;

    /// The units of this load that the target has on record now; `None` if it keeps no such records.
    ///
    /// # Errors
    /// A lost connection; a different server from the one at the start, or one that no longer knows the load.
    fn recorded(&self, _control: &Control<'_>) -> Result<Option<HashMap<UnitKey, Tally>>> {
        Ok(None)
    }

    /// Units whose rows have to be accounted for again, as only the whole load shows. They have left the
    /// records and will be sent again. `total` is the sum of all units.
    ///
    /// # Errors
    /// A lost connection; rows that cannot be in the target, with their places.
    fn to_send_again(&self, _total: &Tally, _control: &Control<'_>) -> Result<Vec<UnitKey>> {
        Ok(Vec::new())
    }

    /// Reports that a value of the source ends this run.
    fn value_refused(&self, _control: &Control<'_>) {}

    /// Reports that the target lost these units after confirming them. They will be sent again.
    fn lost(&self, _units: &[Arrived]) {}

    /// The recorded files that those units belong to.
    fn recorded_files(&self) -> &RecordedFiles;

    /// Whether a complete load starts over when its source has changed.
    fn starts_anew(&self) -> bool {
        false
    }

    /// Records these stamps of files whose content is unchanged.
    ///
    /// # Errors
    /// A lost connection.
    fn record_stamps(&self, files: &RecordedFiles, control: &Control<'_>) -> Result<()>;

    /// Encoders that leave rejected rows out of a unit's totals, as the target's records do. `None` if those
    /// rows are unknown.
    ///
    /// # Errors
    /// A lost connection.
    fn summing_encoders<'e>(
        &'e self,
        _source: &dyn Source,
        _control: &Control<'_>,
    ) -> Result<Option<Box<Encoders<'e>>>> {
        Ok((self.rejected() == 0).then(|| Box::new(|| self.encoder()) as Box<Encoders<'e>>))
    }

    /// Number of loaded columns.
    fn columns(&self) -> usize;

    /// Whether encoders need each row's number in its row group when not all rows are loaded
    /// ([`Read::numbered`](sawmill_source::Read::numbered)).
    fn numbers_rows(&self) -> bool {
        false
    }

    /// Creates an encoder for one thread.
    fn encoder(&self) -> Result<Box<dyn BatchEncoder>>;

    /// Creates a writer with its own connection, or with the session's if only one is allowed.
    fn writer(&self, control: &Control<'_>) -> Result<Box<dyn UnitWriter + '_>>;

    /// Compares the target's content with `expected`, the sum of all units.
    fn verify(&self, expected: &Tally, control: &Control<'_>) -> Result<Verification>;

    /// Moves the data to its final place and records the load as complete, in one step.
    fn finish(&self, total: &Tally, control: &Control<'_>) -> Result<()>;

    /// Rejected rows: the target refused them, in this run or an earlier one.
    fn rejected(&self) -> u64 {
        0
    }

    /// Rows that this run found in the target, loaded earlier and unchanged.
    fn there_before(&self) -> u64 {
        0
    }

    /// Rows in the table, if this run counted them.
    fn counted(&self) -> Option<u64> {
        None
    }

    /// Whether [`verify`](Self::verify) can distinguish the load's rows from others.
    fn can_verify(&self) -> bool {
        true
    }

    /// Whether rows of the source may give way to rows with their keys, so that only keys are compared at the end.
    fn verifies_by_key(&self) -> bool {
        false
    }

    /// Samples how the server spends the load's connections, until `done` is set and the calling thread is
    /// unparked. `None` if that cannot be observed; never an error, since the load does not depend on it.
    fn watch(&self, _done: &AtomicBool, _control: &Control<'_>) -> Option<ServerWaits> {
        None
    }

    /// The changes made for columns in which the files and the table differ.
    fn column_changes(&self) -> ColumnChanges {
        ColumnChanges::default()
    }

    /// The same, or the changes of the load's earlier runs if this run has added no column: for errors.
    fn changes_so_far(&self) -> ColumnChanges {
        self.column_changes()
    }

    /// Further remarks about the load for the user.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }
}

/// Turns batches into the bytes that the target's connections send.
pub trait BatchEncoder: Send {
    /// Begins a unit; the batches that follow belong to it.
    fn begin_unit(&mut self, _unit: &Unit) {}

    /// Encodes a batch and hands out each block when it is full.
    fn encode(
        &mut self,
        batch: &RecordBatch,
        emit: &mut dyn FnMut(Block) -> Result<()>,
    ) -> Result<(), Refusal>;

    /// Hands out the rest of the unit, and returns its totals.
    fn end_unit(&mut self, emit: &mut dyn FnMut(Block) -> Result<()>) -> Result<Tally>;
}

/// Encoded rows.
#[derive(Debug)]
pub struct Block {
    /// The rows' bytes.
    pub bytes: Bytes,
    /// Their number.
    pub rows: u64,
    /// The position of each row in the bytes, for targets that may have to send some rows individually.
    pub marks: Option<Box<Marks>>,
}

/// The individual rows of a block.
#[derive(Debug, Default)]
pub struct Marks {
    /// The end of each row in the block's bytes, and its number counted from the unit's first row, or the
    /// number of the record that it belongs to.
    pub rows: Vec<Mark>,
    /// The numbers alone, if the bytes themselves mark where rows end.
    pub numbers: Vec<u32>,
    /// The same rows column by column, for a transport that sends columns.
    pub columns: Vec<Bytes>,
    /// Rows among them that cannot be represented: number in the unit, column, and reason.
    pub refused: Vec<(u32, String)>,
}

/// One row of a block.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Its end in the block, in bytes.
    pub end: u32,
    /// Its number in the unit, counted from 0.
    pub row: u32,
}

impl Block {
    /// A block without the positions of its rows.
    pub fn new(bytes: Bytes, rows: u64) -> Self {
        Self { bytes, rows, marks: None }
    }

    /// Number of bytes for the target.
    pub fn wire_bytes(&self) -> u64 {
        let columns = self.marks.as_ref().map_or(0, |marks| marks.columns.iter().map(Bytes::len).sum());
        if columns > 0 { columns as u64 } else { self.bytes.len() as u64 }
    }
}

/// Why a batch was not encoded.
#[derive(Debug)]
pub enum Refusal {
    /// A value that the target cannot hold.
    Value {
        /// Row in the batch.
        row: usize,
        /// Name of the column.
        column: String,
        /// The value, and its fault.
        what: String,
    },
    /// The blocks could not be handed out.
    Stopped(Error),
}

/// A message from a decoding thread to a sending thread.
#[derive(Debug)]
pub enum Parcel {
    /// The beginning of a unit.
    Unit(Unit),
    /// Rows of the unit.
    Rows(Block),
    /// The end of the unit, with its totals.
    End(Tally),
    /// The unit cannot be read or encoded; roll it back.
    Failed(Error),
}

/// The receiving end of the channel between a decoding and a sending thread.
pub type Parcels = tokio::sync::mpsc::Receiver<Parcel>;

/// Sends units and commits them.
pub trait UnitWriter {
    /// The record of a unit whose commit may have been lost.
    fn committed(&mut self, key: UnitKey, control: &Control<'_>) -> Result<Option<Tally>>;

    /// Takes the parcels of one unit up to its `End`. Returns the units that it has committed by then, each
    /// with its record: usually this one, or none while the writer collects several for one commit.
    ///
    /// Returns `Ok(None)` if the channel closed before the end: nothing of the unit was committed.
    fn write(
        &mut self,
        unit: &Unit,
        parcels: &mut Parcels,
        control: &Control<'_>,
    ) -> Result<Option<Vec<Arrived>>>;

    /// Commits the collected units when no more follow.
    fn close(&mut self, _control: &Control<'_>) -> Result<Vec<Arrived>> {
        Ok(Vec::new())
    }
}

/// A committed unit and its totals.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// The unit.
    pub unit: Unit,
    /// Its rows, content sum and non-null values.
    pub tally: Tally,
}
