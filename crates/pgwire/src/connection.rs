//! A connection that blocks its thread, but never beyond a cancel.
//!
//! Each connection has its own runtime, on the thread that uses it. Every wait checks the cancel flag every
//! 100 ms, so a server that stopped reading or a lock that is not granted cannot hold the load. On the way
//! out the connection asks the server to cancel its work.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::SinkExt;
use sawmill_profile::{Control, Error, Kind, LOOK, Result, WaitKind, WireCounters, wait};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::ToSql;
use tokio_postgres::{CancelToken, Client, Config, CopyInSink, NoTls, Row};

use crate::address::server::{Endpoint, Product, Server};
use crate::address::session_kind::SessionKind;
use crate::server_activity::{Activity, Asked};
use crate::server_error::{from_server, unreachable};
use crate::socket::session::Wire;
use crate::socket::stream::{CopyStream, Progress};

/// Returns why to give up waiting for an answer, if so.
type Asks = dyn Fn(&Control<'_>) -> std::result::Result<(), String> + Send + Sync;

type ServerResult<T> = std::result::Result<T, tokio_postgres::Error>;

/// The statement after which the open transaction waits for the server's log when it commits. Sessions that wait for more
/// still do.
pub const COMMIT_DURABLY: &str = "SELECT pg_catalog.set_config('synchronous_commit', 'on', true) \
                                  WHERE pg_catalog.current_setting('synchronous_commit') <> 'remote_apply'";

/// An open connection. Not for use from within an asynchronous runtime.
pub struct Connection {
    // Dropped before the runtime that drives it.
    /// The client. Its futures make progress inside [`wait`](Self::wait) alone.
    pub client: Client,
    cancel: CancelToken,
    endpoint: Endpoint,
    server: Server,
    place: String,
    /// The process of the server that serves this connection, if it can be asked about.
    process: Option<String>,
    /// Says whether the server still works, where its processes cannot be asked about.
    asks: Option<Box<Asks>>,
    progress: Progress,
    /// The caller waits for something other than the server.
    aside: AtomicBool,
    /// The server was given up.
    given_up: AtomicBool,
    /// The version that CrateDB reports when a connection begins.
    crate_version: Option<String>,
    /// The path of rows past the client, without TLS.
    copy_stream: Option<CopyStream>,
    driver: std::sync::Mutex<Option<JoinHandle<ServerResult<()>>>>,
    /// Everything it does is rolled back.
    rehearsing: bool,
    runtime: Option<Runtime>,
}

impl Connection {
    /// Connects to the first endpoint that answers and suits. Waits for a server that starts up.
    pub fn open(server: &Server, control: &Control<'_>) -> Result<Self> {
        let mut is_new = true;
        let pause = |starting: &Error| {
            if std::mem::take(&mut is_new) {
                let most = server.patience.as_secs();
                control.notice(&format!("{}: waiting for the server, up to {most} s", starting.what()));
            }
            control.sleep(5 * LOOK)
        };
        server.once_it_takes_connections(pause, || Self::now(server, control))
    }

    fn now(server: &Server, control: &Control<'_>) -> Result<Self> {
        let mut last = Error::new(Kind::Config, "the address names no host").at(server.place());
        for wanted in server.session.rounds() {
            for endpoint in &server.endpoints {
                control.check()?;
                match Self::to(endpoint, server, control) {
                    Ok(connection) => match connection.objection(server.product, *wanted, control)? {
                        None => {
                            connection.apply(&server.settings, control)?;
                            return connection.known_to_the_server(control);
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

    /// The reason why this server does not suit, if any. Another product than the expected one is an error:
    /// trying the next endpoint would hide a mistake.
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
        // The login is over when the client begins.
        let mut config = Config::new();
        config.user(server.config.get_user().unwrap_or_default()).ssl_mode(SslMode::Disable);
        let connecting = async {
            let counters = control.phase().wire().clone();
            let wire = Wire::connect(endpoint, server, &place, counters).await?;
            let (stream, copy_stream) = wire.log_in(endpoint, server, &place).await?;
            let progress = stream.progress();
            let begun = config.connect_raw(stream, NoTls).await;
            let (client, connection) = begun.map_err(|error| from_server(&error, &place))?;
            let crate_version = connection.parameter("crate_version").map(str::to_owned);
            Ok((client, crate_version, runtime.spawn(connection), copy_stream, progress))
        };
        let within = async {
            let late = || {
                let seconds = server.timeout.as_secs_f64();
                unreachable(format!("no answer within {seconds} s"), place.clone())
            };
            tokio::time::timeout(server.timeout, connecting).await.unwrap_or_else(|_| Err(late()))
        };
        let connected = match runtime.block_on(watched(control, None, std::pin::pin!(within)))? {
            Waited::Done(connected) => connected?,
            // Not without patience.
            Waited::Silent => return Err(unreachable("no answer", server.place())),
        };
        let (client, crate_version, driver, copy_stream, progress) = connected;
        Ok(Self {
            cancel: client.cancel_token(),
            client,
            endpoint: endpoint.clone(),
            server: server.clone(),
            place,
            process: None,
            asks: None,
            progress,
            aside: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            crate_version,
            copy_stream,
            driver: std::sync::Mutex::new(Some(driver)),
            rehearsing: false,
            runtime: Some(runtime),
        })
    }

    /// The same connection, with the server process that serves it. The greeting also names one, but through
    /// a pool that is not the server's.
    fn known_to_the_server(mut self, control: &Control<'_>) -> Result<Self> {
        if self.server.product == Product::PostgreSql {
            self.process = Some(crate::pooler::process(&self, control)?).flatten();
        }
        Ok(self)
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
        // The client has read the reason.
        match tokio::time::timeout(LOOK, copy.as_mut().finish()).await {
            Ok(Err(reason)) => Err(reason.into()),
            _ => Err(Error::new(Kind::Connection, format!("the connection was lost: {lost}"))
                .at(&self.place)
                .advise("run the same command again: what was committed stays and is not loaded twice")
                .into()),
        }
    }

    /// The server that it was opened to.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Host, port and database, for errors.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Waits for something other than the server, inside a future passed to [`wait_for`](Self::wait_for).
    pub async fn aside<T>(&self, other: impl Future<Output = T>) -> T {
        self.aside.store(true, Relaxed);
        let value = other.await;
        self.aside.store(false, Relaxed);
        value
    }

    /// Waits for an answer of the server. Counts as a wait for the network.
    pub fn wait<T>(&self, control: &Control<'_>, asked: impl Future<Output = ServerResult<T>>) -> Result<T> {
        let _asking = wait(WaitKind::Network);
        self.wait_for(control, async { asked.await.map_err(WireError::Server) })
    }

    /// The same for futures that have failures of their own. While the connection sends and receives nothing,
    /// it asks the server, over another connection and after each patience, whether it still works on the
    /// request.
    ///
    /// # Errors
    /// Errors of the future; the connection is lost, or the server no longer works on the request.
    pub fn wait_for<T>(
        &self,
        control: &Control<'_>,
        asked: impl Future<Output = std::result::Result<T, WireError>>,
    ) -> Result<T> {
        let Some(runtime) = self.runtime.as_ref().filter(|_| !self.given_up.load(Relaxed)) else {
            return Err(Error::new(Kind::Connection, "the connection is closed").at(&self.place));
        };
        self.aside.store(false, Relaxed);
        let mut asked = std::pin::pin!(asked);
        let mut dead = None;
        loop {
            match runtime.block_on(watched(control, Some(self), asked.as_mut())) {
                Ok(Waited::Done(Ok(value))) => return Ok(value),
                Ok(Waited::Done(Err(WireError::Own(error)))) => return Err(error),
                Ok(Waited::Done(Err(WireError::Server(error)))) => {
                    let error = self.explain(runtime, &error);
                    // What has come after it was asked may be that the process was ended for its silence.
                    return Err(dead.filter(|_| error.kind() == Kind::Connection).unwrap_or(error));
                }
                Ok(Waited::Silent) => {
                    let before = self.progress.now();
                    let gone = self.ask_for_activity(control);
                    // An answer may have come while the server was asked.
                    let came = async { tokio::time::sleep(LOOK).await };
                    if let Err(error) = gone {
                        runtime.block_on(came);
                        if self.progress.now() == before || error.kind() != Kind::Connection {
                            self.given_up.store(true, Relaxed);
                            return Err(error);
                        }
                        dead = Some(error);
                    }
                }
                Err(cancelled) => {
                    self.ask_to_cancel(runtime);
                    return Err(cancelled);
                }
            }
        }
    }

    /// From now on `asks` decides, each time that the patience ends, whether to wait longer. Its error says why not.
    pub fn asks_by(
        &mut self,
        asks: impl Fn(&Control<'_>) -> std::result::Result<(), String> + Send + Sync + 'static,
    ) {
        self.asks = Some(Box::new(asks));
    }

    /// Asks over another connection whether the server still works on the request.
    fn ask_for_activity(&self, control: &Control<'_>) -> Result<()> {
        let Self { server, endpoint, process, place, .. } = self;
        let asked = Asked { server, endpoint, process: process.as_deref() };
        if let Some(asks) = &self.asks {
            return asks(control).or_else(|why| control.check().and(Err(asked.gone(place, &why))));
        }
        match asked.ask(&|| control.cancelled()) {
            Activity::Working(why) => {
                control.notice(&asked.still_waiting(place, &why));
                control.check()
            }
            Activity::None(why) => control.check().and(Err(asked.gone(place, &why))),
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
            let counters = WireCounters::default();
            let wire = Wire::connect(&self.endpoint, &self.server, &self.place, counters).await.ok()?;
            self.cancel.cancel_query_raw(wire.stream, NoTls).await.ok()
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

impl Connection {
    /// Closes the connection; the server then ends its process.
    pub fn close(&mut self) {
        // Does not wait for a name look-up, which may still run on another thread.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

/// A failure on the wire, or one of our own.
pub enum WireError {
    /// An error of the server or of the connection to it.
    Server(tokio_postgres::Error),
    /// An error of the caller.
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

/// How a wait has ended.
enum Waited<T> {
    Done(T),
    /// Nothing was sent and no answer arrived for as long as the patience lasts.
    Silent,
}

/// Awaits a future. Checks the cancel flag, and whether bytes still pass over the connection.
async fn watched<T>(
    control: &Control<'_>,
    connection: Option<&Connection>,
    mut future: Pin<&mut impl Future<Output = T>>,
) -> Result<Waited<T>> {
    let progress = || connection.map(|connection| connection.progress.now());
    let (mut seen, mut since) = (progress(), Instant::now());
    loop {
        control.check()?;
        if let Ok(value) = tokio::time::timeout(LOOK, future.as_mut()).await {
            return Ok(Waited::Done(value));
        }
        let Some(Connection { aside, server, .. }) = connection else { continue };
        let now = progress();
        if now != seen || aside.load(Relaxed) {
            (seen, since) = (now, Instant::now());
        } else if since.elapsed() >= server.patience {
            return Ok(Waited::Silent);
        }
    }
}
