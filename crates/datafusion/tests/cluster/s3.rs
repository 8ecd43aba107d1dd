//! An S3 server by others (moto, from PyPI), and its objects as another client (boto3) reads them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Fills the bucket `data` with the files of a folder, prints the port, and serves until its input ends.
const SERVER: &str = r#"
import os, sys
from moto.server import ThreadedMotoServer
import boto3
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
port = server.get_host_and_port()[1]
s3 = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1",
                  aws_access_key_id="a", aws_secret_access_key="b")
s3.create_bucket(Bucket="data")
for name in os.listdir(sys.argv[1]):
    s3.upload_file(os.path.join(sys.argv[1], name), "data", f"contacts/{name}")
print(port, flush=True)
sys.stdin.read()
"#;

/// Writes the objects below a prefix to a folder.
const DOWNLOAD: &str = r#"
import os, sys
import boto3
endpoint, prefix, folder = sys.argv[1:]
s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1",
                  aws_access_key_id="a", aws_secret_access_key="b")
for page in s3.get_paginator("list_objects_v2").paginate(Bucket="data", Prefix=prefix + "/"):
    for found in page.get("Contents", []):
        path = os.path.join(folder, found["Key"][len(prefix) + 1:])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        s3.download_file("data", found["Key"], path)
"#;

/// A server that ends with the test.
pub struct S3 {
    process: Child,
    endpoint: String,
}

impl S3 {
    /// A server whose bucket has the files of a folder. `None`, after saying so, without moto.
    pub fn with(folder: &Path) -> Option<Self> {
        let there = Command::new(python()).args(["-c", "import moto.server, boto3"]).output();
        if !there.is_ok_and(|output| output.status.success()) {
            println!("skipped: {} has no moto[server] (S3); name one that has in SAWMILL_PYTHON", python());
            return None;
        }
        let mut server = Command::new(python());
        server.args(["-c", SERVER]).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = server.stderr(Stdio::null()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Some(Self { process, endpoint: format!("http://127.0.0.1:{}", port.trim()) })
    }

    /// What processes need to reach it.
    pub fn environment(&self) -> Vec<(String, String)> {
        let variables = [
            ("AWS_ENDPOINT_URL", self.endpoint.as_str()),
            ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "SECRETEXAMPLE"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ALLOW_HTTP", "true"),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }

    /// The objects below a prefix, by their names after it.
    pub fn objects(&self, prefix: &str) -> BTreeMap<String, Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let mut download = Command::new(python());
        download.args(["-c", DOWNLOAD, &self.endpoint, prefix]).arg(folder.path());
        let done = download.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let mut objects = BTreeMap::new();
        below(folder.path(), "", &mut objects);
        objects
    }

    /// How many Parquet files are below a prefix now.
    pub fn complete(&self, prefix: &str) -> usize {
        self.answer(&format!("/data?prefix={prefix}/")).matches(".parquet</Key>").count()
    }

    /// How many uploads are under way.
    pub fn uploads(&self) -> usize {
        self.answer("/data?uploads").matches("<UploadId>").count()
    }

    fn answer(&self, path: &str) -> String {
        let address = self.endpoint.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn python() -> String {
    std::env::var("SAWMILL_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// Adds the files below a folder with their bytes.
pub fn below(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_string_lossy());
        match path.is_dir() {
            true => below(&path, &format!("{name}/"), files),
            false => _ = files.insert(name, std::fs::read(path).unwrap()),
        }
    }
}
