//! The README's first command builds the crates that it needs and no others.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The crates of the demo's build on Linux, one on each line. Whoever adds one waits for it on every machine.
const LISTED: &str = include_str!("demo_crates.txt");

#[test]
fn the_first_command_builds_the_listed_crates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Without --package: the default members, as `cargo run` builds them.
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal,build", "--prefix", "none"])
        .args(["--format", "{p}", "--target", "x86_64-unknown-linux-gnu"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let built: BTreeSet<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let listed: BTreeSet<&str> = LISTED.lines().collect();
    assert_eq!(
        built.symmetric_difference(&listed).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "update demo_crates.txt if the demo needs the crate"
    );
}
