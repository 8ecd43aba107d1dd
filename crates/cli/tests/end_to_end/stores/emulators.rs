//! Azure, by an emulator of others: azurite (npm).

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::harness::{Ran, command, sawmill, until};
use crate::load::Bench;

/// An emulator's process, killed when it is dropped.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program that a variable names, and waits for its port. `None`, after saying so, without it.
fn started(variable: &str, args: &[&str], port: u16) -> Option<Emulator> {
    let Ok(program) = std::env::var(variable) else {
        println!("skipped: {variable} names no emulator");
        return None;
    };
    let child = Command::new(&program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let emulator = Emulator(child.unwrap());
    until("the emulator answers", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    Some(emulator)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Writes objects in parts, finds, resumes, loads and verifies them, and compares them with local files.
fn round_trip(folder: &str, run: &dyn Fn(&[&str]) -> Ran) {
    let local = tempfile::tempdir().unwrap();
    let dataset = ["contacts", "--rows", "700k", "--files", "2"];
    let generate =
        |out: &str, more: &[&str]| [&["gen"], &dataset[..], &["--out", out], more].concat().join(" ");
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
    sawmill(words(&generate(local.path().to_str().unwrap(), &[]))).ok();
    let here = |more: &[&str]| {
        let line = generate(folder, more);
        run(&line.split(' ').collect::<Vec<&str>>())
    };
    // Objects of 8 MB take two parts.
    here(&["--upload-part", "5MiB"]).ok();
    let error = here(&[]).fails(2);
    assert!(error.contains("--resume"), "{error}");
    let kept = here(&["--resume", "--json"]).ok().json();
    assert_eq!(kept["files"].as_array().map(Vec::len), Some(2), "{kept}");
    here(&["--overwrite"]).ok();
    let bench = Bench::new();
    let args = |verb: &str, of: &str| bench.args(verb, Path::new(of), "c", &[]);
    let load: Vec<String> = args("load", folder);
    run(&load.iter().map(String::as_str).collect::<Vec<&str>>()).ok();
    sawmill(args("verify", local.path().to_str().unwrap())).ok();
    let pattern = format!("{folder}/contacts-0000[0-9].parquet");
    let found = run(&["footer", &pattern, "--json"]).ok().json();
    assert_eq!(found["files"].as_array().map(Vec::len), Some(2));
    let missing = format!("{folder}/none.parquet");
    assert!(run(&["footer", &missing]).fails(1).contains("there is no such object"));
    let one = format!("{folder}/contacts-00000.parquet");
    let same = local.path().join("contacts-00000.parquet");
    run(&["footer", "diff", &one, same.to_str().unwrap()]).ok();
}

#[test]
fn azure_holds_what_local_files_hold() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let (place, number) = (folder.path().to_str().unwrap(), port.to_string());
    let args = [
        "--silent",
        "--skipApiVersionCheck",
        "--disableTelemetry",
        "--location",
        place,
        "--blobPort",
        &number,
    ];
    let Some(_emulator) = started("SAWMILL_AZURITE", &args, port) else { return };
    // Azurite's own account and key, which are public.
    let key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    let run = |args: &[&str]| {
        let mut command = command(args);
        command
            .env("AZURE_STORAGE_ACCOUNT_NAME", "devstoreaccount1")
            .env("AZURE_STORAGE_ACCOUNT_KEY", key)
            .env("AZURE_STORAGE_ENDPOINT", format!("http://127.0.0.1:{port}/devstoreaccount1"));
        Ran::from(command.output().unwrap())
    };
    // Only a signed request makes a container: a Python with the SDK does it.
    let python = std::env::var("SAWMILL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let made = Command::new(&python)
        .args(["-c", "import sys; from azure.storage.blob import BlobServiceClient as C; C(sys.argv[1], sys.argv[2]).create_container('trips')"])
        .args([format!("http://127.0.0.1:{port}/devstoreaccount1").as_str(), key])
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        println!("skipped: {python} has no azure-storage-blob");
        return;
    }
    round_trip("az://trips/data", &run);
}
