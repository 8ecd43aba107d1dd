//! Encodes batches as bodies of CrateDB requests: a taxi-like schema, in body bytes per second and core.
//!
//! `cargo bench -p sawmill-benches --bench crate_rows`. The target is 400 MB/s of body for rows alone.

mod taxi;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sawmill_cratedb::{CrateDb, CrateOptions, Transport};
use sawmill_loader::BatchEncoder;
use sawmill_source::{
    Facts, Known, Mapping, Read, Result, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader,
    counted_places,
};

/// Rows per batch.
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

    fn facts(&self) -> Facts {
        Facts::of_files(self.files(), &Mapping::default())
    }

    fn plan(&self, _: u64) -> Vec<Vec<Unit>> {
        Vec::new()
    }

    fn known(&self, _: u32, _: usize) -> Result<Vec<Known>> {
        Ok(Vec::new())
    }

    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    fn locate(&self, _: UnitKey, rows: &[u64], _: bool) -> Result<Vec<RowPlace>> {
        Ok(counted_places(rows))
    }

    fn open(&self, _: Read<'_>, _: usize) -> Box<dyn UnitReader + '_> {
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

fn encode(encoder: &mut dyn BatchEncoder, batch: &RecordBatch) -> u64 {
    let mut bytes = 0;
    let mut emit = |block: sawmill_loader::Block| {
        bytes += block.bytes.len() as u64;
        Ok(())
    };
    let key = UnitKey { file: 0, row_group: 0, first_row: 0 };
    encoder.begin_unit(&Unit { key, rows: ROWS as u64, bytes: 0 });
    encoder.encode(batch, &mut emit).expect("every value can be encoded");
    encoder.end_unit(&mut emit).expect("the rows can be sent");
    bytes
}

fn rows(criterion: &mut Criterion) {
    let batch = taxi::batch(ROWS, 7);
    let file = SourceFile {
        name: "taxi".into(),
        fingerprint: "0".into(),
        stamp: None,
        rows: ROWS as u64,
        bytes: 0,
        columns: None,
    };
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
