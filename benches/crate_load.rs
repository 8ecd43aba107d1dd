//! Compares the CrateDB loader with its floor: the same requests, prepared beforehand and sent by a client
//! that does nothing else.
//!
//! `cargo bench -p sawmill-benches --bench crate_load [-- ROWS [ROUNDS]]`. A load with batch tags, one with a
//! row key, and the floor of the first run interleaved with two connections, into new tables of the same
//! server. Reports the medians of wall time and of the client's CPU time, and the server's CPU time for the
//! same rows. The floor leaves rows that no search finds yet; `REFRESH`, which a load needs before it counts
//! them, is measured behind it.
//! Targets: wall time at most 1.05 times the floor and at most 0.8 times that with a row key, client CPU over
//! HTTP at most 4 % of the server's.
//!
//! The server is the stand-in, in its own process. It is not CrateDB: it keeps rows in memory. In the second
//! table each row costs it as much CPU as CrateDB 6.4.3, 17 us (two cores load 115 thousand rows a second,
//! `docs/loading-cratedb.md`), spent in a counting loop. `SAWMILL_CRATEDB_URL` selects a real server, and
//! `SAWMILL_CRATEDB_PID` adds its CPU time.

mod floor;
mod taxi;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use sawmill_cratedb::{CrateDb, CrateOptions, Transport};
use sawmill_cratedb_standin::StandIn;
use sawmill_loader::{LoadOptions, load};
use sawmill_profile::Profile;
use sawmill_source::{Control, ParquetFiles};

/// The CPU cost of a row in CrateDB.
const REAL_COST: Duration = Duration::from_micros(17);
/// Names a file to append each table to as a line of JSON.
const JSON: &str = "SAWMILL_TURNS_JSON";
/// The number of connections.
const DEGREE: usize = 2;
/// The number of counted rounds.
const ROUNDS: usize = 7;

/// The stand-in's process, or the address of a real server.
struct Server {
    url: String,
    pid: Option<u32>,
    process: Option<Child>,
}

impl Server {
    fn standin(cost: Duration) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("the program has a path"))
            .args(["serve", &cost.as_nanos().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program can be started again");
        let mut url = String::new();
        let mut lines = BufReader::new(process.stdout.take().expect("standard output is piped"));
        lines.read_line(&mut url).expect("the stand-in prints its address");
        Self { url: url.trim().to_owned(), pid: Some(process.id()), process: Some(process) }
    }

    fn named() -> Option<Self> {
        let url = std::env::var("SAWMILL_CRATEDB_URL").ok()?;
        let pid = std::env::var("SAWMILL_CRATEDB_PID").ok().and_then(|pid| pid.parse().ok());
        Some(Self { url, pid, process: None })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // Closing its standard input ends it.
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }
}

/// Runs the stand-in until standard input ends.
fn serve(cost: &str) {
    let standin = StandIn::start(1);
    standin.work(Duration::from_nanos(cost.parse().expect("nanoseconds")));
    println!("{}", standin.url());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// CPU seconds used by a process so far (proc(5): fields 14 and 15 of stat, in ticks of 10 ms).
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The runs of one way.
#[derive(Default)]
struct Runs {
    wall: Vec<f64>,
    client: Vec<f64>,
    server: Vec<f64>,
}

impl Runs {
    fn measure(&mut self, server: &Server, count: bool, run: impl FnOnce()) {
        let spent = || (cpu(std::process::id()), server.pid.map_or(f64::NAN, cpu));
        let (before, started) = (spent(), Instant::now());
        run();
        let (wall, after) = (started.elapsed().as_secs_f64(), spent());
        if count {
            self.wall.push(wall);
            self.client.push(after.0 - before.0);
            self.server.push(after.1 - before.1);
        }
    }
}

impl Runs {
    /// The last run began with the last one of `first`.
    fn add_last_of(&mut self, first: &Self) {
        let add = |to: &mut Vec<f64>, from: &Vec<f64>| {
            to.last_mut().zip(from.last()).into_iter().for_each(|(to, from)| *to += from);
        };
        add(&mut self.wall, &first.wall);
        add(&mut self.client, &first.client);
        add(&mut self.server, &first.server);
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn write_file(path: &Path, rows: usize) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(rows.div_ceil(4))).build();
    let batch = taxi::batch(rows, 7);
    let file = std::fs::File::create(path).expect("the file can be created");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a schema");
    writer.write(&batch).expect("the rows can be written");
    writer.close().expect("the footer can be written");
}

fn compare(title: &str, server: &Server, source: &ParquetFiles, rows: usize, rounds: usize) {
    println!("\n{title}; {rows} rows, {DEGREE} connections, medians of {rounds} rounds\n");
    println!(
        "| transport | way | wall s | of the floor | client CPU s | server CPU s | client's of server's |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut loads = Vec::new();
    let loading = LoadOptions { degree: DEGREE, batch_bytes: CrateDb::BATCH_BYTES, ..LoadOptions::default() };
    for transport in [Transport::Http, Transport::Pg] {
        let options = CrateOptions { transport, replicas: Some("0".into()), ..CrateOptions::default() };
        let table = |name: &str, row_key: Option<&str>| {
            let address = server.url.parse().expect("an address");
            let options = CrateOptions { row_key: row_key.map(str::to_owned), ..options.clone() };
            CrateDb::new(address, name.parse().expect("a name")).options(options)
        };
        let target = table("sawmill_bench", None);
        let with_key = table("sawmill_keyed", Some("sawmill_row_key"));
        let plain = table("sawmill_floor", None);
        let floor = floor::Floor::new(&server.url, &plain, source, &loading, transport);
        let (cancel, profile) = (AtomicBool::new(false), Profile::new());
        let phase = profile.phase("load");
        let control = Control::new(&cancel, &phase);
        let (mut ours, mut theirs, mut keyed) = (Runs::default(), Runs::default(), Runs::default());
        let mut visible = Runs::default();
        for round in 0..=rounds {
            floor.clear();
            theirs.measure(server, round > 0, || floor.send(DEGREE));
            visible.measure(server, round > 0, || floor.refresh());
            visible.add_last_of(&theirs);
            floor.drop();
            for (target, runs) in [(&target, &mut ours), (&with_key, &mut keyed)] {
                runs.measure(server, round > 0, || {
                    let report = load(source, target, &loading, &control).expect("the rows can be loaded");
                    assert_eq!(report.rows_loaded, rows as u64);
                });
                target.forget(true, &control).expect("the table can be dropped");
            }
        }
        let name = format!("{transport:?}").to_lowercase();
        let ways = [
            ("floor", &theirs),
            ("floor, then REFRESH", &visible),
            ("loader", &ours),
            ("loader with a row key", &keyed),
        ];
        for (way, runs) in ways {
            let (wall, client, at_server) = (median(&runs.wall), median(&runs.client), median(&runs.server));
            let ratios: Vec<f64> = runs.wall.iter().zip(&theirs.wall).map(|(a, b)| a / b).collect();
            println!(
                "| {name} | {way} | {wall:.3} | {:.3} | {client:.2} | {at_server:.2} | {:.1} % |",
                median(&ratios),
                client / at_server * 100.0
            );
            let of_floor = median(&ratios);
            loads.push(format!(
                "{{\"transport\":{name:?},\"way\":{way:?},\"seconds\":{wall},\"of_floor\":{of_floor},\
                 \"client_cpu\":{client},\"server_cpu\":{}}}",
                // JSON has no NaN.
                if at_server.is_finite() { at_server } else { 0.0 }
            ));
        }
    }
    if let Some(path) = std::env::var_os(JSON) {
        let line = format!("{{\"title\":{title:?},\"rows\":{rows},\"loads\":[{}]}}\n", loads.join(","));
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the file of figures can be written");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if let [serving, cost] = arguments.as_slice()
        && serving == "serve"
    {
        return serve(cost);
    }
    // Arguments that are not numbers are names of benchmarks, shared by all of them.
    let names: Vec<&String> = arguments.iter().filter(|word| word.parse::<usize>().is_err()).collect();
    if !names.is_empty() && names.iter().all(|name| !"crate_load".contains(name.as_str())) {
        return;
    }
    let testing = sawmill_benches::once();
    let given = arguments.iter().find_map(|rows| rows.parse().ok());
    let rows: usize = given.unwrap_or(if testing { 2_000 } else { 200_000 });
    let mut numbers = arguments.iter().filter_map(|word| word.parse().ok());
    let rounds = numbers.nth(1).unwrap_or(if testing { 1 } else { ROUNDS });
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let path = directory.path().join("taxi.parquet");
    write_file(&path, rows);
    let source = ParquetFiles::open(&[path]).expect("the file can be read");
    match Server::named() {
        Some(server) => compare("A real server", &server, &source, rows, rounds),
        None => {
            let servers = [
                ("The stand-in, which is not CrateDB", Duration::ZERO),
                ("The stand-in at the cost of CrateDB, 17 us of CPU per row", REAL_COST),
            ];
            for (title, cost) in servers {
                compare(title, &Server::standin(cost), &source, rows, rounds);
            }
        }
    }
}
