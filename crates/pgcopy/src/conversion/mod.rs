//! Conversion of columns whose type the target does not accept unchanged. It converts their arrays batch by
//! batch and checks each value, so that the encoder receives arrays that fit.
//!
//! ```text
//! array ─ 0x00 stripped (on request) ─ converted ─▶ array that the encoder sends
//!           [text]        Arrow to Arrow: [numbers], [moments]
//!                         Arrow to the bytes of the wire: [from_text](super::from_text)
//! ```
//!
//! A conversion loses nothing unless an option allows it: a value that cannot be stored exactly is a fault.
//! In a dictionary it converts the entries, and reports a faulty entry only if a row refers to it.

mod moments;
mod numbers;
mod texts;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, TimeUnit};

use super::from_text::{self, TextForm};
use crate::arrays::fault::Fault;
use crate::arrays::marks::is_json;
use crate::types::column_type::{ColumnType, Part};
use crate::types::pg_type::PgType;
use crate::types::server_type::ServerType;
use crate::types::value_options::{Nanoseconds, Nul, ValueOptions};

/// The steps that prepare a column's arrays for the encoder, planned once per column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnConversion {
    /// Whether to remove 0x00 from text.
    strip_nul: bool,
    conversion: Option<Conversion>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Conversion {
    /// Truncates nanoseconds to microseconds.
    CutNanoseconds,
    /// Numbers to a narrower or another type of number, if it represents the value exactly.
    Number(numbers::Width),
    /// Numbers to numeric by their decimal digits, with precision and scale.
    Decimal(Option<(u16, u16)>),
    /// Dates to the timestamp at their start.
    Midnight,
    /// Text of at most this many characters.
    Longest(u32),
    /// Text to the wire format of another type.
    Parsed(TextForm),
    /// Text to an array of elements of this form, `None` for text, and of the type of this OID.
    ParsedArray(Option<TextForm>, u32),
    /// Text to the wire format of a type that the server reads.
    ByServer(ServerType),
}

/// Whether arrays of this type are text.
fn is_text(arrow: &DataType) -> bool {
    matches!(arrow, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

impl ColumnConversion {
    /// Plans the conversion of a field to a column of this type: `None` if it needs none, an error if there
    /// is none. The message is empty if there is nothing to add to "the types do not fit".
    pub(crate) fn plan(
        field: &Field,
        target: &ColumnType,
        options: &ValueOptions,
    ) -> Result<Option<Self>, String> {
        if let DataType::Dictionary(_, value) = field.data_type() {
            return Self::plan(&field.clone().with_data_type(value.as_ref().clone()), target, options);
        }
        let arrow = field.data_type();
        let conversion = match target.plain() {
            Some(pg_type) => Conversion::new(field, pg_type, options)?,
            None if target.takes(field) => None,
            None => match target {
                ColumnType::Array(part) if is_text(arrow) => Some(Conversion::of_array(part, options)?),
                ColumnType::OfServer(of) if is_text(arrow) => Some(Conversion::ByServer(of.clone())),
                _ => return Err(String::new()),
            },
        };
        let strip_nul = options.nul == Nul::Strip && texts::may_hold_nul(arrow);
        Ok((strip_nul || conversion.is_some()).then_some(Self { strip_nul, conversion }))
    }

    /// Returns the type of the arrays that [`apply`](Self::apply) returns for arrays of this type.
    pub(crate) fn output(&self, arrow: &DataType) -> DataType {
        if let DataType::Dictionary(_, value) = arrow {
            return self.output(value);
        }
        match &self.conversion {
            None | Some(Conversion::Longest(_)) => arrow.clone(),
            Some(Conversion::CutNanoseconds) => moments::cut_type(arrow),
            Some(Conversion::Number(width)) => width.arrow(),
            Some(Conversion::Midnight) => DataType::Timestamp(TimeUnit::Second, None),
            Some(
                Conversion::Decimal(_)
                | Conversion::Parsed(_)
                | Conversion::ParsedArray(..)
                | Conversion::ByServer(_),
            ) => DataType::LargeBinary,
        }
    }

    /// Converts an array. Returns the fault of the first row whose value does not fit.
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

    /// Converts an array that is not a dictionary. Values that do not fit become NULL and are added to
    /// `faults`.
    fn values(&self, array: &ArrayRef, faults: &mut Vec<Fault>) -> Result<ArrayRef, Fault> {
        let stripped = if self.strip_nul { texts::stripped(array) } else { None };
        let array = stripped.as_ref().unwrap_or(array);
        let wrong = || Fault::new(0, format!("unexpected array of type {}", array.data_type()));
        match &self.conversion {
            None => Some(std::sync::Arc::clone(array)),
            Some(Conversion::CutNanoseconds) => moments::cut(array),
            Some(Conversion::Midnight) => moments::midnight(array),
            Some(Conversion::Number(width)) => numbers::convert(array, *width, faults),
            Some(Conversion::Decimal(bounds)) => numbers::to_numeric(array, *bounds, faults),
            Some(Conversion::Longest(most)) => texts::longest(array, *most, faults),
            Some(Conversion::Parsed(form)) => {
                texts::parsed(array, form, |text, out| form.write(text, out), faults)
            }
            Some(Conversion::ParsedArray(form, oid)) => {
                texts::parsed(array, &"array", |text, out| from_text::array(*form, *oid, text, out), faults)
            }
            Some(Conversion::ByServer(of)) => {
                texts::read_by_server(array, of, faults).map_err(Fault::unanswered)?
            }
        }
        .ok_or_else(wrong)
    }
}

impl Conversion {
    /// Returns the conversion of a field that is not a dictionary to a column of this type.
    fn new(field: &Field, target: PgType, options: &ValueOptions) -> Result<Option<Self>, String> {
        use DataType::{Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256};
        let arrow = field.data_type();
        let truncate = options.nanoseconds == Nanoseconds::Truncate;
        if is_text(arrow) {
            return Self::of_text(field, target, options);
        }
        if target.takes(field) {
            return Ok((truncate && moments::has_nanoseconds(arrow)).then_some(Self::CutNanoseconds));
        }
        let no_zone = "the time zone is unknown: load into a new table, or into a column of the same kind";
        let decimal = matches!(arrow, Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..));
        let number = arrow.is_integer() || arrow.is_floating() || decimal;
        Ok(Some(match (arrow, target) {
            (_, PgType::Numeric(bounds)) if number => Self::Decimal(bounds),
            (_, PgType::Int2 | PgType::Int4 | PgType::Int8) if number => {
                Self::Number(numbers::Width::new(target).ok_or("no width")?)
            }
            (_, PgType::Float4 | PgType::Float8) if number && !decimal => {
                Self::Number(numbers::Width::new(target).ok_or("no width")?)
            }
            (Date32 | Date64, PgType::Timestamp) => Self::Midnight,
            (DataType::Timestamp(_, None) | Date32 | Date64, PgType::TimestampTz)
            | (DataType::Timestamp(_, Some(_)), PgType::Timestamp) => {
                return Err(no_zone.to_owned());
            }
            _ => return Err(String::new()),
        }))
    }

    /// Returns the conversion of the server's text of arrays.
    fn of_array(part: &Part, options: &ValueOptions) -> Result<Self, String> {
        let element = part.column_type.plain().ok_or_else(String::new)?;
        let cut = options.nanoseconds == Nanoseconds::Truncate;
        let form = match element {
            PgType::Text | PgType::Varchar(None) => None,
            element => Some(TextForm::new(element, options.nul == Nul::Strip, cut).ok_or_else(String::new)?),
        };
        Ok(Self::ParsedArray(form, part.oid))
    }

    fn of_text(field: &Field, target: PgType, options: &ValueOptions) -> Result<Option<Self>, String> {
        let strip = options.nul == Nul::Strip;
        let cut = options.nanoseconds == Nanoseconds::Truncate;
        Ok(match target {
            PgType::Text | PgType::Varchar(None) => None,
            PgType::Varchar(Some(most)) => Some(Self::Longest(most)),
            // The server stores this text unchanged, and checks it.
            PgType::Json if is_json(field) => None,
            _ => match TextForm::new(target, strip, cut) {
                Some(form) => Some(Self::Parsed(form)),
                None => return Err(String::new()),
            },
        })
    }
}
