//! Columns of rows as binary arrays.

use std::io;

use super::message::Reader;
use crate::json::Json;

const TEXTS: [u32; 2] = [25, 1043];

/// The elements of a binary array, as the JSON that the HTTP endpoint would receive.
pub(super) fn array(bytes: &[u8]) -> io::Result<Vec<Json>> {
    let mut fields = Reader { bytes };
    let (dimensions, _, element) = (fields.u32()?, fields.u32()?, fields.u32()?);
    if dimensions != 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "one dimension is expected"));
    }
    let (count, _) = (fields.u32()?, fields.u32()?);
    (0..count)
        .map(|_| match fields.u32()? {
            u32::MAX => Ok(Json::Null),
            length => value(element, fields.take(length as usize)?),
        })
        .collect()
}

fn value(oid: u32, bytes: &[u8]) -> io::Result<Json> {
    let mut fields = Reader { bytes };
    let float = |value: f64, text: String| match value.is_finite() {
        true => Json::Number(text),
        false => Json::Text(if value.is_nan() {
            "NaN".into()
        } else if value > 0.0 {
            "Infinity".into()
        } else {
            "-Infinity".into()
        }),
    };
    Ok(match oid {
        16 => Json::Bool(bytes == [1]),
        21 | 23 | 20 => Json::Number(fields.number(bytes.len())?.to_string()),
        700 => {
            let value = f32::from_bits(fields.u32()?);
            float(value.into(), format!("{value:?}"))
        }
        701 => {
            let value = f64::from_bits(fields.number(8)? as u64);
            float(value, format!("{value:?}"))
        }
        // Microseconds since 2000.
        1114 | 1184 => Json::Number((fields.number(8)?.div_euclid(1000) + 946_684_800_000).to_string()),
        1700 => Json::Text(numeric(&mut fields)?),
        oid if TEXTS.contains(&oid) => Json::Text(String::from_utf8_lossy(bytes).into_owned()),
        _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "unknown type")),
    })
}

/// Decodes base-10,000 digits (`numeric_send` in PostgreSQL's src/backend/utils/adt/numeric.c).
fn numeric(fields: &mut Reader<'_>) -> io::Result<String> {
    let (digits, weight) = (fields.u16()?, fields.number(2)?);
    let (sign, scale) = (fields.u16()?, fields.u16()? as usize);
    let groups = (0..digits).map(|_| fields.u16()).collect::<io::Result<Vec<u16>>>()?;
    let group = |at: i64| usize::try_from(weight - at).ok().and_then(|i| groups.get(i)).copied().unwrap_or(0);
    let whole: String = (0..=weight.max(0)).rev().map(|at| format!("{:04}", group(at))).collect();
    let fraction: String = (1..=scale.div_ceil(4) as i64).map(|at| format!("{:04}", group(-at))).collect();
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if scale > 0 { "." } else { "" };
    Ok(format!("{}{whole}{point}{}", if sign == 0x4000 { "-" } else { "" }, &fraction[..scale]))
}
