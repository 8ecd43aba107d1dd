//! Parses text into the wire format of other types.
//!
//! The client parses a value, and not the server, so that the same bytes are sent, summed and compared, and
//! so that errors are found before a row is sent. It accepts only forms that mean the same under all server
//! settings (ISO 8601, but not `05/06/07`), and reads them as the server's own input functions do.

mod date_time;
mod json;
mod network;
mod numeric;
mod plain;
mod written;

use std::fmt;

pub(crate) use self::json::write_canonical;
pub(crate) use self::written::array;
use crate::types::pg_type::PgType;
use crate::types::value_options::{Nanoseconds, Nul, ValueOptions};

/// A type whose values are parsed from text, with the options for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextForm {
    target: PgType,
    options: ValueOptions,
}

impl TextForm {
    /// Returns the form for a column of this type.
    pub(crate) fn new(target: PgType, options: &ValueOptions) -> Self {
        Self { target, options: *options }
    }

    /// Appends the wire format of the value in `text`. The error names the problem.
    pub(crate) fn write(self, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let cut = self.options.nanoseconds == Nanoseconds::Truncate;
        let zone = self.options.timezone;
        match self.target {
            PgType::Date => out.extend(date_time::date(text)?.to_be_bytes()),
            PgType::Time => out.extend(date_time::time(text, cut)?.to_be_bytes()),
            PgType::Timestamp => out.extend(date_time::timestamp(text, cut, zone, false)?.to_be_bytes()),
            PgType::TimestampTz => out.extend(date_time::timestamp(text, cut, zone, true)?.to_be_bytes()),
            PgType::TimeTz => written::time_with_zone(text, cut, out)?,
            PgType::Interval => {
                let (micros, days, months) = written::interval(text, cut)?;
                out.extend(micros.to_be_bytes());
                out.extend(days.to_be_bytes());
                out.extend(months.to_be_bytes());
            }
            PgType::Uuid => plain::uuid(text, out)?,
            PgType::Jsonb => {
                // The only version (jsonb_send in src/backend/utils/adt/jsonb.c).
                out.push(1);
                json::write_canonical(text, self.options.nul == Nul::Strip, out)?;
            }
            PgType::Json => {
                // The server stores the text unchanged; parsing it here finds invalid JSON early.
                let start = out.len();
                json::write_canonical(text, true, out)?;
                out.truncate(start);
                out.extend_from_slice(text);
            }
            PgType::Inet => network::write(text, false, out)?,
            PgType::Cidr => network::write(text, true, out)?,
            PgType::Int2 => out.extend(plain::number::<i16>(text)?.to_be_bytes()),
            PgType::Int4 => out.extend(plain::number::<i32>(text)?.to_be_bytes()),
            PgType::Int8 => out.extend(plain::number::<i64>(text)?.to_be_bytes()),
            PgType::Oid => out.extend(plain::number::<u32>(text)?.to_be_bytes()),
            PgType::Float4 => out.extend(plain::real(text)?.to_be_bytes()),
            PgType::Float8 => out.extend(plain::double(text)?.to_be_bytes()),
            PgType::Numeric(bounds) => numeric::write(text, bounds, out)?,
            PgType::Bool => out.push(u8::from(plain::boolean(text)?)),
            PgType::Bytea => plain::bytea(text, out)?,
            PgType::Varchar(Some(length)) => plain::varchar(text, length, out)?,
            PgType::Char(length) => plain::char(text, length, out)?,
            PgType::Name => plain::name(text, out)?,
            // The server checks that the label exists.
            PgType::Text | PgType::Varchar(None) | PgType::Enum => {
                out.extend_from_slice(plain::without_nul(text)?);
            }
        }
        Ok(())
    }
}

impl fmt::Display for TextForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)
    }
}

/// Returns `text` without the blanks at both ends that the server's input functions skip (`isspace`).
fn trimmed(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}
