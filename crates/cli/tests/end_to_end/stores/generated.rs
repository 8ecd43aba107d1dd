//! `sawmill gen` to S3: the bytes of local files, whole objects or none, and what faults leave.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::proxy::{Fate, Proxy, Sent};
use super::s3::{self, S3};
use crate::harness::{Ran, command, sawmill, signal, until, wait};

const FOLDER: &str = "s3://trips/data";

/// The arguments of a run whose files have several parts each.
fn large<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let args = ["gen", "contacts", "--rows", "600k", "--files", "2", "--upload-part", "5MiB", "--out", out];
    [&args[..], more].concat()
}

/// Starts a run against an endpoint in the background.
fn start(endpoint: &str, args: &[&str]) -> Child {
    let mut command = s3::environment(command(args), endpoint);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn run(endpoint: &str, args: &[&str]) -> Ran {
    wait(start(endpoint, args))
}

/// Asserts that objects below `prefix` have the bytes of the files in a directory.
fn assert_same(s3: &S3, prefix: &str, directory: &Path) {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        match path.is_dir() {
            true => assert_same(s3, &format!("{prefix}{name}/"), &path),
            false if name.ends_with(".parquet") => files.push((name, path)),
            false => {}
        }
    }
    for (name, path) in files {
        let object = s3.object("trips", &format!("{prefix}{name}"));
        assert!(object == Some(std::fs::read(&path).unwrap()), "{prefix}{name}");
    }
}

fn local(args: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let args: Vec<&str> =
        args.iter().map(|arg| if *arg == FOLDER { folder.path().to_str().unwrap() } else { arg }).collect();
    sawmill(&args).ok();
    folder
}

fn manifest(s3: &S3) -> serde_json::Value {
    serde_json::from_slice(&s3.object("trips", "data/_sawmill.contacts.json").unwrap()).unwrap()
}

#[test]
fn objects_have_the_bytes_of_local_files_whatever_their_size_and_folders() {
    let Some(s3) = S3::empty("trips") else { return };
    for more in [
        &["contacts", "--rows", "1000", "--files", "3"][..],
        &["contacts", "--rows", "0"],
        &["contacts", "--rows", "600k", "--upload-part", "5MiB", "--threads", "3", "--uploads", "2"],
        &["orders", "--rows", "20k", "--files", "2", "--partition-by", "status", "--content-sum"],
    ] {
        let args = [&["gen"], more, &["--overwrite", "--json", "--out"]].concat();
        let there = s3.sawmill(&[&args[..], &[FOLDER]].concat()).ok().json();
        let directory = tempfile::tempdir().unwrap();
        let here = sawmill([&args[..], &[directory.path().to_str().unwrap()]].concat()).ok().json();
        assert_same(&s3, "data/", directory.path());
        assert_eq!(there["content_sum"], here["content_sum"], "{more:?}");
        assert_eq!(there["file_checksum"], here["file_checksum"], "{more:?}");
        assert_eq!(there["rows"], here["rows"]);
        assert!(there["files"][0]["path"].as_str().unwrap().starts_with("s3://trips/data/"), "{there}");
        let is_of_this = |key: &&String| key.contains(more[0]) && key.ends_with(".parquet");
        let objects = s3.objects("trips").iter().filter(is_of_this).count();
        assert_eq!(objects, there["files"].as_array().unwrap().len(), "{more:?}");
        assert!(s3.uploads("trips").is_empty());
        assert_eq!(manifest(&s3)["complete"], true);
        assert!(manifest(&s3).get("run").is_none());
    }
}

#[test]
fn a_single_object_is_written_refused_and_replaced_like_a_file() {
    let Some(s3) = S3::empty("trips") else { return };
    let out = "s3://trips/one/x.parquet";
    let args = ["gen", "contacts", "--rows", "1000", "--out", out];
    let text = s3.sawmill(&args).ok().out;
    assert!(text.contains("1 file in s3://trips/one/x.parquet"), "{text}");
    let first = s3.object("trips", "one/x.parquet").unwrap();
    let error = s3.sawmill(&args).fails(2);
    assert!(error.contains("the file already exists") && error.contains(out), "{error}");
    s3.sawmill(&[&args[..], &["--overwrite", "--seed", "7"]].concat()).ok();
    assert_ne!(s3.object("trips", "one/x.parquet").unwrap(), first);
    let large = ["gen", "contacts", "--rows", "300k", "--upload-part", "5MiB", "--out", out];
    s3.sawmill(&[&large[..], &["--overwrite"]].concat()).ok();
    let file = tempfile::tempdir().unwrap();
    let path = file.path().join("x.parquet");
    sawmill(large.map(|arg| if arg == out { path.to_str().unwrap() } else { arg })).ok();
    assert!(s3.object("trips", "one/x.parquet").unwrap() == std::fs::read(path).unwrap());
    assert_eq!(s3.objects("trips"), ["one/x.parquet"]);
}

#[test]
fn objects_of_an_earlier_run_are_refused_kept_or_replaced_like_files() {
    let Some(s3) = S3::empty("trips") else { return };
    let args = ["gen", "contacts", "--rows", "1000", "--files", "3", "--out", FOLDER];
    let with = |more: &[&str]| s3.sawmill(&[&args[..], more].concat());
    with(&[]).ok();
    let error = with(&[]).fails(2);
    assert!(error.contains("3 files of an earlier run of contacts") && error.contains(FOLDER), "{error}");
    s3.put("trips", "data/contacts-00001.parquet", b"something else");
    let json = with(&["--resume", "--json"]).ok().json();
    let kept: Vec<bool> =
        json["files"].as_array().unwrap().iter().map(|file| file["kept"].as_bool().unwrap()).collect();
    assert_eq!(kept, [true, false, true]);
    assert_same(&s3, "data/", local(&args).path());
    let error = with(&["--resume", "--seed", "7"]).fails(2);
    assert!(error.contains("seed was 42, is 7"), "{error}");
    // Objects that were copied there have another entity tag or none in the manifest, so their bytes are
    // read.
    let mut copied = manifest(&s3);
    copied["files"][2]["tag"] = "\"another\"".into();
    s3.put("trips", "data/_sawmill.contacts.json", copied.to_string().as_bytes());
    let json = with(&["--resume", "--json"]).ok().json();
    assert!(json["files"].as_array().unwrap().iter().all(|file| file["kept"] == true), "{json}");
    let fewer = ["gen", "contacts", "--rows", "1000", "--files", "2", "--overwrite", "--out", FOLDER];
    s3.sawmill(&fewer).ok();
    let names = ["_sawmill.contacts.json", "contacts-00000.parquet", "contacts-00001.parquet"];
    assert_eq!(s3.objects("trips"), names.map(|name| format!("data/{name}")));
}

#[test]
fn throttled_cut_and_lost_requests_are_repeated_and_the_objects_are_the_same() {
    let Some(s3) = S3::empty("trips") else { return };
    let args = large(FOLDER, &[]);
    let begun: Mutex<HashSet<Sent>> = Mutex::default();
    let proxy = Proxy::before(&s3.endpoint, move |sent, before| {
        let is_first = begun.lock().unwrap().insert(sent.clone());
        match before {
            3..=6 => Fate::Throttled,
            _ if !is_first => Fate::Forwarded,
            // The upload was completed, and the manifest written, but the client does not learn of it.
            _ if sent.completes() || sent.is_put() && sent.target.contains("_sawmill") => Fate::AnswerLost,
            _ if sent.is_part() && before % 2 == 0 => Fate::Cut,
            _ if sent.is_part() => Fate::AnswerLost,
            _ => Fate::Forwarded,
        }
    });
    run(&proxy.endpoint, &args).ok();
    assert_same(&s3, "data/", local(&args).path());
    assert!(s3.uploads("trips").is_empty());
    assert!(proxy.sent().iter().any(Sent::completes));
}

#[test]
fn a_store_that_stays_broken_is_an_error_that_names_the_object_and_leaves_nothing_half_made() {
    let Some(s3) = S3::empty("trips") else { return };
    let proxy = Proxy::before(&s3.endpoint, |sent, _| match sent.is_part() {
        true => Fate::Throttled,
        false => Fate::Forwarded,
    });
    let error = run(&proxy.endpoint, &large(FOLDER, &[])).fails(1);
    assert!(error.contains("503 SlowDown") && error.contains("s3://trips/data/contacts-0000"), "{error}");
    // The run has completed no file that --resume could keep.
    assert!(!error.contains("--resume") && !error.contains("SECRETEXAMPLE"), "{error}");
    assert!(s3.uploads("trips").is_empty() && s3.objects("trips").is_empty(), "{:?}", s3.objects("trips"));
}

#[test]
fn a_bucket_that_does_not_exist_has_no_files_to_keep() {
    let Some(s3) = S3::empty("trips") else { return };
    let error = s3.sawmill(&["gen", "contacts", "--rows", "10", "--out", "s3://nobucket/g"]).fails(1);
    assert!(error.contains("check its name") && !error.contains("--resume"), "{error}");
}

#[test]
fn a_credential_that_expires_while_parts_are_sent_leaves_the_uploads_to_the_next_run() {
    let Some(s3) = S3::empty("trips") else { return };
    let parts = AtomicUsize::new(0);
    let expired = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&expired);
    let proxy = Proxy::before(&s3.endpoint, move |sent, _| {
        if sent.is_part() && parts.fetch_add(1, Relaxed) == 1 {
            seen.store(true, Relaxed);
        }
        if seen.load(Relaxed) { Fate::Expired } else { Fate::Forwarded }
    });
    let error = run(&proxy.endpoint, &large(FOLDER, &[])).fails(1);
    assert!(error.contains("ExpiredToken") && error.contains("s3://trips/data"), "{error}");
    assert!(!error.contains("SECRETEXAMPLE"), "{error}");
    let whole = s3.objects("trips").into_iter().filter(|name| name.ends_with(".parquet"));
    assert_eq!(whole.count(), 0);
    // With new credentials, the same command does the rest and aborts the unfinished uploads.
    run(&s3.endpoint, &large(FOLDER, &["--resume"])).ok();
    assert_same(&s3, "data/", local(&large(FOLDER, &[])).path());
    assert!(s3.uploads("trips").is_empty());
}

/// Starts a run whose parts take their time, and waits until it uploads.
fn uploading(s3: &S3, more: &[&str]) -> (Proxy, Child) {
    let slow = |sent: &Sent, _| if sent.is_part() { Fate::Late(1000) } else { Fate::Forwarded };
    let proxy = Proxy::before(&s3.endpoint, slow);
    let child = start(&proxy.endpoint, &large(FOLDER, more));
    until("an upload begins", || !s3.uploads("trips").is_empty());
    (proxy, child)
}

#[test]
fn an_interrupted_run_aborts_its_uploads() {
    let Some(s3) = S3::empty("trips") else { return };
    let (_proxy, child) = uploading(&s3, &[]);
    signal(&child, "INT");
    let error = wait(child).fails(130);
    assert!(error.contains("interrupted") && !error.contains("--resume"), "{error}");
    assert!(s3.uploads("trips").is_empty() && s3.objects("trips").is_empty(), "{:?}", s3.objects("trips"));
}

#[test]
fn after_a_killed_run_the_next_one_resumes_and_aborts_what_it_left() {
    let Some(s3) = S3::empty("trips") else { return };
    let (_proxy, mut child) = uploading(&s3, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    let objects = s3.objects("trips");
    assert!(
        objects.iter().all(|key| !key.ends_with(".parquet")),
        "no object is there by halves: {objects:?}"
    );
    assert!(manifest(&s3)["run"].as_str().unwrap().starts_with("process "));
    // It may be under way, as far as others can tell.
    let error = s3.sawmill(&large(FOLDER, &[])).fails(1);
    assert!(error.contains("is writing here, or was killed") && error.contains("gen clean"), "{error}");
    s3.sawmill(&large(FOLDER, &["--resume"])).ok();
    assert!(s3.uploads("trips").is_empty());
    assert_same(&s3, "data/", local(&large(FOLDER, &[])).path());
    assert_eq!(manifest(&s3)["complete"], true);
}

#[test]
fn clean_aborts_the_uploads_of_killed_runs_and_no_others() {
    let Some(s3) = S3::empty("trips") else { return };
    let (_proxy, mut child) = uploading(&s3, &[]);
    let error = s3.sawmill(&["gen", "clean", FOLDER]).fails(1);
    assert!(error.contains("is writing contacts here") && error.contains("wait"), "{error}");
    child.kill().unwrap();
    child.wait().unwrap();
    let left = s3.uploads("trips");
    let listed = s3.sawmill(&["gen", "clean", FOLDER, "--dry-run", "--json"]).ok().json();
    assert_eq!(listed["unfinished"].as_array().unwrap().len(), left.len(), "{listed}");
    assert_eq!((&listed["removed"], s3.uploads("trips")), (&false.into(), left.clone()));
    // A run on another machine cannot be seen to have ended.
    let mut elsewhere = manifest(&s3);
    elsewhere["run"] = "process 7 on elsewhere, run 1".into();
    s3.put("trips", "data/_sawmill.contacts.json", elsewhere.to_string().as_bytes());
    let error = s3.sawmill(&["gen", "clean", FOLDER]).fails(1);
    assert!(error.contains("process 7 on elsewhere") && error.contains("--force"), "{error}");
    s3.sawmill(&["gen", "clean", "s3://trips/dat"]).ok();
    assert_eq!(s3.uploads("trips"), left, "the folder dat has none");
    let text = s3.sawmill(&["gen", "clean", FOLDER, "--force"]).ok().out;
    assert!(text.contains("removed") && text.contains("s3://trips/data/contacts-00000.parquet"), "{text}");
    assert!(s3.uploads("trips").is_empty() && s3.objects("trips").is_empty(), "{:?}", s3.objects("trips"));
    s3.sawmill(&large(FOLDER, &[])).ok();
    let text = s3.sawmill(&["gen", "clean", FOLDER]).ok().out;
    assert!(text.contains("no unfinished files"), "{text}");
}

#[test]
fn clean_removes_the_partial_files_of_a_directory_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    sawmill(["gen", "contacts", "--rows", "10", "--out", out]).ok();
    let partial = folder.path().join("contacts-00001.parquet.1-2-3.partial");
    let other = folder.path().join("notes.partial");
    for path in [&partial, &other] {
        std::fs::write(path, b"half").unwrap();
    }
    let listed = sawmill(["gen", "clean", out, "--dry-run"]).ok().out;
    assert!(listed.contains("1 unfinished file would be removed") && partial.exists(), "{listed}");
    sawmill(["gen", "clean", out]).ok();
    assert!(!partial.exists() && other.exists() && folder.path().join("contacts-00000.parquet").exists());
}

#[test]
fn of_two_runs_at_once_only_one_writes() {
    let Some(s3) = S3::empty("trips") else { return };
    let (_proxy, child) = uploading(&s3, &[]);
    let error = s3.sawmill(&large(FOLDER, &["--seed", "7"])).fails(1);
    assert!(error.contains(&format!("process {}", child.id())), "{error}");
    // One that may replace the files waits for the other to end.
    let second = s3.sawmill(&large(FOLDER, &["--seed", "7", "--overwrite"])).ok();
    assert!(second.err.contains("waiting for it to end"), "{}", second.err);
    wait(child).ok();
    assert_same(&s3, "data/", local(&large(FOLDER, &["--seed", "7"])).path());
    // Both begin at the same time: one fails, or the other.
    let both: Vec<Child> = (0..2)
        .map(|seed| {
            start(
                &s3.endpoint,
                &["gen", "events", "--rows", "1000", "--seed", ["1", "2"][seed], "--out", FOLDER],
            )
        })
        .collect();
    let ended: Vec<Ran> = both.into_iter().map(wait).collect();
    let done = ended.iter().position(|ran| ran.code == Some(0)).expect("one of them is done");
    let other = &ended[1 - done];
    assert!(other.code != Some(0), "{}", other.out);
    let seed = ["1", "2"][done];
    assert_same(
        &s3,
        "data/",
        local(&["gen", "events", "--rows", "1000", "--seed", seed, "--out", FOLDER]).path(),
    );
}

#[test]
fn a_run_that_another_machine_takes_over_fails_and_harms_nothing() {
    let Some(s3) = S3::empty("trips") else { return };
    let (_proxy, child) = uploading(&s3, &[]);
    // As if it ran elsewhere, so that its end cannot be waited for.
    let mut elsewhere = manifest(&s3);
    elsewhere["run"] = "process 7 on elsewhere, run 1".into();
    s3.put("trips", "data/_sawmill.contacts.json", elsewhere.to_string().as_bytes());
    let second = s3.sawmill(&large(FOLDER, &["--seed", "7", "--overwrite"])).ok();
    assert!(second.err.contains("takes over"), "{}", second.err);
    // S3 answers that the upload does not exist, moto answers with 500.
    let error = wait(child).fails(1);
    assert!(error.contains("s3://trips/data/"), "{error}");
    assert_same(&s3, "data/", local(&large(FOLDER, &["--seed", "7"])).path());
    assert_eq!((&manifest(&s3)["complete"], s3.uploads("trips").len()), (&true.into(), 0));
}

#[test]
fn an_object_that_another_program_writes_meanwhile_is_not_replaced() {
    let Some(s3) = S3::empty("trips") else { return };
    let (_proxy, child) = uploading(&s3, &[]);
    for key in ["data/contacts-00000.parquet", "data/contacts-00001.parquet"] {
        s3.put("trips", key, b"theirs");
    }
    let error = wait(child).fails(1);
    assert!(error.contains("another program has written the object in the meantime"), "{error}");
    assert_eq!(s3.object("trips", "data/contacts-00000.parquet").unwrap(), b"theirs");
    assert!(s3.uploads("trips").is_empty());
}

#[test]
fn memory_is_bounded_by_the_parts_under_way() {
    let Some(s3) = S3::empty("trips") else { return };
    let slow = |sent: &Sent, _| if sent.is_part() { Fate::Late(50) } else { Fate::Forwarded };
    let proxy = Proxy::before(&s3.endpoint, slow);
    let args =
        ["gen", "contacts", "--rows", "12M", "--threads", "2", "--uploads", "2", "--upload-part", "5MiB"];
    let args = [&args[..], &["--out", "s3://trips/x.parquet", "--json"]].concat();
    let mut child = start(&proxy.endpoint, &args);
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(crate::harness::peak(child.id()).unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let json = wait(child).ok().json();
    let bytes = json["files"][0]["bytes"].as_u64().unwrap();
    // Two row groups, three parts, the connections, and the program itself.
    assert!(bytes > 250 << 20 && peak < 160 << 20, "{bytes} bytes, {peak} of memory");
}

#[test]
fn places_that_take_no_files_are_errors() {
    for (out, why) in [
        ("http://127.0.0.1:1/x", "a web server takes no files"),
        ("ftp://me:SECRET@host/x", "files cannot be written to ftp://"),
        ("s3://KEY:SECRET@bucket/x", "a user name or a password"),
    ] {
        let error = sawmill(["gen", "contacts", "--rows", "10", "--out", out]).fails(2);
        assert!(error.contains(why) && !error.contains("SECRET"), "{error}");
    }
    let args = ["gen", "orders", "--rows", "10", "--as", "ndjson", "--out", FOLDER];
    let error = sawmill(args).fails(2);
    assert!(error.contains("--as ndjson cannot be written to a URL"), "{error}");
}
