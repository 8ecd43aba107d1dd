//! One statement of an operation, whatever the server: which rows it takes, and what its answer has to be.

use sawmill_pgcopy::PgType;
use sawmill_profile::format_counted;
use sawmill_source::Result;

use crate::mix::pick::Pick;
use crate::plan::types::{Parameter, Work};
use crate::proof::states::{Known, RowState};
use crate::work::outcome::{CHECK, Change, Failure};
use crate::work::rows::{Rows, SharedTable};

/// Receives the arguments of a statement, in their order.
pub(crate) trait Arguments {
    /// All fields of a row, encoded as in COPY.
    fn row(&mut self, row: &[u8]);
    /// The number of a row.
    fn key(&mut self, _number: u64) {}
    /// One field of a row.
    fn field(&mut self, _of: PgType, _field: Option<&[u8]>) {}
    /// The value that an earlier statement has read.
    fn variable(&mut self, _number: usize) {}
}

/// The expected answer of a statement.
#[derive(Debug, Default)]
pub(crate) enum Expect {
    #[default]
    Anything,
    /// This many rows, returned or changed.
    Rows(u64),
    /// One row without NULLs: its fields are the values of variables.
    Variables,
    /// This row was changed. An update may find that another operation has deleted it; a deletion is the only one.
    Changed { table: usize, number: u64, deletes: bool },
    /// This row, unless its known state has changed since.
    Row { table: usize, number: u64, known: Known, row: Vec<u8> },
}

/// Passes the arguments of a statement to `out`. `None` if no earlier row is suitable.
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
                Some(Expect::Changed { table: *table, number, deletes: false })
            }
        },
        Work::Delete { table, pick, .. } => {
            rows.claim(*table, *pick, draw, Change::Delete).map(|(number, _)| {
                out.key(number);
                Expect::Changed { table: *table, number, deletes: true }
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
        Work::Sql { parameters, into, expect, .. } => {
            for parameter in parameters {
                match parameter {
                    Parameter::Column { row, column } => rows.column(*row, *column, out),
                    Parameter::Variable(number) => out.variable(*number),
                }
            }
            Some(match expect {
                _ if !into.is_empty() => Expect::Variables,
                Some(count) => Expect::Rows(*count),
                None => Expect::Anything,
            })
        }
    })
}

/// A new row, or as often an earlier one with other values.
fn upsert(rows: &mut Rows, table: usize, draw: u64, out: &mut impl Arguments) -> Result<()> {
    let earlier = if draw % 2 == 1 { rows.claim(table, Pick::Uniform, draw, Change::Update) } else { None };
    match earlier {
        // The statement adds 1 to an existing row; if there is none, its updates are lost.
        Some((number, known)) => out.row(&rows.next_version(table, number, known, 0)?),
        None => rows.fresh(table, Change::Insert, |_, row| out.row(row))?,
    }
    Ok(())
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
        let wrong = |what: String, without_effect| Err(Failure::new(CHECK, what, without_effect));
        match self {
            Self::Variables if count != 1 => {
                Err(Failure::variable(format!("{count} rows where one is read")))
            }
            Self::Anything | Self::Variables => Ok(count),
            Self::Rows(expected) if *expected == count => Ok(count),
            Self::Rows(expected) => wrong(format!("{count} rows where {expected} are expected"), count == 0),
            Self::Changed { .. } if count == 1 => Ok(count),
            Self::Changed { table, number, deletes } => {
                let table = &rows.tables[*table];
                let state = table.states.get(*number).state;
                let is_gone = !deletes && matches!(state, RowState::Deleted | RowState::MaybeDeleted);
                if count == 0 && (is_gone || table.undeclared.is_some()) {
                    return Ok(count);
                }
                let what = format!("table {}, row {number}: {count} rows were changed", table.name);
                wrong(what, count == 0)
            }
            Self::Row { table, number, known, .. } => {
                let table = &rows.tables[*table];
                // A statement that does not declare its writes may have changed the row.
                if count == 1 && equal || table.undeclared.is_some() {
                    return Ok(count);
                }
                let wrong = other(table, *number, *known, count, version);
                wrong.map_or(Ok(count), |what| Err(table.wrong_read(*number, &what)))
            }
        }
    }

    /// The read row, whose versions are compared: custom statements may set any.
    pub(crate) fn compared(&self, rows: &Rows) -> Option<(usize, u64)> {
        let Self::Row { table, number, .. } = self else { return None };
        let shared = &rows.tables[*table];
        let own = [RowState::MaybeOwn, RowState::Own].contains(&shared.states.get(*number).state);
        (!own && shared.undeclared.is_none()).then_some((*table, *number))
    }
}

/// How an answer is wrong that is not the row as it was known when the read was made; `None` if another operation may
/// have changed the row since.
fn other(table: &SharedTable, number: u64, known: Known, count: u64, version: Option<i64>) -> Option<String> {
    let now = table.states.get(number);
    let version = match (count, version) {
        (0, _) if now.state == RowState::Acknowledged => {
            return Some("an acknowledged row is not there".to_owned());
        }
        (0, _) => return None,
        (1, _) if matches!(now.state, RowState::MaybeOwn | RowState::Own) => return None,
        (1, Some(version)) => version,
        (1, None) => return Some("the row has no version".to_owned()),
        _ => return Some("the row is there more than once".to_owned()),
    };
    let acknowledged = known.ahead(now.version.into());
    let newest = acknowledged + i64::from(now.pending);
    match known.ahead(version) {
        ahead if ahead < 0 => {
            let missing = format_counted(ahead.unsigned_abs(), "acknowledged update");
            Some(format!("a stale read without {missing}"))
        }
        ahead if ahead > newest => {
            let more = format_counted((ahead - newest).unsigned_abs(), "update");
            Some(format!("it has {more} more than were sent"))
        }
        0 if !now.contended => Some("the row has other values than were written".to_owned()),
        ahead => {
            if ahead > acknowledged {
                table.read_early(number, version);
            }
            None
        }
    }
}
