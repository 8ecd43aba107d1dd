//! Compares a table with a source, whose rows are encoded once more.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use sawmill_loader::{BatchEncoder, Block, LoadOptions, Mark, Reading, Reread, Sums, Tally, Verification};
use sawmill_source::{Control, Error, Kind, Read, Result, Source, Unit, UnitKey};
use xxhash_rust::xxh3::xxh3_128;

use crate::connect::client::{Client, Cluster};
use crate::encode::canonical::{self, add_written};
use crate::encode::encoder::{CrateEncoder, EncodePlan};
use crate::table::catalogue;
use crate::table::columns::Purpose;
use crate::target::CrateDb;
use crate::verify::rows::ReadBack;
use crate::write::writer::{shown_key, values_of};

impl CrateDb {
    /// Compares table and source: number of rows, non-null values of each column, and the content sum. If they differ,
    /// both sides are read once more to name the columns that differ. The mode does not matter, whoever loaded the table. The verification may say that they differ; see
    /// [`Verification::matches`].
    ///
    /// # Errors
    /// A table that does not exist or cannot hold the source's columns exactly, a source that cannot be read,
    /// no connection.
    pub fn verify(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Verification> {
        let table = self.table()?;
        let cluster = Cluster::new(&self.server, options.patience, options.retries)?;
        let mut client = Client::new(&cluster);
        let sql = &mut client.on(control);
        // Verification writes nothing, so it needs no key.
        let mut reading = self.clone();
        reading.options.row_key = None;
        reading.options.at_least_once = true;
        let (plan, primary) = reading.existing_plan(source, &table, Purpose::Compare, sql)?;
        let existing = catalogue::columns(sql, &table)?;
        let compared = |name: &String| plan.columns.iter().any(|column| column.name == *name);
        let not_compared =
            existing.into_iter().map(|column| column.name).filter(|name| !compared(name)).collect();
        let encode = Arc::new(EncodePlan::new(&self.options, source, options.batch_bytes, plan));
        let read = ReadBack::new(&table, &encode.plan, &primary);
        let expected = |each_column| {
            let unit_rows = options.unit_rows;
            encode_source(source, &encode, options, unit_rows, each_column, control)
        };
        let columns = encode.plan.filled();
        let mut verification = Verification {
            not_compared,
            ..Verification::new(columns, expected(false)?.whole, read.run(sql)?)
        };
        if !verification.matches() {
            let names = encode.plan.columns.iter().map(|column| &column.name);
            verification.differing = expected(true)?.differing(&read.sums(true, sql)?, names);
        }
        Ok(verification)
    }
}

/// Encodes the whole source and sums it up as the loader did.
pub(crate) fn encode_source(
    source: &dyn Source,
    encode: &Arc<EncodePlan>,
    options: &LoadOptions,
    unit_rows: u64,
    each_column: bool,
    control: &Control<'_>,
) -> Result<Sums> {
    let columns = encode.plan.columns.len();
    let start = || Sums::empty(columns, each_column);
    let parts = reread(source, encode, options, unit_rows, control, start, |sums, item| match item {
        Reread::Rows(block) => match (&block.marks, each_column) {
            (Some(marks), true) => (0..marks.rows.len()).try_for_each(|row| {
                let values = values_of(&encode.plan, &block.bytes, marks, row);
                add_written(sums, values).map_err(|what| Error::new(Kind::Source, what))
            }),
            _ => Ok(()),
        },
        Reread::End(_, tally) => {
            sums.whole.add(&tally);
            Ok(())
        }
        Reread::Unit(_) => Ok(()),
    })?;
    Ok(Sums::new(parts, columns))
}

/// Encodes a source again as a load did; see [`Reading::run`].
pub(crate) fn reread<S: Send>(
    source: &dyn Source,
    encode: &Arc<EncodePlan>,
    options: &LoadOptions,
    unit_rows: u64,
    control: &Control<'_>,
    start: impl Fn() -> S + Sync,
    look: impl Fn(&mut S, Reread<'_>) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let encoders =
        || -> Result<Box<dyn BatchEncoder>> { Ok(Box::new(CrateEncoder::new(Arc::clone(encode)))) };
    let (runs, read) =
        (source.plan(unit_rows), Read { numbered: true, broken_text: true, ..Read::default() });
    Reading { source, runs, read, encoders: &encoders, options, control }.run(start, look)
}

/// A row of the source, by file, row group and number in the row group.
pub(crate) type Place = (u32, u32, u64);

/// Rows with equal values.
#[derive(Debug, Default)]
pub(crate) struct Equal {
    /// Each with its unit, in the order of the source.
    pub rows: Vec<(Place, UnitKey)>,
    /// Their key, for messages.
    pub key: String,
    /// The sum of one of them.
    pub one: Tally,
}

/// Finds all rows that are equal to another one. `names` are the columns of the primary key.
pub(crate) fn equal_rows(
    source: &dyn Source,
    encode: &Arc<EncodePlan>,
    (options, unit_rows): (&LoadOptions, u64),
    names: &[String],
    control: &Control<'_>,
) -> Result<Vec<Equal>> {
    let parts = u128::from(source.rows().div_ceil(options.locate_rows.max(1)).max(1));
    let mut repeated = HashSet::new();
    for part in 0..parts {
        let look = |hashes: &mut Vec<u128>, found: Reread<'_>| {
            if let Reread::Rows(block) = found {
                let of_rows = rows_of(encode, block).map(|(_, values)| xxh3_128(values));
                hashes.extend(of_rows.filter(|hash| hash % parts == part));
            }
            Ok(())
        };
        let mut hashes = reread(source, encode, options, unit_rows, control, Vec::new, look)?.concat();
        hashes.sort_unstable();
        repeated.extend(hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
    }
    if repeated.is_empty() {
        return Ok(Vec::new());
    }
    let look = |located: &mut Located, found: Reread<'_>| {
        match (found, located.unit) {
            (Reread::Unit(unit), _) => located.unit = Some(*unit),
            (Reread::Rows(block), Some(unit)) => {
                for (mark, values) in rows_of(encode, block) {
                    let hash = xxh3_128(values);
                    if !repeated.contains(&hash) {
                        continue;
                    }
                    let row = unit.key.first_row + u64::from(mark.row);
                    located.rows.push((hash, ((unit.key.file, unit.key.row_group, row), unit.key)));
                    let key = located.keys.entry(hash);
                    key.or_insert_with(|| {
                        let one = canonical::sent_row(values, encode.plan.columns.len());
                        (shown_key(&encode.plan, names, values), one)
                    });
                }
            }
            _ => {}
        }
        Ok(())
    };
    let threads = reread(source, encode, options, unit_rows, control, Located::default, look)?;
    let mut groups: BTreeMap<u128, Equal> = BTreeMap::new();
    for Located { rows, keys, .. } in threads {
        rows.into_iter().for_each(|(hash, row)| groups.entry(hash).or_default().rows.push(row));
        for (hash, (key, one)) in keys {
            let equal = groups.entry(hash).or_default();
            (equal.key, equal.one) = (key, one);
        }
    }
    let mut groups: Vec<Equal> = groups.into_values().collect();
    groups.iter_mut().for_each(|equal| equal.rows.sort_unstable());
    groups.sort_unstable_by(|a, b| a.rows.cmp(&b.rows));
    Ok(groups)
}

#[derive(Default)]
struct Located {
    unit: Option<Unit>,
    rows: Vec<(u128, (Place, UnitKey))>,
    keys: BTreeMap<u128, (String, Tally)>,
}

/// Each row's mark and values.
pub(crate) fn rows_of<'b>(
    encode: &'b EncodePlan,
    block: &'b Block,
) -> impl Iterator<Item = (Mark, &'b [u8])> + 'b {
    block.marks.iter().flat_map(move |marks| {
        let numbered = marks.rows.iter().enumerate();
        numbered.map(move |(i, mark)| (*mark, values_of(&encode.plan, &block.bytes, marks, i)))
    })
}
