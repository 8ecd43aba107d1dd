//! What servers say, sorted: worth another try or not, and what to do about it.

use tokio_postgres::error::SqlState;

use crate::error::{Error, Kind};

/// An error of a connection or of the server behind it.
pub(crate) fn from_server(error: &tokio_postgres::Error, place: &str) -> Error {
    use std::error::Error as _;
    let Some(db) = error.as_db_error() else {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        let text = error.to_string();
        // Everything without an answer of the server is about the wire, except what the client itself
        // refuses before it sends, and authentication.
        let ours = ["authentication", "configuration", "serializing", "deserializing", "expected"];
        let kind = match ours.iter().any(|word| text.contains(word)) {
            true => Kind::Server,
            false => Kind::Connection,
        };
        let advice = match kind {
            Kind::Connection => {
                "run the same command again: what was committed stays and is not loaded twice"
            }
            _ => "check user, password and the server's pg_hba.conf",
        };
        let what = match error.is_closed() {
            true => "the connection was lost".to_owned(),
            false => format!("{text}{cause}"),
        };
        return Error::new(kind, what).at(place).advise(advice);
    };
    let code = db.code();
    let class = &code.code()[..2];
    let passing = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::TOO_MANY_CONNECTIONS,
    ];
    let kind = match class == "08" || passing.contains(code) {
        true => Kind::Connection,
        false => Kind::Server,
    };
    let mut what = format!("the server says: {}", db.message());
    for more in [db.detail(), db.where_()].into_iter().flatten() {
        what += &format!(" ({})", more.replace('\n', "; "));
    }
    let advice = match code {
        &SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "check user and password: they come from the address, PGUSER, PGPASSWORD or ~/.pgpass"
        }
        &SqlState::INVALID_CATALOG_NAME => "create the database, or name another in the address",
        &SqlState::INSUFFICIENT_PRIVILEGE => {
            "ask the owner for the permission; the loader needs CREATE on the database once, for the schema \
             _sawmill, and CREATE on the table's schema"
        }
        &SqlState::INVALID_SCHEMA_NAME => "create the schema, or name another in the table's name",
        &SqlState::DISK_FULL => "make room on the server's disk and run the same command again",
        &SqlState::TOO_MANY_CONNECTIONS => "use fewer connections, or raise the server's max_connections",
        _ if kind == Kind::Connection => {
            "run the same command again: what was committed stays and is not loaded twice"
        }
        _ => db.hint().unwrap_or(""),
    };
    Error::new(kind, format!("{what} [{}]", code.code())).at(place).advise(advice)
}

/// The line of a COPY that an error is about, from 1: the row, in binary format. It stands in the error's context,
/// as in `COPY trips, line 12, column fare`.
pub(crate) fn copy_line(error: &tokio_postgres::Error) -> Option<usize> {
    let context = error.as_db_error()?.where_()?;
    let copy = context.lines().find(|line| line.starts_with("COPY "))?;
    let (_, line) = copy.rsplit_once(", line ")?;
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    line[..digits].parse().ok()
}

/// An endpoint that cannot be reached.
pub(crate) fn unreachable(what: impl std::fmt::Display, place: String) -> Error {
    Error::new(Kind::Connection, format!("the server cannot be reached: {what}"))
        .at(place)
        .advise("check that it runs there and that host and port are right")
}
