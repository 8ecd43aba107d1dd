//! Files in memory, whose rows are functions of the file's number, its content, the row group and the row.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use sawmill_source::{
    Error, Facts, Kind, Known, Mapping, Read, Result, RowPlace, Source, SourceFile, Unit, UnitKey,
    UnitReader, counted_places, recut,
};

use super::draw::Draw;
use super::fault::{Fault, Step};
use super::mistake::Mistake;
use super::process::Process;

/// A file at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    pub number: u64,
    /// Another number for other rows.
    pub content: u64,
    /// Another number for another footer.
    pub footer: u64,
    /// Another number after each change.
    pub stamp: u64,
    /// Rows of each row group.
    pub groups: Vec<u64>,
    pub is_there: bool,
}

impl FileState {
    pub fn name(&self) -> String {
        format!("file-{}", self.number)
    }

    pub fn row(&self, group: u64, row: u64) -> u64 {
        self.number << 32 | self.content << 24 | group << 16 | row
    }

    pub fn rows(&self) -> Vec<u64> {
        let groups = (0..).zip(&self.groups);
        groups.flat_map(|(group, rows)| (0..*rows).map(move |row| self.row(group, row))).collect()
    }

    /// Whether it has the same rows.
    pub fn has_rows_of(&self, other: &Self) -> bool {
        (self.number, self.content, &self.groups) == (other.number, other.content, &other.groups)
    }

    /// The files of a world at first.
    pub fn drawn(files: u64, draw: &mut Draw) -> Vec<Self> {
        let file = |number| Self {
            number,
            content: 0,
            footer: 0,
            stamp: 0,
            groups: (0..draw.of(&[1, 1, 2])).map(|_| draw.between(1, 4)).collect(),
            is_there: true,
        };
        (0..files).map(file).collect()
    }

    /// Something happens to the file.
    pub fn suffers(&mut self, fault: Fault) {
        match fault {
            Fault::RewrittenAlike | Fault::Rewritten => self.content += 1,
            Fault::Grows => self.groups.push(1),
            _ => return self.is_there = false,
        }
        self.footer += u64::from(fault != Fault::RewrittenAlike);
        self.stamp += 1;
    }

    fn described(&self) -> SourceFile {
        SourceFile {
            name: self.name(),
            fingerprint: self.footer.to_string(),
            stamp: Some(self.stamp.to_string()),
            rows: self.groups.iter().sum(),
            bytes: self.groups.iter().sum::<u64>() * 8,
            columns: None,
        }
    }
}

/// Rows as people read them: file, content, row group and number.
pub fn named(rows: &Option<Vec<u64>>) -> String {
    let Some(rows) = rows else { return "no table".to_owned() };
    let name = |row: &u64| {
        let part = |shift: u32| (row >> shift) & 0xff;
        format!("{}v{}g{}r{}", part(32), part(24), part(16), part(0))
    };
    format!("{} rows [{}]", rows.len(), rows.iter().map(name).collect::<Vec<_>>().join(" "))
}

/// The files as a loader opened them.
pub struct SimulatedSource {
    process: Arc<Process>,
    schema: SchemaRef,
    opened: Vec<FileState>,
    files: Vec<SourceFile>,
}

impl SimulatedSource {
    pub fn open(process: &Arc<Process>) -> Result<Self> {
        process.world.step(process, Step::OpenSource)?;
        let mut state = process.world.state();
        let opened = state.files.clone();
        if let Some(gone) = opened.iter().find(|file| !file.is_there) {
            return Err(Error::new(Kind::Source, format!("{} does not exist", gone.name())));
        }
        if let Some(of_process) = state.server.audit.opened.get_mut(process.number) {
            of_process.clone_from(&opened);
        }
        let schema = Arc::new(Schema::new(vec![Field::new("value", DataType::Int64, false)]));
        let mut files: Vec<SourceFile> = opened.iter().map(FileState::described).collect();
        if process.world.mistake == Some(Mistake::TrustStamps) {
            files.iter_mut().for_each(|file| file.stamp = Some("always".to_owned()));
        }
        if process.world.mistake == Some(Mistake::TrustFingerprints) {
            files.iter_mut().for_each(|file| file.fingerprint = "always".to_owned());
            files.iter_mut().for_each(|file| file.stamp = Some("always".to_owned()));
        }
        Ok(Self { process: Arc::clone(process), schema, opened, files })
    }

    /// The error for a file that has changed since it was opened.
    fn changed(&self) -> Option<Error> {
        let now = &self.process.world.state().files;
        let changed = self.opened.iter().zip(now).find(|(opened, now)| opened != now);
        changed.map(|(opened, _)| Error::new(Kind::Changed, format!("{} was written to", opened.name())))
    }
}

impl Source for SimulatedSource {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn facts(&self) -> Facts {
        Facts::of_files(&self.files, &Mapping::default())
    }

    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>> {
        let groups = (0..).zip(&self.opened).flat_map(|(file, opened)| {
            let groups = (0..).zip(&opened.groups);
            groups.map(move |(row_group, rows)| Unit {
                key: UnitKey { file, row_group, first_row: 0 },
                rows: *rows,
                bytes: rows * 8,
            })
        });
        let mut runs = recut(groups.collect(), unit_rows);
        if self.process.world.mistake == Some(Mistake::SkipUnit)
            && let Some(first) = runs.first_mut().filter(|run| self.process.number > 0 && run.len() > 1)
        {
            first.remove(0);
        }
        runs
    }

    fn known(&self, _file: u32, _column: usize) -> Result<Vec<Known>> {
        Ok(Vec::new())
    }

    fn check_unchanged(&self) -> Result<()> {
        self.process.world.step(&self.process, Step::CheckSource)?;
        match self.changed() {
            Some(error) if self.process.world.mistake != Some(Mistake::NoLastLook) => Err(error),
            _ => Ok(()),
        }
    }

    fn locate(&self, _group: UnitKey, rows: &[u64], _named: bool) -> Result<Vec<RowPlace>> {
        Ok(counted_places(rows))
    }

    fn open(&self, read: Read<'_>, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        // All rows are loaded, so they can be counted.
        let read = Read { numbered: false, ..read };
        read.of(Box::new(Reader { source: self, left: 0..0, key: None, batch_rows: batch_rows as u64 }))
    }
}

struct Reader<'s> {
    source: &'s SimulatedSource,
    key: Option<UnitKey>,
    left: std::ops::Range<u64>,
    batch_rows: u64,
}

impl UnitReader for Reader<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        self.key = Some(unit.key);
        self.left = unit.key.first_row..unit.key.first_row + unit.rows;
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(key) = self.key.filter(|_| !self.left.is_empty()) else { return Ok(None) };
        let process = &self.source.process;
        process.world.step(process, Step::ReadSource)?;
        let end = self.left.end.min(self.left.start + self.batch_rows);
        let rows = std::mem::replace(&mut self.left.start, end)..end;
        let state = process.world.state();
        let file = &state.files[key.file as usize];
        if !file.is_there {
            return Err(Error::new(Kind::Source, format!("{} does not exist", file.name())));
        }
        // Reads the current file, even if it has been overwritten since it was opened.
        let values = rows.map(|row| file.row(u64::from(key.row_group), row) as i64);
        let column = Arc::new(Int64Array::from_iter_values(values));
        let batch = RecordBatch::try_new(Arc::clone(&self.source.schema), vec![column]);
        batch.map(Some).map_err(|error| Error::new(Kind::Source, error.to_string()))
    }
}
