//! Parses text into the wire format of other types.
//!
//! The client parses a value, and not the server, so that the same bytes are sent, summed and compared, and
//! so that errors are found before a row is sent. It accepts only forms that mean the same under all server
//! settings (ISO 8601, but not `05/06/07`), and reads them as the server's own input functions do.

mod date_time;
mod json;
mod network;
pub(crate) mod numeric;
mod plain;
mod written;

use std::fmt;

pub(crate) use self::json::write_canonical;
pub(crate) use self::written::array;
use crate::types::pg_type::{PgType, Written};

/// A type whose values are parsed from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextForm {
    Date,
    /// For times and timestamps: whether to drop digits beyond the microsecond.
    Time(bool),
    Timestamp(bool),
    TimestampTz(bool),
    Uuid,
    /// Whether to remove `\u0000`.
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
    /// Text with this maximum number of characters.
    Varchar(u32),
    /// Text of a fixed number of characters, padded with blanks.
    Char(u32),
    /// An identifier of at most 63 bytes.
    Name,
    /// A label of an enumeration; the server checks that it exists.
    Label,
    Interval(bool),
    /// A type without a counterpart in Arrow, and whether to drop digits beyond the microsecond.
    Written(Written, bool),
}

impl TextForm {
    /// Returns the form for a column of this type, or `None` if text cannot be loaded into it. `strip_nul`
    /// and `cut` are the options for 0x00 and for digits beyond the microsecond.
    pub(crate) fn new(target: PgType, strip_nul: bool, cut: bool) -> Option<Self> {
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
            PgType::Varchar(Some(length)) => Self::Varchar(length),
            PgType::Char(length) => Self::Char(length),
            PgType::Name => Self::Name,
            PgType::Enum => Self::Label,
            PgType::Interval => Self::Interval(cut),
            PgType::Written(of) => Self::Written(of, cut),
            _ => return None,
        })
    }

    /// Appends the wire format of the value in `text`. The error names the problem.
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
                // The only version (jsonb_send in src/backend/utils/adt/jsonb.c).
                out.push(1);
                json::write_canonical(text, strip_nul, out)?;
            }
            Self::Json => {
                // The server stores the text unchanged; parsing it here finds invalid JSON early.
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
            Self::Varchar(length) => plain::varchar(text, length, out)?,
            Self::Char(length) => plain::char(text, length, out)?,
            Self::Name => plain::name(text, out)?,
            Self::Label => out.extend_from_slice(plain::without_nul(text)?),
            Self::Interval(cut) => {
                let (micros, days, months) = written::interval(text, cut)?;
                out.extend_from_slice(&micros.to_be_bytes());
                out.extend_from_slice(&days.to_be_bytes());
                out.extend_from_slice(&months.to_be_bytes());
            }
            Self::Written(of, cut) => written::write(of, text, cut, out)?,
        }
        Ok(())
    }
}

impl fmt::Display for TextForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Varchar(length) => return write!(f, "character varying({length})"),
            Self::Char(length) => return write!(f, "character({length})"),
            Self::Numeric(Some((precision, scale))) => return write!(f, "numeric({precision},{scale})"),
            Self::Date => "date",
            Self::Time(_) => "time of day",
            Self::Timestamp(_) => "timestamp",
            Self::TimestampTz(_) => "timestamp with time zone",
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
            Self::Interval(_) => "interval",
            Self::Written(of, _) => return of.fmt(f),
        })
    }
}

/// Returns `text` without the blanks at both ends that the server's input functions skip (`isspace`).
fn trimmed(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}
