//! Crashes of the machine, in a model of its file system: what no fsync kept may be lost.

use std::path::Path;
use std::process::Command;

use crate::harness::can_trace;

/// In how many states the same command runs again. Without this number `scripts/crash_states` does so in all.
const FINISHED: &str = "100";

#[test]
fn after_a_crash_at_any_call_outputs_are_whole_and_the_same_command_finishes_them() {
    if !can_trace() {
        println!("skipped: strace is not installed, or may not trace processes here");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/crash_states");
    let python = std::env::var("SAWMILL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let ran = Command::new(python)
        .arg(script)
        .args(["--command", env!("CARGO_BIN_EXE_sawmill"), "--states", FINISHED])
        .output()
        .expect("python3 runs");
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && out.contains(": 0 failed"), "{out}{err}");
}
