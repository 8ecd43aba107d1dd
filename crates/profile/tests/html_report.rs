//! Views the HTML page in a real browser, light and dark. Without Chromium the test says so and passes.
//!
//! With `SAWMILL_KEEP_REPORT=FOLDER` the page and its pictures are kept in that folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use sawmill_profile::{
    Case, CommandLine, Commit, CpuSampler, Filesystem, Output, Profile, ResultFile, Run, Sampler,
    SamplerOptions, SideResult, Target, WaitKind, WireCounters, html_report, span, wait,
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

fn file(label: &str, speed: f64) -> ResultFile {
    let mut file = ResultFile::new(label, "sawmill bench load --degree 1,2,4,8 --batch-rows 1024..16384*2");
    file.commit =
        Some(Commit { hash: "0123456789abcdef".into(), title: "Shred <faster>".into(), changed: true });
    file.versions =
        BTreeMap::from([("PostgreSQL".into(), "16.4".into()), ("sawmill".into(), "0.1.0".into())]);
    file.filesystems.extend(Filesystem::of(Path::new(".")));
    let text = |name: &str, value: u32| (name.to_owned(), value.to_string());
    let sides = vec![
        measured_side(runs(900.0 * speed)),
        SideResult::new("tpchgen-cli", 1, runs(1000.0)),
        SideResult::new("ArrowWriter, one thread", 1, runs(901.0)),
    ];
    file.cases.push(Case::new("gen", BTreeMap::new(), sides).unwrap());
    for degree in [1, 2, 4, 8] {
        for batch in [1024, 2048, 4096, 8192, 16384] {
            let parameters = BTreeMap::from([text("degree", degree), text("batch_rows", batch)]);
            let millis = 4000.0 / f64::from(degree).powf(0.7) * (1.0 + 500.0 / f64::from(batch)) * speed;
            let side = SideResult::new("sawmill", 1, runs(millis));
            file.cases.push(Case::new("load", parameters, vec![side]).unwrap());
        }
    }
    for writers in [1, 2, 4] {
        let parameters = BTreeMap::from([text("writers", writers)]);
        let side = SideResult::new("sawmill", 1, runs(700.0 / f64::from(writers)));
        file.cases.push(Case::new("write", parameters, vec![side]).unwrap());
    }
    file
}

/// Checks in the browser what a reader would see, and stores the result in the page.
const PROBE: &str = r#"<script>
addEventListener('load', function () {
  var problems = [];
  if (document.documentElement.scrollWidth > innerWidth) problems.push('the page is wider than the window');
  if (performance.getEntriesByType('resource').length) problems.push('something was loaded from elsewhere');
  document.querySelectorAll('.scroll').forEach(function (part) {
    if (part.scrollWidth > part.clientWidth + 1) problems.push('a table or flame graph is cut off');
  });
  var charts = document.querySelectorAll('svg.chart, svg.flame');
  charts.forEach(function (svg) {
    var box = svg.getBoundingClientRect(), label = svg.getAttribute('aria-label');
    if (box.width < 100 || box.height < 20) problems.push(label + ' has no size');
    if (/NaN|Infinity/.test(svg.innerHTML)) problems.push(label + ' has numbers that are none');
    svg.querySelectorAll('text').forEach(function (text) {
      var t = text.getBoundingClientRect();
      if (t.width && (t.left < box.left - 2 || t.right > box.right + 2 || t.bottom > box.bottom + 2))
        problems.push(label + ': "' + text.textContent + '" leaves the picture');
    });
  });
  var ground = getComputedStyle(document.body).backgroundColor;
  var frames = document.querySelectorAll('svg.flame .frame'), zoomed = 'no flame graph';
  if (frames.length > 2) {
    frames[frames.length - 1].dispatchEvent(new MouseEvent('click', {bubbles: true}));
    var w = +frames[frames.length - 1].querySelector('rect').getAttribute('width');
    zoomed = Math.round(w) === 1184 ? 'zooms' : 'does not zoom: ' + w;
  }
  var out = document.createElement('pre');
  out.id = 'probe';
  out.textContent = 'CHARTS ' + charts.length + ' GROUND ' + ground + ' FLAME ' + zoomed
    + ' PROBLEMS ' + problems.length + ' ' + problems.join('; ') + ' END';
  document.body.appendChild(out);
});
</script></body>"#;

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
        "--window-size=1180,1000",
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

#[test]
fn the_page_can_be_read_in_a_browser_light_and_dark() {
    let series = [file("first try", 1.0), file("reuse buffers", 0.8), file("dictionary pages", 0.75)];
    let page = html_report(&series).unwrap();
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        let inside = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!inside.contains(outside), "the page must be self-contained: {outside}");
    }
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
        let seen = look(&browser, &folder, dark, &["--dump-dom".into(), address("probe.html")]);
        let answer = seen.rsplit_once("CHARTS ").expect("the probe has run").1;
        let answer = answer.split(" END").next().unwrap();
        assert!(answer.contains(ground), "dark is {dark}: {answer}");
        assert!(answer.contains("PROBLEMS 0") && answer.contains("FLAME zooms"), "{answer}");
        let charts: u32 = answer.split(' ').next().unwrap().parse().unwrap();
        assert!(charts >= 10, "{answer}");
        let picture = folder.join(if dark { "dark.png" } else { "light.png" });
        let shot = format!("--screenshot={}", picture.display());
        look(&browser, &folder, dark, &[shot, "--window-size=1180,9000".into(), address("report.html")]);
        assert!(std::fs::metadata(&picture).unwrap().len() > 50_000, "a page without pictures");
    }
    if kept.is_none() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
