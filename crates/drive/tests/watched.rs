//! What readers outside this project make of a watched run: a browser of the page, HdrHistogram's reader of the
//! log, Prometheus' parser of the metrics. Those that are not installed are skipped, and the test says so.
//!
//! `SAWMILL_PYTHON` names a Python with the packages `hdrhistogram` and `prometheus_client`;
//! `SAWMILL_KEEP_REPORT=FOLDER` keeps the pages and their pictures.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use sawmill_drive::{
    ChaosEvent, DriveResult, DriverReport, Durations, FORMAT, HdrLog, IntervalHistograms, JsonLines,
    NamedResult, Observer, OperationResult, OperationSecond, Prometheus, Proof, RunDescription, Second,
    ServerSample, Snapshot, Troubles, VERSION, Watchers, html_report,
};

/// Bytes that the test and an observer share.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const SECONDS: u32 = 90;
const NAMES: [&str; 2] = ["insert of orders with their lines", "select"];

/// The latencies of a second: a server that stalls in second 40, and is slower for some operations.
fn latencies(at: u32, operation: u32) -> Durations {
    let mut all = Durations::default();
    let mut value = u64::from(at * 7 + operation + 1);
    for _ in 0..500 {
        value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let noise = (value >> 40) % 1000;
        let stall = if at == 40 { 900_000 } else { 0 };
        let tail = if noise > 985 { 20_000 + noise * 30 } else { noise };
        all.record_micros(400 + u64::from(operation) * 900 + tail + stall, 1);
    }
    all
}

/// A run that is watched from its first second to its last, and its result.
fn driven(observer: &mut dyn Observer) -> DriveResult {
    let names: Vec<String> = NAMES.map(str::to_owned).into();
    let run = RunDescription {
        name: "orders \"and\" lines".into(),
        loop_kind: "open".into(),
        arrivals: "poisson".into(),
        shape: "ramp 500/s..1500/s over 90 s".into(),
        connections: 16,
        duration: f64::from(SECONDS - 10),
        warm_up: 10.0,
        operations: names.clone(),
        ..RunDescription::default()
    };
    observer.started(&run);
    let operation = |name: &String| OperationResult { name: name.clone(), ..OperationResult::default() };
    let mut operations: Vec<OperationResult> = names.iter().map(operation).collect();
    let mut totals = vec![IntervalHistograms::default(), IntervalHistograms::default()];
    let mut seconds = Vec::new();
    let chaos = ChaosEvent { at: 40.0, took: 1.5, what: "kill server".into(), error: None };
    for at in 1..=SECONDS {
        let warm_up = at <= 10;
        let intervals: Vec<IntervalHistograms> = (0..2)
            .map(|operation| IntervalHistograms {
                latency: latencies(at, operation),
                service: latencies(at, operation),
                failures: Durations::default(),
            })
            .collect();
        let mut of = BTreeMap::new();
        for (place, interval) in intervals.iter().enumerate() {
            let errors = if at == 41 {
                BTreeMap::from([("57P01".to_owned(), 12), ("lost".to_owned(), 3)])
            } else {
                BTreeMap::new()
            };
            if !warm_up {
                totals[place].latency.add(&interval.latency);
                totals[place].service.add(&interval.service);
                operations[place].ok += 500;
                operations[place].intended += 500;
                errors
                    .iter()
                    .for_each(|(kind, n)| *operations[place].errors.entry(kind.clone()).or_default() += n);
            }
            let one = OperationSecond {
                ok: 500,
                rows: 500,
                errors,
                latency: (&interval.latency).into(),
                service: (&interval.service).into(),
                heat: interval.latency.coarse(),
                ..OperationSecond::default()
            };
            of.insert(names[place].clone(), one);
        }
        let intended = 500.0 + 1000.0 * f64::from(at) / f64::from(SECONDS);
        let second = Second {
            at: f64::from(at),
            length: 1.0,
            warm_up,
            intended,
            achieved: if at == 40 { 100.0 } else { intended - 3.0 },
            late: if at == 40 { 300 } else { 0 },
            operations: of,
            server: Some(ServerSample {
                processors: Some(0.4 + f64::from(at % 7) / 10.0),
                memory: Some(200 << 20),
                wal: Some(u64::from(at) * 40_000),
                checkpoints: Some(u64::from(at % 30 == 0)),
                waits: BTreeMap::from([
                    ("IO: WALSync".to_owned(), u64::from(at % 4)),
                    ("Lock: transactionid".to_owned(), 1),
                ]),
                active: Some(u64::from(at % 9)),
            }),
            ..Second::default()
        };
        if at == 41 {
            observer.chaos(&chaos);
        }
        let none = vec![IntervalHistograms::default(), IntervalHistograms::default()];
        let snapshot = Snapshot {
            run: &run,
            second: &second,
            intervals: &intervals,
            warming: if warm_up { &intervals } else { &none },
            operations: &operations,
            totals: &totals,
            driver: &DriverReport::default(),
        };
        observer.second(&snapshot);
        seconds.push(second);
    }
    for (operation, totals) in operations.iter_mut().zip(totals) {
        operation.rate = operation.ok as f64 / run.duration;
        operation.messages =
            BTreeMap::from([("57P01".to_owned(), "terminating connection due to <command>".to_owned())]);
        (operation.latency, operation.service) = (totals.latency.into(), totals.service.into());
    }
    let mut all = Durations::default();
    operations.iter().for_each(|operation| all.add(&operation.latency.histogram));
    let total = OperationResult {
        name: "all".into(),
        ok: operations.iter().map(|one| one.ok).sum(),
        intended: operations.iter().map(|one| one.intended).sum(),
        rate: operations.iter().map(|one| one.rate).sum(),
        errors: BTreeMap::from([("57P01".to_owned(), 24), ("lost".to_owned(), 6)]),
        late: 300,
        latency: all.into(),
        ..OperationResult::default()
    };
    let proof =
        Proof { table: "orders".into(), acknowledged: 80_000, found: 80_000, unknown: 6, ..Proof::default() };
    let result = DriveResult {
        format: FORMAT.into(),
        version: VERSION,
        started: "2026-01-02T03:04:05Z".into(),
        command: "sawmill drive orders.toml --to ...".into(),
        valid: true,
        run,
        total,
        operations,
        seconds,
        chaos: vec![chaos],
        proof: vec![proof],
        ..DriveResult::default()
    };
    observer.ended(&result);
    result
}

/// Runs a Python program over a text; `None` if the package is missing.
fn python(package: &str, program: &str, input: &str) -> Option<String> {
    let python = std::env::var_os("SAWMILL_PYTHON").unwrap_or_else(|| "python3".into());
    let has = Command::new(&python).args(["-c", &format!("import {package}")]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no Python with {package}");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    std::fs::write(&path, input).unwrap();
    let output = Command::new(&python).arg("-c").arg(program).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_reader_of_hdrhistogram_finds_every_value_of_every_second_in_the_log() {
    let (log, troubles) = (Shared::default(), Troubles::default());
    let result = driven(&mut HdrLog::new(log.clone(), "run.hlog", &troubles));
    assert!(troubles.first().is_none());
    let text = log.text();
    assert_eq!(
        text.lines().filter(|line| line.starts_with("Tag=")).count(),
        2 * (SECONDS as usize - 10),
        "no warm-up"
    );
    let program = "
import sys
from hdrh.log import HistogramLogReader
from hdrh.histogram import HdrHistogram
reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, 3600000000, 3))
sums = {}
while True:
    one = reader.get_next_interval_histogram()
    if one is None: break
    sum = sums.setdefault(one.get_tag(), HdrHistogram(1, 3600000000, 3))
    sum.add(one)
for tag in sorted(sums):
    print(tag, sums[tag].get_total_count(), *[sums[tag].get_value_at_percentile(p) for p in (50, 99, 99.9, 100)])
";
    let Some(read) = python("hdrh", program, &text) else { return };
    let expected = result.operations.iter().map(|operation| {
        let of = &operation.latency.histogram;
        let at = [0.5, 0.99, 0.999, 1.0].map(|share| of.quantile(share).to_string()).join(" ");
        format!("{} {} {at}\n", operation.name.replace(' ', "_"), of.count())
    });
    assert_eq!(read, expected.collect::<String>());
}

#[test]
fn the_metrics_are_what_prometheus_own_parser_reads() {
    let server = Prometheus::listen("127.0.0.1:0").unwrap();
    let address = server.address();
    let mut watchers = Watchers::default();
    let lines = Shared::default();
    let troubles = Troubles::default();
    watchers.add(server);
    watchers.add(JsonLines::new(lines.clone(), "lines", &troubles));
    let result = driven(&mut watchers);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: text/plain\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    let program = "
import sys
from prometheus_client.parser import text_string_to_metric_families
for family in text_string_to_metric_families(open(sys.argv[1]).read()):
    assert family.documentation and family.type != 'unknown', family
    for sample in family.samples:
        if sample.name == 'sawmill_drive_latency_seconds_count': print(sample.labels['operation'], int(sample.value))
        if sample.name == 'sawmill_drive_errors_total' and sample.labels['kind'] == 'lost': print('lost', int(sample.value))
        if sample.name == 'sawmill_drive_info': print(sample.labels['name'])
";
    if let Some(read) = python("prometheus_client", program, body) {
        let count = |place: usize| result.operations[place].latency.histogram.count();
        let expected = format!(
            "orders \"and\" lines\nlost 3\nlost 3\n{} {}\n{} {}\n",
            NAMES[0],
            count(0),
            NAMES[1],
            count(1)
        );
        assert_eq!(read, expected);
    }
    let lines = lines.text();
    let events: Vec<String> = lines
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["event"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(events.len(), SECONDS as usize + 3);
    assert_eq!((events[0].as_str(), events[events.len() - 1].as_str()), ("started", "ended"));
    assert_eq!(events.iter().filter(|event| *event == "second").count(), SECONDS as usize);
    assert!(troubles.first().is_none());
    drop(watchers);
    assert!(TcpStream::connect(address).is_err(), "nothing is served after the run");
}

/// Checks in the browser what a reader would see: the same as for the reports of benchmarks.
const PROBE: &str = include_str!("../../profile/tests/html_report/probe.html");

fn browser() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let there = std::env::split_paths(&folders).flat_map(|folder| names.map(|name| folder.join(name)));
    there.into_iter().find(|path| path.is_file())
}

fn look(browser: &Path, folder: &Path, dark: bool, arguments: &[String]) -> String {
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args(["--disable-sync", "--hide-scrollbars", "--virtual-time-budget=4000"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_report_of_a_load_test_can_be_read_at_any_width_light_and_dark() {
    let named = |name: &str| NamedResult { name: name.into(), result: driven(&mut ()) };
    let one = html_report(&[named("run")]).unwrap();
    let mut invalid = named("a run whose driver was too slow for its own schedule");
    (invalid.result.valid, invalid.result.invalid_because) = (false, vec!["the driver was late".into()]);
    let several = html_report(&[named("fsync on"), named("fsync off"), invalid]).unwrap();
    for text in [
        "kill server",
        "57P01",
        "terminating connection due to &lt;command&gt;",
        "IO: WALSync",
        "Percentiles",
    ] {
        assert!(one.contains(text), "{text}");
    }
    assert!(several.contains("invalid run says nothing about its server"));
    let Some(browser) = browser() else {
        eprintln!("skipped: no Chromium on this machine to view the page");
        return;
    };
    let kept = std::env::var_os("SAWMILL_KEEP_REPORT").map(PathBuf::from);
    let temporary = tempfile::tempdir().unwrap();
    let folder = kept.unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&folder).unwrap();
    for (name, page) in [("one", one), ("several", several)] {
        std::fs::write(folder.join(format!("{name}.html")), &page).unwrap();
        std::fs::write(folder.join("probe.html"), page.replace("</body>", PROBE)).unwrap();
        for (dark, width) in [(false, 375), (true, 375), (true, 800), (false, 1400)] {
            let frame = format!(
                "<!DOCTYPE html><body style=\"margin:0\"><iframe src=\"probe.html\" style=\"border:0;\
                 width:{width}px;height:7000px\"></iframe><pre id=\"probe\"></pre><script>addEventListener('message', \
                 function (e) {{ document.getElementById('probe').textContent = e.data; }});</script></body>"
            );
            std::fs::write(folder.join("frame.html"), frame).unwrap();
            let address = format!("file://{}", folder.join("frame.html").display());
            let arguments = ["--dump-dom".to_owned(), "--window-size=1500,7000".to_owned(), address.clone()];
            let seen = look(&browser, &folder, dark, &arguments);
            let answer = seen.rsplit_once("CHARTS ").expect("the probe has run").1;
            let answer = answer.split(" END").next().unwrap();
            assert!(
                answer.contains(&format!("WIDTH {width} ")) && answer.contains("PROBLEMS 0"),
                "{name}, {width}: {answer}"
            );
            if std::env::var_os("SAWMILL_KEEP_REPORT").is_some() {
                let picture =
                    folder.join(format!("{name}-{width}-{}.png", if dark { "dark" } else { "light" }));
                let size = format!("--window-size={},7000", width.max(500));
                look(
                    &browser,
                    &folder,
                    dark,
                    &[format!("--screenshot={}", picture.display()), size, address],
                );
            }
        }
    }
}
