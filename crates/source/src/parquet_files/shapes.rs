//! Columns of shapes: the reference system of their coordinates, from Parquet's GEOMETRY and GEOGRAPHY or from the
//! metadata of GeoParquet (<https://geoparquet.org/releases/v1.1.0/>).

use std::collections::HashMap;

use arrow_schema::{FieldRef, Schema};
use parquet::basic::LogicalType;
use parquet::schema::types::Type;
use sawmill_footer::Footer;
use serde::Deserialize;
use serde_json::Value;

use crate::parquet_files::schema::marked;

/// Field metadata of bytes that are shapes (well-known binary): the number of their reference system, which EPSG gives.
pub(crate) const SRID_MARK: &str = "sawmill:srid";

/// Longitudes and latitudes of WGS 84, which columns have that name no system.
const WGS_84: &str = "4326";

#[derive(Deserialize)]
struct GeoParquet {
    #[serde(default)]
    columns: HashMap<String, Value>,
}

/// Returns the number of the system that a column of Parquet names; `None` if it has no shapes, or their system is unknown.
pub(super) fn of_column(column: &Type) -> Option<String> {
    let crs = match column.get_basic_info().logical_type_ref()? {
        LogicalType::Geometry(of) => of.crs.as_deref(),
        LogicalType::Geography(of) => of.crs.as_deref(),
        _ => return None,
    };
    let (authority, code) = crs.unwrap_or("EPSG:4326").split_once(':')?;
    number(authority, code)
}

fn number(authority: &str, code: &str) -> Option<String> {
    match (authority.to_ascii_uppercase().as_str(), code) {
        ("OGC", "CRS84") => Some(WGS_84.to_owned()),
        ("EPSG" | "SRID", code) => code.parse::<u32>().ok().map(|number| number.to_string()),
        _ => None,
    }
}

/// Marks the columns of shapes that a file's metadata names, in well-known binary and a known system.
pub(super) fn with_marks(schema: &Schema, footer: &Footer) -> Option<Schema> {
    let (_, text) = footer.key_value_metadata().find(|(key, _)| key == "geo")?;
    let geo: GeoParquet = serde_json::from_str(&text?).ok()?;
    let system = |name: &String| {
        let column = geo.columns.get(name)?;
        let id = match column.get("crs") {
            None => return Some(WGS_84.to_owned()),
            Some(crs) => crs.get("id")?,
        };
        let code = id.get("code")?;
        let code = code.as_str().map_or_else(|| code.to_string(), str::to_owned);
        number(id.get("authority")?.as_str()?, &code)
    };
    let fields = schema.fields().iter().map(|field| match system(field.name()) {
        Some(number) => marked(field, SRID_MARK, &number),
        None => FieldRef::clone(field),
    });
    Some(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}
