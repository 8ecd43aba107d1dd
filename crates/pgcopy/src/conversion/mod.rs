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

mod items;
mod moments;
mod numbers;
mod shapes;
mod texts;
mod vectors;
mod written;

use std::fmt;
use std::sync::Arc;

use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, TimeUnit};

use super::from_text::{self, TextForm};
use crate::arrays::fault::Fault;
use crate::arrays::marks::is_json;
use crate::types::column_type::{ColumnType, Part, item_of};
use crate::types::pg_type::PgType;
use crate::types::server_type::ServerType;
use crate::types::value_options::{Nanoseconds, Nul, ValueOptions};
use crate::types::zone::Zone;
use vectors::Vectors;
use written::Writing;

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
    Number(PgType),
    /// Values to the wire format of another type, by their text.
    Written(Writing, TextForm),
    /// Dates to the timestamp at their start.
    Midnight,
    /// Timestamps and dates without a zone, which are local times of this one, to timestamps with a zone, and the
    /// reverse. Also whether to truncate nanoseconds.
    Zoned(Zone, bool),
    /// Text of at most this many characters.
    Longest(u32),
    /// Text to the wire format of another type.
    Parsed(TextForm),
    /// Bytes to UUIDs.
    Uuid,
    /// Text to an array of elements of this form, and of the type of this OID.
    ParsedArray(TextForm, u32),
    /// Values to the wire format of a type that the server reads from their text.
    ByServer(Writing, ServerType),
    /// Lists of numbers to pgvector's vectors.
    Vectors(Vectors),
    /// Lists to lists of converted items.
    Items(Box<ColumnConversion>),
}

/// Returns values in the wire format of another type, which `write` appends. Those with faults become NULL.
fn to_wire(
    array: &ArrayRef,
    mut write: impl FnMut(usize, &mut Vec<u8>) -> Result<(), String>,
    faults: &mut Vec<Fault>,
) -> ArrayRef {
    let mut wire = LargeBinaryBuilder::with_capacity(array.len(), 16 * array.len());
    let mut bytes = Vec::new();
    for row in 0..array.len() {
        bytes.clear();
        let written = if array.is_valid(row) { Some(write(row, &mut bytes)) } else { None };
        if let Some(Err(what)) = &written {
            faults.push(Fault::new(row, what));
        }
        wire.append_option(written.and_then(Result::ok).map(|()| &bytes));
    }
    Arc::new(wire.finish())
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
                ColumnType::Array(part) if arrow.is_string() => Some(Conversion::of_array(part, options)?),
                ColumnType::Array(part) => Some(Conversion::of_items(field, part, target, options)?),
                ColumnType::OfServer(of) => Some(Conversion::of_server(field, of)?),
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
            Some(Conversion::Number(target)) => numbers::arrow_type(*target).unwrap_or_else(|| arrow.clone()),
            Some(Conversion::Midnight) => DataType::Timestamp(TimeUnit::Second, None),
            Some(Conversion::Zoned(_, cut)) => moments::zoned_type(arrow, *cut),
            Some(Conversion::Items(inner)) => items::output(arrow, inner),
            Some(
                Conversion::Written(..)
                | Conversion::Parsed(_)
                | Conversion::Uuid
                | Conversion::ParsedArray(..)
                | Conversion::ByServer(..)
                | Conversion::Vectors(_),
            ) => DataType::LargeBinary,
        }
    }

    /// Converts an array. Returns the fault of the first row whose value does not fit.
    pub(crate) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, Fault> {
        let mut faults = Vec::new();
        let converted = self.all(array, &mut faults)?;
        faults.into_iter().min_by_key(|fault| fault.row).map_or(Ok(converted), Err)
    }

    /// Converts an array. Values that do not fit become NULL and are added to `faults`.
    fn all(&self, array: &ArrayRef, faults: &mut Vec<Fault>) -> Result<ArrayRef, Fault> {
        let Some(dictionary) = array.as_any_dictionary_opt() else { return self.values(array, faults) };
        let mut of_entries = Vec::new();
        let converted = self.values(dictionary.values(), &mut of_entries)?;
        if !of_entries.is_empty() {
            let keys = dictionary.normalized_keys();
            for fault in of_entries {
                let rows = (0..array.len()).filter(|row| array.is_valid(*row) && keys[*row] == fault.row);
                faults.extend(rows.map(|row| Fault { row, ..fault.clone() }));
            }
        }
        Ok(dictionary.with_values(converted))
    }

    /// Converts an array that is not a dictionary.
    fn values(&self, array: &ArrayRef, faults: &mut Vec<Fault>) -> Result<ArrayRef, Fault> {
        let stripped = if self.strip_nul { texts::stripped(array) } else { None };
        let array = stripped.as_ref().unwrap_or(array);
        let wrong = || Fault::new(0, format!("unexpected array of type {}", array.data_type()));
        match &self.conversion {
            None => Some(Arc::clone(array)),
            Some(Conversion::CutNanoseconds) => moments::cut(array),
            Some(Conversion::Midnight) => moments::midnight(array),
            Some(Conversion::Zoned(zone, cut)) => moments::zoned(array, *zone, *cut),
            Some(Conversion::Number(target)) => numbers::convert(array, *target, faults),
            Some(Conversion::Written(writing, form)) => writing.parsed(array, *form, faults),
            Some(Conversion::Vectors(vectors)) => vectors.convert(array, faults),
            Some(Conversion::Longest(most)) => texts::longest(array, *most, faults),
            Some(Conversion::Parsed(form)) => {
                texts::parsed(array, form, |text, out| form.write(text, out), faults)
            }
            Some(Conversion::Uuid) => texts::parsed(array, &PgType::Uuid, texts::uuid, faults),
            Some(Conversion::ParsedArray(form, oid)) => {
                texts::parsed(array, &"array", |text, out| from_text::array(*form, *oid, text, out), faults)
            }
            Some(Conversion::ByServer(writing, of)) => {
                writing.read_by_server(array, of, faults).map_err(Fault::unanswered)?
            }
            Some(Conversion::Items(inner)) => items::convert(array, inner, faults)?,
        }
        .ok_or_else(wrong)
    }
}

impl Conversion {
    /// Returns the conversion of a field that is not a dictionary to a column of this type.
    fn new(field: &Field, target: PgType, options: &ValueOptions) -> Result<Option<Self>, String> {
        use DataType::{Date32, Date64, Timestamp};
        let arrow = field.data_type();
        let cut = options.nanoseconds == Nanoseconds::Truncate && moments::has_nanoseconds(arrow);
        if arrow.is_string() {
            return Ok(Self::of_text(field, target, options));
        }
        if target.takes(field) {
            return Ok(cut.then_some(Self::CutNanoseconds));
        }
        let is_number = arrow.is_numeric();
        Ok(Some(match (arrow, target) {
            (_, PgType::Int2 | PgType::Int4 | PgType::Int8) if is_number || *arrow == DataType::Boolean => {
                Self::Number(target)
            }
            (_, PgType::Float4 | PgType::Float8) if is_number && !arrow.is_decimal() => Self::Number(target),
            (DataType::Binary | DataType::LargeBinary | DataType::BinaryView, PgType::Uuid) => Self::Uuid,
            (Date32 | Date64, PgType::Timestamp) => Self::Midnight,
            (Timestamp(_, None) | Date32 | Date64, PgType::TimestampTz)
            | (Timestamp(_, Some(_)), PgType::Timestamp) => match options.timezone {
                Some(zone) => Self::Zoned(zone, cut),
                None => return Err("name the zone of its local times with --timezone".to_owned()),
            },
            _ => {
                let writing = Writing::to_plain(field, target).ok_or_else(String::new)?;
                Self::Written(writing, TextForm::new(target, options))
            }
        }))
    }

    /// Returns the conversion to a type that the server reads.
    fn of_server(field: &Field, of: &ServerType) -> Result<Self, String> {
        if let Some(vectors) = Vectors::new(field, of) {
            return Ok(Self::Vectors(vectors));
        }
        let writing = Writing::to_server(field, of, of.0.base()).ok_or_else(String::new)?;
        Ok(Self::ByServer(writing, of.clone()))
    }

    /// Returns the conversion of the server's text of arrays.
    fn of_array(part: &Part, options: &ValueOptions) -> Result<Self, String> {
        let element = part.column_type.plain().ok_or_else(String::new)?;
        Ok(Self::ParsedArray(TextForm::new(element, options), part.oid))
    }

    /// Returns the conversion of the items of lists, at the level of lists whose items are elements.
    fn of_items(
        field: &Field,
        part: &Part,
        target: &ColumnType,
        options: &ValueOptions,
    ) -> Result<Self, String> {
        let item = item_of(field).ok_or_else(String::new)?;
        let target = if item_of(&item).is_some() { target } else { &part.column_type };
        let inner = ColumnConversion::plan(&item, target, options)?.ok_or_else(String::new)?;
        Ok(Self::Items(Box::new(inner)))
    }

    fn of_text(field: &Field, target: PgType, options: &ValueOptions) -> Option<Self> {
        match target {
            PgType::Text | PgType::Varchar(None) => None,
            PgType::Varchar(Some(most)) => Some(Self::Longest(most)),
            // The server stores this text unchanged, and checks it.
            PgType::Json if is_json(field) => None,
            _ => Some(Self::Parsed(TextForm::new(target, options))),
        }
    }
}

impl fmt::Display for ColumnConversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.conversion {
            None => f.write_str("without 0x00"),
            Some(Conversion::CutNanoseconds) => f.write_str("cut to microseconds"),
            Some(Conversion::Midnight) => f.write_str("at its beginning"),
            Some(Conversion::Zoned(zone, _)) => write!(f, "by local times of {zone}"),
            Some(Conversion::Parsed(_) | Conversion::ParsedArray(..)) => f.write_str("read from its text"),
            Some(Conversion::Vectors(_)) => f.write_str("each element as the nearest float"),
            Some(Conversion::ByServer(..)) => f.write_str("read from its text by the server"),
            Some(Conversion::Items(inner)) => write!(f, "each item {inner}"),
            Some(_) => f.write_str("if it fits"),
        }
    }
}
