//! An S3 server by others: moto, from PyPI, started by the tests.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::harness::{Ran, command};

/// Imports moto once, which takes seconds, and forks a server for each line of its standard input: the bucket
/// and a folder, whose files fill it. Prints the server's process and port. A server ends with this process.
const PROGRAM: &str = r#"
import json, os, signal, sys, time
from moto.server import ThreadedMotoServer
import boto3

session = boto3.session.Session("a", "b", region_name="us-east-1")
session.client("s3")

def serve(bucket, folder, parent):
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    s3 = session.client("s3", endpoint_url=f"http://127.0.0.1:{port}")
    s3.create_bucket(Bucket=bucket)
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            s3.upload_file(path, bucket, os.path.relpath(path, folder))
    print(os.getpid(), port, flush=True)
    while os.getppid() == parent:
        time.sleep(1)

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
for line in sys.stdin:
    parent = os.getpid()
    if os.fork() == 0:
        try:
            serve(*json.loads(line), parent)
        finally:
            os._exit(0)
"#;

/// The process that forks servers; `None` without moto.
static SERVERS: LazyLock<Option<Mutex<Servers>>> = LazyLock::new(|| Servers::start().map(Mutex::new));

struct Servers {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Servers {
    fn start() -> Option<Self> {
        let python = std::env::var("SAWMILL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let mut started = Command::new(&python);
        started.args(["-c", PROGRAM]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = started.spawn().ok()?;
        let answers = BufReader::new(process.stdout.take()?);
        let mut servers = Self { requests: process.stdin.take()?, answers };
        (servers.answer() == "ready").then_some(servers)
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        let _ = self.answers.read_line(&mut line);
        line.trim().to_owned()
    }
}

/// A running server with one bucket.
pub struct S3 {
    process: u32,
    pub endpoint: String,
}

impl S3 {
    /// Starts a server whose bucket has the files of a folder. `None`, after saying so, without moto.
    pub fn with(bucket: &str, folder: &Path) -> Option<Self> {
        let Some(servers) = &*SERVERS else {
            println!("skipped: no moto[server] (S3); name a Python that has it in SAWMILL_PYTHON");
            return None;
        };
        let mut servers = servers.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(servers.requests, "{}", serde_json::json!([bucket, folder])).unwrap();
        let answer = servers.answer();
        let (process, port) = answer.split_once(' ').expect("moto starts");
        Some(Self { process: process.parse().unwrap(), endpoint: format!("http://127.0.0.1:{port}") })
    }

    /// Starts a server with an empty bucket.
    pub fn empty(bucket: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        Self::with(bucket, folder.path())
    }

    /// The bytes of an object; `None` if it does not exist.
    pub fn object(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        let (status, body) = self.request("GET", &format!("/{bucket}/{key}"), b"");
        (status == 200).then_some(body)
    }

    /// Writes an object.
    pub fn put(&self, bucket: &str, key: &str, bytes: &[u8]) {
        assert_eq!(self.request("PUT", &format!("/{bucket}/{key}"), bytes).0, 200);
    }

    /// The keys of the objects in a bucket.
    pub fn objects(&self, bucket: &str) -> Vec<String> {
        self.keys(&format!("/{bucket}?list-type=2"))
    }

    /// The keys of the unfinished uploads to a bucket.
    pub fn uploads(&self, bucket: &str) -> Vec<String> {
        self.keys(&format!("/{bucket}?uploads"))
    }

    fn keys(&self, target: &str) -> Vec<String> {
        let (_, body) = self.request("GET", target, b"");
        let text = String::from_utf8(body).unwrap();
        let keys = text.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
        let mut keys: Vec<String> = keys.map(str::to_owned).collect();
        keys.sort();
        keys
    }

    /// Sends a request, as another program than the one under test.
    fn request(&self, method: &str, target: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let server = self.endpoint.trim_start_matches("http://");
        let mut stream = TcpStream::connect(server).unwrap();
        let length = body.len();
        // The server wants a signature but does not compare it.
        let signed = "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";
        let head = format!(
            "{method} {target} HTTP/1.0\r\nHost: {server}\r\nAuthorization: {signed}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
        (status, answer[end + 4..].to_vec())
    }

    /// Runs `sawmill` with the environment that the tools of S3 use.
    pub fn sawmill<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        Ran::from(environment(command(args), &self.endpoint).output().unwrap())
    }
}

/// Replaces the machine's S3 variables and configuration files with the test's.
pub fn environment(mut command: Command, endpoint: &str) -> Command {
    for (key, _) in std::env::vars().filter(|(key, _)| key.starts_with("AWS_")) {
        command.env_remove(key);
    }
    command
        .env("AWS_ENDPOINT_URL", endpoint)
        .env("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", "SECRETEXAMPLE")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    command
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.process.to_string()]).status();
    }
}
