//! Measures the loader on files: `measure encode FILE...` for the encoder alone, `measure load URL
//! TABLE DEGREE FILE...` for everything.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use sawmill_loader::{Block, LoadOptions, Refusal, load};
use sawmill_postgres::{Postgres, forget};
use sawmill_profile::{Profile, cpu_time};
use sawmill_source::{Control, ParquetFiles, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((mode, files)) if mode == "encode" => encode(files),
        Some((mode, [url, table, degree, files @ ..])) if mode == "load" => {
            measure_load(url, table, degree.parse()?, files)
        }
        _ => Err("measure encode FILE... | measure load URL TABLE DEGREE FILE...".into()),
    }
}

fn encode(files: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let options = LoadOptions::default();
    let source = ParquetFiles::open(files)?;
    let target = Postgres::new("host=/tmp".parse()?, "t".parse()?);
    let mut encoder = target.encoder(&source, options.batch_bytes)?;
    let mut reader = source.reader(options.batch_rows);
    let mut batches = Vec::new();
    let started = Instant::now();
    for unit in source.plan(options.unit_rows).concat() {
        reader.start(&unit)?;
        while let Some(batch) = reader.next_batch()? {
            batches.push(batch);
        }
    }
    let rows: usize = batches.iter().map(arrow_array::RecordBatch::num_rows).sum();
    println!("decode {rows} rows {:.3} s", started.elapsed().as_secs_f64());
    for _ in 0..7 {
        let (started, mut bytes) = (Instant::now(), 0);
        let mut count = |block: Block| {
            bytes += block.bytes.len();
            Ok(())
        };
        for batch in &batches {
            encoder.encode(batch, &mut count).map_err(|refusal| match refusal {
                Refusal::Value { column, what, .. } => format!("{column}: {what}"),
                Refusal::Stopped(error) => error.to_string(),
            })?;
        }
        encoder.end_unit(&mut count)?;
        let seconds = started.elapsed().as_secs_f64();
        println!("encode {bytes} bytes {seconds:.4} s {:.2} GB/s", bytes as f64 / seconds / 1e9);
    }
    Ok(())
}

fn measure_load(
    url: &str,
    table: &str,
    degree: usize,
    files: &[String],
) -> Result<(), Box<dyn std::error::Error>> {
    let cancel = AtomicBool::new(false);
    let source = ParquetFiles::open(files)?;
    let target = Postgres::new(url.parse()?, table.parse()?);
    for verify in [false, true, false, true, false] {
        let phase = Profile::new().phase("load");
        let control = Control::new(&cancel, &phase);
        let options = LoadOptions { degree, verify, ..LoadOptions::default() };
        let before = cpu_time();
        let report = load(&source, &target, &options, &control)?;
        let cpu = (cpu_time() - before).as_secs_f64();
        let seconds = report.seconds;
        println!(
            "verify={verify} {} rows {:.1} MB {seconds:.3} s, client CPU {cpu:.3} s, {:.0} MB/s, peak {:?} MiB",
            report.rows,
            report.bytes_sent as f64 / 1e6,
            report.bytes_sent as f64 / seconds / 1e6,
            phase.finish().peak_memory.map(|bytes| bytes >> 20)
        );
        forget(&target, true, &Control::new(&cancel, &Profile::new().phase("forget")))?;
    }
    Ok(())
}
