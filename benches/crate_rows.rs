//! Batches to the bodies of CrateDB requests: a taxi-like schema, in bytes of body a second and core.
//!
//! `cargo bench -p sawmill-benches --bench crate_rows`. The target is 400 MB/s of body for rows alone.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};
use arrow_schema::SchemaRef;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sawmill_loader::{
    BatchEncoder, CrateDb, CrateOptions, Result, Source, SourceFile, Transport, Unit, UnitKey, UnitReader,
};

/// Rows of the batch.
const ROWS: usize = 20_000;

/// One batch in memory.
struct OneBatch {
    schema: SchemaRef,
    files: Vec<SourceFile>,
}

impl Source for OneBatch {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn plan(&self, _: u64) -> Vec<Vec<Unit>> {
        Vec::new()
    }

    fn reader(&self, _: usize) -> Box<dyn UnitReader + '_> {
        Box::new(NoUnits)
    }
}

struct NoUnits;

impl UnitReader for NoUnits {
    fn start(&mut self, _: &Unit) -> Result<()> {
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        Ok(None)
    }
}

/// The 19 columns of New York's yellow taxi files, with figures like theirs.
fn taxi() -> RecordBatch {
    let mut state = 7u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
    let mut column = |name: &str, array: ArrayRef| columns.push((name.to_owned(), array, true));
    column("vendor_id", Arc::new(Int32Array::from_iter_values((0..ROWS).map(|_| draw(2) as i32 + 1))));
    for name in ["pickup", "dropoff"] {
        let stamps = (0..ROWS).map(|_| (1_704_067_200 + draw(2_678_400) as i64) * 1_000_000);
        column(name, Arc::new(TimestampMicrosecondArray::from_iter_values(stamps)));
    }
    for name in ["passengers", "rate"] {
        column(
            name,
            Arc::new(Int64Array::from_iter((0..ROWS).map(|_| (draw(20) > 0).then(|| draw(6) as i64)))),
        );
    }
    let flags = (0..ROWS).map(|_| if draw(100) == 0 { "Y" } else { "N" });
    column("store_and_forward", Arc::new(StringViewArray::from_iter_values(flags.collect::<Vec<_>>())));
    for name in ["from", "to", "payment"] {
        column(name, Arc::new(Int32Array::from_iter_values((0..ROWS).map(|_| draw(265) as i32))));
    }
    for i in 0..10 {
        let cents = (0..ROWS).map(|_| (draw(12) > 0 || i > 2).then(|| draw(9_000) as f64 / 100.0));
        column(&format!("amount_{i}"), Arc::new(Float64Array::from_iter(cents)));
    }
    RecordBatch::try_from_iter_with_nullable(columns).expect("the columns are of one length")
}

fn encode(encoder: &mut dyn BatchEncoder, batch: &RecordBatch) -> u64 {
    let mut bytes = 0;
    let mut emit = |block: sawmill_loader::Block| {
        bytes += block.bytes.len() as u64;
        Ok(())
    };
    let key = UnitKey { file: 0, row_group: 0, first_row: 0 };
    encoder.begin_unit(&Unit { key, rows: ROWS as u64, bytes: 0 });
    encoder.encode(batch, &mut emit).expect("every value has a form");
    encoder.end_unit(&mut emit).expect("nothing stops the rows");
    bytes
}

fn rows(criterion: &mut Criterion) {
    let batch = taxi();
    let file = SourceFile { name: "taxi".into(), fingerprint: "0".into(), rows: ROWS as u64, bytes: 0 };
    let source = OneBatch { schema: batch.schema(), files: vec![file] };
    let mut group = criterion.benchmark_group("crate_rows");
    for (name, by_column) in [("rows", false), ("rows and columns", true)] {
        let options =
            CrateOptions { row_key: Some("k".into()), transport: Transport::Http, ..CrateOptions::default() };
        let server = "crate://localhost".parse().expect("an address");
        let target = CrateDb::new(server, "taxi".parse().expect("a name")).options(options);
        let encoder = target.encoder(&source, CrateDb::BATCH_BYTES, by_column);
        let mut encoder = encoder.expect("every column has a type");
        group.throughput(Throughput::Bytes(encode(encoder.as_mut(), &batch)));
        group.bench_function(name, |bencher| bencher.iter(|| encode(encoder.as_mut(), &batch)));
    }
    group.finish();
}

criterion_group!(benches, rows);
criterion_main!(benches);
