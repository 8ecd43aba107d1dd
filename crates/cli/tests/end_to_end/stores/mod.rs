//! Inputs and outputs that URLs name: objects of S3 and files of web servers, with and without faults.

mod checksums;
mod emulators;
mod footers;
mod generated;
mod loads;
mod odd_answers;
mod outputs;
mod proxy;
pub mod s3;
mod verbs;
mod web;

use std::ffi::OsStr;
use std::path::Path;

use crate::harness::{Ran, command, sawmill};
use web::{Asked, Fate, Web};

/// Generates contacts into a folder `data` below a bucket of the same layout as a store has it.
fn contacts(folder: &Path, rows: &str, files: &str) {
    let out = folder.join("trips/data");
    sawmill(["gen", "contacts", "--rows", rows, "--files", files, "--out", out.to_str().unwrap()]).ok();
}

/// A folder with contacts, and a server that serves it with these faults.
fn served(
    rows: &str,
    decide: impl Fn(&Asked, usize) -> Fate + Send + Sync + 'static,
) -> (tempfile::TempDir, Web) {
    let folder = tempfile::tempdir().unwrap();
    contacts(folder.path(), rows, "1");
    let web = Web::serve(folder.path(), decide);
    (folder, web)
}

/// Runs `sawmill` with S3 at the address of a server.
fn with_s3<S: AsRef<OsStr>>(web: &Web, args: &[S]) -> Ran {
    Ran::from(s3::environment(command(args), &format!("http://{}", web.address)).output().unwrap())
}
