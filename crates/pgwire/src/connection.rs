//! A connection that blocks its thread, but never beyond a cancel.
//!
//! Each connection carries a runtime of its own that lives on the thread that uses it. Whatever is
//! waited for, the cancel flag is looked at every 100 ms: a server that stopped reading or a lock that is
//! not granted cannot hold the load. On the way out the server is asked to cancel what it is at.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::SinkExt;
use sawmill_profile::{WaitKind, WireCounters, wait};
use sawmill_source::{Control, Error, Kind, LOOK, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::ToSql;
use tokio_postgres::{CancelToken, Client, CopyInSink, NoTls, Row};

use crate::address::server::{Endpoint, Product, Server};
use crate::address::session_kind::SessionKind;
use crate::server_error::{from_server, unreachable};
use crate::socket::stream::{CopyStream, Socket};
use crate::socket::tls::Tls;

type ServerResult<T> = std::result::Result<T, tokio_postgres::Error>;

/// An open connection. Not for use from within an asynchronous runtime.
pub struct Connection {
    // Dropped before the runtime that drives it.
    /// The client. Its futures make progress inside [`wait`](Self::wait) alone.
    pub client: Client,
    cancel: CancelToken,
    endpoint: Endpoint,
    tls: Option<Tls>,
    place: String,
    /// What CrateDB reports as its version when a connection begins.
    crate_version: Option<String>,
    /// The path of rows past the client, without TLS.
    copy_stream: Option<CopyStream>,
    driver: std::sync::Mutex<Option<JoinHandle<ServerResult<()>>>>,
    /// Everything it does is rolled back.
    rehearsing: bool,
    runtime: Option<Runtime>,
}

impl Connection {
    /// Connects to the first endpoint that answers and is what is looked for.
    pub fn open(server: &Server, control: &Control<'_>) -> Result<Self> {
        let mut last = Error::new(Kind::Config, "the address names no host").at(server.place());
        for wanted in server.session.rounds() {
            for endpoint in &server.endpoints {
                control.check()?;
                match Self::to(endpoint, server, control) {
                    Ok(connection) => match connection.objection(server.product, *wanted, control)? {
                        None => {
                            connection.apply(&server.settings, control)?;
                            return Ok(connection);
                        }
                        Some(objection) => {
                            last = unreachable(objection, connection.place.clone());
                        }
                    },
                    // A server that refuses the user ends the search, as in libpq.
                    Err(error) if error.kind() == Kind::Connection => last = error,
                    Err(error) => return Err(error),
                }
            }
        }
        Err(last)
    }

    /// Why this server does not suit, where not any will do. Another product than the expected one is an
    /// error: going on to the next endpoint would hide a mistake.
    fn objection(
        &self,
        product: Product,
        wanted: SessionKind,
        control: &Control<'_>,
    ) -> Result<Option<&'static str>> {
        if let Some(error) = product.objection(self.crate_version.as_deref()) {
            return Err(error.at(self.place.clone()));
        }
        if wanted == SessionKind::Any {
            return Ok(None);
        }
        let sql = "SELECT pg_catalog.pg_is_in_recovery(), \
                   pg_catalog.current_setting('transaction_read_only') = 'on'";
        let rows = self.query(control, sql, &[])?;
        let flag = |column| rows.first().map_or(Ok(false), |row| self.get::<bool>(row, column));
        Ok(wanted.objection(flag(0)?, flag(1)?))
    }

    fn to(endpoint: &Endpoint, server: &Server, control: &Control<'_>) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| {
            Error::new(Kind::Connection, format!("cannot start an event loop: {error}")).at(server.place())
        })?;
        let place = match server.config.get_dbname() {
            Some(database) => format!("{endpoint}, database {database:?}"),
            None => endpoint.to_string(),
        };
        let no_way = |error: std::io::Error| unreachable(error, place.clone());
        let tls = server.tls.as_ref().map(|config| Tls::to(endpoint, config)).transpose();
        let tls = tls.map_err(no_way)?.flatten();
        let mut config = server.config_for(endpoint);
        if tls.is_none() {
            config.ssl_mode(SslMode::Disable);
        }
        let connecting = async {
            let wire = control.phase().wire().clone();
            let socket = Socket::connect(endpoint, tls.is_some(), wire).await.map_err(no_way)?;
            let refused = |error| from_server(&error, &place);
            let copy_stream = socket.copy_stream();
            let (client, crate_version, driver) = match tls.clone() {
                None => {
                    let (client, connection) = config.connect_raw(socket, NoTls).await.map_err(refused)?;
                    let version = connection.parameter("crate_version").map(str::to_owned);
                    (client, version, runtime.spawn(connection))
                }
                Some(tls) => {
                    let (client, connection) = config.connect_raw(socket, tls).await.map_err(refused)?;
                    let version = connection.parameter("crate_version").map(str::to_owned);
                    (client, version, runtime.spawn(connection))
                }
            };
            // TLS that is only preferred is what a server need not have.
            let encrypted = tls.as_ref().is_some_and(Tls::has_begun);
            Ok((client, crate_version, driver, (!encrypted).then_some(copy_stream)))
        };
        let within = async {
            let late = || {
                let seconds = server.timeout.as_secs_f64();
                unreachable(format!("no answer within {seconds} s"), place.clone())
            };
            tokio::time::timeout(server.timeout, connecting).await.unwrap_or_else(|_| Err(late()))
        };
        let (client, crate_version, driver, copy_stream) = runtime.block_on(watched(control, within))??;
        Ok(Self {
            cancel: client.cancel_token(),
            client,
            endpoint: endpoint.clone(),
            tls,
            place,
            crate_version,
            copy_stream,
            driver: std::sync::Mutex::new(Some(driver)),
            rehearsing: false,
            runtime: Some(runtime),
        })
    }

    /// Sets the server's parameters for this connection.
    fn apply(&self, settings: &[(String, String)], control: &Control<'_>) -> Result<()> {
        for (name, value) in settings {
            let set = self.query(control, "SELECT set_config($1, $2, false)", &[name, value]);
            set.map_err(|error| match error.kind() {
                Kind::Server => {
                    Error::new(Kind::Config, format!("the setting {name:?} = {value:?}: {}", error.what()))
                        .at(error.place())
                        .advise("SHOW ALL lists the server's parameters and their values")
                }
                _ => error,
            })?;
        }
        Ok(())
    }

    /// From here on everything happens in one transaction that is never committed.
    pub fn rehearse(&mut self, control: &Control<'_>) -> Result<()> {
        self.batch(control, "BEGIN")?;
        self.rehearsing = true;
        Ok(())
    }

    /// Whether everything it does is rolled back.
    pub fn is_rehearsing(&self) -> bool {
        self.rehearsing
    }

    /// Begins a transaction.
    pub fn begin(&self, control: &Control<'_>) -> Result<()> {
        if self.rehearsing { Ok(()) } else { self.batch(control, "BEGIN") }
    }

    /// Commits it.
    pub fn commit(&self, control: &Control<'_>) -> Result<()> {
        if self.rehearsing { Ok(()) } else { self.batch(control, "COMMIT") }
    }

    /// Hands rows to a `COPY` that this connection has begun and not ended.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn send_rows(
        &self,
        copy: &mut Pin<Box<CopyInSink<Bytes>>>,
        rows: Bytes,
    ) -> Result<(), WireError> {
        let Some(stream) = &self.copy_stream else { return Ok(copy.feed(rows).await?) };
        let Err(lost) = stream.send(&rows).await else { return Ok(()) };
        // The reason is what the client has read.
        match tokio::time::timeout(LOOK, copy.as_mut().finish()).await {
            Ok(Err(reason)) => Err(reason.into()),
            _ => Err(Error::new(Kind::Connection, format!("the connection was lost: {lost}"))
                .at(&self.place)
                .advise("run the same command again: what was committed stays and is not loaded twice")
                .into()),
        }
    }

    /// Host, port and database, for errors.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Waits for what is asked of the server, which counts as a wait for the network.
    pub fn wait<T>(&self, control: &Control<'_>, asked: impl Future<Output = ServerResult<T>>) -> Result<T> {
        let _asking = wait(WaitKind::Network);
        self.wait_for(control, async { asked.await.map_err(WireError::Server) })
    }

    /// The same for futures that have failures of their own.
    pub fn wait_for<T>(
        &self,
        control: &Control<'_>,
        asked: impl Future<Output = std::result::Result<T, WireError>>,
    ) -> Result<T> {
        let Some(runtime) = &self.runtime else {
            return Err(Error::new(Kind::Connection, "the connection is closed").at(&self.place));
        };
        match runtime.block_on(watched(control, asked)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(WireError::Own(error))) => Err(error),
            Ok(Err(WireError::Server(error))) => Err(self.explain(runtime, &error)),
            Err(cancelled) => {
                self.ask_to_cancel(runtime);
                Err(cancelled)
            }
        }
    }

    /// For a closed connection, the driver knows the reason.
    fn explain(&self, runtime: &Runtime, error: &tokio_postgres::Error) -> Error {
        if error.is_closed() {
            let driver = self.driver.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            if let Some(driver) = driver {
                let ended = runtime.block_on(async { tokio::time::timeout(LOOK, driver).await });
                if let Ok(Ok(Err(reason))) = ended {
                    return from_server(&reason, &self.place);
                }
            }
        }
        from_server(error, &self.place)
    }

    fn ask_to_cancel(&self, runtime: &Runtime) {
        let asking = async {
            let wire = WireCounters::default();
            let socket = Socket::connect(&self.endpoint, self.tls.is_some(), wire).await.ok()?;
            match self.tls.clone() {
                None => self.cancel.cancel_query_raw(socket, NoTls).await.ok(),
                Some(tls) => self.cancel.cancel_query_raw(socket, tls).await.ok(),
            }
        };
        // If this fails the connection is closed anyway, and the server notices when it reads or writes.
        let _ = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(2), asking).await });
    }

    /// Runs statements that return nothing of interest.
    pub fn batch(&self, control: &Control<'_>, sql: &str) -> Result<()> {
        self.wait(control, self.client.batch_execute(sql))
    }

    /// Runs a statement with parameters; returns the number of rows.
    pub fn execute(
        &self,
        control: &Control<'_>,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64> {
        self.wait(control, self.client.execute(sql, parameters))
    }

    /// Runs a query.
    pub fn query(
        &self,
        control: &Control<'_>,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        self.wait(control, self.client.query(sql, parameters))
    }

    /// One column of a row of this connection's queries.
    pub fn get<'r, T: tokio_postgres::types::FromSql<'r>>(&self, row: &'r Row, i: usize) -> Result<T> {
        row.try_get(i).map_err(|error| from_server(&error, &self.place))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A name look-up may still be under way on a thread of its own: do not wait for it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A failure on the wire, or one of our own.
pub enum WireError {
    /// What the server or the connection to it reported.
    Server(tokio_postgres::Error),
    /// What the caller found.
    Own(Error),
}

impl From<tokio_postgres::Error> for WireError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl From<Error> for WireError {
    fn from(error: Error) -> Self {
        Self::Own(error)
    }
}

/// Awaits a future, checking the cancel flag.
async fn watched<T>(control: &Control<'_>, future: impl Future<Output = T>) -> Result<T> {
    let mut future = std::pin::pin!(future);
    loop {
        control.check()?;
        if let Ok(value) = tokio::time::timeout(LOOK, future.as_mut()).await {
            return Ok(value);
        }
    }
}
