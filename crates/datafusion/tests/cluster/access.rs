//! A cluster whose processes show certificates of one CA and a token: it works as an open one, and refuses all others.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use arrow_flight::Ticket;
use arrow_flight::flight_service_client::FlightServiceClient;
use ballista_core::serde::protobuf::GetJobStatusParams;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};
use tempfile::TempDir;
use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::command::{command, refused};
use crate::generation::{assert_made, contents, of_one_process};
use crate::processes::Cluster;

const TOKEN: &str = "the token of these tests: 8f2c";

/// No refusal takes longer, on a busy machine either.
const BOUND: Duration = Duration::from_secs(60);

/// Certificates of a CA, and tokens, in a folder.
struct Files {
    folder: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Files {
    /// A CA with the certificate `node` of the loopback, and a token.
    fn new() -> Self {
        Self::with_authority(|_| {})
    }

    fn with_authority(change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "the CA of a cluster");
        change(&mut params);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let files = Self { folder: tempfile::tempdir().unwrap(), authority };
        fs::write(files.path("ca.pem"), files.authority.pem()).unwrap();
        fs::write(files.path("token"), format!("{TOKEN}\n")).unwrap();
        files.issue("node", "127.0.0.1", |_| {});
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes NAME.pem and NAME.key.
    fn issue(&self, name: &str, host: &str, change: impl FnOnce(&mut CertificateParams)) {
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// The options of TLS with the certificate NAME.
    fn tls(&self, name: &str) -> Vec<String> {
        options(&self.path(&format!("{name}.pem")), &self.path(&format!("{name}.key")), &self.path("ca.pem"))
    }

    fn token(&self) -> Vec<String> {
        token(&self.path("token"))
    }

    fn all(&self) -> Vec<String> {
        [self.tls("node"), self.token()].concat()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

fn options(certificate: &Path, key: &Path, authority: &Path) -> Vec<String> {
    [("--tls-cert", certificate), ("--tls-key", key), ("--tls-ca", authority)]
        .into_iter()
        .flat_map(|(option, file)| [option.to_owned(), file.display().to_string()])
        .collect()
}

fn token(file: &Path) -> Vec<String> {
    vec!["--token-file".to_owned(), file.display().to_string()]
}

fn expired(params: &mut CertificateParams) {
    (params.not_before, params.not_after) = (date_time_ymd(2019, 1, 1), date_time_ymd(2020, 1, 1));
}

/// What a command says that fails within the bound.
#[track_caller]
fn refusal(command: &mut Command) -> String {
    let began = Instant::now();
    let output = command.output().unwrap();
    assert!(began.elapsed() < BOUND, "{output:?}");
    let error = refused(&output);
    assert!(!error.contains(TOKEN), "{error}");
    error
}

/// A query of a cluster, with other options than its processes have.
fn query(url: &str, options: &[String]) -> Command {
    let mut query = command();
    query.args(["sql", "SELECT 1", "--scheduler", url]).args(options);
    query
}

fn executor(url: &str, options: &[String]) -> Command {
    let mut executor = command();
    executor.args(["executor", "--tasks", "1", "--scheduler", url]).args(options);
    executor
}

/// A process that ends with the test, and the first line that it prints.
struct Running(Child, String);

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(child, line)
    }

    /// A scheduler, and its URL.
    fn scheduler(port: &str, options: &[String]) -> (Self, String) {
        let running = Self::start(command().args(["scheduler", "--port", port]).args(options));
        let url = running.1.trim().strip_prefix("scheduler ").unwrap_or_else(|| panic!("{:?}", running.1));
        let url = url.to_owned();
        (running, url)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_protected_cluster_has_the_rows_and_files_of_one_process() {
    let files = Files::new();
    let cluster = Cluster::start_protected(2, files.all());
    let run = |args: &[&str]| {
        let output = cluster.run(args, files.folder.path());
        assert_made(&output)
    };
    // The tasks of both sides are on both executors, which fetch each other's rows.
    let join = "SELECT count(*) AS pairs, sum(a.n) AS total FROM gen('contacts', rows => 20000, number => 'n') a \
                JOIN gen('orders', rows => 30000, number => 'm') b ON a.n = b.m * 2";
    for partitions in ["1", "8"] {
        let rows = run(&["sql", join, "--json", "--partitions", partitions]);
        assert_eq!(rows, "{\"pairs\":10000,\"total\":99990000}\n", "{partitions}");
    }
    let plan = run(&["sql", &format!("EXPLAIN {join}"), "--json"]);
    assert!(!plan.contains(TOKEN) && !plan.contains("token-proof"), "{plan}");
    let args = ["orders", "--rows", "20k", "--files", "4", "--seed", "7"];
    let (expected, made) = (files.path("expected"), files.path("made"));
    let expected = of_one_process(&args, &expected);
    run(&[&["submit", "gen"], &args[..], &["--out", made.to_str().unwrap()]].concat());
    assert!(contents(&made) == expected);
    let footers = run(&["submit", "footer", "made/*.parquet", "--level", "file", "--json"]);
    assert_eq!(footers.lines().count(), 4, "{footers}");
}

#[test]
fn clients_are_told_why_they_are_refused() {
    let (files, others) = (Files::new(), Files::new());
    let past = Files::with_authority(expired);
    let (_scheduler, url) = Running::scheduler("0", &files.all());
    files.issue("old", "127.0.0.1", expired);
    files.issue("server", "127.0.0.1", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    fs::write(files.path("other"), "another token that is long").unwrap();
    fs::write(files.path("short"), "short\n").unwrap();
    let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(files.path("damaged.pem"), damaged).unwrap();
    fs::copy(files.path("node.key"), files.path("damaged.key")).unwrap();
    let at = |files: &Files, name: &str| files.path(name).display().to_string();
    let mixed = |key: PathBuf, authority: PathBuf| options(&files.path("node.pem"), &key, &authority);
    let foreign = options(&others.path("node.pem"), &others.path("node.key"), &files.path("ca.pem"));
    let cases = [
        (vec![], "the scheduler speaks TLS alone".to_owned(), url.clone(), "--tls-cert"),
        (files.token(), "the scheduler speaks TLS alone".to_owned(), url.clone(), "--tls-cert"),
        (files.tls("node"), "the call has no token".to_owned(), url.clone(), "--token-file"),
        (
            [files.tls("node"), token(&files.path("other"))].concat(),
            "the token is not that of the cluster".to_owned(),
            url.clone(),
            "--token-file",
        ),
        (
            token(&files.path("short")),
            "fewer than 16 characters".to_owned(),
            at(&files, "short"),
            "openssl rand",
        ),
        (
            token(&files.path("none")),
            "cannot be read: No such file".to_owned(),
            at(&files, "none"),
            "--token-file",
        ),
        (
            others.all(),
            "is not one of the CA of --tls-ca".to_owned(),
            url.clone(),
            "--tls-ca the CA of the cluster",
        ),
        (foreign, "is not one of the CA".to_owned(), at(&others, "node.pem"), "--tls-cert"),
        (past.all(), "the CA has expired".to_owned(), at(&past, "ca.pem"), "valid today"),
        (files.tls("old"), "the certificate has expired".to_owned(), at(&files, "old.pem"), "--tls-cert"),
        (
            files.tls("damaged"),
            "the certificate cannot be used".to_owned(),
            at(&files, "damaged.pem"),
            "subjectAltName",
        ),
        (
            files.tls("server"),
            "cannot be used by a client".to_owned(),
            at(&files, "server.pem"),
            "clientAuth",
        ),
        (
            mixed(files.path("old.key"), files.path("ca.pem")),
            format!("the key is not that of the certificate {}", at(&files, "node.pem")),
            at(&files, "old.key"),
            "made together",
        ),
        (
            mixed(files.path("node.key"), files.path("nothing.pem")),
            "cannot be read: No such file".to_owned(),
            at(&files, "nothing.pem"),
            "--tls-ca",
        ),
        (
            mixed(files.path("node.key"), files.path("node.key")),
            "no certificate".to_owned(),
            at(&files, "node.key"),
            "--tls-ca a file in PEM",
        ),
        (
            mixed(files.path("ca.pem"), files.path("ca.pem")),
            "no private key".to_owned(),
            at(&files, "ca.pem"),
            "--tls-key",
        ),
    ];
    for (options, what, place, advice) in cases {
        let error = refusal(&mut query(&url, &options));
        let said =
            error.contains(&what) && error.contains(&format!(" - {place} - ")) && error.contains(advice);
        assert!(said, "{what}, {place}, {advice}: {error}");
    }
    let error = refusal(command().args(["sql", "SELECT 1"]).args(files.token()));
    assert!(error.contains("--token-file - give --scheduler, too"), "{error}");
    let error = refusal(&mut query(&url, &files.tls("node")[..2]));
    assert!(error.contains("--tls-key <FILE>") && error.contains("--tls-ca <FILE>"), "{error}");
}

#[test]
fn a_cluster_without_tls_is_named_to_clients_that_have_it_and_may_have_a_token() {
    let files = Files::new();
    let cluster = Cluster::start_protected(1, files.token());
    // An executor waits for a scheduler that may be starting.
    let waiting = executor(&cluster.url, &files.all()).stderr(Stdio::piped()).spawn().unwrap();
    let error = refusal(&mut query(&cluster.url, &files.all()));
    assert!(error.contains(&format!("what answers does not speak TLS - {}", cluster.url)), "{error}");
    let error = refusal(&mut query(&cluster.url, &[]));
    assert!(error.contains("the call has no token") && error.contains("--token-file"), "{error}");
    let rows =
        cluster.run(&["sql", "SELECT count(*) AS n FROM gen('orders', rows => 9)", "--json"], Path::new("/"));
    assert_eq!(assert_made(&rows), "{\"n\":9}\n");
    let secure = cluster.url.replace("df://", "https://");
    let error = refusal(&mut query(&secure, &files.token()));
    assert!(error.contains("this URL asks for TLS") && error.contains("--tls-cert"), "{error}");
    let error = refusal(&mut query("df://192.0.2.1:50050", &files.token()));
    assert!(error.contains("the token would be sent without TLS") && error.contains("--insecure"), "{error}");
    let error = refused(&waiting.wait_with_output().unwrap());
    assert!(error.contains("error: what answers does not speak TLS"), "{error}");
}

#[test]
fn executors_that_cannot_authenticate_are_refused() {
    let (files, others) = (Files::new(), Files::new());
    let (_scheduler, url) = Running::scheduler("0", &files.all());
    fs::write(files.path("other"), "another token that is long").unwrap();
    files.issue("elsewhere", "node.example", |_| {});
    for (options, said) in [
        (vec![], "the scheduler speaks TLS alone"),
        (files.tls("node"), "the call has no token"),
        ([files.tls("node"), token(&files.path("other"))].concat(), "the token is not that of the cluster"),
        (others.all(), "the certificate of the scheduler is not one of the CA"),
        (files.tls("elsewhere"), "the certificate does not name the host 127.0.0.1"),
    ] {
        let error = refusal(&mut executor(&url, &options));
        assert!(error.contains(said) && !error.contains("takes tasks"), "{said}: {error}");
    }
}

#[test]
fn an_executor_ends_when_its_scheduler_comes_back_with_another_token() {
    let files = Files::new();
    fs::write(files.path("other"), "another token that is long").unwrap();
    let (scheduler, url) = Running::scheduler("0", &files.all());
    let mut known = Running::start(executor(&url, &files.all()).stderr(Stdio::piped()));
    assert!(known.1.contains("takes tasks"), "{}", known.1);
    drop(scheduler);
    let port = url.rsplit_once(':').unwrap().1;
    let (_scheduler, _) =
        Running::scheduler(port, &[files.tls("node"), token(&files.path("other"))].concat());
    let mut said = String::new();
    let mut error = BufReader::new(known.0.stderr.take().unwrap());
    while error.read_line(&mut said).unwrap() > 0 {}
    assert!(!known.0.wait().unwrap().success(), "{said}");
    assert!(said.contains("the token is not that of the cluster"), "{said}");
}

#[test]
fn listeners_that_others_could_use_are_refused() {
    let files = Files::new();
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let open = |role: &[&str], more: &[String]| {
        let mut process = command();
        process.args(role).args(["--bind", "0.0.0.0", "--host", "127.0.0.1"]).args(more);
        process
    };
    let url = format!("df://{unused}");
    for (who, role) in
        [("scheduler", &["scheduler", "--port", "0"][..]), ("executor", &["executor", "--scheduler", &url])]
    {
        for more in [vec![], files.token()] {
            let error = refusal(&mut open(role, &more));
            let said = format!("whoever reaches the {who} there could use it");
            assert!(error.contains(&said) && error.contains(" - 0.0.0.0:"), "{error}");
            assert!(error.contains("--tls-cert") && error.contains("--insecure"), "{error}");
        }
    }
    let scheduler = ["scheduler", "--port", "0"];
    for more in [vec!["--insecure".to_owned()], files.tls("node")] {
        let running = Running::start(&mut open(&scheduler, &more));
        assert!(running.1.starts_with("scheduler df://127.0.0.1:"), "{}", running.1);
    }
    files.issue("elsewhere", "node.example", |_| {});
    let error = refusal(&mut open(&scheduler, &files.tls("elsewhere")));
    assert!(error.contains("does not name the host 127.0.0.1") && error.contains("elsewhere.pem"), "{error}");
}

/// A connection with a certificate or without, which our own commands do not make.
async fn channel(
    address: &str,
    trusted: &Files,
    shown: Option<&Files>,
) -> Result<Channel, tonic::transport::Error> {
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(trusted.read("ca.pem")));
    if let Some(files) = shown {
        tls = tls.identity(Identity::from_pem(files.read("node.pem"), files.read("node.key")));
    }
    let endpoint = Endpoint::from_shared(format!("https://{address}")).unwrap().tls_config(tls).unwrap();
    endpoint.connect().await
}

/// The code of the answer to a call of the scheduler or of an executor.
async fn answer(channel: Channel, is_scheduler: bool) -> Code {
    let answer = match is_scheduler {
        true => {
            let mut scheduler = SchedulerGrpcClient::new(channel);
            scheduler.get_job_status(GetJobStatusParams { job_id: String::new() }).await.map(drop)
        }
        false => {
            let mut executor = FlightServiceClient::new(channel);
            executor.do_get(Ticket { ticket: b"rows".to_vec().into() }).await.map(drop)
        }
    };
    answer.map_or_else(|status| status.code(), |()| Code::Ok)
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_ask_each_connection_for_a_certificate_and_each_call_for_the_token() {
    let (files, others) = (Files::new(), Files::new());
    let (_scheduler, url) = Running::scheduler("0", &files.all());
    let running = Running::start(&mut executor(&url, &files.all()));
    // executor HOST:PORT takes tasks ..
    let executor = running.1.split(' ').nth(1).unwrap();
    for (address, is_scheduler) in [(url.strip_prefix("df://").unwrap(), true), (executor, false)] {
        for shown in [None, Some(&others)] {
            // The server says no after the client's side of the handshake: with the first call at the latest.
            let code = match channel(address, &files, shown).await {
                Ok(channel) => answer(channel, is_scheduler).await,
                Err(_) => Code::Unavailable,
            };
            assert!(
                matches!(code, Code::Cancelled | Code::Internal | Code::Unavailable | Code::Unknown),
                "{address}: {code:?}"
            );
        }
        let certified = channel(address, &files, Some(&files)).await.unwrap();
        assert_eq!(answer(certified, is_scheduler).await, Code::Unauthenticated, "{address}");
    }
}
