//! How the system finds out that the other end of a TCP connection is gone: `keepalives` and its companions, as libpq
//! has them (<https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-KEEPALIVES>).

use std::io;
use std::time::Duration;

use sawmill_profile::Result;
use socket2::{SockRef, TcpKeepalive};

use crate::address::parameters::{Parameters, refused};

/// TCP keep-alive settings of each connection. By default the system sends probes at its own intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    on: bool,
    idle: Option<Duration>,
    interval: Option<Duration>,
    count: Option<u32>,
    user_timeout: Option<Duration>,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self { on: true, idle: None, interval: None, count: None, user_timeout: None }
    }
}

impl KeepAlive {
    /// The settings of the address.
    ///
    /// # Errors
    /// A value that is not a whole number.
    pub(crate) fn new(given: &Parameters) -> Result<Self> {
        let set = |name| number(given, name).map(|number| number.filter(|number| *number > 0));
        let seconds = |number: u32| Duration::from_secs(number.into());
        Ok(Self {
            on: number(given, "keepalives")? != Some(0),
            idle: set("keepalives_idle")?.map(seconds),
            interval: set("keepalives_interval")?.map(seconds),
            count: set("keepalives_count")?,
            user_timeout: set("tcp_user_timeout")?.map(|number| Duration::from_millis(number.into())),
        })
    }

    /// Sets it on a socket of TCP.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn apply<'s>(&self, socket: impl Into<SockRef<'s>>) -> io::Result<()> {
        let socket = socket.into();
        socket.set_keepalive(self.on)?;
        if self.on {
            let mut probes = TcpKeepalive::new();
            if let Some(idle) = self.idle {
                probes = probes.with_time(idle);
            }
            if let Some(interval) = self.interval {
                probes = probes.with_interval(interval);
            }
            if let Some(count) = self.count {
                probes = probes.with_retries(count);
            }
            socket.set_tcp_keepalive(&probes)?;
        }
        #[cfg(target_os = "linux")]
        if self.user_timeout.is_some() {
            socket.set_tcp_user_timeout(self.user_timeout)?;
        }
        Ok(())
    }
}

/// A parameter's number. As in libpq, a number below 0 means 0, the system's default.
fn number(given: &Parameters, name: &str) -> Result<Option<u32>> {
    let Some(text) = given.get(name) else { return Ok(None) };
    let number: i32 =
        text.trim().parse().map_err(|_| refused(format!("{name} is {text:?}, not a whole number")))?;
    Ok(Some(number.max(0).unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_sent_by_default_and_after_the_times_that_are_given() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let set = |parameters: &str| {
            let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let given = Parameters::new(parameters, &|_| None).unwrap();
            KeepAlive::new(&given).unwrap().apply(&stream).unwrap();
            stream
        };
        assert!(SockRef::from(&set("host=h")).keepalive().unwrap());
        assert!(!SockRef::from(&set("keepalives=0")).keepalive().unwrap());
        let stream = set("keepalives_idle=7 keepalives_interval=3 keepalives_count=2 tcp_user_timeout=4500");
        let socket = SockRef::from(&stream);
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(7));
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(3));
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 2);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_millis(4500)));
        let default =
            SockRef::from(&set("keepalives_idle=0 keepalives_count=-1")).tcp_keepalive_time().unwrap();
        assert_eq!(default, SockRef::from(&set("")).tcp_keepalive_time().unwrap());
        let given = Parameters::new("keepalives_idle=soon", &|_| None).unwrap();
        assert!(KeepAlive::new(&given).unwrap_err().what().contains("soon"));
    }
}
