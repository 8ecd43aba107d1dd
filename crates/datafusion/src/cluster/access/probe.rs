//! A first call to a scheduler, before Ballista makes its own, so that a refusal is reported at once and in words.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::time::Duration;

use ballista_core::serde::protobuf::GetJobStatusParams;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use datafusion::error::{DataFusionError, Result};
use rustls::CertificateError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::Endpoint;
use tonic::{Code, Status};

use crate::cluster::access::certificates::dates;
use crate::cluster::access::{Access, BoxError};
use crate::cluster::session::host_and_port;
use crate::error::refused;

/// How long a scheduler has to answer.
const ANSWER: Duration = Duration::from_secs(20);

/// How a client of HTTP/2 without TLS begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// The first byte of an alert of TLS.
const ALERT: u8 = 21;

/// Why a scheduler cannot be used.
pub(crate) enum Failure {
    /// Nothing answers, or the answer is not a scheduler's. This may pass if a scheduler is starting or ending.
    Passing { what: String, advice: &'static str },
    /// One of both sides refuses the other.
    Refused(DataFusionError),
}

impl Failure {
    fn unreachable(reason: impl Display) -> Self {
        let advice = "start it with sawmill-cluster scheduler, and check the address";
        Self::Passing { what: format!("the scheduler cannot be reached: {reason}"), advice }
    }

    fn without_tls() -> Self {
        let advice = "start it with --tls-cert, --tls-key and --tls-ca, or leave these options out here";
        Self::Passing { what: "what answers does not speak TLS".to_owned(), advice }
    }

    /// The error of a process that does not wait.
    pub(crate) fn into_error(self, url: &str) -> DataFusionError {
        match self {
            Self::Passing { what, advice } => refused(what, url, advice),
            Self::Refused(error) => error,
        }
    }
}

impl Access {
    /// Calls the scheduler at `url` once.
    ///
    /// # Errors
    /// It cannot be reached; one of both sides refuses the other.
    pub(crate) async fn probe(&self, url: &str) -> Result<(), Failure> {
        self.check_client(url).map_err(Failure::Refused)?;
        let (host, port) = host_and_port(url).map_err(Failure::Refused)?;
        // Tells a closed port from a handshake that fails.
        let stream = tokio::time::timeout(ANSWER, TcpStream::connect((host.as_str(), port))).await;
        stream.map_err(|_| Failure::unreachable("no answer"))?.map_err(Failure::unreachable)?;
        match tokio::time::timeout(ANSWER, self.call(&host, port)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.explained(url, error.as_ref(), (&host, port)).await),
            Err(_) => Err(Failure::unreachable("no answer")),
        }
    }

    /// Asks for the state of a job that does not exist.
    async fn call(&self, host: &str, port: u16) -> Result<(), BoxError> {
        let endpoint = Endpoint::from_shared(format!("{}://{host}:{port}", self.scheme()))?;
        let channel = self.protected(endpoint)?.connect().await?;
        let mut scheduler = SchedulerGrpcClient::new(channel);
        scheduler.get_job_status(GetJobStatusParams { job_id: String::new() }).await?;
        Ok(())
    }

    /// Turns the error of a failed call into its cause and the advice.
    async fn explained(&self, url: &str, error: &(dyn Error + 'static), address: (&str, u16)) -> Failure {
        if let Some(status) =
            error.downcast_ref::<Status>().filter(|status| status.code() == Code::Unauthenticated)
        {
            let advice = "give --token-file the file with the token that the scheduler was started with";
            let what = format!("the scheduler refuses the call: {}", status.message());
            return Failure::Refused(refused(what, url, advice));
        }
        let innermost = innermost(error);
        match tls_error(error) {
            Some(rustls::Error::InvalidCertificate(error)) => {
                return Failure::Refused(distrusted(url, error));
            }
            Some(rustls::Error::InvalidMessage(_)) => return Failure::without_tls(),
            _ if self.has_tls() && is_cut(error) => return Failure::without_tls(),
            _ if innermost.contains("fatal alert") => {
                let what = format!("the scheduler refuses the certificate: {innermost}");
                return Failure::Refused(refused(what, url, "give --tls-cert one of the scheduler's CA"));
            }
            _ if !self.has_tls() && speaks_tls(address).await => {
                let advice = "give --tls-cert, --tls-key and --tls-ca";
                return Failure::Refused(refused("the scheduler speaks TLS alone", url, advice));
            }
            _ => {}
        }
        let what = format!("what answers does not do so as a scheduler: {innermost}");
        Failure::Passing { what, advice: "check the address" }
    }
}

/// A certificate of the scheduler that this process does not accept.
fn distrusted(url: &str, error: &CertificateError) -> DataFusionError {
    let (what, advice) = match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            ("is not one of the CA of --tls-ca".to_owned(), "give --tls-ca the CA of the cluster")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            "does not name this host".to_owned(),
            "use a name that is in it, or start the scheduler with one that has this name",
        ),
        error => match dates(error) {
            Some(dates) => (dates.to_owned(), "start the scheduler with another, or set the clock"),
            None => (format!("cannot be used: {error}"), "start the scheduler with another"),
        },
    };
    refused(format!("the certificate of the scheduler {what}"), url, advice)
}

/// The errors that an error has inside, from itself to the innermost.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error: &&'a (dyn Error + 'static)| {
        // An input error hides the error inside it.
        let hidden = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        hidden.map(|error| error as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Whether the other side has closed the connection.
fn is_cut(error: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let kinds = causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds
        .into_iter()
        .any(|kind| matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof))
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    causes(error).last().unwrap_or(error).to_string()
}

/// Whether an alert of TLS answers a client without.
async fn speaks_tls(address: (&str, u16)) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(PREFACE).await?;
        stream.read_u8().await
    };
    matches!(tokio::time::timeout(ANSWER, asked).await, Ok(Ok(ALERT)))
}
