//! An S3 server by others: moto, from PyPI, started by the tests.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::web::first_line;
use crate::harness::{Ran, command};

/// Starts the server, fills a bucket with the files of a folder, prints the port, and serves until its
/// standard input ends.
const SERVER: &str = r#"
import os, sys
from moto.server import ThreadedMotoServer
import boto3
bucket, folder = sys.argv[1:3]
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
port = server.get_host_and_port()[1]
s3 = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1",
                  aws_access_key_id="a", aws_secret_access_key="b")
s3.create_bucket(Bucket=bucket)
for root, _, names in os.walk(folder):
    for name in names:
        path = os.path.join(root, name)
        s3.upload_file(path, bucket, os.path.relpath(path, folder))
print(port, flush=True)
sys.stdin.read()
"#;

/// A running server with one bucket.
pub struct S3 {
    server: Child,
    pub endpoint: String,
}

impl S3 {
    /// Starts a server whose bucket has the files of a folder. `None`, after saying so, without moto.
    pub fn with(bucket: &str, folder: &Path) -> Option<Self> {
        let python = std::env::var("SAWMILL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let there = Command::new(&python).args(["-c", "import moto.server, boto3"]).output();
        if !there.is_ok_and(|output| output.status.success()) {
            println!("skipped: {python} has no moto[server] (S3); name one that has in SAWMILL_PYTHON");
            return None;
        }
        let mut server = Command::new(&python)
            .args(["-c", SERVER, bucket])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let port = first_line(server.stdout.take().unwrap());
        assert!(!port.is_empty(), "moto starts");
        Some(Self { server, endpoint: format!("http://127.0.0.1:{port}") })
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

/// Sets the variables that the tools of S3 use, and none of the machine's own.
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
        drop(self.server.stdin.take());
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
