//! The rows of `UNNEST`.

use crate::json::Json;
use crate::sql::Cast;
use crate::types::Type;

/// The rows of `UNNEST`: shorter columns are filled up with NULL.
pub(crate) fn unnested(arguments: &[Vec<Json>], sources: &[(usize, Cast)]) -> Result<Vec<Vec<Json>>, String> {
    let mut columns: Vec<Vec<Json>> = Vec::new();
    for (number, cast) in sources {
        let column = arguments.get(*number).cloned().unwrap_or_default();
        if *cast == Cast::Scalar {
            columns.push(column);
            continue;
        }
        columns.push(column.into_iter().map(|json| cast_text(json, cast)).collect::<Result<_, _>>()?);
    }
    let arrays = sources.iter().zip(&columns).filter(|((_, cast), _)| *cast != Cast::Scalar);
    let count = arrays.map(|(_, column)| column.len()).max().unwrap_or(0);
    let value = |(column, (_, cast)): (&Vec<Json>, &(usize, Cast)), row: usize| {
        column.get(if *cast == Cast::Scalar { 0 } else { row }).cloned().unwrap_or(Json::Null)
    };
    let row = |i: usize| columns.iter().zip(sources).map(|pair| value(pair, i)).collect();
    Ok((0..count).map(row).collect())
}

/// Converts text that the statement casts to an object or an array.
fn cast_text(json: Json, cast: &Cast) -> Result<Json, String> {
    match (json, cast) {
        (
            Json::Text(text),
            Cast::Direct(Type::Object(..) | Type::Array(_))
            | Cast::OfField(Type::Object(..) | Type::Array(_) | Type::GeoShape),
        ) => Json::parse(&text).map_err(|_| format!("Cannot cast value `{text}`")),
        (Json::Null, Cast::Direct(Type::Bit(_))) => {
            Err("Cannot invoke \"io.crate.sql.tree.BitString.length()\" because \"bs\" is null".to_owned())
        }
        (json, _) => Ok(json),
    }
}
