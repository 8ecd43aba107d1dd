//! HTTP connections that do not follow redirects to other hosts blindly.
//!
//! The crate `object_store` follows every redirect, even to the address of a machine's metadata service. Its
//! options are read back from it, so that only the rule for redirects differs.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use std::time::Duration;

use object_store::client::{HttpClient, HttpConnector};
use object_store::{ClientConfigKey, ClientOptions, Error as StoreError};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::tls::Certificate;
use reqwest::{Client, ClientBuilder, NoProxy, Proxy, Url};

use crate::remote::answers::Ending;
use crate::remote::checksums::Stating;

/// An option of a client that has a time.
type SetTime = fn(ClientBuilder, Duration) -> ClientBuilder;
/// An option of a client that is off until it is asked for.
type SwitchOn = fn(ClientBuilder) -> ClientBuilder;

/// How long a read may wait, unless the options say it.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// The most redirects of a request.
const MAX_REDIRECTS: usize = 10;

/// Makes connections, and decides which redirects they follow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Connections {
    /// To a store: requests are signed for one host, so only that host can answer them. `has_md5_tags`: its entity
    /// tags may be MD5 sums.
    OfStore { checks: bool, has_md5_tags: bool },
    /// To a web server: other hosts may have the file, but no server may send us to one of our own network.
    OfWebServer,
}

/// A redirect that is not followed.
#[derive(Debug)]
pub(super) struct Elsewhere {
    /// The host that the server named.
    pub host: String,
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server sends requests to another host, {}", self.host)
    }
}

impl std::error::Error for Elsewhere {}

impl HttpConnector for Connections {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // A server that sends `100 Continue` again and again never lets a single read wait for long.
        let read = options.get_config_value(&ClientConfigKey::ReadTimeout);
        let read = read.and_then(|text| humantime::parse_duration(&text).ok()).unwrap_or(READ_TIMEOUT);
        let client = HttpClient::new(self.client(options)?);
        let client = HttpClient::new(Ending { client, patience: read.saturating_mul(3) });
        Ok(match *self {
            Self::OfStore { checks: true, has_md5_tags } => HttpClient::new(Stating { client, has_md5_tags }),
            Self::OfStore { .. } | Self::OfWebServer => client,
        })
    }
}

impl Connections {
    /// A client with these options.
    pub(super) fn client(self, options: &ClientOptions) -> object_store::Result<Client> {
        use ClientConfigKey as Key;
        let wrong = |what: String| StoreError::Generic { store: "HTTP", source: what.into() };
        let failed = |error: reqwest::Error| wrong(error.to_string());
        let text = |key: Key| options.get_config_value(&key).filter(|value| !value.is_empty());
        let is_set = |key: Key| text(key).is_some_and(|value| is_true(&value));
        let number = |key: Key| text(key).and_then(|value| value.parse::<u32>().ok());
        let duration = |key: Key| -> object_store::Result<Option<Duration>> {
            let parsed = text(key).map(|value| humantime::parse_duration(&value));
            parsed.transpose().map_err(|error| wrong(format!("a duration is not valid: {error}")))
        };
        let mut builder = Client::builder().redirect(Policy::custom(move |attempt| self.follow(attempt)));
        if let Some(agent) = text(Key::UserAgent) {
            builder = builder.user_agent(agent);
        }
        if let Some(proxy) = text(Key::ProxyUrl) {
            let excluded = text(Key::ProxyExcludes).and_then(|hosts| NoProxy::from_string(&hosts));
            builder = builder.proxy(Proxy::all(proxy).map_err(failed)?.no_proxy(excluded));
        }
        if let Some(certificate) = text(Key::ProxyCaCertificate) {
            let certificate = Certificate::from_pem(certificate.as_bytes()).map_err(failed)?;
            builder = builder.tls_certs_merge([certificate]);
        }
        let durations: [(Key, SetTime); 6] = [
            (Key::Timeout, ClientBuilder::timeout),
            (Key::ConnectTimeout, ClientBuilder::connect_timeout),
            (Key::ReadTimeout, ClientBuilder::read_timeout),
            (Key::PoolIdleTimeout, |builder, time| builder.pool_idle_timeout(time)),
            (Key::Http2KeepAliveInterval, |builder, time| builder.http2_keep_alive_interval(time)),
            (Key::Http2KeepAliveTimeout, ClientBuilder::http2_keep_alive_timeout),
        ];
        for (key, set) in durations {
            if let Some(time) = duration(key)? {
                builder = set(builder, time);
            }
        }
        if let Some(most) = number(Key::PoolMaxIdlePerHost) {
            builder = builder.pool_max_idle_per_host(most as usize);
        }
        if let Some(bytes) = number(Key::Http2MaxFrameSize) {
            builder = builder.http2_max_frame_size(bytes);
        }
        let switches: [(Key, SwitchOn); 5] = [
            (Key::NoSystemCertificates, |builder| builder.tls_certs_only([])),
            (Key::Http2KeepAliveWhileIdle, |builder| builder.http2_keep_alive_while_idle(true)),
            (Key::Http1Only, ClientBuilder::http1_only),
            (Key::Http2Only, ClientBuilder::http2_prior_knowledge),
            (Key::AllowInvalidCertificates, |builder| builder.danger_accept_invalid_certs(true)),
        ];
        builder =
            switches.into_iter().filter(|(key, _)| is_set(*key)).fold(builder, |all, (_, set)| set(all));
        // A compressed answer would have another length than the object.
        builder = builder.no_gzip().no_brotli().no_zstd().no_deflate();
        builder.https_only(!is_set(Key::AllowHttp)).build().map_err(failed)
    }

    fn follow(self, attempt: Attempt<'_>) -> Action {
        let Some(asked) = attempt.previous().first() else { return attempt.stop() };
        let to = attempt.url();
        let is_same = asked.host_str() == to.host_str()
            && asked.port_or_known_default() == to.port_or_known_default()
            && asked.scheme() == to.scheme();
        let is_safe = match self {
            Self::OfStore { .. } => is_same,
            Self::OfWebServer => {
                let keeps_tls = asked.scheme() != "https" || to.scheme() == "https";
                is_same || keeps_tls && (is_internal(asked) || !is_internal(to))
            }
        };
        match is_safe && attempt.previous().len() <= MAX_REDIRECTS {
            true => attempt.follow(),
            false => {
                let host = to.host_str().unwrap_or_default().to_owned();
                attempt.error(Elsewhere { host })
            }
        }
    }
}

fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "true" | "yes" | "y" | "on" | "1")
}

/// Whether a host has an address of this machine or of a private network. The metadata services of clouds
/// have such addresses.
fn is_internal(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return true };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    // A name that is not known is an error later.
    let addresses = (host, url.port_or_known_default().unwrap_or(0)).to_socket_addrs();
    addresses.into_iter().flatten().any(|address| is_internal_address(address.ip()))
}

fn is_internal_address(address: IpAddr) -> bool {
    let of_four = |ip: Ipv4Addr| {
        let shared = ip.octets()[0] == 100 && (64..128).contains(&ip.octets()[1]);
        ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified() || shared
    };
    let of_six = |ip: Ipv6Addr| {
        ip.is_loopback() || ip.is_unspecified() || ip.is_unique_local() || ip.is_unicast_link_local()
    };
    match address {
        IpAddr::V4(ip) => of_four(ip),
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or_else(|| of_six(ip), of_four),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_metadata_services_and_private_networks_are_internal() {
        for (url, internal) in [
            ("http://169.254.169.254/latest", true),
            ("http://127.0.0.1:9000/", true),
            ("http://localhost/", true),
            ("http://10.1.2.3/", true),
            ("http://100.100.100.200/", true),
            ("http://[fd00:ec2::254]/", true),
            ("http://[::ffff:169.254.169.254]/", true),
            ("http://[::1]/", true),
            ("http://192.0.2.1/", false),
            ("https://[2001:db8::1]/", false),
        ] {
            assert_eq!(is_internal(&Url::parse(url).unwrap()), internal, "{url}");
        }
    }
}
