//! Passes the compiler version and build profile to the crate, so that results can name them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = std::process::Command::new(compiler)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_default();
    let profile = std::env::var("PROFILE").unwrap_or_default();
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=SAWMILL_RUSTC={}", version.trim());
    println!("cargo::rustc-env=SAWMILL_PROFILE={profile}");
    println!("cargo::rustc-env=SAWMILL_TARGET={target}");
}
