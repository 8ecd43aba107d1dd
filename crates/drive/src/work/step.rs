//! One statement of an operation, whatever the server: which rows it takes, and what its answer has to be.

use sawmill_source::Result;

use crate::mix::block::fields;
use crate::mix::pick::Pick;
use crate::plan::types::Work;
use crate::proof::states::RowState;
use crate::work::outcome::{Change, Failure};
use crate::work::rows::Rows;

/// Receives the arguments of a statement, in their order.
pub(crate) trait Arguments {
    /// All fields of a row, encoded as in COPY.
    fn row(&mut self, row: &[u8]);
    /// The number of a row.
    fn key(&mut self, number: u64);
    /// One field of a row.
    fn field(&mut self, column: usize, field: Option<&[u8]>);
}

/// What a statement has to return.
#[derive(Debug)]
pub(crate) enum Expect {
    Anything,
    /// As many rows, returned or changed.
    Rows(u64),
    /// This row, unless what is known of it has changed meanwhile.
    Row {
        table: usize,
        number: u64,
        state: RowState,
        row: Vec<u8>,
    },
}

/// Passes the arguments of a statement to `out`. `None` if there is no earlier row that it could take.
pub(crate) fn arguments(
    rows: &mut Rows,
    work: &Work,
    draw: u64,
    out: &mut impl Arguments,
) -> Result<Option<Expect>> {
    Ok(match work {
        Work::Insert { table, rows: count, upsert: true, .. } => {
            for i in 0..*count {
                upsert(rows, *table, draw.wrapping_add(i), out)?;
            }
            Some(Expect::Rows(*count))
        }
        Work::Insert { table, rows: count, .. }
        | Work::Copy { table, rows: count }
        | Work::Bulk { table, rows: count }
        | Work::Unnest { table, rows: count, .. } => {
            for _ in 0..*count {
                rows.fresh(*table, Change::Insert, |_, row| out.row(row))?;
            }
            Some(Expect::Rows(*count))
        }
        Work::Update { table, pick, .. } => match rows.claim(*table, *pick, draw, Change::Update) {
            None => None,
            Some(number) => {
                out.row(rows.old(*table, number, 1)?);
                Some(Expect::Rows(1))
            }
        },
        Work::Delete { table, pick, .. } => rows.claim(*table, *pick, draw, Change::Delete).map(|number| {
            out.key(number);
            Expect::Rows(1)
        }),
        Work::Select { table, pick, .. } => match rows.pick(*table, *pick, draw) {
            None => None,
            Some((number, state)) => {
                out.key(number);
                let row = rows.old(*table, number, version(state))?.to_vec();
                Some(Expect::Row { table: *table, number, state, row })
            }
        },
        Work::Sql { .. } => own_statement(rows, work, draw, out)?,
    })
}

/// A new row, or as often an earlier one with other values.
fn upsert(rows: &mut Rows, table: usize, draw: u64, out: &mut impl Arguments) -> Result<()> {
    let earlier = match draw % 2 == 1 {
        true => rows.claim(table, Pick::Uniform, draw, Change::Update),
        false => None,
    };
    match earlier {
        Some(number) => out.row(rows.old(table, number, 1)?),
        None => rows.fresh(table, Change::Insert, |_, row| out.row(row))?,
    }
    Ok(())
}

/// The parameters of a statement of the user's own: of a new row, of an earlier one, or of both.
fn own_statement(
    rows: &mut Rows,
    work: &Work,
    draw: u64,
    out: &mut impl Arguments,
) -> Result<Option<Expect>> {
    let Work::Sql { table, parameters, pick, expect, .. } = work else { return Ok(None) };
    let (mut new, mut old) = (Vec::new(), Vec::new());
    if parameters.iter().any(|parameter| !parameter.old) {
        new = rows.fresh(*table, Change::Outside, |_, row| row.to_vec())?;
    }
    if parameters.iter().any(|parameter| parameter.old) {
        let Some((number, state)) = rows.pick(*table, *pick, draw) else { return Ok(None) };
        old = rows.old(*table, number, version(state))?.to_vec();
    }
    for parameter in parameters {
        let row = if parameter.old { &old } else { &new };
        out.field(parameter.column, fields(row).nth(parameter.column).flatten());
    }
    Ok(Some(expect.map_or(Expect::Anything, Expect::Rows)))
}

/// The version of a row's values that the server has acknowledged.
fn version(state: RowState) -> u64 {
    u64::from(state == RowState::Updated)
}

impl Expect {
    /// Judges an answer: the rows that were returned or changed, and whether a returned one is the expected one.
    pub(crate) fn judge(&self, rows: &Rows, count: u64, equal: bool) -> std::result::Result<u64, Failure> {
        let wrong = |what: String, without_effect| Err(Failure::new("check", what, without_effect));
        match self {
            Self::Anything => Ok(count),
            Self::Rows(expected) if *expected == count => Ok(count),
            Self::Rows(expected) => wrong(format!("{count} rows where {expected} are expected"), count == 0),
            Self::Row { table, number, state, .. } => {
                let table = &rows.tables[*table];
                // If another operation has changed the row meanwhile, either answer is right.
                if count == 1 && equal || table.states.get(*number) != *state {
                    return Ok(count);
                }
                let what = match count {
                    0 => "an acknowledged row is not there",
                    1 => "the row has other values than were written",
                    _ => "the row is there more than once",
                };
                wrong(format!("table {}, row {number}: {what}", table.name), true)
            }
        }
    }
}
