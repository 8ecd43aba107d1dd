//! Writes a Parquet file whose columns are encoded by several threads.
//!
//! ```text
//!             ┌─▶ encoder 0: columns 0, 3 ─┐
//! batches ────┼─▶ encoder 1: columns 1, 4 ─┼─▶ row groups ─▶ file
//!             └─▶ encoder 2: column 2     ─┘
//! ```
//!
//! The number of encoders does not change a byte, nor where row groups end. Memory is bounded: the row group
//! that is being encoded, the one before it, and [`AHEAD`] batches.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, SchemaRef};
use crossbeam_channel::{Receiver, Sender, unbounded};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use sawmill_profile::{SpanSink, ThreadFailure, caught, span};
use sawmill_source::parquet_schema;

/// How many batches the encoders may be behind.
const AHEAD: usize = 4;

/// A Parquet file that is being written.
pub(super) struct EncodedFile<W: Write + Send> {
    file: SerializedFileWriter<Taken<W>>,
    writers: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    most_rows: usize,
    encoders: Vec<Encoder>,
    /// How long each field took in a row group.
    costs: Vec<Duration>,
    /// The row groups begun.
    row_groups: usize,
    /// The batches and row groups that the encoders have not answered yet, the oldest first.
    awaited: VecDeque<Awaited>,
    /// The rows of the row group that is being encoded.
    rows: usize,
    /// How many of them the encoders have answered for, and their encoded bytes.
    known: (usize, usize),
    /// The same of all row groups before.
    before: (usize, usize),
}

enum Awaited {
    Rows(usize),
    RowGroup,
}

impl<W: Write + Send> EncodedFile<W> {
    /// Begins a file whose columns this many threads encode.
    pub(super) fn begin(
        out: W,
        schema: SchemaRef,
        properties: WriterProperties,
        encoders: usize,
        spans: &SpanSink,
    ) -> Result<Self> {
        let most_rows = properties.max_row_group_row_count().unwrap_or(usize::MAX);
        let mut options = ArrowWriterOptions::new().with_properties(properties);
        if let Some(annotated) = parquet_schema(&schema)? {
            options = options.with_parquet_schema(annotated);
        }
        let writer = ArrowWriter::try_new_with_options(Taken(Some(out)), schema.clone(), options)?;
        let (file, writers) = writer.into_serialized_writer()?;
        let encoders = encoders.clamp(1, schema.fields().len().max(1));
        Ok(Self {
            file,
            writers,
            most_rows,
            encoders: (0..encoders).map(|number| Encoder::start(number, spans)).collect::<Result<_>>()?,
            costs: vec![Duration::ZERO; schema.fields().len()],
            schema,
            row_groups: 0,
            awaited: VecDeque::new(),
            rows: 0,
            known: (0, 0),
            before: (0, 0),
        })
    }

    /// Adds rows. An error may be one of the rows before.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut first = 0;
        while first < batch.num_rows() {
            let rows = (batch.num_rows() - first).min(self.most_rows - self.rows);
            self.encode(&batch.slice(first, rows))?;
            first += rows;
            if self.rows >= self.most_rows {
                self.end_row_group();
            }
        }
        Ok(())
    }

    fn encode(&mut self, rows: &RecordBatch) -> Result<()> {
        if self.rows == 0 {
            self.begin_row_group()?;
        }
        while self.awaited.len() >= AHEAD {
            self.take_answers()?;
        }
        for encoder in &self.encoders {
            encoder.give(Task::Encode(rows.clone()));
        }
        self.awaited.push_back(Awaited::Rows(rows.num_rows()));
        self.rows += rows.num_rows();
        Ok(())
    }

    /// Gives each encoder its columns, so that all of them take about as long.
    fn begin_row_group(&mut self) -> Result<()> {
        let mut writers = self.writers.create_column_writers(self.row_groups)?.into_iter();
        self.row_groups += 1;
        let columns = self.file.schema_descr();
        let mut leaves = vec![0; self.schema.fields().len()];
        for leaf in 0..columns.num_columns() {
            if let Some(leaves) = leaves.get_mut(columns.get_column_root_idx(leaf)) {
                *leaves += 1;
            }
        }
        let mut fields: Vec<Vec<FieldEncoder>> = self.encoders.iter().map(|_| Vec::new()).collect();
        let encoders = shares(&self.costs, self.encoders.len());
        for (at, field) in self.schema.fields().iter().enumerate() {
            let leaves = writers.by_ref().take(leaves[at]).collect();
            fields[encoders[at]].push(FieldEncoder {
                at,
                field: field.clone(),
                leaves,
                took: Duration::ZERO,
            });
        }
        for (encoder, fields) in self.encoders.iter().zip(fields) {
            encoder.give(Task::Begin(fields));
        }
        Ok(())
    }

    /// Ends the row group: the next row begins another one.
    pub(super) fn end_row_group(&mut self) {
        if self.rows > 0 {
            for encoder in &self.encoders {
                encoder.give(Task::End);
            }
            self.awaited.push_back(Awaited::RowGroup);
            self.rows = 0;
        }
    }

    /// Waits until all encoders have done the oldest task.
    fn take_answers(&mut self) -> Result<()> {
        match self.awaited.pop_front() {
            None => {}
            Some(Awaited::Rows(rows)) => {
                let mut bytes = 0;
                for encoder in &self.encoders {
                    if let Answer::Encoded(more) = encoder.answer()? {
                        bytes += more;
                    }
                }
                self.known = (self.known.0 + rows, bytes);
            }
            Some(Awaited::RowGroup) => {
                let mut fields = Vec::with_capacity(self.costs.len());
                for encoder in &self.encoders {
                    if let Answer::Ended(more) = encoder.answer()? {
                        fields.extend(more);
                    }
                }
                self.append(fields)?;
            }
        }
        Ok(())
    }

    /// Writes a row group.
    fn append(&mut self, mut fields: Vec<EndedField>) -> Result<()> {
        fields.sort_unstable_by_key(|field| field.at);
        let mut row_group = self.file.next_row_group()?;
        for field in fields {
            self.costs[field.at] = field.took;
            for chunk in field.chunks {
                chunk.append_to_row_group(&mut row_group)?;
            }
        }
        row_group.close()?;
        self.before = (self.before.0 + self.known.0, self.file.bytes_written());
        self.known = (0, 0);
        Ok(())
    }

    /// About how many bytes the file would have if it ended here. For the same batches always the same.
    pub(super) fn bytes(&mut self) -> Result<u64> {
        while self.before.0 + self.known.0 == 0 && !self.awaited.is_empty() {
            self.take_answers()?;
        }
        let (rows, bytes) = (self.before.0 + self.known.0, self.before.1 + self.known.1);
        let waiting: usize = self.awaited.iter().map(Awaited::rows).sum();
        Ok(scaled(bytes, rows, rows + waiting))
    }

    /// About how many bytes the row group has that is being encoded. For the same batches always the same.
    pub(super) fn row_group_bytes(&self) -> u64 {
        match self.awaited.iter().any(|awaited| matches!(awaited, Awaited::RowGroup)) {
            // So far the encoders have only answered for the row group before.
            true => 0,
            false => scaled(self.known.1, self.known.0, self.rows),
        }
    }

    /// Completes the file.
    pub(super) fn finish(mut self) -> Result<W> {
        self.end_row_group();
        while !self.awaited.is_empty() {
            self.take_answers()?;
        }
        self.encoders.clear();
        self.file.finish()?;
        // `into_inner` would make a text of an error of the output.
        self.file
            .inner_mut()
            .0
            .take()
            .ok_or_else(|| ParquetError::General("the file was already finished".to_owned()))
    }
}

/// An output that can be taken back from its writer.
struct Taken<W>(Option<W>);

impl<W: Write> Write for Taken<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_mut().map_or(Ok(bytes.len()), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Awaited {
    fn rows(&self) -> usize {
        match self {
            Self::Rows(rows) => *rows,
            Self::RowGroup => 0,
        }
    }
}

/// The bytes of `wanted` rows if `rows` take `bytes`.
fn scaled(bytes: usize, rows: usize, wanted: usize) -> u64 {
    // The product of a size and a number of rows fits into 128 bits.
    (bytes as u128 * wanted as u128 / rows.max(1) as u128) as u64
}

/// For each field its encoder: the field that takes longest goes to the one that has least to do.
fn shares(costs: &[Duration], encoders: usize) -> Vec<usize> {
    let mut longest_first: Vec<usize> = (0..costs.len()).collect();
    longest_first.sort_by_key(|field| std::cmp::Reverse(costs[*field]));
    let mut loads = vec![(Duration::ZERO, 0); encoders];
    let mut of = vec![0; costs.len()];
    for field in longest_first {
        if let Some((encoder, (load, fields))) = loads.iter_mut().enumerate().min_by_key(|(_, load)| **load) {
            of[field] = encoder;
            *load += costs[field];
            *fields += 1;
        }
    }
    of
}

/// A thread that encodes some of the columns.
struct Encoder {
    tasks: Option<Sender<Task>>,
    answers: Receiver<Result<Answer>>,
    thread: Option<JoinHandle<()>>,
}

enum Task {
    /// Begins a row group with these fields.
    Begin(Vec<FieldEncoder>),
    Encode(RecordBatch),
    /// Ends the row group.
    End,
}

enum Answer {
    /// The bytes of the row group so far.
    Encoded(usize),
    Ended(Vec<EndedField>),
}

struct EndedField {
    at: usize,
    chunks: Vec<ArrowColumnChunk>,
    took: Duration,
}

impl Encoder {
    fn start(number: usize, spans: &SpanSink) -> Result<Self> {
        let (tasks, given) = unbounded();
        let (answer, answers) = unbounded();
        let (name, spans) = (format!("encoder-{number}"), spans.clone());
        let thread = Builder::new().name(name.clone()).spawn(move || {
            let _attached = spans.attach(&format!("encoder {number}"));
            let encoded = caught::<_, ThreadFailure>(&name, || {
                encode(&given, &answer);
                Ok(())
            });
            if let Err(panicked) = encoded {
                // If no one waits for its answers any more, another error is the one to report.
                let _ = answer.send(Err(ParquetError::General(panicked.to_string())));
            }
        })?;
        Ok(Self { tasks: Some(tasks), answers, thread: Some(thread) })
    }

    /// Gives it something to do. If it has failed, its answers say so.
    fn give(&self, task: Task) {
        if let Some(tasks) = &self.tasks {
            let _ = tasks.send(task);
        }
    }

    fn answer(&self) -> Result<Answer> {
        self.answers.recv().unwrap_or_else(|_| Err(ParquetError::General("an encoder has ended".to_owned())))
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            // A panic was an answer.
            let _ = thread.join();
        }
    }
}

/// Runs an encoder: carries out its tasks until the channel closes or one fails.
fn encode(tasks: &Receiver<Task>, answers: &Sender<Result<Answer>>) {
    let mut fields = Vec::new();
    for task in tasks {
        let _encoding = span("encode");
        let answer = match task {
            Task::Begin(of) => {
                fields = of;
                continue;
            }
            Task::Encode(rows) => {
                let bytes = fields.iter_mut().map(|field: &mut FieldEncoder| field.encode(&rows));
                bytes.sum::<Result<usize>>().map(Answer::Encoded)
            }
            Task::End => {
                fields.drain(..).map(FieldEncoder::end).collect::<Result<Vec<_>>>().map(Answer::Ended)
            }
        };
        let failed = answer.is_err();
        if answers.send(answer).is_err() || failed {
            return;
        }
    }
}

/// A column, with the fields within it.
struct FieldEncoder {
    /// Its position in the schema.
    at: usize,
    field: FieldRef,
    leaves: Vec<ArrowColumnWriter>,
    took: Duration,
}

impl FieldEncoder {
    /// Encodes its column of the batch; returns the bytes of the row group so far.
    fn encode(&mut self, rows: &RecordBatch) -> Result<usize> {
        let started = Instant::now();
        let leaves = compute_leaves(&self.field, rows.column(self.at))?;
        let mut bytes = 0;
        for (writer, leaf) in self.leaves.iter_mut().zip(&leaves) {
            writer.write(leaf)?;
            bytes += writer.get_estimated_total_bytes();
        }
        self.took += started.elapsed();
        Ok(bytes)
    }

    fn end(self) -> Result<EndedField> {
        let started = Instant::now();
        let chunks = self.leaves.into_iter().map(ArrowColumnWriter::close).collect::<Result<_>>()?;
        Ok(EndedField { at: self.at, chunks, took: self.took + started.elapsed() })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, StructArray};
    use arrow_schema::Field;
    use sawmill_profile::Profile;

    use super::*;

    /// Rows with a number, a text, a list and a struct, some of them null.
    fn rows(first: i64, rows: i64) -> RecordBatch {
        let numbers = first..first + rows;
        let number: ArrayRef =
            Arc::new(numbers.clone().map(|n| (n % 7 > 0).then_some(n)).collect::<Int64Array>());
        let text: StringBuilder = numbers.clone().fold(StringBuilder::new(), |mut texts, n| {
            texts.append_option((n % 5 > 0).then(|| format!("text {}", n % 100)));
            texts
        });
        let mut lists = ListBuilder::new(StringBuilder::new());
        for n in numbers.clone() {
            (0..n % 3).for_each(|at| lists.values().append_value(format!("{n}-{at}")));
            lists.append(n % 11 > 0);
        }
        let float: ArrayRef = Arc::new(numbers.map(|n| n as f64 / 3.0).collect::<Float64Array>());
        let fields = [("n", &number), ("f", &float)];
        let fields = fields.map(|(name, column)| Field::new(name, column.data_type().clone(), true));
        let both = StructArray::new(fields.to_vec().into(), vec![number.clone(), float.clone()], None);
        let columns: [(&str, ArrayRef); 5] = [
            ("n", number),
            ("t", Arc::new({ text }.finish())),
            ("l", Arc::new(lists.finish())),
            ("s", Arc::new(both)),
            ("f", float),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
    }

    fn properties() -> WriterProperties {
        WriterProperties::builder().set_max_row_group_row_count(Some(2500)).build()
    }

    fn begin<W: Write + Send>(out: W, encoders: usize) -> EncodedFile<W> {
        let sink = Profile::new().phase("test").sink();
        EncodedFile::begin(out, rows(0, 0).schema(), properties(), encoders, &sink).unwrap()
    }

    fn encoded(batches: &[RecordBatch], encoders: usize) -> Vec<u8> {
        let mut file = begin(Vec::new(), encoders);
        batches.iter().for_each(|batch| file.write(batch).unwrap());
        file.finish().unwrap()
    }

    #[test]
    fn the_bytes_are_those_of_one_writer_for_any_number_of_encoders() {
        let batches: Vec<RecordBatch> = (0..10).map(|n| rows(n * 1000, 1000)).collect();
        let mut alone = ArrowWriter::try_new(Vec::new(), batches[0].schema(), Some(properties())).unwrap();
        batches.iter().for_each(|batch| alone.write(batch).unwrap());
        let alone = alone.into_inner().unwrap();
        for encoders in [1, 2, 3, 5, 64] {
            assert!(encoded(&batches, encoders) == alone, "{encoders} encoders");
        }
        // One batch of several row groups.
        assert!(encoded(&[rows(0, 10_000)], 2) == alone);
    }

    #[test]
    fn a_file_without_rows_has_its_columns() {
        let empty = ArrowWriter::try_new(Vec::new(), rows(0, 0).schema(), Some(properties())).unwrap();
        assert!(encoded(&[rows(0, 0)], 2) == empty.into_inner().unwrap());
    }

    #[test]
    fn the_size_is_about_right_and_the_same_in_every_run() {
        let sizes = || {
            let mut file = begin(Vec::new(), 2);
            let sizes = (0..40).map(|n| {
                file.write(&rows(n * 300, 300)).unwrap();
                (file.bytes().unwrap(), file.row_group_bytes())
            });
            let sizes: Vec<_> = sizes.collect();
            (sizes, file.finish().unwrap().len() as u64)
        };
        let (known, bytes) = sizes();
        let (about, _) = known.last().unwrap();
        assert!((bytes * 3 / 4..bytes * 5 / 4).contains(about), "{about} of {bytes}");
        assert!(known.is_sorted_by_key(|(bytes, _)| *bytes > 0), "{known:?}");
        assert_eq!((known, bytes), sizes());
    }

    /// An output with room for this many bytes.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_output_that_is_full_is_an_error_of_a_later_row_or_of_the_end() {
        let whole = encoded(&[rows(0, 9000)], 2).len();
        for room in [0, 3, 100, whole / 2, whole - 1] {
            let sink = Profile::new().phase("test").sink();
            let file = EncodedFile::begin(Full(room), rows(0, 0).schema(), properties(), 2, &sink);
            let written = file.and_then(|mut file| {
                (0..9).try_for_each(|n| file.write(&rows(n * 1000, 1000)))?;
                file.finish()
            });
            let error = written.map(drop).unwrap_err();
            assert!(matches!(&error, ParquetError::External(_)), "{room}: {error:?}");
        }
    }
}
