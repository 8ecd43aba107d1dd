//! Views the HTML page in a real browser at the widths of a telephone, a tablet and a desktop, light and dark.
//! Without Chromium the test says so and passes.
//!
//! With `SAWMILL_KEEP_REPORT=FOLDER` the page and its pictures are kept in that folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use sawmill_profile::{
    Case, CommandLine, Commit, CpuSampler, Filesystem, Hardware, HardwareCounts, Output, PhaseReport,
    Profile, ResultFile, Run, Sampler, SamplerOptions, SideResult, Target, WaitKind, WireCounters,
    html_report, span, wait,
};

/// Burns CPU time in a function that the flame graph can show.
#[inline(never)]
fn encode(rounds: u64) -> u64 {
    (0..rounds * 1000).fold(7, |sum: u64, n| std::hint::black_box(sum.wrapping_mul(31).wrapping_add(n)))
}

/// A pipeline with a slow server, measured like a load.
fn measured_side(runs: Vec<Run>) -> SideResult {
    let profile = Profile::with_hardware();
    let wire = WireCounters::new();
    let options = SamplerOptions::new()
        .interval(Duration::from_millis(20))
        .started(profile.started())
        .wire(&wire)
        .watch("server", &Target::Pid(std::process::id()));
    let sampler = Sampler::start(options).unwrap();
    let cpu_sampler = CpuSampler::start();
    let plan = profile.phase("plan");
    std::thread::sleep(Duration::from_millis(60));
    plan.finish();
    let load = profile.phase("load");
    let (send, receive) = sync_channel::<u64>(2);
    std::thread::scope(|scope| {
        let (load, wire) = (&load, &wire);
        let encoder = std::thread::Builder::new().name("encoder 1".into());
        let work = move || {
            let _attached = load.attach("encoder 1");
            for batch in 0..40 {
                let work = span("encode batch");
                let value = encode(600);
                work.add_rows(1000);
                drop(work);
                let _full = wait(WaitKind::ChannelFull);
                let _ = send.send(batch ^ value);
            }
        };
        encoder.spawn_scoped(scope, work).unwrap();
        let sender = std::thread::Builder::new().name("sender 1".into());
        let work = move || {
            let _attached = load.attach("sender 1");
            loop {
                let empty = wait(WaitKind::ChannelEmpty);
                let Ok(_batch) = receive.recv() else { break };
                drop(empty);
                let _network = wait(WaitKind::Network);
                std::thread::sleep(Duration::from_millis(15));
                wire.add_sent(500_000);
                load.add_rows(1000);
                load.add_bytes(500_000);
            }
        };
        sender.spawn_scoped(scope, work).unwrap();
    });
    let verify = load.phase("verify");
    encode(20_000);
    verify.finish();
    load.finish();
    let folded_stacks = cpu_sampler.and_then(CpuSampler::stop).map_or(
        "encoder 1;encode;<A as B>::next 30\nencoder 1;encode 10\nsender 1;send 4\n".to_owned(),
        |stacks| stacks.named().to_string(),
    );
    SideResult {
        timeline: Some(sampler.stop()),
        folded_stacks: Some(folded_stacks),
        ..SideResult::new("sawmill", 1, runs).with_phases(profile.phases())
    }
}

/// Ten runs around a time, one of them an outlier.
fn runs(millis: f64) -> Vec<Run> {
    let noise = [1.0, 1.02, 0.97, 1.05, 0.99, 1.01, 1.6, 0.98, 1.03, 1.0];
    let run = |noise: &f64| Run {
        wall: Duration::from_secs_f64(millis * noise / 1e3),
        user: Duration::from_secs_f64(millis * noise / 2e3),
        rows: Some(1_000_000),
        peak_memory: Some((120.0 * noise * 1048576.0) as u64),
        ..Run::default()
    };
    noise.iter().map(run).collect()
}

/// Ten runs that also report how many instructions a cycle had.
fn counted_side(name: &str, millis: f64, per_cycle: f64) -> SideResult {
    let counts = HardwareCounts {
        cycles: Some(1_000_000),
        instructions: Some((1_000_000.0 * per_cycle) as u64),
        ..HardwareCounts::default()
    };
    let phase =
        PhaseReport { name: "work".into(), hardware: Hardware::Counted(counts), ..PhaseReport::default() };
    SideResult { phases: vec![phase], ..SideResult::new(name, 1, runs(millis)) }
}

fn file(label: &str, speed: f64) -> ResultFile {
    let mut file = ResultFile::new(
        label,
        "sawmill bench load --table logged,unlogged --pk yes,no --connections 1,2,4,8",
    );
    file.commit =
        Some(Commit { hash: "0123456789abcdef".into(), title: "Shred <faster>".into(), changed: true });
    file.versions =
        BTreeMap::from([("PostgreSQL".into(), "16.4".into()), ("sawmill".into(), "0.1.0".into())]);
    file.filesystems.extend(Filesystem::new(Path::new(".")));
    let text = |name: &str, value: &dyn std::fmt::Display| (name.to_owned(), value.to_string());
    let sides = vec![
        measured_side(runs(900.0 * speed)),
        SideResult::new("tpchgen-cli", 1, runs(1000.0)),
        SideResult::new(
            "ArrowWriter of another library, with one thread and a name that is very long",
            1,
            runs(901.0),
        ),
    ];
    file.cases.push(Case::new("gen", BTreeMap::new(), sides).unwrap());
    for (kind, cost) in [("logged", 1.4), ("unlogged", 1.0)] {
        for (keyed, more) in [("yes", 1.5), ("no", 1.0)] {
            for degree in [1, 2, 4, 8] {
                let parameters = [text("table_kind", &kind), text("keyed", &keyed), text("degree", &degree)];
                let millis = 4000.0 * cost * more / f64::from(degree).powf(0.7) * speed;
                let side = SideResult::new("sawmill", 1, runs(millis));
                file.cases.push(Case::new("load", parameters.into(), vec![side]).unwrap());
            }
        }
    }
    for batch in [1024, 2048, 4096, 8192, 16384] {
        for unit in ["64Ki", "256Ki", "1Mi"] {
            let parameters = BTreeMap::from([text("batch_rows", &batch), text("unit_rows", &unit)]);
            let side = SideResult::new("sawmill", 1, runs(700.0 * (1.0 + 500.0 / f64::from(batch))));
            file.cases.push(Case::new("batches", parameters, vec![side]).unwrap());
        }
    }
    let side = counted_side("sawmill", 500.0 * speed, 2.0 / speed);
    file.cases.push(Case::new("shred", BTreeMap::new(), vec![side]).unwrap());
    file
}

/// Checks in the browser what a reader would see, and stores the result in the page.
const PROBE: &str = include_str!("html_report/probe.html");

fn browser() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let there = std::env::split_paths(&folders).flat_map(|folder| names.map(|name| folder.join(name)));
    there.into_iter().find(|path| path.is_file())
}

fn look(browser: &Path, folder: &Path, dark: bool, arguments: &[String]) -> String {
    let user = folder.join(if dark { "dark-profile" } else { "light-profile" });
    let scheme = if dark { 0 } else { 1 };
    let fixed = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
    ];
    let words = [browser.display().to_string()].into_iter().chain(fixed.map(str::to_owned)).chain([
        format!("--user-data-dir={}", user.display()),
        format!("--blink-settings=preferredColorScheme={scheme}"),
    ]);
    let line = CommandLine::new(words.chain(arguments.iter().cloned())).unwrap();
    let run = line
        .output(Output::Capture)
        .timeout(Duration::from_secs(120))
        .run(&std::sync::atomic::AtomicBool::new(false))
        .unwrap();
    run.checked().unwrap().stdout.text()
}

/// A page around the report, as wide as a window of that width: a headless browser has a least width.
fn framed(width: u32, height: u32) -> String {
    format!(
        "<!DOCTYPE html><body style=\"margin:0\"><iframe src=\"probe.html\" style=\"border:0;width:{width}px;\
         height:{height}px\"></iframe><pre id=\"probe\"></pre><script>addEventListener('message', function (e) {{\
         document.getElementById('probe').textContent = e.data; }});</script></body>"
    )
}

#[test]
fn the_page_can_be_read_in_a_browser_at_any_width_light_and_dark() {
    let series = [
        file("first try", 1.0),
        file("reuse buffers of pages between row groups, and measure again", 0.8),
        file("dictionary pages", 0.75),
    ];
    let page = html_report(&series).unwrap();
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        let inside = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!inside.contains(outside), "the page must be self-contained: {outside}");
    }
    let lines = page.matches("unlogged, no key</li>").count();
    assert_eq!(lines, 2, "a line for each kind of table, over time and speed-up");
    assert!(page.contains("<title>“dictionary pages” compared with “first try”: faster in"));
    let Some(browser) = browser() else {
        eprintln!("skipped: no Chromium on this machine to view the page");
        return;
    };
    let kept = std::env::var_os("SAWMILL_KEEP_REPORT").map(PathBuf::from);
    let folder = std::env::temp_dir().join(format!("sawmill-report-{}", std::process::id()));
    let folder = kept.clone().unwrap_or(folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("report.html"), &page).unwrap();
    std::fs::write(folder.join("probe.html"), page.replace("</body>", PROBE)).unwrap();
    let address = |name: &str| format!("file://{}", folder.join(name).display());
    for (dark, ground) in [(false, "rgb(255, 255, 255)"), (true, "rgb(17, 19, 23)")] {
        for width in [375, 800, 1400] {
            std::fs::write(folder.join("frame.html"), framed(width, 9000)).unwrap();
            let arguments =
                |kind: &str| [kind.to_owned(), "--window-size=1500,9000".into(), address("frame.html")];
            let waiting = "--virtual-time-budget=4000".to_owned();
            let seen =
                look(&browser, &folder, dark, &[&[waiting.clone()][..], &arguments("--dump-dom")].concat());
            let answer = seen.rsplit_once("CHARTS ").expect("the probe has run").1;
            let answer = answer.split(" END").next().unwrap();
            let place = format!("{width} pixels, dark is {dark}: {answer}");
            assert!(answer.contains(&format!("WIDTH {width} ")), "{place}");
            assert!(answer.contains(ground), "{place}");
            assert!(answer.contains("PROBLEMS 0") && answer.contains("FLAME zooms"), "{place}");
            let charts: u32 = answer.split(' ').next().unwrap().parse().unwrap();
            assert!(charts >= 10, "{place}");
            let picture = folder.join(format!("{width}-{}.png", if dark { "dark" } else { "light" }));
            let shot = format!("--screenshot={}", picture.display());
            let size = format!("--window-size={},9000", width.max(500));
            look(&browser, &folder, dark, &[waiting, shot, size, address("frame.html")]);
            assert!(std::fs::metadata(&picture).unwrap().len() > 50_000, "a page without pictures");
        }
    }
    if kept.is_none() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// The colours of the series in a theme, and the ground that pictures stand on.
fn colours(page: &str, theme: usize) -> (Vec<[f64; 3]>, [f64; 3]) {
    let style = page.split(":root").nth(theme + 1).unwrap();
    let colour = |name: &str| -> [f64; 3] {
        let digits = style.split_once(&format!("--{name}: #")).unwrap().1.get(..6).unwrap();
        let part = |n: usize| f64::from(u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).unwrap()) / 255.0;
        let linear = |v: f64| if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) };
        [linear(part(0)), linear(part(1)), linear(part(2))]
    };
    ((0..8).map(|n| colour(&format!("s{n}"))).collect(), colour("panel"))
}

/// How a colour looks with normal sight and without each kind of cone (Machado and others, 2009).
const SIGHTS: [[[f64; 3]; 3]; 4] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
];

fn apply(matrix: &[[f64; 3]; 3], colour: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|row| (0..3).map(|n| matrix[row][n] * colour[n]).sum::<f64>().clamp(0.0, 1.0))
}

/// A linear colour in Oklab, where equal distances look equally different.
fn oklab(colour: [f64; 3]) -> [f64; 3] {
    let dot = |weights: [f64; 3], of: [f64; 3]| weights.iter().zip(of).map(|(w, v)| w * v).sum::<f64>();
    let cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    .map(|weights| dot(weights, colour).cbrt());
    [
        [0.2104542553, 0.793617785, -0.0040720468],
        [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766],
    ]
    .map(|weights| dot(weights, cones))
}

#[test]
fn colours_of_lines_differ_for_colour_blind_readers_and_stand_out_from_the_ground() {
    let page = html_report(&[file("a", 1.0)]).unwrap();
    for theme in [0, 1] {
        let (colours, ground) = colours(&page, theme);
        let luminance = |c: [f64; 3]| 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
        for (number, colour) in colours.iter().enumerate() {
            let (a, b) = (luminance(*colour), luminance(ground));
            let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
            assert!(contrast >= 3.0, "colour {number} of theme {theme}: {contrast}");
            for (other, colour_of_other) in colours.iter().enumerate().take(number) {
                for sight in &SIGHTS {
                    let (a, b) = (oklab(apply(sight, *colour)), oklab(apply(sight, *colour_of_other)));
                    let distance = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                    assert!(distance > 0.08, "colours {number} and {other} of theme {theme}: {distance}");
                }
            }
        }
    }
}
