//! A driver that did not run for a while says so: the server did not cause the delays of that time.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sawmill_drive::DriveResult;

use crate::database::Database;
use crate::harness::{command, signal};

/// Drives for four seconds, and stops the driver for 0.4 s after the first and the second one. Also returns for how many
/// seconds it was stopped, at least and at most.
fn stopped(load: &[&str]) -> (Option<i32>, DriveResult, [f64; 2]) {
    let (server, home) = (Database::new(), tempfile::tempdir().unwrap());
    let (url, path) = (server.url(), home.path().join("r.json"));
    let path_text = path.display().to_string();
    let run = ["drive", "gen:events", "--to", &url, "--for", "4s", "--jsonl", "-", "--json-file", &path_text];
    let mut child =
        command([&run[..], load].concat()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut stops, mut stalled) = (0, [0.0, 0.0]);
    for line in lines.map(Result::unwrap) {
        if line.contains("\"event\":\"second\"") && stops < 2 {
            stops += 1;
            let began = Instant::now();
            signal(&child, "STOP");
            let stopped = Instant::now();
            // The stall itself.
            std::thread::sleep(Duration::from_millis(400));
            stalled[0] += stopped.elapsed().as_secs_f64();
            signal(&child, "CONT");
            stalled[1] += began.elapsed().as_secs_f64();
        }
    }
    let code = child.wait().unwrap().code();
    (code, serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap(), stalled)
}

#[test]
fn a_stall_of_the_driver_is_not_charged_to_the_server() {
    let (code, result, [least, most]) = stopped(&["--rate", "500", "--arrivals", "constant"]);
    let driver = &result.driver;
    assert_eq!((code, result.valid), (Some(1), false), "{driver:?}");
    assert!(driver.pauses >= 2 && driver.paused > least - 0.1, "{driver:?} of {least}");
    // A busy machine keeps it from running, too.
    assert!(driver.pauses > 2 || driver.paused < most + 0.1, "{driver:?} of {most}");
    // Of 2,000 operations about 400 were due in the pauses.
    assert!(driver.late_by_driver > 300 && driver.spoilt > 300, "{driver:?}");
    assert!(driver.late_by_driver > 5 * (driver.late_by_server + driver.late_by_pool), "{driver:?}");
    assert!(result.invalid_because[0].contains("the driver did not run for"), "{:?}", result.invalid_because);
}

#[test]
fn a_closed_loop_whose_driver_was_stopped_is_invalid() {
    let (code, result, _) = stopped(&["--clients", "4"]);
    assert_eq!((code, result.valid), (Some(1), false), "{:?}", result.driver);
    // On a busy machine more than 1 % of the operations are spoilt as well, and the reason begins with them.
    assert!(result.invalid_because[0].contains("the driver did not run for"), "{:?}", result.invalid_because);
}

#[test]
fn a_driver_whose_processor_quota_is_used_up_says_so() {
    // Version 1 or 2 of cgroups, where this process may make one, and the file and text of a tenth of a processor.
    let versions = [("cpu", "cpu.cfs_quota_us", "10000"), ("", "cpu.max", "10000 100000")];
    let group = versions.iter().find_map(|(folder, file, text)| {
        let root = Path::new("/sys/fs/cgroup").join(folder);
        let group = root.join(format!("sawmill-{}", std::process::id()));
        std::fs::create_dir(&group).ok()?;
        // Not created: the file is missing where the controller is off.
        let quota = std::fs::OpenOptions::new().write(true).open(group.join(file));
        let limited = quota.and_then(|mut quota| quota.write_all(text.as_bytes()));
        limited.map_err(|_| std::fs::remove_dir(&group)).ok().map(|()| group)
    });
    let Some(group) = group else {
        eprintln!("skipped: no cgroup for a quota can be made here");
        return;
    };
    let (home, procs) = (tempfile::tempdir().unwrap(), group.join("cgroup.procs"));
    let path = home.path().join("r.json");
    let driver =
        command(["drive", "gen:events", "--to", "null", "--rate", "20k", "--for", "3s", "--json-file"]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(&procs).arg(driver.get_program());
    let ran = shell.args(driver.get_args()).arg(&path).output().unwrap();
    std::fs::remove_dir(&group).unwrap();
    let result: DriveResult = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert!(!result.valid && result.driver.pauses > 5, "{:?}", result.driver);
    assert_eq!(ran.status.code(), Some(1));
}

/// Drives for three seconds, `words` before the command, beside so many busy programs on each processor.
fn beside(busy: usize, words: &[&str], load: &[&str]) -> (Option<i32>, DriveResult) {
    let processors = std::thread::available_parallelism().unwrap().get();
    let spin = || std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("r.json");
    let driver = command([&["drive", "gen:events", "--for", "3s"][..], load].concat());
    let mut whole = std::process::Command::new("env");
    whole.args(words).arg(driver.get_program()).args(driver.get_args()).arg("--json-file").arg(&path);
    let mut others: Vec<_> = (0..busy * processors).map(|_| spin()).collect();
    let ran = whole.output();
    for other in &mut others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    let result = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    (ran.unwrap().status.code(), result)
}

/// Others have the processors, as on a machine whose host gives them to other machines (steal).
#[test]
fn a_driver_that_others_keep_from_the_processors_says_so() {
    let (code, result) = beside(1, &["nice", "-n", "15"], &["--to", "null", "--rate", "2k"]);
    let driver = &result.driver;
    assert!(!result.valid && driver.spoilt > 0 && code == Some(1), "{driver:?}");
    assert!(driver.late_by_driver > driver.late_by_server + driver.late_by_pool, "{driver:?}");
}

/// No thread waits long enough for a pause of the process; all of them wait often.
#[test]
fn clients_that_wait_for_a_processor_make_a_closed_loop_invalid() {
    let server = Database::new();
    let (code, result) = beside(3, &[], &["--to", &server.url(), "--clients", "2"]);
    let driver = &result.driver;
    assert!(!result.valid && code == Some(1), "{driver:?}");
    assert!(driver.waited > 0.03, "{driver:?}");
    assert!(result.invalid_because[0].contains("each connection waited "), "{:?}", result.invalid_because);
}
