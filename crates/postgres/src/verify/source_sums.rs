//! The sums of a source's encoded rows: the same sums that the loader computes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use sawmill_loader::{BatchEncoder, Block, LoadOptions, Schedule, Tally, refusal_error};
use sawmill_pgcopy::{Buffers, Column};
use sawmill_profile::on_threads;
use sawmill_source::{Control, Error, Kind, Read, Result, Source};

use crate::encode::canonical_row::CanonicalRow;
use crate::encode::rejecting::{RejectingEncoder, marked_rows};
use crate::encode::summing::SummingEncoder;
use crate::rejected::bad_records::BadRecords;
use crate::verify::read_back::Sums;
use crate::verify::tuples::Tuples;

/// A source, and how it is encoded.
#[derive(Clone, Copy)]
pub(crate) struct SourceSums<'a> {
    pub source: &'a dyn Source,
    pub columns: &'a Arc<Vec<Column>>,
    pub options: &'a LoadOptions,
    pub unit_rows: u64,
    /// Also sums each column separately.
    pub each_column: bool,
    /// Numerics that differ only in their display scale are equal.
    pub by_value: bool,
    /// Leaves out and counts rows that cannot be encoded; otherwise the first of them is an error.
    pub leave_out: bool,
    /// Other rows to leave out, if rows are left out, and not to count.
    pub refused: Option<&'a BadRecords>,
}

impl SourceSums<'_> {
    /// Encodes and sums all rows, with as many threads as there are connections. Also returns the number of
    /// rows that were left out.
    pub(crate) fn run(&self, control: &Control<'_>) -> Result<(Sums, u64)> {
        let Self { source, columns, options, .. } = *self;
        let schedule = Schedule::new(source.plan(self.unit_rows));
        let (stop, left_out) = (AtomicBool::new(false), AtomicU64::new(0));
        let control = control.with_stop(&stop);
        let encode = |_| -> Result<Sums> {
            let read = Read { broken_text: true, ..Read::default() };
            let mut reader = source.open(read, options.batch_rows);
            let encoder = SummingEncoder::new(Arc::clone(columns), Buffers::new(options.batch_bytes));
            let mut encoder: Box<dyn BatchEncoder> = match self.leave_out {
                false => Box::new(encoder),
                true => Box::new(RejectingEncoder::new(encoder)),
            };
            // The encoder sums all whole rows that it encodes. For anything else they are parsed again.
            let again = self.each_column || self.by_value || self.refused.is_some();
            let canonical = CanonicalRow::new(columns, self.by_value);
            let mut tuples = Tuples::new(columns.len(), canonical, self.each_column);
            let mut encoded = Tally::empty(columns.len());
            let mut place = None;
            while let Some(unit) = schedule.next(&mut place) {
                let others = self.refused.map(|records| records.rows_of(&unit)).transpose()?;
                let mut feed = |block: Block| {
                    let refused = block.marks.as_ref().map_or(0, |marks| marks.refused.len());
                    left_out.fetch_add(refused as u64, Relaxed);
                    let fed = match (&block.marks, &others) {
                        (Some(_), Some(others)) if !others.is_empty() => {
                            let mut start = 0;
                            marked_rows(&block).try_for_each(|mark| {
                                let row = &block.bytes[start..mark.end as usize];
                                start = mark.end as usize;
                                match others.contains(&(unit.key.first_row + u64::from(mark.row))) {
                                    true => Ok(()),
                                    false => tuples.feed(row),
                                }
                            })
                        }
                        _ if again => tuples.feed(&block.bytes),
                        _ => Ok(()),
                    };
                    fed.map_err(|what| Error::new(Kind::Source, what))
                };
                let mut row = unit.key.first_row;
                reader.start(&unit)?;
                encoder.begin_unit(&unit);
                while let Some(batch) = reader.next_batch()? {
                    control.check()?;
                    encoder
                        .encode(&batch, &mut feed)
                        .map_err(|refusal| refusal_error(refusal, source, reader.as_ref(), unit.key, row))?;
                    row += batch.num_rows() as u64;
                }
                encoded.add(&encoder.end_unit(&mut feed)?);
            }
            Ok(if again { tuples.into_sums() } else { Sums { whole: encoded, each: Vec::new() } })
        };
        let sums = on_threads("source", 1..options.degree.max(1) + 1, &stop, encode)?;
        Ok((Sums::new(sums, columns.len()), left_out.into_inner()))
    }
}
