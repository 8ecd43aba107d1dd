//! Columns whose values the target's type does not take as they stand: their arrays are converted first,
//! batch by batch, with a check of each value, and the encoder then sees arrays that fit.
//!
//! ```text
//! array ─ 0x00 stripped (where asked for) ─ converted ─▶ array that the encoder sends
//!           [text]        Arrow to Arrow: [numbers], [moments]
//!                         Arrow to the bytes of the wire: [from_text](super::from_text)
//! ```
//!
//! A conversion loses nothing unless an option says so: a value that does not arrive exactly is a fault. Of a
//! dictionary the entries are converted, and only entries that a row refers to can be at fault.

mod moments;
mod numbers;
mod texts;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, TimeUnit};

use super::from_text::TextForm;
use crate::arrays::fault::Fault;
use crate::arrays::marks::is_json;
use crate::types::column_type::ColumnType;
use crate::types::pg_type::PgType;
use crate::types::value_options::{Nanoseconds, Nul, ValueOptions};

/// What is done to a column's arrays before they are encoded; worked out once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conversion {
    /// 0x00 is left out of text.
    strip_nul: bool,
    how: Option<How>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum How {
    /// Nanoseconds are cut to microseconds.
    CutNanoseconds,
    /// Numbers to a narrower or another kind of number, where it holds the value.
    Number(numbers::Width),
    /// Numbers to numeric by their decimal digits: precision and scale.
    Decimal(Option<(u16, u16)>),
    /// Dates to the timestamp at their beginning.
    Midnight,
    /// Text of at most so many characters.
    Longest(u32),
    /// Text to the bytes of another type.
    Parsed(TextForm),
}

/// Whether arrays of this type are text.
fn is_text(arrow: &DataType) -> bool {
    matches!(arrow, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

impl Conversion {
    /// Works out how a field gets into a column of this type, beyond what [`PgType::takes`] says: `None` where it
    /// needs no conversion, and an error where there is none.
    pub(crate) fn plan(
        field: &Field,
        target: &ColumnType,
        options: &ValueOptions,
    ) -> Result<Option<Self>, String> {
        if let DataType::Dictionary(_, value) = field.data_type() {
            return Self::plan(&field.clone().with_data_type(value.as_ref().clone()), target, options);
        }
        let arrow = field.data_type();
        let how = match target.plain() {
            Some(pg_type) => How::of(field, pg_type, options)?,
            None if target.takes(field) => None,
            None => return Err(String::new()),
        };
        let strip_nul = options.nul == Nul::Strip && texts::may_hold_nul(arrow);
        Ok((strip_nul || how.is_some()).then_some(Self { strip_nul, how }))
    }

    /// The type of the arrays that [`apply`](Self::apply) makes of arrays of this type.
    pub(crate) fn output(&self, arrow: &DataType) -> DataType {
        if let DataType::Dictionary(_, value) = arrow {
            return self.output(value);
        }
        match &self.how {
            None | Some(How::Longest(_)) => arrow.clone(),
            Some(How::CutNanoseconds) => moments::cut_type(arrow),
            Some(How::Number(width)) => width.arrow(),
            Some(How::Midnight) => DataType::Timestamp(TimeUnit::Second, None),
            Some(How::Decimal(_) | How::Parsed(_)) => DataType::LargeBinary,
        }
    }

    /// Converts an array. The fault is that of the first row whose value does not fit.
    pub(crate) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, Fault> {
        let mut faults = Vec::new();
        let Some(dictionary) = array.as_any_dictionary_opt() else {
            let converted = self.values(array, &mut faults)?;
            return match faults.into_iter().next() {
                None => Ok(converted),
                Some(fault) => Err(fault),
            };
        };
        let converted = self.values(dictionary.values(), &mut faults)?;
        if !faults.is_empty() {
            let keys = dictionary.normalized_keys();
            let at = |entry: usize| (0..array.len()).find(|row| array.is_valid(*row) && keys[*row] == entry);
            let used = faults.into_iter().filter_map(|fault| at(fault.row).map(|row| Fault { row, ..fault }));
            if let Some(first) = used.min_by_key(|fault| fault.row) {
                return Err(first);
            }
        }
        Ok(dictionary.with_values(converted))
    }

    /// Converts an array that is no dictionary. Values that do not fit become NULL and are told.
    fn values(&self, array: &ArrayRef, faults: &mut Vec<Fault>) -> Result<ArrayRef, Fault> {
        let stripped = if self.strip_nul { texts::stripped(array) } else { None };
        let array = stripped.as_ref().unwrap_or(array);
        let wrong = || Fault::new(0, format!("an array of {} came unexpectedly", array.data_type()));
        match &self.how {
            None => Some(std::sync::Arc::clone(array)),
            Some(How::CutNanoseconds) => moments::cut(array),
            Some(How::Midnight) => moments::midnight(array),
            Some(How::Number(width)) => numbers::convert(array, *width, faults),
            Some(How::Decimal(bounds)) => numbers::to_numeric(array, *bounds, faults),
            Some(How::Longest(most)) => texts::longest(array, *most, faults),
            Some(How::Parsed(form)) => texts::parsed(array, *form, faults),
        }
        .ok_or_else(wrong)
    }
}

impl How {
    /// How a field that is no dictionary gets into a column of this type.
    fn of(field: &Field, target: PgType, options: &ValueOptions) -> Result<Option<Self>, String> {
        use DataType::{Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256};
        let arrow = field.data_type();
        let truncate = options.nanoseconds == Nanoseconds::Truncate;
        if is_text(arrow) {
            return Self::of_text(field, target, options);
        }
        if target.takes(field) {
            return Ok((truncate && moments::has_nanoseconds(arrow)).then_some(Self::CutNanoseconds));
        }
        let no_zone = "which of the two zones is meant nobody says: load into a new table, or a column of the same kind";
        let decimal = matches!(arrow, Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..));
        let number = arrow.is_integer() || arrow.is_floating() || decimal;
        Ok(Some(match (arrow, target) {
            (_, PgType::Numeric(bounds)) if number => Self::Decimal(bounds),
            (_, PgType::Int2 | PgType::Int4 | PgType::Int8) if number => {
                Self::Number(numbers::Width::of(target).ok_or("no width")?)
            }
            (_, PgType::Float4 | PgType::Float8) if number && !decimal => {
                Self::Number(numbers::Width::of(target).ok_or("no width")?)
            }
            (Date32 | Date64, PgType::Timestamp) => Self::Midnight,
            (DataType::Timestamp(_, None) | Date32 | Date64, PgType::TimestampTz)
            | (DataType::Timestamp(_, Some(_)), PgType::Timestamp) => {
                return Err(no_zone.to_owned());
            }
            _ => return Err(String::new()),
        }))
    }

    fn of_text(field: &Field, target: PgType, options: &ValueOptions) -> Result<Option<Self>, String> {
        let strip = options.nul == Nul::Strip;
        let cut = options.nanoseconds == Nanoseconds::Truncate;
        Ok(match target {
            PgType::Text | PgType::Varchar(None) => None,
            PgType::Varchar(Some(most)) => Some(Self::Longest(most)),
            // What the server would keep as it came is checked by the server.
            PgType::Json if is_json(field) => None,
            _ => match TextForm::of(target, strip, cut) {
                Some(form) => Some(Self::Parsed(form)),
                None => return Err(String::new()),
            },
        })
    }
}
