//! One statement of an operation, whatever the server: which rows it takes, and what its answer has to be.

use sawmill_source::Result;

use crate::mix::block::fields;
use crate::mix::pick::Pick;
use crate::plan::types::{Work, Writes};
use crate::proof::states::{Known, RowState};
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
        known: Known,
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
            Some((number, known)) => {
                out.row(&rows.next_version(*table, number, known, 1)?);
                Some(Expect::Rows(1))
            }
        },
        Work::Delete { table, pick, .. } => {
            rows.claim(*table, *pick, draw, Change::Delete).map(|(number, _)| {
                out.key(number);
                Expect::Rows(1)
            })
        }
        Work::Select { table, pick, .. } => match rows.pick(*table, *pick, draw, false) {
            None => None,
            Some((number, known)) => {
                out.key(number);
                let row = rows.old(*table, number, known)?;
                Some(Expect::Row { table: *table, number, known, row })
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
        // The statement itself adds 1 where the row is there; if it is not, its updates are lost.
        Some((number, known)) => out.row(&rows.next_version(table, number, known, 0)?),
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
    let Work::Sql { table, parameters, pick, expect, writes, .. } = work else { return Ok(None) };
    let (mut new, mut old) = (Vec::new(), Vec::new());
    if parameters.iter().any(|parameter| !parameter.old) {
        let change = if *writes == Writes::Insert { Change::OwnInsert } else { Change::Outside };
        new = rows.fresh(*table, change, |_, row| row.to_vec())?;
    }
    if parameters.iter().any(|parameter| parameter.old) {
        let chosen = match writes {
            Writes::Update => rows.claim(*table, *pick, draw, Change::OwnUpdate),
            Writes::Delete => rows.claim(*table, *pick, draw, Change::Delete),
            Writes::Nothing | Writes::Insert | Writes::Undeclared => rows.pick(*table, *pick, draw, true),
        };
        let Some((number, known)) = chosen else { return Ok(None) };
        old = rows.old(*table, number, known)?;
    }
    for parameter in parameters {
        let row = if parameter.old { &old } else { &new };
        out.field(parameter.column, fields(row).nth(parameter.column).flatten());
    }
    Ok(Some(expect.map_or(Expect::Anything, Expect::Rows)))
}

impl Expect {
    /// Judges an answer: the rows that were returned or changed, whether a returned one is the expected one, and which
    /// version it has.
    pub(crate) fn judge(
        &self,
        rows: &Rows,
        count: u64,
        equal: bool,
        version: Option<i64>,
    ) -> std::result::Result<u64, Failure> {
        let wrong = |what: String, without_effect| Err(Failure::new("check", what, without_effect));
        match self {
            Self::Anything => Ok(count),
            Self::Rows(expected) if *expected == count => Ok(count),
            Self::Rows(expected) => wrong(format!("{count} rows where {expected} are expected"), count == 0),
            Self::Row { table, number, known, .. } => {
                let table = &rows.tables[*table];
                if count == 1 && equal {
                    return Ok(count);
                }
                // Another operation may have changed the row since.
                let now = table.states.get(*number);
                let what = match (count, version) {
                    (0, _) if matches!(now.state, RowState::Acknowledged | RowState::MaybeUpdated) => {
                        "an acknowledged row is not there".to_owned()
                    }
                    (0, _) => return Ok(count),
                    (1, Some(version)) => {
                        let newest = known.ahead(now.version.into()) + now.pending();
                        match known.ahead(version) {
                            ahead if ahead < 0 => {
                                format!("a stale read: {} acknowledged updates are missing", -ahead)
                            }
                            ahead if ahead > newest => {
                                format!("it has {} updates more than were sent", ahead - newest)
                            }
                            0 => "the row has other values than were written".to_owned(),
                            _ => return Ok(count),
                        }
                    }
                    (1, None) => "the row has no version".to_owned(),
                    _ => "the row is there more than once".to_owned(),
                };
                wrong(format!("table {}, row {number}: {what}", table.name), true)
            }
        }
    }
}
