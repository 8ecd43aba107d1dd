//! Text into the bytes that other types have on the wire.
//!
//! A value is read here and not by the server so that the same bytes are sent, summed up and compared, and
//! so that what is wrong with it is known before a row is sent. Only forms that mean the same under all settings of
//! a server are taken (ISO 8601 and no `05/06/07`), and what they come to is what the server's own input makes of
//! them.

mod date_time;
mod json;
mod network;
pub(crate) mod numeric;
mod plain;

use std::fmt;

use crate::types::pg_type::PgType;

/// A type whose values are read from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextForm {
    Date,
    /// The last word of the moments says whether digits beyond the microsecond are cut.
    Time(bool),
    Timestamp(bool),
    TimestampTz(bool),
    Uuid,
    /// Whether `\u0000` is left out.
    Jsonb(bool),
    Json,
    Inet,
    Cidr,
    /// 2, 4 or 8 bytes.
    Integer(u8),
    Real,
    Double,
    Numeric(Option<(u16, u16)>),
    Bool,
    Bytea,
    /// Text of a fixed number of characters, filled up with blanks.
    Char(u32),
    /// An identifier of at most 63 bytes.
    Name,
    /// A label of an enumeration; which there are, the server knows.
    Label,
}

impl TextForm {
    /// For a column of this type, `None` where text does not become it. `strip_nul` and `cut`: what options say
    /// of 0x00 and of digits beyond the microsecond.
    pub(crate) fn of(target: PgType, strip_nul: bool, cut: bool) -> Option<Self> {
        Some(match target {
            PgType::Date => Self::Date,
            PgType::Time => Self::Time(cut),
            PgType::Timestamp => Self::Timestamp(cut),
            PgType::TimestampTz => Self::TimestampTz(cut),
            PgType::Uuid => Self::Uuid,
            PgType::Jsonb => Self::Jsonb(strip_nul),
            PgType::Json => Self::Json,
            PgType::Inet => Self::Inet,
            PgType::Cidr => Self::Cidr,
            PgType::Int2 => Self::Integer(2),
            PgType::Int4 => Self::Integer(4),
            PgType::Int8 => Self::Integer(8),
            PgType::Float4 => Self::Real,
            PgType::Float8 => Self::Double,
            PgType::Numeric(bounds) => Self::Numeric(bounds),
            PgType::Bool => Self::Bool,
            PgType::Bytea => Self::Bytea,
            PgType::Char(length) => Self::Char(length),
            PgType::Name => Self::Name,
            PgType::Enum => Self::Label,
            _ => return None,
        })
    }

    /// Appends the bytes of the value that `text` says, or tells what is wrong.
    pub(crate) fn write(self, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::Date => out.extend_from_slice(&date_time::date(text)?.to_be_bytes()),
            Self::Time(cut) => out.extend_from_slice(&date_time::time(text, cut)?.to_be_bytes()),
            Self::Timestamp(cut) => out.extend_from_slice(&date_time::timestamp(text, cut)?.to_be_bytes()),
            Self::TimestampTz(cut) => {
                out.extend_from_slice(&date_time::timestamp_with_zone(text, cut)?.to_be_bytes());
            }
            Self::Uuid => plain::uuid(text, out)?,
            Self::Jsonb(strip_nul) => {
                // The one version there is (jsonb_send in src/backend/utils/adt/jsonb.c).
                out.push(1);
                json::write_canonical(text, strip_nul, out)?;
            }
            Self::Json => {
                // The server keeps it as it came; a reading of it tells early what is no JSON.
                let start = out.len();
                json::write_canonical(text, true, out)?;
                out.truncate(start);
                out.extend_from_slice(text);
            }
            Self::Inet => network::write(text, false, out)?,
            Self::Cidr => network::write(text, true, out)?,
            Self::Integer(2) => out.extend_from_slice(&plain::number::<i16>(text)?.to_be_bytes()),
            Self::Integer(4) => out.extend_from_slice(&plain::number::<i32>(text)?.to_be_bytes()),
            Self::Integer(_) => out.extend_from_slice(&plain::number::<i64>(text)?.to_be_bytes()),
            Self::Real => out.extend_from_slice(&plain::real(text)?.to_be_bytes()),
            Self::Double => out.extend_from_slice(&plain::double(text)?.to_be_bytes()),
            Self::Numeric(bounds) => numeric::write(text, bounds, out)?,
            Self::Bool => out.push(u8::from(plain::boolean(text)?)),
            Self::Bytea => plain::bytea(text, out)?,
            Self::Char(length) => plain::char(text, length, out)?,
            Self::Name => plain::name(text, out)?,
            Self::Label => out.extend_from_slice(plain::without_nul(text)?),
        }
        Ok(())
    }
}

impl fmt::Display for TextForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Char(length) => return write!(f, "text for character({length})"),
            Self::Numeric(Some((precision, scale))) => return write!(f, "numeric({precision},{scale})"),
            Self::Date => "date",
            Self::Time(_) => "time of day",
            Self::Timestamp(_) => "timestamp",
            Self::TimestampTz(_) => "timestamp with a zone",
            Self::Uuid => "UUID",
            Self::Jsonb(_) | Self::Json => "JSON",
            Self::Inet => "network address",
            Self::Cidr => "network",
            Self::Integer(2) => "smallint",
            Self::Integer(4) => "integer",
            Self::Integer(_) => "bigint",
            Self::Real => "real",
            Self::Double => "double precision",
            Self::Numeric(None) => "numeric",
            Self::Bool => "boolean",
            Self::Bytea => "bytea",
            Self::Name => "name",
            Self::Label => "label",
        })
    }
}

/// Without the blanks at both ends that the server's inputs pass over (`isspace`).
fn trimmed(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}
