//! The arrays for UNNEST, read by a real PostgreSQL, which has `unnest` too.

use std::error::Error;
use std::sync::Arc;

use arrow_array::*;
use bytes::BytesMut;
use postgres::types::{Format, IsNull, ToSql, Type};
use postgres::{Client, NoTls};
use sawmill_cratedb::{CrateDb, CrateOptions, Transport};
use sawmill_loader::Block;
use sawmill_source::Source;

use crate::cluster::source_of;

#[derive(Debug)]
struct Raw(bytes::Bytes);

impl ToSql for Raw {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(ty, out)
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Binary
    }
}

#[test]
fn postgresql_reads_every_array_as_it_was_meant() {
    let server = sawmill_localpg::LocalPg::start().unwrap();
    let mut client = Client::connect(&server.url(), NoTls).unwrap();
    let decimals = Decimal128Array::from(vec![
        Some(-123_450_000i128),
        None,
        Some(7),
        Some(i128::from(i64::MAX) * 1_000_000),
    ]);
    let list = ListArray::from_iter_primitive::<types::Int32Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
        Some(vec![Some(5)]),
    ]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("b", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]))),
        ("s", Arc::new(Int16Array::from(vec![Some(-1), None, Some(i16::MAX), Some(0)]))),
        ("i", Arc::new(Int32Array::from(vec![Some(-1), None, Some(i32::MAX), Some(0)]))),
        ("l", Arc::new(Int64Array::from(vec![Some(-1), None, Some(i64::MAX), Some(i64::MIN)]))),
        ("r", Arc::new(Float32Array::from(vec![Some(0.5), None, Some(f32::NAN), Some(-1.0)]))),
        ("d", Arc::new(Float64Array::from(vec![Some(0.1), None, Some(f64::INFINITY), Some(-1e300)]))),
        ("n", Arc::new(decimals.with_precision_and_scale(38, 4).unwrap())),
        ("t", Arc::new(StringArray::from(vec![Some("é\"\\"), None, Some(""), Some("NULL")]))),
        (
            "m",
            Arc::new(TimestampMillisecondArray::from(vec![Some(0), None, Some(-1), Some(1_700_000_000_123)])),
        ),
        ("j", Arc::new(list)),
    ];
    let (_kept, source) = source_of(columns, 10);
    let options = CrateOptions { transport: Transport::Pg, at_least_once: true, ..CrateOptions::default() };
    let target = CrateDb::new("crate://localhost".parse().unwrap(), "t".parse().unwrap()).options(options);
    let mut encoder = target.encoder(&source, CrateDb::BATCH_BYTES, true).unwrap();
    let (mut blocks, mut reader) = (Vec::new(), source.reader(10));
    let mut keep = |block: Block| {
        blocks.extend(block.marks.map(|marks| marks.columns));
        Ok(())
    };
    for unit in source.plan(u64::MAX).iter().flatten() {
        reader.start(unit).unwrap();
        encoder.begin_unit(unit);
        while let Some(batch) = reader.next_batch().unwrap() {
            encoder.encode(&batch, &mut keep).unwrap();
        }
        encoder.end_unit(&mut keep).unwrap();
    }
    let [block] = blocks.as_slice() else { panic!("one block of four rows") };
    let count = source.schema().fields().len();
    assert_eq!(block.len(), count);
    let types =
        ["bool", "int2", "int4", "int8", "float4", "float8", "numeric", "varchar", "timestamp", "varchar"];
    let parameters: Vec<String> =
        types.iter().enumerate().map(|(i, name)| format!("${}::{name}[]", i + 1)).collect();
    let names: Vec<String> = (0..count).map(|i| format!("c{i}::text")).collect();
    let aliases: Vec<String> = (0..count).map(|i| format!("c{i}")).collect();
    let sql = format!(
        "SELECT {} FROM UNNEST({}) AS \"u\" ({})",
        names.join(", "),
        parameters.join(", "),
        aliases.join(", ")
    );
    let statement = client.prepare(&sql).unwrap();
    let raw: Vec<Raw> = block.iter().map(|bytes| Raw(bytes.clone())).collect();
    let parameters: Vec<&(dyn ToSql + Sync)> = raw.iter().map(|raw| raw as _).collect();
    let rows = client.query(&statement, &parameters).unwrap();
    let text = |row: usize| -> Vec<Option<String>> { (0..count).map(|i| rows[row].get(i)).collect() };
    let some = |texts: [&str; 10]| texts.map(|text| Some(text.to_owned())).to_vec();
    assert_eq!(
        text(0),
        some([
            "true",
            "-1",
            "-1",
            "-1",
            "0.5",
            "0.1",
            "-12345.0000",
            "é\"\\",
            "1970-01-01 00:00:00",
            "[1,null]"
        ])
    );
    assert_eq!(text(1), vec![None; count]);
    assert_eq!(
        text(2),
        some([
            "false",
            "32767",
            "2147483647",
            "9223372036854775807",
            "NaN",
            "Infinity",
            "0.0007",
            "",
            "1969-12-31 23:59:59.999",
            "[]"
        ])
    );
    assert_eq!(text(3)[8].as_deref(), Some("2023-11-14 22:13:20.123"));
}
