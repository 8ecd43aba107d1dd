//! Columns that are narrower in the table than in the files. Each value is checked, and the error for one
//! that does not fit shows the change of the table that would let it in.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use sawmill_loader::{BatchEncoder, Block, Refusal, TableName, Tally, first_file_with};
use sawmill_pgcopy::PgType;
use sawmill_source::{Bounds, Error, Kind, Result, Source, Unit};

use crate::table::columns::TableColumn;
use crate::table::evolution::wider;

/// A column that is narrower in the table.
struct Narrower {
    /// Its position in the source.
    position: usize,
    name: String,
    /// The difference, and the option that would let all values in.
    what: String,
    /// The range of integers that it takes, if it is known.
    range: Option<(i128, i128)>,
}

fn narrower(source: &dyn Source, schema: &Schema, existing: &[TableColumn]) -> Vec<Narrower> {
    let of_field = |(position, field): (usize, &Arc<arrow_schema::Field>)| {
        let column = existing.iter().find(|column| column.name == *field.name())?;
        let (to, rewritten) = wider(column, field)?;
        let rewrite = if rewritten { " with --rewrite" } else { "" };
        let (name, file) = (field.name().clone(), first_file_with(source, field.name()));
        let what = format!(
            "column {name:?} is {} in the table and {} in {file}; --schema-change widen{rewrite} makes it {to}",
            column.type_name,
            field.data_type(),
        );
        let range = match PgType::of_catalogue(column.type_oid, column.modifier) {
            Some(PgType::Int2) => Some((i16::MIN.into(), i16::MAX.into())),
            Some(PgType::Int4) => Some((i32::MIN.into(), i32::MAX.into())),
            // The sign takes the place of a digit.
            Some(PgType::Varchar(Some(most))) => {
                let greatest = |digits: u32| 10_i128.saturating_pow(digits).saturating_sub(1);
                Some((-greatest(most.saturating_sub(1)), greatest(most)))
            }
            _ => None,
        };
        let range = range.filter(|_| DataType::is_integer(field.data_type()));
        Some(Narrower { position, name, what, range })
    };
    schema.fields().iter().enumerate().filter_map(of_field).collect()
}

/// Refuses files whose statistics say that some of their integers do not fit.
pub(crate) fn refuse_larger(
    source: &dyn Source,
    schema: &Schema,
    existing: &[TableColumn],
    table: &TableName,
) -> Result<()> {
    let mut refused = Vec::new();
    for Narrower { position, what, range, .. } in narrower(source, schema, existing) {
        let Some((least, greatest)) = range else { continue };
        for file in 0..source.files().len() as u32 {
            let bounds = source.known(file, position)?.into_iter().filter_map(|known| known.bounds);
            let outside = bounds.filter_map(|bounds| match bounds {
                Bounds::Whole(low, _) if low < least => Some(low),
                Bounds::Whole(_, high) if high > greatest => Some(high),
                _ => None,
            });
            if let (Some(value), Some(named)) =
                (outside.max_by_key(|value| value.unsigned_abs()), source.files().get(file as usize))
            {
                refused.push(format!("{what} ({} has the value {value})", named.name));
                break;
            }
        }
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(Error::new(Kind::Schema, refused.join("; "))
            .at(format!("table {table}"))
            .advise("let the table follow the files, change the table, or collect such rows with --rejects")),
    }
}

/// An encoder that says of a value that does not fit how its column may become wider.
pub(crate) struct Hinting {
    inner: Box<dyn BatchEncoder>,
    hints: Arc<BTreeMap<String, String>>,
}

/// For each column that is narrower in the table, the option that would let all values in.
pub(crate) fn hints(
    source: &dyn Source,
    schema: &Schema,
    existing: &[TableColumn],
) -> BTreeMap<String, String> {
    narrower(source, schema, existing).into_iter().map(|column| (column.name, column.what)).collect()
}

impl Hinting {
    /// The same encoder, with hints if there are any.
    pub(crate) fn over(
        inner: Box<dyn BatchEncoder>,
        hints: &Arc<BTreeMap<String, String>>,
    ) -> Box<dyn BatchEncoder> {
        match hints.is_empty() {
            true => inner,
            false => Box::new(Self { inner, hints: Arc::clone(hints) }),
        }
    }
}

impl BatchEncoder for Hinting {
    fn begin_unit(&mut self, unit: &Unit) {
        self.inner.begin_unit(unit);
    }

    fn encode(
        &mut self,
        batch: &RecordBatch,
        emit: &mut dyn FnMut(Block) -> Result<()>,
    ) -> Result<(), Refusal> {
        self.inner.encode(batch, emit).map_err(|refusal| match refusal {
            Refusal::Value { row, column, what } => {
                let what = match self.hints.get(&column) {
                    Some(hint) => format!("{what}: {hint}"),
                    None => what,
                };
                Refusal::Value { row, column, what }
            }
            stopped => stopped,
        })
    }

    fn end_unit(&mut self, emit: &mut dyn FnMut(Block) -> Result<()>) -> Result<Tally> {
        self.inner.end_unit(emit)
    }
}
