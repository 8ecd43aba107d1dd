//! The columns of each table: names and types of `tpcdsgen-arrow`, the dictionaries of columns with few values.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field};
use tpcdsgen::config::{Scaling, Table};
use tpcdsgen::types::Date;

use crate::benchmark::columns::{Column, listed_numbers};
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::ValueSpec;
use crate::error::{Error, Result};
use crate::tpcds::orders::OrderLines;
use crate::types::logical_type::{LogicalType, Physical};

/// The most values of a dictionary that is known in advance: with more, it takes more bytes than its indices save in a
/// row group of 128 Ki rows.
const MAX_LISTED: i64 = 1 << 15;
/// A table has at least this many rows for each value of a dictionary that is known in advance.
const ROWS_A_VALUE: i64 = 4;

/// The columns of a table with about `rows` rows. A sample of them shows how long strings are and which repeat.
///
/// # Errors
/// A column has a type that `tpcdsgen-arrow` 4.0 does not use.
pub(crate) fn columns(
    table: Table,
    rows: i64,
    sample: &RecordBatch,
    scaling: &Scaling,
) -> Result<Vec<Column>> {
    let schema = sample.schema();
    let columns = schema.fields().iter().zip(sample.columns());
    columns
        .map(|(field, values)| {
            let kind = kind(field)?;
            let range = numbers(table, field.name(), scaling)
                .map(|range| (range.end() - range.start() + 1, range))
                .filter(|(n, _)| *n <= MAX_LISTED && *n <= rows / ROWS_A_VALUE);
            let values_of = match (&kind, range) {
                (LogicalType::String, _) => strings(values),
                (_, Some((_, range))) => listed_numbers(&kind, range),
                _ => ValueSpec::Computed { mean_bytes: 8.0, repeats: false },
            };
            let nulls = match field.is_nullable() {
                true => Nulls::Share(values.null_count() as f64 / values.len().max(1) as f64),
                false => Nulls::Never,
            };
            Ok(Column { name: field.name().clone(), kind, values: values_of, nulls })
        })
        .collect()
}

fn kind(field: &Field) -> Result<LogicalType> {
    Ok(match field.data_type() {
        DataType::Int32 => LogicalType::Integer { bits: 32, signed: true },
        DataType::Int64 => LogicalType::Integer { bits: 64, signed: true },
        DataType::Date32 => LogicalType::Date,
        DataType::Utf8View => LogicalType::String,
        DataType::Decimal128(precision, 2) => {
            let physical = if *precision <= 9 { Physical::Int32 } else { Physical::Int64 };
            LogicalType::Decimal { precision: *precision, scale: 2, physical }
        }
        other => {
            let what = format!("a column of tpcdsgen of the type {other}");
            return Err(Error::spec(what, field.name(), "build sawmill with tpcdsgen 4.0"));
        }
    })
}

/// Describes strings by their average length and whether values repeat.
fn strings(sample: &dyn Array) -> ValueSpec {
    let strings: Vec<&str> = sample.as_string_view().iter().flatten().collect();
    let n = strings.len().max(1);
    let bytes: usize = strings.iter().map(|string| string.len()).sum();
    let distinct: HashSet<&str> = strings.into_iter().collect();
    ValueSpec::Computed { mean_bytes: bytes as f64 / n as f64, repeats: distinct.len() < n - n / 8 }
}

/// The numbers that a column of a large table can have, if they are a range: keys, days, quantities, hundredths.
fn numbers(table: Table, name: &str, scaling: &Scaling) -> Option<RangeInclusive<i64>> {
    let is_large =
        OrderLines::new(table).is_some() || matches!(table, Table::Inventory | Table::CustomerDemographics);
    let (_, column) = name.split_once('_').filter(|_| is_large)?;
    // Returning and refunded customers, for example, are keys of the same table.
    let to = column.strip_suffix("_sk").map(|key| key.rsplit('_').next().unwrap_or(key));
    let keys = |table| Some(1..=scaling.get_row_count(table) as i64);
    match (to, column) {
        (Some("date"), _) => Some(days(scaling)),
        (Some("item"), _) => keys(Table::Item),
        (Some("customer"), _) => keys(Table::Customer),
        (Some("hdemo"), _) => keys(Table::HouseholdDemographics),
        (Some("addr"), _) => keys(Table::CustomerAddress),
        (Some("store"), _) => keys(Table::Store),
        (Some("promo"), _) => keys(Table::Promotion),
        (Some("center"), _) => keys(Table::CallCenter),
        (Some("mode"), _) => keys(Table::ShipMode),
        (Some("warehouse"), _) => keys(Table::Warehouse),
        (Some("reason"), _) => keys(Table::Reason),
        (Some("site"), _) => keys(Table::WebSite),
        (Some("page"), "web_page_sk") => keys(Table::WebPage),
        (_, "quantity" | "return_quantity") => Some(1..=100),
        (_, "quantity_on_hand") => Some(0..=1000),
        (_, "wholesale_cost") => Some(100..=10_000),
        (_, "list_price") => Some(100..=30_000),
        (_, "sales_price") => Some(0..=30_000),
        (_, "fee") => Some(50..=10_000),
        (_, "purchase_estimate") => Some(500..=10_000),
        (_, "dep_count" | "dep_employed_count" | "dep_college_count") => Some(0..=6),
        _ => None,
    }
}

/// From the first sale to the last day on which one can be returned.
fn days(scaling: &Scaling) -> RangeInclusive<i64> {
    /// Something sold on the web is shipped within 120 days and returned within 240.
    const LATEST_RETURN: i64 = 120 + 240;
    let first = Date::JULIAN_DATA_START_DATE;
    // Orders of catalogues fill one day after the other, which rounding may extend beyond the others.
    let orders = scaling.get_row_count(Table::CatalogSales);
    let (mut day, mut placed) = (first, scaling.get_row_count_for_date(Table::CatalogSales, first) + 1);
    while placed < orders && day < first + MAX_LISTED {
        day += 1;
        placed += scaling.get_row_count_for_date(Table::CatalogSales, day);
    }
    first..=day.max(Date::JULIAN_TODAYS_DATE.into()) + LATEST_RETURN
}
