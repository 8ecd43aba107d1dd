//! An S3 server by others: moto, from PyPI, started by the tests.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::web::first_line;
use crate::harness::{Ran, command};

/// Starts the server, fills a bucket with the files of a folder, prints the port, and serves until its standard
/// input ends.
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
