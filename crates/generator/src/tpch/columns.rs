//! The columns of each table: names and types as in TPC-H, the dictionaries of columns with few values.

use crate::benchmark::columns::{Column, listed, listed_numbers};
use crate::draw::value_spec::ValueSpec;
use crate::tpch::lists::{Lists, WordList};
use crate::types::logical_type::{LogicalType, Physical};

/// Days from 1970-01-01 to the first date, 1992-01-01.
pub(crate) const FIRST_DAY: i32 = 8035;
/// 1992-01-01 to 1998-12-31.
const DAYS: i32 = 2557;

const INT64: LogicalType = LogicalType::Integer { bits: 64, signed: true };
const INT32: LogicalType = LogicalType::Integer { bits: 32, signed: true };
const MONEY: LogicalType = LogicalType::Decimal { precision: 15, scale: 2, physical: Physical::Int64 };

/// Values that all differ or nearly so; of strings, the average length.
fn computed(mean_bytes: f64) -> ValueSpec {
    ValueSpec::Computed { mean_bytes, repeats: false }
}

fn key(name: &str) -> Column {
    Column::new(name, INT64, computed(8.0))
}

fn money(name: &str) -> Column {
    Column::new(name, MONEY, computed(8.0))
}

fn text(name: &str, mean_bytes: f64) -> Column {
    Column::new(name, LogicalType::String, computed(mean_bytes))
}

fn numbers(name: &str, kind: LogicalType, values: impl Iterator<Item = i64>) -> Column {
    let values = listed_numbers(&kind, values);
    Column::new(name, kind, values)
}

fn date(name: &str) -> Column {
    numbers(name, LogicalType::Date, (FIRST_DAY..FIRST_DAY + DAYS).map(i64::from))
}

/// Words of a list with their weights, in its order; without weights, equally likely.
fn words(name: &str, list: &WordList, weights: &[f64]) -> Column {
    let weights = weights.iter().copied().chain(std::iter::repeat(1.0));
    let entries = list.words().iter().map(|word| word.as_bytes().to_vec()).zip(weights);
    Column::new(name, LogicalType::String, listed(entries.collect()))
}

/// The columns of a table, in order.
pub(crate) fn columns(table: &str) -> Vec<Column> {
    let lists = Lists::get();
    match table {
        "region" => {
            vec![
                numbers("r_regionkey", INT64, 0..=4),
                words("r_name", &lists.regions, &[]),
                text("r_comment", 70.0),
            ]
        }
        "nation" => vec![
            numbers("n_nationkey", INT64, 0..=24),
            words("n_name", &lists.nations, &[]),
            numbers("n_regionkey", INT64, 0..=4),
            text("n_comment", 75.0),
        ],
        "supplier" => vec![
            key("s_suppkey"),
            text("s_name", 18.0),
            text("s_address", 25.0),
            numbers("s_nationkey", INT64, 0..=24),
            text("s_phone", 15.0),
            money("s_acctbal"),
            text("s_comment", 62.5),
        ],
        "customer" => vec![
            key("c_custkey"),
            text("c_name", 18.0),
            text("c_address", 25.0),
            numbers("c_nationkey", INT64, 0..=24),
            text("c_phone", 15.0),
            money("c_acctbal"),
            words("c_mktsegment", &lists.segments, &[]),
            text("c_comment", 72.5),
        ],
        "part" => vec![
            key("p_partkey"),
            text("p_name", 32.8),
            words("p_mfgr", &lists.manufacturers, &[]),
            words("p_brand", &lists.brands, &[]),
            words("p_type", &lists.part_types, &[]),
            numbers("p_size", INT32, 1..=50),
            words("p_container", &lists.containers, &[]),
            money("p_retailprice"),
            text("p_comment", 13.5),
        ],
        "partsupp" => vec![
            key("ps_partkey"),
            key("ps_suppkey"),
            numbers("ps_availqty", INT32, 1..=9999),
            money("ps_supplycost"),
            text("ps_comment", 123.5),
        ],
        "orders" => vec![
            key("o_orderkey"),
            key("o_custkey"),
            words("o_orderstatus", &lists.statuses, &[48.6, 48.8, 2.6]),
            money("o_totalprice"),
            date("o_orderdate"),
            words("o_orderpriority", &lists.priorities, &[]),
            text("o_clerk", 15.0),
            numbers("o_shippriority", INT32, 0..=0),
            text("o_comment", 48.5),
        ],
        _ => vec![
            key("l_orderkey"),
            key("l_partkey"),
            key("l_suppkey"),
            numbers("l_linenumber", INT32, 1..=7),
            numbers("l_quantity", MONEY, (1..=50).map(|quantity| quantity * 100)),
            money("l_extendedprice"),
            numbers("l_discount", MONEY, 0..=10),
            numbers("l_tax", MONEY, 0..=8),
            words("l_returnflag", &lists.flags, &[24.7, 50.6, 24.7]),
            words("l_linestatus", &lists.line_statuses, &[50.0, 50.0]),
            date("l_shipdate"),
            date("l_commitdate"),
            date("l_receiptdate"),
            words("l_shipinstruct", &lists.instructions, &[]),
            words("l_shipmode", &lists.modes, &[]),
            text("l_comment", 26.5),
        ],
    }
}
