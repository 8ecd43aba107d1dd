//! Which bytes an output may replace: every writer looks at what has the name already.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::harness::{Ran, command};

const TEXT: &str = "a,b\n2024-01-01,2\n3,4,5\n";

/// Commands that write a file, as they are in a folder with `x.csv`. `OUT` is the name of the file.
const WRITERS: [&str; 6] = [
    "convert x.csv --rejects r.csv --as csv --out OUT",
    "convert x.csv --rejects r.csv --as parquet --out OUT",
    "convert x.csv --sort-by a --rejects r.csv --as ndjson --out OUT",
    "convert x.csv --overwrite --out y.parquet --rejects OUT",
    "gen contacts --rows 3 --as ndjson --out OUT",
    "gen contacts --rows 3 --out OUT",
];

/// A folder with a Parquet file and a text file that has one unreadable line.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.csv"), TEXT).unwrap();
    run(folder.path(), "convert x.csv --rejects r.csv --out y.parquet", "").ok();
    folder
}

/// Runs a command in a folder, with `OUT` replaced.
fn run(folder: &Path, writer: &str, out: &str) -> Ran {
    let args = writer.split(' ').map(|arg| if arg == "OUT" { out } else { arg });
    Ran::from(command(args).current_dir(folder).output().unwrap())
}

#[test]
fn a_pipe_or_a_device_gets_the_bytes_and_is_never_replaced() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let made =
        |node: &[&str]| Command::new("mknod").arg(at(node[0])).args(&node[1..]).status().unwrap().success();
    assert!(made(&["pipe", "p"]));
    symlink("pipe", at("link")).unwrap();
    // Only root may make a device, one like /dev/null, and not everywhere.
    let has_device = made(&["null", "c", "1", "3"]) && fs::write(at("null"), "x").is_ok();
    let null = Path::new("/dev/null").metadata().unwrap().rdev();
    for writer in WRITERS {
        for name in ["pipe", "link"] {
            let reader = std::thread::spawn({
                let pipe = at("pipe");
                move || fs::read(pipe).unwrap()
            });
            run(folder.path(), writer, name).ok();
            assert!(!reader.join().unwrap().is_empty(), "{writer}");
            assert!(at("pipe").symlink_metadata().unwrap().file_type().is_fifo(), "{writer}");
            assert!(at("link").symlink_metadata().unwrap().is_symlink(), "{writer}");
        }
        if has_device {
            run(folder.path(), writer, "null").ok();
            let there = at("null").symlink_metadata().unwrap();
            assert!(there.file_type().is_char_device() && there.rdev() == null, "{writer}");
        }
    }
    let names: Vec<String> = crate::harness::names(folder.path());
    assert!(names.iter().all(|name| !name.contains("partial")), "{names:?}");
}

#[test]
fn through_a_link_the_file_that_it_leads_to_is_written_and_the_link_stays() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    for (number, writer) in WRITERS.iter().enumerate() {
        let ending = if writer.contains("--as ndjson") {
            "ndjson"
        } else if writer.contains("--rejects OUT") {
            "csv"
        } else {
            "parquet"
        };
        let (file, link) = (format!("file-{number}"), format!("link-{number}.{ending}"));
        symlink(&file, at(&link)).unwrap();
        // A dangling link counts as an existing output.
        let asks = writer.contains("--out OUT");
        let writer = if asks { format!("{writer} --overwrite") } else { (*writer).to_owned() };
        run(folder.path(), &writer, &link).ok();
        assert!(at(&link).symlink_metadata().unwrap().is_symlink(), "{writer}");
        assert!(at(&file).metadata().unwrap().len() > 0, "{writer}");
    }
    fs::create_dir(at("parts")).unwrap();
    symlink("parts", at("link")).unwrap();
    for _ in 0..2 {
        run(folder.path(), "convert y.parquet --overwrite --out OUT", "link").ok();
        assert!(
            at("link").symlink_metadata().unwrap().is_symlink() && at("parts/part-00000.parquet").is_file()
        );
    }
    assert!(!crate::harness::names(folder.path()).iter().any(|name| name.contains("replaced")));
}

#[test]
fn standard_output_by_its_path_has_the_rows_and_nothing_else() {
    let folder = folder();
    let ran = run(folder.path(), "convert y.parquet --as csv --out OUT", "/dev/stdout").ok();
    assert_eq!(ran.out, "a,b\n2024-01-01,2\n");
}

#[test]
fn a_url_in_the_place_of_a_file_is_an_error_and_makes_no_file() {
    let folder = folder();
    let before = crate::harness::names(folder.path());
    for url in ["s3://bucket/r.csv", "s3:/bucket/r.csv", "s3:r.csv", "file:///dev/null"] {
        let error =
            run(folder.path(), "convert x.csv --overwrite --out y.parquet --rejects OUT", url).fails(1);
        assert!(error.contains("expected a path, found a URL"), "{url}: {error}");
    }
    assert_eq!(crate::harness::names(folder.path()), before);
}

#[test]
fn rejected_rows_never_replace_an_input_under_another_name() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let text = format!("file,line,byte_offset,reason,record\n{TEXT}");
    fs::write(at("in.csv"), &text).unwrap();
    fs::hard_link(at("in.csv"), at("other.csv")).unwrap();
    let rejects = "convert in.csv --overwrite --out y.parquet --rejects OUT";
    assert!(run(folder.path(), rejects, "other.csv").fails(2).contains("one of the inputs"));
    assert_eq!(fs::read_to_string(at("in.csv")).unwrap(), text);
}

#[test]
fn rows_that_are_left_out_are_for_their_owner_alone() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    assert_eq!(at("r.csv").metadata().unwrap().mode() & 0o777, 0o600);
    assert_ne!(at("y.parquet").metadata().unwrap().mode() & 0o777, 0o600, "as the user's mask has it");
}

// Open files of a process are in /proc.
#[cfg(target_os = "linux")]
#[test]
fn an_index_has_no_name_that_another_user_could_open() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let at_row = |row: u32| format!("2024-01-{:02} {:02}:{:02}:00", row % 28 + 1, row % 24, row % 60);
    let rows: String = (0..50_000).map(|row| format!("{},{row}\n", at_row(row))).collect();
    fs::write(at("s.csv"), format!("at,v\n{rows}")).unwrap();
    // The run blocks on this pipe, which has no reader, and keeps its index.
    make_pipe(&at("sorted.parquet"));
    let sort = "convert s.csv --sort-by at --index-dir shared --overwrite --out sorted.parquet";
    let mut child = command(sort.split(' ')).current_dir(folder.path()).spawn().unwrap();
    let files = || fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten().flatten();
    let is_of_index =
        |file: &Path| file.starts_with(at("shared")) && file.to_string_lossy().ends_with("(deleted)");
    crate::harness::until("there is an index", || {
        files().any(|file| fs::read_link(file.path()).is_ok_and(|file| is_of_index(&file)))
    });
    assert!(crate::harness::names(&at("shared")).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_result_or_the_rejected_lines_replace_no_file_of_another_kind() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("package.json"), "{\"name\": \"mine\"}\n").unwrap();
    for writer in [
        "convert x.csv --overwrite --out y.parquet --rejects OUT",
        "drive gen:contacts --to null --rate 100 --connections 1 --for 1s --json OUT",
    ] {
        let error = run(folder.path(), writer, "package.json");
        assert!(error.code != Some(0) && error.err.contains("package.json"), "{writer}: {}", error.err);
        assert_eq!(fs::read_to_string(at("package.json")).unwrap(), "{\"name\": \"mine\"}\n", "{writer}");
    }
}

#[test]
fn a_url_with_one_slash_is_an_error_and_makes_no_folder() {
    let folder = folder();
    let before = crate::harness::names(folder.path());
    for out in ["s3:/bucket/x", "s3:bucket/x", "gs:/bucket/x.parquet", "S3A:bucket/x/", "file:x.parquet"] {
        for writer in ["convert y.parquet --out OUT", "gen contacts --rows 3 --out OUT"] {
            let error = run(folder.path(), writer, out).fails(2);
            assert!(error.contains("a URL has two slashes after its scheme"), "{writer} {out}: {error}");
        }
    }
    assert_eq!(crate::harness::names(folder.path()), before);
    run(folder.path(), "convert y.parquet --out OUT", "./s3:x.parquet").ok();
    assert!(folder.path().join("s3:x.parquet").is_file());
}

#[test]
fn files_that_a_spec_reads_and_data_named_as_a_page_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("words.csv"), "a\nb\n").unwrap();
    let spec = "name = \"q\"\nfields = [{ name = \"a\", type = \"string\", values.choice = { file = \"words.csv\" } }]\n";
    fs::write(at("q.toml"), spec).unwrap();
    for out in ["words.csv", "./words.csv", "q.toml"] {
        let error = run(folder.path(), "gen ./q.toml --rows 3 --as csv --overwrite --out OUT", out).fails(2);
        assert!(error.contains("would be replaced"), "{error}");
    }
    assert_eq!(fs::read_to_string(at("words.csv")).unwrap(), "a\nb\n");
    let error = run(folder.path(), "gen fidelity words.csv words.csv --html OUT", "words.csv").fails(2);
    assert!(error.contains("of another kind"), "{error}");
    assert_eq!(fs::read_to_string(at("words.csv")).unwrap(), "a\nb\n");
}

#[test]
fn a_missing_folder_is_named_and_is_not_made() {
    let folder = folder();
    let writers = [
        "convert x.csv --rejects r.csv --out none/y.parquet",
        "convert x.csv --rejects r.csv --as ndjson --out none/y.json",
        "convert x.csv --overwrite --out y.parquet --rejects none/r.csv",
        "footer fix y.parquet none/z.parquet",
        "footer extract y.parquet none/z.parquet",
    ];
    for writer in writers {
        let error = run(folder.path(), writer, "").fails(1);
        assert!(error.contains("none/") && error.contains("create the folder first"), "{writer}: {error}");
        assert!(!folder.path().join("none").exists(), "{writer}");
    }
}
