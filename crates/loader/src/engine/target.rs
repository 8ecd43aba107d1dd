//! Where rows go: what a database has to offer so that units arrive in it exactly once.
//!
//! A [`Target`] makes a [`Session`]: the place is prepared, and what earlier runs of the same load
//! have committed is known. Each connection then has an encoder on a thread that decodes and a
//! writer on a thread that sends; blocks of rows go from one to the other through a bounded channel.
//! A writer commits a unit together with the record that says so. When all units are in, the session
//! checks the content and finishes: whatever was out of sight until then is put in its place.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;
use bytes::Bytes;
use sawmill_source::{Control, Error, Result, Source, Unit, UnitKey};
use serde::Serialize;

use crate::engine::content_sum::Tally;
use crate::engine::load::LoadOptions;
use crate::engine::server_waits::ServerWaits;
use crate::engine::verification::Verification;
use crate::identity::RecordedFiles;
use crate::identity::recheck::Encoders;
use crate::identity::remembered::Remembered;

/// A kind of database, and an address and a table in it.
pub trait Target: Sync {
    /// What the target knows of the source's files one by one, where rows are appended; none where the source is to be
    /// taken as it is.
    ///
    /// # Errors
    /// No connection; a file that is in the target and holds something else now; a target that has lost rows; a load
    /// that was broken off and cannot be ended with these files.
    fn remembered(
        &self,
        _source: &dyn Source,
        _options: &LoadOptions,
        _control: &Control<'_>,
    ) -> Result<Option<Remembered>> {
        Ok(None)
    }

    /// Prepares the target for the source, or finds out how far an earlier run came.
    ///
    /// # Errors
    /// Everything that can be told before a row is sent: no connection, no permission, a table
    /// that exists or whose columns do not match, a type that cannot be represented, a source
    /// that changed since the load began, another run of the same load.
    fn prepare<'a>(
        &'a self,
        source: &'a dyn Source,
        options: &'a LoadOptions,
        control: &Control<'_>,
    ) -> Result<Box<dyn Session + 'a>>;
}

/// How a load found its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Nothing of this load was there.
    New,
    /// An earlier run was not finished.
    Resumed,
    /// An earlier run was finished: there is nothing to do.
    Complete,
}

/// A load under way.
pub trait Session: Sync {
    /// How the target was found.
    fn standing(&self) -> Standing;

    /// Rows of a unit: an earlier run's, so that units stay the same.
    fn unit_rows(&self) -> u64;

    /// The source in the order in which the target takes it, where that is another than its own.
    fn source(&self) -> Option<&dyn Source> {
        None
    }

    /// Units that are in the target already.
    fn done(&self) -> &HashMap<UnitKey, Tally>;

    /// The units of this load that the target has on record at this moment; none where it keeps no such records.
    ///
    /// # Errors
    /// A lost connection; a server that is another one than when the load began, or no longer knows the load.
    fn recorded(&self, _control: &Control<'_>) -> Result<Option<HashMap<UnitKey, Tally>>> {
        Ok(None)
    }

    /// The target has lost these units, which it had confirmed. They will be sent again.
    fn lost(&self, _units: &[Arrived]) {}

    /// What is on record of the files that those units are of.
    fn recorded_files(&self) -> &RecordedFiles;

    /// Whether a load that is complete is done anew where its source holds something else now.
    fn starts_anew(&self) -> bool {
        false
    }

    /// Records these stamps of the files, which hold what was loaded of them.
    ///
    /// # Errors
    /// A lost connection.
    fn record_stamps(&self, files: &RecordedFiles, control: &Control<'_>) -> Result<()>;

    /// Encoders whose units come to what the target has of them: rows that were put aside are not counted. None where
    /// that cannot be told.
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

    /// Number of columns that are loaded.
    fn columns(&self) -> usize;

    /// Whether encoders are to know the number of each row in its row group, where not all rows are loaded
    /// ([`Source::numbering_reader`]).
    fn numbers_rows(&self) -> bool {
        false
    }

    /// An encoder for one thread.
    fn encoder(&self) -> Result<Box<dyn BatchEncoder>>;

    /// A writer with a connection of its own.
    fn writer(&self, control: &Control<'_>) -> Result<Box<dyn UnitWriter>>;

    /// Compares the target's content with `expected`, the sum of all units.
    fn verify(&self, expected: &Tally, control: &Control<'_>) -> Result<Verification>;

    /// Puts the data in its place and records that the load is complete, in one step.
    fn finish(&self, total: &Tally, control: &Control<'_>) -> Result<()>;

    /// Rows that the target refused and that were put aside, those of earlier runs included.
    fn rejected(&self) -> u64 {
        0
    }

    /// Rows that this run found in the target, as an earlier load had brought them.
    fn there_before(&self) -> u64 {
        0
    }

    /// Rows of the table, where they were counted in this run.
    fn counted(&self) -> Option<u64> {
        None
    }

    /// Whether [`verify`](Self::verify) can tell the load's rows from others.
    fn can_verify(&self) -> bool {
        true
    }

    /// Looks at what the server's side of the load's connections is at, until `done` is set and the calling
    /// thread unparked. None where it cannot be told; never an error, as the load does not depend on it.
    fn watch(&self, _done: &AtomicBool, _control: &Control<'_>) -> Option<ServerWaits> {
        None
    }

    /// What else there is to say about how the load went.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Turns batches into what the target's connections send.
pub trait BatchEncoder: Send {
    /// The batches that follow are of this unit.
    fn begin_unit(&mut self, _unit: &Unit) {}

    /// Encodes a batch and hands out blocks as they are full.
    fn encode(
        &mut self,
        batch: &RecordBatch,
        emit: &mut dyn FnMut(Block) -> Result<()>,
    ) -> Result<(), Refusal>;

    /// Hands out what is left of the unit, and says what the unit came to.
    fn end_unit(&mut self, emit: &mut dyn FnMut(Block) -> Result<()>) -> Result<Tally>;
}

/// Encoded rows.
#[derive(Debug)]
pub struct Block {
    /// The rows' bytes.
    pub bytes: Bytes,
    /// Their number.
    pub rows: u64,
    /// Where single rows stand in the bytes, for targets that may have to send some of them alone.
    pub marks: Option<Box<Marks>>,
}

/// The single rows of a block.
#[derive(Debug, Default)]
pub struct Marks {
    /// End of each row in the block's bytes, and its number from the unit's first row on, or that of the record that it is
    /// of.
    pub rows: Vec<Mark>,
    /// In their place the numbers alone, where the bytes themselves say where rows end.
    pub numbers: Vec<u32>,
    /// The same rows column by column, for a transport that takes columns.
    pub columns: Vec<Bytes>,
    /// Rows between them that cannot be represented: number in the unit, column, and why.
    pub refused: Vec<(u32, String)>,
}

/// One row of a block.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Where it ends in the block, in bytes.
    pub end: u32,
    /// Its number in the unit, from 0 on.
    pub row: u32,
}

impl Block {
    /// Rows whose places in the bytes nobody needs to know.
    pub fn new(bytes: Bytes, rows: u64) -> Self {
        Self { bytes, rows, marks: None }
    }

    /// Bytes that go to the target.
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
        /// The value, and what is wrong with it.
        what: String,
    },
    /// The blocks could not be handed out.
    Stopped(Error),
}

/// What goes from a decoding thread to a sending one.
#[derive(Debug)]
pub enum Parcel {
    /// A unit begins.
    Unit(Unit),
    /// Rows of it.
    Rows(Block),
    /// It is complete, and this is what it came to.
    End(Tally),
    /// It cannot be read or encoded; nothing of it may stay.
    Failed(Error),
}

/// The receiving end of the channel between a decoding and a sending thread.
pub type Parcels = tokio::sync::mpsc::Receiver<Parcel>;

/// Sends units and commits them.
pub trait UnitWriter {
    /// What the target knows of a unit whose commit may have been lost.
    fn committed(&mut self, key: UnitKey, control: &Control<'_>) -> Result<Option<Tally>>;

    /// Takes the parcels of one unit up to its `End`. Returns the units that were committed meanwhile, each with
    /// its record: usually this one, or none as long as several are to be committed together.
    ///
    /// `Ok(None)` when the channel closed before the end: nothing of the unit was committed.
    fn write(
        &mut self,
        unit: &Unit,
        parcels: &mut Parcels,
        control: &Control<'_>,
    ) -> Result<Option<Vec<Arrived>>>;

    /// Commits the units that wait for others, when none follows.
    fn close(&mut self, _control: &Control<'_>) -> Result<Vec<Arrived>> {
        Ok(Vec::new())
    }
}

/// A unit that is committed, and what it came to.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// The unit.
    pub unit: Unit,
    /// Its rows, content sum and non-null values.
    pub tally: Tally,
}
