//! Values whose length is known only after they are encoded: numerics, intervals, jsonb, arrays, composite
//! values, and the entries of dictionaries.

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};

use super::fixed_width::{FixedWidth, Words};
use super::interval::Interval;
use super::{native, numeric};
use crate::arrays::byte_strings::ByteStrings;
use crate::arrays::fault::{Fault, shown};
use crate::arrays::integers::{Integers, scale};
use crate::jsonb::{self, JsonColumn};
use crate::rows::valid::Valid;
use crate::types::pg_type::PgType;

/// The encoding of a column's values, chosen once from Arrow type and target type.
#[derive(Clone, Debug)]
pub(crate) enum Element {
    Null,
    Fixed(FixedWidth),
    Bytes,
    /// Text with this maximum number of characters, inside an array or a composite value.
    Varchar(u32),
    /// The scale of the values (0 for integers), and the display scale of the target.
    Numeric {
        scale: u16,
        display: u16,
    },
    Interval,
    Jsonb(jsonb::JsonLayout),
    Native(native::NativeLayout),
}

impl Element {
    pub(crate) fn choose(field: &Field, target: PgType) -> Result<Self, String> {
        let arrow = field.data_type();
        if let DataType::Dictionary(_, value) = arrow {
            return Self::choose(&field.clone().with_data_type(value.as_ref().clone()), target);
        }
        if *arrow == DataType::Null {
            return Ok(Self::Null);
        }
        // bytea, or the wire format that a conversion produced.
        if *arrow == DataType::LargeBinary {
            return Ok(Self::Bytes);
        }
        if let Some(fixed) = FixedWidth::choose(arrow, target) {
            return Ok(Self::Fixed(fixed));
        }
        Ok(match target {
            PgType::Numeric(bounds) => {
                let scale = u16::try_from(scale(arrow)).unwrap_or(0);
                // The server shows no digit behind the point if the scale is negative.
                let shown = bounds.map(|(_, scale)| u16::try_from(scale).unwrap_or(0));
                Self::Numeric { scale, display: shown.unwrap_or(scale) }
            }
            PgType::Interval => Self::Interval,
            PgType::Jsonb => Self::Jsonb(jsonb::JsonLayout::new(field)?),
            _ if ByteStrings::holds(arrow) => Self::Bytes,
            _ => return Err(format!("{arrow} cannot be sent as {target}")),
        })
    }

    /// Combines the encoding with an array of the planned type. The error names the type of an unexpected
    /// array.
    pub(crate) fn bind<'a>(&'a self, array: &'a ArrayRef) -> Result<BoundElement<'a>, String> {
        let wrong = || format!("unexpected array of type {}", array.data_type());
        Ok(match self {
            Self::Null => BoundElement::Null,
            Self::Fixed(planned) => BoundElement::Fixed(
                Words::bind(array, *planned).ok_or_else(wrong)?,
                planned.width,
                array.data_type(),
            ),
            Self::Bytes => BoundElement::Bytes(ByteStrings::bind(array).ok_or_else(wrong)?),
            Self::Varchar(most) => BoundElement::Varchar(ByteStrings::bind(array).ok_or_else(wrong)?, *most),
            Self::Numeric { scale, display } => BoundElement::Numeric {
                values: Integers::bind(array).ok_or_else(wrong)?,
                scale: *scale,
                display: *display,
            },
            Self::Interval => BoundElement::Interval(array),
            Self::Jsonb(layout) => BoundElement::Jsonb(layout.bind(array)?),
            Self::Native(layout) => BoundElement::Native(Box::new(layout.bind(array)?)),
        })
    }
}

/// An [`Element`] with the array whose values it encodes.
pub(crate) enum BoundElement<'a> {
    Null,
    Fixed(Words<'a>, u32, &'a DataType),
    Bytes(ByteStrings<'a>),
    Varchar(ByteStrings<'a>, u32),
    Numeric { values: Integers<'a>, scale: u16, display: u16 },
    Interval(&'a ArrayRef),
    Jsonb(JsonColumn<'a>),
    Native(Box<native::NativeColumn<'a>>),
}

impl BoundElement<'_> {
    /// Appends one value, which must not be NULL. Returns false for the type whose values are all NULL.
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<bool, Fault> {
        match self {
            Self::Null => return Ok(false),
            Self::Fixed(words, width, arrow) => {
                let mut word = [0];
                words
                    .fill(row, &Valid::all(), &mut word)
                    .map_err(|fault| refused(fault, arrow).after(row))?;
                out.extend_from_slice(&word[0].to_be_bytes()[8 - *width as usize..]);
            }
            Self::Bytes(values) => {
                let value = values.value(row);
                if values.is_text() {
                    refuse_nul(value, row)?;
                }
                out.extend_from_slice(value);
            }
            Self::Varchar(values, most) => {
                let value = values.value(row);
                refuse_nul(value, row)?;
                refuse_longer(value, *most, row)?;
                out.extend_from_slice(value);
            }
            Self::Numeric { values, scale, display } => match values.wide(row) {
                Ok(value) => numeric::write_u128(value < 0, value.unsigned_abs(), *scale, *display, out),
                Err(value) => numeric::write_i256(value, *scale, *display, out),
            },
            Self::Interval(array) => out.extend_from_slice(&Interval::read(array, row)?.to_wire()),
            Self::Jsonb(column) => {
                // The only version (jsonb_send in src/backend/utils/adt/jsonb.c).
                out.push(1);
                column.write(row, out).map_err(|fault| Fault { row, ..fault })?;
            }
            Self::Native(column) => return column.write(row, out).map_err(|fault| Fault { row, ..fault }),
        }
        Ok(true)
    }
}

/// Adds to the fault of a fixed-width value the limits of its type.
pub(crate) fn refused(mut fault: Fault, arrow: &DataType) -> Fault {
    fault.what = format!("{} ({arrow}): {}", fault.what, super::fixed_width::limits(arrow));
    fault
}

/// The command's advice about text with 0x00. Callers without its options leave it out.
pub const NUL_ADVICE: &str = " (--nul strip removes it)";

/// Rejects text of more than `most` characters. PostgreSQL would cut trailing blanks silently.
pub(crate) fn refuse_longer(value: &[u8], most: u32, row: usize) -> Result<(), Fault> {
    let most = most as usize;
    if value.len() <= most {
        return Ok(());
    }
    let text = String::from_utf8_lossy(value);
    match text.chars().count() {
        characters if characters > most => Err(Fault::new(
            row,
            format!("the text {} has {characters} characters; the column allows {most}", shown(&text)),
        )),
        _ => Ok(()),
    }
}

/// Rejects text that contains 0x00, which PostgreSQL's text types do not allow
/// (<https://www.postgresql.org/docs/current/datatype-character.html>).
#[inline]
pub(crate) fn refuse_nul(value: &[u8], row: usize) -> Result<(), Fault> {
    match memchr::memchr(0, value) {
        None => Ok(()),
        Some(at) => {
            let text = shown(&String::from_utf8_lossy(value));
            Err(Fault::new(
                row,
                format!(
                    "the text {text} contains 0x00 at byte {at}, which PostgreSQL cannot store{NUL_ADVICE}"
                ),
            ))
        }
    }
}
