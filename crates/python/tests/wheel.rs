//! The wheel, installed into an empty folder, in a Python that has pyarrow and DuckDB.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sawmill_localpg::LocalPg;

/// The Python of the tests; `None` if there is none.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("SAWMILL_PYTHON").map(PathBuf::from);
    if python.is_none() {
        eprintln!("skipped: SAWMILL_PYTHON names no Python");
    }
    python
}

fn checked(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// The module that was built with this test.
fn library() -> PathBuf {
    let profile = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let built = profile.join("lib_sawmill.so");
    if built.exists() { built } else { profile.join("deps/lib_sawmill.so") }
}

#[test]
fn a_wheel_in_an_empty_folder_has_the_command_and_the_module() {
    let Some(python) = python() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dir = tempfile::tempdir().unwrap();
    let made = checked(Command::new(&python).arg(root.join("scripts/wheel")).arg(library()).arg(dir.path()));
    let wheel = String::from_utf8(made.stdout).unwrap();
    let site = dir.path().join("site");
    let pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"];
    checked(Command::new(&python).args(pip).arg(&site).arg(wheel.trim()));
    let server = LocalPg::start().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wheel.py");
    checked(
        Command::new(&python)
            .arg(script)
            .args([dir.path(), Path::new(&server.url())])
            .env("PYTHONPATH", &site)
            // It sends signals to its group.
            .process_group(0)
            .current_dir(dir.path()),
    );
}
