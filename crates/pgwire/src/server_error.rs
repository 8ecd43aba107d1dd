//! Errors of servers: whether a retry may help, and what to do about them.

use sawmill_source::{Error, Kind};
use tokio_postgres::error::{DbError, SqlState};

/// An error of a connection or of the server behind it.
pub fn from_server(error: &tokio_postgres::Error, place: &str) -> Error {
    let Some(db) = error.as_db_error() else { return without_answer(error, place) };
    if is_of_records(error) {
        return Error::new(
            Kind::Server,
            "the records of this load were removed while it ran: by another load, in mode truncate or replace, or by hand",
        )
        .at(place)
        .advise(
            "the same command again loads all rows; where the table was not emptied, compare it with the files first (sawmill \
             verify)",
        );
    }
    let kind = kind_of(db.code());
    let mut what = format!("the server says: {}", db.message());
    // CrateDB gives the stack of its Java code as the context of an error, which helps no one who loads.
    let context = db.where_().filter(|context| !context.contains(".java:"));
    for more in [db.detail(), context].into_iter().flatten() {
        what += &format!(" ({})", more.replace('\n', "; "));
    }
    Error::new(kind, format!("{what} [{}]", db.code().code())).at(place).advise(advice_on(db, kind))
}

/// An error that is not an answer of the server: of the wire, of authentication, or of the client before it
/// sends.
fn without_answer(error: &tokio_postgres::Error, place: &str) -> Error {
    use std::error::Error as _;
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let text = error.to_string();
    if cause.contains("does not support TLS") || cause.contains("certificate") {
        return Error::new(Kind::Server, format!("{text}{cause}")).at(place).advise(
            "see what sslmode asks for, in the address or PGSSLMODE, and what the server offers (ssl = on)",
        );
    }
    if cause.contains("password missing") {
        return Error::new(Kind::Server, "the server asks for a password, but none is set")
            .at(place)
            .advise("give it in the address, PGPASSWORD or ~/.pgpass (with permissions 600)");
    }
    if cause.contains("bytes remaining on stream") {
        return Error::new(Kind::Config, "the server does not speak the PostgreSQL protocol")
            .at(place)
            .advise("check the port; the HTTP endpoint of CrateDB, at port 4200, has addresses that begin with crate://");
    }
    // Everything without an answer of the server is about the wire, except what the client itself
    // refuses before it sends, and authentication.
    let ours = ["authentication", "configuration", "serializing", "deserializing", "expected"];
    // A server that crashes sends a warning in the middle of a login, where the client expects none.
    let is_warned = text.contains("unexpected message");
    let kind = match !is_warned && ours.iter().any(|word| text.contains(word)) {
        true => Kind::Server,
        false => Kind::Connection,
    };
    let advice = match kind {
        Kind::Connection => "run the same command again: what was committed stays and is not loaded twice",
        _ => "check user, password and the server's pg_hba.conf",
    };
    let what = match error.is_closed() {
        true => "the connection was lost".to_owned(),
        false => format!("{text}{cause}"),
    };
    Error::new(kind, what).at(place).advise(advice)
}

/// Whether a retry may help against an error of this code.
fn kind_of(code: &SqlState) -> Kind {
    let class = &code.code()[..2];
    let passing = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::TOO_MANY_CONNECTIONS,
    ];
    match class == "08" || passing.contains(code) {
        true => Kind::Connection,
        false => Kind::Server,
    }
}

/// What to do about an error, by its code.
fn advice_on(db: &DbError, kind: Kind) -> &str {
    match db.code() {
        &SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "check user and password: they come from the address, PGUSER, PGPASSWORD or ~/.pgpass; the server's \
             pg_hba.conf says which users may connect from where"
        }
        &SqlState::INVALID_CATALOG_NAME => "create the database, or name another in the address",
        &SqlState::INSUFFICIENT_PRIVILEGE => {
            "ask the owner for the permission; a load needs CREATE on the database once, for the schema _sawmill, or, where \
             another user owns that or the one that --checkpoint-schema names, USAGE and CREATE on it and all rights on \
             its tables; besides CREATE on a new table's schema, INSERT and SELECT on one that exists"
        }
        &SqlState::INVALID_SCHEMA_NAME => "create the schema, or name another in the table's name",
        &SqlState::DISK_FULL => disk_full(db.message()),
        &SqlState::QUERY_CANCELED => {
            "if a time limit of the server is too short for the load, lift it: --set statement_timeout=0"
        }
        &SqlState::LOCK_NOT_AVAILABLE => {
            "wait for the end of its transaction, or allow more time (--lock-timeout), and run the same command again"
        }
        &SqlState::READ_ONLY_SQL_TRANSACTION => {
            "nothing can be written there: name the primary server if this is a standby, else see \
             default_transaction_read_only"
        }
        &SqlState::FEATURE_NOT_SUPPORTED if db.message().contains("during recovery") => {
            "nothing can be written there, as it is a standby: name the primary server, or all servers of the cluster with \
             target_session_attrs=read-write"
        }
        &SqlState::TOO_MANY_CONNECTIONS => "use fewer connections, or raise the server's max_connections",
        &SqlState::INVALID_SQL_STATEMENT_NAME | &SqlState::DUPLICATE_PSTATEMENT => NOT_THROUGH_A_POOL,
        _ if kind == Kind::Connection => {
            "run the same command again: what was committed stays and is not loaded twice"
        }
        _ => db.hint().unwrap_or(""),
    }
}

/// What to do where a pooler hands out the server's processes by transactions.
pub(crate) const NOT_THROUGH_A_POOL: &str = "a load holds a lock and prepared statements of its session: name the \
     server itself in the address, or a pool in session mode (pgbouncer: pool_mode = session)";

/// What to do when a disk is full. The file's name says which one it was.
fn disk_full(message: &str) -> &'static str {
    match message.contains("pg_tblspc/") {
        true => {
            "make room in that tablespace (the number behind pg_tblspc/ is its oid in pg_tablespace) and run the same \
             command again"
        }
        false => "make room on the server's disk and run the same command again",
    }
}

/// Whether the server refuses a row and not the whole: data exceptions, violated constraints, what a trigger
/// raises, and rows or index entries that do not fit into a page
/// (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
pub fn is_about_rows(error: &tokio_postgres::Error) -> bool {
    let class = error.code().map(|code| &code.code()[..2]);
    !is_of_records(error) && matches!(class, Some("22" | "23" | "44" | "54" | "P0"))
}

/// Whether the record of a load was missing when one of its units was recorded.
fn is_of_records(error: &tokio_postgres::Error) -> bool {
    let constraint = error.as_db_error().and_then(|db| db.constraint()).unwrap_or_default();
    error.code() == Some(&SqlState::FOREIGN_KEY_VIOLATION)
        && ["units_load_id_fkey", "units_unlogged_load_id_fkey"].contains(&constraint)
}

/// The line of a COPY that an error is about, from 1: the row, in binary format. The error's
/// context has it, as in `COPY trips, line 12, column fare`.
pub fn copy_line(error: &tokio_postgres::Error) -> Option<usize> {
    let context = error.as_db_error()?.where_()?;
    let copy = context.lines().find(|line| line.starts_with("COPY "))?;
    // The word before the number is in the server's language.
    copy.split(", ").skip(1).find_map(|part| {
        let (word, number) = part.split_once(' ')?;
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        (!word.contains(|c: char| c.is_ascii_punctuation())).then(|| number[..digits].parse().ok())?
    })
}

/// An endpoint that cannot be reached.
pub(crate) fn unreachable(what: impl std::fmt::Display, place: String) -> Error {
    Error::new(Kind::Connection, format!("cannot reach the server: {what}"))
        .at(place)
        .advise("check that the server is running and that host and port are right")
}
