//! `-`: a file on standard input, redirected or from a pipe, in every view and command.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use super::contacts;
use crate::harness::{Ran, command, sawmill};
use crate::parquet_files::many_types;

/// Runs `sawmill footer` with the file redirected, and through a pipe.
fn both_ways(path: &Path, args: &[&str]) -> [Ran; 2] {
    let footer = || command(["footer"].iter().chain(args));
    let redirected = footer().stdin(File::open(path).unwrap()).output().unwrap();
    let mut piped =
        footer().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = piped.stdin.take().unwrap();
    // The program may refuse before it reads.
    let _ = pipe.write_all(&fs::read(path).unwrap());
    drop(pipe);
    [Ran::from(redirected), Ran::from(piped.wait_with_output().unwrap())]
}

/// The output without times, which differ from run to run.
fn untimed(out: &str) -> String {
    let line = |line: &str| {
        let is_rule = line.chars().all(|c| matches!(c, '-' | ' '));
        match is_rule || line.contains("decode") || line.contains("µs") || line.contains(" ms") {
            true => String::new(),
            false => line.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    };
    out.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_view_of_standard_input_is_that_of_the_file_and_names_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    let name = path.to_str().unwrap();
    let views = "--schema --row-groups --chunks --bounds --data-pages --page-headers --metadata --sizes \
                 --dump --check";
    let views: Vec<&str> = views.split_whitespace().collect();
    let all_views = [&["-"], views.as_slice()].concat();
    let and_json = [all_views.as_slice(), &["--json"]].concat();
    let mut commands: Vec<Vec<&str>> = views.iter().map(|view| vec!["-", view]).collect();
    commands.extend([
        vec!["-"],
        vec!["-", "--json"],
        vec!["-", "--ndjson"],
        vec!["-", "--csv"],
        vec!["-", "--check", "--pages"],
        all_views,
        and_json,
        vec!["head", "-", "-n", "2"],
        vec!["cat", "-"],
        vec!["dictionary", "-", "--column", "text"],
        vec!["dictionary", "-", "--column", "text", "--json"],
        vec!["bloom", "-", "--column", "text", "--value", "n"],
        vec!["bloom", "-", "--column", "text", "--value", "n", "--json"],
    ]);
    for args in commands {
        let of_file: Vec<&str> = args.iter().map(|arg| if *arg == "-" { name } else { arg }).collect();
        let expected = sawmill(["footer"].iter().chain(&of_file)).ok().out.replace(name, "standard input");
        // CSV puts a name with a blank into quotes.
        let expected = match args.contains(&"--csv") {
            true => untimed(&expected.replace("\nstandard input,", "\n\"standard input\",")),
            false => untimed(&expected),
        };
        for ran in both_ways(&path, &args) {
            let found = ran.ok().out;
            assert!(!found.contains(dir.path().to_str().unwrap()) && !found.contains("/tmp"), "{found}");
            assert_eq!(untimed(&found), expected, "{args:?}");
        }
    }
}

#[test]
fn standard_input_is_compared_with_a_file() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "2000", "2");
    let file = |number: u32| dir.path().join(format!("contacts-0000{number}.parquet"));
    let (first, second) = (file(0), file(1));
    let other = second.to_str().unwrap();
    for args in [["diff", "-", other], ["diff", other, "-"]] {
        for ran in both_ways(&second, &args) {
            assert_eq!(ran.ok().out, "no differences\n", "{args:?}");
        }
        for ran in both_ways(&first, &args) {
            let error = ran.fails(1);
            assert!(error.contains("standard input") && error.contains(other), "{error}");
        }
    }
}

#[test]
fn what_cannot_come_from_standard_input_says_why_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "10", "1");
    let path = dir.path().join("contacts-00000.parquet");
    let name = path.to_str().unwrap();
    for (args, what, advice) in [
        (&["-", "--mapped"][..], "standard input cannot be mapped", "leave out --mapped"),
        (&["-", "--plan-merge"], "found standard input, which is one file", "name the files"),
        (&["-", name], "expected - for standard input alone", "write the stream to a file"),
        (&["-", "-"], "expected - for standard input alone", "give - alone"),
        (&["diff", "-", "-"], "standard input was given twice", "name a file"),
    ] {
        for ran in both_ways(&path, args) {
            let error = ran.fails(2);
            assert!(error.contains(what) && error.contains(advice), "{args:?}: {error}");
        }
    }
}

#[test]
fn what_is_wrong_with_standard_input_is_said_of_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "20k", "1");
    let path = dir.path().join("contacts-00000.parquet");
    let bytes = fs::read(&path).unwrap();
    let cut = dir.path().join("cut.parquet");
    fs::write(&cut, &bytes[..bytes.len() - 9]).unwrap();
    let empty = dir.path().join("empty.parquet");
    fs::write(&empty, "").unwrap();
    // The pages are damaged, the footer is not.
    let damaged = dir.path().join("damaged.parquet");
    let mut other = bytes.clone();
    other[4..300].fill(0xff);
    fs::write(&damaged, other).unwrap();
    let named = |ran: Ran| {
        let error = ran.fails(1);
        assert!(error.contains("standard input"), "{error}");
        assert!(!error.contains("parquet - ") && !error.contains("/tmp"), "{error}");
    };
    for args in [
        &["-"][..],
        &["-", "--json"],
        &["-", "--dump"],
        &["head", "-"],
        &["dictionary", "-"],
        &["bloom", "-", "--column", "name", "--value", "x"],
        &["diff", "-", path.to_str().unwrap()],
    ] {
        both_ways(&cut, args).into_iter().chain(both_ways(&empty, args)).for_each(named);
    }
    for args in [&["-", "--page-headers"][..], &["-", "--check", "--pages"], &["cat", "-"]] {
        both_ways(&damaged, args).into_iter().for_each(named);
    }
    for args in [&["-", "--column", "missing"][..], &["head", "-", "--column", "missing"]] {
        both_ways(&path, args).into_iter().for_each(named);
    }
    for args in [&["-", "--row-group", "7"][..], &["head", "-", "--row-group", "7"]] {
        both_ways(&path, args).into_iter().for_each(named);
    }
}

#[test]
fn standard_input_of_which_something_was_read_is_what_is_left() {
    use std::io::{Seek, SeekFrom};
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "10", "1");
    let bytes = fs::read(dir.path().join("contacts-00000.parquet")).unwrap();
    let behind = dir.path().join("behind");
    fs::write(&behind, [b"some header\n", bytes.as_slice()].concat()).unwrap();
    let mut file = File::open(&behind).unwrap();
    file.seek(SeekFrom::Start(12)).unwrap();
    let ran = command(["footer", "cat", "-"]).stdin(file).output().unwrap();
    assert_eq!(Ran::from(ran).ok().out.lines().count(), 10);
}
