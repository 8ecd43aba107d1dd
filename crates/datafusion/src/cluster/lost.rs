//! The message when the scheduler is lost: what happened and what to do, instead of the structure of gRPC errors.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::cluster::arguments::{Command, Job};
use crate::cluster::session::host_and_port;

/// How long an address has to answer that is checked after an error.
const ANSWER: Duration = Duration::from_secs(2);

/// The scheduler of a command, and what to do when it is lost.
pub(crate) struct Scheduler {
    url: String,
    advice: &'static str,
}

impl Scheduler {
    /// The scheduler of a command; `None` if the command talks to none.
    pub(crate) fn find(command: &Command) -> Option<Self> {
        let (cluster, advice) = match command {
            Command::Sql(args) => (&args.cluster, "run the same statement again"),
            Command::Submit(Job::Footer(args)) => (&args.cluster, "run the same command again"),
            Command::Submit(Job::Gen(args)) => {
                (&args.cluster, "run the same command again: complete files are kept")
            }
            Command::Submit(Job::Load(args)) => {
                (&args.cluster, "run the same command again: it loads what is missing")
            }
            Command::Load(_) | Command::Scheduler(_) | Command::Executor(_) | Command::Demo(_) => {
                return None;
            }
        };
        Some(Self { url: cluster.scheduler.clone()?, advice })
    }

    /// The text of an error of this process, if it is an error of the connection to the scheduler; otherwise
    /// `None`.
    pub(crate) fn lost(&self, error: &str) -> Option<String> {
        let message = status(error)?;
        let Self { url, advice } = self;
        Some(match self.answers() {
            Err(reason) => {
                format!("the scheduler is gone: {reason} ({message}) - {url} - start it again, and {advice}")
            }
            Ok(()) => format!(
                "what answers does not do so as a scheduler, or was started again meanwhile: {message} - {url} - check \
                 the address, and {advice}"
            ),
        })
    }

    fn answers(&self) -> std::io::Result<()> {
        let (host, port) = host_and_port(&self.url).map_err(std::io::Error::other)?;
        let mut last = std::io::Error::other("the name has no address");
        for address in (host.as_str(), port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, ANSWER) {
                Ok(_) => return Ok(()),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// The message of a status of gRPC, as its crate shows it in both ways.
fn status(error: &str) -> Option<&str> {
    let is_status = error.starts_with("Status { code: ") || error.starts_with("code: '");
    let (_, message) = error.split_once("message: \"").filter(|_| is_status)?;
    message.split_once('"').map(|(message, _)| message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn errors_of_the_connection_are_told_apart_from_others() {
        let gone = "code: 'Unknown error', message: \"h2 protocol error: error reading a body\", source: hyper::Error(..)";
        assert_eq!(status(gone), Some("h2 protocol error: error reading a body"));
        let other = "Status { code: Internal, message: \"h2 protocol error: http2 error\", source: None }";
        assert_eq!(status(other), Some("h2 protocol error: http2 error"));
        assert_eq!(status("2 rows are in the table: code: 'Unknown error', message: \"x\""), None);
        let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let scheduler = Scheduler { url: format!("df://{unused}"), advice: "run it again" };
        let text = scheduler.lost(gone).unwrap();
        assert!(text.starts_with("the scheduler is gone: Connection refused"), "{text}");
        assert!(text.ends_with("start it again, and run it again"), "{text}");
    }
}
