//! Who may talk to whom in a cluster: TLS in which both sides show a certificate, and a token that each call presents.
//!
//! ```text
//! client ──┬─▶ scheduler ◀── executor     each arrow: TLS, certificates of one CA on both ends, the token on each call
//!          └─▶ executor  ◀── executor
//! ```
//!
//! Ballista makes all connections, and lets others change them before they are made: see [`Access::endpoint`].

mod certificates;
mod guard;
mod options;
mod probe;

use std::net::SocketAddr;
use std::sync::Arc;

use ballista::prelude::SessionConfigExt;
use ballista_core::extension::EndpointOverrideFn;
use ballista_core::utils::{GrpcClientConfig, create_grpc_client_endpoint};
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;
use tonic::service::InterceptorLayer;
use tonic::transport::{Endpoint, Server};

use crate::cluster::session::host_and_port;
use crate::error::{external, refused};

use certificates::{Certificates, Role};
use guard::{Guard, Token};

pub(crate) use options::{AccessArgs, ClusterArgs};
pub(crate) use probe::Failure;

/// The errors of functions that Ballista calls.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How a process of a cluster protects its calls and its services.
#[derive(Clone, Default)]
pub(crate) struct Access {
    certificates: Option<Arc<Certificates>>,
    token: Option<Token>,
    is_insecure: bool,
}

impl Access {
    /// Reads the files that the options name.
    ///
    /// # Errors
    /// A file cannot be read, or its content cannot be used: the key is of another certificate, the certificate has
    /// expired or is not one of the CA, the token is too short.
    pub(crate) fn read(args: &AccessArgs) -> Result<Self> {
        let certificates = match (&args.tls_cert, &args.tls_key, &args.tls_ca) {
            (Some(certificate), Some(key), Some(authority)) => {
                Some(Arc::new(Certificates::read(certificate, key, authority)?))
            }
            // The parser of arguments asks for all three.
            _ => None,
        };
        let token = args.token_file.as_deref().map(Token::read).transpose()?;
        Ok(Self { certificates, token, is_insecure: args.insecure })
    }

    /// Checks that this process may listen on an address where others call it by `host`.
    ///
    /// # Errors
    /// Other machines could reach it without a certificate; the certificate does not name the host.
    pub(crate) fn check_listener(&self, who: &str, address: SocketAddr, host: &str) -> Result<()> {
        match &self.certificates {
            Some(certificates) => certificates.check(Role::Server(host)),
            None if self.is_insecure || is_loopback(address.ip()) => Ok(()),
            None => Err(refused(
                format!("whoever reaches the {who} there could use it: it would listen without TLS"),
                &address.to_string(),
                "give --tls-cert, --tls-key and --tls-ca, or --insecure if the network keeps others out",
            )),
        }
    }

    /// Checks that this process may call the scheduler at `url`.
    ///
    /// # Errors
    /// The certificate cannot be a client's; the token would travel where others can read it; the URL asks for TLS that
    /// this process does not have.
    fn check_client(&self, url: &str) -> Result<()> {
        if let Some(certificates) = &self.certificates {
            return certificates.check(Role::Client);
        }
        if url.starts_with("https://") || url.starts_with("dfs://") {
            let advice = "give --tls-cert, --tls-key and --tls-ca, or a URL that begins with df://";
            return Err(refused("this URL asks for TLS", url, advice));
        }
        let (host, _) = host_and_port(url)?;
        let is_near = host == "localhost" || bare(&host).parse().is_ok_and(is_loopback);
        if self.token.is_some() && !is_near && !self.is_insecure {
            return Err(refused(
                "the token would be sent without TLS to another machine",
                url,
                "give --tls-cert, --tls-key and --tls-ca, too, or --insecure if the network keeps others out",
            ));
        }
        Ok(())
    }

    /// The scheme of the addresses that Ballista connects to.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.has_tls() { "https" } else { "http" }
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.certificates.is_some()
    }

    /// A server that asks its clients for a certificate.
    pub(crate) fn server(&self, server: Server) -> Result<Server> {
        match &self.certificates {
            Some(certificates) => server.tls_config(certificates.server()).map_err(external),
            None => Ok(server),
        }
    }

    /// The layer that refuses calls without the token, in front of all services of a server.
    pub(crate) fn guard(&self) -> InterceptorLayer<Guard> {
        InterceptorLayer::new(Guard::new(self.token.clone()))
    }

    /// A session whose connections are protected.
    pub(crate) fn session(&self, config: SessionConfig) -> SessionConfig {
        config
            .with_ballista_use_tls(self.has_tls())
            .with_ballista_override_create_grpc_client_endpoint(self.endpoint())
    }

    /// Protects a connection that Ballista is about to make.
    pub(crate) fn endpoint(&self) -> EndpointOverrideFn {
        let access = self.clone();
        Arc::new(move |endpoint| access.protected(endpoint))
    }

    fn protected(&self, endpoint: Endpoint) -> Result<Endpoint, BoxError> {
        let endpoint = match &self.certificates {
            Some(certificates) => {
                let endpoint = over_https(endpoint)?;
                let host = bare(endpoint.uri().host().unwrap_or_default()).to_owned();
                endpoint.tls_config(certificates.client().domain_name(host))?
            }
            None => endpoint,
        };
        match &self.token {
            Some(token) => Ok(endpoint.user_agent(token.user_agent())?),
            None => Ok(endpoint),
        }
    }
}

/// The endpoint with a scheme at which `tonic` encrypts: Ballista's executors ask for `http://`, and would speak plain text
/// in spite of certificates.
fn over_https(endpoint: Endpoint) -> Result<Endpoint, BoxError> {
    let uri = endpoint.uri();
    if uri.scheme_str() == Some("https") {
        return Ok(endpoint);
    }
    let authority = uri.authority().ok_or("the address has no host")?;
    Ok(create_grpc_client_endpoint(format!("https://{authority}"), Some(&GrpcClientConfig::default()))?)
}

/// A host without the brackets that an IPv6 address has in a URL.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn is_loopback(address: std::net::IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
