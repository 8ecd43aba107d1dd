//! What processes say that cannot work, or lose one another.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use datafusion::parquet::arrow::ArrowWriter;

use crate::command::{command, refused, sql, wait_for};
use crate::processes::Cluster;

/// Ends a process with the test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_executor_says_when_it_works_and_why_it_cannot() {
    let mut scheduler = Ending(
        command()
            .args(["scheduler", "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    BufReader::new(scheduler.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("scheduler ").unwrap().to_owned();
    let executor = |more: &[&str]| {
        let mut command = command();
        command.args(["executor", "--scheduler", &url]).args(more);
        command
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (arguments, said) in [
        (["--port", port.as_str()], format!("in use (os error 98) - 127.0.0.1:{port}")),
        (["--insecure", "--bind=8.8.8.8"], "- 8.8.8.8:0 - give --bind an address of this machine".to_owned()),
        (["--work-dir", "/proc/x"], "- /proc/x - give --work-dir a folder that can be written to".to_owned()),
    ] {
        let error = refused(&executor(&arguments).output().unwrap());
        assert!(error.contains(&said), "{error}");
    }
    // A query waits, and the scheduler says for what.
    let query = sql(&["SELECT count(*) FROM gen('contacts', rows => 10)", "--scheduler", &url])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(scheduler.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(
        line.contains(
            "no executor is registered, and a query is waiting: start one with sawmill-cluster executor"
        ),
        "{line}"
    );
    let mut works = Ending(executor(&["--tasks", "1"]).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(works.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains(&format!("takes tasks of the scheduler at {url}, 1 at a time")), "{line}");
    assert!(query.wait_with_output().unwrap().status.success());
}

#[test]
fn a_command_whose_scheduler_is_lost_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let mut cluster = Cluster::start(1);
    let mut job = command();
    job.args(["submit", "gen", "contacts", "--rows", "200M", "--files", "200", "--out", out]);
    let job = job.args(["--scheduler", &cluster.url]).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("file", || std::fs::read_dir(folder.path()).unwrap().count() > 3);
    cluster.kill_scheduler();
    let error = refused(&job.wait_with_output().unwrap());
    let said = format!(
        "- {} - start it again, and run the same command again: complete files are kept",
        cluster.url
    );
    assert!(error.starts_with("error: the scheduler is gone: ") && error.contains(&said), "{error}");
}

#[test]
fn what_is_no_scheduler_is_called_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("df://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            let _ = stream.read(&mut [0; 64]);
            let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let error = refused(&sql(&["SELECT 1", "--scheduler", &url]).output().unwrap());
    assert!(error.contains("does not do so as a scheduler") && error.contains(&url), "{error}");
}

#[test]
fn errors_of_tasks_have_no_layers_and_files_that_disagree_are_refused() {
    let cluster = Cluster::start(1);
    let query = ["sql", "SELECT number / (number - number) FROM gen('contacts', 10, number => 'number')"];
    let error = refused(&cluster.run(&query, Path::new("/")));
    assert!(error.starts_with("error: a task failed: Divide"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, batch: RecordBatch| {
        let file = std::fs::File::create(folder.path().join(name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    };
    let (whole, part): (ArrayRef, ArrayRef) =
        (Arc::new(Int64Array::from(vec![1])), Arc::new(Float64Array::from(vec![1.5])));
    write("a.parquet", RecordBatch::try_from_iter([("n", whole)]).unwrap());
    write("b.parquet", RecordBatch::try_from_iter([("n", part)]).unwrap());
    let query = format!("SELECT sum(n) FROM parquet('{}')", folder.path().display());
    let error = refused(&cluster.run(&["sql", &query], Path::new("/")));
    assert!(
        error.starts_with("error: column \"n\" is Float64, but Int64") && error.contains("b.parquet"),
        "{error}"
    );
}
