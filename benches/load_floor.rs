//! Compares the PostgreSQL loader with its floor: the same rows, encoded beforehand and sent by a client that
//! does nothing else.
//!
//! `cargo bench -p sawmill-benches --bench load_floor [-- DATASET...] [ROWS] [ROUNDS]`. Datasets are taxi,
//! orders and lineitem, the specs in `fixtures/`, with 2.96, 1.5 and 6 million rows. All ways run interleaved
//! with two connections, into new tables of the same server, logged and unlogged, with and without a primary
//! key. Reports medians of wall time, of the ratio to the floor in the same round, and of the CPU time of the
//! client and of the whole machine. Ways: the loader with its defaults; with small units, whose extra time is
//! the cost of a unit and so of a checkpoint; and with verification of what arrived. Targets: 1.05 times the
//! floor, checkpoints 1 %.
//!
//! The server is one of the loader's private servers, but with `fsync` on, as for data that must survive.

mod copy_client;
mod datasets;

use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use copy_client::CopyClient;
use datasets::{DATASETS, write_file};
use sawmill_loader::{Block, LoadOptions, Mode, load};
use sawmill_localpg::LocalPg;
use sawmill_postgres::{Postgres, TableKind};
use sawmill_profile::Profile;
use sawmill_source::{Control, ParquetFiles, Source};

/// Names a file to append each table to as a line of JSON.
const JSON: &str = "SAWMILL_TURNS_JSON";
/// The number of connections.
const DEGREE: usize = 2;
/// The ways by their reported names; all are compared with the first.
const WAYS: [&str; 4] = ["floor", "loader", "loader, small units", "loader, verified"];

/// CPU seconds used by this process so far (proc(5): fields 14 and 15 of stat, in ticks of 10 ms).
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// CPU seconds that all processors have been busy so far (proc(5): user, nice, system, irq and softirq in the
/// first line of /proc/stat, in ticks of 10 ms).
fn machine_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks: Vec<f64> = fields.filter_map(|ticks| ticks.parse().ok()).collect();
    [0, 1, 2, 5, 6].iter().filter_map(|field| ticks.get(*field)).sum::<f64>() / 100.0
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// All rows as the loader encodes them, in order.
fn encode(source: &ParquetFiles, target: &Postgres, loading: &LoadOptions) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut encoder = target.encoder(source, loading.batch_bytes).expect("every column has a type");
    let mut reader = source.reader(loading.batch_rows);
    let mut keep = |block: Block| {
        blocks.push(Block::new(block.bytes.to_vec().into(), block.rows));
        Ok(())
    };
    for unit in source.plan(loading.unit_rows).into_iter().flatten() {
        reader.start(&unit).expect("the file can be read");
        while let Some(batch) = reader.next_batch().expect("the file can be read") {
            encoder.encode(&batch, &mut keep).expect("every value can be encoded");
        }
        encoder.end_unit(&mut keep).expect("the rows can be sent");
    }
    blocks
}

/// The results of one way, round by round.
#[derive(Default)]
struct Runs {
    wall: Vec<f64>,
    cpu: Vec<f64>,
    machine_cpu: Vec<f64>,
}

impl Runs {
    fn measure(&mut self, count: bool, run: impl FnOnce()) {
        let (before, machine_before, started) = (cpu(), machine_cpu(), Instant::now());
        run();
        let (wall, after, machine_after) = (started.elapsed().as_secs_f64(), cpu(), machine_cpu());
        if count {
            self.wall.push(wall);
            self.cpu.push(after - before);
            self.machine_cpu.push(machine_after - machine_before);
        }
    }
}

struct Bench {
    url: String,
    rounds: usize,
}

impl Bench {
    /// Measures one kind of table; returns a JSON line for each way.
    fn compare(&self, name: &str, source: &ParquetFiles, blocks: &[Block], kind: &TableKind) -> Vec<String> {
        let table = |name: &str| {
            let address = self.url.parse().expect("an address");
            Postgres::new(address, name.parse().expect("a name")).mode(Mode::Append)
        };
        let (ours, floors) = (table("bench_loader"), table("bench_floor"));
        let (cancel, profile) = (AtomicBool::new(false), Profile::new());
        let phase = profile.phase("load");
        let control = Control::new(&cancel, &phase);
        let mut server = CopyClient::connect(&self.url);
        let whole = LoadOptions { degree: DEGREE, ..LoadOptions::default() };
        let eighths = LoadOptions { unit_rows: whole.unit_rows.div_ceil(8), ..whole.clone() };
        let verified = LoadOptions { verify: true, ..whole.clone() };
        let loadings = [&whole, &whole, &eighths, &verified];
        let mut runs: [Runs; WAYS.len()] = Default::default();
        for round in 0..=self.rounds {
            // Each way is first as often as last.
            for turn in 0..WAYS.len() {
                let way = (turn + round) % WAYS.len();
                let target = if way == 0 { &floors } else { &ours };
                target.create_empty(source, kind, &control).expect("the table can be created");
                // What one way leaves to be written must not burden the next.
                server.run("CHECKPOINT");
                runs[way].measure(round > 0, || match way {
                    0 => self.send(blocks),
                    way => {
                        let report =
                            load(source, target, loadings[way], &control).expect("the rows can be loaded");
                        assert_eq!(report.rows_loaded, source.rows());
                    }
                });
                assert_eq!(target.count_rows(&control).expect("the server counts"), Some(source.rows()));
                server.run(&format!("DROP TABLE {} CASCADE", target.table()));
                server.run("DROP SCHEMA IF EXISTS _sawmill CASCADE");
            }
        }
        let logged = if kind.unlogged { "unlogged" } else { "logged" };
        let keyed = if kind.primary_key.is_empty() { "no key" } else { "primary key" };
        let mut lines = Vec::new();
        for ((way, loading), label) in runs.iter().zip(loadings).zip(WAYS) {
            let wall = median(way.wall.iter().copied());
            let cpu = median(way.cpu.iter().copied());
            let of_floor = median(way.wall.iter().zip(&runs[0].wall).map(|(own, floor)| own / floor));
            let machine = median(way.machine_cpu.iter().copied());
            println!(
                "| {name} | {logged}, {keyed} | {label} | {wall:.3} | {of_floor:.3} | {cpu:.2} | {machine:.2} |"
            );
            let units = source.plan(loading.unit_rows).iter().map(Vec::len).sum::<usize>();
            lines.push(format!(
                "{{\"table\":\"{logged}, {keyed}\",\"way\":{label:?},\"seconds\":{wall},\"of_floor\":{of_floor},\
                 \"client_cpu\":{cpu},\"machine_cpu\":{machine},\"units\":{units}}}"
            ));
        }
        lines
    }

    /// The floor: one connection per part of the rows, starting with the first rows.
    fn send(&self, blocks: &[Block]) {
        std::thread::scope(|scope| {
            for part in blocks.chunks(blocks.len().div_ceil(DEGREE)) {
                scope.spawn(|| {
                    let blocks: Vec<&[u8]> = part.iter().map(|block| &block.bytes[..]).collect();
                    let statement = "COPY bench_floor FROM STDIN (FORMAT binary)";
                    CopyClient::connect(&self.url).copy(statement, &blocks);
                });
            }
        });
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let (numbers, names): (Vec<_>, Vec<_>) = words.iter().partition(|word| word.parse::<u64>().is_ok());
    // Arguments that are not numbers are names of benchmarks, shared by all of them.
    if !names.is_empty() && !DATASETS.iter().any(|(name, ..)| names.iter().any(|chosen| chosen == name)) {
        return;
    }
    let testing = sawmill_benches::once();
    let number = |place: usize| numbers.get(place).and_then(|word| word.parse::<u64>().ok());
    let wanted = number(0).or(testing.then_some(2_000));
    let rounds = number(1).unwrap_or(if testing { 1 } else { 3 }) as usize;
    let server = LocalPg::builder()
        .setting("fsync", "on")
        .setting("max_wal_size", "8GB")
        .setting("shared_buffers", "512MB")
        .start()
        .expect("PostgreSQL is installed");
    let bench = Bench { url: server.url(), rounds };
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    println!("\n{DEGREE} connections, medians of {rounds} rounds\n");
    println!("| rows of | table | way | wall s | of the floor | client CPU s | machine CPU s |");
    println!("|---|---|---|---|---|---|---|");
    for (name, spec, key, all) in DATASETS {
        if !names.is_empty() && !names.iter().any(|chosen| *chosen == name) {
            continue;
        }
        let rows = wanted.unwrap_or(all);
        let path = directory.path().join(format!("{name}.parquet"));
        write_file(&path, spec, rows);
        let source = ParquetFiles::open(&[path]).expect("the file can be read");
        let target = Postgres::new(bench.url.parse().expect("an address"), "t".parse().expect("a name"));
        let blocks = encode(&source, &target, &LoadOptions::default());
        for unlogged in [false, true] {
            for primary_key in [vec![], vec![key.to_owned()]] {
                let lines = bench.compare(
                    name,
                    &source,
                    &blocks,
                    &TableKind { unlogged, primary_key, ..TableKind::default() },
                );
                if let Some(path) = std::env::var_os(JSON) {
                    let bytes: usize = blocks.iter().map(|block| block.bytes.len()).sum();
                    let line = format!(
                        "{{\"title\":{name:?},\"rows\":{rows},\"bytes\":{bytes},\"rounds\":{rounds},\
                         \"degree\":{DEGREE},\"postgres\":[{}]}}\n",
                        lines.join(",")
                    );
                    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
                    file.and_then(|mut file| file.write_all(line.as_bytes()))
                        .expect("the file of figures can be written");
                }
            }
        }
    }
    server.stop().expect("the server ends");
}
