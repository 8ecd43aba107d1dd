//! The PostgreSQL wire of a cluster: blocks as binary arrays to `INSERT ... SELECT FROM UNNEST(...)`.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use sawmill_pgwire::{Connection, Server};
use sawmill_source::{Control, Result};
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{Format, IsNull, ToSql, Type};
use tokio_postgres::{Config, Statement};

use crate::connect::activity;
use crate::connect::client::Cluster;

/// A parameter that is in its binary form already.
#[derive(Debug)]
struct Encoded(Bytes);

impl ToSql for Encoded {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        self.to_sql(ty, out)
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Binary
    }
}

/// The addresses of the PostgreSQL wire, beginning with the `first`th node, so that connections spread.
pub(crate) fn server(cluster: &Cluster, first: usize) -> Server {
    let Cluster { server, tls, .. } = cluster;
    let mut config = Config::new();
    config.user(&server.user).dbname(&server.schema).application_name("sawmill");
    // With TLS in the address, never fall back to plain text.
    config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
    if let Some(password) = &server.password {
        config.password(password);
    }
    let nodes = server.nodes.iter().cycle().skip(first % server.nodes.len().max(1)).take(server.nodes.len());
    let nodes = nodes.map(|node| (node.host.clone(), server.pg_port));
    Server::of_crate_db(config, nodes, Duration::from_secs(5), tls.clone()).patience(cluster.silence())
}

/// A connection with the statement of a load prepared.
pub(crate) struct PgInsert {
    connection: Connection,
    plain: Statement,
    repeat: Statement,
}

impl PgInsert {
    /// Connects, and prepares the statements.
    pub(crate) fn open(
        cluster: &Arc<Cluster>,
        first: usize,
        [plain, repeat]: [&str; 2],
        types: &[Type],
        control: &Control<'_>,
    ) -> Result<Self> {
        let mut connection = open(&server(cluster, first), control)?;
        if cluster.server.timeout.is_none() {
            let (cluster, statements) = (Arc::clone(cluster), [plain.to_owned(), repeat.to_owned()]);
            let is_meant = move |job: &str| statements.iter().any(|statement| statement == job);
            connection.asks_by(move |control| activity::goes_on(&cluster, &is_meant, control));
        }
        let prepare = |text: &str| connection.wait(control, connection.client.prepare_typed(text, types));
        let first = prepare(plain)?;
        let repeat = if repeat == plain { first.clone() } else { prepare(repeat)? };
        Ok(Self { connection, plain: first, repeat })
    }

    /// Whether the server has closed the connection since its last answer. A request sent now would not arrive.
    pub(crate) fn is_closed(&self, control: &Control<'_>) -> bool {
        // The client notices a closed connection only while it waits for something.
        let moment = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(())
        };
        self.connection.wait(control, moment).is_err() || self.connection.client.is_closed()
    }

    /// Inserts a block, and adds the tag to its rows if there is one. Returns the number of inserted rows.
    pub(crate) fn insert(
        &self,
        columns: &[Bytes],
        tag: Option<i64>,
        repeat: bool,
        control: &Control<'_>,
    ) -> Result<u64> {
        let statement = if repeat { &self.repeat } else { &self.plain };
        let tag = tag.map(|tag| Encoded(Bytes::copy_from_slice(&tag.to_be_bytes())));
        let parameters: Vec<Encoded> =
            columns.iter().map(|bytes| Encoded(bytes.clone())).chain(tag).collect();
        self.connection.wait(control, self.connection.client.execute_raw(statement, parameters))
    }
}

/// Connects, and makes the first row that fails end its statement.
pub(crate) fn open(server: &Server, control: &Control<'_>) -> Result<Connection> {
    let connection = Connection::open(server, control)?;
    connection.batch(control, "SET SESSION insert_select_fail_fast = true")?;
    Ok(connection)
}
