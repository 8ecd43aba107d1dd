//! Batches in memory as a source of a load: a row group for each batch.

use arrow_array::{Array, RecordBatch};
use arrow_data::ArrayData;
use arrow_schema::SchemaRef;
use sawmill_source::{
    Error, Facts, Kind, Known, Mapping, Read, Result, RowPlace, Source, SourceFile, Unit, UnitKey,
    UnitReader, counted_places, recut,
};
use xxhash_rust::xxh3::Xxh3;

/// Batches as the one file of a source. Its name is a hash of the rows, so that the same rows resume a load.
pub(crate) struct Batches {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    files: Vec<SourceFile>,
}

impl Batches {
    pub(crate) fn new(schema: SchemaRef, mut batches: Vec<RecordBatch>) -> Self {
        batches.retain(|batch| batch.num_rows() > 0);
        let mut hash = Xxh3::new();
        hash.update(format!("{schema:?}").as_bytes());
        let mut bytes = 0;
        for column in batches.iter().flat_map(RecordBatch::columns) {
            hash_of(&column.to_data(), &mut hash, &mut bytes);
        }
        let fingerprint = format!("{:032x}", hash.digest128());
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let name = format!("arrow:{fingerprint}");
        let files = vec![SourceFile {
            name,
            stamp: Some(fingerprint.clone()),
            fingerprint,
            rows,
            bytes,
            columns: None,
        }];
        Self { schema, batches, files }
    }
}

/// Adds the buffers of an array, and of those below it.
fn hash_of(data: &ArrayData, hash: &mut Xxh3, bytes: &mut u64) {
    hash.update(&[data.len().to_le_bytes(), data.offset().to_le_bytes()].concat());
    let nulls = data.nulls().map(|nulls| nulls.buffer());
    for buffer in data.buffers().iter().chain(nulls) {
        hash.update(buffer.as_slice());
        *bytes += buffer.len() as u64;
    }
    data.child_data().iter().for_each(|child| hash_of(child, hash, bytes));
}

impl Source for Batches {
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
        let groups = (0u32..).zip(&self.batches).map(|(row_group, batch)| Unit {
            key: UnitKey { file: 0, row_group, first_row: 0 },
            rows: batch.num_rows() as u64,
            bytes: batch.get_array_memory_size() as u64,
        });
        recut(groups.collect(), unit_rows)
    }

    fn known(&self, _file: u32, _column: usize) -> Result<Vec<Known>> {
        Ok(Vec::new())
    }

    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    fn locate(&self, _group: UnitKey, rows: &[u64], _named: bool) -> Result<Vec<RowPlace>> {
        Ok(counted_places(rows))
    }

    fn open(&self, read: Read<'_>, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        read.of(Box::new(Slices { batches: self, batch_rows: batch_rows.max(1), unit: None }))
    }
}

/// Slices of the batches.
struct Slices<'a> {
    batches: &'a Batches,
    batch_rows: usize,
    /// The batch, and the rows of the unit that are left.
    unit: Option<(&'a RecordBatch, std::ops::Range<usize>)>,
}

impl UnitReader for Slices<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        let batch = self.batches.batches.get(unit.key.row_group as usize);
        let first = usize::try_from(unit.key.first_row).unwrap_or(usize::MAX);
        let end = usize::try_from(unit.rows).unwrap_or(usize::MAX).checked_add(first);
        match (batch, end) {
            (Some(batch), Some(end)) if end <= batch.num_rows() => {
                self.unit = Some((batch, first..end));
                Ok(())
            }
            _ => Err(Error::new(Kind::Source, "the stream has other batches than the plan of the load")),
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some((batch, rows)) = &mut self.unit else { return Ok(None) };
        let take = rows.len().min(self.batch_rows);
        if take == 0 {
            return Ok(None);
        }
        let slice = batch.slice(rows.start, take);
        rows.start += take;
        Ok(Some(slice))
    }
}
