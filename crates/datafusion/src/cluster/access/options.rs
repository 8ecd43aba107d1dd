//! The options of commands that talk to a cluster.

use std::path::PathBuf;

use clap::Args;
use datafusion::error::Result;

use crate::cluster::access::Access;
use crate::error::refused;

/// The scheduler of a job or a statement, by default none.
#[derive(Debug, Default, Args)]
pub(crate) struct ClusterArgs {
    /// The scheduler of a cluster, such as df://scheduler:50050. Without it this process does the work.
    #[arg(long, value_name = "URL")]
    pub scheduler: Option<String>,
    #[command(flatten)]
    pub access: AccessArgs,
}

impl ClusterArgs {
    /// The scheduler, and how to talk to it.
    ///
    /// # Errors
    /// As [`Access::read`]; there are options of a connection, but no scheduler.
    pub(crate) fn read(&self) -> Result<Option<(&str, Access)>> {
        match &self.scheduler {
            Some(url) => Ok(Some((url, Access::read(&self.access)?))),
            None => match self.access.named() {
                Some(option) => Err(refused(
                    "the option is about the connection to a scheduler, and there is none",
                    option,
                    "give --scheduler, too",
                )),
                None => Ok(None),
            },
        }
    }
}

/// How a process of a cluster protects its connections.
#[derive(Debug, Default, Args)]
pub(crate) struct AccessArgs {
    /// The certificate of this process, in PEM. Others in the cluster have to show one of the same CA. One of a scheduler
    /// or an executor has to name the host by which others reach it.
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"], help_heading = "Access")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires_all = ["tls_cert", "tls_ca"], help_heading = "Access")]
    pub tls_key: Option<PathBuf>,
    /// The certificate of the CA that has signed the certificates of all processes, in PEM.
    #[arg(long, value_name = "FILE", requires_all = ["tls_cert", "tls_key"], help_heading = "Access")]
    pub tls_ca: Option<PathBuf>,
    /// A file with a token that all processes of the cluster share: a scheduler or an executor with one refuses calls
    /// without it.
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    pub token_file: Option<PathBuf>,
    /// Listen on other addresses than the loopback, and send the token to them, without TLS.
    #[arg(long, help_heading = "Access")]
    pub insecure: bool,
}

impl AccessArgs {
    /// An option that is given.
    fn named(&self) -> Option<&'static str> {
        let given = [
            ("--tls-cert", self.tls_cert.is_some()),
            ("--token-file", self.token_file.is_some()),
            ("--insecure", self.insecure),
        ];
        given.iter().find(|(_, is_given)| *is_given).map(|(option, _)| *option)
    }
}
