//! Text of others on the screen: no argument, name, file or server can move the cursor, ring, turn the direction of text,
//! or print a line that looks like one of ours.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;

use crate::harness::{Ran, sawmill};
use crate::load::Bench;

/// A control sequence, a bell, a change of direction, the one-byte control sequence, and a forged line.
const HOSTILE: &str = "x\u{1b}[2J\u{7}\u{202e}\u{9b}1m\rz\nforged: done";

#[track_caller]
fn is_safe(ran: &Ran, what: &str) {
    for text in [&ran.out, &ran.err] {
        let acted_upon = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}');
        assert!(!text.contains(acted_upon), "{what}: {text:?}");
        assert!(!text.lines().any(|line| line.starts_with("forged")), "{what}: {text}");
    }
    assert!(!ran.err.contains("panicked"), "{what}: {}", ran.err);
}

/// The run printed the hostile text, escaped.
#[track_caller]
fn shows_escaped(ran: &Ran, what: &str) {
    is_safe(ran, what);
    let both = format!("{}{}", ran.out, ran.err);
    assert!(both.contains("\\u{202e}") || both.contains("\\u202e"), "{what}: {both}");
}

#[test]
fn arguments_are_escaped_by_every_command() {
    let h = HOSTILE;
    let to = ["--to", "postgres://127.0.0.1:1/x", "--table", "t"];
    for args in [
        vec![h],
        vec!["gen", h],
        vec!["gen", "spec", h],
        vec!["gen", "explain", h],
        vec!["gen", "fidelity", h, h],
        vec!["gen", "clean", h],
        vec!["gen", "contacts", "--rows", h, "--out", "x"],
        vec!["footer", h],
        vec!["footer", h, "missing"],
        vec!["footer", "--bounds", h],
        vec!["footer", "head", h],
        vec!["footer", "diff", h, h],
        vec!["load", h, to[0], to[1], to[2], to[3]],
        vec!["load", "gen:contacts?rows=1", "--to", h, "--table", "t"],
        vec!["load", "gen:contacts?rows=1", to[0], to[1], to[2], to[3], "--columns", h],
        vec!["load", "gen:contacts?rows=1", to[0], to[1], to[2], to[3], "--where", h],
        vec!["verify", h, to[0], to[1], to[2], to[3]],
        vec!["convert", h, "--out", "x.parquet"],
        vec!["convert", "x.csv", "--out", h],
        vec!["convert", "x.csv", "--out", "x.parquet", "--delimiter", h],
        vec!["bench", h],
        vec!["bench", "load", h, to[0], to[1], to[2], to[3]],
        vec!["drive", h, "--to", "local"],
        vec!["drive", "gen:events", "--to", h],
        vec!["completions", h],
        vec![concat!("--", "x\u{1b}[2J")],
    ] {
        for more in [&[][..], &["--json"], &["-vv"]] {
            let ran = sawmill(args.iter().copied().chain(more.iter().copied()));
            is_safe(&ran, &format!("{args:?}"));
        }
    }
    for args in [vec![h], vec!["gen", h], vec!["footer", h], vec!["convert", h, "--out", "x.parquet"]] {
        shows_escaped(&sawmill(&args), &format!("{args:?}"));
    }
}

#[test]
fn long_arguments_are_shortened_and_both_ends_kept() {
    let long = format!("begin{}end", "x".repeat(100_000));
    let of_option = format!("--{long}");
    for args in [
        vec!["gen", &long],
        vec!["footer", &long],
        vec!["gen", "contacts", "--rows", &long],
        vec![&of_option],
        vec![&long],
    ] {
        for more in [&[][..], &["--json"]] {
            let ran = sawmill(args.iter().copied().chain(more.iter().copied()));
            let (err, what) = (&ran.err, args[0]);
            assert!(err.len() < 20_000, "{what}: {} bytes", err.len());
            assert!(err.contains("beginx") && err.contains("xend"), "{what}: {err}");
        }
    }
}

/// A Parquet file whose name, column and values are hostile.
fn hostile_file(directory: &Path) -> std::path::PathBuf {
    let path = directory.join(format!("{}.parquet", HOSTILE.replace('/', "")));
    let column: ArrayRef = Arc::new(StringArray::from(vec![HOSTILE, HOSTILE]));
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 1]));
    let batch = RecordBatch::try_from_iter([(HOSTILE, column), ("id", id)]).unwrap();
    let mut writer = ArrowWriter::try_new(fs::File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

#[test]
fn names_and_values_of_files_are_escaped_in_results_and_errors() {
    let directory = tempfile::tempdir().unwrap();
    let file = hostile_file(directory.path());
    let path = file.to_str().unwrap();
    let out = directory.path().join("out.parquet");
    for args in [
        vec!["footer", path],
        vec!["footer", "--bounds", path],
        vec!["footer", "head", path],
        vec!["gen", "fidelity", path, path],
        vec!["convert", path, "--out", out.to_str().unwrap(), "--columns", "missing"],
        vec!["load", path, "--to", "postgres://127.0.0.1:1/x", "--table", "t", "--columns", "missing"],
    ] {
        for more in [&[][..], &["--json"]] {
            let ran = sawmill(args.iter().copied().chain(more.iter().copied()));
            shows_escaped(&ran, &format!("{args:?} {more:?}"));
        }
    }
    let text = directory.path().join("a.csv");
    fs::write(&text, format!("id,\"{HOSTILE}\"\n1,2\n1,\"{HOSTILE}\"\n")).unwrap();
    let text = text.to_str().unwrap();
    let explained = sawmill(["convert", text, "--out", out.to_str().unwrap(), "--explain"]);
    shows_escaped(&explained, "explain");
    let refused =
        sawmill(["convert", text, "--out", out.to_str().unwrap(), "--types", &format!("{HOSTILE}=int32")]);
    assert_eq!(refused.code, Some(1));
    shows_escaped(&refused, "a value of another type");
    let lines = directory.path().join("a.ndjson");
    fs::write(&lines, "{\"\u{202e}x\u{9b}\":1}\n{\"\u{202e}x\u{9b}\":\"\\u001b[2J\"}\n").unwrap();
    let lines = lines.to_str().unwrap();
    is_safe(&sawmill(["convert", lines, "--out", out.to_str().unwrap(), "--explain"]), "keys");
}

#[test]
fn what_a_postgres_server_says_of_a_row_is_escaped() {
    let bench = Bench::new();
    let directory = tempfile::tempdir().unwrap();
    let file = hostile_file(directory.path());
    let name = HOSTILE.replace('"', "\"\"");
    bench.client().batch_execute(&format!("create table t (\"{name}\" text unique, id bigint)")).unwrap();
    let refused = bench.load(&file, "t", &["--mode", "append"]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    shows_escaped(&refused, "a repeated key");
    bench.load(&file, "u", &["--ddl"]).ok();
    for args in
        [vec!["--explain"], vec!["--dry-run"], vec!["--explain", "--json"], vec!["-vv"], vec!["--verify"]]
    {
        is_safe(&bench.load(&file, "u", &args), &format!("{args:?}"));
    }
    is_safe(&sawmill(bench.args("verify", &file, "u", &[])), "verify");
}

/// A server that answers whatever it is asked by `answer`.
fn server(answer: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // A client that went away is not of interest.
            let _ = answer(&mut stream);
        }
    });
    port
}

#[test]
fn what_servers_say_at_a_login_is_escaped() {
    let postgres = server(|stream| {
        let mut length = [0; 4];
        loop {
            stream.read_exact(&mut length)?;
            let mut rest = vec![0; u32::from_be_bytes(length) as usize - 4];
            stream.read_exact(&mut rest)?;
            // A request for TLS, or another encryption.
            match rest.len() {
                4 => stream.write_all(b"N")?,
                _ => break,
            }
        }
        let mut fields = Vec::new();
        for (kind, text) in
            [('S', "FATAL"), ('V', "FATAL"), ('C', "28000"), ('M', HOSTILE), ('D', HOSTILE), ('H', HOSTILE)]
        {
            fields.push(kind as u8);
            fields.extend(text.as_bytes());
            fields.push(0);
        }
        fields.push(0);
        stream.write_all(b"E")?;
        stream.write_all(&(fields.len() as u32 + 4).to_be_bytes())?;
        stream.write_all(&fields)
    });
    let crate_db = server(|stream| {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request)?;
        let message =
            serde_json::json!({"error": {"message": format!("SQLParseException[{HOSTILE}]"), "code": 4000}});
        let body = message.to_string();
        write!(
            stream,
            "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    });
    let postgres = format!("postgres://me:secret@127.0.0.1:{postgres}/db");
    let crate_db = format!("crate://127.0.0.1:{crate_db}/doc");
    for (to, rest) in [(&postgres, &["--table", "t"][..]), (&crate_db, &["--table", "t"])] {
        for verb in ["load", "verify"] {
            let args = [&[verb, "gen:contacts?rows=10", "--to", to], rest].concat();
            let ran = sawmill(args);
            assert_eq!(ran.code, Some(1), "{}", ran.err);
            shows_escaped(&ran, &format!("{verb} {to}"));
        }
        let ran = sawmill(["drive", "gen:events", "--to", to, "--rate", "10", "--for", "1s"]);
        assert_ne!(ran.code, Some(0));
        is_safe(&ran, &format!("drive {to}"));
    }
}
